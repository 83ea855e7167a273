"""Averages of losses and metrics over many batches, exact because sums and counts are added, never means."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from likewise.embedder.distributed import World

if TYPE_CHECKING:
    from likewise.embedder.objectives import Loss

# Terms that are a cross-entropy over the vocabulary, whose exponential is the perplexity.
LANGUAGE_MODEL_TERMS = ("mlm", "causal")


class Meter:
    """Adds up what objectives return; sums stay on the device until they are read."""

    def __init__(self) -> None:
        self._sums: dict[str, torch.Tensor] = {}
        self._counts: dict[str, int] = {}
        self._weights: dict[str, float] = {}

    def add(self, loss: Loss) -> None:
        """Take in the terms and metrics of one batch."""
        for term in loss.terms:
            self._weights[term.name] = term.weight
            self._add(f"term/{term.name}", term.sum, term.count)
        for name, metric in loss.metrics.items():
            self._add(f"metric/{name}", metric.sum, metric.count)

    def read(self, world: World, device: torch.device) -> dict[str, float]:
        """Averages over all processes: `loss`, each term if there are several, perplexity, and metrics."""
        sums = world.add_values({name: float(value) for name, value in self._sums.items()}, device)
        counts = world.add_counts(self._counts, device)
        means = {name: total / counts[name] for name, total in sums.items() if counts[name]}
        terms = {name.removeprefix("term/"): mean for name, mean in means.items() if name.startswith("term/")}
        values = {"loss": sum(self._weights[name] * mean for name, mean in terms.items())}
        if len(self._weights) > 1:
            values |= terms
        for name in LANGUAGE_MODEL_TERMS:
            if name in terms:
                values["perplexity"] = math.exp(min(terms[name], 700.0))  # no overflow when it diverges
        metrics = (name for name in means if name.startswith("metric/"))
        return values | {name.removeprefix("metric/"): means[name] for name in metrics}

    def _add(self, name: str, value: torch.Tensor, count: int) -> None:
        value = value.detach()
        if value.device.type != "mps":  # which has no float64
            value = value.double()
        self._sums[name] = self._sums[name] + value if name in self._sums else value
        self._counts[name] = self._counts.get(name, 0) + count
