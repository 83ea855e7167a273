"""NFKC with the way back: which characters of a text each character of its normal form comes from.

The analyser reads normalised text, people read the original; whoever marks words in the original needs the
places of both. Nothing here knows of words.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

# Vowels and finals of Hangul, which are letters and yet join the syllable before them.
_FIRST_JOINING_JAMO, _LAST_JOINING_JAMO = "\u1160", "\u11ff"


class Normalised:
    r"""The NFKC form of a text, with spans translated back into it.

    Args:
        text: Any text.

    Attributes:
        text: Its NFKC form.

    Example:
        >>> found = Normalised("１㌔走る e\u0301t")
        >>> found.text, found.span(1, 3), found.span(6, 7)
        ('1キロ走る ét', (1, 2), (5, 7))
    """

    def __init__(self, text: str) -> None:
        self.text = unicodedata.normalize("NFKC", text)
        # For each character of the normal form the segment of the original that it belongs to; empty where
        # the two are the same text.
        self._starts: list[int] = []
        self._ends: list[int] = []
        if self.text == text:
            return
        start = 0
        for end in range(1, len(text) + 1):
            if end < len(text) and _joins(text[end]):
                continue
            width = len(unicodedata.normalize("NFKC", text[start:end]))
            self._starts += [start] * width
            self._ends += [end] * width
            start = end

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The characters of the original that `text[start:end]` comes from; at least one character long."""
        if not self._starts:
            return start, end
        return self._starts[start], self._ends[end - 1]


@lru_cache(maxsize=4096)
def _joins(character: str) -> bool:
    """Whether a character may change together with the one before it when a text is normalised."""
    first = unicodedata.normalize("NFKD", character)[0]
    return unicodedata.category(first).startswith("M") or _FIRST_JOINING_JAMO <= first <= _LAST_JOINING_JAMO
