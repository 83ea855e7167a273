"""`likewise status` and `likewise doctor`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from likewise.cli import doctor, status
from likewise.cli.terminal import Screen
from likewise.errors import EncoderNotFound
from likewise.index.doctor import Check

Run = Callable[..., Result]


def test_status_names_what_matters(run: Run, indexed: Path) -> None:
    result = run("status")
    lines = dict(line.split("  ", 1) for line in result.stdout.splitlines()[:9])
    shown = {name: value.strip() for name, value in lines.items()}
    assert shown["index"] == str(indexed / ".likewise")
    assert shown["documents"] == "6 (1 empty, 5 ok)"
    assert shown["passages"] == "5"
    assert shown["languages"] == "en 3, zh 2"
    assert shown["encoder"].startswith("hash (64 dimensions, ")
    assert result.stdout.splitlines()[-1] == "empty.txt  empty  is empty"


def test_status_as_json(run: Run) -> None:
    value = json.loads(run("status", "--json").stdout)
    assert value["states"] == {"empty": 1, "ok": 5}
    assert value["skipped"] == [{"path": "empty.txt", "state": "empty", "reason": "is empty"}]
    assert value["tail"] == {"added": 0, "removed": 0}
    assert value["bytes"] > 0 and value["writer"] is None


def test_all_documents(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line.split("\t") for line in run("status", "--documents").stdout.splitlines()]
    assert [line[3] for line in lines] == sorted(line[3] for line in lines)
    assert ["empty", "0", "", "empty.txt", "is empty"] in lines
    assert ["ok", "1", "zh", "zh/金鑰.md", ""] in lines
    monkeypatch.setattr(status, "screen", lambda: Screen(is_terminal=True, width=80, color=False))
    assert run("status", "--documents").stdout.splitlines()[0].split() == [
        "state",
        "passages",
        "language",
        "path",
        "reason",
    ]
    value = json.loads(run("status", "--documents", "--json").stdout)
    assert [document["path"] for document in value["documents"]] == [line[3] for line in lines]


def test_at_a_terminal_a_long_list_is_cut(run: Run, handbook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        (handbook / f"empty{number}.txt").touch()
    assert run("index", "--index", str(handbook)).exit_code == 0
    assert len(run("status", "--index", str(handbook)).stdout.splitlines()) > 41
    monkeypatch.setattr(status, "screen", lambda: Screen(is_terminal=True, width=80, color=False))
    assert run("status", "--index", str(handbook)).stdout.splitlines()[-1] == (
        "and 11 more: likewise status --documents"
    )


def test_status_without_an_index(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("status")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no index in" in result.stderr


@pytest.mark.parametrize("command", ["status", "doctor", "search key"])
def test_a_folder_that_is_no_index(command: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "something").write_text("else", encoding="utf-8")
    result = run(*command.split(), "--index", str(tmp_path))
    assert result.exit_code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["something"]


def test_doctor_of_a_sound_index(run: Run) -> None:
    result = run("doctor")
    assert result.exit_code == 0
    assert "catalogue: the catalogue is sound" in result.stdout
    assert "error" not in result.stdout


def test_doctor_of_a_damaged_catalogue(run: Run, handbook: Path) -> None:
    from likewise.index.catalogue import CATALOGUE_FILE

    file = handbook / ".likewise" / CATALOGUE_FILE
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = bytearray(file.read_bytes())
    data[len(data) // 2 :] = b"\xff" * (len(data) - len(data) // 2)
    file.write_bytes(data)
    result = run("doctor", "--index", str(handbook))
    assert result.exit_code == 1
    assert "error" in result.stdout and "try: delete" in result.stdout


def test_doctor_misses_a_model(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "ok       model: hash is on this machine and unchanged" in run("doctor").stdout

    def missing(name: str) -> str:
        raise EncoderNotFound("no model here", remedy="copy it back")

    monkeypatch.setattr("likewise.embedder.encoder_identity", missing)
    result = run("doctor")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-2:] == [
        "error    model: the encoder hash cannot be used: no model here",
        "         try: copy it back",
    ]
    monkeypatch.setattr("likewise.embedder.encoder_identity", lambda name: "another")
    assert "error    model: the encoder hash on this machine is another" in run("doctor").stdout


def test_doctor_prints_every_severity(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [
        Check("a", "ok", "well"),
        Check("b", "info", "news"),
        Check("c", "warning", "hm", "do this"),
        Check("d", "error", "bad \x1b[2J", "do that"),
    ]
    monkeypatch.setattr("likewise.index.doctor.check", lambda folder: checks)
    result = run("doctor")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "ok       a: well",
        "info     b: news",
        "warning  c: hm",
        "         try: do this",
        "error    d: bad \\x1b[2J",
        "         try: do that",
    ]
    lines = run("doctor", "--jsonl").stdout.splitlines()
    assert [json.loads(line)["severity"] for line in lines] == ["ok", "info", "warning", "error"]
    monkeypatch.setattr(doctor, "screen", lambda: Screen(is_terminal=True, width=80, color=True))
    assert "\x1b[31m\x1b[1merror  \x1b[0m  d" in run("doctor", color=True).stdout
