"""Mean and covariance of an index's vectors: exact, kept with the snapshot, never older than they may be."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from likewise.embedder.hash_encoder import HashEncoder
from likewise.index import background as module
from likewise.index.background import Background, BackgroundCollector
from likewise.index.catalogue import CATALOGUE_FILE, Catalogue
from likewise.index.rows import DeleteDocument, WriteDocument
from likewise.index.snapshot import publish, reason_to_publish
from likewise.index.view import IndexReader, open_view

MakeDocument = Callable[..., WriteDocument]
Floats = NDArray[np.float32]


def unit(rows: int, dimension: int = 6, seed: int = 0) -> Floats:
    vectors = np.random.default_rng(seed).normal(0.3, 1, (rows, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6).filter(any), st.integers(0, 100))
def test_moments_are_those_of_all_cosines(blocks: Sequence[int], seed: int) -> None:
    vectors, query = unit(sum(blocks), seed=seed), 0.7 * unit(1, seed=seed + 1)[0]
    parts = np.split(vectors, np.cumsum(blocks)[:-1])
    found = Background.of(parts, dimension=6)
    cosines = vectors.astype(np.float64) @ query
    mean, std = found.moments(query)
    assert (mean, std) == pytest.approx((cosines.mean(), cosines.std()), abs=1e-5)
    assert found.likeness == pytest.approx(float((vectors @ vectors.T).mean()), abs=1e-5)
    assert found.count == len(vectors)


def test_identical_vectors_have_no_spread() -> None:
    vectors = np.repeat(unit(1), 500, axis=0)
    assert Background.of([vectors], dimension=6).moments(vectors[0]).std < 1e-4


def test_a_large_index_is_sampled_evenly_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SAMPLE", 50)
    vectors = unit(170)
    collector = BackgroundCollector(6, expected=170)  # 170 // 50: every third one
    for start in range(0, 170, 7):
        collector.add(vectors[start : start + 7])
    found, wanted = collector.result(), Background.of([vectors[::3]], dimension=6)
    assert found.count == 57
    np.testing.assert_allclose(found.mean, wanted.mean, atol=1e-7)
    np.testing.assert_allclose(found.covariance, wanted.covariance, atol=1e-7)


def test_nothing_has_no_background(empty_index: Path) -> None:
    with pytest.raises(ValueError, match="at least one vector"):
        BackgroundCollector(3).result()
    with open_view(empty_index) as view:
        assert view.background() is None


@pytest.fixture
def folder(empty_index: Path, make_document: MakeDocument) -> Path:
    with Catalogue.open(empty_index, mode="write") as catalogue:
        catalogue.apply([make_document(f"d{n}", [f"text {n}", f"word {n * n}"]) for n in range(30)])
        publish(catalogue, empty_index)
    return empty_index


def truth(folder: Path) -> Floats:
    with open_view(folder) as view:
        ids = [p.id for row in view.documents() for p in view.document_passages(row.key)]
        return view.vectors(ids).mean(axis=0)


def stored_blobs(folder: Path) -> list[tuple[int, bytes]]:
    with sqlite3.connect(folder / CATALOGUE_FILE) as connection:
        return connection.execute("SELECT generation, mean FROM background ORDER BY generation").fetchall()


def change(folder: Path, statement: str) -> None:
    connection = sqlite3.connect(folder / CATALOGUE_FILE)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_publishing_keeps_it_with_the_snapshot_and_forgets_it_with_it(folder: Path) -> None:
    assert [generation for generation, _ in stored_blobs(folder)] == [1]
    with Catalogue.open(folder, mode="write") as catalogue:
        for _ in range(3):
            publish(catalogue, folder)
    assert [generation for generation, _ in stored_blobs(folder)] == [3, 4]
    with open_view(folder) as view:
        found = view.background()
    assert found is not None and found.count == 60
    np.testing.assert_allclose(found.mean, truth(folder), atol=1e-6)
    assert found.mean.tobytes() == stored_blobs(folder)[-1][1]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE background SET covariance = zeroblob(length(covariance))",
        "UPDATE background SET mean = x'00'",
        "DELETE FROM background",
        "DELETE FROM snapshot",
    ],
)
def test_a_missing_or_damaged_one_is_computed_again(folder: Path, damage: str) -> None:
    with open_view(folder) as view:
        before = view.background()
    change(folder, damage)
    with open_view(folder) as view:
        after = view.background()
    assert before is not None and after is not None
    np.testing.assert_allclose(after.covariance, before.covariance, atol=1e-7)


def test_an_index_from_before_gets_one_with_the_next_sync(folder: Path) -> None:
    change(folder, "DELETE FROM background")
    with Catalogue.open(folder, mode="write") as catalogue:
        assert reason_to_publish(catalogue, folder) == "the distribution of its vectors is not known"
        publish(catalogue, folder)
        assert reason_to_publish(catalogue, folder) == ""


def test_it_follows_the_index_when_a_tenth_has_changed(folder: Path, make_document: MakeDocument) -> None:
    with IndexReader(folder) as reader:

        def mean() -> Floats:
            with reader.view() as view:
                found = view.background()
                assert found is not None
                return found.mean

        first = mean()
        for number, moved in ((6, False), (1, True)):
            with Catalogue.open(folder, mode="write") as catalogue:
                catalogue.apply([make_document(f"new{number}{n}", ["another text"]) for n in range(number)])
            assert bool((mean() != first).any()) is moved
        np.testing.assert_allclose(mean(), truth(folder), atol=1e-6)
        with Catalogue.open(folder, mode="write") as catalogue:
            catalogue.apply([DeleteDocument(f"d{n}") for n in range(30)])
        np.testing.assert_allclose(mean(), HashEncoder().encode_passages(["another text"])[0], atol=1e-6)


def test_term_counts_through_a_view(folder: Path) -> None:
    with open_view(folder) as view:
        assert view.passages_with(["text", "4", "nowhere"]) == {"text": 30, "4": 2}
