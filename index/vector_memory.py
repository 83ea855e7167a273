"""The vectors that a reader keeps in memory from one view to the next, and how they keep up with the index.

A memory is never changed, only replaced, so threads may go on searching the one they have. It may hold more
than a view may see (passages that were removed, or added a moment later): the catalogue decides what is
alive. It must not hold less.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path

from likewise.index.catalogue_read import (
    EncoderRow,
    added_since,
    last_operation,
    read_snapshots,
    read_vectors,
    stream_vectors,
)
from likewise.index.snapshot import newest, open_snapshot
from likewise.index.vectors import NumpyStore, VectorStore


@dataclass(frozen=True, slots=True)
class VectorMemory:
    """All vectors of an index up to one operation of its log.

    Attributes:
        snapshot: Generation that was the newest when this was made; 0 if there was none.
        fingerprint: Encoder of the vectors.
        base: What the snapshot held.
        tail: What was added after it.
        seen: Last operation of the log that base and tail include.
        notice: What a person should know about how this came to be, or "".
    """

    snapshot: int
    fingerprint: str
    base: VectorStore
    tail: NumpyStore
    seen: int
    notice: str = ""


def current(
    connection: sqlite3.Connection, encoder: EncoderRow, folder: Path, memory: VectorMemory | None
) -> VectorMemory:
    """The memory for the moment of a transaction, made from an earlier one where that is possible.

    Args:
        connection: In the read transaction.
        encoder: The current encoder.
        folder: The index folder.
        memory: From an earlier view, or None.

    Raises:
        SnapshotUnusable: The newest snapshot is missing or damaged.
    """
    row = newest(read_snapshots(connection), encoder)
    generation = row.generation if row else 0
    if memory is None or (memory.snapshot, memory.fingerprint) != (generation, encoder.fingerprint):
        if row is None:
            return read_catalogue(connection, encoder)
        base, tail = open_snapshot(folder, row), NumpyStore(encoder.dimension)
        memory = VectorMemory(generation, encoder.fingerprint, base, tail, row.through)
    last = last_operation(connection)
    if last <= memory.seen:
        return memory
    alive, vectors = read_vectors(connection, encoder, added_since(connection, memory.seen))
    tail = memory.tail.extended(alive, vectors) if len(alive) else memory.tail
    return replace(memory, tail=tail, seen=last)


def read_catalogue(connection: sqlite3.Connection, encoder: EncoderRow, notice: str = "") -> VectorMemory:
    """Read all vectors from the catalogue: right at any time, but slower than a snapshot."""
    base = NumpyStore(encoder.dimension)
    for ids, vectors in stream_vectors(connection, encoder):
        base.add(ids, vectors)
    row = newest(read_snapshots(connection), encoder)
    return VectorMemory(
        snapshot=row.generation if row else 0,
        fingerprint=encoder.fingerprint,
        base=base,
        tail=NumpyStore(encoder.dimension),
        seen=last_operation(connection),
        notice=notice,
    )
