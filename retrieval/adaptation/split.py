"""Which documents are learned from, which choose among candidates, and which give the verdict.

A document and its translations say the same, so they go to the same part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from likewise.errors import DataError
from likewise.retrieval.pairs.parallel import translations

_LEAST = 6  # documents, with their translations; below that a part would have one or none


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
        keys: Of the documents. Those whose paths differ in their language alone count as one.
        held_out: Share of those that are not learned from, between 0 and 1.
        seed: Equal seeds split equally, in whatever order the keys are.

    Raises:
        DataError: There are too few documents.

    Example:
        >>> parts = split_documents([f"{n}.md" for n in range(30)])
        >>> len(parts.learned), len(parts.choosing), len(parts.verdict)
        (18, 4, 8)
    """
    translated = translations(keys)
    groups = sorted(
        {frozenset((key, *translated.get(key, ()))) for key in keys}, key=lambda g: _chance(g, seed)
    )
    if len(groups) < _LEAST:
        several = f" in {len(groups)} sets of translations" if len(groups) < len(keys) else ""
        raise DataError(
            f"expected at least {_LEAST} documents with text, to learn from some and be measured by others;"
            f" found {len(keys)}{several}",
            remedy="add documents: likewise index FOLDER",
        )
    apart = min(max(2, round(held_out * len(groups))), len(groups) - 2)
    choosing = max(1, apart // 3)
    return Split(
        frozenset().union(*groups[apart:]),
        frozenset().union(*groups[:choosing]),
        frozenset().union(*groups[choosing:apart]),
    )


def _chance(group: frozenset[str], seed: int) -> bytes:
    """What sorts the documents at random."""
    return sha256(f"{seed}\0{min(group)}".encode("utf-8", "surrogatepass")).digest()
