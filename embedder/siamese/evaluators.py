"""What a model is measured by during training and after it, with intervals.

An evaluator is given the vectors' maker and returns a `Measurement`: metrics, and the means to compute them
again on resampled rows. So every metric gets an interval, and two models a paired comparison, from the rows
that they were measured on. Ranking over an index is passed in as a function: nothing here may import one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.prompts import Prompts
from likewise.embedder.protocol import Role
from likewise.embedder.siamese.metrics import average_precision, best_threshold, pearson, spearman
from likewise.embedder.siamese.pairs import PairData
from likewise.embedder.siamese.token_table import TokenTable
from likewise.errors import DataError

Numbers: TypeAlias = NDArray[np.int64]
Encode: TypeAlias = Callable[[Numbers], NDArray[np.float32]]
"""From numbers of texts of the evaluators' table to unit vectors, float32 of shape (texts, d)."""
EmbedTexts: TypeAlias = Callable[[Sequence[str], Role], NDArray[np.float32]]
"""From texts and their role to unit vectors."""


@dataclass(frozen=True)
class Measurement:
    """Metrics of a model on some rows.

    Attributes:
        rows: Number of rows, the units of the bootstrap.
        compute: Metrics of rows by number, in which a row may stand several times.
    """

    rows: int
    compute: Callable[[Numbers], Mapping[str, float]]

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics of all rows."""
        return dict(self.compute(np.arange(self.rows)))


class Interval(NamedTuple):
    """A value with its 95% bootstrap interval."""

    value: float
    low: float
    high: float


class Evaluator(Protocol):
    """A way to measure a model."""

    @property
    def name(self) -> str:
        """Short name of the data set, the first part of every metric's name."""
        ...

    @property
    def primary(self) -> str:
        """The metric that decides unless another one is named; higher is better."""
        ...

    def measure(self, encode: Encode) -> Measurement:
        """Measure the model behind `encode`."""
        ...


class SimilarityEvaluator:
    """Semantic textual similarity: whether cosines order pairs as people's scores do.

    Metrics: `spearman`, of ranks, and `pearson`, of values.

    Args:
        name: Of the data set.
        data: Anchors and positives with scores.
        table: Takes the texts in.
        prompts: By role, put in front of the texts.
    """

    def __init__(
        self, name: str, data: PairData, table: TokenTable, prompts: Mapping[str, str] | None = None
    ) -> None:
        if data.labels is None or len(np.unique(data.labels)) < 2:
            raise DataError(f"{name}: expected at least two pairs with different scores")
        self.name = name
        self.primary = f"{name}.spearman"
        self._texts = _numbers(data, table, ("anchor", "positive"), prompts)
        self._scores = data.labels

    def measure(self, encode: Encode) -> Measurement:
        """See `Evaluator`."""
        cosines, scores = _cosines(encode, self._texts), self._scores

        def compute(rows: Numbers) -> dict[str, float]:
            return {
                f"{self.name}.spearman": spearman(cosines[rows], scores[rows]),
                f"{self.name}.pearson": pearson(cosines[rows], scores[rows]),
            }

        return Measurement(len(scores), compute)


class PairClassificationEvaluator:
    """Paraphrase or not: whether a threshold of the cosine tells.

    Metrics: `average_precision` over all thresholds; `accuracy` and `threshold` of the best one, which is
    chosen on the same rows and so a little too good.

    Args:
        name: Of the data set.
        data: Anchors and positives with labels 0 and 1.
        table: Takes the texts in.
        prompts: By role, put in front of the texts.
    """

    def __init__(
        self, name: str, data: PairData, table: TokenTable, prompts: Mapping[str, str] | None = None
    ) -> None:
        if data.labels is None or not 0 < data.labels.mean() < 1:
            raise DataError(f"{name}: expected pairs of both labels, 0 and 1")
        self.name = name
        self.primary = f"{name}.average_precision"
        self._texts = _numbers(data, table, ("anchor", "positive"), prompts)
        self._labels = data.labels

    def measure(self, encode: Encode) -> Measurement:
        """See `Evaluator`."""
        cosines, labels = _cosines(encode, self._texts), self._labels

        def compute(rows: Numbers) -> dict[str, float]:
            threshold, accuracy = best_threshold(cosines[rows], labels[rows])
            return {
                f"{self.name}.average_precision": average_precision(cosines[rows], labels[rows]),
                f"{self.name}.accuracy": accuracy,
                f"{self.name}.threshold": threshold,
            }

        return Measurement(len(labels), compute)


class TripletEvaluator:
    """How often the positive is nearer to the anchor than each negative.

    Metric: `accuracy`; ties count as wrong.

    Args:
        name: Of the data set.
        data: Anchors, positives and one or more negatives.
        table: Takes the texts in.
        prompts: By role, put in front of the texts.
    """

    def __init__(
        self, name: str, data: PairData, table: TokenTable, prompts: Mapping[str, str] | None = None
    ) -> None:
        if len(data.columns) < 3:
            raise DataError(f"{name}: expected the columns anchor, positive, negative_1, found no negative_1")
        self.name = name
        self.primary = f"{name}.accuracy"
        self._texts = _numbers(data, table, tuple(data.columns), prompts)

    def measure(self, encode: Encode) -> Measurement:
        """See `Evaluator`."""
        positives = _cosines(encode, self._texts[:, [0, 1]])
        others = [_cosines(encode, self._texts[:, [0, at]]) for at in range(2, self._texts.shape[1])]
        right = np.all([positives > other for other in others], axis=0)
        return Measurement(len(right), lambda rows: {self.primary: float(right[rows].mean())})


