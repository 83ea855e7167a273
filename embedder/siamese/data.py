"""The data of a run put together: sources to train on, evaluators, and a report of what was found in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.prompts import Prompts
from likewise.embedder.protocol import TextEncoder
from likewise.embedder.siamese.evaluators import Evaluator
from likewise.embedder.siamese.held_out import evaluators_for, hold_out, tells_apart
from likewise.embedder.siamese.pairs import PairData, read_pairs, shared_texts
from likewise.embedder.siamese.settings import SiameseSettings, TrainingData
from likewise.embedder.siamese.sources import Source, make_source
from likewise.embedder.siamese.tasks import LossKind, loss_kind
from likewise.embedder.siamese.token_table import TokenTable
from likewise.errors import UsageError


@dataclass(frozen=True)
class DataReport:
    """What the data of a run are.

    Attributes:
        rows: Training rows by data set.
        texts: Distinct texts.
        truncated: Texts that are longer than the encoder takes and are cut.
        held_out: Rows by held-out data set.
        shared: Held-out rows that stand in the training data as well.
        notices: What a person should know.
    """

    rows: dict[str, int]
    texts: int
    truncated: int
    held_out: dict[str, int]
    shared: int
    notices: tuple[str, ...]


@dataclass(frozen=True)
class RunData:
    """Everything that a run trains on and is measured by.

    Attributes:
        table: Tokens of the training texts.
        sources: The data sets.
        held_out_table: Tokens of the held-out texts.
        held_out: Data sets like the training ones, for the loss on them.
        evaluators: Best first.
        report: For people.
    """

    table: TokenTable
    sources: list[Source]
    held_out_table: TokenTable
    held_out: list[Source]
    evaluators: list[Evaluator]
    report: DataReport


def prepare_data(
    data: Sequence[TrainingData],
    held_out: Sequence[TrainingData],
    settings: SiameseSettings,
    *,
    tables: tuple[TokenTable, TokenTable],
    prompts: Prompts,
    teacher: TextEncoder | None = None,
) -> RunData:
    """Read, check and tokenize the data of a run.

    Args:
        data: To train on.
        held_out: To be measured by. Empty: a share of the first training set.
        settings: Of the run.
        tables: For training and for held-out texts.
        prompts: Of the encoder.
        teacher: For losses that learn its vectors.

    Raises:
        DataError: Something is wrong with the data; see `pairs.read_pairs`.
        UsageError: No data, a teacher is missing, or a loss needs the dropout that is turned off.
    """
    if not data:
        raise UsageError("expected at least one data set to train on, found none")
    if settings.dropout == 0 and any(item.loss == "simcse" for item in data):
        raise UsageError(
            "without dropout the two views that simcse compares are one", remedy="leave the dropout as it is"
        )
    table, held_out_table = tables
    read = [_read(item, settings) for item in data]
    notices = [notice for pairs in read for notice in pairs.notices]
    names = _names(data)
    apart: list[tuple[str, TrainingData, PairData]] = [
        (name, item, _read(item, settings)) for name, item in zip(_names(held_out), held_out, strict=True)
    ]
    if not held_out and settings.held_out and "positive" in read[0].columns:
        training, kept = hold_out(read[0], settings.held_out, seed=settings.training.seed)
        if tells_apart(kept, loss_kind(data[0].loss)):
            read[0] = training
            apart = [(f"{names[0]}-held-out", data[0], kept)]
        else:
            notices.append(
                f"{names[0]}: too few unrelated rows, or too few with different labels, to hold some out for "
                "evaluation"
            )
    sources = [
        _source(name, item, pairs, table, prompts, teacher, head=number)
        for number, (name, item, pairs) in enumerate(zip(names, data, read, strict=True))
    ]
    evaluators: list[Evaluator] = []
    losses: list[Source] = []
    for name, item, pairs in apart:
        kind = loss_kind(item.loss)
        evaluators += evaluators_for(name, pairs, kind, held_out_table, prompts, item.prompts)
        like = next((n for n, other in enumerate(data) if _alike(other, read[n], item, pairs)), None)
        if like is not None and (kind.compares == "nothing" or len(pairs) > 1):
            losses.append(_source(name, item, pairs, held_out_table, prompts, teacher, head=like))
    shared = sum(shared_texts(read, pairs) for _, _, pairs in apart)
    if shared:
        notices.append(f"{shared:,} held-out rows stand in the training data too: their metrics flatter")
    truncated = sum(table.truncated)
    if truncated:
        notices.append(f"{truncated:,} of {len(table):,} texts are longer than the encoder takes and are cut")
    return RunData(
        table,
        sources,
        held_out_table,
        losses,
        evaluators,
        DataReport(
            {name: len(pairs) for name, pairs in zip(names, read, strict=True)},
            len(table),
            truncated,
            {name: len(pairs) for name, _, pairs in apart},
            shared,
            tuple(notices),
        ),
    )


def _read(item: TrainingData, settings: SiameseSettings) -> PairData:
    if isinstance(item.source, PairData):
        return item.source
    return read_pairs(
        Path(item.source) if not str(item.source).startswith("hub:") else item.source,
        loss_kind(item.loss),
        split=item.split,
        columns=item.columns,
        score_range=item.score_range,
        skip_empty=settings.skip_empty,
    )


def _source(
    name: str,
    item: TrainingData,
    pairs: PairData,
    table: TokenTable,
    prompts: Prompts,
    teacher: TextEncoder | None,
    *,
    head: int,
) -> Source:
    kind = loss_kind(item.loss)
    return make_source(
        pairs,
        table,
        name=name,
        kind=kind,
        settings=item.settings,
        prompts=prompts,
        column_prompts=item.prompts,
        weight=item.weight,
        labels=_teacher_vectors(kind, pairs, teacher),
        head=head,
    )


def _alike(training: TrainingData, pairs: PairData, item: TrainingData, held_out: PairData) -> bool:
    """Whether the loss that is trained on one data set can be computed on another."""
    return training.loss == item.loss and pairs.classes == held_out.classes


def _teacher_vectors(
    kind: LossKind, pairs: PairData, teacher: TextEncoder | None
) -> NDArray[np.float32] | None:
    if not kind.teacher:
        return None
    if teacher is None:
        raise UsageError(f"the loss {kind.name} needs a teacher", remedy="--teacher MODEL")
    # The anchor is what the teacher understands; a translation shall get the same vector.
    distinct = {text: at for at, text in enumerate(dict.fromkeys(pairs.columns["anchor"]))}
    vectors = teacher.encode_passages(list(distinct))
    return vectors[[distinct[text] for text in pairs.columns["anchor"]]]


def _names(data: Sequence[TrainingData]) -> list[str]:
    """Names of the data sets, made distinct."""
    names: list[str] = []
    for item in data:
        name, number = item.name, 2
        while name in names:
            name, number = f"{item.name}-{number}", number + 1
        names.append(name)
    return names
