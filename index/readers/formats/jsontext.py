r"""JSON, JSON Lines and their relatives: the file itself, with a cut before each record.

One thing is changed: `\u4e2d` is written as the character that it stands for, because nobody searches for
escapes. Lines stay the same; only columns move. The text need not be valid JSON.
"""

from __future__ import annotations

import re

from likewise.index.readers.base import Reader, Source
from likewise.index.readers.decoding import decode
from likewise.index.readers.lines import split_lines
from likewise.index.records import Extraction, Span

# An escape counts only behind an even number of backslashes, so pairs of them are matched first.
_ESCAPES = re.compile(r"\\[^u]|(?:\\u[0-9a-fA-F]{4})+", re.S)
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},]', re.S)
_LINES_SUFFIXES = frozenset((".jsonl", ".ndjson", ".jsonlines"))
# Characters that need no escape and are not the first 160, which hold quotes, controls and plain ASCII.
_FIRST_SHOWN = 0xA0


def _read(source: Source) -> Extraction:
    decoded = decode(source.data)
    text = _unescape(decoded.text)
    breaks = _line_breaks(text) if source.suffix in _LINES_SUFFIXES else _item_breaks(text)
    notes = () if text == decoded.text else ("\\u escapes are shown as the characters they stand for",)
    return Extraction(
        text=text,
        reader="",
        breaks=tuple(offset for offset in breaks if offset),
        verbatim=(Span(0, len(text)),) if text else (),
        encoding=decoded.encoding,
        lossy=decoded.lossy,
        notes=notes,
    )


def _unescape(text: str) -> str:
    r"""Text with `\uXXXX` escapes replaced, but for controls, ASCII and lone surrogates.

    Example:
        >>> _unescape(r'"\u4e2d \ud83d\ude00 \u0022 \\u4e2d"')
        '"中 😀 \\u0022 \\\\u4e2d"'
    """
    if "\\u" not in text:
        return text
    return _ESCAPES.sub(_shown, text)


def _shown(match: re.Match[str]) -> str:
    escapes = match[0]
    if escapes[1:2] != "u":
        return escapes
    units = [int(escapes[at + 2 : at + 6], 16) for at in range(0, len(escapes), 6)]
    data = b"".join(unit.to_bytes(2, "little") for unit in units)
    try:
        characters = data.decode("utf-16-le")
    except UnicodeDecodeError:
        return escapes
    return "".join(
        # Line separators of Unicode would add lines to the text.
        char if ord(char) >= _FIRST_SHOWN and char not in "\u2028\u2029" else f"\\u{ord(char):04x}"
        for char in characters
    )


def _line_breaks(text: str) -> list[int]:
    return [line.start for line in split_lines(text) if line.text.strip()]


def _item_breaks(text: str) -> list[int]:
    """Where the items of the outermost array or object begin; for lines of several values, the values."""
    breaks: list[int] = []
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "[{":
            if depth == 0:
                breaks.append(match.start())
            depth += 1
        elif token in "]}":
            depth = max(0, depth - 1)
        elif token == "," and depth == 1:
            breaks.append(match.end())
    return breaks


READER = Reader(
    name="json",
    version=1,
    read=_read,
    suffixes=frozenset(
        (".json", ".json5", ".jsonc", ".geojson", ".jsonld", ".webmanifest", *_LINES_SUFFIXES)
    ),
)
