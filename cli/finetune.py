"""`likewise finetune`: from labelled files to a model that classifies, compares, tags or answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from likewise.cli.finetune_options import label_options, run_options
from likewise.cli.output import Format, columns, note, output_options, warn, write, write_json, write_jsonl
from likewise.cli.training import Watch, check_output, quiet
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.embedder.heads.finetune import FinetuneResult
    from likewise.embedder.heads.finetune_settings import FinetuneSettings
    from likewise.embedder.heads.readers import Reading

EPILOG = """\b
Examples:
  likewise finetune classify reviews/
  likewise finetune pair snli.tsv
  likewise finetune tag wnut17/
  likewise finetune qa squad.json

DATA is a file (CSV, TSV, JSON lines, Parquet; CoNLL for tag, SQuAD's JSON for qa; all but Parquet also
with .gz), a folder with files named train, dev and test, a folder that the datasets library saved, or
hf:NAME of a data set on the hub. Without a dev file, a tenth of the training data is held out. A run that
is stopped with Ctrl-C is saved; the same command goes on from there.
"""


@click.group(short_help="Teach an encoder a task from labelled examples.", epilog=EPILOG)
def finetune() -> None:
    """Put a small head on an encoder and train both, or the head alone, on labelled examples.

    The result loads with likewise predict, and with the AutoModelFor... classes of transformers.
    """


@finetune.command(
    short_help="One text, one label (or several, or a number).",
    epilog="""\b
Examples:
  likewise finetune classify imdb/ -o sentiment
  likewise finetune classify imdb/train.csv --test imdb/test.csv --try-lr 2e-5,3e-5,5e-5
  likewise finetune classify topics.jsonl --multi-label
  likewise finetune classify imdb/ --freeze
""",
)
@run_options
@label_options
@click.option("--multi-label", is_flag=True, help="A text may have several labels, or none.")
@output_options
def classify(run: dict[str, Any], labels: dict[str, Any], format: Format, multi_label: bool) -> None:
    """Learn to label texts."""
    if multi_label and labels["regression"]:
        raise UsageError("expected --multi-label or --regression, found both")
    _finetune(run, format, "multilabel" if multi_label else _one_answer(labels), labels)


@finetune.command(
    short_help="Two texts, one label or a number.",
    epilog="""\b
Examples:
  likewise finetune pair snli.tsv -o entailment
  likewise finetune pair stsb-train.csv --dev stsb-dev.csv --regression
""",
)
@run_options
@label_options
@output_options
def pair(run: dict[str, Any], labels: dict[str, Any], format: Format) -> None:
    """Learn what holds between two texts: paraphrase, entailment, similarity."""
    _finetune(run, format, _one_answer(labels), labels, pair=True)


@finetune.command(
    short_help="A tag for every word: names of people, places, products.",
    epilog="""\b
Examples:
  likewise finetune tag wnut17/ -o names
  likewise finetune tag train.conll --test test.conll --epochs 5 --lr 5e-5
""",
)
@run_options
@output_options
def tag(run: dict[str, Any], format: Format) -> None:
    """Learn to mark entities, from CoNLL files or lists of words and tags (BIO or BIOES)."""
    _finetune(run, format, "tagging")


@finetune.command(
    short_help="Answers that stand in a text.",
    epilog="""\b
Examples:
  likewise finetune qa train-v2.0.json --test dev-v2.0.json -o reader
  likewise finetune qa drcd.json.gz --model zh-encoder
