"""How likely a passage is to answer a query at all: an estimate in [0, 1], so that "nothing" can be said.

A ranking always has a first hit, also for nonsense. What tells a good first hit from a bad one is measured in
units of the index itself, so that neither the collection nor, in principle, the encoder matters:

    closeness    (cosine - likeness) / spread     the passage to the query, and
    nearness     (q . mu - likeness) / spread     the query to the index as a whole, where likeness and spread
                                                  are mean and deviation of the cosines of its own passages;
    matched      BM25 / the most that the query's words could give (idf (k1 + 1), summed)
    known        share of the query's idf that belongs to words which the index holds at all

and a logistic regression of those that the mode of search knows. Its coefficients come from adi, cranfield,
cisi and lisa, each with its own questions as what can be answered and the others' as what cannot, all with
the default encoder; no other collection was looked at to choose them.

What it is not: a probability of being right. It says whether the index is about what was asked. It is not
calibrated for other encoders, for collections of very short or very mixed documents, or for questions that
are on the subject and still have no answer in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from likewise.retrieval.background import BM25_MOST, LexicalBackground

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from likewise.index.background import Background
    from likewise.retrieval.fusion.base import Floats

NOTHING = 0.2
"""Below this, the best hit says that nothing in the index matches. On the collections that the coefficients
come from, one answerable question in a hundred is below; see `benchmarks/quality.py` for the others."""

NOTHING_NOTICE = "nothing in this index matches the query well: the hits are merely the nearest passages"

# A few equal passages have no spread, so nothing can be said by it.
_LEAST_SPREAD = 1e-3

# Intercept; closeness, nearness; matched, known.
_BOTH = (-1.79, 0.55, 2.07, 4.07, 2.21)
_DENSE = (-0.39, 1.18, 1.70, 0.0, 0.0)
_LEXICAL = (-5.84, 0.0, 0.0, 5.63, 6.24)


@dataclass(frozen=True, slots=True)
class Relevance:
    """Estimates relevance for one query.

    Attributes:
        nearness: Of the query to the index; None without vectors.
        likeness: Mean cosine of two passages of the index.
        spread: Standard deviation of that cosine.
        lexical: What the query's words are worth; None without words.
        coverage: How well the encoder covers the query, in [0, 1]: without coverage, words alone count.
    """

    nearness: float | None
    likeness: float
    spread: float
    lexical: LexicalBackground | None
    coverage: float = 1.0

    @classmethod
    def of(
        cls,
        *,
        vector: NDArray[np.float32] | None = None,
        background: Background | None = None,
        lexical: LexicalBackground | None = None,
        coverage: float = 1.0,
    ) -> Relevance:
        """For a query, from its vector with the index's background, from its words, or from both."""
        spread = background.spread if background is not None else 0.0
        if vector is None or background is None or spread < _LEAST_SPREAD:
            return cls(None, 0.0, 1.0, lexical, coverage)
        likeness = background.likeness
        nearness = (float(background.mean @ vector) - likeness) / spread
        return cls(nearness, likeness, spread, lexical, coverage)

    def estimate(self, cosines: Floats | None, scores: Floats | None) -> Floats | None:
        """Relevance of passages.

        Args:
            cosines: With the query, shape (n,), or None if the mode does not know them.
            scores: BM25, shape (n,), NaN or 0 for no word in common; or None.

        Returns:
            float64 of shape (n,), in [0, 1]; None if neither side can say anything.
        """
        if self.nearness is None or cosines is None:
            if self.lexical is None or scores is None:
                return None
            return _logistic(self._logits(_LEXICAL, None, scores))
        if self.lexical is None or scores is None:
            return _logistic(self._logits(_DENSE, cosines, None))
        both = self._logits(_BOTH, cosines, scores)
        words = self._logits(_LEXICAL, None, scores)
        weight = self.coverage**2
        return _logistic(weight * both + (1 - weight) * words)

    def _logits(
        self, coefficients: tuple[float, ...], cosines: Floats | None, scores: Floats | None
    ) -> Floats:
        intercept, closeness, nearness, matched, known = coefficients
        logits = np.full(_length(cosines, scores), intercept)
        if cosines is not None and self.nearness is not None:
            logits += closeness * (cosines - self.likeness) / self.spread + nearness * self.nearness
        if scores is not None and self.lexical is not None and self.lexical.total:
            total = self.lexical.total
            logits += (
                matched * np.nan_to_num(scores) / (BM25_MOST * total) + known * self.lexical.known / total
            )
        return logits


def _length(cosines: Floats | None, scores: Floats | None) -> int:
    known = cosines if cosines is not None else scores
    return 0 if known is None else len(known)


def _logistic(logits: Floats) -> Floats:
    # Far beyond +-30 nothing changes but the warning of an overflow.
    found: Floats = 1.0 / (1.0 + np.exp(-np.clip(logits, -30.0, 30.0)))
    return found
