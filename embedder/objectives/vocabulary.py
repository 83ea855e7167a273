"""Cross-entropy over a vocabulary, for the positions that have a target and no others.

The projection to V scores is most of the work of a small language model. Two things make it cheap:

- it sees the hidden states of positions with a target only: 85% of a masked language model's have none;
- loss and gradient are made in one sweep over the scores, a block of rows at a time that stays in the cache,
  and the gradient overwrites the scores. The textbook way (scores, float32 scores, log-softmax, its gradient)
  holds and walks through four tables of M x V.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from likewise.embedder.pretraining import PretrainingModel

# Scores in one block: 16 MB in float32, which allocators reuse instead of asking the system for fresh pages.
_BLOCK = 4_000_000


class VocabularyLoss(NamedTuple):
    """Losses of M predictions.

    Attributes:
        sum: Scalar, float32 or wider: cross-entropy in nats, summed.
        correct: Scalar without gradient: how many predictions had the target on top.
        sampled: int64 of shape (M,), tokens drawn from the predictions; None unless asked for.
    """

    sum: Tensor
    correct: Tensor
    sampled: Tensor | None


def vocabulary_loss(
    model: PretrainingModel, hidden: Tensor, targets: Tensor, noise: Tensor | None = None
) -> VocabularyLoss:
    """Predict tokens from hidden states.

    Args:
        model: Gives the projection.
        hidden: Hidden states at the positions to predict, (M, H); M may be 0.
        targets: int64 of shape (M,), ids of the right tokens.
        noise: float32 of shape (M,), uniform in [0, 1): draw a token from each prediction with it.
    """
    rows = model.token_head.transform(hidden)  # (M, E)
    table = model.encoder.embeddings.token.weight  # (V, E)
    bias = None if model.token_head.kind == "direct" else model.token_head.bias  # (V,)
    # torch leaves `apply` unannotated.
    found = _ProjectedCrossEntropy.apply(rows, table, bias, targets, noise)  # type: ignore[no-untyped-call]
    total, correct, sampled = found
    return VocabularyLoss(total, correct, sampled if noise is not None else None)


def sample_tokens(probabilities: Tensor, noise: Tensor) -> Tensor:
    """Draw one token per row.

    By inversion of the cumulative distribution, which takes one random number per row; the usual Gumbel noise
    takes one per score, and drawing 20 million of them costs more than a small model.

    Args:
        probabilities: float32 of shape (M, V), rows proportional to the probabilities.
        noise: float32 of shape (M,), uniform in [0, 1).

    Returns:
        int64 of shape (M,).

    Example:
        >>> sample_tokens(torch.tensor([[0.5, 0.5], [0.5, 0.5]]), torch.tensor([0.2, 0.7]))
        tensor([0, 1])
    """
    cumulative = probabilities.cumsum(dim=-1)  # (M, V)
    # Times the last sum, which rounding keeps from being exactly 1; `right` passes over tokens of
    # probability 0.
    level = noise[:, None] * cumulative[:, -1:]
    return torch.searchsorted(cumulative, level, right=True).squeeze(1).clamp_(max=cumulative.shape[-1] - 1)


def working_dtype(tensor: Tensor) -> torch.dtype:
    """The dtype in which matrices are multiplied: that of autocast if it is on, else the tensor's own."""
    kind = tensor.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else tensor.dtype


class _ProjectedCrossEntropy(torch.autograd.Function):
    """sum over rows of -log softmax(rows @ table.T + bias)[target], with its gradient made on the way."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, table: Tensor, bias: Tensor | None, targets: Tensor, noise: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        dtype = working_dtype(rows)
        train = any(ctx.needs_input_grad)
        with torch.autocast(rows.device.type, enabled=False):
            low_rows, low_table = rows.to(dtype), table.to(dtype)
            scores = low_rows @ low_table.T  # (M, V)
            wide = torch.promote_types(dtype, torch.float32)
            total = rows.new_zeros((), dtype=wide)
            correct = torch.zeros((), dtype=torch.int64, device=rows.device)
            sampled = torch.zeros_like(targets)
            step = max(1, _BLOCK // table.shape[0])
            for begin in range(0, len(rows), step):
                block = slice(begin, begin + step)
                target = targets[block, None]  # (m, 1)
                work = scores[block].to(wide)  # (m, V), a copy unless it is that wide already
                if bias is not None:
                    work += bias
                top, best = work.max(dim=-1, keepdim=True)
                correct += (best == target).sum()
                work -= top
                of_target = work.gather(1, target)
                mass = work.exp_().sum(dim=-1, keepdim=True)
                total += (mass.log() - of_target).sum()
                if noise is not None:
                    sampled[block] = sample_tokens(work, noise[block])
                if train:
                    work /= mass
                    work.scatter_add_(1, target, work.new_full((1, 1), -1.0).expand_as(target))
                    if work.data_ptr() != scores[block].data_ptr():
                        scores[block] = work
        if train:
            ctx.save_for_backward(low_rows, low_table, scores)
        ctx.dtypes = rows.dtype, table.dtype, None if bias is None else bias.dtype
        ctx.mark_non_differentiable(correct, sampled)
        return total, correct, sampled

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        rows, table, slope = ctx.saved_tensors  # (M, E), (V, E), (M, V)
        rows_dtype, table_dtype, bias_dtype = ctx.dtypes
        to_rows = (slope @ table).to(rows_dtype) * grad
        to_table = (slope.T @ (rows * grad).to(rows.dtype)).to(table_dtype)
        to_bias = None
        if bias_dtype is not None:
            to_bias = slope.sum(dim=0, dtype=grad.dtype).to(bias_dtype) * grad
        return to_rows, to_table, to_bias, None, None
