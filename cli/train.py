"""`likewise train`: from pairs of texts to a better encoder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.output import Format, note, output_options, warn, write, write_json, write_jsonl
from likewise.cli.training import Watch, quiet
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.embedder.siamese.settings import TrainingData
    from likewise.embedder.siamese.train import SiameseResult
    from likewise.index.records import Json

LOSSES = (
    "ranking",
    "cosent",
    "angle",
    "cosine",
    "softmax",
    "contrastive",
    "online-contrastive",
    "triplet",
    "margin-mse",
    "simcse",
    "tsdae",
    "distillation",
    "translation",
)

EPILOG = """\b
Examples:
  likewise train questions.jsonl -o model
  likewise train stsb-train.csv --loss cosent --eval stsb-dev.csv --epochs 4 --lr 4e-5
  likewise train nli.tsv --loss softmax --eval cosent=stsb-dev.csv
  likewise train ranking=faq.csv cosent=stsb.csv@0.5 --column anchor=claim
  likewise train big.jsonl --batch-size 1024 --part-tokens 4096

DATA is a CSV, TSV, JSONL or Parquet file (also .gz), a folder that the datasets library
saved, or hub:NAME. LOSS=DATA gives it a loss of its own, DATA@WEIGHT so many passes per
epoch. Columns go by name: anchor (or query, question, sentence1, premise), positive (or
answer, passage, sentence2, hypothesis), negative_1 ..., and label (or score).

