"""What the two objectives over sentence pairs share: a two-class loss on the pooled [CLS].

NSP and SOP differ in how their pairs are made (`sentence_pairs.py`), not in the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from likewise.embedder.examples import Batch, Example, collate
from likewise.embedder.objectives import Loss, Metric, Term
from likewise.embedder.pretraining import PretrainingModel
from likewise.errors import DataError


@dataclass(frozen=True, slots=True)
class SentencePairObjective:
    """Tell the two classes of `Pair.label` apart.

    Attributes:
        name: Short name for logs.
        pad_id: Fills padded batches.
        weight: Share of the loss.
    """

    name: ClassVar[str]
    pad_id: int = 0
    weight: float = 1.0

    def prepare(
        self, examples: Sequence[Example], *, draw: int | None, progress: float = 0.0, packed: bool = True
    ) -> Batch:
        """Collate; nothing is corrupted, so `draw` and `progress` do not matter."""
        return collate(examples, packed=packed, pad_id=self.pad_id)

    def counts(self, batch: Batch) -> dict[str, int]:
        """One prediction for each pair."""
        return {self.name: len(_labels(batch))}

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Cross-entropy of a `PretrainingModel` with a pair head."""
        assert isinstance(model, PretrainingModel)
        return self.loss_from_hidden(model, model.hidden(batch), batch)

    def loss_from_hidden(self, model: PretrainingModel, hidden: Tensor, batch: Batch) -> Loss:
        """The same, from hidden states (B * L, H) that are there already."""
        labels = _labels(batch)
        logits = model.pair_logits(hidden.index_select(0, batch.first_positions()))  # (sequences, 2)
        total = F.cross_entropy(logits, labels, reduction="sum")
        correct = (logits.detach().argmax(dim=-1) == labels).sum()
        return Loss(
            (Term(self.name, total, len(labels), self.weight),),
            {f"{self.name}_accuracy": Metric(correct, len(labels))},
        )


def _labels(batch: Batch) -> Tensor:
    if batch.pair_labels is None:
        raise DataError("expected examples that are sentence pairs with a label, found single texts")
    return batch.pair_labels
