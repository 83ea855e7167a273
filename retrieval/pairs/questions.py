"""Questions with their answers: headings that ask, questions in bold, and "Q: ... A: ..." in its forms."""

from __future__ import annotations

import re
from collections.abc import Iterator

from likewise.index.readers.formats.markdown import plain_title
from likewise.index.records import Span
from likewise.retrieval.pairs.documents import PairDocument
from likewise.retrieval.pairs.records import TextPair
from likewise.retrieval.pairs.sections import Section, sections_of
from likewise.retrieval.pairs.titles import is_question, section_pair
from likewise.retrieval.pairs.wording import asks, beginning

_SIGNS = r"[ \t]*(?:[-*+>]\s+|\d{1,3}[.)]\s+)?(?:\*\*|__)?"
_COLON = r"[ \t]*\d{0,3}[ \t]*(?:\*\*|__)?[ \t]*[:：.．、][ \t]*(?:\*\*|__)?[ \t]*"
_MARK = re.compile(
    rf"^{_SIGNS}(?:(?P<asks>Q|Question|問題|问题|問|问)|(?P<tells>A|Ans|Answer|回答|答案|答)){_COLON}(?=\S)",
    re.M | re.I,
)
_BOLD = re.compile(r"^[ \t]*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(\*\*|__)(?P<text>[^*_\n]+[?？])\s*\1[ \t]*$", re.M)
_EDGES = " \t\r\n*_"


def question_pairs(document: PairDocument) -> Iterator[TextPair]:
    """Every question of a document with its answer."""
    for section in sections_of(document):
        if is_question(section.title) and asks(section.title) and (pair := section_pair(document, section)):
            yield pair
        yield from _within(document, section)


def _within(document: PairDocument, section: Section) -> Iterator[TextPair]:
    """`Q: ...` with the next `A: ...`, a question in bold with what follows; up to the next of them."""
    text, body = document.text, section.body
    marks = [*_MARK.finditer(text, body.start, body.end), *_BOLD.finditer(text, body.start, body.end)]
    marks.sort(key=lambda match: match.start())
    ends = [*(match.start() for match in marks[1:]), body.end]
    for number, (mark, end) in enumerate(zip(marks, ends, strict=False)):
        if mark.re is _BOLD:
            yield from _pair(document, Span(*mark.span("text")), Span(mark.end(), end), at=mark.start())
        elif mark["asks"] and number + 1 < len(marks) and marks[number + 1].re is _MARK:
            answer = marks[number + 1]
            if answer["tells"]:
                told = Span(answer.end(), ends[number + 1])
                yield from _pair(document, Span(mark.end(), answer.start()), told, at=mark.start())


def _pair(document: PairDocument, question: Span, answer: Span, *, at: int) -> Iterator[TextPair]:
    asked = " ".join(plain_title(question.of(document.text).strip(_EDGES)).split())
    span = beginning(document.text, answer)
    told = span.of(document.text)
    if asks(asked) and asks(told):
        at += len(document.text[at:]) - len(document.text[at:].lstrip())
        yield TextPair(
            "question",
            asked,
            told,
            document.key,
            document.lines_of(span),
            document.key,
            document.line_at(at),
        )
