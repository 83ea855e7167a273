"""What each loss needs and how it is computed from the vectors of a batch: the table of all losses.

The losses themselves are the pure functions of `losses/`; this module says which columns and labels they
take, whether the examples of a batch are compared with each other, and how the sum over a batch is counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import torch
from torch import Tensor, nn

from likewise.embedder.bert import Bert
from likewise.embedder.siamese.decoder import DenoisingDecoder
from likewise.embedder.siamese.labels import LabelKind
from likewise.embedder.siamese.losses.angle import angle
from likewise.embedder.siamese.losses.contrastive import contrastive
from likewise.embedder.siamese.losses.cosent import cosent
from likewise.embedder.siamese.losses.cosine import cosine_regression
from likewise.embedder.siamese.losses.crosslingual import crosslingual
from likewise.embedder.siamese.losses.distances import Distance
from likewise.embedder.siamese.losses.distillation import Measure, embedding_distillation
from likewise.embedder.siamese.losses.margin_mse import margin_mse
from likewise.embedder.siamese.losses.matryoshka import matryoshka
from likewise.embedder.siamese.losses.online_contrastive import online_contrastive
from likewise.embedder.siamese.losses.ranking import multiple_negatives_ranking
from likewise.embedder.siamese.losses.simcse import simcse
from likewise.embedder.siamese.losses.softmax import Features, softmax_classification
from likewise.embedder.siamese.losses.triplet import triplet
from likewise.embedder.siamese.model import SentenceModel
from likewise.errors import UsageError


@dataclass(frozen=True, slots=True)
class LossKind:
    """What a loss needs.

    Attributes:
        name: As on the command line.
        roles: Columns that must be there.
        label: What the label column must hold; "none" for no label.
        negatives: Whether any number of negatives may follow.
        compares: How the examples of a batch depend on each other: "nothing", "others" (one value per
            example, which depends on the others) or "batch" (one value for the batch).
        raw: Computed on vectors before their normalisation, as in the loss's paper.
        teacher: Whether labels are the vectors of a teacher.
    """

    name: str
    roles: tuple[str, ...]
    label: LabelKind = "none"
    negatives: bool = False
    compares: Literal["nothing", "others", "batch"] = "nothing"
    raw: bool = False
    teacher: bool = False


LOSSES: Mapping[str, LossKind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            LossKind("ranking", ("anchor", "positive"), negatives=True, compares="others"),
            LossKind("cosent", ("anchor", "positive"), "order", compares="batch"),
            LossKind("angle", ("anchor", "positive"), "order", compares="batch"),
            LossKind("cosine", ("anchor", "positive"), "score"),
            LossKind("softmax", ("anchor", "positive"), "class", raw=True),
            LossKind("contrastive", ("anchor", "positive"), "binary"),
            LossKind("online-contrastive", ("anchor", "positive"), "binary", compares="batch"),
            LossKind("triplet", ("anchor", "positive", "negative_1")),
            LossKind("margin-mse", ("anchor", "positive", "negative_1"), "margins", negatives=True),
            LossKind("simcse", ("anchor",), compares="others"),
            LossKind("tsdae", ("anchor",), raw=True),
            LossKind("distillation", ("anchor",), teacher=True),
            LossKind("translation", ("anchor", "positive"), teacher=True),
            LossKind("crosslingual", ("anchor", "positive"), compares="others", teacher=True),
        )
    }
)


def loss_kind(name: str) -> LossKind:
    """The loss of this name.

    Raises:
        UsageError: There is none; the message lists those there are.
    """
    try:
        return LOSSES[name]
    except KeyError:
        raise UsageError(f"unknown loss {name!r}; expected one of {', '.join(LOSSES)}") from None


@dataclass(frozen=True, kw_only=True)
class LossSettings:
    """Constants of the losses; each uses those that it has.

    Attributes:
        scale: Of cosines in ranking, cosent, angle, simcse and crosslingual: the inverse temperature.
        symmetric: Ranking in both directions.
        margin: Of contrastive (default 0.5) and triplet (default 0.3).
        metric: Distance of contrastive, online-contrastive and triplet.
        features: What the classifier of softmax sees.
        deleted: Share of the tokens that tsdae deletes.
        measure: Of distillation and translation.
        contrast: Of crosslingual: weight of the contrastive term.
        hold: Of crosslingual: weight of the term that keeps the originals in their place.
        dimensions: Matryoshka: lengths at which the loss is computed; None for the full length alone.
        factor: Of the whole loss, beside those of other data sets: AdamW makes steps small for
            the steepest of them, so a loss that only holds the space in its place needs 10 or more.
    """

    scale: float = 20.0
    symmetric: bool = False
    margin: float | None = None
    metric: Distance = "cosine"
    features: Features = "u,v,|u-v|"
    deleted: float = 0.6
    measure: Measure = "mse"
    contrast: float = 1.0
    hold: float = 1.0
    dimensions: tuple[int, ...] | None = None
    factor: float = 1.0

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise UsageError(f"expected a scale above 0, found {self.scale}")
        if not 0 < self.factor < math.inf:
            raise UsageError(f"expected a finite factor above 0, found {self.factor}")
        if not 0 < self.deleted < 1:
            raise UsageError(f"expected a share of deleted tokens in (0, 1), found {self.deleted}")
        if self.margin is not None and not self.margin > 0:
            raise UsageError(f"expected a margin above 0, found {self.margin}")
        if self.contrast < 0 or self.hold < 0:
            raise UsageError(f"expected weights of at least 0, found {self.contrast} and {self.hold}")


def make_head(
    kind: LossKind, settings: LossSettings, encoder: SentenceModel, *, classes: int, seed: int
) -> nn.Module | None:
    """The weights that a loss has of its own; None if it has none.

    Args:
        kind: The loss.
        settings: Its constants.
        encoder: The model that is trained.
        classes: Number of classes.
        seed: Of the initial weights.

    Raises:
        UsageError: The loss needs another kind of encoder.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind.name == "softmax":
            return nn.Linear(encoder.dimension * (2 if settings.features == "u,v" else 3), classes)
        if kind.name == "tsdae":
            if not isinstance(encoder.body, Bert):
                raise UsageError("TSDAE needs an encoder of the BERT family, whose layers can decode")
            return DenoisingDecoder(encoder.body.config, encoder.dimension)
    return None


