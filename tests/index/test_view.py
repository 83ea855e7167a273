from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from likewise.embedder.hash_encoder import HashEncoder
from likewise.errors import EncoderMismatch, IndexNotFound, UsageError
from likewise.index import dense
from likewise.index.analyzer import analyze_query
from likewise.index.catalogue import Catalogue
from likewise.index.faiss_store import SPECS
from likewise.index.records import Filter
from likewise.index.rows import DeleteDocument, RenameDocument
from likewise.index.snapshot import publish, reason_to_publish
from likewise.index.view import IndexReader, open_view

ENCODER = HashEncoder()


def write(folder, *changes, spec=None):
    with Catalogue.open(folder, mode="write") as catalogue:
        catalogue.apply(changes)
        if spec:
            publish(catalogue, folder, spec=spec)


def texts_found(view, query, k=5, allowed=None):
    ids = view.dense(ENCODER.encode_queries([query])[0], k, allowed).ids
    passages = view.passages(ids)
    return [passages[id_].passage.text for id_ in ids.tolist()]


def test_a_view_stays_at_its_moment(empty_index, make_document):
    write(empty_index, make_document("a", ["first text"]))
    with IndexReader(empty_index) as reader, reader.view() as before:
        assert texts_found(before, "text") == ["first text"]
        write(empty_index, make_document("a", ["second text"]), make_document("b", ["third text"]))
        with Catalogue.open(empty_index, mode="write") as catalogue:
            publish(catalogue, empty_index)
            publish(catalogue, empty_index)
        with reader.view() as after:  # loads what is newer than the first view
            assert sorted(texts_found(after, "text")) == ["second text", "third text"]
            assert after.lexical(["first"], 5).ids.tolist() == []
        assert texts_found(before, "text") == ["first text"]
        assert before.lexical(["first"], 5).ids.tolist() == [1]
        assert before.passage_count == 1
        assert [row.key for row in before.documents()] == ["a"]


def test_a_reader_sees_what_others_commit_and_publish(empty_index, make_document):
    with IndexReader(empty_index) as reader:
        with reader.view() as view:
            assert texts_found(view, "text") == []
        for number in range(3):
            write(
                empty_index,
                make_document(f"d{number}", [f"text {number}"]),
                spec="IDMap2,Flat" if number == 1 else None,
            )
            with reader.view() as view:
                assert sorted(texts_found(view, "text")) == [f"text {other}" for other in range(number + 1)]
        assert (len(reader._memory.base), len(reader._memory.tail)) == (2, 1)
        write(empty_index, DeleteDocument("d0"), DeleteDocument("d2"))
        with reader.view() as view:
            assert texts_found(view, "text") == ["text 1"]


def test_an_index_that_is_deleted_and_made_again_is_noticed(empty_index, make_document, tmp_path):
    write(empty_index, make_document("a", ["old text"]))
    with IndexReader(empty_index) as reader:
        with reader.view() as view:
            assert texts_found(view, "text") == ["old text"]
        shutil.rmtree(empty_index)
        with pytest.raises(IndexNotFound), reader.view():
            pass
        with Catalogue.open(empty_index, mode="create") as catalogue:
            setting = {"name": "hash", "fingerprint": ENCODER.fingerprint, "dimension": ENCODER.dimension}
            catalogue.set_meta({"encoder": setting})
            catalogue.apply([make_document("b", ["new text"])])
        with reader.view() as view:
            assert texts_found(view, "text") == ["new text"]
            assert view.lexical(["old"], 5).ids.tolist() == []


def test_a_reader_may_be_closed_while_a_view_is_open(empty_index, make_document):
    write(empty_index, make_document("a", ["text"]))
    reader = IndexReader(empty_index)
    with reader.view() as view:
        reader.close()
        assert texts_found(view, "text") == ["text"]
    assert reader._idle == []


def test_an_index_without_an_encoder_answers_nothing(tmp_path):
    Catalogue.open(tmp_path / "i", mode="create").close()
    with open_view(tmp_path / "i") as view:
        assert (view.fingerprint, view.passage_count) == ("", 0)
        assert view.dense(np.ones(3, np.float32), 5).ids.tolist() == []
        assert view.lexical(["a"], 5).ids.tolist() == []
        assert view.vectors([]).shape == (0, 0)


