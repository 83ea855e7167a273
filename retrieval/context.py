"""Hits to a prompt: the best passages, merged, numbered and fenced, within a budget of tokens.

The budget holds for the whole text, instructions, labels and fences included, as the given tokenizer counts.
Nothing here searches, reads files or talks to a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from likewise.errors import UsageError
from likewise.retrieval.fencing import neutralise
from likewise.retrieval.hits import Hit, SearchResult
from likewise.retrieval.packing import Packer
from likewise.retrieval.prompting import PROMPTS, PromptLanguage, prompt_language
from likewise.retrieval.stretches import Stretch

if TYPE_CHECKING:
    from likewise.index.records import Json, Span
    from likewise.retrieval.generators.base import Message
    from likewise.retrieval.tokens import TokenCounter

FORMAT_VERSION = 1
"""Version of the JSON that `Context.to_json` gives; raised when a field changes its meaning."""

DEFAULT_BUDGET = 2000


@dataclass(frozen=True, slots=True)
class Source:
    """A numbered source: one stretch of one document, checkable against the file.

    Attributes:
        number: What `[n]` in an answer refers to, from 1.
        stretch: The passages and their joined text, before control tokens are broken up.
        score: Best score among its passages.
        rank: Rank of that passage in the search.
    """

    number: int
    stretch: Stretch
    score: float
    rank: int

    @property
    def path(self) -> str:
        """Path of the document."""
        return self.stretch.key

    @property
    def title(self) -> str:
        """Title of the document, or ""."""
        return self.stretch.pieces[0].passage.title

    @property
    def heading(self) -> str:
        """Headings above its beginning, outermost first, joined with ` > `."""
        return " > ".join(self.stretch.pieces[0].passage.passage.headings)

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line, from 1."""
        return self.stretch.lines

    @property
    def page(self) -> int | None:
        """First page, from 1, or None."""
        return self.stretch.pages[0] if self.stretch.pages else None

    @property
    def span(self) -> Span:
        """First and one past the last character in the document's text."""
        return self.stretch.span

    @property
    def content_hash(self) -> str:
        """SHA-256 of the file when it was indexed, hexadecimal."""
        return self.stretch.pieces[0].passage.content_hash

    @property
    def passage_ids(self) -> tuple[int, ...]:
        """Ids of its passages, in document order."""
        return tuple(piece.passage.id for piece in self.stretch.pieces)

    @property
    def text(self) -> str:
        """What is quoted, as it stands in the document."""
        return self.stretch.text

    @property
    def cut(self) -> bool:
        """Whether only its beginning fitted."""
        return self.stretch.cut

    def to_json(self) -> dict[str, Json]:
        """The source as `context --json` shows it."""
        pages = self.stretch.pages
        return {
            "number": self.number,
            "path": self.path,
            "title": self.title,
            "heading": self.heading,
            "lines": list(self.lines),
            "page": self.page,
            "last_page": pages[1] if pages else None,
            "span": [self.span.start, self.span.end],
            "content_hash": self.content_hash,
            "passage_ids": list(self.passage_ids),
            "rank": self.rank,
            "score": self.score,
            "cut": self.cut,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class Dropped:
    """A hit that is not in the context.

    Attributes:
        hit: The hit.
        reason: `"duplicate"` of a passage that is in, or over the `"budget"`.
        passage_id: The passage it repeats, for a duplicate.
        similarity: Share of its word sequences found there, in [0, 1], for a duplicate.
        source: Number of the source that holds that passage.
    """

    hit: Hit
    reason: Literal["duplicate", "budget"]
    passage_id: int | None = None
    similarity: float | None = None
    source: int | None = None

    def to_json(self) -> dict[str, Json]:
        """The fields that say which passage, why, and what stands in for it."""
        return {
            "passage_id": self.hit.passage_id,
            "path": self.hit.path,
            "lines": list(self.hit.lines),
            "reason": self.reason,
            "duplicate_of": self.passage_id,
            "similarity": self.similarity,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Context:
    """Cited sources, ready for a prompt.

    Attributes:
        text: Instructions and sources as Markdown; "" without sources.
        instructions: The first part of `text`: what the model is to do, and how the sources are fenced.
        body: The second part of `text`: the sources.
        sources: In the order of their numbers.
        dropped: Hits that are not in, by rank.
        tokens: Tokens of `text`, at most `budget`.
        budget: What was allowed.
        tokenizer: Name of the tokenizer that counted.
        query: What the sources were found for.
        language: Language of the instructions.
        notices: What the search had to say, and whether something was cut.
    """

    text: str
    instructions: str
    body: str
    sources: tuple[Source, ...]
    dropped: tuple[Dropped, ...]
    tokens: int
    budget: int
    tokenizer: str
    query: str
    language: PromptLanguage
    notices: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """The context as `context --json` shows it."""
        return {
            "version": FORMAT_VERSION,
            "query": self.query,
            "language": self.language,
            "tokens": self.tokens,
            "budget": self.budget,
            "tokenizer": self.tokenizer,
            "text": self.text,
            "sources": [source.to_json() for source in self.sources],
            "dropped": [dropped.to_json() for dropped in self.dropped],
            "notices": list(self.notices),
        }

    def to_messages(self, question: str = "") -> list[Message]:
        """Chat messages: the instructions for the system, sources and question from the user.

        Args:
            question: What to answer; the query of the search if "". Its tokens, and those that the model's
                chat template adds, come on top of `tokens`.
        """
        asked = PROMPTS[self.language].question + neutralise(question or self.query)
        content = f"{self.body}\n\n{asked}" if self.body else asked
        return [{"role": "system", "content": self.instructions}, {"role": "user", "content": content}]


def pack_context(
    hits: SearchResult | Sequence[Hit],
    *,
    budget: int = DEFAULT_BUDGET,
    tokenizer: TokenCounter | None = None,
    language: PromptLanguage | None = None,
) -> Context:
    """Choose, merge, number and quote what fits into a budget.

    Hits are taken by rank. One that repeats a better one is dropped; one that does not fit is dropped and the
    next one tried; if even the first does not fit, its beginning is used, up to the end of a sentence.
    Passages of a document that overlap or follow each other become one source. Documents are ordered by their
    best hit, the sources of a document by their place in it.

    Args:
        hits: What a search returned.
        budget: Most tokens of the whole text.
        tokenizer: Counts the tokens; the encoder of the index if None. See `load_token_counter`.
        language: Language of the instructions; that of the query if None.

    Returns:
        A context with at least one source, or an empty one if there are no hits.

    Raises:
        UsageError: The budget is too small for any useful text (the message says what would do), or there is
            no tokenizer because `hits` is a plain list.

    Example:
        >>> from likewise.embedder.hash_encoder import HashEncoder
        >>> from likewise.index.records import Passage, Span, StoredPassage
        >>> from likewise.retrieval.hits import HitScores
        >>> from likewise.retrieval.tokens import EncoderTokenCounter
        >>> keys = Passage(0, "Keys rotate yearly.", Span(0, 19), lines=(1, 1))
        >>> hit = Hit(1, 0.9, HitScores(dense=0.9), StoredPassage(7, "keys.md", "", "en", "00ff", keys))
        >>> context = pack_context([hit], budget=300, tokenizer=EncoderTokenCounter(HashEncoder))
        >>> print(context.body)
        [1] keys.md, line 1
        ```
        Keys rotate yearly.
        ```
    """
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise UsageError(f"expected a budget of at least 1 token, found {budget!r}", remedy="budget=2000")
    query = hits.query if isinstance(hits, SearchResult) else ""
    notices = hits.notices if isinstance(hits, SearchResult) else ()
    counter = tokenizer or (hits.counter if isinstance(hits, SearchResult) else None)
    evidence = "".join(hit.text for hit in hits[:3])
    language = language or prompt_language(query or evidence, evidence)
    texts = PROMPTS[language]
    if not hits:
        return Context("", "", "", (), (), 0, budget, "", query, language, notices)
    if counter is None:
        raise UsageError(
            "expected a tokenizer to count the budget with, found none: the hits are a plain list",
            remedy="pack_context(hits, tokenizer=load_token_counter('path/to/tokenizer.json'))",
        )
    packed = Packer(counter, budget, texts).pack(hits)
    ranks = {hit.passage_id: hit for hit in packed.chosen}
    sources = []
    for number, stretch in enumerate(packed.stretches, start=1):
        best = min((ranks[piece.passage.id] for piece in stretch.pieces), key=lambda hit: hit.rank)
        sources.append(Source(number, stretch, best.score, best.rank))
    homes = {id_: source.number for source in sources for id_ in source.passage_ids}
    dropped = [
        *(
            Dropped(hit, "duplicate", of, round(share, 4), homes.get(of))
            for hit, of, share in packed.duplicates
        ),
        *(Dropped(hit, "budget") for hit in packed.too_much),
    ]
    if sources[0].cut:
        notices = (*notices, f"the best passage is cut to fit the budget of {budget} tokens")
    return Context(
        text=packed.text,
        instructions=packed.instructions,
        body=packed.body,
        sources=tuple(sources),
        dropped=tuple(sorted(dropped, key=lambda each: each.hit.rank)),
        tokens=packed.tokens,
        budget=budget,
        tokenizer=counter.name,
        query=query,
        language=language,
        notices=notices,
    )
