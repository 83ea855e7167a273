"""Distances that margin losses measure with."""

from __future__ import annotations

from typing import Literal, get_args

import torch.nn.functional as F
from torch import Tensor

from likewise.embedder.siamese.losses.similarity import pairwise_cosine
from likewise.errors import UsageError

Distance = Literal["cosine", "euclidean"]


def distance(u: Tensor, v: Tensor, metric: Distance) -> Tensor:
    """Distance of each row of u to the same row of v.

    Args:
        u: Shape (n, d).
        v: Shape (n, d).
        metric: "cosine" is 1 - cosine, in [0, 2]; "euclidean" is the length of the difference.

    Returns:
        Shape (n,), at least 0.

    Raises:
        UsageError: The metric is none of the two.

    Example:
        >>> import torch
        >>> u, v = torch.tensor([[3.0, 0.0]]), torch.tensor([[0.0, 4.0]])
        >>> float(distance(u, v, "cosine")), round(float(distance(u, v, "euclidean")), 3)
        (1.0, 5.0)
    """
    if metric not in get_args(Distance):
        raise UsageError(f"expected the distance {' or '.join(get_args(Distance))}, found {metric!r}")
    if metric == "cosine":
        return 1 - pairwise_cosine(u, v)
    # `pairwise_distance` adds a small constant to the difference: the root has no gradient at 0.
    return F.pairwise_distance(u, v)
