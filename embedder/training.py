"""The one training loop of this project: pretraining, fine-tuning and siamese training all run through it.

It decides how long a run lasts, when it reports, evaluates, saves and stops. What a step computes stands in
`training_step`, what a loss is in the objective, what a batch is in the feed; none of it may be known here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, Literal

import torch
from torch import nn

from likewise.embedder.batches import Batches, Feed, Position, Stage
from likewise.embedder.checkpoint import CheckpointStore
from likewise.embedder.distributed import World
from likewise.embedder.divergence import LossWatch
from likewise.embedder.events import Evaluated, Event, Listener, Progress, Saved, Started
from likewise.embedder.interrupts import Interrupt
from likewise.embedder.precision import Precision
from likewise.embedder.training_protocol import B, E, TrainingObjective
from likewise.embedder.training_settings import TrainingSettings
from likewise.embedder.training_step import NotFinite, Stepper
from likewise.errors import DataError, TrainingError

Status = Literal["finished", "stopped early", "interrupted"]


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended.

    Attributes:
        status: Budget used up, stopped early, or interrupted (run it again to continue).
        step: Optimiser steps done.
        epochs: Passes over the data.
        seconds: Time spent, earlier runs included.
        precision: What the forward passes ran at.
        metrics: Of the best evaluation, empty without an evaluation hook.
        last: The newest checkpoint; None without a folder.
        best: The best checkpoint; None without a folder and an evaluation hook. The model has its weights.
    """

    status: Status
    step: int
    epochs: float
    seconds: float
    precision: Precision
    metrics: Mapping[str, float]
    last: Path | None
    best: Path | None


def train(
    model: nn.Module,
    objective: TrainingObjective[E, B],
    source: Batches[E] | Sequence[Stage[E]],
    settings: TrainingSettings,
    *,
    folder: Path | None = None,
    evaluate: Callable[[nn.Module], Mapping[str, float]] | None = None,
    listeners: Sequence[Listener] = (),
    identity: Mapping[str, Any] | None = None,
    world: World | None = None,
) -> TrainingResult:
    """Train a model, continuing where an earlier run in the same folder stopped.

    Args:
        model: Trained in place, on the device where it is. Ends with the best weights, or the last ones
            without an evaluation hook; with `settings.average`, with the mean that stood there.
        objective: Makes batches of examples and computes the loss.
        source: The training data, or stages of the run with data of their own (short sequences first).
        settings: Budget, optimiser and the rest.
        folder: For checkpoints; None saves nothing.
        evaluate: Returns metrics of the model, which is in evaluation mode without gradients. Must give the
            same value for the same weights.
        listeners: Called with every event, in the first process only.
        identity: Whatever else a checkpoint belongs to, such as the model's configuration, as JSON.
        world: The processes that train together; None is this one alone.

    Returns:
        How the run ended, with its last and best checkpoint.

    Raises:
        DataError: No data, or fewer batches than processes.
        CheckpointError: A checkpoint in the folder belongs to a run with other settings or is damaged, or a
            new one cannot be written.
        TrainingError: The loss became infinite, not a number, or diverged; the last checkpoint is kept.

    Example:
        See `likewise.embedder.pretrain`, which is a complete use of this function.
    """
    loop = _Loop(model, objective, source, settings, folder, evaluate, listeners, identity, world or World())
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices), Interrupt() as interrupt:
        try:
            return loop.run(interrupt)
        finally:
            loop.feed.close()


