"""What a model is trained on and asked about: rows of token ids with a target, in batches of like length.

A batch is padded to its own longest row, never to a constant, and rows of like length share one, so that
little is padded. The order of an epoch is a pure function of (seed, epoch). Nothing here knows a task.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.embedder.heads.task import IGNORED, Row
from likewise.errors import DataError

# Batches whose rows are sorted by length together: enough for rows of equal length, few enough that a batch
# is still a random sample.
_SORTED_TOGETHER = 64


@dataclass(frozen=True, slots=True, eq=False)
class HeadBatch:
    """Rows as tensors, padded to the longest.

    Attributes:
        input_ids: int64 of shape (B, L).
        attention_mask: int64 of shape (B, L), 1 for tokens and 0 for padding; None if nothing is padded.
        segments: int64 of shape (B, L); None for a model without segments.
        targets: First dimension B.
        weights: float32 of shape (B,).
        tokens: Number of tokens, padding not counted.
    """

    input_ids: Tensor
    attention_mask: Tensor | None
    segments: Tensor | None
    targets: Tensor
    weights: Tensor
    tokens: int

    def to(self, device: torch.device) -> HeadBatch:
        """The same batch on another device."""
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=True)
            for name in ("input_ids", "attention_mask", "segments", "targets", "weights")
            if (value := getattr(self, name)) is not None
        }
        return replace(self, **moved)

    def model_inputs(self) -> dict[str, Tensor]:
        """Keyword arguments of a Hugging Face model."""
        inputs = {"input_ids": self.input_ids}
        if self.attention_mask is not None:
            inputs["attention_mask"] = self.attention_mask
        if self.segments is not None:
            inputs["token_type_ids"] = self.segments
        return inputs


def collate(rows: Sequence[Row], *, pad_id: int, per_token: bool = False) -> HeadBatch:
    """Pad rows to the longest.

    Args:
        rows: At least one.
        pad_id: Fills the ids up.
        per_token: Whether targets are arrays as long as their rows; they are filled up with -100.

    Example:
        >>> from likewise.embedder.heads.tokens import Window
        >>> plain = lambda *ids: Window(np.array(ids), None, np.zeros((len(ids), 2)), np.zeros(len(ids)))
        >>> batch = collate([Row(plain(5, 6), np.int64(1)), Row(plain(7), np.int64(0))], pad_id=0)
        >>> batch.input_ids.tolist(), batch.attention_mask.tolist(), batch.targets.tolist()
        ([[5, 6], [7, 0]], [[1, 1], [1, 0]], [1, 0])
    """
    sizes = [len(row) for row in rows]
    width = max(sizes)
    targets = [row.target for row in rows]
    if per_token:
        targets = [np.pad(target, (0, width - len(target)), constant_values=IGNORED) for target in targets]
    mask = None
    if min(sizes) < width:
        mask = torch.from_numpy((np.arange(width) < np.array(sizes)[:, None]).astype(np.int64))
    segments = None
    if rows[0].window.segments is not None:
        segments = _padded([row.window.segments for row in rows], width, 0)
    return HeadBatch(
        _padded([row.window.ids for row in rows], width, pad_id),
        mask,
        segments,
        torch.from_numpy(np.stack(targets)),
        torch.tensor([row.weight for row in rows], dtype=torch.float32),
        sum(sizes),
    )


def _padded(arrays: Iterable[NDArray[Any] | None], width: int, fill: int) -> Tensor:
    given = [array for array in arrays if array is not None]
    padded = np.full((len(given), width), fill, dtype=np.int64)
    for row, array in zip(padded, given, strict=True):
        row[: len(array)] = array
    return torch.from_numpy(padded)


def plan_epoch(lengths: NDArray[np.int64], size: int, *, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """Batches of one epoch: shuffle all, sort by length within a window, cut, shuffle the batches.

    Args:
        lengths: int64 of shape (rows,).
        size: Rows in a batch; one batch of an epoch may have fewer.
        seed: Of the run.
        epoch: Each has another order.

    Returns:
        Positions of the rows of each batch; each row is in exactly one.

    Example:
        >>> sorted(len(batch) for batch in plan_epoch(np.array([3, 9, 3, 9, 5]), 2, seed=0, epoch=0))
        [1, 2, 2]
    """
    rng = np.random.default_rng((seed, epoch))
    shuffled = rng.permutation(len(lengths))
    batches = []
    for begin in range(0, len(shuffled), size * _SORTED_TOGETHER):
        members = shuffled[begin : begin + size * _SORTED_TOGETHER]
        members = members[np.argsort(lengths[members], kind="stable")]
        batches += [members[at : at + size] for at in range(0, len(members), size)]
    return [batches[number] for number in rng.permutation(len(batches))]


class RowBatches:
    """Training rows in batches of a fixed number of rows.

    Args:
        rows: All of them.
        size: Rows in a batch.
        seed: Of the order.

    Raises:
        DataError: No row.
    """

    def __init__(self, rows: Sequence[Row], *, size: int, seed: int) -> None:
        if not rows:
            raise DataError("expected at least one example to train on, found none")
        self._rows, self._size, self._seed = rows, size, seed
        self._lengths = np.array([len(row) for row in rows], dtype=np.int64)
        self._plans: OrderedDict[int, list[NDArray[np.int64]]] = OrderedDict()
        self._lock = threading.Lock()  # the loop and its worker thread both ask
        digest = hashlib.blake2b(repr((size, seed)).encode(), digest_size=8)
        for row in rows:
            digest.update(row.window.ids.tobytes())
            digest.update(np.asarray(row.target).tobytes())
        self.fingerprint = digest.hexdigest()

    def length(self, epoch: int) -> int:
        """Number of batches, the same in every epoch."""
        return -(-len(self._rows) // self._size)

    def batch(self, epoch: int, index: int) -> list[Row]:
        """Rows of one batch."""
        with self._lock:
            if epoch not in self._plans:
                self._plans[epoch] = plan_epoch(self._lengths, self._size, seed=self._seed, epoch=epoch)
                while len(self._plans) > 2:  # the loop may look one epoch ahead
                    self._plans.popitem(last=False)
            chosen = self._plans[epoch][index]
        return [self._rows[number] for number in chosen.tolist()]
