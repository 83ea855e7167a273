"""What the rest of likewise needs of an encoder: the one interface between vectors and everything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Role = Literal["query", "passage"]


class Embeddings(NamedTuple):
    """Vectors with the report that belongs to them.

    Attributes:
        vectors: float32 of shape (n, dimension), rows L2-normalised, in the order of the texts.
        truncated: Positions of the texts that were longer than the encoder takes and were cut.
    """

    vectors: NDArray[np.float32]
    truncated: tuple[int, ...]


class TextEncoder(Protocol):
    """Turns texts into unit vectors whose inner product is the cosine similarity."""

    @property
    def name(self) -> str:
        """Name for people: the hub id or the folder it was loaded from."""
        ...

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digest of everything that changes a vector: equal fingerprints, equal vectors."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    @property
    def passage_tokens(self) -> int:
        """Tokens of text that a passage may have: the model's limit less special tokens and prompt."""
        ...

    def embed(self, texts: Sequence[str], *, role: Role) -> Embeddings:
        """Vectors of the texts and the positions of those that were cut."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """`embed` in the role of queries, vectors only."""
        ...

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """`embed` in the role of passages, vectors only."""
        ...

    def token_spans(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """Character spans of each text's tokens, shape (tokens, 2): uncut, no special tokens, no prompt."""
        ...

    def unknown_share(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Share of each text's tokens that stand for "not in the vocabulary", shape (n,), in [0, 1].

        0 for a text without tokens, and always for vocabularies of bytes, which spell everything.
        """
        ...