class _Loop(Generic[E, B]):
    def __init__(
        self,
        model: nn.Module,
        objective: TrainingObjective[E, B],
        source: Batches[E] | Sequence[Stage[E]],
        settings: TrainingSettings,
        folder: Path | None,
        evaluate: Callable[[nn.Module], Mapping[str, float]] | None,
        listeners: Sequence[Listener],
        identity: Mapping[str, Any] | None,
        world: World,
    ) -> None:
        self.model, self.objective, self.settings, self.world = model, objective, settings, world
        self.evaluate, self.listeners = evaluate, listeners
        self.device = next(model.parameters()).device
        self.feed: Feed[E, B] = Feed(source, self._prepare, rank=world.rank, world=world.size)
        smallest = min(stage.batches.length(0) for stage in self.feed.stages)
        if smallest < world.size or settings.accumulation < world.size:
            raise DataError(
                f"expected at least one micro-batch per process and step, found {smallest} in the data and "
                f"accumulation {settings.accumulation} for {world.size} processes",
                remedy=f"set accumulation to a multiple of {world.size}, or start fewer processes",
            )
        self.stepper = Stepper(model, objective, self.feed, settings, world)
        self.store = CheckpointStore(folder, keep=settings.keep) if folder is not None else None
        self.config = {
            "settings": settings.identity(),
            "objective": objective.name,
            "data": self.feed.fingerprint,
            "parameters": sum(parameter.numel() for parameter in self.stepper.parameters),
            **(identity or {}),
        }
        self.step = 0
        self.losses = LossWatch()
        self.best: dict[str, float] = {}
        self.misses = 0
        self.evaluated_at = self.saved_at = -1
        self.reported_at = 0
        self.seconds_before = 0.0
        self.started = time.perf_counter()
        self.reported = self.started

    def run(self, interrupt: Interrupt) -> TrainingResult:
        resumed = self._resume()
        if resumed is None:
            self.world.share_weights(self.model)
            self.stepper.probe()
        self._tell(Started(self.step, self.stepper.precision, resumed))
        self.started = self.reported = time.perf_counter()
        self.model.train()
        status: Status = "finished"
        while (progress := self._progress()) < 1.0:
            if self.world.any(bool(interrupt), self.device):
                status = "interrupted"
                break
            self._take_step(progress)
            if self.losses.opening is None:
                self.losses.opening = self.stepper.meter.read(self.world, self.device)["loss"]
            if self.step % self.settings.log_every == 0:
                self._report()
            if _due(self.step, self.settings.evaluate_every) and self._evaluate():
                status = "stopped early"
                break
            if _due(self.step, self.settings.save_every):
                self._save()
        if status != "interrupted":
            if self.step > self.reported_at:
                self._report()
            self._evaluate()
        self._save()
        return self._result(status)

    def _take_step(self, progress: float) -> None:
        kind, budget = self.settings.budget
        places = self.feed.take(
            max(self.world.size, self.settings.micro_batches(progress)),
            progress=progress,
            until_epoch=budget if kind == "epochs" else None,
        )
        try:
            self.stepper.step(places, progress=progress, following=self._following(progress))
        except NotFinite as error:
            raise self._diverged(error.message) from None
        self.step += 1

    def _prepare(self, examples: Sequence[E], draw: int, progress: float) -> B:
        return self.objective.prepare(examples, draw=draw, progress=progress)

    @property
    def seconds(self) -> float:
        return self.seconds_before + time.perf_counter() - self.started

    def _progress(self) -> float:
        """Share of the budget that is used, at most 1."""
        kind, budget = self.settings.budget
        if kind == "minutes":
            return min(1.0, self.world.from_lead(self.seconds / (60 * budget), self.device))
        done = self.step if kind == "steps" else self.feed.epochs
        return 1.0 if done >= budget - 1e-9 else done / budget

    def _following(self, progress: float) -> float:
        """Share of the budget that will be used after this step, whose batches are taken already."""
        kind, budget = self.settings.budget
        if kind == "steps":
            return min(1.0, (self.step + 1) / budget)
        return min(1.0, self.feed.epochs / budget) if kind == "epochs" else progress

    def _report(self) -> None:
        metrics = self.stepper.meter.read(self.world, self.device)
        tokens = self.world.add_counts({"tokens": self.stepper.tokens}, self.device)["tokens"]
        now, progress = time.perf_counter(), self._progress()
        self._tell(
            Progress(
                step=self.step,
                epochs=self.feed.epochs,
                progress=progress,
                metrics=metrics,
                learning_rate=self.stepper.learning_rate,
                gradient_norm=self.stepper.gradient_norm,
                tokens_per_second=tokens / max(now - self.reported, 1e-9),
                seconds=self.seconds,
                remaining=self.seconds * (1 - progress) / progress if progress else math.inf,
            )
        )
        self.stepper.reset_meters()
        self.reported = now
        steps, self.reported_at = self.step - self.reported_at, self.step
        if runaway := self.losses.follow(metrics["loss"], steps=steps):
            raise self._diverged(runaway)

    def _evaluate(self) -> bool:
        """Evaluate unless this step was; save an improvement; tell whether to stop early."""
        if self.evaluate is None or self.evaluated_at == self.step:
            return False
        self.evaluated_at = self.step
        self.model.eval()
        with torch.no_grad(), self.stepper.average.applied():
            found = self.evaluate(self.model)
        # The first process's figures for all: they decide together whether to stop, to the last bit.
        metrics = {name: self.world.from_lead(value, self.device) for name, value in found.items()}
        self.model.train()
        watch = self.settings.watch
        if watch not in metrics:
            raise TrainingError(
                f"expected the evaluation to return the watched metric {watch!r}, found {sorted(metrics)}",
                remedy=f"watch one of {', '.join(sorted(metrics))}",
            )
        sign = 1 if self.settings.watch_mode == "max" else -1
        improved = not self.best or sign * metrics[watch] > sign * self.best[watch]
        self.misses = 0 if improved else self.misses + 1
        if improved:
            self.best = metrics
        self._tell(Evaluated(self.step, metrics, improved))
        if improved:
            self._save(best=True)
        return self.settings.patience is not None and self.misses >= self.settings.patience

    def _save(self, *, best: bool = False) -> None:
        if self.store is None or self.saved_at == self.step:
            return
        self.saved_at = self.step
        if self.world.leads:
            path = self.store.save(
                self.step,
                self.model,
                self.stepper.optimizer,
                state=self._state(),
                config=self.config,
                average=self.stepper.average,
                best=best,
            )
            self._tell(Saved(self.step, path))
        self.world.wait()

    def _state(self) -> dict[str, Any]:
        return {
            "position": asdict(self.feed.position),
            "seconds": self.seconds,
            "precision": self.stepper.precision,
            "losses": self.losses.state(),
            "best": self.best,
            "misses": self.misses,
            "evaluated_at": self.evaluated_at,
        }

    def _resume(self) -> Path | None:
        """Go on from the newest checkpoint, if there is one."""
        path = self.store.latest() if self.store is not None else None
        if self.store is None or path is None:
            return None
        state = self.store.load(
            path, self.model, self.stepper.optimizer, config=self.config, average=self.stepper.average
        )
        self.step = self.saved_at = self.reported_at = int(path.name.removeprefix("step-"))
        self.feed.position = Position(**state["position"])
        self.seconds_before = state["seconds"]
        self.stepper.precision = state["precision"]
        self.losses = LossWatch(**state["losses"])
        self.best, self.misses = state["best"], state["misses"]
        self.evaluated_at = state["evaluated_at"]
        return path

    def _result(self, status: Status) -> TrainingResult:
        last = self.store.latest() if self.store is not None else None
        best = self.store.best() if self.store is not None else None
        if self.store is not None and best is not None and status != "interrupted":
            self.store.load(best, self.model, average=self.stepper.average)
        if status != "interrupted":
            self.stepper.average.adopt()
        self.model.eval()
        return TrainingResult(
            status, self.step, self.feed.epochs, self.seconds, self.stepper.precision, self.best, last, best
        )

    def _tell(self, event: Event) -> None:
        if self.world.leads:
            for listener in self.listeners:
                listener(event)

    def _diverged(self, what: str) -> TrainingError:
        kept = self.store.latest() if self.store is not None else None
        return TrainingError(
            f"training stopped at step {self.step}: {what}; "
            + (f"the last good checkpoint is kept: {kept}" if kept else "no checkpoint was written yet"),
            remedy=f"a lower learning rate than {self.settings.learning_rate:g}, or a longer warm-up",
        )


def _due(step: int, every: int | None) -> bool:
    return every is not None and step % every == 0
