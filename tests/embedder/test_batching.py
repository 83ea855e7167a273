"""Batches: every text once, longest first, never above the budget; padding and masks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from likewise.embedder.batching import pad, plan_batches
from likewise.embedder.runtimes.base import parity, unit_rows


@given(st.lists(st.integers(1, 300), max_size=60), st.integers(1, 1000))
def test_plans(lengths: list[int], budget: int) -> None:
    plan = plan_batches(lengths, budget=budget)
    assert sorted(position for batch in plan for position in batch) == list(range(len(lengths)))
    order = [lengths[position] for batch in plan for position in batch]
    assert order == sorted(lengths, reverse=True)
    for batch in plan:
        assert len(batch) == 1 or len(batch) * max(lengths[position] for position in batch) <= budget


def test_padding_and_masks() -> None:
    batch = pad([[5, 6, 7, 8], [5, 6], [5]], pad_id=9, unpooled=2)
    assert batch.input_ids.tolist() == [[5, 6, 7, 8], [5, 6, 9, 9], [5, 9, 9, 9]]
    assert batch.attention_mask.tolist() == [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]
    # The second and third have nothing but the prompt, so that it counts after all.
    assert batch.pooling_mask.tolist() == [[0, 0, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]
    assert all(array.dtype == np.int64 for array in batch)


class Fixed:
    name, concurrency, batch_tokens = "fixed", 1, 8

    def __init__(self, *rows: list[float]) -> None:
        self.rows = np.array(rows, dtype=np.float32)

    def run(self, batch: object) -> np.ndarray:
        return self.rows


def test_parity_is_the_lowest_cosine() -> None:
    batch = pad([[1]], pad_id=0)
    reference = Fixed([1.0, 0.0], [3.0, 4.0])
    # cos = 0.6 * 0.8 + 0.8 * 0.6 for the second row.
    assert abs(parity(reference, Fixed([2.0, 0.0], [4.0, 3.0]), [batch]) - 0.96) < 1e-6
    assert parity(reference, Fixed([1.0, 0.0], [np.nan, 3.0]), [batch]) == -1.0
    assert parity(reference, Fixed([1.0, 0.0]), [batch]) == -1.0


def test_rows_without_direction_become_unit_vectors() -> None:
    rows = unit_rows(np.array([[0.0, 0.0], [0.0, -2.0]], dtype=np.float32))
    assert rows.tolist() == [[1.0, 0.0], [0.0, -1.0]]
