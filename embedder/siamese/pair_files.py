"""Rows of training data from files: CSV, TSV, JSON lines, text, Parquet, and data sets of Hugging Face.

A row is a mapping from column names to values; what the columns mean is the matter of `pairs.py`. Text files
may be gzipped.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from likewise.errors import DataError
from likewise.extras import require

Row = Mapping[str, Any]
_EXTRA = "data"
_SUFFIXES = ".csv, .tsv, .jsonl, .txt or .parquet, all but the last also with .gz"


def read_rows(source: str | Path, *, split: str = "train") -> list[Row]:
    r"""All rows of a file or data set.

    Args:
        source: A file, the folder of a data set that `datasets` saved, or `hub:NAME` or `hub:NAME/CONFIG` of
            one on the hub.
        split: Which part of a data set; files have none.

    Raises:
        DataError: There is no such file, its format is unknown, or it is malformed.
        MissingExtra: The format needs a library that is not installed.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "pairs.csv"
        >>> _ = path.write_text("anchor,positive\nhow,so\n", "utf-8")
        >>> read_rows(path)
        [{'anchor': 'how', 'positive': 'so'}]
    """
    if isinstance(source, str) and source.startswith("hub:"):
        return _hub(source.removeprefix("hub:"), split)
    path = Path(source).expanduser()
    if path.is_dir():
        return _saved(path, split)
    if not path.is_file():
        raise DataError(f"there is no file {source}", remedy="check the path, or name a data set as hub:NAME")
    name = path.name.lower().removesuffix(".gz")
    try:
        if name.endswith((".csv", ".tsv")):
            with _open(path) as file:
                return list(_table(file, "\t" if name.endswith(".tsv") else ",", path))
        if name.endswith((".jsonl", ".ndjson")):
            with _open(path) as file:
                return list(_lines(file, path))
        if name.endswith(".txt"):
            with _open(path) as file:
                return [{"text": line.strip()} for line in file if line.strip()]
    except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, EOFError) as error:
        raise DataError(f"cannot read {path}: {error}", remedy="save it again as UTF-8") from error
    if name.endswith(".parquet"):
        return _parquet(path)
    raise DataError(f"expected a file {_SUFFIXES}, found {path.name}")


def _open(path: Path) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return cast("IO[str]", gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return path.open(encoding="utf-8-sig", newline="")


def _table(file: IO[str], delimiter: str, path: Path) -> Iterator[Row]:
    csv.field_size_limit(1 << 30)
    reader = csv.DictReader(file, delimiter=delimiter, strict=True)
    if not reader.fieldnames:
        raise DataError(f"expected a header line in {path}, found an empty file")
    for row in reader:
        if None in row or None in row.values():
            raise DataError(
                f"{path}, line {reader.line_num}: expected {len(reader.fieldnames)} columns "
                f"({', '.join(reader.fieldnames)}), found another number",
                remedy="quote fields that hold the separator",
            )
        yield row


def _lines(file: IO[str], path: Path) -> Iterator[Row]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: expected a JSON object, found {error}") from error
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {number}: expected a JSON object, found {type(row).__name__}")
        yield row


def _parquet(path: Path) -> list[Row]:
    parquet = require("pyarrow.parquet", extra=_EXTRA, purpose="reading Parquet")
    try:
        rows: list[Row] = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:  # pyarrow's own errors are of these kinds
        raise DataError(f"cannot read {path}: {error}", remedy="save it again as Parquet") from error
    return rows


def _saved(path: Path, split: str) -> list[Row]:
    datasets = require("datasets", extra=_EXTRA, purpose="reading a saved data set")
    try:
        found = datasets.load_from_disk(str(path))
    except (OSError, ValueError) as error:
        raise DataError(
            f"expected a file, or a folder that the datasets library saved, found {path}: {error}",
            remedy=f"to make pairs from a folder of documents: likewise pairs {path} -o pairs.jsonl",
        ) from error
    return _rows_of(found, split, str(path))


def _hub(name: str, split: str) -> list[Row]:
    datasets = require("datasets", extra=_EXTRA, purpose="reading a data set of the hub")
    owner, _, rest = name.partition("/")
    repository, _, config = rest.partition("/")
    arguments: Sequence[str] = [
        f"{owner}/{repository}" if repository else owner,
        *([config] if config else []),
    ]
    try:
        found = datasets.load_dataset(*arguments)
    except (OSError, ValueError) as error:  # not there, not reachable, or a configuration it does not have
        raise DataError(f"cannot load the data set {name}: {error}", remedy="look at the name") from error
    return _rows_of(found, split, name)


def _rows_of(found: Any, split: str, name: str) -> list[Row]:
    if hasattr(found, "keys"):
        if split not in found:
            raise DataError(f"expected a split {split!r} in {name}, found {', '.join(found.keys())}")
        found = found[split]
    return list(found)
