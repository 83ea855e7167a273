"""Questions and what answers them: the form they have here, and how a BEIR folder becomes it.

A BEIR folder holds `queries.jsonl`, `qrels.tsv` or `qrels/SPLIT.tsv`, and perhaps `corpus.jsonl`, gzipped or
not. TREC files are read by `trec`, a person's own questions by `questions`. Nothing is searched here.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TextIO

from likewise.errors import DataError

Qrels = Mapping[str, Mapping[str, int]]
TrecRun = Mapping[str, Mapping[str, float]]

_PLACE = re.compile(r"(?P<key>.*)#(?P<unit>line|page)=(?P<number>\d+)", re.DOTALL)
_HEADERS = ("score", "relevance", "rel", "grade")


@dataclass(frozen=True)
class CorpusDocument:
    """One row of a BEIR corpus."""

    id: str
    title: str
    text: str


@dataclass(frozen=True)
class Judgements:
    """Questions with graded answers.

    Attributes:
        queries: Text of every query that has judgements, by id.
        qrels: Query id -> answer -> grade. An answer is a document key, or `KEY#page=N`, or `KEY#line=N`.
    """

    queries: Mapping[str, str]
    qrels: Qrels


class Place(NamedTuple):
    """What an answer names: a document, and perhaps a page or a line of it.

    Attributes:
        key: Key of the document.
        unit: `"line"`, `"page"` or `""`.
        number: From 1; 0 for a whole document.
    """

    key: str
    unit: str = ""
    number: int = 0

    @classmethod
    def of(cls, answer: str) -> Place:
        """The place that an answer spells.

        Example:
            >>> Place.of("keys.md#line=9"), Place.of("keys.md")
            (Place(key='keys.md', unit='line', number=9), Place(key='keys.md', unit='', number=0))
        """
        match = _PLACE.fullmatch(answer)
        return cls(match["key"], match["unit"], int(match["number"])) if match else cls(answer)

    def __str__(self) -> str:
        return f"{self.key}#{self.unit}={self.number}" if self.unit else self.key


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """A UTF-8 text file to read, unpacked when its name ends in `.gz`.

    Raises:
        DataError: It is missing, unreadable, damaged, or not UTF-8.
    """
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as lines:
                yield lines
        else:
            with path.open(encoding="utf-8-sig", newline="") as lines:
                yield lines
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: expected UTF-8 text, found the byte {error.object[error.start]:#04x}"
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: damaged gzip file: {error}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


def load_beir(folder: Path, *, split: str = "test") -> Judgements:
    """Queries and qrels of a BEIR folder.

    Args:
        folder: Holds `queries.jsonl` and `qrels/SPLIT.tsv`, `qrels.SPLIT.tsv` or `qrels.tsv`.
        split: Which qrels to read.

    Raises:
        DataError: A file is missing, or a row is malformed or there twice; the message names the row.
    """
    if not folder.is_dir():
        raise DataError(f"expected a folder with queries, qrels and a corpus, found none at {folder}")
    queries_file = _find(folder, "queries.jsonl")
    texts = {row["_id"]: row["text"] for row in _jsonl(queries_file)}
    qrels = load_qrels(_find_qrels(folder, split))
    unknown = sorted(set(qrels) - set(texts))
    if unknown:
        raise DataError(
            f"{folder}: judged queries are missing in queries.jsonl: {len(unknown)}, such as {unknown[0]!r}"
        )
    empty = [query for query in qrels if not texts[query].strip()]
    if empty:
        raise DataError(f"{queries_file}: expected a text for every judged query, {empty[0]!r} has none")
    return Judgements({query: texts[query] for query in qrels}, qrels)


def corpus(folder: Path) -> Iterator[CorpusDocument]:
    """Documents of a BEIR folder, in file order.

    Raises:
        DataError: The corpus is missing, or a row is malformed or there twice.
    """
    for row in _jsonl(_find(folder, "corpus.jsonl")):
        yield CorpusDocument(row["_id"], row.get("title") or "", row["text"])


def load_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Grades from a file in BEIR's form (tab-separated, with a header) or TREC's (four columns, no header).

    Raises:
        DataError: A row has another shape or is there twice, a grade is no whole number, or there is none.
    """
    qrels: dict[str, dict[str, int]] = {}
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            fields = line.rstrip("\r\n").split("\t") if "\t" in line else line.split()
            if not any(fields) or (number == 1 and fields[-1].strip().lower() in _HEADERS):
                continue
            if len(fields) not in (3, 4):
                raise DataError(
                    f"{path}:{number}: expected 3 columns (BEIR) or 4 (TREC), found {len(fields)}"
                )
            query, answer = fields[0].strip(), fields[-2].strip()
            try:
                grade = int(fields[-1])
            except ValueError:
                raise DataError(
                    f"{path}:{number}: expected a whole number as grade, found {fields[-1]!r}"
                ) from None
            if answer in qrels.setdefault(query, {}):
                raise DataError(f"{path}:{number}: document {answer!r} is judged twice for query {query!r}")
            qrels[query][answer] = grade
    if not qrels:
        raise DataError(f"{path}: no judgements found")
    return qrels


def _find(folder: Path, *names: str) -> Path:
    for name in names:
        for candidate in (folder / name, folder / f"{name}.gz"):
            if candidate.is_file():
                return candidate
    raise DataError(f"{folder}: expected {' or '.join(names)} (or .gz), found neither")


def _find_qrels(folder: Path, split: str) -> Path:
    names = [f"qrels/{split}.tsv", f"qrels.{split}.tsv", *(["qrels.tsv"] if split == "test" else [])]
    try:
        return _find(folder, *names)
    except DataError as error:
        others = _splits(folder)
        raise DataError(error.message, remedy=f"--split {others[0]}" if others else None) from None


def _splits(folder: Path) -> list[str]:
    """Splits for which there are qrels."""
    files = [*folder.glob("qrels/*.tsv*"), *folder.glob("qrels.*.tsv*")]
    names = {re.sub(r"^qrels\.|\.tsv(\.gz)?$", "", file.name) for file in files}
    return sorted(names | ({"test"} if any(folder.glob("qrels.tsv*")) else set()))


def _jsonl(path: Path) -> Iterator[dict[str, str]]:
    """Rows with the texts `_id` and `text`, every id once."""
    seen = set()
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                raise DataError(f"{path}:{number}: not JSON: {error}") from None
            for name in ("_id", "text"):
                if not isinstance(row, dict) or not isinstance(row.get(name), str):
                    raise DataError(f"{path}:{number}: expected the texts _id and text; {name} is missing")
            if row["_id"] in seen:
                raise DataError(f"{path}:{number}: the id {row['_id']!r} is there twice")
            seen.add(row["_id"])
            yield row
    if not seen:
        raise DataError(f"{path}: no rows found")
