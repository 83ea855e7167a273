"""Filter expressions as people type them: text in, a `Filter` out.

    path:docs/**       a glob over paths; without a slash it matches a name at any depth, and what matches a
                       folder means everything in it; several: any of them
    -path:old/**       not these
    suffix:.md         file name ends so; several: any of them
    lang:zh            language as an ISO 639-1 code; several: any of them
    state:ok           how reading ended (ok, empty, needs-ocr, ...); several: any of them
    title:keys         the title contains this, upper and lower case alike
    date>=2025-01-01   modified on this day or later; also >, <=, < and = (or :)
    meta.author=Ann    front matter or document property; several: all of them

Dates are ISO 8601: a year, a month, a day or a time. One without a UTC offset is in the local time zone of
the machine, and one that names a period means all of it: `date<=2025` includes December 31st, `date=2025-03`
is March. Backslashes in paths count as slashes, so a filter written on Windows works everywhere.

Nothing here looks at an index; whether a filter matches anything is for the search to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches
from pathlib import Path

from likewise.errors import FilterError
from likewise.index.records import DocumentState, Filter

_EXPRESSION = re.compile(
    r"(?P<minus>-?)(?P<field>[A-Za-z][A-Za-z0-9_]*(?:\.[^:=<>\s]+)?)\s*(?P<operator>>=|<=|[:=<>])\s*(?P<value>.*)",
    re.DOTALL,
)
_FIELDS = ("path", "suffix", "lang", "state", "title", "date")
_EXAMPLES = (
    "path:docs/**  -path:old/**  suffix:.md  lang:zh  state:ok  title:keys  date>=2025-01-31  meta.author=Ann"
)
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?")
_LANGUAGE = re.compile(r"[a-z]{2,3}")


def parse_filter(expressions: Sequence[str], *, base: Path | None = None) -> Filter:
    """Turn filter expressions into the conditions that must all hold.

    Args:
        expressions: As described at the top of this module. None at all allow everything.
        base: The folder that paths in the index are relative to. With it, an absolute path may be given too.

    Raises:
        FilterError: An expression that cannot be understood, or conditions that exclude each other.

    Example:
        >>> found = parse_filter(["path:docs/**", "-path:docs/old", "suffix:md", "meta.author=Ann"])
        >>> found.paths, found.exclude_paths, found.suffixes, found.metadata
        (('docs/**',), ('docs/old',), ('.md',), (('author', 'Ann'),))
        >>> parse_filter(["state:broken"])
        Traceback (most recent call last):
        ...
        likewise.errors.FilterError: expected a state out of ok, empty, needs-ocr, ..., found state:broken
          try: state:ok
    """
    if isinstance(expressions, str):
        raise FilterError(
            "expected a list of filter expressions, found one string", remedy="pass [expression]"
        )
    found = _Conditions()
    for expression in expressions:
        _add(found, expression, base)
    return found.filter()


class _Conditions:
    """What was collected so far."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.exclude_paths: list[str] = []
        self.suffixes: list[str] = []
        self.states: list[DocumentState] = []
        self.languages: list[str] = []
        self.title = ""
        self.modified_from: float | None = None
        self.modified_before: float | None = None
        self.metadata: list[tuple[str, str]] = []

    def narrow(self, start: float | None, end: float | None) -> None:
        """Allow only the modification times in [start, end) among those allowed so far."""
        if start is not None:
            self.modified_from = start if self.modified_from is None else max(start, self.modified_from)
        if end is not None:
            self.modified_before = end if self.modified_before is None else min(end, self.modified_before)

    def filter(self) -> Filter:
        if (
            self.modified_from is not None
            and self.modified_before is not None
            and self.modified_from >= self.modified_before
        ):
            raise FilterError("the date filters exclude each other: no time satisfies all of them")
        return Filter(
            paths=tuple(self.paths),
            exclude_paths=tuple(self.exclude_paths),
            suffixes=tuple(self.suffixes),
            states=tuple(self.states),
            languages=tuple(self.languages),
            title=self.title,
            modified_from=self.modified_from,
            modified_before=self.modified_before,
            metadata=tuple(self.metadata),
        )


