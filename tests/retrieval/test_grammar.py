"""The query language: what is an operator, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.index.records import DocumentState, Filter
from likewise.retrieval.grammar import ParsedQuery, literal, parse


def read(query: str) -> tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    found = parse(query)
    return found.text, found.phrases, found.excluded, found.excluded_phrases


@pytest.mark.parametrize(
    ("query", "text", "phrases"),
    [
        ('"signing key"', "signing key", ("signing key",)),
        ('rotate "signing key" yearly', "rotate signing key yearly", ("signing key",)),
        ("“signing key” 『金鑰』", "signing key 金鑰", ("signing key", "金鑰")),
        ("如何更換「簽署金鑰」？", "如何更換 簽署金鑰 ？", ("簽署金鑰",)),
        ('如何更換"簽署金鑰"', "如何更換 簽署金鑰", ("簽署金鑰",)),
        ('("signing key")', "( signing key )", ("signing key",)),
        ('"a" "b"', "a b", ("a", "b")),
        ('"to be or not to be"', "to be or not to be", ("to be or not to be",)),
        ('" key "', "key", ("key",)),
        ('"-draft path:x"', "-draft path:x", ("-draft path:x",)),
        ('"「金」"', "「金」", ("「金」",)),
    ],
)
def test_phrases(query: str, text: str, phrases: tuple[str, ...]) -> None:
    assert read(query) == (text, phrases, (), ())


@pytest.mark.parametrize(
    ("query", "text", "words", "phrases"),
    [
        ("key -draft", "key", ("draft",), ()),
        ("-draft key", "key", ("draft",), ()),
        ("key -draft, -old.", "key ,", ("draft", "old"), ()),
        ('key -"first draft"', "key", (), ("first draft",)),
        ("金鑰 -草稿", "金鑰", ("草稿",), ()),
        ("金鑰\u3000－草", "金鑰", ("草",), ()),
        ("金鑰 -「草稿」", "金鑰", (), ("草稿",)),
        ("language -C++ -node.js", "language", ("C++", "node.js"), ()),
        ("mail -e-mail", "mail", ("e-mail",), ()),
        ("tar -xzf", "tar", ("xzf",), ()),
    ],
)
def test_exclusions(query: str, text: str, words: tuple[str, ...], phrases: tuple[str, ...]) -> None:
    assert read(query) == (text, (), words, phrases)


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("key path:docs/**", "key", Filter(paths=("docs/**",))),
        ("key -path:old path:*.md", "key", Filter(paths=("*.md",), exclude_paths=("old",))),
        ('title:"signing keys" rotate', "rotate", Filter(title="signing keys")),
        ("title:「簽署 金鑰」 輪替", "輪替", Filter(title="簽署 金鑰")),
        ("輪替 title：金鑰", "輪替", Filter(title="金鑰")),
        ("key suffix:md lang:zh", "key", Filter(suffixes=(".md",), languages=("zh",))),
        ("key state:ok meta.author=Ann", "key",
         Filter(states=(DocumentState.OK,), metadata=(("author", "Ann"),))),
        ('key path:"my docs/**"', "key", Filter(paths=("my docs/**",))),
    ],
)  # fmt: skip
def test_fields(query: str, text: str, expected: Filter) -> None:
    found = parse(query)
    assert (found.text, found.filter, found.notices) == (text, expected, ())


def test_dates_compare() -> None:
    found = parse("key date>=2025-01-01 date<2026")
    assert found.text == "key"
    assert found.filter.modified_from is not None and found.filter.modified_before is not None
    assert 364 * 86400 < found.filter.modified_before - found.filter.modified_from < 367 * 86400


@pytest.mark.parametrize(
    "query",
    [
        "C++", "C# .NET", "e-mail a-b", "a - b", "-", "--", "--flag value", "ls -l", "tail -5 -40", "12:30",
        "http://example.com/a?b=c", "see https://example.com", r"C:\temp\x", "key: value", "title: keys",
        "path=/usr/bin", "PATH:x", "note:this", "foo:bar", '"', 'a" OR "b', '5" disk', 'un "balanced',
        "「開", "合」", '""', '"->"', '-"->"', "-", "－", "- draft", "-Dname=value", "-L/usr/lib", "-O2=x",
        "path:", "title:", "date>=", "NEAR(key", "keys*", "^key", "a AND b", "don't", "'single'", "?!",
        "x\u2014y", "key\x00word", "suffix :md", "-\u0301",
    ],
)  # fmt: skip
def test_what_only_looks_like_an_operator_stays_text(query: str) -> None:
    assert parse(query) == ParsedQuery(query, query)
    assert parse(query).is_literal


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("key lang:english", "expected an ISO 639-1 code"),
        ("key state:broken", "expected a state out of"),
        ("key date>=yesterday", "expected a date like"),
        ("key -title:old", "expected - in front of path only"),
    ],
)
def test_a_field_that_makes_no_sense_stays_text_and_is_named(query: str, reason: str) -> None:
    found = parse(query)
    assert found.text == query and found.is_literal
    assert len(found.notices) == 1 and reason in found.notices[0] and query.split()[1] in found.notices[0]


def test_fields_that_exclude_each_other_leave_the_last_one_text() -> None:
    found = parse("key title:a title:b")
    assert found.filter == Filter(title="a") and found.text == "key title:b"
    assert "expected one title filter" in found.notices[0]


@pytest.mark.parametrize("query", ["-draft", "-rf", "path:docs/**", "-draft path:x ?", '-"first draft"'])
def test_a_query_without_anything_to_look_for_is_text(query: str) -> None:
    found = parse(query)
    assert found.text == query and found.is_literal
    assert "nothing but exclusions and fields" in found.notices[0]


def test_a_literal_query_has_no_operators() -> None:
    assert literal('"a" -b path:c') == ParsedQuery('"a" -b path:c', '"a" -b path:c')


def test_terms_are_those_of_the_text() -> None:
    assert parse('rotate "signing keys" -draft').terms == ["rotat", "sign", "key"]


@given(st.text() | st.text(st.sampled_from('ab金 -－"“”「」:：=<>.path title:-\\/\n\ud800'), max_size=60))
def test_no_text_is_an_error(query: str) -> None:
    found = parse(query)
    assert found.query == query
    if found.is_literal and not found.notices:
        assert found.text == query
    for phrase in found.phrases:
        assert phrase in query and phrase in found.text
    for word in (*found.excluded, *found.excluded_phrases):
        assert word in query


@given(
    st.lists(
        st.from_regex(r"[A-Za-z0-9一-鿿](?:[\w.+#'一-鿿-]*[\w+#])?", fullmatch=True), min_size=1, max_size=6
    )
)
def test_plain_words_are_unchanged(words: list[str]) -> None:
    query = " ".join(words)
    assert parse(query) == ParsedQuery(query, query)


@given(
    st.lists(
        st.sampled_from(["key", "簽署", '"a b"', "-old", "path:x", "“c”", '-"d e"', "12:30"]), max_size=8
    )
)
def test_what_is_read_out_of_a_query_is_all_of_it(pieces: list[str]) -> None:
    found = parse("  ".join(pieces))
    if found.notices or not pieces:
        return
    assert found.phrases == tuple({"“c”": "c", '"a b"': "a b"}[p] for p in pieces if p in ("“c”", '"a b"'))
    assert found.excluded == ("old",) * pieces.count("-old")
    assert found.excluded_phrases == ("d e",) * pieces.count('-"d e"')
    assert found.filter.paths == ("x",) * pieces.count("path:x")
    kept = [piece.strip('"“”') for piece in pieces if piece not in ("-old", "path:x", '-"d e"')]
    assert found.text.split() == " ".join(kept).split()
