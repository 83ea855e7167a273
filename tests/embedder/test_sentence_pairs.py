from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.embedder.sentence_pairs import (
    IN_ORDER,
    NOT_IN_ORDER,
    Pair,
    next_sentence_pairs,
    sentence_order_pairs,
)
from likewise.errors import DataError, UsageError


def corpus(sentence_lengths: list[list[int]]) -> list[list[np.ndarray]]:
    """Every token is unique: document * 10,000 + position in the document."""
    documents = []
    for number, lengths in enumerate(sentence_lengths):
        at, sentences = 0, []
        for length in lengths:
            sentences.append(np.arange(at, at + length) + 10_000 * number)
            at += length
        documents.append(sentences)
    return documents


lengths = st.lists(st.integers(0, 30), max_size=12)


@given(lengths, st.integers(5, 40), st.integers(0, 1000))
@settings(max_examples=150, deadline=None)
def test_sop_uses_every_token_once_in_pairs_of_neighbours(sizes: list[int], limit: int, seed: int) -> None:
    [document] = corpus([sizes])
    pairs = sentence_order_pairs(document, np.random.default_rng(seed), max_tokens=limit)
    used = []
    for first, second, label in pairs:
        assert len(first) + len(second) + 3 <= limit
        early, late = (first, second) if label == IN_ORDER else (second, first)
        run = np.concatenate([early, late])
        assert len(early) and len(late)
        np.testing.assert_array_equal(run, np.arange(run[0], run[0] + len(run)))
        used += run.tolist()
    assert len(used) == len(set(used))
    # Only a lone token, which has nothing to be ordered against, can be left out.
    lone = sum(
        1 for size in sizes for begin in range(0, size, limit - 3) if min(limit - 3, size - begin) == 1
    )
    assert sum(sizes) - len(used) <= lone


@given(lengths, lengths, st.integers(5, 40), st.integers(0, 1000))
@settings(max_examples=150, deadline=None)
def test_nsp_pairs_follow_or_come_from_elsewhere(
    mine: list[int], theirs: list[int], limit: int, seed: int
) -> None:
    documents = corpus([mine, [*theirs, 3]])
    pairs = next_sentence_pairs(documents[0], documents[1:], np.random.default_rng(seed), max_tokens=limit)
    for first, second, label in pairs:
        assert len(first) and len(second)
        assert len(first) + len(second) + 3 <= limit
        assert (first < 10_000).all()
        if label == IN_ORDER:
            run = np.concatenate([first, second])
            np.testing.assert_array_equal(run, np.arange(run[0], run[0] + len(run)))
        else:
            assert (second >= 10_000).all()


def test_nsp_uses_the_whole_document() -> None:
    documents = corpus([[7, 9, 4, 12, 8, 3, 11, 6], [20, 20]])
    for seed in range(50):
        pairs = next_sentence_pairs(
            documents[0], documents[1:], np.random.default_rng(seed), max_tokens=32, short_share=0
        )
        used = {token for pair in pairs for part in (pair.first, pair.second) for token in part.tolist()}
        assert {token for token in used if token < 10_000} == set(range(60))


@pytest.mark.parametrize("kind", ["nsp", "sop"])
@pytest.mark.parametrize("sizes", [[10] * 400, [3] * 1000, [200] * 60, [1, 5] * 300])
def test_half_of_the_pairs_are_in_order(kind: str, sizes: list[int]) -> None:
    documents = corpus([sizes, [10] * 20])
    labels = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        if kind == "nsp":
            pairs = next_sentence_pairs(documents[0], documents[1:], rng, max_tokens=64)
        else:
            pairs = sentence_order_pairs(documents[0], rng, max_tokens=64)
        labels += [pair.label for pair in pairs]
    n = len(labels)
    assert n > 300
    assert abs(sum(labels) - n / 2) < 5 * np.sqrt(n / 4)


def test_lengths_and_cut_points_vary_and_short_pairs_occur() -> None:
    [document] = corpus([[5] * 2000])
    pairs = sentence_order_pairs(document, np.random.default_rng(0), max_tokens=63, short_share=0.1)
    totals = np.array([len(pair.first) + len(pair.second) for pair in pairs])
    assert totals.max() == 60
    assert 0.03 < (totals < 55).mean() < 0.2
    cuts = {len(pair.first) for pair in pairs if pair.label == IN_ORDER}
    assert len(cuts) > 8


def test_framing() -> None:
    pair = Pair(np.array([7, 8]), np.array([9]), NOT_IN_ORDER)
    example = pair.example(cls_id=2, sep_id=3, key=11)
    assert example.ids.tolist() == [2, 7, 8, 3, 9, 3]
    assert example.segment_ids.tolist() == [0, 0, 0, 0, 1, 1]
    assert example.special.tolist() == [True, False, False, True, False, True]
    assert (example.pair_label, example.key) == (1, 11)


def test_edges() -> None:
    rng = np.random.default_rng(0)
    assert sentence_order_pairs([], rng, max_tokens=16) == []
    assert sentence_order_pairs([np.array([], dtype=int)], rng, max_tokens=16) == []
    assert sentence_order_pairs([np.array([5])], rng, max_tokens=16) == []
    [pair] = sentence_order_pairs([np.array([5, 6])], rng, max_tokens=16)
    assert sorted([*pair.first, *pair.second]) == [5, 6]
    documents = [[np.array([5])], [np.array([9])]]
    found = [
        next_sentence_pairs(documents[0], documents[1:], np.random.default_rng(seed), max_tokens=8)
        for seed in range(40)
    ]
    assert {len(pairs) for pairs in found} == {0, 1}  # a lone token cannot be continued, only contrasted
    assert all(pair.label == NOT_IN_ORDER for pairs in found for pair in pairs)


def test_other_documents_without_text_are_passed_over() -> None:
    documents = corpus([[4, 4], [], [0], [0, 5], []])
    for seed in range(30):
        for pair in next_sentence_pairs(
            documents[0], documents[1:], np.random.default_rng(seed), max_tokens=12
        ):
            if pair.label == NOT_IN_ORDER:
                assert (pair.second >= 30_000).all()


@pytest.mark.parametrize("others", [[], [[0]], [[], []]])
def test_nsp_without_another_document_is_refused(others) -> None:
    documents = corpus([[6] * 30, *others])
    with pytest.raises(DataError, match="at least two documents with text") as caught:
        next_sentence_pairs(documents[0], documents[1:], np.random.default_rng(0), max_tokens=16)
    assert "roberta" in caught.value.remedy


def test_no_room_for_a_pair() -> None:
    with pytest.raises(UsageError, match="at least 5 tokens of room, found 4"):
        sentence_order_pairs([np.array([1, 2])], np.random.default_rng(0), max_tokens=4)
