"""Attention within each of several sequences that lie end to end in one row, without a T x T mask.

A block-diagonal mask over T packed tokens would cost T * T scores, of which all but the blocks are thrown
away. Two ways to compute only the blocks, both exact:

- by runs (CPU): neighbouring sequences of equal length form a dense (n, length) block that a plain view of
the
  packed row exposes; one call each, no mask, no padding. `collate` sorts by length, so runs are few.
- padded (GPU): one gather to (n, longest), one masked call, one gather back. Kernel launches, not the work on
  padding, are what counts there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import torch
import torch.nn.functional as F
from torch import Tensor


def attend_packed(
    qkv: Tensor,
    lengths: Sequence[int],
    *,
    causal: bool = False,
    dropout: float = 0.0,
    by_runs: bool | None = None,
) -> Tensor:
    """Scaled dot-product attention in which a token sees its own sequence only.

    Args:
        qkv: Queries, keys and values of T packed tokens: (T, 3, heads, head_size).
        lengths: Lengths of the sequences in order; their sum is T.
        causal: A token sees only itself and earlier tokens of its sequence.
        dropout: Probability of dropping an attention weight.
        by_runs: Which of the two ways to take; None chooses by device.

    Returns:
        Mixed values of shape (T, heads * head_size), in the dtype of `qkv`.

    Example:
        >>> qkv = torch.randn(5, 3, 2, 4)
        >>> mixed = attend_packed(qkv, [3, 2])
        >>> torch.allclose(mixed[:3], attend_packed(qkv[:3], [3]), atol=1e-6)
        True
    """
    if by_runs is None:
        by_runs = qkv.device.type == "cpu"
    attend = _attend_by_runs if by_runs else _attend_padded
    return attend(qkv, lengths, causal, dropout)


def _attend_by_runs(qkv: Tensor, lengths: Sequence[int], causal: bool, dropout: float) -> Tensor:
    # (length, how many) of each run of equal lengths
    runs = [(length, sum(1 for _ in same)) for length, same in groupby(lengths)]
    # `split` and not slices: the backward pass of a slice fills a tensor of the whole size with zeros. In
    # float32, because the CPU's bfloat16 attention has a backward pass three times slower (torch 2.13).
    parts = torch.split(qkv.float(), [length * n for length, n in runs])
    mixed = []
    with torch.autocast(qkv.device.type, enabled=False):  # it would cast back to bfloat16
        for (length, n), part in zip(runs, parts, strict=True):
            block = part.view(n, length, *qkv.shape[1:])  # (n, length, 3, heads, head_size)
            q, k, v = block.permute(2, 0, 3, 1, 4)  # each (n, heads, length, head_size)
            out = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=causal)
            mixed.append(out.transpose(1, 2).reshape(n * length, -1))  # (n * length, H)
    return torch.cat(mixed).to(qkv.dtype)  # (T, H)


def _attend_padded(qkv: Tensor, lengths: Sequence[int], causal: bool, dropout: float) -> Tensor:
    n, longest = len(lengths), max(lengths)
    # Built on the CPU, where the lengths are, so that nothing waits for the device.
    real = torch.arange(longest) < torch.tensor(lengths)[:, None]  # (n, longest)
    places = real.flatten().nonzero().squeeze(1).to(qkv.device, non_blocking=True)  # (T,)
    padded = qkv.new_zeros(n * longest, *qkv.shape[1:]).index_copy(0, places, qkv)
    q, k, v = padded.view(n, longest, *qkv.shape[1:]).permute(
        2, 0, 3, 1, 4
    )  # each (n, heads, longest, head_size)
    visible = real[:, None, None, :]  # (n, 1, 1, longest)
    if causal:
        visible = visible & torch.ones(longest, longest, dtype=torch.bool).tril()  # (n, 1, longest, longest)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=visible.to(qkv.device), dropout_p=dropout)
    return out.transpose(1, 2).reshape(n * longest, -1)[places]  # (T, H)
