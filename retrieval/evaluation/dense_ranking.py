"""Search quality of an encoder while it is being trained: a judged collection ranked by its vectors, exactly.

Training asks for it with a function that embeds texts, and so need not know of indexes. Documents are cut
where the encoder cuts them and not into passages: the figure is comparable before and after training, and not
with that of `likewise evaluate` on an index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.protocol import Role
from likewise.errors import UsageError
from likewise.retrieval.evaluation.judgements import CorpusDocument, corpus, load_beir
from likewise.retrieval.evaluation.metrics import Metric, parse_metric, trec_order

Embed = Callable[[Sequence[str], Role], NDArray[np.float32]]
"""From texts and their role to unit vectors, float32 of shape (texts, dimension)."""

_DEPTH = 100


class DenseRanking:
    r"""A BEIR folder as a measure of vectors.

    Args:
        folder: Holds queries, qrels and a corpus.
        split: Which qrels to use.
        metric: Name that `parse_metric` understands.
        documents: Rank that many documents at most: all judged ones, and others chosen by their ids; None
            for the whole corpus. The fewer, the easier.

    Raises:
        DataError: The folder is malformed.
        UsageError: The metric is unknown or looks too deep.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> rows = ['{"_id": "1", "text": "cats"}', '{"_id": "2", "text": "dogs"}']
        >>> _ = (folder / "corpus.jsonl").write_text("\n".join(rows))
        >>> _ = (folder / "queries.jsonl").write_text('{"_id": "q", "text": "kittens"}')
        >>> _ = (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\t2\t1\n")
        >>> vectors = {"cats": [1.0, 0.0], "dogs": [0.0, 1.0], "kittens": [0.8, 0.6]}
        >>> ranking = DenseRanking(folder, metric="MRR@10")
        >>> ranking(lambda texts, role: np.array([vectors[text] for text in texts], np.float32))
        [0.5]
    """

    def __init__(
        self, folder: Path, *, split: str = "test", metric: str = "nDCG@10", documents: int | None = None
    ) -> None:
        self.metric: Metric = parse_metric(metric)
        if self.metric.cutoff is not None and self.metric.cutoff > _DEPTH:
            raise UsageError(f"{metric} looks deeper than the {_DEPTH} documents that are ranked")
        judgements = load_beir(folder, split=split)
        self.name = folder.resolve().name
        self._queries = list(judgements.queries.values())
        self._qrels = [judgements.qrels[query] for query in judgements.queries]
        found = list(corpus(folder))
        self.documents, self.total = len(found), len(found)
        if documents is not None and documents < len(found):
            judged = {key for answers in self._qrels for key in answers}
            found = sorted(found, key=lambda document: (document.id not in judged, _digest(document.id)))
            # Judged ones are never left out: without its answers, a query has nothing to find.
            found = found[: max(documents, sum(document.id in judged for document in found))]
            self.documents = len(found)
        self._ids = [document.id for document in found]
        self._texts = [_text(document) for document in found]

    def __call__(self, embed: Embed) -> list[float]:
        """The metric of each query.

        Args:
            embed: See `Embed`.
        """
        passages = embed(self._texts, "passage")
        values = []
        for query, answers in zip(embed(self._queries, "query"), self._qrels, strict=True):
            scores = passages @ query
            best = np.argsort(-scores, kind="stable")[: 2 * _DEPTH]
            ranked = trec_order({self._ids[at]: float(scores[at]) for at in best})[:_DEPTH]
            grades = [answers.get(document, 0) for document in ranked]
            values.append(self.metric.measure(grades, list(answers.values())))
        return values


def _text(document: CorpusDocument) -> str:
    return f"{document.title}\n{document.text}".strip() if document.title else document.text


def _digest(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
