"""Question to checked answer: search, pack, generate, check the citations.

The one place where the steps meet. Nothing here prints, and no generator is called when nothing was found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from likewise.index.records import Filter
from likewise.retrieval.citations import CitationReport, check_citations
from likewise.retrieval.context import DEFAULT_BUDGET, Context, pack_context
from likewise.retrieval.generators.base import FinishReason, TextStream
from likewise.retrieval.prompting import PROMPTS
from likewise.retrieval.search import EVERYTHING, Retriever

if TYPE_CHECKING:
    from likewise.index.records import Json
    from likewise.retrieval.generators.base import Generator
    from likewise.retrieval.grammar import ParsedQuery
    from likewise.retrieval.hits import Mode, SearchResult
    from likewise.retrieval.tokens import TokenCounter

FORMAT_VERSION = 1
"""Version of the JSON that `Answer.to_json` gives; raised when a field changes its meaning."""

DEFAULT_K = 20
"""Hits that packing may choose from: more than a prompt holds, because some repeat each other."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and what it rests on.

    Attributes:
        question: What was asked.
        text: The answer; if nothing was found, a sentence that says so.
        generator: Name of the generator, or "" if it was not called.
        context: The sources that the generator was given.
        citations: What the answer cites, and how well it is supported.
        finish_reason: Why the text ended; None if nothing was generated.
        notices: What the person who asked should know, one sentence each.
    """

    question: str
    text: str
    generator: str
    context: Context
    citations: CitationReport
    finish_reason: FinishReason | None
    notices: tuple[str, ...]

    def to_json(self) -> dict[str, Json]:
        """The answer as `ask --json` shows it."""
        return {
            "version": FORMAT_VERSION,
            "question": self.question,
            "answer": self.text,
            "generator": self.generator,
            "finish_reason": self.finish_reason,
            "citations": self.citations.to_json(),
            "sources": [source.to_json() for source in self.context.sources],
            "notices": list(self.notices),
        }


class AnswerStream(Iterator[str]):
    """The pieces of an answer as they are generated, then the checked whole.

    Attributes:
        hits: What the search found.
        context: What the generator is given; known before the first piece.
    """

    def __init__(self, question: str, hits: SearchResult, context: Context, generator: Generator) -> None:
        self.hits = hits
        self.context = context
        self._question = question
        self._generator = generator
        self._texts = PROMPTS[context.language]
        self._taken: list[str] = []
        self._done = False
        self._pieces: Iterator[str] = (
            generator.stream(context.to_messages(hits.text or question))
            if context.sources
            else iter([self._texts.nothing])
        )

    def __next__(self) -> str:
        try:
            piece = next(self._pieces)
        except StopIteration:
            self._done = True
            raise
        self._taken.append(piece)
        return piece

    def close(self) -> None:
        """Stop generating; what was taken so far can still be checked."""
        if isinstance(self._pieces, TextStream):
            self._pieces.close()
        self._done = True

    def result(self) -> Answer:
        """The whole answer with its citations checked; takes the pieces that are left."""
        if not self._done:
            for _ in self:
                pass
        text = "".join(self._taken)
        generated = bool(self.context.sources)
        report = check_citations(text if generated else "", self.context.sources)
        reason = self._pieces.finish_reason if isinstance(self._pieces, TextStream) else None
        notices = [*self.context.notices]
        if generated:
            notices += _findings(text, report, reason)
        return Answer(
            question=self._question,
            text=text,
            generator=self._generator.name if generated else "",
            context=self.context,
            citations=report,
            finish_reason=reason,
            notices=tuple(notices),
        )


def stream_answer(
    retriever: Retriever,
    question: str | ParsedQuery,
    generator: Generator,
    *,
    k: int = DEFAULT_K,
    mode: Mode = "hybrid",
    filter: Filter = EVERYTHING,
    min_relevance: float = 0.0,
    budget: int = DEFAULT_BUDGET,
    tokenizer: TokenCounter | None = None,
) -> AnswerStream:
    """Search, pack, and start an answer.

    Args:
        retriever: Finds the passages.
        question: What to answer.
        generator: Writes the answer; not called if nothing is found.
        k: Most hits to pack.
        mode: How to search.
        filter: Which documents may answer.
        min_relevance: Least estimated relevance of a hit, in [0, 1].
        budget: Most tokens of the sources with their instructions.
        tokenizer: Counts the budget; the generator's own if None, else that of the index's encoder.

    Raises:
        LikewiseError: As `Retriever.search` and `pack_context` do; generating raises while pieces are taken.
    """
    hits = retriever.search(question, k=k, mode=mode, filter=filter, min_relevance=min_relevance)
    context = pack_context(hits, budget=budget, tokenizer=tokenizer or generator.token_counter)
    return AnswerStream(hits.query, hits, context, generator)


def answer(
    retriever: Retriever,
    question: str | ParsedQuery,
    generator: Generator,
    *,
    k: int = DEFAULT_K,
    mode: Mode = "hybrid",
    filter: Filter = EVERYTHING,
    min_relevance: float = 0.0,
    budget: int = DEFAULT_BUDGET,
    tokenizer: TokenCounter | None = None,
) -> Answer:
    r"""`stream_answer` in one go: the whole answer with its citations checked.

    Args and errors are those of `stream_answer`.

    Example:
        >>> import pathlib, tempfile
        >>> from likewise.index.index import Index
        >>> from likewise.retrieval.generators.echo import EchoGenerator
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "keys.md").write_text("# Keys\n\nSigning keys rotate yearly.", encoding="utf-8")
        >>> with Index.open(folder / ".likewise", encoder="hash") as index:
        ...     report = index.sync([folder])
        ...     says = EchoGenerator("Keys rotate yearly [1]. They are blue [2].")
        ...     checked = answer(Retriever(index), "how often do signing keys rotate", says)
        >>> checked.citations.cited, checked.citations.unknown
        ((1,), (2,))
        >>> [trace.support for sentence in checked.citations.sentences for trace in sentence.traces]
        [1.0]
    """
    stream = stream_answer(
        retriever,
        question,
        generator,
        k=k,
        mode=mode,
        filter=filter,
        min_relevance=min_relevance,
        budget=budget,
        tokenizer=tokenizer,
    )
    return stream.result()


def _findings(text: str, report: CitationReport, reason: FinishReason | None) -> Iterator[str]:
    """What a reader of the answer should know."""
    if not text.strip():
        yield "the generator answered with nothing"
    if reason == "length":
        yield "the answer is cut: the generator reached its limit of tokens"
    if report.unknown:
        numbers = ", ".join(f"[{number}]" for number in report.unknown)
        sources = len(report.cited) + len(report.unused)
        yield f"the answer cites {numbers}, but the sources end at [{sources}]"
    if report.uncited:
        yield f"{report.uncited} of {len(report.sentences)} sentences cite no source"
