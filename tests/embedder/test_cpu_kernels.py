from __future__ import annotations

import os

from likewise.embedder.cpu_kernels import limit_kept_kernels
from likewise.embedder.training import train
from likewise.embedder.training_settings import TrainingSettings

from . import toy_training as toy

SETTING = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"


def test_training_limits_them(monkeypatch):
    monkeypatch.setenv(SETTING, "")  # so that it is put back afterwards
    monkeypatch.delenv(SETTING)
    train(toy.toy_model(), toy.NextNumber(), toy.Shuffled(), TrainingSettings(steps=1, precision="float32"))
    assert os.environ[SETTING] == "64"


def test_a_number_of_the_user_stays(monkeypatch):
    monkeypatch.setenv(SETTING, "1024")
    limit_kept_kernels()
    assert os.environ[SETTING] == "1024"
