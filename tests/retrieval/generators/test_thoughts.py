"""Thoughts are left out wherever the pieces are cut."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.retrieval.generators.base import TextStream
from likewise.retrieval.generators.thoughts import without_thoughts


def stream(pieces: list[str], *, thinking: bool = False, reason: str = "stop") -> TextStream:
    def source() -> Any:
        yield from pieces
        return reason

    return TextStream(without_thoughts(source(), thinking=thinking))


def cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted({place % (len(text) + 1) for place in places}), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


@given(places=st.lists(st.integers(0, 200), max_size=12))
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<think>Is it yearly? < / think></think>\n\nOnce a year [1].", "Once a year [1]."),
        ("\n<think>\n\n</think>\n每年一次 [1]。\n", "每年一次 [1]。\n"),
        ("Once <think>not a thought</think> a year.", "Once <think>not a thought</think> a year."),
        ("<thinking> is another word", "<thinking> is another word"),
        ("<think>without end", ""),
        ("<thi", "<thi"),
        ("", ""),
        ("</think> alone", "</think> alone"),
    ],
)
def test_however_it_is_cut(text: str, shown: str, places: list[int]) -> None:
    found = stream(cut(text, places), reason="length")
    assert "".join(found) == shown
    assert found.finish_reason == "length"


@given(places=st.lists(st.integers(0, 60), max_size=8))
def test_thought_opened_by_the_prompt(places: list[int]) -> None:
    assert "".join(stream(cut("yearly? </think>\nOnce.", places), thinking=True)) == "Once."
    assert "".join(stream(cut("no end", places), thinking=True)) == ""


def test_pieces_pass_through_as_they_come() -> None:
    assert list(stream(["<think>a</think>", " b", "c", "", "d"])) == ["b", "c", "", "d"]
    assert list(stream(["a", "b"])) == ["a", "b"]


def test_closing_reaches_the_source() -> None:
    closed: list[bool] = []

    def source() -> Any:
        try:
            yield "<think>"
            yield "x</think>a"
            yield "b"
        finally:
            closed.append(True)
        return "stop"

    pieces: Iterator[str] = TextStream(without_thoughts(source()))
    assert next(pieces) == "a"
    pieces.close()  # type: ignore[attr-defined]
    assert closed == [True]
