"""Text on a screen: how wide it is, how it wraps, what is safe to print, and whether it may have colour.

Widths count terminal cells, in which a Han character takes two. Nothing here writes anything.
"""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

import click

# Everything that drives a terminal or turns its direction around, line feed and tab aside.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SPACES = re.compile(r"\s+")
# A line must not begin with what closes or ends, nor end with what opens.
_NO_BEGINNING = frozenset(
    "。，、．：；？！）」』】〉》〕］｝…—～・ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ,.:;?!)]}%"
)
_NO_END = frozenset("（「『【〈《〔［｛([{")


@dataclass(frozen=True, slots=True)
class Screen:
    """What is known of the place that text goes to.

    Attributes:
        is_terminal: A person watches it; otherwise it is a pipe or a file.
        width: Cells in a line.
        color: Whether colour and weight may be used.
    """

    is_terminal: bool
    width: int
    color: bool

    @classmethod
    def of(cls, stream: TextIO) -> Screen:
        """Look at a stream and at the environment (`COLUMNS`, `NO_COLOR`, `TERM`)."""
        is_terminal = stream.isatty()
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        width = max(40, min(shutil.get_terminal_size((100, 24)).columns, 140))
        return cls(is_terminal, width, is_terminal and not plain)

    def style(self, text: str, *, bold: bool = False, dim: bool = False, color: str | None = None) -> str:
        """The text with weight and colour, where the screen may have them."""
        return click.style(text, bold=bold or None, dim=dim or None, fg=color) if self.color else text


def printable(text: str) -> str:
    r"""The text with every control character written out, so that no document can drive the terminal.

    Example:
        >>> printable("a\x1b[31mb\tc")
        'a\\x1b[31mb\tc'
    """
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


def one_line(text: str) -> str:
    r"""The text on one line: white space becomes single spaces, controls are written out.

    Example:
        >>> one_line("  two\n\n words ")
        'two words'
    """
    return printable(_SPACES.sub(" ", text).strip())


def path_text(path: str) -> str:
    r"""A path as it stands in a line of output; a line feed in it is written out.

    Example:
        >>> print(path_text("odd\nname.md"))
        odd\nname.md
    """
    return printable(path).replace("\n", "\\n").replace("\t", "\\t")


def cells(text: str) -> int:
    r"""Terminal cells that the text takes.

    Example:
        >>> cells("key"), cells("金鑰"), cells("e\u0301")
        (3, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, width: int) -> str:
    """The beginning of a text that fits, with an ellipsis where something was left out.

    Example:
        >>> clip("signing keys", 8), clip("簽署金鑰", 5)
        ('signing…', '簽署…')
    """
    if cells(text) <= width:
        return text
    room = width - 1
    kept = ""
    for character in text:
        room -= _cells_of(character)
        if room < 0:
            break
        kept += character
    return kept.rstrip() + "…"


def pad(text: str, width: int) -> str:
    """The text, followed by spaces up to a width."""
    return text + " " * (width - cells(text))


def wrap(text: str, width: int) -> list[str]:
    """Fold a text into lines: at spaces, and between characters of scripts that have none.

    Line feeds stay where they are.

    Example:
        >>> wrap("rotate the signing keys", 12)
        ['rotate the', 'signing keys']
        >>> wrap("輪替金鑰。然後停用", 8)
        ['輪替金', '鑰。然後', '停用']
    """
    return [line for paragraph in text.split("\n") for line in _fold(paragraph.expandtabs(4), width)]


def _fold(paragraph: str, width: int) -> Iterator[str]:
    line, used = "", 0
    for piece in _pieces(paragraph, width):
        size = cells(piece.rstrip())
        if line and used + size > width:
            yield line.rstrip()
            line, used = "", 0
            piece = piece.lstrip()
        line += piece
        used += cells(piece)
    yield line.rstrip()


def _pieces(paragraph: str, width: int) -> Iterator[str]:
    """What must stay together on a line; spaces go with the piece before them."""
    piece = ""
    previous = ""
    for character in paragraph:
        breaks = (
            previous.isspace()
            or cells(piece) >= width
            or _cells_of(character) == 2
            or (previous != "" and _cells_of(previous) == 2)
        )
        stays = character.isspace() or character in _NO_BEGINNING or previous in _NO_END
        if piece and breaks and (not stays or cells(piece) >= width):
            yield piece
            piece = ""
        piece += character
        previous = character
    if piece:
        yield piece
