"""Hidden states of a frozen encoder, computed once and kept: epochs of tagging and answering cost the head.

The head is that of the Hugging Face model, whatever it consists of: its encoder is exchanged for a stand-in
that returns kept states, and comes back before the model is saved. States are float16 in one file for each
set of windows, mapped into memory. Everything in it can be computed again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.embedder.batching import plan_batches
from likewise.embedder.cache import cache_root
from likewise.embedder.heads.losses import HeadObjective, logits_of
from likewise.embedder.heads.rows import HeadBatch
from likewise.embedder.heads.scoring import pad
from likewise.embedder.heads.task import Encoded, Row
from likewise.embedder.heads.tokens import Window
from likewise.embedder.objectives import Loss

States = NDArray[np.float16]
# Tokens of a batch that goes through the encoder, padding included.
_BATCH_TOKENS = 8_192


@dataclass(frozen=True, slots=True, eq=False)
class StateRow(Row):
    """A row whose tokens went through the encoder already.

    Attributes:
        states: float16 of shape (tokens, width).
    """

    states: States = field(kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class StateBatch(HeadBatch):
    """Rows with their states, padded with zeros.

    Attributes:
        states: float32 of shape (B, L, width).
    """

    states: Tensor = field(kw_only=True)

    def to(self, device: torch.device) -> StateBatch:
        """The same batch on another device."""
        moved = HeadBatch.to(self, device)
        assert isinstance(moved, StateBatch)
        return replace(moved, states=self.states.to(device))

    def model_inputs(self) -> dict[str, Tensor]:
        """Keyword arguments of a model whose encoder is a stand-in."""
        inputs = {"inputs_embeds": self.states}
        if self.attention_mask is not None:
            inputs["attention_mask"] = self.attention_mask
        return inputs


class StateObjective:
    """The objective of a task, on kept states instead of tokens.

    Args:
        objective: Of the task.
    """

    def __init__(self, objective: HeadObjective) -> None:
        self._objective = objective
        self.name = objective.name

    def prepare(self, examples: Sequence[StateRow], *, draw: int | None, progress: float = 0.0) -> StateBatch:
        """Pad rows and states into a batch."""
        plain = self._objective.prepare(examples, draw=draw, progress=progress)
        fields = {name: getattr(plain, name) for name in HeadBatch.__dataclass_fields__}
        return StateBatch(**fields, states=_padded([row.states for row in examples]))

    def counts(self, batch: StateBatch) -> dict[str, int]:
        """As the task counts."""
        return self._objective.counts(batch)

    def loss(self, model: nn.Module, batch: StateBatch) -> Loss:
        """Loss of a model whose encoder is a stand-in."""
        return self._objective.loss(model, batch)


class TokenVectors:
    """Kept states of one encoder.

    Args:
        model: A Hugging Face model with a head on tokens; its encoder computes what is not kept.
        pad_id: Fills batches up.
        folder: Where files are kept; None for the cache folder.
        progress: Called with the windows done, and how many have to be computed.
    """

    def __init__(
        self,
        model: Any,
        *,
        pad_id: int,
        folder: Path | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.model = model
        self.folder = folder or cache_root() / "token-vectors"
        self._pad_id, self._progress = pad_id, progress
        self._encoder: nn.Module = model.base_model
        self._identity = _identity(self._encoder)

    def bytes_of(self, windows: Sequence[Window]) -> int:
        """Size of the states of some windows."""
        return 2 * sum(map(len, windows)) * int(self.model.config.hidden_size)

    def room(self, *sets: Sequence[Window]) -> bool:
        """Whether the disk has room for the states of these windows, and as much again for others."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return 2 * sum(map(self.bytes_of, sets)) < shutil.disk_usage(self.folder).free

    def states(self, windows: Sequence[Window]) -> list[States]:
        """States of each window, float16 of shape (tokens, width); computed if they are not kept."""
        path = self._path(windows)
        ends = np.cumsum([len(window) for window in windows])
        if not path.is_file():
            self._write(path, windows, ends)
        every = np.load(path, mmap_mode="r")
        return np.split(every, ends[:-1])

    def rows(self, rows: Sequence[Row], encoded: Encoded) -> list[StateRow]:
        """Rows of a task with their states."""
        places = {id(window): number for number, window in enumerate(encoded.windows)}
        states = self.states(encoded.windows)
        return [
            StateRow(row.window, row.target, row.weight, states=states[places[id(row.window)]])
            for row in rows
        ]

    @contextmanager
    def stand_in(self) -> Iterator[None]:
        """While this is open, the model takes kept states as `inputs_embeds`, and has no encoder."""
        prefix = self.model.base_model_prefix
        setattr(self.model, prefix, _StandIn())
        try:
            yield
        finally:
            setattr(self.model, prefix, self._encoder)

    def logits(self, windows: Sequence[Window]) -> list[NDArray[np.float32]]:
        """Logits of each window by the head, while the encoder is a stand-in."""
        found: list[NDArray[np.float32]] = [np.empty(0, dtype=np.float32)] * len(windows)
        states = self.states(windows)
        device = next(self.model.parameters()).device
        for chosen in plan_batches([len(window) for window in windows], budget=_BATCH_TOKENS):
            inputs = _padded([states[number] for number in chosen]).to(device)
            with torch.inference_mode():
                logits = logits_of(self.model(inputs_embeds=inputs)).float().cpu().numpy()
            for row, number in zip(logits, chosen, strict=True):
                found[number] = row[: len(windows[number])].copy()
        return found

    def _path(self, windows: Sequence[Window]) -> Path:
        digest = hashlib.sha256(self._identity)
        for window in windows:
            digest.update(len(window).to_bytes(4, "little"))
            digest.update(window.ids.tobytes())
            digest.update(b"" if window.segments is None else window.segments.tobytes())
        return self.folder / f"{digest.hexdigest()[:32]}.npy"

    def _write(self, path: Path, windows: Sequence[Window], ends: NDArray[np.int64]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        os.close(handle)
        try:
            shape = (int(ends[-1]), int(self.model.config.hidden_size))
            every = np.lib.format.open_memmap(name, mode="w+", dtype=np.float16, shape=shape)
            for number, states in self._computed(windows):
                end = int(ends[number])
                every[end - len(states) : end] = states
            every.flush()
            del every
            os.replace(name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise

    def _computed(self, windows: Sequence[Window]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        device = next(self._encoder.parameters()).device
        training = self._encoder.training
        self._encoder.eval()
        done = 0
        for chosen in plan_batches([len(window) for window in windows], budget=_BATCH_TOKENS):
            batch = pad([windows[number] for number in chosen], pad_id=self._pad_id)
            inputs: Mapping[str, Any] = {
                "input_ids": batch.input_ids,
                "attention_mask": batch.attention_mask,
                **({} if windows[0].segments is None else {"token_type_ids": batch.token_type_ids}),
            }
            with torch.inference_mode():
                output = self._encoder(**{k: torch.from_numpy(v).to(device) for k, v in inputs.items()})
            for row, number in zip(output[0].float().cpu().numpy(), chosen, strict=True):
                yield number, row[: len(windows[number])]
            done += len(chosen)
            if self._progress is not None:
                self._progress(done, len(windows))
        self._encoder.train(training)


class _StandIn(nn.Module):
    """Returns what it is given, as an encoder returns its states."""

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> Any:
        from transformers.modeling_outputs import BaseModelOutput

        return BaseModelOutput(last_hidden_state=inputs_embeds)


def _padded(states: Sequence[States]) -> Tensor:
    width = max(map(len, states))
    padded = np.zeros((len(states), width, states[0].shape[1]), dtype=np.float32)
    for row, one in zip(padded, states, strict=True):
        row[: len(one)] = one
    return torch.from_numpy(padded)


def _identity(encoder: nn.Module) -> bytes:
    """Digest of everything that decides a state."""
    digest = hashlib.sha256(type(encoder).__name__.encode())
    config: Any = encoder.config
    digest.update(config.to_json_string().encode())
    for name, tensor in sorted(encoder.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.digest()
