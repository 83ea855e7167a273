"""Write what a training run reports to files: a table for spreadsheets, JSON lines, TensorBoard.

Each log is a listener of `train`. A run that goes on from a checkpoint drops what was logged after it, so
that every step stands in the files once.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from likewise.embedder.events import Evaluated, Event, Progress, Started
from likewise.extras import require


class CsvLog:
    """One row per report, to a file that spreadsheets open.

    Args:
        path: The file; its columns are those of the first report.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._columns: list[str] | None = None

    def __call__(self, event: Event) -> None:
        """Write a row for a `Progress`; drop later rows at a `Started`."""
        if isinstance(event, Started):
            self._resume(event.step)
        elif isinstance(event, Progress):
            row = _flat(event)
            if self._columns is None:
                self._columns = list(row)
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("w", newline="", encoding="utf-8") as file:
                    csv.writer(file).writerow(self._columns)
            with self._path.open("a", newline="", encoding="utf-8") as file:
                csv.writer(file).writerow([row.get(column, "") for column in self._columns])

    def _resume(self, step: int) -> None:
        self._columns = None
        if not step or not self._path.exists():
            return
        with self._path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        if rows:
            self._columns = rows[0]
            kept = [rows[0], *(row for row in rows[1:] if row and int(row[0]) <= step)]
            _rewrite(self._path, lambda file: csv.writer(file).writerows(kept))


class JsonLog:
    """One JSON object per report and evaluation.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, event: Event) -> None:
        """Write a line for a `Progress` or an `Evaluated`; drop later lines at a `Started`."""
        if isinstance(event, Started):
            self._resume(event.step)
        elif isinstance(event, Progress | Evaluated):
            kind = "progress" if isinstance(event, Progress) else "evaluation"
            record = {"event": kind, **asdict(event)}
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record, default=dict, allow_nan=True) + "\n")

    def _resume(self, step: int) -> None:
        if self._path.exists():
            kept = [line for line in read_log(self._path) if line["step"] <= step] if step else []
            _rewrite(self._path, lambda file: file.writelines(json.dumps(line) + "\n" for line in kept))


class TensorBoardLog:
    """Curves for TensorBoard.

    Args:
        folder: Where its event files go.

    Raises:
        MissingExtra: The `train` extra is not installed.
    """

    def __init__(self, folder: Path) -> None:
        require("tensorboard", extra="train", purpose="logging for TensorBoard")
        self._folder = folder
        self._writer: Any = None

    def __call__(self, event: Event) -> None:
        """Write the numbers of a `Progress` or an `Evaluated`."""
        if isinstance(event, Started):
            from torch.utils.tensorboard import SummaryWriter

            # `purge_step` hides what an earlier run wrote after the checkpoint.
            self._writer = SummaryWriter(str(self._folder), purge_step=event.step + 1)
        elif isinstance(event, Progress):
            for name, value in _flat(event).items():
                if name != "step":
                    self._writer.add_scalar(f"train/{name}", value, event.step)
        elif isinstance(event, Evaluated):
            for name, value in event.metrics.items():
                self._writer.add_scalar(f"held-out/{name}", value, event.step)
            self._writer.flush()

    def close(self) -> None:
        """Write what is still in memory."""
        if self._writer is not None:
            self._writer.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """Lines of a `JsonLog`, a last one that was cut off by a crash left out; none if it is gone."""
    records: list[dict[str, Any]] = []
    if not path.exists():
        return records
    for line in path.read_text("utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            break
    return records


def _flat(event: Progress) -> dict[str, Any]:
    values = asdict(event)
    metrics = values.pop("metrics")
    return {"step": values.pop("step"), **metrics, **values}


def _rewrite(path: Path, write: Callable[[Any], object]) -> None:
    draft = path.with_name(f".{path.name}")
    with draft.open("w", newline="", encoding="utf-8") as file:
        write(file)
    os.replace(draft, path)
