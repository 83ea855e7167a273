"""CSV and TSV: the file itself, with a cut before each record and the column names as its heading.

The heading is embedded with every passage, so that a record found far below the header still says what its
columns mean.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Sequence

from likewise.index.readers.base import Reader, Source
from likewise.index.readers.decoding import decode
from likewise.index.readers.lines import Line, split_lines
from likewise.index.records import Extraction, Heading, Json, Span

_DELIMITERS = ",;\t|"
_SAMPLE_RECORDS = 20
_NUMBER = re.compile(r"[-+]?[\d.,:/% -]*\d[\d.,:/% -]*$")
_MAX_TITLE = 200
_MAX_COLUMNS = 200


def _read(source: Source) -> Extraction:
    decoded = decode(source.data)
    lines = split_lines(decoded.text)
    delimiter = "\t" if source.suffix in (".tsv", ".tab") else _delimiter(lines)
    starts, header = _records(lines, delimiter, len(decoded.text))
    headings: tuple[Heading, ...] = ()
    metadata: dict[str, Json] = {}
    if _is_header(header) and len(starts) > 1:
        columns = [" ".join(cell.split()) for cell in header]
        metadata["columns"] = [*columns[:_MAX_COLUMNS]]
        title = ", ".join(column for column in columns if column)
        span = Span(starts[0], len(decoded.text[: starts[1]].rstrip("\r\n")))
        headings = (Heading(span, 1, title[:_MAX_TITLE]),)
    return Extraction(
        text=decoded.text,
        reader="",
        headings=headings,
        breaks=tuple(starts[1:]),
        verbatim=(Span(0, len(decoded.text)),) if decoded.text else (),
        metadata=metadata,
        encoding=decoded.encoding,
        lossy=decoded.lossy,
    )


def _delimiter(lines: Sequence[Line]) -> str:
    """The character that most consistently cuts the first records into the same number of cells."""
    sample = [line.text for line in lines[:_SAMPLE_RECORDS] if line.text.strip()]

    def score(delimiter: str) -> tuple[float, int]:
        counts = [len(cells) for cells in csv.reader(sample, delimiter=delimiter)]
        common = max(set(counts), key=counts.count, default=1)
        return (counts.count(common) / len(counts), common) if common > 1 else (0.0, 0)

    try:
        return max(_DELIMITERS, key=score)
    except csv.Error:
        return ","


def _records(lines: Sequence[Line], delimiter: str, end: int) -> tuple[list[int], list[str]]:
    """Where the records start, and the cells of the first one."""
    # A quoted cell may hold a whole file; the limit is the worker's memory.
    csv.field_size_limit(sys.maxsize if sys.maxsize <= 2**31 - 1 else 2**31 - 1)
    reader = csv.reader((line.text + "\n" for line in lines), delimiter=delimiter)
    starts: list[int] = []
    header: list[str] = []
    first = 0
    try:
        for cells in reader:
            if cells:
                starts.append(lines[first].start)
                header = header or cells
            first = reader.line_num
    except csv.Error:
        # No CSV after all (a stray control character): every line is a record.
        return [line.start for line in lines if line.text.strip()], header
    return starts, header


def _is_header(cells: Sequence[str]) -> bool:
    """Whether the first record names columns: distinct short texts, no numbers, at most one unnamed."""
    named = [cell.strip() for cell in cells if cell.strip()]
    return (
        len(named) >= max(1, len(cells) - 1)
        and len(set(named)) == len(named)
        and all(len(cell) <= _MAX_TITLE and not _NUMBER.match(cell) for cell in named)
    )


READER = Reader(
    name="delimited",
    version=1,
    read=_read,
    suffixes=frozenset((".csv", ".tsv", ".tab", ".psv")),
)
