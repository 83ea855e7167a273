"""The ablation of Sentence-BERT (Reimers and Gurevych 2019, table 6) at a small scale.

What the classifier sees of a pair, (u, v) or (u, v, |u-v|), and how token vectors are pooled. Three ways to
train: the softmax loss on SNLI (its published dev and test parts, 19,000 pairs, where the paper has a
million); the softmax loss on the train split of STS-B, its scores rounded to six classes; and cosine
regression on the same split. All are scored by Spearman on the dev split of STS-B, as in the paper, with the
mean and the spread over the seeds.

The base matters: an encoder that is trained for sentences already, as the default one is, hides much; the
paper starts from one that only ever filled masks. So does the amount of data: a classifier that sees (u, v)
is a sum of what it thinks of either sentence, and the classes of SNLI can be guessed from the hypothesis
alone to a good part, those of STS-B can not.

    python benchmarks/ablation.py --base benchmarks/.cache/family/roberta     # after family.py
    python benchmarks/ablation.py --seeds 0 --epochs 0.5 --only nli           # from the default encoder
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

# Way to train, features, pooling, and what the paper has.
WAYS = (
    ("nli", "u,v", "mean", "66.04"),
    ("nli", "u,v,|u-v|", "mean", "80.78"),
    ("nli", "u,v,|u-v|", "cls", "79.80"),
    ("nli", "u,v,|u-v|", "max", "79.07"),
    ("classes", "u,v", "mean", ""),
    ("classes", "u,v,|u-v|", "mean", ""),
    ("cosine", "", "mean", "87.44"),
    ("cosine", "", "cls", "86.62"),
    ("cosine", "", "max", "69.92"),
)


def snli() -> list[dict[str, Any]]:
    """Premise, hypothesis and class of the pairs whose annotators agreed."""
    rows: list[dict[str, Any]] = []
    for part in ("dev", "test"):
        text = gzip.decompress(need("snli", f"snli-{part}.tsv.gz").read_bytes()).decode("utf-8")
        rows += list(csv.DictReader(io.StringIO(text), delimiter="\t"))
    return [
        {"anchor": row["premise"], "positive": row["hypothesis"], "label": row["label"]}
        for row in rows
        if row["label"] != "-"
    ]


def stsb(split: str) -> Path:
    return need("stsb", f"stsb-en-{split}.csv")


def classes() -> list[dict[str, Any]]:
    """The pairs of STS-B with their scores, from 0 to 5, rounded to classes."""
    with stsb("train").open(encoding="utf-8", newline="") as file:
        return [
            {
                "anchor": row["sentence1"],
                "positive": row["sentence2"],
                "label": f"{float(row['score']):.0f}",
            }
            for row in csv.DictReader(file)
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", help="encoder that training starts from; the default one if not given")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--epochs", type=float, default=1.0, help="over SNLI; four times as many over STS-B")
    parser.add_argument("--lr", type=float, default=4e-5)
    parser.add_argument("--only", choices=["nli", "classes", "cosine"], nargs="+")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for way, features, pooling, paper in WAYS:
            if args.only and way not in args.only:
                continue
            scores = [one(args, Path(folder), way, features, pooling, seed) for seed in args.seeds]
            after = [score for _, score in scores]
            rows.append(
                [
                    way,
                    features,
                    pooling,
                    f"{statistics.mean(score for score, _ in scores):.2f}",
                    f"{statistics.mean(after):.2f}",
                    f"{statistics.stdev(after) if len(after) > 1 else 0:.2f}",
                    paper,
                ]
            )
            print(*rows[-1], sep="\t", flush=True)
    table(
        f"STS-B dev, Spearman x 100, {len(args.seeds)} seeds; base {args.base or 'default encoder'}",
        ["trained on", "features", "pooling", "before", "after", "spread", "paper"],
        rows,
    )


def one(
    args: argparse.Namespace, folder: Path, way: str, features: Any, pooling: str, seed: int
) -> tuple[float, float]:
    """Score before and after one run, times 100."""
    from likewise.embedder.siamese.pairs import make_pairs
    from likewise.embedder.siamese.settings import SiameseSettings, TrainingData
    from likewise.embedder.siamese.tasks import LossSettings, loss_kind
    from likewise.embedder.siamese.train import train_siamese
    from likewise.embedder.training_settings import TrainingSettings

    if way == "cosine":
        data = TrainingData(source=stsb("train"), loss="cosine", score_range=(0.0, 5.0))
    else:
        pairs = make_pairs(snli() if way == "nli" else classes(), loss_kind("softmax"), name=way)
        data = TrainingData(source=pairs, loss="softmax", settings=LossSettings(features=features))
    result = train_siamese(
        [data],
        folder / f"{way}-{features.replace('|', '')}-{pooling}-{seed}",
        SiameseSettings(
            training=TrainingSettings(
                epochs=args.epochs * (1 if way == "nli" else 4),
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
        held_out=[TrainingData(source=stsb("dev"), loss="cosine", score_range=(0.0, 5.0))],
    )
    watched = result.verdict.comparisons[0]
    return 100 * watched.before[0], 100 * watched.after[0]


if __name__ == "__main__":
    main()
