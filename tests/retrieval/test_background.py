"""Standard scores against the scores of every passage, computed one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.index.background import Background, Moments
from likewise.index.rows import Ranking
from likewise.retrieval.background import LexicalBackground, idf, standard_scores
from likewise.retrieval.fusion import Candidates

NO_WORDS = Moments(0.0, 0.0)


def unit(rows: int, seed: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(0.4, 1, (rows, 8)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def everything(vectors: np.ndarray, query: np.ndarray) -> Candidates:
    ids = np.arange(1, len(vectors) + 1)
    dense = Ranking(ids, (vectors @ query).astype(np.float32))
    return Candidates.union(dense, Ranking(ids[:0], dense.scores[:0])).with_scores(lexical=np.zeros(len(ids)))


@given(st.integers(2, 60), st.integers(0, 50))
def test_dense_standard_scores_are_those_of_all_passages(rows: int, seed: int) -> None:
    vectors, query = unit(rows, seed), unit(1, seed + 1)[0]
    background = Background.of([vectors], dimension=8)
    found = standard_scores(everything(vectors, query), background.moments(query), NO_WORDS, 0.7)
    cosines = vectors @ query
    np.testing.assert_allclose(found.dense, (cosines - cosines.mean()) / cosines.std(), atol=1e-3)
    assert not found.lexical.any() and found.coverage == 0.7


@pytest.mark.parametrize("rows", [1, 7])
def test_equal_vectors_have_no_standard_scores(rows: int) -> None:
    vectors, query = np.repeat(unit(1, 0), rows, axis=0), unit(1, 1)[0]
    background = Background.of([vectors], dimension=8)
    assert not standard_scores(
        everything(vectors, query), background.moments(query), NO_WORDS, 1.0
    ).dense.any()


def test_lexical_moments_written_out() -> None:
    found = LexicalBackground.of(["key", "rotate", "key", "unheard"], {"key": 10, "rotate": 40}, 1000)
    key, rotate, unheard = 2 * math.log(990.5 / 10.5), math.log(960.5 / 40.5), math.log(1000.5 / 0.5)
    assert found.total == pytest.approx(key + rotate + unheard)
    assert found.known == pytest.approx(key + rotate)
    assert found.moments.mean == pytest.approx(1.1 * (key * 0.01 + rotate * 0.04))
    variance = key**2 * (0.01 * 1.31 - 0.0001 * 1.21) + rotate**2 * (0.04 * 1.31 - 0.0016 * 1.21)
    assert found.moments.std == pytest.approx(math.sqrt(variance))


def test_lexical_moments_are_near_the_true_ones() -> None:
    """Texts of random words, BM25 computed for every one of them."""
    generator = np.random.default_rng(0)
    chances = np.array([0.3, 0.1, 0.03, 0.01])
    holds = generator.random((5000, 4)) < chances
    times = np.where(holds, 1 + generator.poisson(0.3, holds.shape), 0)
    lengths = generator.lognormal(0, 0.4, 5000)
    lengths /= lengths.mean()
    weights = np.array([idf(int(count), 5000) for count in holds.sum(axis=0)])
    saturated = times * 2.2 / (times + 1.2 * (0.25 + 0.75 * lengths[:, None]))
    scores = (saturated * weights).sum(axis=1)
    counts = {str(term): int(count) for term, count in enumerate(holds.sum(axis=0))}
    moments = LexicalBackground.of([str(term) for term in range(4)], counts, 5000).moments
    assert moments.mean == pytest.approx(scores.mean(), rel=0.1)
    assert moments.std == pytest.approx(scores.std(), rel=0.1)


def test_words_that_nobody_holds_have_no_spread() -> None:
    found = LexicalBackground.of(["unheard"], {}, 10)
    assert found.moments == (0.0, 0.0) and found.known == 0.0 and found.total > 0
    assert LexicalBackground.of([], {}, 10) == LexicalBackground(Moments(0.0, 0.0), 0.0, 0.0)


def test_words_that_all_hold_still_have_a_spread() -> None:
    found = LexicalBackground.of(["the"], {"the": 10}, 10)
    assert 0 < found.moments.std < 1e-5
