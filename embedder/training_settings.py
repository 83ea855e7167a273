"""Everything that can be set about a training run, checked when it is set."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from likewise.embedder.schedules import ScheduleName, rate_factor
from likewise.errors import UsageError

# Settings that change what is written or when, but not the weights: a run may be continued with others.
_NO_EFFECT_ON_WEIGHTS = frozenset({"log_every", "save_every", "keep"})


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Settings of one run; exactly one of `steps`, `epochs` and `minutes` is its budget.

    A budget of minutes makes the learning rate depend on the clock, so only the other two are reproducible.

    Attributes:
        steps: Optimiser steps.
        epochs: Passes over the data; fractions are allowed.
        minutes: Time spent training, earlier runs that this one continues included.
        learning_rate: Peak rate.
        schedule: linear, cosine, wsd (warm-up, stable, decay) or constant.
        warmup: Share of the run in which the rate rises.
        decay: Share of the run in which `wsd` falls.
        floor: Lowest factor of the rate after the warm-up.
        weight_decay: For matrices and embeddings only.
        layer_decay: Factor of the rate from a layer to the one below.
        beta1: Decay of the running mean of the gradient.
        beta2: Decay of the running mean of its square.
        epsilon: Of AdamW.
        clip: Largest gradient norm; None does not clip.
        average: Evaluate and keep a running mean of the weights, which looks back on this share of the run
            (see `weight_average`); 0 keeps the weights themselves.
        accumulation: Micro-batches per step, of all processes together.
        batch_warmup: Share of the run in which the number of micro-batches rises from 1 to `accumulation`.
        precision: auto (measured), float32 or bfloat16.
        seed: Of dropout and everything else that is drawn; the data have their own.
        log_every: Steps between two reports.
        evaluate_every: Steps between two evaluations; None evaluates at the end only.
        save_every: Steps between two checkpoints; None saves at evaluations and at the end only.
        keep: How many of the last checkpoints to keep; the best one is kept besides.
        watch: Metric of the evaluation that decides what is best.
        watch_mode: Whether a lower ("min") or a higher ("max") value of it is better.
        patience: Evaluations without a better value after which the run stops; None never stops early.

    Example:
        >>> TrainingSettings(steps=100, learning_rate=1e-3).budget
        ('steps', 100)
    """

    steps: int | None = None
    epochs: float | None = None
    minutes: float | None = None
    learning_rate: float = 1e-4
    schedule: ScheduleName = "linear"
    warmup: float = 0.06
    decay: float = 0.2
    floor: float = 0.0
    weight_decay: float = 0.01
    layer_decay: float = 1.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    clip: float | None = 1.0
    average: float = 0.0
    accumulation: int = 1
    batch_warmup: float = 0.0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    seed: int = 0
    log_every: int = 20
    evaluate_every: int | None = None
    save_every: int | None = 500
    keep: int = 1
    watch: str = "loss"
    watch_mode: Literal["min", "max"] = "min"
    patience: int | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("steps", "epochs", "minutes") if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) if given else "none"
            raise UsageError(f"expected exactly one budget out of steps, epochs and minutes, found {found}")
        positive = ("steps", "epochs", "minutes", "learning_rate", "clip", "accumulation", "log_every")
        for name in (*positive, "evaluate_every", "save_every", "keep", "patience"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"expected {name} above 0, found {value}")
        if not self.average >= 0:
            raise UsageError(
                f"expected to average over a share of the run of at least 0, found {self.average}"
            )
        if not 0 <= self.batch_warmup < 1:
            raise UsageError(f"expected a batch warm-up share in [0, 1), found {self.batch_warmup}")
        if self.batch_warmup and self.accumulation == 1:
            raise UsageError(
                "batch warm-up raises the number of micro-batches per step, but there is only one"
            )
        if self.precision not in ("auto", "float32", "bfloat16"):
            raise UsageError(f"expected the precision auto, float32 or bfloat16, found {self.precision!r}")
        if self.watch_mode not in ("min", "max"):
            raise UsageError(f"expected the watch mode min or max, found {self.watch_mode!r}")
        self.rate_factor(0.0)  # checks the schedule

    @property
    def budget(self) -> tuple[Literal["steps", "epochs", "minutes"], float]:
        """Kind and size of the budget."""
        if self.steps is not None:
            return "steps", self.steps
        if self.epochs is not None:
            return "epochs", self.epochs
        assert self.minutes is not None
        return "minutes", self.minutes

    def rate_factor(self, progress: float) -> float:
        """Factor of the peak learning rate at this share of the run."""
        return rate_factor(self.schedule, progress, warmup=self.warmup, decay=self.decay, floor=self.floor)

    def micro_batches(self, progress: float) -> int:
        """Micro-batches of a step at this share of the run."""
        if progress >= self.batch_warmup:
            return self.accumulation
        return 1 + int((self.accumulation - 1) * progress / self.batch_warmup)

    def identity(self) -> dict[str, Any]:
        """The settings that a checkpoint can only be continued with."""
        return {name: value for name, value in asdict(self).items() if name not in _NO_EFFECT_ON_WEIGHTS}
