"""What a training run tells the outside: plain records, handed to callbacks. Nothing here prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """Averages since the last report.

    Attributes:
        step: Optimiser steps done.
        epochs: Passes over the data, as a fraction.
        progress: Share of the budget used, in [0, 1].
        metrics: `loss`, each term of it, and what the objective measures, such as `masked_accuracy`.
        learning_rate: Rate of the last step, of the group with the highest.
        gradient_norm: Norm of the last gradient before clipping.
        tokens_per_second: Real tokens, without padding, of all processes.
        seconds: Time spent training, earlier runs included.
        remaining: Estimated seconds to the end.
    """

    step: int
    epochs: float
    progress: float
    metrics: Mapping[str, float]
    learning_rate: float
    gradient_norm: float
    tokens_per_second: float
    seconds: float
    remaining: float


@dataclass(frozen=True)
class Evaluated:
    """Result of the evaluation hook.

    Attributes:
        step: Optimiser steps done.
        metrics: What the hook returned.
        improved: Whether the watched metric is the best so far.
    """

    step: int
    metrics: Mapping[str, float]
    improved: bool


@dataclass(frozen=True)
class Saved:
    """A checkpoint was written."""

    step: int
    path: Path


@dataclass(frozen=True)
class Prepared:
    """Texts and model are ready to train; said by pretraining only.

    Attributes:
        documents: Documents in the corpus.
        held_out: Of these, documents held out.
        tokens: Tokens in all of them.
        vocabulary: Size of the vocabulary.
        parameters: Of the model with its heads.
    """

    documents: int
    held_out: int
    tokens: int
    vocabulary: int
    parameters: int


@dataclass(frozen=True)
class Started:
    """The run begins, or goes on from a checkpoint.

    Attributes:
        step: Steps done before.
        precision: float32 or bfloat16.
        resumed_from: The checkpoint; None for a new run.
    """

    step: int
    precision: str
    resumed_from: Path | None


Event: TypeAlias = Progress | Evaluated | Saved | Prepared | Started
Listener: TypeAlias = Callable[[Event], None]
