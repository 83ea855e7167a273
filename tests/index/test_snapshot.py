from __future__ import annotations

import errno
from dataclasses import replace

import numpy as np
import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.errors import IndexFolderError
from likewise.index import snapshot, vector_memory
from likewise.index.catalogue import Catalogue
from likewise.index.catalogue_read import stream_vectors
from likewise.index.dense import rank_densely
from likewise.index.faiss_store import SPECS
from likewise.index.files import FileSystem
from likewise.index.lock import WriterLock
from likewise.index.rows import DeleteDocument
from likewise.index.snapshot import (
    SnapshotUnusable,
    damage_of,
    find_orphans,
    measure_recall,
    open_snapshot,
    publish,
    reason_to_publish,
)
from likewise.index.vectors import NumpyStore
from likewise.index.view import IndexReader, open_view


@pytest.fixture
def folder(empty_index, make_document):
    with Catalogue.open(empty_index, mode="write") as catalogue:
        catalogue.apply([make_document("a", [f"passage number {number}" for number in range(50)])])
    return empty_index


@pytest.fixture
def catalogue(folder):
    with Catalogue.open(folder, mode="write") as catalogue:
        yield catalogue


def vector_files(folder):
    return sorted(path.name for path in folder.glob("vectors-*"))


def answer(view, text="passage number 7", k=5):
    return view.dense(HashEncoder().encode_queries([text])[0], k)


@pytest.mark.parametrize("spec", SPECS)
def test_publishing_does_not_change_any_answer(catalogue, folder, spec):
    with open_view(folder) as view:
        before = answer(view, k=20)
    row = publish(catalogue, folder, spec=spec)
    assert (row.generation, row.count, row.dimension, row.spec) == (1, 50, 64, spec)
    assert row.fingerprint == HashEncoder().fingerprint
    assert catalogue.snapshots() == [row]
    with IndexReader(folder) as reader, reader.view() as view:
        assert reader._memory.base.spec == spec
        after = answer(view, k=20)
        assert view.notices == ()
    assert np.array_equal(before.ids, after.ids)
    assert np.array_equal(before.scores, after.scores)


def test_the_log_is_trimmed_and_goes_on(catalogue, folder, make_document):
    publish(catalogue, folder)
    assert (catalogue.counts().added, catalogue.counts().removed) == (0, 0)
    catalogue.apply([make_document("b", ["a new passage"]), DeleteDocument("missing")])
    assert catalogue.counts().added == 1
    with IndexReader(folder) as reader, reader.view() as view:
        assert (len(reader._memory.base), len(reader._memory.tail)) == (50, 1)
        assert answer(view, "a new passage", 1).ids.tolist() == [51]


def test_changes_during_the_build_stay_in_the_log(catalogue, folder, make_document, monkeypatch):
    """What is committed after the snapshot's transaction must not be trimmed with what it includes."""
    write = snapshot._write

    def meanwhile(*arguments):
        with Catalogue.open(folder, mode="write") as other:
            other.apply([make_document("late", ["late passage"])])
        return write(*arguments)

    monkeypatch.setattr(snapshot, "_write", meanwhile)
    row = publish(catalogue, folder)
    assert row.count == 50
    assert catalogue.counts().added == 1
    with open_view(folder) as view:
        assert answer(view, "late passage", 1).ids.tolist() == [51]


def test_only_the_last_two_generations_and_no_orphans_are_kept(catalogue, folder):
    (folder / "vectors-1-orphan.faiss").write_bytes(b"x")
    (folder / "vectors-2-orphan.faiss.tmp").write_bytes(b"x")
    (folder / "vectors-notes.txt").write_bytes(b"not ours")
    files = [publish(catalogue, folder).file for _ in range(4)]
    assert vector_files(folder) == sorted([*files[-2:], "vectors-notes.txt"])
    assert [row.file for row in catalogue.snapshots()] == [files[3], files[2]]
    assert len(set(files)) == 4


def test_an_empty_index_can_be_published(empty_index):
    with Catalogue.open(empty_index, mode="write") as catalogue:
        assert reason_to_publish(catalogue, empty_index) == ""
        for spec in ("IDMap2,Flat", "IDMap2,SQfp16"):
            assert publish(catalogue, empty_index, spec=spec).recall == 1.0
    with open_view(empty_index) as view:
        assert answer(view).ids.tolist() == []


def test_an_index_without_an_encoder_cannot(tmp_path):
    with Catalogue.open(tmp_path / "i", mode="create") as catalogue:
        assert reason_to_publish(catalogue, tmp_path / "i") == ""
        with pytest.raises(ValueError, match="encoder"):
            publish(catalogue, tmp_path / "i")


