"""Cross-entropy over a vocabulary, for the positions that have a target and no others.

The projection to V scores is most of the work of a small language model, and 85% of it is thrown away when it
runs at every position of a masked language model: so hidden states are gathered first.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from likewise.embedder.pretraining import PretrainingModel


class VocabularyLoss(NamedTuple):
    """Losses of M predictions.

    Attributes:
        sum: Scalar: cross-entropy in nats, summed.
        correct: Scalar without gradient: how many predictions had the target on top.
        logits: (M, V) in the dtype of the projection.
    """

    sum: Tensor
    correct: Tensor
    logits: Tensor


def vocabulary_loss(
    model: PretrainingModel, hidden: Tensor, positions: Tensor, targets: Tensor
) -> VocabularyLoss:
    """Predict the tokens at some positions.

    Args:
        model: Gives the projection.
        hidden: Hidden states of all tokens, (B * L, H).
        positions: int64 of shape (M,), rows of `hidden`; M may be 0.
        targets: int64 of shape (M,), ids of the right tokens.
    """
    logits = model.token_logits(hidden.index_select(0, positions))  # (M, V)
    total = F.cross_entropy(logits, targets, reduction="sum")
    with torch.no_grad():
        correct = (logits.argmax(dim=-1) == targets).sum() if len(targets) else total.new_zeros(())
    return VocabularyLoss(total, correct, logits)
