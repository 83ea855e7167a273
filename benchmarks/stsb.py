"""STS-B after training on its train split: Spearman on the test split, over several seeds.

The default encoder, trained with `likewise`'s own trainer, its embeddings frozen; a running mean of the
weights is kept. Which weights are kept is decided on the dev split, the test split is only measured. The
interval of each row is the bootstrap's over the 1,379 pairs, the spread of the mean is that over the seeds.

    python benchmarks/stsb.py                        # three seeds
    python benchmarks/stsb.py --seeds 0 --loss cosent --epochs 2
"""

from __future__ import annotations

import argparse
import csv
import statistics
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _measure import need, table

from likewise.embedder.siamese.metrics import spearman

PUBLISHED = 0.8203  # all-MiniLM-L6-v2 on the test split, untrained


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--loss", nargs="+", default=["cosent"])
    parser.add_argument("--scale", type=float, default=20.0)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument(
        "--freeze", type=int, default=0, help="lowest layers to freeze; -1 trains the embeddings too"
    )
    parser.add_argument("--average", type=float, default=0.35)
    parser.add_argument("--layer-decay", type=float, default=1.0)
    parser.add_argument("--schedule", default="linear")
    parser.add_argument("--blend", type=float, default=0.0)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for seed in args.seeds:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(one(args, seed, Path(folder)))
            print(*rows[-1], sep="\t", flush=True)
    table(
        f"{'+'.join(args.loss)}, {args.epochs:g} epochs, batch {args.batch}, rate {args.lr:g}, "
        f"mean over {args.average:g}",
        ["seed", "dev", "test", "95% of test", "precision", "minutes"],
        rows,
    )
    scores = [float(row[2]) for row in rows]
    spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
    print(f"test {statistics.mean(scores):.4f} ± {spread:.4f}, untrained {PUBLISHED}")


def one(args: argparse.Namespace, seed: int, folder: Path) -> list[Any]:
    """Seed, scores and cost of one run."""
    from likewise import Encoder
    from likewise.embedder.siamese.settings import SiameseSettings, TrainingData
    from likewise.embedder.siamese.tasks import LossSettings
    from likewise.embedder.siamese.train import train_siamese
    from likewise.embedder.training_settings import TrainingSettings

    def part(split: str, loss: str) -> TrainingData:
        return TrainingData(
            source=need("stsb", f"stsb-en-{split}.csv"),
            loss=loss,
            settings=LossSettings(scale=args.scale),
            score_range=(0.0, 5.0),
        )

    result = train_siamese(
        [part("train", loss) for loss in args.loss],
        folder,
        SiameseSettings(
            training=TrainingSettings(
                epochs=args.epochs,
                learning_rate=args.lr,
                warmup=0.1,
                seed=seed,
                layer_decay=args.layer_decay,
                schedule=args.schedule,
                average=args.average,
                save_every=None,
            ),
            batch_size=args.batch,
            blend=args.blend,
            freeze=None if args.freeze < 0 else args.freeze,
            device="cpu",
        ),
        held_out=[part("dev", "cosent")],
    )
    with need("stsb", "stsb-en-test.csv").open(encoding="utf-8", newline="") as file:
        pairs = list(csv.DictReader(file))
    encoder = Encoder.load(folder, runtime="torch")
    first, second = (
        encoder.encode_passages([pair[name] for pair in pairs]) for name in ("sentence1", "sentence2")
    )
    found, judged = (first * second).sum(axis=1), np.array([float(pair["score"]) for pair in pairs])
    draws = np.random.default_rng(0).integers(0, len(pairs), (1000, len(pairs)))
    low, high = np.quantile([spearman(found[draw], judged[draw]) for draw in draws], [0.025, 0.975])
    watched = result.verdict.comparisons[0]
    return [
        seed,
        f"{watched.after[0]:.4f}",
        f"{spearman(found, judged):.4f}",
        f"[{low:.4f}, {high:.4f}]",
        result.training.precision,
        result.training.seconds / 60,
    ]


if __name__ == "__main__":
    main()
