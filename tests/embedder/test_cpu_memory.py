from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from likewise.embedder.cpu_memory import limit_kept_kernels
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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the heap of glibc")
def test_large_blocks_go_back_to_the_system():
    # In a process of its own, since it holds for the whole process. Every other block is freed, so that the
    # heap cannot shrink from its end.
    script = """
import ctypes, os, sys
from likewise.embedder.cpu_memory import give_back_large_blocks
if sys.argv[1] == "yes":
    assert give_back_large_blocks()
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
# The first free of a large block raises the size from which glibc maps blocks one by one.
libc.free(libc.malloc(30 << 20))
before = resident()
blocks = [libc.malloc(2 << 20) for _ in range(40)]
for block in blocks:
    ctypes.memset(block, 1, 2 << 20)
for block in blocks[::2]:
    libc.free(block)
print(resident() - before)
"""
    kept = {
        told: float(
            subprocess.run([sys.executable, "-c", script, told], check=True, capture_output=True).stdout
        )
        for told in ("no", "yes")
    }
    assert kept["no"] > 75  # megabytes, of 80 that were written to
    assert kept["yes"] < 45
