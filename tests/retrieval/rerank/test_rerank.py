"""Reranking, diversity and widening, each against what it promises."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import UsageError
from likewise.index.index import Index
from likewise.index.records import StoredPassage
from likewise.retrieval.hits import Hit, HitScores, SearchResult
from likewise.retrieval.rerank.base import rerank
from likewise.retrieval.rerank.mmr import diversify, mmr
from likewise.retrieval.rerank.parents import expand
from likewise.retrieval.rerank.refine import Refinement, RefiningRetriever


class Lengths:
    """Prefers long passages; notes what it was asked."""

    name = "lengths"

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    def scores(self, query: str, passages: Sequence[str]) -> Any:
        self.asked.append((query, list(passages)))
        return np.array([len(passage) for passage in passages], dtype=np.float32)


class Characters:
    """Counts characters as tokens."""

    name = "characters"

    def count(self, text: str) -> int:
        return len(text)


@pytest.fixture
def result(make_passage: Callable[..., StoredPassage]) -> SearchResult:
    texts = ["x" * (n * 7 % 30 + 1) for n in range(30)]
    hits = [
        Hit(n + 1, 1 - n / 100, HitScores(), make_passage(n + 1, text, ordinal=n))
        for n, text in enumerate(texts)
    ]
    return SearchResult(tuple(hits), "query -x", "hybrid", text="query")


def test_candidates_come_in_the_order_of_their_scores_and_the_rest_as_it_was(result: SearchResult) -> None:
    reranker = Lengths()
    found = rerank(result, reranker, candidates=10)
    lengths = [len(hit.text) for hit in found]
    assert lengths[:10] == sorted((len(hit.text) for hit in result[:10]), reverse=True)
    assert [hit.passage_id for hit in found[10:]] == list(range(11, 31))
    assert [hit.rank for hit in found] == list(range(1, 31))
    assert found[0].score == found[0].scores.rerank == lengths[0] and found[10].scores.rerank is None
    assert {query for query, _ in reranker.asked} == {"query"} and not found.notices


def test_equal_scores_keep_their_order(result: SearchResult) -> None:
    class Same(Lengths):
        def scores(self, query: str, passages: Sequence[str]) -> Any:
            return np.zeros(len(passages), dtype=np.float32)

    assert [hit.passage_id for hit in rerank(result, Same())] == list(range(1, 31))


@pytest.mark.parametrize(("seconds", "scored"), [(0.1, 8), (1.9, 8), (2.0, 16), (3.5, 24), (60.0, 30)])
def test_it_stops_before_the_time_is_over(result: SearchResult, seconds: float, scored: int) -> None:
    ticks = itertools.count()
    found = rerank(result, Lengths(), seconds=seconds, clock=lambda: float(next(ticks)))
    assert sum(hit.scores.rerank is not None for hit in found) == scored
    assert all(hit.scores.rerank is None for hit in found[scored:])
    assert [hit.passage_id for hit in found[scored:]] == list(range(scored + 1, 31))
    assert bool(found.notices) == (scored < 30)
    if found.notices:
        assert f"the first {scored} of 30 passages" in found.notices[0]


def test_the_reranker_reads_title_and_headings(make_passage: Callable[..., StoredPassage]) -> None:
    passage = make_passage(1, "text", title="Guide", headings=("Guide", "Keys"))
    reranker = Lengths()
    rerank(SearchResult((Hit(1, 1.0, HitScores(), passage),), "q", "dense"), reranker)
    assert reranker.asked == [("q", ["Guide > Keys\ntext"])]


def test_numbers_out_of_range_are_refused(result: SearchResult) -> None:
    for options in ({"candidates": 0}, {"seconds": 0.0}, {"seconds": -1.0}):
        with pytest.raises(UsageError, match="expected"):
            rerank(result, Lengths(), **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="from 0 to 1"):
        diversify(result, np.ones((30, 2), dtype=np.float32), diversity=1.5, k=3)
    with pytest.raises(UsageError, match="section or document"):
        expand(result, lambda key: [], to="page", counter=Characters())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at least 1 token"):
        expand(result, lambda key: [], to="section", counter=Characters(), tokens=0)


@given(st.integers(1, 8), st.floats(0, 1), st.integers(1, 10), st.randoms())
def test_mmr_is_its_formula(count: int, diversity: float, k: int, random: Any) -> None:
    rng = np.random.default_rng(random.randrange(2**32))
    vectors = rng.normal(size=(count, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = np.sort(rng.normal(size=count))[::-1]
    spread = scores.max() - scores.min()
    relevance = [(score - scores.min()) / spread if spread else 1.0 for score in scores]
    taken: list[int] = []
    while len(taken) < min(k, count):

        def gain(place: int) -> float:
            likest = max((float(vectors[place] @ vectors[other]) for other in taken), default=0.0)
            return (1 - diversity) * relevance[place] - diversity * likest

        left = [place for place in range(count) if place not in taken]
        best = max(left, key=gain)
        found = mmr(scores, vectors, diversity=diversity, k=k)[len(taken)]
        assert gain(found) == pytest.approx(gain(best), abs=1e-6)
        taken.append(found)
    assert mmr(scores, vectors, diversity=0.0, k=k) == list(range(min(k, count)))


def test_diversity_takes_the_different_one(result: SearchResult) -> None:
    vectors = np.array([[1, 0]] * 29 + [[0, 1]], dtype=np.float32)
    found = diversify(result, vectors, diversity=0.7, k=2)
    assert [hit.passage_id for hit in found] == [1, 30] and [hit.rank for hit in found] == [1, 2]
    assert [hit.passage_id for hit in diversify(result, vectors, diversity=0.0, k=2)] == [1, 2]


DOCUMENT = """# Guide

