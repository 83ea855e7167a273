"""Unsupervised SimCSE: a text, encoded twice with different dropout, shall find itself in the batch.

    loss_i = -log( exp(s cos(z_i, z'_i)) / sum_j exp(s cos(z_i, z'_j)) )

| input  | meaning                                                   |
|--------|-----------------------------------------------------------|
| first  | the texts                                                 |
| second | the same texts in the same order, encoded once more        |

Source: Gao, Yao and Chen 2021, "SimCSE" (2104.08821), temperature 0.05. It is the ranking loss with two
views of a text in place of a pair. Limits: without dropout both views are equal and it only spreads the
vectors. For an encoder that was trained on pairs it mostly makes things worse.
"""

from __future__ import annotations

from torch import Tensor

from likewise.embedder.siamese.losses.ranking import multiple_negatives_ranking


def simcse(first: Tensor, second: Tensor, *, scale: float = 20.0, excluded: Tensor | None = None) -> Tensor:
    """Loss of each text.

    Args:
        first: Shape (n, d).
        second: Shape (n, d).
        scale: Factor of the cosines, above 0.
        excluded: Bool of shape (n, n), True where two texts are the same.

    Returns:
        Shape (n,), at least 0.

    Example:
        >>> import torch
        >>> simcse(torch.eye(2), torch.eye(2), scale=1.0)  # log(1 + 1/e)
        tensor([0.3133, 0.3133])
    """
    return multiple_negatives_ranking(first, second, scale=scale, excluded=excluded)
