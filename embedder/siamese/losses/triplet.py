"""Triplet loss: the positive shall be nearer to the anchor than the negative, by a margin.

    loss = max(0, D(anchor, positive) - D(anchor, negative) + margin)

| input    | meaning                             |
|----------|-------------------------------------|
| anchor   | a text                              |
| positive | one that belongs to it              |
| negative | one that does not                   |

Source: Schroff et al. 2015, "FaceNet" (1503.03832); Reimers and Gurevych 2019 use Euclidean distance and
margin 1. Limits: one negative at a time, where the ranking loss compares with the whole batch. The margin
must suit the metric: with unit vectors no Euclidean distance exceeds 2, so a margin of 5, the default of
sentence-transformers, is never reached.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from likewise.embedder.siamese.losses.distances import Distance, distance


def triplet(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, margin: float = 0.3, metric: Distance = "cosine"
) -> Tensor:
    """Loss of each triplet.

    Args:
        anchor: Shape (n, d).
        positive: Shape (n, d).
        negative: Shape (n, d).
        margin: How much nearer the positive shall be, in units of the metric.
        metric: Distance between vectors.

    Returns:
        Shape (n,), at least 0.

    Example:
        >>> import torch
        >>> a, p, n = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.6, 0.8]]), torch.tensor([[0.0, 1.0]])
        >>> triplet(a, p, n, margin=1.0)
        tensor([0.4000])
    """
    return F.relu(distance(anchor, positive, metric) - distance(anchor, negative, metric) + margin)
