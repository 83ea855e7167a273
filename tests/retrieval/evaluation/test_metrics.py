"""Metrics against arithmetic written out and against trec_eval (through `ir_measures`)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import UsageError
from likewise.retrieval.evaluation.metrics import (
    DEFAULT_METRICS,
    average_precision,
    ndcg,
    parse_metric,
    recall,
    reciprocal_rank,
    success,
    trec_order,
)

documents = st.sampled_from([f"d{number}" for number in range(30)])
# Few distinct scores, so that ties are the rule; one differs by less than single precision can tell.
runs = st.dictionaries(
    documents, st.sampled_from([0.0, 0.25, 0.5, 0.5 + 1e-12, 1.0, -1.0]), min_size=1, max_size=30
)
grades = st.dictionaries(documents, st.integers(-1, 3), min_size=1, max_size=30)


def grades_of(run: dict[str, float], qrels: dict[str, int]) -> tuple[list[int], list[int]]:
    return [qrels.get(document, 0) for document in trec_order(run)], list(qrels.values())


def test_ndcg_by_hand() -> None:
    expected = (3 / math.log2(2) + 1 / math.log2(4)) / (
        3 / math.log2(2) + 2 / math.log2(3) + 1 / math.log2(4)
    )
    assert ndcg([3, 0, 1], [1, 2, 3], 10) == pytest.approx(expected, abs=1e-15)


def test_ndcg_cuts_the_ideal_ranking_too() -> None:
    assert ndcg([1], [1, 1, 1, 1], 1) == 1.0


def test_the_others_by_hand() -> None:
    ranked, judged = [0, 1, 0, 2], [1, 2, 1, 0]
    assert recall(ranked, judged, 3) == pytest.approx(1 / 3)
    assert reciprocal_rank(ranked, judged, 10) == 0.5
    assert reciprocal_rank(ranked, judged, 1) == 0.0
    assert average_precision(ranked, judged) == pytest.approx((1 / 2 + 2 / 4) / 3)
    assert success(ranked, judged, 1) == 0.0
    assert success(ranked, judged, 2) == 1.0


def test_a_query_without_relevant_documents_scores_zero() -> None:
    for name in DEFAULT_METRICS:
        assert parse_metric(name).measure([0, 0], [0, -1]) == 0.0


def test_an_empty_ranking_scores_zero() -> None:
    for name in DEFAULT_METRICS:
        assert parse_metric(name).measure([], [1]) == 0.0


@settings(max_examples=200, deadline=None)
@given(runs, grades)
def test_equal_to_trec_eval(run: dict[str, float], qrels: dict[str, int]) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    names = {"nDCG@10": "nDCG@10", "recall@10": "R@10", "recall@100": "R@100", "MRR@1000": "RR", "MAP": "AP"}
    names |= {"success@1": "Success@1", "success@5": "Success@5"}
    theirs = ir_measures.calc_aggregate(
        [ir_measures.parse_measure(name) for name in names.values()],
        [ir_measures.Qrel("q", document, grade) for document, grade in qrels.items()],
        [ir_measures.ScoredDoc("q", document, score) for document, score in run.items()],
    )
    by_name = {str(measure): value for measure, value in theirs.items()}
    ranked, judged = grades_of(run, qrels)
    for ours, other in names.items():
        assert parse_metric(ours).measure(ranked, judged) == pytest.approx(by_name[other], abs=1e-12), ours


@pytest.mark.parametrize("name", ["", "ndcg", "ndcg@0", "ndcg@-1", "precision@5", "recall@x", "mrr@"])
def test_unknown_metrics_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="unknown metric"):
        parse_metric(name)


def test_a_cutoff_that_the_name_leaves_out() -> None:
    assert parse_metric("ndcg", k=3).name == "nDCG@3"
    assert parse_metric("ndcg@5", k=3).cutoff == 5
    assert parse_metric("map", k=3).cutoff is None
