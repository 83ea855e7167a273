"""Training data by named columns, never by their order.

Each column has a role: `anchor`, `positive`, `negative` (any number), or `label`; several usual names stand
for each. What a loss needs and the data lack, or the data have and the loss would ignore, is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.siamese import labels as labelling
from likewise.embedder.siamese.pair_files import Row, read_rows
from likewise.embedder.siamese.tasks import LossKind
from likewise.errors import DataError

_NAMES = {
    "anchor": ("anchor", "query", "question", "sentence1", "premise", "text1", "text", "sentence"),
    "positive": ("positive", "answer", "passage", "sentence2", "hypothesis", "text2", "translation"),
    "label": ("label", "score", "similarity_score", "gold_label", "margin", "margins"),
}
_NEGATIVE = re.compile(r"negative(_\d+)?")


@dataclass(frozen=True, eq=False)
class PairData:
    """Rows of text with their labels.

    Attributes:
        name: For logs and errors.
        columns: Texts by role: "anchor", "positive", "negative_1" and so on, all of the same length.
        labels: One row per example: float32, or int64 for classes; None without labels.
        classes: Names of the classes.
        notices: What a person should know about how the data were read.
    """

    name: str
    columns: Mapping[str, Sequence[str]]
    labels: NDArray[Any] | None = None
    classes: tuple[str, ...] = ()
    notices: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def take(self, rows: Sequence[int] | NDArray[np.int64]) -> PairData:
        """Some of the rows."""
        return replace(
            self,
            columns={role: [texts[int(row)] for row in rows] for role, texts in self.columns.items()},
            labels=None if self.labels is None else self.labels[np.asarray(rows, dtype=np.int64)],
        )


def read_pairs(
    source: str | Path,
    kind: LossKind,
    *,
    split: str = "train",
    columns: Mapping[str, str] | None = None,
    score_range: tuple[float, float] | None = None,
    skip_empty: bool = False,
) -> PairData:
    """Read training data for a loss.

    Args:
        source: See `pair_files.read_rows`.
        kind: Of the loss, which says what is needed.
        split: Of a data set.
        columns: Role to column name, for columns with unusual names; a role mapped to "" is ignored.
        score_range: Lowest and highest score there can be, to be mapped to [0, 1].
        skip_empty: Leave out rows with an empty text instead of refusing them.

    Raises:
        DataError: No rows, columns missing or ambiguous, empty texts, labels out of range.
    """
    return make_pairs(
        read_rows(source, split=split),
        kind,
        name=str(source),
        columns=columns,
        score_range=score_range,
        skip_empty=skip_empty,
    )


def make_pairs(
    rows: Sequence[Row],
    kind: LossKind,
    *,
    name: str,
    columns: Mapping[str, str] | None = None,
    score_range: tuple[float, float] | None = None,
    skip_empty: bool = False,
) -> PairData:
    """Turn rows into training data for a loss; see `read_pairs`.

    Example:
        >>> from likewise.embedder.siamese.tasks import LOSSES
        >>> rows = [{"score": 0.5, "sentence2": "b", "sentence1": "a"}]
        >>> data = make_pairs(rows, LOSSES["cosine"], name="example")
        >>> data.columns, data.labels.tolist()
        ({'anchor': ['a'], 'positive': ['b']}, [0.5])
    """
    if not rows:
        raise DataError(f"{name}: expected at least one row, found none")
    present = [column for column in dict.fromkeys(chain.from_iterable(rows)) if isinstance(column, str)]
    roles = _roles(present, columns or {}, name)
    _check_roles(roles, kind, present, name)
    rows, notices = _without_empty(rows, roles, name, skip_empty)
    texts = {
        role: _texts(rows, roles[role], name)
        for role in sorted((role for role in roles if role != "label"), key=_role_order)
    }
    if kind.label == "none":
        return _checked(PairData(name, texts, notices=notices), kind)
    values = [row.get(roles["label"]) for row in rows]
    match kind.label:
        case "score" | "order":
            found: NDArray[Any] = labelling.scores(
                values, where=name, bounded=kind.label == "score", score_range=score_range
            )
        case "binary":
            found = labelling.binary(values, where=name)
        case "margins":
            found = labelling.margins(values, count=len(texts) - 2, where=name)
        case "class":
            found, classes = labelling.classes(values, where=name)
            data = PairData(name, texts, found, classes, notices)
            agreed = np.flatnonzero(found >= 0)
            if len(agreed) < len(found):
                left = f"{name}: {len(found) - len(agreed)} rows without an agreed class are left out"
                data = replace(data.take(agreed), notices=(*notices, left))
            return _checked(data, kind)
    return _checked(PairData(name, texts, found, notices=notices), kind)


def shared_texts(train: Sequence[PairData], held_out: PairData) -> int:
    """Rows of the held-out data whose anchor and positive stand together in a row of training data too.

    Negatives do not count: mined ones make no new pair of an old one.

    Args:
        train: All data sets that are trained on.
        held_out: To be measured by.

    Example:
        >>> data = PairData("a", {"anchor": ["x", "y"], "positive": ["1", "2"]})
        >>> shared_texts([data], data.take([1]))
        1
    """
    seen = set().union(*(_sides(data) for data in train))
    return sum(row in seen for row in _sides(held_out))


def _sides(data: PairData) -> list[frozenset[str]]:
    """Anchor and positive of each row, whichever is which; the anchor alone where there is no positive."""
    columns = [data.columns[role] for role in ("anchor", "positive") if role in data.columns]
    return [frozenset(map(str.strip, row)) for row in zip(*columns, strict=True)]


def _roles(present: Sequence[str], given: Mapping[str, str], where: str) -> dict[str, str]:
    """Column of each role."""
    roles: dict[str, str] = {}
    for role, column in given.items():
        if role not in _NAMES and not _NEGATIVE.fullmatch(role):
            raise DataError(f"expected the role anchor, positive, negative_1 ... or label, found {role!r}")
        if column and column not in present:
            raise DataError(f"{where}: expected a column {column!r}, found {', '.join(present)}")
        if column:
            roles[_role(role)] = column
    if len(set(roles.values())) < len(roles):
        raise DataError(f"{where}: one column is named for two roles: {', '.join(roles.values())}")
    taken = {*roles.values(), *given.values()}
    settled = {_role(role) for role in given}
    for role, usual in _NAMES.items():
        if role in given:
            continue
        found = [name for name in usual if name in present and name not in taken]
        if len(found) > 1:
            raise DataError(
                f"{where}: the columns {' and '.join(found)} could both be the {role}",
                remedy=f"--column {role}={found[0]}",
            )
        if found:
            roles[role] = found[0]
    for name in present:
        if not _NEGATIVE.fullmatch(name) or name in taken or _role(name) in settled:
            continue
        if _role(name) in roles:
            raise DataError(
                f"{where}: the columns {roles[_role(name)]} and {name} could both be negative_1",
                remedy=f"--column negative_1={name}",
            )
        roles[_role(name)] = name
    return roles


def _role(name: str) -> str:
    return "negative_1" if name == "negative" else name


def _role_order(role: str) -> tuple[int, int]:
    if role in ("anchor", "positive"):
        return (0, int(role == "positive"))
    return (1, int(role.removeprefix("negative_")))


def _check_roles(roles: dict[str, str], kind: LossKind, present: list[str], where: str) -> None:
    wanted = [*kind.roles, *(["label"] if kind.label != "none" else [])]
    missing = [role for role in wanted if role not in roles]
    if missing:
        raise DataError(
            f"{where}: the loss {kind.name} needs the columns {', '.join(wanted)}, "
            f"found no {' and no '.join(missing)} among {', '.join(present)}",
            remedy=f"name it: --column {missing[0]}=NAME",
        )
    allowed = {*wanted, *(role for role in roles if role.startswith("negative_") and kind.negatives)}
    unused = [role for role in roles if role not in allowed]
    if unused:
        raise DataError(
            f"{where}: the loss {kind.name} would ignore the column {roles[unused[0]]!r}",
            remedy=f"choose a loss that uses it, or say so: --column {unused[0]}=",
        )


def _without_empty(
    rows: Sequence[Row], roles: dict[str, str], where: str, skip: bool
) -> tuple[Sequence[Row], tuple[str, ...]]:
    names = [column for role, column in roles.items() if role != "label"]
    empty = [
        (number, name)
        for number, row in enumerate(rows)
        for name in names
        if row.get(name) is None or not str(row[name]).strip()
    ]
    if not empty:
        return rows, ()
    bad = {number for number, _ in empty}
    if not skip:
        number, name = empty[0]
        raise DataError(
            f"{where}: {len(bad)} of {len(rows)} rows have an empty text; the first is row {number + 1}, "
            f"column {name!r}",
            remedy="--skip-empty leaves them out",
        )
    kept = [row for number, row in enumerate(rows) if number not in bad]
    if not kept:
        raise DataError(f"{where}: all {len(rows)} rows have an empty text")
    return kept, (f"{where}: {len(bad)} rows with an empty text are left out",)


def _texts(rows: Sequence[Row], column: str, where: str) -> list[str]:
    """The texts of a column; numbers count as texts, lists and objects do not."""
    found = [row[column] for row in rows]
    for number, value in enumerate(found, start=1):
        if isinstance(value, list | tuple | Mapping | bytes):
            raise DataError(
                f"{where}, row {number}: expected a text in the column {column!r}, found "
                f"{type(value).__name__}",
                remedy="one text in each column; several negatives are negative_1, negative_2 ...",
            )
    return [str(value) for value in found]


def _checked(data: PairData, kind: LossKind) -> PairData:
    """The data, unless their texts leave nothing to learn."""
    distinct = {role: {text.strip() for text in texts} for role, texts in data.columns.items()}
    if len(set().union(*distinct.values())) < 2:
        raise DataError(
            f"{data.name}: all texts are the same, so there is nothing to learn from their differences"
        )
    if kind.name == "ranking" and len(data) > 1 and len(data.columns) == 2:
        # Known positives are no negatives of their anchor, so there would be none at all.
        one = next((role for role, texts in distinct.items() if len(texts) < 2), None)
        if one is not None:
            raise DataError(
                f"{data.name}: every row has the same {one}, so no positive is wrong for any anchor and the "
                f"loss {kind.name} has nothing to learn from",
                remedy="add rows about something else, or negatives: likewise mine",
            )
    return data
