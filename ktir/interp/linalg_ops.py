"""The ``linalg`` operations: each named one is a structure, an element-wise function or a copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DenseArrayBase
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from ktir.errors import UnknownOperation
from ktir.interp.arith_ops import BINARY, choose, chosen_lanes, floating
from ktir.interp.casts import cast as converted
from ktir.interp.compile import CompileOperation, FunctionCompiler, Step, any_lane, element_of, moved, shape_of
from ktir.interp.integers import Build
from ktir.interp.math_ops import FUNCTIONS
from ktir.interp.numerics import BOOL, Array, ElementType, Function, as_array, narrow
from ktir.interp.structured import Structure, compile_structure, contraction_step, operand_of, shape_at
from ktir.interp.values import Frame, Tainted, Value


def inputs_of(op: Operation) -> list[SSAValue]:
    """The operands that are read; the rest, one per result, are ``outs``."""
    return list(op.operands)[: len(op.operands) - _outputs(op)]


def outputs_of(op: Operation) -> list[SSAValue]:
    return list(op.operands)[len(op.operands) - _outputs(op) :]


def _outputs(op: Operation) -> int:
    return max(1, len(op.results))


def require_result(compiler: FunctionCompiler, op: Operation) -> None:
    if not op.results:
        raise compiler.site(op).fail(UnknownOperation, "has no result", "use it on tensors, not on memrefs")


def generic(compiler: FunctionCompiler, op: Operation) -> Step:
    require_result(compiler, op)
    attribute = op.properties["indexing_maps"]
    iterators = op.properties["iterator_types"]
    assert isinstance(attribute, ArrayAttr) and isinstance(iterators, ArrayAttr)
    maps = _maps(cast(Attribute, attribute))
    kinds = cast("ArrayAttr[Attribute]", iterators)
    reduced = frozenset(number for number, each in enumerate(kinds) if "reduction" in str(each))
    return _structured(compiler, op, maps, reduced)


def _maps(attribute: Attribute) -> list[AffineMap]:
    """The maps of an ``indexing_maps`` property."""
    entries = cast("ArrayAttr[Attribute]", attribute)
    return [each.data for each in entries if isinstance(each, AffineMapAttr)]


def _structured(compiler: FunctionCompiler, op: Operation, maps: list[AffineMap], reduced: frozenset[int]) -> Step:
    operands = [operand_of(compiler, value, map) for value, map in zip(op.operands, maps, strict=True)]
    count = len(inputs_of(op))
    structure = Structure(
        tuple(operands[:count]),
        tuple(operands[count:]),
        tuple(compiler.slot(result) for result in op.results),
        maps[0].num_dims,
        reduced,
        compiler.site(op),
    )
    return compile_structure(compiler, op, op.regions[0].block, structure)


def reduce(compiler: FunctionCompiler, op: Operation) -> Step:
    require_result(compiler, op)
    rank = len(shape_of(op.operands[0].type))
    dims = frozenset(integers(op, "dimensions"))
    identity = AffineMap.identity(rank)
    kept = AffineMap(rank, 0, tuple(AffineDimExpr(d) for d in range(rank) if d not in dims))
    count = len(inputs_of(op))
    return _structured(compiler, op, [identity] * count + [kept] * (len(op.operands) - count), dims)


def map_elements(compiler: FunctionCompiler, op: Operation) -> Step:
    """``linalg.map``: the body of each element; its arguments are the inputs alone."""
    require_result(compiler, op)
    identity = AffineMap.identity(len(shape_of(op.results[0].type)))
    block = op.regions[0].block
    operands = [operand_of(compiler, value, identity) for value in op.operands]
    if len(block.args) != len(operands):
        return compiler.emit(op, _mapper(compiler, op), any_lane, inputs_of(op))
    return _structured(compiler, op, [identity] * len(operands), frozenset())


def _mapper(compiler: FunctionCompiler, op: Operation) -> Function:
    raise compiler.site(op).fail(UnknownOperation, "has a body without an argument for outs", "use linalg.generic")


def integers(op: Operation, name: str) -> tuple[int, ...]:
    """A property that is a list of numbers."""
    attribute = op.properties[name]
    assert isinstance(attribute, DenseArrayBase)
    return tuple(int(number) for number in attribute.get_values())


# --------------------------------------------------------------------------------------------------------- contractions

CONTRACTIONS: Mapping[str, str] = MappingProxyType(
    {
        "linalg.matmul": "mk,kn->mn",
        "linalg.matmul_transpose_a": "km,kn->mn",
        "linalg.matmul_transpose_b": "mk,nk->mn",
        "linalg.batch_matmul": "bmk,bkn->bmn",
        "linalg.batch_matmul_transpose_a": "bkm,bkn->bmn",
        "linalg.batch_matmul_transpose_b": "bmk,bnk->bmn",
        "linalg.batch_reduce_matmul": "bmk,bkn->mn",
        "linalg.matvec": "mk,k->m",
        "linalg.vecmat": "k,kn->n",
        "linalg.batch_matvec": "bmk,bk->bm",
        "linalg.batch_vecmat": "bk,bkn->bn",
        "linalg.dot": "k,k->",
    }
)
"""Named contractions as the letters of their dimensions."""


def maps_of(letters: str) -> tuple[list[AffineMap], frozenset[int]]:
    """Indexing maps and reduced dimensions of a contraction written as letters."""
    ins, out = letters.split("->")
    names = sorted(set(letters) - set(",->"), key=lambda name: (name not in out, letters.index(name)))
    maps = [
        AffineMap(len(names), 0, tuple(AffineDimExpr(names.index(name)) for name in group))
        for group in (*ins.split(","), out)
    ]
    return maps, frozenset(number for number, name in enumerate(names) if name not in out)


def contraction(compiler: FunctionCompiler, op: Operation) -> Step:
    require_result(compiler, op)
    stated = op.properties.get("indexing_maps")
    if isinstance(stated, ArrayAttr) and len(maps := _maps(cast(Attribute, stated))) == 3:
        kept = {each.position for each in maps[2].results if isinstance(each, AffineDimExpr)}
        reduced = frozenset(range(maps[0].num_dims)) - kept
    else:
        maps, reduced = maps_of(CONTRACTIONS[op.name])
    first, second, out = (operand_of(compiler, value, map) for value, map in zip(op.operands, maps, strict=True))
    structure = Structure(
        (first, second), (out,), (compiler.slot(op.results[0]),), maps[0].num_dims, reduced, compiler.site(op)
    )
    return contraction_step(structure, 0, 1, named=True)


# --------------------------------------------------------------------------------------------------------- element-wise

UNARY: Mapping[str, str] = MappingProxyType(
    {
        f"linalg.{name}": f"math.{target}"
        for name, target in {
            "exp": "exp", "log": "log", "abs": "absf", "ceil": "ceil", "floor": "floor", "round": "round",
            "rsqrt": "rsqrt",
            "sqrt": "sqrt", "tanh": "tanh", "erf": "erf",
        }.items()
    }
)  # fmt: skip
FLOAT_BINARY: Mapping[str, str] = MappingProxyType(
    {
        "linalg.add": "arith.addf", "linalg.sub": "arith.subf", "linalg.mul": "arith.mulf", "linalg.div": "arith.divf",
        "linalg.max": "arith.maximumf", "linalg.min": "arith.minimumf",
    }
)  # fmt: skip
INTEGER_BINARY: Mapping[str, str] = MappingProxyType(
    {
        "linalg.add": "arith.addi", "linalg.sub": "arith.subi", "linalg.mul": "arith.muli", "linalg.div": "arith.divsi",
        "linalg.div_unsigned": "arith.divui", "linalg.max": "arith.maxsi", "linalg.min": "arith.minsi",
    }
)  # fmt: skip


OTHER_UNARY: Mapping[str, Build] = MappingProxyType(
    {
        "linalg.negf": floating(np.negative),
        "linalg.reciprocal": floating(np.reciprocal),
        "linalg.square": floating(np.square),
    }
)


def unary(compiler: FunctionCompiler, op: Operation) -> Step:
    require_result(compiler, op)
    element, site = element_of(op.results[0].type), compiler.site(op)
    build = OTHER_UNARY.get(op.name) or FUNCTIONS[UNARY[op.name]]
    return compiler.emit(op, _converting(build(element, site), element), any_lane, inputs_of(op))


def binary(compiler: FunctionCompiler, op: Operation) -> Step:
    require_result(compiler, op)
    element, site = element_of(op.results[0].type), compiler.site(op)
    name = (FLOAT_BINARY if element.kind == "float" else INTEGER_BINARY).get(op.name)
    if name is None:
        raise site.fail(UnknownOperation, f"has no meaning on {element.name}", "use linalg.div for floats")
    return compiler.emit(op, _converting(BINARY[name](element, site), element), any_lane, inputs_of(op))


def power(compiler: FunctionCompiler, op: Operation) -> Step:
    require_result(compiler, op)
    element, site = element_of(op.results[0].type), compiler.site(op)
    return compiler.emit(op, _converting(FUNCTIONS["math.powf"](element, site), element), any_lane, inputs_of(op))


def _converting(function: Function, element: ElementType) -> Function:
    """``function`` of operands converted to the element type of the result, as the named operations say."""
    dtype = element.dtype

    def convert(*values: Array) -> Any:
        return function(*(value if value.dtype == dtype else converted(value, dtype) for value in values))

    return convert


def select(compiler: FunctionCompiler, op: Operation) -> Step:
    dtype = element_of(op.results[0].type).dtype
    return compiler.ternary(op, lambda condition, a, b: choose(condition, a, b, dtype), chosen_lanes, inputs_of(op))


def copy(compiler: FunctionCompiler, op: Operation) -> Step:
    require_result(compiler, op)
    dtype = element_of(op.results[0].type).dtype
    return compiler.unary(op, lambda value: narrow(value, dtype), any_lane, inputs_of(op))


def fill(compiler: FunctionCompiler, op: Operation) -> Step:
    """A tensor of one value, with the shape of ``outs``."""
    require_result(compiler, op)
    scalar, init, out = compiler.slot(op.operands[0]), compiler.slot(op.operands[1]), compiler.slot(op.results[0])
    dtype = element_of(op.results[0].type).dtype

    def full(value: Any, shape: tuple[int, ...]) -> Array:
        values = narrow(as_array(value, dtype), dtype)
        return np.broadcast_to(values.reshape(-1, *(1,) * len(shape)), (len(values), *shape))

    def step(frame: Frame) -> None:
        regs = frame.regs
        shape, value = shape_at(regs[init]), regs[scalar]
        if isinstance(value, Tainted):
            mask = value.mask.reshape(-1, *(1,) * len(shape))
            values = full(value.values, shape)
            regs[out] = Tainted(values, np.broadcast_to(mask, (len(mask), *shape)), value.origin)
        else:
            regs[out] = full(value, shape)

    return step


def transpose(compiler: FunctionCompiler, op: Operation) -> Step:
    require_result(compiler, op)
    order = (0, *(axis + 1 for axis in integers(op, "permutation")))

    def move(value: Array) -> Array:
        return value.transpose(order)

    return compiler.emit(op, move, moved(move), inputs_of(op))


def broadcast(compiler: FunctionCompiler, op: Operation) -> Step:
    """Repeats the input along added dimensions."""
    require_result(compiler, op)
    added, shape = set(integers(op, "dimensions")), shape_of(op.results[0].type)
    index = (slice(None), *(None if axis in added else slice(None) for axis in range(len(shape))))

    if all(size >= 0 for size in shape):

        def spread_out(value: Array) -> Array:
            return np.broadcast_to(value[index], (len(value), *shape))

        return compiler.emit(op, spread_out, moved(spread_out), inputs_of(op))

    def spread_like(value: Array, like: Array) -> Array:
        return np.broadcast_to(value[index], (len(value), *like.shape[1:]))

    def lanes(result: Array, values: Sequence[Value], masks: Sequence[Array | None]) -> Array:
        mask = masks[0]
        return spread_like(np.zeros(np.shape(values[0]), BOOL) if mask is None else mask, values[1])

    return compiler.binary(op, spread_like, lanes, list(op.operands))


def position(compiler: FunctionCompiler, op: Operation) -> None:
    """``linalg.index``: its slot is filled when the body is entered."""
    compiler.slot(op.results[0])


OPERATIONS: Mapping[str, CompileOperation] = MappingProxyType(
    {
        **dict.fromkeys(CONTRACTIONS, contraction),
        "linalg.contract": contraction,
        **dict.fromkeys((*UNARY, *OTHER_UNARY), unary),
        **dict.fromkeys((*FLOAT_BINARY, "linalg.div_unsigned"), binary),
        "linalg.powf": power,
        "linalg.generic": generic,
        "linalg.reduce": reduce,
        "linalg.map": map_elements,
        "linalg.select": select,
        "linalg.copy": copy,
        "linalg.fill": fill,
        "linalg.transpose": transpose,
        "linalg.broadcast": broadcast,
        "linalg.index": position,
    }
)
