from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from likewise.embedder.bert import BertConfig
from likewise.embedder.optim import adamw, clip_gradients, parameter_groups, set_rate
from likewise.embedder.pretraining import PretrainingModel
from likewise.errors import TrainingError, UsageError

CONFIG = BertConfig(vocab_size=30, hidden_size=8, layers=3, heads=2, ffn_size=16, max_positions=16)


def groups_of(model, **changes):
    return parameter_groups(model, **{"weight_decay": 0.1, "learning_rate": 1e-3} | changes)


class TestGroups:
    def test_a_bert_decays_matrices_only(self):
        model = PretrainingModel(CONFIG)
        decay = {name: group["weight_decay"] for group in groups_of(model) for name in group["names"]}
        assert decay.keys() == {name for name, _ in model.named_parameters()}
        for name, parameter in model.named_parameters():
            plain = name.endswith("bias") or "norm" in name
            assert decay[name] == (0.0 if plain else 0.1), name
            assert plain == (parameter.ndim == 1)

    def test_shared_parameters_appear_once(self):
        model = nn.ModuleDict({"table": nn.Embedding(5, 4), "head": nn.Linear(4, 5)})
        model["head"].weight = model["table"].weight
        parameters = [parameter for group in groups_of(model) for parameter in group["params"]]
        assert len(parameters) == len({id(parameter) for parameter in parameters}) == 2

    def test_frozen_parameters_are_left_out(self):
        model = PretrainingModel(CONFIG)
        model.encoder.embeddings.requires_grad_(False)
        names = {name for group in groups_of(model) for name in group["names"]}
        assert names and not any("embeddings" in name for name in names)

    def test_layers_learn_slower_further_down(self):
        rates = {
            name: group["peak"]
            for group in groups_of(PretrainingModel(CONFIG), layer_decay=0.5)
            for name in group["names"]
        }
        # Embeddings, layers 0 to 2, and everything above: four halvings from the top to the bottom.
        assert rates["encoder.embeddings.token.weight"] == pytest.approx(1e-3 / 16)
        assert rates["encoder.layers.0.ffn.widen.weight"] == pytest.approx(1e-3 / 8)
        assert rates["encoder.layers.2.ffn.widen.bias"] == pytest.approx(1e-3 / 2)
        assert rates["token_head.dense.weight"] == rates["encoder.pooler.weight"] == 1e-3

    @pytest.mark.parametrize(
        "changes", [{"weight_decay": -1}, {"learning_rate": 0}, {"layer_decay": 0}, {"layer_decay": 1.1}]
    )
    def test_values_out_of_range(self, changes):
        with pytest.raises(UsageError, match="weight decay >= 0"):
            groups_of(nn.Linear(2, 2), **changes)

    def test_nothing_to_train(self):
        with pytest.raises(TrainingError, match="all of them frozen"):
            groups_of(nn.Linear(2, 2).requires_grad_(False))


def test_a_step_is_that_of_the_published_formula():
    weight = nn.Parameter(torch.tensor([[1.0, -2.0]]))
    weight.grad = torch.tensor([[0.5, 0.1]])
    group = {"params": [weight], "names": ["w"], "weight_decay": 0.1, "lr": 0.01, "peak": 0.01}
    adamw([group]).step()
    # First step: mean / sqrt(mean square) is the sign of the gradient; decay is decoupled.
    expected = [x * (1 - 0.01 * 0.1) - 0.01 * g / (abs(g) + 1e-8) for x, g in ((1.0, 0.5), (-2.0, 0.1))]
    assert weight.tolist()[0] == pytest.approx(expected)


def test_fused_where_it_exists():
    assert adamw(groups_of(nn.Linear(2, 2))).defaults["fused"]


def test_rates_follow_their_peaks():
    optimizer = adamw(groups_of(PretrainingModel(CONFIG), layer_decay=0.5))
    set_rate(optimizer, 0.25)
    assert all(group["lr"] == group["peak"] * 0.25 for group in optimizer.param_groups)


@pytest.mark.parametrize(("limit", "scale"), [(None, 1.0), (10.0, 1.0), (1.0, 0.2)])
def test_clipping(limit, scale):
    left, right = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    left.grad, right.grad = torch.tensor([3.0]), torch.tensor([4.0])
    assert clip_gradients([left, right, nn.Parameter(torch.zeros(2))], limit) == pytest.approx(5.0)
    assert [float(left.grad), float(right.grad)] == pytest.approx([3 * scale, 4 * scale], rel=1e-5)


def test_clipping_reports_what_is_not_finite():
    weight = nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([1.0, math.nan])
    assert math.isnan(clip_gradients([weight], None))
