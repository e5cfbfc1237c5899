"""The dialect's text comes back as it was, and its verifiers refuse what has no meaning."""

from io import StringIO

import pytest
from xdsl.context import Context
from xdsl.dialects import affine, arith, builtin, math
from xdsl.dialects.builtin import IndexType, f16, f32
from xdsl.ir import Block, Operation, Region
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ktir.dialect import dfp
from tests.backends.dataflow.programs import Program, binary, matmul_program, pointwise_program, region
from tests.oracle.mlir import generic_text, mlir_reads


def context() -> Context:
    found = Context()
    for dialect in (builtin.Builtin, arith.Arith, affine.Affine, math.Math, dfp.DFP):
        found.load_dialect(dialect)
    return found


def everything() -> Program:
    """One operation of each kind the other programs lack."""
    p = Program(2)
    table = p.ddr(0, 4096, "table")
    local = p.lx(0, 1024, "local", launches=(0, 2))
    q, out = p.queue("lx_ld", "sfu"), p.queue("sfu", "lx_st")
    with p.unit("hbm_ld") as u:
        zero, own = u.index(0), u.table(3, -4)
        row = {"row_counts": [4], "row_src_strides": [2], "row_dst_strides": [2], "element": f16}
        keys = {"count": 2, "index_element": builtin.i64, "row_stride": 8, "line_stride": 8, **row}
        u.add(dfp.GatherOp(table, zero, local, own, local, zero, **keys))
        p.barrier(u, 1)
    with p.unit("hbm_st") as u:
        zero = u.index(0)
        u.add(dfp.ScatterOp(local, zero, local, zero, table, zero, **keys))
    with p.unit("ring_tx") as u:
        u.send(local, 0, 1, [4], [2])
    with p.unit("ring_rx") as u:
        u.receive(local, 0, 1, [4], [2])
    with p.unit("sfu") as u:
        u.reduce(q, out, (2, 4, 1), [f16, f16], binary(arith.AddfOp))
        u.reduce(q, out, (2, 4, 1), [f32, f16], lambda b, x, y: x, initial=q)
        u.map([], out, [4], [], lambda b: b.insert(arith.ConstantOp(builtin.FloatAttr(1.0, f16))).result)
        u.scan(q, out, (2, 4, 1), [f16, f16], binary(arith.AddfOp))
    with p.unit("pe") as u:
        u.add(dfp.PePreloadOp(q, rows=4, n=4, element=f32))
    address = p.symbol("address", alignment=128, bound=1 << 20)
    p.ddr(0, 4096, "moved", base=address, writes="once")
    with p.unit("ring_sum") as u:
        u.chain(local, 0, local, 128, u.table(-1, 0), u.table(1, -1), [4], [2], [2])
    with p.unit("lx_ld") as u, u.loop(4) as i:
        with u.when(lambda i: (i % 2).eq(0) & i.ge(1) & i.le(3), i):
            u.stream(local, 0, q, [4], [2])
        u.multicast(local, 0, [1, u.table(1, 0)], [4], [2])
    return p


@pytest.mark.parametrize(
    "build", [everything, lambda: matmul_program(32, 64, 64, cores=2), lambda: pointwise_program(2)]
)
@pytest.mark.parametrize("generic", [False, True])
def test_text_comes_back(build, generic: bool) -> None:
    module = build().module
    module.verify()
    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    again = Parser(context(), stream.getvalue()).parse_module()
    again.verify()
    assert module.is_structurally_equivalent(again)
    assert str(again) == str(module)


@pytest.mark.parametrize("build", [everything, lambda: matmul_program(32, 64, 64, cores=2)])
def test_real_mlir_reads_the_generic_form(build) -> None:
    assert mlir_reads(generic_text(build().module)).operation.verify()


def index() -> arith.ConstantOp:
    return arith.ConstantOp(builtin.IntegerAttr(0, IndexType()))


def queue() -> dfp.QueueOp:
    return dfp.QueueOp("q", "lx_ld", "sfu", 16)


