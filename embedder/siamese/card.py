"""The model card of a siamese training run: data, settings, before and after, hardware."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from likewise.embedder.report import ModelCard, hardware
from likewise.embedder.siamese.data import DataReport
from likewise.embedder.siamese.verdict import Verdict


def write_card(
    folder: Path, facts: Mapping[str, Any], verdict: Verdict, report: DataReport, *, kept: str
) -> None:
    """Write `README.md`.

    Args:
        folder: Of the model.
        facts: Settings of model and training.
        verdict: Whether it got better.
        report: What it was trained on.
        kept: "trained" or "base".
    """
    notes = [verdict.sentence(), *report.notices]
    if kept == "base":
        notes.insert(0, "These are the weights that training started from: the trained ones were no better.")
    card = ModelCard(
        title=folder.resolve().name,
        summary=(
            f"A sentence encoder, trained from {facts['base']} in the manner of Sentence-BERT. "
            "Its vectors have unit length and are compared by cosine."
        ),
        data={
            **{f"rows of {name}": rows for name, rows in report.rows.items()},
            "distinct texts": report.texts,
            "texts cut to the token limit": report.truncated,
            **{f"held-out rows of {name}": rows for name, rows in report.held_out.items()},
            "held-out rows also in the training data": report.shared,
        },
        settings={**facts, **hardware()},
        results={},
        split="",
        tags=("sentence-transformers", "sentence-similarity", "feature-extraction"),
        notes=notes,
        library="sentence-transformers",
    )
    text = card.markdown()
    if verdict.comparisons:
        text += (
            "\n## Before and after\n\nOn held-out rows, with 95% bootstrap intervals over the rows; one run, "
            f"no spread over seeds is known.\n\n{verdict.table()}"
        )
    (folder / "README.md").write_text(text, "utf-8")