def _add(found: _Conditions, expression: str, base: Path | None) -> None:
    match = _EXPRESSION.fullmatch(expression.strip())
    if match is None:
        raise FilterError(f"expected FIELD:VALUE, found {expression!r}", remedy=_EXAMPLES)
    field, operator, value = match["field"], match["operator"], match["value"].strip()
    name = field.lower()
    if name != "date" and operator not in (":", "="):
        raise FilterError(
            f"{operator} compares dates only, found {expression!r}", remedy=f"{field}:{value or 'VALUE'}"
        )
    if not value:
        raise FilterError(f"expected a value behind {field}{operator}, found nothing", remedy=_EXAMPLES)
    if match["minus"] and name != "path":
        raise FilterError(
            f"expected - in front of path only, found {expression!r}", remedy=expression.strip().lstrip("-")
        )
    if name.startswith("meta."):
        found.metadata.append((field[len("meta.") :], value))
    elif name == "path":
        (found.exclude_paths if match["minus"] else found.paths).append(_glob(value, base))
    elif name == "suffix":
        found.suffixes.append(_suffix(value))
    elif name == "lang":
        found.languages.append(_language(value))
    elif name == "state":
        found.states.append(_state(value))
    elif name == "title":
        if found.title:
            raise FilterError(f"expected one title filter, found title:{found.title} and title:{value}")
        found.title = value
    elif name == "date":
        start, end = _period(value)
        found.narrow(*_bounds(operator, start, end))
    else:
        near = get_close_matches(name, _FIELDS, n=1, cutoff=0.7)
        raise FilterError(
            f"expected a filter on {', '.join(_FIELDS)} or meta.KEY, found {expression!r}",
            remedy=f"{near[0]}{operator}{value}" if near else f"meta.{field}={value}",
        )


def _glob(value: str, base: Path | None) -> str:
    r"""Pattern for the paths in an index: relative, with slashes.

    Example:
        >>> _glob("docs\\guide\\*.md", None), _glob("./docs/", None)
        ('docs/guide/*.md', 'docs/')
        >>> _glob("/home/ann/notes/keys/**", Path("/home/ann/notes"))
        'keys/**'
    """
    pattern = value.replace("\\", "/")
    if base is not None:
        root = base.as_posix().rstrip("/")
        pattern = "**" if pattern.rstrip("/") == root else pattern.removeprefix(root + "/")
    while pattern.startswith("./"):
        pattern = pattern[2:]
    return "**" if pattern in ("", ".") else pattern


def _suffix(value: str) -> str:
    suffix = value.lower().removeprefix("*")
    if "/" in suffix or "*" in suffix or suffix == ".":
        raise FilterError(f"expected the end of a file name, found suffix:{value}", remedy="suffix:.md")
    return suffix if suffix.startswith(".") else "." + suffix


def _language(value: str) -> str:
    code = value.lower()
    if not _LANGUAGE.fullmatch(code):
        short = re.match(r"[a-z]{2,3}(?=[-_])", code)
        raise FilterError(
            f"expected an ISO 639-1 code such as en, zh or ja, without region or script, found lang:{value}",
            remedy=f"lang:{short[0]}" if short else "lang:zh",
        )
    return code


def _state(value: str) -> DocumentState:
    try:
        return DocumentState(value.lower())
    except ValueError:
        states = ", ".join(DocumentState)
        near = get_close_matches(value.lower(), list(DocumentState), n=1)
        raise FilterError(
            f"expected a state out of {states}, found state:{value}",
            remedy=f"state:{near[0] if near else 'ok'}",
        ) from None


def _bounds(operator: str, start: float, end: float) -> tuple[float | None, float | None]:
    """Range of times that `date OPERATOR period` allows, where the period is [start, end)."""
    if operator == ">=":
        return start, None
    if operator == ">":
        return end, None
    if operator == "<":
        return None, start
    if operator == "<=":
        return None, end
    return start, end


def _period(value: str) -> tuple[float, float]:
    """First moment of a period and first moment after it, in seconds since the epoch."""
    try:
        match = _DATE.fullmatch(value)
        if match is None:
            moment = datetime.fromisoformat(value)
            length = timedelta(seconds=1) if re.search(r"\d\d:?\d\d:?\d\d", value) else timedelta(minutes=1)
            return moment.timestamp(), (moment + length).timestamp()
        year, month, day = (int(part) if part else 0 for part in match.groups())
        first = datetime(year, month or 1, day or 1)
        if day:
            after = first + timedelta(days=1)
        else:
            # Any month has at most 31 days, and no two together have fewer than 59.
            after = (first + timedelta(days=366 if not month else 31)).replace(day=1)
            after = after.replace(year=year + 1, month=1) if not month else after
        # A naive time is in the local zone, with the offset that held there and then (summer time).
        return first.timestamp(), after.timestamp()
    except (ValueError, OverflowError, OSError):
        which = ", which the calendar does not have" if _DATE.fullmatch(value) else ""
        raise FilterError(
            f"expected a date like 2025, 2025-03, 2025-03-01 or 2025-03-01T14:30, found {value!r}{which}",
            remedy="date>=2025-03-01",
        ) from None
