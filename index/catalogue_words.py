"""The queries over the words of a catalogue: who holds a term or a phrase, and which terms there are.

Like `catalogue_read`, nothing here changes anything or remembers. Nothing ranks.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.index.catalogue_read import as_json, match_expression
from likewise.index.phrases import Near, Phrase


def all_passages(connection: sqlite3.Connection) -> NDArray[np.int64]:
    """Ids of all passages, ascending."""
    return _ids(connection.execute("SELECT id FROM passage ORDER BY id"))


def passages_with_term(
    connection: sqlite3.Connection, term: str, allowed: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Ids of the passages that hold a term in any column, ascending."""
    expression = match_expression([term])
    return _matching(connection, expression, allowed) if expression else np.empty(0, np.int64)


def passages_with_phrase(
    connection: sqlite3.Connection, phrase: Phrase, allowed: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Ids of the passages that hold a phrase in their text, one of their headings or their title, ascending.

    The lexical index says which passages may, and their own words decide.
    """
    if allowed is not None and not len(allowed):
        return allowed
    if expression := near_expression(phrase.needs()):
        allowed = _matching(connection, expression, allowed)
    return np.array(
        [id_ for id_, texts in _texts(connection, allowed) if phrase.occurs_in(texts)], dtype=np.int64
    )


def terms_beginning(
    connection: sqlite3.Connection, letter: str, shortest: int, longest: int
) -> dict[str, int]:
    """Terms of a length that begin with an ASCII letter, with the number of passages that hold them."""
    connection.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.term_counts USING fts5vocab (main, passage_terms, row)"
    )
    # The bounds make it a short walk along the sorted vocabulary.
    return dict(
        connection.execute(
            "SELECT term, doc FROM temp.term_counts WHERE term >= ? AND term < ?"
            " AND length(term) BETWEEN ? AND ?",
            (letter, chr(ord(letter) + 1), shortest, longest),
        )
    )


def near_expression(needs: Sequence[Near]) -> str:
    """FTS5 query for passages that hold all of these, each in one column.

    Example:
        >>> near_expression([Near(("key",), 0), Near(("金", "钥"), 4)])
        '"key" AND NEAR("金" "钥", 4)'
        >>> near_expression([])
        ''
    """
    return " AND ".join(
        f"NEAR({' '.join(map(_quoted, need.terms))}, {need.distance})"
        if len(need.terms) > 1
        else _quoted(need.terms[0])
        for need in needs
    )


def _quoted(term: str) -> str:
    return match_expression([term])


def _matching(
    connection: sqlite3.Connection, expression: str, allowed: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    found = _ids(
        connection.execute(
            "SELECT rowid FROM passage_terms WHERE passage_terms MATCH ? ORDER BY rowid", (expression,)
        )
    )
    return found if allowed is None else np.intersect1d(found, allowed, assume_unique=True)


def _texts(
    connection: sqlite3.Connection, allowed: NDArray[np.int64] | None
) -> Iterator[tuple[int, list[str]]]:
    """Passages by id, with text, title and headings."""
    condition = ""
    values: list[str] = []
    if allowed is not None:
        condition = "WHERE p.id IN (SELECT value FROM json_each(?))"
        values.append(as_json(allowed))
    for id_, text, title, headings in connection.execute(
        "SELECT p.id, p.text, d.title, p.headings FROM passage AS p"
        f" JOIN document AS d ON d.id = p.document_id {condition} ORDER BY p.id",
        values,
    ):
        yield id_, [text, title, *json.loads(headings)]


def _ids(rows: Iterable[tuple[int]]) -> NDArray[np.int64]:
    return np.fromiter((row[0] for row in rows), dtype=np.int64)
