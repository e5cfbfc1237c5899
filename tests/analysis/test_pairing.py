"""Pairing: what was deleted from one side is exactly what has no counterpart, and the rest keeps its partner."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ktir.analysis.pairing import pair
from ktir.dialect.text.parser import parse_module
from tests.settings import examples

OPERATIONS = ("addf", "mulf", "subf", "maximumf")


@st.composite
def chains(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    """Operations on earlier values: name, and which two values."""
    length = draw(st.integers(2, 14))
    return [
        (draw(st.sampled_from(OPERATIONS)), draw(st.integers(0, number)), draw(st.integers(0, number)))
        for number in range(length)
    ]


def text_of(chain: list[tuple[str, int, int]], name: str = "v") -> str:
    """A function of the chain; value 0 is its argument. Values are numbered where ``name`` is empty."""
    values = [f"%{name}{number}" for number in range(len(chain) + 1)]
    lines = [
        f"{values[number + 1]} = arith.{op} {values[a]}, {values[b]} : f32" for number, (op, a, b) in enumerate(chain)
    ]
    return f"func.func @f({values[0]}: f32) {{\n" + "\n".join(lines) + "\nreturn\n}\n"


def module(text: str) -> ModuleOp:
    return parse_module(text, "t.ktir")


def computing(op: ModuleOp) -> list[Operation]:
    return [each for each in op.walk() if each.name.startswith("arith.")]


@given(chains(), st.sampled_from(["v", "w", ""]))
@settings(max_examples=examples(200), deadline=None)
def test_a_program_pairs_with_itself_whatever_its_values_are_called(
    chain: list[tuple[str, int, int]], name: str
) -> None:
    one, other = module(text_of(chain)), module(text_of(chain, name))
    found = pair(one, other)
    assert not found.only_first and not found.only_second
    partners = {b: a for a, b in zip(one.walk(), other.walk(), strict=True)}
    assert all(partners[b] is a for b, a in found.pairs.items() if a.name != "builtin.module")


@given(chains(), st.data())
@settings(max_examples=examples(200), deadline=None)
def test_what_was_added_is_what_is_left_over(chain: list[tuple[str, int, int]], data: st.DataObject) -> None:
    """An operation that nobody uses is added at any place: the others keep their partners."""
    at = data.draw(st.integers(0, len(chain)))
    lines = text_of(chain).split("\n")
    lines.insert(1 + at, "%added = arith.negf %v0 : f32")
    one, other = module(text_of(chain)), module("\n".join(lines))
    for first, second, extra in ((one, other, "only_second"), (other, one, "only_first")):
        found = pair(first, second)
        assert [op.name for op in getattr(found, extra)] == ["arith.negf"]
        names = {op.results[0].name_hint: op for op in computing(first)}
        for op in computing(second):
            if op in found.pairs:
                assert found.pairs[op] is names[op.results[0].name_hint]


@given(chains(), st.data())
@settings(max_examples=examples(200), deadline=None)
def test_a_changed_operation_keeps_its_partner(chain: list[tuple[str, int, int]], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(chain) - 1))
    changed = list(chain)
    changed[at] = ("divf", *chain[at][1:])
    one, other = module(text_of(chain)), module(text_of(changed))
    found = pair(one, other)
    assert [found.pairs[b] for b in computing(other)] == computing(one)


def test_functions_are_paired_by_name_and_a_single_other_one_too() -> None:
    one = module("func.func @a() {\nreturn\n}\nfunc.func @b(%x: f32) {\n%y = arith.negf %x : f32\nreturn\n}\n")
    other = module("func.func @c(%x: f32) {\n%y = arith.negf %x : f32\nreturn\n}\nfunc.func @a() {\nreturn\n}\n")
    found = pair(one, other)
    assert not found.only_first and not found.only_second


def test_a_long_block_is_paired_in_reasonable_time() -> None:
    chain = [(OPERATIONS[number % 4], number, number // 2) for number in range(1000)]
    changed = [*chain[:300], *chain[310:600], *chain[590:]]
    renumbered = [(op, min(a, number), min(b, number)) for number, (op, a, b) in enumerate(changed)]
    found = pair(module(text_of(chain)), module(text_of(renumbered)))
    assert len(found.pairs) > 950
