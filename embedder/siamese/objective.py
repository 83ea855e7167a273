"""Siamese training as an objective of the one training loop.

`prepare` lays out the distinct texts of a batch, each once, however many rows and columns it stands in;
`loss` encodes them and computes the loss of the data set that the batch comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from likewise.embedder.batching import pad
from likewise.embedder.bert import Bert
from likewise.embedder.objectives import Loss, Metric, Term
from likewise.embedder.siamese.decoder import DenoisingDecoder, damage
from likewise.embedder.siamese.frozen import FrozenActivations
from likewise.embedder.siamese.losses.tsdae import reconstruction
from likewise.embedder.siamese.model import SentenceModel
from likewise.embedder.siamese.pair_batches import PairExample
from likewise.embedder.siamese.sources import Source, excluded
from likewise.embedder.siamese.tasks import compute, make_head
from likewise.embedder.siamese.text_batch import TextGroup, group_texts
from likewise.embedder.siamese.token_table import TokenTable
from likewise.errors import UsageError


@dataclass(frozen=True, slots=True, eq=False)
class PairBatch:
    """A batch of rows of one data set.

    Attributes:
        source: Number of the data set.
        groups: The distinct texts.
        columns: int64 of shape (rows,) each: where a column's texts stand among the distinct ones.
        labels: One row per example, or None.
        excluded: Bool of shape (rows, candidates): false negatives, or None.
        targets: int64 of shape (rows, tokens), padded: texts to write from their vectors, or None.
        predictions: What the loss sums over: examples, or tokens to write.
    """

    source: int
    groups: tuple[TextGroup, ...]
    columns: tuple[Tensor, ...]
    labels: Tensor | None
    excluded: Tensor | None
    targets: Tensor | None
    predictions: int

    @property
    def tokens(self) -> int:
        """Real tokens that are encoded."""
        return sum(group.tokens for group in self.groups)

    @property
    def rows(self) -> int:
        """Examples."""
        return len(self.columns[0])

    def to(self, device: torch.device | str) -> PairBatch:
        """The same batch on another device."""
        return replace(
            self,
            groups=tuple(group.to(device) for group in self.groups),
            columns=tuple(column.to(device, non_blocking=True) for column in self.columns),
            labels=None if self.labels is None else self.labels.to(device, non_blocking=True),
            excluded=None if self.excluded is None else self.excluded.to(device, non_blocking=True),
            targets=None if self.targets is None else self.targets.to(device, non_blocking=True),
        )


class Siamese(nn.Module):
    """What is trained: the encoder, and the weights that losses have of their own and that are dropped after.

    Args:
        encoder: The model that is kept.
        heads: One for each data set, None where its loss has none.
    """

    def __init__(self, encoder: SentenceModel, heads: Sequence[nn.Module | None]) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleDict({str(n): head for n, head in enumerate(heads) if head is not None})

    @classmethod
    def of(cls, encoder: SentenceModel, sources: Sequence[Source], *, seed: int) -> Siamese:
        """The encoder with new heads for these data sets."""
        return cls(
            encoder,
            [
                make_head(source.kind, source.settings, encoder, classes=source.classes, seed=seed)
                for source in sources
            ],
        )

    def head(self, source: int) -> nn.Module | None:
        """The head of a data set."""
        return dict(self.heads.items()).get(str(source))


class SiameseObjective:
    """Losses over the vectors of texts.

    Args:
        sources: The data sets.
        table: Tokens of their texts.
        packed: Whether the model skips padding.
        part_tokens: Encode in parts of so many tokens, keeping the activations of one part at a time
            (`losses/cached.py`); None encodes a batch at once.

    Example:
        See `likewise.embedder.siamese.train`.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        table: TokenTable,
        *,
        packed: bool,
        part_tokens: int | None = None,
    ) -> None:
        if len({source.name for source in sources}) < len(sources):
            raise UsageError("expected data sets with different names")
        self._sources = list(sources)
        self._table = table
        self._packed = packed
        self._part_tokens = part_tokens
        self._activations: FrozenActivations | None = None
        self.name = "+".join(f"{source.name}:{source.kind.name}" for source in sources)

    def check_accumulation(self, micro_batches: int) -> None:
        """Refuse to accumulate a loss whose batches do not add up.

        Raises:
            UsageError: The loss of a batch is not made of those of its parts.
        """
        for source in self._sources:
            if micro_batches > 1 and source.kind.compares != "nothing":
                raise UsageError(
                    f"the loss {source.kind.name} compares the examples of a batch with each other, so "
                    f"{micro_batches} small batches are not one large one: accumulating them would change "
                    "the result",
                    remedy="a larger batch size; with --part-tokens it needs no more memory",
                )

    def using(self, activations: FrozenActivations | None) -> SiameseObjective:
        """The objective itself, with known activations of the frozen layers from now on; None for none."""
        self._activations = activations
        return self

    def prepare(
        self, examples: Sequence[PairExample], *, draw: int | None, progress: float = 0.0
    ) -> PairBatch:
        """Lay out a batch; its rows are of one data set."""
        number = examples[0].source
        source = self._sources[number]
        rows = [example.row for example in examples]
        wanted = source.columns[rows]  # (rows, columns)
        if source.kind.name == "simcse":
            # Two views of a text are two texts to encode: an odd number stands for the second view.
            wanted = np.concatenate([2 * wanted, 2 * wanted + 1], axis=1)
            keys, back = np.unique(wanted, return_inverse=True)
            texts = keys // 2
        else:
            texts, back = np.unique(wanted, return_inverse=True)
        token_ids = [self._table.ids(int(text)) for text in texts]
        targets = None
        hidden = None
        if self._activations is not None and source.kind.name != "tsdae":
            # Not of texts that are damaged anew in every epoch.
            hidden = self._activations.of(texts.tolist())
        if source.kind.name == "tsdae":
            targets = pad(
                [token_ids[at].tolist() for at in back.reshape(-1)], pad_id=self._table.pad_id
            ).input_ids
            # Other tokens in every epoch; the same ones at every evaluation.
            epoch = -1 if draw is None else draw
            before, after = self._table.frame
            token_ids = [
                damage(
                    row,
                    # A prompt that stays out of the pooling stays whole, or text would stay out in its place.
                    frame=(max(before, self._table.unpooled[int(text)]), after),
                    share=source.settings.deleted,
                    seed=(epoch, int(text)),
                )
                for row, text in zip(token_ids, texts, strict=True)
            ]
        groups, places = group_texts(
            token_ids,
            pad_id=self._table.pad_id,
            packed=self._packed,
            unpooled=[self._table.unpooled[int(text)] for text in texts],
            limit=self._part_tokens,
            hidden=hidden,
        )
        standing = torch.from_numpy(places[back.reshape(wanted.shape)])
        mask = excluded(source, rows, self._table.identity)
        return PairBatch(
            number,
            tuple(groups),
            tuple(column.contiguous() for column in standing.unbind(dim=1)),
            None if source.labels is None else torch.from_numpy(source.labels[rows]),
            None if mask is None else torch.from_numpy(mask),
            None if targets is None else torch.from_numpy(targets),
            len(rows) if targets is None else int((targets[:, 1:] != self._table.pad_id).sum()),
        )

    def counts(self, batch: PairBatch) -> dict[str, int]:
        """Examples of whichever data set, or tokens to write."""
        return {"loss": batch.predictions}

    def loss(self, model: nn.Module, batch: PairBatch) -> Loss:
        """Loss of a batch, computed in float32 whatever the encoder's precision is.

        There is one term for all data sets: steps that mix them weigh every example alike, but for the
        factors of their losses, which the metrics leave out.
        """
        assert isinstance(model, Siamese)
        source = self._sources[batch.source]
        vectors = model.encoder.vectors(batch.groups, cached=self._part_tokens is not None)
        with torch.autocast(vectors.device.type, enabled=False):
            vectors = vectors.float() if source.kind.raw else F.normalize(vectors.float(), dim=-1)
            columns = [vectors.index_select(0, column) for column in batch.columns]
            value = self._value(model, source, batch, columns)
            # A loss with one value for the batch counts once for each of its examples.
            total = value.sum() if value.ndim else value * batch.rows
        metrics = _metrics(batch)
        if len(self._sources) > 1:
            metrics[source.name] = Metric(total.detach(), batch.predictions)
        return Loss((Term("loss", source.settings.factor * total, batch.predictions),), metrics)

    def _value(self, model: Siamese, source: Source, batch: PairBatch, columns: list[Tensor]) -> Tensor:
        head = model.head(source.head)
        if batch.targets is None:
            return compute(
                source.kind, source.settings, columns, batch.labels, excluded=batch.excluded, head=head
            )
        body = model.encoder.body
        assert isinstance(head, DenoisingDecoder) and isinstance(body, Bert)
        logits = head(body, columns[0], batch.targets[:, :-1])
        return reconstruction(logits, batch.targets[:, 1:], pad_id=self._table.pad_id)


def _metrics(batch: PairBatch) -> dict[str, Metric]:
    """Share of candidates that were masked although they are no example's own positive."""
    if batch.excluded is None:
        return {}
    masked = batch.excluded.sum() - batch.excluded.diagonal().sum()
    return {"false_negatives": Metric(masked, batch.excluded.numel() - batch.rows)}
