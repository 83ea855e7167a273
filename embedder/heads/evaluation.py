"""Scores of a model on one split, with intervals, scores by label, calibration and the hardest errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from likewise.embedder.heads.classification import Classification
from likewise.embedder.heads.data import Example
from likewise.embedder.heads.metrics.bootstrap import Interval, bootstrap
from likewise.embedder.heads.metrics.calibration import Bin, calibration_error, reliability
from likewise.embedder.heads.metrics.classification import confusion
from likewise.embedder.heads.task import Mistake, Task
from likewise.extras import require

# Classes in the picture of the confusion matrix: the most frequent ones.
_DRAWN = 30


@dataclass(frozen=True)
class Report:
    """Scores on one split.

    Attributes:
        split: Such as "test".
        examples: How many.
        metrics: Scores.
        intervals: Of each score, 95% by bootstrap over the examples.
        by_label: F1 of each label or type.
        mistakes: The hardest ones.
        wrong: How many mistakes there are in all.
        bins: Confidence against accuracy; empty where the task has no one confidence.
        confusion: Counts of gold and predicted labels, as (names, matrix); None for other tasks.
    """

    split: str
    examples: int
    metrics: Mapping[str, float]
    intervals: Mapping[str, Interval]
    by_label: Mapping[str, float] = field(default_factory=dict)
    mistakes: Sequence[Mistake] = ()
    wrong: int = 0
    bins: Sequence[Bin] = ()
    confusion: tuple[tuple[str, ...], Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """As fields of a JSON object."""
        fields: dict[str, Any] = {
            "split": self.split,
            "examples": self.examples,
            "metrics": {name: round(value, 6) for name, value in self.metrics.items()},
            "intervals": {
                name: [round(bound, 6) for bound in interval] for name, interval in self.intervals.items()
            },
            "by_label": {name: round(value, 6) for name, value in self.by_label.items()},
            "wrong": self.wrong,
        }
        if self.bins:
            fields["calibration_error"] = round(calibration_error(list(self.bins)), 6)
        return fields


def evaluate(
    task: Task,
    examples: Sequence[Example],
    predictions: Sequence[Any],
    *,
    split: str,
    samples: int = 1_000,
    hardest: int = 20,
) -> Report:
    """Score predictions.

    Args:
        task: What was predicted.
        examples: With their gold labels.
        predictions: One for each example.
        split: Name of the split.
        samples: Of the bootstrap.
        hardest: Most mistakes to list.
    """
    scorer = task.scorer(examples, predictions)
    mistakes = task.mistakes(examples, predictions)
    bins: Sequence[Bin] = ()
    drawn = None
    if isinstance(task, Classification):
        gold, predicted = task.numbers(examples, predictions)
        sure = np.array([prediction.probability for prediction in predictions])
        bins = reliability(sure, gold == predicted)
        drawn = _frequent(task.labels, gold, predicted)
    return Report(
        split,
        len(examples),
        scorer(np.arange(len(examples))),
        bootstrap(scorer, len(examples), samples=samples),
        task.extra_scores(examples, predictions),
        mistakes[:hardest],
        len(mistakes),
        bins,
        drawn,
    )


def _frequent(labels: tuple[str, ...], gold: Any, predicted: Any) -> tuple[tuple[str, ...], Any]:
    """Confusion matrix of the most frequent labels; others, unknown gold labels too, are "other"."""
    size = len(labels)
    gold = np.where(gold < 0, size, gold)
    counts = np.bincount(gold, minlength=size + 1)[:size] + np.bincount(predicted, minlength=size)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:_DRAWN])
    place = np.full(size + 1, len(chosen))
    place[chosen] = np.arange(len(chosen))
    names = [labels[number] for number in chosen.tolist()]
    cells = place[gold], place[predicted]
    if (cells[0] == len(chosen)).any() or (cells[1] == len(chosen)).any():
        names.append("other")
    return tuple(names), confusion(cells[0], cells[1], len(names))


def draw_confusion(report: Report, path: Path) -> None:
    """Draw the confusion matrix of a classification to a PNG.

    Raises:
        MissingExtra: The `train` extra is not installed.
    """
    require("matplotlib", extra="train", purpose="drawing the confusion matrix")
    from matplotlib.figure import Figure

    assert report.confusion is not None
    names, matrix = report.confusion
    side = max(3.5, 0.5 * len(names) + 2)
    figure = Figure(figsize=(side + 1, side), layout="constrained")
    axes = figure.subplots()
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    short = [_drawable(name) for name in names]
    axes.set(xlabel="predicted", ylabel="gold", title=f"Confusion, {report.split}, n = {report.examples}")
    axes.set_xticks(range(len(names)), short, rotation=45 if len(names) > 4 else 0)
    axes.set_yticks(range(len(names)), short)
    if len(names) <= 12:
        for row in range(len(names)):
            for column in range(len(names)):
                color = "white" if shares[row, column] > 0.5 else "black"
                axes.text(column, row, str(matrix[row, column]), ha="center", va="center", color=color)
    figure.colorbar(image, label="share of the gold label")
    figure.savefig(path, dpi=120, bbox_inches="tight")


def draw_calibration(report: Report, path: Path) -> None:
    """Draw confidence against accuracy to a PNG.

    Raises:
        MissingExtra: The `train` extra is not installed.
    """
    require("matplotlib", extra="train", purpose="drawing the calibration")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], "--", color="gray", label="perfect")
    sizes = [30 + 300 * part.cases / report.examples for part in report.bins]
    axes.plot([p.confidence for p in report.bins], [p.accuracy for p in report.bins], "-", color="C0")
    axes.scatter(
        [p.confidence for p in report.bins], [p.accuracy for p in report.bins], s=sizes, label="model"
    )
    error = calibration_error(list(report.bins))
    axes.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1.02), ylim=(-0.02, 1.02))
    axes.set_title(f"Calibration, {report.split}, error {error:.3f}")
    axes.legend()
    figure.savefig(path, dpi=120, bbox_inches="tight")


def _drawable(name: str) -> str:
    """A label that the picture's font can show: others are written as their escapes."""
    short = name if len(name) <= 18 else name[:17] + "…"
    return short if short.isascii() or all(ord(c) < 0x250 or c == "…" for c in short) else ascii(short)[1:-1]
