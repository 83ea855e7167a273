"""Whether training made a model better: the same rows before and after, and no claim beyond the interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from likewise.embedder.siamese.evaluators import Interval, Measurement, gain, interval

Outcome = Literal["better", "no clear difference", "worse", "not measured"]


@dataclass(frozen=True)
class Comparison:
    """One metric before and after training.

    Attributes:
        metric: Its name.
        before: Value and interval of the model that training started from.
        after: Of the trained one.
        gain: Of the difference, over the same rows.
    """

    metric: str
    before: Interval
    after: Interval
    gain: Interval


@dataclass(frozen=True)
class Verdict:
    """What can be said about a trained model.

    Attributes:
        outcome: "better" and "worse" if the interval of the gain leaves 0 out.
        metric: The one that decides; empty if nothing was measured.
        comparisons: Of all metrics.
    """

    outcome: Outcome
    metric: str
    comparisons: tuple[Comparison, ...]

    @property
    def improved(self) -> bool:
        """Whether the deciding metric is higher than before, by however little."""
        decisive = next((c for c in self.comparisons if c.metric == self.metric), None)
        return decisive is None or decisive.gain.value > 0

    def sentence(self) -> str:
        """The verdict in words.

        Example:
            >>> Verdict("not measured", "", ()).sentence()
            'Its vectors were measured on no held-out rows: whether the model got better is not known.'
        """
        decisive = next((c for c in self.comparisons if c.metric == self.metric), None)
        if decisive is None:
            return "Its vectors were measured on no held-out rows: whether the model got better is not known."
        numbers = (
            f"{self.metric} {decisive.before.value:.4f} -> {decisive.after.value:.4f}, "
            f"gain {decisive.gain.value:+.4f} [{decisive.gain.low:+.4f}, {decisive.gain.high:+.4f}]"
        )
        words = {
            "better": "The trained model is better",
            "worse": "The trained model is worse than the one it started from",
            "no clear difference": "No clear difference: the interval of the gain includes 0",
        }[self.outcome]
        return f"{words}: {numbers}."

    def table(self) -> str:
        """All metrics before and after, as Markdown."""
        rows = [
            f"| {c.metric} | {c.before.value:.4f} [{c.before.low:.4f}, {c.before.high:.4f}] "
            f"| {c.after.value:.4f} [{c.after.low:.4f}, {c.after.high:.4f}] "
            f"| {c.gain.value:+.4f} [{c.gain.low:+.4f}, {c.gain.high:+.4f}] |"
            for c in self.comparisons
        ]
        return "\n".join(["| metric | before | after | gain |", "|---|---|---|---|", *rows, ""])


def judge(
    before: Mapping[str, Measurement],
    after: Mapping[str, Measurement],
    metric: str | None,
    *,
    skip: Sequence[str] = ("threshold",),
) -> Verdict:
    """Compare two models.

    Args:
        before: Measurements by the evaluator's name, of the model that training started from.
        after: Of the trained one, on the same rows.
        metric: The one that decides; None if nothing was measured.
        skip: Last parts of the names of values that are neither good nor bad.
    """
    comparisons = tuple(
        Comparison(
            name,
            interval(before[evaluator], name),
            interval(after[evaluator], name),
            gain(before[evaluator], after[evaluator], name),
        )
        for evaluator, measured in after.items()
        for name in measured.metrics
        if name.rsplit(".", 1)[-1] not in skip
    )
    decisive = next((c.gain for c in comparisons if c.metric == metric), None)
    if metric is None or decisive is None:
        return Verdict("not measured", "", comparisons)
    if decisive.low > 0:
        return Verdict("better", metric, comparisons)
    return Verdict("worse" if decisive.high < 0 else "no clear difference", metric, comparisons)
