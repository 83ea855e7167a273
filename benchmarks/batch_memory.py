"""Peak memory of large batches: the cached form of the ranking loss (GradCache) beside the direct one.

Titles and abstracts of scifact, the default encoder, a few steps, each run in a process of its own. A batch
of 1,024 shall need about the memory of a batch of 32; the peer does the same in mini-batches of 32.

    python benchmarks/batch_memory.py
    python benchmarks/batch_memory.py --batches 32 1024 --max-tokens 128 --no-peer
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

from _measure import need, read_jsonl, run, table


def rows() -> list[dict[str, str]]:
    return [
        {"anchor": row["title"], "positive": row["text"]}
        for row in read_jsonl(need("scifact"), "corpus.jsonl")
    ]


def ours(batch: int, part_tokens: int | None, args: argparse.Namespace, folder: Path) -> float:
    from likewise.embedder.siamese.pairs import make_pairs
    from likewise.embedder.siamese.settings import SiameseSettings, TrainingData
    from likewise.embedder.siamese.tasks import loss_kind
    from likewise.embedder.siamese.train import train_siamese
    from likewise.embedder.training_settings import TrainingSettings

    pairs = make_pairs(rows()[: max(1024, batch)], loss_kind("ranking"), name="scifact")
    result = train_siamese(
        [TrainingData(source=pairs, loss="ranking")],
        folder,
        SiameseSettings(
            training=TrainingSettings(steps=args.steps, precision="float32", save_every=None),
            batch_size=batch,
            part_tokens=part_tokens,
            max_tokens=args.max_tokens,
            held_out=0.0,
            device="cpu",
        ),
    )
    return result.training.seconds


def theirs(batch: int, cached: bool, args: argparse.Namespace, folder: Path) -> float:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
    from sentence_transformers.sentence_transformer import losses

    from likewise.embedder.resolve import resolve

    model = SentenceTransformer(str(resolve(None).directory), device="cpu")
    model.max_seq_length = args.max_tokens
    kind = losses.CachedMultipleNegativesRankingLoss if cached else losses.MultipleNegativesRankingLoss
    trainer = SentenceTransformerTrainer(
        model,
        Arguments(
            output_dir=str(folder),
            per_device_train_batch_size=batch,
            max_steps=args.steps,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_list(rows()[: max(1024, batch)]),
        loss=kind(model, mini_batch_size=32) if cached else kind(model),
    )
    start = time.perf_counter()
    trainer.train()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, nargs="+", default=[32, 256, 1024])
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--one", nargs=3, metavar=("SIDE", "BATCH", "FORM"), help="one run, as JSON")
    args = parser.parse_args()
    if args.one is not None:
        side, batch, form = args.one
        warnings.simplefilter("ignore")
        with tempfile.TemporaryDirectory() as name:
            if side == "likewise":
                # A part has the tokens of a batch of 32 pairs: title and abstract, the latter cut.
                parts = 32 * args.max_tokens if form == "cached" else None
                seconds = ours(int(batch), parts, args, Path(name) / "model")
            else:
                seconds = theirs(int(batch), form == "cached", args, Path(name))
        print(json.dumps({"seconds": seconds}))
        return
    runs = [("likewise", args.batches[0], "direct")]
    runs += [("likewise", batch, "cached") for batch in args.batches[1:]]
    if not args.no_peer:
        runs += [("sentence-transformers", batch, "cached") for batch in args.batches[-1:]]
    passed = ["--max-tokens", str(args.max_tokens), "--steps", str(args.steps)]
    lines = []
    for side, batch, form in runs:
        done = run([sys.executable, "-W", "ignore", __file__, *passed, "--one", side, str(batch), form])
        seconds = json.loads(done.stdout.strip().splitlines()[-1])["seconds"]
        lines.append([f"{side}, {form}", batch, done.peak_mb, args.steps * batch / seconds])
    table(
        f"scifact, {args.max_tokens} tokens, {args.steps} steps, float32",
        ["", "batch", "peak MB", "pairs/s"],
        lines,
    )


if __name__ == "__main__":
    main()
