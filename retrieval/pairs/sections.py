"""The sections of a document, from one heading to the next.

Those of Markdown are found in its text; of other formats the index keeps the headings that passages stand
under, so that short sections which share a passage count as one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

from likewise.index.readers.formats.markdown import READER as MARKDOWN
from likewise.index.readers.formats.markdown import structure
from likewise.index.readers.frontmatter import split
from likewise.index.records import Span
from likewise.retrieval.evaluation.self_questions import bare
from likewise.retrieval.pairs.documents import PairDocument

_ID = re.compile(r"\{:?[^{}]*#([\w:.-]+)[^{}]*\}[ \t]*#*[ \t]*$")
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")
_HEADING_LINES = 2  # a title, and what underlines it


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its own text.

    Attributes:
        title: The heading; "" for what stands before the first one.
        level: 1 is the outermost, 0 before the first heading.
        path: Titles from the outermost heading to this one.
        heading: The heading's own lines in the document's text.
        body: What follows, up to the next heading of any level.
        ids: Fragments by which links name the section.
    """

    title: str
    level: int
    path: tuple[str, ...]
    heading: Span
    body: Span
    ids: tuple[str, ...] = ()


def is_markdown(key: str) -> bool:
    """Whether a document's text is Markdown, going by its name."""
    return PurePosixPath(key).suffix.lower() in MARKDOWN.suffixes


def sections_of(document: PairDocument) -> list[Section]:
    r"""The sections of a document in text order.

    Example:
        >>> from likewise.index.records import Passage
        >>> text = "# Keys\n\nKept safe.\n\n## Rotation\n\nYearly."
        >>> passage = Passage(0, text, Span(0, len(text)), (1, 7))
        >>> for section in sections_of(PairDocument("keys.md", "Keys", "en", (passage,))):
        ...     print(section.path, repr(section.body.of(text).strip()))
        ('Keys',) 'Kept safe.'
        ('Keys', 'Rotation') 'Yearly.'
    """
    return _of_markdown(document) if is_markdown(document.key) else _of_passages(document)


def slug(title: str) -> str:
    """A heading as links to it are usually spelled.

    Example:
        >>> slug("Rotate the keys!"), slug("輪替 金鑰")
        ('rotate-the-keys', '輪替-金鑰')
    """
    return _NOT_IN_SLUG.sub("", title.strip().casefold()).replace(" ", "-")


def _of_markdown(document: PairDocument) -> list[Section]:
    text = document.text
    begin = split(text).end if document.passages[0].span.start == 0 else 0
    headings = structure(text, begin).headings
    first = headings[0].span.start if headings else len(text)
    sections = (
        [Section("", 0, (), Span(begin, begin), Span(begin, first))] if text[begin:first].strip() else []
    )
    stack: list[tuple[int, str]] = []
    for number, heading in enumerate(headings):
        end = headings[number + 1].span.start if number + 1 < len(headings) else len(text)
        while stack and stack[-1][0] >= heading.level:
            stack.pop()
        stack.append((heading.level, heading.title))
        own = _ID.search(heading.span.of(text))
        ids = (*((own[1],) if own else ()), slug(heading.title))
        path = tuple(title for _, title in stack)
        body = Span(heading.span.end, end)
        sections.append(Section(heading.title, heading.level, path, heading.span, body, ids))
    return sections


def _of_passages(document: PairDocument) -> list[Section]:
    text, passages = document.text, document.passages
    paths = [passage.headings for passage in passages]
    changes = [0, *(n for n, (before, path) in enumerate(pairwise(paths), start=1) if path != before)]
    sections = []
    for first, following in zip(changes, [*changes[1:], len(passages)], strict=True):
        start = document.starts[first]
        end = document.starts[following] if following < len(passages) else len(text)
        path = paths[first]
        title = path[-1] if path else ""
        heading = Span(start, _heading_end(text, start, end, title))
        ids = (slug(title),) if title else ()
        sections.append(Section(title, len(path), path, heading, Span(heading.end, end), ids))
    return sections


def _heading_end(text: str, start: int, end: int, title: str) -> int:
    """Where the heading's own lines end, if the section begins with them."""
    wanted = bare(title)
    if not wanted:
        return start
    at = start
    for number in range(_HEADING_LINES):
        stop = text.find("\n", at, end) + 1 or end
        line = bare(text[at:stop])
        if line != wanted if number == 0 else bool(line) or not text[at:stop].strip():
            break
        at = stop
    return at
