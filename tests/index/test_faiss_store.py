from __future__ import annotations

import hashlib
import subprocess
import sys
import threading

import faiss
import numpy as np
import pytest

from likewise.errors import IndexFolderError
from likewise.index.faiss_store import EXACT_SPEC, SPECS, FaissStore, choose_spec, single_threaded


def unit_vectors(count, dimension=16, seed=0):
    vectors = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def filled(spec, count=300):
    vectors = unit_vectors(count)
    store = FaissStore.create(16, spec, training=vectors, capacity=count)
    store.add(np.arange(count) * 2, vectors)
    return store


def save(store, path):
    with path.open("wb") as file:
        store.write(file.write)


@pytest.mark.parametrize("spec", SPECS)
def test_a_written_store_answers_as_before(tmp_path, spec):
    store = filled(spec)
    save(store, tmp_path / "索引.faiss")
    again = FaissStore.read(tmp_path / "索引.faiss", spec, count=300, dimension=16)
    assert (len(again), again.dimension, again.spec, again.exact) == (300, 16, spec, spec == EXACT_SPEC)
    allowed = np.arange(0, 600, 6)
    for query in unit_vectors(5, seed=1):
        for restriction in (None, allowed):
            before, after = store.search(query, 10, restriction), again.search(query, 10, restriction)
            assert np.array_equal(before.ids, after.ids)
            assert np.array_equal(before.scores, after.scores)
    assert np.array_equal(store.gather(allowed)[1], again.gather(allowed)[1])


@pytest.mark.parametrize("spec", SPECS)
def test_the_same_vectors_give_the_same_file(tmp_path, spec):
    digests = set()
    for name in ("a", "b"):
        save(filled(spec), tmp_path / name)
        digests.add(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest())
    assert len(digests) == 1


def test_a_store_that_was_read_takes_no_id_twice(tmp_path):
    save(filled(EXACT_SPEC), tmp_path / "a")
    again = FaissStore.read(tmp_path / "a", EXACT_SPEC, count=300, dimension=16)
    with pytest.raises(ValueError, match="not added before"):
        again.add(np.array([598]), unit_vectors(1))


def test_a_file_that_faiss_refuses_or_that_holds_something_else(tmp_path):
    path = tmp_path / "a"
    save(filled(EXACT_SPEC), path)
    for wrong in ({"count": 299, "dimension": 16}, {"count": 300, "dimension": 8}):
        with pytest.raises(IndexFolderError, match="found 300 of 16"):
            FaissStore.read(path, EXACT_SPEC, **wrong)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(IndexFolderError, match="cannot read"):
        FaissStore.read(path, EXACT_SPEC, count=300, dimension=16)
    faiss.write_index(faiss.IndexFlatIP(16), str(path))
    with pytest.raises(IndexFolderError, match="IndexFlatIP"):
        FaissStore.read(path, EXACT_SPEC, count=0, dimension=16)
    with pytest.raises(IndexFolderError, match="cannot read"):
        FaissStore.read(tmp_path / "missing", EXACT_SPEC, count=0, dimension=16)


def test_an_error_while_writing_reaches_the_caller():
    def full(data):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        filled(EXACT_SPEC).write(full)


def test_unknown_types_and_missing_samples_are_refused():
    with pytest.raises(ValueError, match="HNSW32"):
        FaissStore.create(16, "IDMap2,HNSW32")
    with pytest.raises(ValueError, match="sample"):
        FaissStore.create(16, "IDMap2,SQ8")


def test_larger_indexes_are_compressed():
    sizes = [choose_spec(count, 384) for count in (0, 10_000, 80_000, 100_000, 1_000_000, 2_000_000)]
    assert sizes == ["IDMap2,Flat"] * 3 + ["IDMap2,SQfp16"] * 2 + ["IDMap2,SQ8"]


def test_the_number_of_threads_is_left_as_it_was():
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(3)
    try:
        with single_threaded():
            assert faiss.omp_get_max_threads() == 1
            seen = []
            thread = threading.Thread(target=lambda: seen.append(faiss.omp_get_max_threads()))
            thread.start()
            thread.join()
            assert seen != [1] or before == 1  # another thread keeps its own setting
        assert faiss.omp_get_max_threads() == 3
        filled(EXACT_SPEC).search(unit_vectors(1)[0], 3)
        assert faiss.omp_get_max_threads() == 3
        with pytest.raises(RuntimeError), single_threaded():
            raise RuntimeError
        assert faiss.omp_get_max_threads() == 3
    finally:
        faiss.omp_set_num_threads(before)


def test_faiss_is_imported_only_when_it_is_needed():
    code = (
        "import sys, likewise.index.view, likewise.index.snapshot, likewise.index.doctor;"
        "assert not {'faiss', 'filelock', 'torch'} & sys.modules.keys(), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
