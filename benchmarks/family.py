"""The BERT family: every recipe for the same minutes on the same text, and what it is good for afterwards.

English speeches, plays and encyclopaedia articles (text-public-domain, wikitext-2) and Chinese, Simplified
and Traditional (docs-fastapi, drcd-dev); one vocabulary of 8,000 for all. Losses of different recipes do not
compare: each is of its own task. What is guessed is the hidden tokens, for electra by the generator, for gpt
the next token. The student of distilbert learns from the model that the recipe roberta gave, whose minutes
come on top of its own.

The minutes are of processor time: a short trial tells how many steps they are, so that a busy machine is no
recipe's disadvantage.

"probe" is a linear classifier on the frozen encoder, "fine-tune" a short training of all, both on
mr-polarity; the first row is the untrained encoder, the yardstick for what so short a pretraining brings.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path

from _classification import finetune, polarity, probe
from _measure import CACHE, table
from _texts import chinese_documents, english_documents

from likewise.embedder.corpus_build import SourceText
from likewise.embedder.events import Progress
from likewise.embedder.pretrain import PretrainResult, PretrainSettings, pretrain
from likewise.embedder.recipes import RECIPES
from likewise.embedder.training_settings import TrainingSettings
from likewise.embedder.vocabulary import VocabularySettings, train_vocabulary

TOKENS = 2048
GUESSED = ("masked_accuracy", "next_accuracy")


def documents() -> list[str]:
    """All texts."""
    return [*english_documents(), *chinese_documents()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=3.0, help="of processor time per recipe")
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--recipes", nargs="+", choices=list(RECIPES), default=list(RECIPES))
    parser.add_argument("--finetune-steps", type=int, default=150)
    parser.add_argument("--texts", type=int, default=4000, help="labelled texts for training the classifiers")
    args = parser.parse_args()
    if "distilbert" in args.recipes and "roberta" not in args.recipes:
        parser.error("distilbert learns from roberta: name both")

    texts = documents()
    work = CACHE / "family"
    shutil.rmtree(work, ignore_errors=True)
    train_vocabulary(texts, VocabularySettings(size=8_000)).save_pretrained(work / "tokenizer")
    known, asked = polarity(args.texts, 2_000)
    rows: list[list[object]] = []

    def trained(name: str, folder: Path, steps: int, rate: float) -> tuple[PretrainResult, float]:
        """The result, and the median of a step's processor time, the first ones left out."""
        clock: list[float] = []
        student = name == "distilbert"
        result = pretrain(
            lambda: map(SourceText, texts),
            folder,
            PretrainSettings(
                training=TrainingSettings(steps=steps, learning_rate=rate, log_every=1, save_every=None),
                recipe="roberta" if student else name,
                teacher=str(work / "roberta") if student else None,
                size=args.size,
                tokenizer=None if student else str(work / "tokenizer"),
                length=128,
                tokens_per_batch=TOKENS,
                evaluation_batches=10,
            ),
            source="family",
            listeners=[
                lambda event: clock.append(time.process_time()) if isinstance(event, Progress) else None
            ],
        )
        if result.training.status == "interrupted":
            sys.exit("stopped before the end")
        costs = [later - earlier for earlier, later in pairwise(clock[2:])]
        return result, statistics.median(costs)

    def run(name: str) -> None:
        trial, folder = work / f"{name}-trial", work / name
        # So small a rate leaves the model as it was drawn.
        result, cost = trained(name, trial, 10, rate=1e-12)
        if name == "roberta":
            rows.append(row("untrained", trial, result, cost))
        shutil.copytree(trial / "training" / "corpus", folder / "training" / "corpus")
        result, cost = trained(name, folder, max(10, round(60 * args.minutes / cost)), rate=1e-3)
        rows.append(row(name, folder, result, cost))

    def row(name: str, folder: Path, result: PretrainResult, cost: float) -> list[object]:
        metrics = result.training.metrics
        guessed = next((metrics[key] for key in GUESSED if key in metrics), float("nan"))
        found = [
            name,
            f"{result.parameters['encoder parameters']:,}",
            f"{result.parameters['parameters']:,}",
            result.training.step,
            f"{TOKENS / cost:,.0f}",
            metrics["loss"],
            guessed,
            str(probe(folder, known, asked)),
            str(finetune(folder, known, asked, steps=args.finetune_steps)),
        ]
        print(*found, sep="\t", flush=True)
        return found

    for name in sorted(args.recipes, key=lambda name: (name != "roberta", name == "distilbert")):
        run(name)
    table(
        f"Size {args.size}, {args.minutes:g} processor minutes each; held out; mr-polarity with 95%",
        [
            "", "encoder", "parameters", "steps", "tokens/cpu-s", "loss", "guessed", "probe", "fine-tune",
        ],
        rows,
    )  # fmt: skip


if __name__ == "__main__":
    main()