def compute(
    kind: LossKind,
    settings: LossSettings,
    columns: Sequence[Tensor],
    labels: Tensor | None,
    *,
    excluded: Tensor | None = None,
    head: nn.Module | None = None,
) -> Tensor:
    """The loss of a batch.

    Args:
        kind: Which one.
        settings: Its constants.
        columns: Vectors of each column, (n, d) each; unit vectors unless the loss is a raw one.
        labels: As the loss wants them, one row per example.
        excluded: Bool (n, candidates): false negatives, for losses that compare with others.
        head: From `make_head`.

    Returns:
        One value per example, or a scalar for a loss that compares the whole batch.
    """

    def direct(given: Sequence[Tensor]) -> Tensor:
        return _compute(kind, settings, given, labels, excluded, head)

    if settings.dimensions is None:
        return direct(columns)
    if head is not None or kind.teacher:
        raise UsageError(f"the loss {kind.name} is tied to the full length of the vectors; no Matryoshka")
    return matryoshka(direct, columns, settings.dimensions)


def _compute(
    kind: LossKind,
    settings: LossSettings,
    columns: Sequence[Tensor],
    labels: Tensor | None,
    excluded: Tensor | None,
    head: nn.Module | None,
) -> Tensor:
    scale, metric = settings.scale, settings.metric
    if kind.name == "ranking":
        return multiple_negatives_ranking(
            columns[0],
            torch.cat(list(columns[1:])),
            scale=scale,
            symmetric=settings.symmetric,
            excluded=excluded,
        )
    if kind.name == "simcse":
        return simcse(columns[0], columns[1], scale=scale, excluded=excluded)
    if kind.name == "triplet":
        margin = 0.3 if settings.margin is None else settings.margin
        return triplet(columns[0], columns[1], columns[2], margin=margin, metric=metric)
    assert labels is not None  # every other loss has labels, which the reader checked
    margin = 0.5 if settings.margin is None else settings.margin
    match kind.name:
        case "cosent":
            return cosent(columns[0], columns[1], labels, scale=scale)
        case "angle":
            return angle(columns[0], columns[1], labels, scale=scale)
        case "cosine":
            return cosine_regression(columns[0], columns[1], labels)
        case "contrastive":
            return contrastive(columns[0], columns[1], labels, margin=margin, metric=metric)
        case "online-contrastive":
            return online_contrastive(columns[0], columns[1], labels, margin=margin, metric=metric)
        case "margin-mse":
            return margin_mse(columns[0], columns[1], columns[2:], labels)
        case "softmax":
            assert isinstance(head, nn.Linear)
            return softmax_classification(
                columns[0], columns[1], labels, head.weight, head.bias, features=settings.features
            )
        case "crosslingual":
            return crosslingual(
                columns[-1],
                labels,
                originals=columns[0] if len(columns) > 1 else None,
                contrast=settings.contrast,
                hold=settings.hold,
                scale=scale,
                excluded=excluded,
            )
    parts = [embedding_distillation(column, labels, measure=settings.measure) for column in columns]
    return torch.stack(parts).mean(dim=0)
