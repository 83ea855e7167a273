"""What a training objective is: the interface between the one training loop and every loss.

An objective corrupts examples (`prepare`), says how many predictions a batch asks for (`counts`), and
computes its loss (`loss`). Losses are *sums* with their counts, never means. A mean per micro-batch is the
usual mistake: micro-batches with few targets then weigh as much as those with many, and accumulating k of
them inflates the gradient k-fold. With sums, the loop adds up the counts of the whole accumulated batch (over
all processes) *before* the first backward pass and divides each term by its total; the gradient is then that
of the big batch.

    batches = [objective.prepare(part, draw=epoch, progress=step / steps) for part in micro_batches]
    totals = add_counts(objective.counts(batch) for batch in batches)
    for batch in batches:
        objective.loss(model, batch).total(totals).backward()
    optimizer.step()

This module holds no loss itself; each stands in a file of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor, nn

from likewise.embedder.examples import Batch, Example


@dataclass(frozen=True, slots=True)
class Term:
    """One part of a loss: `weight * sum / count` once the counts of the whole batch are known.

    Attributes:
        name: Such as "mlm"; the key in `Objective.counts`.
        sum: Scalar float tensor with gradient: the loss summed over `count` predictions.
        count: Number of predictions; may be 0.
        weight: Share of the term in the loss.
    """

    name: str
    sum: Tensor
    count: int
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Metric:
    """A number to report, as a sum (scalar tensor without gradient) over `count` cases."""

    sum: Tensor
    count: int


@dataclass(frozen=True, slots=True)
class Loss:
    """What an objective makes of a batch.

    Attributes:
        terms: Parts of the loss, each with a name of its own.
        metrics: Such as "masked_accuracy": add up sums and counts over batches, then divide.
    """

    terms: tuple[Term, ...]
    metrics: Mapping[str, Metric] = field(default_factory=dict)

    def total(self, counts: Mapping[str, int] | None = None) -> Tensor:
        """Weighted loss of this batch as its share of a bigger one; what `backward` is called on.

        Args:
            counts: Predictions of each term in the whole accumulated batch; None means this batch is all.

        Example:
            >>> import torch
            >>> mlm = Term("mlm", torch.tensor(6.0), count=3)
            >>> nsp = Term("nsp", torch.tensor(1.0), count=2, weight=0.5)
            >>> loss = Loss((mlm, nsp))
            >>> loss.total()
            tensor(2.2500)
            >>> loss.total({"mlm": 12, "nsp": 8})
            tensor(0.5625)
        """
        # A term without a single prediction has the sum 0; any divisor but 0 keeps it there.
        parts = [
            term.weight * term.sum / max(term.count if counts is None else counts[term.name], 1)
            for term in self.terms
        ]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total


class Objective(Protocol):
    """A way to train an encoder."""

    @property
    def name(self) -> str:
        """Short name for logs, such as "mlm"."""
        ...

    def prepare(
        self, examples: Sequence[Example], *, draw: int | None, progress: float = 0.0, packed: bool = True
    ) -> Batch:
        """Corrupt examples and collate them; a pure function of its arguments and the objective's settings.

        No random state is carried along: what is drawn for an example depends on the objective's seed, the
        example's key and `draw`. So a resumed run repeats exactly what an uninterrupted one does.

        Args:
            examples: Sequences with special tokens.
            draw: How often each example was seen before (the epoch); None for evaluation, where every call
                gives the same corruption.
            progress: Share of the training that is done, in [0, 1], for schedules of the masking rate.
            packed: Pack the sequences into one row, or pad them to one row each.
        """
        ...

    def counts(self, batch: Batch) -> dict[str, int]:
        """Predictions that each term of `loss` will sum over, known before the model runs."""
        ...

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Loss of the model on a batch that `prepare` made."""
        ...


def add_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up the counts of several batches.

    Example:
        >>> add_counts([{"mlm": 3, "nsp": 1}, {"mlm": 4, "nsp": 0}])
        {'mlm': 7, 'nsp': 1}
    """
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return dict(total)
