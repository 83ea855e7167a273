"""Distillation of vectors: the student's vector of a text shall be the teacher's.

    mse:    loss = mean over components of (student - teacher)^2
    cosine: loss = 1 - cos(student, teacher)

| input   | meaning                                                     |
|---------|-------------------------------------------------------------|
| student | vectors that are trained                                    |
| teacher | vectors of the same texts, or of their originals in another language |

Source: Reimers and Gurevych 2020, "Making Monolingual Sentence Embeddings Multilingual" (2004.09813), who
use the squared error on a text and on its translation. Limits: both must have the same dimension, so a
student of another width needs a Dense module.
"""

from __future__ import annotations

from typing import Literal, get_args

from torch import Tensor

from likewise.embedder.siamese.losses.similarity import pairwise_cosine
from likewise.errors import UsageError

Measure = Literal["mse", "cosine"]


def embedding_distillation(student: Tensor, teacher: Tensor, *, measure: Measure = "mse") -> Tensor:
    """Loss of each text.

    Args:
        student: Shape (n, d).
        teacher: Shape (n, d); gets no gradient.
        measure: Squared error, or cosine.

    Returns:
        Shape (n,), at least 0.

    Raises:
        UsageError: The dimensions differ, or the measure is none of the two.

    Example:
        >>> import torch
        >>> student, teacher = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
        >>> float(embedding_distillation(student, teacher))
        1.0
        >>> embedding_distillation(student, teacher, measure="cosine")
        tensor([1.])
    """
    if measure not in get_args(Measure):
        raise UsageError(f"expected the measure {' or '.join(get_args(Measure))}, found {measure!r}")
    if student.shape != teacher.shape:
        raise UsageError(
            f"expected vectors of the teacher's shape {tuple(teacher.shape)}, found {tuple(student.shape)}",
            remedy=f"give the student a Dense module of {teacher.shape[-1]} dimensions",
        )
    teacher = teacher.detach().to(student.dtype)
    if measure == "mse":
        return (student - teacher).square().mean(dim=-1)
    return 1 - pairwise_cosine(student, teacher)
