"""Fine-tuning against the Hugging Face Trainer: the same model, data, batch, epochs, rate and seed.

Both train the same `AutoModelFor...` class of the default encoder on the same windows with the same targets,
and predict the same test examples. The peer is used as its documentation shows: a collator that pads to the
longest of a batch, AdamW, linear schedule, and once more with its own grouping by length. Seconds are those
of the processor, of training alone, so that other load does not count. A head on frozen vectors is reported
beside: of texts for labels, of tokens for tags and answers.

    python benchmarks/finetune.py --set sst2 --limit 2000 --epochs 1
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from _measure import need

if TYPE_CHECKING:
    from likewise.embedder.heads.finetune_settings import Head

FROZEN_EPOCHS = 20.0

SETS: dict[str, dict[str, Any]] = {
    "sst2": {"data": ("sst2",), "on": "dev"},  # as the field reports it
    "mr-polarity": {"data": ("mr-polarity", "mr.tsv.gz"), "test_share": 0.1},
    "mrpc": {"data": ("mrpc",), "pair": True, "columns": ("#1 String", "#2 String"), "metric": "f1"},
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
    elif facts.get("on") == "dev" or not data.test:
        data = replace(data, test=data.dev)
    # The order of a file may follow the label.
    order = np.random.default_rng(0).permutation(len(data.train))[:limit].tolist()
    chosen = np.random.default_rng(1).permutation(len(data.test))[:test_limit].tolist()
    return reading, replace(data, train=pick(data.train, order), dev=[], test=pick(data.test, chosen))


class Clock:
    """Processor seconds between the first and the last event of a run."""

    def __init__(self) -> None:
        self.start: float | None = None
        self.seconds = 0.0

    def __call__(self, event: Any) -> None:
        """Note the time of an event."""
        now = time.process_time()
        self.start = now if self.start is None else self.start
        self.seconds = now - self.start


def ours(
    reading: Any, data: Any, folder: Path, options: argparse.Namespace, frozen: Head | None
) -> tuple[float, Any]:
    """Processor seconds of training, and the report on the test part."""
    from likewise.embedder.heads.finetune import finetune
    from likewise.embedder.heads.finetune_settings import FinetuneSettings
    from likewise.embedder.training_settings import TrainingSettings

    training = TrainingSettings(
        epochs=FROZEN_EPOCHS if frozen else options.epochs,
        learning_rate=1e-3 if frozen else options.lr,
        warmup=0.1,
        seed=options.seed,
        precision=options.precision,
        layer_decay=1.0 if frozen else options.layer_decay,
    )
    settings = FinetuneSettings(
        reading=reading,
        training=training,
        batch_size=options.batch,
        length=None if frozen and frozen != "tokens" else options.length,
        long_text="first",
        frozen=frozen,
        device=None,
        offline=True,
    )
    clock = Clock()
    result = finetune(data, folder, settings, listeners=[clock])
    return clock.seconds, result.reports[-1]


def theirs(
    reading: Any, data: Any, folder: Path, options: argparse.Namespace, *, grouped: bool
) -> tuple[float, dict[str, float]]:
    """The Trainer's processor seconds of training, and the scores of its model as we predict and score."""
    import torch
    import transformers

    from likewise.embedder.heads.modeling import load_for
    from likewise.embedder.heads.predictor import predict_logits
    from likewise.embedder.heads.scoring import TorchHead
    from likewise.embedder.heads.tasks import learn_task

    task: Any = learn_task(
        reading.kind,
        data.train,
        **({"pair": reading.pair} if reading.kind == "classification" else {}),
        length=options.length,
    )
    made = load_for(None, task, seed=options.seed, offline=True)
    for name, module in made.model.named_modules():  # as the checkpoint has it; we leave it out
        if name.endswith("attention.self.dropout"):
            module.p = 0.1
    windows = made.windows()
    rows = task.rows(data.train, task.encode(data.train, windows))
    collator: Any = transformers.DataCollatorWithPadding(made.tokenizer)
    if reading.kind == "tagging":
        collator = transformers.DataCollatorForTokenClassification(made.tokenizer)

    def features(row: Any) -> dict[str, Any]:
        found = {"input_ids": row.window.ids.tolist(), "attention_mask": [1] * len(row)}
        if row.window.segments is not None:
            found["token_type_ids"] = row.window.segments.tolist()
        target = row.target.tolist()
        if reading.kind == "questions":
            return {**found, "start_positions": target[0], "end_positions": target[1]}
        return {**found, "labels": target}

    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=options.batch,
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
    trainer = transformers.Trainer(
        model=made.model,
        args=arguments,
        train_dataset=[features(row) for row in rows],
        data_collator=collator,
    )
    start = time.process_time()
    trainer.train()
    seconds = time.process_time() - start
    encoded = task.encode(data.test, windows)
    with torch.inference_mode():
        runtime = TorchHead(made.model.eval(), segments=windows.segments)
        logits = predict_logits(task, encoded, runtime, pad_id=made.pad_id)
    return seconds, task.score(data.test, task.predict(data.test, encoded, logits))


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
    parser.add_argument("--layer-decay", type=float, default=1.0)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--precision", choices=["auto", "float32", "bfloat16"], default="auto")
    parser.add_argument(
        "--no-grouped", action="store_true", help="leave out the Trainer with group_by_length"
    )
    parser.add_argument("--no-peer", action="store_true", help="measure likewise alone")
    parser.add_argument("--full-only", action="store_true", help="no peer and no frozen encoder either")
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
        name = SETS[options.set].get("metric") or next(iter(report.metrics))
        low, high = report.intervals[name]
        row("likewise", seconds, name, report.metrics[name], f" [{low:.4f}, {high:.4f}]")
        if options.full_only:
            return
        ways = [] if options.no_peer else [False] if options.no_grouped else [False, True]
        for grouped in ways:
            spent, scores = theirs(reading, data, folder / f"theirs{grouped}", options, grouped=grouped)
            row("Trainer" + (", group_by_length" if grouped else ""), spent, name, scores[name])
        if reading.kind == "classification":
            start = time.process_time()
            _, frozen = ours(reading, data, folder / "probe", options, "probe")
            row("frozen, probe, vectors and all", time.process_time() - start, name, frozen.metrics[name])
        kind = "linear" if reading.kind == "classification" else "tokens"
        spent, frozen = ours(reading, data, folder / "frozen", options, kind)
        row(f"frozen, {kind}, an epoch", spent / FROZEN_EPOCHS, name, frozen.metrics[name])


if __name__ == "__main__":
    sys.exit(main())
