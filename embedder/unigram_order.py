"""Undo what is random in the result of the Unigram trainer.

The trainer adds up expected counts in random order, which changes scores in the fourteenth digit. And a
character that pruning left without a piece comes back with the lowest score plus a ten-thousandth for each
that came back before it, in random order again (tokenizers 0.23). Which pieces there are does not depend on
that.
"""

from __future__ import annotations

from collections.abc import Sequence

_STEP = 1e-4
# Far above the noise, far below the step and any difference that matters.
_DIGITS = 6

Piece = tuple[str, float]


def in_fixed_order(pieces: Sequence[Piece]) -> list[Piece]:
    """The same pieces with the same scores, up to noise, in an order that the texts alone decide.

    Args:
        pieces: Pieces with their scores (log-probabilities), special tokens left out.

    Returns:
        Likeliest first; characters that came back share their scores out by code point.

    Example:
        >>> one = in_fixed_order([("ab", -2.0), ("x", -8.9999), ("y", -9.0)])
        >>> other = in_fixed_order([("ab", -2.00000000000001), ("y", -8.9999), ("x", -9.0)])
        >>> one == other
        True
        >>> one
        [('ab', -2.0), ('x', -8.9999), ('y', -9.0)]
    """
    scores = {piece: round(score, _DIGITS) for piece, score in pieces}
    returned = _returned(scores)
    shares = sorted((scores[character] for character in returned), reverse=True)
    scores |= zip(sorted(returned), shares, strict=True)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def _returned(scores: dict[str, float]) -> list[str]:
    """Single characters whose scores are the lowest one, the lowest plus a step, plus two steps ..."""
    singles: dict[float, list[str]] = {}
    for piece, score in scores.items():
        if len(piece) == 1:
            singles.setdefault(score, []).append(piece)
    found: list[str] = []
    lowest = min(scores.values(), default=0.0)
    steps = 0
    while at_step := singles.get(round(lowest + steps * _STEP, _DIGITS)):
        found += at_step
        steps += 1
    return found
