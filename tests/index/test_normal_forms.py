"""Spans of a normal form lead back to the characters that it comes from."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.index.normal_forms import Normalised

# Marks before and behind, Hangul in pieces, ligatures, squared words, half-width kana with its voice mark.
_ODD = st.text(
    st.sampled_from(
        "aé\u0301\u0327\u0344ｶ\uff9e\uff9fﬁ㌔①Å\u1100\u1161\u11a8\uffa1\uffc2각\u09c7\u09be簽𝕜 \n"
    )
)


@given(st.one_of(st.text(), _ODD))
def test_every_character_leads_back_to_what_it_comes_from(text: str) -> None:
    found = Normalised(text)
    assert found.text == unicodedata.normalize("NFKC", text)
    spans = [found.span(place, place + 1) for place in range(len(found.text))]
    assert spans == sorted(spans)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    if found.text:
        # Segments lie side by side, and each alone gives its own part of the normal form.
        segments = list(dict.fromkeys(spans))
        assert segments[0][0] == 0 and segments[-1][1] == len(text)
        joined = "".join(unicodedata.normalize("NFKC", text[start:end]) for start, end in segments)
        assert joined == found.text


def test_no_character_of_unicode_joins_the_one_before_it_unseen() -> None:
    """Every canonical pair's second character, and whatever decomposes to one, belongs to its segment."""
    seconds = set()
    for code in range(sys.maxunicode + 1):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            seconds.add(chr(int(parts[1], 16)))
    for second in sorted(seconds):
        found = Normalised("\ufb01x" + second)  # the ligature makes the text differ from its normal form
        start, end = found.span(len(found.text) - 1, len(found.text))
        assert (start, end) == (1, 3), hex(ord(second))


@pytest.mark.parametrize(
    ("text", "inside", "original"),
    [("ＡＰＩ", "PI", "ＰＩ"), ("12㎞", "km", "㎞"), ("e\u0301a", "é", "e\u0301"), ("ﬁle", "il", "ﬁl")],
)
def test_spans_cover_the_original_characters(text: str, inside: str, original: str) -> None:
    found = Normalised(text)
    place = found.text.index(inside)
    start, end = found.span(place, place + len(inside))
    assert text[start:end] == original
