"""`likewise pairs`: training pairs from a folder that nobody labelled."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.options import index_path
from likewise.cli.output import (
    Format,
    columns,
    count_text,
    note,
    output_options,
    write,
    write_json,
    write_jsonl,
)
from likewise.cli.progress import Progress
from likewise.cli.terminal import path_text

if TYPE_CHECKING:
    from likewise.index.records import Json
    from likewise.retrieval.pairs.records import Kind, PairSet

EPILOG = """\b
Examples:
  likewise pairs ~/handbook                         # counts, and one pair of each kind
  likewise pairs ~/handbook -o pairs.jsonl
  likewise pairs docs --kinds title,heading,question --limit 2000 -o pairs.jsonl
  likewise train pairs.jsonl -o model

\b
Kinds:
  question   a heading or line that asks, and its answer (also Q: A:, 問: 答:)
  title      a document's title, and its first passages
  heading    a heading, and its section
  link       the text of a link, and where it leads within the folder
  parallel   a text, and its translation: en/keys.md with zh/keys.md
  sentence   a sentence, and the rest of its passage
  neighbour  a passage, and the next one

Each row says which document and lines it is from. `likewise adapt FOLDER` makes such pairs,
trains with them and measures whether that helps.
"""

_SHOWN = 100  # characters of a text in an example


@click.command(short_help="Make training pairs from a folder without labels.", epilog=EPILOG)
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="JSONL file for the pairs, - for standard output. [default: only count them]",
)
@click.option("--kinds", metavar="LIST", help="Which pairs to make, separated by commas. [default: all]")
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Most pairs of each kind, drawn at random."
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Of the draw and the choice of sentences.",
)
@click.option(
    "--index",
    "index_folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Take the documents from this index. [default: the one that holds FOLDER, or else the files]",
)
@click.option(
    "--encoder",
    metavar="NAME",
    help="Encoder that passages shall fit, where there is no index. [default: all-MiniLM-L6-v2-zh]",
)
@output_options
def pairs(
    folder: Path,
    output: Path | None,
    kinds: str | None,
    limit: int | None,
    seed: int,
    index_folder: Path | None,
    encoder: str | None,
    format: Format,
) -> None:
    """Find texts in FOLDER that belong together, as `likewise train` reads them."""
    from likewise.embedder import load_encoder
    from likewise.retrieval.pairs.collect import make_pairs
    from likewise.retrieval.pairs.origin import documents_of
    from likewise.retrieval.pairs.records import KINDS

    wanted = [kind.strip() for kind in kinds.split(",")] if kinds else list(KINDS)
    with Progress() as progress:
        origin = documents_of(
            folder,
            index=index_path(index_folder) if index_folder else None,
            encoder=lambda: load_encoder(encoder),
            progress=lambda done, total: progress.show("reading", done=done, total=total),
        )
        with origin as (documents, index):
            found = make_pairs(
                documents,
                kinds=wanted,  # type: ignore[arg-type]  # checked there
                limit=limit,
                seed=seed,
                progress=lambda done, total: progress.show("looking for pairs", done=done, total=total),
            )
        progress.clear()
    if index is not None and index_folder is None:
        note(f"from the index {path_text(str(index))}; likewise index brings it up to date")
    if output is not None and str(output) == "-":
        write_jsonl(pair.to_json() for pair in found.pairs)
        return
    if output is not None:
        write_pairs(found, output)
    if format is not Format.TEXT:
        value = _json(found, output, index)
        if format is Format.JSON:
            write_json(value)
        else:
            write_jsonl([value])
        return
    _print(found, output)


def write_pairs(found: PairSet, path: Path) -> None:
    """Write pairs, one JSON object a line; all of them, or nothing."""
    import json

    from likewise.embedder.cache import write_bytes

    lines = [json.dumps(pair.to_json(), ensure_ascii=False) for pair in found.pairs]
    write_bytes(path, ("\n".join(lines) + "\n").encode())


def _print(found: PairSet, output: Path | None) -> None:
    rows = [("kind", "pairs", "left out")]
    for kind, count in found.counts().items():
        reasons = {
            "repeated": found.repeated[kind],
            "ambiguous": found.ambiguous[kind],
            "over the limit": found.over_limit[kind],
        }
        left = ", ".join(f"{number:,} {reason}" for reason, number in reasons.items() if number)
        rows.append((kind, f"{count:,}", left))
    for line in columns(rows):
        write(line)
    total = f"{count_text(len(found.pairs), 'pair')} from {count_text(found.documents, 'document')}"
    if output is not None:
        write(f"{output}: {total}")
        return
    write(total)
    if sys.stdout.isatty():
        _print_examples(found)
    note("-o FILE writes them; likewise train FILE learns from them")


def _print_examples(found: PairSet) -> None:
    """One pair of each kind, so that a person sees what they are like."""
    from likewise.cli.terminal import clip, one_line, printable

    for kind in found.counts():
        pair = next(pair for pair in found.pairs if pair.kind == kind)
        write(f"\n{kind}  {path_text(pair.source)}:{pair.lines[0]}-{pair.lines[1]}")
        for text in (pair.anchor, pair.positive):
            write("  " + clip(one_line(printable(text)), _SHOWN))


def _json(found: PairSet, output: Path | None, index: Path | None) -> dict[str, Json]:
    """The shape of `pairs --json`."""
    return {
        "version": 1,
        "file": None if output is None else str(output),
        "index": None if index is None else str(index),
        "documents": found.documents,
        "pairs": len(found.pairs),
        "kinds": _by_kind(found.counts()),
        "repeated": _by_kind(found.repeated),
        "ambiguous": _by_kind(found.ambiguous),
        "over_limit": _by_kind(found.over_limit),
    }


def _by_kind(counts: Mapping[Kind, int]) -> dict[str, Json]:
    return {kind: count for kind, count in counts.items() if count}
