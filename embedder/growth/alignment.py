"""Which words of one language stand for which of another, from parallel sentences alone.

IBM Model 1 (Brown et al. 1993, "The Mathematics of Statistical Machine Translation"): a sentence's tokens are
each made by one token of the other sentence, or by none, and expectation maximisation finds the probabilities

    t(e | f) = c(e, f) / sum over e' of c(e', f),
    c(e, f)  = sum over sentence pairs of  t(e | f) / (sum over f' in the pair of t(e | f'))

from counts of what occurs together. What it is for: a token that an encoder has never seen can start as the
mean of the rows of what it translates to. Knows nothing of encoders; numpy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.errors import DataError

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Translations:
    """A sparse table of translation probabilities, one entry per pair of tokens that occur together.

    Attributes:
        source: int64 of shape (entries,): the token that is translated.
        target: int64 of shape (entries,): what it becomes.
        probability: float64 of shape (entries,), t(target | source); those of a source token sum to 1.
        count: float64 of shape (entries,): expected number of times the target came from the source.
    """

    source: Ids
    target: Ids
    probability: NDArray[np.float64]
    count: NDArray[np.float64]


def align(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    *,
    iterations: int = 5,
    weights: Sequence[float] | None = None,
) -> Translations:
    """Translation probabilities of the tokens of sentence pairs.

    Args:
        sources: Token ids, at least 0, of each sentence.
        targets: Of its translation.
        iterations: Rounds of expectation maximisation, at least 1.
        weights: How much each pair counts; None for 1.

    Returns:
        Entries sorted by source and target. The empty word, from which tokens come that nothing stands for,
        is left out.

    Raises:
        DataError: No pairs, or numbers of sentences that differ.

    Example:
        "house" stands where 家 stands, and "book" where 書 does:

        >>> found = align([[1, 2], [1]], [[10, 20], [10]], iterations=10)
        >>> [(s, t) for s, t, p in zip(found.source, found.target, found.probability) if p > 0.6]
        [(np.int64(1), np.int64(10)), (np.int64(2), np.int64(20))]
    """
    if not sources or len(sources) != len(targets):
        raise DataError(
            f"expected as many translations as sentences, found {len(targets)} and {len(sources)}"
        )
    links = _Links.of(sources, targets, weights)
    # All targets of a source are equally likely at first.
    probability: NDArray[np.float64] = 1.0 / np.bincount(links.entry_source)[links.entry_source]
    count = probability
    for _ in range(iterations):
        share = probability[links.entry]
        share *= links.weight / np.bincount(links.slot, share)[links.slot]
        count = np.bincount(links.entry, share, minlength=len(probability)).astype(np.float64)
        probability = count / np.bincount(links.entry_source, count)[links.entry_source]
    real = links.entry_source > 0
    return Translations(
        links.entry_source[real] - 1, links.entry_target[real], probability[real], count[real]
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Links:
    """Every source token of a pair, and the empty word, with every target token of it.

    Attributes:
        entry: Which entry of the table a link belongs to.
        slot: Which target token of which pair it explains.
        weight: Of its pair.
        entry_source: Source of an entry, 0 for the empty word and the id plus 1 otherwise.
        entry_target: Target of an entry.
    """

    entry: Ids
    slot: Ids
    weight: NDArray[np.float64]
    entry_source: Ids
    entry_target: Ids

    @classmethod
    def of(
        cls,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        weights: Sequence[float] | None,
    ) -> _Links:
        left, right, slots, weight = [], [], [], []
        slot = 0
        for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
            made = np.array([0, *(token + 1 for token in source)], dtype=np.int64)
            became = np.asarray(target, dtype=np.int64)
            left.append(np.tile(made, len(became)))
            right.append(np.repeat(became, len(made)))
            slots.append(slot + np.repeat(np.arange(len(became)), len(made)))
            weight.append(np.full(len(made) * len(became), 1.0 if weights is None else weights[number]))
            slot += len(became)
        source_of, target_of = np.concatenate(left), np.concatenate(right)
        if not len(source_of):
            raise DataError("expected sentences with tokens, found empty ones only")
        width = int(target_of.max()) + 1
        keys, entry = np.unique(source_of * width + target_of, return_inverse=True)
        return cls(entry, np.concatenate(slots), np.concatenate(weight), keys // width, keys % width)


def rows_from_translations(
    translations: Translations,
    table: NDArray[np.float32],
    tokens: int,
    *,
    sharpness: float = 1.0,
    norm: float | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """A row for each source token: the mean of the rows of its translations, weighed by their probability.

    Args:
        translations: From `align`.
        table: Rows of the target tokens, float32 of shape (target tokens, width).
        tokens: Number of source tokens.
        sharpness: Exponent of the probabilities; above 1 the best translations count for more.
        norm: Length that the rows are given; None leaves the mean as it is.

    Returns:
        float32 of shape (tokens, width), zero for a token without translations; and float64 of shape
        (tokens,), how often the translations of each were seen.

    Example:
        >>> entry = Translations(np.array([0, 0]), np.array([0, 1]), np.array([0.75, 0.25]), np.ones(2))
        >>> rows, seen = rows_from_translations(entry, np.array([[4.0], [8.0]], np.float32), tokens=2)
        >>> rows.tolist(), seen.tolist()
        ([[5.0], [0.0]], [2.0, 0.0])
    """
    weight = translations.probability**sharpness
    total = np.bincount(translations.source, weight, minlength=tokens)
    rows = np.zeros((tokens, table.shape[1]))
    # Column by column, so that no array of entries by width is needed.
    for column in range(table.shape[1]):
        values = weight * table[translations.target, column]
        rows[:, column] = np.bincount(translations.source, values, minlength=tokens)
    known = total > 0
    rows[known] /= total[known, None]
    if norm is not None:
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = np.where(lengths > 0, rows * (norm / np.maximum(lengths, 1e-12)), 0.0)
    seen = np.bincount(translations.source, translations.count, minlength=tokens).astype(np.float64)
    return rows.astype(np.float32), seen
