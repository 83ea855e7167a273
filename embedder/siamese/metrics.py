"""How good vectors are at a task: correlations, average precision, accuracy. Pure functions of numbers.

No model, no text. Each takes NumPy arrays, so that they can be computed again on resampled rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


def pearson(x: Floats, y: Floats) -> float:
    """Pearson's correlation; 0 where one side does not vary.

    Example:
        >>> round(pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0])), 6)
        1.0
    """
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale > 0 else 0.0


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's rank correlation: Pearson's of the ranks, ties at their mean rank.

    Example:
        >>> round(spearman(np.array([1.0, 2.0, 30.0]), np.array([0.1, 0.2, 0.3])), 6)
        1.0
    """
    return pearson(ranks(x), ranks(y))


def ranks(values: Floats) -> NDArray[np.float64]:
    """Ranks from 1, equal values at the mean of their places.

    Example:
        >>> ranks(np.array([10.0, 30.0, 10.0])).tolist()
        [1.5, 3.0, 1.5]
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[inverse]


def average_precision(scores: Floats, labels: Floats) -> float:
    """Area under precision over recall: the mean precision at each positive, best score first.

    Equal scores enter together, so that their order does not matter. 0 without a positive.

    Args:
        scores: Shape (n,).
        labels: Shape (n,), 1 for positives.

    Example:
        >>> average_precision(np.array([0.9, 0.8, 0.1]), np.array([1, 0, 1]))  # (1 + 2/3) / 2
        0.8333333333333333
    """
    found, seen, last = _by_threshold(scores, labels)
    total = labels.sum()
    if not total:
        return 0.0
    gained = np.diff(found[last], prepend=0.0)
    return float((gained * found[last] / seen[last]).sum() / total)


def best_threshold(scores: Floats, labels: Floats) -> tuple[float, float]:
    """Threshold that classifies best, and its accuracy: what scores at least that much is positive.

    It lies halfway between two neighbouring scores.

    Example:
        >>> best_threshold(np.array([0.9, 0.8, 0.25]), np.array([1, 1, 0]))
        (0.525, 1.0)
    """
    found, seen, last = _by_threshold(scores, labels)
    negatives = len(labels) - labels.sum()
    # Right are the positives above the threshold and the negatives below; none may be above at all.
    right = np.concatenate([[negatives], found[last] + negatives - (seen[last] - found[last])])
    levels = np.sort(np.unique(scores))[::-1]
    at = int(right.argmax())
    if at == 0:
        threshold = float(np.nextafter(levels[0], np.inf))
    else:
        threshold = float(levels[at - 1] if at == len(levels) else (levels[at - 1] + levels[at]) / 2)
    return threshold, float(right[at] / len(labels))


def _by_threshold(
    scores: Floats, labels: Floats
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Positives found and rows seen after each row, best first; and the last row of each distinct score."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    found = np.cumsum(labels[order], dtype=np.float64)
    seen = np.arange(1, len(scores) + 1, dtype=np.float64)
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    return found, seen, last
