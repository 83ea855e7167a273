"""`likewise pairs` on the small handbook in three languages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]


def test_counts_only(run: Run, indexed: Path) -> None:
    result = run("pairs", ".")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["kind", "pairs", "left", "out"]
    assert {line[0] for line in lines[1:-1]} <= {"title", "heading", "sentence", "neighbour"}
    assert lines[-1][1:] == ["pairs", "from", "5", "documents"]
    assert "from the index" in result.stderr and "-o FILE writes them" in result.stderr
    assert not list(indexed.glob("*.jsonl"))


def test_rows_that_train_reads(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    result = run("pairs", ".", "--kinds", "heading", "-o", str(out))
    # "Rotation" alone is one word, and means too many things to be an anchor.
    assert result.exit_code == 0 and result.stdout.endswith(f"{out}: 2 pairs from 5 documents\n")
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert rows[1] == {
        "anchor": "輪替",
        "positive": "簽署金鑰\n簽署金鑰每年輪替一次。先建立新的金鑰，再停用舊的金鑰。",
        "kind": "heading",
        "source": "zh/金鑰.md",
        "lines": [7, 7],
        "anchor_source": "zh/金鑰.md",
        "anchor_line": 5,
    }


def test_standard_output_and_json(run: Run) -> None:
    rows = [json.loads(line) for line in run("pairs", ".", "--kinds", "title", "-o", "-").stdout.splitlines()]
    assert {row["kind"] for row in rows} == {"title"}
    value = json.loads(run("pairs", ".", "--kinds", "title", "--limit", "1", "--json").stdout)
    assert value["kinds"] == {"title": 1} and value["pairs"] == 1
    assert value["over_limit"] == {"title": len(rows) - 1} and value["file"] is None


def test_a_folder_without_an_index(run: Run, tmp_path: Path) -> None:
    (tmp_path / "keys.md").write_text(
        "# Signing keys\n\nRotate the signing key once a year, not later.\n", "utf-8"
    )
    result = run("pairs", str(tmp_path), "--encoder", "hash", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["index"] is None and not (tmp_path / ".likewise").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("missing",), 1, "found nothing at missing"),
        ((".", "--kinds", "title,page"), 2, "found page"),
        ((".", "--limit", "0"), 2, "--limit"),
        ((".", "--index", "missing"), 1, "no index"),
        (("EMPTY", "--encoder", "hash"), 1, "found 0 files and none with any"),
    ],
)
def test_wrong_requests(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    result = run("pairs", *(str(tmp_path) if word == "EMPTY" else word for word in arguments))
    assert message in result.stderr and result.exit_code == status
