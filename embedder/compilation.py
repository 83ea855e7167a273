"""Compile the feed-forward nets of a model for a GPU.

They are two thirds of a layer's work, and token by token, so that one compiled form serves every length.
Attention is left alone: it is a fused kernel already, and its shapes change with every packed batch, which
would compile it anew each time. Weights and their names stay as they are.
"""

from __future__ import annotations

import torch
from torch import nn

from likewise.embedder.bert import FeedForward
from likewise.errors import UsageError


def compile_feed_forward(model: nn.Module, *, backend: str = "inductor") -> int:
    """Compile every feed-forward net in place; the work is done at the first steps, in about a minute.

    Args:
        model: On the device where it will run.
        backend: Of `torch.compile`; "inductor" writes kernels, which needs a GPU here.

    Returns:
        Number of nets.

    Raises:
        UsageError: The model has none, or is not on a GPU that kernels can be written for.
    """
    nets = [module for module in model.modules() if isinstance(module, FeedForward)]
    device = next(model.parameters()).device
    if not nets:
        raise UsageError("only models of the BERT family can be compiled", remedy="leave out --compile")
    if backend == "inductor" and (device.type != "cuda" or not torch.utils._triton.has_triton()):
        raise UsageError(
            f"expected a GPU with Triton to compile for, found the device {device}",
            remedy="leave out --compile: on CPUs it brings nothing",
        )
    for net in nets:
        net.compile(backend=backend, dynamic=True)
    return len(nets)
