"""How sure a mean over queries is: bootstrap intervals and a paired test. No search, no files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_CHUNK = 2**22  # random numbers drawn at a time, about 32 MB


@dataclass(frozen=True)
class Interval:
    """A mean and the interval that holds it with the wanted confidence."""

    mean: float
    low: float
    high: float


def bootstrap_interval(
    values: Sequence[float], *, confidence: float = 0.95, samples: int = 2000, seed: int = 0
) -> Interval:
    """Percentile bootstrap interval of the mean (Efron 1979), resampling queries.

    Args:
        values: One value per query.
        confidence: Between 0 and 1.
        samples: Number of resamples.
        seed: Equal seeds give equal intervals.

    Example:
        >>> bootstrap_interval([0.5, 0.5, 0.5])
        Interval(mean=0.5, low=0.5, high=0.5)
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        return Interval(0.0, 0.0, 0.0)
    means = _resampled_means(array, samples, np.random.default_rng(seed))
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(array.mean()), float(low), float(high))


def _resampled_means(
    values: NDArray[np.float64], samples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    means = np.empty(samples)
    step = max(1, _CHUNK // values.size)
    for start in range(0, samples, step):
        count = min(step, samples - start)
        picks = rng.integers(values.size, size=(count, values.size))
        means[start : start + count] = values[picks].mean(axis=1)
    return means


def paired_p_value(
    first: Sequence[float], second: Sequence[float], *, samples: int = 10_000, seed: int = 0
) -> float:
    """Two-sided p-value of a paired randomisation test: how often chance would differ as much.

    Under the null hypothesis the two systems are interchangeable for each query, so the sign of every
    difference is flipped at random (Fisher 1935; Smucker, Allan and Carterette 2007 recommend it for
    retrieval). The observed arrangement counts as one of the samples, so the result is never 0.

    Args:
        first: One value per query.
        second: Values of the same queries in the same order.
        samples: Number of random sign patterns.
        seed: Equal seeds give equal values.

    Example:
        >>> paired_p_value([1.0, 0.0], [1.0, 0.0])
        1.0
    """
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    difference = difference[difference != 0]
    if difference.size == 0:
        return 1.0
    observed = abs(difference.sum()) * (1 - 1e-12)  # equal sums must count as equal in spite of rounding
    rng = np.random.default_rng(seed)
    extreme = 0
    step = max(1, _CHUNK // difference.size)
    for start in range(0, samples, step):
        count = min(step, samples - start)
        signs = rng.integers(2, size=(count, difference.size)) * 2 - 1
        extreme += int((np.abs(signs @ difference) >= observed).sum())
    return (extreme + 1) / (samples + 1)
