"""Questions about texts: the JSON of SQuAD, and tables with the columns question, context and answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from likewise.embedder.heads.data import Answer, QuestionExample, is_missing
from likewise.embedder.tables import Table, read_text
from likewise.errors import DataError


def is_squad(path: Path) -> bool:
    """Whether a `.json` file has the shape of SQuAD's, by its beginning.

    Raises:
        DataError: The file cannot be read.
    """
    beginning = read_text(path).lstrip()[:400]
    return beginning.startswith("{") and '"data"' in beginning


def read_squad(path: Path) -> tuple[list[QuestionExample], list[str]]:
    """Read a SQuAD file, version 1.1 or 2.0.

    Args:
        path: UTF-8, unpacked if its name ends in `.gz`.

    Returns:
        The questions, and notes about answers that do not stand where they should.

    Raises:
        DataError: The file has another shape.
    """
    try:
        articles = json.loads(read_text(path))["data"]
        found = list(_questions(articles))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"expected the JSON of SQuAD in {path}, found {error!r}") from error
    if not found:
        raise DataError(f"expected at least one question in {path}, found none")
    return _mended(found)


def questions_of(table: Table) -> tuple[list[QuestionExample], list[str]]:
    """Questions in a table, as Hugging Face stores SQuAD; without `answers` they are unknown.

    Args:
        table: With the columns question and context, and answers as `{"text": [...], "answer_start": [...]}`.

    Raises:
        DataError: A column is missing or holds something else.
    """
    missing = [name for name in ("question", "context") if name not in table.columns]
    if missing:
        raise DataError(
            f"expected the columns question and context in {table.name}, found {', '.join(table.columns)}"
        )
    examples = []
    for number, row in enumerate(table.rows, start=1):
        if is_missing(row["question"]) or is_missing(row["context"]):
            raise DataError(f"expected a question and a context in row {number} of {table.name}")
        answers = row.get("answers")
        try:
            if isinstance(answers, str):
                answers = json.loads(answers)
            pairs = None if answers is None else zip(answers["text"], answers["answer_start"], strict=True)
            known = None if pairs is None else tuple(Answer(str(text), int(at)) for text, at in pairs)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f'expected answers as {{"text": [...], "answer_start": [...]}} in row {number} of '
                f"{table.name}, found {answers!r:.80}"
            ) from error
        examples.append(
            QuestionExample(
                str(row["question"]),
                str(row["context"]),
                known,
                str(row.get("id") or number),
                str(row.get("title") or ""),
            )
        )
    return _mended(examples)


def _questions(articles: Iterable[dict[str, Any]]) -> Iterator[QuestionExample]:
    for article in articles:
        for paragraph in article["paragraphs"]:
            for entry in paragraph["qas"]:
                # One answer given twice by two people counts once.
                answers = dict.fromkeys(
                    Answer(a["text"], a["answer_start"]) for a in entry.get("answers") or ()
                )
                known = tuple(answers) if "answers" in entry or entry.get("is_impossible") else None
                title = article.get("title") or article.get("id") or paragraph["context"][:40]
                yield QuestionExample(
                    entry["question"],
                    paragraph["context"],
                    () if entry.get("is_impossible") else known,
                    str(entry.get("id", "")),
                    str(title),
                )


def _mended(examples: list[QuestionExample]) -> tuple[list[QuestionExample], list[str]]:
    """Move answers to where they stand in the context, nearest to where they should."""
    moved = lost = 0
    result = []
    for example in examples:
        answers = []
        for answer in example.answers or ():
            at = answer.start
            if example.context[at : at + len(answer.text)] != answer.text or not answer.text:
                at = _nearest(example.context, answer.text, at)
                moved, lost = moved + (at >= 0), lost + (at < 0)
            # An answer that stands nowhere still counts in the scores, as in the official script.
            answers.append(Answer(answer.text, at))
        known = None if example.answers is None else tuple(answers)
        result.append(QuestionExample(example.question, example.context, known, example.key, example.title))
    notes = []
    if moved:
        notes.append(f"{moved} answers do not begin where the file says; the nearest place is used")
    if lost:
        notes.append(f"{lost} answers are not in their context; they count in scores, not in training")
    return result, notes


def _nearest(context: str, text: str, wanted: int) -> int:
    """Where the text stands in the context, nearest to the wanted place; -1 if nowhere."""
    if not text:
        return -1
    before, after = context.rfind(text, 0, max(0, wanted) + len(text)), context.find(text, max(0, wanted))
    places = [place for place in (before, after) if place >= 0]
    return min(places, key=lambda place: abs(place - wanted), default=-1)
