from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.embedder.schedules import rate_factor
from likewise.errors import UsageError

NAMES = ["linear", "cosine", "wsd", "constant"]


@pytest.mark.parametrize("name", NAMES)
@given(progress=st.floats(-1, 2), warmup=st.floats(0, 0.7), floor=st.floats(0, 1))
def test_factors_stay_in_range_and_above_the_floor(name, progress, warmup, floor):
    factor = rate_factor(name, progress, warmup=warmup, decay=0.3, floor=floor)
    assert 0.0 <= factor <= 1.0
    assert factor >= floor or progress < warmup


@pytest.mark.parametrize("name", NAMES)
@given(left=st.floats(0, 1), right=st.floats(0, 1))
def test_rises_in_the_warmup_and_never_after_it(name, left, right):
    low, high = sorted((left, right))
    first, second = (rate_factor(name, p, warmup=0.25, decay=0.5) for p in (low, high))
    if high <= 0.25:
        assert first <= second
    if low >= 0.25:
        assert first >= second


@pytest.mark.parametrize("name", NAMES)
def test_reaches_the_peak_at_the_end_of_the_warmup(name):
    assert rate_factor(name, 0.1, warmup=0.1, decay=0.2) == pytest.approx(1.0)
    assert rate_factor(name, 0.05, warmup=0.1, decay=0.2) == pytest.approx(0.5)
    assert rate_factor(name, 0.0, warmup=0.0, decay=0.2) == 1.0


def test_values_by_hand():
    assert rate_factor("linear", 0.7, warmup=0.4, decay=0.1) == pytest.approx(0.5)
    assert rate_factor("cosine", 0.8, warmup=0.4, decay=0.1) == pytest.approx(
        (1 + math.cos(math.pi * 2 / 3)) / 2
    )
    assert rate_factor("wsd", 0.79, warmup=0.4, decay=0.2) == 1.0
    assert rate_factor("wsd", 0.85, warmup=0.4, decay=0.2) == pytest.approx(1 - math.sqrt(0.25))
    assert rate_factor("constant", 1.0, warmup=0.4, decay=0.2) == 1.0


@pytest.mark.parametrize("name", ["linear", "cosine", "wsd"])
def test_ends_at_the_floor(name):
    assert rate_factor(name, 1.0, warmup=0.1, decay=0.2) == pytest.approx(0.0)
    assert rate_factor(name, 1.0, warmup=0.1, decay=0.2, floor=0.3) == 0.3


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("step", {}, "linear, cosine, wsd, constant"),
        ("linear", {"warmup": 1.0}, "warm-up share"),
        ("linear", {"warmup": -0.1}, "warm-up share"),
        ("wsd", {"decay": 0.0}, "decay share"),
        ("wsd", {"decay": 0.95}, "decay share"),
        ("linear", {"floor": 1.5}, "lowest factor"),
    ],
)
def test_nonsense_is_refused(name, changes, message):
    with pytest.raises(UsageError, match=message):
        rate_factor(name, 0.5, **{"warmup": 0.1, "decay": 0.2} | changes)
