from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, get_swa_multi_avg_fn

from likewise.embedder.events import Progress
from likewise.embedder.training import train
from likewise.embedder.training_settings import TrainingSettings
from likewise.embedder.weight_average import WeightAverage
from likewise.errors import CheckpointError

from . import toy_training as toy


def walk(model: nn.Module, steps: int, average: WeightAverage, theirs: AveragedModel) -> None:
    """Random steps, followed by both."""
    draw = torch.Generator().manual_seed(0)
    for step in range(steps):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += torch.randn(parameter.shape, generator=draw)
        average.follow((step + 1) / steps)
        theirs.update_parameters(model)


def same(model: nn.Module, average: WeightAverage, theirs: AveragedModel) -> None:
    with average.applied():
        for own, other in zip(model.parameters(), theirs.module.parameters(), strict=True):
            torch.testing.assert_close(own, other)


class TestMean:
    def test_is_the_plain_mean_of_few_weights(self):
        model = nn.Linear(3, 2)
        average = WeightAverage(list(model.parameters()), span=10.0)
        theirs = AveragedModel(model, multi_avg_fn=get_swa_multi_avg_fn())
        walk(model, 20, average, theirs)
        same(model, average, theirs)

    def test_is_the_exponential_mean_of_many(self):
        model = nn.Linear(3, 2)
        average = WeightAverage(list(model.parameters()), span=0.01)
        decay = math.exp(-(1 / 50) / 0.01)
        theirs = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))
        walk(model, 50, average, theirs)
        same(model, average, theirs)

    def test_begins_after_its_start(self):
        weight = nn.Parameter(torch.zeros(1))
        average = WeightAverage([weight], span=10.0, start=0.5)
        for step in range(4):
            weight.data += 1
            average.follow((step + 1) / 4)
        with average.applied():
            assert weight.item() == 3.5  # of 3 and 4
        assert weight.item() == 4

    def test_unequal_steps_weigh_by_their_length(self):
        weight = nn.Parameter(torch.zeros(1))
        average = WeightAverage([weight], span=0.1)
        for progress, value in ((0.1, 1.0), (0.2, 2.0), (0.9, 5.0)):
            weight.data.fill_(value)
            average.follow(progress)
        second = 1 + (1 - math.exp(-1)) * (2 - 1)
        with average.applied():
            assert weight.item() == pytest.approx(second + (1 - math.exp(-7)) * (5 - second))

    def test_a_span_of_0_leaves_the_weights(self):
        weight = nn.Parameter(torch.ones(1))
        average = WeightAverage([weight], span=0.0)
        average.follow(1.0)
        assert average.tensors() == {}
        with average.applied():
            assert weight.item() == 1

    def test_parameters_come_back_after_an_error(self):
        weight = nn.Parameter(torch.zeros(1))
        average = WeightAverage([weight], span=1.0)
        average.follow(0.5)
        weight.data.fill_(7.0)
        with pytest.raises(RuntimeError), average.applied():
            raise RuntimeError
        assert weight.item() == 7


class TestState:
    def test_goes_on_where_it_was(self):
        weight = nn.Parameter(torch.zeros(2))
        average = WeightAverage([weight], span=0.2)
        for step in range(5):
            weight.data += 1
            average.follow((step + 1) / 10)
        tensors = {name: tensor.clone() for name, tensor in average.tensors().items()}
        other_weight = nn.Parameter(weight.detach().clone())
        other = WeightAverage([other_weight], span=0.2)
        other.restore(tensors | {"optimizer.0.step": torch.zeros(1)}, average.state())
        for at in (0.6, 0.7):
            for own, mean in ((weight, average), (other_weight, other)):
                own.data += 1
                mean.follow(at)
        assert torch.equal(average.tensors()["average.0"], other.tensors()["average.0"])

    def test_of_another_model_is_refused(self):
        average = WeightAverage([nn.Parameter(torch.zeros(2))], span=0.2)
        with pytest.raises(CheckpointError, match="another model"):
            average.restore({"average.0": torch.zeros(3)}, {"seen": 1, "progress": 0.1})


class TestTraining:
    def test_the_model_ends_with_the_mean_of_its_steps(self):
        """Every step's weights are caught, and averaged by hand."""
        model, caught = toy.toy_model(), []

        def catch(event: object) -> None:
            if isinstance(event, Progress):
                caught.append([parameter.detach().clone() for parameter in model.parameters()])

        settings = TrainingSettings(
            steps=8, learning_rate=0.01, warmup=0.25, log_every=1, precision="float32", average=100.0
        )
        train(model, toy.NextNumber(), toy.Shuffled(), settings, listeners=[catch])
        assert len(caught) == 8
        for number, parameter in enumerate(model.parameters()):
            # Warm-up ends after step 2; so long a span makes it a plain mean.
            mean = torch.stack([weights[number] for weights in caught[2:]]).mean(dim=0)
            torch.testing.assert_close(parameter.detach(), mean)
            assert not torch.equal(parameter.detach(), caught[-1][number])
