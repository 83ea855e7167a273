"""The queries over a catalogue: plain functions of a connection, shared by `Catalogue` and `IndexView`.

Nothing here changes anything, and nothing remembers: two calls inside one transaction see the same index.
Lists of ids travel as one JSON parameter, because SQLite limits the number of parameters.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.index.catalogue_filter import filter_condition
from likewise.index.records import DocumentState, Filter, Json, Passage, Span, StoredPassage
from likewise.index.rows import CatalogueCounts, DocumentRow, Ranking, SnapshotRow

# bm25() column weights. A term in the title or a heading says more about what a passage is about than one
# somewhere in its text, but all passages of a document share its title, so it must not drown the text.
TITLE_WEIGHT, HEADING_WEIGHT, BODY_WEIGHT = 1.5, 1.5, 1.0

# What SQL text and FTS5 tokens cannot hold: white space and controls would split a term or end the query.
_UNSEARCHABLE = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]+")

_MAX_TERMS = 256

# SQLite before 3.32 takes no more than 999.
_MAX_PARAMETERS = 900

VECTOR_TYPE = np.dtype("<f4")
"""How vectors are stored: little-endian float32, whatever the machine."""


class EncoderRow(NamedTuple):
    """An encoder that the catalogue holds vectors of."""

    id: int
    fingerprint: str
    dimension: int


def read_meta(connection: sqlite3.Connection) -> dict[str, Json]:
    """All settings."""
    return {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM meta")}


def read_setting(connection: sqlite3.Connection, key: str) -> Json:
    """One setting, or None if it is not set."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return json.loads(row[0]) if row else None


def current_encoder(connection: sqlite3.Connection) -> EncoderRow | None:
    """The encoder whose vectors answer, or None before the first one is set."""
    row = connection.execute(
        "SELECT id, fingerprint, dimension FROM encoder WHERE fingerprint ="
        " (SELECT json_extract(value, '$.fingerprint') FROM meta WHERE key = 'encoder')"
    ).fetchone()
    return EncoderRow(*row) if row else None


def find_encoder(connection: sqlite3.Connection, fingerprint: str) -> EncoderRow | None:
    """The encoder with this fingerprint, if the catalogue has met it."""
    row = connection.execute(
        "SELECT id, fingerprint, dimension FROM encoder WHERE fingerprint = ?", (fingerprint,)
    ).fetchone()
    return EncoderRow(*row) if row else None


def read_documents(connection: sqlite3.Connection) -> Iterator[DocumentRow]:
    """All documents in order of their keys."""
    for row in connection.execute(
        "SELECT key, path_bytes, size, mtime_ns, content_hash, state, reason, reader, title, language,"
        " encoding, lossy, notes, metadata, (SELECT count(*) FROM passage WHERE document_id = document.id)"
        " FROM document ORDER BY key"
    ):
        columns = list(row)
        columns[5] = DocumentState(columns[5])
        columns[12] = tuple(json.loads(columns[12]))
        columns[13] = json.loads(columns[13])
        yield DocumentRow(*columns)


def read_counts(connection: sqlite3.Connection) -> CatalogueCounts:
    """How many documents and passages there are, and how many changed since the last snapshot."""
    states = {
        DocumentState(state): number
        for state, number in connection.execute("SELECT state, count(*) FROM document GROUP BY state")
    }
    operations = dict(connection.execute("SELECT operation, count(*) FROM oplog GROUP BY operation"))
    return CatalogueCounts(
        documents=sum(states.values()),
        states=states,
        passages=count_passages(connection),
        added=operations.get("+", 0),
        removed=operations.get("-", 0),
    )


def count_passages(connection: sqlite3.Connection) -> int:
    """How many passages there are."""
    return int(connection.execute("SELECT count(*) FROM passage").fetchone()[0])


def select_passages(connection: sqlite3.Connection, filter: Filter) -> NDArray[np.int64]:
    """Ids of the passages whose documents meet the filter, ascending."""
    condition, values = filter_condition(filter)
    return _ids(
        connection.execute(
            "SELECT p.id FROM document AS d JOIN passage AS p ON p.document_id = d.id"
            f" WHERE {condition} ORDER BY p.id",
            values,
        )
    )


