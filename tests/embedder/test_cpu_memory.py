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


# Other C libraries have neither call, and `_call` then does nothing.
GLIBC = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the heap of glibc")
# In processes of their own, since what is set holds for all of a process.
BLOCKS = """
import ctypes, os, sys
from likewise.embedder import cpu_memory
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
# The first free of a large block raises the size from which glibc maps blocks one by one.
libc.free(libc.malloc(30 << 20))
def half_freed():
    # Megabytes that stay of 80 when every other block is freed, so that the heap cannot shrink at its end.
    before = resident()
    blocks = [libc.malloc(2 << 20) for _ in range(40)]
    for block in blocks:
        ctypes.memset(block, 1, 2 << 20)
    for block in blocks[::2]:
        libc.free(block)
    return lambda: resident() - before
"""


def numbers(script: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", BLOCKS + script], check=True, capture_output=True, text=True)
    return [float(word) for word in done.stdout.split()]


@GLIBC
def test_large_blocks_go_back_to_the_system():
    [kept] = numbers("print(half_freed()())")
    assert kept > 75
    [kept] = numbers("assert cpu_memory.give_back_large_blocks()\nprint(half_freed()())")
    assert kept < 45


@GLIBC
def test_free_memory_goes_back_from_time_to_time():
    script = """
free = cpu_memory.FreeMemory()
kept = half_freed()
free.give_back()
print(kept())
cpu_memory._PAUSE = 0.0
free.give_back()
print(kept())
"""
    too_early, later = numbers(script)
    assert too_early > 75 and later < 45


def test_training_gives_it_back(monkeypatch):
    seen: list[str] = []
    monkeypatch.setattr("likewise.embedder.cpu_memory._PAUSE", 0.0)
    monkeypatch.setattr("likewise.embedder.cpu_memory._call", lambda name, *_: seen.append(name))
    train(toy.toy_model(), toy.NextNumber(), toy.Shuffled(), TrainingSettings(steps=3, precision="float32"))
    assert seen == ["malloc_trim"] * 3
