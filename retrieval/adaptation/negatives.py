"""Hard negatives for pairs of an index, found in that index: no text is embedded but the anchors.

Candidates are passages of other documents than those of the pair and their translations, so that a passage
that says the same as the positive in other words is not taken for wrong. What is chosen of them is decided in
`likewise.embedder.siamese.miner`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.siamese.miner import MiningSettings, mine
from likewise.embedder.siamese.pairs import PairData
from likewise.errors import DataError
from likewise.retrieval.pairs.parallel import translations
from likewise.retrieval.pairs.records import TextPair
from likewise.retrieval.pairs.wording import with_context

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder
    from likewise.index.view import IndexView

_DEEPER = 3  # passages looked up for each wanted one, since those of the pair's documents fall away


def mine_index(
    view: IndexView,
    encoder: TextEncoder,
    pairs: Sequence[TextPair],
    settings: MiningSettings,
    *,
    within: frozenset[str],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[PairData | None, PairData | None]:
    """Find passages of the index that are near an anchor but belong to other documents.

    Args:
        view: The index that the pairs are from.
        encoder: Its encoder.
        pairs: At least one.
        settings: Which candidates to take; margins compare cosines.
        within: Documents that candidates may come from.
        progress: Called with the number of pairs done, and of all.

    Returns:
        The rows that got negatives, and those that did not, because nothing near was far enough below the
        positive: for these the other rows of a batch have to do. None for no rows.
    """
    finder = _Finder(view, encoder, pairs, within, progress)
    try:
        found = mine(as_data(pairs, "pairs"), finder.search, settings, score=finder.score).data
    except DataError:  # not one row got enough
        return None, as_data(pairs, "pairs-without-negatives")
    mined = set(zip(found.columns["anchor"], found.columns["positive"], strict=True))
    rest = [pair for pair in pairs if (pair.anchor, pair.positive) not in mined]
    return found, as_data(rest, "pairs-without-negatives") if rest else None


def as_data(pairs: Sequence[TextPair], name: str) -> PairData:
    """Pairs as training data."""
    columns = {"anchor": [pair.anchor for pair in pairs], "positive": [pair.positive for pair in pairs]}
    return PairData(name, columns)


class _Finder:
    """Searches the index for anchors, and remembers how near everything was."""

    def __init__(
        self,
        view: IndexView,
        encoder: TextEncoder,
        pairs: Sequence[TextPair],
        within: frozenset[str],
        progress: Callable[[int, int], None],
    ) -> None:
        self._view = view
        self._progress = progress
        self._total, self._done = len(pairs), 0
        anchors = list(dict.fromkeys(pair.anchor for pair in pairs))
        self._vectors = dict(zip(anchors, encoder.encode_queries(anchors), strict=True))
        self._own: dict[str, set[str]] = {}
        self._places: dict[tuple[str, str], TextPair] = {}
        translated = translations(within)
        for pair in pairs:
            own = self._own.setdefault(pair.anchor, set())
            for key in (pair.source, pair.anchor_source):
                own.update((key, *translated.get(key, ())))
            self._places[pair.anchor, pair.positive] = pair
        allowed = [id_ for key in sorted(within) for id_ in self._ids(key)]
        self._allowed = np.array(sorted(allowed), dtype=np.int64)
        self._cosines: dict[tuple[str, str], float] = {}

    def search(self, anchor: str, k: int) -> list[str]:
        """The nearest passages of other documents, as the index embeds them."""
        self._done += 1
        self._progress(self._done, self._total)
        if not len(self._allowed):
            return []
        own = self._own[anchor]
        found = self._view.dense(self._vectors[anchor], _DEEPER * k, self._allowed)
        stored = self._view.passages(found.ids)
        texts: list[str] = []
        for id_, cosine in zip(found.ids.tolist(), found.scores.tolist(), strict=True):
            passage = stored[id_]
            if passage.key not in own and len(texts) < k:
                text = with_context(passage.title, passage.passage, passage.passage.text)
                texts.append(text)
                self._cosines[anchor, text] = cosine
        return list(dict.fromkeys(texts))

    def score(self, anchors: Sequence[str], texts: Sequence[str]) -> NDArray[np.float32]:
        """Cosines of anchors with texts that were found, or with the passages that a positive stands in."""
        return np.array(
            [
                self._positive(self._places[pair], anchor)
                if (pair := (anchor, text)) in self._places
                else self._cosines[pair]
                for anchor, text in zip(anchors, texts, strict=True)
            ],
            dtype=np.float32,
        )

    def _positive(self, pair: TextPair, anchor: str) -> float:
        first, last = pair.lines
        ids = [
            stored.id
            for stored in self._view.document_passages(pair.source)
            if stored.passage.lines[0] <= last and first <= stored.passage.lines[1]
        ]
        vectors = self._view.vectors(ids)
        return float((vectors @ self._vectors[anchor]).max()) if len(ids) else 0.0

    def _ids(self, key: str) -> list[int]:
        return [stored.id for stored in self._view.document_passages(key)]
