"""The BERT family: every recipe for the same minutes on the same text, and what it is good for afterwards.

English speeches, plays and encyclopaedia articles (text-public-domain, wikitext-2) and Chinese, Simplified
and Traditional (docs-fastapi, drcd-dev); one vocabulary of 8,000 for all. Losses of different recipes do not
compare: each is of its own task. What is guessed is the hidden tokens, for electra by the generator, for gpt
the next token. The student of distilbert learns from the model that the recipe roberta gave, whose minutes
come on top of its own.

"probe" is a linear classifier on the frozen encoder, "fine-tune" a short training of all, both on
mr-polarity; the first row is the untrained encoder, the yardstick for what so short a pretraining brings.
"""

from __future__ import annotations

import argparse
import shutil

from _classification import finetune, polarity, probe
from _measure import CACHE, table
from _texts import chinese_documents, english_documents

from likewise.embedder.corpus_build import SourceText
from likewise.embedder.events import Progress
from likewise.embedder.pretrain import PretrainResult, PretrainSettings, pretrain
from likewise.embedder.recipes import RECIPES
from likewise.embedder.training_settings import TrainingSettings
from likewise.embedder.vocabulary import VocabularySettings, train_vocabulary

GUESSED = ("masked_accuracy", "next_accuracy")


def documents() -> list[str]:
    """All texts."""
    return [*english_documents(), *chinese_documents()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="of training per recipe")
    parser.add_argument("--size", default="mini")
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
    rows = []

    def run(name: str, *, steps: int | None = None) -> PretrainResult:
        speeds: list[float] = []
        budget = {"minutes": args.minutes} if steps is None else {"steps": steps}
        student = name == "distilbert"
        folder = work / (name if steps is None else "untrained")
        result = pretrain(
            lambda: map(SourceText, texts),
            folder,
            PretrainSettings(
                training=TrainingSettings(
                    **budget, learning_rate=1e-3 if steps is None else 1e-12, log_every=10, save_every=None
                ),
                recipe="roberta" if student else name,
                teacher=str(work / "roberta") if student else None,
                size=args.size,
                tokenizer=None if student else str(work / "tokenizer"),
                length=128,
                tokens_per_batch=4096,
                evaluation_batches=10,
            ),
            source="family",
            listeners=[
                lambda event: speeds.append(event.tokens_per_second) if isinstance(event, Progress) else None
            ],
        )
        metrics = result.training.metrics
        guessed = next((metrics[key] for key in GUESSED if key in metrics), float("nan"))
        rows.append(
            [
                name if steps is None else "untrained",
                f"{result.parameters['encoder parameters']:,}",
                f"{result.parameters['parameters']:,}",
                result.training.step,
                f"{sorted(speeds)[len(speeds) // 2]:,.0f}" if speeds else "-",
                metrics["loss"],
                guessed,
                str(probe(folder, known, asked)),
                str(finetune(folder, known, asked, steps=args.finetune_steps)),
            ]
        )
        return result

    run("roberta", steps=1)
    for name in sorted(args.recipes, key=lambda name: name == "distilbert"):
        run(name)
        print(*rows[-1], sep="\t", flush=True)
    table(
        f"Size {args.size}, {args.minutes:g} minutes each; held-out loss and accuracy; mr-polarity, 95%",
        [
            "recipe", "encoder", "parameters", "steps", "tokens/s", "loss", "guessed", "probe", "fine-tune",
        ],
        rows,
    )  # fmt: skip


if __name__ == "__main__":
    main()
