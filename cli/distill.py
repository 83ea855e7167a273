"""`likewise distill`: a student with fewer layers, none, or another language learns what its teacher says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from likewise.cli.distill_options import check_options
from likewise.cli.distill_parallel import distill_parallel
from likewise.cli.distill_static import distill_static
from likewise.cli.output import Format, output_options
from likewise.cli.training import (
    Watch,
    check_output,
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
  likewise distill all-MiniLM-L6-v2-zh --parallel en-zh.tsv --epochs 2 -o bilingual

A teacher that fills masks is distilled as DistilBERT was; a sentence encoder, which does
not, hands on the vectors of its tokens, and its student is a sentence encoder again.

A static student has no layers, only a vector for each token, and a text is their mean:
far faster than any other, and less good. Without CORPUS it comes of the tokens alone.

With --parallel, the files hold sentences and their translations (columns anchor and
positive, or en and another; `likewise pairs` writes such files). The student's vocabulary
grows by the characters it lacks, and a translation learns the vector that the teacher
gives the original.
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
    "--parallel", is_flag=True, help="Learn from sentences and their translations, which CORPUS then holds."
)
@click.option(
    "--student", metavar="NAME", help="Parallel: encoder that learns. [default: a copy of the teacher]"
)
@click.option(
    "--rows-only",
    is_flag=True,
    help="Parallel: train new tokens alone, so that texts without them keep their vectors exactly.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="ROLE=NAME",
    help="Parallel: column of the anchor or the positive, if it has another name; ROLE= ignores one. "
    "Repeatable.",
)
@click.option(
    "--batch-size",
    type=click.IntRange(min=2),
    default=64,
    show_default=True,
    metavar="N",
    help="Parallel: pairs in a batch.",
)
@click.option(
    "--hold",
    type=click.FloatRange(min=0),
    default=40.0,
    show_default=True,
    metavar="X",
    help="Parallel: weight of the loss that keeps the vectors of the originals where they are.",
)
@click.option(
    "--dropout",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Parallel: values dropped in training.",
)
@click.option(
    "--blend",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Parallel: share of the student to begin with in the final weights, against forgetting.",
)
@click.option(
    "--keep-worse",
    is_flag=True,
    help="Parallel: save the trained student even if it is no better on held-out pairs.",
)
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
    help="Static, parallel: own vectors for the N most frequent words that the teacher spells in pieces.",
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
    parallel: bool,
    student: str | None,
    rows_only: bool,
    columns: tuple[str, ...],
    batch_size: int,
    hold: float,
    dropout: float,
    blend: float,
    keep_worse: bool,
    run: dict[str, Any],
    format: Format,
) -> None:
    """Distil TEACHER, a model of the BERT family, into a student: smaller, or of another language."""
    from likewise.cli.corpus import CorpusFiles
    from likewise.embedder.distributed import world
    from likewise.embedder.masking import Masking
    from likewise.embedder.pretrain import PretrainSettings, pretrain
    from likewise.embedder.run_lock import only_run

    check_options(static=static, parallel=parallel)
    check_output(output, teacher, student)
    if static:
        options = {"dimension": dimension, "words": words, "texts": texts}
        distill_static(teacher, corpus, output, run, options, format)
        return
    if parallel:
        more: dict[str, Any] = {
            "student": student,
            "rows_only": rows_only,
            "columns": columns,
            "batch_size": batch_size,
            "hold": hold,
            "dropout": dropout,
            "blend": blend,
            "keep_worse": keep_worse,
            "words": words,
        }
        distill_parallel(teacher, corpus, output, run, more, format)
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
    work = output / "training"
    with world() as processes, only_run(work, leads=processes.leads), quiet(), watch.bar:
        result = pretrain(
            files.documents, output, settings, source=files.fingerprint, listeners=[watch], world=processes
        )
        leads = processes.leads
    if leads:
        finish(result, format)
