"""What a fusion rule is given and what it returns.

Rules are pure arithmetic on arrays: nothing here searches, loads or knows a passage's text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


class Ranked(Protocol):
    """A ranking: ids of shape (n,), best first, and their scores of shape (n,)."""

    @property
    def ids(self) -> Ids:
        """Passage ids, best first."""
        ...

    @property
    def scores(self) -> NDArray[np.float32]:
        """Scores in the same order."""
        ...


@dataclass(frozen=True, slots=True)
class Side:
    """What one search says about the candidates of both.

    Attributes:
        scores: float64 of shape (n,); NaN where unknown.
        ranks: int64 of shape (n,), from 1; 0 where the passage is not among this side's own candidates.
    """

    scores: Floats
    ranks: Ids


@dataclass(frozen=True, slots=True)
class Candidates:
    """The union of both rankings.

    Attributes:
        ids: int64 of shape (n,), ascending.
        dense: Cosine similarities and ranks.
        lexical: BM25 scores and ranks.
    """

    ids: Ids
    dense: Side
    lexical: Side

    @classmethod
    def union(cls, dense: Ranked, lexical: Ranked) -> Candidates:
        """Line up two rankings by passage id."""
        ids = np.union1d(dense.ids, lexical.ids).astype(np.int64)
        return cls(ids, _side(ids, dense), _side(ids, lexical))

    def with_scores(self, *, dense: Floats | None = None, lexical: Floats | None = None) -> Candidates:
        """The same candidates and ranks with other scores, each of shape (n,)."""
        return Candidates(
            self.ids,
            self.dense if dense is None else replace(self.dense, scores=dense),
            self.lexical if lexical is None else replace(self.lexical, scores=lexical),
        )


class Shares(NamedTuple):
    """What each side contributes to the fused score, both float64 of shape (n,); their sum is the score."""

    dense: Floats
    lexical: Floats


class Fusion(Protocol):
    """A rule that merges a dense and a lexical ranking.

    Attributes:
        complete_scores: Whether the rule wants both scores of every candidate. The searcher then computes
            those that a side did not report because the passage was not among its best.
    """

    @property
    def complete_scores(self) -> bool:
        """Whether scores of passages outside a side's own candidates are wanted."""
        ...

    def describe(self) -> str:
        """Name and parameters, as in `rrf(k=60)`."""
        ...

    def shares(self, candidates: Candidates) -> Shares:
        """Contributions of both sides to the score of each candidate, aligned with `candidates.ids`."""
        ...


FusionFactory = Callable[[], Fusion]


def best_first(ids: Ids, scores: Floats) -> Ids:
    """Positions that order candidates by falling score, equal scores by rising id.

    Example:
        >>> best_first(np.array([7, 3, 5]), np.array([.5, .5, .9])).tolist()
        [2, 1, 0]
    """
    return np.lexsort((ids, -scores)).astype(np.int64)


def _side(ids: Ids, ranking: Ranked) -> Side:
    scores = np.full(len(ids), np.nan)
    ranks = np.zeros(len(ids), dtype=np.int64)
    places = np.searchsorted(ids, ranking.ids)
    scores[places] = ranking.scores
    ranks[places] = np.arange(1, len(ranking.ids) + 1)
    return Side(scores, ranks)