def test_bad_requests(empty_index, make_document):
    write(empty_index, make_document("a", ["text"]))
    query = ENCODER.encode_queries(["text"])[0]
    with open_view(empty_index) as view:
        for k in (0, -1):
            with pytest.raises(UsageError, match="k of at least 1"):
                view.dense(query, k)
            with pytest.raises(UsageError, match="k of at least 1"):
                view.lexical(["text"], k)
        with pytest.raises(EncoderMismatch, match=r"shape \(64,\), found \(3,\)"):
            view.dense(np.ones(3, np.float32), 5)
        with pytest.raises(UsageError, match="no passage with id 99"):
            view.vectors([1, 99])
        assert view.passages([1, 99, -1]).keys() == {1}
        assert view.document_passages("missing") == []
        assert view.dense(query, 10**6).ids.tolist() == [1]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("limit", [0, 10**6], ids=["by the store", "one by one"])
def test_filtered_answers_are_exact_however_they_are_found(
    empty_index, make_document, monkeypatch, spec, limit
):
    monkeypatch.setattr(dense, "EXACT_LIMIT", limit)
    documents = [
        make_document(f"{number % 7}/d{number}", [f"text {number} of many"]) for number in range(140)
    ]
    write(empty_index, *documents[:120], spec=spec)
    write(empty_index, *documents[120:], DeleteDocument("3/d3"))
    query = ENCODER.encode_queries(["text 3 of many"])[0]
    with open_view(empty_index) as view:
        allowed = view.select(Filter(paths=("3/**",)))
        assert len(allowed) == 19
        ranking = view.dense(query, 8, allowed)
        scores = (view.vectors(allowed).astype(np.float64) @ query.astype(np.float64)).astype(np.float32)
        expected = sorted(zip(-scores, allowed, strict=True))[:8]
        assert ranking.ids.tolist() == [id_ for _, id_ in expected]
        assert view.dense(query, 8, allowed[:0]).ids.tolist() == []


def test_threads_share_a_reader(empty_index, make_document):
    write(
        empty_index,
        *[make_document(f"d{number}", [f"text {number}"]) for number in range(200)],
        spec="IDMap2,Flat",
    )
    failures = []
    with IndexReader(empty_index) as reader:

        def work(seed):
            for number in range(seed, 200, 8):
                with reader.view() as view:
                    if texts_found(view, f"text {number}", 1) != [f"text {number}"]:
                        failures.append(number)
                    if view.lexical([str(number)], 1).ids.tolist() != [number + 1]:
                        failures.append(-number)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


