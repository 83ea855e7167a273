"""AnglE: CoSENT over the difference of angles in the complex plane, which does not saturate as cosines do.

The first half of a vector is read as real and the second as imaginary parts. Instead of the cosine,

    |cos(u, v) + sin(u, v)|,    sin(u, v) = <u_im, v_re> - <u_re, v_im>   (unit vectors)

is compared between pairs as in `cosent.py`.

| input  | meaning                                        |
|--------|------------------------------------------------|
| u, v   | the two texts                                  |
| scores | how similar they are; only their order is used |

Source: Li and Li 2023, "AnglE-optimized Text Embeddings" (2309.12871), whose full objective adds CoSENT and
an in-batch term; this is the angle term, as in sentence-transformers. Limits: those of CoSENT.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from likewise.embedder.siamese.losses.cosent import order_loss


def angle_similarity(u: Tensor, v: Tensor) -> Tensor:
    """Similarity by angle of each row of u with the same row of v.

    Args:
        u: Shape (n, d); an odd d is filled up with a 0.
        v: Shape (n, d).

    Returns:
        Shape (n,), in [0, 2 ** 0.5].

    Example:
        >>> import torch
        >>> angle_similarity(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]))
        tensor([1.])
    """
    u, v = (F.normalize(F.pad(x, (0, x.shape[-1] % 2)), dim=-1) for x in (u, v))
    (u_real, u_imaginary), (v_real, v_imaginary) = u.chunk(2, dim=-1), v.chunk(2, dim=-1)
    sine = (u_imaginary * v_real - u_real * v_imaginary).sum(dim=-1)
    return ((u * v).sum(dim=-1) + sine).abs()


def angle(u: Tensor, v: Tensor, scores: Tensor, *, scale: float = 20.0) -> Tensor:
    """Loss of the batch.

    Args:
        u: Shape (n, d).
        v: Shape (n, d).
        scores: Shape (n,), any numbers.
        scale: Factor of the similarities, above 0.

    Returns:
        A scalar, at least 0.

    Example:
        >>> import torch
        >>> u, v = torch.tensor([[1.0, 0.0]] * 2), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        >>> angle(u, v, torch.tensor([1.0, 0.0]))  # both are similar by 1
        tensor(0.6931)
    """
    return order_loss(scale * angle_similarity(u, v), scores)