A model that did not get better on held-out rows is not saved as one: the folder then
has the weights of the base, unless --keep-worse is given.
"""


@click.command(short_help="Train an encoder on pairs of texts.", epilog=EPILOG)
@click.argument("data", nargs=-1, required=True, metavar="DATA...")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("model"),
    show_default=True,
    metavar="DIR",
    help="Where the model goes.",
)
@click.option("--encoder", metavar="NAME", help="Where training starts. [default: all-MiniLM-L6-v2]")
@click.option(
    "--loss",
    type=click.Choice(LOSSES),
    default="ranking",
    show_default=True,
    help="Of data without a loss of their own.",
)
@click.option(
    "--eval",
    "held_out",
    multiple=True,
    metavar="DATA",
    help="Held-out data to be measured by; repeatable. [default: a share of the first training data]",
)
@click.option(
    "--held-out",
    "share",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.1,
    show_default=True,
    metavar="SHARE",
    help="Share of the first training data kept for evaluation if there is no --eval.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="ROLE=NAME",
    help="Name of a column with an unusual name; ROLE= ignores one. Repeatable.",
)
@click.option(
    "--score-range",
    nargs=2,
    type=float,
    metavar="LOW HIGH",
    help="Lowest and highest score there can be; scores are mapped to [0, 1].",
)
@click.option("--skip-empty", is_flag=True, help="Leave out rows with an empty text.")
@click.option(
    "--epochs",
    type=click.FloatRange(min=0, min_open=True),
    metavar="X",
    help="Passes over the data. [default: 1, if no other limit is given]",
)
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Stop after N optimiser steps.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    metavar="X",
    help="Stop after X minutes of training.",
)
@click.option("--lr", type=float, default=2e-5, show_default=True, metavar="X", help="Peak learning rate.")
@click.option(
    "--warmup",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.1,
    show_default=True,
    metavar="SHARE",
    help="Share of the run in which the learning rate rises.",
)
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    default=32,
    show_default=True,
    metavar="N",
    help="Rows in a batch.",
)
@click.option(
    "--part-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Encode a batch in parts of N tokens: large batches in little memory, for a third more time.",
)
@click.option(
    "--accumulate",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Batches per step, for losses whose batches add up.",
)
@click.option(
    "--scale", type=float, default=20.0, show_default=True, metavar="X", help="Factor of the cosines."
)
@click.option("--margin", type=float, metavar="X", help="Of contrastive (0.5) and triplet (0.3).")
@click.option("--symmetric", is_flag=True, help="Ranking: seek the anchor of each positive too.")
@click.option(
    "--matryoshka",
    multiple=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="Train the first N components to be good on their own; repeatable.",
)
@click.option("--teacher", metavar="NAME", help="Encoder whose vectors distillation and translation learn.")
@click.option("--pooling", metavar="MODE", help="Instead of the encoder's: mean, cls, max and others.")
@click.option("--dense", type=click.IntRange(min=1), metavar="N", help="Add a Dense module of N dimensions.")
@click.option("--max-tokens", type=click.IntRange(min=8), metavar="N", help="Cut texts to N tokens.")
@click.option(
    "--freeze",
    type=click.IntRange(min=0),
    metavar="N",
    help="Keep the embeddings and the lowest N layers as they are.",
)
@click.option(
    "--cache-frozen",
    is_flag=False,
    flag_value=2.0,
    type=click.FloatRange(min=0, min_open=True),
    metavar="[GB]",
    help="Compute what frozen layers make of a text once and keep it on disk, in at most GB gigabytes (2).",
)
@click.option(
    "--blend",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Share of the base in the final weights, against forgetting.",
)
@click.option(
    "--watch", metavar="METRIC", help="Metric that decides which weights are best. [default: the first]"
)
@click.option(
    "--evaluate-every",
    type=click.IntRange(min=1),
    metavar="N",
    help="Steps between evaluations. [default: an epoch]",
)
@click.option(
    "--patience",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop after N evaluations without a better value.",
)
@click.option("--keep-worse", is_flag=True, help="Save the trained weights even if they are no better.")
@click.option(
    "--precision",
    type=click.Choice(["auto", "float32", "bfloat16"]),
    default="auto",
    show_default=True,
    help="Arithmetic of the forward pass; auto measures which is faster.",
)
@click.option("--device", default="auto", show_default=True, metavar="NAME", help="cpu, cuda, mps, or auto.")
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="Of order, dropout and heads."
)
@click.option("--tensorboard", is_flag=True, help="Log for TensorBoard too.")
@click.option("--offline", is_flag=True, help="Never ask the network for a model.")
@output_options
def train(data: tuple[str, ...], format: Format, **options: Any) -> None:
    """Train an encoder so that texts which belong together get similar vectors."""
    from likewise.embedder.distributed import world
    from likewise.embedder.siamese.settings import SiameseSettings
    from likewise.embedder.siamese.train import train_siamese
    from likewise.embedder.training_settings import TrainingSettings

    budget = {name: options[name] for name in ("steps", "epochs", "minutes") if options[name] is not None}
    if len(budget) > 1:
        raise UsageError(f"expected one of --steps, --epochs and --minutes, found {len(budget)}")
    same = ("teacher", "encoder", "pooling", "dense", "max_tokens", "batch_size", "part_tokens")
    more = ("freeze", "cache_frozen", "blend", "watch", "keep_worse", "skip_empty", "device", "tensorboard")
    settings = SiameseSettings(
        training=TrainingSettings(
            **(budget or {"epochs": 1.0}),
            learning_rate=options["lr"],
            warmup=options["warmup"],
            accumulation=options["accumulate"],
            precision=options["precision"],
            seed=options["seed"],
            evaluate_every=options["evaluate_every"],
            patience=options["patience"],
        ),
        held_out=options["share"],
        offline=True if options["offline"] else None,
        **{name: options[name] for name in (*same, *more)},
    )
    sets = [_data_set(text, options) for text in data]
    apart = [_data_set(text, options) for text in options["held_out"]]
    watch = Watch()
    with world() as processes, quiet(), watch.bar:
        result = train_siamese(
            sets, options["output"], settings, held_out=apart, listeners=[watch], world=processes
        )
        leads = processes.leads
    if leads:
        _finish(result, format)


def _data_set(text: str, options: dict[str, Any]) -> TrainingData:
    """`[LOSS=]DATA[@WEIGHT]`."""
    from likewise.embedder.siamese.settings import TrainingData
    from likewise.embedder.siamese.tasks import LossSettings

    loss, found, source = text.partition("=")
    if not found or loss not in LOSSES:  # a path may hold an equals sign
        loss, source = options["loss"], text
    weight = 1.0
    head, at, tail = source.rpartition("@")
    if at and _is_number(tail):
        source, weight = head, float(tail)
    columns = {}
    for item in options["columns"]:
        role, equals, name = item.partition("=")
        if not equals:
            raise UsageError(f"expected --column ROLE=NAME, found {item!r}")
        columns[role] = name
    return TrainingData(
        source=source,
        loss=loss,
        weight=weight,
        columns=columns,
        score_range=options["score_range"],
        settings=LossSettings(
            scale=options["scale"],
            margin=options["margin"],
            symmetric=options["symmetric"],
            dimensions=options["matryoshka"] or None,
        ),
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _finish(result: SiameseResult, format: Format) -> None:
    """Print how a run ended; an interrupted one exits with status 130."""
    training, verdict = result.training, result.verdict
    if training.status == "interrupted":
        warn(f"stopped at step {training.step:,}; it is saved, and the same command goes on from there")
        raise click.exceptions.Exit(130)
    for notice in result.data.notices:
        note(notice)
    if format is Format.TEXT:
        write(
            f"{result.folder}: {training.status} after {training.step:,} steps, "
            f"{training.epochs:.2f} epochs, "
            f"{training.seconds / 60:.1f} minutes, {training.precision}"
        )
        for c in verdict.comparisons:
            write(
                f"{c.metric}: {c.before.value:.4f} -> {c.after.value:.4f}, gain {c.gain.value:+.4f} "
                f"[{c.gain.low:+.4f}, {c.gain.high:+.4f}]"
            )
        write(verdict.sentence())
        if result.kept == "base":
            warn("the folder has the weights of the base; --keep-worse saves the trained ones")
        return
    value: dict[str, Json] = {
        "version": 1,
        "folder": str(result.folder),
        "status": training.status,
        "steps": training.step,
        "epochs": round(training.epochs, 4),
        "seconds": round(training.seconds, 3),
        "precision": training.precision,
        "outcome": verdict.outcome,
        "kept": result.kept,
        "metric": verdict.metric,
        "metrics": {
            c.metric: {"before": list(c.before), "after": list(c.after), "gain": list(c.gain)}
            for c in verdict.comparisons
        },
        "rows": dict(result.data.rows),
        "held_out": dict(result.data.held_out),
        "texts": result.data.texts,
        "truncated": result.data.truncated,
        "shared": result.data.shared,
    }
    if format is Format.JSON:
        write_json(value)
    else:
        write_jsonl([value])
