"""Check the citations of a generated answer against its sources.

Whether a statement is true is not decided here: known are the numbers, and where in its source a statement
has its words from. A low support is a reason to look, not a proof; an answer in another language than its
source has none at all.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from likewise.index.analyzer import analyze_query
from likewise.index.records import Span
from likewise.index.sentences import sentence_starts
from likewise.retrieval.stretches import line_at

if TYPE_CHECKING:
    from likewise.index.records import Json
    from likewise.retrieval.context import Source

# [1]  [1, 2]  [1-3]  [1、2]  【1】  ［1］  [^1]  [Source 1]  [來源 1]  【1†source】, but no link: [1](url).
# Spaces are counted out, so that no run of them makes the search go back and forth.
_GAP = r"[ \t\u3000]{0,2}"
_ONE = rf"\d{{1,4}}(?:{_GAP}[-–—~～至到]{_GAP}\d{{1,4}})?"
_NUMBERS = rf"{_ONE}(?:{_GAP}(?:[,，、;；&]|and|和|與|与){_GAP}{_ONE}){{0,30}}"
_WORDS = rf"(?:\^|(?:sources?|refs?\.?|passages?|來源|来源|資料|资料){_GAP}[:：#]?{_GAP})?"
_CITATION = re.compile(
    rf"[\[【［]{_GAP}{_WORDS}(?P<numbers>{_NUMBERS}){_GAP}(?:†[^\]】］\n]{{0,40}})?[\]】］](?!\()",
    re.IGNORECASE,
)
_STOP = re.compile(r"[ \t]{0,4}([.!?…。！？；]+)")
_RANGE = re.compile(r"(\d+)\s*[-–—~～至到]\s*(\d+)|(\d+)")
_LONGEST_RANGE = 50

_CODE = re.compile(
    r"^(?P<fence>`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^(?P=fence)[`~]*[ \t]*$|\Z)|`[^`\n]+`", re.DOTALL | re.MULTILINE
)
_LINE_BREAK = re.compile(r"\n\s*")
_MARKUP = re.compile(r"(?:[>\s]|[-*+•]\s|\d{1,3}[.)]\s)+")
_HEADING = re.compile(r"#{1,6}\s")
_EMPTY_LINE = re.compile(r"\n[^\S\n]*\n\s*")


@dataclass(frozen=True, slots=True)
class Trace:
    """Where in a cited source a sentence of the answer has its words from.

    Attributes:
        number: Number of the source.
        passage_id: Passage with the best sentence.
        path: Path of the document.
        lines: Lines of the best sentence, from 1.
        span: Place of the best sentence in the document's text.
        text: The best sentence.
        support: Share of the answer sentence's distinct words that occur in it, in [0, 1].
    """

    number: int
    passage_id: int
    path: str
    lines: tuple[int, int]
    span: Span
    text: str
    support: float

    def to_json(self) -> dict[str, Json]:
        """The fields under their own names."""
        return {
            "number": self.number,
            "passage_id": self.passage_id,
            "path": self.path,
            "lines": list(self.lines),
            "span": [self.span.start, self.span.end],
            "text": self.text,
            "support": self.support,
        }


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an answer.

    Attributes:
        text: As it stands in the answer, citations included.
        span: Its place in the answer.
        numbers: What it cites, in order, each once.
        traces: One for each cited number that exists.
    """

    text: str
    span: Span
    numbers: tuple[int, ...]
    traces: tuple[Trace, ...]

    def to_json(self) -> dict[str, Json]:
        """The fields under their own names."""
        return {
            "text": self.text,
            "span": [self.span.start, self.span.end],
            "citations": list(self.numbers),
            "traces": [trace.to_json() for trace in self.traces],
        }


@dataclass(frozen=True, slots=True)
class CitationReport:
    """What the citations of an answer are worth.

    Attributes:
        sentences: Statements of the answer; headings, code and lead-ins ("Steps:") are none.
        cited: Numbers of sources that are cited, ascending.
        unknown: Cited numbers that no source has, ascending.
        uncited: Statements that cite nothing.
        unused: Numbers of sources that are not cited, ascending.
    """

    sentences: tuple[Sentence, ...]
    cited: tuple[int, ...]
    unknown: tuple[int, ...]
    uncited: int
    unused: tuple[int, ...]

    def to_json(self) -> dict[str, Json]:
        """The report as `ask --json` shows it."""
        return {
            "cited": list(self.cited),
            "unknown": list(self.unknown),
            "unused": list(self.unused),
            "uncited_sentences": self.uncited,
            "sentences": [sentence.to_json() for sentence in self.sentences],
        }


def citation_numbers(text: str) -> list[int]:
    """Numbers that a text cites, in order, with repetitions.

    Example:
        >>> citation_numbers("Keys rotate [1][3, 4]. 金鑰每年輪替【2】，見［5］。 A [link](1) or [7](url).")
        [1, 3, 4, 2, 5]
        >>> citation_numbers("[2-4] `list[0]`")
        [2, 3, 4]
    """
    return [number for match in _citations(text) for number in _numbers(match)]


