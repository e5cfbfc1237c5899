"""The simulator really runs the program: a single fault in the lowered form of a real kernel is noticed.

A fault is noticed if the verifier or a simulator raises with a place in the kernel's text, or if an output changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.ir import Operation, SSAValue

from ktir.backends.dataflow.deadlock import run_to_verdict
from ktir.backends.dataflow.lower import LoweredProgram
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.timed import simulate
from ktir.backends.dataflow.verify import verify
from ktir.conformance.case import parse_case
from ktir.dialect import dfp
from ktir.errors import DataflowError, UnwrittenRead
from tests.backends.dataflow.lower.kernels import lowered, outputs
from tests.settings import SCALE

CASES = sorted((Path(__file__).parents[3] / "spec" / "cases").glob("*.ktir"))
SAMPLE = 1 if SCALE >= 1 else 4
"""Every how manieth fault the quick suite tries."""

MOVES = (dfp.StreamOp, dfp.DrainOp, dfp.SendOp, dfp.ReceiveOp, dfp.CopyOp)
TOKENS = (dfp.ReserveOp, dfp.CommitOp, dfp.AcquireOp, dfp.ReleaseOp)


@cache
def prepared(path: Path) -> tuple[LoweredProgram, dict[str, Any], dict[str, np.ndarray]]:
    """The lowered case, its arguments, and what it stores when nothing is wrong."""
    case = parse_case(path.read_text(), str(path))
    program = lowered(path.read_text(), case.function, case.inputs)
    return program, dict(case.inputs), outputs(program, case.inputs)


def noticed(program: LoweredProgram, arguments: dict[str, Any], right: dict[str, np.ndarray]) -> bool:
    """Whether the faulty ``program`` is caught; errors have to say where."""
    found = verify(program.module, program.machine)
    if found:
        return any(each.location is not None for each in found)
    try:
        stored = outputs(program, arguments)
    except DataflowError as error:
        return error.location is not None
    return any(not np.array_equal(stored[name], right[name], equal_nan=True) for name in right)


def operations(program: LoweredProgram, *kinds: type) -> list[Operation]:
    return [op for op in program.module.walk() if isinstance(op, kinds)]


def copies(program: LoweredProgram, *kinds: type) -> Iterator[tuple[LoweredProgram, Operation]]:
    """A copy of the program for each operation of ``kinds``, with that operation."""
    for number in range(0, len(operations(program, *kinds)), SAMPLE):
        copy = replace(program, module=program.module.clone())
        yield copy, operations(copy, *kinds)[number]


def offset_operands(op: Operation) -> list[int]:
    return [number for number, operand in enumerate(op.operands) if isinstance(operand.type, IndexType)]


def shifted(op: Operation, operand: int, amount: int) -> None:
    """Adds ``amount`` bytes to an offset of ``op``."""
    constant = arith.ConstantOp(IntegerAttr(amount, IndexType()))
    moved = arith.AddiOp(op.operands[operand], constant.result)
    block = op.parent_block()
    assert block is not None
    block.insert_ops_before([constant, moved], op)
    op.operands[operand] = SSAValue.get(moved)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_case_itself_is_in_order_and_above_its_bound(path: Path) -> None:
    program, _, right = prepared(path)
    assert right and verify(program.module, program.machine) == []
    timing = simulate(program.module, program.machine)
    assert timing.total_ns >= timing.bound_ns > 0
    assert all(unit.total_ns == pytest.approx(timing.total_ns) for unit in timing.units)
    assert timing.ddr_read + timing.ddr_written >= timing.ddr_compulsory
    places = {spot.location.line for spot in timing.hot_spots if spot.location is not None}
    assert places and max(places) <= len(path.read_text().splitlines())


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_dropped_operation_is_noticed(path: Path) -> None:
    program, arguments, right = prepared(path)
    for copy, op in copies(program, *MOVES, *TOKENS, dfp.SfuMapOp, dfp.SfuReduceOp, dfp.PeLoadOp, dfp.PeMacOp):
        name = op.name
        op.detach()
        assert noticed(copy, arguments, right), f"dropped {name}"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_shifted_address_is_noticed(path: Path) -> None:
    program, arguments, right = prepared(path)
    for copy, op in copies(program, *MOVES):
        operand = offset_operands(op)[0]
        shifted(op, operand, 2 if not isinstance(op, dfp.StreamOp) else 128)
        assert noticed(copy, arguments, right), f"shifted {op}"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_shifted_buffer_of_device_memory_is_noticed(path: Path) -> None:
    """What the text says about an array's place and what the host does have to agree."""
    program, arguments, right = prepared(path)
    for copy, op in copies(program, dfp.BufferOp):
        if op.properties["memory"].data == program.machine.global_memory.name:
            op.properties["offset"] = IntegerAttr(op.offset.value.data + 128, i64)
            assert noticed(copy, arguments, right), f"shifted {op}"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_depths_below_what_the_program_needs_are_a_deadlock(path: Path) -> None:
    """Halving a depth again and again either keeps the program right or is found, and never changes a number."""
    program, _, _ = prepared(path)
    compiled = compile_program(program.module, program.machine)
    declared = [queue.depth for queue in compiled.queues]
    for number in range(len(declared)):
        verdicts: list[bool] = []
        depth = declared[number]
        while depth:
            depths = [depth if place == number else each for place, each in enumerate(declared)]
            verdicts.append(run_to_verdict(compiled, depths) is None)
            depth //= 2
        assert verdicts[0] and verdicts == sorted(verdicts, reverse=True)


def test_halving_a_depth_that_is_needed_names_the_operation() -> None:
    program, _, _ = prepared(next(path for path in CASES if path.stem == "row_softmax"))
    copy = replace(program, module=program.module.clone())
    for queue in operations(copy, dfp.QueueOp):
        queue.properties["depth"] = IntegerAttr(1, i64)
    found = verify(copy.module, copy.machine)
    assert [each.code for each in found] == ["DataflowDeadlock"]
    assert found[0].location is not None and found[0].location.file == "kernel.mlir"


def test_data_of_another_tile_is_unwritten() -> None:
    program, arguments, _ = prepared(next(path for path in CASES if path.stem == "row_softmax"))
    copy = replace(program, module=program.module.clone())
    loaded = operations(copy, dfp.CopyOp)[0]
    loaded.detach()
    with pytest.raises(UnwrittenRead) as caught:
        outputs(copy, arguments)
    assert caught.value.location is not None
