"""Convex combination of normalised scores: how much better a passage is counts, not only that it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.errors import UsageError
from likewise.retrieval.fusion.base import Candidates, Floats, Needs, Shares

_LOWEST_COSINE = -1.0
_LOWEST_BM25 = 0.0


@dataclass(frozen=True, slots=True)
class Convex:
    """Score of a passage: w * n(cosine) + (1 - w) * n(BM25), n(s) = (s - lowest) / (best - lowest).

    `lowest` is the lowest score that can occur (-1 for a cosine, 0 for BM25), `best` the best one among the
    candidates ("TM2C2" in the paper). The paper finds it better than reciprocal ranks and little sensitive to
    the normalisation, but w does depend on the collection.

    Args:
        weight: w, the part of the dense side, in [0, 1].

    References:
        Bruch, Gai, Ingber: An Analysis of Fusion Functions for Hybrid Retrieval. ACM TOIS 42(1), 2023,
        https://doi.org/10.1145/3596512
    """

    weight: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise UsageError(f"convex fusion expects a weight in [0, 1], found {self.weight}")

    @property
    def needs(self) -> Needs:
        """A passage that only one side ranked still has a score on the other."""
        return "scores"

    def describe(self) -> str:
        """Name and parameters."""
        return f"convex(weight={self.weight:g})"

    def shares(self, candidates: Candidates) -> Shares:
        """Weighted, normalised scores of each side."""
        return Shares(
            self.weight * normalised(candidates.dense.scores, _LOWEST_COSINE),
            (1 - self.weight) * normalised(candidates.lexical.scores, _LOWEST_BM25),
        )


def normalised(scores: Floats, lowest: float) -> Floats:
    """Scores mapped to [0, 1]: the best to 1, `lowest` and unknown (NaN) ones to 0.

    Example:
        >>> normalised(np.array([3.0, 6.0, np.nan]), 0.0).tolist()
        [0.5, 1.0, 0.0]
    """
    known = np.nan_to_num(scores, nan=lowest)
    best = float(known.max(initial=lowest))
    if best <= lowest:
        return np.zeros_like(known)
    return np.maximum((known - lowest) / (best - lowest), 0.0)