def test_missing_vectors_are_not_made_permanent(catalogue, folder):
    catalogue.connection.execute("DELETE FROM vector WHERE passage_id = 3")
    with pytest.raises(IndexFolderError, match="expected 50 vectors for 50 passages, found 49"):
        publish(catalogue, folder)
    assert vector_files(folder) == []


# Damage


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES = {
    "flipped bit": flip,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "cut to the header": lambda path: path.write_bytes(path.read_bytes()[:28]),
    "empty": lambda path: path.write_bytes(b""),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_never_used_and_made_again(catalogue, folder, damage):
    with open_view(folder) as view:
        expected = answer(view)
    row = publish(catalogue, folder)
    damage(folder / row.file)
    with pytest.raises(SnapshotUnusable, match=row.file):
        open_snapshot(folder, row)
    assert row.file in reason_to_publish(catalogue, folder)
    with open_view(folder) as view:
        assert "made again from the catalogue" in view.notices[0]
        assert np.array_equal(answer(view).ids, expected.ids)
    assert catalogue.snapshots()[0].generation == 2
    with open_view(folder) as view:
        assert view.notices == ()
        assert np.array_equal(answer(view).ids, expected.ids)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_while_another_process_writes_a_damaged_file_is_replaced_in_memory(catalogue, folder, damage):
    with open_view(folder) as view:
        expected = answer(view)
    row = publish(catalogue, folder)
    damage(folder / row.file)
    with WriterLock(folder), IndexReader(folder) as reader:
        for _ in range(2):
            with reader.view() as view:
                assert "read from the catalogue instead" in view.notices[0]
                assert np.array_equal(answer(view).ids, expected.ids)
    assert catalogue.snapshots() == [row]


@pytest.mark.parametrize(
    "change",
    [{"spec": "IDMap2,HNSW32"}, {"faiss_version": "99.0.0"}, {"count": 49}, {"dimension": 63}],
    ids=["spec", "version", "count", "dimension"],
)
def test_a_snapshot_of_another_kind_is_not_used(catalogue, folder, change):
    row = publish(catalogue, folder)
    with pytest.raises(SnapshotUnusable):
        open_snapshot(folder, replace(row, **change))


def test_a_snapshot_of_another_encoder_is_not_used(catalogue, folder):
    publish(catalogue, folder)
    other = HashEncoder(dimension=32)
    passages = catalogue.passages_to_embed(other.fingerprint, 32)
    vectors = other.encode_passages([stored.passage.text for stored in passages])
    catalogue.add_vectors(
        other.fingerprint, {one.id: row for one, row in zip(passages, vectors, strict=True)}
    )
    catalogue.switch_encoder({"name": other.name, "fingerprint": other.fingerprint, "dimension": 32})
    assert reason_to_publish(catalogue, folder) == "there is no snapshot of these vectors"
    with open_view(folder) as view:
        ranking = view.dense(other.encode_queries(["passage number 7"])[0], 1)
        assert view.passages(ranking.ids)[int(ranking.ids[0])].passage.text == "passage number 7"


def test_a_file_that_goes_away_between_row_and_open_is_looked_up_again(catalogue, folder, monkeypatch):
    """Two publications between reading the row and opening the file remove it: the new row must be used."""
    publish(catalogue, folder)
    opened = []
    real = vector_memory.open_snapshot

    def delayed(folder, row):
        if not opened:
            publish(catalogue, folder)
            publish(catalogue, folder)
        opened.append(row.generation)
        return real(folder, row)

    monkeypatch.setattr(vector_memory, "open_snapshot", delayed)
    with open_view(folder) as view:
        assert view.notices == ()
        assert len(answer(view).ids) == 5
    assert opened == [1, 3]


# When to publish


def test_reasons_to_publish(catalogue, folder, make_document):
    assert reason_to_publish(catalogue, folder) == "there is no snapshot of these vectors"
    publish(catalogue, folder)
    assert reason_to_publish(catalogue, folder) == ""
    catalogue.apply([make_document("b", [f"another {number}" for number in range(1000)])])
    assert reason_to_publish(catalogue, folder) == ""
    catalogue.apply([make_document("c", ["one more"])])
    assert reason_to_publish(catalogue, folder).startswith("1001 passages were added or removed")


def test_a_large_file_is_only_looked_at_by_size(catalogue, folder):
    row = publish(catalogue, folder)
    flip(folder / row.file)
    assert damage_of(folder, row, quick=True) == ""
    assert "changed or damaged" in damage_of(folder, row)


# A full disk, and recall


class FullDisk(FileSystem):
    """Takes the first 1000 bytes of a file."""

    def write(self, file, data):
        if file.tell() + len(data) > 1000:
            file.write(data[: 1000 - file.tell()])
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(file, data)


def test_a_full_disk_leaves_no_file_and_the_index_answers(catalogue, folder):
    row = publish(catalogue, folder)
    with pytest.raises(IndexFolderError, match="No space left") as caught:
        publish(catalogue, folder, files=FullDisk())
    assert "free some disk space" in caught.value.remedy
    assert vector_files(folder) == [row.file]
    assert catalogue.snapshots() == [row]
    assert find_orphans(folder, [row.file]) == []
    with open_view(folder) as view:
        assert len(answer(view).ids) == 5


class Blurred(NumpyStore):
    """Loses every other vector."""

    exact = False

    def search(self, vector, k, allowed=None):
        ranking = super().search(vector, len(self), allowed)
        keep = ranking.ids % 2 == 0
        return type(ranking)(ranking.ids[keep][:k], ranking.scores[keep][:k])


def test_recall_is_measured_against_exact_search(empty_index, make_document):
    vectors = np.random.default_rng(0).standard_normal((400, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    document = make_document("a", [f"text {number}" for number in range(400)])
    rows = [replace(row, vector=vector) for row, vector in zip(document.passages, vectors, strict=True)]
    with Catalogue.open(empty_index, mode="write") as catalogue:
        catalogue.apply([replace(document, passages=rows)])
        with catalogue.reading() as connection:
            encoder = catalogue.encoder()
            ids = np.arange(1, 401)
            for kind, low, high in ((NumpyStore, 1.0, 1.0), (Blurred, 0.35, 0.65)):
                store = kind(64)
                store.add(ids, vectors)
                assert low <= measure_recall(connection, encoder, store) <= high
        assert publish(catalogue, empty_index, spec="IDMap2,SQfp16").recall == 1.0
        assert publish(catalogue, empty_index, spec="IDMap2,SQ8").recall >= 0.99


def test_a_lossy_store_does_not_blur_the_scores(catalogue, folder):
    publish(catalogue, folder, spec="IDMap2,SQ8")
    with open_view(folder) as view:
        ranking = answer(view)
        vectors = view.vectors(ranking.ids).astype(np.float64)
        query = HashEncoder().encode_queries(["passage number 7"])[0].astype(np.float64)
        assert np.array_equal(ranking.scores, (vectors @ query).astype(np.float32).clip(-1, 1))


def test_many_equal_passages_are_ranked_by_id_whatever_the_store(empty_index, make_document):
    with Catalogue.open(empty_index, mode="write") as catalogue:
        catalogue.apply([make_document("a", ["the same words"] * 300)])
        for spec in (None, *SPECS):
            if spec:
                publish(catalogue, empty_index, spec=spec)
            with open_view(empty_index) as view:
                assert answer(view, "the same words", 10).ids.tolist() == list(range(1, 11))


def test_dead_candidates_do_not_use_up_the_answer(catalogue, folder, make_document):
    """The snapshot's best 100 are gone; the k best of the living must still all be found."""
    catalogue.apply(
        [make_document("dead", ["passage number 7"] * 100), make_document("alive", ["number 7"] * 3)]
    )
    publish(catalogue, folder)
    catalogue.apply([DeleteDocument("dead")])
    with open_view(folder) as view:
        living = [stored.id for stored in view.document_passages("alive")]
        ranking = answer(view, "passage number 7", 10)
        assert len(ranking.ids) == 10
        assert set(living) <= set(answer(view, "number 7", 5).ids.tolist())
        assert len(view.passages(ranking.ids)) == 10


def test_stores_may_hold_dead_and_double_ids(catalogue, folder):
    with catalogue.reading() as connection:
        encoder = catalogue.encoder()
        query = HashEncoder().encode_queries(["passage number 7"])[0]
        store = NumpyStore(64)
        for ids, vectors in stream_vectors(connection, encoder, rows=7):
            store.add(ids, vectors)
        assert len(store) == 50
        store.add(np.array([900]), query[np.newaxis])  # never existed, and would be the best
        twice = rank_densely(connection, encoder, (store, store), query, 5, None)
        once = rank_densely(connection, encoder, (store,), query, 5, None)
    assert np.array_equal(twice.ids, once.ids)
    assert 900 not in once.ids
