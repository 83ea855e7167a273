"""Data to standard output, notes to standard error.

Every command writes through here, so that all of them keep the same promises: `--json` prints one document,
`--jsonl` one object per line, both valid whatever the terminal's encoding; text is safe to print. Must not
know any command.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import wraps
from typing import TYPE_CHECKING

import click

from likewise.cli.terminal import Screen, cells, clip, one_line, pad, printable
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.index.records import Json


class Format(Enum):
    """How a command shows its result."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"


def output_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--json` and `--jsonl`, which arrive as the parameter `format`. The innermost decorator."""

    @wraps(command)
    def wrapped(*args: object, as_json: bool, as_jsonl: bool, **options: object) -> None:
        if as_json and as_jsonl:
            raise UsageError("expected --json or --jsonl, found both")
        chosen = Format.JSON if as_json else Format.JSONL if as_jsonl else Format.TEXT
        command(*args, format=chosen, **options)

    wrapped = click.option("--jsonl", "as_jsonl", is_flag=True, help="Print one JSON object per line.")(
        wrapped
    )
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document (see formats-json in the guide)."
    )(wrapped)


def screen() -> Screen:
    """The screen behind standard output."""
    return Screen.of(sys.stdout)


def write(text: str) -> None:
    """Print text of our own making, which may hold colour."""
    click.echo(text, color=True)


def write_json(value: Mapping[str, Json]) -> None:
    """Print one JSON document, indented for a person and on one line for a pipe."""
    click.echo(_dump(value, indent=2 if sys.stdout.isatty() else None))


def write_jsonl(values: Iterable[Mapping[str, Json]]) -> None:
    """Print one JSON object per line."""
    for value in values:
        click.echo(_dump(value, indent=None))


def _dump(value: Mapping[str, Json], *, indent: int | None) -> str:
    finite = _finite(value)
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("_", "-")
    # Lone surrogates cannot be encoded in any encoding: escape, which JSON allows everywhere.
    text = json.dumps(finite, ensure_ascii=encoding not in ("utf-8", "utf8"), indent=indent, allow_nan=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(finite, ensure_ascii=True, indent=indent, allow_nan=False)
    return text


def _finite(value: Json | Mapping[str, Json]) -> Json:
    """The value with null for numbers that JSON does not know: front matter may hold infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def note(message: str) -> None:
    """Tell the person something that is not data."""
    click.echo(f"note: {printable(message)}", err=True)


def warn(message: str) -> None:
    """Tell the person about something that may need a hand."""
    click.echo(f"warning: {printable(message)}", err=True)


def columns(rows: Iterable[tuple[str, ...]], *, width: int | None = None) -> list[str]:
    """Rows as lines with aligned columns; the last column is clipped to the width if there is one.

    Example:
        >>> columns([("ok", "12"), ("金鑰", "3")])
        ['ok    12', '金鑰  3']
    """
    lines = [tuple(one_line(cell) for cell in row) for row in rows]
    widths = [max(map(cells, column)) for column in zip(*lines, strict=True)]
    result = []
    for row in lines:
        line = "  ".join(
            [pad(cell, size) for cell, size in zip(row[:-1], widths[:-1], strict=True)] + [row[-1]]
        )
        result.append(clip(line, width) if width else line.rstrip())
    return result


def size_text(count: int) -> str:
    """Bytes for people.

    Example:
        >>> size_text(512), size_text(23_456_789)
        ('512 B', '23.5 MB')
    """
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def count_text(count: int, noun: str) -> str:
    """A number with its noun.

    Example:
        >>> count_text(1, "document"), count_text(1200, "passage")
        ('1 document', '1,200 passages')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
