"""Which columns of a table hold the texts and the label: named by the caller, or recognised by their names.

Never by their order. What was recognised is for the caller to show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from likewise.embedder.tables import Table
from likewise.errors import DataError

_TEXT = ("text", "sentence", "review", "content", "comment", "document", "body", "message", "tweet", "title")
_PAIRS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("sentence_a", "sentence_b"),
    ("#1 string", "#2 string"),
    ("query", "passage"),
    ("question", "answer"),
    ("question", "sentence"),
)
_LABEL = (
    "label",
    "labels",
    "class",
    "category",
    "sentiment",
    "gold_label",
    "intent",
    "topic",
    "target",
    "score",
    "similarity",
    "rating",
    "quality",
)
_WORDS = ("tokens", "words")
_TAGS = ("tags", "ner_tags", "labels", "pos_tags", "chunk_tags")


@dataclass(frozen=True)
class Columns:
    """Names of columns.

    Attributes:
        texts: Of the text, or of both texts of a pair.
        labels: Of the label; several where each holds yes or no for one label.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]

    def __str__(self) -> str:
        return f"text: {' and '.join(self.texts)}; label: {', '.join(self.labels) or 'none'}"


def choose_columns(
    table: Table,
    *,
    texts: Sequence[str] = (),
    labels: Sequence[str] = (),
    pair: bool = False,
    tagged: bool = False,
    need_label: bool = True,
) -> Columns:
    """Find the columns of the texts and the label.

    Args:
        table: The data.
        texts: Named by the caller; empty to recognise them.
        labels: Named by the caller; empty to recognise it.
        pair: Whether an example has two texts.
        tagged: Whether the columns hold lists of words and tags.
        need_label: Whether examples without a label are useless.

    Raises:
        DataError: A named column does not exist, the number of them is wrong, or none was recognised.

    Example:
        >>> table = Table("reviews.csv", ("Sentiment", "Review"), ())
        >>> print(choose_columns(table))
        text: Review; label: Sentiment
    """
    wanted = 2 if pair else 1
    if texts and len(texts) != wanted:
        raise DataError(
            f"expected {wanted} text columns for this task, found {len(texts)}: {', '.join(texts)}"
        )
    for name in (*texts, *labels):
        if name not in table.columns:
            raise DataError(f"there is no column {name!r} in {table.name}", remedy=_listing(table))
    by_name = {name.strip().lower(): name for name in reversed(table.columns)}
    if not texts:
        known = _PAIRS if pair else [(name,) for name in (_WORDS if tagged else _TEXT)]
        found = [names for names in known if all(name in by_name for name in names)]
        if not found:
            raise DataError(
                f"expected column{'s' if pair else ''} with a known name for the text in {table.name}, found "
                + ", ".join(table.columns),
                remedy="name them with --text-column" + (", twice" if pair else ""),
            )
        texts = [by_name[name] for name in found[0]]
    if not labels:
        known_labels = [by_name[name] for name in (_TAGS if tagged else _LABEL) if name in by_name]
        labels = [name for name in known_labels if name not in texts][:1]
        if not labels and need_label:
            raise DataError(
                f"expected a column with a known name for the label in {table.name}, found "
                + ", ".join(table.columns),
                remedy="name it with --label-column",
            )
    return Columns(tuple(texts), tuple(labels))


def _listing(table: Table) -> str:
    return f"its columns are {', '.join(table.columns)}"
