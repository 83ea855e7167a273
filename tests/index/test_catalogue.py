from __future__ import annotations

import json
import math
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.embedder.hash_encoder import HashEncoder
from likewise.errors import (
    EncoderError,
    EncoderMismatch,
    FilterError,
    IndexFolderError,
    IndexNotFound,
    IndexVersionError,
)
from likewise.index import catalogue as catalogue_module
from likewise.index import catalogue_open, migrations
from likewise.index.analyzer import analyze, analyze_query
from likewise.index.catalogue import CATALOGUE_FILE, Analysis, Catalogue
from likewise.index.catalogue_filter import glob_matches
from likewise.index.catalogue_read import BODY_WEIGHT, HEADING_WEIGHT, TITLE_WEIGHT
from likewise.index.files import FileSystem
from likewise.index.lock import WriterLock
from likewise.index.records import DocumentState, Filter, Passage, Span
from likewise.index.rows import (
    DeleteDocument,
    PassageRow,
    RenameDocument,
    TouchDocument,
    WriteDocument,
)
from likewise.index.view import open_view


def ids_of(folder: Path, key: str) -> dict[str, int]:
    with open_view(folder) as view:
        return {stored.passage.text: stored.id for stored in view.document_passages(key)}


def apply(folder: Path, *changes) -> None:
    with Catalogue.open(folder, mode="write") as catalogue:
        catalogue.apply(changes)


def found(folder: Path, query: str) -> list[str]:
    """Texts that answer a query on the lexical side."""
    with open_view(folder) as view:
        ranking = view.lexical(analyze_query(query), 100)
        passages = view.passages(ranking.ids)
        return [passages[id_].passage.text for id_ in ranking.ids.tolist()]


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


# The lexical side


@pytest.mark.parametrize(
    "query",
    [
        '"',
        '""',
        "-x",
        "col:x",
        "NEAR(",
        "NEAR(a b)",
        "a AND",
        "OR",
        "NOT",
        "^a",
        "a*",
        "(",
        "{",
        "\x00",
        "'",
        "+ -",
    ],
)
def test_operators_are_only_text(empty_index, make_document, query):
    apply(empty_index, make_document("a", ["nothing of the kind"]))
    with open_view(empty_index) as view:
        # Raw, as if no analyser had looked at it, and as the analyser leaves it.
        assert view.lexical([query], 5).ids.tolist() == []
        assert view.lexical(analyze_query(query), 5).ids.tolist() == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("C++ is a language", "C++"),
        ("the option -x", "-x"),
        ("write col:x there", "col:x"),
        ("NEAR( is an operator", "NEAR("),
        ('he said "so"', '"so"'),
        ("a party 🎉 tonight", "🎉"),
        ("שלום עולם", "עולם"),
        ("مرحبا بالعالم", "مرحبا"),
        ("貓坐在墊子上", "貓"),
        ("貓坐在墊子上", "墊子"),
        ("猫坐在垫子上", "垫子"),
        ("日本語の文書", "文書"),
        ("한국어 문서", "문서"),
        ("OR AND NOT", "and"),
    ],
)
def test_words_of_all_kinds_are_found(empty_index, make_document, text, query):
    apply(empty_index, make_document("a", [text, "unrelated 無關 lines"]))
    assert found(empty_index, query) == [text]


def test_bm25_is_the_published_formula(empty_index, make_document):
    """With one column in use, FTS5's score is Okapi BM25 with k1 = 1.2 and b = 0.75."""
    texts = ["key", "key key lock", "lock door wall roof", "wall"]
    apply(empty_index, make_document("a", texts))
    with open_view(empty_index) as view:
        ranking = view.lexical(["key"], 10)
    lengths = [len(text.split()) for text in texts]
    average = sum(lengths) / 4
    idf = math.log((4 - 2 + 0.5) / (2 + 0.5))
    idf = max(idf, 1e-6)  # FTS5 does not let a frequent term count against a passage
    expected = [
        idf * count * 2.2 / (count + 1.2 * (1 - 0.75 + 0.75 * length / average))
        for count, length in ((2, lengths[1]), (1, lengths[0]))
    ]
    scores = dict(zip(ranking.ids.tolist(), ranking.scores.tolist(), strict=True))
    assert scores == pytest.approx({2: expected[0], 1: expected[1]}, rel=1e-5)


