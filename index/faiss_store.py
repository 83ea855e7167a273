"""A vector store in FAISS: exact when small, compressed when large, one immutable file.

Ids are ours (`IDMap2`), the metric is the inner product of unit vectors, and every search runs on one OpenMP
thread: several threads per query only wait for each other, concurrency comes from many queries at once.

Known to fail or to crash, and therefore not done here: searching while adding, mapping files, removing ids,
reading a file whose digest was not checked, fork after use, `pathlib` arguments, k = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.errors import IndexFolderError
from likewise.index.rows import Ranking
from likewise.index.vectors import best, check_block, check_query, positions

if TYPE_CHECKING:
    import faiss

EXACT_SPEC = "IDMap2,Flat"

SPECS = (EXACT_SPEC, "IDMap2,SQfp16", "IDMap2,SQ8")
"""What this store can be, all of which honour a restriction of ids exactly. Graphs (HNSW) do not: with 1% of
the ids allowed their recall falls to a half, and they cannot forget."""

# Size of the vectors as float32 up to which a type is used. Half precision loses nothing that ranking the
# candidates by their true vectors does not repair; 8 bits are for what would not fit in memory otherwise.
_FLAT_BYTES = 128 << 20
_HALF_BYTES = 2 << 30

# SQ8 learns the range of each dimension; a few thousand vectors show it.
TRAINING_VECTORS = 16384


def choose_spec(count: int, dimension: int) -> str:
    """The type for an index of this size.

    Example:
        >>> choose_spec(50_000, 384), choose_spec(1_000_000, 384), choose_spec(10_000_000, 384)
        ('IDMap2,Flat', 'IDMap2,SQfp16', 'IDMap2,SQ8')
    """
    size = 4 * count * dimension
    return SPECS[0] if size <= _FLAT_BYTES else SPECS[1] if size <= _HALF_BYTES else SPECS[2]


class FaissStore:
    """A FAISS index as a `VectorStore`; make one with `create` or `read`.

    Example:
        >>> store = FaissStore.create(2)
        >>> store.add(np.array([3, 5]), np.array([[1, 0], [0, 1]], dtype=np.float32))
        >>> store.search(np.array([0.6, 0.8], dtype=np.float32), 1).ids
        array([5])
    """

    def __init__(self, index: faiss.IndexIDMap2, spec: str) -> None:
        import faiss

        # The outer index must stay referenced: the inner one is freed with it.
        self._index = index
        self._inner = faiss.downcast_index(index.index)
        self._spec = spec
        self._ids: NDArray[np.int64] | None = None
        self._last_id = int(index.id_map.at(index.ntotal - 1)) if index.ntotal else -1

    @classmethod
    def create(
        cls,
        dimension: int,
        spec: str = EXACT_SPEC,
        *,
        training: NDArray[np.float32] | None = None,
        capacity: int = 0,
    ) -> FaissStore:
        """An empty store.

        Args:
            dimension: Length of a vector.
            spec: One of `SPECS`.
            training: float32 of shape (n, dimension), a sample of what will be added; needed by `SQ8`.
            capacity: How many vectors will be added, if known: growing step by step takes twice the memory.

        Raises:
            ValueError: The spec is none of `SPECS`, or needs a sample that was not given.
        """
        import faiss

        if spec not in SPECS:
            raise ValueError(f"expected one of {', '.join(SPECS)}, found {spec!r}")
        index = faiss.index_factory(dimension, spec, faiss.METRIC_INNER_PRODUCT)
        if not index.is_trained:
            if training is None or not len(training):
                raise ValueError(f"{spec} needs a sample of the vectors to learn their range from")
            with single_threaded():
                index.train(np.ascontiguousarray(training, dtype=np.float32))
        store = cls(index, spec)
        # The vectors behind the index keep their memory when they shrink again.
        for vector, size in (
            (store._inner.codes, capacity * store._inner.code_size),
            (index.id_map, capacity),
        ):
            vector.resize(size)
            vector.resize(0)
        return store

    @classmethod
    def read(cls, path: Path, spec: str, *, count: int, dimension: int) -> FaissStore:
        """Read a file that `write` made and whose digest has just been verified.

        Args:
            path: The file.
            spec: Its FAISS factory string.
            count: How many vectors it must hold.
            dimension: Length of a vector.

        Raises:
            IndexFolderError: FAISS cannot read the file, or it is something else.
        """
        import faiss

        try:
            index = faiss.read_index(str(path))
        except RuntimeError as error:
            raise IndexFolderError(f"FAISS {faiss.__version__} cannot read {path}: {error}") from error
        if not isinstance(index, faiss.IndexIDMap2) or (index.ntotal, index.d) != (count, dimension):
            raise IndexFolderError(
                f"expected {count} vectors of {dimension} dimensions in {path},"
                f" found {index.ntotal} of {index.d} in a {type(index).__name__}"
            )
        return cls(index, spec)

    def write(self, write: Callable[[bytes], int]) -> None:
        """Pass the file's content to `write`, in blocks of at most a megabyte.

        Raises:
            OSError: What `write` raises, such as a full disk.
        """
        import faiss

        faiss.write_index(self._index, faiss.PyCallbackIOWriter(write))

    @property
    def spec(self) -> str:
        """FAISS factory string."""
        return self._spec

    @property
    def exact(self) -> bool:
        """Whether vectors are kept as they are."""
        return self._spec == EXACT_SPEC

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self._index.d)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def add(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors; see `VectorStore.add`."""
        check_block(ids, vectors, self.dimension, self._last_id)
        if len(ids):
            with single_threaded():
                self._index.add_with_ids(np.ascontiguousarray(vectors), ids)
            self._last_id = int(ids[-1])
            self._ids = None

    def search(
        self, vector: NDArray[np.float32], k: int, allowed: NDArray[np.int64] | None = None
    ) -> Ranking:
        """The k best; see `VectorStore.search`."""
        import faiss

        check_query(vector, k, self.dimension)
        if not len(self) or (allowed is not None and not len(allowed)):
            return Ranking(np.empty(0, np.int64), np.empty(0, np.float32))
        query = np.ascontiguousarray(vector, dtype=np.float32)[np.newaxis]
        parameters = None
        if allowed is not None:
            bits = np.zeros(int(allowed[-1]) + 1, dtype=np.uint8)
            bits[allowed] = 1
            selector = faiss.IDSelectorBitmap(np.packbits(bits, bitorder="little"))
            parameters = faiss.SearchParameters(sel=selector)
        with single_threaded():
            scores, ids = self._index.search(query, min(k, len(self)), params=parameters)
        found = ids[0] >= 0  # -1 stands for "no further hit"
        # FAISS returns the highest id first among equal scores.
        return best(ids[0][found], scores[0][found], k)

    def gather(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Vectors by id, decoded if the type is lossy; see `VectorStore.gather`."""
        if self._ids is None:
            import faiss

            self._ids = faiss.vector_to_array(self._index.id_map)
        places = positions(self._ids, ids)
        vectors = np.empty((len(places), self.dimension), np.float32)
        for row, place in enumerate(places.tolist()):
            self._inner.reconstruct(place, vectors[row])
        return self._ids[places], vectors


@contextmanager
def single_threaded() -> Iterator[None]:
    """Run FAISS on one OpenMP thread for the length of a block, then as before.

    The setting belongs to the calling thread, so that other threads, and other libraries' thread pools, keep
    theirs.
    """
    import faiss

    before = faiss.omp_get_max_threads()
    if before == 1:
        yield
        return
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
