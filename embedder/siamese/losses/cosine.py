"""Regression of the cosine on a similarity score, the objective of Sentence-BERT for STS.

    loss = (cos(u, v) - score)^2

| input  | meaning                                                 |
|--------|---------------------------------------------------------|
| u, v   | the two texts                                           |
| scores | how similar they are, on the scale of the cosine: [-1, 1] |

Source: Reimers and Gurevych 2019 (1908.10084), section 3. Limits: it asks for the scores themselves, though
only their order matters for search; CoSENT asks for the order and mostly does better. Scores of 0 to 5 can
never be reached, so the data reader refuses them.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def cosine_regression(u: Tensor, v: Tensor, scores: Tensor) -> Tensor:
    """Squared error of each cosine.

    Args:
        u: Shape (n, d).
        v: Shape (n, d).
        scores: Float of shape (n,), in [-1, 1].

    Returns:
        Shape (n,), in [0, 4].

    Example:
        >>> import torch
        >>> cosine_regression(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([0.5]))
        tensor([0.2500])
    """
    return (F.cosine_similarity(u, v) - scores.to(u.dtype)).square()
