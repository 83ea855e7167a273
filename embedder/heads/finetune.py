"""From labelled files to a model with a head: data, task, model and loop put together.

The result is a directory that the task's `AutoModelFor...` class and `Predictor` load, with `metrics.json`,
a model card and pictures. Every part stands in a module of its own; this one only connects them.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise.embedder.events import Listener
from likewise.embedder.heads.dataset import Data
from likewise.embedder.heads.evaluation import Report
from likewise.embedder.heads.finetune_run import Say, Step, run_once
from likewise.embedder.heads.finetune_settings import FinetuneSettings
from likewise.embedder.heads.metrics.bootstrap import mean_and_spread
from likewise.embedder.heads.modeling import save
from likewise.embedder.heads.task import Task
from likewise.embedder.heads.tasks import learn_task
from likewise.embedder.training import TrainingResult
from likewise.errors import UsageError


@dataclass(frozen=True)
class Run:
    """One training run.

    Attributes:
        rate: Its peak learning rate.
        seed: Its seed.
        training: How it ended; None for a head that has no loop.
        dev: Its scores on the dev split.
        test: Its scores on the test split.
    """

    rate: float
    seed: int
    training: TrainingResult | None
    dev: Mapping[str, float]
    test: Mapping[str, float]


@dataclass(frozen=True)
class FinetuneResult:
    """What came of it.

    Attributes:
        folder: The model.
        status: As in `TrainingResult`; "interrupted" means that there is no model yet.
        runs: All runs, in order.
        best: Number of the run whose model is kept.
        reports: Scores of the kept model on the dev and test split.
        data: What it was trained on.
        truncated: Training texts that were cut.
        parameters: Parameter counts.
    """

    folder: Path
    status: str
    runs: Sequence[Run]
    best: int
    reports: Sequence[Report]
    data: Data
    truncated: int
    parameters: Mapping[str, int]
    spread: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def finetune(
    data: Data,
    folder: Path,
    settings: FinetuneSettings,
    *,
    listeners: Sequence[Listener] = (),
    say: Say = lambda message: None,
    progress: Step | None = None,
) -> FinetuneResult:
    """Fine-tune an encoder, or go on with a run that was interrupted in the same folder.

    Args:
        data: From `load_data`.
        folder: Where the model goes.
        settings: What and how.
        listeners: Called with the events of each run.
        say: Called with what a person should know while it runs.
        progress: Called with how many texts a frozen encoder has read, and how many it has to.

    Returns:
        The folder, all runs and the scores.

    Raises:
        DataError: The labels are of no use.
        EncoderError: The model cannot be read or have such a head.
        UsageError: Settings that do not fit together.
        TrainingError: A run diverged or could not be saved.
    """
    if settings.frozen not in (None, "tokens"):
        from likewise.embedder.heads.frozen_training import finetune_frozen

        return finetune_frozen(data, folder, settings, listeners=listeners, say=say, progress=progress)
    task = _task(data, settings)
    work = folder / "training"
    rates = settings.rates or (settings.training.learning_rate,)
    if len(rates) > 1 and not data.dev:
        raise UsageError(
            "expected a dev split to choose a learning rate by, found none", remedy="--dev-share 0.1"
        )
    plan = [(rate, settings.training.seed) for rate in rates]
    runs: list[Run] = []
    best, best_score = 0, -math.inf
    candidate = work / "best"
    position = 0
    truncated = 0
    parameters: Mapping[str, int] = {}
    while position < len(plan):
        rate, seed = plan[position]
        if len(plan) > 1:
            say(f"run {position + 1} of {len(plan)}: learning rate {rate:g}, seed {seed}")
        trained = run_once(
            task, data, work / f"run-{rate:g}-{seed}", settings, rate, seed, listeners, say, progress
        )
        truncated, parameters = trained.truncated, trained.parameters
        if trained.result.status == "interrupted":
            return FinetuneResult(folder, "interrupted", runs, best, (), data, truncated, parameters)
        runs.append(Run(rate, seed, trained.result, trained.dev, trained.test))
        score = trained.dev.get(task.primary, 0.0)
        if score > best_score:
            best, best_score = position, score
            shutil.rmtree(candidate, ignore_errors=True)
            save(trained.made, trained.task, candidate, more={"encoder": trained.made.name})
            kept = trained
        position += 1
        if position == len(rates):
            # The other seeds run with the rate that did best.
            first = settings.training.seed
            plan += [(plan[best][0], first + more) for more in range(1, settings.seeds)]
    for file in candidate.iterdir():
        shutil.move(file, folder / file.name)
    reports = kept.reports
    shutil.rmtree(work / "best", ignore_errors=True)
    for run in runs:
        shutil.rmtree(work / f"run-{run.rate:g}-{run.seed}" / "checkpoints", ignore_errors=True)
    same_rate = [run for run in runs if run.rate == runs[best].rate]
    result = FinetuneResult(
        folder,
        kept.result.status,
        runs,
        best,
        reports,
        data,
        truncated,
        parameters,
        spread_of(same_rate),
    )
    from likewise.embedder.heads.writing import write_report

    write_report(result, settings, kept.task)
    return result


def _task(data: Data, settings: FinetuneSettings) -> Task:
    reading = settings.reading
    options: dict[str, Any] = {}
    if reading.kind in ("classification", "multilabel", "regression"):
        options = {"pair": reading.pair, "long_text": settings.long_text}
    if settings.length is not None:
        options["length"] = settings.length
    if settings.overlap is not None:
        options["overlap"] = settings.overlap
    return learn_task(reading.kind, data.train, balanced=settings.balanced, **options)


def spread_of(runs: Sequence[Run]) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation over seeds of each score, by "dev f1", "test f1" and so on."""
    if len(runs) < 2:
        return {}
    found = {}
    for split in ("dev", "test"):
        scores = [getattr(run, split) for run in runs]
        for name in scores[0]:
            found[f"{split} {name}"] = mean_and_spread([score[name] for score in scores])
    return found
