"""Learning-rate schedules: pure functions from progress to a factor of the peak rate.

Progress is a fraction of the run and not a step, so that the same schedule serves a budget of steps, of
epochs and of minutes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, get_args

from likewise.errors import UsageError

ScheduleName = Literal["linear", "cosine", "wsd", "constant"]


def linear(progress: float, *, warmup: float, decay: float = 0.0) -> float:
    """Rise linearly to 1, then fall linearly to 0 at the end of the run (Devlin et al. 2019).

    Args:
        progress: Share of the run that is done, in [0, 1].
        warmup: Share of the run in which the rate rises, in [0, 1).
        decay: Not used; all schedules take the same arguments.

    Example:
        >>> [linear(p, warmup=0.5) for p in (0.0, 0.25, 0.5, 0.75, 1.0)]
        [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    if progress < warmup:
        return progress / warmup
    return (1.0 - progress) / (1.0 - warmup)


def cosine(progress: float, *, warmup: float, decay: float = 0.0) -> float:
    """Rise linearly to 1, then fall to 0 along half a cosine (Loshchilov and Hutter 2017).

    Args:
        progress: Share of the run that is done, in [0, 1].
        warmup: Share of the run in which the rate rises, in [0, 1).
        decay: Not used; all schedules take the same arguments.

    Example:
        >>> [round(cosine(p, warmup=0.0), 3) for p in (0.0, 0.25, 0.5, 1.0)]
        [1.0, 0.854, 0.5, 0.0]
    """
    if progress < warmup:
        return progress / warmup
    return 0.5 * (1.0 + math.cos(math.pi * (progress - warmup) / (1.0 - warmup)))


def warmup_stable_decay(progress: float, *, warmup: float, decay: float) -> float:
    """Rise linearly to 1, stay there, then fall to 0 along 1 - sqrt (Hägele et al. 2024).

    The stable part can be prolonged without knowing the length of the run beforehand.

    Args:
        progress: Share of the run that is done, in [0, 1].
        warmup: Share of the run in which the rate rises.
        decay: Share of the run at its end in which the rate falls, in (0, 1].

    Example:
        >>> [warmup_stable_decay(p, warmup=0.1, decay=0.4) for p in (0.05, 0.1, 0.6, 0.7, 1.0)]
        [0.5, 1.0, 1.0, 0.5, 0.0]
    """
    if progress < warmup:
        return progress / warmup
    if progress <= 1.0 - decay:
        return 1.0
    return 1.0 - math.sqrt(min(1.0, (progress - (1.0 - decay)) / decay))


def constant(progress: float, *, warmup: float, decay: float = 0.0) -> float:
    """Rise linearly to 1 and stay there.

    Args:
        progress: Share of the run that is done, in [0, 1].
        warmup: Share of the run in which the rate rises.
        decay: Not used; all schedules take the same arguments.

    Example:
        >>> [constant(p, warmup=0.5) for p in (0.25, 0.5, 1.0)]
        [0.5, 1.0, 1.0]
    """
    return progress / warmup if progress < warmup else 1.0


_SCHEDULES: dict[str, Callable[..., float]] = {
    "linear": linear,
    "cosine": cosine,
    "wsd": warmup_stable_decay,
    "constant": constant,
}


def rate_factor(
    name: ScheduleName, progress: float, *, warmup: float, decay: float, floor: float = 0.0
) -> float:
    """Factor of the peak learning rate at this progress.

    Args:
        name: linear, cosine, wsd (warm-up, stable, decay) or constant.
        progress: Share of the run that is done; values outside [0, 1] are clamped.
        warmup: Share of the run in which the rate rises, in [0, 1).
        decay: Share of the run in which `wsd` falls, in (0, 1 - warmup].
        floor: Lowest factor after the warm-up, in [0, 1].

    Returns:
        A number in [0, 1].

    Raises:
        UsageError: An unknown name, or a share outside its range.

    Example:
        >>> rate_factor("linear", 0.95, warmup=0.1, decay=0.2, floor=0.1)
        0.1
    """
    if name not in _SCHEDULES:
        known = ", ".join(get_args(ScheduleName))
        raise UsageError(f"expected a schedule out of {known}, found {name!r}")
    if not 0.0 <= warmup < 1.0:
        raise UsageError(f"expected a warm-up share in [0, 1), found {warmup}")
    if name == "wsd" and not 0.0 < decay <= 1.0 - warmup:
        raise UsageError(f"expected a decay share in (0, {1.0 - warmup:g}], found {decay}")
    if not 0.0 <= floor <= 1.0:
        raise UsageError(f"expected a lowest factor in [0, 1], found {floor}")
    progress = min(1.0, max(0.0, progress))
    factor = max(0.0, _SCHEDULES[name](progress, warmup=warmup, decay=decay))
    return factor if progress < warmup else max(floor, factor)
