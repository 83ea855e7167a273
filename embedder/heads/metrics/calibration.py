"""Whether probabilities mean what they say: of the answers given with 80%, 80% should be right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Bin(NamedTuple):
    """Cases of similar confidence.

    Attributes:
        confidence: Their mean confidence.
        accuracy: Share of them that is right.
        cases: How many.
    """

    confidence: float
    accuracy: float
    cases: int


def reliability(confidence: NDArray[np.float64], right: NDArray[np.bool_], *, bins: int = 10) -> list[Bin]:
    """Cases grouped by confidence into equal parts of [0, 1]; empty groups are left out.

    Args:
        confidence: Probability of the answer that was given, shape (cases,), in [0, 1].
        right: Whether it is right, shape (cases,).
        bins: Number of groups.

    Example:
        >>> reliability(np.array([0.91, 0.95, 0.55]), np.array([True, False, True]))
        [Bin(confidence=0.55, accuracy=1.0, cases=1), Bin(confidence=0.93, accuracy=0.5, cases=2)]
    """
    group = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    found = []
    for number in range(bins):
        inside = group == number
        if inside.any():
            mean = round(float(confidence[inside].mean()), 12)
            found.append(Bin(mean, float(right[inside].mean()), int(inside.sum())))
    return found


def calibration_error(bins: list[Bin]) -> float:
    """Expected calibration error (Naeini et al. 2015): mean distance of confidence and accuracy, in [0, 1].

    Example:
        >>> round(calibration_error([Bin(0.9, 0.5, 1), Bin(0.6, 0.6, 3)]), 4)
        0.1
    """
    total = sum(part.cases for part in bins)
    return sum(abs(part.confidence - part.accuracy) * part.cases for part in bins) / total if total else 0.0
