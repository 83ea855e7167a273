"""What every vector store must do, against a plain Python oracle."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.index.faiss_store import SPECS, FaissStore
from likewise.index.vectors import NumpyStore

DIMENSION = 16


def unit_vectors(count, seed=0, dimension=DIMENSION):
    vectors = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def make_store(spec, dimension=DIMENSION):
    if spec == "NumPy":
        return NumpyStore(dimension)
    # Eight bits cover the range of the sample, so it contains the extremes.
    axes = np.eye(dimension, dtype=np.float32)
    sample = np.concatenate([unit_vectors(256, seed=9, dimension=dimension), axes, -axes])
    return FaissStore.create(dimension, spec, training=sample)


def oracle(ids, vectors, query, k):
    scores = [sum(float(a) * float(b) for a, b in zip(row, query, strict=True)) for row in vectors]
    return sorted(zip(ids, scores, strict=True), key=lambda pair: (-pair[1], pair[0]))[:k]


@pytest.fixture(params=["NumPy", *SPECS])
def store(request):
    return make_store(request.param)


def tolerance(store):
    """Largest error of a score by storing vectors in 32, 16 or 8 bits."""
    return {"IDMap2,SQfp16": 2e-3, "IDMap2,SQ8": 5e-2}.get(store.spec, 2e-6)


def test_ranks_like_the_oracle(store):
    ids, vectors = np.arange(500) * 7 + 3, unit_vectors(500)
    for start in range(0, 500, 123):
        store.add(ids[start : start + 123], vectors[start : start + 123])
    assert (len(store), store.dimension) == (500, DIMENSION)
    for query in unit_vectors(5, seed=1):
        ranking = store.search(query, 20)
        expected = oracle(ids.tolist(), vectors, query, 20)
        assert (ranking.ids.dtype, ranking.scores.dtype) == (np.int64, np.float32)
        assert ranking.scores == pytest.approx([score for _, score in expected], abs=tolerance(store))
        if store.exact:
            assert ranking.ids.tolist() == [id_ for id_, _ in expected]


def test_equal_vectors_come_in_order_of_id(store):
    vectors = np.repeat(unit_vectors(1), 9, axis=0)
    store.add(np.arange(9) + 100, vectors)
    assert store.search(vectors[0], 9).ids.tolist() == list(range(100, 109))


def test_fewer_vectors_than_asked_for_give_a_short_answer_without_placeholders(store):
    vectors = unit_vectors(3)
    assert store.search(vectors[0], 5).ids.tolist() == []
    store.add(np.array([1, 2, 3]), vectors)
    assert sorted(store.search(vectors[0], 5).ids.tolist()) == [1, 2, 3]


@pytest.mark.parametrize("share", [0.0, 0.002, 0.01, 0.5, 1.0])
def test_only_allowed_ids_answer_and_all_of_them_can(store, share):
    ids, vectors = np.arange(1000) * 3, unit_vectors(1000)
    store.add(ids, vectors)
    query = unit_vectors(1, seed=2)[0]
    # The farthest ones, which an approximate search would not reach.
    scores = vectors @ query
    allowed = np.sort(ids[np.argsort(scores)[: int(share * 1000)]])
    ranking = store.search(query, 10, np.append(allowed, 10_000))  # an id that the store never had
    expected = oracle(allowed.tolist(), vectors[allowed // 3], query, 10)
    assert set(ranking.ids.tolist()) <= set(allowed.tolist())
    assert ranking.scores == pytest.approx([score for _, score in expected], abs=tolerance(store))


def test_gather_returns_what_was_added(store):
    ids, vectors = np.array([2, 4, 8, 16]), unit_vectors(4)
    store.add(ids, vectors)
    found, gathered = store.gather(np.array([0, 4, 5, 16, 99]))
    assert found.tolist() == [4, 16]
    assert gathered == pytest.approx(vectors[[1, 3]], abs=tolerance(store))
    if store.exact:
        assert np.array_equal(gathered, vectors[[1, 3]])
    assert store.gather(np.array([], np.int64))[1].shape == (0, DIMENSION)


@pytest.mark.parametrize(
    ("ids", "vectors", "message"),
    [
        ([1, 2], np.ones((1, DIMENSION), np.float32), "shape"),
        ([1], np.ones((1, 3), np.float32), "shape"),
        ([2, 1], np.ones((2, DIMENSION), np.float32), "ascending"),
        ([1, 1], np.ones((2, DIMENSION), np.float32), "ascending"),
        ([0], np.ones((1, DIMENSION), np.float32), "not added before"),
        ([1], np.full((1, DIMENSION), np.nan, np.float32), "finite"),
        ([1], np.full((1, DIMENSION), np.inf, np.float32), "finite"),
    ],
)
def test_what_would_answer_wrongly_is_refused(store, ids, vectors, message):
    store.add(np.array([0]), unit_vectors(1))
    with pytest.raises(ValueError, match=message):
        store.add(np.array(ids), vectors)
    assert len(store) == 1


@pytest.mark.parametrize(
    ("vector", "k"),
    [
        (np.ones(3, np.float32), 1),
        (np.full(DIMENSION, np.nan, np.float32), 1),
        (np.ones(DIMENSION, np.float32), 0),
    ],
)
def test_queries_that_make_no_sense_are_refused(store, vector, k):
    store.add(np.array([0]), unit_vectors(1))
    with pytest.raises(ValueError, match="expected"):
        store.search(vector, k)


def test_threads_may_search_at_once(store):
    ids, vectors = np.arange(2000), unit_vectors(2000)
    store.add(ids, vectors)
    queries = unit_vectors(40, seed=3)
    alone = [store.search(query, 10).ids.tolist() for query in queries]
    together = [[None] * len(queries) for _ in range(4)]

    def search(results):
        for number, query in enumerate(queries):
            results[number] = store.search(query, 10).ids.tolist()

    threads = [threading.Thread(target=search, args=(results,)) for results in together]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results == alone for results in together)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["NumPy", *SPECS]),
    st.lists(st.integers(0, 200), unique=True, max_size=40).map(sorted),
    st.lists(st.integers(0, 200), unique=True, max_size=40).map(sorted),
    st.integers(1, 50),
    st.integers(0, 3),
)
def test_any_subset_of_any_ids(spec, ids, allowed, k, seed):
    store = make_store(spec)
    # Two coordinates only, so that many scores are equal.
    vectors = np.zeros((len(ids), DIMENSION), np.float32)
    vectors[np.arange(len(ids)), np.random.default_rng(seed).integers(0, 2, len(ids))] = 1
    store.add(np.array(ids, np.int64), vectors)
    query = np.zeros(DIMENSION, np.float32)
    query[0] = 1
    ranking = store.search(query, k, np.array(allowed, np.int64))
    candidates = [(id_, row) for id_, row in zip(ids, vectors, strict=True) if id_ in allowed]
    expected = oracle([id_ for id_, _ in candidates], [row for _, row in candidates], query, k)
    assert len(set(ranking.ids.tolist())) == len(ranking.ids) == len(expected)
    assert ranking.scores == pytest.approx([score for _, score in expected], abs=tolerance(store))
    assert set(ranking.ids.tolist()) <= set(ids) & set(allowed)
