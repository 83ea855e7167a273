"""How the vectors of an index are distributed: what a cosine means there.

A cosine of .4 is much in one collection and little in another. Mean and covariance of all vectors give, for
any query, the mean and the spread of its cosines with all passages, without computing them:

    mean     = q . mu
    variance = q' Sigma q

They are computed when a snapshot is published and kept with it. Nothing here ranks or fuses.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.index.catalogue_background import read_background
from likewise.index.catalogue_read import EncoderRow, last_operation, read_snapshots, stream_vectors
from likewise.index.rows import BackgroundRow

if TYPE_CHECKING:
    import sqlite3

# Every k-th vector of a larger index: the error of a standard deviation from so many is 0.3%.
_SAMPLE = 65_536

# A background stays in use until this share of the passages was added or removed since.
_STALE_SHARE = 0.1


class Moments(NamedTuple):
    """Mean and standard deviation of a score over all passages of an index."""

    mean: float
    std: float


@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """Mean and covariance of the vectors of an index.

    Attributes:
        count: Vectors that it was computed from, at least 1.
        mean: float32 of shape (dimension,).
        covariance: float32 of shape (dimension, dimension), of the population (divided by `count`).

    Example:
        >>> vectors = np.array([[1, 0], [0, 1], [1, 0], [0, 1]], dtype=np.float32)
        >>> background = Background.of([vectors], dimension=2)
        >>> background.moments(np.array([1, 0], dtype=np.float32))
        Moments(mean=0.5, std=0.5)
    """

    count: int
    mean: NDArray[np.float32]
    covariance: NDArray[np.float32]

    @classmethod
    def of(cls, blocks: Iterable[NDArray[np.float32]], dimension: int) -> Background:
        """The background of vectors that come in blocks of shape (n, dimension); at least one vector."""
        collector = BackgroundCollector(dimension)
        for block in blocks:
            collector.add(block)
        return collector.result()

    def moments(self, query: NDArray[np.float32]) -> Moments:
        """Mean and standard deviation of the inner products of a query with all vectors.

        Args:
            query: float32 of shape (dimension,); need not be of unit length.
        """
        exact = query.astype(np.float64)
        # float32 times float64 would copy the matrix; its own precision is plenty.
        variance = float(exact @ (self.covariance @ query))
        return Moments(float(exact @ self.mean), max(0.0, variance) ** 0.5)

    @property
    def likeness(self) -> float:
        """Mean cosine of two vectors of the index, each with each: the squared length of their mean."""
        return float(self.mean.astype(np.float64) @ self.mean)


class BackgroundCollector:
    """Adds vectors up, block by block, in float64; memory does not grow with their number.

    Args:
        dimension: Length of a vector.
        expected: How many there will be; of more than 65,536 an even sample is used. 0 uses all.
    """

    def __init__(self, dimension: int, expected: int = 0) -> None:
        self._stride = max(1, expected // _SAMPLE)
        self._seen = self._count = 0
        self._sum = np.zeros(dimension)
        self._products = np.zeros((dimension, dimension))

    def add(self, vectors: NDArray[np.float32]) -> None:
        """Take in a block of shape (n, dimension)."""
        chosen = vectors[-self._seen % self._stride :: self._stride].astype(np.float64)
        self._seen += len(vectors)
        self._count += len(chosen)
        self._sum += chosen.sum(axis=0)
        self._products += chosen.T @ chosen

    def result(self) -> Background:
        """What was collected.

        Raises:
            ValueError: Nothing was.
        """
        if not self._count:
            raise ValueError("expected at least one vector, found none")
        mean = self._sum / self._count
        covariance = self._products / self._count - np.outer(mean, mean)
        return Background(self._count, mean.astype(np.float32), covariance.astype(np.float32))


class BackgroundMemory:
    """Remembers the background of an index between queries, and when it is too old. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: tuple[str, int, Background] | None = None

    def current(self, connection: sqlite3.Connection, encoder: EncoderRow) -> Background | None:
        """The background for the moment of a transaction; None for an index without passages.

        The one that belongs to the snapshot, unless it is missing, damaged or too old: then it is computed
        from the vectors in the catalogue. It is too old when a tenth of the passages changed since, which
        only happens while an index is small, for a sync publishes a new snapshot before.
        """
        last = last_operation(connection)
        with self._lock:
            known = self._known
            if known is None or known[0] != encoder.fingerprint or _stale(known[2].count, known[1], last):
                known = _stored(connection, encoder, last) or _computed(connection, encoder, last)
                self._known = known
        return known[2] if known else None


def to_row(background: Background) -> BackgroundRow:
    """The form in which the catalogue keeps it."""
    return BackgroundRow(background.count, background.mean, background.covariance)


def _stored(
    connection: sqlite3.Connection, encoder: EncoderRow, last: int
) -> tuple[str, int, Background] | None:
    snapshot = next(iter(read_snapshots(connection)), None)
    if snapshot is None or (snapshot.fingerprint, snapshot.dimension) != (
        encoder.fingerprint,
        encoder.dimension,
    ):
        return None
    row = read_background(connection, snapshot.generation, encoder.dimension)
    if row is None or _stale(snapshot.count, snapshot.through, last):
        return None
    return encoder.fingerprint, snapshot.through, Background(row.count, row.mean, row.covariance)


def _computed(
    connection: sqlite3.Connection, encoder: EncoderRow, last: int
) -> tuple[str, int, Background] | None:
    collector = BackgroundCollector(encoder.dimension)
    empty = True
    for ids, vectors in stream_vectors(connection, encoder):
        empty = empty and not len(ids)
        collector.add(vectors)
    return None if empty else (encoder.fingerprint, last, collector.result())


def _stale(count: int, through: int, last: int) -> bool:
    return abs(last - through) > _STALE_SHARE * count
