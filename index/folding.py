"""Words without accents and points, so that what is typed meets what is written. Knows nothing of stems."""

from __future__ import annotations

import unicodedata
from functools import lru_cache


def fold(word: str) -> str:
    """A word without accents and points, in letters that people type.

    Example:
        >>> fold("naïve"), fold("ελλάδα"), fold("ёлка"), fold("ガ")
        ('naive', 'ελλαδα', 'елка', 'ガ')
    """
    return word if word.isascii() else word.translate(_fold_table())


@lru_cache(maxsize=1)
def _fold_table() -> dict[int, str | None]:
    table: dict[int, str | None] = {}
    # Latin and Greek lose their accents. Cyrillic й and kana ガ are letters of their own and stay.
    for code in (*range(0xC0, 0x250), *range(0x370, 0x400), *range(0x1E00, 0x2000)):
        letters = unicodedata.normalize("NFD", chr(code))
        if len(letters) > 1:
            table[code] = "".join(letter for letter in letters if not unicodedata.combining(letter))
    # Letters that Unicode does not take apart, each before what people type for it.
    table.update({ord(pair[0]): pair[1:] for pair in ["øo", "đd", "łl", "ħh", "ıi", "æae", "œoe", "ёе"]})
    for first, last in ((0x300, 0x36F), (0x591, 0x5C7), (0x610, 0x61A), (0x64B, 0x65F), (0x670, 0x670)):
        table.update(dict.fromkeys(range(first, last + 1)))
    return table
