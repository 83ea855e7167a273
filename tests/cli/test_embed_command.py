"""`likewise embed`: every way in and every way out."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from likewise.cli import embed
from likewise.cli.terminal import Screen, cells
from likewise.embedder.hash_encoder import HashEncoder

Run = Callable[..., Result]

TEXTS = ["rotate a signing key", "輪替簽署金鑰", "恢复备份"]
ENCODER = ("--encoder", "hash:16")


@pytest.fixture
def expected() -> np.ndarray:
    return HashEncoder(16).encode_passages(TEXTS)


def test_a_pipe_gets_lines_that_numpy_reads(run: Run, expected: np.ndarray) -> None:
    result = run("embed", *TEXTS, *ENCODER)
    np.testing.assert_allclose(np.loadtxt(io.StringIO(result.stdout)), expected, atol=1e-7)


def test_json_and_json_lines(run: Run, expected: np.ndarray) -> None:
    value = json.loads(run("embed", *TEXTS, *ENCODER, "--json").stdout)
    assert value["texts"] == TEXTS
    assert value["dimension"] == 16
    np.testing.assert_array_equal(np.array(value["vectors"], dtype=np.float32), expected)
    lines = [json.loads(line) for line in run("embed", *TEXTS, *ENCODER, "--jsonl").stdout.splitlines()]
    assert [line["text"] for line in lines] == TEXTS
    np.testing.assert_array_equal(np.array([line["vector"] for line in lines], dtype=np.float32), expected)


def test_a_numpy_file_from_a_file(run: Run, tmp_path: Path, expected: np.ndarray) -> None:
    source, target = tmp_path / "texts.txt", tmp_path / "vectors.npy"
    source.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([TEXTS[0], "", *TEXTS[1:], ""]).encode())
    result = run("embed", "--file", str(source), "--out", str(target), *ENCODER)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "wrote 3 vectors of dimension 16" in result.stderr
    array = np.load(target, allow_pickle=False)
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("arguments", [[], ["--file", "-"]])
def test_standard_input_to_a_numpy_array_on_standard_output(
    arguments: list[str], run: Run, expected: np.ndarray
) -> None:
    result = run("embed", *arguments, "--out", "-", *ENCODER, input="\n".join(TEXTS))
    np.testing.assert_array_equal(np.load(io.BytesIO(result.stdout_bytes), allow_pickle=False), expected)


def test_more_texts_than_a_batch_keep_their_order(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "_BATCH", 4)
    texts = [f"text number {number}" for number in range(11)]
    result = run("embed", "--jsonl", *ENCODER, input="\n".join(texts))
    assert [json.loads(line)["text"] for line in result.stdout.splitlines()] == texts


def test_a_terminal_shows_that_it_worked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "screen", lambda: Screen(is_terminal=True, width=90, color=False))
    result = run("embed", "a" * 200, "輪替" * 60, *ENCODER)
    lines = result.stdout.splitlines()
    assert len(lines) == 2
    assert all(cells(line) == 90 and line.endswith("16 numbers") for line in lines)


def test_what_was_cut_is_reported(run: Run) -> None:
    result = run("embed", "one two three four", "one", "--encoder", "hash:16:3")
    assert "warning: 1 of 2 texts are longer than the 3 tokens" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "data", "message"),
    [
        (["text", "--file", "x"], "", "found both"),
        (["text", "--out", "x.npy", "--json"], "", "found both"),
        (["--file", "nowhere.txt"], "", "cannot read nowhere.txt"),
        ([], "", "expected at least one text"),
        ([], b"\xff\xfe\xff", "expected UTF-8"),
        (["text", "--out", "no/such/folder/x.npy"], "", "cannot write"),
        (["text", "--role", "question"], "", "question"),
    ],
)
def test_wrong_usage(arguments: list[str], data: str | bytes, message: str, run: Run) -> None:
    result = run("embed", *arguments, *ENCODER, input=data)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_an_unknown_encoder(run: Run) -> None:
    result = run("embed", "text", "--encoder", "hash:0")
    assert result.exit_code == 1
    assert "hash:DIMENSION" in result.stderr
