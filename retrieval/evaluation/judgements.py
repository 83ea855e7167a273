"""Questions and what answers them, read from the forms people have them in. Nothing is searched here.

- a BEIR folder: `queries.jsonl`, `qrels.tsv` or `qrels/SPLIT.tsv`, and perhaps `corpus.jsonl`, gzipped or
  not;
- TREC files: qrels (`query 0 document grade`) and runs (`query Q0 document rank score tag`);
- a CSV of questions with the file that answers each, and perhaps the page or the line in it.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from likewise.errors import DataError

Qrels = Mapping[str, Mapping[str, int]]
TrecRun = Mapping[str, Mapping[str, float]]


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


def open_text(path: Path) -> TextIO:
    """Open a UTF-8 text file for reading, unpacking it when its name ends in `.gz`."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def load_beir(folder: Path, *, split: str = "test") -> Judgements:
    """Queries and qrels of a BEIR folder.

    Args:
        folder: Holds `queries.jsonl` and `qrels/SPLIT.tsv`, `qrels.SPLIT.tsv` or `qrels.tsv`.
        split: Which qrels to read.

    Raises:
        DataError: A file is missing or a row is malformed; the message names the row.
    """
    texts = {row["_id"]: row["text"] for row in _jsonl(_find(folder, "queries.jsonl"), ("_id", "text"))}
    names = [f"qrels/{split}.tsv", f"qrels.{split}.tsv", *(["qrels.tsv"] if split == "test" else [])]
    qrels = load_qrels(_find(folder, *names))
    unknown = sorted(set(qrels) - set(texts))
    if unknown:
        raise DataError(
            f"{folder}: judged queries are missing in queries.jsonl: {len(unknown)}, such as {unknown[0]!r}"
        )
    return Judgements({query: texts[query] for query in qrels}, qrels)


def corpus(folder: Path) -> Iterator[CorpusDocument]:
    """Documents of a BEIR folder, in file order.

    Raises:
        DataError: The corpus is missing or a row is malformed.
    """
    for row in _jsonl(_find(folder, "corpus.jsonl"), ("_id", "text")):
        yield CorpusDocument(row["_id"], row.get("title") or "", row["text"])


def load_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Grades from a file in BEIR's form (tab-separated, with a header) or TREC's (four columns, no header).

    Raises:
        DataError: A row has another shape, or a grade is not a whole number.
    """
    qrels: dict[str, dict[str, int]] = {}
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            fields = line.rstrip("\r\n").split("\t") if "\t" in line else line.split()
            if not any(fields) or (
                number == 1 and fields[-1].strip().lower() in ("score", "relevance", "rel")
            ):
                continue
            if len(fields) not in (3, 4):
                raise DataError(
                    f"{path}:{number}: expected 3 columns (BEIR) or 4 (TREC), found {len(fields)}"
                )
            try:
                grade = int(fields[-1])
            except ValueError:
                raise DataError(
                    f"{path}:{number}: expected a whole number as grade, found {fields[-1]!r}"
                ) from None
            qrels.setdefault(fields[0], {})[fields[-2]] = grade
    if not qrels:
        raise DataError(f"{path}: no judgements found")
    return qrels


def load_run(path: Path) -> dict[str, dict[str, float]]:
    """Scores from a TREC run: `query Q0 document rank score tag`. The ranks are ignored, as trec_eval does.

    Raises:
        DataError: A row has another shape, or a score is not a number.
    """
    run: dict[str, dict[str, float]] = {}
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            fields = line.split()
            if not fields:
                continue
            if len(fields) != 6:
                raise DataError(
                    f"{path}:{number}: expected query Q0 document rank score tag (6 columns), "
                    f"found {len(fields)} columns"
                )
            try:
                run.setdefault(fields[0], {})[fields[2]] = float(fields[4])
            except ValueError:
                raise DataError(f"{path}:{number}: expected a number as score, found {fields[4]!r}") from None
    if not run:
        raise DataError(f"{path}: no results found")
    return run


def load_questions(path: Path) -> Judgements:
    """Questions from a CSV with the columns `question` and `file`.

    The columns `page`, `line`, `grade` (1 where absent) and `id` are optional, and others are ignored.
    Several rows with the same question (or the same id) are several answers to it.

    Raises:
        DataError: A column is missing, or a row lacks its question or file.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "q.csv"
        >>> _ = file.write_text(f"question,file,line{chr(10)}How long?,security/keys.md,9")
        >>> load_questions(file).qrels
        {'How long?': {'security/keys.md#line=9': 1}}
    """
    queries: dict[str, str] = {}
    qrels: dict[str, dict[str, int]] = {}
    with open_text(path) as lines:
        rows = csv.DictReader(lines, dialect="excel-tab" if ".tsv" in path.suffixes else "excel")
        columns = {(name or "").strip().lower(): name for name in rows.fieldnames or ()}
        missing = [name for name in ("question", "file") if name not in columns]
        if missing:
            raise DataError(
                f"{path}: expected the columns question and file, found {', '.join(columns) or 'none'}",
                remedy="the first line names the columns: question,file,page,line,grade",
            )
        for row in rows:
            cell = {name: (row[column] or "").strip() for name, column in columns.items()}
            where = f"{path}:{rows.line_num}"
            if not cell["question"] or not cell["file"]:
                raise DataError(f"{where}: a row needs a question and a file")
            key = cell.get("id") or cell["question"]
            queries[key] = cell["question"]
            answer = cell["file"].replace("\\", "/") + _place(cell, where)
            qrels.setdefault(key, {})[answer] = _whole(cell.get("grade") or "1", "grade", where)
    if not queries:
        raise DataError(f"{path}: no questions found")
    return Judgements(queries, qrels)


def _place(cell: Mapping[str, str], where: str) -> str:
    for name in ("line", "page"):
        if cell.get(name):
            return f"#{name}={_whole(cell[name], name, where)}"
    return ""


def _whole(text: str, name: str, where: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise DataError(f"{where}: expected a whole number as {name}, found {text!r}") from None


def _find(folder: Path, *names: str) -> Path:
    for name in names:
        for candidate in (folder / name, folder / f"{name}.gz"):
            if candidate.is_file():
                return candidate
    raise DataError(f"{folder}: expected {' or '.join(names)} (or .gz), found neither")


def _jsonl(path: Path, required: tuple[str, ...]) -> Iterator[dict[str, str]]:
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise DataError(f"{path}:{number}: not JSON: {error}") from None
            lacking = [
                name for name in required if not isinstance(row, dict) or not isinstance(row.get(name), str)
            ]
            if lacking:
                fields = " and ".join(required)
                raise DataError(f"{path}:{number}: expected the texts {fields}; {lacking[0]} is missing")
            yield row
