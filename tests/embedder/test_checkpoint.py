from __future__ import annotations

import json
import os
import random
import shutil

import numpy as np
import pytest
import torch
from torch import nn

from likewise.embedder import checkpoint
from likewise.embedder.checkpoint import CheckpointStore, read_record
from likewise.embedder.optim import adamw, parameter_groups
from likewise.errors import CheckpointError


def make(seed=0):
    torch.manual_seed(seed)
    model = nn.ModuleDict({"table": nn.Embedding(7, 4), "norm": nn.LayerNorm(4), "head": nn.Linear(4, 7)})
    model["head"].weight = model["table"].weight
    optimizer = adamw(parameter_groups(model, weight_decay=0.1, learning_rate=0.01))
    return model, optimizer


def step(model, optimizer):
    ids = torch.randint(0, 7, (5,))
    model["head"](model["norm"](model["table"](ids))).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def save(store, number, model, optimizer, **changes):
    settings = {"state": {"position": number}, "config": {"rate": 0.1}} | changes
    return store.save(number, model, optimizer, **settings)


class TestRoundTrip:
    def test_everything_comes_back(self, tmp_path):
        model, optimizer = make()
        for _ in range(3):
            step(model, optimizer)
        store = CheckpointStore(tmp_path)
        path = save(store, 3, model, optimizer)
        expected = (random.random(), np.random.rand(), torch.rand(1).item())
        step(model, optimizer)

        other, other_optimizer = make(seed=9)
        random.seed(1), np.random.seed(1), torch.manual_seed(1)
        assert store.load(path, other, other_optimizer, config={"rate": 0.1}) == {"position": 3}
        assert (random.random(), np.random.rand(), torch.rand(1).item()) == expected
        step(other, other_optimizer)
        for left, right in zip(model.parameters(), other.parameters(), strict=True):
            assert torch.equal(left, right)
        assert other["head"].weight is other["table"].weight

    def test_nothing_is_pickled(self, tmp_path):
        path = save(CheckpointStore(tmp_path), 1, *make())
        assert sorted(os.listdir(path)) == ["checkpoint.json", "model.safetensors", "state.safetensors"]
        assert read_record(path)["versions"].keys() == {"likewise", "torch", "python"}

    def test_weights_alone_leave_the_generators(self, tmp_path):
        store = CheckpointStore(tmp_path)
        path = save(store, 1, *make())
        other = make(5)[0]
        torch.manual_seed(3)
        expected = torch.rand(1)
        torch.manual_seed(3)
        store.load(path, other)
        assert torch.equal(torch.rand(1), expected)


class TestNumber:
    def test_the_last_few_and_the_best_are_kept(self, tmp_path):
        store = CheckpointStore(tmp_path, keep=2)
        model, optimizer = make()
        for number in range(1, 7):
            save(store, number, model, optimizer, best=number == 2)
        assert [path.name for path in store.all()] == ["step-000000002", "step-000000005", "step-000000006"]
        assert store.best().name == "step-000000002" and store.latest().name == "step-000000006"

    def test_an_older_best_goes_when_there_is_a_new_one(self, tmp_path):
        store = CheckpointStore(tmp_path)
        for number in (1, 2, 3):
            save(store, number, *make(), best=number < 3)
        assert [path.name for path in store.all()] == ["step-000000002", "step-000000003"]

    def test_none_yet(self, tmp_path):
        store = CheckpointStore(tmp_path / "none")
        assert (store.all(), store.latest(), store.best()) == ([], None, None)

    def test_the_same_step_again(self, tmp_path):
        store = CheckpointStore(tmp_path)
        save(store, 1, *make())
        save(store, 1, *make(), state={"position": 8})
        assert store.load(store.latest(), make()[0]) == {"position": 8}


