"""Numbered steps from one catalogue format to the next; each runs in a transaction of its own.

A step is never edited after a release: a change of the format is a new step at the end.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from likewise.index.files import FileSystem
from likewise.index.migrations import m0001_initial

MIGRATIONS: tuple[tuple[str, ...], ...] = (m0001_initial.STATEMENTS,)
"""Step n (from 1) leads from format n - 1 to format n."""

FORMAT_VERSION = len(MIGRATIONS)
"""Format that this version of likewise reads and writes; `PRAGMA user_version` of the catalogue."""


def migrate(
    connection: sqlite3.Connection,
    files: FileSystem,
    *,
    steps: Sequence[Sequence[str]] = MIGRATIONS,
) -> int:
    """Bring the catalogue to the format of `steps`; a step that fails leaves the format before it.

    Args:
        connection: In autocommit mode, the only writer.
        files: Commits.
        steps: The steps; other than the default for tests.

    Returns:
        The format it had before.
    """
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    for version, statements in enumerate(steps, start=1):
        if version <= found:
            continue
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements:
                connection.execute(statement)
            # Inside the transaction: the number can never disagree with the tables.
            connection.execute(f"PRAGMA user_version = {version}")
            files.commit(connection)
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return int(found)
