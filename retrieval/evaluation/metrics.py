"""Ranking metrics, equal to trec_eval's and `ir_measures`' to the last digit, ties included.

A metric sees two lists of grades and nothing else: `ranked`, the grade of every retrieved document from the
first rank on (0 where nobody judged it), and `judged`, the grades of all judged documents of the query. A
document is relevant when its grade is at least 1. A query without relevant documents scores 0, as in
trec_eval.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from likewise.errors import UsageError

Grades = Sequence[int]
DEFAULT_METRICS = ("nDCG@10", "recall@10", "recall@100", "MRR@10", "MAP", "success@1", "success@5")


@dataclass(frozen=True)
class Metric:
    """A named metric: `measure(ranked, judged)` is in [0, 1], higher is better.

    Attributes:
        name: As reports spell it, such as `nDCG@10`.
        measure: The function.
        cutoff: How many ranks it looks at; None for all of them.
    """

    name: str
    measure: Callable[[Grades, Grades], float]
    cutoff: int | None = None


def trec_order(scores: Mapping[str, float]) -> list[str]:
    """Document ids from the best score down; ties in descending order of the id, as trec_eval breaks them.

    trec_eval holds scores in single precision, so scores that differ by less than that are tied.

    Example:
        >>> trec_order({"a": 1.0, "b": 1.0, "c": 2.0})
        ['c', 'b', 'a']
        >>> trec_order({"a": 1.0 + 1e-12, "b": 1.0})
        ['b', 'a']
    """
    with np.errstate(over="ignore"):
        single = np.fromiter(scores.values(), np.float64, len(scores)).astype(np.float32)
    ranked = sorted(zip(single.tolist(), scores, strict=True), reverse=True)
    return [document for _, document in ranked]


def ndcg(ranked: Grades, judged: Grades, k: int) -> float:
    """Normalised discounted cumulative gain with linear gains (Järvelin and Kekäläinen 2002; trec_eval).

    `sum(grade / log2(rank + 1))` over the first k ranks, divided by the same sum of the best possible
    ranking.

    Example:
        >>> round(ndcg([0, 2], [2, 1], k=10), 4)   # (2 / log2(3)) / (2 / log2(2) + 1 / log2(3))
        0.4796
    """
    ideal = sorted((grade for grade in judged if grade > 0), reverse=True)[:k]
    best = _discounted(ideal)
    return _discounted(ranked[:k]) / best if best else 0.0


def _discounted(grades: Grades) -> float:
    return sum(grade / math.log2(rank + 2) for rank, grade in enumerate(grades) if grade > 0)


def recall(ranked: Grades, judged: Grades, k: int) -> float:
    """Share of the relevant documents that stand in the first k ranks.

    Example:
        >>> recall([1, 0, 1], [1, 1, 1, 1], k=3)
        0.5
    """
    relevant = sum(grade > 0 for grade in judged)
    return sum(grade > 0 for grade in ranked[:k]) / relevant if relevant else 0.0


def reciprocal_rank(ranked: Grades, judged: Grades, k: int) -> float:
    """One over the rank of the first relevant document, 0 when none is in the first k ranks.

    Ties are broken as trec_eval breaks them for `recip_rank`. `ir_measures` hands `RR@k` to another
    provider, which keeps tied documents in the order of the run.

    Example:
        >>> reciprocal_rank([0, 0, 0, 1], [1], k=10)
        0.25
    """
    del judged
    return next((1 / (rank + 1) for rank, grade in enumerate(ranked[:k]) if grade > 0), 0.0)


def average_precision(ranked: Grades, judged: Grades, k: int | None = None) -> float:
    """Mean, over all relevant documents, of the precision at their ranks; 0 for those not retrieved.

    Example:
        >>> average_precision([1, 0, 1], [1, 1])   # (1/1 + 2/3) / 2
        0.8333333333333333
    """
    relevant = sum(grade > 0 for grade in judged)
    found, total = 0, 0.0
    for rank, grade in enumerate(ranked[:k]):
        if grade > 0:
            found += 1
            total += found / (rank + 1)
    return total / relevant if relevant else 0.0


def success(ranked: Grades, judged: Grades, k: int) -> float:
    """1 when a relevant document stands in the first k ranks, else 0.

    Example:
        >>> success([0, 1], [1], k=1), success([0, 1], [1], k=5)
        (0.0, 1.0)
    """
    del judged
    return float(any(grade > 0 for grade in ranked[:k]))


_WITH_CUTOFF: dict[str, tuple[str, Callable[[Grades, Grades, int], float]]] = {
    "ndcg": ("nDCG", ndcg),
    "recall": ("recall", recall),
    "mrr": ("MRR", reciprocal_rank),
    "map": ("MAP", average_precision),
    "success": ("success", success),
}


def parse_metric(name: str, *, k: int | None = None) -> Metric:
    """The metric of a name such as `nDCG@10`, `recall@100`, `MRR@10`, `MAP` or `success@1`; case is ignored.

    Args:
        name: As above.
        k: Cut-off of a metric that needs one and names none.

    Raises:
        UsageError: There is no such metric, or its cut-off is missing or zero.

    Example:
        >>> parse_metric("ndcg@5").name
        'nDCG@5'
        >>> parse_metric("recall", k=20).name, parse_metric("MAP", k=20).name
        ('recall@20', 'MAP')
    """
    match = re.fullmatch(r"([a-z]+)(?:@([1-9][0-9]{0,8}))?", name.strip().lower())
    if match is None or match[1] not in _WITH_CUTOFF:
        raise _unknown(name)
    label, function = _WITH_CUTOFF[match[1]]
    if match[2] is None and match[1] == "map":
        return Metric(label, average_precision)
    cutoff = int(match[2]) if match[2] else k
    if cutoff is None:
        raise _unknown(name)
    return Metric(f"{label}@{cutoff}", lambda ranked, judged: function(ranked, judged, cutoff), cutoff=cutoff)


def _unknown(name: str) -> UsageError:
    return UsageError(
        f"unknown metric {name!r}", remedy="nDCG@K, recall@K, MRR@K, MAP, MAP@K or success@K, K from 1"
    )
