from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from likewise.index.catalogue import Catalogue
from likewise.index.index import Index
from likewise.index.rows import WriteDocument
from likewise.index.terms import describing_words
from likewise.index.view import open_view

MakeDocument = Callable[..., WriteDocument]


def found(folder: Path, term: str) -> list[str]:
    with open_view(folder) as view:
        stored = view.passages(list(view.lexical([term], 10).ids))
        return sorted(passage.passage.text for passage in stored.values())


def apply(folder: Path, *changes: WriteDocument) -> None:
    with Catalogue.open(folder, mode="write") as catalogue:
        catalogue.apply(changes)


def test_only_what_describes_the_document_counts() -> None:
    metadata = {"Keywords": "rotation", "tags": ["keys", 3, None], "author": "Ann", "draft": True}
    assert describing_words(metadata) == "rotation\nkeys"
    assert describing_words({"summary": {"en": "nested"}}) == ""
    assert len(describing_words({"description": "long " * 10_000})) == 2000


def test_tags_lead_to_the_first_passage_only(empty_index: Path, make_document: MakeDocument) -> None:
    apply(empty_index, make_document("keys.md", ["first", "second"], metadata={"tags": ["escrow"]}))
    assert found(empty_index, "escrow") == ["first"]


def test_tags_that_change_are_found_though_no_text_did(
    empty_index: Path, make_document: MakeDocument
) -> None:
    apply(empty_index, make_document("keys.md", ["first", "second"], metadata={"tags": ["escrow"]}))
    apply(empty_index, make_document("keys.md", ["first", "second"], metadata={"tags": ["vault"]}))
    assert (found(empty_index, "escrow"), found(empty_index, "vault")) == ([], ["first"])


def test_tags_follow_whichever_passage_comes_first(empty_index: Path, make_document: MakeDocument) -> None:
    tags = {"tags": ["escrow"]}
    apply(empty_index, make_document("keys.md", ["first", "second"], metadata=tags))
    apply(empty_index, make_document("keys.md", ["preface", "first", "second"], metadata=tags))
    assert found(empty_index, "escrow") == ["preface"]
    apply(empty_index, make_document("keys.md", ["second"], metadata=tags))
    assert found(empty_index, "escrow") == ["second"]


def test_tags_survive_a_new_analyser(empty_index: Path, make_document: MakeDocument) -> None:
    apply(empty_index, make_document("keys.md", ["first", "second"], metadata={"tags": ["escrow"]}))
    with Catalogue.open(empty_index, mode="write") as catalogue:
        catalogue.set_meta({"analyzer_version": "older"})
    with Catalogue.open(empty_index, mode="write") as catalogue:
        catalogue.refresh_lexical()
    assert found(empty_index, "escrow") == ["first"]


def test_front_matter_is_searched_but_no_part_of_a_passage(tmp_path: Path) -> None:
    text = "---\r\ntitle: 金鑰\r\ntags: [保管, escrow]\r\n---\r\n\r\nRotate them yearly.\r\n\r\nThen stop."
    (tmp_path / "keys.md").write_bytes(text.encode())
    with Index.open(tmp_path / ".likewise", encoder="hash") as index:
        index.sync([tmp_path])
        with index.view() as view:
            (stored,) = view.document_passages("keys.md")
    assert stored.passage.text == "Rotate them yearly.\r\n\r\nThen stop."
    assert stored.passage.lines == (6, 8)
    assert stored.passage.span.of(text) == stored.passage.text
    assert stored.metadata == {"title": "金鑰", "tags": ["保管", "escrow"]}
    for term in ("escrow", "保管", "金钥"):
        assert found(tmp_path / ".likewise", term) == [stored.passage.text]
    assert found(tmp_path / ".likewise", "tag") == []
