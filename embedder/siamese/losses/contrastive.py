"""Contrastive loss: pull similar pairs together, push others apart until a margin lies between them.

    loss = 1/2 [ y D^2 + (1 - y) max(0, margin - D)^2 ],    D = 1 - cos(u, v)

| input  | meaning                          |
|--------|----------------------------------|
| u, v   | the two texts                    |
| labels | y: 1 similar, 0 not similar      |

Source: Hadsell, Chopra and LeCun 2006, "Dimensionality Reduction by Learning an Invariant Mapping". Limits:
the same margin for every pair, whatever its kind; a pair beyond it teaches nothing.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from likewise.embedder.siamese.losses.distances import Distance, distance


def contrastive(
    u: Tensor, v: Tensor, labels: Tensor, *, margin: float = 0.5, metric: Distance = "cosine"
) -> Tensor:
    """Loss of each pair.

    Args:
        u: Shape (n, d).
        v: Shape (n, d).
        labels: Shape (n,), each 0 or 1.
        margin: Distance at which a dissimilar pair is far enough, above 0.
        metric: Distance between vectors.

    Returns:
        Shape (n,), at least 0.

    Example:
        >>> import torch
        >>> u, v = torch.tensor([[1.0, 0.0]] * 2), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        >>> contrastive(u, v, torch.tensor([1, 0]))
        tensor([0.5000, 0.1250])
    """
    apart = distance(u, v, metric)
    labels = labels.to(apart.dtype)
    return 0.5 * (labels * apart.square() + (1 - labels) * F.relu(margin - apart).square())
