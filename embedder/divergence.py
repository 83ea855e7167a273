"""Notice a loss that runs away, without taking a hard batch for one."""

from __future__ import annotations

from dataclasses import asdict, dataclass

# Smoothed over about this many steps.
_SMOOTHING = 20
# Runaway is what exceeds this multiple of the loss of the first report; the margin is for losses near 0.
_MULTIPLE, _MARGIN = 2.0, 1.0
# A rate that is much too high ruins the model before the first report. One batch tells little: hence so wide.
_OPENING_MULTIPLE = 10.0


@dataclass
class LossWatch:
    """The course of a loss, as far as it tells whether training diverges.

    Attributes:
        opening: Loss of the very first step; None before it.
        first: Mean loss of the first report; None before it.
        smooth: Running mean.

    Example:
        >>> watch = LossWatch(opening=7.0)
        >>> [watch.follow(loss, steps=20) for loss in (6.5, 6.0, 9.0, 30.0)]
        [None, None, None, 'the loss rose from 6.5 to 30']
    """

    opening: float | None = None
    first: float | None = None
    smooth: float = 0.0

    def follow(self, loss: float, *, steps: int) -> str | None:
        """Take in the next report.

        Args:
            loss: Mean over the steps since the last one.
            steps: How many these were.

        Returns:
            What happened, if the loss runs away, else None.
        """
        if self.first is None:
            self.first = self.smooth = loss
        self.smooth += min(1.0, steps / _SMOOTHING) * (loss - self.smooth)
        for start, multiple in ((self.first, _MULTIPLE), (self.opening, _OPENING_MULTIPLE)):
            # Written so that a loss that is not a number counts as too high.
            if start is not None and not self.smooth <= multiple * (abs(start) + _MARGIN):
                return f"the loss rose from {start:.4g} to {self.smooth:.4g}"
        return None

    def state(self) -> dict[str, float | None]:
        """What a checkpoint keeps, the arguments of a watch that goes on."""
        return asdict(self)
