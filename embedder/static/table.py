"""From the vectors of single tokens to those whose mean says what a text is about. NumPy alone.

Three steps, each a pure function: fewer dimensions (principal components), less weight for frequent tokens
(SIF), and without the direction that all texts share. All are linear, so that they are done once, to the
table, and cost nothing when texts are embedded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
# The constant of SIF: a token that makes up this share of the language has half the weight of a rare one.
SIF = 1e-3
# Share of a corpus that is given to tokens at large, so that those it lacks are rare and not impossible.
_SMOOTHING = 0.05


class Projection(NamedTuple):
    """A linear map to fewer dimensions.

    Attributes:
        mean: float32 of shape (dimension,): taken away first.
        components: float32 of shape (dimension, kept), columns orthonormal, the largest variance first.
    """

    mean: Floats
    components: Floats

    def __call__(self, vectors: Floats) -> Floats:
        """Shape (n, dimension) to (n, kept)."""
        centred: Floats = vectors - self.mean
        projected: Floats = np.matmul(centred, self.components, dtype=np.float32)
        return projected


def principal_components(vectors: Floats, kept: int) -> Projection:
    """The directions in which vectors differ most (Pearson 1901).

    Args:
        vectors: Shape (n, dimension).
        kept: How many, at most the dimension.

    Example:
        >>> line = np.array([[0, 1], [1, 1], [2, 1]], dtype=np.float32)
        >>> project = principal_components(line, 1)
        >>> project(line).round(3).tolist()
        [[-1.0], [0.0], [1.0]]
    """
    mean: NDArray[np.float64] = vectors.mean(axis=0, dtype=np.float64)
    centred = vectors.astype(np.float64) - mean
    _, found = np.linalg.eigh(centred.T @ centred)
    components = found[:, ::-1][:, :kept]
    # The sign of an eigenvector is arbitrary; a rule makes the result the same everywhere.
    largest = np.abs(components).argmax(axis=0)
    signs = np.sign(components[largest, np.arange(len(largest))])
    return Projection(mean.astype(np.float32), (components * signs).astype(np.float32))


def zipf_shares(size: int) -> NDArray[np.float64]:
    """Share of a language that each token makes up, by its rank, where there is no corpus to count in.

    Zipf's law: the frequency is inverse to the rank. Vocabularies are sorted by frequency, by and large.

    Example:
        >>> zipf_shares(3).round(3).tolist()
        [0.462, 0.308, 0.231]
    """
    shares = 1 / (np.arange(size) + 2)
    normalised: NDArray[np.float64] = shares / shares.sum()
    return normalised


def counted_shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Share of a corpus that each token makes up, a little of it given to all alike.

    Example:
        >>> counted_shares(np.array([19, 0])).tolist()
        [0.975, 0.025]
    """
    shares: NDArray[np.float64] = counts / max(1, counts.sum())
    shares = (1 - _SMOOTHING) * shares + _SMOOTHING / len(counts)
    return shares


def sif_weights(shares: NDArray[np.float64], constant: float = SIF) -> Floats:
    """Smooth inverse frequency, a / (a + p), of each token (Arora, Liang and Ma 2017).

    Args:
        shares: Share p of each token in the language.
        constant: The constant a, above 0; the larger, the more alike all weights.

    Example:
        >>> sif_weights(np.array([0.001, 0.009, 0.0]), 0.001).tolist()
        [0.5, 0.10000000149011612, 1.0]
    """
    return (constant / (constant + shares)).astype(np.float32)


def without_common_direction(table: Floats, sentences: Floats) -> Floats:
    """The table without the direction that the sentences share most (Arora, Liang and Ma 2017).

    They take it away from each sentence; taking it away from each token is the same, as a sentence is a mean
    of tokens.

    Args:
        table: Shape (tokens, dimension).
        sentences: Vectors of texts by this table, shape (n, dimension).

    Example:
        >>> table = np.array([[3, 1], [3, -1]], dtype=np.float32)
        >>> without_common_direction(table, table).round(3).tolist()
        [[0.0, 1.0], [0.0, -1.0]]
    """
    norms = np.linalg.norm(sentences, axis=1, keepdims=True)
    unit = sentences / np.where(norms > 0, norms, 1)
    _, found = np.linalg.eigh((unit.T @ unit).astype(np.float64))
    common = found[:, -1].astype(np.float32)
    return table - np.outer(table @ common, common)
