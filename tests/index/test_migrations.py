from __future__ import annotations

import sqlite3

import pytest

from likewise.index.files import FileSystem
from likewise.index.migrations import FORMAT_VERSION, MIGRATIONS, migrate

FILES = FileSystem()


@pytest.fixture
def connection():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    yield connection
    connection.close()


def names(connection):
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def version(connection):
    return connection.execute("PRAGMA user_version").fetchone()[0]


def test_all_steps_lead_to_the_current_format(connection):
    assert migrate(connection, FILES) == 0
    assert version(connection) == FORMAT_VERSION == len(MIGRATIONS)
    assert {"meta", "document", "passage", "vector", "passage_terms", "oplog", "snapshot"} <= names(
        connection
    )


def test_a_current_catalogue_is_left_alone(connection):
    migrate(connection, FILES)
    connection.execute("INSERT INTO meta VALUES ('a', '1')")
    assert migrate(connection, FILES) == FORMAT_VERSION
    assert connection.execute("SELECT value FROM meta").fetchall() == [("1",)]


def test_only_the_missing_steps_run_and_keep_what_is_there(connection):
    steps = [["CREATE TABLE a (x)"], ["CREATE TABLE b (x)", "INSERT INTO b SELECT x FROM a"]]
    migrate(connection, FILES, steps=steps[:1])
    connection.execute("INSERT INTO a VALUES (7)")
    assert migrate(connection, FILES, steps=steps) == 1
    assert connection.execute("SELECT x FROM b").fetchall() == [(7,)]
    assert version(connection) == 2


def test_a_step_that_fails_leaves_everything_as_it_was(connection):
    steps = [["CREATE TABLE a (x)"], ["CREATE TABLE b (x)"], ["DROP TABLE a", "SELECT nonsense"]]
    migrate(connection, FILES, steps=steps[:1])
    with pytest.raises(sqlite3.OperationalError, match="nonsense"):
        migrate(connection, FILES, steps=steps)
    assert (version(connection), names(connection)) == (1, {"a"})
    assert not connection.in_transaction


def test_a_commit_that_fails_leaves_the_format_before_it(connection):
    class Failing(FileSystem):
        def commit(self, connection):
            raise OSError("device gone")

    with pytest.raises(OSError, match="device gone"):
        migrate(connection, Failing())
    assert (version(connection), names(connection)) == (0, set())
