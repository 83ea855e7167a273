"""A retriever whose hits are reranked, diversified and widened before they are returned, in this order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from likewise.index.records import Filter
from likewise.retrieval.fusion import DEFAULT_FUSION, Fusion
from likewise.retrieval.hits import Mode, SearchResult
from likewise.retrieval.rerank.base import CANDIDATES, Reranker, ranked, rerank
from likewise.retrieval.rerank.mmr import diversify
from likewise.retrieval.rerank.parents import TOKENS, Parent, expand
from likewise.retrieval.search import EVERYTHING, Retriever

if TYPE_CHECKING:
    from likewise.index.index import Index
    from likewise.retrieval.grammar import ParsedQuery

# Diversity needs something to choose from.
_TIMES = 5


@dataclass(frozen=True, slots=True)
class Refinement:
    """What to do with hits. The default is nothing.

    Attributes:
        reranker: Scores the first hits anew, or None.
        candidates: How many of them.
        seconds: How long it may take, or None.
        diversity: 1 - lambda of maximal marginal relevance, in [0, 1]; 0 leaves the order alone.
        expand: What hits are widened to, or None.
        expand_tokens: Most tokens of a widened hit.
    """

    reranker: Reranker | None = None
    candidates: int = CANDIDATES
    seconds: float | None = None
    diversity: float = 0.0
    expand: Parent | None = None
    expand_tokens: int = TOKENS


class RefiningRetriever(Retriever):
    """Searches one index and refines what it finds.

    Args:
        index: As for `Retriever`.
        refinement: What to do with the hits.
        fusion: As for `Retriever`.
    """

    def __init__(
        self, index: Index, refinement: Refinement, *, fusion: str | Fusion = DEFAULT_FUSION
    ) -> None:
        super().__init__(index, fusion=fusion)
        self._refinement = refinement

    def search(
        self,
        query: str | ParsedQuery,
        *,
        k: int = 10,
        mode: Mode = "hybrid",
        filter: Filter = EVERYTHING,
        min_relevance: float = 0.0,
    ) -> SearchResult:
        """See `Retriever.search`; besides, what reranking and expanding raise."""
        wanted = self._refinement
        depth = k
        if wanted.reranker is not None:
            depth = max(depth, wanted.candidates)
        if wanted.diversity:
            depth = max(depth, _TIMES * k)
        result = super().search(query, k=depth, mode=mode, filter=filter, min_relevance=min_relevance)
        if wanted.reranker is not None and result.hits:
            result = rerank(result, wanted.reranker, candidates=wanted.candidates, seconds=wanted.seconds)
        if wanted.diversity and result.hits:
            result = self._diversified(result, wanted.diversity, k)
        result = replace(result, hits=ranked(result.hits[:k]))
        if wanted.expand is not None and result.hits and result.counter is not None:
            with self.index.view() as view:
                result = expand(
                    result,
                    view.document_passages,
                    to=wanted.expand,
                    counter=result.counter,
                    tokens=wanted.expand_tokens,
                )
        return result

    def _diversified(self, result: SearchResult, diversity: float, k: int) -> SearchResult:
        with self.index.view() as view:
            # A passage may have gone since it was found.
            there = view.passages([hit.passage_id for hit in result.hits])
            hits = tuple(hit for hit in result.hits if hit.passage_id in there)
            vectors = view.vectors([hit.passage_id for hit in hits])
        return diversify(replace(result, hits=hits), vectors, diversity=diversity, k=k)
