"""Score the first hits of a result anew, within a number and a time.

A reranker looks at query and passage together, which no index can prepare, so it is slow and sees only a
few candidates. What it did not get to keeps its order behind what it did. Nothing here knows a model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from likewise.errors import UsageError
from likewise.index.records import passage_context
from likewise.retrieval.hits import Hit, SearchResult

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CANDIDATES = 50
"""Hits that are scored anew unless told otherwise."""

# Scored together: few enough to stop in time, enough to fill a batch.
_TOGETHER = 8


class Reranker(Protocol):
    """Tells how well passages answer a query."""

    @property
    def name(self) -> str:
        """For people: which model scores."""
        ...

    def scores(self, query: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """A score for each passage, shape (n,); higher is better, comparable within one query only."""
        ...


def rerank(
    result: SearchResult,
    reranker: Reranker,
    *,
    candidates: int = CANDIDATES,
    seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> SearchResult:
    """The same hits, the first of them in the order of a reranker.

    Args:
        result: What a search found; more hits than are wanted in the end.
        reranker: Scores them.
        candidates: How many of them at most, from the first, at least 1.
        seconds: Time that scoring may take, above 0; None for as long as it takes. The first few are always
            scored; then it stops before the time would be over. A model that is still to be loaded or
            converted takes its time before that.
        clock: Seconds that only grow.

    Returns:
        Scored hits by score, ties in their old order, then the others in their old order, ranked anew. A
        notice says if time ran out.

    Raises:
        UsageError: `candidates` or `seconds` is out of range.
    """
    if candidates < 1:
        raise UsageError(f"expected at least 1 candidate, found {candidates}")
    if seconds is not None and not seconds > 0:
        raise UsageError(f"expected more than 0 seconds, found {seconds}")
    wanted = list(result.hits[:candidates])
    query = result.text or result.query
    scored: list[Hit] = []
    start = before = clock()
    while len(scored) < len(wanted):
        batch = wanted[len(scored) : len(scored) + _TOGETHER]
        scores = reranker.scores(query, [_reading(hit) for hit in batch])
        scored += [
            replace(hit, score=float(score), scores=replace(hit.scores, rerank=float(score)))
            for hit, score in zip(batch, scores, strict=True)
        ]
        now = clock()
        # The next batch will take about as long as this one.
        if seconds is not None and now + (now - before) > start + seconds:
            break
        before = now
    notices = result.notices
    if len(scored) < len(wanted):
        notices = (
            *notices,
            f"reranked the first {len(scored)} of {len(wanted)} passages: the time of {seconds:g} s was over",
        )
    scored.sort(key=lambda hit: -hit.score)  # stable
    hits = [*scored, *result.hits[len(scored) :]]
    return replace(result, hits=ranked(hits), notices=notices)


def ranked(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The hits with the ranks of their order."""
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1))


def _reading(hit: Hit) -> str:
    """What the reranker reads: where the passage stands, then its text, as it was embedded."""
    context = passage_context(hit.title, hit.passage.passage.headings)
    return f"{context}\n{hit.text}" if context else hit.text
