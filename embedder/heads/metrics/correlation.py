"""Correlation of gold and predicted numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def pearson(gold: Sequence[float], predicted: Sequence[float]) -> float:
    """Pearson's correlation, in [-1, 1]; 0 where one side does not vary.

    Example:
        >>> round(pearson([1, 2, 3], [2, 4, 7]), 4)
        0.9934
    """
    x, y = np.asarray(gold, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    # A constant has a spread of rounding errors after its mean is taken away, so ask the values themselves.
    if len(x) < 2 or x.min() == x.max() or y.min() == y.max():
        return 0.0
    x, y = x - x.mean(), y - y.mean()
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    return float(np.clip(x @ y, -1.0, 1.0))


def spearman(gold: Sequence[float], predicted: Sequence[float]) -> float:
    """Spearman's rank correlation, in [-1, 1]; equal values share the mean of their ranks.

    Example:
        >>> round(spearman([1, 2, 3], [10, 100, 1000]), 4)
        1.0
    """
    return pearson(_ranks(gold).tolist(), _ranks(predicted).tolist())


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    _, inverse, counts = np.unique(
        np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True
    )
    ends = np.cumsum(counts)
    return ((2 * ends - counts + 1) / 2)[inverse]
