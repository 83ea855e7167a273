"""Texts of a training batch as tensors, in groups of similar length.

A batch that is padded to its longest text computes mostly padding when texts differ in length, and a batch
that is cut into too many groups computes small matrices. A model that takes packed sequences has no padding
at all, so it gets one group; any other gets groups whose padding stays small. Nothing here knows of losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.embedder.batching import pad

# A group ends where a text has less than this share of its longest one's tokens ...
_SHORTEST = 0.75
# ... but not before it has so many tokens that the matrix products are efficient.
_SMALLEST_GROUP = 512


@dataclass(frozen=True, slots=True, eq=False)
class TextGroup:
    """Texts that go through the encoder together, longest first.

    Attributes:
        input_ids: int64 of shape (texts, tokens), padded on the right.
        mask: Bool of the same shape, True for real tokens.
        pooled: Bool of the same shape, True for tokens that count in the pooling.
        lengths: Real tokens of each text.
        hidden: float32 of shape (1, real tokens, width): what the frozen layers make of the texts, one after
            another, where that is known already; else None.
    """

    input_ids: Tensor
    mask: Tensor
    pooled: Tensor
    lengths: tuple[int, ...]
    hidden: Tensor | None = None

    @property
    def tokens(self) -> int:
        """Real tokens."""
        return sum(self.lengths)

    def to(self, device: torch.device | str) -> TextGroup:
        """The same group on another device."""
        return replace(
            self,
            input_ids=self.input_ids.to(device, non_blocking=True),
            mask=self.mask.to(device, non_blocking=True),
            pooled=self.pooled.to(device, non_blocking=True),
            hidden=None if self.hidden is None else self.hidden.to(device, non_blocking=True),
        )


def group_texts(
    rows: Sequence[NDArray[np.int32]],
    *,
    pad_id: int,
    packed: bool,
    unpooled: Sequence[int] | None = None,
    limit: int | None = None,
    hidden: Sequence[NDArray[np.float32]] | None = None,
) -> tuple[list[TextGroup], NDArray[np.int64]]:
    """Lay texts out in groups.

    Args:
        rows: Token ids of each text, special tokens included.
        pad_id: Fills the groups up.
        packed: The model skips padding, so that groups need not be of similar length.
        unpooled: Leading tokens of each text that do not count in the pooling; None for 0.
        limit: Most tokens of a group, padding included; None for any number. One text may exceed it.
        hidden: What the frozen layers make of each text, (tokens, width) each; None if nothing is known.

    Returns:
        The groups, and int64 of shape (texts,): where each text stands in their concatenation.

    Example:
        >>> rows = [np.array([5, 6], np.int32), np.array([7, 8, 9], np.int32)]
        >>> [group], places = group_texts(rows, pad_id=0, packed=True)
        >>> group.input_ids.tolist(), places.tolist()
        ([[7, 8, 9], [5, 6, 0]], [1, 0])
    """
    lengths = [len(row) for row in rows]
    plan = plan_groups(lengths, packed=packed, limit=limit)
    groups = []
    for members in plan:
        padded = pad([rows[at].tolist() for at in members], pad_id=pad_id)
        mask = torch.from_numpy(padded.attention_mask).bool()
        pooled = mask
        if unpooled is not None and any(unpooled[at] for at in members):
            skipped = torch.tensor([unpooled[at] for at in members])
            pooled = mask & (torch.arange(mask.shape[1]) >= skipped[:, None])
            # Where the prompt is all there is, the vector is that of the prompt, as when texts are encoded.
            pooled = torch.where(pooled.any(dim=1, keepdim=True), pooled, mask)
        known = None if hidden is None else np.concatenate([hidden[at] for at in members])[None]
        groups.append(
            TextGroup(
                torch.from_numpy(padded.input_ids),
                mask,
                pooled,
                tuple(lengths[at] for at in members),
                None if known is None else torch.from_numpy(known),
            )
        )
    places = np.empty(len(rows), dtype=np.int64)
    places[np.concatenate([np.array(members, dtype=np.int64) for members in plan])] = np.arange(len(rows))
    return groups, places


def plan_groups(lengths: Sequence[int], *, packed: bool, limit: int | None = None) -> list[list[int]]:
    """Positions of the texts of each group, longest first.

    Args:
        lengths: Tokens of each text.
        packed: See `group_texts`.
        limit: See `group_texts`.

    Example:
        >>> plan_groups([300, 9, 290, 8], packed=False)
        [[0, 2], [1, 3]]
        >>> plan_groups([300, 9, 290, 8], packed=True)
        [[0, 2, 1, 3]]
    """
    order = sorted(range(len(lengths)), key=lambda at: -lengths[at])
    groups: list[list[int]] = []
    size = 0  # tokens of the current group: with its padding unless the model skips that
    for at in order:
        if groups:
            longest = lengths[groups[-1][0]]
            share = lengths[at] if packed else longest
            full = limit is not None and size + share > limit
            ragged = not packed and lengths[at] < _SHORTEST * longest and size >= _SMALLEST_GROUP
            if not full and not ragged:
                groups[-1].append(at)
                size += share
                continue
        groups.append([at])
        size = lengths[at]
    return groups
