"""What a run is evaluated on: evaluators for given data, or a part of the training data kept aside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from likewise.embedder.prompts import Prompts
from likewise.embedder.siamese.evaluators import (
    Evaluator,
    InBatchEvaluator,
    PairClassificationEvaluator,
    SimilarityEvaluator,
    TripletEvaluator,
)
from likewise.embedder.siamese.labels import NLI_CLASSES
from likewise.embedder.siamese.pairs import PairData
from likewise.embedder.siamese.tasks import LossKind
from likewise.embedder.siamese.token_table import TokenTable

# More rows would make evaluations slow and intervals hardly narrower.
_MOST_HELD_OUT = 2000


def evaluators_for(
    name: str,
    data: PairData,
    kind: LossKind,
    table: TokenTable,
    prompts: Prompts,
    column_prompts: Mapping[str, str] | None = None,
) -> list[Evaluator]:
    """The evaluators that suit the labels of held-out data.

    Args:
        name: For the metrics.
        data: Read for `kind`.
        kind: The loss that the data are for.
        table: Takes the texts in.
        prompts: Of the encoder.
        column_prompts: By role, instead.

    Returns:
        Best first; none if the data say nothing about vectors.
    """
    given = column_prompts or {}
    alike = {role: given.get(role, prompts.passage) for role in data.columns}
    asking = {**alike, "anchor": given.get("anchor", prompts.query)}
    match kind.label:
        case "order" | "score":
            return [SimilarityEvaluator(name, data, table, alike)]
        case "binary":
            return [PairClassificationEvaluator(name, data, table, alike)]
        case "class":
            return _inference(name, data, table, alike)
    if "positive" not in data.columns or kind.name == "margin-mse":
        return []
    if kind.name in ("translation", "crosslingual"):
        return [InBatchEvaluator(name, data, table, alike)]
    found: list[Evaluator] = []
    if len(data) > 1:
        found.append(InBatchEvaluator(name, data, table, asking))
    if len(data.columns) > 2:
        found.append(TripletEvaluator(f"{name}-triplets", data, table, asking))
    return found


def hold_out(data: PairData, share: float, *, seed: int) -> tuple[PairData, PairData]:
    """Split rows into training and held-out ones; rows with an anchor or positive in common stay together.

    Negatives do not tie rows: mined ones are the positives of other rows, so they would tie all of them.

    Args:
        data: All rows.
        share: Wanted share of held-out rows, in [0, 1).
        seed: Of the choice.

    Returns:
        Training rows and held-out rows; no held-out rows if there are too few groups to choose from.
    """
    groups = _connected(data)
    order = np.random.default_rng(seed).permutation(len(groups))
    wanted = min(_MOST_HELD_OUT, round(share * len(data)))
    held: list[int] = []
    for at in order:
        if len(held) + len(groups[at]) <= wanted:  # a group that is too large stays in training
            held += groups[at]
    kept = sorted(set(range(len(data))) - set(held))
    return data.take(kept), data.take(sorted(held))


def tells_apart(data: PairData, kind: LossKind) -> bool:
    """Whether held-out rows can measure anything: at least two, not all with one label.

    Args:
        data: Held-out rows.
        kind: The loss that they are for.

    Example:
        >>> from likewise.embedder.siamese.tasks import LOSSES
        >>> data = PairData("d", {"anchor": ["a", "b"], "positive": ["c", "d"]}, np.ones(2, np.float32))
        >>> tells_apart(data, LOSSES["contrastive"]), tells_apart(data, LOSSES["ranking"])
        (False, True)
    """
    if data.labels is not None and kind.label in ("order", "score", "binary"):
        return len(np.unique(data.labels)) > 1
    return len(data) > 1


def _connected(data: PairData) -> list[list[int]]:
    """Rows grouped so that no anchor or positive stands in two groups (union-find over texts)."""
    parent = list(range(len(data)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    first: dict[str, int] = {}
    sides = [data.columns[role] for role in ("anchor", "positive") if role in data.columns]
    for row, texts in enumerate(zip(*sides, strict=True)):
        for text in texts:
            other = first.setdefault(text.strip(), row)
            parent[root(row)] = root(other)
    groups: dict[int, list[int]] = {}
    for row in range(len(data)):
        groups.setdefault(root(row), []).append(row)
    return list(groups.values())


def _inference(name: str, data: PairData, table: TokenTable, prompts: Mapping[str, str]) -> list[Evaluator]:
    """Inference pairs as paraphrases: entailment against contradiction; other classes say nothing."""
    assert data.labels is not None
    if data.classes != NLI_CLASSES:
        return []
    contradiction, entailment, _ = range(3)
    rows = np.flatnonzero(np.isin(data.labels, (contradiction, entailment)))
    taken = data.take(rows)
    assert taken.labels is not None
    binary = (taken.labels == entailment).astype(np.float32)
    if not 0 < binary.mean() < 1:
        return []
    return [PairClassificationEvaluator(name, replace(taken, labels=binary), table, prompts)]
