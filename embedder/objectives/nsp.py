"""Next sentence prediction: does the second text follow the first? (Devlin et al. 2018, 1810.04805).

The pairs are made by `sentence_pairs.next_sentence_pairs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from likewise.embedder.examples import Batch, Example, collate
from likewise.embedder.objectives import Loss
from likewise.embedder.objectives.sentence_pair import pair_labels, pair_loss
from likewise.embedder.pretraining import PretrainingModel


@dataclass(frozen=True, slots=True)
class NextSentencePrediction:
    """BERT's second objective; RoBERTa found that it does not help.

    Attributes:
        pad_id: Fills padded batches.
        weight: Share of the loss.
    """

    pad_id: int = 0
    weight: float = 1.0

    @property
    def name(self) -> str:
        """Short name for logs."""
        return "nsp"

    def prepare(
        self, examples: Sequence[Example], *, draw: int | None, progress: float = 0.0, packed: bool = True
    ) -> Batch:
        """Collate; nothing is corrupted, so `draw` and `progress` do not matter."""
        return collate(examples, packed=packed, pad_id=self.pad_id)

    def counts(self, batch: Batch) -> dict[str, int]:
        """One prediction for each pair."""
        return {"nsp": len(pair_labels(batch))}

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Cross-entropy of a `PretrainingModel` with a pair head."""
        assert isinstance(model, PretrainingModel)
        return self.loss_from_hidden(model, model.hidden(batch), batch)

    def loss_from_hidden(self, model: PretrainingModel, hidden: Tensor, batch: Batch) -> Loss:
        """The same, from hidden states (B * L, H) that are there already."""
        return pair_loss("nsp", self.weight, model, hidden, batch)
