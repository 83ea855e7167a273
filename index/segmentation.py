"""Text to tokens: words and compounds as they are written, and runs of scripts without spaces between words.

What a token stands for is not asked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from likewise.index.chinese_variants import variants

# Written without spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese, Korean (which has
# spaces, but so much inflection attached to its words that pairs of syllables find more).
_UNSPACED = (
    r"\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u1049\u1780-\u17d3"
    r"\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af"
)
MARKS = (
    r"\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u0670\u0900-\u0963\u0966-\u0dff"
    r"\u0e31-\u0e4e\u0eb1-\u0ece\u102b-\u103e\u17b4-\u17d3"
)
"""Vowel signs and accents that are no "word characters" to `re`, as the inside of a set; for scripts without
spaces the whole block."""

_PICTOGRAPHS = r"\u2600-\u27bf\U0001f300-\U0001faff"

_ASCII_TOKEN = re.compile(r"\w+(?:\+\+|#(?!\w))?(?:[-.'@]\w+(?:#(?!\w))?)*|\.(?:NET|net)\b")
# Runs of the unspaced scripts are taken out of a token afterwards: a class with tens of thousands of
# characters in every place of this pattern would take longer to compile than a search takes.
_TOKEN = re.compile(
    rf"[\w{MARKS}]+(?:\+\+|#(?!\w))?(?:[-.'’@\u2010\u2011][\w{MARKS}]+(?:#(?!\w))?)*"
    rf"|\.(?:NET|net)\b|[{_PICTOGRAPHS}]"
)
UNSPACED_RUN = re.compile(rf"([{_UNSPACED}]+)")
"""A run of characters that are written without spaces between words; splitting by it keeps the runs."""

# What a word beside a run may not begin or end with.
_NO_BEGINNING, _NO_END = "-.'’@\u2010\u2011+#", "-.'’@\u2010\u2011"


def ascii_tokens(text: str) -> list[str]:
    """The tokens of a text that is all ASCII, as `tokens` finds them and much faster.

    Example:
        >>> ascii_tokens("C++ and e-mail")
        ['C++', 'and', 'e-mail']
    """
    return _ASCII_TOKEN.findall(text)


def tokens(text: str) -> Iterator[tuple[int, str, bool]]:
    """Words and compounds, and runs of characters without spaces: where it begins, and whether it is a run.

    Runs come with their Chinese characters folded, which changes no position.

    Example:
        >>> list(tokens("學習C++語言, e-mail"))
        [(0, '学习', True), (2, 'C++', False), (5, '语言', True), (9, 'e-mail', False)]
    """
    for match in _TOKEN.finditer(text):
        start, token = match.start(), match[0]
        if token.isascii():
            yield start, token, False
            continue
        for position, piece in enumerate(UNSPACED_RUN.split(token)):
            if position % 2:
                yield start, piece.translate(variants()), True
            elif piece and (word := (rest := piece.lstrip(_NO_BEGINNING)).rstrip(_NO_END)):
                yield start + len(piece) - len(rest), word, False
            start += len(piece)
