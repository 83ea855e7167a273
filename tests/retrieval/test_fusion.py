"""Fusion rules against arithmetic written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import UsageError
from likewise.index.rows import Ranking
from likewise.retrieval.fusion import (
    FUSIONS,
    Candidates,
    Convex,
    Fusion,
    ReciprocalRank,
    Standard,
    Standardised,
    WeightedReciprocalRank,
    explain,
    fusion_rule,
)
from likewise.retrieval.fusion.base import best_first


def ranking(*pairs: tuple[int, float]) -> Ranking:
    return Ranking(np.array([p[0] for p in pairs], np.int64), np.array([p[1] for p in pairs], np.float32))


DENSE = ranking((3, 0.9), (1, 0.5), (7, 0.1))
LEXICAL = ranking((7, 8.0), (2, 4.0))


def standardised(candidates: Candidates, coverage: float = 1.0) -> Candidates:
    """With the scores themselves, 0 where unknown, in place of standard scores."""
    dense, lexical = (np.nan_to_num(side.scores) for side in (candidates.dense, candidates.lexical))
    return replace(candidates, standard=Standard(dense, lexical, coverage))


def fused(rule: Fusion, candidates: Candidates) -> dict[int, float]:
    if candidates.standard is None:
        candidates = standardised(candidates)
    shares = rule.shares(candidates)
    return dict(zip(candidates.ids.tolist(), (shares.dense + shares.lexical).tolist(), strict=True))


def test_union_lines_up_scores_and_ranks() -> None:
    both = Candidates.union(DENSE, LEXICAL)
    assert both.ids.tolist() == [1, 2, 3, 7]
    assert both.dense.ranks.tolist() == [2, 0, 1, 3]
    assert both.lexical.ranks.tolist() == [0, 2, 0, 1]
    np.testing.assert_allclose(both.dense.scores, [0.5, np.nan, 0.9, 0.1], atol=1e-7)
    np.testing.assert_allclose(both.lexical.scores, [np.nan, 4.0, np.nan, 8.0])


def test_reciprocal_rank() -> None:
    assert fused(ReciprocalRank(), Candidates.union(DENSE, LEXICAL)) == pytest.approx(
        {1: 1 / 62, 2: 1 / 62, 3: 1 / 61, 7: 1 / 63 + 1 / 61}
    )


def test_weighted_reciprocal_rank() -> None:
    assert fused(WeightedReciprocalRank(0.75, k=10), Candidates.union(DENSE, LEXICAL)) == pytest.approx(
        {1: 0.75 / 12, 2: 0.25 / 12, 3: 0.75 / 11, 7: 0.75 / 13 + 0.25 / 11}
    )


def test_convex() -> None:
    complete = Candidates.union(DENSE, LEXICAL).with_scores(
        dense=np.array([0.5, -0.2, 0.9, 0.1]), lexical=np.array([0.0, 4.0, 2.0, 8.0])
    )
    assert fused(Convex(0.4), complete) == pytest.approx(
        {
            1: 0.4 * 1.5 / 1.9,
            2: 0.4 * 0.8 / 1.9 + 0.6 * 4 / 8,
            3: 0.4 + 0.6 * 2 / 8,
            7: 0.4 * 1.1 / 1.9 + 0.6,
        }
    )


def test_standardised() -> None:
    both = Candidates.union(DENSE, LEXICAL)
    scores = Standard(np.array([1.0, -0.5, 3.0, 0.0]), np.array([-0.2, 4.0, -0.2, 8.0]))
    result = fused(Standardised(0.6), replace(both, standard=scores))
    assert result == pytest.approx(
        {1: 0.6 - 0.4 * 0.2, 2: -0.3 + 0.4 * 4, 3: 1.8 - 0.4 * 0.2, 7: 0.0 + 0.4 * 8}
    )


def test_standardised_leaves_what_the_encoder_does_not_cover_to_the_words() -> None:
    both = Candidates.union(DENSE, LEXICAL)
    scores = Standard(np.array([1.0, -0.5, 3.0, 0.0]), np.array([-0.2, 4.0, -0.2, 8.0]), coverage=0.5)
    weight = 0.6 * 0.25 / (0.6 * 0.25 + 0.4)
    result = fused(Standardised(0.6), replace(both, standard=scores))
    assert result[3] == pytest.approx(weight * 3 - (1 - weight) * 0.2)
    blind = fused(Standardised(0.6), replace(both, standard=scores._replace(coverage=0.0)))
    assert blind == pytest.approx({1: -0.2, 2: 4.0, 3: -0.2, 7: 8.0})
    alone = fused(Standardised(1.0), replace(both, standard=scores._replace(coverage=0.0)))
    assert alone == pytest.approx(blind)  # no weight is left on either side: the words decide


def test_standardised_needs_standard_scores() -> None:
    with pytest.raises(ValueError, match="standard scores"):
        Standardised().shares(Candidates.union(DENSE, LEXICAL))


def test_explanations() -> None:
    both = Candidates.union(DENSE, LEXICAL)
    rule = ReciprocalRank()
    assert explain(rule, both, rule.shares(both), 3) == "rrf(k=60): dense 0.0159 + lexical 0.0164"


@pytest.mark.parametrize("name", sorted(FUSIONS))
def test_empty_and_one_sided_rankings(name: str) -> None:
    rule = fusion_rule(name)
    assert fused(rule, Candidates.union(ranking(), ranking())) == {}
    for dense, lexical in ((DENSE, ranking()), (ranking(), DENSE)):
        candidates = standardised(Candidates.union(dense, lexical))
        shares = rule.shares(candidates)
        order = best_first(candidates.ids, shares.dense + shares.lexical)
        assert candidates.ids[order].tolist() == [3, 1, 7]


@pytest.mark.parametrize("name", sorted(FUSIONS))
@given(data=st.data())
def test_a_passage_ahead_on_both_sides_comes_out_ahead(name: str, data: st.DataObject) -> None:
    """Every rule is monotone: who is at least as good on both sides and better on one is not behind."""
    ids = data.draw(st.lists(st.integers(1, 1000), min_size=2, max_size=12, unique=True))
    number = st.floats(0.015625, 1, width=32)
    rankings = []
    for _ in range(2):
        scores = sorted(
            data.draw(st.lists(number, min_size=len(ids), max_size=len(ids), unique=True)), reverse=True
        )
        rankings.append(ranking(*zip(data.draw(st.permutations(ids)), scores, strict=True)))
    candidates = Candidates.union(*rankings)
    result = fused(fusion_rule(name), candidates)
    places = [{int(id_): place for place, id_ in enumerate(each.ids)} for each in rankings]
    for a in ids:
        for b in ids:
            if all(place[a] < place[b] for place in places):
                assert result[a] >= result[b]


@pytest.mark.parametrize("name", ["standardised", "weighted", "convex"])
def test_a_weight_behind_the_name(name: str) -> None:
    assert fusion_rule(f"{name}@0.25").describe().startswith(f"{name}(weight=0.25")
    for wrong in ("1.5", "-0.1", "nan"):
        with pytest.raises(UsageError, match=r"a weight in \[0, 1\]"):
            fusion_rule(f"{name}@{wrong}")
    with pytest.raises(UsageError, match=f"behind {name}@, found 'much'"):
        fusion_rule(f"{name}@much")


def test_a_rule_without_a_weight() -> None:
    with pytest.raises(UsageError, match="rrf has no weight") as caught:
        fusion_rule("rrf@0.3")
    assert caught.value.remedy == "rrf, or standardised@0.3"


def test_registry_and_parameters() -> None:
    assert [fusion_rule(name).describe() for name in ("standardised", "rrf", "weighted", "convex")] == [
        "standardised(weight=0.6)",
        "rrf(k=60)",
        "weighted(weight=0.5, k=60)",
        "convex(weight=0.5)",
    ]
    rule = ReciprocalRank(k=10)
    assert fusion_rule(rule) is rule
    with pytest.raises(UsageError) as caught:
        fusion_rule("convexx")
    assert caught.value.remedy == "convex"
    for make in (
        lambda: ReciprocalRank(0),
        lambda: ReciprocalRank(float("nan")),
        lambda: WeightedReciprocalRank(1.5),
        lambda: WeightedReciprocalRank(0.5, -1),
        lambda: Convex(-0.1),
        lambda: Standardised(1.1),
    ):
        with pytest.raises(UsageError, match="expects"):
            make()
