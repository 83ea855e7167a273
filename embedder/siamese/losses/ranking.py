"""Multiple negatives ranking (InfoNCE): the own positive among the texts of all other examples.

    loss_i = -log( exp(s cos(a_i, p_i)) / sum_j exp(s cos(a_i, c_j)) )

The candidates c_j are the positives of the whole batch and, where there are any, all hard negatives.
`symmetric` adds the same question asked from the positive: its anchor among all anchors.

| input      | meaning                                                          |
|------------|------------------------------------------------------------------|
| anchors    | queries                                                          |
| candidates | positives first, in the order of the anchors, then hard negatives |
| excluded   | candidates that are true answers as well: false negatives         |

Sources: Henderson et al. 2017 (1705.00652), van den Oord et al. 2018 (1807.03748); scale 20 is temperature
0.05. Limits: every example is a negative of the others, so the loss of a batch is not that of its parts. Two
half batches have half the negatives: accumulation does not replace a large batch, `cached.py` does.
"""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.embedder.siamese.losses.similarity import cosine_matrix


def multiple_negatives_ranking(
    anchors: Tensor,
    candidates: Tensor,
    *,
    scale: float = 20.0,
    symmetric: bool = False,
    excluded: Tensor | None = None,
) -> Tensor:
    """Loss of each anchor.

    Args:
        anchors: Shape (n, d).
        candidates: Shape (m, d), m >= n; row i < n is the positive of anchor i.
        scale: Factor of the cosines, above 0: the inverse temperature.
        symmetric: Average with the loss of each positive, whose anchor is sought among the anchors.
        excluded: Bool of shape (n, m), True where a candidate is not to count as a negative; the diagonal
            is ignored. None excludes nothing.

    Returns:
        Shape (n,), at least 0.

    Example:
        Both examples have the same positive. Without the mask they contradict each other:

        >>> a, c = torch.eye(2), torch.ones(2, 2)
        >>> multiple_negatives_ranking(a, c)
        tensor([0.6931, 0.6931])
        >>> multiple_negatives_ranking(a, c, excluded=torch.ones(2, 2, dtype=torch.bool))
        tensor([0., 0.])
    """
    n = len(anchors)
    scores = scale * cosine_matrix(anchors, candidates)  # (n, m)
    if excluded is not None:
        own = torch.eye(n, len(candidates), dtype=torch.bool, device=scores.device)
        scores = scores.masked_fill(excluded & ~own, float("-inf"))
    positive = scores.diagonal()  # (n,)
    loss = scores.logsumexp(dim=1) - positive
    if not symmetric:
        return loss
    # Hard negatives have no anchor of their own, so the way back is among the positives only.
    return (loss + scores[:, :n].logsumexp(dim=0) - positive) / 2
