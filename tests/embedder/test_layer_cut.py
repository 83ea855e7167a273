from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from likewise.embedder.bert import BertConfig
from likewise.embedder.layer_cut import cut_layers, spread_layers
from likewise.embedder.pretraining import PretrainingModel
from likewise.errors import UsageError

CONFIG = BertConfig(vocab_size=30, hidden_size=8, layers=6, heads=2, ffn_size=12, max_positions=9)


@pytest.mark.parametrize(
    ("layers", "keep", "expected"),
    [
        (12, 6, (0, 2, 4, 7, 9, 11)),  # DistilBERT's
        (6, 3, (0, 2, 5)),
        (24, 12, (0, 2, 4, 6, 8, 10, 13, 15, 17, 19, 21, 23)),
        (6, 6, (0, 1, 2, 3, 4, 5)),
        (5, 2, (0, 4)),
        (3, 1, (0,)),
    ],
)
def test_spread(layers: int, keep: int, expected: tuple[int, ...]) -> None:
    assert spread_layers(layers, keep) == expected


@pytest.mark.parametrize("layers", range(1, 25))
def test_spread_is_ascending_and_in_range(layers: int) -> None:
    for keep in range(1, layers + 1):
        found = spread_layers(layers, keep)
        assert sorted(set(found)) == list(found)
        assert len(found) == keep
        assert found[0] == 0
        assert found[-1] <= layers - 1


def test_student_computes_what_the_kept_layers_compute() -> None:
    teacher = PretrainingModel(CONFIG).eval()
    student = cut_layers(teacher, [1, 4]).eval()
    assert student.config == replace(CONFIG, layers=2)
    ids = torch.tensor([[3, 4, 5]])
    with torch.no_grad():
        x, visible, _ = teacher.encoder._embed(ids, None, None, None)
        for at in (1, 4):
            x = teacher.encoder.layers[at](x, visible, None)
        assert torch.equal(student.encoder(ids), x)
        assert torch.equal(student.token_logits(x[0]), teacher.token_logits(x[0]))
    assert teacher.config.layers == len(teacher.encoder.layers) == 6


def test_student_shares_no_memory_with_its_teacher() -> None:
    teacher = PretrainingModel(CONFIG)
    student = cut_layers(teacher, [0, 5])
    before = teacher.encoder.layers[5].ffn.widen.weight.clone()
    with torch.no_grad():
        for parameter in student.parameters():
            parameter.zero_()
    assert torch.equal(teacher.encoder.layers[5].ffn.widen.weight, before)


@pytest.mark.parametrize("layers", [[], [0, 0], [3, 1], [-1, 2], [0, 6]])
def test_impossible_cuts_are_refused(layers: list[int]) -> None:
    with pytest.raises(UsageError, match="ascending layers from 0 to 5"):
        cut_layers(PretrainingModel(CONFIG), layers)


def test_bad_numbers_and_shared_layers_are_refused() -> None:
    for keep in (0, 7):
        with pytest.raises(UsageError, match=f"keep 1 to 6 layers, found {keep}"):
            spread_layers(6, keep)
    with pytest.raises(UsageError, match="share their weights"):
        cut_layers(PretrainingModel(replace(CONFIG, shared_layers=True)), [0])
