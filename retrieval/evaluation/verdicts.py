"""What a comparison says, in words. No arithmetic beyond rounding."""

from __future__ import annotations

from likewise.retrieval.evaluation.evaluate import Comparison
from likewise.retrieval.evaluation.statistics import Interval

SIGNIFICANT = 0.05
"""Below this p-value a difference is called one."""


def verdict(comparison: Comparison) -> str:
    """One sentence about two runs: which is better and by how much, or that chance would do as well.

    Example:
        >>> row = Comparison("nDCG@10", "dense", "hybrid", Interval(0.021, 0.004, 0.038), 0.0119)
        >>> verdict(row)
        'hybrid is better than dense by .021 nDCG@10 [.004, .038], p = .01'
        >>> verdict(Comparison("MAP", "dense", "hybrid", Interval(-0.003, -0.01, 0.02), 0.4))
        'hybrid and dense: no difference in MAP that chance would not make (-.003 [-.010, .020], p = .40)'
        >>> verdict(Comparison("MAP", "a", "b", Interval(0.0, 0.0, 0.0), 1.0))
        'b and a: the same MAP for every question'
    """
    first, second, metric = comparison.first, comparison.second, comparison.metric
    mean, low, high = comparison.difference.mean, comparison.difference.low, comparison.difference.high
    if mean == low == high == 0:
        return f"{second} and {first}: the same {metric} for every question"
    if comparison.p_value >= SIGNIFICANT:
        return (
            f"{second} and {first}: no difference in {metric} that chance would not make"
            f" ({decimal(mean, signed=True)} [{decimal(low)}, {decimal(high)}], {p_text(comparison.p_value)})"
        )
    if mean < 0:
        first, second, mean, low, high = second, first, -mean, -high, -low
    return (
        f"{second} is better than {first} by {decimal(mean)} {metric}"
        f" [{decimal(low)}, {decimal(high)}], {p_text(comparison.p_value)}"
    )


def decimal(value: float, *, signed: bool = False) -> str:
    """A share with three decimals, without the zero that all of them would begin with.

    Example:
        >>> decimal(0.5), decimal(1.0), decimal(-0.02), decimal(0.02, signed=True), decimal(-0.0001)
        ('.500', '1.000', '-.020', '+.020', '.000')
    """
    text = f"{value:+.3f}" if signed else f"{value:.3f}"
    if float(text) == 0:
        text = text.lstrip("+-")
    return text.replace("0.", ".", 1) if abs(float(text)) < 1 else text


def p_text(value: float) -> str:
    """A p-value as papers print it.

    Example:
        >>> p_text(0.0119), p_text(0.004), p_text(0.0001), p_text(1.0)
        ('p = .01', 'p = .004', 'p < .001', 'p = 1')
    """
    if value < 0.001:
        return "p < .001"
    if value >= 0.995:
        return "p = 1"
    # Rounding must not carry a value across the line.
    digits = (
        4 if abs(value - SIGNIFICANT) < 0.0005 else 3 if value < 0.0095 or abs(value - 0.05) < 0.005 else 2
    )
    return f"p = {value:.{digits}f}".replace("0.", ".", 1)


def interval_text(interval: Interval) -> str:
    """A mean with its interval.

    Example:
        >>> interval_text(Interval(0.5, 0.45, 0.551))
        '.500 [.450, .551]'
    """
    return f"{decimal(interval.mean)} [{decimal(interval.low)}, {decimal(interval.high)}]"
