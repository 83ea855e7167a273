"""Files that cannot be read, vanish, or are unusual in some other way."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.index.catalogue import Catalogue
from likewise.index.index import Index
from likewise.index.records import DocumentState
from likewise.index.report import SyncEvent

from .syncing import LONG_AGO, numbers, sync, texts, write


def test_every_file_ends_in_a_state(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "binary.txt": bytes(range(256)) * 40,
            "image.png": b"\x89PNG\r\n\x1a\n" + bytes(100),
            "latin.txt": "Größe und Länge über alles, schöne Grüße aus Köln.".encode("latin-1"),
            "broken.pdf": b"%PDF-1.4 nothing more",
            "good.md": "Fine.",
        },
    )
    report = sync(tmp_path)
    states = {item.key: item.state for item in report.skipped}
    assert states["image.png"] is DocumentState.UNSUPPORTED
    assert states["broken.pdf"] is DocumentState.FAILED
    assert "binary.txt" in states
    assert all(item.reason for item in report.skipped)
    assert report.found == 5 == len(texts(tmp_path))
    assert "Größe" in texts(tmp_path)["latin.txt"][0]
    again = sync(tmp_path)
    assert (again.unchanged, again.changed) == (5, 0)
    assert not any(item.known for item in report.skipped)
    known = tuple(replace(item, known=True) for item in report.skipped)
    assert again.skipped == known, "what is skipped is said every time"


def test_a_skipped_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    write(tmp_path, {"a.pdf": b"%PDF-1.4 nothing"})
    sync(tmp_path)
    write(tmp_path, {"a.pdf": b"plain text after all"}, when=LONG_AGO + 5)
    report = sync(tmp_path)
    assert (report.updated, len(report.skipped)) == (1, 0)


def test_a_new_reader_version_reads_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.txt": "A.", "b.png": b"\x89PNG\r\n\x1a\n"})
    sync(tmp_path)
    with Catalogue.open(tmp_path / ".likewise", mode="read") as catalogue:
        old = {row.reader for row in catalogue.documents()}
    monkeypatch.setattr("likewise.index.readers.registry.current_readers", lambda: frozenset({"text/99"}))
    report = sync(tmp_path)
    assert len(old) == 2
    # The text is read and found unchanged but for its reader, the image is still none we can read.
    assert (report.updated, report.unchanged, report.embedded) == (1, 1, 0)


def test_a_file_that_vanishes_before_it_is_read_is_gone(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "A.", "b.txt": "B."})
    sync(tmp_path)
    write(tmp_path, {"b.txt": "B changed.", "c.txt": "New."}, when=LONG_AGO + 5)

    def vanish(event: SyncEvent) -> None:
        if event.phase == "index" and event.done == 0:
            (tmp_path / "b.txt").unlink(missing_ok=True)
            (tmp_path / "c.txt").unlink(missing_ok=True)

    report = sync(tmp_path, progress=vanish)
    assert numbers(report) == (0, 0, 0, 1, 1)
    assert texts(tmp_path) == {"a.txt": ["A."]}


def test_a_folder_that_cannot_be_listed_keeps_its_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"a.txt": "A.", "locked/b.txt": "B."})
    sync(tmp_path)
    real = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    report = sync(tmp_path)
    assert report.deleted == 0
    assert report.left_out == (("locked/", "permission denied"),)
    assert set(texts(tmp_path)) == {"a.txt", "locked/b.txt"}
    with Index.open(tmp_path / ".likewise") as index:
        assert index.status().left_out == report.left_out
    monkeypatch.undo()
    assert sync(tmp_path).left_out == ()


def test_a_file_without_permission_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.txt": "A."})
    real = os.open

    def refuse(path: object, *arguments: int, **options: int) -> int:
        if str(path).endswith("a.txt"):
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **options)  # type: ignore[call-overload,no-any-return]  # passed on

    monkeypatch.setattr(os, "open", refuse)
    report = sync(tmp_path)
    assert [(item.state, item.reason) for item in report.skipped] == [
        (DocumentState.FAILED, "permission denied")
    ]
    assert (sync(tmp_path).unchanged, sync(tmp_path).changed) == (1, 0)
    monkeypatch.undo()
    assert numbers(sync(tmp_path)) == (0, 1, 0, 0, 0)
    assert texts(tmp_path) == {"a.txt": ["A."]}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither FIFOs nor such names")
def test_odd_names_and_odd_files(tmp_path: Path) -> None:
    write(tmp_path, {"new\nline.txt": "One.", "空白 檔名.txt": "Two.", "deep/" * 40 + "end.txt": "Three."})
    raw = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    with open(raw, "wb") as file:
        file.write(b"Four.")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    report = sync(tmp_path)
    assert report.added == 4
    assert {key for key, _ in report.left_out} == {"pipe.txt", "loop"}
    found = texts(tmp_path)
    assert found["new\nline.txt"] == ["One."]
    assert found["caf\\xe9.txt"] == ["Four."]
    with Catalogue.open(tmp_path / ".likewise", mode="read") as catalogue:
        paths = {row.key: row.path_bytes for row in catalogue.documents()}
    assert paths["caf\\xe9.txt"] == b"caf\xe9.txt"
    assert sync(tmp_path).changed == 0


def test_many_tiny_files(tmp_path: Path) -> None:
    write(tmp_path, {f"{i % 50}/{i}.txt": f"Tiny file number {i}." for i in range(2_000)})
    report = sync(tmp_path)
    assert (report.added, report.passages) == (2_000, 2_000)
    assert report.published
    again = sync(tmp_path)
    assert (again.unchanged, again.published) == (2_000, False)


def test_one_long_line(tmp_path: Path) -> None:
    write(tmp_path, {"log.txt": "event 42 happened, 事件發生。" * 40_000})
    report = sync(tmp_path, HashEncoder(16, 254))
    assert report.truncated == 0
    assert report.passages > 1_000
