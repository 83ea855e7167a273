"""Matryoshka: any loss, over the first components of the vectors too, so that they can be cut later.

    loss = sum over k of w_k L(normalise(x[:d_k]))

| input      | meaning                                       |
|------------|-----------------------------------------------|
| loss       | any loss of this package, as a function of vectors |
| vectors    | of every column                               |
| dimensions | lengths that the vectors shall be good at     |

Source: Kusupati et al. 2022, "Matryoshka Representation Learning" (2205.13147). Limits: leave the full
length out of the dimensions and nobody trains it. Vectors are encoded once, however many dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch.nn.functional as F
from torch import Tensor

from likewise.errors import UsageError


def matryoshka(
    loss: Callable[[Sequence[Tensor]], Tensor],
    vectors: Sequence[Tensor],
    dimensions: Sequence[int],
    weights: Sequence[float] | None = None,
) -> Tensor:
    """Weighted sum of the loss over several lengths of the vectors.

    Args:
        loss: From vectors, one (n, d) tensor per column, to values of any shape.
        vectors: Shape (n, d) each.
        dimensions: At least one, each in [1, d].
        weights: One per dimension; None weighs all with 1.

    Returns:
        Shape of what `loss` returns.

    Raises:
        UsageError: No dimension, one out of range, or not as many weights.

    Example:
        >>> import torch
        >>> first = lambda columns: columns[0][:, 0]
        >>> matryoshka(first, [torch.tensor([[3.0, 4.0]])], [1, 2])  # 1 + 0.6
        tensor([1.6000])
    """
    width = vectors[0].shape[-1]
    if not dimensions or any(not 1 <= dimension <= width for dimension in dimensions):
        raise UsageError(f"expected Matryoshka dimensions from 1 to {width}, found {list(dimensions)}")
    if weights is None:
        weights = [1.0] * len(dimensions)
    if len(weights) != len(dimensions):
        raise UsageError(f"expected a weight for each of {len(dimensions)} dimensions, found {len(weights)}")
    parts = [
        weight * loss([F.normalize(column[..., :dimension], dim=-1) for column in vectors])
        for dimension, weight in zip(dimensions, weights, strict=True)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
