"""`likewise mine` with the model-free encoder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from likewise.cli.main import cli

PAIRS = {
    "rotate the signing key": "Rotate the signing key once a year.",
    "rotate the encryption key": "Rotate the encryption key once a month.",
    "when is lunch": "Lunch is at noon.",
    "簽署金鑰": "簽署金鑰每年輪替一次。",
}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], prog_name="likewise")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    lines = [json.dumps({"question": q, "answer": a}, ensure_ascii=False) for q, a in PAIRS.items()]
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_rows_with_negatives(pairs: Path, tmp_path: Path) -> None:
    out = tmp_path / "mined.jsonl"
    result = run("mine", pairs, "-o", out, "--encoder", "hash", "--ranks", 1, 4, "--json")
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert list(value) == ["version", "file", "rows", "left_out", "positives", "too_close"]
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert len(rows) == value["rows"] and value["rows"] + value["left_out"] == 4
    by_anchor = {row["anchor"]: row for row in rows}
    first = by_anchor["rotate the signing key"]
    assert first["negative_1"] == PAIRS["rotate the encryption key"]
    assert all(row["negative_1"] != row["positive"] for row in rows)


def test_a_corpus_gives_more_candidates(pairs: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.csv"
    corpus.write_text("text\nLunch is never late.\n", "utf-8")
    out = tmp_path / "mined.jsonl"
    result = run("mine", pairs, "-o", out, "--encoder", "hash", "--mode", "dense", "--corpus", corpus)
    assert result.exit_code == 0, result.output
    assert "Lunch is never late." in out.read_text("utf-8") and "rows; passed over" in result.stdout
    bad = tmp_path / "bad.csv"
    bad.write_text("title\nx\n", "utf-8")
    refused = run("mine", pairs, "-o", out, "--encoder", "hash", "--corpus", bad)
    assert refused.exit_code == 2 and "a column text or passage" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--ranks", 5, 4), 2, "ranks 1 <= first <= last"),
        (("--column", "anchor"), 2, "--column ROLE=NAME"),
        (("--negatives", 9), 1, "no row has 9 negatives"),
        (("--mode", "fuzzy"), 2, "fuzzy"),
    ],
)
def test_wrong_requests(
    pairs: Path, tmp_path: Path, arguments: tuple[object, ...], status: int, message: str
) -> None:
    result = run("mine", pairs, "-o", tmp_path / "out.jsonl", "--encoder", "hash", *arguments)
    assert message in result.stderr and result.exit_code == status