class InBatchEvaluator:
    """Held-out pairs ranked against each other: whether the own positive is the nearest of all.

    Metrics: `accuracy`, and `mrr`, the mean of one over the positive's rank. What some row calls a positive
    of the same anchor is not counted against it. A stand-in where there is no retrieval set: the fewer pairs,
    the easier.

    Args:
        name: Of the data set.
        data: Anchors and positives.
        table: Takes the texts in.
        prompts: By role, put in front of the texts.
    """

    def __init__(
        self, name: str, data: PairData, table: TokenTable, prompts: Mapping[str, str] | None = None
    ) -> None:
        if len(data) < 2:
            raise DataError(f"{name}: expected at least two pairs, found {len(data)}")
        self.name = name
        self.primary = f"{name}.mrr"
        self._texts = _numbers(data, table, ("anchor", "positive"), prompts)
        identity = np.array(table.identity)[self._texts]  # (rows, 2)
        answers: dict[int, list[int]] = {}
        for row, (anchor, _) in enumerate(identity.tolist()):
            answers.setdefault(anchor, []).append(row)
        # For each row, the rows whose positives answer its anchor.
        self._answers = [
            np.flatnonzero(np.isin(identity[:, 1], identity[answers[anchor], 1]))
            for anchor in identity[:, 0].tolist()
        ]

    def measure(self, encode: Encode) -> Measurement:
        """See `Evaluator`."""
        anchors, positives = encode(self._texts[:, 0]), encode(self._texts[:, 1])
        found = np.empty(len(anchors))
        for row, anchor in enumerate(anchors):  # one row at a time: the matrix of all could be large
            scores = positives @ anchor
            better = scores > scores[row]
            better[self._answers[row]] = False
            found[row] = 1 + better.sum()

        def compute(rows: Numbers) -> dict[str, float]:
            return {
                f"{self.name}.mrr": float((1 / found[rows]).mean()),
                f"{self.name}.accuracy": float((found[rows] == 1).mean()),
            }

        return Measurement(len(found), compute)


class Ranking(NamedTuple):
    """Search quality on a collection, as whoever knows how to search measures it.

    Attributes:
        name: Of the collection.
        metric: Name of the values.
        measure: Given a function from texts and a role to unit vectors, returns a value for each query, such
            as its nDCG@10, in the same order every time.
    """

    name: str
    metric: str
    measure: Callable[[EmbedTexts], Sequence[float]]


class RankingEvaluator:
    """Search quality, computed by a function that is passed in.

    Args:
        ranking: The collection.
        table: Takes the texts in.
        prompts: Put in front of queries and passages.
    """

    def __init__(self, ranking: Ranking, table: TokenTable, prompts: Prompts | None = None) -> None:
        self.name = ranking.name
        self.primary = f"{ranking.name}.{ranking.metric}"
        self._measure, self._table, self._prompts = ranking.measure, table, prompts or Prompts()

    def measure(self, encode: Encode) -> Measurement:
        """See `Evaluator`."""

        def embed(texts: Sequence[str], role: Role) -> NDArray[np.float32]:
            return encode(self._table.add(texts, prompt=self._prompts.of(role)))

        values = np.asarray(self._measure(embed), dtype=np.float64)
        if not len(values):
            raise DataError(f"{self.name}: expected values of at least one query, found none")
        return Measurement(len(values), lambda rows: {self.primary: float(values[rows].mean())})


def interval(measurement: Measurement, metric: str, *, samples: int = 500, seed: int = 0) -> Interval:
    """A metric with its 95% percentile bootstrap interval (Efron 1979), resampling rows.

    Args:
        measurement: Of a model.
        metric: One of its metrics.
        samples: Number of resamples.
        seed: Equal seeds give equal intervals.
    """
    values = [measurement.compute(rows)[metric] for rows in _resamples(measurement.rows, samples, seed)]
    low, high = np.quantile(values, [0.025, 0.975])
    return Interval(measurement.metrics[metric], float(low), float(high))


def gain(
    before: Measurement, after: Measurement, metric: str, *, samples: int = 500, seed: int = 0
) -> Interval:
    """Difference of a metric between two models on the same rows, with its interval.

    Both are computed on the same resamples, so that rows which are hard for both do not blur it.

    Raises:
        DataError: They were not measured on the same rows.
    """
    if before.rows != after.rows:
        raise DataError(f"expected the same rows for both models, found {before.rows} and {after.rows}")
    values = [
        after.compute(rows)[metric] - before.compute(rows)[metric]
        for rows in _resamples(before.rows, samples, seed)
    ]
    low, high = np.quantile(values, [0.025, 0.975])
    return Interval(after.metrics[metric] - before.metrics[metric], float(low), float(high))


def _resamples(rows: int, samples: int, seed: int) -> list[Numbers]:
    generator = np.random.default_rng(seed)
    return [generator.integers(rows, size=rows) for _ in range(samples)]


def _numbers(
    data: PairData, table: TokenTable, roles: Sequence[str], prompts: Mapping[str, str] | None
) -> Numbers:
    missing = [role for role in roles if role not in data.columns]
    if missing:
        raise DataError(f"{data.name}: expected the columns {', '.join(roles)}, found no {missing[0]}")
    return np.stack(
        [table.add(data.columns[role], prompt=(prompts or {}).get(role, "")) for role in roles], axis=1
    )


def _cosines(encode: Encode, texts: Numbers) -> NDArray[np.float32]:
    cosines: NDArray[np.float32] = (encode(texts[:, 0]) * encode(texts[:, 1])).sum(axis=1)
    return cosines
