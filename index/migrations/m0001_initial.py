"""Format 1: documents, passages, vectors, lexical index, operation log, snapshots, settings.

`passage.id` and `oplog.seq` are AUTOINCREMENT so that SQLite never gives out a number twice: snapshots and
readers' memories refer to passages by id, and a reused id would answer with the wrong text.

`passage_terms` is an FTS5 table that keeps its own copy of the analysed terms. A contentless table would be
smaller, but before SQLite 3.43 it can only forget a row by being given the very terms it was built from, and
those change with the analyser; its own copy makes every deletion exact. The tokenizer splits at white space
only, for the analyser has already decided what a term is.
"""

from __future__ import annotations

_PUNCTUATION = "".join(chr(code) for code in range(0x21, 0x7F) if not chr(code).isalnum())
# As an SQL string inside an FTS5 argument list, where both kinds of quotation marks are doubled.
_TOKENIZE = "ascii tokenchars '" + _PUNCTUATION.replace("'", "''") + "'"

APPLICATION_ID = 0x4C_4B_57_53
"""Marks the database as a likewise catalogue ("LKWS"); `file` and `PRAGMA application_id` show it."""

STATEMENTS: tuple[str, ...] = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE document (
        id           INTEGER PRIMARY KEY,
        key          TEXT NOT NULL UNIQUE,
        path_bytes   BLOB NOT NULL,
        suffix       TEXT NOT NULL,
        size         INTEGER NOT NULL,
        mtime_ns     INTEGER NOT NULL,
        content_hash TEXT NOT NULL,
        state        TEXT NOT NULL,
        reason       TEXT NOT NULL,
        reader       TEXT NOT NULL,
        title        TEXT NOT NULL,
        language     TEXT NOT NULL,
        encoding     TEXT NOT NULL,
        lossy        INTEGER NOT NULL,
        notes        TEXT NOT NULL,
        metadata     TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE passage (
        id          INTEGER PRIMARY KEY AUTOINCREMENT,
        document_id INTEGER NOT NULL REFERENCES document (id),
        ordinal     INTEGER NOT NULL,
        text        TEXT NOT NULL,
        text_hash   BLOB NOT NULL,
        span_start  INTEGER NOT NULL,
        span_end    INTEGER NOT NULL,
        line_first  INTEGER NOT NULL,
        line_last   INTEGER NOT NULL,
        page        INTEGER,
        headings    TEXT NOT NULL
    )
    """,
    "CREATE INDEX passage_by_document ON passage (document_id, ordinal)",
    "CREATE INDEX passage_by_text ON passage (text_hash)",
    """
    CREATE TABLE encoder (
        id          INTEGER PRIMARY KEY,
        fingerprint TEXT NOT NULL UNIQUE,
        dimension   INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE vector (
        encoder_id INTEGER NOT NULL REFERENCES encoder (id),
        passage_id INTEGER NOT NULL REFERENCES passage (id) ON DELETE CASCADE,
        data       BLOB NOT NULL,
        PRIMARY KEY (encoder_id, passage_id)
    )
    """,
    # Deleting a passage looks for its vectors of every encoder.
    "CREATE INDEX vector_by_passage ON vector (passage_id)",
    f"""
    CREATE VIRTUAL TABLE passage_terms USING fts5 (
        title, headings, body, tokenize = "{_TOKENIZE.replace('"', '""')}"
    )
    """,
    """
    CREATE TABLE oplog (
        seq        INTEGER PRIMARY KEY AUTOINCREMENT,
        operation  TEXT NOT NULL CHECK (operation IN ('+', '-')),
        passage_id INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE snapshot (
        generation    INTEGER PRIMARY KEY AUTOINCREMENT,
        file          TEXT NOT NULL UNIQUE,
        through       INTEGER NOT NULL,
        count         INTEGER NOT NULL,
        dimension     INTEGER NOT NULL,
        bytes         INTEGER NOT NULL,
        sha256        TEXT NOT NULL,
        spec          TEXT NOT NULL,
        faiss_version TEXT NOT NULL,
        fingerprint   TEXT NOT NULL,
        recall        REAL NOT NULL,
        created       REAL NOT NULL
    )
    """,
)
