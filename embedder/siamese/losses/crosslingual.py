"""A text in another language shall get the vector that a teacher gives its original.

    loss_i = 1 - cos(t_i, v_i)                                         the translation at the teacher's place
           + c * -log( exp(s cos(t_i, v_i)) / sum_j exp(s cos(t_j, v_i)) )    and nearer to it than to others
           + h * (1 - cos(t_i, u_i))                                   the original stays where it was

| input        | meaning                                                              |
|--------------|----------------------------------------------------------------------|
| originals    | the student's vectors u of the texts that the teacher understands    |
| translations | the student's vectors v of their translations                        |
| teacher      | the teacher's vectors t of the originals                             |

Sources: Reimers and Gurevych 2020 (2004.09813) for the first and the last term, there as squared errors; the
contrast is InfoNCE (1807.03748) against the teacher's vectors of the batch. Limits: without the contrast all
translations may gather at the mean of the teacher's vectors, which is near all of them. Originals that mean
the same are no negatives of each other: those whose vectors have a cosine above 0.95 are left out.
"""

from __future__ import annotations

from torch import Tensor

from likewise.embedder.siamese.losses.distillation import embedding_distillation
from likewise.embedder.siamese.losses.ranking import multiple_negatives_ranking
from likewise.embedder.siamese.losses.similarity import cosine_matrix

_SAME = 0.95


def crosslingual(
    translations: Tensor,
    teacher: Tensor,
    *,
    originals: Tensor | None = None,
    contrast: float = 1.0,
    hold: float = 1.0,
    scale: float = 20.0,
    excluded: Tensor | None = None,
) -> Tensor:
    """Loss of each pair.

    Args:
        translations: Shape (n, d).
        teacher: Shape (n, d); gets no gradient.
        originals: Shape (n, d); None where they cannot change.
        contrast: Weight of the contrastive term, at least 0.
        hold: Weight of the term of the originals, at least 0.
        scale: Factor of the cosines in the contrastive term.
        excluded: Bool of shape (n, n), True for other pairs that are no negatives.

    Returns:
        Shape (n,), at least 0.

    Example:
        Translations that stand where the teacher wants them, with a second text in the batch:

        >>> import torch
        >>> teacher = torch.eye(2)
        >>> crosslingual(teacher, teacher, contrast=0.0).tolist()
        [0.0, 0.0]
        >>> crosslingual(teacher.flip(0), teacher, contrast=0.0).tolist()
        [1.0, 1.0]
    """
    teacher = teacher.detach().to(translations.dtype)
    loss = embedding_distillation(translations, teacher, measure="cosine")
    if contrast:
        same = cosine_matrix(teacher, teacher) > _SAME
        loss = loss + contrast * multiple_negatives_ranking(
            translations, teacher, scale=scale, excluded=same if excluded is None else same | excluded
        )
    if hold and originals is not None:
        loss = loss + hold * embedding_distillation(originals, teacher, measure="cosine")
    return loss
