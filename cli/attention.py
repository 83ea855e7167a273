"""`likewise attention`: which tokens a model looks at."""

from __future__ import annotations

from pathlib import Path

import click

from likewise.cli.options import OFFLINE
from likewise.cli.output import Format, output_options, write, write_json, write_jsonl
from likewise.cli.training import quiet

EPILOG = """\b
Examples:
  likewise attention "The key that rotates is new."
  likewise attention "The key that rotates is new." -m model --layer 0 --head 1
  likewise attention "The key that rotates is new." --png attention.png

A bidirectional model fills the whole square, a causal one (recipe gpt) the lower triangle.
"""


@click.command(short_help="Show which tokens a model looks at.", epilog=EPILOG)
@click.argument("text", metavar="TEXT")
@click.option(
    "-m",
    "--model",
    default="all-MiniLM-L6-v2-zh",
    show_default=True,
    metavar="DIR",
    help="A model of the BERT family.",
)
@click.option("--layer", type=int, metavar="N", help="From 0. [default: the mean of all]")
@click.option("--head", type=int, metavar="N", help="From 0. [default: the mean of all]")
@click.option(
    "--png", type=click.Path(path_type=Path), metavar="FILE", help="Draw all heads to a PNG instead."
)
@OFFLINE
@output_options
def attention(
    text: str,
    model: str,
    layer: int | None,
    head: int | None,
    png: Path | None,
    offline: bool,
    format: Format,
) -> None:
    """Print how much each token of TEXT (row) takes from each other one (column), in percent."""
    from likewise.embedder.attention import attention_of_text, draw_heat_map, render_text
    from likewise.embedder.hf_export import load_hugging_face
    from likewise.embedder.resolve import resolve
    from likewise.embedder.starting_point import load_tokenizer

    folder = resolve(model, offline=True if offline else None).directory
    with quiet():
        matrices = attention_of_text(
            load_hugging_face(folder, offline=True).encoder, load_tokenizer(folder), text
        )
    if png is not None:
        draw_heat_map(matrices, png, layer=layer)
        return
    matrix = matrices.mean(layer, head)
    if format is Format.TEXT:
        write(render_text(matrix, matrices.tokens))
        return
    rows = [[round(float(value), 6) for value in row] for row in matrix]
    if format is Format.JSON:
        write_json({"version": 1, "tokens": list(matrices.tokens), "weights": [list(row) for row in rows]})
    else:
        write_jsonl(
            {"version": 1, "token": token, "weights": list(row)}
            for token, row in zip(matrices.tokens, rows, strict=True)
        )
