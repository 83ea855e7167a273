"""Margin-MSE: the student shall prefer the positive to a negative by as much as the teacher does.

    loss = ( (<q, p> - <q, n>) - (teacher(q, p) - teacher(q, n)) )^2

| input     | meaning                                                            |
|-----------|--------------------------------------------------------------------|
| query     | a question                                                         |
| positive  | its answer                                                         |
| negatives | others, one tensor for each                                        |
| margins   | the teacher's score of the positive less that of each negative      |

Source: Hofstaetter et al. 2020, "Improving Efficient Neural Ranking Models with Cross-Architecture Knowledge
Distillation" (2010.02666). Limits: inner products, as in the paper; margins of a cross-encoder that scores
in logits cannot be reached by unit vectors and must be scaled first.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from likewise.errors import UsageError


def margin_mse(query: Tensor, positive: Tensor, negatives: Sequence[Tensor], margins: Tensor) -> Tensor:
    """Loss of each query, the mean over its negatives.

    Args:
        query: Shape (n, d).
        positive: Shape (n, d).
        negatives: k tensors of shape (n, d), at least one.
        margins: Shape (n, k), or (n,) for one negative.

    Returns:
        Shape (n,), at least 0.

    Raises:
        UsageError: There are not as many margins as negatives.

    Example:
        >>> q, p, n = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
        >>> margin_mse(q, p, [n], torch.tensor([0.5]))
        tensor([0.2500])
    """
    margins = margins.reshape(len(query), -1)
    if margins.shape[1] != len(negatives):
        raise UsageError(
            f"expected a margin for each of {len(negatives)} negatives, found {margins.shape[1]}"
        )
    own = (query * positive).sum(dim=-1)  # (n,)
    predicted = torch.stack([own - (query * negative).sum(dim=-1) for negative in negatives], dim=1)
    return (predicted - margins.detach().to(predicted.dtype)).square().mean(dim=1)
