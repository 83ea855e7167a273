"""Pooling by written-out arithmetic; equality with sentence-transformers is in test_parity."""

from __future__ import annotations

import math

import pytest
import torch

from likewise.embedder.pooling import pool

TOKENS = torch.tensor([[[1.0, -1.0], [2.0, -4.0], [6.0, -7.0], [100.0, 100.0]]])
MASK = torch.tensor([[1, 1, 1, 0]])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("cls", [1.0, -1.0]),
        ("lasttoken", [6.0, -7.0]),
        ("max", [6.0, -1.0]),
        ("mean", [(1 + 2 + 6) / 3, (-1 - 4 - 7) / 3]),
        ("mean_sqrt_len_tokens", [(1 + 2 + 6) / math.sqrt(3), (-1 - 4 - 7) / math.sqrt(3)]),
        ("weightedmean", [(1 * 1 + 2 * 2 + 3 * 6) / 6, (1 * -1 + 2 * -4 + 3 * -7) / 6]),
    ],
)
def test_one_mode(mode: str, expected: list[float]) -> None:
    assert pool(TOKENS, MASK, (mode,))[0].tolist() == pytest.approx(expected)


def test_left_out_tokens_keep_the_weights_of_the_others() -> None:
    mask = torch.tensor([[0, 1, 1, 0]])
    assert pool(TOKENS, mask, ("cls",))[0].tolist() == [2.0, -4.0]
    assert pool(TOKENS, mask, ("weightedmean",))[0, 0].item() == pytest.approx((2 * 2 + 3 * 6) / 5)


def test_modes_are_concatenated_in_order() -> None:
    assert pool(TOKENS, MASK, ("lasttoken", "cls"))[0].tolist() == [6.0, -7.0, 1.0, -1.0]
