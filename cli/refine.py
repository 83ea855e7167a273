"""Options that say how a query is read and what is done with its hits, shared by search, context and ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, cast

import click
from click.core import ParameterSource

from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.index.index import Index
    from likewise.retrieval.grammar import ParsedQuery
    from likewise.retrieval.rerank.parents import Parent
    from likewise.retrieval.search import Retriever


@dataclass(frozen=True, slots=True)
class Refine:
    """What the options said; see their help."""

    raw: bool
    fusion: str
    rerank: str | None
    candidates: int
    seconds: float | None
    diversity: float
    expand: Parent | None
    expand_tokens: int

    def query(self, text: str) -> ParsedQuery:
        """The query that a person typed.

        Raises:
            QueryError: It cannot be searched.
        """
        from likewise.retrieval.grammar import literal, parse
        from likewise.retrieval.queries import check_query

        checked = check_query(text)
        return literal(checked) if self.raw else parse(checked)

    def retriever(self, index: Index) -> Retriever:
        """Searches the index as the options say.

        Raises:
            EncoderError: The reranker cannot be loaded.
            UsageError: There is no such fusion rule.
        """
        from likewise.retrieval.search import Retriever

        if self.rerank is None and not self.diversity and self.expand is None:
            return Retriever(index, fusion=self.fusion)
        from likewise.retrieval.rerank.cross_encoder import CrossEncoderReranker
        from likewise.retrieval.rerank.refine import Refinement, RefiningRetriever

        reranker = CrossEncoderReranker(self.rerank) if self.rerank is not None else None
        if reranker is not None:
            reranker.load()  # before the clock of --rerank-seconds starts
        wanted = Refinement(
            reranker=reranker,
            candidates=self.candidates,
            seconds=self.seconds,
            diversity=self.diversity,
            expand=self.expand,
            expand_tokens=self.expand_tokens,
        )
        return RefiningRetriever(index, wanted, fusion=self.fusion)


def refine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options, which arrive as the parameter `refine`."""

    @wraps(command)
    def wrapped(
        *args: object,
        raw: bool,
        fusion: str,
        rerank: str | None,
        candidates: int,
        rerank_seconds: float | None,
        diversity: float,
        expand: str | None,
        expand_tokens: int,
        **options: object,
    ) -> None:
        said = click.get_current_context().get_parameter_source("fusion")
        if said is ParameterSource.COMMANDLINE and options.get("mode", "hybrid") != "hybrid":
            raise UsageError(
                f"--fusion {fusion} is for hybrid search, and the mode is {options['mode']}",
                remedy="--mode hybrid, or no --fusion",
            )
        refine = Refine(
            raw,
            fusion,
            rerank,
            candidates,
            rerank_seconds,
            diversity,
            cast("Parent | None", expand),
            expand_tokens,
        )
        command(*args, refine=refine, **options)

    for option in (
        click.option(
            "--expand-tokens",
            type=click.IntRange(min=1),
            default=1000,
            show_default=True,
            metavar="N",
            help="Most tokens of a passage with what --expand adds.",
        ),
        click.option(
            "--expand",
            type=click.Choice(["section", "document"]),
            help="Show each passage with the rest of its section or document around it.",
        ),
        click.option(
            "--diversity",
            type=click.FloatRange(0, 1),
            default=0.0,
            metavar="D",
            help="Prefer passages that differ from those before them: from 0 (not at all, the default) to 1.",
        ),
        click.option(
            "--rerank-seconds",
            type=click.FloatRange(min=0, min_open=True),
            metavar="S",
            help="Seconds for reranking; candidates left over keep their order. [default: no limit]",
        ),
        click.option(
            "--candidates",
            type=click.IntRange(min=1),
            default=50,
            show_default=True,
            metavar="N",
            help="Passages that --rerank scores.",
        ),
        click.option(
            "--rerank",
            metavar="MODEL",
            help="Score the best passages anew with a cross-encoder: a folder or a hub id, such as"
            " BAAI/bge-reranker-base.",
        ),
        click.option(
            "--fusion",
            default="standardised",
            show_default=True,
            envvar="LIKEWISE_FUSION",
            show_envvar=True,
            metavar="RULE[@WEIGHT]",
            help="How hybrid search merges meaning and words: standardised, rrf, weighted or convex, with the"
            " weight of the meaning from 0 to 1. An encoder trained for the documents deserves more than 0.6:"
            " likewise evaluate --fusion tells how much.",
        ),
        click.option(
            "--raw",
            is_flag=True,
            help='Take the query as it is: no "phrases", -exclusions or path:fields in it.',
        ),
    ):
        wrapped = option(wrapped)
    return wrapped
