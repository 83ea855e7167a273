"""BM25 over the catalogue: what repeated and too many words do, and how often words occur."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from likewise.index.catalogue import Catalogue
from likewise.index.catalogue_read import count_passages_with, rank_lexically
from likewise.index.rows import WriteDocument

MakeDocument = Callable[..., WriteDocument]


@pytest.fixture
def catalogue(empty_index: Path, make_document: MakeDocument) -> Catalogue:
    with Catalogue.open(empty_index, mode="write") as opened:
        filler = [f"zebra number {number}" for number in range(20)]
        opened.apply([make_document("a", ["alpha beta", "beta gamma", "gamma alpha alpha", *filler])])
        yield opened


def scores(catalogue: Catalogue, *terms: str) -> dict[int, float]:
    ranking = rank_lexically(catalogue.connection, terms, 100, None)
    return dict(zip(ranking.ids.tolist(), ranking.scores.tolist(), strict=True))


def test_a_word_said_twice_counts_twice(catalogue: Catalogue) -> None:
    once, other, both = (
        scores(catalogue, "alpha"),
        scores(catalogue, "beta"),
        scores(catalogue, "alpha", "beta"),
    )
    assert both[1] == pytest.approx(once[1] + other[1], rel=1e-6)
    twice = scores(catalogue, "alpha", "beta", "alpha")
    assert twice[1] == pytest.approx(2 * once[1] + other[1], rel=1e-6)
    assert twice[2] == pytest.approx(other[2], rel=1e-6)
    assert twice[3] == pytest.approx(2 * once[3], rel=1e-6)


def test_of_too_many_words_the_rarest_are_looked_up(catalogue: Catalogue) -> None:
    many = [*(f"unknown{number}" for number in range(300)), *["zebra"] * 300, "beta", "alpha"]
    found = scores(catalogue, *many)
    assert found[1] == pytest.approx(scores(catalogue, "alpha", "beta")[1], rel=1e-6)
    assert set(found) == set(range(1, 24))  # the commonest word filled what room there was


def test_how_many_passages_hold_a_word(catalogue: Catalogue) -> None:
    counts = count_passages_with(
        catalogue.connection, ["alpha", "beta", "alpha", "delta", "a b", "zebra", ""]
    )
    assert counts == {"alpha": 2, "beta": 2, "zebra": 20}
