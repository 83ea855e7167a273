"""`likewise index`: where the index goes, what is said about it, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner, Result

from likewise.cli.main import cli
from likewise.index.catalogue import CATALOGUE_FILE
from likewise.index.index import Index
from likewise.index.report import SyncInterrupted, SyncReport

Run = Callable[..., Result]


def likewise(*arguments: str | Path) -> Result:
    return CliRunner().invoke(
        cli, list(map(str, arguments)), env={"LIKEWISE_DEBUG": "1", "LIKEWISE_INDEX": ""}
    )


def write(folder: Path, **texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder


def test_one_folder_gets_its_index_inside(tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", keys="Rotate keys.", 金鑰="輪替金鑰。")
    result = likewise("index", folder, "--encoder", "hash")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("2 files: 2 added; 2 passages embedded, 0 reused; ")
    assert result.stderr == ""
    assert Index.find(folder) == folder / ".likewise"


def test_several_folders_share_an_index_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a", one="first")
    write(tmp_path / "b", two="second")
    assert likewise("index", "a", "b", "--encoder", "hash").exit_code == 0
    with Index.open(tmp_path / ".likewise") as index:
        assert [source.path for source in index.sources] == ["a", "b"]


def test_a_folder_inside_an_index_updates_that_index(tmp_path: Path) -> None:
    write(tmp_path / "notes", one="first")
    inner = write(tmp_path / "notes" / "inner", two="second")
    assert likewise("index", tmp_path / "notes", "--encoder", "hash").exit_code == 0
    (inner / "two.md").write_text("changed", encoding="utf-8")
    result = likewise("index", inner)
    assert result.exit_code == 0
    assert "1 updated" in result.stdout
    assert "belongs to the index" in result.stderr
    assert not (inner / ".likewise").exists()


def test_an_index_further_up_that_does_not_hold_the_folder_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "a", one="first")
    other = write(tmp_path / "other", two="second")
    assert (
        likewise("index", tmp_path / "a", "--encoder", "hash", "--index", tmp_path / ".likewise").exit_code
        == 0
    )
    assert likewise("index", other, "--encoder", "hash").exit_code == 0
    assert (other / ".likewise").is_dir()


def test_an_index_further_up_that_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".likewise").mkdir()
    (tmp_path / ".likewise" / CATALOGUE_FILE).write_bytes(b"no database at all" * 100)
    folder = write(tmp_path / "notes", one="first")
    result = likewise("index", folder, "--encoder", "hash")
    assert result.exit_code == 0, result.output
    assert "left alone the index" in result.stderr
    assert (folder / ".likewise").is_dir()


def test_the_home_folder_is_refused_without_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, one="first")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    result = likewise("index", tmp_path, "--encoder", "hash")
    assert result.exit_code == 1
    assert "home folder" in result.stderr and "--force" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["one.md"]
    assert likewise("index", tmp_path, "--encoder", "hash", "--force").exit_code == 0


def test_without_a_folder_the_nearest_index_is_updated(
    handbook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(handbook / "zh")
    (handbook / "new.md").write_text("A new page about holidays.", encoding="utf-8")
    result = likewise("index", "--json")
    report = json.loads(result.stdout)
    assert (report["added"], report["index"]) == (1, str(handbook / ".likewise"))


def test_without_folder_and_index_it_is_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = likewise("index")
    assert result.exit_code == 2
    assert "try: likewise index .\n" in result.stderr


def test_a_missing_folder_makes_no_index(tmp_path: Path) -> None:
    result = likewise("index", tmp_path / "nowhere", "--encoder", "hash")
    assert result.exit_code == 1
    assert "nowhere" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["hash:many", "./no-such-model"])
def test_an_unknown_encoder_makes_no_index(name: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", one="first")
    result = likewise("index", folder, "--encoder", name)
    assert (result.exit_code, result.stdout) == (1, "")
    assert name in result.stderr
    assert [path.name for path in folder.iterdir()] == ["one.md"]


def test_an_empty_folder_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = likewise("index", tmp_path / "empty", "--encoder", "hash")
    assert result.exit_code == 0
    assert result.stdout.startswith("0 files: nothing to do")


def test_strict_has_status_3_if_something_was_skipped(tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", one="first", empty="")
    assert likewise("index", folder, "--encoder", "hash").exit_code == 0
    result = likewise("index", folder, "--strict")
    assert result.exit_code == 3
    assert "note: skipped empty.md: empty" in result.stderr
    (folder / "empty.md").write_text("text", encoding="utf-8")
    assert likewise("index", folder, "--strict").exit_code == 0


def test_include_and_exclude_are_remembered(tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", one="first", two="second")
    (folder / "three.txt").write_text("third", encoding="utf-8")
    first = likewise(
        "index", folder, "--encoder", "hash", "--include", "*.md", "--exclude", "two.md", "--json"
    )
    assert json.loads(first.stdout)["added"] == 1
    again = json.loads(likewise("index", folder, "--json").stdout)
    assert (again["found"], again["deleted"]) == (1, 0)


def test_chunk_settings_cut_again(handbook: Path) -> None:
    before = json.loads(likewise("status", "--index", handbook, "--json").stdout)
    result = likewise("index", "--index", handbook, "--chunk-tokens", "16", "--overlap", "4")
    assert result.exit_code == 0, result.output
    after = json.loads(likewise("status", "--index", handbook, "--json").stdout)
    assert after["chunking"]["target_tokens"] == 16
    assert after["chunking"]["overlap_tokens"] == 4
    assert after["passages"] > before["passages"]


def test_a_target_that_does_not_fit_is_wrong_usage(handbook: Path) -> None:
    result = likewise("index", "--index", handbook, "--chunk-tokens", "2")
    assert result.exit_code == 2
    assert "16" in result.stderr


@pytest.mark.parametrize(("text", "size"), [("10", 10), ("1.5k", 1500), ("20MB", 20_000_000), ("1 g", 10**9)])
def test_sizes(text: str, size: int) -> None:
    from likewise.cli.index import parse_size

    assert parse_size(None, None, text) == size  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "0", "-1", "many", "1T", "0.1"])
def test_wrong_sizes_are_wrong_usage(text: str, tmp_path: Path) -> None:
    result = likewise("index", tmp_path, "--max-file-size", text)
    assert result.exit_code == 2
    assert "expected a size such as 500k" in result.stderr


def test_large_files_are_skipped(tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", one="first", big="word " * 500)
    result = likewise("index", folder, "--encoder", "hash", "--max-file-size", "1k", "--json")
    skipped = json.loads(result.stdout)["skipped"]
    assert [(item["path"], item["state"]) for item in skipped] == [("big.md", "too-large")]
    again = likewise("index", folder, "--max-file-size", "2k")
    assert again.stdout.startswith("2 files: 2 unchanged, 1 of them skipped (1 too-large); ")
    assert again.stderr == "note: likewise status shows what was skipped before, and why\n"
    (folder / "new.md").write_text("word " * 600, encoding="utf-8")
    new = likewise("index", folder, "--max-file-size", "2k")
    assert new.stderr.splitlines() == [
        "note: skipped new.md: too-large, has 3,000 bytes, the limit is 2,000",
        "note: likewise status shows what was skipped before, and why",
        "note: likewise index --max-file-size SIZE reads larger files",
    ]
    larger = json.loads(likewise("index", folder, "--max-file-size", "3k", "--json").stdout)
    assert (larger["updated"], larger["skipped"]) == (2, [])


def test_another_encoder_is_refused_and_named_with_its_remedy(handbook: Path) -> None:
    result = likewise("index", "--index", handbook, "--encoder", "hash:32")
    assert result.exit_code == 1
    assert "hash:32" in result.stderr
    assert "--reembed" in result.stderr
    assert likewise("index", "--index", handbook, "--encoder", "hash:32", "--reembed").exit_code == 0
    status = json.loads(likewise("status", "--index", handbook, "--json").stdout)
    assert status["encoder"]["dimension"] == 32
    assert likewise("search", "key", "--index", handbook).exit_code == 0


def test_another_encoder_is_refused_before_it_is_fetched(
    handbook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(name: str | None) -> NoReturn:
        raise AssertionError(f"loads {name}")

    monkeypatch.setattr("likewise.index.encoder_slot.load_encoder", fetch)
    result = likewise("index", "--index", handbook, "--encoder", "some/encoder-that-is-elsewhere")
    assert result.exit_code == 1
    assert "was made with the encoder hash, not with some/encoder-that-is-elsewhere" in result.stderr
    assert "likewise index --encoder some/encoder-that-is-elsewhere --reembed" in result.stderr


def test_forget_drops_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a", one="first")
    write(tmp_path / "b", two="second", three="third")
    assert likewise("index", "a", "b", "--encoder", "hash").exit_code == 0
    result = likewise("index", "--forget", "b")
    assert (result.exit_code, result.stderr) == (0, "note: forgot b and its 2 documents\n")
    assert json.loads(likewise("status", "--json").stdout)["documents"] == 1
    assert (tmp_path / "b" / "two.md").is_file()
    assert likewise("index", "--forget", "b").exit_code == 2


def test_many_problems_are_cut_short(tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", **{f"empty{number}": "" for number in range(25)})
    result = likewise("index", folder, "--encoder", "hash")
    assert result.stderr.count("note: skipped") == 20
    assert "note: and 5 more; likewise status shows them" in result.stderr


def test_json_lines_end_with_the_report(tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", one="first")
    lines = [
        json.loads(line)
        for line in likewise("index", folder, "--encoder", "hash", "--jsonl").stdout.splitlines()
    ]
    assert {line["type"] for line in lines[:-1]} <= {"progress"}
    assert (lines[-1]["type"], lines[-1]["added"]) == ("report", 1)
    assert all(line["version"] == 1 for line in lines)


def test_ctrl_c_says_what_was_saved(handbook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Index, *args: object, **options: object) -> SyncReport:
        raise SyncInterrupted(SyncReport(found=6, added=2, passages=3, embedded=3))

    monkeypatch.setattr(Index, "sync", interrupted)
    result = likewise("index", "--index", handbook)
    assert result.exit_code == 130
    assert result.stdout.startswith("6 files: 2 added; 3 passages embedded, 0 reused")
    assert "what is counted above is saved" in result.stderr


def test_a_folder_that_is_no_index_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", one="first")
    result = likewise("index", folder, "--encoder", "hash", "--index", folder)
    assert result.exit_code == 1
    assert sorted(path.name for path in folder.iterdir()) == ["one.md"]


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_a_run_that_is_stopped_goes_on_from_there(tmp_path: Path) -> None:
    """A real Ctrl-C in the middle: status 130, a valid index, and nothing done twice afterwards."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(600):
        (folder / f"{number:04}.md").write_text(f"# Note {number}\n\nAbout key {number}.\n", encoding="utf-8")
    command = [sys.executable, "-m", "likewise", "index", str(folder), "--encoder", "hash", "--jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        lines = []
        for line in process.stdout:
            lines.append(json.loads(line))
            if lines[-1].get("phase") == "index":
                process.send_signal(signal.SIGINT)
                break
        lines += [json.loads(line) for line in process.stdout]
        assert "saved, and the next run goes on from there" in process.stderr.read()
    assert process.returncode == 130
    saved = lines[-1]
    assert saved["type"] == "report"
    report = json.loads(likewise("index", folder, "--encoder", "hash", "--json").stdout)
    assert report["unchanged"] == saved["added"] < 600
    assert report["added"] == 600 - saved["added"]
