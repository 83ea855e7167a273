"""Fine-tuning against the Hugging Face Trainer: the same model, data, batch, epochs, rate and seed.

Both train a fresh `AutoModelForSequenceClassification` of the default encoder on the same examples and score
the same test examples. The peer is used as its documentation shows: `DataCollatorWithPadding`, AdamW, linear
schedule, and once more with its own grouping by length. A head on frozen vectors is reported beside.

    python benchmarks/finetune.py --set sst2 --limit 2000 --epochs 1
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _measure import need

SETS: dict[str, dict[str, Any]] = {
    "sst2": {"data": ("sst2",)},
    "mr-polarity": {"data": ("mr-polarity", "mr.tsv.gz"), "test_share": 0.1},
    "mrpc": {"data": ("mrpc",), "pair": True, "columns": ("#1 String", "#2 String")},
    "snli": {"data": ("snli", "snli-dev.tsv.gz"), "test": ("snli", "snli-test.tsv.gz"), "pair": True},
    "wnut17": {"data": ("wnut17",), "kind": "tagging"},
    "xquad": {"data": ("xquad", "xquad.en.json.gz"), "kind": "questions", "test_share": 0.2},
    "xquad-zh": {"data": ("xquad", "xquad.zh.json.gz"), "kind": "questions", "test_share": 0.2},
}


def load(name: str, limit: int | None, test_limit: int | None) -> tuple[Any, Any]:
    """Reading and data of a set; a test part is held out where it has none."""
    from dataclasses import replace

    from likewise.embedder.heads.data import QuestionExample, grouped_split, pick, stratified_split
    from likewise.embedder.heads.dataset import load_data
    from likewise.embedder.heads.readers import Reading

    facts = SETS[name]
    reading = Reading(
        kind=facts.get("kind", "classification"),
        pair=facts.get("pair", False),
        text_columns=facts.get("columns", ()),
        skip_labels=("-",),
    )
    test = str(need(*facts["test"])) if "test" in facts else None
    data = load_data(str(need(*facts["data"])), reading, test=test, dev_share=0)
    if "test_share" in facts:
        if isinstance(data.train[0], QuestionExample):  # whole articles, so that no context is in both parts
            titles = [example.title for example in data.train]
            kept, held = grouped_split(titles, facts["test_share"], seed=0)
        else:
            labels = [getattr(example, "label", None) for example in data.train]
            kept, held = stratified_split(labels, facts["test_share"], seed=0)
        data = replace(data, train=pick(data.train, kept), test=pick(data.train, held))
    elif not data.test:
        data = replace(data, test=data.dev)
    # The order of a file may follow the label.
    order = np.random.default_rng(0).permutation(len(data.train))[:limit].tolist()
    return reading, replace(data, train=pick(data.train, order), dev=[], test=data.test[:test_limit])


def ours(
    reading: Any, data: Any, folder: Path, options: argparse.Namespace, frozen: str | None
) -> tuple[float, Any]:
    """Seconds of training, and the report on the test part."""
    from likewise.embedder.heads.finetune import FinetuneSettings, finetune
    from likewise.embedder.training_settings import TrainingSettings

    training = TrainingSettings(
        epochs=20.0 if frozen else options.epochs,
        learning_rate=1e-3 if frozen else options.lr,
        warmup=0.1,
        seed=options.seed,
        precision=options.precision,
    )
    settings = FinetuneSettings(
        reading=reading,
        training=training,
        batch_size=options.batch,
        length=None if frozen else options.length,
        frozen=frozen,  # type: ignore[arg-type]
        device=None,
        offline=True,
    )
    result = finetune(data, folder, settings)
    trained = result.runs[result.best].training
    return (trained.seconds if trained else 0.0), result.reports[-1]


def theirs(
    reading: Any, data: Any, folder: Path, options: argparse.Namespace, *, grouped: bool
) -> tuple[float, dict[str, float]]:
    """The Trainer's seconds of training, and the scores of its model by our metrics (equal to sklearn's)."""
    import torch
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainingArguments,
    )

    from likewise.embedder.heads.tasks import learn_task
    from likewise.embedder.resolve import resolve

    task: Any = learn_task(reading.kind, data.train, pair=reading.pair)
    source = resolve(None).directory
    tokenizer = AutoTokenizer.from_pretrained(source)
    torch.manual_seed(options.seed)
    model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=len(task.labels))

    def encode(examples: Sequence[Any]) -> list[dict[str, Any]]:
        columns = [list(column) for column in zip(*(example.texts for example in examples), strict=True)]
        encoded = tokenizer(*columns, truncation=True, max_length=options.length)
        labels = [int(task.target(example)) for example in examples]
        return [
            {**{key: encoded[key][at] for key in encoded}, "labels": label} for at, label in enumerate(labels)
        ]

    arguments = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=options.batch,
        per_device_eval_batch_size=64,
        num_train_epochs=options.epochs,
        learning_rate=options.lr,
        weight_decay=0.01,
        warmup_steps=0.1,
        seed=options.seed,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        train_sampling_strategy="group_by_length" if grouped else "random",
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=encode(data.train),
        data_collator=DataCollatorWithPadding(tokenizer),
    )
    start = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - start
    logits = trainer.predict(encode(data.test)).predictions
    return seconds, task.score(data.test, task.from_logits(logits))


def main() -> None:
    """Run the comparison and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", choices=list(SETS), default="sst2")
    parser.add_argument("--limit", type=int, help="most training examples")
    parser.add_argument("--test-limit", type=int, help="most test examples")
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=3e-5)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--precision", choices=["auto", "float32", "bfloat16"], default="auto")
    parser.add_argument(
        "--no-grouped", action="store_true", help="leave out the Trainer with group_by_length"
    )
    parser.add_argument("--no-peer", action="store_true", help="measure likewise alone")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    reading, data = load(options.set, options.limit, options.test_limit)
    print(f"{options.set}: {len(data.train):,} training and {len(data.test):,} test examples, "
          f"{options.epochs:g} epochs of batches of {options.batch}, seed {options.seed}")  # fmt: skip
    print(f"{'':32} {'seconds':>8} {'ratio':>6}  score")
    first: list[float] = []

    def row(title: str, spent: float, metric: str, score: float, more: str = "") -> None:
        first.append(spent)
        print(f"{title:32} {spent:8.2f} {spent / first[0]:6.2f}  {metric} {score:.4f}{more}", flush=True)

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        seconds, report = ours(reading, data, folder / "ours", options, None)
        name = next(iter(report.metrics))
        low, high = report.intervals[name]
        row("likewise", seconds, name, report.metrics[name], f" [{low:.4f}, {high:.4f}]")
        if reading.kind != "classification":
            return
        ways = [] if options.no_peer else [False] if options.no_grouped else [False, True]
        for grouped in ways:
            spent, scores = theirs(reading, data, folder / f"theirs{grouped}", options, grouped=grouped)
            row("Trainer" + (", group_by_length" if grouped else ""), spent, name, scores[name])
        start = time.perf_counter()
        _, frozen = ours(reading, data, folder / "probe", options, "probe")
        row("frozen, probe, vectors and all", time.perf_counter() - start, name, frozen.metrics[name])
        spent, frozen = ours(reading, data, folder / "linear", options, "linear")
        row("frozen, linear, one epoch", spent / 20, name, frozen.metrics[name])


if __name__ == "__main__":
    sys.exit(main())
