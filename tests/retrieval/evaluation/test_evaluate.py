"""From hits to scores: documents, places in them, missing queries, comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from likewise.errors import UsageError
from likewise.index.records import Passage, Span, StoredPassage
from likewise.retrieval.evaluation.evaluate import answer_scores, compare, evaluate, score_run
from likewise.retrieval.evaluation.judgements import Judgements
from likewise.retrieval.hits import Hit, HitScores


def hit(
    path: str, score: float, *, id: int = 1, lines: tuple[int, int] = (1, 9), page: int | None = None
) -> Hit:
    passage = Passage(0, "text", Span(0, 4), lines, page)
    return Hit(1, score, HitScores(), StoredPassage(id, path, "", "", "", passage))


def test_a_document_counts_once_with_its_best_passage() -> None:
    hits = [hit("a", 0.9), hit("b", 0.8), hit("a", 0.7)]
    assert answer_scores(hits, {"a": 1}) == {"a": 0.9, "b": 0.8}


def test_a_judged_line_is_found_only_by_the_passage_that_covers_it() -> None:
    hits = [hit("a", 0.9, id=1, lines=(1, 9)), hit("a", 0.8, id=2, lines=(10, 20)), hit("b", 0.7)]
    assert answer_scores(hits, {"a#line=12": 1}) == {"a#passage=1": 0.9, "a#line=12": 0.8, "b": 0.7}


def test_a_judged_page() -> None:
    hits = [hit("a.pdf", 0.9, id=1, page=1), hit("a.pdf", 0.8, id=2, page=3)]
    assert answer_scores(hits, {"a.pdf#page=3": 1}) == {"a.pdf#passage=1": 0.9, "a.pdf#page=3": 0.8}


def test_one_passage_may_answer_two_judged_lines() -> None:
    answers = {"a#line=2": 1, "a#line=3": 1}
    assert answer_scores([hit("a", 0.5)], answers) == {"a#line=2": 0.5, "a#line=3": 0.5}


def searching(ranking: Sequence[str]) -> list[Hit]:
    return [hit(path, 1 / (rank + 1), id=rank) for rank, path in enumerate(ranking)]


JUDGEMENTS = Judgements({"1": "one", "2": "two"}, {"1": {"a": 1}, "2": {"b": 1}})


def test_runs_are_scored_and_compared() -> None:
    evaluation = evaluate(
        {"good": lambda query, k: searching(["a", "b"]), "bad": lambda query, k: searching(["c", "b"])},
        JUDGEMENTS,
        metrics=["mrr@10", "success@1"],
    )
    good, bad = evaluation.runs
    assert evaluation.metrics == ("MRR@10", "success@1")
    assert good.values["MRR@10"] == {"1": 1.0, "2": 0.5}
    assert bad.values["MRR@10"] == {"1": 0.0, "2": 0.5}
    comparison = compare(bad, good, "MRR@10")
    assert comparison.difference.mean == 0.5
    assert comparison.p_value == pytest.approx(1.0, abs=1e-3)
    [failure] = evaluation.failures(bad, limit=1)
    assert (failure.query, failure.expected, failure.found) == ("one", ("a",), ("c", "b"))
    report = evaluation.to_json()
    assert report["runs"][0]["metrics"]["success@1"]["mean"] == 0.5  # type: ignore[index, call-overload]


def test_the_depth_counts_documents() -> None:
    searches = {"one": lambda query, k: searching("xxya"[:k])}
    evaluation = evaluate(searches, JUDGEMENTS, metrics=["mrr@2"], depth=2)
    assert evaluation.runs[0].run["1"] == {"x": 1.0, "y": 1 / 3}


def test_a_query_without_results_scores_zero() -> None:
    assert score_run({}, {"q": {"a": 1}}, ["nDCG@10"]) == {"nDCG@10": {"q": 0.0}}


def test_nothing_to_evaluate() -> None:
    with pytest.raises(UsageError, match="at least one"):
        evaluate({}, JUDGEMENTS)
    with pytest.raises(UsageError, match="unknown metric"):
        evaluate({"a": lambda query, k: []}, JUDGEMENTS, metrics=["p@3"])


def test_more_passages_are_asked_for_where_few_documents_fill_the_ranking() -> None:
    asked = []

    def search(query: str, k: int) -> Sequence[Hit]:
        asked.append(k)
        return searching(("x" * 7 + "yz")[:k])

    evaluation = evaluate({"one": search}, JUDGEMENTS, metrics=["mrr@2"], depth=2)
    assert list(evaluation.runs[0].run["1"]) == ["x", "y"]
    assert asked[:2] == [6, 20]
