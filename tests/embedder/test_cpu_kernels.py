from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from likewise.embedder.cpu_kernels import limit_kept_kernels
from likewise.embedder.training import train
from likewise.embedder.training_settings import TrainingSettings

SETTING = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"

_spec = importlib.util.spec_from_file_location("toy_training", Path(__file__).with_name("toy_training.py"))
toy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(toy)


def test_training_limits_them(monkeypatch):
    monkeypatch.setenv(SETTING, "")  # so that it is put back afterwards
    monkeypatch.delenv(SETTING)
    train(toy.toy_model(), toy.NextNumber(), toy.Shuffled(), TrainingSettings(steps=1, precision="float32"))
    assert os.environ[SETTING] == "64"


def test_a_number_of_the_user_stays(monkeypatch):
    monkeypatch.setenv(SETTING, "1024")
    limit_kept_kernels()
    assert os.environ[SETTING] == "1024"
