"""Small changes to a KTIR program, each at one operation: what a test suite must notice if it really runs the program.

A change is applied to a freshly parsed module, so that every operation keeps its place in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
)
from xdsl.ir import Operation
from xdsl.ir.affine import AffineConstantExpr, AffineMap

from ktir.dialect import ktdp
from ktir.dialect.locations import location_of
from ktir.maths.affine import add


@dataclass(frozen=True)
class Mutation:
    """A change of the operation that is number ``position`` in a walk over the module."""

    name: str
    line: int
    position: int
    change: Callable[[Operation], None]

    def apply(self, module: ModuleOp) -> None:
        self.change(list(module.walk())[self.position])


def mutations(module: ModuleOp) -> list[Mutation]:
    """Every constant perturbed, every store deleted, every access tile shifted along each of its dimensions."""
    found: list[Mutation] = []
    for position, operation in enumerate(module.walk()):
        place = location_of(operation)
        for name, change in changes(operation):
            line = place.line if place else 0
            found.append(Mutation(f"{name} at line {line}", line, position, change))
    return found


def changes(operation: Operation) -> Iterator[tuple[str, Callable[[Operation], None]]]:
    match operation:
        case arith.ConstantOp() if operation.result.uses:
            yield from constant_changes(operation)
        case ktdp.StoreOp():
            yield "store deleted", delete
        case ktdp.ConstructAccessTileOp():
            for dim in range(len(operation.base_map.data.results)):
                yield f"tile shifted along {dim}", shifted(dim)
        case _:
            return


def delete(operation: Operation) -> None:
    operation.detach()
    operation.erase()


def constant_changes(constant: arith.ConstantOp) -> Iterator[tuple[str, Callable[[Operation], None]]]:
    value = constant.value
    match value:
        case IntegerAttr() if isinstance(value.type, IndexType | IntegerType):
            yield f"constant {value.value.data} plus one", integer_plus(1)
        case FloatAttr() | DenseIntOrFPElementsAttr():
            yield "constant plus 1000", number_plus_thousand
        case _:
            return


def integer_plus(by: int) -> Callable[[Operation], None]:
    def change(operation: Operation) -> None:
        value = operation.properties["value"]
        assert isinstance(value, IntegerAttr)
        operation.properties["value"] = IntegerAttr(value.value.data + by, value.type)

    return change


def number_plus_thousand(operation: Operation) -> None:
    value = operation.properties["value"]
    if isinstance(value, FloatAttr):
        number = value.value.data
        operation.properties["value"] = FloatAttr(1000.0 if number == float("-inf") else number + 1000, value.type)
        return
    assert isinstance(value, DenseIntOrFPElementsAttr)
    numbers = [1000.0 if x == float("-inf") else x + 1000 for x in value.get_values()]
    operation.properties["value"] = DenseIntOrFPElementsAttr.from_list(value.type, numbers)


def shifted(dim: int) -> Callable[[Operation], None]:
    def change(operation: Operation) -> None:
        assert isinstance(operation, ktdp.ConstructAccessTileOp)
        old = operation.base_map.data
        results = list(old.results)
        results[dim] = add(results[dim], AffineConstantExpr(1))
        operation.properties["base_map"] = AffineMapAttr(AffineMap(old.num_dims, old.num_symbols, tuple(results)))

    return change
