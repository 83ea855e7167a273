"""From labelled files to a model with a head: data, task, model and loop put together.

The result is a directory that the task's `AutoModelFor...` class and `Predictor` load, with `metrics.json`,
a model card and pictures. Every part stands in a module of its own; this one only connects them.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from likewise.embedder.devices import torch_device
from likewise.embedder.events import Listener
from likewise.embedder.heads.dataset import Data
from likewise.embedder.heads.evaluation import Report, evaluate
from likewise.embedder.heads.metrics.bootstrap import mean_and_spread
from likewise.embedder.heads.modeling import HeadModel, add_lora, freeze, load_for, save
from likewise.embedder.heads.readers import Reading
from likewise.embedder.heads.rows import RowBatches
from likewise.embedder.heads.scoring import TorchHead
from likewise.embedder.heads.task import Encoded, LongText, Row, Task
from likewise.embedder.heads.tasks import learn_task
from likewise.embedder.heads.token_vectors import StateObjective, TokenVectors
from likewise.embedder.logs import CsvLog, JsonLog
from likewise.embedder.training import TrainingResult, train
from likewise.embedder.training_settings import TrainingSettings
from likewise.errors import UsageError

Head = Literal["probe", "linear", "mlp", "tokens"]
Say = Callable[[str], None]
Step = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class FinetuneSettings:
    """What to fine-tune, and how. The defaults are those of the BERT paper (Devlin et al. 2019, A.3).

    Attributes:
        reading: The kind of task, and how its files are read.
        training: Budget, optimiser and the rest; its learning rate is not used if `rates` has any.
        model: Any encoder; None for the default one.
        batch_size: Examples in a micro-batch.
        length: Most tokens in a window; None for 256, of questions 384, or what the model takes.
        overlap: Tokens that neighbouring windows share; None for the task's default.
        long_text: What happens to longer texts of a classification: "windows" uses all, "first" cuts them.
        balanced: Whether rare labels weigh more.
        rates: Learning rates to try; the best on the dev split is kept.
        seeds: How many runs with different seeds.
        freeze_layers: Lowest layers that do not learn; None freezes the whole encoder below the head.
        lora: Rank of LoRA; None trains the weights themselves.
        frozen: Kind of head on vectors that are computed once: "probe", "linear" or "mlp" on those of texts,
            "tokens" for the model's own head on those of tokens. None trains the encoder too.
        device: Such as "cpu" or "cuda"; None for the CPU, "auto" for the fastest.
        offline: Never ask the network for a model.
    """

    reading: Reading
    training: TrainingSettings
    model: str | None = None
    batch_size: int = 32
    length: int | None = None
    overlap: int | None = None
    long_text: LongText = "windows"
    balanced: bool = False
    rates: tuple[float, ...] = ()
    seeds: int = 1
    freeze_layers: int | None = 0
    lora: int | None = None
    frozen: Head | None = None
    device: str | None = "auto"
    offline: bool | None = None

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.seeds < 1:
            raise UsageError(
                f"expected at least 1 example per batch and 1 seed, found {self.batch_size} and {self.seeds}"
            )
        if self.lora is not None and self.freeze_layers != 0:
            raise UsageError("LoRA freezes all weights but its own; leave out frozen layers")
        on_tokens = self.reading.kind in ("tagging", "questions")
        if self.frozen is not None and on_tokens != (self.frozen == "tokens"):
            wanted = "tokens" if on_tokens else "probe, linear or mlp"
            raise UsageError(
                f"expected the frozen head {wanted} for {self.reading.kind}, found {self.frozen}"
            )
        if self.frozen is not None and self.lora is not None:
            raise UsageError("LoRA trains the encoder, which is frozen; leave out one of the two")
        if self.balanced and self.reading.kind != "classification":
            raise UsageError("class weights are for classification with one label per text")


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
        trained = _train(
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


@dataclass(frozen=True, eq=False)
class _Trained:
    made: HeadModel
    task: Task
    result: TrainingResult
    dev: Mapping[str, float]
    test: Mapping[str, float]
    reports: Sequence[Report]
    truncated: int
    parameters: Mapping[str, int]


def _train(
    task: Task,
    data: Data,
    work: Path,
    settings: FinetuneSettings,
    rate: float,
    seed: int,
    listeners: Sequence[Listener],
    say: Say,
    progress: Step | None,
) -> _Trained:
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
        return _Trained(made, task, result, {}, {}, (), encoded.truncated, made.parameters())
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
    return _Trained(
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
