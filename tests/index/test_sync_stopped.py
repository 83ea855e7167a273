"""A sync that is stopped, killed or fails keeps what it committed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from likewise.errors import IndexFolderError
from likewise.index.catalogue import Catalogue
from likewise.index.report import SyncInterrupted
from likewise.index.rows import Change
from likewise.index.settings import SyncSettings

from .syncing import RecordingEncoder, numbers, paragraphs, sync, texts, write


def interrupt_at(call: int) -> RecordingEncoder:
    encoder = RecordingEncoder()

    def stop(number: int) -> None:
        if number == call:
            raise KeyboardInterrupt

    encoder.before_call = stop
    return encoder


def test_an_interrupted_sync_says_what_is_saved_and_goes_on_from_there(tmp_path: Path) -> None:
    write(tmp_path, {"gone.txt": "Gone soon."})
    sync(tmp_path)
    (tmp_path / "gone.txt").unlink()
    write(tmp_path, {f"{i:02}.txt": paragraphs(10, f"d{i}") for i in range(12)})
    with pytest.raises(SyncInterrupted) as raised:
        sync(tmp_path, interrupt_at(2), settings=SyncSettings(group_passages=30))
    saved = raised.value.report
    assert isinstance(raised.value, KeyboardInterrupt)
    assert (saved.added, saved.embedded, saved.deleted) == (6, 60, 1)
    assert len(texts(tmp_path)) == 6
    encoder = RecordingEncoder()
    report = sync(tmp_path, encoder)
    assert numbers(report) == (6, 0, 0, 0, 6)
    assert len(encoder.texts) == 60


def test_an_interrupted_large_document_loses_one_group(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": paragraphs(100, "w")})
    with pytest.raises(SyncInterrupted) as raised:
        sync(tmp_path, interrupt_at(2), settings=SyncSettings(group_passages=40))
    assert (raised.value.report.added, raised.value.report.embedded) == (0, 80)
    assert len(texts(tmp_path)["a.txt"]) == 80, "what is committed is searchable"
    encoder = RecordingEncoder()
    report = sync(tmp_path, encoder)
    assert (report.updated, report.embedded, report.reused) == (1, 20, 80)
    assert sync(tmp_path).unchanged == 1


def test_a_killed_process_loses_the_group_in_hand(tmp_path: Path) -> None:
    write(tmp_path, {f"{i}.txt": paragraphs(10, f"d{i}") for i in range(6)})
    program = (
        "import os, sys; from likewise.embedder.hash_encoder import HashEncoder\n"
        "from likewise.index.index import Index; from likewise.index.settings import SyncSettings\n"
        "class Dying(HashEncoder):\n"
        "    calls = 0\n"
        "    def embed(self, texts, *, role):\n"
        "        self.calls += 1\n"
        "        if self.calls == 3: os._exit(9)\n"
        "        return super().embed(texts, role=role)\n"
        f"Index.open({str(tmp_path / '.likewise')!r}, encoder=Dying(64, 64)).sync(\n"
        f"    [{str(tmp_path)!r}], settings=SyncSettings(group_passages=20))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    assert len(texts(tmp_path)) == 4
    report = sync(tmp_path)
    assert numbers(report) == (2, 0, 0, 0, 4)


def test_a_failed_commit_keeps_what_was_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {f"{i}.txt": paragraphs(10, f"d{i}") for i in range(6)})
    real, calls = Catalogue.apply, []

    def full(catalogue: Catalogue, changes: Sequence[Change]) -> None:
        calls.append(len(changes))
        if len(calls) == 3:
            raise IndexFolderError("no space left")
        real(catalogue, changes)

    monkeypatch.setattr(Catalogue, "apply", full)
    with pytest.raises(IndexFolderError, match="no space left"):
        sync(tmp_path, settings=SyncSettings(group_passages=20))
    monkeypatch.undo()
    assert len(texts(tmp_path)) == 4
    assert sync(tmp_path).added == 2
