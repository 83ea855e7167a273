"""Places where a passage may end, read off a document's structure and its text.

Only characters and structure count here, no tokens; choosing among the places is `packing`'s work.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from likewise.index.packing import Strength
from likewise.index.records import Extraction, Heading, Span
from likewise.index.sentences import sentence_starts

_LINE = re.compile(r"(?:\r\n?|\n)\s*")
_NEWLINE = re.compile(r"\r\n?|\n")
_INDENT = frozenset(" \t\u3000")
_ITEM = re.compile(r"(?:[-*+•‣·]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s|[一二三四五六七八九十]{1,3}、|\|")
_CLAUSE = frozenset(",;:，、：；")
_WORD_REACH = 64
_CLUSTER_REACH = 32


class Outline:
    """The headings of a document, asked by position.

    Args:
        extraction: The document; headings out of order or out of range are put right.
    """

    def __init__(self, extraction: Extraction) -> None:
        text = extraction.text
        self._headings = sorted(
            (h for h in extraction.headings if 0 <= h.span.start < h.span.end <= len(text)),
            key=lambda heading: heading.span.start,
        )
        self.starts = [heading.span.start for heading in self._headings]
        self.body_starts = [_skip_space(text, heading.span.end) for heading in self._headings]
        self._paths = list(_paths(self._headings))
        # A heading directly under another one opens the same passage: follow such a chain to its last.
        self._last_of_chain = list(range(len(self._headings)))
        for index in range(len(self._headings) - 2, -1, -1):
            if self.starts[index + 1] <= self.body_starts[index]:
                self._last_of_chain[index] = self._last_of_chain[index + 1]

    def path_at(self, offset: int) -> tuple[str, ...]:
        """Titles that the first text at or after `offset` stands under, outermost first."""
        index = bisect_right(self.starts, offset) - 1
        if index < 0:
            return ()
        if offset < self.body_starts[index]:
            index = self._last_of_chain[index]
        return self._paths[index]

    def body_after(self, offset: int) -> int:
        """`offset`, or where the text begins if `offset` lies in a heading or a chain of them."""
        index = bisect_right(self.starts, offset) - 1
        if index < 0 or offset >= self.body_starts[index]:
            return offset
        return self.body_starts[self._last_of_chain[index]]


def find_breaks(
    extraction: Extraction, outline: Outline, start: int, end: int
) -> tuple[list[int], list[Strength]]:
    """Offsets strictly between `start` and `end` at which a passage may begin, with their strengths.

    No offset lies inside a heading or between a heading and its text.
    """
    text = extraction.text
    found: dict[int, Strength] = {}
    for match in _LINE.finditer(text, start, end):
        found[_line_start(text, match)] = _line_strength(text, match, end)
    for a, b in _prose(extraction.verbatim, start, end):
        for offset in sentence_starts(text, a, b):
            if found.get(offset, Strength.ANYWHERE) < Strength.SENTENCE:
                found[offset] = Strength.SENTENCE
    for offset in extraction.breaks[
        bisect_right(extraction.breaks, start) : bisect_left(extraction.breaks, end)
    ]:
        found[offset] = Strength.SECTION
    for offset in outline.starts[bisect_right(outline.starts, start) : bisect_left(outline.starts, end)]:
        found[offset] = Strength.HEADING
    offsets = sorted(offset for offset in found if start < offset < end and _outside_heading(outline, offset))
    return offsets, [found[offset] for offset in offsets]


def break_within(text: str, wanted: int, least: int, most: int) -> tuple[int, Strength]:
    """A place near `wanted` to cut a sentence that is too long: after a word or clause, else anywhere.

    The result lies in `least <= offset <= most`, at or before `wanted` for a word, and not inside a character
    that is written with several code points (combining marks, emoji sequences, CR LF) unless that goes on
    for too long.

    Example:
        >>> break_within("one two three", wanted=6, least=1, most=13)
        (4, <Strength.WORD: 1>)
    """
    for offset in range(wanted, max(least, wanted - _WORD_REACH) - 1, -1):
        before = text[offset - 1] if offset else ""
        if (before.isspace() or before in _CLAUSE) and offset > least and not _continues(text, offset):
            return offset, Strength.WORD
    for offset in range(wanted, min(most, wanted + _CLUSTER_REACH) + 1):
        if offset >= most or not _continues(text, offset):
            return offset, Strength.ANYWHERE
    return wanted, Strength.ANYWHERE


def count_newlines(text: str, start: int, end: int) -> int:
    r"""Line ends in `text[start:end]`: LF, CR LF or a lone CR.

    Example:
        >>> count_newlines("a\r\nb\rc\n", 0, 7)
        3
    """
    lone = text.count("\r", start, end)
    if lone:
        lone -= text.count("\r\n", start, end)
    return text.count("\n", start, end) + lone


def _line_start(text: str, match: re.Match[str]) -> int:
    """First character of the line behind the match, its indentation included."""
    start = match.end()
    while start > match.start() and text[start - 1] in _INDENT:
        start -= 1
    return start


def _line_strength(text: str, match: re.Match[str], end: int) -> Strength:
    if len(_NEWLINE.findall(match[0])) > 1:
        return Strength.PARAGRAPH
    return Strength.ITEM if _ITEM.match(text, match.end(), end) else Strength.LINE


def _prose(verbatim: Sequence[Span], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Stretches of `[start, end)` outside all verbatim spans."""
    at = start
    first = bisect_right(verbatim, start, key=lambda span: span.end)
    for span in verbatim[first:]:
        if span.start >= end:
            break
        if span.start > at:
            yield at, span.start
        at = max(at, span.end)
    if at < end:
        yield at, end


def _outside_heading(outline: Outline, offset: int) -> bool:
    """Whether a passage may begin here: not inside a heading, nor between a heading and what follows."""
    index = bisect_left(outline.starts, offset) - 1
    return index < 0 or offset > outline.body_starts[index]


def _paths(headings: Sequence[Heading]) -> Iterator[tuple[str, ...]]:
    open_sections: list[Heading] = []
    for heading in headings:
        while open_sections and open_sections[-1].level >= heading.level:
            open_sections.pop()
        open_sections.append(heading)
        titles = (" ".join(section.title.split()) for section in open_sections)
        yield tuple(title for title in titles if title)


def _skip_space(text: str, offset: int) -> int:
    while offset < len(text) and text[offset].isspace():
        offset += 1
    return offset


def _continues(text: str, offset: int) -> bool:
    """Whether the character at `offset` belongs to the one before it (a part of UAX #29, enough to cut)."""
    if offset <= 0 or offset >= len(text):
        return False
    here, before = text[offset], text[offset - 1]
    if before == "\r":
        return here == "\n"
    return (
        before == "\u200d"  # zero-width joiner
        or here in "\u200d\u200c\ufe0e\ufe0f"
        or "\U0001f3fb" <= here <= "\U0001f3ff"  # skin tones
        or unicodedata.category(here) in ("Mn", "Me", "Mc")
    )
