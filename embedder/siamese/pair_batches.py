"""Which rows are trained together: shuffled anew in every epoch, texts of similar length side by side.

A batch comes from one data set, so that its loss is one loss. Rows are shuffled first and sorted by length
only within windows of many batches; then the batches are shuffled. So neighbours in length meet, which spares
padding, and yet the negatives of an example are random. Everything follows from the seed and the epoch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.randomness import seed_for
from likewise.embedder.siamese.sources import Source
from likewise.errors import DataError

_WINDOW = 32  # batches


class PairExample(NamedTuple):
    """A row of a data set, by number."""

    source: int
    row: int


class PairBatches:
    """Batches of rows of several data sets, random access by epoch and number.

    Args:
        sources: The data sets.
        lengths: Tokens of every text of the table.
        size: Rows in a batch; the last one of a data set may be smaller.
        seed: Of the order.
        bucketed: Put rows of similar length together.
        fingerprint: Digest of the texts.

    Raises:
        DataError: Batches of one row for a loss that compares examples with each other.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        lengths: NDArray[np.int64],
        *,
        size: int,
        seed: int = 0,
        bucketed: bool = True,
        fingerprint: str = "",
    ) -> None:
        for source in sources:
            if source.kind.compares != "nothing" and size < 2:
                raise DataError(
                    f"{source.name}: in a batch of one the loss {source.kind.name} has nothing to compare "
                    "with: it would be 0 and teach nothing",
                    remedy="a batch size of 2 or more",
                )
        self._sources = list(sources)
        self._size, self._seed, self._bucketed = size, seed, bucketed
        # What a row costs: all its texts. Longest text first would do too; the sum balances pairs better.
        self._costs = [lengths[source.columns].sum(axis=1) for source in sources]
        digest = hashlib.sha256(f"{fingerprint}/{size}/{seed}/{bucketed}".encode())
        for source in sources:
            digest.update(repr((source.name, source.kind.name, source.settings, source.weight)).encode())
            digest.update(source.columns.tobytes())
            digest.update(b"" if source.labels is None else source.labels.tobytes())
        self.fingerprint = digest.hexdigest()
        # Of this object alone: two epochs are in use when one ends and the next begins.
        self._plan = lru_cache(maxsize=2)(self._make_plan)

    def length(self, epoch: int) -> int:
        """Number of batches in the epoch."""
        return len(self._plan(epoch))

    def batch(self, epoch: int, index: int) -> list[PairExample]:
        """Rows of a batch."""
        source, rows = self._plan(epoch)[index]
        return [PairExample(source, int(row)) for row in rows]

    def _make_plan(self, epoch: int) -> list[tuple[int, NDArray[np.int64]]]:
        plan = [
            (number, rows)
            for number, source in enumerate(self._sources)
            for rows in self._batches_of(number, source, epoch)
        ]
        order = np.random.default_rng(seed_for(self._seed, epoch)).permutation(len(plan))
        return [plan[at] for at in order]

    def _batches_of(self, number: int, source: Source, epoch: int) -> list[NDArray[np.int64]]:
        # A weight of 2.5 gives two passes and half of a third one, of other rows in each epoch.
        passes = np.arange(np.floor(epoch * source.weight), np.ceil((epoch + 1) * source.weight))
        least = 1 if source.kind.compares == "nothing" else 2
        wanted = max(least, round(len(source) * source.weight))
        rows = np.concatenate(
            [
                np.random.default_rng(seed_for(self._seed, number, int(at))).permutation(len(source))
                for at in passes
            ]
        )
        # Of a tiny share of few rows the last one would begin behind the end.
        start = min(round((epoch * source.weight - passes[0]) * len(source)), len(rows) - wanted)
        rows = rows[start : start + wanted]
        if self._bucketed:
            window = self._size * _WINDOW
            parts = [rows[at : at + window] for at in range(0, len(rows), window)]
            rows = np.concatenate(
                [part[np.argsort(self._costs[number][part], kind="stable")] for part in parts]
            )
        batches = [rows[at : at + self._size] for at in range(0, len(rows), self._size)]
        if len(batches) > 1 and len(batches[-1]) == 1 and source.kind.compares != "nothing":
            # A lone row has nothing to be compared with; it joins the batch before.
            batches[-2:] = [np.concatenate(batches[-2:])]
        return batches
