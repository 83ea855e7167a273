"""CoSENT: pairs with a higher score shall have a higher cosine, whatever the scores are.

    loss = log( 1 + sum over pairs i, j with score_i > score_j of exp(s (cos_j - cos_i)) )

| input  | meaning                                            |
|--------|----------------------------------------------------|
| u, v   | the two texts                                      |
| scores | how similar they are; only their order is used     |

Source: Su 2022, "CoSENT" (kexue.fm/archives/8847); Huang et al. 2024, doi 10.1109/TASLP.2024.3402087.
Limits: compares the pairs of a batch with each other, so it needs batches with different scores and cannot
be accumulated: a batch whose scores are all equal teaches nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.embedder.siamese.losses.similarity import pairwise_cosine


def cosent(u: Tensor, v: Tensor, scores: Tensor, *, scale: float = 20.0) -> Tensor:
    """Loss of the batch.

    Args:
        u: Shape (n, d).
        v: Shape (n, d).
        scores: Shape (n,), any numbers.
        scale: Factor of the cosines, above 0.

    Returns:
        A scalar, at least 0.

    Example:
        The less similar pair has the higher cosine, by 1:

        >>> u, v = torch.tensor([[1.0, 0.0]] * 2), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        >>> cosent(u, v, torch.tensor([1.0, 0.0]), scale=1.0)  # log(1 + e)
        tensor(1.3133)
    """
    return order_loss(scale * pairwise_cosine(u, v), scores)


def order_loss(similarities: Tensor, scores: Tensor) -> Tensor:
    """log(1 + sum of exp(similarity_j - similarity_i) over all i, j with score_i > score_j).

    Args:
        similarities: Shape (n,), scaled.
        scores: Shape (n,).

    Returns:
        A scalar, at least 0.
    """
    # A matrix of all pairs: n is a batch, so n^2 is small, and it is the formula as it stands.
    differences = similarities[None, :] - similarities[:, None]  # (i, j): j minus i
    ordered = scores[:, None] > scores[None, :]
    return torch.cat([differences.new_zeros(1), differences[ordered]]).logsumexp(dim=0)
