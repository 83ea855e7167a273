"""Lines of a text with their places, line ends included."""

from __future__ import annotations

import re
from typing import NamedTuple

# Not str.splitlines, which also cuts at form feeds and other characters that are no line end in an editor.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


class Line(NamedTuple):
    """One line.

    Attributes:
        start: Offset of its first character.
        end: Offset behind its last character, the line end left out.
        text: The characters between.
    """

    start: int
    end: int
    text: str


def split_lines(text: str, start: int = 0) -> list[Line]:
    r"""The lines of a text from an offset on.

    Example:
        >>> split_lines("a\r\nb")
        [Line(start=0, end=1, text='a'), Line(start=3, end=4, text='b')]
    """
    lines = []
    if "\r" not in text:  # as good as always, and several times faster
        for content in text[start:].split("\n"):
            end = start + len(content)
            lines.append(Line(start, end, content))
            start = end + 1
        if lines and not lines[-1].text:
            lines.pop()  # behind the last line end there is no line
        return lines
    for match in _LINE.finditer(text, start):
        content = match[0].rstrip("\r\n")
        lines.append(Line(match.start(), match.start() + len(content), content))
    return lines
