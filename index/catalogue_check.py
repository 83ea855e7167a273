"""The queries with which the doctor looks for damage: they read everything and are never needed otherwise."""

from __future__ import annotations

import sqlite3

from likewise.index.catalogue_read import EncoderRow


def structural_damage(connection: sqlite3.Connection) -> list[str]:
    """What SQLite finds wrong with the file and with references between rows, at most ten remarks."""
    remarks = [text for (text,) in connection.execute("PRAGMA integrity_check(10)") if text != "ok"]
    broken = connection.execute("PRAGMA foreign_key_check").fetchmany(10)
    remarks += [f"a row of {table} refers to a missing {parent}" for table, _, parent, _ in broken]
    return remarks[:10]


def count_without_vector(connection: sqlite3.Connection, encoder: EncoderRow) -> int:
    """Passages that have no vector of the encoder, or one of the wrong length."""
    (number,) = connection.execute(
        "SELECT count(*) FROM passage AS p LEFT JOIN vector AS v ON v.encoder_id = ? AND v.passage_id = p.id"
        " WHERE v.data IS NULL OR length(v.data) <> ?",
        (encoder.id, 4 * encoder.dimension),
    ).fetchone()
    return int(number)


def count_out_of_lexical_step(connection: sqlite3.Connection) -> int:
    """Passages without terms, and terms without a passage."""
    (missing,) = connection.execute(
        "SELECT count(*) FROM passage WHERE id NOT IN (SELECT rowid FROM passage_terms)"
    ).fetchone()
    (surplus,) = connection.execute(
        "SELECT count(*) FROM passage_terms WHERE rowid NOT IN (SELECT id FROM passage)"
    ).fetchone()
    return int(missing + surplus)
