"""What a program is declared to write once is what counting says; and a store to another store's place is caught (V11).

Generated kernels store tiles of rows at ``core * a + i * b + c``; how often each row is written is counted here, row by
row, and nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr

from ktir.backends.dataflow.lower import LoweredProgram
from ktir.backends.dataflow.verify import verify
from ktir.conformance.case import parse_case
from ktir.dialect import dfp
from ktir.maths.runs import runs_of
from tests.backends.dataflow.lower.kernels import fetch, kernel, lowered, put, view
from tests.settings import examples

CASES = sorted((Path(__file__).parents[4] / "spec" / "cases").glob("*.ktir"))
OUTPUTS = {
    "column_sums_inter_tile": ["y_ptr"],
    "matmul_k_loop": ["c_ptr"],
    "relayout_scratchpads": ["y_ptr"],
    "row_softmax": ["y_ptr"],
}
"""What each case leaves behind, as its header says."""


def declared(program: LoweredProgram) -> list[str]:
    """Names of the buffers that are written once."""
    buffers = [op for op in program.module.walk() if isinstance(op, dfp.BufferOp)]
    return [op.sym_name.data for op in buffers if op.writes is not None and op.writes.data == "once"]


def stored_rows(program: LoweredProgram, name: str, row: int, rows: int) -> list[int]:
    """The rows that a buffer declares to be stored, whole ones of ``row`` bytes each."""
    (buffer,) = [op for op in program.module.walk() if isinstance(op, dfp.BufferOp) and op.sym_name.data == name]
    if not buffer.stored_boxes:
        return list(range(rows))
    runs = runs_of(buffer.stored_boxes)
    assert not (runs % row).any()
    return sorted(at for start, stop in (runs // row).tolist() for at in range(start, stop))


def rows_kernel(rows: int, cores: int, trips: int, height: int, by_core: int, by_trip: int, first: int) -> str:
    """Doubles the first rows of ``x`` and stores them at ``core * by_core + i * by_trip + first`` of ``y``."""
    shape = [rows, 64]
    return kernel(
        "%x_ptr: index, %y_ptr: index",
        [cores],
        "%core = ktdp.get_compute_tile_id : index",
        view("x", "%x_ptr", shape, "f32"),
        view("y", "%y_ptr", shape, "f32"),
        *(
            f"%{name} = arith.constant {value} : index"
            for name, value in {"trips": trips, "a": by_core, "b": by_trip, "f": first}.items()
        ),
        "scf.for %i = %c0 to %trips step %c1 {",
        "%mine = arith.muli %core, %a : index",
        "%now = arith.muli %i, %b : index",
        "%sum = arith.addi %mine, %now : index",
        "%r = arith.addi %sum, %f : index",
        fetch("v", "%x", shape, "%c0, %c0", [height, 64], "f32"),
        f"%w = arith.addf %v, %v : tensor<{height}x64xf32>",
        put("w", "%y", shape, "%r, %c0", [height, 64], "f32"),
        "}",
    )


@settings(max_examples=examples(300), deadline=None)
@given(
    st.sampled_from([1, 2, 4]),
    st.integers(1, 4),
    st.sampled_from([1, 2, 4]),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 1),
    st.integers(0, 2),
)
def test_what_is_written_once_is_declared_and_nothing_else(
    cores: int, trips: int, height: int, by_core: int, by_trip: int, first: int, spare: int
) -> None:
    places = [core * by_core + i * by_trip + first for core in range(cores) for i in range(trips)]
    rows = max(places) + height + max(0, spare - 1)
    times = np.zeros(rows, int)
    for place in places:
        times[place : place + height] += 1
    array = np.zeros((rows, 64), np.float32)
    text = rows_kernel(rows, cores, trips, height, by_core, by_trip, first)
    program = lowered(text, "k", {"x_ptr": array, "y_ptr": array})
    assert declared(program) == (["y_ptr"] if (times <= 1).all() else [])
    if (times <= 1).all():
        assert verify(program.module, program.machine) == []
        assert stored_rows(program, "y_ptr", 256, rows) == np.flatnonzero(times).tolist()


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from([1, 2, 8]), st.integers(1, 4), st.sampled_from([1, 2]), st.booleans())
def test_rows_dealt_out_to_cores_or_iterations_are_declared(cores: int, trips: int, height: int, cyclic: bool) -> None:
    by_core, by_trip = (height, height * cores) if cyclic else (height * trips, height)
    array = np.zeros((cores * trips * height, 64), np.float32)
    text = rows_kernel(len(array), cores, trips, height, by_core, by_trip, 0)
    assert declared(lowered(text, "k", {"x_ptr": array, "y_ptr": array})) == ["y_ptr"]


def test_a_loop_too_long_to_list_is_not_taken_for_one_iteration() -> None:
    array = np.zeros((4, 64), np.float32)
    text = rows_kernel(4, 1, 1 << 20, 4, 0, 0, 0)
    assert declared(lowered(text, "k", {"x_ptr": array, "y_ptr": array})) == []


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_outputs_of_the_cases_are_declared_and_a_store_to_anothers_place_is_caught(path: Path) -> None:
    case = parse_case(path.read_text(), str(path))
    program = lowered(path.read_text(), case.function, case.inputs)
    assert declared(program) == OUTPUTS[path.stem]
    assert verify(program.module, program.machine) == []
    assert stores(program, path)
    faults = (one_further, all_at_the_start) if path.stem != "column_sums_inter_tile" else (one_further,)  # it has one
    for number in range(len(stores(program, path))):
        for fault in faults:
            broken = replace(program, module=program.module.clone())
            fault(stores(broken, path)[number])
            found = verify(broken.module, broken.machine)
            assert {each.code for each in found} & {"OutputWrites", "DescriptorOutOfBounds"}
            assert all(each.location is not None for each in found)


def test_two_stores_to_one_place_are_caught_as_such() -> None:
    """Without other faults: the second of two rows goes to where the first one went."""
    array = np.zeros((2, 64), np.float32)
    program = lowered(rows_kernel(2, 1, 2, 1, 0, 1, 0), "k", {"x_ptr": array, "y_ptr": array})
    (store,) = stores(program, Path("y_ptr"))
    all_at_the_start(store)
    (fault,) = verify(program.module, program.machine)
    assert fault.code == "OutputWrites" and "more than once" in fault.message
    assert fault.location is not None and fault.location.file == "kernel.mlir"


def test_a_store_to_padding_is_caught() -> None:
    """Every second row is stored; a store to the row behind it is not what the KTIR says."""
    array = np.zeros((8, 64), np.float32)
    program = lowered(rows_kernel(8, 1, 4, 1, 0, 2, 0), "k", {"x_ptr": array, "y_ptr": array})
    assert stored_rows(program, "y_ptr", 256, 8) == [0, 2, 4, 6] and verify(program.module, program.machine) == []
    (store,) = stores(program, Path("y_ptr"))
    one_further(store)
    (fault,) = verify(program.module, program.machine)
    assert fault.code == "OutputWrites" and "is not among those that the buffer declares to be stored" in fault.message
    assert fault.location is not None and fault.location.file == "kernel.mlir"


def stores(program: LoweredProgram, path: Path) -> list[dfp.CopyOp]:
    """The copies to the outputs of a case."""
    names = OUTPUTS.get(path.stem, [path.stem])
    copies = [op for op in program.module.walk() if isinstance(op, dfp.CopyOp)]
    return [op for op in copies if isinstance(op.target.owner, dfp.BufferOp) and op.target.owner.sym_name.data in names]


def all_at_the_start(op: dfp.CopyOp) -> None:
    """All executions store to the first place."""
    zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
    block = op.parent_block()
    assert block is not None
    block.insert_op_before(zero, op)
    op.operands[-1] = zero.result


def one_further(op: dfp.CopyOp) -> None:
    """All executions store a word behind their place."""
    word = arith.ConstantOp(IntegerAttr(128, IndexType()))
    moved = arith.AddiOp(op.operands[-1], word.result)
    block = op.parent_block()
    assert block is not None
    block.insert_ops_before([word, moved], op)
    op.operands[-1] = moved.result
