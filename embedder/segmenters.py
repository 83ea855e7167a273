"""Words in Chinese text, which has no spaces between them.

A segmenter cuts a text into words that together are the text again. With one, a vocabulary learns tokens that
are words or parts of words (`vocabulary.py`), and whole-word masking hides words instead of characters
(`masking_vocabulary.segmented_words`). Nothing here knows tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from likewise.extras import require

Segmenter = Callable[[str], Sequence[str]]
SegmenterName = Literal["jieba"]


def segmenter(name: SegmenterName) -> Segmenter:
    """The segmenter of this name.

    "jieba" is jieba's algorithm and dictionary in Rust (package rjieba): the most probable path of dictionary
    words, and a hidden Markov model for what the dictionary lacks. The dictionary is mostly Simplified
    Chinese; of Traditional it knows less.

    Raises:
        MissingExtra: Its package is not installed.

    Example:
        >>> segmenter("jieba")("南京市长江大桥")
        ['南京市', '长江大桥']
    """
    module = require("rjieba", extra="chinese", purpose="cutting Chinese into words")
    cut: Segmenter = module.cut
    return cut