def match_expression(terms: Iterable[str]) -> str:
    """FTS5 query for passages with any of the terms, which are taken literally.

    A repeated term stays repeated: FTS5 adds up the weight of every phrase, so a word that a long question
    says twice counts twice, as BM25 has it.

    Example:
        >>> match_expression(["key", "NEAR(", "key"])
        '"key" OR "NEAR(" OR "key"'
    """
    cleaned = (_UNSEARCHABLE.sub("", term) for term in terms)
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in cleaned if term)


def rank_lexically(
    connection: sqlite3.Connection, terms: Sequence[str], k: int, allowed: NDArray[np.int64] | None
) -> Ranking:
    """Best passages by BM25 (Robertson & Zaragoza 2009, as FTS5 computes it: k1 = 1.2, b = 0.75).

    A term that is repeated counts as often. Of more than 256 terms the 256 rarest that occur are used: the
    others hardly change the ranking, and FTS5 takes time with the square of their number.
    """
    expression = match_expression(_telling_terms(connection, terms))
    if not expression or (allowed is not None and not len(allowed)):
        return empty_ranking()
    parameters: list[object] = [expression]
    restriction = ""
    if allowed is not None:
        # The plus sign keeps the planner from running the full-text match once per allowed id.
        restriction = "AND +rowid IN (SELECT value FROM json_each(?))"
        parameters.append(as_json(allowed))
    rows = connection.execute(
        f"SELECT rowid, -bm25(passage_terms, {TITLE_WEIGHT}, {HEADING_WEIGHT}, {BODY_WEIGHT}) AS score"
        f" FROM passage_terms WHERE passage_terms MATCH ? {restriction} ORDER BY score DESC, rowid LIMIT ?",
        [*parameters, k],
    ).fetchall()
    return Ranking(
        np.array([row[0] for row in rows], dtype=np.int64),
        np.array([row[1] for row in rows], dtype=np.float32),
    )


def count_passages_with(connection: sqlite3.Connection, terms: Iterable[str]) -> dict[str, int]:
    """How many passages hold each of the terms, in any column; terms that none holds are left out."""
    connection.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.term_counts USING fts5vocab (main, passage_terms, row)"
    )
    found = {}
    for term in dict.fromkeys(terms):
        # FTS5 compares the bytes of terms; what cannot be encoded does not occur.
        if _UNSEARCHABLE.search(term):
            continue
        row = connection.execute("SELECT doc FROM temp.term_counts WHERE term = ?", (term,)).fetchone()
        if row:
            found[term] = int(row[0])
    return found


def _telling_terms(connection: sqlite3.Connection, terms: Sequence[str]) -> Sequence[str]:
    """The terms that say most about what is wanted, if there are too many to look up all."""
    if len(terms) <= _MAX_TERMS:
        return terms
    counts = count_passages_with(connection, terms)
    found = [(counts[term], place, term) for place, term in enumerate(terms) if term in counts]
    return [term for _, _, term in sorted(found)[:_MAX_TERMS]]


def read_passages(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, StoredPassage]:
    """The passages under the given ids; ids that do not exist are left out."""
    return {
        passage.id: passage
        for passage in _stored(connection, "p.id IN (SELECT value FROM json_each(?))", as_json(ids))
    }


def read_document_passages(connection: sqlite3.Connection, key: str) -> list[StoredPassage]:
    """The passages of a document in text order."""
    return list(_stored(connection, "d.key = ?", key))


