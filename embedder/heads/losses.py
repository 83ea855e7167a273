"""The losses of the tasks, for the one training loop. Imports torch; the tasks themselves do not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from likewise.embedder.heads.rows import HeadBatch, collate
from likewise.embedder.heads.task import IGNORED, Row
from likewise.embedder.objectives import Loss, Metric, Term


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


class ClassificationObjective(HeadObjective):
    """Cross-entropy, weighted by row."""

    name = "classification"

    def loss_of(self, logits: Tensor, batch: HeadBatch) -> Loss:
        """From logits (B, labels)."""
        each = F.cross_entropy(logits, batch.targets, reduction="none")
        right = (logits.detach().argmax(dim=-1) == batch.targets).sum()
        return Loss(
            (Term(self.name, (each * batch.weights).sum(), len(each)),),
            {"accuracy": Metric(right, len(each))},
        )


class MultiLabelObjective(HeadObjective):
    """Binary cross-entropy, the mean over the labels of a row."""

    name = "multilabel"

    def loss_of(self, logits: Tensor, batch: HeadBatch) -> Loss:
        """From logits (B, labels)."""
        each = F.binary_cross_entropy_with_logits(logits, batch.targets, reduction="none").mean(dim=-1)
        right = ((logits.detach() > 0) == (batch.targets > 0.5)).sum()
        return Loss(
            (Term(self.name, (each * batch.weights).sum(), len(each)),),
            {"label_accuracy": Metric(right, logits.numel())},
        )


class RegressionObjective(HeadObjective):
    """Squared error."""

    name = "regression"

    def loss_of(self, logits: Tensor, batch: HeadBatch) -> Loss:
        """From logits (B, 1)."""
        errors = logits.squeeze(-1) - batch.targets
        total = (errors.square() * batch.weights).sum()
        return Loss(
            (Term(self.name, total, len(errors)),),
            {"absolute_error": Metric(errors.detach().abs().sum(), len(errors))},
        )


class TaggingObjective(HeadObjective):
    """Cross-entropy over the tags."""

    name = "tagging"
    per_token = True

    def counts(self, batch: HeadBatch) -> dict[str, int]:
        """One prediction for each tagged word."""
        return {self.name: int((batch.targets != IGNORED).sum())}

    def loss_of(self, logits: Tensor, batch: HeadBatch) -> Loss:
        """From logits (B, L, tags)."""
        chosen = batch.targets != IGNORED
        logits, targets = logits[chosen], batch.targets[chosen]  # (M, tags)
        right = (logits.detach().argmax(dim=-1) == targets).sum()
        return Loss(
            (Term(self.name, F.cross_entropy(logits, targets, reduction="sum"), len(targets)),),
            {"tag_accuracy": Metric(right, len(targets))},
        )


class AnswerObjective(HeadObjective):
    """Cross-entropy over the places of start and end, the mean of both."""

    name = "answer"

    def loss_of(self, logits: Tensor, batch: HeadBatch) -> Loss:
        """From logits (B, L, 2)."""
        if batch.attention_mask is not None:
            # Padding is no place for an answer.
            logits = logits.masked_fill(batch.attention_mask.unsqueeze(-1) == 0, -1e4)
        each = F.cross_entropy(logits, batch.targets, reduction="none").mean(dim=-1)  # (B,)
        right = (logits.detach().argmax(dim=1) == batch.targets).all(dim=-1).sum()
        return Loss(
            (Term(self.name, (each * batch.weights).sum(), len(each)),),
            {"window_accuracy": Metric(right, len(each))},
        )
