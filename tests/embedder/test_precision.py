from __future__ import annotations

import os

import pytest
import torch

from likewise.embedder import precision
from likewise.embedder.precision import autocast, choose_precision
from likewise.errors import UsageError

CPU = torch.device("cpu")


class Clock:
    """Time that passes only while work is done: so much per pass at each precision."""

    def __init__(self, monkeypatch, *, product: float, step: float) -> None:
        self.now = self.load = 0.0
        self.busier = 0.0
        self.gains = {"product": product, "step": step}
        for clock in ("perf_counter", "process_time"):
            monkeypatch.setattr(precision.time, clock, lambda: self.now)
        monkeypatch.setattr(precision, "_product", lambda device: self.work("product"))
        self.calls = {"product": 0, "step": 0}

    def work(self, name):
        def run():
            self.calls[name] += 1
            self.now += 1.0 / self.gains[name] if torch.is_autocast_enabled("cpu") else 1.0
            self.now += self.load
            self.load += self.busier

        return run


@pytest.mark.parametrize(
    ("product", "step", "chosen"),
    [(2.5, 2.0, "bfloat16"), (2.5, 1.05, "float32"), (0.01, 2.0, "float32"), (1.0, 1.0, "float32")],
)
def test_the_faster_one_is_chosen(monkeypatch, product, step, chosen):
    clock = Clock(monkeypatch, product=product, step=step)
    assert choose_precision("auto", CPU, clock.work("step")) == chosen


def test_a_machine_that_gets_busier_is_no_disadvantage_of_either(monkeypatch):
    clock = Clock(monkeypatch, product=2.5, step=2.5)
    clock.busier = 0.15  # so much longer is each run than the one before
    assert choose_precision("auto", CPU, clock.work("step")) == "bfloat16"


@pytest.mark.skipif(os.name != "posix", reason="processor time is too coarse elsewhere")
def test_on_a_cpu_time_is_that_of_the_processor(monkeypatch):
    waits = iter([30.0, 0.0] * 100)  # float32 is kept waiting by other processes
    now = [0.0]

    def work():
        now[0] += next(waits)
        torch.ones(256, 256) @ torch.ones(256, 256)

    monkeypatch.setattr(precision.time, "perf_counter", lambda: now[0])
    assert precision._gain(work, CPU, repeats=2) < 30


def test_where_bfloat16_is_emulated_the_model_never_runs_in_it(monkeypatch):
    clock = Clock(monkeypatch, product=0.01, step=0.01)
    choose_precision("auto", CPU, clock.work("step"))
    assert clock.calls["step"] == 0


def test_without_a_step_the_product_decides(monkeypatch):
    Clock(monkeypatch, product=3.0, step=1.0)
    assert choose_precision("auto", CPU) == "bfloat16"


@pytest.mark.parametrize("wish", ["float32", "bfloat16"])
def test_a_wish_is_not_measured(monkeypatch, wish):
    clock = Clock(monkeypatch, product=1.0, step=1.0)
    assert choose_precision(wish, CPU, clock.work("step")) == wish
    assert clock.calls == {"product": 0, "step": 0}


def test_unknown():
    with pytest.raises(UsageError, match="auto, float32 or bfloat16, found 'float16'"):
        choose_precision("float16", CPU)


def test_autocast_rounds_products_and_leaves_weights():
    layer = torch.nn.Linear(4, 4)
    with autocast("bfloat16", CPU):
        assert layer(torch.ones(1, 4)).dtype == torch.bfloat16
    with autocast("float32", CPU):
        assert layer(torch.ones(1, 4)).dtype == torch.float32
    assert layer.weight.dtype == torch.float32
