"""What the commands that train share: options of a run, its progress on standard error, and how it ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import AVERAGE, DEVICE, LENGTH, OFFLINE, PRECISION, collected
from likewise.cli.output import Format, count_text, note, warn, write, write_json, write_jsonl
from likewise.cli.progress import Progress as Bar
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.embedder.events import Event
    from likewise.embedder.masking import Masking
    from likewise.embedder.pretrain import PretrainResult
    from likewise.embedder.training_settings import TrainingSettings
    from likewise.index.records import Json


# What tells the folder of a model, finished or not, from any other.
_OF_A_MODEL = frozenset(("modules.json", "model.safetensors", "likewise.json"))
_OF_A_RUN = ("checkpoints", "corpus", "grown", "log.jsonl")

_RUN: tuple[Callable[[Any], Any], ...] = (
    click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Stop after N optimiser steps."),
    click.option(
        "--epochs",
        type=click.FloatRange(min=0, min_open=True),
        metavar="X",
        help="Stop after X passes over the text. [default: 1, if no other limit is given]",
    ),
    click.option(
        "--minutes",
        type=click.FloatRange(min=0, min_open=True),
        metavar="X",
        help="Stop after X minutes of training.",
    ),
    click.option("--lr", type=float, metavar="X", help="Peak learning rate."),
    click.option(
        "--schedule",
        type=click.Choice(["linear", "cosine", "wsd", "constant"]),
        default="linear",
        show_default=True,
        help="Course of the learning rate; wsd is warm-up, stable, decay.",
    ),
    click.option(
        "--warmup",
        type=click.FloatRange(0, 1, max_open=True),
        default=0.06,
        show_default=True,
        metavar="SHARE",
        help="Share of the run in which the learning rate rises.",
    ),
    LENGTH,
    click.option(
        "--short-first",
        is_flag=True,
        help="Use sequences of a quarter of the length for the first nine tenths of the run, as BERT did.",
    ),
    click.option(
        "--batch-tokens",
        type=click.IntRange(min=8),
        default=4096,
        show_default=True,
        metavar="N",
        help="Tokens in a micro-batch; at least one sequence.",
    ),
    click.option(
        "--accumulate",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        metavar="N",
        help="Micro-batches per step, of all processes together.",
    ),
    click.option(
        "--batch-warmup",
        type=click.FloatRange(0, 1, max_open=True),
        default=0.0,
        show_default=True,
        metavar="SHARE",
        help="Share of the run in which the micro-batches per step rise from 1 to --accumulate.",
    ),
    click.option(
        "--mask-rate",
        type=click.FloatRange(0, 1, min_open=True),
        metavar="SHARE",
        help="Share of the tokens to hide. [default: 0.15]",
    ),
    click.option(
        "--final-mask-rate",
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help="Let the share change evenly to this one at the end, such as 0.3 to 0.15.",
    ),
    click.option(
        "--mask-unit",
        type=click.Choice(["token", "word", "span"]),
        help="Hide single tokens, whole words, or spans of words. [default: the recipe's]",
    ),
    click.option(
        "--segmenter",
        type=click.Choice(["jieba"]),
        help="Know Chinese words when whole words or spans of them are hidden.",
    ),
    AVERAGE,
    PRECISION,
    DEVICE,
    click.option(
        "--compile", is_flag=True, help="Compile parts of the model, on a GPU: pays off in long runs."
    ),
    click.option(
        "--seed", type=int, default=0, show_default=True, metavar="N", help="Of weights, order and masks."
    ),
    click.option(
        "--held-out",
        type=click.FloatRange(0, 1, max_open=True),
        default=0.02,
        show_default=True,
        metavar="SHARE",
        help="Share of the documents kept for evaluation.",
    ),
    click.option(
        "--evaluate-every", type=click.IntRange(min=1), metavar="N", help="Steps between evaluations."
    ),
    click.option(
        "--save-every",
        type=click.IntRange(min=1),
        default=500,
        show_default=True,
        metavar="N",
        help="Steps between checkpoints.",
    ),
    click.option(
        "--patience",
        type=click.IntRange(min=1),
        metavar="N",
        help="Stop after N evaluations without a better loss.",
    ),
    click.option("--tensorboard", is_flag=True, help="Log for TensorBoard too."),
    OFFLINE,
)


# They arrive as one mapping, `run`.
run_options = collected("run", _RUN)


def training_settings(run: dict[str, Any], *, learning_rate: float) -> TrainingSettings:
    """The settings that the options ask for.

    Args:
        run: From `run_options`.
        learning_rate: Peak rate if `--lr` is not given.
    """
    from likewise.embedder.training_settings import TrainingSettings

    budget = {name: run[name] for name in ("steps", "epochs", "minutes") if run[name] is not None}
    if len(budget) > 1:
        raise UsageError(f"expected one of --steps, --epochs and --minutes, found {len(budget)}")
    return TrainingSettings(
        **(budget or {"epochs": 1.0}),
        learning_rate=learning_rate if run["lr"] is None else run["lr"],
        schedule=run["schedule"],
        warmup=run["warmup"],
        average=run["average"],
        accumulation=run["accumulate"],
        batch_warmup=run["batch_warmup"],
        precision=run["precision"],
        seed=run["seed"],
        evaluate_every=run["evaluate_every"],
        save_every=run["save_every"],
        patience=run["patience"],
    )


def pretrain_settings(run: dict[str, Any]) -> dict[str, Any]:
    """The other settings that the options ask for, as arguments of `PretrainSettings`."""
    length = run["length"]
    return {
        "length": length,
        "shorter": ((0.9, max(8, length // 4)),) if run["short_first"] else (),
        "tokens_per_batch": run["batch_tokens"],
        "held_out": run["held_out"],
        "device": run["device"],
        "compile": run["compile"],
        "offline": True if run["offline"] else None,
        "segmenter": run["segmenter"],
        "tensorboard": run["tensorboard"],
    }


def masking(run: dict[str, Any], default: Masking | None) -> Masking | None:
    """The masking that the options ask for; None for the default."""
    from dataclasses import replace

    changes = {"rate": run["mask_rate"], "final_rate": run["final_mask_rate"], "unit": run["mask_unit"]}
    given = {name: value for name, value in changes.items() if value is not None}
    if not given:
        return None
    if default is None:
        raise UsageError("this recipe hides no tokens, but an option says how to hide them")
    return replace(default, seed=run["seed"], **given)


def check_output(folder: Path, *models: str | None) -> None:
    """Refuse to put a model among files that are not of one, or over the one that it is made from.

    Args:
        folder: Where it is to go.
        models: Names or folders of those that it starts from or learns from.

    Raises:
        UsageError: The folder has files, and no sign of a model or of a run that was stopped; or it is one of
            those models.
    """
    if not folder.is_dir():
        return
    if any(name is not None and Path(name).is_dir() and folder.samefile(name) for name in models):
        raise UsageError(
            f"expected another folder for the result than that of a model it is made from, found {folder}",
            remedy="name another one: -o DIR",
        )
    names = {entry.name for entry in folder.iterdir() if not entry.name.startswith(".")}
    stopped = any((folder / "training" / name).exists() for name in _OF_A_RUN)
    if not (names <= {"training"} or stopped or names & _OF_A_MODEL):
        raise UsageError(
            f"expected a new folder for the model, or one of an earlier run, found {folder} with other files",
            remedy="name another one: -o DIR",
        )


class Watch:
    """Shows a run: a line for people who wait, a note for each evaluation."""

    def __init__(self) -> None:
        self.bar = Bar()

    def __call__(self, event: Event) -> None:
        """Take an event of the training loop."""
        from likewise.embedder.events import Evaluated, Prepared, Progress, Started

        if isinstance(event, Progress):
            rest = f"{event.tokens_per_second:,.0f} tokens/s, {_time(event.remaining)} left"
            self.bar.show(
                "training",
                done=int(1000 * event.progress),
                total=1000,
                detail=f"step {event.step:,}  {_numbers(event.metrics)}  {rest}",
            )
            return
        self.bar.clear()
        if isinstance(event, Evaluated):
            best = " (best)" if event.improved else ""
            note(f"step {event.step:,}, held out: {_numbers(event.metrics)}{best}")
        elif isinstance(event, Prepared):
            note(
                f"{count_text(event.documents, 'document')}, {event.held_out:,} held out; "
                f"{event.tokens:,} tokens, a vocabulary of {event.vocabulary:,}; "
                f"{event.parameters:,} parameters"
            )
        elif isinstance(event, Started) and event.resumed_from is not None:
            note(f"going on from step {event.step:,}")

    def embedding(self, done: int, total: int) -> None:
        """Show how far a frozen encoder is."""
        self.bar.show("embedding", done=done, total=total)


def finish(result: PretrainResult, format: Format) -> None:
    """Print how a run ended; an interrupted one exits with status 130."""
    training = result.training
    if training.status == "interrupted":
        warn(f"stopped at step {training.step:,}; it is saved, and the same command goes on from there")
        raise click.exceptions.Exit(130)
    if format is Format.TEXT:
        write(
            f"{result.folder}: {training.status} after {training.step:,} steps, "
            f"{training.epochs:.2f} epochs, {_time(training.seconds)}, {training.precision}"
        )
        if training.metrics:
            write(f"held out: {_numbers(training.metrics)}")
        return
    value: dict[str, Json] = {
        "version": 1,
        "folder": str(result.folder),
        "status": training.status,
        "steps": training.step,
        "epochs": round(training.epochs, 4),
        "seconds": round(training.seconds, 3),
        "precision": training.precision,
        "metrics": dict(training.metrics),
        "corpus": dict(vars(result.corpus)),
        "parameters": dict(result.parameters),
    }
    if format is Format.JSON:
        write_json(value)
    else:
        write_jsonl([value])


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from drawing bars and tables of its own."""
    from transformers.utils import logging

    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _numbers(metrics: Any) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in metrics.items())


def _time(seconds: float) -> str:
    if seconds == float("inf"):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
