"""Properties of the range engine, against every assignment of the symbols tried one by one."""

from __future__ import annotations

import operator as op
from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.analysis import ranges
from ktir.analysis.ranges import Predicate, Value
from tests.settings import examples

CORES = 3
TRIPS = (4, 3)
PREDICATES: tuple[Predicate, ...] = ("eq", "ne", "slt", "sle", "sgt", "sge")
HOLDS = dict(zip(PREDICATES, (op.eq, op.ne, op.lt, op.le, op.gt, op.ge), strict=True))


@dataclass(frozen=True)
class Formula:
    """A random expression: how the engine computes it, and how Python does for one core and one iteration."""

    value: Value
    number: dict[tuple[int, ...], int]


def leaf(kind: int, constant: int, counters: list[Value]) -> Formula:
    points = list(product(range(CORES), *(range(t) for t in TRIPS)))
    if kind == 0:
        return Formula(ranges.constant(constant), dict.fromkeys(points, constant))
    if kind == 1:
        frame = counters[0].frame
        assert frame is not None
        return Formula(Value(frame.core, {}, frame), {p: p[0] for p in points})
    return Formula(counters[kind - 2], {p: p[kind - 1] for p in points})


def truncated(x: int, low: int, high: int) -> int:
    return max(low, min(high, x))


@st.composite
def formulas(draw: st.DrawFn, counters: list[Value], depth: int) -> Formula:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return leaf(draw(st.integers(0, 3)), draw(st.integers(-9, 9)), counters)
    a, b = draw(formulas(counters, depth - 1)), draw(formulas(counters, depth - 1))
    by = draw(st.integers(1, 5))
    operation = draw(st.integers(0, 7))
    points = a.number.keys()
    match operation:
        case 0:
            return Formula(a.value + b.value, {p: a.number[p] + b.number[p] for p in points})
        case 1:
            return Formula(a.value - b.value, {p: a.number[p] - b.number[p] for p in points})
        case 2:
            return Formula(ranges.multiply(a.value, b.value), {p: a.number[p] * b.number[p] for p in points})
        case 3:
            return Formula(ranges.floor_divide(a.value, by), {p: a.number[p] // by for p in points})
        case 4:
            return Formula(ranges.modulo(a.value, by), {p: a.number[p] % by for p in points})
        case 5:
            return Formula(ranges.least(a.value, b.value), {p: min(a.number[p], b.number[p]) for p in points})
        case 6:
            return Formula(ranges.greatest(a.value, b.value), {p: max(a.number[p], b.number[p]) for p in points})
        case _:
            predicate = draw(st.sampled_from(PREDICATES))
            holds = HOLDS[predicate]
            condition = ranges.compare(predicate, a.value, b.value)
            chosen = {p: (a if holds(a.number[p], b.number[p]) else b).number[p] for p in points}
            return Formula(ranges.choose(condition, a.value, b.value), chosen)


def loop_counters() -> list[Value]:
    frame = ranges.cores(CORES)
    return [ranges.symbol(f"i{k}", frame, 0.0, float(t - 1), attained=True) for k, t in enumerate(TRIPS)]


@settings(max_examples=examples(3000), deadline=None)
@given(st.data())
def test_bounds_hold_for_every_iteration_and_attained_ones_are_reached(data: st.DataObject) -> None:
    formula = data.draw(formulas(loop_counters(), 3))
    low, high = (np.broadcast_to(b, CORES) for b in (formula.value.lower(), formula.value.upper()))
    for core in range(CORES):
        numbers = [n for p, n in formula.number.items() if p[0] == core]
        assert low[core] <= min(numbers) and max(numbers) <= high[core]
        if formula.value.attained():
            assert (low[core], high[core]) == (min(numbers), max(numbers))


@settings(max_examples=examples(1000), deadline=None)
@given(st.data())
def test_what_depends_on_the_core_alone_is_known_exactly(data: st.DataObject) -> None:
    frame = ranges.cores(CORES)
    core = Value(frame.core, {}, frame)
    formula = data.draw(formulas([core, core], 3))
    exact = {p[0]: n for p, n in formula.number.items() if p[1] == p[0] and p[2] == p[0]}
    assert formula.value.known
    assert np.broadcast_to(formula.value.constant, CORES).tolist() == [exact[c] for c in range(CORES)]


def test_a_remainder_of_what_skips_values_is_not_taken_to_reach_its_bounds() -> None:
    counter = ranges.symbol("i", lower=0.0, upper=3.0, attained=True)
    skips = ranges.floor_divide(ranges.multiply(counter, ranges.constant(3)), 2)  # 0, 1, 3, 4
    assert skips.attained() and not ranges.modulo(skips, 3).attained()
    assert ranges.modulo(counter, 3).attained()


def test_a_counter_bounded_by_an_argument_stays_below_it() -> None:
    n = ranges.symbol("n", lower=0.0)
    i = ranges.symbol("i", lower=0.0, below=n - ranges.constant(1))
    assert (i - n).upper() == -1
    assert (i + ranges.constant(2) - n).upper() == 1


def test_a_pointer_in_bytes_divided_by_the_element_size_is_one_symbol() -> None:
    pointer = ranges.symbol("p", lower=0.0, multiple=128, pointer=True)
    elements = ranges.floor_divide(pointer, 2)
    again = ranges.floor_divide(pointer + ranges.constant(256), 2)
    assert (again - elements).literal == 128


def test_values_of_an_outer_frame_are_spread_over_the_inner_one() -> None:
    frame = ranges.cores(2)
    inner = frame.within(np.array([0, 0, 1]))
    assert Value(frame.core * 10, {}, frame).at(inner).constant.tolist() == [0, 0, 10]
