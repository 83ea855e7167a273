"""The statements that keep and return the distribution of a snapshot's vectors.

What they return is what was stored, or nothing: a damaged row is as good as none, since it can be computed
again from the vectors.
"""

from __future__ import annotations

import hashlib
import sqlite3

import numpy as np

from likewise.index.catalogue_read import VECTOR_TYPE
from likewise.index.rows import BackgroundRow


def write_background(connection: sqlite3.Connection, generation: int, row: BackgroundRow) -> None:
    """Keep a background with the snapshot of a generation, and forget those of snapshots that are gone.

    Runs in the caller's write transaction, after the snapshot was recorded.
    """
    connection.execute("DELETE FROM background WHERE generation NOT IN (SELECT generation FROM snapshot)")
    mean = row.mean.astype(VECTOR_TYPE, copy=False).tobytes()
    covariance = row.covariance.astype(VECTOR_TYPE, copy=False).tobytes()
    connection.execute(
        "INSERT INTO background (generation, count, mean, covariance, sha256) VALUES (?, ?, ?, ?, ?)",
        (generation, row.count, mean, covariance, _digest(mean, covariance)),
    )


def read_background(connection: sqlite3.Connection, generation: int, dimension: int) -> BackgroundRow | None:
    """The background of a snapshot, or None if there is none or it is damaged."""
    found = connection.execute(
        "SELECT count, mean, covariance, sha256 FROM background WHERE generation = ?", (generation,)
    ).fetchone()
    if found is None:
        return None
    count, mean, covariance, digest = found
    size = dimension * VECTOR_TYPE.itemsize
    if digest != _digest(mean, covariance) or (len(mean), len(covariance)) != (size, size * dimension):
        return None
    vector, matrix = np.frombuffer(mean, VECTOR_TYPE), np.frombuffer(covariance, VECTOR_TYPE)
    return BackgroundRow(
        count,
        vector.astype(np.float32, copy=False),
        matrix.reshape(dimension, dimension).astype(np.float32, copy=False),
    )


def has_background(connection: sqlite3.Connection, generation: int) -> bool:
    """Whether a background is kept with the snapshot of a generation."""
    found = connection.execute("SELECT 1 FROM background WHERE generation = ?", (generation,)).fetchone()
    return found is not None


def _digest(mean: bytes, covariance: bytes) -> str:
    return hashlib.sha256(mean + covariance).hexdigest()
