"""`likewise get`: passages and lines, and nothing outside the sources."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]


def get_json(run: Run, *arguments: str) -> dict[str, object]:
    result = run("get", *arguments, "--json")
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert isinstance(value, dict)
    return value


def test_a_document(run: Run, indexed: Path) -> None:
    assert run("get", "keys.md").stdout == (indexed / "keys.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("target", "lines"),
    [("keys.md:1", (1, 1)), ("keys.md:3-5", (3, 5)), ("keys.md:9-", (9, 11)), ("keys.md:10-99", (10, 11))],
)
def test_lines(target: str, lines: tuple[int, int], run: Run, indexed: Path) -> None:
    value = get_json(run, target)
    text = (indexed / "keys.md").read_text(encoding="utf-8").split("\n")
    assert value["lines"] == list(lines)
    assert value["text"] == "\n".join(text[lines[0] - 1 : lines[1]])
    assert (value["file"], value["passage_id"]) == ("unchanged", None)


@pytest.mark.parametrize("target", ["keys.md:0", "keys.md:12", "keys.md:5-3"])
def test_lines_that_are_not_there(target: str, run: Run) -> None:
    result = run("get", target)
    assert result.exit_code == 2
    assert "expected lines between 1 and 11" in result.stderr


def test_a_path_as_seen_from_the_working_directory(
    run: Run, indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(indexed / "zh")
    assert get_json(run, "../keys.md:1")["text"] == "# Signing keys"
    assert get_json(run, "金鑰.md:1")["text"] == "# 簽署金鑰"
    assert get_json(run, str(indexed / "keys.md") + ":1")["path"] == "keys.md"


def test_a_passage_by_its_id(run: Run) -> None:
    (hit,) = json.loads(run("search", "rotate the signing key", "-k", "1", "--json").stdout)["hits"]
    value = get_json(run, str(hit["passage_id"]))
    for key in ("passage_id", "path", "lines", "page", "heading", "text"):
        assert value[key] == hit[key]
    assert value["file"] == "unchanged"


def test_a_file_named_like_a_number_is_a_file(
    run: Run, handbook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(handbook)
    (handbook / "1").write_text("a file named one\n", encoding="utf-8")
    assert run("index").exit_code == 0
    assert get_json(run, "1")["path"] == "1"


def test_an_unknown_passage_and_an_unknown_path(run: Run) -> None:
    assert "no passage 9999" in run("get", "9999").stderr
    result = run("get", "key.md")
    assert result.exit_code == 2
    assert "try: likewise get keys.md" in result.stderr


def test_a_changed_file_is_reported(run: Run, handbook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(handbook)
    (hit,) = json.loads(run("search", "rotate the signing key", "-k", "1", "--json").stdout)["hits"]
    (handbook / "keys.md").write_text("# All new\n", encoding="utf-8")
    result = run("get", "keys.md")
    assert result.stdout == "# All new\n"
    assert "keys.md changed since it was indexed" in result.stderr
    passage = get_json(run, str(hit["passage_id"]))
    assert (passage["file"], passage["text"]) == ("changed", hit["text"])


def test_a_missing_file(run: Run, handbook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(handbook)
    (hit,) = json.loads(run("search", "rotate the signing key", "-k", "1", "--json").stdout)["hits"]
    (handbook / "keys.md").unlink()
    result = run("get", str(hit["passage_id"]))
    assert result.exit_code == 0
    assert "keys.md is gone; this is what the index holds of it" in result.stderr
    gone = run("get", "keys.md")
    assert gone.exit_code == 1
    assert "keys.md was deleted or moved after it was indexed" in gone.stderr
    assert "try: likewise index, to" in gone.stderr


def test_what_is_not_in_the_index_is_not_read(
    run: Run, handbook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(handbook)
    secret = tmp_path / "secret.md"
    secret.write_text("the secret", encoding="utf-8")
    for target in ("../secret.md", str(secret), ".likewise/catalogue.sqlite3", "zh/../../secret.md"):
        result = run("get", target)
        assert result.exit_code == 2, target
        assert "secret" not in result.stdout


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_a_folder_that_became_a_link_out_of_the_sources_is_not_followed(
    run: Run, handbook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(handbook)
    outside = tmp_path / "outside"
    (handbook / "zh").rename(outside)
    (outside / "金鑰.md").write_text("the secret", encoding="utf-8")
    (handbook / "zh").symlink_to(outside, target_is_directory=True)
    result = run("get", "zh/金鑰.md")
    assert result.exit_code == 1
    assert "leads out of the folders that were indexed" in result.stderr
    assert result.stdout == ""


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_a_file_that_became_a_link_is_not_followed(
    run: Run, handbook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(handbook)
    secret = tmp_path / "secret.md"
    secret.write_text("the secret", encoding="utf-8")
    (handbook / "keys.md").unlink()
    (handbook / "keys.md").symlink_to(secret)
    result = run("get", "keys.md")
    assert result.exit_code == 1
    assert result.stdout == ""
