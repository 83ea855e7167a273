"""Opening a catalogue: what is refused, upgraded or explained."""

from __future__ import annotations

import sqlite3

import pytest

from likewise.errors import (
    IndexFolderError,
    IndexNotFound,
    IndexVersionError,
)
from likewise.index import catalogue_open, migrations
from likewise.index.catalogue import CATALOGUE_FILE, Catalogue
from likewise.index.lock import WriterLock

from .cataloguing import apply, found


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