def test_title_and_headings_count_with_their_weights(empty_index, make_document):
    filler = [make_document(f"f{number}", [f"filler{number} text"]) for number in range(8)]
    apply(
        empty_index,
        make_document("title", ["pad one"], title="lantern"),
        make_document("heading", ["pad two"], headings=("lantern",)),
        make_document("body", ["lantern two"]),
        *filler,
    )
    with open_view(empty_index) as view:
        ranking = view.lexical(["lantern"], 10)
        order = [view.passages([id_])[id_].key for id_ in ranking.ids.tolist()]
    assert set(order) == {"title", "heading", "body"}
    assert TITLE_WEIGHT == HEADING_WEIGHT > BODY_WEIGHT
    assert order[-1] == "body"


def test_equal_scores_come_in_order_of_id(empty_index, make_document):
    apply(empty_index, make_document("b", ["same words"] * 5), make_document("a", ["same words"] * 5))
    with open_view(empty_index) as view:
        assert view.lexical(["same"], 7).ids.tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_a_filter_restricts_before_the_ranking_is_cut(empty_index, make_document):
    apply(
        empty_index,
        make_document("old/a.md", ["key " * 5] * 20),
        make_document("new/b.md", ["a key among many other words that make it rank last"]),
    )
    with open_view(empty_index) as view:
        allowed = view.select(Filter(paths=("new/**",)))
        assert view.lexical(["key"], 3, allowed).ids.tolist() == [21]
        assert view.lexical(["key"], 3, np.array([], np.int64)).ids.tolist() == []


def test_a_query_of_very_many_words_uses_the_rarest_that_occur(empty_index, make_document):
    common = [f"common{number}" for number in range(300)]
    apply(empty_index, make_document("a", [" ".join([*common, "needle"]), *[" ".join(common)] * 3]))
    with open_view(empty_index) as view:
        terms = analyze(" ".join([*common, *(f"absent{number}" for number in range(20_000)), "needle"]))
        ranking = view.lexical(terms, 2)
        assert ranking.ids[0] == 1
        assert ranking.scores[0] > ranking.scores[1]


def test_another_analyser_version_rebuilds_the_lexical_index_at_the_next_write(empty_index, make_document):
    apply(empty_index, make_document("a", ["Alpha Beta"], title="Guide"))
    shouting = Analysis("shouting", lambda text, language: [word.upper() for word in text.split()])
    with Catalogue.open(empty_index, mode="write", analysis=shouting) as catalogue:
        assert not catalogue.lexical_is_current()
        assert catalogue.refresh_lexical()
        assert catalogue.lexical_is_current()
        assert not catalogue.refresh_lexical()
    with open_view(empty_index) as view:
        assert "made by another version of the analyser" in view.notices[0]
        # The tokenizer of the table folds ASCII case, so only the analyser's stem tells the two apart.
        assert view.lexical(["BETA"], 5).ids.tolist() == [1]
        assert view.lexical(["GUIDE"], 5).ids.tolist() == [1]
    apply(empty_index)
    with open_view(empty_index) as view:
        assert not view.notices
    assert found(empty_index, "alpha") == ["Alpha Beta"]


# Filters


