"""Phrases: what counts as the same words, and that the lexical index never hides a passage that has them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.index.analyzer import analyze
from likewise.index.catalogue import Catalogue
from likewise.index.phrases import Near, Phrase, has_words, is_plain_word
from likewise.index.view import open_view


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("to be or not to be", "He said: to be, or not to be?"),
        ("the who", "The Who played"),
        ("signing key", "a SIGNING\n   Key."),
        ("signing key", "one signing-key"),
        ("résumé", "my resume"),
        ("resume", "mon résumé"),
        ("C++", "in C++, often"),
        ("don't", "Don’t panic"),
        ("3.11", "v3.11 is out"),
        ("E1042", "error E1042: disk"),
        ("signing key", "the signing key's owner"),
        ("金鑰", "簽署金钥。"),
        ("金", "白金"),
        ("簽署金鑰", "签署\n金钥"),
        ("ＡＰＩ 金鑰", "API金鑰"),
        ("用Python寫", "我用 Python 写程式"),
        ("🔑", "a 🔑 here"),
        ("мир", "МИР"),
    ],
)
def test_same_words_in_the_same_order(phrase: str, text: str) -> None:
    assert Phrase(phrase).occurs_in([text])


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("key", "keys monkey keyed"),
        ("signing key", "key signing"),
        ("signing key", "signing a key"),
        ("C", "C++ and C#"),
        ("C#", "C and C++"),
        ("3.11", "3.11.4"),
        ("don", "don't"),
        ("not to be", "not to bee"),
        ("金鑰", "金色的鑰匙"),
        ("鑰金", "金鑰"),
    ],
)
def test_other_words(phrase: str, text: str) -> None:
    assert not Phrase(phrase).occurs_in([text])


def test_a_phrase_does_not_run_from_one_text_into_the_next() -> None:
    assert not Phrase("signing key").occurs_in(["signing", "key"])


def test_phrases_consist_of_words() -> None:
    assert not has_words("-> ... 。") and has_words("的")
    with pytest.raises(ValueError, match="a phrase with words"):
        Phrase("->")


def test_needs_are_terms_that_no_language_drops() -> None:
    assert Phrase("to be or not").needs() == []
    assert Phrase("rotate the keys").needs() == [Near(("rotat",), 0), Near(("key",), 0)]
    assert Phrase("簽署金鑰").needs() == [Near(("签", "署", "金", "钥"), 8)]
    assert Phrase("用Python寫API").needs() == [
        Near(("用",), 2), Near(("python",), 0), Near(("写",), 2), Near(("api",), 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("word", "plain"),
    [("keys", True), ("E1042", False), ("the", False), ("die", False), ("foo_bar", False), ("C++", False),
     ("node.js", False), ("parseJSON", False), ("金", False), ("two words", False), ("resumé", True)],
)  # fmt: skip
def test_plain_words(word: str, plain: bool) -> None:
    assert is_plain_word(word) is plain


_PIECES = st.lists(
    st.sampled_from(
        ["key", "Keys", "the", "to", "don't", "user's", "fooBar", "foo_bar", "C++", "C#", ".NET", "v3.11.4",
         "2024-01", "E1042", "1.5e", "e-mail", "node.js", "you're", "résumé", "Straße", "金鑰", "簽", "用",
         "3", "ключи", "x", "a.b", "RFC2119s", "who", "WHO", "🔑", "카"]
    ),
    min_size=1,
    max_size=6,
)  # fmt: skip


@given(
    _PIECES,
    st.sampled_from([" ", "\n", "", ", ", "-", "/", "'", "."]),
    st.sampled_from(["", "en", "de", "zh"]),
    st.data(),
)
def test_the_index_lets_every_text_with_the_phrase_through(
    pieces: list[str], joint: str, language: str, data: st.DataObject
) -> None:
    text = joint.join(pieces)
    first = data.draw(st.integers(0, len(pieces) - 1))
    last = data.draw(st.integers(first + 1, len(pieces)))
    phrase = Phrase(" ".join(pieces[first:last]))
    if not phrase.occurs_in([text]):
        return
    terms = analyze(text, language)
    for need in phrase.needs():
        assert set(need.terms) <= set(terms), (phrase.text, text)


@given(st.text(max_size=40))
def test_any_text_with_words_is_a_phrase_of_itself(text: str) -> None:
    if has_words(text):
        phrase = Phrase(text)
        assert phrase.occurs_in([text]) and phrase.occurs_in(["", f"x. {text} ."])


def test_passages_with_a_phrase_or_a_term(empty_index, make_document) -> None:  # type: ignore[no-untyped-def]
    with Catalogue.open(empty_index, mode="write") as catalogue:
        catalogue.apply(
            [
                make_document("a", ["To be or not to be.", "Not to be or to be."], language="en"),
                make_document("b", ["先更換簽署金鑰。", "金色的鑰匙與簽署", "簽署\n金鑰"], language="zh"),
                make_document("c", ["nothing here"], title="Not to be", headings=("Signing keys", "簽")),
            ]
        )
    with open_view(empty_index) as view:

        def ids(text: str, allowed=None) -> list[int]:  # type: ignore[no-untyped-def]
            return view.containing(Phrase(text), allowed).tolist()

        assert ids("to be or not") == [1]
        assert ids("not to be") == [1, 2, 6]
        assert ids("签署金钥") == [3, 5]
        assert ids("簽") == [3, 4, 5, 6]
        assert ids("signing keys") == [6] and ids("signing keys nothing") == []
        assert ids("not to be", view.everything()[1:3]) == [2]
        assert ids("not to be", view.everything()[:0]) == []
        assert view.containing("key").tolist() == [6]
        assert view.containing("NEAR(").tolist() == []
        assert view.everything().tolist() == [1, 2, 3, 4, 5, 6]
