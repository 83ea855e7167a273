"""Causal language modelling: guess the next token from those before it (Radford et al. 2018).

The contrast to BERT: nothing is hidden from the input, the attention mask hides the future instead. Every
token but the first of a sequence is a target, so a step learns from six times as many as MLM at 15%, but a
token's vector knows only what stands to its left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import nn

from likewise.embedder.examples import Batch, Example, collate
from likewise.embedder.masking import NOT_A_TARGET
from likewise.embedder.objectives import Loss, Metric, Term
from likewise.embedder.objectives.vocabulary import vocabulary_loss
from likewise.embedder.pretraining import PretrainingModel
from likewise.errors import UsageError


@dataclass(frozen=True, slots=True)
class CausalLanguageModelling:
    """GPT's objective; needs a model with `causal=True`, to which the task is not trivial.

    Attributes:
        pad_id: Fills padded batches.
    """

    pad_id: int = 0

    @property
    def name(self) -> str:
        """Short name for logs."""
        return "causal"

    def prepare(
        self, examples: Sequence[Example], *, draw: int | None, progress: float = 0.0, packed: bool = True
    ) -> Batch:
        """Collate; the label of a token is the next one of its own sequence, the last token has none."""
        labels = [np.append(example.ids[1:], NOT_A_TARGET).astype(np.int64) for example in examples]
        return collate(examples, labels=labels, packed=packed, pad_id=self.pad_id)

    def counts(self, batch: Batch) -> dict[str, int]:
        """One prediction for each token but the first of each sequence."""
        return {"causal": 0 if batch.targets is None else len(batch.targets)}

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Cross-entropy of a causal `PretrainingModel`.

        Raises:
            UsageError: The model sees the token it is to guess.
        """
        assert isinstance(model, PretrainingModel)
        assert batch.target_positions is not None and batch.targets is not None, "batch without targets"
        if not model.config.causal:
            raise UsageError(
                "causal language modelling needs a model with causal=True, found a bidirectional one"
            )
        found = vocabulary_loss(model, model.hidden(batch, keep=batch.target_positions), batch.targets)
        count = len(batch.targets)
        return Loss((Term("causal", found.sum, count),), {"next_accuracy": Metric(found.correct, count)})
