"""Question to quoted answer: the best span of the passages that a search finds, with its place in the file.

No generator is involved: a model for questions (`likewise finetune qa`) reads the passages, so that every
answer stands word for word in a document. The spans of all passages compete with each other. A reader alone
is easily fooled by a passage about something else, so how relevant the search found a passage counts too, as
in BERTserini (Yang et al. 2019, 1902.01718). Nothing here prints.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from likewise.embedder.heads.data import QuestionExample
from likewise.errors import UsageError
from likewise.index.breaks import count_newlines
from likewise.index.records import Filter, Span
from likewise.retrieval.search import EVERYTHING, Retriever

if TYPE_CHECKING:
    from likewise.embedder.heads.questions import AnswerPrediction
    from likewise.index.records import Json
    from likewise.retrieval.grammar import ParsedQuery
    from likewise.retrieval.hits import Hit, Mode, SearchResult

FORMAT_VERSION = 1
"""Version of the JSON that `Extraction.to_json` gives; raised when a field changes its meaning."""

DEFAULT_K = 20
"""Passages that are read."""

RELEVANCE_WEIGHT = 1.0
"""What a factor e of relevance is worth, in units of the reader's logits."""

# A passage of which the search cannot tell the relevance, and the least that one can have: no logarithm of 0.
_UNKNOWN, _LEAST = 0.5, 0.01

_ELLIPSIS = "…"


class Reader(Protocol):
    """A model that finds answers in contexts, such as `likewise.embedder.heads.predictor.Predictor`."""

    def predict(self, examples: Sequence[QuestionExample]) -> list[AnswerPrediction]:
        """The best spans of each context, whose length does not matter."""
        ...


