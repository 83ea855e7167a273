"""The line that is embedded in front of a passage, kept short enough to leave room for the passage.

Shared by whoever composes embedded texts, so that the same passage always gets the same line: the chunker,
and re-embedding with another encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from likewise.index.records import passage_context
from likewise.index.tokens import count_tokens

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder

_CHARACTERS_PER_TOKEN = 32  # no need to count the tokens of a line that is longer than this


class ContextLines:
    """Context lines of one document, each measured once.

    Of a line that is too long the title goes first, then the outermost headings: the innermost say most about
    the passage.

    Args:
        title: The document's title.
        tokenizer: The encoder that will embed the lines.
        most: Greatest length in tokens; 0 for no lines at all.
    """

    def __init__(self, title: str, tokenizer: TextEncoder, most: int) -> None:
        self._title = " ".join(title.split())
        self._tokenizer = tokenizer
        self._most = most
        self._lines: dict[tuple[str, ...], tuple[str, int]] = {}

    def tokens(self, paths: Sequence[tuple[str, ...]]) -> list[int]:
        """Tokens that the lines for these heading paths take."""
        self._learn(paths)
        return [self._lines[path][1] for path in paths]

    def compose(self, path: tuple[str, ...], text: str) -> str:
        """What is embedded for a passage: its line, if it has one, and its text."""
        self._learn([path])
        line = self._lines[path][0]
        return f"{line}\n{text}" if line else text

    def _learn(self, paths: Sequence[tuple[str, ...]]) -> None:
        new = [path for path in dict.fromkeys(paths) if path not in self._lines]
        self._lines.update((path, ("", 0)) for path in new)
        waiting = {path: self._candidates(path) for path in new} if self._most else {}
        longest = self._most * _CHARACTERS_PER_TOKEN
        while waiting := {path: candidates for path, candidates in waiting.items() if candidates}:
            first = {path: candidates.pop(0) for path, candidates in waiting.items()}
            counts = count_tokens([line[:longest] + "\n" for line in first.values()], self._tokenizer)
            for (path, line), tokens in zip(first.items(), counts, strict=True):
                if tokens <= self._most and len(line) <= longest:
                    self._lines[path] = (line, tokens)
                    waiting[path] = []

    def _candidates(self, path: tuple[str, ...]) -> list[str]:
        """Lines to try, the fullest first."""
        lines = [passage_context(self._title, path), *(" > ".join(path[k:]) for k in range(len(path)))]
        return [line for line in dict.fromkeys(lines) if line]
