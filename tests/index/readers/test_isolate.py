"""The worker process: limits, deaths, order, shutdown."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from likewise.errors import ReadError
from likewise.index.readers import isolate
from likewise.index.readers.isolate import ReaderLimits, ReaderPool, Vanished
from likewise.index.readers.process import WorkerProcess
from likewise.index.records import DocumentState, Extraction, Skip

LINUX = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="needs to wait for a process of another parent"
)
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")


@pytest.fixture
def pool() -> Iterator[ReaderPool]:
    with ReaderPool() as pool:
        yield pool


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_no_worker_runs_before_the_first_file(pool: ReaderPool, tmp_path: Path) -> None:
    assert pool.worker_pid is None
    assert isinstance(pool.read(tmp_path / "missing.txt", "missing.txt")[1], Vanished)
    assert pool.worker_pid is None


def test_one_worker_reads_all_files(pool: ReaderPool, tmp_path: Path) -> None:
    pids = set()
    for number in range(5):
        path = write(tmp_path, f"{number}.md", f"# 金鑰 {number}")
        content, outcome = pool.read(path, path.name)
        assert isinstance(outcome, Extraction)
        assert outcome.title == f"金鑰 {number}"
        assert content is not None
        assert (content.size, content.mtime_ns) == (path.stat().st_size, path.stat().st_mtime_ns)
        pids.add(pool.worker_pid)
    assert len(pids) == 1


def test_the_key_tells_the_format(pool: ReaderPool, tmp_path: Path) -> None:
    path = write(tmp_path, "blob", "# Keys")
    outcome = pool.read(path, "docs.d/guide.MD")[1]
    assert isinstance(outcome, Extraction)
    assert outcome.reader == "markdown/2"


@POSIX
def test_a_worker_that_dies_is_replaced(pool: ReaderPool, tmp_path: Path) -> None:
    path = write(tmp_path, "a.md", "# Keys")
    pool.read(path, "a.md")
    first = pool.worker_pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    # Not this document's fault: it is read by the next worker.
    assert isinstance(pool.read(path, "a.md")[1], Extraction)
    assert pool.worker_pid != first


def deep_html() -> str:
    return "<div>" * 400_000


def test_a_document_that_hangs_ends_as_failed_and_the_next_is_read(tmp_path: Path) -> None:
    with ReaderPool(ReaderLimits(seconds=1.0)) as pool:
        results = list(
            pool.read_many(
                [
                    (write(tmp_path, "a.md", "# A"), "a.md"),
                    (write(tmp_path, "b.html", deep_html()), "b.html"),
                    (write(tmp_path, "c.md", "# C"), "c.md"),
                ]
            )
        )
    assert [result.key for result in results] == ["a.md", "b.html", "c.md"]
    hung = results[1].outcome
    assert isinstance(hung, Skip)
    assert (hung.state, hung.reason) == (DocumentState.FAILED, "took longer than 1 s")
    assert results[1].content is not None
    assert len(results[1].content.content_hash) == 64
    assert isinstance(results[2].outcome, Extraction)


def nested_forms(make_pdf: Callable[..., bytes]) -> bytes:
    """A PDF of two kilobytes of which the text doubles thirty times."""
    forms = 30
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Count 1 /Kids [4 0 R] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 5 0 R "
        "/Resources << /XObject << /X 6 0 R >> >> >>",
        "<< /Length 5 >>\nstream\n/X Do\nendstream",
    ]
    for number in range(forms):
        last = number == forms - 1
        content = "BT /F1 9 Tf 9 9 Td (aaaaaaaa) Tj ET" if last else "/X Do /X Do"
        uses = "/Font << /F1 3 0 R >>" if last else f"/XObject << /X {7 + number} 0 R >>"
        objects.append(
            f"<< /Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << {uses} >> "
            f"/Length {len(content)} >>\nstream\n{content}\nendstream"
        )
    body = "".join(f"{number} 0 obj\n{text}\nendobj\n" for number, text in enumerate(objects, 1))
    return f"%PDF-1.4\n{body}trailer\n<< /Root 1 0 R /Size {len(objects) + 1} >>\n%%EOF\n".encode()


@POSIX
def test_a_document_that_outgrows_its_memory_takes_only_the_worker(
    tmp_path: Path, make_pdf: Callable[..., bytes]
) -> None:
    limits = ReaderLimits(seconds=20.0, memory_bytes=512 << 20)
    with ReaderPool(limits) as pool:
        outcome = pool.read(write(tmp_path, "a.pdf", nested_forms(make_pdf)), "a.pdf")[1]
        assert isinstance(outcome, Skip)
        assert outcome.state is DocumentState.FAILED
        assert outcome.reason
        assert isinstance(pool.read(write(tmp_path, "b.md", "# B"), "b.md")[1], Extraction)


@LINUX  # macOS does not keep a process to its address space
def test_want_of_memory_is_said(tmp_path: Path) -> None:
    """A notebook of 30 MB of nested lists needs gigabytes as Python objects."""
    data = '{"cells": [' + "[]," * 10_000_000 + "[]]}"
    with ReaderPool(ReaderLimits(memory_bytes=256 << 20)) as pool:
        outcome = pool.read(write(tmp_path, "a.ipynb", data), "a.ipynb")[1]
    assert isinstance(outcome, Skip)
    assert (outcome.state, outcome.reason) == (DocumentState.FAILED, "needs more than 256 MiB of memory")


def test_deep_json_fails_and_the_worker_lives(pool: ReaderPool, tmp_path: Path) -> None:
    outcome = pool.read(write(tmp_path, "a.ipynb", "[" * 100_000), "a.ipynb")[1]
    assert isinstance(outcome, Skip)
    assert (outcome.state, outcome.reason) == (DocumentState.FAILED, "is nested too deeply")
    pid = pool.worker_pid
    assert isinstance(pool.read(write(tmp_path, "b.md", "# B"), "b.md")[1], Extraction)
    assert pool.worker_pid == pid


def test_fifty_megabytes_in_one_line(tmp_path: Path) -> None:
    path = write(tmp_path, "a.log", b"key rotated; " * 4_000_000)
    with ReaderPool() as pool:
        outcome = pool.read(path, "a.log")[1]
        assert isinstance(outcome, Skip)
        assert outcome.state is DocumentState.TOO_LARGE
        assert pool.worker_pid is None
    with ReaderPool(ReaderLimits(max_bytes=64 << 20, max_characters=64 << 20)) as pool:
        outcome = pool.read(path, "a.log")[1]
        assert isinstance(outcome, Extraction)
        assert len(outcome.text) == 52_000_000


def test_many_files_come_in_order(pool: ReaderPool, tmp_path: Path) -> None:
    paths = [write(tmp_path, f"{number:03}.md", f"# {number}") for number in range(300)]
    results = list(pool.read_many((path, path.name) for path in paths))
    assert [result.key for result in results] == [path.name for path in paths]
    assert [result.outcome.title for result in results if isinstance(result.outcome, Extraction)] == [
        str(number) for number in range(300)
    ]


def test_reading_runs_only_so_far_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolate, "_AHEAD_FILES", 3)
    paths = [write(tmp_path, f"{number}.md", "# x") for number in range(20)]
    read = 0
    counted = threading.Event()
    original = ReaderPool.read

    def counting(self: ReaderPool, path: Path, key: str) -> object:
        nonlocal read
        read += 1
        if read == 5:
            counted.set()
        return original(self, path, key)

    monkeypatch.setattr(ReaderPool, "read", counting)
    with ReaderPool() as pool:
        results = pool.read_many((path, path.name) for path in paths)
        next(results)
        # One taken, three waiting, one in hand: the fifth is begun, the sixth never is.
        assert counted.wait(30)
        assert read == 5
        assert len(list(results)) == 19


@POSIX
def test_leaving_in_the_middle_of_a_document_ends_its_worker(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "# A")
    write(tmp_path, "b.html", deep_html())
    with ReaderPool() as pool:
        for result in pool.read_many([(tmp_path / "a.md", "a.md"), (tmp_path / "b.html", "b.html")]):
            assert result.key == "a.md"
            pid = pool.worker_pid
            break
    assert pid is not None
    assert not alive(pid)
    assert pool.worker_pid is None


def test_what_ends_the_reading_is_raised_where_results_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    path = write(tmp_path, "a.md", "# A")
    with ReaderPool() as pool, pytest.raises(ReadError, match="did not start"):
        list(pool.read_many([(path, "a.md")]))


def test_a_broken_installation_is_no_documents_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    write(tmp_path, "sitecustomize.py", "raise SystemExit(7)")
    with ReaderPool() as pool, pytest.raises(ReadError, match="did not start") as caught:
        pool.read(write(tmp_path, "a.md", "# A"), "a.md")
    assert caught.value.remedy is not None
    assert "likewise.index.readers.worker" in caught.value.remedy


def test_files_beside_the_user_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to index may hold a `json.py`; reading it must not run it."""
    monkeypatch.chdir(tmp_path)
    for name in ("json.py", "struct.py", "yaml.py", "likewise.py", "faulthandler.py"):
        write(tmp_path, name, f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit('ran')")
    with ReaderPool() as pool:
        outcome = pool.read(write(tmp_path, "a.md", "---\na: 1\n---\n# A"), "a.md")[1]
    assert isinstance(outcome, Extraction)
    assert not (tmp_path / "ran").exists()


@POSIX
def test_the_worker_leaves_ctrl_c_to_the_parent(pool: ReaderPool, tmp_path: Path) -> None:
    path = write(tmp_path, "a.md", "# A")
    pool.read(path, "a.md")
    pid = pool.worker_pid
    assert pid is not None
    os.kill(pid, signal.SIGINT)
    assert isinstance(pool.read(path, "a.md")[1], Extraction)
    assert pool.worker_pid == pid
    assert os.getpgid(pid) != os.getpgid(0)


PARENT = """
import sys
from pathlib import Path
from likewise.index.readers.isolate import ReaderPool
pool = ReaderPool()
pool.read(Path(sys.argv[1]), "a.md")
print(pool.worker_pid, flush=True)
{then}
"""


def start_parent(path: Path, then: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PARENT.format(then=then), str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until_gone(pid: int) -> None:
    """Returns when the process has ended, whoever its parent is; by the suite's time limit if it does not."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    select.select([descriptor], [], [])
    os.close(descriptor)


@LINUX
def test_the_worker_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    path = write(tmp_path, "a.md", "# A")
    with start_parent(path, "import time; time.sleep(600)") as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    wait_until_gone(pid)


@LINUX
def test_ctrl_c_in_the_middle_of_a_document_ends_both(tmp_path: Path) -> None:
    write(tmp_path, "b.html", deep_html())
    path = write(tmp_path, "a.md", "# A")
    then = (
        "print('go', flush=True)\nwith pool:\n    pool.read(Path(sys.argv[1]).with_name('b.html'), 'b.html')"
    )
    with start_parent(path, then) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert parent.stdout.readline() == "go\n"
        parent.send_signal(signal.SIGINT)
        _, errors = parent.communicate()
    assert errors.rstrip().endswith("KeyboardInterrupt")
    wait_until_gone(pid)


def test_what_a_library_prints_does_not_break_the_protocol(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write(
        tmp_path,
        "sitecustomize.py",
        "import builtins, os, sys\n"
        "original = builtins.__import__\n"
        "def noisy(name, *rest, **more):\n"
        "    if name == 'yaml':\n"
        "        os.write(1, b'x' * 70000); print('stdout'); os.write(2, b'y' * 70000)\n"
        "    return original(name, *rest, **more)\n"
        "builtins.__import__ = noisy\n",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with ReaderPool() as pool:
        outcome = pool.read(write(tmp_path, "a.md", "---\na: 1\n---\n# A"), "a.md")[1]
    assert isinstance(outcome, Extraction)
    assert outcome.metadata == {"a": 1}
    assert capfd.readouterr() == ("", "")


def test_a_worker_starts_without_the_heavy_libraries() -> None:
    code = (
        "import sys; import likewise.index.readers.worker; "
        "heavy = ('numpy', 'torch', 'yaml', 'chardet', 'selectolax', 'pypdfium2', 'pathspec', 'zipfile'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_reader_that_breaks_says_how(pool: ReaderPool) -> None:
    """A request that no reader can serve stands for a bug in one."""
    worker = WorkerProcess(pool.limits)
    try:
        header, _ = worker.ask({"name": "a", "suffix": ".txt", "max_characters": "many"}, b"x")
    except isolate.WorkerDied as error:
        assert "status 1" in str(error)
    else:
        raise AssertionError(header)
    finally:
        worker.close()
