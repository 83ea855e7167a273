"""Dense search with feedback: the query's vector is moved towards the best hits of hybrid search.

It costs no training and is what an adapted encoder has to beat. Rocchio 1971, with the first hits taken for
relevant ones, as pseudo-relevance feedback does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from likewise.retrieval.grammar import literal
from likewise.retrieval.hits import Hit, HitScores
from likewise.retrieval.search import Retriever

if TYPE_CHECKING:
    from likewise.index.index import Index
    from likewise.retrieval.evaluation.evaluate import SearchFunction

BEST = 3
"""Hits whose mean vector is added to the query's."""


def feedback_search(index: Index) -> SearchFunction:
    """Dense search for the query's vector plus the mean vector of the first hits of hybrid search.

    Args:
        index: What is searched.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from likewise.index.added import TextDocument
        >>> from likewise.index.index import Index
        >>> with Index.open(Path(tempfile.mkdtemp()) / ".likewise", encoder="hash") as index:
        ...     documents = {"a": "Rotate keys yearly.", "b": "Lunch is at noon."}
        ...     _ = index.add(TextDocument(key, text) for key, text in documents.items())
        ...     [hit.path for hit in feedback_search(index)("rotate keys", 2)]
        ['a', 'b']
    """
    retriever = Retriever(index)

    def search(query: str, k: int) -> Sequence[Hit]:
        best = [hit.passage_id for hit in retriever.search(literal(query), k=BEST)]
        with index.view() as view:
            [vector] = index.encoder_of(view).encode_queries([query])
            if best:
                vector = vector + view.vectors(best).mean(axis=0)
                vector = (vector / np.linalg.norm(vector)).astype(np.float32)
            found = view.dense(vector, k)
            passages = view.passages(found.ids)
            return [
                Hit(rank, float(score), HitScores(dense=float(score), dense_rank=rank), passages[id_])
                for rank, (id_, score) in enumerate(
                    zip(found.ids.tolist(), found.scores, strict=True), start=1
                )
            ]

    return search
