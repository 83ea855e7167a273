"""A progress bar of one line on standard error, for people who wait.

Draws only if standard error is a terminal, a few times per second, and leaves nothing behind. Must not write
to standard output.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from likewise.cli.terminal import Screen, cells, clip, one_line, pad

_INTERVAL = 0.1  # seconds between two drawings
_BAR = 20  # cells


class Progress:
    """A line that is drawn over and over.

    Example:
        >>> with Progress() as progress:
        ...     progress.show("reading", done=3, total=10, detail="keys.md")
    """

    def __init__(self) -> None:
        self._screen = Screen.of(sys.stderr)
        self._drawn = 0
        self._next = 0.0

    def show(self, phase: str, *, done: int = 0, total: int | None = None, detail: str = "") -> None:
        """Draw where things stand, unless that was done a moment ago.

        Args:
            phase: What is being done.
            done: How much of it.
            total: Out of how many, or None if that is not known yet.
            detail: What is in hand; clipped to the line.
        """
        now = time.monotonic()
        if not self._screen.is_terminal or now < self._next:
            return
        self._next = now + _INTERVAL
        line = clip(
            f"{_bar(done, total)}{one_line(phase)} {_count(done, total)}  {one_line(detail)}".rstrip(),
            self._screen.width - 1,
        )
        self._write("\r" + pad(line, self._drawn))
        self._drawn = cells(line)

    def clear(self) -> None:
        """Remove the line, so that something else can be printed."""
        if self._drawn:
            self._write("\r" + " " * self._drawn + "\r")
            self._drawn = 0
        self._next = 0.0

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()


def _bar(done: int, total: int | None) -> str:
    if not total:
        return ""
    filled = min(_BAR, _BAR * done // total)
    return "[" + "#" * filled + "." * (_BAR - filled) + "] "


def _count(done: int, total: int | None) -> str:
    return f"{done:,}/{total:,}" if total else f"{done:,}" if done else ""
