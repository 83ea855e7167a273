"""Online contrastive loss: the contrastive loss of those pairs of the batch that are hard.

    hard positives: D > smallest D of a negative,    hard negatives: D < largest D of a positive
    loss = sum over hard positives of D^2 + sum over hard negatives of max(0, margin - D)^2

| input  | meaning                     |
|--------|-----------------------------|
| u, v   | the two texts               |
| labels | 1 similar, 0 not similar    |

Source: sentence-transformers' OnlineContrastiveLoss, after Hadsell et al. 2006. Limits: which pairs are hard
depends on the whole batch, and the sum is not divided by their number, so the loss of a batch is not that of
its parts: it cannot be accumulated.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from likewise.embedder.siamese.losses.distances import Distance, distance


def online_contrastive(
    u: Tensor, v: Tensor, labels: Tensor, *, margin: float = 0.5, metric: Distance = "cosine"
) -> Tensor:
    """Loss of the batch.

    Args:
        u: Shape (n, d).
        v: Shape (n, d).
        labels: Shape (n,), each 0 or 1.
        margin: Distance at which a dissimilar pair is far enough, above 0.
        metric: Distance between vectors.

    Returns:
        A scalar, at least 0; 0 where no pair is hard.

    Example:
        The negative is nearer than the positive, so both are hard:

        >>> import torch
        >>> u, v = torch.tensor([[1.0, 0.0]] * 2), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        >>> online_contrastive(u, v, torch.tensor([1, 0]))
        tensor(1.2500)
    """
    apart = distance(u, v, metric)
    negatives, positives = apart[labels == 0], apart[labels == 1]
    # With one kind only there is nothing to compare with; its own mean then says what is hard.
    hard_negatives = negatives[negatives < (positives.max() if len(positives) else negatives.mean())]
    hard_positives = positives[positives > (negatives.min() if len(negatives) else positives.mean())]
    return hard_positives.square().sum() + F.relu(margin - hard_negatives).square().sum()
