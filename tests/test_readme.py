"""The README shows what really happens, in both languages."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from likewise.cli.main import cli

ROOT = Path(__file__).resolve().parent.parent
ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh-TW.md"


def blocks(readme: Path) -> list[str]:
    return re.findall(r"^```.*?^```", readme.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def session() -> list[tuple[str, list[str]]]:
    """Commands of the console block, each with the lines that are shown below it."""
    [console] = [block for block in blocks(ENGLISH) if block.startswith("```console")]
    steps: list[tuple[str, list[str]]] = []
    for line in console.splitlines()[1:-1]:
        if line.startswith("$ "):
            steps.append((line[2:], []))
        else:
            steps[-1][1].append(line)
    return steps


def test_both_languages_show_the_same_commands() -> None:
    assert blocks(ENGLISH) == blocks(CHINESE)


def test_both_languages_show_the_same_figures_and_links() -> None:
    def facts(readme: Path) -> tuple[list[str], list[str]]:
        text = readme.read_text(encoding="utf-8")
        rows = [
            sorted(re.findall(r"[0-9]+(?:[.,][0-9]+)*", line))
            for line in text.splitlines()
            if line.startswith("|")
        ]
        links = re.findall(r"\]\((?!README)([^)]+)\)", text)
        return [number for row in rows for number in row], links

    assert facts(ENGLISH) == facts(CHINESE)


def test_every_link_leads_somewhere() -> None:
    for readme in (ENGLISH, CHINESE):
        for target in re.findall(r"\]\(([^)#]+)\)", readme.read_text(encoding="utf-8")):
            assert (ROOT / target).exists(), target


def test_the_session_is_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "handbook"
    shutil.copytree(ROOT / "examples" / "handbook", folder, ignore=shutil.ignore_patterns(".likewise"))
    monkeypatch.chdir(tmp_path)
    for command, shown in session():
        words = shlex.split(command)
        if words[0] == "cd":
            monkeypatch.chdir(words[1])
            continue
        result = CliRunner().invoke(cli, words[1:])
        assert result.exit_code == 0, f"{command}: {result.output}"
        for line in shown:
            # Times and scores differ a little between machines; "..." stands for what is left out.
            pattern = re.sub(r"\d+\\\.\d+", r"\\d+\\.\\d+", re.escape(line)).replace(r"\.\.\.", ".*")
            assert re.search(pattern, result.output), f"{command} does not print {line!r}:\n{result.output}"


def test_labels_for_reviews_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands for reviews run as they stand there; the whole encoder learns in other tests."""
    words = {"Positive": ("a joy", "wonderful", "moving"), "Negative": ("dull", "a waste", "awful")}
    for name, count in (("train", 12), ("test", 4)):
        long = "and the plot goes on, " * 80
        rows = [
            f'"The film is {words[label][at % 3]}, {long * (at % 2)}scene {at}.",{label}'
            for at in range(count)
            for label in words
        ]
        (tmp_path / "imdb").mkdir(exist_ok=True)
        (tmp_path / "imdb" / f"{name}.csv").write_text("\n".join(["review,sentiment", *rows]), "utf-8")
    monkeypatch.chdir(tmp_path)
    [block] = [block for block in blocks(ENGLISH) if block.startswith("```sh")]
    train, ask, table, whole = block.splitlines()[1:-1]
    result = CliRunner().invoke(cli, shlex.split(train)[1:])
    assert result.exit_code == 0, result.output
    assert "test, 8 examples, with 95% intervals" in result.output and "cut" not in result.stderr
    asked = CliRunner().invoke(cli, shlex.split(ask)[1:])
    assert asked.stdout.startswith(("Positive  0.", "Negative  0.")), asked.output
    command, target = table.split(" > ")
    rows = CliRunner().invoke(cli, shlex.split(command)[1:]).stdout.splitlines()
    assert len(rows) == 8 and target == "predictions.jsonl" and rows[0].startswith('{"version": 1')
    assert shlex.split(whole)[:3] == ["likewise", "finetune", "classify"]
