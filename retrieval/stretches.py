"""Put passages of one document together again where they overlap or follow each other.

Text comes from the stored passages alone; the files are not read. The white space that the chunker trims
between two passages is rebuilt from their offsets and line numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from likewise.index.records import Span

if TYPE_CHECKING:
    from likewise.index.records import StoredPassage

_MOST_GAP = 80


@dataclass(frozen=True, slots=True)
class Piece:
    """What one passage brings to a stretch.

    Attributes:
        passage: The whole passage.
        offset: Where the piece begins in the text of the stretch.
        text: The characters that no earlier piece has brought: the end of the passage, or "" if nothing.
        span: The place of `text` in the document.
    """

    passage: StoredPassage
    offset: int
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring passages of one document, in document order.

    Attributes:
        pieces: At least one.
        text: Their text, joined.
        cut: Whether the end was left out because it did not fit.
    """

    pieces: tuple[Piece, ...]
    text: str
    cut: bool = False

    @property
    def key(self) -> str:
        """Path of the document."""
        return self.pieces[0].passage.key

    @property
    def span(self) -> Span:
        """From the first character to the last, in the document."""
        return Span(self.pieces[0].span.start, max(piece.span.end for piece in self.pieces))

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line, from 1."""
        first = self.pieces[0].passage.passage.lines[0]
        return first, max(line_at(piece, len(piece.text)) for piece in self.pieces)

    @property
    def pages(self) -> tuple[int, int] | None:
        """First and last page, from 1, or None for formats without pages."""
        pages = [page for piece in self.pieces if (page := piece.passage.passage.page) is not None]
        return (min(pages), max(pages)) if pages else None

    def up_to(self, end: int) -> Stretch:
        """The stretch without what stands behind character `end` of its text, marked as cut."""
        kept = tuple(
            Piece(
                piece.passage,
                piece.offset,
                piece.text[: end - piece.offset],
                Span(piece.span.start, min(piece.span.end, piece.span.start + end - piece.offset)),
            )
            for piece in self.pieces
            if piece.offset < end
        )
        return Stretch(kept, self.text[:end], cut=True)


def line_at(piece: Piece, offset: int) -> int:
    """Line, from 1, of the last of the first `offset` characters of a piece."""
    passage = piece.passage.passage
    before = piece.span.start - passage.span.start + offset
    return min(passage.lines[1], passage.lines[0] + _newlines(passage.text[:before]))


def stretches(passages: Iterable[StoredPassage]) -> list[Stretch]:
    """Passages of one document, in document order, merged where they overlap or follow each other."""
    ordered = sorted(passages, key=lambda stored: (stored.passage.span.start, stored.passage.ordinal))
    groups: list[list[StoredPassage]] = []
    reach = -1
    for stored in ordered:
        passage = stored.passage
        if groups and (passage.span.start < reach or passage.ordinal == groups[-1][-1].passage.ordinal + 1):
            groups[-1].append(stored)
            reach = max(reach, passage.span.end)
        else:
            groups.append([stored])
            reach = passage.span.end
    return [_join(group) for group in groups]


def _join(group: Sequence[StoredPassage]) -> Stretch:
    pieces: list[Piece] = []
    parts: list[str] = []
    length = 0
    reach = group[0].passage.span.start
    last_line = group[0].passage.lines[0]
    for stored in group:
        passage = stored.passage
        if parts and passage.span.start > reach:
            separator = _separator(passage.span.start - reach, passage.lines[0] - last_line, passage.text)
            parts.append(separator)
            length += len(separator)
        start = min(max(reach, passage.span.start), passage.span.end)
        text = passage.text[start - passage.span.start :]
        pieces.append(Piece(stored, length, text, Span(start, passage.span.end)))
        parts.append(text)
        length += len(text)
        reach = max(reach, passage.span.end)
        last_line = max(last_line, passage.lines[1])
    return Stretch(tuple(pieces), "".join(parts))


def _separator(gap: int, line_ends: int, following: str) -> str:
    r"""White space of `gap` characters with `line_ends` line ends in it, as it most likely was.

    Blank space without end is shortened: it would only cost tokens.

    Example:
        >>> _separator(2, 2, "text"), _separator(5, 1, "return 1"), _separator(4, 2, "a\r\nb")
        ('\n\n', '\n    ', '\n\n')
    """
    if not line_ends:
        return " " * min(gap, _MOST_GAP)
    width = 2 if "\r\n" in following and gap >= 2 * line_ends else 1
    indent = max(0, gap - width * line_ends)
    return "\n" * min(line_ends, 2) + " " * min(indent, _MOST_GAP)


def _newlines(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")
