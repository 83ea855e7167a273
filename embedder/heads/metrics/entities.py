"""Entity F1 over tagged sequences, equal to seqeval's default mode, which is that of conlleval.

An entity counts only if its type and both ends are right. Tags that break the scheme, such as an `I-` after
`O`, begin an entity all the same: that is how the published numbers were computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class Entity(NamedTuple):
    """A tagged span.

    Attributes:
        type: Such as "PER".
        start: Number of the first token.
        end: Number of the last token.
    """

    type: str
    start: int
    end: int


class EntityCounts(NamedTuple):
    """Right, predicted and gold entities."""

    right: int
    predicted: int
    gold: int

    @property
    def precision(self) -> float:
        """Share of the predicted entities that are right; 0 where there are none."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold entities that were found; 0 where there are none."""
        return self.right / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 where both are."""
        total = self.predicted + self.gold
        return 2 * self.right / total if total else 0.0


# Pairs of neighbouring prefixes, of the same type, between which an entity ends, and at which one begins.
_ENDS = {("B", "B"), ("B", "S"), ("B", "O"), ("I", "B"), ("I", "S"), ("I", "O")}
_BEGINS = {("E", "E"), ("E", "I"), ("S", "E"), ("S", "I"), ("O", "E"), ("O", "I")}


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of one sequence of BIO or BIOES tags.

    Example:
        >>> entities(["B-PER", "I-PER", "O", "S-LOC"])
        [Entity(type='PER', start=0, end=1), Entity(type='LOC', start=3, end=3)]
    """
    found = []
    before, before_type, start = "O", "", 0
    for position, tag in enumerate([*tags, "O"]):
        prefix, kind = split_tag(tag)
        other = kind != before_type
        if before != "O" and (before in "ES" or (before, prefix) in _ENDS or other):
            found.append(Entity(before_type, start, position - 1))
        if prefix != "O" and (prefix in "BS" or (before, prefix) in _BEGINS or other):
            start = position
        before, before_type = prefix, kind
    return found


def split_tag(tag: str) -> tuple[str, str]:
    """Prefix and type of a tag; a tag without a type has the type "_".

    Example:
        >>> split_tag("B-PER"), split_tag("O")
        (('B', 'PER'), ('O', '_'))
    """
    return tag[0], tag[1:].split("-", 1)[-1] or "_"


def count_entities(gold: Sequence[str], predicted: Sequence[str]) -> dict[str, EntityCounts]:
    """Counts by type of one sequence; both tag sequences are of equal length.

    Example:
        >>> count_entities(["B-PER", "O", "B-LOC"], ["B-PER", "O", "B-ORG"])["PER"]
        EntityCounts(right=1, predicted=1, gold=1)
    """
    wanted, found = set(entities(gold)), set(entities(predicted))
    right, predictions, all_gold = (
        Counter(entity.type for entity in group) for group in (wanted & found, found, wanted)
    )
    return {
        kind: EntityCounts(right[kind], predictions[kind], all_gold[kind])
        for kind in sorted(predictions.keys() | all_gold.keys())
    }


def add_entities(counts: Sequence[dict[str, EntityCounts]]) -> dict[str, EntityCounts]:
    """Counts by type of several sequences together.

    Example:
        >>> add_entities([{"PER": EntityCounts(1, 1, 1)}, {"PER": EntityCounts(0, 1, 2)}])
        {'PER': EntityCounts(right=1, predicted=2, gold=3)}
    """
    total: dict[str, EntityCounts] = {}
    for part in counts:
        for kind, more in part.items():
            so_far = total.get(kind, EntityCounts(0, 0, 0))
            total[kind] = EntityCounts(*(a + b for a, b in zip(so_far, more, strict=True)))
    return dict(sorted(total.items()))


def all_types(counts: dict[str, EntityCounts]) -> EntityCounts:
    """Counts of all types together, for micro-averaged scores.

    Example:
        >>> all_types({"PER": EntityCounts(1, 1, 1), "LOC": EntityCounts(0, 1, 2)}).f1
        0.4
    """
    return EntityCounts(*(sum(c[field] for c in counts.values()) for field in range(3)))
