"""Text on a screen: widths, folding, and that no document can drive the terminal."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.cli.terminal import Screen, cells, clip, one_line, pad, path_text, printable, wrap


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("key", 3), ("金鑰", 4), ("ｷｰ", 2), ("Ａ", 2), ("e\u0301", 1), ("a\u200db", 2), ("🔑", 2)],
)
def test_cells(text: str, width: int) -> None:
    assert cells(text) == width


@given(st.text(max_size=60), st.integers(2, 30))
def test_clip_fits(text: str, width: int) -> None:
    clipped = clip(text, width)
    assert cells(clipped) <= width
    if cells(text) <= width:
        assert clipped == text


@given(st.text(st.sampled_from("ab 金鑰。，「」あ.-\n"), max_size=80), st.integers(4, 20))
def test_wrap_fits_and_loses_nothing_but_space(text: str, width: int) -> None:
    lines = wrap(text, width)
    # One closing mark may hang over: it must not begin a line.
    assert all(cells(line) <= width + 2 for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_wrap_cuts_what_is_longer_than_a_line() -> None:
    assert wrap("abcdefghij", 4) == ["abcd", "efgh", "ij"]


def test_wrap_keeps_closing_marks_off_the_beginning_of_a_line() -> None:
    lines = wrap("輪替簽署金鑰，然後停用舊的。", 12)
    assert lines == ["輪替簽署金", "鑰，然後停用", "舊的。"]


def test_wrap_keeps_line_feeds() -> None:
    assert wrap("a\n\nb", 10) == ["a", "", "b"]


def test_controls_are_written_out() -> None:
    assert printable("\x1b]0;title\x07\u202e") == "\\x1b]0;title\\x07\\u202e"
    assert printable("a\tb\nc") == "a\tb\nc"
    assert one_line("a\r\n b\x00") == "a b\\x00"
    assert path_text("a\nb\tc") == "a\\nb\\tc"


@given(st.text(max_size=60))
def test_printable_text_never_controls_a_terminal(text: str) -> None:
    shown = printable(text)
    assert not any(ord(character) < 32 and character not in "\t\n" for character in shown)
    assert not any(0x7F <= ord(character) < 0xA0 or 0xD800 <= ord(character) < 0xE000 for character in shown)
    shown.encode("utf-8")


def test_pad_counts_cells() -> None:
    assert pad("金", 4) == "金  "


def test_screen_of_a_pipe_has_no_colour() -> None:
    screen = Screen.of(io.StringIO())
    assert (screen.is_terminal, screen.color) == (False, False)
    assert screen.style("x", bold=True, color="red") == "x"


def test_screen_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "90")
    screen = Screen.of(FakeTerminal())
    assert screen == Screen(is_terminal=True, width=90, color=True)
    assert screen.style("x", color="red") == "\x1b[31mx\x1b[0m"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_can_be_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    assert not Screen.of(FakeTerminal()).color
