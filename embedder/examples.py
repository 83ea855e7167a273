"""Examples and batches of token ids: the one currency between corpus, corruption, objectives and model.

An `Example` is one sequence, special tokens included. `collate` turns several into a `Batch`, either *packed*
(all sequences end to end in one row, no padding at all; what training uses) or *padded* (one row each). Both
give the same results; packing only leaves out the work on padding. Nothing here draws random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.errors import DataError


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """One sequence of token ids, special tokens such as [CLS] and [SEP] included.

    Attributes:
        ids: Integer array of shape (length,).
        special: Bool of shape (length,), True where a token is special and may never be masked.
        key: Stable number of the example within its corpus; seeds what is drawn at random for it, so that
            a resumed run and a repeated evaluation see the same masks.
        segment_ids: Integers of shape (length,), 0 for the first and 1 for the second text of a pair;
            None for a single text.
        pair_label: Class of a pair (NSP, SOP); None for a single text.
        words: Integers of shape (length,): tokens of one word share a number, special tokens have -1. Needed
            for whole-word masking only.
    """

    ids: NDArray[np.integer]
    special: NDArray[np.bool_]
    key: int = 0
    segment_ids: NDArray[np.integer] | None = None
    pair_label: int | None = None
    words: NDArray[np.integer] | None = None

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Several sequences as tensors, packed or padded, with their targets.

    A packed batch has `lengths` and no `mask`: row 0 holds the sequences end to end, B = 1, L = sum(lengths).
    A padded batch has one row per sequence and a `mask` (None: nothing is padded).

    Attributes:
        input_ids: int64 of shape (B, L).
        mask: Bool of shape (B, L), True for real tokens; None if all are.
        lengths: Lengths of the packed sequences in order; None for a padded batch.
        segment_ids: int64 of shape (B, L); None if the sequences are single texts.
        target_positions: int64 of shape (M,): where the tokens to predict stand in the flattened (B * L) ids,
            ascending.
        targets: int64 of shape (M,): the tokens to predict.
        pair_labels: int64 of shape (sequences,); None if the sequences are single texts.
        noise: float32 of shape (M,), uniform in [0, 1): random numbers of an objective that samples.
    """

    input_ids: Tensor
    mask: Tensor | None = None
    lengths: tuple[int, ...] | None = None
    segment_ids: Tensor | None = None
    target_positions: Tensor | None = None
    targets: Tensor | None = None
    pair_labels: Tensor | None = None
    noise: Tensor | None = None

    @property
    def sequences(self) -> int:
        """Number of sequences."""
        return len(self.input_ids) if self.lengths is None else len(self.lengths)

    @property
    def tokens(self) -> int:
        """Number of real tokens, padding not counted."""
        return self.input_ids.numel() if self.mask is None else int(self.mask.sum())

    def first_positions(self) -> Tensor:
        """Where each sequence starts in the flattened (B * L) ids: the [CLS] tokens; int64, (sequences,)."""
        device = self.input_ids.device
        if self.lengths is None:
            rows, width = self.input_ids.shape
            return torch.arange(rows, device=device) * width
        starts = np.cumsum((0, *self.lengths[:-1]))
        return torch.from_numpy(starts).to(device, non_blocking=True)

    def real_positions(self) -> Tensor:
        """Where real tokens stand in the flattened (B * L) ids, ascending; int64, (tokens,)."""
        if self.mask is None:
            return torch.arange(self.input_ids.numel(), device=self.input_ids.device)
        return self.mask.flatten().nonzero().squeeze(1)

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        moved: dict[str, Any] = {
            field.name: value.to(device, non_blocking=True)
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), Tensor)
        }
        return replace(self, **moved)


def collate(
    examples: Sequence[Example],
    *,
    inputs: Sequence[NDArray[np.integer]] | None = None,
    labels: Sequence[NDArray[np.integer]] | None = None,
    noise: Sequence[NDArray[np.float32]] | None = None,
    packed: bool = True,
    pad_id: int = 0,
) -> Batch:
    """Make a batch of examples.

    Packed sequences are ordered by length, longest first: runs of equal length need one attention call
    instead of one each. A padded batch keeps the order of the examples.

    Args:
        examples: At least one; none may be empty.
        inputs: Corrupted ids to feed instead of the examples' own, one array each of the same length.
        labels: Tokens to predict, -100 where nothing is predicted, one array each of the same length.
        noise: A random number for each token, one float32 array each of the same length; those of the tokens
            to predict go into the batch. Only together with labels.
        packed: Whether to pack or to pad.
        pad_id: Token id that fills a padded batch.

    Raises:
        DataError: No example, or an empty one; or some have segments or pair labels and others do not.

    Example:
        >>> import numpy as np
        >>> plain = lambda ids: Example(np.array(ids), np.zeros(len(ids), bool))
        >>> collate([plain([5, 6]), plain([7, 8, 9])]).input_ids
        tensor([[7, 8, 9, 5, 6]])
        >>> collate([plain([5, 6]), plain([7, 8, 9])], packed=False).input_ids
        tensor([[5, 6, 0],
                [7, 8, 9]])
    """
    if not examples or not all(len(example) for example in examples):
        raise DataError("expected at least one example, each of at least one token; found an empty one")
    with_segments = _all_or_none("segment ids", [example.segment_ids is not None for example in examples])
    with_pairs = _all_or_none("a pair label", [example.pair_label is not None for example in examples])
    order = list(range(len(examples)))
    if packed:
        order.sort(key=lambda at: -len(examples[at]))  # stable: equal lengths keep their order
    examples = [examples[at] for at in order]
    ids = [example.ids for example in examples] if inputs is None else [inputs[at] for at in order]
    lengths = tuple(len(example) for example in examples)

    def lay_out(rows: Sequence[NDArray[np.integer]], fill: int) -> Tensor:
        if packed:
            return torch.from_numpy(np.concatenate(rows).astype(np.int64)[None])
        table = np.full((len(rows), max(lengths)), fill, dtype=np.int64)
        for row, values in zip(table, rows, strict=True):
            row[: len(values)] = values
        return torch.from_numpy(table)

    positions = targets = numbers = None
    if labels is not None:
        flat = lay_out([labels[at] for at in order], -100).flatten()
        positions = (flat != -100).nonzero().squeeze(1)
        targets = flat[positions]
        if noise is not None:
            # The tokens in the order of the flattened ids, which have no gaps but padding, and that has no
            # target.
            real = np.concatenate([noise[at] for at in order])
            chosen = np.concatenate([labels[at] for at in order]) != -100
            numbers = torch.from_numpy(real[chosen])
    padding = None
    if not packed and min(lengths) < max(lengths):
        padding = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    segments = [example.segment_ids for example in examples if example.segment_ids is not None]
    pair_labels = [example.pair_label for example in examples if example.pair_label is not None]
    return Batch(
        input_ids=lay_out(ids, pad_id),
        mask=padding,
        lengths=lengths if packed else None,
        segment_ids=lay_out(segments, 0) if with_segments else None,
        target_positions=positions,
        targets=targets,
        pair_labels=torch.tensor(pair_labels) if with_pairs else None,
        noise=numbers,
    )


def _all_or_none(what: str, present: Sequence[bool]) -> bool:
    if any(present) and not all(present):
        raise DataError(f"expected all examples of a batch to have {what}, or none; found a mixture")
    return all(present)
