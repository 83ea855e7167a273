"""Reciprocal-rank fusion: only ranks count, so the two scales need not be comparable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.errors import UsageError
from likewise.retrieval.fusion.base import Candidates, Floats, Ids, Needs, Shares


@dataclass(frozen=True, slots=True)
class ReciprocalRank:
    """Score of a passage: the sum over both rankings of 1 / (k + rank).

    A passage that a ranking does not hold gets nothing from it.

    Args:
        k: Damping, > 0. The larger, the less the first ranks stand out. 60 is the paper's.

    References:
        Cormack, Clarke, Buettcher: Reciprocal Rank Fusion outperforms Condorcet and individual rank learning
        methods. SIGIR 2009, https://doi.org/10.1145/1571941.1572114
    """

    k: float = 60.0

    def __post_init__(self) -> None:
        if not self.k > 0:
            raise UsageError(f"reciprocal-rank fusion expects k > 0, found {self.k}")

    @property
    def needs(self) -> Needs:
        """Scores do not matter here."""
        return "ranks"

    def describe(self) -> str:
        """Name and parameters."""
        return f"rrf(k={self.k:g})"

    def shares(self, candidates: Candidates) -> Shares:
        """1 / (k + rank) of each side."""
        return Shares(
            reciprocal(candidates.dense.ranks, self.k), reciprocal(candidates.lexical.ranks, self.k)
        )


def reciprocal(ranks: Ids, k: float) -> Floats:
    """1 / (k + rank), and 0 where the rank is 0, which stands for "not ranked".

    Example:
        >>> reciprocal(np.array([1, 0, 3]), 1.0).tolist()
        [0.5, 0.0, 0.25]
    """
    return np.where(ranks > 0, 1.0 / (k + ranks), 0.0)
