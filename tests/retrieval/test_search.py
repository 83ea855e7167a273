"""Search against brute force over a small index in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.errors import EncoderMismatch, QueryError, UsageError
from likewise.index.analyzer import analyze_query
from likewise.index.records import Filter
from likewise.retrieval.fusion import Convex, WeightedReciprocalRank
from likewise.retrieval.search import Retriever

MakeIndex = Callable[..., Any]
QUERY = "how do I rotate a signing key"


def test_dense_search_is_brute_force_cosine(make_index: MakeIndex) -> None:
    index = make_index()
    result = Retriever(index).search(QUERY, mode="dense", k=4)
    vector = HashEncoder().encode_queries([QUERY])[0]
    scores = index.memory.vectors(np.arange(1, 8)) @ vector
    order = sorted(range(7), key=lambda row: (-scores[row], row))[:4]
    assert [hit.passage_id for hit in result] == [row + 1 for row in order]
    assert [hit.score for hit in result] == pytest.approx([float(scores[row]) for row in order])
    assert [hit.rank for hit in result] == [1, 2, 3, 4]
    assert all(-1 <= hit.score <= 1 and hit.scores.dense == hit.score for hit in result)
    assert [hit.scores.dense_rank for hit in result] == [1, 2, 3, 4]
    assert all(hit.scores.lexical is None and hit.scores.fused is None for hit in result)


def test_lexical_search_never_asks_for_the_encoder(make_index: MakeIndex) -> None:
    index = make_index()
    result = Retriever(index).search(QUERY, mode="lexical")
    assert index.encoder_uses == 0
    wanted = index.memory.lexical(analyze_query(QUERY), 10)
    assert [hit.passage_id for hit in result] == wanted.ids.tolist()
    assert [hit.score for hit in result] == pytest.approx(wanted.scores.tolist())
    assert [hit.scores.lexical_rank for hit in result] == list(range(1, len(result) + 1))
    assert result[0].scores.dense is None


def test_hybrid_search_is_written_out_reciprocal_rank_fusion(make_index: MakeIndex) -> None:
    index = make_index()
    result = Retriever(index, fusion="rrf").search(QUERY, k=7)
    dense = index.memory.dense(HashEncoder().encode_queries([QUERY])[0], 100).ids.tolist()
    lexical = index.memory.lexical(analyze_query(QUERY), 100).ids.tolist()
    for hit in result:
        expected = 1 / (60 + dense.index(hit.passage_id) + 1)
        if hit.passage_id in lexical:
            expected += 1 / (60 + lexical.index(hit.passage_id) + 1)
            assert hit.scores.lexical_rank == lexical.index(hit.passage_id) + 1
        else:
            assert hit.scores.lexical is None and hit.scores.lexical_rank is None
        assert hit.score == hit.scores.fused == pytest.approx(expected)
        assert hit.scores.dense_rank == dense.index(hit.passage_id) + 1
    keys = [(-hit.score, hit.passage_id) for hit in result]
    assert keys == sorted(keys)
    assert result[0].scores.explanation == "rrf(k=60): dense 0.0164 + lexical 0.0164"


@pytest.mark.parametrize("question", ["簽署金鑰多久輪替一次", "签署金钥 輪替", "holiday 假期"])
def test_chinese_queries_find_chinese_text(make_index: MakeIndex, question: str) -> None:
    for mode in ("dense", "lexical", "hybrid"):
        result = Retriever(make_index()).search(question, mode=mode, k=3)
        assert any(hit.path.startswith("docs/zh/") for hit in result), mode


def test_equal_scores_are_ordered_by_passage_id(make_index: MakeIndex) -> None:
    index = make_index({f"{name}.md": ("the same text",) for name in "cab"})
    for mode in ("dense", "lexical", "hybrid"):
        assert [hit.passage_id for hit in Retriever(index).search("same text", mode=mode)] == [1, 2, 3]


def test_one_view_for_each_query(make_index: MakeIndex) -> None:
    index = make_index()
    Retriever(index).search(QUERY)
    assert index.views == 1


def test_filter_applies_before_ranking(make_index: MakeIndex) -> None:
    retriever = Retriever(make_index())
    allowed = Filter(paths=("docs/zh/**",))
    for mode in ("dense", "lexical", "hybrid"):
        result = retriever.search("金鑰", k=1, mode=mode, filter=allowed)
        assert [hit.path for hit in result] == ["docs/zh/金鑰.md"], mode
    # The best passage of the whole index is filtered out, and the next one comes up to rank 1.
    result = retriever.search("signing keys never rotate", k=1, filter=Filter(exclude_paths=("old/**",)))
    assert result[0].path == "docs/keys.md" and result[0].rank == 1


def test_filter_that_matches_nothing_says_so(make_index: MakeIndex) -> None:
    index = make_index()
    result = Retriever(index).search(QUERY, filter=Filter(paths=("nowhere/**",)))
    assert len(result) == 0
    assert result.notices == ("the filter matches no passage",)
    assert index.encoder_uses == 0


def test_empty_index_says_so(make_index: MakeIndex) -> None:
    index = make_index({})
    assert Retriever(index).search(QUERY).notices == ("the index holds no passages yet",)
    assert index.encoder_uses == 0


def test_notices_of_the_view_are_passed_on(make_index: MakeIndex) -> None:
    index = make_index()
    index.memory.notices = ("a snapshot was rebuilt",)
    assert Retriever(index).search(QUERY).notices == ("a snapshot was rebuilt",)


@pytest.mark.parametrize("query", ["", "   ", "\n\t", "\0", "\u3000"])
def test_empty_query_is_refused(make_index: MakeIndex, query: str) -> None:
    with pytest.raises(QueryError, match="expected a query, found"):
        Retriever(make_index()).search(query)


@pytest.mark.parametrize("query", ["?!", "。。。", '"', "()", "--", "…"])
def test_query_of_punctuation_finds_nothing_and_says_why(make_index: MakeIndex, query: str) -> None:
    for mode in ("dense", "lexical", "hybrid"):
        result = Retriever(make_index()).search(query, mode=mode)
        assert len(result) == 0 and "only punctuation" in result.notices[0]


@pytest.mark.parametrize(
    "query", ["C++", "-x", 'a" OR "b', "col:key", "NEAR(key", "keys*", "🔑", "مفتاح", "^key"]
)
def test_operators_emoji_and_other_scripts_are_plain_text(make_index: MakeIndex, query: str) -> None:
    for mode in ("dense", "lexical", "hybrid"):
        Retriever(make_index()).search(query, mode=mode)


def test_too_long_query_is_refused(make_index: MakeIndex) -> None:
    retriever = Retriever(make_index())
    with pytest.raises(QueryError, match=r"at most 100,000 bytes, found 100,002"):
        retriever.search("金" * 33334)
    result = retriever.search("key " * 25_000)
    assert result[0].path in ("docs/keys.md", "old/keys.md")
    assert any("longer than the encoder takes" in notice for notice in result.notices)


def test_words_beyond_the_limit_are_reported(make_index: MakeIndex) -> None:
    query = " ".join(f"w{number}x" for number in range(600))
    notices = Retriever(make_index()).search(query, mode="lexical").notices
    assert len(notices) == 1 and "the first 512 of the query's" in notices[0]


def test_undecodable_query_is_refused(make_index: MakeIndex) -> None:
    with pytest.raises(QueryError, match="valid Unicode"):
        Retriever(make_index()).search("key \udcff")
    with pytest.raises(QueryError, match="as a string, found int"):
        Retriever(make_index()).search(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [0, -1, True, 2.0, "3"])
def test_k_must_be_a_whole_number_of_at_least_one(make_index: MakeIndex, k: Any) -> None:
    with pytest.raises(UsageError, match="expected k"):
        Retriever(make_index()).search(QUERY, k=k)
    with pytest.raises(UsageError, match="expected k"):
        Retriever(make_index()).similar(1, k=k)


def test_k_beyond_the_index_returns_everything_that_matches(make_index: MakeIndex) -> None:
    assert len(Retriever(make_index()).search(QUERY, k=10**15, mode="dense")) == 7
    assert len(Retriever(make_index()).search(QUERY, k=10**15)) == 7


def test_unknown_mode_and_fusion_are_refused(make_index: MakeIndex) -> None:
    with pytest.raises(UsageError, match="dense, lexical, hybrid, found 'fuzzy'"):
        Retriever(make_index()).search(QUERY, mode="fuzzy")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="convex, rrf, standardised, weighted, found 'rrff'"):
        Retriever(make_index(), fusion="rrff")


def test_encoder_of_another_index_state_is_refused(make_index: MakeIndex) -> None:
    index = make_index()
    index.memory.fingerprint = "0" * 64
    with pytest.raises(EncoderMismatch, match="embedded again since it was opened"):
        Retriever(index).search(QUERY)
    assert len(Retriever(index).search(QUERY, mode="lexical"))


def test_convex_fusion_uses_the_scores_of_both_sides_for_every_candidate(make_index: MakeIndex) -> None:
    index = make_index()
    result = Retriever(index, fusion=Convex(weight=0.25)).search(QUERY, k=7)
    cosines = index.memory.vectors(np.arange(1, 8)) @ HashEncoder().encode_queries([QUERY])[0]
    lexical = index.memory.lexical(analyze_query(QUERY), 7)
    bm25 = dict(zip(lexical.ids.tolist(), lexical.scores.tolist(), strict=True))
    for hit in result:
        dense_part = (cosines[hit.passage_id - 1] + 1) / (max(cosines) + 1)
        lexical_part = bm25.get(hit.passage_id, 0.0) / max(bm25.values())
        assert hit.score == pytest.approx(0.25 * dense_part + 0.75 * lexical_part, abs=1e-6)


def test_one_sided_weights_give_the_order_of_one_side(make_index: MakeIndex) -> None:
    index = make_index()
    for weight, mode in ((1.0, "dense"), (0.0, "lexical")):
        fused = Retriever(index, fusion=WeightedReciprocalRank(weight=weight)).search(QUERY, k=3)
        alone = Retriever(index).search(QUERY, k=3, mode=mode)  # type: ignore[arg-type]
        assert [hit.passage_id for hit in fused] == [hit.passage_id for hit in alone]


def test_hybrid_hit_beyond_the_dense_depth_still_shows_its_cosine(make_index: MakeIndex) -> None:
    # 150 passages nearer to the query's vector than the only one that holds its rare word.
    documents = {f"{n:03}.md": (f"rotate rotate rotating {n}",) for n in range(150)}
    documents["rare.md"] = ("zyzzyva " + " ".join(f"filler{n}" for n in range(60)),)
    lexical_order = WeightedReciprocalRank(weight=0)
    result = Retriever(make_index(documents), fusion=lexical_order).search("rotate zyzzyva", k=3)
    rare = next(hit for hit in result if hit.path == "rare.md")
    assert rare.scores.dense_rank is None and rare.scores.lexical_rank == 1
    assert rare.scores.dense is not None and -1 <= rare.scores.dense < 0.5


def test_result_is_a_sequence_and_slices_keep_its_context(make_index: MakeIndex) -> None:
    result = Retriever(make_index()).search(QUERY, k=5)
    assert len(result[:2]) == 2 and result[:2].query == QUERY and result[:2].counter is result.counter
    assert result[-1].rank == 5
    assert QUERY in repr(result)


def test_json_shape(make_index: MakeIndex) -> None:
    value = Retriever(make_index()).search("  " + QUERY, k=1).to_json()
    assert list(value) == ["version", "query", "mode", "hits", "notices"]
    assert (value["version"], value["query"], value["mode"]) == (1, QUERY, "hybrid")
    (hit,) = value["hits"]  # type: ignore[misc]
    assert list(hit) == [
        "rank", "passage_id", "path", "title", "heading", "lines", "page", "score", "relevance", "scores",
        "text", "snippet",
    ]  # fmt: skip
    assert hit["lines"] == [1, 1] and hit["rank"] == 1 and math.isclose(hit["scores"]["fused"], hit["score"])
