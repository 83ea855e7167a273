"""Which documents are learned from, which choose among candidates, and which give the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from likewise.errors import DataError

_LEAST = 6  # documents; below that a part would have one or none


@dataclass(frozen=True)
class Split:
    """Documents in three parts that share none.

    Attributes:
        learned: Pairs are made from these.
        choosing: Questions about these choose among candidates and stop the training.
        verdict: Questions about these decide whether the index is changed; nothing else ever sees them.
    """

    learned: frozenset[str]
    choosing: frozenset[str]
    verdict: frozenset[str]

    @property
    def held_out(self) -> frozenset[str]:
        """All documents that are not learned from."""
        return self.choosing | self.verdict


def split_documents(keys: Sequence[str], *, held_out: float = 0.4, seed: int = 0) -> Split:
    """Split documents at random, a third of the held-out ones for choosing.

    Args:
        keys: Of the documents.
        held_out: Share of those that are not learned from, between 0 and 1.
        seed: Equal seeds split equally, in whatever order the keys are.

    Raises:
        DataError: There are too few documents.

    Example:
        >>> parts = split_documents([f"{n}.md" for n in range(30)])
        >>> len(parts.learned), len(parts.choosing), len(parts.verdict)
        (18, 4, 8)
    """
    if len(keys) < _LEAST:
        raise DataError(
            f"expected at least {_LEAST} documents with text, to learn from some and be measured by others;"
            f" found {len(keys)}",
            remedy="add documents: likewise index FOLDER",
        )
    order = sorted(keys, key=lambda key: sha256(f"{seed}\0{key}".encode("utf-8", "surrogatepass")).digest())
    apart = min(max(2, round(held_out * len(order))), len(order) - 2)
    choosing = max(1, apart // 3)
    return Split(frozenset(order[apart:]), frozenset(order[:choosing]), frozenset(order[choosing:apart]))
