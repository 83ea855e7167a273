"""Convex combination of standard scores: how unusual a passage's score is for this query in this index."""

from __future__ import annotations

from dataclasses import dataclass

from likewise.errors import UsageError
from likewise.retrieval.fusion.base import Candidates, Needs, Shares


@dataclass(frozen=True, slots=True)
class Standardised:
    """Score of a passage: w' * z(dense) + (1 - w') * z(BM25), z(s) = (s - mean) / standard deviation.

    Mean and deviation are those of the query against *all* passages of the index, so a score counts by how
    rare it is there. That makes the two sides comparable without labels and without a constant for each
    collection: a query whose words are all common has little spread in BM25 and lets the vectors decide; a
    part number that two passages hold decides by itself. Normalising by the best and worst of the candidates,
    as `convex` does, cannot tell these apart.

    The weight of the dense side falls with the square of the encoder's coverage of the query, c:

        w' = w c^2 / (w c^2 + 1 - w)

    so that an encoder which does not know the query's language leaves the decision to the words.

    Args:
        weight: w, the part of the dense side where the encoder covers the query, in [0, 1]. 0.6 was chosen on
            four English collections.

    References:
        Standard scores: Montague and Aslam, Relevance score normalization for metasearch, CIKM 2001,
        https://doi.org/10.1145/502585.502657. There they are taken over the retrieved documents; here over
        the whole index, which is what makes the tails comparable.
    """

    weight: float = 0.6

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise UsageError(f"standardised fusion expects a weight in [0, 1], found {self.weight}")

    @property
    def needs(self) -> Needs:
        """The scores of all candidates, and what the query scores with the whole index."""
        return "standard"

    def describe(self) -> str:
        """Name and parameters."""
        return f"standardised(weight={self.weight:g})"

    def shares(self, candidates: Candidates) -> Shares:
        """Weighted standard scores of each side.

        Raises:
            ValueError: The candidates have no standard scores.
        """
        standard = candidates.standard
        if standard is None:
            raise ValueError("expected candidates with standard scores, found none")
        dense = self.weight * standard.coverage**2
        lexical = 1 - self.weight
        total = dense + lexical
        weight = dense / total if total else 0.0
        return Shares(weight * standard.dense, (1 - weight) * standard.lexical)