class TestCrash:
    def test_what_a_crash_left_is_not_a_checkpoint(self, tmp_path):
        store = CheckpointStore(tmp_path)
        save(store, 1, *make())
        shutil.copytree(store.latest(), tmp_path / ".step-000000002.123")
        (tmp_path / "step-000000003").mkdir()
        assert [path.name for path in store.all()] == ["step-000000001"]
        save(store, 4, *make())
        assert not (tmp_path / ".step-000000002.123").exists()

    @pytest.mark.parametrize("place", ["save_model", "save_file", "_flush", "_flush_folder"])
    def test_disk_full_keeps_the_previous(self, tmp_path, monkeypatch, place):
        store = CheckpointStore(tmp_path)
        model, optimizer = make()
        first = save(store, 1, model, optimizer)
        before = (first / "model.safetensors").read_bytes()

        def full(*args, **kwargs):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(checkpoint, place, full)
        with pytest.raises(CheckpointError, match=r"step 2 could not be written.*No space left") as caught:
            save(store, 2, model, optimizer)
        assert "is complete and kept" in caught.value.message
        assert "continues from there" in caught.value.remedy
        assert (first / "model.safetensors").read_bytes() == before
        assert not list(tmp_path.glob(".*"))
        monkeypatch.undo()
        store.load(store.latest(), make()[0])

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
    def test_a_disk_that_is_really_full(self, tmp_path, monkeypatch):
        store = CheckpointStore(tmp_path)
        save(store, 1, *make())

        def to_full_disk(tensors, path):
            with open("/dev/full", "wb", buffering=0) as file:
                file.write(b"x")

        monkeypatch.setattr(checkpoint, "save_file", to_full_disk)
        with pytest.raises(CheckpointError, match="step-000000001 is complete and kept"):
            save(store, 2, *make())

    @pytest.mark.parametrize("name", ["model.safetensors", "state.safetensors"])
    @pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
    def test_damage_is_noticed(self, tmp_path, name, damage):
        store = CheckpointStore(tmp_path)
        path = save(store, 1, *make())
        content = bytearray((path / name).read_bytes())
        if damage == "flip":
            content[-1] ^= 1
        (path / name).write_bytes(content if damage == "flip" else content[:-4])
        if damage == "remove":
            (path / name).unlink()
        with pytest.raises(CheckpointError, match=f"{name} is damaged"):
            store.load(path, *make())

    def test_a_damaged_record(self, tmp_path):
        store = CheckpointStore(tmp_path)
        path = save(store, 1, *make())
        (path / "checkpoint.json").write_text("{")
        with pytest.raises(CheckpointError, match="no readable checkpoint"):
            store.load(path, *make())

    def test_a_newer_format(self, tmp_path):
        store = CheckpointStore(tmp_path)
        path = save(store, 1, *make())
        record = read_record(path) | {"format": 99}
        (path / "checkpoint.json").write_text(json.dumps(record))
        with pytest.raises(CheckpointError, match="format 1, found 99"):
            store.load(path, *make())


class TestConfig:
    def test_differences_are_named(self, tmp_path):
        store = CheckpointStore(tmp_path)
        saved = {"settings": {"rate": 0.1, "seed": 1}, "betas": (0.9, 0.99), "data": "abc"}
        path = save(store, 1, *make(), config=saved)
        store.load(path, *make(), config=saved)  # a tuple comes back as a list and is still the same
        now = {"settings": {"rate": 0.2, "seed": 1, "clip": 1.0}, "betas": (0.9, 0.99)}
        with pytest.raises(CheckpointError) as caught:
            store.load(path, *make(), config=now)
        differences = caught.value.message.partition("other settings: ")[2]
        assert (
            differences
            == "data was 'abc', now None; settings.clip was None, now 1.0; settings.rate was 0.1, now 0.2"
        )

    def test_weights_of_another_model(self, tmp_path):
        store = CheckpointStore(tmp_path)
        path = save(store, 1, *make())
        with pytest.raises(CheckpointError, match=r"weights in .* are of another model"):
            store.load(path, nn.Linear(3, 3))
