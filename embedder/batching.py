"""Which texts are computed together: batches of similar length within a budget of tokens.

Padding is computed like text, so a batch of mixed lengths wastes most of its time; and a batch of a fixed
number of texts needs memory that depends on what the texts are. Nothing here knows of models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Batch(NamedTuple):
    """Token ids of several texts, padded on the right to the longest.

    Attributes:
        input_ids: int64 of shape (texts, tokens).
        attention_mask: int64 of the same shape: 1 for tokens, 0 for padding.
        pooling_mask: int64 of the same shape: 1 for tokens that count in the pooling. Differs from
            `attention_mask` only for models that leave the prompt out of it.
    """

    input_ids: NDArray[np.int64]
    attention_mask: NDArray[np.int64]
    pooling_mask: NDArray[np.int64]


class PairBatch(NamedTuple):
    """Token ids of several pairs of texts, padded on the right to the longest.

    Attributes:
        input_ids: int64 of shape (pairs, tokens).
        attention_mask: int64 of the same shape: 1 for tokens, 0 for padding.
        token_type_ids: int64 of the same shape: 1 for tokens of the second text, else 0.
    """

    input_ids: NDArray[np.int64]
    attention_mask: NDArray[np.int64]
    token_type_ids: NDArray[np.int64]


def plan_batches(lengths: Sequence[int], *, budget: int) -> list[list[int]]:
    """Positions grouped into batches, longest first, each of at most `budget` tokens with its padding.

    A text that exceeds the budget on its own gets a batch of its own. The longest come first so that memory
    is at its peak at once, not an hour into a run.

    Example:
        >>> plan_batches([3, 9, 4, 3], budget=9)
        [[1], [2, 0], [3]]
    """
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    batches = []
    start = 0
    while start < len(order):
        size = max(1, budget // max(1, lengths[order[start]]))
        batches.append(order[start : start + size])
        start += size
    return batches


def pad(rows: Sequence[Sequence[int]], *, pad_id: int, unpooled: int = 0) -> Batch:
    """Token ids as one array.

    Args:
        rows: Token ids of each text, at least one each.
        pad_id: Fills the rows up.
        unpooled: Leading tokens of each text that do not count in the pooling.

    Example:
        >>> batch = pad([[7, 8, 9], [7]], pad_id=0)
        >>> batch.input_ids.tolist(), batch.attention_mask.tolist()
        ([[7, 8, 9], [7, 0, 0]], [[1, 1, 1], [1, 0, 0]])
    """
    width = max(len(row) for row in rows)
    input_ids = np.full((len(rows), width), pad_id, dtype=np.int64)
    attention_mask = np.zeros((len(rows), width), dtype=np.int64)
    for position, row in enumerate(rows):
        input_ids[position, : len(row)] = row
        attention_mask[position, : len(row)] = 1
    pooling_mask = attention_mask
    if unpooled:
        pooling_mask = attention_mask.copy()
        pooling_mask[:, :unpooled] = 0
        # Where the prompt is all there is, the vector is that of the prompt.
        nothing = pooling_mask.sum(axis=1) == 0
        pooling_mask[nothing] = attention_mask[nothing]
    return Batch(input_ids, attention_mask, pooling_mask)