def check_citations(answer: str, sources: Sequence[Source]) -> CitationReport:
    """Look up every citation of an answer.

    Args:
        answer: What was generated.
        sources: What the generator was given (`Context.sources`).

    Example:
        >>> report = check_citations("Keys rotate yearly [3]. Nobody knows why.", [])
        >>> report.unknown, report.uncited
        ((3,), 1)
    """
    known = {source.number: source for source in sources}
    index = {number: _SourceSentences(source) for number, source in known.items()}
    sentences = []
    for span in _statements(answer):
        text = span.of(answer)
        numbers = tuple(dict.fromkeys(citation_numbers(text)))
        words = _terms(_CITATION.sub(" ", text))
        traces = tuple(index[number].best(words) for number in numbers if number in known)
        sentences.append(Sentence(text, span, numbers, traces))
    everywhere = set(citation_numbers(answer))
    return CitationReport(
        sentences=tuple(sentences),
        cited=tuple(sorted(everywhere & known.keys())),
        unknown=tuple(sorted(everywhere - known.keys())),
        uncited=sum(not sentence.numbers for sentence in sentences),
        unused=tuple(sorted(known.keys() - everywhere)),
    )


class _SourceSentences:
    """The sentences of a source with their words, computed once however often it is cited."""

    def __init__(self, source: Source) -> None:
        self._source = source
        text = source.text
        cuts = {0, len(text), *sentence_starts(text), *(gap.end() for gap in _EMPTY_LINE.finditer(text))}
        self._rows = [(span, _terms(span.of(text))) for span in _trimmed(text, sorted(cuts))]

    def best(self, words: frozenset[str]) -> Trace:
        """The sentence that has most of the words; of equal ones the shorter, then the earlier."""
        span, own = max(self._rows, key=lambda row: (len(words & row[1]), -len(row[1]), -row[0].start))
        support = len(words & own) / len(words) if words else 0.0
        pieces = self._source.stretch.pieces
        place = bisect_right([piece.offset for piece in pieces], span.start) - 1
        first = pieces[max(0, place)]
        last = pieces[max(0, bisect_right([piece.offset for piece in pieces], span.end - 1) - 1)]
        start, end = span.start - first.offset, span.end - last.offset
        return Trace(
            number=self._source.number,
            passage_id=first.passage.id,
            path=self._source.path,
            lines=(line_at(first, start), line_at(last, end)),
            span=Span(first.span.start + start, last.span.start + end),
            text=span.of(self._source.text),
            support=round(support, 4),
        )


def _citations(text: str) -> Iterator[re.Match[str]]:
    return _CITATION.finditer(_blank(_CODE, text))


def _numbers(match: re.Match[str]) -> Iterator[int]:
    for first, last, single in _RANGE.findall(match["numbers"]):
        if single:
            yield int(single)
        elif 0 <= int(last) - int(first) <= _LONGEST_RANGE:
            yield from range(int(first), int(last) + 1)
        else:
            yield from (int(first), int(last))


def _blank(pattern: re.Pattern[str], text: str) -> str:
    """The text with what matches blanked out, so that every offset stays."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _statements(answer: str) -> Iterator[Span]:
    """Sentences that state something, each with the citations that stand behind its full stop."""
    text = _blank(_CODE, answer)
    prose = _without_citations(text)
    for start, end in pairwise([0, *(match.end() for match in _LINE_BREAK.finditer(text)), len(text)]):
        if _HEADING.match(text, start, end):
            continue
        markup = _MARKUP.match(text, start, end)
        begin = markup.end() if markup else start
        for span in _trimmed(text, [begin, *sentence_starts(prose, begin, end), end]):
            content = span.of(prose).rstrip("*_ \n")
            if _says_something(content) and not content.endswith((":", "：")):
                yield span


def _without_citations(text: str) -> str:
    """The text with citations blanked out and every offset kept.

    A full stop behind citations moves in front of them, and blanks count as the space behind it: so citations
    stay with the sentence before them, on whichever side of its full stop they stand.

    Example:
        >>> _without_citations("Keys rotate [1] [2]. Ask.[3]")
        'Keys rotate.         Ask.   '
    """
    parts: list[str] = []
    end = run = 0  # where the last citation ended, and where the run of citations that it closes began
    matches = list(_CITATION.finditer(text))
    for match, following in zip(matches, [*matches[1:], None], strict=False):
        before = text[end : match.start()]
        if before.strip(" \t") or not parts:
            parts.append(before.rstrip(" \t"))
            run = end + len(parts[-1])
        end = match.end()
        if following and not text[end : following.start()].strip(" \t"):
            continue
        stop = _STOP.match(text, end)
        end = stop.end() if stop else end
        marks = stop[1] if stop else ""
        parts.append(marks + " " * (end - run - len(marks)))
    return "".join([*parts, text[end:]])


def _trimmed(text: str, cuts: Sequence[int]) -> Iterator[Span]:
    """What lies between ascending cuts, without white space at the ends and empty parts."""
    for start, end in pairwise(cuts):
        part = text[start:end]
        if stripped := part.strip():
            begin = start + len(part) - len(part.lstrip())
            yield Span(begin, begin + len(stripped))


def _says_something(text: str) -> bool:
    return any(unicodedata.category(character)[0] == "L" for character in text)


def _terms(text: str) -> frozenset[str]:
    """Words that carry meaning, as the lexical index compares them: without case, endings and stop words."""
    return frozenset(analyze_query(text))
