"""The query language at work, in every mode: what must occur, what must not, and what is corrected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from likewise.index.index import Index
from likewise.index.records import Filter
from likewise.retrieval.grammar import literal
from likewise.retrieval.hits import Mode
from likewise.retrieval.search import Retriever

MakeIndex = Callable[..., Any]
MODES: tuple[Mode, ...] = ("dense", "lexical", "hybrid")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("handbook")
    documents = {
        "docs/keys.md": "# Signing keys\n\nRotate the signing key yearly. To be or not to be secret.",
        "docs/draft.md": "# Draft\n\nSigning keys of this draft are rotated, not to be kept.",
        "docs/zh.md": "# 簽署金鑰\n\n先更換簽署金鑰，再停用舊的。",
        "docs/jian.md": "# 备份\n\n备份每天运行。签署金钥另外保存。",
        "old/keys.md": "# Old\n\nKey signing is a party. The key is signing.",
    }
    for name, text in documents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    with Index.open(folder / ".likewise", encoder="hash") as opened:
        opened.sync([folder])
        yield opened


def paths(index: Any, query: Any, mode: Mode, **options: Any) -> set[str]:
    return {hit.path for hit in Retriever(index).search(query, mode=mode, **options)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"signing key"', {"docs/keys.md"}),
        ('"signing keys"', {"docs/keys.md", "docs/draft.md"}),  # in a title and in a text
        ('"to be or not to be"', {"docs/keys.md"}),
        ('rotate "not to be"', {"docs/keys.md", "docs/draft.md"}),
        ("signing -draft", None),
        ('key -"key signing"', None),
        ("「簽署金鑰」", {"docs/zh.md", "docs/jian.md"}),
        ("“签署金钥” -备份", {"docs/zh.md"}),
        ('"金"', {"docs/zh.md", "docs/jian.md"}),
        ("key path:old", {"old/keys.md"}),
        ("key title:signing", {"docs/keys.md"}),
        ("key title:「簽署金鑰」", None),
        ("key -path:docs path:*.md", {"old/keys.md"}),
        ('"signing key" -secret', set()),
    ],
)
def test_conditions_hold_in_every_mode(index: Any, mode: Mode, query: str, expected: set[str] | None) -> None:
    found = paths(index, query, mode)
    if expected is None:
        everything = {"docs/keys.md", "docs/draft.md", "docs/zh.md", "docs/jian.md", "old/keys.md"}
        excluded = {
            "signing -draft": everything - {"docs/draft.md"},
            'key -"key signing"': everything - {"old/keys.md"},
            "key title:「簽署金鑰」": {"docs/zh.md"},
        }
        assert found <= excluded[query]
        assert mode == "lexical" or found == excluded[query]
    elif mode == "lexical":
        assert found <= expected and (found or not expected or "path:" in query or "title:" in query)
    else:
        assert found == expected


def test_a_phrase_that_occurs_nowhere_is_named(index: Any) -> None:
    result = Retriever(index).search('"key rotation party"')
    assert not result and result.notices == ("no passage contains the phrase 'key rotation party'",)
    result = Retriever(index).search('"to be or not" path:old')
    assert result.notices == ("no passage contains the phrase 'to be or not', given the other conditions",)


def test_excluding_everything_is_named(index: Any) -> None:
    result = Retriever(index).search('"signing key" -yearly')
    assert result.notices == ("every passage contains what the query excludes",)


def test_an_excluded_word_stands_for_its_inflections(index: Any) -> None:
    assert "docs/draft.md" not in paths(index, "signing -rotate", "dense")
    assert "docs/keys.md" not in paths(index, "signing -rotating", "dense")


def test_filters_of_caller_and_query_must_both_hold(index: Any) -> None:
    only = Filter(paths=("docs/**",))
    assert paths(index, "key path:keys.md", "dense", filter=only) == {"docs/keys.md"}
    result = Retriever(index).search("key path:old/**", filter=only)
    assert result.notices == ("the filter matches no passage",)


@pytest.mark.parametrize("mode", MODES)
def test_a_literal_query_has_no_operators(index: Any, mode: Mode) -> None:
    result = Retriever(index).search(literal('"signing key" -draft path:nowhere'), mode=mode)
    assert {hit.path for hit in result} >= {"docs/keys.md", "docs/draft.md"}
    assert result.query == result.text == '"signing key" -draft path:nowhere'


def test_the_text_is_the_query_without_its_operators(index: Any) -> None:
    result = Retriever(index).search('  rotate "signing key" -draft path:docs ', k=1)
    assert result.query == 'rotate "signing key" -draft path:docs'
    assert result.text == "rotate signing key"


def test_a_mistyped_word_is_corrected_on_the_lexical_side(index: Any) -> None:
    result = Retriever(index).search("signnig", mode="lexical")
    assert result.notices == ("nothing contains 'signnig'; searched for 'signing'",)
    assert {hit.path for hit in result} == {"docs/keys.md", "docs/draft.md", "old/keys.md"}
    assert "signing" in " ".join(Retriever(index).search("signnig").notices)
    assert Retriever(index).search("signnig", mode="dense").notices == ()
    result = Retriever(index).search('"signnig"', mode="lexical")
    assert result.notices == ("no passage contains the phrase 'signnig'",)


def test_a_pasted_text_is_not_corrected(index: Any) -> None:
    text = " ".join("signnig" + letter * 3 for letter in "abcdefghijklmnopqrstuvwxyz")
    assert not any("searched for" in notice for notice in Retriever(index).search(text).notices)


def test_fields_that_make_no_sense_are_named(index: Any) -> None:
    result = Retriever(index).search("key lang:english")
    assert "lang:english was searched for as text" in result.notices[0]


@pytest.mark.parametrize("mode", MODES)
def test_hits_come_with_snippets(index: Any, mode: Mode) -> None:
    result = Retriever(index).search("rotating keys", mode=mode)
    (hit,) = [hit for hit in result if hit.path == "docs/keys.md"]
    snippet = result.snippet(hit)
    assert snippet is not None and snippet.text == "Rotate the signing key yearly."
    assert [snippet.text[a:b] for a, b in snippet.marks] == ["Rotate", "key"]
    assert result[:1].snippet(hit) == snippet
    assert result.to_json()["hits"][result.hits.index(hit)]["snippet"] == snippet.to_json()  # type: ignore[index, call-overload]


def test_a_corrected_word_is_marked(index: Any) -> None:
    result = Retriever(index).search("signnig", mode="lexical", k=1)
    snippet = result.snippet(result[0])
    assert snippet is not None and snippet.marks


def test_lexical_search_never_asks_for_the_encoder_whatever_the_query(make_index: MakeIndex) -> None:
    index = make_index()
    Retriever(index).search(
        '"signing key" -draft -"out of date" path:docs/** signnig', mode="lexical"
    ).to_json()
    assert index.encoder_uses == 0


def test_similar_passages_have_no_snippet(index: Any) -> None:
    result = Retriever(index).similar("docs/keys.md")
    assert result.snippet(result[0]) is None and result.to_json()["hits"][0]["snippet"] is None  # type: ignore[index, call-overload]
