"""The ablation of Sentence-BERT (Reimers and Gurevych 2019, table 6) at a small scale.

What the classifier sees of a pair, (u, v) or (u, v, |u-v|): trained with the softmax loss on SNLI (its
published dev and test parts, 19,000 pairs), and how token vectors are pooled: with cosine regression on the
train split of STS-B, and with the softmax loss. All are scored by Spearman on the dev split of STS-B, as in
the paper, with the mean and the spread over the seeds. The base matters: an encoder that is trained for
sentences already, as the default one is, hides much; the paper starts from one that only ever filled masks.

    python benchmarks/ablation.py --base benchmarks/.cache/family/roberta     # after family.py
    python benchmarks/ablation.py --seeds 0 --epochs 0.5 --only features      # from the default encoder
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import statistics
import tempfile
import warnings
from pathlib import Path
from typing import Any

from _measure import need, table

POOLINGS = ("mean", "cls", "max")
PAPER = {"u,v": "66.04", "u,v,|u-v|": "80.78"}
PAPER_POOLING = {
    "softmax": {"mean": "80.78", "cls": "79.80", "max": "79.07"},
    "cosine": {"mean": "87.44", "cls": "86.62", "max": "69.92"},
}


def snli() -> list[dict[str, Any]]:
    """Premise, hypothesis and class of the pairs whose annotators agreed."""
    rows = []
    for part in ("dev", "test"):
        text = gzip.decompress(need("snli", f"snli-{part}.tsv.gz").read_bytes()).decode("utf-8")
        rows += list(csv.DictReader(io.StringIO(text), delimiter="\t"))
    return [row for row in rows if row["label"] != "-"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", help="encoder that training starts from; the default one if not given")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--lr", type=float, default=4e-5)
    parser.add_argument("--only", choices=["features", "pooling"])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            measured(args, Path(folder), "softmax", features, "mean", PAPER[features])
            for features in PAPER
            if args.only != "pooling" or features != "u,v"  # the other is the mean among the poolings
        ]
        rows += [
            measured(args, Path(folder), loss, "u,v,|u-v|", pooling, PAPER_POOLING[loss][pooling])
            for loss in PAPER_POOLING
            for pooling in POOLINGS
            if args.only != "features" and (loss, pooling) != ("softmax", "mean")
        ]
    table(
        f"STS-B dev, Spearman x 100, {len(args.seeds)} seeds; base {args.base or 'default encoder'}",
        ["loss", "features", "pooling", "before", "after", "spread", "paper"],
        rows,
    )


def measured(
    args: argparse.Namespace, folder: Path, loss: str, features: str, pooling: str, paper: str
) -> list[Any]:
    """A row: one way to train, over all seeds."""
    scores = [one(args, folder, loss, features, pooling, seed) for seed in args.seeds]
    after = [score for _, score in scores]
    row = [
        loss,
        features if loss == "softmax" else "",
        pooling,
        f"{statistics.mean(score for score, _ in scores):.2f}",
        f"{statistics.mean(after):.2f}",
        f"{statistics.stdev(after) if len(after) > 1 else 0:.2f}",
        paper,
    ]
    print(*row, sep="\t", flush=True)
    return row


def one(
    args: argparse.Namespace, folder: Path, loss: str, features: Any, pooling: str, seed: int
) -> tuple[float, float]:
    """Score before and after one run, times 100."""
    from likewise.embedder.siamese.pairs import make_pairs
    from likewise.embedder.siamese.settings import SiameseSettings, TrainingData
    from likewise.embedder.siamese.tasks import LossSettings, loss_kind
    from likewise.embedder.siamese.train import train_siamese
    from likewise.embedder.training_settings import TrainingSettings

    def stsb(split: str, loss: str) -> TrainingData:
        return TrainingData(source=need("stsb", f"stsb-en-{split}.csv"), loss=loss, score_range=(0.0, 5.0))

    data = stsb("train", loss)
    if loss == "softmax":
        names = {"premise": "anchor", "hypothesis": "positive", "label": "label"}
        pairs = [{names[key]: row[key] for key in names} for row in snli()]
        data = TrainingData(
            source=make_pairs(pairs, loss_kind(loss), name="snli"),
            loss=loss,
            settings=LossSettings(features=features),
        )
    result = train_siamese(
        [data],
        folder / f"{loss}-{features.replace('|', '')}-{pooling}-{seed}",
        SiameseSettings(
            training=TrainingSettings(
                epochs=args.epochs * (1 if loss == "softmax" else 4),
                learning_rate=args.lr,
                warmup=0.1,
                seed=seed,
                save_every=None,
            ),
            encoder=args.base,
            pooling=pooling,
            batch_size=16,
            keep_worse=True,  # a way to train that loses is a finding too
            device="cpu",
        ),
        held_out=[stsb("dev", "cosine")],
    )
    watched = result.verdict.comparisons[0]
    return 100 * watched.before[0], 100 * watched.after[0]


if __name__ == "__main__":
    main()
