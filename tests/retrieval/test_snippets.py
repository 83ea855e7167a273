"""Snippets: the right sentence, and marks that cover the words of the original exactly."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.index.analyzer import analyze_query
from likewise.retrieval.snippets import WIDTH, Highlighter, Snippet


def marked(snippet: Snippet) -> list[str]:
    return [snippet.text[start:end] for start, end in snippet.marks]


def snippet(query: str, text: str, language: str = "", **counts: int) -> Snippet:
    return Highlighter(analyze_query(query), counts, 100).snippet_of(text, language)


@pytest.mark.parametrize(
    ("query", "text", "language", "shown", "words"),
    [
        ("rotate keys", "Hello there. Rotating the key is easy! Bye.", "en",
         "Rotating the key is easy!", ["Rotating", "key"]),
        ("輪替金鑰", "金庫在地下室。金鑰每年輪替一次。完。", "zh", "金鑰每年輪替一次。", ["金鑰", "輪替"]),
        ("轮替金钥", "金庫在地下室。金鑰每年輪替一次。完。", "zh", "金鑰每年輪替一次。", ["金鑰", "輪替"]),
        ("簽署金鑰", "先更換簽署金鑰，再停用。", "zh", "先更換簽署金鑰，再停用。", ["簽署金鑰"]),
        ("鑰", "金鑰匙", "zh", "金鑰匙", ["鑰"]),
        ("api", "請用 ＡＰＩ 金鑰。", "zh", "請用 ＡＰＩ 金鑰。", ["ＡＰＩ"]),
        ("resume", "Send your résumé.", "en", "Send your résumé.", ["résumé"]),
        ("json", "Use parseJSON.\nOr not.", "en", "Use parseJSON.", ["JSON"]),
        ("to be or not to be", "I say: to be.", "en", "I say: to be.", ["to", "be"]),
        ("kangaroo", "First one. Second one.", "en", "First one.", []),
        ("key", "# Keys\n\nAll about\n  the key.", "en", "All about the key.", ["key"]),
        ("", "One. Two.", "en", "One.", []),
        ("key", "", "en", "", []),
        ("key", " \n ", "en", "", []),
    ],
)  # fmt: skip
def test_the_sentence_and_its_marks(
    query: str, text: str, language: str, shown: str, words: list[str]
) -> None:
    found = snippet(query, text, language)
    assert (found.text, marked(found)) == (shown, words)


def test_rare_words_count_more_than_common_ones() -> None:
    text = "The key turns. The zebra runs."
    assert snippet("key zebra", text, key=90, zebra=1).text == text  # both, as they fit
    narrow = Highlighter(["key", "zebra"], {"key": 90, "zebra": 1}, 100).snippet_of(text, width=20)
    assert narrow.text == "The zebra runs."
    narrow = Highlighter(["key", "zebra"], {"key": 1, "zebra": 90}, 100).snippet_of(text, width=20)
    assert narrow.text == "The key turns."


def test_a_long_sentence_is_cut_around_the_words() -> None:
    text = "word " * 200 + "and the zebra runs " + "more " * 200
    found = snippet("zebra", text)
    assert found.text.startswith("…word") and found.text.endswith("more…")
    assert marked(found) == ["zebra"] and len(found.text) <= WIDTH
    chinese = "字" * 400 + "金鑰" + "文" * 400
    found = snippet("金鑰", chinese)
    assert marked(found) == ["金鑰"] and found.text[0] == found.text[-1] == "…"
    assert len(found.text) * 2 <= WIDTH + 4


def test_one_word_longer_than_the_snippet_is_cut() -> None:
    found = snippet("zebra", "x" * 1000)
    assert found.text == "x" * (WIDTH - 2) + "…"


def test_white_space_is_folded_and_marks_move_along() -> None:
    found = snippet("zebra runs", "The\t zebra\n   really\n runs fast.")
    assert found.text == "The zebra really runs fast." and marked(found) == ["zebra", "runs"]


def test_html_is_escaped() -> None:
    found = snippet("script", "<script>alert('x') & more</script>")
    assert found.to_html() == (
        "&lt;<mark>script</mark>&gt;alert(&#x27;x&#x27;) &amp; more&lt;/<mark>script</mark>&gt;"
    )


def test_json() -> None:
    assert Snippet("a key", ((2, 5),)).to_json() == {"text": "a key", "marks": [[2, 5]]}


_TEXT = st.text(
    st.characters(codec="utf-8") | st.sampled_from("ab key金鑰簽. \n。\u0301ＡﬁＫ<&"), max_size=400
)


@given(_TEXT, st.sampled_from(["key", "金鑰", "a b", "簽", "ﬁ"]), st.integers(20, 120))
def test_every_text_has_a_sound_snippet(text: str, query: str, width: int) -> None:
    highlighter = Highlighter(analyze_query(query), {}, 10)
    found = highlighter.snippet_of(text, width=width)
    assert len(found.text) <= width + 1 and not re.search(r"[^\S ]|  ", found.text)
    last = -1
    for start, end in found.marks:
        assert last < start < end <= len(found.text)
        last = end
    assert found.text.strip("…").replace(" ", "") in re.sub(r"\s+", "", text)
    assert bool(found.marks) == bool(highlighter.marks(text)) or width < 60
    plain = re.sub(r"</?mark>", "", found.to_html())
    assert html.unescape(plain) == found.text
    assert "".join(piece for piece, _ in found.parts()) == found.text
