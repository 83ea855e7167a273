"""What the training loop needs of an objective and of its batches, whatever kind of example they are made of.

`likewise.embedder.objectives.Objective` is this protocol for sequences of tokens; fine-tuning and siamese
training bring examples and batches of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self, TypeVar

import torch
from torch import nn

from likewise.embedder.objectives import Loss


class TrainingBatch(Protocol):
    """A prepared batch of tensors."""

    @property
    def tokens(self) -> int:
        """Number of real tokens, padding not counted."""
        ...

    def to(self, device: torch.device) -> Self:
        """The same batch on another device."""
        ...


E = TypeVar("E")
B = TypeVar("B", bound=TrainingBatch)
E_contra = TypeVar("E_contra", contravariant=True)
B_inv = TypeVar("B_inv", bound=TrainingBatch)


class TrainingObjective(Protocol[E_contra, B_inv]):
    """`likewise.embedder.objectives.Objective` for any kind of example and batch."""

    @property
    def name(self) -> str:
        """Short name."""
        ...

    def prepare(self, examples: Sequence[E_contra], *, draw: int | None, progress: float = 0.0) -> B_inv:
        """Corrupt and collate examples."""
        ...

    def counts(self, batch: B_inv) -> dict[str, int]:
        """Predictions of each term."""
        ...

    def loss(self, model: nn.Module, batch: B_inv) -> Loss:
        """Sums of each term."""
        ...
