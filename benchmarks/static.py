"""Students of the default encoder beside it: passages per second and nDCG@10 of what they find.

`tokens` is the static student of the vocabulary alone; `corpus` is fitted to each collection's own documents,
without a label; `3 layers` is half the network, distilled on the documents of all collections. Documents are
ranked whole, cut where the teacher cuts them, by cosine and exactly; the intervals are over the queries.
Speed is that of the first documents of the first collection, in turns, each encoder in its own best way; the
peer runs the directory of the static student in sentence-transformers.

    python benchmarks/static.py                          # cranfield, scifact and cisi
    python benchmarks/static.py --sets scifact --texts 20000 --minutes 10
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _measure import CACHE, corpus_texts, need, table
from numpy.typing import NDArray

from likewise import Encoder
from likewise.embedder.corpus_build import SourceText
from likewise.embedder.pretrain import PretrainSettings, pretrain
from likewise.embedder.resolve import resolve
from likewise.embedder.static.distil import StaticSettings, distil_static
from likewise.embedder.static.texts import passages_and_sentences
from likewise.embedder.training_settings import TrainingSettings
from likewise.retrieval.evaluation.dense_ranking import DenseRanking
from likewise.retrieval.evaluation.statistics import bootstrap_interval

HOME = CACHE / "static"


def tokens_alone(args: argparse.Namespace) -> Path:
    folder = HOME / "tokens"
    distil_static(None, folder, StaticSettings(dimension=args.dimension))
    return folder


def of_corpus(name: str, args: argparse.Namespace) -> Path:
    folder = HOME / f"corpus-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    result = distil_static(
        None,
        folder,
        StaticSettings(
            dimension=args.dimension,
            words=args.words,
            texts=args.texts,
            training=TrainingSettings(epochs=args.epochs, learning_rate=args.lr),
            contrast=args.contrast,
        ),
        texts=(text for document in corpus_texts(name) for text in passages_and_sentences(document)),
    )
    assert result.agreement is not None  # there is a corpus, so the table was fitted
    print(f"{name}: {result.texts:,} texts, agreement {result.agreement[0]:.3f} -> {result.agreement[1]:.3f}")
    return folder


def of_layers(args: argparse.Namespace) -> Path:
    folder = HOME / f"layers-{args.minutes:g}"
    if not (folder / "modules.json").exists():
        pretrain(
            lambda: (SourceText(text) for text in corpus_texts(*args.sets)),
            folder,
            PretrainSettings(
                training=TrainingSettings(minutes=args.minutes, learning_rate=3e-4),
                teacher="all-MiniLM-L6-v2",
                layers=3,
                device="cpu",
            ),
            source=" ".join(args.sets),
        )
    return folder


def peer(folder: Path) -> Callable[[list[str]], Any]:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    return lambda texts: model.encode(texts, show_progress_bar=False)


def speeds(encoders: dict[str, Callable[[list[str]], Any]], texts: list[str]) -> dict[str, float]:
    """Passages per second, each the median of five turns; slow encoders get fewer texts."""
    shares: dict[str, int] = {}
    found: dict[str, list[float]] = {name: [] for name in encoders}
    for turn in range(6):
        for name, encode in encoders.items():
            count = shares.setdefault(name, 20)
            start = time.perf_counter()
            encode(texts[:count])
            rate = count / (time.perf_counter() - start)
            shares[name] = min(len(texts), max(20, int(2 * rate)))  # about two seconds
            if turn:
                found[name].append(rate)
    return {name: statistics.median(rates) for name, rates in found.items()}


def kept(name: str, texts: list[str], encoder: Encoder, role: Any) -> NDArray[np.float32]:
    """Vectors of the teacher, which takes long, from an earlier run."""
    path = HOME / f"{name}-{role}-{encoder.fingerprint[:12]}-{len(texts)}.npy"
    if not path.exists():
        HOME.mkdir(parents=True, exist_ok=True)
        np.save(path, encoder.embed(texts, role=role).vectors)
    vectors: NDArray[np.float32] = np.load(path)
    return vectors


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.glob("*.safetensors")) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=["cranfield", "scifact", "cisi"])
    parser.add_argument("--dimension", type=int, default=256)
    parser.add_argument("--words", type=int, default=0)
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--epochs", type=float, default=10)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--contrast", type=float, default=0.1)
    parser.add_argument(
        "--minutes", type=float, default=5, help="of the student with layers; 0 leaves it out"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    teacher = Encoder.load()
    tokens = tokens_alone(args)
    students = {"static, tokens": Encoder.load(tokens)}
    if args.minutes:
        students["3 layers"] = Encoder.load(of_layers(args))
    rows = []
    for name in args.sets:
        ranking = DenseRanking(need(name))
        fitted = Encoder.load(of_corpus(name, args))
        for label, encoder in {"teacher": teacher, "static, corpus": fitted, **students}.items():
            if encoder is teacher:
                values = ranking(lambda texts, role, name=name: kept(name, list(texts), teacher, role))
            else:
                values = ranking(lambda texts, role, encoder=encoder: encoder.embed(texts, role=role).vectors)
            spread = bootstrap_interval(values, seed=0)
            rows.append([f"{name}, {label}", spread.mean, f"[{spread.low:.3f}, {spread.high:.3f}]"])
    table("nDCG@10 by vectors alone", ["", "nDCG@10", "95% interval"], rows)
    texts = corpus_texts(args.sets[0])
    runs: dict[str, Callable[[list[str]], Any]] = {"teacher": teacher.encode_passages}
    runs |= {label: encoder.encode_passages for label, encoder in students.items()}
    runs["static, sentence-transformers"] = peer(tokens)
    rates = speeds(runs, texts)
    sizes = {name: megabytes(tokens) for name in runs if name.startswith("static")}
    sizes["teacher"] = megabytes(resolve(None).directory)
    if args.minutes:
        sizes["3 layers"] = megabytes(of_layers(args))
    table(
        f"passages/s, {args.sets[0]}",
        ["", "passages/s", "times the teacher", "MB"],
        [[name, rate, rate / rates["teacher"], sizes[name]] for name, rate in rates.items()],
    )


if __name__ == "__main__":
    main()
