"""Metrics of any number of labels for each case, from 0/1 matrices of shape (cases, labels)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def micro_f1(gold: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> float:
    """F1 over all decisions together; 0 where nothing is gold or predicted.

    Example:
        >>> micro_f1(np.array([[True, False], [True, True]]), np.array([[True, True], [False, True]]))
        0.6666666666666666
    """
    right, sizes = (gold & predicted).sum(), gold.sum() + predicted.sum()
    return float(2 * right / sizes) if sizes else 0.0


def macro_f1(gold: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> float:
    """Mean F1 over the labels that are gold or predicted at least once; 0 where none is.

    Example:
        >>> macro_f1(np.array([[True, False], [True, True]]), np.array([[True, True], [False, True]]))
        0.6666666666666666
    """
    right = (gold & predicted).sum(axis=0).astype(np.float64)
    sizes = (gold.sum(axis=0) + predicted.sum(axis=0)).astype(np.float64)
    used = sizes > 0
    return float((2 * right[used] / sizes[used]).mean()) if used.any() else 0.0


def subset_accuracy(gold: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> float:
    """Share of cases whose labels are all right; 0 without cases.

    Example:
        >>> subset_accuracy(np.array([[True, False], [True, True]]), np.array([[True, True], [True, True]]))
        0.5
    """
    return float((gold == predicted).all(axis=1).mean()) if len(gold) else 0.0
