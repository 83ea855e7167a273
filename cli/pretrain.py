"""`likewise pretrain`: from text to an encoder, new or continued."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

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

EPILOG = """\b
Examples:
  likewise pretrain ~/handbook --recipe roberta --size mini --minutes 30 -o model
  likewise pretrain corpus.txt --recipe electra --epochs 3 --length 256
  likewise pretrain ~/handbook --init all-MiniLM-L6-v2-zh --epochs 2 -o adapted
  torchrun --nproc-per-node 2 -m likewise pretrain corpus --accumulate 2

A run that is stopped with Ctrl-C is saved; the same command goes on from there.
The folder ends as a model that AutoModel, and likewise itself, can load.
"""


@click.command(short_help="Train an encoder on text, from scratch or from another.", epilog=EPILOG)
@click.argument("corpus", nargs=-1, required=True, metavar="CORPUS...", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("model"),
    show_default=True,
    metavar="DIR",
    help="Where the model goes.",
)
@click.option(
    "--recipe",
    type=click.Choice(["bert", "roberta", "albert", "electra", "gpt"]),
    help="How to train a new model. [default: roberta]",
)
@click.option(
    "--size",
    metavar="NAME",
    help="Shape of a new model: tiny, mini, small, minilm, bert-base and others. [default: mini]",
)
@click.option(
    "--init",
    metavar="MODEL",
    help="Continue this encoder with masked language modelling, with its own tokenizer.",
)
@click.option("--tokenizer", metavar="DIR", help="Tokenizer of a new model. [default: one is trained]")
@click.option(
    "--vocab-size",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens in a vocabulary that is trained. [default: 8000, or what the text supports]",
)
@run_options
@output_options
def pretrain(
    corpus: tuple[Path, ...],
    output: Path,
    recipe: str | None,
    size: str | None,
    init: str | None,
    tokenizer: str | None,
    vocab_size: int | None,
    run: dict[str, Any],
    format: Format,
) -> None:
    """Train an encoder on the text of files and folders, in any format that an index reads."""
    from likewise.cli.corpus import CorpusFiles
    from likewise.embedder.distributed import world
    from likewise.embedder.masking import Masking
    from likewise.embedder.pretrain import PretrainSettings
    from likewise.embedder.pretrain import pretrain as run_pretraining
    from likewise.embedder.recipes import recipe as recipe_named
    from likewise.embedder.run_lock import only_run
    from likewise.embedder.vocabulary import VocabularySettings
    from likewise.errors import UsageError

    check_output(output, init)
    if init is not None and (recipe or size):
        raise UsageError("--init continues a model as it is, but --recipe or --size is given")
    chosen = recipe_named(recipe or "roberta")
    default = Masking() if init is not None else chosen.masking
    vocabulary = (
        VocabularySettings(size=8_000, shortfall="accept")
        if vocab_size is None
        else VocabularySettings(size=vocab_size)
    )
    settings = PretrainSettings(
        training=training_settings(run, learning_rate=5e-5 if init else 5e-4),
        recipe=chosen.name,
        size=size or "mini",
        init=init,
        tokenizer=tokenizer,
        vocabulary=vocabulary,
        masking=masking(run, default),
        **pretrain_settings(run),
    )
    files = CorpusFiles(corpus)
    watch = Watch()
    work = output / "training"
    with world() as processes, only_run(work, leads=processes.leads), quiet(), watch.bar:
        result = run_pretraining(
            files.documents, output, settings, source=files.fingerprint, listeners=[watch], world=processes
        )
        leads = processes.leads
    if leads:
        finish(result, format)
