"""Read labelled data as rows with named columns: CSV, TSV, JSON, Parquet and Hugging Face data sets.

All kinds of training read their examples through here. What the columns mean is not known here, and no row
is dropped, filled in or converted: whoever knows the meaning says what is wrong with a value.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.errors import DataError
from likewise.extras import require

Row = dict[str, Any]

# What people call the parts of a data set, best known first.
SPLITS: dict[str, tuple[str, ...]] = {
    "train": ("train", "training"),
    "dev": ("dev", "validation", "valid", "val", "eval"),
    "test": ("test", "testing"),
}
SUFFIXES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet")
HUB_PREFIX = "hf:"


@dataclass(frozen=True)
class Table:
    """Rows of one file or one split of a data set.

    Attributes:
        name: Where it came from, for messages.
        columns: Names of the columns, in order.
        rows: A value for each column; None where JSON or Parquet has none. CSV and TSV hold text only.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def __len__(self) -> int:
        return len(self.rows)


def read_table(
    source: str | Path,
    *,
    split: str | None = None,
    columns: Sequence[str] | None = None,
    offline: bool | None = None,
) -> Table:
    r"""Read a table.

    Args:
        source: A file by its suffix (`.csv`, `.tsv`, `.jsonl`, `.json`, `.parquet`, each also with `.gz`
            but the last), a folder that the `datasets` library saved, or `hf:NAME` or `hf:NAME:CONFIG` for a
            data set on the hub.
        split: Part of a Hugging Face data set: "train", "dev" or "test", whatever the set calls it, or a
            name of its own.
        columns: Names for a CSV or TSV file without a header.
        offline: Never ask the network.

    Raises:
        DataError: The source does not exist, is in no known format, is damaged, or holds no row.
        MissingExtra: A library for the format is not installed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "reviews.csv"
        ...     _ = path.write_text("text,label\nA joy.,Positive\n", "utf-8")
        ...     read_table(path).rows
        ({'text': 'A joy.', 'label': 'Positive'},)
    """
    text = str(source)
    path = Path(source).expanduser() if not text.startswith(HUB_PREFIX) else None
    if path is None or path.is_dir():
        return _hugging_face(text, path, split, offline)
    if not path.is_file():
        raise DataError(
            f"there is no file {path}",
            remedy=f"check the path; a data set on the hub is written {HUB_PREFIX}NAME",
        )
    kind = suffix_of(path)
    if kind in (".csv", ".tsv", ".tab"):
        table = _delimited(path, "," if kind == ".csv" else "\t", columns)
    elif kind in (".jsonl", ".ndjson"):
        table = _of_objects(str(path), _json_lines(path))
    elif kind == ".json":
        table = _of_objects(str(path), _json_list(path))
    elif kind == ".parquet":
        table = _parquet(path)
    else:
        raise DataError(
            f"expected a file with one of the suffixes {', '.join(SUFFIXES)}, found {path.name}",
            remedy="rename it, or convert it to one of these formats",
        )
    if not table.rows:
        raise DataError(f"expected at least one row in {path}, found none")
    return table


def find_splits(folder: Path, *, suffixes: Sequence[str] = SUFFIXES) -> dict[str, Path]:
    """The files of a folder that are named after parts of a data set, such as `train.csv`.

    Args:
        folder: Any folder.
        suffixes: File formats to look for.

    Returns:
        Paths by "train", "dev" and "test", as far as there is one.

    Raises:
        DataError: Two files claim to be the same part.
    """
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and suffix_of(path) in suffixes]
    found: dict[str, Path] = {}
    for part, names in SPLITS.items():
        candidates = [path for path in files if path.name.partition(".")[0].lower() in names]
        if not candidates:  # "sst2-train.tsv": a part of a name is enough where no file has all of it
            candidates = [path for path in files if _words(path) & set(names)]
        if len(candidates) > 1:
            raise DataError(
                f"expected one file of {folder} to be the {part} part, found "
                + " and ".join(path.name for path in candidates),
                remedy="name the file instead of the folder",
            )
        if candidates:
            found[part] = candidates[0]
    return found


def suffix_of(path: Path) -> str:
    """Lower-case suffix of a file, without `.gz`.

    Example:
        >>> suffix_of(Path("train.TSV.gz"))
        '.tsv'
    """
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def read_text(path: Path) -> str:
    """A whole text file, UTF-8 with or without a mark, unpacked if its name ends in `.gz`.

    Raises:
        DataError: It cannot be read, or is not UTF-8.
    """
    try:
        content = path.read_bytes()
        if path.suffix.lower() == ".gz":
            content = gzip.decompress(content)
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"expected UTF-8 in {path}, found other bytes at {error.start}",
            remedy=f"iconv -f ENCODING -t UTF-8 {path.name}",
        ) from error
    except (OSError, EOFError) as error:
        raise DataError(f"cannot read {path}: {error}") from error


def _words(path: Path) -> set[str]:
    stem = path.name.partition(".")[0].lower()
    return set("".join(c if c.isalnum() else " " for c in stem).split())


