"""What stays of a training run for people: a curve of the loss, and a model card.

Numbers come from the run's own log; nothing here computes one.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise.extras import require


@dataclass(frozen=True)
class ModelCard:
    """What a model card says.

    Attributes:
        title: Name of the model.
        summary: A sentence or two.
        data: Facts about the training data.
        settings: Facts about model and training.
        results: Measured numbers.
        split: What the results were measured on.
        tags: For the hub's search.
        notes: Anything that a user should know, a sentence each.
        library: Which library loads the model.
    """

    title: str
    summary: str
    data: Mapping[str, Any]
    settings: Mapping[str, Any]
    results: Mapping[str, float]
    split: str
    tags: Sequence[str] = ()
    notes: Sequence[str] = field(default_factory=tuple)
    library: str = "transformers"

    def markdown(self) -> str:
        """The card as Markdown with the header that model hubs read.

        Example:
            >>> card = ModelCard("m", "A model.", {"tokens": 5}, {}, {"loss": 0.5}, "held-out documents")
            >>> "| tokens | 5 |" in card.markdown()
            True
        """
        tags = "".join(f"- {tag}\n" for tag in ("likewise", *self.tags))
        parts = [
            f"---\nlibrary_name: {self.library}\ntags:\n{tags}---\n",
            f"# {self.title}\n\n{self.summary}\n",
            "## Data\n\n" + _table(self.data),
            "## Training\n\n" + _table(self.settings),
        ]
        if self.results:
            numbers = {name: f"{value:.4g}" for name, value in self.results.items()}
            parts.append(
                f"## Results on {self.split}\n\nOne run; no spread over seeds is known.\n\n" + _table(numbers)
            )
        if self.notes:
            parts.append("## Notes\n\n" + "".join(f"- {note}\n" for note in self.notes))
        return "\n".join(parts)


def hardware() -> dict[str, str]:
    """What this process runs on."""
    import torch

    facts = {
        "processor": f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads",
        "system": platform.system(),
        "torch": torch.__version__,
    }
    if torch.cuda.is_available():
        facts["accelerator"] = torch.cuda.get_device_name()
    return facts


def draw_losses(log: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw training and held-out loss over the steps to a PNG.

    Args:
        log: Records of a `JsonLog`.
        path: The image.

    Raises:
        MissingExtra: The `train` extra is not installed.
    """
    require("matplotlib", extra="train", purpose="drawing the loss curve")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.xaxis.get_major_locator().set_params(integer=True)
    for kind, label, style in (("progress", "training", ".-"), ("evaluation", "held-out", "o--")):
        points = [
            (r["step"], r["metrics"]["loss"]) for r in log if r["event"] == kind and "loss" in r["metrics"]
        ]
        if points:
            axes.plot(*zip(*points, strict=True), style, label=label, markersize=4)
    axes.set(xlabel="step", ylabel="loss", title="Loss")
    axes.grid(alpha=0.3)
    if axes.has_data():
        axes.legend()
    figure.savefig(path, dpi=120)


def _table(facts: Mapping[str, Any]) -> str:
    rows = "".join(f"| {_cell(name)} | {_cell(value)} |\n" for name, value in facts.items())
    return f"| | |\n|---|---|\n{rows}"


def _cell(value: Any) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
