"""One optimiser step: the part of training that touches weights and gradients.

The predictions that all micro-batches of all processes ask for are added up first; every loss is divided by
those totals before its backward pass, so the accumulated gradient is exactly that of the big batch. How long
a run lasts and what is saved is decided in `training`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Generic

from torch import nn

from likewise.embedder.batches import Feed, Position
from likewise.embedder.cpu_attention import short_attention
from likewise.embedder.cpu_memory import FreeMemory, limit_kept_kernels
from likewise.embedder.distributed import World
from likewise.embedder.meters import Meter
from likewise.embedder.objectives import Loss, add_counts
from likewise.embedder.optim import adamw, clip_gradients, parameter_groups, set_rate
from likewise.embedder.precision import Precision, autocast, choose_precision
from likewise.embedder.randomness import seed_batch
from likewise.embedder.training_protocol import B, E, TrainingObjective
from likewise.embedder.training_settings import TrainingSettings
from likewise.embedder.weight_average import WeightAverage
from likewise.errors import TrainingError


class NotFinite(TrainingError):
    """A gradient is infinite or not a number; the weights are as they were before the step."""


class Stepper(Generic[E, B]):
    """Takes optimiser steps.

    Args:
        model: Trained in place, on the device where it is.
        objective: Computes the loss of a batch.
        feed: Delivers the batches.
        settings: Of the optimiser, clipping and precision.
        world: The processes that train together.
    """

    def __init__(
        self,
        model: nn.Module,
        objective: TrainingObjective[E, B],
        feed: Feed[E, B],
        settings: TrainingSettings,
        world: World,
    ) -> None:
        self.model, self.objective, self.feed = model, objective, feed
        self.settings, self.world = settings, world
        self.device = next(model.parameters()).device
        self._free = FreeMemory() if self.device.type == "cpu" else None
        if self._free is not None:
            limit_kept_kernels()
        groups = parameter_groups(
            model,
            weight_decay=settings.weight_decay,
            learning_rate=settings.learning_rate,
            layer_decay=settings.layer_decay,
        )
        self.parameters = [parameter for group in groups for parameter in group["params"]]
        self.optimizer = adamw(groups, betas=(settings.beta1, settings.beta2), epsilon=settings.epsilon)
        self.average = WeightAverage(self.parameters, span=settings.average, start=settings.warmup)
        self.precision: Precision = "float32"
        self.gradient_norm = 0.0
        self.reset_meters()

    def reset_meters(self) -> None:
        """Begin new averages of the loss and a new count of tokens."""
        self.meter, self.tokens = Meter(), 0

    @property
    def learning_rate(self) -> float:
        """Rate of the last step, of the group with the highest."""
        return max(float(group["lr"]) for group in self.optimizer.param_groups)

    def step(self, places: Sequence[Position], *, progress: float, following: float) -> None:
        """Take one step.

        Args:
            places: Where this process's micro-batches stand.
            progress: Share of the run that is done before the step.
            following: Share that is done after it.

        Raises:
            NotFinite: The gradient is unusable.
        """
        settings = self.settings
        batches = list(
            self.feed.deliver(places, progress=_coarse(progress), next_progress=_coarse(following))
        )
        totals = self.world.add_counts(self._counts(batches), self.device)
        for place, batch in zip(places, batches, strict=True):
            seed_batch(settings.seed, place.stage, place.epoch, place.index)
            with autocast(self.precision, self.device):
                loss = self._backward(batch, totals)
            self.meter.add(loss)
        self.world.add_gradients(self.parameters)
        self.gradient_norm = clip_gradients(self.parameters, settings.clip)
        if not math.isfinite(self.gradient_norm):
            raise NotFinite(f"the norm of the gradient became {self.gradient_norm}")
        # The middle of the step, so that neither the first nor the last one has the rate 0.
        set_rate(self.optimizer, settings.rate_factor((progress + following) / 2))
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.average.follow(following)
        if self._free is not None:
            self._free.give_back()
        self.tokens += sum(batch.tokens for batch in batches)

    def probe(self) -> None:
        """Choose the precision on a real batch; the first process decides for all."""
        batch = self._any_batch()
        totals = self.objective.counts(batch)
        chosen = choose_precision(self.settings.precision, self.device, lambda: self._backward(batch, totals))
        self.optimizer.zero_grad(set_to_none=True)
        half = self.world.from_lead(chosen == "bfloat16", self.device)
        self.precision = "bfloat16" if half else "float32"

    def _backward(self, batch: B, totals: Mapping[str, int]) -> Loss:
        with short_attention(self.device):
            loss = self.objective.loss(self.model, batch.to(self.device))
        loss.total(totals).backward()  # type: ignore[no-untyped-call]  # torch leaves it unannotated
        return loss

    def _counts(self, batches: Sequence[B]) -> dict[str, int]:
        if batches:
            return add_counts(self.objective.counts(batch) for batch in batches)
        # No share of the last step of an epoch: take part in its sums with zeros.
        return dict.fromkeys(self.objective.counts(self._any_batch()), 0)

    def _any_batch(self) -> B:
        return self.objective.prepare(self.feed.stages[0].batches.batch(0, 0), draw=0)


def _coarse(progress: float) -> float:
    """Progress as batches see it: in hundredths, so that one made ahead of time is seldom discarded."""
    return round(progress, 2)
