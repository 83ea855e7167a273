"""Weighted reciprocal-rank fusion: ranks again, but one side may count more than the other."""

from __future__ import annotations

from dataclasses import dataclass

from likewise.errors import UsageError
from likewise.retrieval.fusion.base import Candidates, Needs, Shares
from likewise.retrieval.fusion.rrf import reciprocal


@dataclass(frozen=True, slots=True)
class WeightedReciprocalRank:
    """Score of a passage: w / (k + dense rank) + (1 - w) / (k + lexical rank).

    Equal weights give the order of `rrf`; w = 1 and w = 0 give one side alone.

    Args:
        weight: w, the part of the dense side, in [0, 1].
        k: Damping as in `rrf`, > 0.

    References:
        Cormack, Clarke, Buettcher: Reciprocal Rank Fusion outperforms Condorcet and individual rank learning
        methods. SIGIR 2009, https://doi.org/10.1145/1571941.1572114 (without weights)
    """

    weight: float = 0.5
    k: float = 60.0

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise UsageError(f"weighted fusion expects a weight in [0, 1], found {self.weight}")
        if not self.k > 0:
            raise UsageError(f"weighted fusion expects k > 0, found {self.k}")

    @property
    def needs(self) -> Needs:
        """Scores do not matter here."""
        return "ranks"

    def describe(self) -> str:
        """Name and parameters."""
        return f"weighted(weight={self.weight:g}, k={self.k:g})"

    def shares(self, candidates: Candidates) -> Shares:
        """Weighted 1 / (k + rank) of each side."""
        return Shares(
            self.weight * reciprocal(candidates.dense.ranks, self.k),
            (1 - self.weight) * reciprocal(candidates.lexical.ranks, self.k),
        )
