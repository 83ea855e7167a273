"""A running mean of the weights: what the last part of a run had in common, without the noise of its steps.

    mean <- mean + share * (weights - mean),   share = 1 - exp(-step / span)

where `step` is the share of the run that the step took, and `span` how far the mean looks back, as a share of
the run too: the same setting fits long and short runs, whatever their budget is counted in. While few weights
have been seen, their plain mean counts instead, as the exponential one would still be mostly its first value.

Sources: Polyak and Juditsky 1992, "Acceleration of Stochastic Approximation by Averaging"; Izmailov et al.
2018, "Averaging Weights Leads to Wider Optima and Better Generalization" (1803.05407).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from likewise.errors import CheckpointError

_PREFIX = "average."


class WeightAverage:
    """The running mean of some parameters; needs their memory once more, in their own precision.

    Args:
        parameters: What is trained.
        span: How far the mean looks back, as a share of the run; 0 makes no mean.
        start: Share of the run after which it begins.

    Example:
        >>> import torch
        >>> weight = torch.nn.Parameter(torch.tensor([0.0]))
        >>> average = WeightAverage([weight], span=0.5)
        >>> for step in range(4):
        ...     with torch.no_grad():
        ...         weight += 1.0
        ...     average.follow((step + 1) / 4)
        >>> with average.applied():
        ...     print(float(weight.detach()))
        2.841...
        >>> float(weight.detach())
        4.0
    """

    def __init__(self, parameters: Sequence[nn.Parameter], *, span: float, start: float = 0.0) -> None:
        self._parameters = list(parameters)
        self._span, self._start = span, start
        self._mean: list[Tensor] = []
        self._seen, self._progress = 0, 0.0

    @torch.no_grad()
    def follow(self, progress: float) -> None:
        """Take in the weights of this moment, at a share of the run that only grows."""
        if not self._span or progress <= self._start:
            return
        weights = [parameter.detach() for parameter in self._parameters]
        step, self._progress = progress - self._progress, progress
        self._seen += 1
        if not self._mean:
            self._mean = [weight.clone() for weight in weights]
            return
        share = max(1 - math.exp(-step / self._span), 1 / self._seen)
        torch._foreach_lerp_(self._mean, weights, share)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The parameters hold the mean as long as the context lasts, if there is one yet."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def adopt(self) -> None:
        """Give the parameters the mean for good, and forget it."""
        self._exchange()
        self._mean, self._seen = [], 0

    def tensors(self) -> dict[str, Tensor]:
        """The mean, by names of its own."""
        return {f"{_PREFIX}{number}": mean for number, mean in enumerate(self._mean)}

    def state(self) -> dict[str, float]:
        """What else is needed to go on, as JSON."""
        return {"seen": self._seen, "progress": self._progress}

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, float]) -> None:
        """Go on from a state; tensors with other names are ignored.

        Raises:
            CheckpointError: The mean is of other parameters.
        """
        names = [f"{_PREFIX}{number}" for number in range(len(self._parameters))]
        mean = [tensors[name] for name in names if name in tensors]
        shapes = [parameter.shape for parameter in self._parameters]
        if mean and [own.shape for own in mean] != shapes:
            raise CheckpointError("the running mean of the weights in the checkpoint is of another model")
        self._mean = [
            own.to(parameter.device) for own, parameter in zip(mean, self._parameters, strict=False)
        ]
        self._seen, self._progress = int(state["seen"]), state["progress"]

    def _exchange(self) -> None:
        for number, mean in enumerate(self._mean):
            parameter = self._parameters[number]
            self._mean[number], parameter.data = parameter.data, mean
