"""`likewise train`: from pairs of texts to a better encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from likewise.cli.output import Format, note, output_options, warn, write, write_json, write_jsonl
from likewise.cli.train_data import data_sets, prompts_of, rankings_of
from likewise.cli.train_options import train_options
from likewise.cli.training import Watch, check_output, quiet
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.embedder.siamese.train import SiameseResult
    from likewise.index.records import Json

EPILOG = """\b
Examples:
  likewise train questions.jsonl -o model
  likewise train stsb-train.csv --loss cosent --score-range 0 5 --eval stsb-dev.csv --epochs 3 --average 0.35
  likewise train nli.tsv --loss softmax --eval cosent=stsb-dev.csv
  likewise train ranking=faq.csv cosent=stsb.csv@0.5 --column faq:anchor=claim
  likewise train claims.jsonl '20*distillation=any.txt' --teacher all-MiniLM-L6-v2-zh --measure cosine
  likewise train faq.csv --query-prompt "query: " --passage-prompt "passage: "
  likewise train faq.csv --evaluate-ranking scifact
  likewise train big.jsonl --batch-size 1024 --part-tokens 4096

DATA is a CSV, TSV, JSONL or Parquet file (also .gz), a folder that the datasets library
saved, or hub:NAME; for losses over single texts also a .txt file with one on each line.
LOSS=DATA gives it a loss of its own, FACTOR*LOSS=DATA one that counts so much more,
DATA@WEIGHT so many passes per epoch, DATA#SPLIT a split other than train. Columns go by
name: anchor (or query, question, sentence1, premise), positive (or answer, passage,
sentence2, hypothesis), negative_1 ..., and label (or score). What is said of a column
holds for all data, or, with DATA: in front, for the file of that name (without its suffix).

A model that did not get better on held-out rows is not saved as one: the folder then
has the weights of the base, unless --keep-worse is given.
"""


@click.command(short_help="Train an encoder on pairs of texts.", epilog=EPILOG)
@click.argument("data", nargs=-1, required=True, metavar="DATA...")
@train_options
@output_options
def train(data: tuple[str, ...], format: Format, **options: Any) -> None:
    """Train an encoder so that texts which belong together get similar vectors."""
    from likewise.embedder.distributed import world
    from likewise.embedder.run_lock import only_run
    from likewise.embedder.siamese.settings import SiameseSettings
    from likewise.embedder.siamese.train import train_siamese
    from likewise.embedder.training_settings import TrainingSettings

    check_output(options["output"], options["encoder"], options["teacher"])
    budget = {name: options[name] for name in ("steps", "epochs", "minutes") if options[name] is not None}
    if len(budget) > 1:
        raise UsageError(f"expected one of --steps, --epochs and --minutes, found {len(budget)}")
    same = ("teacher", "encoder", "pooling", "dense", "max_tokens", "dropout", "batch_size", "part_tokens")
    more = ("freeze", "cache_frozen", "blend", "watch", "keep_worse", "skip_empty", "device", "tensorboard")
    settings = SiameseSettings(
        training=TrainingSettings(
            **(budget or {"epochs": 1.0}),
            learning_rate=options["lr"],
            warmup=options["warmup"],
            average=options["average"],
            accumulation=options["accumulate"],
            precision=options["precision"],
            seed=options["seed"],
            evaluate_every=options["evaluate_every"],
            patience=options["patience"],
        ),
        held_out=options["share"],
        prompts=prompts_of(options),
        offline=True if options["offline"] else None,
        **{name: options[name] for name in (*same, *more)},
    )
    sets, apart = data_sets(data, options["held_out"], options)
    rankings = rankings_of(
        options["ranked"], split=options["ranking_split"], most=options["ranking_documents"]
    )
    watch = Watch()
    work = options["output"] / "training"
    with world() as processes, only_run(work, leads=processes.leads), quiet(), watch.bar:
        result = train_siamese(
            sets,
            options["output"],
            settings,
            held_out=apart,
            rankings=rankings,
            listeners=[watch],
            world=processes,
        )
        leads = processes.leads
    if leads:
        finish_training(result, format)


def finish_training(result: SiameseResult, format: Format) -> None:
    """Print how a run ended; an interrupted one exits with status 130."""
    training, verdict = result.training, result.verdict
    if training.status == "interrupted":
        warn(f"stopped at step {training.step:,}; it is saved, and the same command goes on from there")
        raise click.exceptions.Exit(130)
    for notice in result.data.notices:
        note(notice)
    if format is Format.TEXT:
        write(
            f"{result.folder}: {training.status} after {training.step:,} steps, "
            f"{training.epochs:.2f} epochs, "
            f"{training.seconds / 60:.1f} minutes, {training.precision}"
        )
        for c in verdict.comparisons:
            write(
                f"{c.metric}: {c.before.value:.4f} -> {c.after.value:.4f}, gain {c.gain.value:+.4f} "
                f"[{c.gain.low:+.4f}, {c.gain.high:+.4f}]"
            )
        write(verdict.sentence())
        if result.kept == "base":
            warn("the folder has the weights of the base; --keep-worse saves the trained ones")
        return
    value: dict[str, Json] = {
        "version": 1,
        "folder": str(result.folder),
        "status": training.status,
        "steps": training.step,
        "epochs": round(training.epochs, 4),
        "seconds": round(training.seconds, 3),
        "precision": training.precision,
        "outcome": verdict.outcome,
        "kept": result.kept,
        "metric": verdict.metric,
        "metrics": {
            c.metric: {"before": list(c.before), "after": list(c.after), "gain": list(c.gain)}
            for c in verdict.comparisons
        },
        "rows": dict(result.data.rows),
        "held_out": dict(result.data.held_out),
        "texts": result.data.texts,
        "truncated": result.data.truncated,
        "shared": result.data.shared,
    }
    if format is Format.JSON:
        write_json(value)
    else:
        write_jsonl([value])
