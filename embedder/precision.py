"""Choose between float32 and bfloat16 arithmetic by measuring, never by assuming.

On processors with bfloat16 units a matrix product is two to three times faster; on others the same code is up
to a hundred times slower. Weights, gradients and optimiser state stay float32 either way: autocast only
rounds the inputs of matrix products. float16 is left out, as its range needs loss scaling.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable
from typing import Literal, cast, get_args

import torch

from likewise.errors import UsageError

Precision = Literal["float32", "bfloat16"]
# A gain below this is not worth the rounding.
WORTHWHILE = 1.1


def autocast(precision: Precision, device: torch.device) -> contextlib.AbstractContextManager[None]:
    """Context in which the forward pass runs at this precision."""
    if precision == "bfloat16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()


def choose_precision(wish: str, device: torch.device, step: Callable[[], object] | None = None) -> Precision:
    """The faster precision on this device.

    A short matrix product weeds out devices where bfloat16 is emulated. Then, where it is given, the real
    step is timed at both precisions.

    Args:
        wish: "float32", "bfloat16", or "auto" to measure.
        device: Where the model is.
        step: One forward and backward pass; it must not change the weights.

    Raises:
        UsageError: `wish` is none of the three.

    Example:
        >>> choose_precision("float32", torch.device("cpu"))
        'float32'
    """
    if wish in get_args(Precision):
        return cast(Precision, wish)
    if wish != "auto":
        raise UsageError(f"expected the precision auto, float32 or bfloat16, found {wish!r}")
    if _gain(_product(device), device, repeats=3) < WORTHWHILE:
        return "float32"
    if step is None:
        return "bfloat16"
    return "bfloat16" if _gain(step, device, repeats=2) >= WORTHWHILE else "float32"


def _product(device: torch.device) -> Callable[[], object]:
    left = torch.ones(512, 384, device=device)
    right = torch.ones(384, 1536, device=device)
    return lambda: left @ right


def _gain(work: Callable[[], object], device: torch.device, *, repeats: int) -> float:
    """How many times faster the work is in bfloat16: the best of several runs each.

    They take turns, so that a machine that gets busier or hotter meanwhile does so for both.
    """
    best = dict.fromkeys(get_args(Precision), math.inf)
    for repeat in range(repeats + 1):
        for precision in best:
            seconds = _time(work, precision, device)
            if repeat:  # the first runs pay for allocation and are not counted
                best[precision] = min(best[precision], seconds)
    return best["float32"] / best["bfloat16"]


def _time(work: Callable[[], object], precision: Precision, device: torch.device) -> float:
    """Seconds of one run: on a CPU of the processor, which other processes do not lengthen."""
    # Windows counts processor time in steps of 16 milliseconds, too coarse for a short run.
    clock = time.process_time if device.type == "cpu" and os.name == "posix" else time.perf_counter
    _wait(device)
    start = clock()
    with autocast(precision, device):
        work()
    _wait(device)
    return clock() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
