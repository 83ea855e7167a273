"""`likewise similar`: passages like one that the index holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.hits import print_result
from likewise.cli.options import filter_options, index_option, k_option, make_filter, open_index
from likewise.cli.output import Format, output_options

if TYPE_CHECKING:
    from likewise.retrieval.similar import Exclude

EPILOG = """\b
Examples:
  likewise similar docs/keys.md
  likewise similar docs/keys.md:42 -k 5
  likewise similar 1207 --exclude document --json

In a pipe each hit is one line, best first: path:line, cosine, heading, and how the
passage begins, separated by tabs.
"""


@click.command(short_help="Find passages like one that you have.", epilog=EPILOG)
@click.argument("target")
@k_option(10)
@click.option(
    "--exclude",
    type=click.Choice(["passage", "document"]),
    default="passage",
    show_default=True,
    help="Leave out the passage alone, or all of its document.",
)
@filter_options
@click.option("--full", is_flag=True, help="Print passages whole instead of their first lines.")
@index_option
@output_options
def similar(
    target: str,
    k: int,
    exclude: Exclude,
    filters: tuple[str, ...],
    paths: tuple[str, ...],
    suffixes: tuple[str, ...],
    languages: tuple[str, ...],
    full: bool,
    index_folder: Path | None,
    format: Format,
) -> None:
    """Find the passages most similar to TARGET, which the index must hold.

    TARGET is a file (all of its passages together), FILE:LINE (the passage at that line), or the id of a
    passage. The stored vectors are compared, so no encoder is loaded.
    """
    from likewise.retrieval.search import Retriever

    wanted = make_filter(filters, paths, suffixes, languages)
    with open_index(index_folder) as index:
        result = Retriever(index).similar(target, k=k, filter=wanted, exclude=exclude)
    print_result(result, format, full=full, explain=False)
