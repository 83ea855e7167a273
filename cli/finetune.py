"""`likewise finetune`: from labelled files to a model that classifies, compares, tags or answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from likewise.cli.output import Format, columns, note, output_options, warn, write, write_json, write_jsonl
from likewise.cli.training import Watch, quiet
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.embedder.heads.finetune import FinetuneResult

Command = TypeVar("Command", bound=Callable[..., object])

EPILOG = """\b
Examples:
  likewise finetune classify reviews/
  likewise finetune pair snli.tsv
  likewise finetune tag wnut17/
  likewise finetune qa squad.json

DATA is a file (CSV, TSV, JSON lines, Parquet; CoNLL for tag, SQuAD's JSON for qa; all but Parquet also
with .gz), a folder with files named train, dev and test, a folder that the datasets library saved, or
hf:NAME of a data set on the hub. Without a dev file, a tenth of the training data is held out. A run that
is stopped with Ctrl-C is saved; the same command goes on from there.
"""


@click.group(short_help="Teach an encoder a task from labelled examples.", epilog=EPILOG)
def finetune() -> None:
    """Put a small head on an encoder and train both, or the head alone, on labelled examples.

    The result loads with likewise predict, and with the AutoModelFor... classes of transformers.
    """


def _options(command: Command) -> Command:
    """Add the options that all tasks share; they arrive as one mapping, `run`."""
    names: list[str] = []

    @wraps(command)
    def collect(*args: object, **options: object) -> object:
        run = {name: options.pop(name) for name in names}
        return command(*args, run=run, **options)

    decorated: Any = collect
    for option in reversed(_SHARED):
        decorated = option(decorated)
        names.append(decorated.__click_params__[-1].name)
    wrapped: Command = decorated
    return wrapped


_SHARED: tuple[Callable[[Any], Any], ...] = (
    click.argument("data", metavar="DATA"),
    click.option(
        "-o",
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("finetuned"),
        show_default=True,
        metavar="DIR",
        help="Where the model goes.",
    ),
    click.option("-m", "--model", metavar="NAME", help="Encoder to begin with. [default: all-MiniLM-L6-v2]"),
    click.option("--dev", metavar="FILE", help="Examples for choosing among epochs and learning rates."),
    click.option("--test", metavar="FILE", help="Examples for the final score."),
    click.option(
        "--dev-share",
        type=click.FloatRange(0, 1, max_open=True),
        default=0.1,
        show_default=True,
        metavar="SHARE",
        help="Share of the training data to hold out where there is no dev file.",
    ),
    click.option(
        "--epochs",
        type=click.FloatRange(min=0, min_open=True),
        metavar="X",
        help="Passes over the data. [default: 3; 20 with --freeze]",
    ),
    click.option(
        "--lr", type=float, metavar="X", help="Peak learning rate. [default: 3e-5; 1e-3 with --freeze]"
    ),
    click.option(
        "--try-lr", metavar="X,X,...", help="Train once with each of these rates, keep the best on dev."
    ),
    click.option(
        "--batch",
        type=click.IntRange(min=1),
        default=32,
        show_default=True,
        metavar="N",
        help="Examples in a micro-batch.",
    ),
    click.option(
        "--accumulate",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        metavar="N",
        help="Micro-batches per step.",
    ),
    click.option(
        "--warmup",
        type=click.FloatRange(0, 1, max_open=True),
        default=0.1,
        show_default=True,
        metavar="SHARE",
        help="Share of the run in which the learning rate rises.",
    ),
    click.option(
        "--weight-decay",
        type=click.FloatRange(min=0),
        default=0.01,
        show_default=True,
        metavar="X",
        help="Of AdamW, for matrices only.",
    ),
    click.option(
        "--layer-decay",
        type=click.FloatRange(0, 1, min_open=True),
        default=1.0,
        show_default=True,
        metavar="X",
        help="Factor of the learning rate from a layer to the one below.",
    ),
    click.option(
        "--length",
        type=click.IntRange(min=8),
        metavar="N",
        help="Most tokens in a window. [default: 256; for qa 384]",
    ),
    click.option(
        "--overlap", type=click.IntRange(min=0), metavar="N", help="Tokens that neighbouring windows share."
    ),
    click.option("--freeze", is_flag=True, help="Train the head alone, on vectors that are computed once."),
    click.option(
        "--freeze-layers",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        metavar="N",
        help="Lowest layers that do not learn.",
    ),
    click.option(
        "--lora",
        type=click.IntRange(min=1),
        metavar="RANK",
        help="Train low-rank changes only (likewise[lora]).",
    ),
    click.option(
        "--seeds",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        metavar="N",
        help="Runs with different seeds; mean and spread are shown.",
    ),
    click.option(
        "--seed",
        type=int,
        default=0,
        show_default=True,
        metavar="N",
        help="Of the split, the head and the order.",
    ),
    click.option(
        "--patience",
        type=click.IntRange(min=1),
        metavar="N",
        help="Stop after N evaluations without a better score.",
    ),
    click.option(
        "--precision",
        type=click.Choice(["auto", "float32", "bfloat16"]),
        default="auto",
        show_default=True,
        help="Arithmetic of the forward pass; auto measures which is faster.",
    ),
    click.option(
        "--device", default="auto", show_default=True, metavar="NAME", help="cpu, cuda, mps, or auto."
    ),
    click.option(
        "--limit", type=click.IntRange(min=1), metavar="N", help="Use only the first N training examples."
    ),
    click.option("--offline", is_flag=True, help="Never ask the network for a model or data."),
)


def _column_options(command: Command) -> Command:
    for option in (
        click.option(
            "--skip-unlabelled", is_flag=True, help="Leave rows without a label out instead of refusing them."
        ),
        click.option("--skip-label", multiple=True, metavar="LABEL", help="Leave rows with this label out."),
        click.option("--header", metavar="A,B,...", help="Names of the columns of a file without a header."),
        click.option(
            "--label-column",
            multiple=True,
            metavar="NAME",
            help="Column of the label. [default: by its name]",
        ),
        click.option(
            "--text-column", multiple=True, metavar="NAME", help="Column of a text. [default: by its name]"
        ),
        click.option(
            "--head",
            type=click.Choice(["probe", "linear", "mlp"]),
            help="Kind of head with --freeze: probe is logistic regression. [default: probe]",
        ),
        click.option(
            "--regression", is_flag=True, help="The label is a number, such as a similarity from 0 to 5."
        ),
        click.option("--class-weights", is_flag=True, help="Let rare labels weigh more."),
    ):
        command = option(command)
    return command


@finetune.command(
    short_help="One text, one label (or several, or a number).",
    epilog="""\b
