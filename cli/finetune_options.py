"""Options of `likewise finetune`: how a run learns, and what the columns of its data mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from likewise.cli.options import AVERAGE, DEVICE, PRECISION, collected

_RUN: tuple[Callable[[Any], Any], ...] = (
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
    click.option(
        "-m", "--model", metavar="NAME", help="Encoder to begin with. [default: all-MiniLM-L6-v2-zh]"
    ),
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
    AVERAGE,
    PRECISION,
    DEVICE,
    click.option(
        "--limit",
        type=click.IntRange(min=1),
        metavar="N",
        help="Use only N training examples, drawn with the seed.",
    ),
    click.option("--offline", is_flag=True, help="Never ask the network for a model or data."),
)

_LABELS: tuple[Callable[[Any], Any], ...] = (
    click.option("--class-weights", is_flag=True, help="Let rare labels weigh more."),
    click.option(
        "--regression", is_flag=True, help="The label is a number, such as a similarity from 0 to 5."
    ),
    click.option(
        "--head",
        type=click.Choice(["probe", "linear", "mlp"]),
        help="Kind of head with --freeze: probe is logistic regression. [default: probe]",
    ),
    click.option(
        "--text-column", multiple=True, metavar="NAME", help="Column of a text. [default: by its name]"
    ),
    click.option(
        "--label-column",
        multiple=True,
        metavar="NAME",
        help="Column of the label. [default: by its name]",
    ),
    click.option("--header", metavar="A,B,...", help="Names of the columns of a file without a header."),
    click.option("--skip-label", multiple=True, metavar="LABEL", help="Leave rows with this label out."),
    click.option(
        "--skip-unlabelled", is_flag=True, help="Leave rows without a label out instead of refusing them."
    ),
    click.option(
        "--long-text",
        type=click.Choice(["windows", "first"]),
        default="windows",
        show_default=True,
        help="Of a text longer than a window: use all of it, by overlapping windows, or its beginning alone.",
    ),
)

# Each arrives as one mapping, `run` and `labels`: what all tasks have, and what tasks with labels of whole
# texts have besides.
run_options = collected("run", _RUN)
label_options = collected("labels", _LABELS)
