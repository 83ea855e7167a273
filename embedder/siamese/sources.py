"""One data set in a run: its texts as numbers of the token table, its loss, and its share of the batches.

Also finds out which texts may not count as negatives of an anchor: those that some row of the data set calls
its positive, and the anchor itself. So no guide model is needed to find these false negatives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.prompts import Prompts
from likewise.embedder.siamese.pairs import PairData
from likewise.embedder.siamese.tasks import LossKind, LossSettings
from likewise.embedder.siamese.token_table import TokenTable
from likewise.errors import DataError, UsageError


@dataclass(frozen=True, eq=False)
class Source:
    """A data set with its loss.

    Attributes:
        name: Of the data set, as the term of the loss in logs.
        kind: Of the loss.
        settings: Constants of the loss.
        columns: int64 of shape (rows, columns): numbers of the texts.
        labels: One row per example, or None.
        classes: Number of classes, 0 if the labels are none.
        weight: Passes over these data per epoch, above 0.
        positives: Identity of a text to the identities of everything that is its positive.
        head: Number of the data set whose head the loss uses: its own, or for held-out data that of the data
            set they are like.
    """

    name: str
    kind: LossKind
    settings: LossSettings
    columns: NDArray[np.int64]
    labels: NDArray[np.float32] | NDArray[np.int64] | None
    classes: int = 0
    weight: float = 1.0
    positives: Mapping[int, frozenset[int]] = field(default_factory=dict)
    head: int = 0

    def __len__(self) -> int:
        return len(self.columns)


def make_source(
    data: PairData,
    table: TokenTable,
    *,
    name: str,
    kind: LossKind,
    settings: LossSettings | None = None,
    prompts: Prompts | None = None,
    column_prompts: Mapping[str, str] | None = None,
    weight: float = 1.0,
    labels: NDArray[np.float32] | None = None,
    head: int = 0,
) -> Source:
    """Tokenize a data set and note what its rows say about each other.

    Args:
        data: The texts.
        table: Takes them in.
        name: For logs; unique in a run.
        kind: Of the loss.
        settings: Constants of the loss.
        prompts: The anchor of a loss with positives gets the prompt of queries, everything else that of
            passages. Scored pairs, whose sides are alike, get that of passages on both.
        column_prompts: By role, instead.
        weight: Passes over these data per epoch.
        labels: Instead of the data's: the vectors of a teacher.
        head: See `Source`.

    Raises:
        DataError: Too few rows for the loss.
        UsageError: The weight makes no sense, or a prompt is for a column that is not there.
    """
    if not weight > 0:
        raise UsageError(f"expected a weight above 0 for {name}, found {weight}")
    if kind.compares != "nothing" and len(data) < 2:
        raise DataError(
            f"{data.name}: the loss {kind.name} compares examples with each other, so it needs at least two "
            f"rows, found {len(data)}",
            remedy="add rows, or choose a loss over single rows such as triplet or cosine",
        )
    prompts = prompts or Prompts()
    given = dict(column_prompts or {})
    if unknown := sorted(set(given) - set(data.columns)):
        raise UsageError(
            f"a prompt is given for the column {unknown[0]!r}; {data.name} has {', '.join(data.columns)}"
        )
    # With a positive to find, the anchor is a query. Two sides that get one score are of the same kind.
    asks = kind.name in ("ranking", "triplet", "margin-mse")
    numbers = [
        table.add(
            texts, prompt=given.get(role, prompts.query if asks and role == "anchor" else prompts.passage)
        )
        for role, texts in data.columns.items()
    ]
    columns = np.stack(numbers, axis=1)
    return Source(
        name,
        kind,
        settings or LossSettings(),
        columns,
        data.labels if labels is None else labels,
        len(data.classes),
        weight,
        _positives(columns, table.identity) if kind.compares == "others" else {},
        head,
    )


def excluded(source: Source, rows: Sequence[int], identity: Sequence[int]) -> NDArray[np.bool_] | None:
    """Which candidates of a batch are no negatives of which anchor.

    Candidates are all positives of the batch, then all first negatives, and so on, as in the ranking loss;
    for a loss with two views of one text, the texts themselves.

    Args:
        source: The data set.
        rows: Of the batch.
        identity: Of the token table.

    Returns:
        Bool of shape (rows, candidates), True where a candidate equals the anchor or one of its known
        positives; None if the loss compares nothing. The own positive is True as well.
    """
    if source.kind.compares != "others":
        return None
    columns = source.columns[list(rows)]
    anchors = [identity[number] for number in columns[:, 0].tolist()]
    texts = columns[:, 1:] if columns.shape[1] > 1 else columns
    candidates = np.array([identity[number] for number in texts.T.flatten().tolist()])
    mask = np.zeros((len(anchors), len(candidates)), dtype=bool)
    for row, anchor in enumerate(anchors):
        known = source.positives.get(anchor, frozenset()) | {anchor}
        mask[row] = np.isin(candidates, list(known))
    return mask


def _positives(columns: NDArray[np.int64], identity: Sequence[int]) -> dict[int, frozenset[int]]:
    found: dict[int, set[int]] = {}
    if columns.shape[1] > 1:
        for anchor, positive in columns[:, :2].tolist():
            found.setdefault(identity[anchor], set()).add(identity[positive])
    return {anchor: frozenset(positives) for anchor, positives in found.items()}
