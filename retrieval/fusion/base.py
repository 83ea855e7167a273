"""What a fusion rule is given and what it returns.

Rules are pure arithmetic on arrays: nothing here searches, loads or knows a passage's text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol

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


class Standard(NamedTuple):
    """How far the candidates' scores lie above what the query scores with all passages of the index.

    Attributes:
        dense: float64 of shape (n,), in standard deviations above the mean; all 0 where the index has no
            spread to measure with (a single passage, equal vectors).
        lexical: The same for BM25; all 0 if no passage holds any word of the query.
        coverage: How well the encoder's vocabulary covers the query, in [0, 1].
    """

    dense: Floats
    lexical: Floats
    coverage: float = 1.0


@dataclass(frozen=True, slots=True)
class Candidates:
    """The union of both rankings.

    Attributes:
        ids: int64 of shape (n,), ascending.
        dense: Cosine similarities and ranks.
        lexical: BM25 scores and ranks.
        standard: Both scores as standard scores; None unless the rule needs them.
    """

    ids: Ids
    dense: Side
    lexical: Side
    standard: Standard | None = None

    @classmethod
    def union(cls, dense: Ranked, lexical: Ranked) -> Candidates:
        """Line up two rankings by passage id."""
        ids = np.union1d(dense.ids, lexical.ids).astype(np.int64)
        return cls(ids, _side(ids, dense), _side(ids, lexical))

    def with_scores(self, *, dense: Floats | None = None, lexical: Floats | None = None) -> Candidates:
        """The same candidates and ranks with other scores, each of shape (n,)."""
        return replace(
            self,
            dense=self.dense if dense is None else replace(self.dense, scores=dense),
            lexical=self.lexical if lexical is None else replace(self.lexical, scores=lexical),
        )


class Shares(NamedTuple):
    """What each side contributes to the fused score, both float64 of shape (n,); their sum is the score."""

    dense: Floats
    lexical: Floats


Needs = Literal["ranks", "scores", "standard"]
"""What a rule looks at: the two rankings only; the scores of every candidate on both sides, of which the
searcher computes those that a side did not report; or these and their standard scores."""


class Fusion(Protocol):
    """A rule that merges a dense and a lexical ranking."""

    @property
    def needs(self) -> Needs:
        """What it looks at."""
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


def explain(rule: Fusion, candidates: Candidates, shares: Shares, place: int) -> str:
    """How the fused score of the candidate at `place` came about, for people.

    Example:
        >>> side = Side(np.array([0.5]), np.array([1]))
        >>> standard = Standard(np.array([3.0]), np.array([4.5]))
        >>> candidates = Candidates(np.array([7]), side, side, standard)
        >>> from likewise.retrieval.fusion.standardised import Standardised
        >>> explain(Standardised(), candidates, Standardised().shares(candidates), 0)
        'standardised(weight=0.6): dense 1.80 (3.0 sd above the index) + lexical 1.80 (4.5 sd)'
    """
    dense, lexical, standard = shares.dense[place], shares.lexical[place], candidates.standard
    if standard is None:
        return f"{rule.describe()}: dense {dense:.4f} + lexical {lexical:.4f}"
    return (
        f"{rule.describe()}: dense {dense:.2f} ({standard.dense[place]:.1f} sd above the index)"
        f" + lexical {lexical:.2f} ({standard.lexical[place]:.1f} sd)"
    )


def _side(ids: Ids, ranking: Ranked) -> Side:
    scores = np.full(len(ids), np.nan)
    ranks = np.zeros(len(ids), dtype=np.int64)
    places = np.searchsorted(ids, ranking.ids)
    scores[places] = ranking.scores
    ranks[places] = np.arange(1, len(ranking.ids) + 1)
    return Side(scores, ranks)
