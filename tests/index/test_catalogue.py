"""Documents, passages, vectors and settings: they come back as they went in, and what is gone is gone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.errors import (
    EncoderError,
    EncoderMismatch,
    IndexFolderError,
)
from likewise.index import catalogue as catalogue_module
from likewise.index.catalogue import CATALOGUE_FILE, Catalogue
from likewise.index.files import FileSystem
from likewise.index.records import DocumentState, Filter, Passage, Span
from likewise.index.rows import (
    DeleteDocument,
    PassageRow,
    RenameDocument,
    TouchDocument,
    WriteDocument,
)
from likewise.index.view import open_view

from .cataloguing import apply, found, ids_of


def test_a_document_comes_back_as_it_went_in(empty_index, make_document):
    document = make_document(
        "docs/鑰匙 key\n.md",
        ["first passage", "第二段"],
        path_bytes=b"docs/\xff.md",
        headings=("Guide", "Keys"),
        title="Guide",
        language="en",
        encoding="utf-8",
        lossy=2,
        notes=("page 3 could not be read",),
        metadata={"author": ["Ann", "Bo"], "draft": False},
        reader="markdown/2",
    )
    apply(empty_index, document)
    with open_view(empty_index) as view:
        (row,) = view.documents()
        for name in ("key", "path_bytes", "size", "mtime_ns", "content_hash", "state", "reason", "reader"):
            assert getattr(row, name) == getattr(document, name)
        for name in ("title", "language", "encoding", "lossy", "notes", "metadata"):
            assert getattr(row, name) == getattr(document, name)
        assert row.passages == 2
        stored = view.document_passages(document.key)
        assert [one.passage for one in stored] == [one.passage for one in document.passages]
        assert stored[0].metadata == document.metadata
        expected = np.stack([one.vector for one in document.passages])
        assert np.array_equal(view.vectors([stored[1].id, stored[0].id]), expected[::-1])


def test_unchanged_passages_keep_id_and_vector_and_others_get_new_ids(empty_index, make_document):
    apply(empty_index, make_document("a", ["one", "two", "three"]))
    before = ids_of(empty_index, "a")
    apply(empty_index, make_document("a", ["zero", "three", "one", "two changed"]))
    after = ids_of(empty_index, "a")
    assert (after["one"], after["three"]) == (before["one"], before["three"])
    assert min(after["zero"], after["two changed"]) > max(before.values())
    with open_view(empty_index) as view:
        texts = [stored.passage.text for stored in view.document_passages("a")]
    assert texts == ["zero", "three", "one", "two changed"]


def test_repeated_passages_keep_their_own_ids(empty_index, make_document):
    apply(empty_index, make_document("a", ["same", "same", "same"]))
    with open_view(empty_index) as view:
        before = [stored.id for stored in view.document_passages("a")]
    apply(empty_index, make_document("a", ["same", "same"]))
    with open_view(empty_index) as view:
        after = [stored.id for stored in view.document_passages("a")]
    assert after == before[:2]


def test_ids_are_not_used_again_after_everything_was_deleted(empty_index, make_document):
    apply(empty_index, make_document("a", ["one", "two"]))
    highest = max(ids_of(empty_index, "a").values())
    apply(empty_index, DeleteDocument("a"))
    apply(empty_index, make_document("a", ["one", "two"]))
    assert min(ids_of(empty_index, "a").values()) > highest


def test_same_text_under_another_heading_is_looked_up_under_the_new_one(empty_index, make_document):
    apply(empty_index, make_document("a", ["body"], headings=("Alpha",), title="Old"))
    before = ids_of(empty_index, "a")
    apply(empty_index, make_document("a", ["body"], headings=("Beta",), title="New"))
    assert ids_of(empty_index, "a") == before
    assert [found(empty_index, query) for query in ("alpha", "old", "beta", "new")] == [
        [],
        [],
        ["body"],
        ["body"],
    ]


@pytest.mark.parametrize(
    "forget",
    [
        lambda make: DeleteDocument("a"),
        lambda make: make("a", ["something else"]),
        lambda make: make("a", [], state=DocumentState.EMPTY),
        lambda make: make("a", [], state=DocumentState.FAILED, reason="torn"),
        lambda make: RenameDocument("b", "a", b"a", 1, 1),
    ],
    ids=["deleted", "edited", "emptied", "failed", "replaced"],
)
def test_what_a_document_no_longer_says_never_answers(empty_index, make_document, forget):
    apply(empty_index, make_document("a", ["secret 密鑰"]), make_document("b", ["other"]))
    assert found(empty_index, "secret") == found(empty_index, "密鑰") == ["secret 密鑰"]
    apply(empty_index, forget(make_document))
    assert found(empty_index, "secret") == found(empty_index, "密鑰") == []
    query = HashEncoder().encode_queries(["secret 密鑰"])[0]
    with open_view(empty_index) as view:
        ids = view.dense(query, 10).ids
        assert "secret 密鑰" not in {stored.passage.text for stored in view.passages(ids).values()}
        assert len(ids) == view.passage_count


def test_deleted_text_and_vectors_are_gone_from_the_file(empty_index, make_document):
    document = make_document("a", ["unforgettable"])
    apply(empty_index, document, make_document("b", ["other"]))
    apply(empty_index, DeleteDocument("a"))
    content = b"".join(path.read_bytes() for path in empty_index.glob(CATALOGUE_FILE + "*"))
    assert b"unforgettable" not in content
    assert document.passages[0].vector.tobytes() not in content
    assert b"other" in content


def test_renaming_keeps_passages_and_moves_the_suffix(empty_index, make_document):
    apply(empty_index, make_document("old.md", ["text"]))
    before = ids_of(empty_index, "old.md")
    apply(empty_index, RenameDocument("old.md", "new/name.TXT", b"new/name.TXT", 7, 9))
    assert ids_of(empty_index, "old.md") == {}
    assert ids_of(empty_index, "new/name.TXT") == before
    with open_view(empty_index) as view:
        (row,) = view.documents()
        assert (row.key, row.size, row.mtime_ns) == ("new/name.TXT", 7, 9)
        assert view.select(Filter(suffixes=(".txt",))).tolist() == list(before.values())


def test_renaming_to_the_same_key_loses_nothing(empty_index, make_document):
    apply(empty_index, make_document("a", ["text"]), RenameDocument("a", "a", b"a", 1, 2))
    assert list(ids_of(empty_index, "a")) == ["text"]


def test_touching_changes_only_size_and_time(empty_index, make_document):
    apply(empty_index, make_document("a", ["text"]))
    apply(empty_index, TouchDocument("a", 5, 6), TouchDocument("missing", 1, 1))
    with open_view(empty_index) as view:
        (row,) = view.documents()
    assert (row.size, row.mtime_ns, row.passages) == (5, 6, 1)


def test_a_vector_is_reused_for_the_same_text_even_when_its_document_goes_in_the_same_batch(
    empty_index, make_document
):
    original = make_document("a", ["moving text"])
    apply(empty_index, original)
    moved = PassageRow(original.passages[0].passage, original.passages[0].text_hash, None)
    target = WriteDocument("b", b"b", 1, 1, "", passages=[moved])
    apply(empty_index, DeleteDocument("a"), target)
    with open_view(empty_index) as view:
        (stored,) = view.document_passages("b")
        assert np.array_equal(view.vectors([stored.id])[0], original.passages[0].vector)


def test_known_vectors_are_those_of_the_asked_encoder_only(empty_index, make_document):
    document = make_document("a", [f"text {number}" for number in range(2000)])
    apply(empty_index, document)
    digests = [row.text_hash for row in document.passages]
    with Catalogue.open(empty_index, mode="read") as catalogue:
        fingerprint = HashEncoder().fingerprint
        known = catalogue.known_vectors([*digests, b"unknown"], fingerprint)
        assert known.keys() == set(digests)
        assert all(np.array_equal(known[row.text_hash], row.vector) for row in document.passages)
        assert catalogue.known_vectors(digests, "another encoder") == {}


def test_a_passage_without_any_vector_is_refused_and_nothing_changes(empty_index, make_document):
    passage = Passage(0, "text", Span(0, 4), (1, 1))
    document = WriteDocument("b", b"b", 1, 1, "", passages=[PassageRow(passage, b"digest")])
    with pytest.raises(ValueError, match="expected a vector for 'text'"):
        apply(empty_index, make_document("a", ["first"]), document)
    with open_view(empty_index) as view:
        assert list(view.documents()) == []
        assert view.lexical(["first"], 10).ids.tolist() == []


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (np.zeros(64, np.float32), "of length 0"),
        (np.full(64, np.nan, np.float32), "of length nan"),
        (np.full(64, 1, np.float32), "of length 8"),
        (np.ones(1, np.float32), r"shape \(64,\), found \(1,\)"),
    ],
)
def test_vectors_that_cannot_be_compared_are_refused(empty_index, vector, message):
    passage = PassageRow(Passage(0, "text", Span(0, 4), (1, 1)), b"digest", vector)
    with pytest.raises(EncoderError, match=message):
        apply(empty_index, WriteDocument("a", b"a", 1, 1, "", passages=[passage]))


def test_lone_surrogates_are_stored_as_replacement_characters(empty_index, make_document):
    document = make_document("a", ["plain"])
    passage = Passage(0, "x\ud800y", Span(0, 3), (1, 1), None, ("\udfff",))
    row = PassageRow(passage, b"digest", document.passages[0].vector)
    apply(
        empty_index,
        WriteDocument("a", b"a", 1, 1, "", title="\ud800", metadata={"a": "\ud800"}, passages=[row]),
    )
    with open_view(empty_index) as view:
        (stored,) = view.document_passages("a")
        assert (stored.passage.text, stored.passage.headings) == ("x\ufffdy", ("\ufffd",))
        assert view.lexical(["\ud800", "x\ud800y"], 5).ids.tolist() == []


def test_settings_are_kept_and_changed_one_by_one(empty_index):
    with Catalogue.open(empty_index, mode="write") as catalogue:
        catalogue.set_meta({"sources": ["a", "ü"], "limit": 3})
        catalogue.set_meta({"limit": None})
        meta = catalogue.meta()
    assert (meta["sources"], meta["limit"]) == (["a", "ü"], None)


def test_the_encoder_cannot_be_exchanged_under_the_vectors(empty_index, make_document):
    apply(empty_index, make_document("a", ["text"]))
    with Catalogue.open(empty_index, mode="write") as catalogue:
        before = catalogue.meta()
        with pytest.raises(EncoderMismatch, match="other vectors"):
            catalogue.set_meta({"encoder": {"name": "other", "fingerprint": "f", "dimension": 64}, "x": 1})
        assert catalogue.meta() == before


def test_reembedding_is_resumable_and_switches_at_once(empty_index, make_document):
    texts = [f"text {number}" for number in range(5)]
    apply(empty_index, make_document("a", texts))
    other = HashEncoder(dimension=32)
    setting = {"name": other.name, "fingerprint": other.fingerprint, "dimension": 32}
    with Catalogue.open(empty_index, mode="write") as catalogue:
        first = catalogue.passages_to_embed(other.fingerprint, 32, limit=3)
        vectors = other.encode_passages([stored.passage.text for stored in first])
        catalogue.add_vectors(
            other.fingerprint, {one.id: row for one, row in zip(first, vectors, strict=True)}
        )
        with pytest.raises(EncoderMismatch):
            catalogue.switch_encoder(setting)
    with open_view(empty_index) as view:  # still the old one, complete
        assert view.fingerprint == HashEncoder().fingerprint
        assert len(view.dense(HashEncoder().encode_queries(["text"])[0], 10).ids) == 5
    with Catalogue.open(empty_index, mode="write") as catalogue:
        rest = catalogue.passages_to_embed(other.fingerprint, 32)
        assert [stored.passage.text for stored in first + rest] == texts
        vectors = other.encode_passages([stored.passage.text for stored in rest])
        catalogue.add_vectors(
            other.fingerprint, {one.id: row for one, row in zip(rest, vectors, strict=True)}
        )
        assert catalogue.passages_to_embed(other.fingerprint, 32) == []
        catalogue.switch_encoder(setting)
    with open_view(empty_index) as view:
        assert view.fingerprint == other.fingerprint
        ranking = view.dense(other.encode_queries(["text 3"])[0], 1)
        assert view.passages(ranking.ids)[int(ranking.ids[0])].passage.text == "text 3"
        assert ranking.scores[0] == pytest.approx(1, abs=1e-6)


def test_passages_before_an_encoder_are_refused(tmp_path, make_document):
    with Catalogue.open(tmp_path / "i", mode="create") as catalogue:
        with pytest.raises(ValueError, match="expected an encoder"):
            catalogue.apply([make_document("a", ["text"])])
        catalogue.apply([make_document("a", [], state=DocumentState.EMPTY)])
        assert catalogue.counts().states == {DocumentState.EMPTY: 1}


def test_counts(empty_index, make_document):
    apply(empty_index, make_document("a", ["1", "2"]), make_document("b", [], state=DocumentState.EMPTY))
    apply(empty_index, make_document("a", ["2", "3"]))
    with Catalogue.open(empty_index, mode="read") as catalogue:
        counts = catalogue.counts()
    assert counts.states == {DocumentState.OK: 1, DocumentState.EMPTY: 1}
    assert (counts.documents, counts.passages, counts.added, counts.removed) == (2, 2, 3, 1)


def test_a_full_disk_leaves_everything_as_it_was(empty_index, make_document):
    apply(empty_index, make_document("a", ["kept"]))
    with Catalogue.open(empty_index, mode="write") as catalogue:
        pages = catalogue.connection.execute("PRAGMA page_count").fetchone()[0]
        catalogue.connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(IndexFolderError, match="no space left") as caught:
            catalogue.apply([make_document("b", [f"much {number}" * 200 for number in range(50)])])
        assert "free some disk space" in (caught.value.remedy or "")
    assert found(empty_index, "kept") == ["kept"]
    with open_view(empty_index) as view:
        assert [row.key for row in view.documents()] == ["a"]


def test_a_commit_that_fails_changes_nothing(empty_index, make_document):
    class Failing(FileSystem):
        def commit(self, connection):
            raise OSError("device gone")

    with Catalogue.open(empty_index, mode="write", files=Failing()) as catalogue:
        with pytest.raises(OSError, match="device gone"):
            catalogue.apply([make_document("a", ["text"])])
        assert catalogue.counts().documents == 0
        assert not catalogue.connection.in_transaction


def test_all_sql_stands_in_the_catalogue_modules():
    folder = Path(catalogue_module.__file__).parent
    elsewhere = [path for path in folder.rglob("*.py") if not path.name.startswith("catalogue")]
    using = {
        path.relative_to(folder).as_posix() for path in elsewhere if ".execute" in path.read_text("utf-8")
    }
    assert using == {"files.py", "migrations/__init__.py"}
