"""From pairs to encoders that may be better: one training run, as it is and averaged with its base.

Averaging the weights with those that training started from keeps what the base knew (Wortsman et al. 2022,
"Robust fine-tuning of zero-shot models", 2109.01903). Which candidate is better is not known here.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.embedder.siamese.settings import SiameseSettings, TrainingData
from likewise.embedder.training_settings import TrainingSettings

if TYPE_CHECKING:
    from likewise.embedder.events import Listener
    from likewise.embedder.siamese.pairs import PairData
    from likewise.embedder.siamese.train import SiameseResult


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How candidates are trained.

    Attributes:
        minutes: Time for training; None if `steps` is given.
        steps: Optimiser steps, for runs that can be repeated exactly.
        learning_rate: Small, since the base is good already.
        batch_size: Rows in a batch; each is a negative for all others.
        evaluate_every: Steps between two looks at the held-out pairs.
        patience: Looks without a better value after which training stops.
        shares: Shares of the base in the weights of the candidates, the largest first: of candidates that
            chance does not tell apart the first is taken.
        precision: Of the forward pass.
        device: Where training runs.
        seed: Of order and dropout.
    """

    minutes: float | None = 10.0
    steps: int | None = None
    learning_rate: float = 2e-5
    batch_size: int = 32
    evaluate_every: int = 25
    patience: int = 4
    shares: tuple[float, ...] = (0.5, 0.0)
    precision: str = "auto"
    device: str = "auto"
    seed: int = 0


@dataclass(frozen=True)
class Candidate:
    """An encoder to compare.

    Attributes:
        name: For people.
        share: Of the base in its weights.
        folder: Sentence Transformers directory.
    """

    name: str
    share: float
    folder: Path


def train_candidates(
    encoder: str | None,
    data: Sequence[PairData],
    held_out: PairData,
    folder: Path,
    recipe: Recipe,
    *,
    listeners: Sequence[Listener] = (),
) -> tuple[SiameseResult, list[Candidate]]:
    """Train on pairs, or go on with a run that was interrupted in the same folder.

    Args:
        encoder: Name of the encoder to start from; None for the default.
        data: Pairs, those with negatives apart from those without.
        held_out: Pairs of other documents, which stop the training.
        folder: For the run and the candidates.
        recipe: How.
        listeners: Told how the training goes.

    Returns:
        How the run went, and the candidates: none after an interruption, or if not even the held-out pairs
        got any nearer.

    Raises:
        EncoderError: The encoder cannot be trained.
        TrainingError: The run diverged or could not be saved.
    """
    from likewise.embedder.siamese.train import train_siamese

    budget = {"steps": recipe.steps} if recipe.steps is not None else {"minutes": recipe.minutes}
    settings = SiameseSettings(
        training=TrainingSettings(
            **budget,
            learning_rate=recipe.learning_rate,
            warmup=0.1,
            precision=recipe.precision,  # type: ignore[arg-type]  # checked there
            seed=recipe.seed,
            evaluate_every=recipe.evaluate_every,
            patience=recipe.patience,
        ),
        encoder=encoder,
        batch_size=recipe.batch_size,
        device=recipe.device,
    )
    trained = folder / "trained"
    result = train_siamese(
        [TrainingData(source=pairs, loss="ranking") for pairs in data if len(pairs) > 1],
        trained,
        settings,
        held_out=[TrainingData(source=held_out, loss="ranking")],
        listeners=listeners,
    )
    if result.training.status == "interrupted" or result.kept != "trained":
        return result, []
    return result, [_candidate(encoder, trained, share, folder) for share in recipe.shares]


def _candidate(encoder: str | None, trained: Path, share: float, folder: Path) -> Candidate:
    if not share:
        return Candidate("trained", 0.0, trained)
    target = folder / f"blend-{round(100 * share)}"
    blend_models(encoder, trained, share, target)
    return Candidate(f"trained, {share:.0%} of the base", share, target)


def blend_models(encoder: str | None, trained: Path, share: float, target: Path) -> None:
    """Write the model whose weights lie between those of two models of the same shape.

    Args:
        encoder: The base; None for the default encoder.
        trained: Directory of the model that was trained from it.
        share: Of the base, in (0, 1).
        target: Directory to write; replaced if it is there.
    """
    import torch

    from likewise.embedder.siamese.loading import load_sentence_model
    from likewise.embedder.siamese.saving import save_sentence_model

    base, other = load_sentence_model(encoder), load_sentence_model(trained)
    with torch.no_grad():
        for own, old in zip(other.model.parameters(), base.model.parameters(), strict=True):
            own.lerp_(old, share)
    shutil.rmtree(target, ignore_errors=True)
    save_sentence_model(other.model, other.spec, target)
    card = trained / "README.md"
    if card.is_file():
        shutil.copyfile(card, target / card.name)
