"""Masked language modelling: guess the tokens that were hidden (Devlin et al. 2018, 1810.04805)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor, nn

from likewise.embedder.examples import Batch, Example, collate
from likewise.embedder.masking import Masking, mask_example
from likewise.embedder.masking_vocabulary import MaskingVocabulary
from likewise.embedder.objectives import Loss, Metric, Term
from likewise.embedder.objectives.vocabulary import vocabulary_loss
from likewise.embedder.pretraining import PretrainingModel


@dataclass(frozen=True, slots=True)
class MaskedLanguageModelling:
    """BERT's objective: loss at the chosen positions only, projection at the chosen positions only.

    Attributes:
        vocabulary: Of the tokenizer.
        masking: What to choose and how to corrupt it.
        pad_id: Fills padded batches.
        weight: Share of the loss.
    """

    vocabulary: MaskingVocabulary
    masking: Masking = field(default_factory=Masking)
    pad_id: int = 0
    weight: float = 1.0

    @property
    def name(self) -> str:
        """Short name for logs."""
        return "mlm"

    def prepare(
        self, examples: Sequence[Example], *, draw: int | None, progress: float = 0.0, packed: bool = True
    ) -> Batch:
        """Mask and collate; see `Objective.prepare`."""
        masked = [
            mask_example(example, self.masking, self.vocabulary, draw=draw, progress=progress)
            for example in examples
        ]
        return collate(
            examples,
            inputs=[example.ids for example in masked],
            labels=[example.labels for example in masked],
            packed=packed,
            pad_id=self.pad_id,
        )

    def counts(self, batch: Batch) -> dict[str, int]:
        """One prediction for each chosen token."""
        return {"mlm": len(masked_targets(batch)[1])}

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Cross-entropy of a `PretrainingModel` at the chosen positions."""
        assert isinstance(model, PretrainingModel)
        positions, _ = masked_targets(batch)
        return self._loss(model, model.hidden(batch, keep=positions), batch)

    def loss_from_hidden(self, model: PretrainingModel, hidden: Tensor, batch: Batch) -> Loss:
        """The same, from hidden states (B * L, H) that are there already."""
        positions, _ = masked_targets(batch)
        return self._loss(model, hidden.index_select(0, positions), batch)

    def _loss(self, model: PretrainingModel, hidden: Tensor, batch: Batch) -> Loss:
        """The same, from the hidden states (M, H) of the chosen tokens."""
        _, targets = masked_targets(batch)
        found = vocabulary_loss(model, hidden, targets)
        count = len(targets)
        return Loss(
            (Term("mlm", found.sum, count, self.weight),),
            {"masked_accuracy": Metric(found.correct, count)},
        )


def masked_targets(batch: Batch) -> tuple[Tensor, Tensor]:
    """Positions and targets of a batch that `prepare` made."""
    assert batch.target_positions is not None and batch.targets is not None, "batch without masks"
    return batch.target_positions, batch.targets
