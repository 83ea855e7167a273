"""Rows for new tokens to start from: the mean of the rows of what they translate to.

A row at random would have to find its place from the gradients of the few texts that its token stands in;
this one is near it before training (0.42 instead of 0.09 nDCG@10 for Chinese questions about English
passages). Knows nothing of models: `directory.py` puts rows into one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.growth.alignment import align, rows_from_translations

# Links between the tokens of a pair; a pair with more is a paragraph, which says little about single words.
_MOST_LINKS = 500


def initial_rows(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    table: NDArray[np.float32],
    tokens: int,
    *,
    weights: Sequence[float] | None = None,
    sharpness: float = 1.0,
) -> NDArray[np.float32]:
    """A row for each new token.

    Args:
        sources: Numbers of the new tokens, below `tokens`, of each text.
        targets: Ids of the known tokens of its translation.
        table: Rows of the known tokens, float32 of shape (known tokens, width).
        tokens: How many new tokens there are.
        weights: How much each pair counts; None for 1.
        sharpness: See `rows_from_translations`.

    Returns:
        float32 of shape (tokens, width), all as long as the known rows are on average. A token that no text
        has gets the mean of the others, or of the known rows where no text has any.

    Example:
        >>> table = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
        >>> initial_rows([[0], [1]], [[1], [0]], table, tokens=2).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """
    links = [len(source) * len(target) for source, target in zip(sources, targets, strict=True)]
    usual = float(np.linalg.norm(table, axis=1).mean())
    if not any(links):  # the new tokens stand behind the limit of every text
        mean = table.mean(axis=0)
        return np.tile(mean * (usual / max(float(np.linalg.norm(mean)), 1e-12)), (tokens, 1))
    # Paragraphs, if there is nothing else.
    short = [at for at, count in enumerate(links) if 0 < count <= _MOST_LINKS]
    short = short or [at for at, count in enumerate(links) if count]
    found = align(
        [sources[at] for at in short],
        [targets[at] for at in short],
        weights=None if weights is None else [weights[at] for at in short],
    )
    rows, seen = rows_from_translations(found, table, tokens, sharpness=sharpness, norm=usual)
    rows[seen == 0] = rows[seen > 0].mean(axis=0)
    return rows