Examples:
  likewise finetune classify imdb/ --long-text windows -o sentiment
  likewise finetune classify imdb/train.csv --test imdb/test.csv --try-lr 2e-5,3e-5,5e-5
  likewise finetune classify topics.jsonl --multi-label
  likewise finetune classify imdb/ --freeze
""",
)
@_options
@_column_options
@click.option("--multi-label", is_flag=True, help="A text may have several labels, or none.")
@click.option(
    "--long-text",
    type=click.Choice(["first", "windows"]),
    default="first",
    show_default=True,
    help="Of a text longer than a window: use its beginning, or all of it by windows.",
)
@output_options
def classify(
    run: dict[str, Any], format: Format, multi_label: bool, regression: bool, long_text: str, **options: Any
) -> None:
    """Learn to label texts."""
    if multi_label and regression:
        raise UsageError("expected --multi-label or --regression, found both")
    kind = "multilabel" if multi_label else "regression" if regression else "classification"
    _finetune(run, format, kind, long_text=long_text, **options)


@finetune.command(
    short_help="Two texts, one label or a number.",
    epilog="""\b
Examples:
  likewise finetune pair snli.tsv -o entailment
  likewise finetune pair stsb-train.csv --dev stsb-dev.csv --regression
""",
)
@_options
@_column_options
@output_options
def pair(run: dict[str, Any], format: Format, regression: bool, **options: Any) -> None:
    """Learn what holds between two texts: paraphrase, entailment, similarity."""
    _finetune(run, format, "regression" if regression else "classification", pair=True, **options)


@finetune.command(
    short_help="A tag for every word: names of people, places, products.",
    epilog="""\b
Examples:
  likewise finetune tag wnut17/ -o names
  likewise finetune tag train.conll --test test.conll --epochs 5 --lr 5e-5
""",
)
@_options
@output_options
def tag(run: dict[str, Any], format: Format) -> None:
    """Learn to mark entities, from CoNLL files or lists of words and tags (BIO or BIOES)."""
    _finetune(run, format, "tagging")


@finetune.command(
    short_help="Answers that stand in a text.",
    epilog="""\b
Examples:
  likewise finetune qa train-v2.0.json --test dev-v2.0.json -o reader
  likewise finetune qa drcd.json.gz --model zh-encoder
