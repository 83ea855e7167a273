"""Checkpoints that survive a crash, a full disk and a change of settings.

A checkpoint is a folder `step-000000120` with weights and optimiser state as safetensors and the rest as
JSON; nothing is pickled. It is written under another name, flushed to the disk and then renamed, so that a
folder of that name is always complete. What a checkpoint belongs to is recorded in it, and continuing with
other settings is refused with the differences named. Nothing here knows about losses or data.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import Tensor, nn

from likewise.embedder import randomness
from likewise.embedder.weight_average import WeightAverage
from likewise.errors import CheckpointError
from likewise.version import __version__

FORMAT = 1
_WEIGHTS, _STATE, _RECORD = "model.safetensors", "state.safetensors", "checkpoint.json"


class CheckpointStore:
    """The checkpoints of one run: the last few and the best.

    Args:
        folder: Where they stand; made by the first save.
        keep: How many of the last ones to keep, at least 1. The best one is kept besides.
    """

    def __init__(self, folder: Path, *, keep: int = 1) -> None:
        self.folder = folder
        self.keep = max(1, keep)

    def all(self) -> list[Path]:
        """Complete checkpoints, oldest first."""
        return sorted(path for path in self.folder.glob("step-*") if (path / _RECORD).is_file())

    def latest(self) -> Path | None:
        """The newest checkpoint, if there is one."""
        return max(self.all(), default=None)

    def best(self) -> Path | None:
        """The checkpoint that was marked as the best, if there is one."""
        pointer = self.folder / "best.json"
        if not pointer.is_file():
            return None
        path = self.folder / json.loads(pointer.read_text("utf-8"))["checkpoint"]
        return path if (path / _RECORD).is_file() else None

    def save(
        self,
        step: int,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        state: Mapping[str, Any],
        config: Mapping[str, Any],
        average: WeightAverage | None = None,
        best: bool = False,
    ) -> Path:
        """Write a checkpoint and remove the ones that are too many.

        Args:
            step: Steps done; part of the name.
            model: Its weights, shared tensors once.
            optimizer: Its running means.
            state: Whatever else the run needs to go on, as JSON.
            config: What the checkpoint belongs to, as JSON; compared when it is loaded.
            average: The running mean of the weights.
            best: Mark it as the best one so far.

        Returns:
            The folder of the checkpoint.

        Raises:
            CheckpointError: It cannot be written; earlier checkpoints are untouched.
        """
        target = self.folder / f"step-{step:09d}"
        draft = self.folder / f".{target.name}.{os.getpid()}"
        try:
            draft.mkdir(parents=True, exist_ok=True)
            save_model(model, str(draft / _WEIGHTS))
            generators, tensors = randomness.capture()
            tensors = {f"rng.{name}": tensor for name, tensor in tensors.items()}
            means = average.tensors() if average is not None else {}
            save_file(tensors | _optimizer_tensors(optimizer) | means, str(draft / _STATE))
            record = {
                "format": FORMAT,
                "step": step,
                "state": dict(state),
                "average": average.state() if average is not None else None,
                "generators": generators,
                "config": dict(config),
                "versions": {
                    "likewise": __version__,
                    "torch": torch.__version__,
                    "python": platform.python_version(),
                },
                "sha256": {name: _digest(draft / name) for name in (_WEIGHTS, _STATE)},
            }
            (draft / _RECORD).write_text(json.dumps(record, ensure_ascii=False), "utf-8")
            for name in (_WEIGHTS, _STATE, _RECORD):
                _flush(draft / name)
            if target.exists():  # the same step again, after a resume: the content is the same
                _remove(target)
            os.replace(draft, target)
            _flush_folder(self.folder)
            if best:
                self._mark_best(target)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(draft, ignore_errors=True)
            kept = self.latest()
            raise CheckpointError(
                f"the checkpoint of step {step} could not be written to {self.folder}: {error}; "
                + (f"{kept.name} is complete and kept" if kept else "there is no earlier one"),
                remedy="free some space, then run the same command again: it continues from there",
            ) from error
        self._prune()
        return target

    def load(
        self,
        path: Path,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
        *,
        config: Mapping[str, Any] | None = None,
        average: WeightAverage | None = None,
    ) -> dict[str, Any]:
        """Read a checkpoint back: weights, and with an optimiser also its state and all random generators.

        Args:
            path: One of this store's checkpoints.
            model: Gets the weights.
            optimizer: Gets its running means; None reads the weights only.
            config: What the run is now; must equal what was saved. None accepts any.
            average: Gets the running mean of the weights.

        Returns:
            The `state` that was saved.

        Raises:
            CheckpointError: Damaged, made by a newer version, or of another run.
        """
        record = read_record(path)
        if config is not None:
            refuse_other_config(path, record["config"], config)
        for name, digest in record["sha256"].items():
            if not (path / name).is_file() or _digest(path / name) != digest:
                raise CheckpointError(
                    f"{path / name} is damaged: its content is not what was written",
                    remedy=f"remove {path}; the run then continues from an earlier checkpoint",
                )
        try:
            load_model(model, str(path / _WEIGHTS), device=str(next(model.parameters()).device))
        except RuntimeError as error:
            raise CheckpointError(f"the weights in {path} are of another model: {error}") from error
        tensors = load_file(str(path / _STATE)) if optimizer is not None or average is not None else {}
        if average is not None:
            average.restore(tensors, record["average"])
        if optimizer is not None:
            _restore_optimizer(optimizer, tensors)
            generators = {k.removeprefix("rng."): t for k, t in tensors.items() if k.startswith("rng.")}
            randomness.restore(record["generators"], generators)
        state: dict[str, Any] = record["state"]
        return state

    def _mark_best(self, target: Path) -> None:
        draft = self.folder / ".best.json"
        draft.write_text(json.dumps({"checkpoint": target.name}), "utf-8")
        _flush(draft)
        os.replace(draft, self.folder / "best.json")
        _flush_folder(self.folder)

    def _prune(self) -> None:
        best = self.best()
        for path in self.all()[: -self.keep]:
            if path != best:
                _remove(path)
        for leftover in self.folder.glob(".step-*"):
            shutil.rmtree(leftover, ignore_errors=True)


def read_record(path: Path) -> dict[str, Any]:
    """The JSON part of a checkpoint.

    Raises:
        CheckpointError: Missing, damaged, or made by a newer version.
    """
    try:
        record: dict[str, Any] = json.loads((path / _RECORD).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"no readable checkpoint in {path}: {error}") from error
    if record.get("format") != FORMAT:
        raise CheckpointError(
            f"expected a checkpoint of format {FORMAT}, found {record.get('format')} in {path}",
            remedy="pip install --upgrade likewise",
        )
    return record


def refuse_other_config(path: Path, saved: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise if a checkpoint belongs to another run.

    Raises:
        CheckpointError: Names every difference.
    """
    differences = list(_differences("", json.loads(json.dumps(saved)), json.loads(json.dumps(now))))
    if differences:
        raise CheckpointError(
            f"the checkpoint {path} belongs to a run with other settings: " + "; ".join(differences),
            remedy="give the old settings to continue it, or another output folder to start anew",
        )


def _differences(name: str, saved: Any, now: Any) -> Iterator[str]:
    if isinstance(saved, dict) and isinstance(now, dict):
        for key in sorted(saved.keys() | now.keys()):
            yield from _differences(f"{name}.{key}" if name else key, saved.get(key), now.get(key))
    elif saved != now:
        yield f"{name} was {saved!r}, now {now!r}"


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"optimizer.{number}.{name}": torch.as_tensor(value).contiguous()
        for number, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }


def _restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith("optimizer."):
            _, number, name = key.split(".", 2)
            state.setdefault(int(number), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush(path: Path) -> None:
    with path.open("rb+") as file:  # Windows flushes only what is open for writing
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    if os.name == "posix":  # elsewhere a folder cannot be opened, and renames are flushed by the system
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _remove(path: Path) -> None:
    """Remove a checkpoint so that it is never seen half removed."""
    doomed = path.with_name(f".{path.name}.old")
    shutil.rmtree(doomed, ignore_errors=True)
    os.replace(path, doomed)
    shutil.rmtree(doomed, ignore_errors=True)
