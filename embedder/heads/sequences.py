"""What the tasks with one answer for a whole text, or a pair of texts, share.

A text that is longer than a window is cut, or gives several windows whose logits are averaged. In training
each window of a text is a row of its own that counts as its share of the text.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.heads.data import Example, TextExample
from likewise.embedder.heads.task import Encoded, LongText, Row, Task
from likewise.embedder.heads.tokens import WindowTokenizer
from likewise.errors import UsageError


class SequenceTask(Task):
    """A task with one answer for a text or a pair.

    Args:
        labels: Names of the outputs.
        pair: Whether an example has two texts.
        length: Most tokens in a window.
        long_text: What happens to longer texts: "first" cuts them, "windows" uses all of them.
        overlap: Tokens that neighbouring windows share.
    """

    auto_class = "AutoModelForSequenceClassification"

    def __init__(
        self,
        labels: Sequence[str] = (),
        *,
        pair: bool = False,
        length: int = 256,
        long_text: LongText = "first",
        overlap: int = 32,
    ) -> None:
        if long_text not in ("first", "windows"):
            raise UsageError(f"expected long texts to be cut (first) or windows, found {long_text!r}")
        self.labels = tuple(labels)
        self.outputs = len(self.labels)
        self.pair = pair
        self.length = length
        self.long_text: LongText = long_text
        self.overlap = overlap

    def settings(self) -> dict[str, Any]:
        """See `Task.settings`."""
        return {
            "pair": self.pair,
            "length": self.length,
            "long_text": self.long_text,
            "overlap": self.overlap,
        }

    def encode(self, examples: Sequence[Example], tokenizer: WindowTokenizer) -> Encoded:
        """One window for each example, or several of a long text."""
        texts = [_texts(example, 2 if self.pair else 1) for example in examples]
        firsts = [text[0] for text in texts]
        seconds = [text[1] for text in texts] if self.pair else None
        if self.long_text == "windows":
            length, overlap = self.length, self.overlap
            if seconds is not None:
                return Encoded.of(tokenizer.pairs(firsts, seconds, length=length, overlap=overlap))
            return Encoded.of(tokenizer.all(firsts, length=length, overlap=overlap))
        windows, cut = tokenizer.first(firsts, seconds, length=self.length)
        return Encoded.of([[window] for window in windows], cut)

    def rows(self, examples: Sequence[Example], encoded: Encoded) -> list[Row]:
        """A row for each window; the windows of a text weigh as much as one text, on the average 1."""
        sizes = np.bincount(encoded.owner, minlength=len(examples))
        scale = len(encoded.windows) / len(examples)
        targets = [self.target(example) for example in examples]
        return [
            Row(window, targets[owner], scale / int(sizes[owner]) * self.weight(targets[owner]))
            for window, owner in zip(encoded.windows, encoded.owner.tolist(), strict=True)
        ]

    def pooled(self, encoded: Encoded, logits: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Mean logits of each example, shape (examples, outputs)."""
        if not len(encoded.owner):
            return np.zeros((0, self.outputs), dtype=np.float32)
        every = np.stack(logits).astype(np.float32)
        starts = np.flatnonzero(np.diff(encoded.owner, prepend=-1))
        sums = np.add.reduceat(every, starts, axis=0)
        mean = sums / np.bincount(encoded.owner)[:, None]
        return mean.astype(np.float32)

    @abstractmethod
    def target(self, example: Example) -> NDArray[Any]:
        """What should come out for an example."""

    def weight(self, target: NDArray[Any]) -> float:
        """Factor of the loss of an example."""
        return 1.0


def label_of(example: Example) -> Any:
    """The label of a text example."""
    assert isinstance(example, TextExample)
    return example.label


def _texts(example: Example, wanted: int) -> tuple[str, ...]:
    assert isinstance(example, TextExample)
    if len(example.texts) != wanted:
        raise UsageError(
            f"expected {'a pair of texts' if wanted == 2 else 'one text'} for this model, "
            f"found {len(example.texts)}"
        )
    return example.texts
