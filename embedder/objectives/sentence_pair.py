"""What the two objectives over sentence pairs share: a two-class loss on the pooled [CLS].

NSP and SOP differ in how their pairs are made (`sentence_pairs.py`), not in the loss.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from likewise.embedder.examples import Batch
from likewise.embedder.objectives import Loss, Metric, Term
from likewise.embedder.pretraining import PretrainingModel
from likewise.errors import DataError


def pair_labels(batch: Batch) -> Tensor:
    """Classes of the pairs of a batch.

    Raises:
        DataError: The examples were not pairs.
    """
    if batch.pair_labels is None:
        raise DataError("expected examples that are sentence pairs with a label, found single texts")
    return batch.pair_labels


def pair_loss(name: str, weight: float, model: PretrainingModel, hidden: Tensor, batch: Batch) -> Loss:
    """Cross-entropy over the two classes, from hidden states (B * L, H)."""
    labels = pair_labels(batch)
    logits = model.pair_logits(hidden.index_select(0, batch.first_positions()))  # (sequences, 2)
    total = F.cross_entropy(logits, labels, reduction="sum")
    correct = (logits.detach().argmax(dim=-1) == labels).sum()
    return Loss((Term(name, total, len(labels), weight),), {f"{name}_accuracy": Metric(correct, len(labels))})
