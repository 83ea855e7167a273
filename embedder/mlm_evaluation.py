"""How well a model fills masks on text that it was not trained on, with an interval.

Masks are fixed by seed and position, so that two models see the same ones at 15%. Nothing here trains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from likewise.embedder.batches import Batches
from likewise.embedder.distributed import World
from likewise.embedder.examples import Example
from likewise.embedder.meters import Meter
from likewise.embedder.objectives import Objective
from likewise.embedder.precision import Precision, autocast


@dataclass(frozen=True)
class Estimate:
    """A ratio with its 95% interval, which is infinite where a single unit gives none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class MlmEvaluation:
    """Result of an evaluation.

    Attributes:
        loss: Cross-entropy per masked token, in nats.
        perplexity: Its exponential.
        masked_accuracy: Share of masked tokens guessed right.
        targets: Masked tokens.
    """

    loss: Estimate
    perplexity: Estimate
    masked_accuracy: Estimate
    targets: int


def held_out_metrics(
    model: nn.Module, objective: Objective, batches: Batches[Example], *, limit: int
) -> Mapping[str, float]:
    """Averages of the objective's terms and metrics, for the hook of `train`.

    Args:
        model: In evaluation mode.
        objective: Prepares with fixed corruption.
        batches: Held-out data.
        limit: Most batches to use: the first ones, always the same.
    """
    device = next(model.parameters()).device
    meter = Meter()
    for index in range(min(limit, batches.length(0))):
        batch = objective.prepare(batches.batch(0, index), draw=None)
        meter.add(objective.loss(model, batch.to(device)))
    return meter.read(World(), device)


def evaluate_mlm(
    model: nn.Module,
    objective: Objective,
    batches: Batches[Example],
    *,
    limit: int | None = None,
    precision: Precision = "float32",
) -> MlmEvaluation:
    """Masked accuracy and perplexity with intervals.

    Args:
        model: Any that the objective can run.
        objective: Masked language modelling.
        batches: Held-out data.
        limit: Most batches to use; None for all.
        precision: Of the forward passes.

    Returns:
        Estimates whose intervals take a batch as the unit, as tokens of one text are not independent.
    """
    device = next(model.parameters()).device
    rows = []
    model.eval()
    with torch.no_grad():
        for index in range(min(limit or batches.length(0), batches.length(0))):
            batch = objective.prepare(batches.batch(0, index), draw=None)
            with autocast(precision, device):
                loss = objective.loss(model, batch.to(device))
            term = loss.terms[0]
            rows.append((float(term.sum), float(loss.metrics["masked_accuracy"].sum), term.count))
    table = np.array(rows, dtype=np.float64)
    loss_estimate = ratio(table[:, 0], table[:, 2])
    values = (loss_estimate.value, loss_estimate.low, loss_estimate.high)
    # No overflow where the loss is beyond all bounds, and no number where it has none.
    perplexity = Estimate(
        *(math.exp(min(value, 700.0)) if value < math.inf else math.inf for value in values)
    )
    return MlmEvaluation(loss_estimate, perplexity, ratio(table[:, 1], table[:, 2]), int(table[:, 2].sum()))


def ratio(sums: NDArray[np.float64], counts: NDArray[np.float64]) -> Estimate:
    """A ratio of sums with a 95% interval by linearisation (Cochran 1977, chapter 6).

    Args:
        sums: float64 of shape (units,).
        counts: float64 of shape (units,), with a sum above 0.

    Example:
        >>> ratio(np.array([1.0, 1.0]), np.array([2.0, 2.0]))
        Estimate(value=0.5, low=0.5, high=0.5)
    """
    units = len(sums)
    value = float(sums.sum() / counts.sum())
    if units < 2:
        return Estimate(value, -math.inf, math.inf)
    residuals = sums - value * counts
    error = math.sqrt(units / (units - 1) * float((residuals**2).sum())) / float(counts.sum())
    return Estimate(value, value - 1.96 * error, value + 1.96 * error)
