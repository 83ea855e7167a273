"""`Filter` to SQL: the condition that a document must meet for its passages to answer.

What SQLite cannot express (globs with `**`, case-insensitive Unicode, nested metadata) is done by small
functions that are registered on the connection. Values only ever travel as parameters.
"""

from __future__ import annotations

import json
import re
import sqlite3
from functools import lru_cache

from likewise.errors import FilterError
from likewise.index.records import Filter, Json


def register_functions(connection: sqlite3.Connection) -> None:
    """Make the functions that `filter_condition` uses known to a connection."""
    connection.create_function("glob_matches", 2, glob_matches, deterministic=True)
    connection.create_function("title_contains", 2, _title_contains, deterministic=True)
    connection.create_function("metadata_matches", 3, _metadata_matches, deterministic=True)


def filter_condition(filter: Filter) -> tuple[str, list[object]]:
    """Condition over the columns of `document` (alias `d`), and its parameters.

    Raises:
        FilterError: A path pattern is malformed.

    Example:
        >>> filter_condition(Filter(languages=("zh", "en"), title="keys"))
        ('d.language IN (?, ?) AND title_contains(?, d.title)', ['zh', 'en', 'keys'])
        >>> filter_condition(Filter())
        ('1', [])
    """
    terms: list[str] = []
    values: list[object] = []

    def require(term: str, *parameters: object) -> None:
        terms.append(term)
        values.extend(parameters)

    # Cheap comparisons first: SQLite evaluates from left to right what no index serves.
    for column, wanted in (
        ("state", filter.states),
        ("language", filter.languages),
        ("suffix", filter.suffixes),
    ):
        if wanted:
            require(f"d.{column} IN ({', '.join('?' * len(wanted))})", *wanted)
    if filter.modified_from is not None:
        require("d.mtime_ns >= ?", _nanoseconds(filter.modified_from))
    if filter.modified_before is not None:
        require("d.mtime_ns < ?", _nanoseconds(filter.modified_before))
    if filter.paths:
        require(f"({' OR '.join(['glob_matches(?, d.key)'] * len(filter.paths))})", *filter.paths)
    for pattern in (*filter.paths, *filter.exclude_paths):
        _glob(pattern)  # a malformed one is refused here; inside SQLite its reason would be lost
    for pattern in filter.exclude_paths:
        require("NOT glob_matches(?, d.key)", pattern)
    if filter.title:
        require("title_contains(?, d.title)", filter.title)
    for key, value in filter.metadata:
        require("metadata_matches(?, ?, d.metadata)", key, value)
    return " AND ".join(terms) or "1", values


def glob_matches(pattern: str, key: str) -> bool:
    """Whether a document key matches a glob, case-sensitively.

    `*` and `?` stay within one name, `**` spans folders, `[a-z]` and `[!a-z]` are sets. A pattern without a
    slash matches a name at any depth; one with a slash starts at the root. A pattern that matches a folder
    matches everything in it.

    Example:
        >>> glob_matches("docs/**/*.md", "docs/a/b.md"), glob_matches("docs/**/*.md", "docs/b.md")
        (True, True)
        >>> glob_matches("*.md", "docs/a/b.md"), glob_matches("docs/*.md", "docs/a/b.md")
        (True, False)
        >>> glob_matches("docs", "docs/a/b.md"), glob_matches("docs", "docs2/b.md")
        (True, False)
    """
    return _glob(pattern).fullmatch(key) is not None


@lru_cache(maxsize=256)
def _glob(pattern: str) -> re.Pattern[str]:
    anchored = "/" in pattern.rstrip("/")
    parts = pattern.rstrip("/").split("/")
    regex = "" if anchored else "(?:.*/)?"
    for position, part in enumerate(parts):
        last = position == len(parts) - 1
        if part == "**":
            # Inside: any number of folders, also none. At the end: everything below.
            regex += ".+" if last else "(?:.*/)?"
        else:
            regex += _glob_name(part) + ("" if last else "/")
    try:
        return re.compile(regex + "(?:/.*)?", re.DOTALL)
    except re.error as error:
        raise FilterError(
            f"the path pattern {pattern!r} has a set that makes no sense: {error}",
            remedy="write the lower end of a range first, as in [a-z]",
        ) from error


# A set, stars, a question mark, or text; a bracket that nothing closes is text.
_GLOB_PART = re.compile(r"\[([!^]?)(\][^\]]*|[^\]]+)\]|(\*+)|(\?)|([^*?\[]+|\[)")


def _glob_name(name: str) -> str:
    """Regular expression for one path component of a glob."""
    regex = ""
    for negated, members, stars, question, literal in _GLOB_PART.findall(name):
        if members:
            regex += f"(?!/)[{'^' if negated else ''}{_glob_set(members)}]"
        elif stars:
            regex += "[^/]*"
        elif question:
            regex += "[^/]"
        else:
            regex += re.escape(literal)
    return regex


def _glob_set(members: str) -> str:
    """The inside of a regular expression's set: `a-z` is a range, everything else a character."""
    return re.sub(
        r"(.)-(.)|(.)",
        lambda match: "-".join(re.escape(part) for part in match.groups() if part is not None),
        members,
        flags=re.DOTALL,
    )


def _nanoseconds(seconds: float) -> int:
    # SQLite integers end at 2**63, about the year 2262.
    return int(max(min(seconds, 9.2e9), -9.2e9) * 1_000_000_000)


def _title_contains(wanted: str, title: str) -> bool:
    return wanted.casefold() in title.casefold()


def _metadata_matches(dotted: str, wanted: str, metadata: str) -> bool:
    """Whether the metadata has the value `wanted` under a dotted key such as `author.name`."""
    found = _lookup(json.loads(metadata), dotted)
    values = found if isinstance(found, list) else [found]
    return any(_as_text(value).casefold() == wanted.casefold() for value in values if value is not None)


def _lookup(value: Json, dotted: str) -> Json:
    if not isinstance(value, dict):
        return None
    if dotted in value:  # a key may itself contain dots
        return value[dotted]
    head, _, rest = dotted.partition(".")
    return _lookup(value.get(head), rest) if rest else None


def _as_text(value: Json) -> str:
    """As a person writes it in a filter: `true`, `3`, `draft`."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
