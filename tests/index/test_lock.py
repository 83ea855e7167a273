from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import pytest

from likewise.errors import IndexFolderError, IndexLocked
from likewise.index.lock import HOLDER_FILE, WriterLock, current_holder

HOLD = """
import sys
from pathlib import Path
from likewise.index.lock import WriterLock
with WriterLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other_process(tmp_path):
    """Another process that holds the lock until its standard input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_another_process_is_kept_out_and_told_who_writes(tmp_path, other_process):
    with pytest.raises(IndexLocked, match=f"process {other_process.pid} on ") as caught, WriterLock(tmp_path):
        pass
    assert "wait until it is done" in caught.value.remedy
    assert current_holder(tmp_path).pid == other_process.pid
    other_process.communicate("")
    with WriterLock(tmp_path) as lock:
        assert lock.recovered is None
        assert current_holder(tmp_path).pid == os.getpid()


def test_a_killed_writer_leaves_no_lock_behind(tmp_path, other_process):
    other_process.kill()
    other_process.wait()
    assert (tmp_path / HOLDER_FILE).exists()
    assert current_holder(tmp_path) is None
    with WriterLock(tmp_path) as lock:
        assert lock.recovered.pid == other_process.pid


def test_a_second_lock_in_the_same_process_is_refused(tmp_path):
    with WriterLock(tmp_path), pytest.raises(IndexLocked, match=f"process {os.getpid()}"):
        WriterLock(tmp_path, timeout=0).__enter__()


def test_another_thread_may_release(tmp_path):
    lock = WriterLock(tmp_path).__enter__()
    thread = threading.Thread(target=lock.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    with WriterLock(tmp_path, timeout=0):
        pass


def test_released_after_an_error(tmp_path):
    with pytest.raises(RuntimeError), WriterLock(tmp_path):
        raise RuntimeError
    assert not (tmp_path / HOLDER_FILE).exists()
    with WriterLock(tmp_path, timeout=0):
        pass


@pytest.mark.parametrize("content", ["", "{", "[]", json.dumps({"pid": "x"}), "\x00"])
def test_an_unreadable_holder_file_is_only_a_missing_name(tmp_path, content):
    with WriterLock(tmp_path):
        (tmp_path / HOLDER_FILE).write_text(content)
        with pytest.raises(IndexLocked, match="another process"):
            WriterLock(tmp_path, timeout=0).__enter__()


def test_a_folder_that_cannot_be_made_is_an_index_folder_error(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(IndexFolderError, match="cannot be written") as caught,
        WriterLock(tmp_path / "file" / "x"),
    ):
        pass
    assert not isinstance(caught.value, IndexLocked)
