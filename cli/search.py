"""`likewise search`: query to hits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.hits import print_result
from likewise.cli.options import (
    filter_options,
    index_option,
    k_option,
    make_filter,
    mode_option,
    open_index,
    relevance_option,
)
from likewise.cli.output import Format, output_options
from likewise.cli.refine import Refine, refine_options

if TYPE_CHECKING:
    from likewise.retrieval.hits import Mode

EPILOG = """\b
Examples:
  likewise search "how do I rotate a signing key"
  likewise search 如何輪替簽署金鑰 --language zh -k 5
  likewise search "E1042" --mode lexical --path "docs/**" --full
  likewise search '"signing key" rotation title:handbook path:docs/**'
  likewise search 「簽署金鑰」 -k 3 --expand section
  likewise search "retention of backups" --filter "date>=2025-01-01" --explain
  likewise search "who signs releases" --min-relevance 0.5
  likewise search "signing key" --rerank BAAI/bge-reranker-base --rerank-seconds 2
  likewise search "signing key" --json | jq -r '.hits[].path'

In a pipe each hit is one line, best first: path:line of its best sentence, score,
heading, and the sentence, separated by tabs. --json has everything.
"""


@click.command(short_help="Find the passages that answer a query.", epilog=EPILOG)
@click.argument("query")
@k_option(10)
@mode_option
@relevance_option
@filter_options
@refine_options
@click.option(
    "--explain", is_flag=True, help="Show both scores and ranks of every hit, and how they were fused."
)
@click.option("--full", is_flag=True, help="Print passages whole instead of their best sentence.")
@index_option
@output_options
def search(
    query: str,
    k: int,
    mode: Mode,
    min_relevance: float,
    filters: tuple[str, ...],
    paths: tuple[str, ...],
    suffixes: tuple[str, ...],
    languages: tuple[str, ...],
    refine: Refine,
    explain: bool,
    full: bool,
    index_folder: Path | None,
    format: Format,
) -> None:
    """Find the passages that answer QUERY best.

    In the query, "words in quotes" must occur side by side, -word must not occur, and path:, title:, suffix:,
    lang:, state: and date>= restrict the documents. Everything else is text; with --raw, all of it is. A
    query that begins with a dash goes behind --: likewise search -- "-draft keys".
    """
    wanted = make_filter(filters, paths, suffixes, languages)
    parsed = refine.query(query)  # before an index is opened: a bad query is the cheaper thing to report
    with open_index(index_folder) as index:
        result = refine.retriever(index).search(
            parsed, k=k, mode=mode, filter=wanted, min_relevance=min_relevance
        )
    print_result(result, format, full=full, explain=explain)
