from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.embedder.examples import Example, collate
from likewise.errors import DataError


def plain(*ids: int, key: int = 0) -> Example:
    return Example(np.array(ids), np.zeros(len(ids), dtype=bool), key)


def pair(label: int, *ids: int) -> Example:
    return Example(np.array(ids), np.zeros(len(ids), dtype=bool), 0, np.arange(len(ids)) % 2, label)


def test_packed_batch_is_ordered_by_length_and_labels_go_along() -> None:
    batch = collate([pair(0, 5), pair(1, 6, 7, 8), pair(1, 9, 10)])
    assert batch.lengths == (3, 2, 1)
    assert batch.input_ids.tolist() == [[6, 7, 8, 9, 10, 5]]
    assert batch.segment_ids.tolist() == [[0, 1, 0, 0, 1, 0]]
    assert batch.pair_labels.tolist() == [1, 1, 0]
    assert batch.first_positions().tolist() == [0, 3, 5]
    assert (batch.sequences, batch.tokens, batch.mask) == (3, 6, None)
    assert batch.real_positions().tolist() == [0, 1, 2, 3, 4, 5]


def test_padded_batch_keeps_the_order() -> None:
    batch = collate([pair(0, 5), pair(1, 6, 7, 8)], packed=False, pad_id=99)
    assert batch.input_ids.tolist() == [[5, 99, 99], [6, 7, 8]]
    assert batch.mask.tolist() == [[True, False, False], [True, True, True]]
    assert batch.first_positions().tolist() == [0, 3]
    assert batch.real_positions().tolist() == [0, 3, 4, 5]
    assert (batch.sequences, batch.tokens, batch.lengths) == (2, 4, None)
    assert collate([plain(1, 2), plain(3, 4)], packed=False).mask is None


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.booleans())
@settings(max_examples=60, deadline=None)
def test_targets_point_at_the_labelled_tokens(lengths: list[int], packed: bool) -> None:
    rng = np.random.default_rng(len(lengths))
    examples = [plain(*rng.integers(1, 90, size=n)) for n in lengths]
    labels = [
        np.where(rng.random(n) < 0.5, example.ids, -100) for n, example in zip(lengths, examples, strict=True)
    ]
    batch = collate(examples, labels=labels, packed=packed)
    flat = batch.input_ids.flatten()
    assert torch.equal(flat[batch.target_positions], batch.targets)
    assert sorted(batch.targets.tolist()) == sorted(int(x) for row in labels for x in row if x != -100)
    assert sorted(flat[batch.real_positions()].tolist()) == sorted(int(x) for e in examples for x in e.ids)


def test_inputs_replace_the_ids_and_the_examples_stay() -> None:
    example = plain(5, 6)
    batch = collate([example], inputs=[np.array([4, 6])], labels=[np.array([5, -100])])
    assert batch.input_ids.tolist() == [[4, 6]]
    assert batch.targets.tolist() == [5]
    assert example.ids.tolist() == [5, 6]


def test_moving_keeps_everything() -> None:
    batch = collate([pair(1, 5, 6), pair(0, 7)], labels=[np.array([5, -100]), np.array([-100])])
    moved = batch.to("meta")
    assert moved.lengths == batch.lengths
    assert {moved.input_ids.device.type, moved.targets.device.type, moved.pair_labels.device.type} == {"meta"}
    assert moved.noise is None


def test_small_ids_become_int64() -> None:
    example = Example(np.array([1, 2], dtype=np.uint16), np.zeros(2, dtype=bool))
    assert collate([example]).input_ids.dtype == torch.int64


@pytest.mark.parametrize("examples", [[], [plain()], [plain(1), plain()]])
def test_nothing_to_collate_is_refused(examples: list[Example]) -> None:
    with pytest.raises(DataError, match="at least one token; found an empty one"):
        collate(examples)


def test_mixtures_are_refused() -> None:
    with pytest.raises(DataError, match="segment ids, or none; found a mixture"):
        collate([plain(1), pair(0, 2)])
    single = Example(np.array([1]), np.array([False]), segment_ids=np.array([0]))
    with pytest.raises(DataError, match="a pair label, or none"):
        collate([single, pair(0, 2)])


@pytest.mark.parametrize("packed", [True, False])
def test_noise_goes_with_its_token(packed: bool) -> None:
    examples = [plain(5, 6), plain(7, 8, 9)]
    labels = [np.array([5, -100]), np.array([-100, 8, 9])]
    noise = [np.array([0.5, 0.6], dtype=np.float32), np.array([0.7, 0.8, 0.9], dtype=np.float32)]
    batch = collate(examples, labels=labels, noise=noise, packed=packed)
    assert dict(zip(batch.targets.tolist(), (round(x, 1) for x in batch.noise.tolist()), strict=True)) == {
        5: 0.5,
        8: 0.8,
        9: 0.9,
    }
