from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.index import packing
from likewise.index.packing import Atoms, Strength, coalesce, pack

strengths = st.sampled_from(list(Strength))


@st.composite
def stretches(draw: st.DrawFn, most_atoms: int) -> tuple[list[int], list[Strength]]:
    lengths = draw(st.lists(st.integers(0, 60), min_size=1, max_size=most_atoms))
    weights = [0]
    for length in lengths:
        weights.append(weights[-1] + length)
    return weights, draw(st.lists(strengths, min_size=len(weights), max_size=len(weights)))


def cost(cuts: list[int], atoms: Atoms, target: int, most: int) -> float:
    """The cost of a plan, written out; infinite for one that is not allowed."""
    total = 0.0
    for start, end in pairwise(cuts):
        length = atoms.weights[end] - atoms.weights[start]
        if end - start > 1 and (length > most or length > atoms.budgets[start]):
            return float("inf")
        if length < target:
            total += ((target - length) / target) ** 2
        else:
            total += 0.25 * ((length - target) / max(1, most - target)) ** 2
        total += sum(packing._JOIN_COST[atoms.strengths[k]] for k in range(start + 1, end))
        if end < len(atoms.weights) - 1:
            total += packing._SPLIT_COST[atoms.strengths[end]]
    return total


@settings(max_examples=150, deadline=None)
@given(stretch=stretches(9), target=st.integers(1, 80), extra=st.integers(0, 40), data=st.data())
def test_the_plan_is_the_cheapest_of_all(
    stretch: tuple[list[int], list[Strength]], target: int, extra: int, data: st.DataObject
) -> None:
    weights, kinds = stretch
    count, most = len(weights) - 1, target + extra
    budgets = data.draw(st.lists(st.integers(1, most), min_size=count, max_size=count))
    atoms = Atoms(weights, kinds, budgets)
    plans = [[0, *inner, count] for size in range(count) for inner in combinations(range(1, count), size)]
    best = min(cost(plan, atoms, target, most) for plan in plans)
    found = cost(pack(atoms, target=target, most=most), atoms, target, most)
    assert abs(found - best) < 1e-9


@given(stretch=stretches(60), grain=st.integers(1, 30), most=st.integers(1, 120))
def test_coalescing_keeps_the_ends_and_the_limit(
    stretch: tuple[list[int], list[Strength]], grain: int, most: int
) -> None:
    weights, kinds = stretch
    kept = coalesce(weights, kinds, grain=grain, most=most)
    assert kept[0] == 0 and kept[-1] == len(weights) - 1
    assert kept == sorted(set(kept))
    for a, b in pairwise(kept):
        assert b == a + 1 or weights[b] - weights[a] <= most


def test_a_million_tiny_atoms_become_few() -> None:
    weights = list(range(100_001))
    kept = coalesce(weights, [Strength.LINE] * len(weights), grain=8, most=200)
    assert len(kept) == 100_000 // 8 + 1


def test_a_small_section_joins_its_neighbour_and_a_large_one_does_not() -> None:
    kinds = [Strength.HEADING] * 3
    assert pack(Atoms([0, 45, 90], kinds, [200] * 2), target=200, most=250) == [0, 2]
    assert pack(Atoms([0, 150, 300], kinds, [400] * 2), target=200, most=400) == [0, 1, 2]
