"""Names of configurations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from likewise.errors import UsageError
from likewise.index.index import Index
from likewise.retrieval.evaluation.configurations import (
    Configuration,
    parse_configurations,
    search_function,
)
from likewise.retrieval.fusion import DEFAULT_FUSION
from likewise.retrieval.rerank.base import rerank


def test_names() -> None:
    assert parse_configurations("dense, hybrid:convex+rerank,hybrid") == [
        Configuration("dense", "dense"),
        Configuration("hybrid:convex+rerank", "hybrid", "convex", rerank=True),
        Configuration("hybrid", "hybrid", DEFAULT_FUSION),
    ]


def test_fusion_rules_multiply_hybrid() -> None:
    found = parse_configurations("dense,hybrid,hybrid:weighted", fusions=["rrf", "convex"])
    assert [(each.name, each.fusion) for each in found[1:]] == [
        ("hybrid:rrf", "rrf"),
        ("hybrid:convex", "convex"),
        ("hybrid:weighted", "weighted"),
    ]


@pytest.mark.parametrize("text", ["", "sparse", "dense,,lexical", "dense:rrf", "hybrid+mmr", "hybrid:rff"])
def test_unknown_parts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected (MODE|a fusion rule)"):
        parse_configurations(text)


def test_contradictions_are_refused() -> None:
    with pytest.raises(UsageError, match="named twice"):
        parse_configurations("dense,dense")
    with pytest.raises(UsageError, match="no configuration is hybrid"):
        parse_configurations("dense", fusions=["rrf"])
    with pytest.raises(UsageError, match="expected a fusion rule"):
        parse_configurations("hybrid", fusions=["none"])


def test_reranking_needs_a_reranker(guide_index: Index) -> None:
    [configuration] = parse_configurations("lexical+rerank")
    with pytest.raises(UsageError, match=r"lexical\+rerank needs a cross-encoder"):
        search_function(guide_index, configuration)


def test_candidates_are_reordered_and_the_rest_stays(
    guide_index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Shortest:
        name = "shortest"

        def scores(self, query: str, passages: Sequence[str]) -> NDArray[np.float32]:
            return np.array([-len(passage.split("\n", 1)[1]) for passage in passages], dtype=np.float32)

    monkeypatch.setattr(rerank, "__kwdefaults__", {**rerank.__kwdefaults__, "candidates": 3})
    [plain, better] = parse_configurations("dense,dense+rerank")
    before = search_function(guide_index, plain)("keys", 6)
    after = search_function(guide_index, better, reranker=Shortest())("keys", 6)
    expected = sorted(before[:3], key=lambda hit: len(hit.text))
    assert [hit.passage_id for hit in after] == [hit.passage_id for hit in [*expected, *before[3:]]]
    assert [hit.score for hit in after] == [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    assert [hit.rank for hit in after] == [1, 2, 3, 4, 5, 6]


def test_operators_count_only_where_people_type_them(guide_index: Index) -> None:
    [lexical] = parse_configurations("lexical")
    query = "bunker -tapes"
    assert len(search_function(guide_index, lexical)(query, 9)) == 1
    assert len(search_function(guide_index, lexical, as_typed=True)(query, 9)) == 0