Before everything.

## Keys

First about keys.

Second about keys.

### Rotation

Rotate them yearly.

## Backups

Backups run at night.
"""


def _passages(make_passage: Callable[..., StoredPassage]) -> list[StoredPassage]:
    made = []
    for ordinal, (text, headings) in enumerate(
        [
            ("Before everything.", ("Guide",)),
            ("First about keys.", ("Guide", "Keys")),
            ("Second about keys.", ("Guide", "Keys")),
            ("Rotate them yearly.", ("Guide", "Keys", "Rotation")),
            ("Backups run at night.", ("Guide", "Backups")),
        ]
    ):
        start = DOCUMENT.index(text)
        line = DOCUMENT[:start].count("\n") + 1
        made.append(
            make_passage(ordinal + 1, text, ordinal=ordinal, start=start, line=line, headings=headings)
        )
    return made


def _hits(passages: Sequence[StoredPassage], *ids: int) -> SearchResult:
    hits = tuple(Hit(rank, 1 / rank, HitScores(), passages[id_ - 1]) for rank, id_ in enumerate(ids, start=1))
    return SearchResult(hits, "q", "dense")


@pytest.mark.parametrize(
    ("found", "to", "tokens", "ids"),
    [
        (2, "section", 1000, (2, 3, 4)),
        (4, "section", 1000, (4,)),
        (1, "section", 1000, (1, 2, 3, 4, 5)),
        (4, "document", 1000, (1, 2, 3, 4, 5)),
        (3, "section", 60, (3, 4)),
        (3, "section", 5, (3,)),
    ],
)
def test_a_hit_brings_what_is_around_it(
    found: int, to: Any, tokens: int, ids: tuple[int, ...], make_passage: Callable[..., StoredPassage]
) -> None:
    passages = _passages(make_passage)
    (hit,) = expand(_hits(passages, found), lambda key: passages, to=to, counter=Characters(), tokens=tokens)
    assert hit.passage_id == found and hit.passage.passage.headings == passages[found - 1].passage.headings
    first, last = passages[ids[0] - 1].passage, passages[ids[-1] - 1].passage
    span = hit.passage.passage.span
    assert (span.start, span.end) == (first.span.start, last.span.end)
    assert hit.lines == (first.lines[0], last.lines[1])
    shown = hit.text
    for passage in passages:
        assert (passage.passage.text in shown) == (passage.id in ids)
    assert len(ids) == 1 or len(shown) <= tokens


def test_a_hit_that_a_better_one_brings_is_left_out(make_passage: Callable[..., StoredPassage]) -> None:
    passages = _passages(make_passage)
    found = expand(_hits(passages, 3, 2, 5), lambda key: passages, to="section", counter=Characters())
    assert [(hit.rank, hit.passage_id) for hit in found] == [(1, 3), (2, 5)]
    assert expand(_hits(passages, 3), lambda key: [], to="section", counter=Characters())[0].text == (
        "Second about keys."
    )


def test_refining_over_a_real_index(tmp_path: Any) -> None:
    (tmp_path / "guide.md").write_text(DOCUMENT, encoding="utf-8")
    (tmp_path / "copy.md").write_text(DOCUMENT.replace("Guide", "Copy"), encoding="utf-8")
    (tmp_path / "zh.md").write_text("# 金鑰\n\n金鑰每年輪替一次。", encoding="utf-8")
    with Index.open(tmp_path / ".likewise", encoder="hash") as index:
        index.sync([tmp_path])
        plain = RefiningRetriever(index, Refinement()).search("rotate keys yearly", k=3)
        assert [hit.rank for hit in plain] == [1, 2, 3]
        reranked = RefiningRetriever(index, Refinement(reranker=Lengths(), candidates=6)).search(
            "rotate keys yearly", k=2
        )
        assert len(reranked) == 2 and reranked[0].scores.rerank is not None
        diverse = RefiningRetriever(index, Refinement(diversity=1.0)).search("rotate keys yearly", k=3)
        assert len({hit.text for hit in diverse}) == 3
        wide = RefiningRetriever(index, Refinement(expand="document", expand_tokens=500)).search(
            "rotate keys", k=4
        )
        assert any("Backups run at night." in hit.text and "First about keys." in hit.text for hit in wide)
        nothing = RefiningRetriever(index, Refinement(reranker=Lengths(), diversity=0.5, expand="section"))
        assert len(nothing.search('"no such phrase"')) == 0
