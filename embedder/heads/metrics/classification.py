"""Metrics of one class out of several for each case, all from the confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.errors import DataError


def confusion(gold: Sequence[int], predicted: Sequence[int], classes: int) -> NDArray[np.int64]:
    """Confusion matrix: rows are gold classes, columns predicted ones.

    Args:
        gold: Class numbers in [0, classes), one for each case.
        predicted: Class numbers in [0, classes), one for each case.
        classes: Number of classes.

    Returns:
        Counts, int64 of shape (classes, classes).

    Raises:
        DataError: The two differ in length.

    Example:
        >>> confusion([0, 0, 1], [0, 1, 1], 2).tolist()
        [[1, 1], [0, 1]]
    """
    if len(gold) != len(predicted):
        raise DataError(f"expected a prediction for each of {len(gold)} cases, found {len(predicted)}")
    cells = np.asarray(gold, dtype=np.int64) * classes + np.asarray(predicted, dtype=np.int64)
    return np.bincount(cells, minlength=classes * classes).reshape(classes, classes)


def accuracy(matrix: NDArray[np.int64]) -> float:
    """Share of cases on the diagonal; 0 without cases.

    Example:
        >>> accuracy(np.array([[1, 1], [0, 2]]))
        0.75
    """
    total = int(matrix.sum())
    return float(np.trace(matrix)) / total if total else 0.0


def f1_by_class(matrix: NDArray[np.int64]) -> NDArray[np.float64]:
    """F1 of each class: 2 tp / (2 tp + fp + fn); NaN for a class that is neither gold nor predicted.

    Example:
        >>> f1_by_class(np.array([[1, 1], [0, 2]])).round(4).tolist()
        [0.6667, 0.8]
    """
    right = np.diag(matrix).astype(np.float64)
    sizes = (matrix.sum(axis=0) + matrix.sum(axis=1)).astype(np.float64)
    return np.divide(2 * right, sizes, out=np.full(len(matrix), np.nan), where=sizes > 0)


def macro_f1(matrix: NDArray[np.int64]) -> float:
    """Mean F1 over the classes that occur in gold or predictions, each counting the same; 0 without cases.

    Example:
        >>> round(macro_f1(np.array([[1, 1], [0, 2]])), 4)
        0.7333
    """
    scores = f1_by_class(matrix)
    return float(np.nanmean(scores)) if (~np.isnan(scores)).any() else 0.0


def matthews(matrix: NDArray[np.int64]) -> float:
    """Matthews' correlation for any number of classes (Gorodkin 2004); 0 where it is not defined.

    Example:
        >>> round(matthews(np.array([[1, 1], [0, 2]])), 4)
        0.5774
    """
    counts = matrix.astype(np.float64)
    gold, predicted, total = counts.sum(axis=1), counts.sum(axis=0), counts.sum()
    covariance = np.trace(counts) * total - gold @ predicted
    spread = (total**2 - predicted @ predicted) * (total**2 - gold @ gold)
    return float(covariance / np.sqrt(spread)) if spread > 0 else 0.0
