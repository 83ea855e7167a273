"""Whether an index changes to an adapted encoder: numbers in, a decision and its reason out.

Four conditions, all on questions about documents that nothing was learned from and nothing chosen by: the
interval of the gain in dense search lies above what made questions overstate; no kind of question loses for
sure, as it would where another was learned by heart; dense search is better than with feedback on the query's
vector, which costs nothing; and hybrid search, which is what people use, does not lose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from likewise.index.records import Json
from likewise.retrieval.adaptation.trial import DENSE, FEEDBACK, HYBRID, METRIC, Runs
from likewise.retrieval.evaluation.evaluate import Comparison, RunResult, compare
from likewise.retrieval.evaluation.statistics import Interval, bootstrap_interval
from likewise.retrieval.evaluation.verdicts import decimal, interval_text

OVERSTATED = 0.01
"""Gain on questions made from documents that real ones need not share: on Cranfield +.013 came to nothing."""
TOLERATED = 0.005
"""Loss of hybrid search that chance alone makes on a few hundred questions."""


@dataclass(frozen=True)
class Decision:
    """What was decided, and what on.

    Attributes:
        adopt: Whether the index changes to the adapted encoder.
        reason: In words, for a person.
        before: Dense search with the encoder of the index.
        after: Dense search with the adapted one.
        gain: In dense search.
        over_feedback: What the adapted encoder gains over the other one with feedback.
        hybrid: Gain in hybrid search.
        free: What feedback alone gains in dense search.
        kinds: Gain in dense search by kind of question.
        questions: How many there were.
    """

    adopt: bool
    reason: str
    before: Interval
    after: Interval
    gain: Comparison
    over_feedback: Comparison
    hybrid: Comparison
    free: Comparison
    kinds: Mapping[str, Interval]
    questions: int

    def to_json(self) -> dict[str, Json]:
        """Values and gains with their intervals."""
        return {
            "adopt": self.adopt,
            "metric": METRIC,
            "questions": self.questions,
            "before": _interval(self.before),
            "after": _interval(self.after),
            "gain": _interval(self.gain.difference),
            "over_feedback": _interval(self.over_feedback.difference),
            "hybrid": _interval(self.hybrid.difference),
            "free": _interval(self.free.difference),
            "kinds": {kind: _interval(gained) for kind, gained in self.kinds.items()},
        }


def decide(base: Runs, adapted: Runs, *, seed: int = 0) -> Decision:
    """Decide whether an adapted encoder takes the place of the one that an index has.

    Args:
        base: What the encoder of the index reaches: dense, hybrid, and dense with feedback.
        adapted: What the adapted one reaches on the same questions: dense and hybrid.
        seed: Of intervals.
    """
    gain = compare(base[DENSE], adapted[DENSE], METRIC, seed=seed)
    over = compare(base[FEEDBACK], adapted[DENSE], METRIC, seed=seed)
    hybrid = compare(base[HYBRID], adapted[HYBRID], METRIC, seed=seed)
    free = compare(base[DENSE], base[FEEDBACK], METRIC, seed=seed)
    kinds = _by_kind(base[DENSE], adapted[DENSE], seed)
    adopt, reason = _weigh(gain.difference, kinds, over.difference, hybrid.difference, free.difference)
    return Decision(
        adopt,
        reason,
        base[DENSE].interval(METRIC),
        adapted[DENSE].interval(METRIC),
        gain,
        over,
        hybrid,
        free,
        kinds,
        len(base[DENSE].values[METRIC]),
    )


def _by_kind(before: RunResult, after: RunResult, seed: int) -> dict[str, Interval]:
    """Gain of each kind of question, which is the first part of its id."""
    gained: dict[str, list[float]] = {}
    for query, value in after.values[METRIC].items():
        gained.setdefault(query.partition("-")[0], []).append(value - before.values[METRIC][query])
    return {kind: bootstrap_interval(values, seed=seed) for kind, values in gained.items()}


def _weigh(
    gain: Interval, kinds: Mapping[str, Interval], over: Interval, hybrid: Interval, free: Interval
) -> tuple[bool, str]:
    gained = f"dense search gains {signed(gain)} {METRIC}"
    if gain.low <= 0:
        return False, f"{gained}: the interval is not above zero"
    if gain.low <= OVERSTATED:
        return False, (
            f"{gained}: questions that people ask gain less than such as are made from documents, so an"
            f" interval that begins below {decimal(OVERSTATED)} does not pay for embedding everything anew"
        )
    losing = next((kind for kind, each in kinds.items() if each.high < 0), None)
    if losing is not None:
        return False, f"{gained}, but on questions made from a {losing} it loses: {signed(kinds[losing])}"
    if over.mean <= 0:
        return False, (
            f"{gained}, but adding the first hits to the query's vector, which needs no training, gains"
            f" {signed(free)}"
        )
    if hybrid.mean < -TOLERATED:
        return False, f"{gained}, but hybrid search, the default, loses: {signed(hybrid)}"
    return True, f"{gained}, {decimal(over.mean, signed=True)} over feedback on the query's vector"


def _interval(interval: Interval) -> dict[str, Json]:
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}


def signed(interval: Interval) -> str:
    """A difference with its interval.

    Example:
        >>> signed(Interval(0.05, 0.01, 0.09))
        '+.050 [.010, .090]'
    """
    return decimal(interval.mean, signed=True) + interval_text(interval)[len(decimal(interval.mean)) :]
