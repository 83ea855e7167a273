"""Hybrid search over real indexes in which something to compare with is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from likewise.index.added import TextDocument
from likewise.index.index import Index
from likewise.index.records import Filter
from likewise.retrieval.fusion import FUSIONS
from likewise.retrieval.search import Retriever

pytestmark = pytest.mark.parametrize("fusion", sorted(FUSIONS))


@pytest.fixture
def retriever(tmp_path: Path, fusion: str, request: pytest.FixtureRequest) -> Retriever:
    texts: Sequence[str] = getattr(request, "param", ("Signing keys rotate every year.",))
    index = Index.open(tmp_path / ".likewise", encoder="hash")
    request.addfinalizer(index.close)
    index.add(TextDocument(f"d/{number:03}", text) for number, text in enumerate(texts))
    return Retriever(index, fusion=fusion)


def paths(retriever: Retriever, query: str, **options: object) -> list[str]:
    return [hit.path for hit in retriever.search(query, **options)]  # type: ignore[arg-type]


def test_one_passage(retriever: Retriever) -> None:
    for query in ("signing keys", "unheard", "金鑰"):
        (hit,) = retriever.search(query)
        assert hit.score == hit.score and hit.relevance == hit.relevance  # no NaN


@pytest.mark.parametrize("retriever", [("the same text",) * 12], indirect=True)
def test_equal_passages_come_in_order_of_their_ids(retriever: Retriever) -> None:
    for query in ("same text", "unheard"):
        assert paths(retriever, query, k=5) == [f"d/{number:03}" for number in range(5)]


@pytest.mark.parametrize(
    "retriever", [("alpha beta", "beta gamma", "gamma delta", "zeta eta")], indirect=True
)
def test_words_that_nobody_holds_leave_it_to_the_vectors(retriever: Retriever) -> None:
    query = "alphabet"
    assert paths(retriever, query, k=4) == paths(retriever, query, k=4, mode="dense")


@pytest.mark.parametrize(
    "retriever",
    [[f"key {'rotation ' * (n % 3)}number {n} {'archive ' * (n % 5)}" for n in range(60)]],
    indirect=True,
)
def test_a_filter_does_not_change_what_counts_as_a_good_match(retriever: Retriever, fusion: str) -> None:
    query = "key rotation archive"
    everything = {hit.path: hit for hit in retriever.search(query, k=60)}
    some = retriever.search(query, k=60, filter=Filter(paths=("d/00*",)))
    assert len(some) == 10
    for hit in some:
        assert hit.relevance == pytest.approx(everything[hit.path].relevance, abs=1e-5)
        if fusion == "standardised":
            assert hit.score == pytest.approx(everything[hit.path].score, abs=1e-4)
