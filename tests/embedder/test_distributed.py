from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from likewise.embedder.distributed import World, world

TOY = Path(__file__).with_name("toy_training.py")


def run(folder: Path, *, processes: int, steps: int, accumulation: int) -> dict[str, torch.Tensor]:
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = [
        subprocess.Popen(
            [sys.executable, str(TOY), str(folder), str(steps), str(accumulation), "0"],
            env=os.environ
            | {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(processes),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    for process in started:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    return torch.load(folder / "weights.pt", weights_only=True)


def test_two_processes_train_what_one_does(tmp_path):
    # Batches of unequal size, dropout, two terms with different counts, four micro-batches per step.
    one = run(tmp_path / "one", processes=1, steps=9, accumulation=4)
    two = run(tmp_path / "two", processes=2, steps=9, accumulation=4)
    start = torch.nn.Embedding(11, 8).weight.shape
    assert one["embeddings.weight"].shape == start
    for name, weight in one.items():
        assert torch.allclose(weight, two[name], atol=1e-6), name


def test_an_odd_share_of_micro_batches(tmp_path):
    # Three micro-batches per step over two processes: one takes two, the other one.
    one = run(tmp_path / "one", processes=1, steps=4, accumulation=3)
    two = run(tmp_path / "two", processes=2, steps=4, accumulation=3)
    for name, weight in one.items():
        assert torch.allclose(weight, two[name], atol=1e-6), name


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
