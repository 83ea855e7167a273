"""Rules that merge a dense and a lexical ranking, one file each, found by name.

standardised   weighted sum of scores in standard deviations above the index's mean (the default)
rrf            1 / (60 + rank), summed over both rankings
weighted       the same with a weight for each side
convex         weighted sum of normalised scores
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from likewise.errors import UsageError
from likewise.retrieval.fusion.base import Candidates, Fusion, FusionFactory, Shares, Standard, explain
from likewise.retrieval.fusion.convex import Convex
from likewise.retrieval.fusion.rrf import ReciprocalRank
from likewise.retrieval.fusion.standardised import Standardised
from likewise.retrieval.fusion.weighted import WeightedReciprocalRank

__all__ = [
    "DEFAULT_FUSION",
    "FUSIONS",
    "Candidates",
    "Convex",
    "Fusion",
    "ReciprocalRank",
    "Shares",
    "Standard",
    "Standardised",
    "WeightedReciprocalRank",
    "explain",
    "fusion_rule",
]

FUSIONS: dict[str, FusionFactory] = {
    "convex": Convex,
    "rrf": ReciprocalRank,
    "standardised": Standardised,
    "weighted": WeightedReciprocalRank,
}
"""Every rule by its name, with its default parameters."""

DEFAULT_FUSION = "standardised"


_WEIGHED: dict[str, Callable[[float], Fusion]] = {
    "convex": Convex,
    "standardised": Standardised,
    "weighted": WeightedReciprocalRank,
}


def fusion_rule(rule: str | Fusion) -> Fusion:
    """The rule of a name, or the rule itself.

    Args:
        rule: A name out of `FUSIONS`, or `NAME@WEIGHT` with the weight of the dense side, from 0 to 1, for a
            rule that has one.

    Raises:
        UsageError: No rule has this name, or not this weight.

    Example:
        >>> fusion_rule("rrf").describe()
        'rrf(k=60)'
        >>> fusion_rule("standardised@0.8").describe()
        'standardised(weight=0.8)'
        >>> fusion_rule(Convex(weight=0.3)).describe()
        'convex(weight=0.3)'
    """
    if not isinstance(rule, str):
        return rule
    name, at, weight = rule.partition("@")
    if name not in FUSIONS:
        near = get_close_matches(name, FUSIONS, n=1)
        raise UsageError(
            f"expected a fusion rule out of {', '.join(FUSIONS)}, found {rule!r}",
            remedy=near[0] if near else DEFAULT_FUSION,
        )
    if not at:
        return FUSIONS[name]()
    if name not in _WEIGHED:
        raise UsageError(
            f"the fusion rule {name} has no weight, found {rule!r}",
            remedy=f"{name}, or {DEFAULT_FUSION}@{weight}",
        )
    try:
        return _WEIGHED[name](float(weight))
    except ValueError:
        raise UsageError(
            f"expected a weight from 0 to 1 behind {name}@, found {weight!r}", remedy=f"{name}@0.8"
        ) from None
