"""One run at a time in a folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from likewise.embedder.run_lock import only_run
from likewise.errors import TrainingError

HELD = """
import sys
from pathlib import Path
from likewise.embedder.run_lock import only_run
with only_run(Path(sys.argv[1])):
    print("in", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_is_kept_out_until_the_first_ends(tmp_path: Path) -> None:
    folder = tmp_path / "model" / "training"
    first = subprocess.Popen(
        [sys.executable, "-c", HELD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert first.stdout is not None and first.stdout.readline() == "in\n"
        with pytest.raises(TrainingError, match="another process is training in"), only_run(folder):
            raise AssertionError("not reached")
        with only_run(folder, leads=False):  # a process of the same run
            pass
    finally:
        first.kill()  # a lock does not outlive its process, however that ends
        first.communicate()
    with only_run(folder):
        (folder / "log.jsonl").write_text("kept")
    assert [path.name for path in folder.iterdir()] == ["log.jsonl"]


def test_an_error_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyError), only_run(tmp_path / "model" / "training"):
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingError, match="cannot be written"), only_run(tmp_path / "file" / "training"):
        raise AssertionError("not reached")
