"""Maximal marginal relevance: hits that answer and do not repeat each other.

Carbonell & Goldstein (1998), "The use of MMR, diversity-based reranking": the next hit is the one with the
largest  lambda * relevance - (1 - lambda) * (its largest cosine to a hit that was taken).  Relevance is the
score of a hit among its fellows, brought to [0, 1]; similarity is the cosine of the stored vectors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from likewise.errors import UsageError
from likewise.retrieval.hits import SearchResult
from likewise.retrieval.rerank.base import ranked

if TYPE_CHECKING:
    from numpy.typing import NDArray


def diversify(
    result: SearchResult, vectors: NDArray[np.float32], *, diversity: float, k: int
) -> SearchResult:
    """The `k` hits that maximal marginal relevance takes, in the order in which it takes them.

    Args:
        result: What a search found; more hits than are wanted in the end.
        vectors: Of the hits' passages in their order, float32 of shape (n, dimension), of unit length.
        diversity: 1 - lambda: 0 keeps the order, 1 looks at nothing but difference.
        k: How many, at least 1.

    Raises:
        UsageError: `diversity` is outside [0, 1].
    """
    if not 0 <= diversity <= 1:
        raise UsageError(f"expected a diversity from 0 to 1, found {diversity}", remedy="diversity=0.3")
    scores = np.array([hit.score for hit in result.hits], dtype=np.float64)
    # Hits that a reranker did not get to have scores of another scale: only their order can count.
    if np.any(np.diff(scores) > 0):
        scores = -np.arange(len(scores), dtype=np.float64)
    order = mmr(scores, vectors, diversity=diversity, k=k)
    return replace(result, hits=ranked([result.hits[place] for place in order]))


def mmr(scores: NDArray[np.float64], vectors: NDArray[np.float32], *, diversity: float, k: int) -> list[int]:
    """Places of the candidates that are taken, in order; ties go to the earlier one.

    Example:
        >>> scores = np.array([1.0, 0.9, 0.5])
        >>> vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
        >>> mmr(scores, vectors, diversity=0.0, k=2), mmr(scores, vectors, diversity=0.5, k=2)
        ([0, 1], [0, 2])
    """
    count = len(scores)
    spread = np.ptp(scores) if count else 0.0
    relevance = (scores - scores.min()) / spread if spread else np.ones(count)
    nearest = np.full(count, -np.inf)  # largest cosine to what was taken
    left = np.ones(count, dtype=bool)
    taken: list[int] = []
    while len(taken) < min(k, count):
        gain = (1 - diversity) * relevance - diversity * (nearest if taken else 0.0)
        place = int(np.argmax(np.where(left, gain, -np.inf)))
        taken.append(place)
        left[place] = False
        nearest = np.maximum(nearest, vectors @ vectors[place])
    return taken
