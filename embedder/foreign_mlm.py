"""Masked language modelling of models that `bert.py` does not write out, such as ModernBERT or XLM-R.

They run as Hugging Face's own class: padded batches, the vocabulary projection at all positions, slower.
Models of the BERT family go through `hf_export.from_hugging_face` instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import nn

from likewise.embedder.examples import Batch, Example
from likewise.embedder.objectives import Loss, Metric, Term
from likewise.embedder.objectives.mlm import MaskedLanguageModelling, masked_targets


@dataclass(frozen=True, slots=True)
class ForeignMaskedLanguageModelling:
    """The objective for any `AutoModelForMaskedLM`.

    Attributes:
        corruption: Masks and collates.
    """

    corruption: MaskedLanguageModelling

    @property
    def name(self) -> str:
        """Short name for logs."""
        return "mlm"

    def prepare(
        self, examples: Sequence[Example], *, draw: int | None, progress: float = 0.0, packed: bool = False
    ) -> Batch:
        """Mask and pad; see `Objective.prepare`. These models know no packed rows."""
        return self.corruption.prepare(examples, draw=draw, progress=progress, packed=False)

    def counts(self, batch: Batch) -> dict[str, int]:
        """One prediction for each chosen token."""
        return self.corruption.counts(batch)

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Cross-entropy at the chosen positions."""
        positions, targets = masked_targets(batch)
        mask = None if batch.mask is None else batch.mask.long()
        logits = model(input_ids=batch.input_ids, attention_mask=mask).logits  # (B, L, V)
        chosen = logits.flatten(0, 1).index_select(0, positions).float()  # (M, V)
        total = F.cross_entropy(chosen, targets, reduction="sum")
        right = (chosen.detach().argmax(dim=-1) == targets).sum()
        count = len(targets)
        return Loss((Term("mlm", total, count),), {"masked_accuracy": Metric(right, count)})
