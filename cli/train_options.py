"""The options of `likewise train`, by what they are about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from likewise.cli.options import AVERAGE, DEVICE, OFFLINE, PRECISION
from likewise.cli.train_data import LOSSES

Command = TypeVar("Command", bound=Callable[..., Any])


def train_options(command: Command) -> Command:
    """Give a command all of them, in their order."""
    decorated: Any = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    wrapped: Command = decorated
    return wrapped


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "-o",
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("model"),
        show_default=True,
        metavar="DIR",
        help="Where the model goes.",
    ),
    click.option("--encoder", metavar="NAME", help="Where training starts. [default: all-MiniLM-L6-v2-zh]"),
    click.option(
        "--loss",
        type=click.Choice(LOSSES),
        default="ranking",
        show_default=True,
        help="Of data without a loss of their own.",
    ),
    click.option(
        "--eval",
        "held_out",
        multiple=True,
        metavar="DATA",
        help="Held-out data to be measured by; repeatable. [default: a share of the first training data]",
    ),
    click.option(
        "--evaluate-ranking",
        "ranked",
        multiple=True,
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Folder with corpus, queries and qrels: measure nDCG@10 of the vectors on it. Repeatable; the "
        "first one decides which weights are best.",
    ),
    click.option(
        "--ranking-split",
        default="test",
        show_default=True,
        metavar="NAME",
        help="Which judgements of it to use.",
    ),
    click.option(
        "--ranking-documents",
        type=click.IntRange(min=1),
        default=2000,
        show_default=True,
        metavar="N",
        help="Rank N of its documents, all judged ones among them: each evaluation embeds them anew.",
    ),
    click.option(
        "--held-out",
        "share",
        type=click.FloatRange(0, 1, max_open=True),
        default=0.1,
        show_default=True,
        metavar="SHARE",
        help="Share of the first training data kept for evaluation if there is no --eval.",
    ),
    click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="[DATA:]ROLE=NAME",
        help="Name of a column with an unusual name; ROLE= ignores one. Repeatable.",
    ),
    click.option(
        "--prompt",
        "column_prompts",
        multiple=True,
        metavar="[DATA:]ROLE=TEXT",
        help="Text in front of a column, here alone: it is not saved with the model. Repeatable.",
    ),
    click.option(
        "--query-prompt", metavar="TEXT", help="The model's own text in front of queries, saved with it."
    ),
    click.option(
        "--passage-prompt", metavar="TEXT", help="The model's own text in front of passages, saved with it."
    ),
    click.option(
        "--score-range",
        nargs=2,
        type=float,
        metavar="LOW HIGH",
        help="Lowest and highest score there can be; scores are mapped to [0, 1].",
    ),
    click.option("--skip-empty", is_flag=True, help="Leave out rows with an empty text."),
    click.option(
        "--epochs",
        type=click.FloatRange(min=0, min_open=True),
        metavar="X",
        help="Passes over the data. [default: 1, if no other limit is given]",
    ),
    click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Stop after N optimiser steps."),
    click.option(
        "--minutes",
        type=click.FloatRange(min=0, min_open=True),
        metavar="X",
        help="Stop after X minutes of training.",
    ),
    click.option(
        "--lr", type=float, default=2e-5, show_default=True, metavar="X", help="Peak learning rate."
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
        "--batch-size",
        type=click.IntRange(min=1),
        default=32,
        show_default=True,
        metavar="N",
        help="Rows in a batch.",
    ),
    click.option(
        "--part-tokens",
        type=click.IntRange(min=1),
        metavar="N",
        help="Encode a batch in parts of N tokens: large batches in little memory, for a third more time.",
    ),
    click.option(
        "--accumulate",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        metavar="N",
        help="Batches per step, for losses whose batches add up.",
    ),
    click.option(
        "--scale", type=float, default=20.0, show_default=True, metavar="X", help="Factor of the cosines."
    ),
    click.option("--margin", type=float, metavar="X", help="Of contrastive (0.5) and triplet (0.3)."),
    click.option(
        "--distance",
        type=click.Choice(["cosine", "euclidean"]),
        default="cosine",
        show_default=True,
        help="Of contrastive, online-contrastive and triplet.",
    ),
    click.option(
        "--features",
        type=click.Choice(["u,v", "u,v,|u-v|"]),
        default="u,v,|u-v|",
        show_default=True,
        help="What the classifier of softmax sees of two vectors.",
    ),
    click.option(
        "--deleted",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.6,
        show_default=True,
        metavar="SHARE",
        help="Share of a text that tsdae deletes.",
    ),
    click.option(
        "--measure",
        type=click.Choice(["mse", "cosine"]),
        default="mse",
        show_default=True,
        help="Distance of distillation and translation to the teacher's vectors.",
    ),
    click.option("--symmetric", is_flag=True, help="Ranking: seek the anchor of each positive too."),
    click.option(
        "--matryoshka",
        multiple=True,
        type=click.IntRange(min=1),
        metavar="N",
        help="Train the first N components to be good on their own; repeatable.",
    ),
    click.option(
        "--teacher", metavar="NAME", help="Encoder whose vectors distillation and translation learn."
    ),
    click.option("--pooling", metavar="MODE", help="Instead of the encoder's: mean, cls, max and others."),
    click.option(
        "--dense", type=click.IntRange(min=1), metavar="N", help="Add a Dense module of N dimensions."
    ),
    click.option("--max-tokens", type=click.IntRange(min=8), metavar="N", help="Cut texts to N tokens."),
    click.option(
        "--dropout",
        type=click.FloatRange(0, 1, max_open=True),
        metavar="SHARE",
        help="Values dropped in training, instead of the encoder's own; 0 suits losses that keep vectors in "
        "their place.",
    ),
    click.option(
        "--freeze",
        type=click.IntRange(min=0),
        metavar="N",
        help="Keep the embeddings and the lowest N layers as they are.",
    ),
    click.option(
        "--cache-frozen",
        is_flag=False,
        flag_value=2.0,
        type=click.FloatRange(min=0, min_open=True),
        metavar="[GB]",
        help="Compute what frozen layers make of a text once; keep it on disk, in at most GB gigabytes [2].",
    ),
    click.option(
        "--blend",
        type=click.FloatRange(0, 1, max_open=True),
        default=0.0,
        show_default=True,
        metavar="SHARE",
        help="Share of the base in the final weights, against forgetting.",
    ),
    click.option(
        "--watch", metavar="METRIC", help="Metric that decides which weights are best. [default: the first]"
    ),
    click.option(
        "--evaluate-every",
        type=click.IntRange(min=1),
        metavar="N",
        help="Steps between evaluations. [default: an epoch]",
    ),
    click.option(
        "--patience",
        type=click.IntRange(min=1),
        metavar="N",
        help="Stop after N evaluations without a better value.",
    ),
    click.option("--keep-worse", is_flag=True, help="Save the trained weights even if they are no better."),
    AVERAGE,
    PRECISION,
    DEVICE,
    click.option(
        "--seed", type=int, default=0, show_default=True, metavar="N", help="Of order, dropout and heads."
    ),
    click.option("--tensorboard", is_flag=True, help="Log for TensorBoard too."),
    OFFLINE,
)
