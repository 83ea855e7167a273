from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.index.sentences import sentence_starts


def sentences(text: str) -> list[str]:
    return [text[a:b] for a, b in pairwise([0, *sentence_starts(text), len(text)])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four… Five", ["One. ", "Two! ", "Three? ", "Four… ", "Five"]),
        ('He said "Stop." Then he left.', ['He said "Stop." ', "Then he left."]),
        ("It costs 3.14 or so.Next", ["It costs 3.14 or so.Next"]),
        ("See e.g. Smith, i.e. him, in the U.S. Senate.", ["See e.g. Smith, i.e. him, in the U.S. Senate."]),
        ("Dr. No and J. Bond met.", ["Dr. No and J. Bond met."]),
        ("Version approx. two. Done.", ["Version approx. two. ", "Done."]),
        ("1. First\n2. Second", ["1. First\n2. Second"]),
        ("It was 1999. Then", ["It was 1999. ", "Then"]),
        (
            "金鑰要輪換。沒有人知道！真的？好；再見",
            ["金鑰要輪換。", "沒有人知道！", "真的？", "好；", "再見"],
        ),
        ("他说：“好。”她说：「不。」完", ["他说：“好。”", "她说：「不。」", "完"]),
        ("鍵を回す。終わり", ["鍵を回す。", "終わり"]),
        ("هل تعرف؟ نعم.", ["هل تعرف؟ ", "نعم."]),
        ("यह है। वह है।", ["यह है। ", "वह है।"]),
        ("end.  \n\n Next", ["end.  \n\n ", "Next"]),
        ("...", ["..."]),
        ("", [""]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(
    text=st.text(alphabet='.。!？ \n"」a1鍵', max_size=60),
    cuts=st.tuples(st.integers(0, 60), st.integers(0, 60)),
)
def test_starts_ascend_inside_the_range(text: str, cuts: tuple[int, int]) -> None:
    start, end = sorted(min(cut, len(text)) for cut in cuts)
    found = list(sentence_starts(text, start, end))
    assert found == sorted(set(found))
    assert all(start < offset < end and not text[offset].isspace() for offset in found)
