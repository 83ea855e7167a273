"""Numbered steps from one catalogue format to the next, taken together in one transaction.

So a catalogue is of the old format or of the new one, and a new index has all its tables or none. A step is
never edited after a release: a change of the format is a new step at the end.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from likewise.index.files import FileSystem
from likewise.index.migrations import m0001_initial, m0002_background

MIGRATIONS: tuple[tuple[str, ...], ...] = (m0001_initial.STATEMENTS, m0002_background.STATEMENTS)
"""Step n (from 1) leads from format n - 1 to format n."""

FORMAT_VERSION = len(MIGRATIONS)
"""Format that this version of likewise reads and writes; `PRAGMA user_version` of the catalogue."""


def migrate(
    connection: sqlite3.Connection,
    files: FileSystem,
    *,
    steps: Sequence[Sequence[str]] = MIGRATIONS,
) -> int:
    """Bring the catalogue to the format of `steps`; if one fails, it stays what it was.

    Args:
        connection: In autocommit mode, the only writer.
        files: Commits.
        steps: The steps; other than the default for tests.

    Returns:
        The format it had before.
    """
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found >= len(steps):
        return int(found)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statements in steps[found:]:
            for statement in statements:
                connection.execute(statement)
        # Inside the transaction: the number can never disagree with the tables.
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        files.commit(connection)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return int(found)
