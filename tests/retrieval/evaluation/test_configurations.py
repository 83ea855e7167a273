"""Names of configurations."""

from __future__ import annotations

import pytest

from likewise.errors import UsageError
from likewise.retrieval.evaluation.configurations import Configuration, parse_configurations
from likewise.retrieval.fusion import DEFAULT_FUSION


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
