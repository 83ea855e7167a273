"""Softmax classification of a pair, the objective of Sentence-BERT for natural language inference.

    o = softmax(W [u; v; |u - v|] + b),    loss = -log o[label]

| input    | meaning                                          |
|----------|--------------------------------------------------|
| u, v     | the two texts: premise and hypothesis            |
| labels   | class of each pair                               |
| weight   | W, trained with the encoder and thrown away after |

Source: Reimers and Gurevych 2019 (1908.10084), section 3. Their ablation (table 6): without |u - v| the
STS-B development score falls from 80.8 to 66.0. Limits: the cosine of u and v is trained indirectly only;
with pairs that have a positive, the ranking loss gives better vectors for search.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from likewise.errors import UsageError

Features = Literal["u,v", "u,v,|u-v|"]


def pair_features(u: Tensor, v: Tensor, features: Features = "u,v,|u-v|") -> Tensor:
    """What the classifier sees of a pair.

    Args:
        u: Shape (n, d).
        v: Shape (n, d).
        features: Both vectors, with or without the size of their difference.

    Returns:
        Shape (n, 2 d) or (n, 3 d).

    Raises:
        UsageError: The features are none of the two.

    Example:
        >>> pair_features(torch.tensor([[1.0]]), torch.tensor([[3.0]]))
        tensor([[1., 3., 2.]])
    """
    if features not in get_args(Features):
        raise UsageError(f"expected the features {' or '.join(get_args(Features))}, found {features!r}")
    parts = [u, v] if features == "u,v" else [u, v, (u - v).abs()]
    return torch.cat(parts, dim=-1)


def softmax_classification(
    u: Tensor,
    v: Tensor,
    labels: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    features: Features = "u,v,|u-v|",
) -> Tensor:
    """Cross-entropy of each pair's class.

    Args:
        u: Shape (n, d).
        v: Shape (n, d).
        labels: int64 of shape (n,), in [0, classes).
        weight: Shape (classes, width of `pair_features`).
        bias: Shape (classes,), or None.
        features: See `pair_features`.

    Returns:
        Shape (n,), at least 0.

    Example:
        With all weights 0 both classes are as likely:

        >>> u, v = torch.ones(1, 2), torch.ones(1, 2)
        >>> softmax_classification(u, v, torch.tensor([1]), torch.zeros(2, 6))
        tensor([0.6931])
    """
    return F.cross_entropy(F.linear(pair_features(u, v, features), weight, bias), labels, reduction="none")
