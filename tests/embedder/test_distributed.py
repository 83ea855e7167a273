from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from likewise.embedder.distributed import World, world

TOY = Path(__file__).with_name("toy_training.py")
_spec = importlib.util.spec_from_file_location("toy_training", TOY)
toy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(toy)


def test_two_processes_train_what_one_does(tmp_path):
    # Batches of unequal size, dropout, two terms with different counts. Of the four micro-batches of a step
    # each process takes two; of three, one takes two and the other one.
    runs = {"9:4": (9, 4), "4:3": (4, 3)}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    launched = {
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }
    started = [
        subprocess.Popen(
            [sys.executable, str(TOY), str(tmp_path / "two"), "go", *runs],
            env=os.environ | launched | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    # Meanwhile here, alone.
    alone = {name: toy.toy_run(tmp_path / name[0], *run)[1] for name, run in runs.items()}
    for process in started:
        _, errors = process.communicate(timeout=200)
        assert process.returncode == 0, errors
    for name, one in alone.items():
        two = torch.load(tmp_path / "two" / name.replace(":", "-") / "weights.pt", weights_only=True)
        assert one.keys() == two.keys()
        for key, weight in one.items():
            assert torch.allclose(weight, two[key], atol=1e-6), (name, key)


def test_alone_without_a_launcher(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with world() as here:
        assert here == World(0, 1) and here.leads
        assert not torch.distributed.is_initialized()
        assert here.add_counts({"a": 2}, torch.device("cpu")) == {"a": 2}
        assert here.any(True, torch.device("cpu"))


@pytest.fixture
def group(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield World(0, 2)  # two by name: takes the collective path, with itself
    torch.distributed.destroy_process_group()


def test_collectives(group):
    cpu = torch.device("cpu")
    assert group.add_counts({"b": 3, "a": 1}, cpu) == {"a": 1, "b": 3}
    assert group.add_values({"x": 0.5}, cpu) == {"x": 0.5}
    assert group.from_lead(2.5, cpu) == 2.5
    model = torch.nn.ModuleDict({"used": torch.nn.Linear(2, 2), "unused": torch.nn.Linear(2, 2)})
    model["used"](torch.ones(1, 2)).sum().backward()
    before = model["used"].weight.grad.clone()
    group.add_gradients(model.parameters())
    assert torch.equal(model["used"].weight.grad, before)
    assert model["unused"].weight.grad is None  # decay must not touch what no batch used
    group.share_weights(model)
    group.wait()
    with world() as here:
        assert here == World(0, 1)  # joins the group that exists
