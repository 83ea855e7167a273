"""How certain a score is: intervals from resampled test sets, and the spread over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Interval(NamedTuple):
    """Bounds that hold a score with the stated confidence."""

    low: float
    high: float


def bootstrap(
    metrics: Callable[[NDArray[np.int64]], Mapping[str, float]],
    cases: int,
    *,
    samples: int = 1_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Interval]:
    """Percentile intervals (Efron 1979): the metrics of test sets drawn from this one with replacement.

    Args:
        metrics: Takes positions of cases, int64 of shape (cases,), and returns the scores of these.
        cases: Cases in the test set, at least 1.
        samples: Test sets to draw.
        confidence: In (0, 1).
        seed: Of the draws.

    Example:
        >>> right = np.array([1.0] * 80 + [0.0] * 20)
        >>> low, high = bootstrap(lambda chosen: {"accuracy": right[chosen].mean()}, 100)["accuracy"]
        >>> round(low, 2), round(high, 2)
        (0.72, 0.88)
    """
    rng = np.random.default_rng(seed)
    scores = [metrics(rng.integers(0, cases, cases)) for _ in range(samples)]
    tail = 100 * (1 - confidence) / 2
    found = {}
    for name in scores[0]:
        low, high = np.percentile([score[name] for score in scores], [tail, 100 - tail])
        found[name] = Interval(float(low), float(high))
    return found


def mean_and_spread(scores: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation of a sample (divided by n - 1; 0 for a single score).

    Example:
        >>> mean_and_spread([0.8, 0.9, 1.0])
        (0.9, 0.1)
    """
    mean = math.fsum(scores) / len(scores)
    if len(scores) < 2:
        return mean, 0.0
    return mean, round(math.sqrt(math.fsum((s - mean) ** 2 for s in scores) / (len(scores) - 1)), 12)
