"""One run of fine-tuning: a model trained with one rate and one seed, and scored. Nothing is chosen here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from likewise.embedder.devices import torch_device
from likewise.embedder.events import Listener
from likewise.embedder.heads.dataset import Data
from likewise.embedder.heads.evaluation import Report, evaluate
from likewise.embedder.heads.finetune_settings import FinetuneSettings
from likewise.embedder.heads.modeling import HeadModel, add_lora, freeze, load_for
from likewise.embedder.heads.rows import RowBatches
from likewise.embedder.heads.scoring import TorchHead
from likewise.embedder.heads.task import Encoded, Row, Task
from likewise.embedder.heads.token_vectors import StateObjective, TokenVectors
from likewise.embedder.logs import CsvLog, JsonLog
from likewise.embedder.training import TrainingResult, train
from likewise.errors import UsageError

Say = Callable[[str], None]
Step = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model with its scores.

    Attributes:
        made: The model.
        task: With the thresholds that were chosen on the dev split.
        result: How the loop ended.
        dev: Scores on the dev split.
        test: Scores on the test split.
        reports: The same with intervals and mistakes.
        truncated: Training texts that were cut.
        parameters: Parameter counts.
    """

    made: HeadModel
    task: Task
    result: TrainingResult
    dev: Mapping[str, float]
    test: Mapping[str, float]
    reports: Sequence[Report]
    truncated: int
    parameters: Mapping[str, int]


def run_once(
    task: Task,
    data: Data,
    work: Path,
    settings: FinetuneSettings,
    rate: float,
    seed: int,
    listeners: Sequence[Listener],
    say: Say,
    progress: Step | None,
) -> Trained:
    """Train and score one model, or go on with a run that was interrupted in the same folder.

    Args:
        task: With the labels of the training data.
        data: Training, dev and test examples.
        work: Folder of the run's checkpoints and logs.
        settings: What and how.
        rate: Peak learning rate.
        seed: Of the head, the order and dropout.
        listeners: Called with the events of the loop.
        say: Called with what a person should know.
        progress: Called with how many windows a frozen encoder has read, and how many it has to.
    """
    made = load_for(settings.model, task, seed=seed, offline=settings.offline)
    tokenizer = made.windows()
    task = fit_length(task, settings, made.positions)
    freeze(made.model, None if settings.frozen else settings.freeze_layers)
    if settings.lora is not None:
        add_lora(made, task, rank=settings.lora)
    made.model.to(torch_device(settings.device))
    encoded = task.encode(data.train, tokenizer)
    _say_long(task, encoded, len(data.train), say)
    dev = task.encode(data.dev, tokenizer) if data.dev else None
    test = task.encode(data.test, tokenizer) if data.test else None
    rows: Sequence[Row] = task.rows(data.train, encoded)
    objective: Any = task.objective(pad_id=made.pad_id)
    kept = _kept_vectors(made, [part for part in (encoded, dev, test) if part], settings, say, progress)
    if kept is not None:
        rows, objective = kept.rows(rows, encoded), StateObjective(objective)
    batches = RowBatches(rows, size=settings.batch_size, seed=seed)
    steps = max(1, math.ceil(batches.length(0) / settings.training.accumulation))
    training = replace(
        settings.training,
        learning_rate=rate,
        seed=seed,
        evaluate_every=settings.training.evaluate_every or steps,
        log_every=min(settings.training.log_every, max(1, steps // 4)),
        watch=task.primary,
        watch_mode="max",
        layer_decay=1.0 if settings.frozen else settings.training.layer_decay,
    )

    def held_out(_: Any) -> Mapping[str, float]:
        assert dev is not None
        logits = kept.logits(dev.windows) if kept is not None else _logits(task, dev, made)
        return task.score(data.dev, task.predict(data.dev, dev, logits))

    with kept.stand_in() if kept is not None else nullcontext():
        result = train(
            made.model,
            objective,
            batches,
            training,
            folder=work / "checkpoints",
            evaluate=held_out if dev is not None else None,
            listeners=[CsvLog(work / "train.csv"), JsonLog(work / "log.jsonl"), *listeners],
            identity={
                "model": made.name,
                "task": task.kind,
                "labels": len(task.labels),
                "settings": task.settings(),
                "lora": settings.lora,
                "freeze_layers": settings.freeze_layers,
                "frozen": settings.frozen,
            },
        )
    if result.status == "interrupted":
        return Trained(made, task, result, {}, {}, (), encoded.truncated, made.parameters())
    reports = []
    for split, examples, windows in (("dev", data.dev, dev), ("test", data.test, test)):
        if windows is not None:
            logits = _logits(task, windows, made)
            if split == "dev":
                task = task.tuned(examples, task.predict(examples, windows, logits))
            predictions = task.predict(examples, windows, logits)
            reports.append(evaluate(task, examples, predictions, split=split))
    scores = {report.split: report.metrics for report in reports}
    parameters = made.parameters()
    return Trained(
        made,
        task,
        result,
        scores.get("dev", {}),
        scores.get("test", {}),
        reports,
        encoded.truncated,
        parameters,
    )


def _say_long(task: Task, encoded: Encoded, examples: int, say: Say) -> None:
    """What became of training texts that are longer than a window."""
    if encoded.truncated:
        say(
            f"{encoded.truncated:,} of {examples:,} training texts are longer than "
            f"{task.settings()['length']} tokens and were cut; --length takes more of them, "
            "--long-text windows all"
        )
    if task.settings().get("long_text") == "windows" and (long := encoded.long):
        say(
            f"{long:,} of {examples:,} training texts are longer than {task.settings()['length']} "
            f"tokens and are read in windows, {len(encoded.windows):,} in all; --long-text first is faster, "
            "and sees their beginnings only"
        )


def _logits(task: Task, encoded: Encoded, made: HeadModel) -> list[Any]:
    from likewise.embedder.heads.predictor import predict_logits

    runtime = TorchHead(made.model, segments=made.windows().segments)
    return predict_logits(task, encoded, runtime, pad_id=made.pad_id)


def _kept_vectors(
    made: HeadModel,
    parts: Sequence[Encoded],
    settings: FinetuneSettings,
    say: Say,
    progress: Step | None,
) -> TokenVectors | None:
    """Vectors of all tokens, where the encoder is frozen and the disk has room for them."""
    if settings.frozen != "tokens":
        return None
    vectors = TokenVectors(made.model, pad_id=made.pad_id, progress=progress)
    if not vectors.room(*(part.windows for part in parts)):
        say(f"no room for the vectors of all tokens in {vectors.folder}: each epoch computes them anew")
        return None
    for part in parts:
        vectors.states(part.windows)
    return vectors


def fit_length(task: Task, settings: FinetuneSettings, positions: int) -> Task:
    """The task with windows that the model takes.

    Raises:
        UsageError: Longer ones were ordered.
    """
    if settings.length is not None and settings.length > positions:
        raise UsageError(
            f"expected windows of at most {positions} tokens, the positions that the model has, "
            f"found a length of {settings.length}",
            remedy=f"--length {positions}",
        )
    current: Any = task
    if current.length > positions:
        current.length = positions
    if current.overlap >= current.length // 2:
        current.overlap = current.length // 4
    return task
