"""How likely a passage is to answer a query at all: an estimate in [0, 1], so that "nothing" can be said.

A ranking always has a first hit, also for nonsense. What tells a good first hit from a bad one is measured in
units of the index itself, so that the collection, and the scale of an encoder's cosines, matter little:

    closeness    (cosine - likeness) / (1 - likeness): of the passage, where likeness is the mean cosine of
                 two passages of the index; 0 is as close as any passage, 1 is the passage itself
    nearness     q . mu / likeness: of the query to the index as a whole; 1 is as near as its own passages
    known        share of the query's idf that belongs to words which the index holds at all
    matched      BM25 / the most that the query's words could give, idf (k1 + 1) summed

and a logistic regression of those that the mode of search knows. Its coefficients come from adi, cranfield,
cisi and lisa, each with its own questions as what can be answered and the others' as what cannot, all with
the default encoder. The form of the features was changed once after npl-vaswani and scifact had been looked
at, so figures on those two are not quite those of unseen collections.

What it is not: a probability of being right. It says whether the index is about what was asked. It is not
calibrated for other encoders, for collections of very short or very mixed documents, or for questions that
are on the subject and still have no answer in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from likewise.index.coverage import POOR
from likewise.retrieval.background import BM25_MOST, LexicalBackground

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from likewise.index.background import Background
    from likewise.retrieval.fusion.base import Floats

NOTHING = 0.2
"""Below this, the best hit says that nothing in the index matches. One to three answerable questions in a
hundred are below on six English collections, and nonsense always; see `benchmarks/quality.py`."""

NOTHING_NOTICE = "nothing in this index matches the query well: the hits are merely the nearest passages"

FEW_PASSAGES = 100
"""An index smaller than this holds too few words of a language to tell from them that nothing matches."""

# Equal passages leave no room between likeness and identity, and those of an index about everything have no
# likeness that a query could share.
_MOST_LIKENESS, _LEAST_LIKENESS = 0.999, 0.02

# Where nearness was seen when the coefficients were fitted.
_NEARNESS = (-0.5, 1.6)


class _Model(NamedTuple):
    """Coefficients of a logistic regression."""

    intercept: float
    closeness: float = 0.0
    nearness: float = 0.0
    known: float = 0.0
    matched: float = 0.0


_BOTH = _Model(-5.56, closeness=4.97, nearness=3.19, known=2.88)
_DENSE = _Model(-3.70, closeness=6.98, nearness=2.94)
_LEXICAL = _Model(-5.84, known=6.24, matched=5.63)


@dataclass(frozen=True, slots=True)
class Relevance:
    """Estimates relevance for one query.

    Attributes:
        nearness: Of the query to the index; None without vectors.
        likeness: Mean cosine of two passages of the index.
        lexical: What the query's words are worth; None without words.
        coverage: How well the encoder covers the query, in [0, 1]: without coverage, words alone count.
    """

    nearness: float | None
    likeness: float
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
        likeness = background.likeness if background is not None else 1.0
        if vector is None or background is None or likeness > _MOST_LIKENESS:
            return cls(None, 0.0, lexical, coverage)
        nearness = float(background.mean @ vector) / max(likeness, _LEAST_LIKENESS)
        return cls(float(np.clip(nearness, *_NEARNESS)), likeness, lexical, coverage)

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
            if self.coverage < POOR:
                return None  # such vectors say nothing, and there are no words to go by
            return _logistic(self._logits(_DENSE, cosines, None))
        both = self._logits(_BOTH, cosines, scores)
        words = self._logits(_LEXICAL, None, scores)
        weight = self.coverage**2
        return _logistic(weight * both + (1 - weight) * words)

    def _logits(self, model: _Model, cosines: Floats | None, scores: Floats | None) -> Floats:
        logits = np.full(_length(cosines, scores), model.intercept)
        if cosines is not None and self.nearness is not None:
            logits += model.closeness * (cosines - self.likeness) / (1 - self.likeness)
            logits += model.nearness * self.nearness
        if scores is not None and self.lexical is not None and self.lexical.total:
            total = self.lexical.total
            logits += model.known * self.lexical.known / total
            logits += model.matched * np.nan_to_num(scores) / (BM25_MOST * total)
        return logits


def _length(cosines: Floats | None, scores: Floats | None) -> int:
    known = cosines if cosines is not None else scores
    return 0 if known is None else len(known)


def _logistic(logits: Floats) -> Floats:
    # Far beyond +-30 nothing changes but the warning of an overflow.
    found: Floats = 1.0 / (1.0 + np.exp(-np.clip(logits, -30.0, 30.0)))
    return found
