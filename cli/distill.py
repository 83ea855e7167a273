"""`likewise distill`: a smaller student, with fewer layers or none, learns what its teacher says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from likewise.cli.distill_static import check_options, distill_static
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
from likewise.errors import UsageError

EPILOG = """\b
Examples:
  likewise distill model ~/handbook --layers 3 --minutes 30 -o student
  likewise distill all-MiniLM-L6-v2 ~/handbook --to-layers 3 --minutes 30 -o student
  likewise distill all-MiniLM-L6-v2 ~/handbook --static -o fast
  likewise distill all-MiniLM-L6-v2 --static

A teacher that fills masks is distilled as DistilBERT was; a sentence encoder, which does
not, hands on the vectors of its tokens, and its student is a sentence encoder again.

A static student has no layers, only a vector for each token, and a text is their mean:
far faster than any other, and less good. Without CORPUS it comes of the tokens alone.
"""


@click.command(short_help="Train a smaller model to do what a larger one does.", epilog=EPILOG)
@click.argument("teacher", metavar="TEACHER")
@click.argument("corpus", nargs=-1, metavar="[CORPUS...]", type=click.Path(path_type=Path))
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
    "--to-layers",
    "--layers",
    "layers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Layers of the student. [default: half of the teacher's]",
)
@click.option("--static", is_flag=True, help="Make a student without layers: a vector for each token.")
@click.option(
    "--dimension",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    metavar="N",
    help="Static: length of a vector.",
)
@click.option(
    "--words",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Static: own vectors for the N most frequent words of CORPUS that the teacher spells in pieces.",
)
@click.option(
    "--texts",
    type=click.IntRange(min=2),
    default=20_000,
    show_default=True,
    metavar="N",
    help="Static: most passages and sentences of CORPUS that the teacher is asked about.",
)
@run_options
@output_options
def distill(
    teacher: str,
    corpus: tuple[Path, ...],
    output: Path,
    layers: int | None,
    static: bool,
    dimension: int,
    words: int,
    texts: int,
    run: dict[str, Any],
    format: Format,
) -> None:
    """Distil TEACHER, a model of the BERT family, on text, into a student with some of its layers or none."""
    from likewise.cli.corpus import CorpusFiles
    from likewise.embedder.distributed import world
    from likewise.embedder.masking import Masking
    from likewise.embedder.pretrain import PretrainSettings, pretrain

    check_options(static)
    if static:
        options = {"dimension": dimension, "words": words, "texts": texts}
        distill_static(teacher, corpus, output, run, options, format)
        return
    if not corpus:
        raise UsageError("expected a CORPUS to learn on, found none", remedy="name files or folders")
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
