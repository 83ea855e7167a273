"""Frozen lower layers, with what they make of each text computed in every step or once.

STS-B train (short pairs, CoSENT) or scifact (titles and abstracts, ranking), the default encoder of six
layers, several epochs. The time of the first computation counts.

    python benchmarks/frozen_layers.py                       # short pairs, 3 and 5 layers frozen
    python benchmarks/frozen_layers.py --data long --rows 600
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

from _measure import table
from siamese import rows_of

from likewise.embedder.siamese.pairs import PairData, make_pairs
from likewise.embedder.siamese.settings import SiameseSettings, TrainingData
from likewise.embedder.siamese.tasks import loss_kind
from likewise.embedder.siamese.train import train_siamese
from likewise.embedder.training_settings import TrainingSettings


def seconds(data: PairData, loss: str, freeze: int | None, cache: float | None, epochs: float) -> float:
    """Of a whole run, loading and saving included."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        train_siamese(
            [TrainingData(source=data, loss=loss)],
            Path(name) / "model",
            SiameseSettings(
                training=TrainingSettings(epochs=epochs, learning_rate=4e-5, save_every=None),
                freeze=freeze,
                cache_frozen=cache,
                held_out=0.0,
                device="cpu",
            ),
        )
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=["short", "long"], default="short")
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--epochs", type=float, default=4)
    parser.add_argument("--layers", type=int, nargs="+", default=[3, 5])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    loss = "cosent" if args.data == "short" else "ranking"
    pairs = make_pairs(rows_of(args.data)[: args.rows], loss_kind(loss), name=args.data)
    lines = []
    plans: list[tuple[int | None, float | None]] = [(None, None)]
    plans += [(layers, cache) for layers in args.layers for cache in (None, 4.0)]
    for freeze, cache in plans:
        rate = args.epochs * len(pairs) / seconds(pairs, loss, freeze, cache, args.epochs)
        label = "all trained" if freeze is None else f"{freeze} of 6 frozen"
        lines.append([label, "kept" if cache else "computed", rate])
    table(
        f"{args.data} pairs, {len(pairs):,} rows, {args.epochs:g} epochs, batch 32",
        ["", "activations", "pairs/s"],
        lines,
    )


if __name__ == "__main__":
    main()