@pytest.fixture
def library(empty_index, make_document):
    apply(
        empty_index,
        make_document("docs/guide.md", ["1"], title="Signing Keys", language="en", mtime_ns=10**18),
        make_document(
            "docs/zh/指南.md", ["2"], title="簽署金鑰", language="zh", metadata={"tags": ["a", "b"]}
        ),
        make_document("notes/todo.TXT", ["3"], metadata={"author": {"name": "Ann"}, "draft": True, "a.b": 3}),
        make_document("/abs/report.pdf", ["4"], title="STRASSE"),
    )
    return empty_index


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (Filter(paths=("docs/**",)), [1, 2]),
        (Filter(paths=("docs/*.md",)), [1]),
        (Filter(paths=("docs/**/*.md",)), [1, 2]),
        (Filter(paths=("*.md", "notes")), [1, 2, 3]),
        (Filter(paths=("/abs/**",)), [4]),
        (Filter(exclude_paths=("docs/zh/**", "*.pdf")), [1, 3]),
        (Filter(suffixes=(".md", ".txt")), [1, 2, 3]),
        (Filter(languages=("zh",)), [2]),
        (Filter(states=(DocumentState.OK,)), [1, 2, 3, 4]),
        (Filter(states=(DocumentState.EMPTY,)), []),
        (Filter(title="keys"), [1]),
        (Filter(title="金鑰"), [2]),
        (Filter(title="straße"), [4]),
        (Filter(modified_from=1e9), [1]),
        (Filter(modified_before=1e9), [2, 3, 4]),
        (Filter(modified_from=float("inf")), []),
        (Filter(metadata=(("tags", "B"),)), [2]),
        (Filter(metadata=(("author.name", "Ann"),)), [3]),
        (Filter(metadata=(("draft", "true"), ("a.b", "3"))), [3]),
        (Filter(metadata=(("author.name.x", "Ann"),)), []),
        (Filter(metadata=(("missing", "null"),)), []),
        (Filter(paths=("docs/**",), languages=("en",)), [1]),
        (Filter(title="' OR 1=1 --"), []),
        (Filter(metadata=(("tags') OR 1=1 --", "b"),)), []),
    ],
)
def test_filters_select_passages(library, filter, expected):
    with open_view(library) as view:
        assert view.select(filter).tolist() == expected


def test_an_empty_filter_allows_all(library):
    with open_view(library) as view:
        assert view.select(Filter()) is None


def test_a_malformed_pattern_is_the_users_mistake(library):
    with open_view(library) as view, pytest.raises(FilterError, match="z-a"):
        view.select(Filter(paths=("[z-a]",)))


@pytest.mark.parametrize(
    ("pattern", "key", "matches"),
    [
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[!a-c]x", "/x", False),
        ("[]]x", "]x", True),
        ("[", "[", True),
        ("a[b", "a[b", True),
        ("[^a]", "^", True),
        (r"a\b", r"a\b", True),
        ("**", "a/b", True),
        ("**/b", "b", True),
        ("**/b", "a/c/b", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**/b", "ab", False),
        ("a/", "a/b", True),
        ("/a", "/a/b", True),
        ("/a", "x/a", False),
        ("*", "line\nbreak", True),
        ("文?", "文件", True),
    ],
)
def test_globs(pattern, key, matches):
    assert glob_matches(pattern, key) is matches


@given(st.text(alphabet="ab*?[]!^-/\\.", max_size=8), st.text(alphabet="ab/.-", max_size=6))
def test_any_pattern_is_a_pattern_or_a_filter_error(pattern, key):
    try:
        glob_matches(pattern, key)
    except FilterError as error:
        assert "range" in (error.remedy or "")


# Settings and encoders


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


# Opening


def test_no_folder_no_index(tmp_path):
    for mode in ("read", "write"):
        with pytest.raises(IndexNotFound, match="no index at"):
            Catalogue.open(tmp_path / "missing", mode=mode)
        with pytest.raises(IndexNotFound, match="yet"):
            Catalogue.open(tmp_path, mode=mode)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", ["read", "write", "create"])
def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path, mode):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(IndexFolderError, match=r"not an index|expected an empty"):
        Catalogue.open(tmp_path, mode=mode)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("mode", ["read", "write", "create"])
def test_a_file_in_place_of_the_folder_is_refused(tmp_path, mode):
    (tmp_path / "file").write_text("")
    with pytest.raises(IndexFolderError, match="file"):
        Catalogue.open(tmp_path / "file", mode=mode)


@pytest.mark.parametrize("mode", ["read", "write", "create"])
def test_a_catalogue_that_is_no_database_or_another_one_is_refused(tmp_path, mode):
    path = tmp_path / CATALOGUE_FILE
    path.write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(IndexFolderError, match="damaged"):
        Catalogue.open(tmp_path, mode=mode)
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE invoices (id)")
    connection.close()
    with pytest.raises(IndexFolderError, match="not a likewise catalogue"):
        Catalogue.open(tmp_path, mode=mode)


