"""What all losses of fine-tuning share: from rows to a batch, from the model to logits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from likewise.embedder.heads.rows import HeadBatch, Row, collate
from likewise.embedder.objectives import Loss


class HeadObjective(ABC):
    """An objective over rows, for `likewise.embedder.training`.

    Args:
        pad_id: Fills batches up.
    """

    name: ClassVar[str]
    per_token: ClassVar[bool] = False

    def __init__(self, *, pad_id: int) -> None:
        self.pad_id = pad_id

    def prepare(self, examples: Sequence[Row], *, draw: int | None, progress: float = 0.0) -> HeadBatch:
        """Pad rows into a batch; nothing is drawn."""
        return collate(examples, pad_id=self.pad_id, per_token=self.per_token)

    def counts(self, batch: HeadBatch) -> dict[str, int]:
        """Predictions that the loss sums over: one for each row."""
        return {self.name: len(batch.input_ids)}

    def loss(self, model: nn.Module, batch: HeadBatch) -> Loss:
        """Loss of a Hugging Face model with a head."""
        return self.loss_of(logits_of(model(**batch.model_inputs())).float(), batch)

    @abstractmethod
    def loss_of(self, logits: Tensor, batch: HeadBatch) -> Loss:
        """Loss from the logits, (B, outputs) or (B, L, outputs)."""


def logits_of(output: Any) -> Tensor:
    """Logits of a model's output; those of an answer's start and end as one tensor (B, L, 2)."""
    if hasattr(output, "start_logits"):
        return torch.stack((output.start_logits, output.end_logits), dim=-1)
    logits: Tensor = output.logits
    return logits
