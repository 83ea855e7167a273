"""Siamese training against `SentenceTransformerTrainer`: pairs per second, peak memory, score.

Same encoder, data, loss, batch, learning rate, budget and seed; each run in a process of its own, one after
the other. `short` are the sentence pairs of STS-B with CoSENT, scored by Spearman on its test split; `long`
are titles and abstracts of scifact with the ranking loss, scored by the mean reciprocal rank of the right
abstract for the titles of 500 documents that are not trained on.

    python benchmarks/siamese.py --steps 40                 # both, the peer at its defaults and with bf16
    python benchmarks/siamese.py --data long --minutes 1    # rather than so many steps
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from _measure import need, read_jsonl, run, table

HELD_OUT = 500
SIDES = ("likewise", "sentence-transformers", "sentence-transformers bf16")


def stsb(split: str) -> list[dict[str, Any]]:
    with need("stsb", f"stsb-en-{split}.csv").open(encoding="utf-8", newline="") as file:
        return [{**row, "score": float(row["score"]) / 5} for row in csv.DictReader(file)]


def rows_of(data: str) -> list[dict[str, Any]]:
    if data == "short":
        return stsb("train")
    return scifact()[:-HELD_OUT]


def scifact() -> list[dict[str, Any]]:
    documents = read_jsonl(need("scifact"), "corpus.jsonl")
    return [{"anchor": row["title"], "positive": row["text"]} for row in documents]


def ours(args: argparse.Namespace, rows: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    from likewise.embedder.events import Progress
    from likewise.embedder.siamese.pairs import make_pairs
    from likewise.embedder.siamese.settings import SiameseSettings, TrainingData
    from likewise.embedder.siamese.tasks import loss_kind
    from likewise.embedder.siamese.train import train_siamese
    from likewise.embedder.training_settings import TrainingSettings

    loss = "cosent" if args.data == "short" else "ranking"
    losses: list[float] = []
    start = time.perf_counter()
    result = train_siamese(
        [TrainingData(source=make_pairs(rows, loss_kind(loss), name=args.data), loss=loss)],
        folder,
        SiameseSettings(
            training=TrainingSettings(
                **budget(args), learning_rate=args.lr, warmup=0.1, seed=args.seed, log_every=10
            ),
            batch_size=args.batch,
            held_out=0.0,
            device="cpu",
        ),
        listeners=[
            lambda event: losses.append(event.metrics["loss"]) if isinstance(event, Progress) else None
        ],
    )
    whole = time.perf_counter() - start
    return {
        "steps": result.training.step,
        "seconds": result.training.seconds,
        "whole": whole,
        "loss": losses[-1] if losses else 0.0,
        "precision": result.training.precision,
    }


def theirs(args: argparse.Namespace, rows: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
    from sentence_transformers.sentence_transformer import losses
    from transformers import TrainerCallback

    from likewise.embedder.resolve import resolve

    class Stop(TrainerCallback):  # type: ignore[misc]
        """Ends a run that has a budget of minutes."""

        def on_step_end(self, arguments: Any, state: Any, control: Any, **_: Any) -> None:
            if args.minutes is not None and time.perf_counter() - start > 60 * args.minutes:
                control.should_training_stop = True

    begun = time.perf_counter()
    model = SentenceTransformer(str(resolve(None).directory), device="cpu")
    loss = losses.CoSENTLoss(model) if args.data == "short" else losses.MultipleNegativesRankingLoss(model)
    trainer = SentenceTransformerTrainer(
        model,
        Arguments(
            output_dir=str(folder),
            per_device_train_batch_size=args.batch,
            learning_rate=args.lr,
            warmup_steps=0.1,
            num_train_epochs=args.epochs or 1,
            max_steps=args.steps or -1,
            seed=args.seed,
            bf16=args.side.endswith("bf16"),
            save_strategy="no",
            logging_steps=10,
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_list(rows),
        loss=loss,
        callbacks=[Stop()],
    )
    start = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - start
    model.save(str(folder), create_model_card=False)
    history = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return {
        "steps": trainer.state.global_step,
        "seconds": seconds,
        "whole": time.perf_counter() - begun,
        "loss": history[-1] if history else 0.0,
        "precision": "bfloat16" if args.side.endswith("bf16") else "float32",
    }


def budget(args: argparse.Namespace) -> dict[str, Any]:
    given = {name: getattr(args, name) for name in ("steps", "minutes", "epochs")}
    return {name: value for name, value in given.items() if value is not None} or {"epochs": 1.0}


def score(data: str, folder: Path) -> float:
    """Spearman on the test split of STS-B, or the mean reciprocal rank, by the same encoder for both."""
    import numpy as np

    from likewise import Encoder
    from likewise.embedder.siamese.metrics import spearman

    columns = ("sentence1", "sentence2") if data == "short" else ("anchor", "positive")
    rows = stsb("test") if data == "short" else scifact()[-HELD_OUT:]
    encoder = Encoder.load(folder, runtime="torch")
    first, second = (encoder.encode_passages([row[name] for row in rows]) for name in columns)
    if data == "short":
        return spearman((first * second).sum(axis=1), np.array([row["score"] for row in rows]))
    scores = first @ second.T
    ranks = (scores >= scores.diagonal()[:, None]).sum(axis=1)
    return float((1 / ranks).mean())


def one_side(args: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    rows = rows_of(args.data)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        found = (ours if args.side == "likewise" else theirs)(args, rows, folder)
        found["pairs"] = found["steps"] * args.batch
        found["score"] = None if args.no_score else score(args.data, folder)
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=["short", "long"], default="short")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=4e-5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--epochs", type=float)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--no-score", action="store_true", help="measure speed only")
    parser.add_argument("--side", choices=SIDES, help="run one side and print its numbers as JSON")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    args = parser.parse_args()
    if args.side is not None:
        one_side(args)
        return
    passed = [text for text in sys.argv[1:] if text != "--sides" and text not in SIDES]
    lines = []
    for side in args.sides:
        done = run([sys.executable, "-W", "ignore", __file__, *passed, "--side", side])
        found = json.loads(done.stdout.strip().splitlines()[-1])
        lines.append(
            [
                side,
                found["pairs"] / found["seconds"],
                found["pairs"] / found["whole"],
                done.peak_mb,
                found["loss"],
                "-" if found["score"] is None else found["score"],
                found["steps"],
                found["precision"],
            ]
        )
    table(
        f"{args.data} pairs, batch {args.batch}; pairs/s without and with loading and saving",
        ["", "pairs/s", "whole run", "peak MB", "last loss", "score", "steps", "precision"],
        lines,
    )


if __name__ == "__main__":
    main()