def test_only_a_folder_that_holds_nothing_else_is_to_be_deleted(empty_index, make_document):
    apply(empty_index, make_document("a", ["text"]))
    (empty_index / CATALOGUE_FILE).write_bytes(b"no database at all" * 100)
    with pytest.raises(IndexFolderError, match="damaged") as caught:
        Catalogue.open(empty_index, mode="read")
    assert str(caught.value.remedy).startswith(f"delete {empty_index} and run likewise index again")
    (empty_index / "letter.txt").write_text("dear")
    with pytest.raises(IndexFolderError, match="damaged") as caught:
        Catalogue.open(empty_index, mode="read")
    assert "delete" not in str(caught.value.remedy)
    assert "holds other files too, such as letter.txt" in str(caught.value.remedy)


@pytest.mark.parametrize("mode", ["read", "write", "create"])
def test_an_index_of_a_newer_format_is_refused(empty_index, mode):
    connection = sqlite3.connect(empty_index / CATALOGUE_FILE)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(IndexVersionError, match="format 99") as caught:
        Catalogue.open(empty_index, mode=mode)
    assert caught.value.remedy == "pip install --upgrade likewise"


@pytest.fixture
def old_index(empty_index, make_document, monkeypatch):
    """An index of the format before a further step."""
    apply(empty_index, make_document("a", ["text"]))
    steps = (*migrations.MIGRATIONS, ("CREATE TABLE later (x)",))
    monkeypatch.setattr(migrations, "MIGRATIONS", steps)
    monkeypatch.setattr(migrations.migrate, "__kwdefaults__", {"steps": steps})
    monkeypatch.setattr(catalogue_open, "FORMAT_VERSION", len(steps))
    return empty_index


def test_an_older_index_is_upgraded_by_whoever_opens_it(old_index):
    assert found(old_index, "text") == ["text"]
    with Catalogue.open(old_index, mode="read") as catalogue:
        assert catalogue.connection.execute("SELECT count(*) FROM later").fetchone() == (0,)


def test_an_older_index_that_another_process_is_writing_is_not_touched(old_index):
    with WriterLock(old_index), pytest.raises(IndexFolderError, match="older format") as caught:
        Catalogue.open(old_index, mode="read")
    assert caught.value.remedy == "likewise index"


def test_a_log_that_cannot_be_read_is_not_passed_over(empty_index, monkeypatch):
    """Where SQLite cannot open the log (read-only folder, crashed writer), the bare file is an old state."""

    class Refusing(sqlite3.Connection):
        def execute(self, *_):
            raise sqlite3.OperationalError("unable to open database file")

    connect = sqlite3.connect
    monkeypatch.setattr(
        "likewise.index.catalogue_open.sqlite3.connect",
        lambda name, **options: connect(name, factory=Refusing, **options),
    )
    (empty_index / (CATALOGUE_FILE + "-wal")).write_bytes(b"committed pages")
    with pytest.raises(IndexFolderError, match="cannot be opened") as caught:
        Catalogue.open(empty_index, mode="read")
    assert "permission" in (caught.value.remedy or "")


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


def test_the_lexical_match_is_not_run_once_per_allowed_id(library):
    """The plan must go through the full-text index alone; the filter only looks at what it returns."""
    with Catalogue.open(library, mode="read") as catalogue:
        plan = catalogue.connection.execute(
            "EXPLAIN QUERY PLAN SELECT rowid FROM passage_terms WHERE passage_terms MATCH ?"
            " AND +rowid IN (SELECT value FROM json_each(?))",
            ('"a"', json.dumps([1, 2])),
        ).fetchall()
        scans = [row[3] for row in plan if "passage_terms" in row[3]]
    assert len(scans) == 1
    assert scans[0].endswith("INDEX 0:M3")  # M: match; an "=" would stand for a look-up by rowid


def test_all_sql_stands_in_the_catalogue_modules():
    folder = Path(catalogue_module.__file__).parent
    elsewhere = [path for path in folder.rglob("*.py") if not path.name.startswith("catalogue")]
    using = {
        path.relative_to(folder).as_posix() for path in elsewhere if ".execute" in path.read_text("utf-8")
    }
    assert using == {"files.py", "migrations/__init__.py"}


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=20), max_size=8))
def test_whatever_is_asked_the_lexical_side_answers(library, terms):
    with open_view(library) as view:
        assert set(view.lexical(terms, 10).ids.tolist()) <= {1, 2, 3, 4}
