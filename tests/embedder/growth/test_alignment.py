"""IBM Model 1 against a slow version written out, and by hand."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from likewise.embedder.growth.alignment import Translations, align, rows_from_translations
from likewise.embedder.growth.initial import initial_rows
from likewise.errors import DataError

SOURCES = [[0, 1], [0], [1, 2, 1], []]
TARGETS = [[5, 6], [5], [6, 7], [5]]


def written_out(sources, targets, iterations, weights):
    """The formulas, pair by pair; None is the empty word."""
    made = [[None, *source] for source in sources]
    met = defaultdict(set)
    for source, target in zip(made, targets, strict=True):
        for f in source:
            met[f] |= set(target)
    t = {(e, f): 1 / len(met[f]) for f in met for e in met[f]}
    for _ in range(iterations):
        count = defaultdict(float)
        for source, target, weight in zip(made, targets, weights, strict=True):
            for e in target:
                total = sum(t[e, f] for f in source)
                for f in source:
                    count[e, f] += weight * t[e, f] / total
        sums = defaultdict(float)
        for (_, f), value in count.items():
            sums[f] += value
        t = {(e, f): value / sums[f] for (e, f), value in count.items()}
    return t, count


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5, 1.0]])
def test_it_is_what_the_formulas_say(weights: list[float] | None) -> None:
    expected, counts = written_out(SOURCES, TARGETS, 4, weights or [1.0] * 4)
    found = align(SOURCES, TARGETS, iterations=4, weights=weights)
    ours = {
        (int(e), int(f)): p for e, f, p in zip(found.target, found.source, found.probability, strict=True)
    }
    real = {key: value for key, value in expected.items() if key[1] is not None}
    assert ours == pytest.approx(real)
    assert found.count.tolist() == pytest.approx(
        [counts[int(e), int(f)] for f, e in zip(found.source, found.target, strict=True)]
    )


def test_the_first_round_by_hand() -> None:
    # "a b" / "x y" and "a" / "x": every target of a source starts at 1/2, those of b too. For x of the first
    # pair, the empty word, a and b share 1/3 each; for x of the second, the empty word and a 1/2 each.
    found = align([[0, 1], [0]], [[0, 1], [0]], iterations=1)
    table = {
        (int(f), int(e)): p for f, e, p in zip(found.source, found.target, found.probability, strict=True)
    }
    assert table[0, 0] == pytest.approx((1 / 3 + 1 / 2) / (1 / 3 + 1 / 2 + 1 / 3))
    assert table[1, 0] == table[1, 1] == pytest.approx(0.5)


def test_rows_are_weighted_means() -> None:
    table = np.array([[1.0, 0.0], [0.0, 2.0]], np.float32)
    entries = Translations(
        np.array([0, 0, 2]), np.array([0, 1, 1]), np.array([0.75, 0.25, 1.0]), np.array([3.0, 1.0, 2.0])
    )
    rows, seen = rows_from_translations(entries, table, 3)
    np.testing.assert_allclose(rows, [[0.75, 0.5], [0.0, 0.0], [0.0, 2.0]])
    assert seen.tolist() == [4.0, 0.0, 2.0]
    # Squared: .5625 and .0625 of .625.
    sharp, _ = rows_from_translations(entries, table, 3, sharpness=2.0, norm=5.0)
    np.testing.assert_allclose(sharp[0], 5 * np.array([0.9, 0.2]) / np.hypot(0.9, 0.2), rtol=1e-6)
    np.testing.assert_allclose(sharp[1], [0.0, 0.0])


def test_rows_of_tokens_that_no_text_has_are_the_mean_of_the_others() -> None:
    table = np.array([[3.0, 0.0], [0.0, 1.0]], np.float32)
    rows = initial_rows([[0], [1]], [[1], [0]], table, 3)
    np.testing.assert_allclose(rows, [[0.0, 2.0], [2.0, 0.0], [1.0, 1.0]])


def test_paragraphs_alone_are_better_than_nothing() -> None:
    table = np.array([[3.0, 0.0], [0.0, 1.0]], np.float32)
    rows = initial_rows([[0] * 30, [1] * 30], [[1] * 30, [0] * 30], table, 2)
    np.testing.assert_allclose(rows, [[0.0, 2.0], [2.0, 0.0]], atol=1e-3)


def test_new_tokens_that_are_cut_off_everywhere_start_as_the_mean() -> None:
    table = np.array([[3.0, 0.0], [0.0, 1.0]], np.float32)
    rows = initial_rows([[], []], [[1], [0]], table, 2)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, np.array([[1.5, 0.5]] * 2) * 2 / np.hypot(1.5, 0.5), rtol=1e-6)


def test_nothing_to_align() -> None:
    for sources, targets in (([], []), ([[0]], []), ([[0]], [[]])):
        with pytest.raises(DataError):
            align(sources, targets)
