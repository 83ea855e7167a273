"""`likewise adapt`: train the encoder of an index on its own documents, and use it if that helps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.options import DEVICE
from likewise.cli.output import (
    Format,
    columns,
    count_text,
    note,
    output_options,
    warn,
    write,
    write_json,
    write_jsonl,
)
from likewise.cli.terminal import path_text
from likewise.cli.training import Watch, quiet
from likewise.errors import IndexNotFound

if TYPE_CHECKING:
    from likewise.index.index import Index
    from likewise.retrieval.adaptation.decision import Decision
    from likewise.retrieval.adaptation.records import Adaptation

EPILOG = """\b
Examples:
  likewise adapt ~/handbook
  likewise adapt ~/handbook --minutes 30 --dry-run
  likewise adapt ~/handbook -o handbook-encoder --json

Pairs are made from 60% of the documents (`likewise pairs FOLDER` shows what kinds there are),
and hard negatives are found in the index. Questions about the other documents, searched in a copy
of the index that lacks them, choose among the trained encoders, and further ones give the verdict.
The index changes only if dense search gains for sure, gains more than feedback on the query's
vector does without any training, and hybrid search does not lose. Otherwise nothing changes.

Ctrl-C leaves the index as it was; the same command goes on with the training.
"""


@click.command(short_help="Train an index's encoder on its documents, if that helps.", epilog=EPILOG)
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the new encoder goes. [default: a folder inside the index]",
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    metavar="X",
    help="Time for training; it stops earlier if held-out pairs get no nearer.",
)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    metavar="N",
    help="Train N steps instead, the same ones every time.",
)
@click.option(
    "--questions",
    type=click.IntRange(min=2),
    default=450,
    show_default=True,
    metavar="N",
    help="Questions about held-out documents, a third to choose by and the rest for the verdict.",
)
@click.option(
    "--pairs",
    "most_pairs",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Most pairs of each kind to learn from.",
)
@click.option("--lr", type=float, default=2e-5, show_default=True, metavar="X", help="Peak learning rate.")
@click.option(
    "--batch-size",
    type=click.IntRange(min=2),
    default=32,
    show_default=True,
    metavar="N",
    help="Rows in a batch.",
)
@DEVICE
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="Of everything that is drawn."
)
@click.option("--dry-run", is_flag=True, help="Train and measure, but leave the index as it is.")
@output_options
def adapt(
    folder: Path,
    output: Path | None,
    minutes: float,
    steps: int | None,
    questions: int,
    most_pairs: int,
    lr: float,
    batch_size: int,
    device: str,
    seed: int,
    dry_run: bool,
    format: Format,
) -> None:
    """Adapt the encoder of FOLDER's index to what the documents say, without any labels."""
    from likewise.index.report import SyncInterrupted
    from likewise.retrieval.adaptation.adapt import adapt as run
    from likewise.retrieval.adaptation.candidates import Recipe
    from likewise.retrieval.adaptation.records import AdaptSettings

    settings = AdaptSettings(
        recipe=Recipe(
            minutes=None if steps is not None else minutes,
            steps=steps,
            learning_rate=lr,
            batch_size=batch_size,
            device=device,
            seed=seed,
        ),
        questions=questions,
        pairs=most_pairs,
        seed=seed,
    )
    watch = Watch()
    with _index_of(folder) as index, quiet(), watch.bar as progress:
        try:
            done = run(
                index,
                settings,
                output=output,
                dry_run=dry_run,
                progress=lambda phase, at, total: progress.show(phase, done=at, total=total),
                listeners=[watch],
            )
        except SyncInterrupted:
            progress.clear()
            warn("stopped while the index was embedded anew: the old vectors answer; run the command again")
            raise
        except KeyboardInterrupt:
            progress.clear()
            warn("stopped; the index is as it was")
            raise
        progress.clear()
        if done.status == "interrupted":
            warn(
                f"stopped at step {done.steps:,}; the index is as it was,"
                " and the same command goes on from there"
            )
            raise click.exceptions.Exit(130)
        if format is Format.JSON:
            write_json(done.to_json())
        elif format is Format.JSONL:
            write_jsonl([done.to_json()])
        else:
            _print(done, index, dry_run=dry_run)


def _index_of(folder: Path) -> Index:
    """The index of a folder, or the one that is named itself."""
    from likewise.index.catalogue import CATALOGUE_FILE
    from likewise.index.index import INDEX_FOLDER, Index

    found = folder if folder.name == INDEX_FOLDER else folder / INDEX_FOLDER
    if not (found / CATALOGUE_FILE).is_file():
        what = "none in" if folder.is_dir() else "no folder"
        raise IndexNotFound(
            f"expected a folder with an index, found {what} {folder}",
            remedy=f"likewise index {folder}",
        )
    return Index.open(found)


def _print(done: Adaptation, index: Index, *, dry_run: bool) -> None:
    learned = ", ".join(f"{count:,} {kind}" for kind, count in done.pairs.items())
    write(
        f"learned from {count_text(sum(done.pairs.values()), 'pair')} ({learned}; {done.mined:,} with a hard"
        f" negative) in {count_text(done.steps, 'step')}"
    )
    if done.choosing:
        from likewise.retrieval.adaptation.trial import METRIC
        from likewise.retrieval.evaluation.verdicts import decimal

        means = "; ".join(f"{name} {decimal(value)}" for name, value in done.choosing.items())
        write(f"to choose by, {METRIC}: {means}")
    if done.decision is not None:
        for line in _table(done.decision):
            write(line)
    if done.status == "adapted":
        write(f"adapted: {done.reason}")
        write(f"{path_text(str(index.folder))} answers with {path_text(str(done.encoder))} now")
        return
    if done.encoder is not None and dry_run:
        write(f"worth it: {done.reason}")
        note(f"nothing changed; likewise index --encoder {path_text(str(done.encoder))} --reembed uses it")
        return
    write(f"left alone: {done.reason}")


def _table(decision: Decision) -> list[str]:
    from likewise.retrieval.adaptation.decision import signed
    from likewise.retrieval.adaptation.trial import METRIC
    from likewise.retrieval.evaluation.verdicts import interval_text

    return columns(
        [
            (f"{METRIC}, {decision.questions} questions", "value", "gain"),
            ("dense, as it was", interval_text(decision.before), ""),
            ("dense with feedback", "", signed(decision.free.difference)),
            ("dense, adapted", interval_text(decision.after), signed(decision.gain.difference)),
            *((f"- {kind} questions", "", signed(gained)) for kind, gained in decision.kinds.items()),
            ("hybrid, adapted", "", signed(decision.hybrid.difference)),
        ]
    )
