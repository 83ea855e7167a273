"""Choose where passages end, as a typesetter chooses where lines end.

Cutting greedily leaves a stub at the end of every section. Instead the breaks of a stretch of text are chosen
together: each passage costs something for missing the target length, each break for cutting into something
that belongs together, each heading inside a passage for mixing subjects, and the cheapest plan wins (the idea
of Knuth and Plass, "Breaking paragraphs into lines", 1981). Pure functions of numbers: no text, no tokenizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple


class Strength(IntEnum):
    """How well a passage may end at a place, from worst to best."""

    ANYWHERE = 0
    WORD = 1
    LINE = 2
    SENTENCE = 3
    ITEM = 4
    PARAGRAPH = 5
    SECTION = 6
    HEADING = 7


# Costs are in units of the length cost below, where an empty passage costs 1 and one of the target length 0.
_SPLIT_COST = (2.0, 1.0, 0.45, 0.3, 0.2, 0.1, 0.0, 0.0)  # of ending a passage there
_JOIN_COST = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.35, 0.85)  # of not ending one there: subjects are mixed
_FULL_COST = 0.25  # of the longest passage allowed


class Atoms(NamedTuple):
    """A stretch of text cut into its smallest pieces: atom k lies between boundary k and k + 1.

    Attributes:
        weights: Tokens before each boundary, ascending, length atoms + 1.
        strengths: Of each boundary, same length; those of the two ends do not matter.
        budgets: Most tokens of a passage that starts at atom k, length atoms.
    """

    weights: Sequence[int]
    strengths: Sequence[Strength]
    budgets: Sequence[int]


def pack(atoms: Atoms, *, target: int, most: int) -> list[int]:
    """Boundaries at which passages begin and end, the two ends included.

    Time is O(atoms x atoms per passage). An atom that is longer than its budget becomes a passage of its own.

    Args:
        atoms: What to pack; at least one atom.
        target: Wished length of a passage in tokens, at least 1.
        most: Greatest length in tokens, at least `target`; budgets may be smaller.

    Example:
        >>> weights = [0, 90, 180, 270, 360, 400]  # greedily: 180 + 180 + 40
        >>> strengths = [Strength.SENTENCE] * 6
        >>> pack(Atoms(weights, strengths, [200] * 5), target=200, most=200)
        [0, 2, 3, 5]
    """
    weights, strengths, budgets = atoms
    count = len(weights) - 1
    room = max(1, most - target)
    best = [0.0] * (count + 1)
    cut_before = [0] * (count + 1)
    for end in range(1, count + 1):
        joins, cheapest, chosen = 0.0, float("inf"), end - 1
        upto = weights[end]
        for start in range(end - 1, -1, -1):
            length = upto - weights[start]
            alone = start == end - 1
            if length > most and not alone:
                break
            if not alone:
                joins += _JOIN_COST[strengths[start + 1]]
            if alone or length <= budgets[start]:
                miss = (target - length) / target if length < target else (length - target) / room
                cost = best[start] + joins + miss * miss * (1.0 if length < target else _FULL_COST)
                if cost < cheapest:
                    cheapest, chosen = cost, start
        best[end] = cheapest + (_SPLIT_COST[strengths[end]] if end < count else 0.0)
        cut_before[end] = chosen
    cuts = [count]
    while cuts[-1]:
        cuts.append(cut_before[cuts[-1]])
    return cuts[::-1]


def coalesce(weights: Sequence[int], strengths: Sequence[Strength], *, grain: int, most: int) -> list[int]:
    """Boundaries that remain when atoms lighter than `grain` join a neighbour.

    It bounds the number of atoms in a passage, and with it the time of `pack`, whatever the text looks like
    (a million one-word lines). A light atom joins across its weaker boundary: a heading goes with what
    follows, the last line of a section with what precedes.

    Args:
        weights: As in `Atoms`.
        strengths: As in `Atoms`.
        grain: Atoms of at least this many tokens stay as they are.
        most: Joined atoms stay under this many tokens.

    Example:
        >>> coalesce([0, 50, 52, 100], [Strength.HEADING, Strength.LINE, Strength.HEADING, Strength.HEADING],
        ...          grain=8, most=100)
        [0, 2, 3]
    """
    last = len(weights) - 1
    kept = [0]
    for at in range(1, last):
        light = weights[at] - weights[kept[-1]] < grain
        if light and strengths[at] <= strengths[kept[-1]] and weights[at + 1] - weights[kept[-1]] <= most:
            continue
        if light and len(kept) > 1 and weights[at] - weights[kept[-2]] <= most:
            kept.pop()
        kept.append(at)
    if (
        len(kept) > 1
        and weights[last] - weights[kept[-1]] < grain
        and weights[last] - weights[kept[-2]] <= most
    ):
        kept.pop()
    kept.append(last)
    return kept
