"""Frame ids as a model expects a text: the special tokens before and after, such as [CLS] ... [SEP]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.examples import Example
from likewise.errors import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Frame:
    """What stands around a text.

    Attributes:
        before: Ids of the special tokens before it.
        after: Ids of those after it.

    Example:
        >>> Frame((2,), (3,)).example(np.array([7, 8]), key=5).ids.tolist()
        [2, 7, 8, 3]
    """

    before: tuple[int, ...]
    after: tuple[int, ...]

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase) -> Frame:
        """The frame that a tokenizer puts around a single text."""
        framed = list(tokenizer("a")["input_ids"])
        bare = list(tokenizer("a", add_special_tokens=False)["input_ids"])
        for start in range(len(framed) - len(bare) + 1):
            if framed[start : start + len(bare)] == bare:
                return cls(tuple(framed[:start]), tuple(framed[start + len(bare) :]))
        raise UsageError(
            f"expected a tokenizer that puts special tokens around a text, found one that changes it: "
            f"{bare} became {framed}"
        )

    @property
    def size(self) -> int:
        """Number of special tokens."""
        return len(self.before) + len(self.after)

    def example(self, ids: NDArray[np.integer], *, key: int) -> Example:
        """A text with its special tokens.

        Args:
            ids: Integers of shape (length,).
            key: Stable number of the example, see `Example.key`.
        """
        framed = np.concatenate((self.before, ids, self.after)).astype(np.int64)
        special = np.ones(len(framed), dtype=bool)
        special[len(self.before) : len(framed) - len(self.after)] = False
        return Example(framed, special, key)
