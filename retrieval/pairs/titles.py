"""Title to passage, and heading to section: what a document itself says its parts are about."""

from __future__ import annotations

from collections.abc import Iterator

from likewise.index.records import Span, passage_context
from likewise.retrieval.evaluation.self_questions import bare
from likewise.retrieval.pairs.documents import PairDocument
from likewise.retrieval.pairs.records import Kind, TextPair
from likewise.retrieval.pairs.sections import Section, sections_of
from likewise.retrieval.pairs.wording import answers, asks, beginning, without_name

_TITLED_PASSAGES = 3  # the further from the title, the less a passage is about it


def title_pairs(document: PairDocument) -> Iterator[TextPair]:
    """The title with each of the first passages, which are left without it."""
    title = " ".join(document.title.split())
    if not asks(title):
        return
    line = title_line(document)
    for passage in document.passages[:_TITLED_PASSAGES]:
        text = without_name(document.title, passage, title)
        if answers(text):
            yield TextPair("title", title, text, document.key, passage.lines, document.key, line)


def heading_pairs(document: PairDocument) -> Iterator[TextPair]:
    """Every heading but the title with the beginning of its section."""
    for section in sections_of(document):
        if bare(section.title) == bare(document.title) or is_question(section.title):
            continue
        if asks(section.title) and (pair := section_pair(document, section)):
            yield pair


def section_pair(document: PairDocument, section: Section) -> TextPair | None:
    """The heading of a section with its beginning; None if there is too little of it."""
    span = beginning(document.text, section.body)
    text = span.of(document.text)
    if not answers(text):
        return None
    above = passage_context(document.title, section.path[:-1])
    kind: Kind = "question" if is_question(section.title) else "heading"
    return TextPair(
        kind,
        section.title,
        f"{above}\n{text}" if above else text,
        document.key,
        document.lines_of(span),
        document.key,
        document.line_at(section.heading.start),
    )


def is_question(heading: str) -> bool:
    """Whether a heading asks a question, as those of a list of frequent questions do.

    Example:
        >>> is_question("How do I rotate a key?"), is_question("金鑰多久輪替一次？"), is_question("Rotation")
        (True, True, False)
    """
    return heading.rstrip("*_` ").endswith(("?", "？"))


def title_line(document: PairDocument) -> int | None:
    """Line in which the title stands; None if it stands nowhere in the first passage."""
    wanted = bare(document.title)
    start = 0
    for line in document.passages[0].text.splitlines(keepends=True):
        name = bare(line)
        if name == wanted or (name.startswith("title:") and bare(name.removeprefix("title:")) == wanted):
            return document.lines_of(Span(start, start + 1))[0]
        start += len(line)
    for section in sections_of(document):
        if bare(section.title) == wanted:
            return document.line_at(section.heading.start)
    return None
