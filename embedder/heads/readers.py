"""From files to examples of a task, with everything said that a person should know about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from likewise.embedder.heads import conll, squad
from likewise.embedder.heads.columns import Columns, choose_columns
from likewise.embedder.heads.data import (
    Example,
    QuestionExample,
    TaggedExample,
    TextExample,
    is_missing,
)
from likewise.embedder.heads.text_folders import is_text_folder, read_text_folder, text_folder_splits
from likewise.embedder.tables import HUB_PREFIX, SUFFIXES, Row, Table, find_splits, read_table, suffix_of
from likewise.errors import DataError

Kind = Literal["classification", "multilabel", "regression", "tagging", "questions"]

_SEPARATORS = ("|", ";", ",")
_NO = frozenset({"", "0", "0.0", "false", "no", "n", "none", "nan"})


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How to read the examples of a task.

    Attributes:
        kind: Of task.
        pair: Whether an example has two texts.
        text_columns: Names of the columns with texts; empty to recognise them.
        label_columns: Name of the column with the label; empty to recognise it. Several, for multilabel, are
            columns of yes or no.
        header: Names of the columns of a CSV or TSV file without a header.
        skip_labels: Examples with one of these labels are left out.
        skip_unlabelled: Whether examples without a label are left out instead of refused.
        offline: Never ask the network for a data set.
    """

    kind: Kind
    pair: bool = False
    text_columns: tuple[str, ...] = ()
    label_columns: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    skip_labels: tuple[str, ...] = ()
    skip_unlabelled: bool = False
    offline: bool | None = None


@dataclass(frozen=True)
class Loaded:
    """Examples of one file.

    Attributes:
        examples: In the order of the file.
        source: Where they came from.
        columns: What was read as text and label.
        notes: What a person should know about them.
    """

    examples: list[Example]
    source: str
    columns: str = ""
    notes: list[str] = field(default_factory=list)


def locate(
    data: str, *, dev: str | None, test: str | None, reading: Reading
) -> dict[str, tuple[str, str | None]]:
    """Where the parts of a data set are: a source, and the split to take of it, by "train", "dev", "test".

    Args:
        data: A file, a folder with files or folders named after their part, or a Hugging Face data set.
        dev: File for choosing among models.
        test: File for the final score.
        reading: Of the task.

    Raises:
        DataError: No training data was found.
    """
    found: dict[str, tuple[str, str | None]] = {}
    folder = Path(data).expanduser()
    if not data.startswith(HUB_PREFIX) and folder.is_dir():
        if any((folder / name).is_file() for name in ("dataset_dict.json", "state.json")):
            found["train"] = (data, "train")
        else:
            found = _parts(folder, reading)
    else:
        found["train"] = (data, "train")
    given = {part: (source, part) for part, source in (("dev", dev), ("test", test)) if source is not None}
    return found | given


def _parts(folder: Path, reading: Reading) -> dict[str, tuple[str, str | None]]:
    """The parts of a data set in a folder: files named after them, or folders of texts by label."""
    suffixes = (*SUFFIXES, *conll.SUFFIXES) if reading.kind == "tagging" else SUFFIXES
    files = find_splits(folder, suffixes=suffixes)
    texts = reading.kind == "classification" and not reading.pair
    if texts and "train" not in files:
        files = text_folder_splits(folder) or ({"train": folder} if is_text_folder(folder) else {})
    if "train" not in files:
        raise DataError(
            f"expected a file named train in {folder}, found "
            + (", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"),
            remedy="name the file instead of the folder"
            + "; or give a folder of .txt files for each label" * texts,
        )
    return {part: (str(path), None) for part, path in files.items()}


def read_examples(
    source: str, reading: Reading, *, split: str | None = None, labelled: bool = True
) -> Loaded:
    """Read one file or split.

    Args:
        source: A table (see `read_table`), a folder of texts by label, a CoNLL file for tagging, SQuAD's JSON
            for questions.
        reading: How.
        split: Part of a Hugging Face data set.
        labelled: Whether an example without a label is an error.

    Raises:
        DataError: The file cannot be read, a column is missing, or a label is missing or malformed.
    """
    path = Path(source).expanduser()
    if reading.kind == "tagging" and suffix_of(path) in conll.SUFFIXES and path.is_file():
        documents = conll.read_conll(path)
        return Loaded(list(documents), source, "word: first column; tag: last column")
    if reading.kind == "questions":
        if suffix_of(path) == ".json" and path.is_file() and squad.is_squad(path):
            questions, notes = squad.read_squad(path)
        else:
            questions, notes = squad.questions_of(read_table(source, split=split, offline=reading.offline))
        if labelled:
            _refuse_unknown(questions, source)
        return Loaded(list(questions), source, "question, context, answers", notes)
    notes = []
    if path.is_dir() and reading.kind == "classification" and not reading.pair and is_text_folder(path):
        table, notes = read_text_folder(path)
    else:
        table = read_table(source, split=split, columns=reading.header or None, offline=reading.offline)
    columns = choose_columns(
        table,
        texts=reading.text_columns,
        labels=reading.label_columns,
        pair=reading.pair,
        tagged=reading.kind == "tagging",
        need_label=labelled,
    )
    if reading.kind == "tagging":
        return Loaded(_tagged(table, columns), source, str(columns))
    loaded = _texts(table, columns, reading, labelled)
    return replace(loaded, notes=[*notes, *loaded.notes])


