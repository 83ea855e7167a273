"""From pairs of texts to a better encoder: data, model, losses and loop put together.

The result is a Sentence Transformers directory, which `likewise index --encoder` takes. Beside it, in
`training/`, stands what the run needs to go on and what it logged. A model that did not get better is not
passed off as one: the folder then holds the weights that training started from, unless told otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from likewise.embedder import load_encoder
from likewise.embedder.cpu_memory import give_back_large_blocks
from likewise.embedder.devices import torch_device
from likewise.embedder.distributed import World
from likewise.embedder.events import Evaluated, Listener
from likewise.embedder.logs import CsvLog, JsonLog, TensorBoardLog
from likewise.embedder.meters import Meter
from likewise.embedder.siamese.card import write_card
from likewise.embedder.siamese.data import DataReport, RunData, prepare_data
from likewise.embedder.siamese.evaluators import Evaluator, Measurement, Ranking, RankingEvaluator
from likewise.embedder.siamese.frozen import FrozenActivations, kept_activations
from likewise.embedder.siamese.loading import Loaded, load_sentence_model
from likewise.embedder.siamese.model import SentenceModel
from likewise.embedder.siamese.objective import Siamese, SiameseObjective
from likewise.embedder.siamese.pair_batches import PairBatches
from likewise.embedder.siamese.saving import save_sentence_model
from likewise.embedder.siamese.settings import SiameseSettings, TrainingData
from likewise.embedder.siamese.sources import Source
from likewise.embedder.siamese.token_table import TokenTable
from likewise.embedder.siamese.verdict import Verdict, judge
from likewise.embedder.training import TrainingResult, train
from likewise.embedder.training_settings import TrainingSettings
from likewise.errors import UsageError

# Held-out batches whose loss is computed at an evaluation.
_MOST_LOSS_BATCHES = 30


@dataclass(frozen=True)
class SiameseResult:
    """What came of a run.

    Attributes:
        folder: The model; it is not there yet after an interruption.
        training: How the run ended.
        data: What it was trained on and measured by.
        verdict: Whether the model got better.
        kept: Which weights the folder has: of the trained model, or of the one that training started from.
    """

    folder: Path
    training: TrainingResult
    data: DataReport
    verdict: Verdict
    kept: str


def train_siamese(
    data: Sequence[TrainingData],
    folder: Path,
    settings: SiameseSettings,
    *,
    held_out: Sequence[TrainingData] = (),
    rankings: Sequence[Ranking] = (),
    listeners: Sequence[Listener] = (),
    world: World | None = None,
) -> SiameseResult:
    """Train an encoder on pairs, or go on with a run that was interrupted in the same folder.

    Args:
        data: To train on.
        folder: Where the model goes.
        settings: What and how.
        held_out: To be measured by, after every epoch. Empty: a share of the first training set.
        rankings: Collections to measure search quality on as well; the first one decides, before `held_out`.
        listeners: Called with the events of the run; an `Evaluated` of step 0 tells what the base is worth.
        world: The processes that train together; None is this one alone.

    Returns:
        How the run went, and whether the model got better.

    Raises:
        DataError: Something is wrong with the data.
        EncoderError: The model to start from cannot be used.
        UsageError: Settings that do not fit together, such as accumulating a loss that compares the examples
            of a batch with each other.
        TrainingError: The run diverged or could not be saved.
    """
    world = world or World()
    if settings.part_tokens is not None and torch_device(settings.device).type == "cpu":
        give_back_large_blocks()
    loaded = _load(settings)
    skip_prompt = not loaded.spec.include_prompt
    run = prepare_data(
        data,
        held_out,
        settings,
        tables=(
            TokenTable(loaded.tokenizer, skip_prompt=skip_prompt),
            TokenTable(loaded.tokenizer, skip_prompt=skip_prompt),
        ),
        prompts=loaded.spec.prompts,
        teacher=None if settings.teacher is None else load_encoder(settings.teacher),
    )
    if settings.rows is not None:
        run = replace(run, sources=[_translations_only(source) for source in run.sources])
    objective = _objective(run.sources, run.table, loaded.model, settings)
    objective.check_accumulation(settings.training.accumulation)
    batches = PairBatches(
        run.sources,
        run.table.lengths(),
        size=settings.batch_size,
        seed=settings.training.seed,
        bucketed=settings.bucketed,
        fingerprint=run.table.fingerprint,
    )
    model = Siamese.of(loaded.model, run.sources, seed=settings.training.seed)
    if settings.freeze is not None:
        loaded.model.freeze(settings.freeze)
    if settings.rows is not None:
        loaded.model.train_rows(settings.rows)
    model.to(torch_device(settings.device))
    prompts = loaded.spec.prompts
    measures: list[Evaluator] = [
        *(RankingEvaluator(ranking, run.held_out_table, prompts) for ranking in rankings),
        *run.evaluators,
    ]
    _check_names(measures)
    watch = _watched(settings, measures, bool(run.held_out))
    before = _measure(loaded.model, measures, run.held_out_table)
    _check_watched(watch, before, with_loss=bool(run.held_out))
    if before and world.leads:
        base = {name: value for measured in before.values() for name, value in measured.metrics.items()}
        for listener in listeners:
            listener(Evaluated(0, base, improved=False))
    work = folder / "training"
    logs: list[Listener] = [CsvLog(work / "train.csv"), JsonLog(work / "log.jsonl")]
    if settings.tensorboard and world.leads:
        logs.append(TensorBoardLog(work / "tensorboard"))
    with _kept(loaded.model, run.table, settings, work) as activations:
        result = train(
            model,
            objective.using(activations),
            batches,
            _loop_settings(settings.training, watch, batches.length(0)),
            folder=work / "checkpoints",
            evaluate=_hook(measures, run, settings) if watch else None,
            listeners=[*logs, *listeners],
            identity={
                "encoder": loaded.spec.name,
                "pooling": loaded.model.pooling,
                "dropout": settings.dropout,
                "freeze": settings.freeze,
                "losses": [asdict(source.settings) | {"weight": source.weight} for source in run.sources],
                "rows": None if settings.rows is None else [list(group) for group in settings.rows],
            },
            world=world,
        )
    if result.status == "interrupted":
        return SiameseResult(folder, result, run.report, judge({}, {}, None), "nothing yet")
    trained = loaded.model
    trained.merge_rows()
    if settings.blend:
        _blend(trained, _load(settings).model, settings.blend)
    after = _measure(trained, measures, run.held_out_table)
    # A loss may decide which weights are best, but says nothing about vectors.
    by_loss = watch is not None and watch.endswith("loss")
    verdict = judge(before, after, next((m.primary for m in measures), None) if by_loss else watch)
    keep = verdict.improved or settings.keep_worse
    if world.leads:
        save_sentence_model(trained.cpu() if keep else _load(settings).model, loaded.spec, folder)
    done = SiameseResult(folder, result, run.report, verdict, "trained" if keep else "base")
    if world.leads:
        write_card(done.folder, _facts(done, data, settings, loaded), verdict, run.report, kept=done.kept)
        summary = {"status": result.status, "step": result.step, "kept": done.kept, **_numbers(verdict)}
        (folder / "metrics.json").write_text(json.dumps(summary, indent=1), "utf-8")
    return done


def _load(settings: SiameseSettings) -> Loaded:
    return load_sentence_model(
        settings.encoder,
        pooling=settings.pooling,
        dense=settings.dense,
        max_tokens=settings.max_tokens,
        prompts=settings.prompts,
        dropout=settings.dropout,
        offline=settings.offline,
        seed=settings.training.seed,
    )


@contextmanager
def _kept(
    model: SentenceModel, table: TokenTable, settings: SiameseSettings, work: Path
) -> Iterator[FrozenActivations | None]:
    """The activations of frozen layers for as long as the context lasts, if they are to be kept."""
    if settings.cache_frozen is None:
        yield None
        return
    with kept_activations(model, table, work, gigabytes=settings.cache_frozen) as activations:
        yield activations


def _translations_only(source: Source) -> Source:
    """With rows of another language alone to train, originals cannot change: they need not be encoded."""
    return replace(source, columns=source.columns[:, 1:]) if source.kind.name == "crosslingual" else source


def _objective(
    sources: Sequence[Any], table: TokenTable, model: SentenceModel, settings: SiameseSettings
) -> SiameseObjective:
    return SiameseObjective(sources, table, packed=model.packed, part_tokens=settings.part_tokens)


def _check_names(measures: Sequence[Evaluator]) -> None:
    names = [measure.name for measure in measures]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"two held-out data sets are called {twice[0]}", remedy="rename one of the files")


def _watched(settings: SiameseSettings, measures: Sequence[Evaluator], with_loss: bool) -> str | None:
    """The metric that decides which weights are best."""
    if settings.watch is not None:
        if not measures and not with_loss:
            raise UsageError(f"the metric {settings.watch} is watched, but nothing is held out to measure it")
        return settings.watch
    return measures[0].primary if measures else "loss" if with_loss else None


def _check_watched(watch: str | None, measured: Mapping[str, Measurement], *, with_loss: bool) -> None:
    known = [name for found in measured.values() for name in found.metrics] + ["loss"] * with_loss
    if watch is not None and watch not in known:
        raise UsageError(
            f"expected a metric to watch out of {', '.join(known)}, found {watch!r}",
            remedy=f"watch {known[0]}",
        )


def _loop_settings(training: TrainingSettings, watch: str | None, batches: int) -> TrainingSettings:
    if watch is None:
        return training
    every = training.evaluate_every
    if every is None:
        every = max(1, -(-batches // training.accumulation))  # after every epoch
    return replace(
        training,
        watch=watch,
        watch_mode="min" if watch.endswith("loss") else "max",
        evaluate_every=every,
    )


def _measure(
    model: SentenceModel, measures: Sequence[Evaluator], table: TokenTable
) -> dict[str, Measurement]:
    return {
        measure.name: measure.measure(lambda numbers: model.encode(table, numbers)) for measure in measures
    }


def _hook(measures: Sequence[Evaluator], run: RunData, settings: SiameseSettings) -> Any:
    """The evaluation hook of the loop: all metrics, and the loss on held-out rows."""

    def evaluate(model: nn.Module) -> Mapping[str, float]:
        assert isinstance(model, Siamese)
        values: dict[str, float] = {}
        for measured in _measure(model.encoder, measures, run.held_out_table).values():
            values |= measured.metrics
        if run.held_out:
            values["loss"] = _held_out_loss(model, run, settings)
        return values

    return evaluate


def _held_out_loss(model: Siamese, run: RunData, settings: SiameseSettings) -> float:
    objective = _objective(run.held_out, run.held_out_table, model.encoder, settings)
    batches = PairBatches(
        run.held_out, run.held_out_table.lengths(), size=max(2, settings.batch_size), bucketed=False
    )
    meter = Meter()
    device = model.encoder.device
    for index in range(min(_MOST_LOSS_BATCHES, batches.length(0))):
        batch = objective.prepare(batches.batch(0, index), draw=None)
        meter.add(objective.loss(model, batch.to(device)))
    return meter.read(World(), device)["loss"]


@torch.no_grad()
def _blend(model: nn.Module, base: nn.Module, share: float) -> None:
    """Average the weights with those of the base (Wortsman et al. 2022, 2109.01903)."""
    for own, other in zip(model.parameters(), base.parameters(), strict=True):
        own.lerp_(other.to(own.device), share)


def _facts(
    done: SiameseResult, data: Sequence[TrainingData], settings: SiameseSettings, loaded: Loaded
) -> dict[str, Any]:
    training = asdict(settings.training)
    run = {
        name: training[name]
        for name in ("learning_rate", "schedule", "warmup", "weight_decay", "average", "seed")
    }
    return {
        "base": loaded.spec.name,
        "losses": ", ".join(f"{item.name}: {_loss_name(item)}" for item in data),
        "pooling": "+".join(loaded.model.pooling),
        "dimension": loaded.model.dimension,
        "token limit": loaded.spec.max_tokens,
        "batch size": settings.batch_size,
        "steps": done.training.step,
        "epochs": f"{done.training.epochs:.2f}",
        "minutes": f"{done.training.seconds / 60:.1f}",
        "precision": done.training.precision,
        **{name.replace("_", " "): value for name, value in run.items()},
        **({"dropout": settings.dropout} if settings.dropout is not None else {}),
        **({"frozen layers": settings.freeze} if settings.freeze is not None else {}),
        **({"share of the base": settings.blend} if settings.blend else {}),
    }


def _loss_name(item: TrainingData) -> str:
    return item.loss if item.settings.factor == 1 else f"{item.settings.factor:g} x {item.loss}"


def _numbers(verdict: Verdict) -> dict[str, Any]:
    return {
        "outcome": verdict.outcome,
        "metrics": {
            c.metric: {"before": list(c.before), "after": list(c.after), "gain": list(c.gain)}
            for c in verdict.comparisons
        },
    }
