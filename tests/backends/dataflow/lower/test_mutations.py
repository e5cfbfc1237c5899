"""Single faults put into lowered programs: the verifier or the simulator names each, with the place in the kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation

from ktir.backends.dataflow import functional, verify
from ktir.backends.dataflow.lower import LoweredProgram
from ktir.backends.dataflow.run import place_arguments
from ktir.dialect import dfp
from ktir.errors import KtirError
from ktir.machine.memory_arena import Arena
from tests.backends.dataflow.lower.kernels import Array, fetch, kernel, lowered, normal, put, view

ROWS, WIDTH = [32, 1024], [8, 1024]
"""A corelet's half of a tile is twice what a queue and its output hold, so that a carried value needs both slots."""

SOFTMAX = kernel(
    "%x_ptr: index, %y_ptr: index, %z_ptr: index",
    [2],
    "%core = ktdp.get_compute_tile_id : index",
    "%first = arith.muli %core, %c16 : index",
    "%own = arith.muli %core, %c8 : index",
    view("z", "%z_ptr", [16, 1024], "f16"),
    view("x", "%x_ptr", ROWS, "f16"),
    view("y", "%y_ptr", ROWS, "f16"),
    "%low = arith.constant dense<0xFC00> : tensor<8xf16>",
    "%none = arith.constant dense<0.0> : tensor<8x1024xf16>",
    "%zero = arith.constant dense<0.0> : tensor<8xf16>",
    "%e = tensor.empty() : tensor<8x1024xf16>",
    "%seen = scf.for %i = %c0 to %c16 step %c8 iter_args(%most = %none) -> (tensor<8x1024xf16>) {",
    "%r = arith.addi %first, %i : index",
    fetch("v", "%x", ROWS, "%r, %c0", WIDTH, "f16"),
    "%m = linalg.reduce { arith.maximumf } ins(%v : tensor<8x1024xf16>) outs(%low : tensor<8xf16>) dimensions = [1]",
    "%mb = linalg.broadcast ins(%m : tensor<8xf16>) outs(%e : tensor<8x1024xf16>) dimensions = [1]",
    "%d = arith.subf %v, %mb : tensor<8x1024xf16>",
    "%p = math.exp %d : tensor<8x1024xf16>",
    "%s = linalg.reduce { arith.addf } ins(%p : tensor<8x1024xf16>) outs(%zero : tensor<8xf16>) dimensions = [1]",
    "%sb = linalg.broadcast ins(%s : tensor<8xf16>) outs(%e : tensor<8x1024xf16>) dimensions = [1]",
    "%q = arith.divf %p, %sb : tensor<8x1024xf16>",
    put("q", "%y", ROWS, "%r, %c0", WIDTH, "f16"),
    "%more = arith.maximumf %most, %q : tensor<8x1024xf16>",
    "scf.yield %more : tensor<8x1024xf16>",
    "}",
    put("seen", "%z", [16, 1024], "%own, %c0", WIDTH, "f16"),
)
ARGUMENTS: dict[str, Array] = {"x_ptr": normal(ROWS), "y_ptr": np.zeros(ROWS, np.float16)}
ARGUMENTS["z_ptr"] = np.zeros([16, 1024], np.float16)

REMOVABLE = (
    dfp.StreamOp,
    dfp.DrainOp,
    dfp.SfuMapOp,
    dfp.SfuReduceOp,
    dfp.ReserveOp,
    dfp.CommitOp,
    dfp.AcquireOp,
    dfp.ReleaseOp,
)

Mutation = Callable[[], None]


def removals(module: ModuleOp) -> Iterator[tuple[str, Mutation]]:
    """Each operation that moves data or tokens, left out."""
    for op in module.walk():
        if isinstance(op, REMOVABLE) or (isinstance(op, dfp.CopyOp) and "ddr" in memory_of(op.source)):
            yield f"without {op.name}", lambda op=op: (op.detach(), op.erase())  # type: ignore[func-returns-value]


def memory_of(buffer: object) -> str:
    owner = buffer.owner  # type: ignore[attr-defined]
    return owner.memory.data if isinstance(owner, dfp.BufferOp) else ""


def halvings(module: ModuleOp) -> Iterator[tuple[str, Mutation]]:
    """The capacities that the program needs in full: the first of two streams that take turns fills its queue, and a
    value that a loop carries has an old and a new slot."""
    for op in module.walk():
        if isinstance(op, dfp.QueueOp) and op.sym_name.data == "q_vector_0":
            yield f"half of {op.sym_name.data}", lambda op=op: set_number(op, "depth", op.depth.value.data // 2)
        if isinstance(op, dfp.BufferOp) and op.slot_count == 2 and "lx_ld" in op.consumer_units and made_here(op):
            yield f"half of {op.sym_name.data}", lambda op=op: set_number(op, "slots", 1)


def made_here(buffer: dfp.BufferOp) -> bool:
    """Whether the compute units fill it."""
    return buffer.producer is not None and buffer.producer.data == "lx_st"


def shifts(module: ModuleOp) -> Iterator[tuple[str, Mutation]]:
    """Each descriptor on a tile, moved by the size of the tile; each tile but the last, moved into the next."""
    tiles = [op for op in module.walk() if isinstance(op, dfp.BufferOp) and op.memory.data == "lx"]
    last = max(tiles, key=lambda tile: tile.offset.value.data)
    for tile in tiles:
        if tile is not last:
            yield f"{tile.sym_name.data} shifted", lambda t=tile: set_number(t, "offset", t.offset.value.data + 128)
    for op in module.walk():
        if isinstance(op, dfp.StreamOp | dfp.DrainOp):
            yield f"{op.name} shifted", lambda op=op: move(op)


def set_number(op: Operation, name: str, value: int) -> None:
    op.properties[name] = IntegerAttr(value, i64)


def move(op: Operation) -> None:
    """The descriptor's offset grows by the size of its buffer."""
    from xdsl.dialects import arith
    from xdsl.dialects.builtin import IndexType

    buffer = next(o.owner for o in op.operands if isinstance(o.owner, dfp.BufferOp))
    at = op.operands[1] if isinstance(op, dfp.StreamOp) else op.operands[2]
    size = arith.ConstantOp.from_int_and_width(buffer.bytes.value.data, IndexType())
    moved = arith.AddiOp(at, size.result)
    assert op.parent is not None
    op.parent.insert_ops_before([size, moved], op)
    op.operands[1 if isinstance(op, dfp.StreamOp) else 2] = moved.result


def fault_of(program: LoweredProgram, module: ModuleOp) -> KtirError | None:
    """What the verifier says, or else the simulator."""
    try:
        verify.check(module, program.machine)
        memory = Arena("device", program.ddr_bytes, limit=1 << 30)
        place_arguments(program, ARGUMENTS, memory)
        functional.execute(module, program.machine, memory)
    except KtirError as error:
        return error
    return None


@pytest.mark.parametrize("mutations", [removals, halvings, shifts])
def test_every_single_fault_is_found_where_it_is(
    mutations: Callable[[ModuleOp], Iterator[tuple[str, Mutation]]],
) -> None:
    program = lowered(SOFTMAX, None, ARGUMENTS)
    assert fault_of(program, program.module) is None
    names = [name for name, _ in mutations(program.module)]
    assert names
    for number, name in enumerate(names):
        module = program.module.clone()
        mutate = list(mutations(module))[number][1]
        mutate()
        fault = fault_of(program, module)
        assert fault is not None, f"nothing found {name}"
        assert fault.location is not None and fault.location.file == "kernel.mlir", f"{name}: {fault}"
