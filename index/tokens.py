"""Token positions of a long text, counted with the encoder's own tokenizer in bounded pieces.

A tokenizer given a 50 MB line may need minutes or gigabytes, so the text goes in windows that end at white
space where there is some. Counts near a window's edge may differ by a token from those of the uncut text:
good enough for planning. What is finally embedded is counted again, exactly, by the chunker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from likewise.embedder.protocol import TextEncoder

_WINDOW = 16_384
_WINDOWS_PER_CALL = 16
_LOOK_BACK = 1_024
_SPACE = re.compile(r"\s")

# Some vocabularies turn any unbroken run of letters (base64, a minified script) into one unknown token and
# drop other characters (lone accents, controls) altogether. No stretch of this many characters weighs
# nothing, so that every passage stays short enough to read and to cite.
_LONGEST_TOKEN = 32


class TokenWeights:
    """Answers "how many tokens lie in this stretch of text" in O(log n).

    Args:
        text: The text.
        start: First character to cover.
        end: One past the last character to cover.
        tokenizer: Encoder whose tokens count.
    """

    def __init__(self, text: str, start: int, end: int, tokenizer: TextEncoder) -> None:
        self._starts = _token_starts(text, start, end, tokenizer)  # (tokens,), ascending

    def before(self, offsets: Sequence[int]) -> list[int]:
        """Number of tokens that start before each offset."""
        found: list[int] = np.searchsorted(self._starts, np.asarray(offsets, dtype=np.int64)).tolist()
        return found

    def start_of(self, token: int) -> int:
        """Offset at which the token of this number starts."""
        return int(self._starts[token])


def count_tokens(texts: Sequence[str], tokenizer: TextEncoder) -> list[int]:
    """Tokens of each text, without special tokens and prompt."""
    return [len(spans) for spans in tokenizer.token_spans(texts)] if texts else []


def windows(text: str, start: int, end: int, size: int = _WINDOW) -> Iterator[tuple[int, int]]:
    """Consecutive stretches of at most `size` characters, ending at white space where there is some near.

    Example:
        >>> [(a, b) for a, b in windows("one two three", 0, 13, size=6)]
        [(0, 4), (4, 8), (8, 13)]
    """
    at = start
    while at < end:
        stop = min(at + size, end)
        if stop < end:
            near = max(at + 1, stop - _LOOK_BACK)
            spaces = [match.end() for match in _SPACE.finditer(text, near, stop)]
            stop = spaces[-1] if spaces else stop
        yield at, stop
        at = stop


def _token_starts(text: str, start: int, end: int, tokenizer: TextEncoder) -> NDArray[np.int64]:
    pieces = list(windows(text, start, end))
    found = [np.array([start], dtype=np.int64)]  # the text's own start, so that no gap lies before it
    for first in range(0, len(pieces), _WINDOWS_PER_CALL):
        batch = pieces[first : first + _WINDOWS_PER_CALL]
        for (a, _), spans in zip(batch, tokenizer.token_spans([text[a:b] for a, b in batch]), strict=True):
            found.append(spans[:, 0].astype(np.int64) + a)
    starts = np.concatenate(found)
    starts.sort(kind="stable")  # a tokenizer that reorders (some normalisers do) must not break the search
    return _with_gaps_filled(starts[1:] if len(starts) > 1 and starts[1] == start else starts, end)


def _with_gaps_filled(starts: NDArray[np.int64], end: int) -> NDArray[np.int64]:
    """The starts, with additional ones where the next is too far away."""
    gaps = np.diff(starts, append=end)
    if int(gaps.max()) <= _LONGEST_TOKEN:
        return starts
    parts = np.maximum(1, -(-gaps // _LONGEST_TOKEN))  # ceiling division
    number = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)  # 0, 1, .. in a gap
    return np.asarray(np.repeat(starts, parts) + number * _LONGEST_TOKEN, dtype=np.int64)
