"""What the scores of a query are compared with: the same query against all passages of the index.

Both sides in closed form, from statistics that the index keeps: nothing is scanned. The background is that of
the whole index, whatever a filter allows: a filter must not change what counts as a good match.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from likewise.index.background import Moments
from likewise.retrieval.fusion.base import Candidates, Standard

if TYPE_CHECKING:
    from likewise.retrieval.fusion.base import Floats

_K1 = 1.2
BM25_MOST = _K1 + 1
"""No term can give more than this many times its idf."""

# Over the passages that hold a term, its saturated frequency f (k1 + 1) / (f + k1 (...)) has about this mean
# and variance: most hold it once, in a text of middling length.
_SATURATED_MEAN, _SATURATED_VARIANCE = 1.1, 0.1

# Below this a spread is float noise.
_LEAST_STD = 1e-3


@dataclass(frozen=True, slots=True)
class LexicalBackground:
    """What the words of a query are worth in an index.

    Attributes:
        moments: Mean and standard deviation of its BM25 scores with all passages, those without any of the
            words (score 0) included.
        total: Summed idf of its words, repeats counted.
        known: The part of `total` that belongs to words which some passage holds.
    """

    moments: Moments
    total: float
    known: float

    @classmethod
    def of(cls, terms: Sequence[str], counts: Mapping[str, int], passages: int) -> LexicalBackground:
        """The background under independence of the words, from how many passages hold each.

        With p the share of passages that hold a term and c its saturated frequency in those, a passage's
        score is a sum of idf * c with probability p:

            mean     = sum idf p E[c]
            variance = sum idf^2 (p E[c^2] - p^2 E[c]^2)

        Args:
            terms: Of the query, repeats counted.
            counts: Passages that hold each term; terms that none holds may be missing.
            passages: Of the whole index.

        Example:
            >>> background = LexicalBackground.of(["key", "key", "unheard"], {"key": 10}, 1000)
            >>> [round(number, 3) for number in (*background.moments, background.known / background.total)]
            [0.1, 1.036, 0.545]
        """
        mean = variance = total = known = 0.0
        for term, times in Counter(terms).items():
            holding = counts.get(term, 0)
            weight = times * idf(holding, passages)
            total += weight
            if holding:
                share = holding / passages
                known += weight
                mean += weight * share * _SATURATED_MEAN
                square = _SATURATED_MEAN**2
                variance += weight**2 * (share * (square + _SATURATED_VARIANCE) - share**2 * square)
        return cls(Moments(mean, math.sqrt(max(0.0, variance))), total, known)


def idf(holding: int, passages: int) -> float:
    """Inverse document frequency as FTS5 computes it: never below one millionth.

    Example:
        >>> round(idf(1, 100), 3), idf(80, 100)
        (4.195, 1e-06)
    """
    return max(1e-6, math.log((passages - holding + 0.5) / (holding + 0.5)))


def standard_scores(candidates: Candidates, dense: Moments, lexical: Moments, coverage: float) -> Standard:
    """Both scores of the candidates as standard scores.

    Args:
        candidates: With all scores known.
        dense: Mean and deviation of the query's cosines with all passages.
        lexical: The same of its BM25.
        coverage: How well the encoder covers the query, in [0, 1].
    """
    return Standard(
        _standardised(candidates.dense.scores, dense, _LEAST_STD),
        _standardised(candidates.lexical.scores, lexical, 0.0),
        coverage,
    )


def _standardised(scores: Floats, moments: Moments, least: float) -> Floats:
    if moments.std <= least:
        return np.zeros(len(scores))
    standard: Floats = (scores - moments.mean) / moments.std
    return standard
