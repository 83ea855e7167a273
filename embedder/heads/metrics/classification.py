"""Metrics of one class out of several for each case.

They need no confusion matrix, only three counts per class, so that a hundred thousand classes are no problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.errors import DataError


class ClassCounts(NamedTuple):
    """Cases by class, each int64 of shape (classes,).

    Attributes:
        right: Gold and predicted.
        gold: Gold.
        predicted: Predicted.
    """

    right: NDArray[np.int64]
    gold: NDArray[np.int64]
    predicted: NDArray[np.int64]


def count_classes(gold: NDArray[np.int64], predicted: NDArray[np.int64], classes: int) -> ClassCounts:
    """Count cases by class.

    Args:
        gold: Class numbers, shape (cases,). A number outside [0, classes) stands for a class that the model
            does not know: it is never right, and counts as one class more.
        predicted: Class numbers in [0, classes), shape (cases,).
        classes: Number of classes.

    Raises:
        DataError: The two differ in length.

    Example:
        >>> count_classes(np.array([0, 0, 1]), np.array([0, 1, 1]), 2).right.tolist()
        [1, 1]
    """
    if len(gold) != len(predicted):
        raise DataError(f"expected a prediction for each of {len(gold)} cases, found {len(predicted)}")
    unknown = (gold < 0) | (gold >= classes)
    size = classes + bool(unknown.any())
    gold = np.where(unknown, classes, gold)
    right = gold[gold == predicted]
    return ClassCounts(*(np.bincount(values, minlength=size) for values in (right, gold, predicted)))


def accuracy(counts: ClassCounts) -> float:
    """Share of cases that are right; 0 without cases.

    Example:
        >>> accuracy(count_classes(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), 2))
        0.75
    """
    total = int(counts.gold.sum())
    return int(counts.right.sum()) / total if total else 0.0


def f1_by_class(counts: ClassCounts) -> NDArray[np.float64]:
    """F1 of each class: 2 tp / (2 tp + fp + fn); NaN for a class that is neither gold nor predicted.

    Example:
        >>> f1_by_class(count_classes(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), 2)).round(4).tolist()
        [0.6667, 0.8]
    """
    sizes = (counts.gold + counts.predicted).astype(np.float64)
    scores = np.full(len(sizes), np.nan)
    np.divide(2.0 * counts.right, sizes, out=scores, where=sizes > 0)
    return scores


def macro_f1(counts: ClassCounts) -> float:
    """Mean F1 over the classes that occur in gold or predictions, each counting the same; 0 without cases.

    Example:
        >>> round(macro_f1(count_classes(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), 2)), 4)
        0.7333
    """
    scores = f1_by_class(counts)
    return float(np.nanmean(scores)) if (~np.isnan(scores)).any() else 0.0


def matthews(counts: ClassCounts) -> float:
    """Matthews' correlation for any number of classes (Gorodkin 2004); 0 where it is not defined.

    Example:
        >>> round(matthews(count_classes(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), 2)), 4)
        0.5774
    """
    gold, predicted = counts.gold.astype(np.float64), counts.predicted.astype(np.float64)
    total = gold.sum()
    covariance = counts.right.sum() * total - gold @ predicted
    spread = (total**2 - predicted @ predicted) * (total**2 - gold @ gold)
    return float(covariance / np.sqrt(spread)) if spread > 0 else 0.0


def confusion(gold: Sequence[int], predicted: Sequence[int], classes: int) -> NDArray[np.int64]:
    """Confusion matrix: rows are gold classes, columns predicted ones.

    Args:
        gold: Class numbers in [0, classes), one for each case.
        predicted: Class numbers in [0, classes), one for each case.
        classes: Number of classes, few enough for a matrix.

    Example:
        >>> confusion([0, 0, 1], [0, 1, 1], 2).tolist()
        [[1, 1], [0, 1]]
    """
    cells = np.asarray(gold, dtype=np.int64) * classes + np.asarray(predicted, dtype=np.int64)
    return np.bincount(cells, minlength=classes * classes).reshape(classes, classes)
