"""Relevance by its formula, and what a search says of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from likewise.errors import UsageError
from likewise.index.background import Background, Moments
from likewise.retrieval import ranking
from likewise.retrieval.background import LexicalBackground
from likewise.retrieval.fusion.base import Side
from likewise.retrieval.relevance import NOTHING_NOTICE, Relevance
from likewise.retrieval.search import Retriever

MakeIndex = Callable[..., Any]
WORDS = LexicalBackground(Moments(0.1, 1.0), total=10.0, known=8.0)
BACKGROUND = Background(4, np.array([0.5, 0.0], np.float32), np.eye(2, dtype=np.float32))  # likeness .25
VECTOR = np.array([0.6, 0.8], np.float32)


def logistic(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def test_dense_relevance_written_out() -> None:
    found = Relevance.of(vector=VECTOR, background=BACKGROUND).estimate(np.array([0.5, 0.25]), None)
    nearness = 0.6 * 0.5 / 0.25
    expected = [logistic(-3.70 + 6.98 * (c - 0.25) / 0.75 + 2.94 * nearness) for c in (0.5, 0.25)]
    assert found is not None and found.tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("vector", "nearness"), [([1.0, 0.0], 1.6), ([-1.0, 0.0], -0.5)])
def test_nearness_stays_where_it_was_fitted(vector: list[float], nearness: float) -> None:
    assert Relevance.of(vector=np.array(vector, np.float32), background=BACKGROUND).nearness == nearness


def test_lexical_relevance_written_out() -> None:
    found = Relevance.of(lexical=WORDS).estimate(None, np.array([11.0, np.nan]))
    expected = [logistic(-5.84 + 5.63 * 11 / 22 + 6.24 * 0.8), logistic(-5.84 + 6.24 * 0.8)]
    assert found is not None and found.tolist() == pytest.approx(expected)


def test_both_sides_weigh_by_coverage() -> None:
    def estimate(coverage: float) -> float:
        relevance = Relevance.of(vector=VECTOR, background=BACKGROUND, lexical=WORDS, coverage=coverage)
        (found,) = relevance.estimate(np.array([0.5]), np.array([11.0]))  # type: ignore[misc]
        return float(found)

    both = -5.56 + 4.97 * 0.25 / 0.75 + 3.19 * 1.2 + 2.88 * 0.8
    words = -5.84 + 5.63 * 0.5 + 6.24 * 0.8
    assert estimate(1.0) == pytest.approx(logistic(both), abs=1e-5)
    assert estimate(0.5) == pytest.approx(logistic(0.25 * both + 0.75 * words), abs=1e-5)
    assert estimate(0.0) == pytest.approx(logistic(words), abs=1e-5)


def test_what_cannot_tell_says_nothing() -> None:
    assert Relevance.of().estimate(np.array([0.5]), np.array([1.0])) is None
    blind = Relevance.of(vector=VECTOR, background=BACKGROUND, coverage=0.5)
    assert blind.estimate(np.array([0.5]), None) is None
    flat = Background(1, np.array([1.0, 0.0], np.float32), np.zeros((2, 2), np.float32))
    assert Relevance.of(vector=VECTOR, background=flat).estimate(np.array([0.5]), None) is None


def test_every_hit_has_a_relevance_that_falls_with_its_score(make_index: MakeIndex) -> None:
    for mode in ("dense", "lexical", "hybrid"):
        hits = list(Retriever(make_index()).search("rotate a signing key", k=7, mode=mode))
        values = [hit.relevance for hit in hits]
        assert all(value is not None and 0 <= value <= 1 for value in values)
        assert mode == "hybrid" or values == sorted(values, reverse=True)
        assert hits[0].to_json()["relevance"] == values[0]


def test_least_relevance_leaves_out_hits_before_k(make_index: MakeIndex) -> None:
    retriever = Retriever(make_index())
    everything = retriever.search("rotate a signing key", k=7)
    values = sorted((hit.relevance for hit in everything), reverse=True)
    kept = retriever.search("rotate a signing key", k=2, min_relevance=values[2])
    wanted = [hit.passage_id for hit in everything if hit.relevance >= values[2]][:2]
    assert [hit.passage_id for hit in kept] == wanted
    assert [hit.rank for hit in kept] == [1, 2]
    none = retriever.search("rotate a signing key", min_relevance=1.0)
    assert not none and f"the best that was found has {values[0]:.2f}" in none.notices[-1]


def test_nonsense_is_called_so_and_an_answer_is_not(make_index: MakeIndex) -> None:
    retriever = Retriever(make_index())
    for mode in ("lexical", "hybrid"):
        assert NOTHING_NOTICE in retriever.search("wombat year", mode=mode).notices
        good = retriever.search("Signing keys rotate every year.", mode=mode)
        assert NOTHING_NOTICE not in good.notices
    assert retriever.search("wombat", mode="lexical").notices == ()  # no hit, so none that misleads


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan"), "half", True])
def test_a_relevance_out_of_range_is_refused(make_index: MakeIndex, value: Any) -> None:
    with pytest.raises(UsageError, match="relevance in"):
        Retriever(make_index()).search("keys", min_relevance=value)


@pytest.mark.parametrize("fusion", ["convex", "standardised"])
def test_lexical_scores_are_those_of_the_whole_index(make_index: MakeIndex, fusion: str) -> None:
    """Candidates that only the dense side ranked have no BM25, or that of the whole ranking."""
    from likewise.index.analyzer import analyze_query

    texts = [f"key {'rotate ' * (number % 7)}{'filler ' * (number % 11)}{number}" for number in range(260)]
    index = make_index({"docs/all.md": texts})
    query = "rotate key"
    full = index.memory.lexical(analyze_query(query), 1000)
    scores = dict(zip(full.ids.tolist(), full.scores.tolist(), strict=True))
    ranked = set(full.ids[:250].tolist())  # five times k
    for hit in Retriever(index, fusion=fusion).search(query, k=50):
        if fusion == "standardised" and hit.passage_id not in ranked:
            assert hit.scores.lexical is None and hit.scores.lexical_rank is None
        else:
            assert hit.scores.lexical == pytest.approx(scores.get(hit.passage_id, 0.0), rel=1e-5)


def test_a_poor_encoder_is_named_once(make_index: MakeIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    from likewise.index.coverage import Coverage

    index = make_index()
    retriever = Retriever(index)
    assert retriever.search("金鑰").notices == ()
    monkeypatch.setattr(index.memory, "coverage", lambda: Coverage(0.5, 1.0, 0.5))
    (notice,) = retriever.search("簽署金鑰每年輪替一次").notices
    assert notice.startswith("the encoder hash does not know 50% of the tokens of this index")
    assert retriever.search("簽署金鑰每年輪替一次", mode="lexical").notices == ()
    monkeypatch.setattr(ranking, "measure_coverage", lambda *_: Coverage(0.8, 1.0, 0.2))
    found = retriever.search("簽署金鑰每年輪替一次")
    (notice,) = found.notices
    assert notice.startswith("the encoder hash does not know 80% of the tokens of this query")


def test_an_unranked_passage_counts_with_half_the_lowest_bm25() -> None:
    scores, nan = np.array([4.0, 2.0, np.nan]), np.array([np.nan])
    full = Side(scores, np.array([1, 2, 0]))
    assert ranking._about(full, depth=2).tolist() == [4.0, 2.0, 1.0]
    assert ranking._about(full, depth=3).tolist() == [4.0, 2.0, 0.0]  # all that hold a word were ranked
    assert ranking._about(Side(nan, np.array([0])), depth=3).tolist() == [0.0]
