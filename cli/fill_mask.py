"""`likewise fill-mask`: what a model thinks stands behind a mask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from likewise.cli.options import OFFLINE
from likewise.cli.output import Format, columns, output_options, screen, write, write_json, write_jsonl
from likewise.cli.terminal import one_line
from likewise.cli.training import quiet

if TYPE_CHECKING:
    from likewise.index.records import Json

EPILOG = """\b
Examples:
  likewise fill-mask "Rotate the signing [MASK] once a year." -m model
  likewise fill-mask "簽署[MASK]鑰每年輪替一次。" -m model -k 3 --json

[MASK] is understood whatever the model's own mask token is.
"""


@click.command("fill-mask", short_help="Guess what stands behind [MASK].", epilog=EPILOG)
@click.argument("text", metavar="TEXT")
@click.option("-m", "--model", required=True, metavar="DIR", help="A model that fills masks.")
@click.option(
    "-k",
    "--k",
    "k",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    metavar="N",
    help="Guesses per mask.",
)
@OFFLINE
@output_options
def fill_mask(text: str, model: str, k: int, offline: bool, format: Format) -> None:
    """Print the likeliest tokens for each [MASK] in TEXT, with their probabilities."""
    from likewise.embedder.fill_mask import MaskFiller

    with quiet():
        masks = MaskFiller(model, offline=True if offline else None).fill(text, k=k)
    if format is Format.TEXT:
        for number, fills in enumerate(masks, start=1):
            if len(masks) > 1:
                write(f"mask {number}")
            rows = [(f"{fill.probability:.4f}", one_line(fill.token), one_line(fill.text)) for fill in fills]
            for line in columns(rows, width=screen().width if screen().is_terminal else None):
                write(line)
        return
    guesses: list[list[dict[str, Json]]] = [
        [
            {"token": f.token, "id": f.token_id, "probability": round(f.probability, 6), "text": f.text}
            for f in fills
        ]
        for fills in masks
    ]
    if format is Format.JSON:
        write_json({"version": 1, "text": text, "masks": [list(fills) for fills in guesses]})
    else:
        write_jsonl(
            {"version": 1, "mask": number, **fill} for number, fills in enumerate(guesses) for fill in fills
        )
