"""What a store of vectors must do, and the exact NumPy store that every other one is compared with.

A store answers for the moment at which it was filled: it knows nothing of documents, of deletions, of
transactions. The `IndexView` adds what came later and drops what is gone.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from likewise.index.rows import Ranking


class VectorStore(Protocol):
    """Vectors under int64 ids, searched by inner product.

    Stores are filled block by block and then only read; searching from several threads at once is safe,
    adding while searching is not.
    """

    @property
    def spec(self) -> str:
        """What kind of store this is, such as a FAISS factory string."""
        ...

    @property
    def exact(self) -> bool:
        """Whether `search` misses nothing and `gather` returns what was added, bit for bit."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def __len__(self) -> int:
        """How many vectors it holds."""
        ...

    def add(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors under new ids.

        Args:
            ids: int64 of shape (n,), ascending and above all ids added before.
            vectors: float32 of shape (n, dimension), finite.

        Raises:
            ValueError: Shapes, order or numbers are not as described.
        """
        ...

    def search(
        self, vector: NDArray[np.float32], k: int, allowed: NDArray[np.int64] | None = None
    ) -> Ranking:
        """The k best ids, or all if there are fewer; never a placeholder for a missing one.

        Args:
            vector: float32 of shape (dimension,).
            k: At least 1.
            allowed: Ascending ids that may answer; ids that the store does not hold are ignored. None
                allows all.

        Returns:
            Best first, equal scores in ascending order of id. Which of several equal ones at the end of the
            list are left out is up to the store.
        """
        ...

    def gather(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Those of the ascending `ids` that the store holds, and their vectors."""
        ...


class NumpyStore:
    """Exact search by one matrix product: the oracle in tests, and the store of a log's tail.

    Example:
        >>> store = NumpyStore(2)
        >>> store.add(np.array([3, 5]), np.array([[1, 0], [0, 1]], dtype=np.float32))
        >>> store.search(np.array([0.6, 0.8], dtype=np.float32), 1).ids
        array([5])
    """

    spec = "NumPy"
    exact = True

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._ids = np.empty(0, np.int64)
        self._vectors = np.empty((0, dimension), np.float32)
        # Blocks are joined on the first read, so that filling is linear in the number of vectors.
        self._blocks: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        self._last_id = -1

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    def __len__(self) -> int:
        return len(self._ids) + sum(len(ids) for ids, _ in self._blocks)

    def add(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors; see `VectorStore.add`."""
        check_block(ids, vectors, self._dimension, self._last_id)
        if len(ids):
            self._last_id = int(ids[-1])
            self._blocks.append((ids, vectors))

    def extended(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> NumpyStore:
        """A store with more vectors; this one stays as it is, for threads that are searching it."""
        store = NumpyStore(self._dimension)
        store.add(*self._joined())
        store.add(ids, vectors)
        return store

    def search(
        self, vector: NDArray[np.float32], k: int, allowed: NDArray[np.int64] | None = None
    ) -> Ranking:
        """The k best; see `VectorStore.search`."""
        check_query(vector, k, self._dimension)
        ids, vectors = self._joined() if allowed is None else self.gather(allowed)
        return best(ids, vectors @ vector, k)

    def gather(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Vectors by id; see `VectorStore.gather`."""
        held, vectors = self._joined()
        places = positions(held, ids)
        return held[places], vectors[places]

    def _joined(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        blocks = self._blocks
        if blocks:
            # Two threads may both do this; they come to the same result, and each returns its own.
            ids = np.concatenate([self._ids, *(ids for ids, _ in blocks)])
            vectors = np.concatenate([self._vectors, *(vectors for _, vectors in blocks)])
            self._ids, self._vectors, self._blocks = ids, vectors, []
            return ids, vectors
        return self._ids, self._vectors


def best(ids: NDArray[np.int64], scores: NDArray[np.float32], k: int) -> Ranking:
    """The k highest scores, equal ones by ascending id.

    Example:
        >>> best(np.array([7, 8, 9]), np.array([0.5, 0.9, 0.5], dtype=np.float32), 2).ids
        array([8, 7])
    """
    if k < len(ids):
        # The k-th highest score decides; all that reach it stay, so that ids settle ties rather than chance.
        threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
        reached = np.flatnonzero(scores >= threshold)
        ids, scores = ids[reached], scores[reached]
    order = np.lexsort((ids, -scores))[:k]
    return Ranking(ids[order], scores[order])


def positions(held: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.intp]:
    """Where those of the wanted ids that are held stand in `held`; both ascending."""
    places: NDArray[np.intp] = np.searchsorted(held, wanted)
    inside = places < len(held)
    places = places[inside]
    found: NDArray[np.intp] = places[held[places] == wanted[inside]]
    return found


def check_block(ids: NDArray[np.int64], vectors: NDArray[np.float32], dimension: int, last_id: int) -> None:
    """Refuse what a store could only answer wrongly for (FAISS accepts all of it).

    Raises:
        ValueError: Shapes differ, ids are not ascending, or a number is not finite.
    """
    if ids.ndim != 1 or vectors.shape != (len(ids), dimension):
        raise ValueError(
            f"expected n ids and vectors of shape (n, {dimension}), found {ids.shape} and {vectors.shape}"
        )
    if np.any(np.diff(ids, prepend=last_id) <= 0):
        raise ValueError("expected ascending ids that were not added before")
    if not np.isfinite(vectors).all():
        raise ValueError("expected finite vectors")


def check_query(vector: NDArray[np.float32], k: int, dimension: int) -> None:
    """Refuse a query of the wrong shape.

    Raises:
        ValueError: The vector has another length than the store's, is not finite, or `k` is below 1.
    """
    if vector.shape != (dimension,) or not np.isfinite(vector).all():
        raise ValueError(f"expected a finite vector of shape ({dimension},), found shape {vector.shape}")
    if k < 1:
        raise ValueError(f"expected k of at least 1, found {k}")