READ_ONLY = """
import os, sys
from pathlib import Path
# Everything is imported before the rights are given up: the interpreter may stand where others cannot read.
import faiss, filelock, filelock._soft, likewise.index.analyzer
from likewise.embedder.hash_encoder import HashEncoder
from likewise.errors import IndexFolderError
from likewise.index.catalogue import Catalogue
from likewise.index.lock import WriterLock
from likewise.index.view import open_view
if os.getuid() == 0:
    os.setgid(65534), os.setuid(65534)
folder = Path(sys.argv[1])
with open_view(folder) as view:
    query = HashEncoder().encode_queries(["text"])[0]
    print(view.lexical(["text"], 5).ids.tolist(), view.dense(query, 5).ids.tolist())
    print(*view.notices)
for attempt in (lambda: WriterLock(folder).__enter__(), lambda: Catalogue.open(folder, mode="write")):
    try:
        attempt()
    except IndexFolderError as error:
        print(error.remedy)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such permission on Windows")
@pytest.mark.parametrize("damaged", [False, True])
def test_an_index_that_may_only_be_read_answers(empty_index, make_document, damaged):
    write(empty_index, make_document("a", ["text"]), spec="IDMap2,Flat")
    assert not list(empty_index.glob("*-wal"))
    if damaged:
        for path in empty_index.glob("*.faiss"):
            path.write_bytes(b"")
    # Not below tmp_path, which other users cannot enter.
    with tempfile.TemporaryDirectory() as parent:
        os.chmod(parent, 0o755)
        folder = Path(parent) / "index"
        shutil.copytree(empty_index, folder)
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        try:
            done = subprocess.run(
                [sys.executable, "-c", READ_ONLY, str(folder)], capture_output=True, text=True, check=False
            )
        finally:
            folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    answers, notice, *remedies = done.stdout.splitlines()
    assert answers == "[1] [1]"
    assert ("read from the catalogue instead" in notice) is damaged
    assert len(remedies) == 2
    assert all("permission" in remedy for remedy in remedies)


WORDS = ["alpha", "beta", "gamma", "鑰匙", "签名", "🎉"]
KEYS = ["a.md", "b.md", "dir/c.txt"]


class CatalogueMachine(RuleBasedStateMachine):
    """An index under random changes answers like a plain dictionary from keys to lists of texts."""

    make_document = None

    @initialize()
    def create(self):
        self.parent = tempfile.TemporaryDirectory()
        self.folder = Path(self.parent.name) / ".likewise"
        self.catalogue = Catalogue.open(self.folder, mode="create")
        setting = {"name": "hash", "fingerprint": ENCODER.fingerprint, "dimension": ENCODER.dimension}
        self.catalogue.set_meta({"encoder": setting})
        self.reader = IndexReader(self.folder)
        self.model: dict[str, list[str]] = {}
        self.alive: set[int] = set()
        self.gone: set[int] = set()

    def teardown(self):
        if hasattr(self, "reader"):
            self.reader.close()
            self.catalogue.close()
            self.parent.cleanup()

    @rule(
        key=st.sampled_from(KEYS),
        texts=st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3), max_size=4),
    )
    def write(self, key, texts):
        texts = [" ".join(words) for words in texts]
        self.catalogue.apply([self.make_document(key, texts)])
        self.model[key] = texts

    @rule(key=st.sampled_from(KEYS))
    def delete(self, key):
        self.catalogue.apply([DeleteDocument(key)])
        self.model.pop(key, None)

    @rule(key=st.sampled_from(KEYS), new=st.sampled_from(KEYS))
    def rename(self, key, new):
        self.catalogue.apply([RenameDocument(key, new, new.encode(), 1, 1)])
        if key in self.model:
            self.model[new] = self.model.pop(key)
        elif key != new:
            self.model.pop(new, None)

    @rule(spec=st.sampled_from(SPECS[:2]))
    def publish(self, spec):
        publish(self.catalogue, self.folder, spec=spec)
        assert reason_to_publish(self.catalogue, self.folder) == ""

    @rule()
    def restart(self):
        self.reader.close()
        self.catalogue.close()
        self.catalogue = Catalogue.open(self.folder, mode="write")
        self.reader = IndexReader(self.folder)

    @rule(word=st.sampled_from(WORDS), suffix=st.sampled_from([None, ".md", ".txt"]))
    @precondition(lambda self: self.model)
    def search(self, word, suffix):
        texts = sorted(
            text for key, texts in self.model.items() if not suffix or key.endswith(suffix) for text in texts
        )
        with self.reader.view() as view:
            allowed = view.select(Filter(suffixes=(suffix,))) if suffix else None
            found = view.passages(view.lexical(analyze_query(word), 100, allowed).ids)
            assert sorted(one.passage.text for one in found.values()) == [
                text for text in texts if word in text
            ]
            ranking = view.dense(ENCODER.encode_queries([word])[0], 100, allowed)
            found = view.passages(ranking.ids)
            assert sorted(one.passage.text for one in found.values()) == texts
            order = list(zip(-ranking.scores, ranking.ids, strict=True))
            assert order == sorted(order)

    @invariant()
    def holds_what_the_model_holds(self):
        if not hasattr(self, "reader"):
            return
        with self.reader.view() as view:
            rows = {row.key: row.passages for row in view.documents()}
            assert rows == {key: len(texts) for key, texts in self.model.items()}
            seen = set()
            for key, texts in self.model.items():
                stored = view.document_passages(key)
                assert [one.passage.text for one in stored] == texts
                seen |= {one.id for one in stored}
            assert len(seen) == view.passage_count == view.counts().passages
            # An id that was gone never comes back.
            assert not seen & self.gone
            self.gone |= self.alive - seen
            self.alive = seen


def test_an_index_behaves_like_a_dictionary(make_document):
    CatalogueMachine.make_document = staticmethod(make_document)
    run_state_machine_as_test(
        CatalogueMachine, settings=settings(max_examples=25, stateful_step_count=20, deadline=None)
    )
