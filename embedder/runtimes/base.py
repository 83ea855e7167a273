"""What computes vectors from token ids, and the check that two such agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from likewise.embedder.batching import Batch


class Runtime(Protocol):
    """A model that is ready to run."""

    @property
    def name(self) -> str:
        """For people: what runs the model, where, and in which precision."""
        ...

    @property
    def concurrency(self) -> int:
        """How many threads may usefully call `run` at once."""
        ...

    @property
    def batch_tokens(self) -> int:
        """Tokens of a batch, padding included, that suit it best."""
        ...

    def run(self, batch: Batch) -> NDArray[np.float32]:
        """Vectors of the batch's texts, float32 of shape (texts, dimension), not necessarily normalised.

        As many threads as `concurrency` says may call it at once.
        """
        ...


def parity(reference: Runtime, candidate: Runtime, batches: Sequence[Batch]) -> float:
    """The lowest cosine similarity between what two runtimes compute for the same text, in [-1, 1].

    -1 if one of them gives anything but numbers.
    """
    lowest = 1.0
    for batch in batches:
        expected = unit_rows(reference.run(batch))
        found = unit_rows(candidate.run(batch))
        if expected.shape != found.shape or not np.isfinite(found).all():
            return -1.0
        lowest = min(lowest, float((expected * found).sum(axis=1).min()))
    return lowest


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows, L2-normalised. A row of zeros has no direction and becomes the first unit vector.

    Example:
        >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32)).tolist()
        [[0.6000000238418579, 0.800000011920929], [1.0, 0.0]]
    """
    rows = np.array(vectors, dtype=np.float32)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    empty = norms[:, 0] == 0
    rows[empty, 0] = norms[empty] = 1.0
    rows /= norms
    return rows
