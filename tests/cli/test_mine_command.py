"""`likewise mine` with the model-free encoder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from numpy.typing import NDArray

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
    (tmp_path / "usual").write_text("")
    assert out.stat().st_mode == (tmp_path / "usual").stat().st_mode  # for whoever may read other files
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


def test_a_cross_encoder_filters(pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake:
        """Holds the encryption key for an answer, whatever the question."""

        def __init__(self, name: str) -> None:
            assert name == "some/reranker"

        def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
            return np.array([5 if "encryption" in text else len(text) / 100 for text in texts], np.float32)

    monkeypatch.setattr("likewise.retrieval.rerank.cross_encoder.CrossEncoderReranker", Fake)
    taken = {}
    for options in ((), ("--cross-encoder", "some/reranker")):
        out = tmp_path / "mined.jsonl"
        result = run("mine", pairs, "-o", out, "--encoder", "hash", *options, "--margin", 0.05)
        assert result.exit_code == 0, result.output
        taken[options] = {row["negative_1"] for row in map(json.loads, out.read_text("utf-8").splitlines())}
    encryption = PAIRS["rotate the encryption key"]
    assert encryption in taken[()] and encryption not in taken[("--cross-encoder", "some/reranker")]


def test_nothing_is_taken_from_a_document_of_the_anchor(tmp_path: Path) -> None:
    texts = {
        "en/keys.md": ("rotate the signing key", "The signing key is rotated by its owner once a year."),
        "zh/keys.md": ("輪替金鑰", "Rotate the signing key: 每年輪替一次。"),
        "en/more.md": ("lunch", "Lunch with the signing key is at noon."),
    }
    rows = [
        {"anchor": anchor, "positive": positive, "source": key, "anchor_source": key}
        for key, (anchor, positive) in texts.items()
    ]
    rows.append(rows[0] | {"anchor": "once a year", "positive": "Rotate the signing key yearly."})
    for placed in (True, False):
        path, out = tmp_path / "placed.jsonl", tmp_path / "out" / f"{placed}.jsonl"
        keep = list(rows[0]) if placed else ["anchor", "positive"]
        path.write_text("\n".join(json.dumps({name: row[name] for name in keep}) for row in rows), "utf-8")
        result = run("mine", path, "-o", out, "--encoder", "hash", "--relative-margin", 0, "--mode", "dense")
        assert result.exit_code == 0, result.output
        negatives = {
            row["anchor"]: row["negative_1"] for row in map(json.loads, out.read_text("utf-8").splitlines())
        }
        found = negatives["rotate the signing key"]
        assert (found == texts["en/more.md"][1]) is placed


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
