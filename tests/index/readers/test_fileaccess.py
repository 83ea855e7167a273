from __future__ import annotations

import hashlib
import os
import socket
import sys
from pathlib import Path

import pytest

from likewise.index.readers import fileaccess
from likewise.index.readers.base import FileContent, ReaderLimits, Vanished
from likewise.index.readers.fileaccess import content_of, load
from likewise.index.records import DocumentState, Skip

LIMITS = ReaderLimits(max_bytes=1000)
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX file system")


def test_bytes_come_with_their_identity(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"keys\r\n")
    content, data = load(path, LIMITS)
    assert data == b"keys\r\n"
    assert content == FileContent(hashlib.sha256(b"keys\r\n").hexdigest(), 6, path.stat().st_mtime_ns)
    assert content_of(path, LIMITS) == content


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.touch()
    assert load(path, LIMITS)[1] == b""


def test_a_file_at_the_limit_is_read_and_one_beyond_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 1000)
    assert load(path, LIMITS)[1] == b"x" * 1000
    path.write_bytes(b"x" * 1001)
    content, outcome = load(path, LIMITS)
    assert outcome == Skip(DocumentState.TOO_LARGE, "has 1,001 bytes, the limit is 1,000")
    assert content is not None
    assert (content.content_hash, content.size) == ("", 1001)


def test_a_missing_file_has_vanished(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "a.txt", tmp_path / "no" / "a.txt", tmp_path / "file" / "a.txt"):
        content, outcome = load(path, LIMITS)
        assert content is None
        assert isinstance(outcome, Vanished)


@POSIX
def test_a_file_that_vanishes_between_stat_and_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x")
    opened = os.open

    def vanish(name: object, *rest: int) -> int:
        path.unlink()
        return opened(path, *rest)

    monkeypatch.setattr(fileaccess.os, "open", vanish)
    assert isinstance(load(path, LIMITS)[1], Vanished)


@POSIX
@pytest.mark.parametrize("kind", ["fifo", "socket", "link", "folder"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.relpath(path))
    elif kind == "link":
        (tmp_path / "target").write_text("secret")
        path.symlink_to("target")
    else:
        path.mkdir()
    content, outcome = load(path, LIMITS)
    assert content is None
    assert isinstance(outcome, Skip)
    assert outcome.state is DocumentState.UNSUPPORTED
    assert outcome.reason.endswith(", not a regular file")


@POSIX
@pytest.mark.parametrize("becomes", ["fifo", "link"])
def test_a_file_that_is_replaced_before_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, becomes: str
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x")
    (tmp_path / "secret").write_text("secret")
    stat = os.lstat

    def replace_after(name: object) -> os.stat_result:
        status = stat(path)
        path.unlink()
        if becomes == "fifo":
            os.mkfifo(path)
        else:
            path.symlink_to("secret")
        monkeypatch.setattr(fileaccess.os, "lstat", stat)
        return status

    monkeypatch.setattr(fileaccess.os, "lstat", replace_after)
    outcome = load(path, LIMITS)[1]
    assert isinstance(outcome, Skip)
    assert "not a regular file" in outcome.reason


def change_while_reading(path: Path, monkeypatch: pytest.MonkeyPatch, *, times: int) -> None:
    """Let the file grow behind the back of the first `times` reads."""
    left = times
    read = fileaccess._read_all

    def grow(descriptor: int, size: int) -> bytes:
        nonlocal left
        data = read(descriptor, size)
        if left:
            left -= 1
            with path.open("ab") as file:
                file.write(b"more")
        return data

    monkeypatch.setattr(fileaccess, "_read_all", grow)


def test_a_file_that_changes_once_while_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x")
    change_while_reading(path, monkeypatch, times=1)
    assert load(path, LIMITS)[1] == b"xmore"


def test_a_file_that_keeps_changing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x")
    change_while_reading(path, monkeypatch, times=2)
    content, outcome = load(path, LIMITS)
    assert outcome == Skip(DocumentState.FAILED, "changed while being read, twice")
    assert content is not None
    assert content.content_hash == ""


def test_a_file_that_grows_without_end_is_not_read_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 10)
    asked = 0

    def endless(descriptor: int, count: int) -> bytes:
        nonlocal asked
        asked += count
        return b"x" * count

    monkeypatch.setattr(fileaccess.os, "read", endless)
    assert isinstance(load(path, LIMITS)[1], Skip)
    assert asked == 2 * 11


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x")

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(fileaccess.os, "open", refuse)
    content, outcome = load(path, LIMITS)
    assert outcome == Skip(DocumentState.FAILED, "permission denied")
    assert content is not None
    assert content.size == 1


def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x")

    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(fileaccess.os, "read", fail)
    assert load(path, LIMITS)[1] == Skip(DocumentState.FAILED, "cannot be read: Input/output error")


@POSIX
def test_names_that_are_not_utf8_or_hold_a_line_feed(tmp_path: Path) -> None:
    for name in (b"bad\xff.md", b"two\nlines.md"):
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
        path.write_bytes(b"# Keys")
        assert load(path, LIMITS)[1] == b"# Keys"
