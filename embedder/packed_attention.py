"""Attention within each of several sequences that lie end to end in one row, without a T x T mask.

A block-diagonal mask over T packed tokens would cost T * T scores, of which all but the blocks are thrown
away. Two ways to compute only the blocks, both exact:

- by runs (CPU): neighbouring sequences of equal length form a dense (n, length) block that a plain view of
  the packed row exposes; one call each, no mask, no padding. `collate` sorts by length, so runs are few.
- padded (GPU): one gather to (n, longest), one masked call, one gather back. Kernel launches, not the work on
  padding, are what counts there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """Where the sequences of a packed row stand; made once for a batch, used by every layer.

    Attributes:
        lengths: Lengths of the sequences in order.
        places: int64 of shape (T,): where each token stands in rows padded to the longest sequence; None on
            a device that works by runs.
    """

    lengths: tuple[int, ...]
    places: Tensor | None

    @classmethod
    def of(
        cls, lengths: Sequence[int], device: torch.device, way: Literal["runs", "padded"] | None = None
    ) -> Packing:
        """Plan the attention of a row.

        Args:
            lengths: Lengths of the sequences in order.
            device: Where the row is.
            way: Which of the two ways to take; None chooses by device.
        """
        if way is None:
            way = "runs" if device.type == "cpu" else "padded"
        if way == "runs":
            return cls(tuple(lengths), None)
        # Built on the CPU, where the lengths are, so that nothing waits for the device.
        real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]  # (n, longest)
        return cls(tuple(lengths), real.flatten().nonzero().squeeze(1).to(device, non_blocking=True))

    def positions(self) -> Tensor:
        """Position of each token in its own sequence: int64, (T,), on the CPU."""
        return torch.cat([torch.arange(length) for length in self.lengths])


def attend_packed(qkv: Tensor, packing: Packing, *, causal: bool = False, dropout: float = 0.0) -> Tensor:
    """Scaled dot-product attention in which a token sees its own sequence only.

    Args:
        qkv: Queries, keys and values of T packed tokens: (T, 3, heads, head_size).
        packing: Where the sequences stand.
        causal: A token sees only itself and earlier tokens of its sequence.
        dropout: Probability of dropping an attention weight.

    Returns:
        Mixed values of shape (T, heads * head_size), in the dtype of `qkv`.

    Example:
        >>> qkv = torch.randn(5, 3, 2, 4)
        >>> both = attend_packed(qkv, Packing.of([3, 2], qkv.device))
        >>> first = attend_packed(qkv[:3], Packing.of([3], qkv.device))
        >>> torch.allclose(both[:3], first, atol=1e-6)
        True
    """
    if packing.places is None:
        return _attend_by_runs(qkv, packing.lengths, causal, dropout)
    return _attend_padded(qkv, len(packing.lengths), max(packing.lengths), packing.places, causal, dropout)


def _attend_by_runs(qkv: Tensor, lengths: Sequence[int], causal: bool, dropout: float) -> Tensor:
    # (length, how many) of each run of equal lengths
    runs = [(length, sum(1 for _ in same)) for length, same in groupby(lengths)]
    # `split` and not slices: the backward pass of a slice fills a tensor of the whole size with zeros. In
    # float32, because the CPU's bfloat16 attention has a backward pass three times slower (torch 2.13).
    parts = torch.split(
        qkv.to(torch.promote_types(qkv.dtype, torch.float32)), [length * n for length, n in runs]
    )
    mixed = []
    with torch.autocast(qkv.device.type, enabled=False):  # it would cast back to bfloat16
        for (length, n), part in zip(runs, parts, strict=True):
            block = part.view(n, length, *qkv.shape[1:])  # (n, length, 3, heads, head_size)
            q, k, v = block.permute(2, 0, 3, 1, 4)  # each (n, heads, length, head_size)
            out = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=causal)
            mixed.append(out.transpose(1, 2).reshape(n * length, -1))  # (n * length, H)
    return torch.cat(mixed).to(qkv.dtype)  # (T, H)


def _attend_padded(qkv: Tensor, n: int, longest: int, places: Tensor, causal: bool, dropout: float) -> Tensor:
    padded = qkv.new_zeros(n * longest, *qkv.shape[1:]).index_copy(0, places, qkv)
    q, k, v = padded.view(n, longest, *qkv.shape[1:]).permute(
        2, 0, 3, 1, 4
    )  # each (n, heads, longest, head_size)
    visible = places.new_zeros(n * longest, dtype=torch.bool).index_fill(0, places, True)
    visible = visible.view(n, 1, 1, longest)
    if causal:
        visible = visible & torch.ones(longest, longest, dtype=torch.bool, device=qkv.device).tril()
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=visible, dropout_p=dropout)
    return out.transpose(1, 2).reshape(n * longest, -1)[places]  # (T, H)
