"""Vectors of texts, computed once for each encoder and kept between runs.

Everything in it can be computed again, so a file that cannot be read or written costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.cache import cache_root

# Vectors that are computed and kept together: what an interrupted run loses at most.
_BLOCK = 512


class VectorCache:
    """The kept vectors of one encoder.

    Args:
        fingerprint: Of the encoder, and of whatever else decides a vector.
        dimension: Length of a vector.
        path: The file; None for one in the cache folder.
    """

    def __init__(self, fingerprint: str, dimension: int, path: Path | None = None) -> None:
        self.path = path or cache_root() / "vectors" / f"{fingerprint[:32]}.sqlite3"
        self.dimension = dimension

    def vectors(
        self,
        texts: Sequence[str],
        compute: Callable[[list[str]], NDArray[np.float32]],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> NDArray[np.float32]:
        """Vectors of the texts; only those that were never computed are computed.

        Args:
            texts: Any number.
            compute: Vectors of texts, float32 of shape (n, dimension).
            progress: Called with the texts done, and how many have to be computed.

        Returns:
            float32 of shape (texts, dimension), in order.
        """
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16] for text in texts]
        by_key = dict(zip(keys, texts, strict=True))
        found = self._read(list(by_key))
        missing = [key for key in by_key if key not in found]
        for start in range(0, len(missing), _BLOCK):
            block = missing[start : start + _BLOCK]
            new = dict(zip(block, compute([by_key[key] for key in block]), strict=True))
            self._write(new)
            found |= new
            if progress is not None:
                progress(min(start + _BLOCK, len(missing)), len(missing))
        if not keys:
            return np.empty((0, self.dimension), dtype=np.float32)
        return np.stack([found[key] for key in keys])

    def _read(self, keys: list[bytes]) -> dict[bytes, NDArray[np.float32]]:
        found: dict[bytes, NDArray[np.float32]] = {}
        if not self.path.is_file():
            return found
        try:
            with closing(sqlite3.connect(self.path)) as connection:
                for start in range(0, len(keys), 500):
                    part = keys[start : start + 500]
                    marks = ",".join("?" * len(part))
                    query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"
                    for key, blob in connection.execute(query, part):
                        vector = np.frombuffer(blob, dtype="<f4")
                        if len(vector) == self.dimension:
                            found[bytes(key)] = vector.astype(np.float32)
        except sqlite3.Error:
            return {}
        return found

    def _write(self, vectors: dict[bytes, NDArray[np.float32]]) -> None:
        rows = [(key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=30)) as connection, connection:
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS vectors "
                    "(key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
                )
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        except (OSError, sqlite3.Error):
            return  # a cache that cannot be written costs time, nothing else