def _texts(table: Table, columns: Columns, reading: Reading, labelled: bool) -> Loaded:
    separator = _separator(table, columns) if reading.kind == "multilabel" else ""
    examples: list[Example] = []
    skipped = unlabelled = empty = 0
    for number, row in enumerate(table.rows, start=1):
        label = _label(table, row, number, columns, reading, separator) if columns.labels else None
        if label is None and labelled:
            unlabelled += 1
            if not reading.skip_unlabelled:
                raise DataError(
                    f"expected a label in every row of {table.name}, found none in row {number} "
                    f"({columns.labels[0]}: {row[columns.labels[0]]!r})",
                    remedy="fill it in, or leave such rows out with --skip-unlabelled",
                )
            continue
        if isinstance(label, str) and label in reading.skip_labels:
            skipped += 1
            continue
        texts = tuple("" if is_none(row[name]) else str(row[name]) for name in columns.texts)
        empty += not all(text.strip() for text in texts)
        examples.append(TextExample(texts, label))
    notes = []
    if unlabelled:
        notes.append(f"{unlabelled} rows without a label are left out")
    if skipped:
        notes.append(f"{skipped} rows with the label {' or '.join(reading.skip_labels)} are left out")
    if empty:
        notes.append(f"{empty} rows have an empty text; they are kept")
    if separator and any(isinstance(row[columns.labels[0]], str) for row in table.rows):
        notes.append(f"labels of one row are separated by {separator!r}")
    if not examples:
        raise DataError(f"expected at least one labelled row in {table.name}, found none")
    return Loaded(examples, table.name, str(columns), notes)


def is_none(value: Any) -> bool:
    """Whether a cell of text is absent; the text "nan" is a text.

    Example:
        >>> is_none(float("nan")), is_none("nan")
        (True, False)
    """
    return value is None or (isinstance(value, float) and value != value)


def label_text(value: Any) -> str:
    """A label as text; a whole number is written without a point, as tools that know NaN store it with one.

    Example:
        >>> label_text(1.0), label_text(1), label_text(" pos ")
        ('1', '1', 'pos')
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _label(
    table: Table, row: Row, number: int, columns: Columns, reading: Reading, separator: str
) -> str | tuple[str, ...] | float | None:
    if reading.kind == "multilabel":
        return _labels(row, columns, separator)
    if len(columns.labels) > 1:
        raise DataError(f"expected one label column for this task, found {', '.join(columns.labels)}")
    value = row[columns.labels[0]]
    if is_missing(value):
        return None
    if reading.kind == "regression":
        try:
            found = float(value)
        except (TypeError, ValueError):
            found = float("inf")
        if found in (float("inf"), float("-inf")):
            raise DataError(
                f"expected a number in row {number} of {table.name}, found {value!r}",
                remedy="leave out --regression to predict labels instead of numbers",
            )
        return None if found != found else found
    if isinstance(value, list | dict):
        raise DataError(
            f"expected one label in row {number} of {table.name}, found {value!r:.80}",
            remedy="--multi-label, if a text may have several",
        )
    return label_text(value)


def _labels(row: Row, columns: Columns, separator: str) -> tuple[str, ...]:
    """Labels of a row; none at all is an answer too."""
    if len(columns.labels) > 1:
        return tuple(name for name in columns.labels if label_text(row[name] or "").lower() not in _NO)
    value = row[columns.labels[0]]
    if isinstance(value, list | tuple):
        parts = [label_text(part) for part in value]
    else:
        parts = [] if is_missing(value) else [part.strip() for part in label_text(value).split(separator)]
    return tuple(dict.fromkeys(part for part in parts if part))


def _separator(table: Table, columns: Columns) -> str:
    cells = [row[columns.labels[0]] for row in table.rows]
    texts = [cell for cell in cells if isinstance(cell, str)]
    return next((mark for mark in _SEPARATORS if any(mark in text for text in texts)), _SEPARATORS[0])


def _tagged(table: Table, columns: Columns) -> list[Example]:
    examples: list[Example] = []
    for number, row in enumerate(table.rows, start=1):
        words = row[columns.texts[0]]
        tags = row[columns.labels[0]] if columns.labels else None
        if not isinstance(words, list) or not (tags is None or isinstance(tags, list)):
            raise DataError(
                f"expected lists of words and tags in row {number} of {table.name}, found {words!r:.60}",
                remedy="a CoNLL file, or JSON lines with lists",
            )
        try:
            document = conll.tagged([str(word) for word in words], tags and [label_text(tag) for tag in tags])
        except DataError as error:
            raise DataError(f"row {number} of {table.name}: {error.message}") from error
        examples.append(document)
    return examples


def _refuse_unknown(questions: Sequence[QuestionExample], source: str) -> None:
    unknown = sum(example.answers is None for example in questions)
    if unknown:
        raise DataError(f"expected answers to every question in {source}, found {unknown} without")


def describe(examples: Sequence[Example]) -> dict[str, int]:
    """Counts that say what a set of examples is made of.

    Example:
        >>> describe([TextExample(("a",), "x"), TextExample(("b",), "x")])
        {'examples': 2}
    """
    counts = {"examples": len(examples)}
    if examples and isinstance(examples[0], TaggedExample):
        counts["words"] = sum(
            len(example.words) for example in examples if isinstance(example, TaggedExample)
        )
    if examples and isinstance(examples[0], QuestionExample):
        counts["without answer"] = sum(
            example.answers == () for example in examples if isinstance(example, QuestionExample)
        )
    return counts