""",
)
@_options
@output_options
def qa(run: dict[str, Any], format: Format) -> None:
    """Learn to find the answer to a question in a text, or that there is none, from SQuAD-style data."""
    _finetune(run, format, "questions")


def _finetune(
    run: dict[str, Any],
    format: Format,
    kind: Any,
    *,
    pair: bool = False,
    long_text: Any = "first",
    head: Any = None,
    class_weights: bool = False,
    text_column: tuple[str, ...] = (),
    label_column: tuple[str, ...] = (),
    header: str | None = None,
    skip_label: tuple[str, ...] = (),
    skip_unlabelled: bool = False,
) -> None:
    from likewise.embedder.heads.dataset import load_data
    from likewise.embedder.heads.finetune import FinetuneSettings
    from likewise.embedder.heads.finetune import finetune as run_finetuning
    from likewise.embedder.heads.readers import Reading
    from likewise.embedder.training_settings import TrainingSettings

    sentence_head = kind in ("classification", "multilabel", "regression")
    if head is not None and not run["freeze"]:
        raise UsageError(f"--head {head} is for a frozen encoder", remedy="add --freeze")
    if run["freeze"] and run["freeze_layers"]:
        raise UsageError("expected --freeze or --freeze-layers, found both")
    offline = True if run["offline"] else None
    reading = Reading(
        kind=kind,
        pair=pair,
        text_columns=text_column,
        label_columns=label_column,
        header=tuple(name.strip() for name in header.split(",")) if header else (),
        skip_labels=skip_label,
        skip_unlabelled=skip_unlabelled,
        offline=offline,
    )
    frozen = run["freeze"]
    settings = FinetuneSettings(
        reading=reading,
        training=TrainingSettings(
            epochs=run["epochs"] or (20.0 if frozen else 3.0),
            learning_rate=(1e-3 if frozen else 3e-5) if run["lr"] is None else run["lr"],
            warmup=run["warmup"],
            weight_decay=run["weight_decay"],
            layer_decay=run["layer_decay"],
            accumulation=run["accumulate"],
            precision=run["precision"],
            seed=run["seed"],
            patience=run["patience"],
            save_every=500,
        ),
        model=run["model"],
        batch_size=run["batch"],
        length=run["length"],
        overlap=run["overlap"],
        long_text=long_text,
        balanced=class_weights,
        rates=_rates(run["try_lr"]),
        seeds=run["seeds"],
        freeze_layers=None if frozen and not sentence_head else run["freeze_layers"],
        lora=run["lora"],
        frozen=(head or "probe") if frozen and sentence_head else None,
        device=run["device"],
        offline=offline,
    )
    watch = Watch()
    with quiet(), watch.bar:
        data = load_data(
            run["data"],
            reading,
            dev=run["dev"],
            test=run["test"],
            dev_share=run["dev_share"],
            seed=run["seed"],
            limit=run["limit"],
        )
        for name, fact in data.facts.items():
            note(f"{name}: {fact}")
        for message in data.notes:
            warn(message)
        result = run_finetuning(data, run["output"], settings, listeners=[watch], say=note)
    _finish(result, format)


def _rates(text: str | None) -> tuple[float, ...]:
    if text is None:
        return ()
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(
            f"expected learning rates separated by commas, found {text!r}", remedy="--try-lr 2e-5,3e-5,5e-5"
        ) from error


def _finish(result: FinetuneResult, format: Format) -> None:
    """Print how a run ended; an interrupted one exits with status 130."""
    from likewise.embedder.heads.writing import summary

    if result.status == "interrupted":
        warn("stopped; what was trained is saved, and the same command goes on from there")
        raise click.exceptions.Exit(130)
    if format is Format.JSON:
        write_json(summary(result))
        return
    if format is Format.JSONL:
        write_jsonl([summary(result)])
        return
    write(f"{result.folder}: {result.status}")
    if len(result.runs) > 1:
        for number, run in enumerate(result.runs):
            kept = "  kept" if number == result.best else ""
            scores = ", ".join(f"{name} {value:.4f}" for name, value in run.dev.items())
            write(f"learning rate {run.rate:g}, seed {run.seed}: dev {scores}{kept}")
    for report in result.reports:
        write(f"{report.split}, {report.examples:,} examples, with 95% intervals:")
        rows = [
            (
                f"  {name.replace('_', ' ')}",
                f"{value:.4f}",
                "[{:.4f}, {:.4f}]".format(*report.intervals[name]),
            )
            for name, value in report.metrics.items()
        ]
        rows += [(f"  {name}", f"{value:.4f}", "") for name, value in list(report.by_label.items())[:20]]
        for line in columns(rows):
            write(line)
    for name, (mean, deviation) in result.spread.items():
        write(f"over {len(result.runs)} runs, {name}: {mean:.4f} ± {deviation:.4f}")
    last = result.reports[-1] if result.reports else None
    if last is not None and last.mistakes:
        write(f"hardest errors: {result.folder / f'errors-{last.split}.jsonl'}")
    write(f'use it: likewise predict {result.folder} "..."')
