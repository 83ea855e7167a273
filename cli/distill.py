"""`likewise distill`: a student with fewer layers learns what its teacher would have said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from likewise.cli.output import Format, output_options
from likewise.cli.training import (
    Watch,
    finish,
    masking,
    pretrain_settings,
    quiet,
    run_options,
    training_settings,
)

EPILOG = """\b
Examples:
  likewise distill model ~/handbook --layers 3 --minutes 30 -o student
  likewise distill all-MiniLM-L6-v2 ~/handbook --minutes 30 -o student

A teacher that fills masks is distilled as DistilBERT was; a sentence encoder, which does
not, hands on the vectors of its tokens, and its student is a sentence encoder again.
"""


@click.command(short_help="Train a smaller model to do what a larger one does.", epilog=EPILOG)
@click.argument("teacher", metavar="TEACHER")
@click.argument("corpus", nargs=-1, required=True, metavar="CORPUS...", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("student"),
    show_default=True,
    metavar="DIR",
    help="Where the student goes.",
)
@click.option(
    "--layers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Layers of the student. [default: half of the teacher's]",
)
@run_options
@output_options
def distill(
    teacher: str,
    corpus: tuple[Path, ...],
    output: Path,
    layers: int | None,
    run: dict[str, Any],
    format: Format,
) -> None:
    """Distil TEACHER, a model of the BERT family, on text, into a student with some of its layers."""
    from likewise.cli.corpus import CorpusFiles
    from likewise.embedder.distributed import world
    from likewise.embedder.masking import Masking
    from likewise.embedder.pretrain import PretrainSettings, pretrain

    settings = PretrainSettings(
        training=training_settings(run, learning_rate=5e-4),
        teacher=teacher,
        layers=layers,
        masking=masking(run, Masking()),
        **pretrain_settings(run),
    )
    files = CorpusFiles(corpus)
    watch = Watch()
    with world() as processes, quiet(), watch.bar:
        result = pretrain(
            files.documents, output, settings, source=files.fingerprint, listeners=[watch], world=processes
        )
        leads = processes.leads
    if leads:
        finish(result, format)