def _delimited(path: Path, delimiter: str, columns: Sequence[str] | None) -> Table:
    text = read_text(path)
    records = _records(text, delimiter, quoting=True)
    if delimiter == "\t" and '"' in text and _literal_quotes(text, records):
        records = _records(text, delimiter, quoting=False)
    if not records:
        return Table(str(path), tuple(columns or ()), ())
    if columns is None:
        (_, header), *records = records
        header = [name.strip() for name in header]
    else:
        header = list(columns)
    if doubles := sorted({name for name in header if header.count(name) > 1}):
        raise DataError(f"expected columns with different names in {path}, found {doubles[0]!r} twice")
    for line, record in records:
        if len(record) != len(header):
            raise DataError(
                f"expected {len(header)} columns ({', '.join(header)}) in {path}, "
                f"found {len(record)} at line {line}",
                remedy="put quotes around text that holds the separator, quotes or line breaks",
            )
    return Table(str(path), tuple(header), tuple(dict(zip(header, r, strict=True)) for _, r in records))


def _records(text: str, delimiter: str, *, quoting: bool) -> list[tuple[int, list[str]]]:
    """Line number and cells of each record, empty lines left out."""
    before = csv.field_size_limit(sys.maxsize if sys.maxsize < 2**31 else 2**31 - 1)  # a C long on Windows
    try:
        reader = csv.reader(
            io.StringIO(text, newline=""),
            delimiter=delimiter,
            quoting=csv.QUOTE_MINIMAL if quoting else csv.QUOTE_NONE,
        )
        return [(reader.line_num, record) for record in reader if record]
    except csv.Error as error:
        raise DataError(f"expected delimited text, found {error}") from error
    finally:
        csv.field_size_limit(before)


def _literal_quotes(text: str, quoted: Sequence[tuple[int, list[str]]]) -> bool:
    """Whether quotes in a TSV file are ordinary characters, as in many published sets.

    Then a quote at the start of a cell swallows line breaks up to the next one, while every line by itself
    has as many cells as the header.
    """
    literal = _records(text, "\t", quoting=False)
    width = len(literal[0][1])
    return len(literal) > len(quoted) and all(len(record) == width for _, record in literal)


def _json_lines(path: Path) -> Iterable[tuple[int, Any]]:
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise DataError(f"expected JSON at line {number} of {path}, found {error}") from error


def _json_list(path: Path) -> Iterable[tuple[int, Any]]:
    try:
        content = json.loads(read_text(path))
    except ValueError as error:
        raise DataError(f"expected JSON in {path}, found {error}") from error
    if not isinstance(content, list):
        raise DataError(f"expected a list of objects in {path}, found {type(content).__name__}")
    return enumerate(content, start=1)


def _of_objects(name: str, records: Iterable[tuple[int, Any]]) -> Table:
    columns: dict[str, None] = {}
    rows = []
    for number, record in records:
        if not isinstance(record, dict):
            raise DataError(
                f"expected objects in {name}, found {type(record).__name__} at number {number}",
                remedy='one object each, such as {"text": "...", "label": "..."}',
            )
        columns |= dict.fromkeys(record)
        rows.append(record)
    # A key that an object lacks is a missing value, not an error: JSON writers leave out what is null.
    return Table(name, tuple(columns), tuple({column: row.get(column) for column in columns} for row in rows))


def _parquet(path: Path) -> Table:
    require("pyarrow", extra="data", purpose="reading Parquet files")
    from pyarrow import ArrowException, parquet

    try:
        # A list of files, so that no part of the path is taken for a column.
        content = parquet.ParquetFile(path).read()
    except (OSError, ArrowException) as error:
        raise DataError(f"cannot read {path} as Parquet: {error}") from error
    return Table(str(path), tuple(content.column_names), tuple(content.to_pylist()))


def _hugging_face(source: str, folder: Path | None, split: str | None, offline: bool | None) -> Table:
    require("datasets", extra="data", purpose="reading Hugging Face data sets")
    import datasets

    try:
        if folder is not None:
            content: Any = datasets.load_from_disk(str(folder))
        else:
            name, _, config = source.removeprefix(HUB_PREFIX).partition(":")
            settings = datasets.DownloadConfig(local_files_only=bool(offline))
            content = datasets.load_dataset(name, config or None, download_config=settings)
    except Exception as error:  # the library raises errors of many libraries beneath it
        raise DataError(
            f"cannot read the data set {source}: {str(error).splitlines()[0] if str(error) else error!r}",
            remedy="check its name, or save it with datasets.save_to_disk and give that folder",
        ) from error
    if isinstance(content, dict):
        content = content[_split_name(source, list(content), split)]
    columns = tuple(content.column_names)
    names = {column: _label_names(feature) for column, feature in content.features.items()}
    rows = [
        {column: _named(value, names[column]) if names[column] else value for column, value in row.items()}
        for row in content
    ]
    if not rows:
        raise DataError(f"expected at least one row in {source}, found none")
    return Table(source, columns, tuple(rows))


def _label_names(feature: Any) -> list[str]:
    """Names of the labels that a column holds as numbers, alone or in lists; empty for other columns."""
    feature = getattr(feature, "feature", feature)
    return list(getattr(feature, "names", None) or ())


def _named(value: Any, names: list[str]) -> Any:
    """Labels as text: their numbers mean nothing outside their data set, where -1 is "no label"."""
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    return names[value] if value is not None and value >= 0 else None


def _split_name(source: str, found: list[str], split: str | None) -> str:
    wanted = SPLITS.get(split or "train", (split or "train",))
    for name in wanted:
        if name in found:
            return name
    raise DataError(f"expected a split {' or '.join(wanted)} in {source}, found {', '.join(found)}")
