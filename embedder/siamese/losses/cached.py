"""Batches of any size in the memory of a small one: the cached form of a loss (GradCache).

A loss over a large batch needs the vectors of all its texts at once, but not the activations behind them.
So each part of the batch is encoded without keeping activations; the loss and its gradient with respect to
the vectors are computed; then each part is encoded again, now with activations, and its share of the
gradient sent through. Dropout is the same both times, so the result is that of the direct loss.

That second pass is what checkpointing does (Chen et al. 2016, 1604.06174) when the checkpointed function is
the whole encoder, and autograd then takes care of the order. Any loss here becomes a cached one by encoding
through `encode_in_parts`.

Source: Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup"
(2101.06983). Limits: a forward pass more, a third of the time. Vectors of all texts, n x d, stay in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

Part = TypeVar("Part")


def encode_in_parts(encode: Callable[[Part], Tensor], parts: Sequence[Part]) -> Tensor:
    """Vectors of all parts, with the activations of one part at a time in memory.

    Args:
        encode: Vectors of a part, shape (texts, d). Called twice, with the same state of the random
            generators.
        parts: Parts of the batch.

    Returns:
        Vectors in the order of the parts, shape (all texts, d). Its gradient reaches the encoder's weights
        as if everything had been encoded at once.

    Example:
        >>> layer = torch.nn.Linear(2, 2)
        >>> parts = [torch.ones(3, 2), torch.ones(1, 2)]
        >>> encode_in_parts(layer, parts).square().sum().backward()
        >>> cached, layer.weight.grad = layer.weight.grad, None
        >>> layer(torch.cat(parts)).square().sum().backward()
        >>> torch.allclose(cached, layer.weight.grad)
        True
    """
    return torch.cat([checkpoint(encode, part, use_reentrant=False) for part in parts])
