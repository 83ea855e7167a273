"""Labels of pairs: what each loss expects of them, checked before anything is trained.

The usual silent mistake is the scale: a score of 5 where the cosine is at most 1 is a target that no vector
reaches. So values outside the range are refused, and rescaled only where that is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from likewise.errors import DataError

LabelKind = Literal["none", "score", "order", "binary", "class", "margins"]

# The numbers that SNLI and its descendants use in sentence-transformers' collections.
NLI_CLASSES = ("contradiction", "entailment", "neutral")
# How data sets for inference mark pairs whose annotators did not agree.
_NO_GOLD = {"-", "-1"}
_YES, _NO = {"1", "1.0", "true", "yes"}, {"0", "0.0", "false", "no"}


def scores(
    values: Sequence[Any], *, where: str, bounded: bool, score_range: tuple[float, float] | None = None
) -> NDArray[np.float32]:
    """Similarity scores.

    Args:
        values: One per row.
        where: Names the data in errors.
        bounded: Whether they must be cosines, in [-1, 1].
        score_range: Lowest and highest score there can be: they are mapped to [0, 1]. None takes them as
            they are.

    Raises:
        DataError: Not a number, not finite, or out of range; or all alike where their order counts.

    Example:
        >>> scores(["5.0", "2.5"], where="pairs.csv", bounded=True, score_range=(0, 5)).tolist()
        [1.0, 0.5]
        >>> scores([5.0], where="p.csv", bounded=True)
        Traceback (most recent call last):
        ...
        likewise.errors.DataError: p.csv: expected scores from -1 to 1, the range of a cosine, found 5 to 5
          try: --score-range 0 5, which maps them to [0, 1]
    """
    numbers = _numbers(values, where)
    low, high = float(numbers.min()), float(numbers.max())
    if score_range is not None:
        start, end = score_range
        if not start < end or low < start or high > end:
            raise DataError(f"{where}: expected scores from {start:g} to {end:g}, found {low:g} to {high:g}")
        return ((numbers - start) / (end - start)).astype(np.float32)
    if bounded and (low < -1 or high > 1):
        top = next((size for size in (1, 3, 4, 5, 10, 100) if high <= size), high)
        raise DataError(
            f"{where}: expected scores from -1 to 1, the range of a cosine, found {low:g} to {high:g}",
            remedy=f"--score-range {min(low, 0):g} {top:g}, which maps them to [0, 1]",
        )
    if not bounded and len(numbers) > 1 and low == high:
        raise DataError(f"{where}: all scores are {low:g}, and a loss that learns their order needs an order")
    return numbers.astype(np.float32)


def binary(values: Sequence[Any], *, where: str) -> NDArray[np.float32]:
    """Labels 1 (similar) and 0 (not similar).

    Raises:
        DataError: Anything else.
    """
    words = [str(value).strip().lower() for value in values]
    for row, word in enumerate(words):
        if word not in _YES | _NO:
            raise DataError(f"{where}, row {row + 1}: expected a label 0 or 1, found {values[row]!r}")
    return np.array([word in _YES for word in words], dtype=np.float32)


def classes(values: Sequence[Any], *, where: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Classes by number, and their names; pairs without an agreed class get the number -1.

    Numbers stay what they are; names of inference data get sentence-transformers' numbers; other names are
    numbered in alphabetical order.

    Raises:
        DataError: Fewer than two classes, numbers that do not count from 0, or a row without a class.

    Example:
        >>> classes(["neutral", "-", "entailment"], where="nli.tsv")
        (array([ 2, -1,  1]), ('contradiction', 'entailment', 'neutral'))
    """
    for row, value in enumerate(values, start=1):
        if value is None or not str(value).strip():
            raise DataError(f"{where}, row {row}: expected a class, found {value!r}")
    words = [str(value).strip() for value in values]
    agreed = Counter(word for word in words if word not in _NO_GOLD)
    if all(_is_whole(word) for word in agreed):
        numbers = sorted({int(float(word)) for word in agreed})
        names = tuple(str(number) for number in numbers)
        if numbers != list(range(len(numbers))):
            raise DataError(f"{where}: expected classes that count from 0, found {', '.join(names)}")
        index = {word: int(float(word)) for word in agreed}
    else:
        known = set(agreed) <= set(NLI_CLASSES)
        names = NLI_CLASSES if known else tuple(sorted(agreed))
        index = {name: number for number, name in enumerate(names)}
    if len(agreed) < 2:
        raise DataError(f"{where}: expected at least two classes, found {len(agreed)}: {', '.join(agreed)}")
    return np.array([index.get(word, -1) for word in words], dtype=np.int64), names


def margins(values: Sequence[Any], *, count: int, where: str) -> NDArray[np.float32]:
    """Differences between a teacher's scores, one per negative.

    Args:
        values: A number per row, or a list of them.
        count: Negatives of a row.
        where: Names the data in errors.

    Raises:
        DataError: Not as many finite numbers as negatives.
    """
    lists = [value if isinstance(value, list | tuple) else [value] for value in values]
    for row, found in enumerate(lists):
        if len(found) != count:
            raise DataError(f"{where}, row {row + 1}: expected {count} margins, found {len(found)}")
    flat = _numbers([number for found in lists for number in found], where)
    return flat.reshape(len(lists), count).astype(np.float32)


def _numbers(values: Sequence[Any], where: str) -> NDArray[np.float64]:
    numbers = np.empty(len(values))
    for row, value in enumerate(values):
        try:
            numbers[row] = float(value)
        except (TypeError, ValueError):
            raise DataError(f"{where}, row {row + 1}: expected a number, found {value!r}") from None
    if not np.isfinite(numbers).all():
        raise DataError(f"{where}: expected finite numbers, found {numbers[~np.isfinite(numbers)][0]}")
    return numbers


def _is_whole(word: str) -> bool:
    try:
        return float(word).is_integer()
    except ValueError:
        return False