@dataclass(frozen=True, slots=True)
class Extract:
    """A span of a passage that answers a question.

    Attributes:
        text: As it stands in the document.
        start: Its first character in the passage's text.
        end: The character after its last one.
        probability: Among the spans of all passages that were read, in [0, 1].
        score: What it is ranked by: the reader's logits, and the logarithm of the passage's relevance.
        hit: The passage.
    """

    text: str
    start: int
    end: int
    probability: float
    score: float
    hit: Hit

    @property
    def path(self) -> str:
        """Path of the document."""
        return self.hit.path

    @property
    def span(self) -> Span:
        """First and one past the last character in the document's text."""
        begin = self.hit.passage.passage.span.start
        return Span(begin + self.start, begin + self.end)

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line of the answer, from 1."""
        first = self.hit.lines[0] + count_newlines(self.hit.text, 0, self.start)
        return first, first + count_newlines(self.hit.text, self.start, self.end)

    def quote(self, width: int = 240) -> tuple[str, str, str]:
        r"""What stands before, in and behind the answer, on one line of about `width` characters.

        Example:
            >>> from likewise.index.records import Passage, StoredPassage
            >>> from likewise.retrieval.hits import Hit, HitScores
            >>> keys = Passage(0, "Keys rotate yearly.\nThey are red.", Span(0, 33), lines=(1, 2))
            >>> hit = Hit(1, 0.9, HitScores(), StoredPassage(7, "keys.md", "", "en", "00ff", keys))
            >>> Extract("yearly", 12, 18, 0.9, 5.0, hit).quote(26)
            ('…rotate ', 'yearly', '. They…')
        """
        room = max(0, width - (self.end - self.start)) // 2
        text = self.hit.text
        before, behind = text[: self.start], text[self.end :]
        return _tail(before, room), _folded(text[self.start : self.end]), _head(behind, room)

    def to_json(self) -> dict[str, Json]:
        """The span with its citation, as `ask --extractive --json` shows it."""
        passage = self.hit.passage
        return {
            "answer": self.text,
            "probability": self.probability,
            "score": self.score,
            "path": self.path,
            "lines": list(self.lines),
            "page": self.hit.page,
            "span": [self.span.start, self.span.end],
            "content_hash": passage.content_hash,
            "passage_id": passage.id,
            "rank": self.hit.rank,
            "relevance": self.hit.relevance,
            "title": self.hit.title,
            "heading": self.hit.heading,
            "passage": self.hit.text,
            "start": self.start,
            "end": self.end,
        }


@dataclass(frozen=True, slots=True)
class Extraction:
    """What the passages answer.

    Attributes:
        question: What was asked.
        answers: Best first, each text once; empty if the passages seem to hold no answer.
        hits: What the search found, all of which was read.
        notices: What the person who asked should know, one sentence each.
    """

    question: str
    answers: tuple[Extract, ...]
    hits: SearchResult
    notices: tuple[str, ...]

    def to_json(self) -> dict[str, Json]:
        """The answers as `ask --extractive --json` shows them."""
        return {
            "version": FORMAT_VERSION,
            "question": self.question,
            "answer": self.answers[0].text if self.answers else None,
            "answers": [answer.to_json() for answer in self.answers],
            "passages": len(self.hits),
            "notices": list(self.notices),
        }


def extract_answers(
    retriever: Retriever,
    question: str | ParsedQuery,
    reader: Reader,
    *,
    k: int = DEFAULT_K,
    mode: Mode = "hybrid",
    filter: Filter = EVERYTHING,
    min_relevance: float = 0.0,
    answers: int = 3,
) -> Extraction:
    """Search, read what is found, and rank the spans of all passages together.

    Args:
        retriever: Finds the passages.
        question: What to answer.
        reader: Finds spans in passages.
        k: Most passages to read.
        mode: How to search.
        filter: Which documents may answer.
        min_relevance: Least estimated relevance of a passage, in [0, 1].
        answers: Most answers to return, at least 1.

    Raises:
        UsageError: `answers` is below 1.
        LikewiseError: As `Retriever.search` does.
    """
    if answers < 1:
        raise UsageError(f"expected at least 1 answer, found {answers}")
    hits = retriever.search(question, k=k, mode=mode, filter=filter, min_relevance=min_relevance)
    asked = hits.text or hits.query
    readings = reader.predict([QuestionExample(asked, hit.text) for hit in hits]) if hits else []
    spans = sorted(_spans(hits, readings), key=lambda span: (-span[0], span[1].rank))
    found = _distinct(spans, answers)
    notices = list(hits.notices)
    if hits and not found:
        notices.append(f"no answer seems to stand in the passages that were read ({len(hits)})")
    return Extraction(hits.query, tuple(found), hits, tuple(notices))


_Candidate = tuple[float, "Hit", int, int, str]


def _spans(hits: SearchResult, readings: Sequence[AnswerPrediction]) -> Iterator[_Candidate]:
    """All spans with their scores; none of a passage that the reader finds no answer in."""
    for hit, reading in zip(hits, readings, strict=True):
        if not reading.answer.text:
            continue
        bonus = RELEVANCE_WEIGHT * math.log(max(_LEAST, _UNKNOWN if hit.relevance is None else hit.relevance))
        for span in reading.spans:
            yield span.score + bonus, hit, span.start, span.end, span.text


def _distinct(spans: Sequence[_Candidate], count: int) -> list[Extract]:
    """The best spans, each text once; overlapping ones of a passage are readings of the same answer."""
    if not spans:
        return []
    top = spans[0][0]
    total = sum(math.exp(score - top) for score, *_ in spans)
    chosen: list[Extract] = []
    shares: dict[int, float] = {}
    for score, hit, start, end, text in spans:
        share = math.exp(score - top) / total
        known = next(
            (number for number, other in enumerate(chosen) if _same(other, hit, start, end, text)), None
        )
        if known is not None:
            shares[known] += share
        elif len(chosen) < count:
            shares[len(chosen)] = share
            chosen.append(Extract(text, start, end, 0.0, score, hit))
    return [
        Extract(one.text, one.start, one.end, min(1.0, shares[number]), one.score, one.hit)
        for number, one in enumerate(chosen)
    ]


def _same(one: Extract, hit: Hit, start: int, end: int, text: str) -> bool:
    if one.hit.passage_id == hit.passage_id and start < one.end and one.start < end:
        return True
    return _folded(one.text).casefold() == _folded(text).casefold()


def _folded(text: str) -> str:
    """On one line, with the spaces at its ends."""
    folded = " ".join(text.split())
    if not folded:
        return " " if text else ""
    return f"{' ' * text[0].isspace()}{folded}{' ' * text[-1].isspace()}"


def _tail(text: str, room: int) -> str:
    whole = _folded(text).lstrip()
    if len(whole) <= room:
        return whole
    cut = whole[len(whole) - room :] if room else ""
    # From a word's beginning, if there is one: Chinese has no spaces.
    word = cut.find(" ", 0, len(cut) // 2)
    return _ELLIPSIS + cut[word + 1 :]


def _head(text: str, room: int) -> str:
    whole = _folded(text).rstrip()
    if len(whole) <= room:
        return whole
    cut = whole[:room]
    word = cut.rfind(" ", len(cut) // 2)
    return (cut[:word] if word > 0 else cut) + _ELLIPSIS
