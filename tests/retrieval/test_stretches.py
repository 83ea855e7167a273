"""White space between merged passages, and lines inside them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from likewise.index.records import Span, StoredPassage
from likewise.retrieval.stretches import stretches


@pytest.mark.parametrize(
    "text",
    [
        "First.\n\nSecond.",
        "def a():\n    return 1",
        "First.\r\n\r\nSecond\r\nline.",
        "一。二。",
        "First. Second.",
        "a\n\n\tb",
    ],
)
def test_separator_is_rebuilt(make_passage: Callable[..., StoredPassage], text: str) -> None:
    first = text.split()[0] if " " in text.split("\n")[0] else text.splitlines()[0]
    if text == "一。二。":
        first = "一。"
    rest = text[len(first) :]
    second = rest.strip()
    start = text.index(second, len(first))
    (stretch,) = stretches(
        [
            make_passage(1, first),
            make_passage(2, second, ordinal=1, start=start, line=1 + text[:start].count("\n")),
        ]
    )
    assert stretch.text.split() == text.split()
    assert stretch.text == text.replace("\r\n\r\n", "\n\n").replace("\t", " ")
    assert stretch.span == Span(0, len(text))


def test_endless_white_space_is_shortened(make_passage: Callable[..., StoredPassage]) -> None:
    (lines,) = stretches([make_passage(1, "a"), make_passage(2, "b", ordinal=1, start=5001, line=5001)])
    assert lines.text == "a\n\nb" and lines.lines == (1, 5001)
    (spaces,) = stretches([make_passage(1, "a"), make_passage(2, "b", ordinal=1, start=5001)])
    assert spaces.text == "a" + " " * 80 + "b"


def test_gap_of_a_missing_passage_is_not_bridged(make_passage: Callable[..., StoredPassage]) -> None:
    found = stretches([make_passage(1, "a"), make_passage(3, "c", ordinal=2, start=4, line=3)])
    assert [stretch.text for stretch in found] == ["a", "c"]


def test_cutting_drops_the_pieces_behind(make_passage: Callable[..., StoredPassage]) -> None:
    (whole,) = stretches(
        [
            make_passage(1, "One.\nTwo.", line=4),
            make_passage(2, "Three.\nFour.", ordinal=1, start=11, line=7),
        ]
    )
    assert whole.text == "One.\nTwo.\n\nThree.\nFour." and whole.lines == (4, 8) and not whole.cut
    beginning = whole.up_to(9)
    assert (beginning.text, beginning.lines, beginning.span) == ("One.\nTwo.", (4, 5), Span(0, 9))
    assert [piece.passage.id for piece in beginning.pieces] == [1] and beginning.cut
    further = whole.up_to(17)
    assert (further.text, further.lines, further.span) == ("One.\nTwo.\n\nThree.", (4, 7), Span(0, 17))