def buffer(**keys) -> dfp.BufferOp:
    return dfp.BufferOp("b", "lx", 0, 128, **keys)


def identity(*types) -> Region:
    return region(types, lambda b, *arguments: arguments[0])


def placed(op: Operation) -> Operation:
    """``op``, inside a unit if it belongs into one."""
    if isinstance(op, dfp.UnitOperation):
        dfp.UnitOp("sfu", [0]).body.block.add_op(op)
    return op


REFUSED = [
    (lambda: dfp.ProgramOp("p", "spyre", 0), "cores to be positive"),
    (lambda: dfp.BufferOp("b", "lx", 0, 0), "bytes to be positive"),
    (lambda: dfp.BufferOp("b", "lx", -8, 8), "not to be negative"),
    (lambda: buffer(slots=2), "needs a producer and consumers"),
    (lambda: buffer(launches=(3, 1)), "in order"),
    (lambda: dfp.QueueOp("q", "a", "b", 0), "depth to be positive"),
    (lambda: dfp.UnitOp("pe", [1, 1]), "distinct core numbers"),
    (lambda: dfp.UnitOp("pe", [0], 0, Region(Block())), "one block argument"),
    (lambda: dfp.ForOp(index(), Region(Block())), "one block argument"),
    (
        lambda: dfp.StreamOp(buffer(), index(), queue(), counts=[4, 4], strides=[2], element=f16),
        "expected 2 strides",
    ),
    (lambda: dfp.StreamOp(buffer(), index(), queue(), counts=[0], strides=[2], element=f16), "positive counts"),
    (
        lambda: dfp.CopyOp(
            buffer(), index(), buffer(), index(), counts=[1], src_strides=[1, 2], dst_strides=[1], element=f16
        ),
        "expected 1 src_strides",
    ),
    (lambda: dfp.SfuMapOp([queue()], queue(), [4], identity(f16, f16)), "expected 1 block arguments"),
    (lambda: dfp.SfuMapOp([queue()], queue(), [4], Region(Block(arg_types=[f16]))), "dfp.yield at the end"),
    (
        lambda: dfp.SfuReduceOp(queue(), queue(), outer=1, length=0, inner=1, body=identity(f16, f16)),
        "length to be positive",
    ),
    (lambda: dfp.SfuReduceOp(queue(), queue(), outer=1, length=1, inner=1, body=identity(f16)), "two block arguments"),
    (
        lambda: dfp.SfuReduceOp(queue(), queue(), outer=1, length=1, inner=1, body=identity(f32, f16)),
        "without init",
    ),
    (lambda: dfp.PeMacOp(queue(), rows=0, k=1, n=1, element=f16), "rows to be positive"),
    (lambda: dfp.PeLoadOp(queue(), k=1, n=-1, element=f16), "n to be positive"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=[case[1].replace(" ", "_") for case in REFUSED])
def test_operations_without_meaning_are_refused(build, message: str) -> None:
    with pytest.raises(VerifyException, match=message):
        placed(build()).verify_()


def test_one_queue_is_not_two_inputs() -> None:
    source = queue()
    with pytest.raises(VerifyException, match="queue of its own"):
        placed(dfp.SfuMapOp([source, source], queue(), [4], identity(f16, f16))).verify_()


def test_a_position_needs_a_dimension() -> None:
    p = Program()
    out = p.queue("sfu", "lx_st")
    with p.unit("sfu") as u:
        u.map(
            [], out, [4], [], lambda b: b.insert(arith.IndexCastOp(b.insert(dfp.IndexOp(1)).result, builtin.i32)).result
        )
    with pytest.raises(VerifyException, match="no dimension 1"):
        p.module.verify()


def test_a_program_holds_declarations_and_units_alone() -> None:
    p = Program()
    p.op.body.block.add_op(arith.ConstantOp(builtin.IntegerAttr(1, IndexType())))
    with pytest.raises(VerifyException, match=r"arith\.constant"):
        p.module.verify()
