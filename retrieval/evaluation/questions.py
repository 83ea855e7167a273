"""A person's own questions: a CSV with the file that answers each, and perhaps the page or the line in it."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from likewise.errors import DataError
from likewise.retrieval.evaluation.judgements import Judgements, Place, open_text

COLUMNS = ("id", "question", "file", "page", "line", "grade")


def load_questions(path: Path) -> Judgements:
    """Questions from a CSV with the columns `question` and `file`; of a `.tsv`, tabs separate the columns.

    The columns `page`, `line`, `grade` (1 where absent) and `id` are optional, and others are ignored.
    Several rows with the same question (or the same id) are several answers to it.

    Raises:
        DataError: A column is missing, or a row lacks its question or file, contradicts another or is there
            twice.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "q.csv"
        >>> _ = file.write_text(f"question,file,line{chr(10)}How long?,security/keys.md,9")
        >>> load_questions(file).qrels
        {'How long?': {'security/keys.md#line=9': 1}}
    """
    try:
        return _load(path)
    except csv.Error as error:
        raise DataError(f"{path}: not a CSV file: {error}") from None


def _load(path: Path) -> Judgements:
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
            if not any(cell.values()):
                continue
            if not cell["question"] or not cell["file"]:
                raise DataError(f"{where}: a row needs a question and a file")
            key = cell.get("id") or cell["question"]
            if queries.setdefault(key, cell["question"]) != cell["question"]:
                raise DataError(f"{where}: the id {key!r} stands for two questions")
            answer = str(_place(cell, where))
            if answer in qrels.setdefault(key, {}):
                raise DataError(f"{where}: the answer {answer!r} is there twice for {key!r}")
            qrels[key][answer] = _whole(cell.get("grade") or "1", "grade", where, least=None)
    if not queries:
        raise DataError(f"{path}: no questions found")
    return Judgements(queries, qrels)


def question_rows(judgements: Judgements) -> list[tuple[str, ...]]:
    """Questions as rows of a CSV that `load_questions` reads, header first.

    Example:
        >>> question_rows(Judgements({"1": "How long?"}, {"1": {"keys.md#line=9": 1}}))[1]
        ('1', 'How long?', 'keys.md', '', '9', '1')
    """
    rows: list[tuple[str, ...]] = [COLUMNS]
    for query, answers in judgements.qrels.items():
        for answer, grade in answers.items():
            place = Place.of(answer)
            page, line = (str(place.number) if place.unit == unit else "" for unit in ("page", "line"))
            rows.append((query, judgements.queries[query], place.key, page, line, str(grade)))
    return rows


def _place(cell: Mapping[str, str], where: str) -> Place:
    file = cell["file"].replace("\\", "/")
    for unit in ("line", "page"):
        if cell.get(unit):
            return Place(file, unit, _whole(cell[unit], unit, where, least=1))
    return Place(file)


def _whole(text: str, name: str, where: str, *, least: int | None) -> int:
    try:
        value = int(text)
    except ValueError:
        raise DataError(f"{where}: expected a whole number as {name}, found {text!r}") from None
    if least is not None and value < least:
        raise DataError(f"{where}: expected a {name} from {least}, found {text!r}")
    return value
