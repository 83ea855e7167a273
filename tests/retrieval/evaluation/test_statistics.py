"""Intervals and the paired test against closed forms and exhaustive enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from likewise.retrieval.evaluation.statistics import bootstrap_interval, paired_p_value


def test_the_interval_approaches_the_normal_one() -> None:
    values = np.random.default_rng(0).normal(0.4, 0.2, 2000)
    interval = bootstrap_interval(list(values), samples=4000)
    half = 1.96 * values.std() / math.sqrt(len(values))
    assert interval.mean == pytest.approx(values.mean())
    assert interval.low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_equal_seeds_give_equal_intervals() -> None:
    values = [0.0, 1.0, 0.5, 0.2]
    assert bootstrap_interval(values, seed=3) == bootstrap_interval(values, seed=3)
    assert bootstrap_interval(values, seed=3) != bootstrap_interval(values, seed=4)


def test_no_values() -> None:
    assert bootstrap_interval([]).mean == 0.0


def test_p_value_equals_enumeration() -> None:
    first = [0.9, 0.8, 0.4, 0.7, 0.6, 0.95, 0.3, 0.8]
    second = [0.5, 0.7, 0.5, 0.2, 0.6, 0.60, 0.1, 0.9]
    difference = np.array(first) - np.array(second)
    sums = [abs(np.dot(signs, difference)) for signs in itertools.product((-1, 1), repeat=len(difference))]
    exact = np.mean(np.array(sums) >= abs(difference.sum()) - 1e-12)
    assert paired_p_value(first, second, samples=40_000) == pytest.approx(exact, abs=0.01)


def test_p_value_is_symmetric_and_never_zero() -> None:
    first, second = [1.0] * 30, [0.0] * 30
    assert paired_p_value(first, second, samples=999) == 1 / 1000
    assert paired_p_value(second, first, samples=999) == 1 / 1000


def test_equal_systems_do_not_differ() -> None:
    assert paired_p_value([0.1, 0.2], [0.1, 0.2]) == 1.0
