"""Cosine similarity, the measure that almost every loss compares vectors with."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def pairwise_cosine(u: Tensor, v: Tensor) -> Tensor:
    """Cosine of each row of u with the same row of v.

    Args:
        u: Shape (n, d).
        v: Shape (n, d).

    Returns:
        Shape (n,), in [-1, 1].

    Example:
        >>> import torch
        >>> pairwise_cosine(torch.tensor([[2.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
        tensor([0.6000])
    """
    return (F.normalize(u, dim=-1) * F.normalize(v, dim=-1)).sum(dim=-1)


def cosine_matrix(u: Tensor, v: Tensor) -> Tensor:
    """Cosine of each row of u with each row of v.

    Args:
        u: Shape (n, d).
        v: Shape (m, d).

    Returns:
        Shape (n, m), in [-1, 1].

    Example:
        >>> import torch
        >>> cosine_matrix(torch.tensor([[2.0, 0.0]]), torch.tensor([[3.0, 4.0], [1.0, 0.0]]))
        tensor([[0.6000, 1.0000]])
    """
    return F.normalize(u, dim=-1) @ F.normalize(v, dim=-1).T
