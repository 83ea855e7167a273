"""What a training pair is, and the places that it names. Plain records; nothing is read or chosen here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from likewise.index.records import Json

Kind = Literal["question", "title", "heading", "link", "parallel", "sentence", "neighbour"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""All kinds; of two equal pairs the one of the earlier kind is kept."""


@dataclass(frozen=True, slots=True)
class TextPair:
    """Two texts that belong together.

    Attributes:
        kind: Why they do.
        anchor: The text that asks.
        positive: The text that answers.
        source: Document that holds the positive.
        lines: First and last line of the positive in it, from 1.
        anchor_source: Document that holds the anchor.
        anchor_line: Line at which the anchor begins; None if it stands nowhere in the text, as a title out of
            a document's properties.
    """

    kind: Kind
    anchor: str
    positive: str
    source: str
    lines: tuple[int, int]
    anchor_source: str
    anchor_line: int | None

    def to_json(self) -> dict[str, Json]:
        """The pair as a row that `likewise train` reads; it takes `anchor` and `positive` and no more.

        Example:
            >>> TextPair("title", "Keys", "Rotate them.", "keys.md", (3, 3), "keys.md", 1).to_json()["lines"]
            [3, 3]
        """
        return {
            "anchor": self.anchor,
            "positive": self.positive,
            "kind": self.kind,
            "source": self.source,
            "lines": list(self.lines),
            "anchor_source": self.anchor_source,
            "anchor_line": self.anchor_line,
        }


@dataclass(frozen=True)
class PairSet:
    """Pairs, and what became of those that were found.

    Attributes:
        pairs: In the order of `KINDS`, then of the documents.
        documents: How many documents were looked at.
        repeated: By kind, pairs that were found before.
        ambiguous: By kind, pairs whose anchor asks for several things, such as the heading "Introduction".
        over_limit: By kind, pairs beyond the limit, or beyond what one document may give.
    """

    pairs: tuple[TextPair, ...]
    documents: int
    repeated: Counter[Kind]
    ambiguous: Counter[Kind]
    over_limit: Counter[Kind]

    def counts(self) -> dict[Kind, int]:
        """How many pairs there are of each kind that has any."""
        counted = Counter(pair.kind for pair in self.pairs)
        return {kind: counted[kind] for kind in KINDS if counted[kind]}

    def of(self, documents: Iterable[str]) -> tuple[TextPair, ...]:
        """The pairs that stand in the given documents with both texts."""
        wanted = set(documents)
        return tuple(pair for pair in self.pairs if {pair.source, pair.anchor_source} <= wanted)
