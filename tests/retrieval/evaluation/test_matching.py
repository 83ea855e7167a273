"""Judgements that name what the index does not hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.errors import DataError, UsageError
from likewise.index.index import Index
from likewise.retrieval.evaluation.judgements import Judgements
from likewise.retrieval.evaluation.matching import Matched, check_overlap, match_judgements


def match(index: Index, answers: dict[str, int], near: Path | None = None) -> Matched:
    judgements = Judgements({"1": "one"}, {"1": answers})
    with index.view() as view:
        return match_judgements(judgements, view, base=index.base, near=near)


def test_keys_are_understood_as_paths(
    guide: Path, guide_index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(guide / "zh")
    for spelling in ("zh/金鑰.md", "金鑰.md", str(guide / "zh" / "金鑰.md"), "../zh/金鑰.md"):
        assert match(guide_index, {f"{spelling}#line=1": 2}).judgements.qrels == {
            "1": {"zh/金鑰.md#line=1": 2}
        }
    monkeypatch.chdir("/")
    assert match(guide_index, {"金鑰.md": 1}, near=guide / "zh").judgements.qrels == {"1": {"zh/金鑰.md": 1}}


def test_missing_documents_are_counted_and_named(guide_index: Index) -> None:
    matched = match(guide_index, {"keys.md": 1, "gone.md": 1, "irrelevant.md": 0})
    assert matched.notices == (
        "1 of the 2 documents that should be found are not in the index and count as not found: 'gone.md'",
    )
    assert matched.judgements.qrels == {"1": {"keys.md": 1, "gone.md": 1, "irrelevant.md": 0}}


def test_an_index_of_something_else_is_refused(guide_index: Index) -> None:
    with pytest.raises(DataError, match=r"none of the 4 documents .* such as 'a', 'b', 'c' and 1 more"):
        match(guide_index, dict.fromkeys("abcd", 1))


def test_places_outside_the_document(guide_index: Index) -> None:
    matched = match(guide_index, {"keys.md#line=900": 1, "keys.md#page=1": 1, "keys.md#line=1": 1})
    assert matched.notices == (
        "places that no passage covers, so that they cannot be found: 'keys.md#line=900', 'keys.md#page=1'",
    )


def test_questions_without_a_right_answer(guide_index: Index) -> None:
    with pytest.raises(DataError, match="no question has a right answer"):
        match(guide_index, {"keys.md": 0})
    judgements = Judgements({}, {"1": {"a": 1}, "2": {"a": 0}})
    assert list(check_overlap({"run": {"1": {"a": 1.0}, "2": {"a": 1.0}}}, judgements)) == [
        "1 of 2 questions have no right answer and score 0, as in trec_eval: '2'"
    ]


def test_a_run_of_other_queries() -> None:
    judgements = Judgements({}, {"1": {"a": 1}, "2": {"b": 1}})
    with pytest.raises(UsageError, match="no query in common: the run has 'x', the judgements have '1', '2'"):
        list(check_overlap({"run": {"x": {"a": 1.0}}}, judgements))
    notices = list(check_overlap({"run": {"1": {"c": 1.0}, "x": {"a": 1.0}}}, judgements))
    assert notices == [
        "the run run lacks 1 of 2 judged queries, which score 0: '2'",
        "1 queries of the run run are not judged and do not count",
        "no document of the run run is judged: are its ids those of the judgements?",
    ]
