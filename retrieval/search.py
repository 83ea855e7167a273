"""Query to hits: dense, lexical and hybrid search over an index.

Each query sees one state of the index: everything it does happens in one read transaction. Filters are
resolved before anything is ranked. Lexical search never touches the encoder. Nothing here packs, prints or
generates.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import numpy as np

from likewise.errors import EncoderMismatch, UsageError
from likewise.index.analyzer import analyze_query
from likewise.index.records import Filter
from likewise.index.rows import Ranking
from likewise.retrieval.fusion import DEFAULT_FUSION, Candidates, Fusion, fusion_rule
from likewise.retrieval.fusion.base import Floats, Ids, best_first
from likewise.retrieval.hits import Hit, HitScores, Mode, SearchResult
from likewise.retrieval.queries import MAX_QUERY_TERMS, check_k, check_query, has_content
from likewise.retrieval.similar import Exclude, similar_passages
from likewise.retrieval.tokens import EncoderTokenCounter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from likewise.index.index import Index
    from likewise.index.view import IndexView

EVERYTHING = Filter()
"""The filter that allows all passages."""

# Fusion needs more of each side than it returns, because a passage in the middle of both rankings may come
# out first. Beyond some hundred candidates the order of the first ten hardly changes, so the depth grows with
# `k` only up to a bound; a larger `k` is its own depth.
_LEAST_DEPTH = 100
_MOST_DEPTH = 1000


class Retriever:
    r"""Searches one index.

    Args:
        index: An open index. It stays open; closing it is the caller's business.
        fusion: How hybrid search merges its two rankings: a name out of `likewise.retrieval.fusion.FUSIONS`
            or a rule.

    Raises:
        UsageError: No fusion rule has this name.

    Example:
        >>> import pathlib, tempfile
        >>> from likewise.index.index import Index
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "keys.md").write_text("# Keys\n\nSigning keys rotate yearly.", encoding="utf-8")
        >>> with Index.open(folder / ".likewise", encoder="hash") as index:
        ...     report = index.sync([folder])
        ...     hits = Retriever(index).search("how do I rotate a signing key", k=5)
        >>> [(hit.path, hit.lines, hit.scores.lexical_rank) for hit in hits]
        [('keys.md', (1, 3), 1)]
    """

    def __init__(self, index: Index, *, fusion: str | Fusion = DEFAULT_FUSION) -> None:
        self._index = index
        self._fusion = fusion_rule(fusion)

    @property
    def index(self) -> Index:
        """The index that is searched."""
        return self._index

    def search(
        self, query: str, *, k: int = 10, mode: Mode = "hybrid", filter: Filter = EVERYTHING
    ) -> SearchResult:
        """The passages that answer a query best.

        Args:
            query: What to look for; no character in it is an operator. At most 100 kB.
            k: Most hits to return, at least 1.
            mode: `"dense"` ranks by cosine similarity, `"lexical"` by BM25 (and loads no encoder),
                `"hybrid"` by both, merged by the fusion rule.
            filter: Which documents may answer.

        Returns:
            At most `k` hits, best first, ties by passage id, with notices: what the encoder or the word limit
            cut, that the filter matches nothing, that a query of punctuation has nothing to look for.

        Raises:
            QueryError: The query is empty, too long or no text.
            UsageError: `k` or `mode` is out of range.
            IndexFolderError: The index is missing, unreadable or made with another encoder.
            EncoderError: The encoder of the index cannot be loaded.
        """
        text = check_query(query)
        check_k(k)
        if mode not in get_args(Mode):
            raise UsageError(
                f"expected a mode out of {', '.join(get_args(Mode))}, found {mode!r}", remedy="hybrid"
            )
        with self._index.view() as view:
            notices = [*view.notices]
            total = view.passage_count
            allowed = self._allowed(view, total, filter, notices)
            hits: tuple[Hit, ...] = ()
            if not has_content(text):
                notices.append("the query has only punctuation: there is nothing to look for")
            elif allowed is None or len(allowed):
                hits = self._ranked(view, text, min(k, total), mode, allowed, notices)
        return SearchResult(hits, text, mode, tuple(notices), self._counter())

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
            allowed = self._allowed(view, total, filter, notices)
            label, ids, scores = similar_passages(
                view, target, k=min(k, total), allowed=allowed, exclude=exclude, base=self._index.base
            )
            found = [
                HitScores(dense=_cosine(score), dense_rank=rank) for rank, score in enumerate(scores, start=1)
            ]
            hits = _hits(view, ids, [scores.dense or 0.0 for scores in found], found)
        return SearchResult(hits, label, "similar", tuple(notices), self._counter())

    def _counter(self) -> EncoderTokenCounter:
        return EncoderTokenCounter(lambda: self._index.encoder)

    def _allowed(self, view: IndexView, total: int, filter: Filter, notices: list[str]) -> Ids | None:
        if not total:
            notices.append("the index holds no passages yet")
            return np.empty(0, dtype=np.int64)
        allowed = view.select(filter) if filter else None
        if allowed is not None and not len(allowed):
            notices.append("the filter matches no passage")
        return allowed

    def _ranked(
        self, view: IndexView, text: str, k: int, mode: Mode, allowed: Ids | None, notices: list[str]
    ) -> tuple[Hit, ...]:
        if mode == "dense":
            dense = view.dense(self._query_vector(view, text, notices), k, allowed)
            found = [
                HitScores(dense=_cosine(score), dense_rank=rank)
                for rank, score in enumerate(dense.scores, start=1)
            ]
            return _hits(view, dense.ids, [scores.dense or 0.0 for scores in found], found)
        terms = self._terms(text, notices)
        if mode == "lexical":
            lexical = view.lexical(terms, k, allowed) if terms else _nothing()
            found = [
                HitScores(lexical=float(score), lexical_rank=rank)
                for rank, score in enumerate(lexical.scores, start=1)
            ]
            return _hits(view, lexical.ids, [scores.lexical or 0.0 for scores in found], found)
        vector = self._query_vector(view, text, notices)
        depth = max(k, _LEAST_DEPTH, min(5 * k, _MOST_DEPTH))
        candidates = Candidates.union(
            view.dense(vector, depth, allowed), view.lexical(terms, depth, allowed) if terms else _nothing()
        )
        if self._fusion.complete_scores:
            candidates = _completed(view, candidates, vector, terms)
        return self._fused(view, candidates, vector, k)

    def _fused(
        self, view: IndexView, candidates: Candidates, vector: NDArray[np.float32], k: int
    ) -> tuple[Hit, ...]:
        shares = self._fusion.shares(candidates)
        fused = shares.dense + shares.lexical
        order = best_first(candidates.ids, fused)[:k]
        ids = candidates.ids[order]
        cosines = _filled(view, ids, candidates.dense.scores[order], vector)
        found = [
            HitScores(
                dense=_cosine(cosine),
                dense_rank=int(candidates.dense.ranks[place]) or None,
                lexical=_known(candidates.lexical.scores[place]),
                lexical_rank=int(candidates.lexical.ranks[place]) or None,
                fused=float(fused[place]),
                explanation=(
                    f"{self._fusion.describe()}: dense {shares.dense[place]:.4f}"
                    f" + lexical {shares.lexical[place]:.4f}"
                ),
            )
            for place, cosine in zip(order, cosines, strict=True)
        ]
        return _hits(view, ids, [scores.fused or 0.0 for scores in found], found)

    def _query_vector(self, view: IndexView, text: str, notices: list[str]) -> NDArray[np.float32]:
        encoder = self._index.encoder
        if encoder.fingerprint != view.fingerprint:
            raise EncoderMismatch(
                f"expected the vectors of {encoder.name} in the index, found those of another encoder: "
                "it was embedded again since it was opened",
                remedy="open the index again, or search with mode lexical",
            )
        embedded = encoder.embed([text], role="query")
        if embedded.truncated:
            notices.append(
                "the query is longer than the encoder takes: the dense side searched with its beginning only"
            )
        vector: NDArray[np.float32] = embedded.vectors[0]
        return vector

    def _terms(self, text: str, notices: list[str]) -> Sequence[str]:
        terms = analyze_query(text)
        if not terms:
            notices.append("the query has no words that the lexical side can look up")
        if len(terms) > MAX_QUERY_TERMS:
            notices.append(
                f"the lexical side looked up the first {MAX_QUERY_TERMS} of the query's {len(terms)} words"
            )
        return terms[:MAX_QUERY_TERMS]


def _completed(
    view: IndexView, candidates: Candidates, vector: NDArray[np.float32], terms: Sequence[str]
) -> Candidates:
    """Both scores of all candidates: the missing cosines computed, the missing BM25 scores looked up."""
    ids = candidates.ids
    dense = _filled(view, ids, candidates.dense.scores, vector)
    lexical = np.zeros(len(ids))  # a passage without any of the words has BM25 0
    if terms and len(ids):
        ranking = view.lexical(terms, len(ids), ids)
        lexical[np.searchsorted(ids, ranking.ids)] = ranking.scores
    return candidates.with_scores(dense=dense, lexical=lexical)


def _filled(view: IndexView, ids: Ids, cosines: Floats, vector: NDArray[np.float32]) -> Floats:
    """Cosines with those that are NaN computed from the stored vectors."""
    missing = np.isnan(cosines)
    if not missing.any():
        return cosines
    filled = cosines.copy()
    filled[missing] = view.vectors(ids[missing]) @ vector
    return filled


def _hits(
    view: IndexView, ids: Ids, scores: Sequence[float], details: Sequence[HitScores]
) -> tuple[Hit, ...]:
    passages = view.passages(ids)
    ranked = [
        Hit(0, score, detail, passages[int(id_)])
        for id_, score, detail in zip(ids, scores, details, strict=True)
    ]
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(ranked, start=1))


def _cosine(score: float) -> float:
    """A cosine without the float noise that could take it past 1."""
    return float(min(1.0, max(-1.0, score)))


def _known(score: float) -> float | None:
    return None if np.isnan(score) else float(score)


def _nothing() -> Ranking:
    return Ranking(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))