def read_vectors(
    connection: sqlite3.Connection, encoder: EncoderRow, ids: Iterable[int]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Those of the ids that exist, ascending, and their vectors, shape (n, dimension)."""
    rows = connection.execute(
        "SELECT passage_id, data FROM vector WHERE encoder_id = ?"
        " AND passage_id IN (SELECT value FROM json_each(?)) ORDER BY passage_id",
        (encoder.id, as_json(ids)),
    ).fetchall()
    return _vector_rows(rows, encoder.dimension)


def stream_vectors(
    connection: sqlite3.Connection, encoder: EncoderRow, *, rows: int = 4096
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """All ids, ascending, with their vectors, in blocks of at most `rows`."""
    cursor = connection.execute(
        "SELECT passage_id, data FROM vector WHERE encoder_id = ? ORDER BY passage_id", (encoder.id,)
    )
    while block := cursor.fetchmany(rows):
        yield _vector_rows(block, encoder.dimension)


def sample_ids(connection: sqlite3.Connection, size: int) -> NDArray[np.int64]:
    """About `size` passage ids spread evenly over the index, ascending; the same for the same index."""
    step = max(1, count_passages(connection) // size)
    return _ids(
        connection.execute(
            "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM passage)"
            " WHERE (place - 1) % ? = 0 LIMIT ?",
            (step, size),
        )
    )


def known_vectors(
    connection: sqlite3.Connection, encoder: EncoderRow, text_hashes: Sequence[bytes]
) -> dict[bytes, NDArray[np.float32]]:
    """Vectors of texts that some passage already has, by the digest of the text."""
    found: dict[bytes, NDArray[np.float32]] = {}
    for start in range(0, len(text_hashes), _MAX_PARAMETERS):
        block = text_hashes[start : start + _MAX_PARAMETERS]
        for digest, data in connection.execute(
            "SELECT p.text_hash, v.data FROM passage AS p"
            " JOIN vector AS v ON v.encoder_id = ? AND v.passage_id = p.id"
            f" WHERE p.text_hash IN ({', '.join('?' * len(block))})",
            (encoder.id, *block),
        ):
            found[digest] = np.frombuffer(data, VECTOR_TYPE).astype(np.float32, copy=False)
    return found


def last_operation(connection: sqlite3.Connection) -> int:
    """Sequence number of the newest entry that the operation log ever had."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'oplog'").fetchone()
    return int(row[0]) if row else 0


def added_since(connection: sqlite3.Connection, through: int) -> NDArray[np.int64]:
    """Ids of the passages added after operation `through`, ascending; some may be gone again."""
    return _ids(
        connection.execute(
            "SELECT DISTINCT passage_id FROM oplog WHERE seq > ? AND operation = '+' ORDER BY passage_id",
            (through,),
        )
    )


def read_snapshots(connection: sqlite3.Connection) -> list[SnapshotRow]:
    """The recorded snapshots, newest first."""
    return [
        SnapshotRow(*row)
        for row in connection.execute(
            "SELECT generation, file, through, count, dimension, bytes, sha256, spec, faiss_version,"
            " fingerprint, recall, created FROM snapshot ORDER BY generation DESC"
        )
    ]


def as_json(ids: Iterable[int]) -> str:
    """Ids as a JSON list, the form in which they reach SQLite."""
    return json.dumps(ids.tolist() if isinstance(ids, np.ndarray) else [int(number) for number in ids])


def empty_ranking() -> Ranking:
    """No hits."""
    return Ranking(np.empty(0, np.int64), np.empty(0, np.float32))


def _ids(rows: Iterable[tuple[int]]) -> NDArray[np.int64]:
    return np.fromiter((row[0] for row in rows), dtype=np.int64)


def _vector_rows(
    rows: Sequence[tuple[int, bytes]], dimension: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    ids = np.array([row[0] for row in rows], dtype=np.int64)
    vectors = np.frombuffer(b"".join(row[1] for row in rows), VECTOR_TYPE).reshape(-1, dimension)
    return ids, vectors.astype(np.float32, copy=False)


def _stored(connection: sqlite3.Connection, condition: str, value: str) -> Iterator[StoredPassage]:
    parsed: dict[str, dict[str, Json]] = {}
    for row in connection.execute(
        "SELECT p.id, d.key, d.title, d.language, d.content_hash, d.metadata, p.ordinal, p.text,"
        " p.span_start, p.span_end, p.line_first, p.line_last, p.page, p.headings"
        f" FROM passage AS p JOIN document AS d ON d.id = p.document_id WHERE {condition}"
        " ORDER BY d.id, p.ordinal",
        (value,),
    ):
        (
            id_,
            key,
            title,
            language,
            content_hash,
            metadata,
            ordinal,
            text,
            start,
            end,
            first,
            last,
            page,
            heads,
        ) = row
        if metadata not in parsed:
            parsed[metadata] = json.loads(metadata)
        passage = Passage(ordinal, text, Span(start, end), (first, last), page, tuple(json.loads(heads)))
        yield StoredPassage(id_, key, title, language, content_hash, passage, parsed[metadata])
