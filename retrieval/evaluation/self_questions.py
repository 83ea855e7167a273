"""Questions made from the documents themselves, so that a folder without labels can be measured.

    title      the document's title          answered by any passage of the document
    heading    a section's heading           answered by the passages of the section
    sentence   a sentence of a passage       answered by what is left of the passage

The last is the inverse cloze task (Lee, Chang and Toutanova 2019). Each is only fair if the index does not
hold the question beside its answer: `masking` takes it out of a copy. Here questions are chosen, nothing is
changed or searched.

What cannot be told apart is left out: titles and headings that occur in several documents, sentences that
occur in several passages, whatever has too few words, and passages of which too little would be left.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from random import Random
from typing import TYPE_CHECKING, Literal, get_args

from likewise.errors import DataError
from likewise.index.analyzer import analyze
from likewise.index.breaks import count_newlines
from likewise.index.readers.formats.markdown import plain_title
from likewise.index.sentences import sentence_starts
from likewise.retrieval.evaluation.judgements import Judgements, Place

if TYPE_CHECKING:
    from likewise.index.records import StoredPassage
    from likewise.index.view import IndexView

Kind = Literal["title", "heading", "sentence"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_HEADING_WORDS = 2  # distinct terms that a title or heading needs, to mean one thing
_SENTENCE_WORDS = 5
_SENTENCE_LENGTH = 400  # characters; what is longer is a list or a table
_REST_WORDS = 8  # distinct terms that must be left of a passage
_SECTION_PASSAGES = 5  # a section of more is a chapter, and its heading no question about one place
_TITLED_PASSAGES = 50  # all of them are embedded anew without the title
_LOOKED_AT = 4  # documents looked at for each wanted question

_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=[ \t]*(?:[-*+•|#>=~`]|\d{1,3}[.)]\s))")
_SPACES = re.compile(r"\s+")
_WIDE_SPACE = re.compile(r"(?<=[\u2e80-\u9fff\uff00-\uffef])\s+(?=[\u2e80-\u9fff\uff00-\uffef])")
_ENDS = re.compile(r"[.!?…。！？｡]['\"”’»」』）)]*\Z")
_BEGINS = re.compile(r"[^\W_]|[\"'“‘「『（(]")
_MARKUP = re.compile(r"[|{}<>\\`=_~]|\]\(|https?:")
_EDGES = re.compile(r"\A[\W_]+|[\W_]+\Z")
_MARKED = re.compile(r"[`*_{\[<&\\]")


@dataclass(frozen=True)
class SelfQuestion:
    """A question that a document asks about itself.

    Attributes:
        kind: What it was made from.
        text: The question.
        key: The document.
        passages: The passages that answer it; all of the document for a title.
        answers: The same as judgements name them: the document, or a line of each passage.
        original: What is to be taken out, as it stands in the document.
    """

    kind: Kind
    text: str
    key: str
    passages: tuple[int, ...]
    answers: tuple[str, ...]
    original: str


def make_questions(
    view: IndexView,
    *,
    count: int = 200,
    seed: int = 0,
    kinds: Sequence[Kind] = KINDS,
    about: Container[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[SelfQuestion]:
    """Choose questions, spread over documents and kinds; no passage is asked about twice.

    Args:
        view: The index.
        count: How many are wanted, at least 1; a small index gives fewer.
        seed: Equal seeds choose equal questions from equal indexes.
        kinds: What to make them from.
        about: Keys of the documents to ask about; None for all.
        progress: Called with the number of documents looked at.

    Raises:
        DataError: No question can be made.
    """
    random = Random(seed)
    keys = [row.key for row in view.documents() if row.passages]
    random.shuffle(keys)
    asked = keys if about is None else [key for key in keys if key in about]
    candidates: dict[Kind, list[tuple[int, int, SelfQuestion]]] = {kind: [] for kind in kinds}
    for order, key in enumerate(asked[: count * _LOOKED_AT]):
        passages = view.document_passages(key)
        for kind in kinds:
            made = list(_MAKERS[kind](passages))
            random.shuffle(made)
            # A second question about a document waits until every other document had its first.
            candidates[kind] += [(turn, order, question) for turn, question in enumerate(made)]
    seen = _occurrences(view, keys, candidates, progress)
    queues = [iter(sorted(candidates[kind], key=lambda item: item[:2])) for kind in kinds]
    chosen: list[SelfQuestion] = []
    taken: set[int] = set()
    while queues and len(chosen) < count:
        queue = queues.pop(0)
        for _, _, question in queue:
            if seen[_identity(question)] == 1 and taken.isdisjoint(question.passages):
                chosen.append(question)
                taken.update(question.passages)
                queues.append(queue)
                break
    if not chosen:
        raise DataError(
            f"no question can be made from the {len(asked)} documents: their titles, headings and"
            " sentences are too short, or stand in several of them",
            remedy="index more documents, or write questions into a CSV: likewise evaluate --questions FILE",
        )
    return sorted(chosen, key=lambda question: (KINDS.index(question.kind), question.key, question.text))


def to_judgements(questions: Sequence[SelfQuestion]) -> Judgements:
    """The questions in the form that `evaluate` takes, with ids such as `heading-12`."""
    numbers: Counter[str] = Counter()
    queries, qrels = {}, {}
    for question in questions:
        numbers[question.kind] += 1
        name = f"{question.kind}-{numbers[question.kind]}"
        queries[name] = question.text
        qrels[name] = dict.fromkeys(question.answers, 1)
    return Judgements(queries, qrels)


# -- candidates ------------------------------------------------------------------------------------------


def _titles(passages: Sequence[StoredPassage]) -> Iterator[SelfQuestion]:
    title = _SPACES.sub(" ", passages[0].title).strip()
    if len(passages) > _TITLED_PASSAGES or not has_words(title, _HEADING_WORDS):
        return
    rest = "\n".join(without_line(stored.passage.text, title) for stored in passages)
    if has_words(rest, _REST_WORDS):
        ids = tuple(stored.id for stored in passages)
        yield SelfQuestion("title", title, passages[0].key, ids, (passages[0].key,), title)


def _headings(passages: Sequence[StoredPassage]) -> Iterator[SelfQuestion]:
    title = bare(passages[0].title)
    sections: dict[tuple[str, ...], list[StoredPassage]] = {}
    for stored in passages:
        path = stored.passage.headings
        for depth in range(1, len(path) + 1):
            sections.setdefault(path[:depth], []).append(stored)
    for path, section in sections.items():
        heading = _SPACES.sub(" ", path[-1]).strip()
        if len(section) > _SECTION_PASSAGES or len(section) == len(passages) or bare(heading) == title:
            continue
        rests = [without_line(stored.passage.text, heading) for stored in section]
        if has_words(heading, _HEADING_WORDS) and all(has_words(rest, _REST_WORDS) for rest in rests):
            ids = tuple(stored.id for stored in section)
            yield SelfQuestion("heading", heading, section[0].key, ids, _lines(section, passages), path[-1])


def _sentences(passages: Sequence[StoredPassage]) -> Iterator[SelfQuestion]:
    for stored in passages:
        named = {bare(name) for name in (stored.title, *stored.passage.headings)}
        for sentence in sentences_of(stored.passage.text):
            if not named.isdisjoint(map(bare, sentence.splitlines())):
                continue  # the heading above it, which would stay in the index, ran into it
            text = one_line(sentence)
            rest = without(stored.passage.text, sentence)
            said_again = bare(text) in bare(one_line(rest))
            if is_sentence(text) and not said_again and has_words(rest, _REST_WORDS):
                before = stored.passage.text.partition(sentence)[0]
                line = stored.passage.lines[0] + count_newlines(before, 0, len(before))
                answers = (str(Place(stored.key, "line", line)),)
                yield SelfQuestion("sentence", text, stored.key, (stored.id,), answers, sentence)


_MAKERS: dict[Kind, Callable[[Sequence[StoredPassage]], Iterator[SelfQuestion]]] = {
    "title": _titles,
    "heading": _headings,
    "sentence": _sentences,
}


def is_sentence(text: str) -> bool:
    """Whether a text is one whole sentence of prose, with words enough to ask for something.

    Example:
        >>> is_sentence("Rotate every signing key once a year."), is_sentence("| a | b |")
        (True, False)
    """
    letters = sum(map(str.isalpha, text))
    return (
        len(text) <= _SENTENCE_LENGTH
        and bool(_BEGINS.match(text) and _ENDS.search(text))
        and not _MARKUP.search(text)
        and letters >= 0.6 * len(text.replace(" ", ""))
        and has_words(text, _SENTENCE_WORDS)
    )


def has_words(text: str, least: int) -> bool:
    """Whether a text has so many distinct terms.

    Example:
        >>> has_words("Signing keys", 2), has_words("3.0 (2020-11-08)", 1)
        (True, False)
    """
    # Dates and version numbers are no words: "3.0 (2020-11-08)" asks nothing.
    words = {term for term in analyze(text) if any(map(str.isalpha, term))}
    return len(words) >= least


def _lines(section: Sequence[StoredPassage], passages: Sequence[StoredPassage]) -> tuple[str, ...]:
    """A line of each passage, one that no other passage of the document shares if there is such a line."""
    shared: Counter[int] = Counter()
    for stored in passages:
        for edge in set(stored.passage.lines):
            shared[edge] += 1
    answers = []
    for stored in section:
        first, last = stored.passage.lines
        line = first + 1 if last - first > 1 else min((first, last), key=lambda edge: shared[edge])
        answers.append(str(Place(stored.key, "line", line)))
    return tuple(dict.fromkeys(answers))


# -- what occurs elsewhere --------------------------------------------------------------------------------


def _identity(question: SelfQuestion) -> tuple[str, str]:
    return ("sentence" if question.kind == "sentence" else "heading", bare(question.text))


def _occurrences(
    view: IndexView,
    keys: Sequence[str],
    candidates: dict[Kind, list[tuple[int, int, SelfQuestion]]],
    progress: Callable[[int], None] | None,
) -> Counter[tuple[str, str]]:
    """In how many documents each candidate is a title or heading; in how many passages it is a sentence."""
    wanted = {_identity(question) for _, _, question in chain(*candidates.values())}
    seen: Counter[tuple[str, str]] = Counter()
    for number, key in enumerate(keys, start=1):
        passages = view.document_passages(key)
        named = {bare(passages[0].title)}.union(bare(h) for p in passages for h in p.passage.headings)
        seen.update({("heading", name) for name in named} & wanted)
        for stored in passages:
            said = {("sentence", bare(one_line(s))) for s in sentences_of(stored.passage.text)}
            seen.update(said & wanted)
        if progress:
            progress(number)
    return seen


# -- text ------------------------------------------------------------------------------------------------


def sentences_of(text: str) -> Iterator[str]:
    r"""Sentences of a passage, each as it stands there; headings and list items are sentences of their own.

    Example:
        >>> list(sentences_of("# Keys\n\nRotate them.\nAsk first. 每年輪替。先詢問。"))
        ['# Keys', 'Rotate them.', 'Ask first.', '每年輪替。', '先詢問。']
    """
    for paragraph in _PARAGRAPH.split(text):
        cuts = [0, *sentence_starts(paragraph), len(paragraph)]
        for start, end in pairwise(cuts):
            if sentence := paragraph[start:end].strip():
                yield sentence


def without(text: str, part: str) -> str:
    r"""A text without a part of it.

    Example:
        >>> without("Rotate keys.\nAsk first. Then wait.", "Ask first.")
        'Rotate keys.\nThen wait.'
    """
    kept = ""
    for piece in text.split(part):
        piece = piece.strip(" \t")
        kept += (" " if kept and piece and not (kept[-1].isspace() or piece[0].isspace()) else "") + piece
    return kept.strip()


def without_line(text: str, title: str) -> str:
    r"""A text without the lines that say only its title, and what underlines them.

    A line that says little more, as `def rotate_keys():` does for a function, goes as well where no line says
    the title alone.

    Example:
        >>> without_line("# Signing keys\n\nSigning keys rotate.", "Signing keys")
        'Signing keys rotate.'
        >>> without_line("Signing keys\n============\nThey rotate.", "Signing keys")
        'They rotate.'
        >>> without_line("## Import `Key` { #import-key }\n\nFirst, import it.", "Import Key")
        'First, import it.'
    """
    wanted = bare(title)
    lines = text.splitlines()
    gone = {number for number, line in enumerate(lines) if _says(line, wanted)}
    if not gone:
        near = (
            n for n, line in enumerate(lines) if wanted in (b := bare(line)) and len(b) <= 2 * len(wanted)
        )
        gone = set(list(near)[:1])
    gone |= {n + 1 for n in gone if n + 1 < len(lines) and lines[n + 1].strip() and not bare(lines[n + 1])}
    return "\n".join(line for number, line in enumerate(lines) if number not in gone).strip()


def _says(line: str, wanted: str) -> bool:
    """Whether a line says just that, as it stands or as a heading of Markdown is read."""
    if bare(line) == wanted:
        return True
    return bool(_MARKED.search(line)) and bare(plain_title(line)) == wanted


def bare(text: str) -> str:
    """A title as it is compared: without case, markers and surplus space.

    Example:
        >>> bare("## 2.  Signing  Keys ##"), bare("一、簽署金鑰：")
        ('2. signing keys', '一、簽署金鑰')
    """
    return _EDGES.sub("", _SPACES.sub(" ", text)).casefold()


def one_line(text: str) -> str:
    r"""A sentence on one line and without emphasis; no space where a line ended between two Han characters.

    Example:
        >>> one_line("Rotate\n  **all** keys."), one_line("每年\n輪替。")
        ('Rotate all keys.', '每年輪替。')
    """
    return _SPACES.sub(" ", _WIDE_SPACE.sub("", text.replace("*", ""))).strip()
