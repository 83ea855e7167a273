"""Search over the texts of training data, for mining hard negatives.

The texts go into an index of their own in a temporary folder, so that they are found as documents of any
index are: by meaning, by words, or by both. What is taken of the findings is decided in
`likewise.embedder.siamese.miner`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.index.added import TextDocument
from likewise.index.index import Index
from likewise.retrieval.grammar import literal
from likewise.retrieval.pairs.parallel import translations
from likewise.retrieval.search import Retriever

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder
    from likewise.embedder.siamese.miner import Score, Search
    from likewise.retrieval.hits import Mode
    from likewise.retrieval.rerank.base import Reranker

# Long texts are several passages; so many more are asked for, so that enough texts remain.
_PASSAGES_PER_TEXT = 2
# What a row of `likewise pairs` says: two texts, and where they are from.
_PLACED = ("anchor", "positive", "source", "anchor_source")


class OwnDocuments:
    """Knows of pairs that say where they are from which texts stand in a document of an anchor.

    What stands there in other words, or holds the anchor itself, is no wrong answer; nor is its translation.

    Args:
        rows: Of `likewise pairs`: `anchor`, `positive`, `source` and `anchor_source`; rows of any other kind
            say nothing.

    Example:
        >>> row = {"anchor": "Keys", "positive": "Rotate.", "source": "en/k.md", "anchor_source": "en/k.md"}
        >>> own = OwnDocuments([row, row | {"anchor": "x", "positive": "輪替。", "source": "zh/k.md"}])
        >>> own("Keys", "輪替。"), own("Keys", "Lunch.")
        (True, False)
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        whole = [row for row in rows if all(isinstance(row.get(name), str) for name in _PLACED)]
        sources = {row[name] for row in whole for name in _PLACED[2:]}
        translated = translations(sources)
        self._anchors: dict[str, set[str]] = {}
        self._texts: dict[str, set[str]] = {}
        for row in whole:
            own = self._anchors.setdefault(row["anchor"], set())
            for key in (row["source"], row["anchor_source"]):
                own.update((key, *translated.get(key, ())))
            self._texts.setdefault(row["positive"], set()).add(row["source"])

    def __call__(self, anchor: str, text: str) -> bool:
        """Whether the text stands in a document that the anchor or one of its positives stands in."""
        return not self._anchors.get(anchor, set()).isdisjoint(self._texts.get(text, set()))

    def __bool__(self) -> bool:
        return bool(self._anchors)


@contextmanager
def text_search(texts: Sequence[str], encoder: TextEncoder | str | None, mode: Mode) -> Iterator[Search]:
    """A search over texts, as long as the context lasts.

    Args:
        texts: Equal ones count once.
        encoder: Whose vectors to compare; None for the default one.
        mode: `"dense"`, `"lexical"` or `"hybrid"`.

    Yields:
        A function from a query and a number to the best texts, best first.

    Example:
        >>> with text_search(["Keys rotate yearly.", "Lunch is at noon."], "hash", "hybrid") as search:
        ...     search("rotate keys", 1)
        ['Keys rotate yearly.']
    """
    distinct = list(dict.fromkeys(texts))
    with (
        tempfile.TemporaryDirectory(prefix="likewise-") as folder,
        Index.open(Path(folder) / ".likewise", encoder=encoder) as index,
    ):
        index.add(TextDocument(str(number), text) for number, text in enumerate(distinct))
        retriever = Retriever(index)

        def search(query: str, k: int) -> list[str]:
            found: dict[str, None] = {}
            for hit in retriever.search(literal(query), k=_PASSAGES_PER_TEXT * k, mode=mode):
                found.setdefault(distinct[int(hit.path)])
            return list(found)[:k]

        yield search


def cosine_score(encoder: TextEncoder) -> Score:
    """How similar anchors and texts are to an encoder; each distinct text is embedded once.

    Example:
        >>> from likewise import HashEncoder
        >>> cosine_score(HashEncoder())(["rotate"], ["rotate"]).round(3)
        array([1.], dtype=float32)
    """
    queries: dict[str, NDArray[np.float32]] = {}
    passages: dict[str, NDArray[np.float32]] = {}

    def score(anchors: Sequence[str], texts: Sequence[str]) -> NDArray[np.float32]:
        for known, wanted, embed in (
            (queries, anchors, encoder.encode_queries),
            (passages, texts, encoder.encode_passages),
        ):
            new = [text for text in dict.fromkeys(wanted) if text not in known]
            known.update(zip(new, embed(new), strict=True) if new else ())
        return np.array(
            [queries[anchor] @ passages[text] for anchor, text in zip(anchors, texts, strict=True)],
            dtype=np.float32,
        )

    return score


def reranker_score(reranker: Reranker) -> Score:
    """How well texts answer anchors in the eyes of a cross-encoder; the texts of one anchor go together."""

    def score(anchors: Sequence[str], texts: Sequence[str]) -> NDArray[np.float32]:
        rows: dict[str, list[int]] = {}
        for row, anchor in enumerate(anchors):
            rows.setdefault(anchor, []).append(row)
        found = np.empty(len(anchors), dtype=np.float32)
        for anchor, members in rows.items():
            found[members] = reranker.scores(anchor, [texts[row] for row in members])
        return found

    return score
