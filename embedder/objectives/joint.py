"""Several objectives over one forward pass, such as BERT's MLM and NSP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn

from likewise.embedder.examples import Batch, Example
from likewise.embedder.objectives import Loss, Objective
from likewise.embedder.pretraining import PretrainingModel


class HiddenObjective(Objective, Protocol):
    """An objective that can start from hidden states, so that several share one encoder pass."""

    def loss_from_hidden(self, model: PretrainingModel, hidden: Tensor, batch: Batch) -> Loss:
        """Loss from the hidden states (B * L, H) of the batch."""
        ...


@dataclass(frozen=True, slots=True)
class Joint:
    """The sum of several objectives; each term keeps its own count.

    Attributes:
        corrupting: The objective that prepares the batch, since inputs can be corrupted only once.
        others: Objectives that take the batch as the first one made it.
    """

    corrupting: HiddenObjective
    others: tuple[HiddenObjective, ...]

    @property
    def name(self) -> str:
        """Names of the parts, joined: "mlm+nsp"."""
        return "+".join(part.name for part in self._parts)

    @property
    def _parts(self) -> tuple[HiddenObjective, ...]:
        return (self.corrupting, *self.others)

    def prepare(
        self, examples: Sequence[Example], *, draw: int | None, progress: float = 0.0, packed: bool = True
    ) -> Batch:
        """As the corrupting objective does; `collate` keeps pair labels."""
        return self.corrupting.prepare(examples, draw=draw, progress=progress, packed=packed)

    def counts(self, batch: Batch) -> dict[str, int]:
        """Those of all parts."""
        return {name: count for part in self._parts for name, count in part.counts(batch).items()}

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """All terms, from one encoder pass."""
        assert isinstance(model, PretrainingModel)
        hidden = model.hidden(batch)
        losses = [part.loss_from_hidden(model, hidden, batch) for part in self._parts]
        return Loss(
            tuple(term for loss in losses for term in loss.terms),
            {name: metric for loss in losses for name, metric in loss.metrics.items()},
        )
