"""`likewise context`: query to a cited prompt within a budget of tokens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from likewise.cli.options import (
    filter_options,
    index_option,
    k_option,
    make_filter,
    mode_option,
    open_index,
    relevance_option,
)
from likewise.cli.output import Format, count_text, note, output_options, write, write_json, write_jsonl
from likewise.cli.refine import Refine, refine_options
from likewise.cli.terminal import printable

if TYPE_CHECKING:
    from likewise.index.records import Json
    from likewise.retrieval.context import Context
    from likewise.retrieval.hits import Mode

EPILOG = """\b
Examples:
  likewise context "how do I rotate a signing key" --budget 2000
  likewise context 如何輪替簽署金鑰 --tokenizer Qwen/Qwen3-0.6B
  likewise context "signing key" --format messages > messages.json
  likewise context "signing key" --json | jq '.sources[] | {number, path, lines}'
"""

Layout = Literal["markdown", "json", "messages"]


@click.command(short_help="Pack the best passages, cited, into a token budget.", epilog=EPILOG)
@click.argument("query")
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    default=2000,
    show_default=True,
    metavar="TOKENS",
    help="Most tokens of the whole text.",
)
@click.option(
    "--tokenizer",
    metavar="NAME",
    help="Count as the generator does: a tokenizer.json, a model folder or a hub id. [default: the index's"
    " encoder]",
)
@click.option(
    "--format",
    "layout",
    type=click.Choice(["markdown", "json", "messages"]),
    default="markdown",
    show_default=True,
    help="Markdown, JSON (as --json), or chat messages as JSON.",
)
@k_option(20)
@mode_option
@relevance_option
@filter_options
@refine_options
@index_option
@output_options
def context(
    query: str,
    budget: int,
    tokenizer: str | None,
    layout: Layout,
    k: int,
    mode: Mode,
    min_relevance: float,
    filters: tuple[str, ...],
    paths: tuple[str, ...],
    suffixes: tuple[str, ...],
    languages: tuple[str, ...],
    refine: Refine,
    index_folder: Path | None,
    format: Format,
) -> None:
    """Pack the passages that answer QUERY best into a prompt.

    Neighbouring passages are merged, near-duplicates dropped, sources numbered, and what was retrieved is
    fenced as data. The budget holds for the whole text.
    """
    from likewise.retrieval.context import pack_context
    from likewise.retrieval.tokens import load_token_counter

    wanted = make_filter(filters, paths, suffixes, languages)
    parsed = refine.query(query)
    counter = load_token_counter(tokenizer) if tokenizer else None
    with open_index(index_folder) as index:
        hits = refine.retriever(index).search(
            parsed, k=k, mode=mode, filter=wanted, min_relevance=min_relevance
        )
        packed = pack_context(hits, budget=budget, tokenizer=counter)
        print_context(packed, format, layout)


def print_context(packed: Context, format: Format, layout: Layout = "markdown") -> None:
    """Print a context to standard output, and what is to be known about it to standard error."""
    if format is Format.JSONL:
        write_jsonl({"version": 1, **source.to_json()} for source in packed.sources)
    elif format is Format.JSON or layout == "json":
        write_json(packed.to_json())
        return
    elif layout == "messages":
        write_json(messages_json(packed))
    elif packed.text:
        write(printable(packed.text))
    for notice in packed.notices:
        note(notice)
    if not packed.sources and not packed.notices:
        note("no passage answers the query")
    elif packed.dropped:
        repeated = sum(dropped.reason == "duplicate" for dropped in packed.dropped)
        too_much = len(packed.dropped) - repeated
        parts = [count_text(repeated, "near-duplicate")] if repeated else []
        parts += [f"{count_text(too_much, 'passage')} that did not fit"] if too_much else []
        note(f"{packed.tokens:,} of {packed.budget:,} tokens; left out {' and '.join(parts)}")


def messages_json(packed: Context) -> dict[str, Json]:
    """The chat messages of a context, as `context --format messages` prints them."""
    return {
        "version": 1,
        "messages": [{"role": each["role"], "content": each["content"]} for each in packed.to_messages()],
        "tokens": packed.tokens,
        "tokenizer": packed.tokenizer,
    }
