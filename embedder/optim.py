"""AdamW with the parameter groups that published encoders are trained with.

Weight decay pulls a parameter towards zero. That makes sense for matrices, but not for biases and LayerNorm
gains, which are few and have no reason to be small. Nothing here touches gradients or the learning rate
schedule.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from likewise.errors import TrainingError, UsageError

_NORMS = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm)
# "encoder.layer.3.attention..." and "layers.3...." alike: the first number in a dotted name.
_LAYER = re.compile(r"(?:^|\.)(\d+)(?:\.|$)")


def parameter_groups(
    model: nn.Module, *, weight_decay: float, learning_rate: float, layer_decay: float = 1.0
) -> list[dict[str, Any]]:
    """Split the trainable parameters by weight decay and learning rate.

    Biases and everything in a normalisation layer get no weight decay; a parameter that two modules share
    (tied embeddings) appears once. With `layer_decay` below 1, each layer learns slower than the one above it
    (Howard and Ruder 2018): the rate is multiplied by it once per layer from the top.

    Args:
        model: The model; frozen parameters are left out.
        weight_decay: For matrices and embeddings, at least 0.
        learning_rate: Peak rate of the topmost layer and the heads.
        layer_decay: Factor from a layer to the one below, in (0, 1].

    Returns:
        Groups for a torch optimiser. Each also holds `peak`, the group's peak learning rate, and `names`.

    Raises:
        UsageError: A value outside its range.
        TrainingError: The model has no trainable parameter.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
        >>> for group in parameter_groups(model, weight_decay=0.1, learning_rate=1e-3):
        ...     print(group["weight_decay"], group["names"])
        0.1 ['0.weight']
        0.0 ['0.bias', '1.weight', '1.bias']
    """
    if weight_decay < 0 or learning_rate <= 0 or not 0 < layer_decay <= 1:
        raise UsageError(
            "expected weight decay >= 0, learning rate > 0 and layer decay in (0, 1], found "
            f"{weight_decay}, {learning_rate} and {layer_decay}"
        )
    in_norm = {id(p) for module in model.modules() if isinstance(module, _NORMS) for p in module.parameters()}
    trainable = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    if not trainable:
        raise TrainingError("expected a model with trainable parameters, found all of them frozen")
    heights = _heights(name for name, _ in trainable)
    top = max(heights.values())
    groups: dict[tuple[float, float], dict[str, Any]] = {}
    for name, parameter in trainable:
        # One dimension means a bias or a gain, also in a normalisation layer of the model's own making.
        decay = 0.0 if parameter.ndim < 2 or id(parameter) in in_norm else weight_decay
        rate = learning_rate * layer_decay ** (top - heights[name])
        group = groups.setdefault(
            (decay, rate),
            {"params": [], "names": [], "weight_decay": decay, "lr": rate, "peak": rate},
        )
        group["params"].append(parameter)
        group["names"].append(name)
    return list(groups.values())


def adamw(
    groups: Iterable[dict[str, Any]], *, betas: tuple[float, float] = (0.9, 0.999), epsilon: float = 1e-8
) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019) over the groups, fused where the devices have it.

    The fused form updates each tensor in one pass. On a CPU that is several times faster than the default,
    and for a small model with a large vocabulary the optimiser is a large part of a step.

    Args:
        groups: What `parameter_groups` returned.
        betas: Decay of the running mean of the gradient and of its square.
        epsilon: Added to the root of the mean square.
    """
    groups = list(groups)
    parameters = [parameter for group in groups for parameter in group["params"]]
    fused = all(p.is_floating_point() and p.device.type in ("cpu", "cuda", "mps") for p in parameters)
    return torch.optim.AdamW(groups, betas=betas, eps=epsilon, fused=fused)


def set_rate(optimizer: torch.optim.Optimizer, factor: float) -> None:
    """Set every group's learning rate to this factor of its peak."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * factor


def clip_gradients(parameters: Iterable[nn.Parameter], limit: float | None) -> float:
    """Scale all gradients together so that their norm is at most `limit`; return the norm before.

    Args:
        parameters: Those with a gradient count.
        limit: Largest Euclidean norm; None only measures.
    """
    return float(nn.utils.clip_grad_norm_(parameters, math.inf if limit is None else limit))


def _heights(names: Iterable[str]) -> dict[str, int]:
    """Height above the input: embeddings 0, layer n is n + 1, and what has no number stands on top."""
    found = {name: _LAYER.search(name) for name in names}
    heights = {name: int(match.group(1)) + 1 for name, match in found.items() if match}
    top = max(heights.values(), default=0) + 1
    return {name: heights.get(name, 0 if "embed" in name else top) for name in found}
