"""Logits of any number of windows: batches of like length, results in the order asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.batching import plan_batches
from likewise.embedder.heads.tokens import Window

if TYPE_CHECKING:
    from torch import nn


class InputBatch(NamedTuple):
    """Windows as arrays, padded to the longest; each int64 of shape (windows, tokens)."""

    input_ids: NDArray[np.int64]
    attention_mask: NDArray[np.int64]
    token_type_ids: NDArray[np.int64]


class LogitsRuntime(Protocol):
    """A model with a head that is ready to run."""

    @property
    def name(self) -> str:
        """For people: what runs the model, where, and in which precision."""
        ...

    @property
    def concurrency(self) -> int:
        """How many threads may usefully call `run` at once."""
        ...

    @property
    def batch_tokens(self) -> int:
        """Tokens of a batch, padding included, that suit it best."""
        ...

    def run(self, batch: Any) -> NDArray[np.float32]:
        """Logits, (windows, outputs) or (windows, tokens, outputs)."""
        ...


class TorchHead:
    """A Hugging Face model in torch, as it is.

    Args:
        model: In evaluation mode.
        segments: Whether it takes segment ids.
    """

    concurrency = 1  # torch uses all cores for one batch
    batch_tokens = 8192

    def __init__(self, model: nn.Module, *, segments: bool) -> None:
        self.model = model
        self._segments = segments
        self._device = next(model.parameters()).device

    @property
    def name(self) -> str:
        """Such as "torch cpu float32"."""
        return f"torch {self._device} float32"

    def run(self, batch: InputBatch) -> NDArray[np.float32]:
        """Logits of the batch."""
        import torch

        from likewise.embedder.heads.losses import logits_of

        inputs = {name: torch.from_numpy(getattr(batch, name)).to(self._device) for name in batch._fields}
        if not self._segments:
            del inputs["token_type_ids"]
        if bool(batch.attention_mask.all()):
            del inputs["attention_mask"]
        with torch.inference_mode():
            logits: NDArray[np.float32] = logits_of(self.model(**inputs)).float().cpu().numpy()
        return logits


def score(
    windows: Sequence[Window],
    runtime: LogitsRuntime,
    *,
    pad_id: int,
    per_token: bool,
    progress: Callable[[int], None] | None = None,
) -> list[NDArray[np.float32]]:
    """Logits of each window, in order.

    Args:
        windows: Any number.
        runtime: Computes them.
        pad_id: Fills batches up.
        per_token: Whether logits are of tokens; those of the padding are cut off.
        progress: Called with the number of windows that are done.

    Returns:
        float32 of shape (outputs,) or (tokens, outputs) for each window.
    """
    lengths = [len(window) for window in windows]
    plan = plan_batches(lengths, budget=runtime.batch_tokens)
    found: list[NDArray[np.float32]] = [np.empty(0, dtype=np.float32)] * len(windows)
    done = 0

    def run(positions: list[int]) -> NDArray[np.float32]:
        return runtime.run(pad([windows[position] for position in positions], pad_id=pad_id))

    for positions, logits in zip(plan, _map(run, plan, runtime.concurrency), strict=True):
        for row, position in zip(logits, positions, strict=True):
            # A copy: a slice would keep the whole padded batch in memory.
            found[position] = row[: lengths[position]].copy() if per_token else row
        done += len(positions)
        if progress is not None:
            progress(done)
    return found


def _map(
    run: Callable[[list[int]], NDArray[np.float32]], plan: list[list[int]], threads: int
) -> Iterator[NDArray[np.float32]]:
    if threads == 1 or len(plan) < 2:
        yield from map(run, plan)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads, thread_name_prefix="heads") as pool:
        yield from pool.map(run, plan)


def pad(windows: Sequence[Window], *, pad_id: int) -> InputBatch:
    """Windows as arrays, padded to the longest."""
    width = max(len(window) for window in windows)
    ids = np.full((len(windows), width), pad_id, dtype=np.int64)
    mask, segments = np.zeros_like(ids), np.zeros_like(ids)
    for row, window in enumerate(windows):
        ids[row, : len(window)] = window.ids
        mask[row, : len(window)] = 1
        if window.segments is not None:
            segments[row, : len(window)] = window.segments
    return InputBatch(ids, mask, segments)
