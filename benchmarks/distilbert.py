"""Half the layers of the default encoder: how much of its quality, its size and its time stay.

The student keeps three of the six layers and learns the teacher's hidden states on unlabelled sentences (the
training sentences of STS-B, those of SNLI, English of Tatoeba; no test sentence, no label). Quality is
Spearman's correlation on the test set of STS-B; speed is measured in alternation.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import random
import statistics
import time
from pathlib import Path

import numpy as np
from _measure import CACHE, corpus_texts, need, table
from numpy.typing import NDArray

from likewise import Encoder
from likewise.embedder.corpus_build import SourceText
from likewise.embedder.pretrain import PretrainSettings, pretrain
from likewise.embedder.training_settings import TrainingSettings

TEACHER = "all-MiniLM-L6-v2"


def sentences() -> list[str]:
    """Unlabelled sentences, each once, in random order."""
    found: dict[str, None] = {}
    with need("stsb", "stsb-en-train.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found |= dict.fromkeys((row["sentence1"], row["sentence2"]))
    for path in sorted(need("snli").glob("*dev*")):
        with _open(path) as lines:
            found |= dict.fromkeys(
                text for line in lines for text in line.split("\t")[:2] if text != "premise"
            )
    for path in [need("tatoeba-en-zh", "cmn.txt.gz")]:
        with _open(path) as lines:
            found |= dict.fromkeys(line.split("\t")[0] for line in lines)
    order = [text for text in found if len(text) > 3]
    random.Random(0).shuffle(order)
    return order


def _open(path: Path):  # type: ignore[no-untyped-def]
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def stsb_test() -> tuple[list[str], list[str], NDArray[np.float64]]:
    """Pairs and their similarity."""
    with need("stsb", "stsb-en-test.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return (
        [row["sentence1"] for row in rows],
        [row["sentence2"] for row in rows],
        np.array([float(row["score"]) for row in rows]),
    )


def spearman(one: NDArray[np.floating], other: NDArray[np.floating]) -> float:
    """Rank correlation."""
    from scipy.stats import spearmanr

    return float(spearmanr(one, other).statistic)


def similarities(encoder: Encoder) -> NDArray[np.float32]:
    """Cosines of the test pairs."""
    first, second, _ = stsb_test()
    cosines: NDArray[np.float32] = np.sum(
        encoder.encode_passages(first) * encoder.encode_passages(second), axis=1
    )
    return cosines


def layer_parameters(folder: Path) -> int:
    """Parameters of the layers, embeddings not counted."""
    from transformers import AutoModel

    return sum(p.numel() for p in AutoModel.from_pretrained(folder).encoder.parameters())


def interval(gold: NDArray[np.float64], one: NDArray[np.float32], other: NDArray[np.float32]) -> str:
    """95% bootstrap interval, over the pairs, of the share of the teacher's correlation that is kept."""
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(500):
        at = rng.integers(len(gold), size=len(gold))
        shares.append(spearman(one[at], gold[at]) / spearman(other[at], gold[at]))
    low, high = np.percentile(shares, [2.5, 97.5])
    return f"[{low:.3f}, {high:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--steps", type=int, help="train for this many steps instead")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()

    texts = sentences()
    budget = {"steps": args.steps} if args.steps else {"minutes": args.minutes}
    folder = CACHE / f"student-{args.layers}-{'-'.join(map(str, *budget.items()))}"
    start = time.perf_counter()
    result = pretrain(
        lambda: (SourceText(text, [0]) for text in texts),
        folder,
        PretrainSettings(
            training=TrainingSettings(**budget, learning_rate=3e-4, log_every=50, save_every=None),
            teacher=TEACHER,
            layers=args.layers,
            length=64,
            tokens_per_batch=2048,
            held_out=0.005,
            offline=True,
        ),
        source=f"sentences {len(texts)}",
    )
    minutes = (time.perf_counter() - start) / 60
    from likewise.embedder.resolve import resolve

    places = {"teacher": resolve(TEACHER).directory, "student": folder}
    encoders = {name: Encoder.load(place, offline=True) for name, place in places.items()}
    gold = stsb_test()[2]
    cosines = {name: similarities(encoder) for name, encoder in encoders.items()}
    scores = {name: spearman(found, gold) for name, found in cosines.items()}
    passages = [text[:900] for text in corpus_texts("scifact")[:96]]
    rates: dict[str, list[float]] = {name: [] for name in encoders}
    for encoder in encoders.values():
        encoder.encode_passages(passages[:16])
    for _ in range(args.rounds):
        for name, encoder in encoders.items():
            begun = time.process_time()
            encoder.encode_passages(passages)
            rates[name].append(len(passages) / (time.process_time() - begun))
    speed = {name: statistics.median(values) for name, values in rates.items()}
    ratios = [a / b for a, b in zip(rates["student"], rates["teacher"], strict=True)]
    sizes = {name: layer_parameters(place) for name, place in places.items()}
    share = interval(gold, cosines["student"], cosines["teacher"])
    table(
        f"{args.layers} of 6 layers: {result.training.step} steps, {result.training.epochs:.2f} epochs, "
        f"{minutes:.1f} minutes; distance of hidden states {result.training.metrics['loss']:.4f}",
        ["", "STS-B test", "of the teacher [95%]", "layer parameters", "share", "passages/cpu-s", "x"],
        [
            ["teacher", scores["teacher"], "1", f"{sizes['teacher']:,}", 1.0, speed["teacher"], 1.0],
            [
                "student",
                scores["student"],
                f"{scores['student'] / scores['teacher']:.3f} {share}",
                f"{sizes['student']:,}",
                sizes["student"] / sizes["teacher"],
                speed["student"],
                statistics.median(ratios),
            ],
        ],
    )


if __name__ == "__main__":
    main()
