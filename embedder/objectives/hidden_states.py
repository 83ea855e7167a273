"""Distillation of an encoder without a vocabulary head: the student's vectors turn towards its teacher's.

    1 - cos(student, teacher) of the last hidden states, at every token of unmasked text

This is the cosine term of DistilBERT (Sanh et al. 2019, 1910.01108) alone, for sentence encoders: what they
are used for is the mean of just these vectors, on whole sentences. Nothing is masked, nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from likewise.embedder.examples import Batch, Example, collate
from likewise.embedder.objectives import Loss, Term
from likewise.embedder.pretraining import PretrainingModel
from likewise.errors import UsageError


@dataclass(frozen=True, slots=True, eq=False)
class HiddenStateDistillation:
    """Make the hidden states of a student point where its teacher's do.

    The teacher belongs to the objective and not to the model that is trained.

    Attributes:
        teacher: As wide as the student.
        pad_id: Fills padded batches.
    """

    teacher: PretrainingModel
    pad_id: int = 0

    def __post_init__(self) -> None:
        self.teacher.eval().requires_grad_(False)

    @property
    def name(self) -> str:
        """Short name for logs."""
        return "hidden states"

    def prepare(
        self, examples: Sequence[Example], *, draw: int | None, progress: float = 0.0, packed: bool = True
    ) -> Batch:
        """Collate; see `Objective.prepare`."""
        return collate(examples, packed=packed, pad_id=self.pad_id)

    def counts(self, batch: Batch) -> dict[str, int]:
        """One comparison for each real token."""
        return {"cosine": batch.tokens}

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Distance of a `PretrainingModel` to the teacher.

        Raises:
            UsageError: Their hidden states differ in width.
        """
        assert isinstance(model, PretrainingModel)
        ours, theirs = model.config.hidden_size, self.teacher.config.hidden_size
        if ours != theirs:
            raise UsageError(f"hidden states of {theirs} and {ours} numbers do not compare")
        real = batch.real_positions()
        with torch.no_grad():
            taught = self.teacher.to(batch.input_ids.device).hidden(batch, keep=real)
        # Autocast leaves both in float32: they come from a LayerNorm.
        apart = (1 - F.cosine_similarity(model.hidden(batch, keep=real), taught, dim=-1)).sum()
        return Loss((Term("cosine", apart, batch.tokens),))
