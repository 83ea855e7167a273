"""Shared rows change no distance, whatever was asked before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from likewise.retrieval.alignment import Alignments

_WORD = st.text("abc", max_size=7)


def table(a: str, b: str) -> list[int]:
    """The last row of the textbook's table (Boytsov 2011, optimal string alignment)."""
    d = [[i + j if not i * j else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i][j] = min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                d[i][j] = min(d[i][j], d[i - 2][j - 2] + 1)
    return d[-1]


@given(_WORD, st.integers(0, 3), st.lists(_WORD, max_size=8), st.booleans())
def test_every_row_is_that_of_the_whole_table(word: str, limit: int, others: list[str], order: bool) -> None:
    alignments = Alignments(word, limit)
    for other in sorted(others) if order else others:
        assert alignments.of(other) == [min(steps, limit + 1) for steps in table(other, word)]


@given(_WORD, st.integers(0, 2), st.lists(_WORD, max_size=8), _WORD)
def test_what_is_hopeless_stays_so_with_more_letters(
    word: str, limit: int, others: list[str], more: str
) -> None:
    alignments = Alignments(word, limit)
    for other in others:
        if alignments.is_hopeless(other):
            assert min(table(other + more, word)) > limit
