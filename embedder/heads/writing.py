"""What a fine-tuning run leaves for people: metrics.json, a model card, pictures, the hardest errors."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.embedder.heads.evaluation import Report, draw_calibration, draw_confusion
from likewise.embedder.heads.task import Task
from likewise.embedder.report import ModelCard, hardware
from likewise.embedder.resolve import DEFAULT_ENCODER
from likewise.errors import MissingExtra

if TYPE_CHECKING:
    from likewise.embedder.heads.finetune import FinetuneResult
    from likewise.embedder.heads.finetune_settings import FinetuneSettings

_PIPELINES = {
    "classification": "text-classification",
    "multilabel": "text-classification",
    "regression": "text-classification",
    "tagging": "token-classification",
    "questions": "question-answering",
}


def write_report(result: FinetuneResult, settings: FinetuneSettings, task: Task) -> None:
    """Write everything beside the model.

    Args:
        result: Of the run.
        settings: Of the run.
        task: As it was saved.
    """
    folder = result.folder
    metrics = summary(result)
    (folder / "metrics.json").write_text(json.dumps(metrics, indent=1, ensure_ascii=False), "utf-8")
    for each in result.reports:
        _write_mistakes(each, folder / f"errors-{each.split}.jsonl")
    notes = [*result.data.notes, *_pictures(result, folder)]
    run = result.runs[result.best]
    training = {name: value for name, value in asdict(settings.training).items() if value is not None}
    facts: dict[str, Any] = {
        "encoder": settings.model or DEFAULT_ENCODER,
        **result.parameters,
        "learning rate": f"{run.rate:g}",
        "seed": run.seed,
        "batch": settings.batch_size,
        "head": settings.frozen or task.auto_class.removeprefix("AutoModel"),
        "texts that were cut": result.truncated,
    }
    if run.training is not None:
        facts |= {
            "steps": run.training.step,
            "epochs": f"{run.training.epochs:.2f}",
            "minutes": f"{run.training.seconds / 60:.1f}",
            "precision": run.training.precision,
        }
        names = ("schedule", "warmup", "weight_decay", "layer_decay", "average", "accumulation", "clip")
        facts |= {name.replace("_", " "): training[name] for name in names if name in training}
    report = result.reports[-1] if result.reports else None
    results: dict[str, float] = {}
    for name, value in (report.metrics if report else {}).items():
        results[name] = value
    if report is not None:
        low, high = report.intervals[task.primary]
        notes.append(f"95% interval of {task.primary} by bootstrap: {low:.4f} to {high:.4f}.")
    notes += [f"{name}: {mean:.4f} ± {sd:.4f} over seeds." for name, (mean, sd) in result.spread.items()]
    card = ModelCard(
        title=folder.name,
        summary=f"{settings.model or DEFAULT_ENCODER}, fine-tuned for {task.kind}.",
        data=result.data.facts,
        settings={**facts, **task.settings(), **hardware()},
        results=results,
        split=f"{report.examples:,} {report.split} examples" if report else "no split",
        tags=(_PIPELINES[task.kind],),
        notes=notes,
    )
    (folder / "README.md").write_text(card.markdown(), "utf-8")


def summary(result: FinetuneResult) -> dict[str, Any]:
    """The run as fields of a JSON object."""
    return {
        "version": 1,
        "folder": str(result.folder),
        "status": result.status,
        "runs": [
            {
                "learning_rate": run.rate,
                "seed": run.seed,
                "kept": number == result.best,
                "steps": run.training.step if run.training else None,
                "seconds": round(run.training.seconds, 3) if run.training else None,
                "dev": {name: round(value, 6) for name, value in run.dev.items()},
                "test": {name: round(value, 6) for name, value in run.test.items()},
            }
            for number, run in enumerate(result.runs)
        ],
        "scores": [report.to_json() for report in result.reports],
        "spread": {
            name: {"mean": round(mean, 6), "standard_deviation": round(sd, 6)}
            for name, (mean, sd) in result.spread.items()
        },
        "data": dict(result.data.facts),
        "notes": list(result.data.notes),
        "truncated": result.truncated,
        "parameters": dict(result.parameters),
    }


def _write_mistakes(report: Report, path: Path) -> None:
    lines = [
        {
            "text": mistake.text,
            "gold": mistake.gold,
            "predicted": mistake.predicted,
            "confidence": None if mistake.confidence != mistake.confidence else round(mistake.confidence, 6),
        }
        for mistake in report.mistakes
    ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    # A lone surrogate in a text has no UTF-8 form.
    path.write_text(text, "utf-8", errors="backslashreplace")


def _pictures(result: FinetuneResult, folder: Path) -> list[str]:
    notes = []
    for report in result.reports[-1:]:
        try:
            if report.confusion is not None:
                draw_confusion(report, folder / "confusion.png")
                draw_calibration(report, folder / "calibration.png")
                notes.append("![confusion](confusion.png) ![calibration](calibration.png)")
        except MissingExtra:
            notes.append("No pictures were drawn: matplotlib is not installed (likewise[train]).")
    return notes
