"""An index whose sync was stopped says so until it is whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.embedder.protocol import Embeddings, Role
from likewise.index.doctor import check
from likewise.index.index import Index
from likewise.index.lock import WriterLock
from likewise.index.report import SyncInterrupted
from likewise.index.settings import SyncSettings
from likewise.index.unfinished import UNFINISHED, update_command
from likewise.index.view import open_view

GROUPS = SyncSettings(group_passages=2)


class Stopping(HashEncoder):
    """Embeds a group and is stopped with Ctrl-C at the next."""

    stopped = KeyboardInterrupt

    def embed(self, texts: Sequence[str], *, role: Role) -> Embeddings:
        if self.__dict__.setdefault("calls", 0):
            raise self.stopped
        self.__dict__["calls"] += 1
        return super().embed(texts, role=role)


class Failing(Stopping):
    stopped = OSError  # type: ignore[assignment]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("docs", "notes"):
        (tmp_path / name / "old").mkdir(parents=True)
        for number in range(3):
            (tmp_path / name / f"{number}.md").write_text(f"# {name} {number}\n\n金鑰 {number}.")
            (tmp_path / name / "old" / f"{number}.md").write_text(f"Old {name} {number}.")
    return tmp_path


def stop(folder: Path, *sources: str, encoder: HashEncoder | None = None) -> None:
    paths = [folder / source for source in sources]
    index = Index.open(folder / ".likewise", encoder=encoder or Stopping())
    with index, pytest.raises((SyncInterrupted, OSError)):
        index.sync(paths, settings=GROUPS)


def finish(folder: Path, *sources: str) -> None:
    with Index.open(folder / ".likewise", encoder="hash") as index:
        index.sync([folder / source for source in sources] or None)


def unfinished(folder: Path) -> list[str]:
    with Index.open(folder / ".likewise") as index:
        return [*index.status().unfinished]


def notices(folder: Path) -> tuple[str, ...]:
    with open_view(folder / ".likewise") as view:
        return view.notices


def test_a_first_sync_that_is_stopped_says_so_until_one_finishes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    stop(folder, "docs", "notes")
    assert unfinished(folder) == ["docs", "notes"]
    assert notices(folder) == (
        "the index is incomplete: reading docs, notes was stopped before the end;"
        " likewise index goes on from there",
    )
    found = {one.name: one for one in check(folder / ".likewise")}["complete"]
    assert (found.severity, found.remedy) == ("warning", "likewise index")
    assert found.message == "documents may be missing: reading docs, notes was stopped before the end"
    finish(folder)
    assert (unfinished(folder), notices(folder)) == ([], ())
    assert {one.name: one.severity for one in check(folder / ".likewise")}["complete"] == "ok"


def test_stopped_before_the_first_file_was_found(folder: Path) -> None:
    def at_once(event: object) -> None:
        raise KeyboardInterrupt

    with Index.open(folder / ".likewise", encoder="hash") as index, pytest.raises(SyncInterrupted):
        index.sync([folder], progress=at_once)
    assert unfinished(folder) == ["."]
    assert f"reading {folder.name} was stopped" in notices(folder)[0]


def test_an_error_and_a_killed_process_leave_it_noted_too(folder: Path) -> None:
    stop(folder, "docs", encoder=Failing())
    assert unfinished(folder) == ["docs"]
    program = (
        "import os; from likewise.index.index import Index\n"
        f"index = Index.open({str(folder / '.likewise')!r})\n"
        f"index.sync([{str(folder / 'notes')!r}], progress=lambda event: event.done and os._exit(9))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    assert unfinished(folder) == ["docs", "notes"]


def test_only_what_was_read_to_the_end_is_finished(folder: Path) -> None:
    stop(folder, "docs", "notes")
    finish(folder, "docs/old")
    assert unfinished(folder) == ["docs", "notes"], "a part of a source is not the source"
    finish(folder, "docs")
    assert unfinished(folder) == ["notes"]
    finish(folder, "notes")
    assert unfinished(folder) == []


def test_a_later_sync_that_is_stopped(folder: Path) -> None:
    finish(folder, "docs", "notes")
    before = (folder / ".likewise" / "catalogue.db").read_bytes()
    finish(folder)
    assert (folder / ".likewise" / "catalogue.db").read_bytes() == before, "nothing to read, nothing to note"
    for number in range(5):
        (folder / "docs" / "old" / f"{number}.md").write_text(f"New text {number}.")
    stop(folder, "docs/old")
    assert unfinished(folder) == ["docs/old"]
    finish(folder, "docs")
    assert unfinished(folder) == []


def test_a_source_that_is_forgotten_is_not_missed(folder: Path) -> None:
    stop(folder, "docs", "notes")
    with Index.open(folder / ".likewise") as index:
        index.forget(folder / "notes")
    assert unfinished(folder) == ["docs"]


def test_while_a_sync_is_at_work(folder: Path) -> None:
    stop(folder, "docs")
    with WriterLock(folder / ".likewise"):
        (notice,) = notices(folder)
    assert notice.startswith(f"the index is incomplete: process {os.getpid()} on ")
    assert notice.endswith(" is still reading docs")


def test_an_index_from_before_this_was_noted_counts_as_complete(folder: Path) -> None:
    from likewise.index.catalogue import Catalogue

    stop(folder, "docs")
    with Catalogue.open(folder / ".likewise", mode="write") as catalogue:
        catalogue.connection.execute("DELETE FROM meta WHERE key = ?", (UNFINISHED,))
    assert (unfinished(folder), notices(folder)) == ([], ())


@pytest.mark.parametrize(("name", "quoted"), [("plain", "{}"), ("with space", '"{}"')])
def test_the_command_works_where_it_is_typed(
    name: str, quoted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name / "docs").mkdir(parents=True)
    (tmp_path / name / "docs" / "a.md").write_text("Text.")
    folder = tmp_path / name / ".likewise"
    with Index.open(folder, encoder="hash") as index:
        index.sync([tmp_path / name])
    monkeypatch.chdir(tmp_path)
    assert update_command(folder) == "likewise index --index " + quoted.format(folder)
    monkeypatch.chdir(tmp_path / name / "docs")
    assert update_command(folder) == "likewise index"


def test_search_and_status_say_it(folder: Path) -> None:
    from click.testing import CliRunner

    from likewise.cli.main import cli

    stop(folder, "docs", "notes")
    place = ["--index", str(folder)]
    said = f"reading docs, notes was stopped before the end; likewise index --index {folder / '.likewise'}"

    found = CliRunner().invoke(cli, ["search", "金鑰", *place])
    assert f"the index is incomplete: {said} goes on from there" in found.stderr
    assert found.stdout and "incomplete" not in found.stdout
    value = json.loads(CliRunner().invoke(cli, ["search", "金鑰", *place, "--json"]).stdout)
    assert value["notices"][0].startswith("the index is incomplete: reading docs, notes was stopped")

    lines = CliRunner().invoke(cli, ["status", *place]).stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("incomplete ")]
    assert line.split(None, 1)[1] == f"{said} goes on from there"
    assert json.loads(CliRunner().invoke(cli, ["status", *place, "--json"]).stdout)["unfinished"] == [
        "docs",
        "notes",
    ]

    assert CliRunner().invoke(cli, ["index", *place]).exit_code == 0
    assert "incomplete" not in CliRunner().invoke(cli, ["search", "金鑰", *place]).output
    assert "incomplete" not in CliRunner().invoke(cli, ["status", *place]).stdout
