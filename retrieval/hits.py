"""What a search returns: hits with their scores, and the notices that belong to the whole answer.

Plain records. Nothing here opens an index, ranks, or prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, overload

if TYPE_CHECKING:
    from likewise.index.records import Json, StoredPassage
    from likewise.retrieval.snippets import Highlighter, Snippet
    from likewise.retrieval.tokens import TokenCounter

Mode = Literal["dense", "lexical", "hybrid"]
"""How to search: by vectors, by words, or by both."""

ResultMode = Literal["dense", "lexical", "hybrid", "similar"]
"""How a result was found; `"similar"` started from a passage instead of a query."""

FORMAT_VERSION = 1
"""Version of the JSON that `SearchResult.to_json` gives; raised when a field changes its meaning."""


@dataclass(frozen=True, slots=True)
class HitScores:
    """Where a hit's score comes from.

    Attributes:
        dense: Cosine similarity of query and passage, in [-1, 1]; None if the mode does not use vectors.
        dense_rank: Rank from 1 among the dense candidates, None if it is not among them.
        lexical: BM25, higher is better, open-ended and only comparable within one query; None if the passage
            is not among the lexical candidates (unless the fusion rule asked for it) or the mode does not use
            words.
        lexical_rank: Rank from 1 among the lexical candidates, None if it is not among them.
        fused: What the fusion rule made of both; None unless the mode is hybrid. Its scale is the rule's own.
        explanation: How `fused` came about, for people: `rrf(k=60): dense 0.0164 + lexical 0.0161`.
        rerank: What a reranker made of query and passage; None if none did. Its scale is the model's own.
    """

    dense: float | None = None
    dense_rank: int | None = None
    lexical: float | None = None
    lexical_rank: int | None = None
    fused: float | None = None
    explanation: str = ""
    rerank: float | None = None

    def to_json(self) -> dict[str, Json]:
        """The fields under their own names."""
        return {
            "dense": self.dense,
            "dense_rank": self.dense_rank,
            "lexical": self.lexical,
            "lexical_rank": self.lexical_rank,
            "fused": self.fused,
            "explanation": self.explanation,
            "rerank": self.rerank,
        }


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that answers a query.

    Attributes:
        rank: Position in the result, from 1.
        score: The score that ranks: cosine for dense search, BM25 for lexical, the fused one for hybrid, the
            reranker's where one was used.
        scores: All scores and ranks that are known.
        passage: The passage itself.
        relevance: How likely the passage is to be about what was asked, in [0, 1] (see
            `likewise.retrieval.relevance`); None if the search cannot tell.
    """

    rank: int
    score: float
    scores: HitScores
    passage: StoredPassage
    relevance: float | None = None

    @property
    def passage_id(self) -> int:
        """Id of the passage: never given to another text."""
        return self.passage.id

    @property
    def path(self) -> str:
        """Path of the document as people see it."""
        return self.passage.key

    @property
    def title(self) -> str:
        """Title of the document, or ""."""
        return self.passage.title

    @property
    def heading(self) -> str:
        """Headings above the passage, outermost first, joined with ` > `; or ""."""
        return " > ".join(self.passage.passage.headings)

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line, from 1."""
        return self.passage.passage.lines

    @property
    def page(self) -> int | None:
        """Page on which the passage starts, from 1, or None for formats without pages."""
        return self.passage.passage.page

    @property
    def text(self) -> str:
        """The text of the passage."""
        return self.passage.passage.text

    def to_json(self) -> dict[str, Json]:
        """The hit as `search --json` shows it."""
        return {
            "rank": self.rank,
            "passage_id": self.passage_id,
            "path": self.path,
            "title": self.title,
            "heading": self.heading,
            "lines": list(self.lines),
            "page": self.page,
            "score": self.score,
            "relevance": self.relevance,
            "scores": self.scores.to_json(),
            "text": self.text,
        }


@dataclass(frozen=True)
class SearchResult(Sequence[Hit]):
    """The hits of one query, best first, as a sequence.

    Attributes:
        hits: Best first; equal scores are ordered by passage id.
        query: The query, or the target of a search for similar passages.
        mode: How it was searched.
        notices: What the person who asked should know, one sentence each ("the filter matches no passage").
        counter: Counts tokens as the index's encoder does; loads the encoder only when it counts.
        text: What was looked for: the query without its operators; "" where there is no query.
        highlighter: Finds the words of the query in a passage; None where there are none.
    """

    hits: tuple[Hit, ...]
    query: str
    mode: ResultMode
    notices: tuple[str, ...] = ()
    counter: TokenCounter | None = field(default=None, repr=False, compare=False)
    text: str = ""
    highlighter: Highlighter | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...

    @overload
    def __getitem__(self, index: slice) -> SearchResult: ...

    def __getitem__(self, index: int | slice) -> Hit | SearchResult:
        if isinstance(index, slice):
            return replace(self, hits=self.hits[index])
        return self.hits[index]

    def snippet(self, hit: Hit) -> Snippet | None:
        """The best sentence of a hit with the words of the query marked; None where there is no query."""
        return self.highlighter.snippet(hit.passage) if self.highlighter else None

    def hit_json(self, hit: Hit) -> dict[str, Json]:
        """One of the hits with its snippet, as `search --json` shows it."""
        snippet = self.snippet(hit)
        return {**hit.to_json(), "snippet": snippet.to_json() if snippet else None}

    def to_json(self) -> dict[str, Json]:
        """The result as `search --json` shows it.

        Example:
            >>> SearchResult((), "signing keys", "hybrid").to_json()
            {'version': 1, 'query': 'signing keys', 'mode': 'hybrid', 'hits': [], 'notices': []}
        """
        return {
            "version": FORMAT_VERSION,
            "query": self.query,
            "mode": self.mode,
            "hits": [self.hit_json(hit) for hit in self.hits],
            "notices": list(self.notices),
        }
