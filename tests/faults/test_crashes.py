"""A writer may be stopped at any step: nothing acknowledged is lost, nothing half done is seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the harness forks a child for every crash")

HARNESS = Path(__file__).with_name("crash_harness.py")


@pytest.fixture
def crashes(tmp_path):
    """Runs the harness; in memory where the system has such a folder, since thousands of syncs take long."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as folder:

        def run(protocol, *modes):
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            done = subprocess.run(
                [sys.executable, HARNESS, folder, protocol, *modes],
                capture_output=True,
                text=True,
                env=environment,
                encoding="utf-8",
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return [json.loads(line) for line in done.stdout.splitlines()]

        yield run


def test_every_crash_leaves_an_index_that_answers_rightly(crashes):
    results = crashes("correct", "before", "torn", "power")
    assert [result for result in results if result["problems"]] == []
    # Migration, settings, three batches, and for each of three snapshots: create, write, sync, rename, sync
    # the folder, record, remove what is outdated.
    assert sum(result["mode"] == "before" for result in results) > 5 + 3 * 6
    assert results[-1]["finished"]


@pytest.mark.parametrize(
    ("protocol", "mode", "symptom"),
    [
        ("row first", "before", "is missing"),
        ("row first", "torn", "bytes"),
        ("no sync", "power", "has 0 bytes"),
        ("no folder sync", "power", "is missing"),
        ("split batch", "before", "acknowledged batches the index holds"),
        ("trim first", "before", "dense search finds"),
    ],
)
def test_the_harness_notices_a_broken_protocol(crashes, protocol, mode, symptom):
    *clean, last = crashes(protocol, mode)
    assert all(not result["problems"] for result in clean)
    assert symptom in " ".join(last["problems"])
