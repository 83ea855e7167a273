"""Query to hits: dense, lexical and hybrid search over an index.

Each query sees one state of the index: everything it does happens in one read transaction. Filters are
resolved before anything is ranked. Lexical search never touches the encoder. Nothing here packs, prints or
generates.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, get_args

import numpy as np

from likewise.errors import UsageError
from likewise.index.records import Filter
from likewise.retrieval.fusion import DEFAULT_FUSION, Fusion, fusion_rule
from likewise.retrieval.fusion.base import Ids
from likewise.retrieval.grammar import ParsedQuery, parse
from likewise.retrieval.hits import Hit, HitScores, Mode, SearchResult
from likewise.retrieval.queries import check_k, check_query, check_relevance, has_content
from likewise.retrieval.ranking import QueryRanker
from likewise.retrieval.relevance import NOTHING, NOTHING_NOTICE
from likewise.retrieval.restriction import allowed_passages
from likewise.retrieval.similar import Exclude, similar_passages
from likewise.retrieval.tokens import EncoderTokenCounter

if TYPE_CHECKING:
    from likewise.index.index import Index
    from likewise.index.view import IndexView

EVERYTHING = Filter()
"""The filter that allows all passages."""

NO_QUERY = ParsedQuery("", "")
"""Where there is no query, there are no phrases and exclusions either."""


class Retriever:
    """Searches one index.

    Args:
        index: An open index. It stays open; closing it is the caller's business.
        fusion: How hybrid search merges its two rankings: a name out of `likewise.retrieval.fusion.FUSIONS`
            or a rule.

    Raises:
        UsageError: No fusion rule has this name.
    """

    def __init__(self, index: Index, *, fusion: str | Fusion = DEFAULT_FUSION) -> None:
        self._index = index
        self._fusion = fusion_rule(fusion)

    @property
    def index(self) -> Index:
        """The index that is searched."""
        return self._index

    def search(
        self,
        query: str | ParsedQuery,
        *,
        k: int = 10,
        mode: Mode = "hybrid",
        filter: Filter = EVERYTHING,
        min_relevance: float = 0.0,
    ) -> SearchResult:
        """The passages that answer a query best.

        Args:
            query: What to look for, in the language of `likewise.retrieval.grammar`, or `literal(text)` for
                a text in which no character is an operator. At most 100 kB.
            k: Most hits to return, at least 1.
            mode: `"dense"` ranks by cosine similarity, `"lexical"` by BM25 (and loads no encoder),
                `"hybrid"` by both, merged by the fusion rule.
            filter: Which documents may answer; the fields of the query must hold besides.
            min_relevance: Leave out hits whose estimated relevance is below this, in [0, 1]; see
                `likewise.retrieval.relevance`.

        Returns:
            At most `k` hits, best first, ties by passage id, with notices: what the encoder or the word limit
            cut, that the encoder was not made for the language, that nothing matches well, that the filter
            matches nothing, that a phrase occurs nowhere, that a mistyped word was corrected, that a query of
            punctuation has nothing to look for.

        Raises:
            QueryError: The query is empty, too long or no text.
            UsageError: `k`, `mode` or `min_relevance` is out of range.
            IndexFolderError: The index is missing, unreadable or made with another encoder.
            EncoderError: The encoder of the index cannot be loaded.
        """
        parsed = query if isinstance(query, ParsedQuery) else parse(check_query(query))
        check_query(parsed.query)
        check_k(k)
        check_relevance(min_relevance)
        if mode not in get_args(Mode):
            raise UsageError(
                f"expected a mode out of {', '.join(get_args(Mode))}, found {mode!r}", remedy="hybrid"
            )
        with self._index.view() as view:
            notices = [*view.notices, *parsed.notices]
            total = view.passage_count
            allowed = self._allowed(view, total, parsed, filter, notices)
            hits: tuple[Hit, ...] = ()
            highlighter = None
            if not has_content(parsed.text):
                notices.append("the query has only punctuation: there is nothing to look for")
            elif allowed is None or len(allowed):
                ranker = QueryRanker(
                    view,
                    lambda: self._index.encoder_of(view),
                    parsed.text,
                    passages=total,
                    allowed=allowed,
                    spared=parsed.phrases,
                )
                hits = ranker.hits(mode, min(k, total), fusion=self._fusion, least=min_relevance)
                highlighter = ranker.highlighter(mode)
                sure = ranker.can_tell_nothing(mode, hits)
                notices += [*ranker.notices, *_relevance_notices(ranker.best, min_relevance, hits, sure=sure)]
        return SearchResult(
            hits, parsed.query, mode, tuple(notices), self._counter(), parsed.text, highlighter
        )

    def similar(
        self,
        target: str | int | os.PathLike[str],
        *,
        k: int = 10,
        filter: Filter = EVERYTHING,
        exclude: Exclude = "passage",
    ) -> SearchResult:
        """The passages most similar to a passage or a document of the index. Loads no encoder.

        Args:
            target: `"FILE"` (the mean of its passages; the file itself is left out), `"FILE:LINE"` (the
                passage that covers the line), or a passage id. Paths may be as the index shows them or as
                seen from the working directory.
            k: Most hits to return, at least 1.
            filter: Which documents may answer.
            exclude: Besides the passage itself, `"document"` leaves out the rest of its document.

        Raises:
            UsageError: The target is not in the index or has no passages, or `k` is below 1.
            IndexFolderError: The index is missing or unreadable.
        """
        check_k(k)
        with self._index.view() as view:
            notices = [*view.notices]
            total = view.passage_count
            allowed = self._allowed(view, total, NO_QUERY, filter, notices)
            label, ids, scores = similar_passages(
                view, target, k=min(k, total), allowed=allowed, exclude=exclude, base=self._index.base
            )
            hits = _similar_hits(view, ids, scores)
        return SearchResult(hits, label, "similar", tuple(notices), self._counter())

    def _counter(self) -> EncoderTokenCounter:
        return EncoderTokenCounter(lambda: self._index.encoder)

    def _allowed(
        self, view: IndexView, total: int, query: ParsedQuery, filter: Filter, notices: list[str]
    ) -> Ids | None:
        if not total:
            notices.append("the index holds no passages yet")
            return np.empty(0, dtype=np.int64)
        return allowed_passages(view, query, filter, notices)


def _relevance_notices(best: float | None, wanted: float, hits: tuple[Hit, ...], *, sure: bool) -> list[str]:
    """What is to be said of an answer that may be none."""
    if best is None:
        return []
    if wanted and not hits:
        return [f"no passage reaches the relevance of {wanted:g}; the best that was found has {best:.2f}"]
    return [NOTHING_NOTICE] if sure and hits and best < NOTHING else []


def _similar_hits(view: IndexView, ids: Ids, scores: list[float]) -> tuple[Hit, ...]:
    passages = view.passages(ids)
    return tuple(
        Hit(rank, cosine, HitScores(dense=cosine, dense_rank=rank), passages[id_])
        for rank, (id_, score) in enumerate(zip(ids.tolist(), scores, strict=True), start=1)
        for cosine in [min(1.0, max(-1.0, score))]
    )
