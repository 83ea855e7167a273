"""What a pretraining run leaves for people: metrics, loss curve, and a model card beside the model."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.embedder.logs import read_log
from likewise.embedder.recipes import recipe
from likewise.embedder.report import ModelCard, draw_losses, hardware
from likewise.errors import MissingExtra

if TYPE_CHECKING:
    from likewise.embedder.pretrain import PretrainResult, PretrainSettings


def report(done: PretrainResult, settings: PretrainSettings, work: Path) -> None:
    """Write `metrics.json`, `loss.png` and `README.md` into the folder of the model.

    Args:
        done: How the run went.
        settings: Of the run.
        work: Where its logs are.
    """
    result = done.training
    metrics = {"status": result.status, "step": result.step, "epochs": result.epochs, **result.metrics}
    (done.folder / "metrics.json").write_text(json.dumps(metrics, indent=1), "utf-8")
    if settings.init is not None:
        summary = f"{settings.init}, continued with masked language modelling."
    elif settings.teacher is not None:
        summary = f"A student of {settings.teacher} with fewer layers."
    else:
        chosen = recipe(settings.recipe)
        summary = f"Trained from scratch with the recipe `{chosen.name}` ({chosen.paper}). {chosen.idea}"
    notes = ["A pretrained encoder: its sentence vectors need fine-tuning before they are good for search."]
    if settings.init is None and settings.teacher is None:
        notes.append(f"Differs from the paper: {recipe(settings.recipe).differs}")
    try:
        draw_losses(read_log(work / "log.jsonl"), done.folder / "loss.png")
        notes.append("The course of the loss: ![loss](loss.png)")
    except MissingExtra:
        notes.append("No loss curve was drawn: matplotlib is not installed (likewise[train]).")
    training = {name: value for name, value in asdict(settings.training).items() if value is not None}
    card = ModelCard(
        title=done.folder.name,
        summary=summary,
        data=vars(done.corpus),
        settings={
            **done.parameters,
            "steps": result.step,
            "epochs": f"{result.epochs:.2f}",
            "minutes": f"{result.seconds / 60:.1f}",
            "sequence length": settings.length,
            "tokens per micro-batch": settings.tokens_per_batch,
            **{
                name.replace("_", " "): value
                for name, value in training.items()
                if name not in ("steps", "epochs", "minutes", "precision")
            },
            "precision": result.precision,
            **hardware(),
        },
        results=result.metrics,
        split=f"{done.corpus.held_out} held-out documents, at most {settings.evaluation_batches} batches",
        tags=("fill-mask",),
        notes=notes,
    )
    (done.folder / "README.md").write_text(card.markdown(), "utf-8")
