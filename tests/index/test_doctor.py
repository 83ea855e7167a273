from __future__ import annotations

import re

import numpy as np
import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.index.catalogue import CATALOGUE_FILE, Analysis, Catalogue
from likewise.index.doctor import check
from likewise.index.files import FileSystem
from likewise.index.lock import WriterLock
from likewise.index.records import DocumentState
from likewise.index.rows import DeleteDocument
from likewise.index.snapshot import publish


@pytest.fixture
def folder(empty_index, make_document):
    with Catalogue.open(empty_index, mode="write") as catalogue:
        catalogue.apply(
            [
                make_document("a", ["one", "two", "three"]),
                make_document("b", [], state=DocumentState.EMPTY),
            ]
        )
        publish(catalogue, empty_index)
    return empty_index


def findings(folder):
    return {found.name: found for found in check(folder)}


def damage(folder, statement, *parameters, check_references=False):
    with Catalogue.open(folder, mode="write") as catalogue:
        catalogue.connection.execute(f"PRAGMA foreign_keys = {check_references}")
        catalogue.connection.execute(statement, parameters)


def test_a_sound_index(folder):
    found = findings(folder)
    names = "folder catalogue encoder vectors snapshot tail complete lexical files writer room documents"
    assert {name: one.severity for name, one in found.items()} == dict.fromkeys(names.split(), "ok")
    assert found["encoder"].message == f"{HashEncoder().name}, 64 dimensions"
    assert found["vectors"].message == "3 passages, each with its vector"
    assert found["snapshot"].message == "3 vectors, IDMap2,Flat, recall@10 1.000 against exact search"
    assert found["documents"].message == "2 documents (1 empty, 1 ok)"


def test_looking_changes_nothing(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    check(folder)
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {name: after[name] for name in before} == before
    assert {re.sub(r"-(wal|shm)$", "", name) for name in after} == before.keys()


def test_no_index_and_something_else(tmp_path):
    (only,) = check(tmp_path / "missing")
    assert (only.name, only.severity, only.remedy) == ("folder", "error", "likewise index FOLDER")
    (tmp_path / "letter.txt").write_text("")
    (only,) = check(tmp_path)
    assert "not an index" in only.message


def test_a_new_index(tmp_path):
    Catalogue.open(tmp_path / "i", mode="create").close()
    found = findings(tmp_path / "i")
    assert (found["encoder"].severity, found["encoder"].remedy) == ("info", "likewise index")
    assert "snapshot" not in found
    assert found["documents"].message == "no documents"


def test_a_catalogue_with_a_page_destroyed(folder):
    path = folder / CATALOGUE_FILE
    content = bytearray(path.read_bytes())
    content[5 * 16384 : 6 * 16384] = b"\x99" * 16384
    path.write_bytes(content)
    found = findings(folder)
    assert found["catalogue"].severity == "error"
    assert found["catalogue"].remedy.startswith(f"delete {folder}")
    assert list(found)[-1] == "catalogue"


@pytest.mark.parametrize(
    ("statement", "parameters", "name", "message"),
    [
        (
            "DELETE FROM document WHERE key = 'a'",
            (),
            "catalogue",
            "a row of passage refers to a missing document",
        ),
        ("DELETE FROM vector WHERE passage_id = 2", (), "vectors", "1 passages have no usable vector"),
        ("UPDATE vector SET data = x'00' WHERE passage_id = 2", (), "vectors", "1 passages have no usable"),
        (
            "UPDATE vector SET data = ? WHERE passage_id < 3",
            (np.full(64, np.nan, np.float32).tobytes(),),
            "vectors",
            "2 of 3 vectors are not of length 1",
        ),
        ("DELETE FROM passage_terms WHERE rowid = 1", (), "lexical", "1 passages are out of step"),
        ("INSERT INTO passage_terms (rowid, body) VALUES (77, 'ghost')", (), "lexical", "1 passages are out"),
    ],
)
def test_rows_out_of_step(folder, statement, parameters, name, message):
    damage(folder, statement, *parameters)
    found = findings(folder)[name]
    assert found.severity == "error"
    assert message in found.message
    assert found.remedy


def test_a_damaged_snapshot_is_a_warning(folder):
    for path in folder.glob("*.faiss"):
        path.write_bytes(path.read_bytes()[:-1])
    found = findings(folder)["snapshot"]
    assert (found.severity, found.remedy) == ("warning", "likewise index")
    assert "bytes" in found.message


def test_no_snapshot_and_a_poor_one(folder):
    damage(folder, "UPDATE snapshot SET recall = 0.8, spec = 'IDMap2,SQ8'")
    found = findings(folder)["snapshot"]
    assert (found.severity, "0.800" in found.message, "Flat" in found.remedy) == ("warning", True, True)
    damage(folder, "DELETE FROM snapshot", check_references=True)
    assert findings(folder)["snapshot"].severity == "info"


def test_a_long_tail(folder, make_document):
    with Catalogue.open(folder, mode="write") as catalogue:
        catalogue.apply([make_document("c", [f"text {number}" for number in range(1001)])])
    found = findings(folder)["tail"]
    assert (found.severity, found.message) == ("info", "1001 passages added and 0 removed since the snapshot")


def test_another_analyser(folder):
    analysis = Analysis("another", lambda text, language: text.split())
    with Catalogue.open(folder, mode="write", analysis=analysis) as catalogue:
        catalogue.apply([])
    assert findings(folder)["lexical"].severity == "warning"


def test_files_left_behind(folder):
    (folder / "vectors-9-ff.faiss.tmp").write_bytes(b"x" * 100_000)
    found = findings(folder)["files"]
    assert (found.severity, found.message) == (
        "info",
        "1 vector files left behind by an interrupted run (0.1 MB)",
    )


def test_a_writer_at_work(folder):
    with WriterLock(folder):
        found = findings(folder)["writer"]
    assert found.severity == "info"
    assert "being written by process" in found.message


def test_little_room(folder, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1000})())
    assert findings(folder)["room"].severity == "warning"


def test_failed_documents(folder, make_document):
    with Catalogue.open(folder, mode="write", files=FileSystem()) as catalogue:
        catalogue.apply([make_document("c", [], state=DocumentState.FAILED, reason="torn")])
    found = findings(folder)["documents"]
    assert (found.severity, found.message) == ("warning", "3 documents (1 empty, 1 failed, 1 ok)")


def test_an_index_that_lost_all_its_passages_needs_nothing(folder):
    with Catalogue.open(folder, mode="write") as catalogue:
        catalogue.apply([DeleteDocument("a")])
        publish(catalogue, folder)
    assert not any(found.remedy for found in check(folder))


def test_an_index_without_passages_needs_nothing(empty_index):
    assert not any(found.remedy for found in check(empty_index))


def test_what_is_missing_is_said_once(folder):
    damage(folder, "DELETE FROM background")
    found = findings(folder)
    assert (found["snapshot"].severity, found["snapshot"].remedy) == ("info", "likewise index")
    assert (found["tail"].severity, found["tail"].remedy) == ("ok", "")
