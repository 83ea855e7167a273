"""From the vectors of a text's tokens to one vector: the six ways in use, as pure torch functions.

Inputs are padded on the right. Every function is free of branches on data, so that it can be traced. All
compute what the Pooling module of sentence-transformers computes. Imports torch: only for code that has it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

# Guards the division for a text of which no token counts; the same value as in sentence-transformers.
_EPSILON = 1e-9


def cls(tokens: Tensor, mask: Tensor) -> Tensor:
    """The first token that counts."""
    return _pick(tokens, mask.to(torch.int32).argmax(dim=1))


def last_token(tokens: Tensor, mask: Tensor) -> Tensor:
    """The last token that counts: in a decoder the only one that has seen all others."""
    positions = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)  # (tokens,)
    return _pick(tokens, (mask * positions).argmax(dim=1))


def maximum(tokens: Tensor, mask: Tensor) -> Tensor:
    """The largest value of each component."""
    return tokens.masked_fill(mask.unsqueeze(-1) == 0, float("-inf")).amax(dim=1)


def mean(tokens: Tensor, mask: Tensor) -> Tensor:
    """The mean of all tokens that count."""
    weights = mask.unsqueeze(-1).to(tokens.dtype)  # (texts, tokens, 1)
    return (tokens * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=_EPSILON)


def mean_sqrt_len(tokens: Tensor, mask: Tensor) -> Tensor:
    """The sum of all tokens that count, divided by the square root of their number."""
    weights = mask.unsqueeze(-1).to(tokens.dtype)  # (texts, tokens, 1)
    return (tokens * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=_EPSILON).sqrt()


def weighted_mean(tokens: Tensor, mask: Tensor) -> Tensor:
    """The mean weighted by position, later tokens more (Muennighoff 2022, SGPT).

    Positions count from 1 at the first token of the input, whether or not that one counts itself.
    """
    positions = torch.arange(1, tokens.shape[1] + 1, device=tokens.device).unsqueeze(0)  # (1, tokens)
    weights = (mask * positions).unsqueeze(-1).to(tokens.dtype)  # (texts, tokens, 1)
    return (tokens * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=_EPSILON)


_MODES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cls": cls,
    "max": maximum,
    "mean": mean,
    "mean_sqrt_len_tokens": mean_sqrt_len,
    "weightedmean": weighted_mean,
    "lasttoken": last_token,
}


def pool(tokens: Tensor, mask: Tensor, modes: tuple[str, ...]) -> Tensor:
    """Pool tokens in one or more ways and concatenate the results.

    Args:
        tokens: Vectors of shape (texts, tokens, width).
        mask: 1 for tokens that count and 0 for others, shape (texts, tokens).
        modes: Names as in `likewise.embedder.spec.POOLING_MODES`.

    Returns:
        Shape (texts, width * len(modes)), not normalised.

    Example:
        >>> pool(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([[1, 1, 0]]), ("mean", "lasttoken"))
        tensor([[2., 3.]])
    """
    return torch.cat([_MODES[mode](tokens, mask) for mode in modes], dim=-1)


def _pick(tokens: Tensor, positions: Tensor) -> Tensor:
    """The token at one position of each text, shape (texts, width)."""
    index = positions.view(-1, 1, 1).expand(-1, 1, tokens.shape[-1])
    return tokens.gather(1, index).squeeze(1)
