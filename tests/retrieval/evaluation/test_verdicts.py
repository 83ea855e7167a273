"""Comparisons in words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from likewise.retrieval.evaluation.evaluate import Comparison
from likewise.retrieval.evaluation.statistics import Interval
from likewise.retrieval.evaluation.verdicts import decimal, p_text, verdict


def test_the_better_one_comes_first() -> None:
    row = Comparison("MAP", "hybrid", "dense", Interval(-0.2, -0.3, -0.1), 0.0001)
    assert verdict(row) == "hybrid is better than dense by .200 MAP [.100, .300], p < .001"


def test_p_values_near_the_line_do_not_cross_it_by_rounding() -> None:
    assert p_text(0.0499) == "p = .0499"
    assert p_text(0.0471) == "p = .047"
    assert p_text(0.052) == "p = .052"
    assert p_text(0.3) == "p = .30"


@given(st.floats(-1, 1))
def test_decimals_are_the_number(value: float) -> None:
    assert abs(float(decimal(value)) - value) <= 0.0005000001
    assert float(decimal(value, signed=True)) == float(decimal(value))
