"""Publish, verify and open vector snapshots: FAISS files that can always be made again from the catalogue.

A published file is never changed, replaced or trusted: it gets a name that no file had before, the catalogue
records its size and SHA-256 after it is safely on disk, and a reader compares both before FAISS sees a byte
(the format has no checksum: flipped bytes load and answer wrongly, cut files can kill the process).

A crash at any point leaves either the old snapshot with its log, or the new one with the log trimmed; a file
that the catalogue does not know is an orphan, removed by the next publication.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.errors import IndexFolderError
from likewise.index.background import BackgroundCollector, to_row
from likewise.index.catalogue import Catalogue
from likewise.index.catalogue_read import (
    EncoderRow,
    count_passages,
    last_operation,
    read_vectors,
    sample_ids,
    stream_vectors,
)
from likewise.index.dense import rank_densely
from likewise.index.faiss_store import SPECS, TRAINING_VECTORS, FaissStore, choose_spec
from likewise.index.files import FileSystem
from likewise.index.lock import WriterLock
from likewise.index.rows import BackgroundRow, SnapshotRow
from likewise.index.vectors import VectorStore, best

# A reader may have read the row of the last generation but one and not opened its file yet.
GENERATIONS_KEPT = 2

_PREFIX, _SUFFIX, _UNFINISHED = "vectors-", ".faiss", ".tmp"

# Changes, as a share of the snapshot and at least in number, after which its tail costs more than it should.
_STALE_SHARE, _STALE_NUMBER = 0.1, 1000

# A file up to this size is hashed in a few hundredths of a second, so every sync can afford to look.
_QUICK_BYTES = 32 << 20

_RECALL_QUERIES, _RECALL_K = 64, 10


class SnapshotUnusable(IndexFolderError):
    """A snapshot file is missing, damaged, or not what is needed; its vectors are in the catalogue."""


def publish(
    catalogue: Catalogue, folder: Path, *, spec: str | None = None, files: FileSystem | None = None
) -> SnapshotRow:
    """Write all vectors to a new snapshot file and let readers use it.

    Vectors are streamed: apart from the store itself, memory does not grow with the index.

    Args:
        catalogue: Open for writing; the caller holds the `WriterLock` of the folder.
        folder: The index folder.
        spec: One of `faiss_store.SPECS`; chosen by size if not given.
        files: Other than the default for tests.

    Returns:
        What the catalogue now records.

    Raises:
        ValueError: The index has no encoder yet, or `spec` is unknown.
        IndexFolderError: The file cannot be written; the index goes on answering from what it had.
    """
    files = files or FileSystem()
    remove_orphans(folder, (row.file for row in catalogue.snapshots()), files)
    with catalogue.reading() as connection:
        encoder = catalogue.encoder()
        if encoder is None:
            raise ValueError("expected an index with an encoder, found none in its settings")
        through = last_operation(connection)
        store, background = _build(connection, encoder, spec)
        recall = 1.0 if store.exact else measure_recall(connection, encoder, store)
    name = f"{_PREFIX}{through}-{secrets.token_hex(8)}{_SUFFIX}"
    size, digest = _write(store, folder, name, files)
    row = SnapshotRow(
        generation=0,
        file=name,
        through=through,
        count=len(store),
        dimension=encoder.dimension,
        bytes=size,
        sha256=digest,
        spec=store.spec,
        faiss_version=_faiss_version(),
        fingerprint=encoder.fingerprint,
        recall=recall,
        created=time.time(),
    )
    recorded = catalogue.record_snapshot(row, keep=GENERATIONS_KEPT, background=background)
    remove_orphans(folder, (kept.file for kept in recorded), files)
    return recorded[0]


def reason_to_publish(catalogue: Catalogue, folder: Path) -> str:
    """Why a new snapshot is due, for a person, or "" if the present one will do. Does not import FAISS."""
    encoder = catalogue.encoder()
    if encoder is None:
        return ""
    counts = catalogue.counts()
    row = newest(catalogue.snapshots(), encoder)
    if row is None:
        return "there is no snapshot of these vectors" if counts.passages else ""
    damage = damage_of(folder, row, quick=row.bytes > _QUICK_BYTES)
    if damage:
        return damage
    if row.count and not catalogue.has_background(row):
        return "the distribution of its vectors is not known"
    changes = counts.added + counts.removed
    limit = max(_STALE_NUMBER, int(_STALE_SHARE * row.count))
    return f"{changes} passages were added or removed since the last one" if changes > limit else ""


def open_snapshot(folder: Path, row: SnapshotRow) -> FaissStore:
    """Verify a published file and read it.

    Raises:
        SnapshotUnusable: It is missing, damaged, or of a kind that this version does not read.
    """
    if row.spec not in SPECS:
        raise SnapshotUnusable(f"the vector file {row.file} is of the unknown kind {row.spec}")
    damage = damage_of(folder, row)
    if damage:
        raise SnapshotUnusable(damage)
    if _version(row.faiss_version) > _version(_faiss_version()):
        raise SnapshotUnusable(
            f"the vector file {row.file} was written by the newer FAISS {row.faiss_version}"
        )
    try:
        return FaissStore.read(folder / row.file, row.spec, count=row.count, dimension=row.dimension)
    except IndexFolderError as error:
        raise SnapshotUnusable(error.message) from error


def newest(rows: Iterable[SnapshotRow], encoder: EncoderRow) -> SnapshotRow | None:
    """The newest snapshot, if it holds the vectors of this encoder.

    An older one of the right encoder would not do: the log was trimmed for the newest.
    """
    row = next(iter(rows), None)
    matches = row is not None and (row.fingerprint, row.dimension) == (encoder.fingerprint, encoder.dimension)
    return row if matches else None


def damage_of(folder: Path, row: SnapshotRow, *, quick: bool = False) -> str:
    """What is wrong with a published file, for a person, or "" if it is what was published.

    Args:
        folder: The index folder.
        row: What the catalogue records.
        quick: Compare the size only.
    """
    try:
        with (folder / row.file).open("rb") as file:
            size = file.seek(0, 2)
            if size != row.bytes:
                return f"the vector file {row.file} has {size} bytes, {row.bytes} were written"
            if quick:
                return ""
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return f"the vector file {row.file} is missing"
    except OSError as error:
        return f"the vector file {row.file} cannot be read: {error.strerror or error}"
    return "" if digest == row.sha256 else f"the vector file {row.file} was changed or damaged"


def repair(folder: Path) -> bool:
    """Publish again, if nobody is writing and the folder may be written; returns whether it was done."""
    try:
        with WriterLock(folder, timeout=0), Catalogue.open(folder, mode="write") as catalogue:
            publish(catalogue, folder)
    except IndexFolderError:
        return False
    return True


def remove_orphans(folder: Path, known: Iterable[str], files: FileSystem) -> list[str]:
    """Remove vector files that the catalogue does not know; returns their names. Only under the lock."""
    orphans = find_orphans(folder, known)
    for name in orphans:
        try:
            files.unlink(folder / name)
        except PermissionError:
            continue  # Windows keeps a file that a reader has open; the next publication removes it
    return orphans


def find_orphans(folder: Path, known: Iterable[str]) -> list[str]:
    """Names of vector files, finished or not, that the catalogue does not know."""
    kept = set(known)
    return sorted(
        path.name
        for path in folder.glob(f"{_PREFIX}*")
        if path.name not in kept and path.name.endswith((_SUFFIX, _SUFFIX + _UNFINISHED))
    )


def measure_recall(connection: sqlite3.Connection, encoder: EncoderRow, store: VectorStore) -> float:
    """Recall@10 of searching with a store against exact search, over a sample of the passages as queries.

    A passage is no answer to itself. Hits count by their score, so that it does not matter which of several
    equal passages was found.

    Returns:
        Between 0 and 1; 1.0 for an index with no more than ten passages.
    """
    sample, queries = read_vectors(connection, encoder, sample_ids(connection, _RECALL_QUERIES))
    wanted = _RECALL_K + 1
    exact = [best(sample[:0], queries[:0, 0], 1) for _ in sample]
    for ids, vectors in stream_vectors(connection, encoder):
        scores = vectors @ queries.T
        for column, before in enumerate(exact):
            merged_ids = np.concatenate([before.ids, ids])
            merged_scores = np.concatenate([before.scores, scores[:, column]])
            exact[column] = best(merged_ids, merged_scores, wanted)
    found = expected = 0
    for own, query, truth in zip(sample.tolist(), queries, exact, strict=True):
        others = truth.scores[truth.ids != own][:_RECALL_K]
        if not len(others):
            continue
        answer = rank_densely(connection, encoder, (store,), query, wanted, None)
        reached = answer.scores[answer.ids != own][:_RECALL_K] >= others[-1] - 1e-5
        found += int(reached.sum())
        expected += len(others)
    return found / expected if expected else 1.0


def _build(
    connection: sqlite3.Connection, encoder: EncoderRow, spec: str | None
) -> tuple[FaissStore, BackgroundRow | None]:
    count = count_passages(connection)
    spec = spec or choose_spec(count, encoder.dimension)
    training: NDArray[np.float32] | None = None
    if spec == "IDMap2,SQ8":
        _, training = read_vectors(connection, encoder, sample_ids(connection, TRAINING_VECTORS))
    store = FaissStore.create(encoder.dimension, spec, training=training, capacity=count)
    background = BackgroundCollector(encoder.dimension, count)
    for ids, vectors in stream_vectors(connection, encoder):
        store.add(ids, vectors)
        background.add(vectors)
    if len(store) != count:
        # Every write keeps the two in step, so this is damage; a snapshot must not make it permanent.
        raise IndexFolderError(
            f"expected {count} vectors for {count} passages, found {len(store)}", remedy="likewise doctor"
        )
    return store, to_row(background.result()) if count else None


def _write(store: FaissStore, folder: Path, name: str, files: FileSystem) -> tuple[int, str]:
    """Put a store on disk under its final name; returns size and SHA-256 of what should be there."""
    unfinished = folder / (name + _UNFINISHED)
    digest = hashlib.sha256()
    size = 0
    try:
        with files.create(unfinished) as file:

            def write(data: bytes) -> int:
                nonlocal size
                # Of the bytes as intended: what the disk makes of them is then found out by comparing.
                digest.update(data)
                size += len(data)
                return files.write(file, data)

            store.write(write)
            files.sync(file)
        files.rename(unfinished, folder / name)
        files.sync_folder(folder)
    except OSError as error:
        files.unlink(unfinished)
        raise IndexFolderError(
            f"the vectors of {folder} cannot be written: {error.strerror or error}; all passages are kept and"
            " go on being found",
            remedy="free some disk space, then run likewise index again",
        ) from error
    return size, digest.hexdigest()


def _faiss_version() -> str:
    import faiss

    return str(faiss.__version__)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in text.split("."))
