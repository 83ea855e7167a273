"""The statements that change documents, passages, vectors, lexical index and operation log.

Every function here runs inside a transaction that its caller began and will commit: none of them may commit,
and none may leave passage, vector, terms and log out of step with each other.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.errors import EncoderError
from likewise.index.catalogue_read import VECTOR_TYPE, EncoderRow, known_vectors
from likewise.index.records import Passage
from likewise.index.rows import (
    Change,
    DeleteDocument,
    PassageRow,
    RenameDocument,
    SnapshotRow,
    TouchDocument,
    WriteDocument,
)
from likewise.index.terms import About, PassageTerms, describing_words

_SURROGATE = re.compile("[\ud800-\udfff]")

# How far from length 1 a stored vector may be: float32 and half-precision runtimes stay well within.
_NORM_TOLERANCE = 1e-2


class Analysis(NamedTuple):
    """The analyser as the catalogue uses it.

    Attributes:
        version: Changes whenever `analyze` gives other terms for some text.
        analyze: Terms of a text, given the text and its language code ("" if unknown).
    """

    version: str
    analyze: Callable[[str, str], Sequence[str]]


class Writer:
    """Applies changes to a catalogue within one transaction.

    Args:
        connection: In a write transaction.
        encoder: The current encoder, or None before one is set; then only documents without passages.
        analysis: Makes the terms of the lexical index.
    """

    def __init__(
        self, connection: sqlite3.Connection, encoder: EncoderRow | None, analysis: Analysis
    ) -> None:
        self._connection = connection
        self._encoder = encoder
        self._terms = PassageTerms(analysis.analyze)
        row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'passage'").fetchone()
        self._next_id = (int(row[0]) if row else 0) + 1
        self._known: Mapping[bytes, NDArray[np.float32]] = {}

    def apply(self, changes: Sequence[Change]) -> None:
        """Apply the changes in order.

        Raises:
            EncoderError: A vector has the wrong length or holds something else than finite numbers.
            ValueError: A passage came without a vector, and none is known for its text.
        """
        # Looked up before anything is deleted: a moved text takes its vector along.
        self._known = self._reusable(changes)
        for change in changes:
            match change:
                case WriteDocument():
                    self._write(change)
                case DeleteDocument():
                    self._delete(change.key)
                case RenameDocument():
                    self._rename(change)
                case TouchDocument():
                    self._connection.execute(
                        "UPDATE document SET size = ?, mtime_ns = ? WHERE key = ?",
                        (change.size, change.mtime_ns, change.key),
                    )

    def rebuild_terms(self) -> None:
        """Make the lexical index anew from all passages."""
        self._connection.execute("DELETE FROM passage_terms")
        rows = self._connection.execute(
            "SELECT p.id, p.ordinal, p.headings, p.text, d.title, d.metadata, d.language"
            " FROM passage AS p JOIN document AS d ON d.id = p.document_id ORDER BY p.id"
        )
        self._connection.executemany(
            "INSERT INTO passage_terms (rowid, title, headings, body) VALUES (?, ?, ?, ?)",
            (
                (
                    id_,
                    *self._terms.columns(
                        _about(title, metadata, language), ordinal, json.loads(headings), text
                    ),
                )
                for id_, ordinal, headings, text, title, metadata, language in rows
            ),
        )

    def _reusable(self, changes: Sequence[Change]) -> Mapping[bytes, NDArray[np.float32]]:
        wanted = {
            row.text_hash
            for change in changes
            if isinstance(change, WriteDocument)
            for row in change.passages
            if row.vector is None
        }
        return (
            known_vectors(self._connection, self._encoder, list(wanted)) if self._encoder and wanted else {}
        )

    def _write(self, change: WriteDocument) -> None:
        found = self._connection.execute(
            "SELECT id, title, metadata, language FROM document WHERE key = ?", (change.key,)
        ).fetchone()
        metadata = json.dumps(dict(change.metadata))
        about = _about(_text(change.title), metadata, _text(change.language))
        self._connection.execute(
            "INSERT INTO document (key, path_bytes, suffix, size, mtime_ns, content_hash, state, reason,"
            " reader, title, language, encoding, lossy, notes, metadata)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (key) DO UPDATE SET path_bytes = excluded.path_bytes, suffix = excluded.suffix,"
            " size = excluded.size, mtime_ns = excluded.mtime_ns, content_hash = excluded.content_hash,"
            " state = excluded.state, reason = excluded.reason, reader = excluded.reader,"
            " title = excluded.title, language = excluded.language, encoding = excluded.encoding,"
            " lossy = excluded.lossy, notes = excluded.notes, metadata = excluded.metadata",
            (
                change.key,
                change.path_bytes,
                _suffix(change.key),
                change.size,
                change.mtime_ns,
                change.content_hash,
                change.state.value,
                _text(change.reason),
                change.reader,
                about.title,
                about.language,
                change.encoding,
                change.lossy,
                json.dumps(change.notes),
                metadata,
            ),
        )
        if found is None:
            (document,) = self._connection.execute(
                "SELECT id FROM document WHERE key = ?", (change.key,)
            ).fetchone()
            self._add(document, [(row, _text(row.passage.text)) for row in change.passages], about)
        else:
            document, *before = found
            self._replace(document, change.passages, about, about != _about(*before))

    def _replace(
        self, document: int, passages: Sequence[PassageRow], about: About, about_changed: bool
    ) -> None:
        """Keep what is unchanged under its id, add the rest, remove what is no longer there."""
        unclaimed: defaultdict[tuple[bytes, str], deque[tuple[int, int, str]]] = defaultdict(deque)
        for id_, digest, ordinal, text, headings in self._connection.execute(
            "SELECT id, text_hash, ordinal, text, headings FROM passage"
            " WHERE document_id = ? ORDER BY ordinal",
            (document,),
        ):
            unclaimed[digest, text].append((id_, ordinal, headings))
        new: list[tuple[PassageRow, str]] = []
        for row in passages:
            text = _text(row.passage.text)
            same = unclaimed.get((row.text_hash, text))
            if not same:
                new.append((row, text))
                continue
            id_, ordinal, headings = same.popleft()
            moved = (ordinal == 0) != (row.passage.ordinal == 0)
            changed = about_changed or moved or _headings(row.passage) != headings
            self._keep(id_, row, text, about, new_terms=changed)
        self._remove([id_ for left in unclaimed.values() for id_, _, _ in left])
        self._add(document, new, about)

    def _keep(self, id_: int, row: PassageRow, text: str, about: About, *, new_terms: bool) -> None:
        passage = row.passage
        self._connection.execute(
            "UPDATE passage SET ordinal = ?, span_start = ?, span_end = ?, line_first = ?, line_last = ?,"
            " page = ?, headings = ? WHERE id = ?",
            (
                passage.ordinal,
                passage.span.start,
                passage.span.end,
                *passage.lines,
                passage.page,
                _headings(passage),
                id_,
            ),
        )
        if new_terms:
            self._connection.execute(
                "UPDATE passage_terms SET title = ?, headings = ?, body = ? WHERE rowid = ?",
                (*self._terms.columns(about, passage.ordinal, passage.headings, text), id_),
            )

    def _add(self, document: int, rows: Sequence[tuple[PassageRow, str]], about: About) -> None:
        if not rows:
            return
        if self._encoder is None:
            raise ValueError("expected an encoder in the settings before the first passage, found none")
        vectors = self._vectors([row for row, _ in rows], self._encoder.dimension)
        ids = range(self._next_id, self._next_id + len(rows))
        self._next_id += len(rows)
        execute = self._connection.executemany
        execute(
            "INSERT INTO passage (id, document_id, ordinal, text, text_hash, span_start, span_end,"
            " line_first, line_last, page, headings) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    id_,
                    document,
                    row.passage.ordinal,
                    text,
                    row.text_hash,
                    row.passage.span.start,
                    row.passage.span.end,
                    *row.passage.lines,
                    row.passage.page,
                    _headings(row.passage),
                )
                for id_, (row, text) in zip(ids, rows, strict=True)
            ),
        )
        insert_vectors(self._connection, self._encoder, zip(ids, vectors, strict=True))
        execute(
            "INSERT INTO passage_terms (rowid, title, headings, body) VALUES (?, ?, ?, ?)",
            (
                (id_, *self._terms.columns(about, row.passage.ordinal, row.passage.headings, text))
                for id_, (row, text) in zip(ids, rows, strict=True)
            ),
        )
        execute("INSERT INTO oplog (operation, passage_id) VALUES ('+', ?)", ((id_,) for id_ in ids))

    def _vectors(self, rows: Sequence[PassageRow], dimension: int) -> NDArray[np.float32]:
        vectors = []
        for row in rows:
            vector = self._known.get(row.text_hash) if row.vector is None else row.vector
            if vector is None:
                raise ValueError(
                    f"expected a vector for {row.passage.text[:60]!r}, found none given or known"
                )
            vectors.append(vector)
        return checked_vectors(vectors, dimension)

    def _remove(self, ids: Sequence[int]) -> None:
        execute = self._connection.executemany
        execute("DELETE FROM passage_terms WHERE rowid = ?", ((id_,) for id_ in ids))
        execute("DELETE FROM passage WHERE id = ?", ((id_,) for id_ in ids))  # vectors follow by cascade
        execute("INSERT INTO oplog (operation, passage_id) VALUES ('-', ?)", ((id_,) for id_ in ids))

    def _delete(self, key: str) -> None:
        rows = self._connection.execute(
            "SELECT p.id FROM passage AS p JOIN document AS d ON d.id = p.document_id WHERE d.key = ?", (key,)
        ).fetchall()
        self._remove([id_ for (id_,) in rows])
        self._connection.execute("DELETE FROM document WHERE key = ?", (key,))

    def _rename(self, change: RenameDocument) -> None:
        if change.new_key != change.key:
            self._delete(change.new_key)
        self._connection.execute(
            "UPDATE document SET key = ?, path_bytes = ?, suffix = ?, size = ?, mtime_ns = ? WHERE key = ?",
            (
                change.new_key,
                change.path_bytes,
                _suffix(change.new_key),
                change.size,
                change.mtime_ns,
                change.key,
            ),
        )


def insert_vectors(
    connection: sqlite3.Connection, encoder: EncoderRow, rows: Iterable[tuple[int, NDArray[np.float32]]]
) -> None:
    """Store vectors of passages, in place of those that the same encoder gave before."""
    connection.executemany(
        "INSERT OR REPLACE INTO vector (encoder_id, passage_id, data) VALUES (?, ?, ?)",
        ((encoder.id, id_, vector.astype(VECTOR_TYPE, copy=False).tobytes()) for id_, vector in rows),
    )


def checked_vectors(vectors: Sequence[NDArray[np.float32]], dimension: int) -> NDArray[np.float32]:
    """The vectors as one matrix, if they are what an index can compare: right length, finite, unit norm.

    Raises:
        EncoderError: They are not.
    """
    lengths = {vector.shape for vector in vectors} - {(dimension,)}
    if lengths:
        raise EncoderError(f"expected vectors of shape ({dimension},), found {sorted(lengths)[0]}")
    matrix = np.asarray(vectors, dtype=np.float32)
    norms = np.linalg.norm(matrix, axis=1)
    # Written so that NaN fails too.
    wrong = np.flatnonzero(~(np.abs(norms - 1) <= _NORM_TOLERANCE))
    if len(wrong):
        raise EncoderError(f"expected vectors of length 1, found one of length {norms[wrong[0]]}")
    return matrix


def write_meta(connection: sqlite3.Connection, key: str, value: object) -> None:
    """Set one setting."""
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, json.dumps(value)))


def ensure_encoder(connection: sqlite3.Connection, fingerprint: str, dimension: int) -> EncoderRow:
    """The row of an encoder, made if it is new."""
    connection.execute(
        "INSERT INTO encoder (fingerprint, dimension) VALUES (?, ?) ON CONFLICT (fingerprint) DO NOTHING",
        (fingerprint, dimension),
    )
    row = connection.execute(
        "SELECT id, fingerprint, dimension FROM encoder WHERE fingerprint = ?", (fingerprint,)
    ).fetchone()
    return EncoderRow(*row)


def passages_without_vector(
    connection: sqlite3.Connection, encoder: EncoderRow, *, after: int, limit: int
) -> list[int]:
    """Ids above `after`, ascending, of passages that an encoder has not embedded yet."""
    rows = connection.execute(
        "SELECT id FROM passage WHERE id > ? AND NOT EXISTS"
        " (SELECT 1 FROM vector WHERE encoder_id = ? AND passage_id = passage.id) ORDER BY id LIMIT ?",
        (after, encoder.id, limit),
    )
    return [id_ for (id_,) in rows]


def drop_other_encoders(connection: sqlite3.Connection, encoder: EncoderRow) -> None:
    """Forget the vectors of all encoders but one."""
    connection.execute("DELETE FROM vector WHERE encoder_id <> ?", (encoder.id,))
    connection.execute("DELETE FROM encoder WHERE id <> ?", (encoder.id,))


def record_snapshot(connection: sqlite3.Connection, row: SnapshotRow, *, keep: int) -> int:
    """Record a published file, trim the log that it includes, forget all but the newest `keep` snapshots.

    Returns:
        The generation of the new one.
    """
    inserted = connection.execute(
        "INSERT INTO snapshot (file, through, count, dimension, bytes, sha256, spec, faiss_version,"
        " fingerprint, recall, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            row.file,
            row.through,
            row.count,
            row.dimension,
            row.bytes,
            row.sha256,
            row.spec,
            row.faiss_version,
            row.fingerprint,
            row.recall,
            row.created,
        ),
    )
    connection.execute("DELETE FROM oplog WHERE seq <= ?", (row.through,))
    connection.execute(
        "DELETE FROM snapshot WHERE generation NOT IN"
        " (SELECT generation FROM snapshot ORDER BY generation DESC LIMIT ?)",
        (keep,),
    )
    assert inserted.lastrowid is not None  # an INSERT has just set it
    return inserted.lastrowid


def _about(title: str, metadata: str, language: str) -> About:
    # Not of the given metadata but of what is stored of it, so that equal ones are told to be equal.
    return About(title, _text(describing_words(json.loads(metadata))), language)


def _headings(passage: Passage) -> str:
    return json.dumps([_text(heading) for heading in passage.headings], ensure_ascii=False)


def _suffix(key: str) -> str:
    return PurePosixPath(key).suffix.lower()


def _text(text: str) -> str:
    # Lone surrogates are no Unicode text and SQLite refuses them; one character for one keeps spans right.
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
