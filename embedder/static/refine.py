"""Fit the token vectors to what the teacher says of whole texts: embedding distillation of a mean of tokens.

    loss = 1 - cos(student, teacher) + contrast * InfoNCE(student, teachers of the batch)

A token alone tells the teacher little about what it does in a text; texts of the corpus tell the rest. Tokens
that stand in none of them keep the vector they had. The loop is that of `likewise.embedder.training`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.embedder.objectives import Loss, Term
from likewise.embedder.randomness import seed_for
from likewise.embedder.siamese.losses.distillation import embedding_distillation
from likewise.embedder.siamese.losses.ranking import multiple_negatives_ranking
from likewise.embedder.static.table import Floats

Rows = Sequence[NDArray[np.int32]]


@dataclass(frozen=True, slots=True, eq=False)
class TextVectors:
    """Texts with the vectors they shall get.

    Attributes:
        rows: Token ids of each text, at least one each.
        targets: Unit vectors, float32 of shape (texts, dimension).
    """

    rows: Rows
    targets: Floats

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class BagBatch:
    """Texts as bags of tokens.

    Attributes:
        ids: int64 of shape (tokens,), one text after another.
        starts: int64 of shape (texts,): where each begins.
        targets: float32 of shape (texts, dimension).
    """

    ids: Tensor
    starts: Tensor
    targets: Tensor

    @property
    def tokens(self) -> int:
        """Tokens of all texts."""
        return len(self.ids)

    def to(self, device: torch.device) -> BagBatch:
        """The same batch on another device."""
        return BagBatch(self.ids.to(device), self.starts.to(device), self.targets.to(device))


class TokenTable(nn.Module):
    """The token vectors as a module that can be trained.

    Args:
        table: float32 of shape (vocabulary, dimension).
    """

    def __init__(self, table: Floats) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag.from_pretrained(torch.from_numpy(table.copy()), freeze=False, mode="mean")

    def forward(self, batch: BagBatch) -> Tensor:
        """Unit vectors of the texts, (texts, dimension)."""
        return F.normalize(cast(Tensor, self.bag(batch.ids, batch.starts)), dim=-1)

    def table(self) -> Floats:
        """The vectors."""
        found: Floats = self.bag.weight.detach().cpu().numpy()
        return found


class ShuffledTexts:
    """Batches of texts by number, in a new order each epoch.

    Args:
        texts: Their rows and vectors.
        size: Texts in a batch; a smaller last one is left out unless it is the only one.
        seed: Of the order.
    """

    def __init__(self, texts: TextVectors, *, size: int, seed: int) -> None:
        self._count, self._size, self._seed = len(texts), size, seed
        digest = hashlib.sha256(f"{size}/{seed}".encode())
        for row in texts.rows:
            digest.update(row.tobytes() + b"|")
        digest.update(texts.targets.tobytes())
        self.fingerprint = digest.hexdigest()

    def length(self, epoch: int) -> int:
        """Number of batches in the epoch."""
        return max(1, self._count // self._size)

    def batch(self, epoch: int, index: int) -> list[int]:
        """Numbers of the texts of a batch."""
        order = np.random.default_rng(seed_for(self._seed, epoch)).permutation(self._count)
        found: list[int] = order[index * self._size : (index + 1) * self._size].tolist()
        return found


class StaticDistillation:
    """The objective; see the module's head.

    Args:
        texts: What the batches are of.
        contrast: Weight of the contrastive term.
        scale: Factor of its cosines.
    """

    name = "static distillation"

    def __init__(self, texts: TextVectors, *, contrast: float = 0.0, scale: float = 20.0) -> None:
        self._texts, self._contrast, self._scale = texts, contrast, scale

    def prepare(self, examples: Sequence[int], *, draw: int | None, progress: float = 0.0) -> BagBatch:
        """Lay out the texts of a batch."""
        rows = [self._texts.rows[number] for number in examples]
        starts = np.cumsum([0, *(len(row) for row in rows[:-1])])
        return BagBatch(
            torch.from_numpy(np.concatenate(rows).astype(np.int64)),
            torch.from_numpy(starts.astype(np.int64)),
            torch.from_numpy(self._texts.targets[np.asarray(examples)]),
        )

    def counts(self, batch: BagBatch) -> dict[str, int]:
        """One comparison for each text and term."""
        return {"loss": len(batch.starts)}

    def loss(self, model: nn.Module, batch: BagBatch) -> Loss:
        """Sum over the texts."""
        found = model(batch)
        value = embedding_distillation(found, batch.targets, measure="cosine")
        if self._contrast:
            value = value + self._contrast * multiple_negatives_ranking(
                found, batch.targets, scale=self._scale
            )
        return Loss((Term("loss", value.sum(), len(batch.starts)),))


def agreement(table: Floats, texts: TextVectors) -> float:
    """Mean cosine of the texts' vectors by a table with the teacher's."""
    total = 0.0
    for row, target in zip(texts.rows, texts.targets, strict=True):
        vector = table[row].mean(axis=0)
        total += float(vector @ target) / max(float(np.linalg.norm(vector)), 1e-12)
    return total / max(1, len(texts))
