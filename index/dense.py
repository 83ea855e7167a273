"""Rank passages by cosine similarity over a vector store, the tail of the log, and the truth in SQLite.

The stores only propose candidates. Which of them are alive, and what their scores are, is decided by the
vectors in the catalogue, inside the caller's transaction. So the answer is the same whatever store proposed
it, a compressed store costs no precision in the scores, and a deleted passage cannot answer.
"""

from __future__ import annotations

import sqlite3

import numpy as np
from numpy.typing import NDArray

from likewise.index.catalogue_read import EncoderRow, empty_ranking, read_vectors
from likewise.index.rows import Ranking
from likewise.index.vectors import VectorStore, best

# At most so many allowed ids are scored from the catalogue (under 10 ms); beyond, the stores are faster.
EXACT_LIMIT = 1024

# Candidates beyond k: enough for the usual few ties and deletions, and for what compression reorders.
_MARGIN = 16
_LOSSY_FACTOR = 4

# Inner products of unit vectors, summed in float32 in whatever order, differ by less than this.
_ROUNDING = 2e-6


def rank_densely(
    connection: sqlite3.Connection,
    encoder: EncoderRow,
    stores: tuple[VectorStore, ...],
    vector: NDArray[np.float32],
    k: int,
    allowed: NDArray[np.int64] | None,
) -> Ranking:
    """The k passages with the highest inner product, equal ones by ascending id.

    Args:
        connection: In the transaction that the query runs in.
        encoder: Whose vectors are compared.
        stores: Together they hold at least every passage that is alive; also dead ones.
        vector: float32 of shape (dimension,), of unit length.
        k: At least 1.
        allowed: Ascending ids of passages that may answer, all alive; None allows all.
    """
    if allowed is not None and len(allowed) <= EXACT_LIMIT:
        # Exact, and the only right way for a store that is a graph: few allowed, few found.
        return _score(connection, encoder, allowed, vector, k) if len(allowed) else empty_ranking()
    wanted = k + _MARGIN if all(store.exact for store in stores) else _LOSSY_FACTOR * k + _MARGIN
    while True:
        proposals = [store.search(vector, wanted, allowed) for store in stores if len(store)]
        candidates = np.unique(np.concatenate([empty_ranking().ids, *(found.ids for found in proposals)]))
        ranking = _score(connection, encoder, candidates, vector, k)
        # A store that returned fewer than asked for has nothing more to give; of the others, nothing that
        # they kept back scores higher than the last they gave.
        kept_back = [found.scores[-1] for found in proposals if len(found.ids) == wanted]
        if not kept_back or (len(ranking.ids) == k and ranking.scores[-1] > max(kept_back) + _ROUNDING):
            return ranking
        wanted *= 4


def _score(
    connection: sqlite3.Connection,
    encoder: EncoderRow,
    ids: NDArray[np.int64],
    vector: NDArray[np.float32],
    k: int,
) -> Ranking:
    alive, vectors = read_vectors(connection, encoder, ids)
    # Summed in float64 and rounded once: equal vectors get equal scores, wherever they stand in the matrix.
    scores = (vectors.astype(np.float64) @ vector.astype(np.float64)).astype(np.float32)
    # A cosine: rounding must not show people a similarity above 1.
    return best(alive, np.clip(scores, -1.0, 1.0), k)