""",
)
@run_options
@output_options
def qa(run: dict[str, Any], format: Format) -> None:
    """Learn to find the answer to a question in a text, or that there is none, from SQuAD-style data."""
    _finetune(run, format, "questions")


def _one_answer(labels: dict[str, Any]) -> str:
    return "regression" if labels["regression"] else "classification"


def _finetune(
    run: dict[str, Any],
    format: Format,
    kind: str,
    labels: dict[str, Any] | None = None,
    *,
    pair: bool = False,
) -> None:
    from likewise.embedder.heads.dataset import load_data
    from likewise.embedder.heads.finetune import finetune as run_finetuning
    from likewise.embedder.run_lock import only_run

    check_output(run["output"], run["model"])
    reading = _reading(run, kind, labels, pair)
    settings = _settings(run, reading, labels)
    watch = Watch()
    with only_run(run["output"] / "training"), quiet(), watch.bar:
        data = load_data(
            run["data"],
            reading,
            dev=run["dev"],
            test=run["test"],
            dev_share=run["dev_share"],
            seed=run["seed"],
            limit=run["limit"],
        )
        for name, fact in data.facts.items():
            note(f"{name}: {fact}")
        for message in data.notes:
            warn(message)
        result = run_finetuning(
            data, run["output"], settings, listeners=[watch], say=note, progress=watch.embedding
        )
    _finish(result, format)


def _reading(run: dict[str, Any], kind: Any, labels: dict[str, Any] | None, pair: bool) -> Reading:
    """How the options want the files to be read."""
    from likewise.embedder.heads.readers import Reading

    offline = True if run["offline"] else None
    if labels is None:
        return Reading(kind=kind, offline=offline)
    header = labels["header"]
    return Reading(
        kind=kind,
        pair=pair,
        text_columns=labels["text_column"],
        label_columns=labels["label_column"],
        header=tuple(name.strip() for name in header.split(",")) if header else (),
        skip_labels=labels["skip_label"],
        skip_unlabelled=labels["skip_unlabelled"],
        offline=offline,
    )


def _settings(run: dict[str, Any], reading: Reading, labels: dict[str, Any] | None) -> FinetuneSettings:
    """What the options want to be trained, and how.

    Raises:
        UsageError: They do not fit together.
    """
    from likewise.embedder.heads.finetune_settings import FinetuneSettings
    from likewise.embedder.training_settings import TrainingSettings

    frozen = run["freeze"]
    if labels and labels["head"] is not None and not frozen:
        raise UsageError(f"--head {labels['head']} is for a frozen encoder", remedy="add --freeze")
    if frozen and run["freeze_layers"]:
        raise UsageError("expected --freeze or --freeze-layers, found both")
    kind: Any = ((labels["head"] or "probe") if labels else "tokens") if frozen else None
    training = TrainingSettings(
        epochs=run["epochs"] or (20.0 if frozen else 3.0),
        learning_rate=(1e-3 if frozen else 3e-5) if run["lr"] is None else run["lr"],
        save_every=500,
        accumulation=run["accumulate"],
        **{
            name: run[name]
            for name in ("warmup", "weight_decay", "layer_decay", "average", "precision", "seed", "patience")
        },
    )
    return FinetuneSettings(
        reading=reading,
        training=training,
        batch_size=run["batch"],
        long_text=labels["long_text"] if labels else "windows",
        balanced=bool(labels and labels["class_weights"]),
        rates=_rates(run["try_lr"]),
        frozen=kind,
        offline=reading.offline,
        **{
            name: run[name]
            for name in ("model", "length", "overlap", "seeds", "freeze_layers", "lora", "device")
        },
    )


def _rates(text: str | None) -> tuple[float, ...]:
    if text is None:
        return ()
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(
            f"expected learning rates separated by commas, found {text!r}", remedy="--try-lr 2e-5,3e-5,5e-5"
        ) from error


def _finish(result: FinetuneResult, format: Format) -> None:
    """Print how a run ended; an interrupted one exits with status 130."""
    from likewise.embedder.heads.writing import summary

    if result.status == "interrupted":
        warn("stopped; what was trained is saved, and the same command goes on from there")
        raise click.exceptions.Exit(130)
    if format is Format.JSON:
        write_json(summary(result))
        return
    if format is Format.JSONL:
        write_jsonl([summary(result)])
        return
    write(f"{result.folder}: {result.status}")
    if len(result.runs) > 1:
        for number, run in enumerate(result.runs):
            kept = "  kept" if number == result.best else ""
            scores = ", ".join(f"{name} {value:.4f}" for name, value in run.dev.items())
            write(f"learning rate {run.rate:g}, seed {run.seed}: dev {scores}{kept}")
    for report in result.reports:
        write(f"{report.split}, {report.examples:,} examples, with 95% intervals:")
        rows = [
            (
                f"  {name.replace('_', ' ')}",
                f"{value:.4f}",
                "[{:.4f}, {:.4f}]".format(*report.intervals[name]),
            )
            for name, value in report.metrics.items()
        ]
        rows += [(f"  {name}", f"{value:.4f}", "") for name, value in list(report.by_label.items())[:20]]
        for line in columns(rows):
            write(line)
    for name, (mean, deviation) in result.spread.items():
        write(f"over {len(result.runs)} runs, {name}: {mean:.4f} ± {deviation:.4f}")
    last = result.reports[-1] if result.reports else None
    if last is not None and last.mistakes:
        write(f"hardest errors: {result.folder / f'errors-{last.split}.jsonl'}")
    write(f'use it: likewise predict {result.folder} "..."')
