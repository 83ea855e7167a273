"""What goes to standard output and what does not; the progress bar."""

from __future__ import annotations

import io
import json
import sys

import pytest

from likewise.cli import output
from likewise.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_json_is_one_line_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    output.write_json({"text": "金鑰\n", "score": 0.5})
    assert capsys.readouterr().out == '{"text": "金鑰\\n", "score": 0.5}\n'


def test_json_is_ascii_where_the_encoding_is_not_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding="cp1252"))
    output.write_json({"text": "金鑰"})
    sys.stdout.flush()
    assert json.loads(buffer.getvalue().decode("ascii")) == {"text": "金鑰"}


def test_a_lone_surrogate_is_still_json(capsys: pytest.CaptureFixture[str]) -> None:
    output.write_json({"path": "a\udcff"})
    assert json.loads(capsys.readouterr().out) == {"path": "a\udcff"}


def test_numbers_that_json_does_not_know_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    output.write_json({"metadata": {"a": [float("nan"), 1.5, float("inf")], "b": None}})
    assert json.loads(capsys.readouterr().out) == {"metadata": {"a": [None, 1.5, None], "b": None}}


def test_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    output.write_jsonl([{"a": 1}, {"a": 2}])
    assert capsys.readouterr().out == '{"a": 1}\n{"a": 2}\n'


def test_notes_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    output.note("nothing \x1b[31mfound")
    output.warn("look")
    assert capsys.readouterr() == ("", "note: nothing \\x1b[31mfound\nwarning: look\n")


def test_columns_are_aligned_by_cells() -> None:
    assert output.columns([("金鑰", "a"), ("k", "b")]) == ["金鑰  a", "k     b"]
    assert output.columns([("k", "a long last column")], width=10) == ["k  a long…"]
    assert output.columns([]) == []


def test_progress_is_silent_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        progress.show("reading", done=1, total=2)
    assert capsys.readouterr() == ("", "")


def test_progress_draws_one_line_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "60")
    with Progress() as progress:
        progress.show("reading", done=5, total=10, detail="a\nb\x1b.md")
        progress.show("reading", done=6, total=10)  # a moment later: not drawn
    first, drawn, blank, last = terminal.getvalue().split("\r")
    assert (first, last) == ("", "")
    assert drawn == "[##########..........] reading 5/10  a b\\x1b.md"
    assert blank == " " * len(drawn)
    assert "\n" not in terminal.getvalue()
