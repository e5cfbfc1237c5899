"""Repairs of ``linalg``.

* ``generic`` reads several results back, ``-> (T, U)``, and refuses malformed dictionaries with a location.
* ``reduce`` has the short form ``{ arith.addf }``, read and printed as MLIR does.
* ``matmul`` multiplies narrow elements into wide ones, extends them in its body, adds to the accumulator on the left as
  MLIR does, and keeps ``indexing_maps`` other than the default.
* ``generic``, ``reduce`` and ``index`` are checked as MLIR checks them.
* ``batch_matmul`` and the element-wise operations of :data:`ELEMENTWISE` exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from xdsl.builder import Builder, ImplicitBuilder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    MemRefType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import ElementwiseOperation, NamedOperation
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Attribute, Block, BlockArgument, Dialect, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from ktir.dialect.overlay.arith import ARITH
from ktir.dialect.overlay.repair import extended, replace_text

# --------------------------------------------------------------------------------------------------- operands, results


def _tensors(values: Iterable[SSAValue]) -> list[Attribute]:
    """The types of those of ``values`` that are tensors."""
    return [value.type for value in values if isa(value.type, TensorType[Attribute])]


def _parse_operands(parser: Parser, keyword: str) -> Sequence[SSAValue]:
    """``ins(%a, %b : T, U)``, or nothing."""
    if parser.parse_optional_keyword(keyword) is None:
        return ()
    position = parser.pos
    parser.parse_punctuation("(")
    if parser.parse_optional_punctuation(")") is not None:
        return ()
    names = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return parser.resolve_operands(names, types, position)


def _print_operands(printer: Printer, keyword: str, operands: Sequence[SSAValue]) -> None:
    if operands:
        printer.print_string(f" {keyword}(")
        printer.print_list(operands, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_list((operand.type for operand in operands), printer.print_attribute)
        printer.print_string(")")


def _parse_optional_results(parser: Parser) -> Sequence[Attribute]:
    if parser.parse_optional_punctuation("->") is None:
        return ()
    types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return types if types is not None else (parser.parse_type(),)


def _print_optional_results(printer: Printer, types: Sequence[Attribute]) -> None:
    if types:
        printer.print_string(" -> ")
    if len(types) > 1:
        with printer.in_parens():
            printer.print_list(types, printer.print_attribute)
    elif types:
        printer.print_attribute(types[0])


# ------------------------------------------------------------------------------------------------------------- generic


def _parse_generic(cls: type[linalg.GenericOp], parser: Parser) -> linalg.GenericOp:
    position = parser.pos
    entries = parser.parse_optional_attr_dict()
    maps, kinds = entries.pop("indexing_maps", None), entries.pop("iterator_types", None)
    if not isa(maps, ArrayAttr[AffineMapAttr]):
        parser.raise_error("expected indexing_maps of affine maps for linalg.generic", position)
    if not isa(kinds, ArrayAttr[Attribute]):
        parser.raise_error("expected iterator_types for linalg.generic", position)
    iterators: list[Attribute] = [_iterator(parser, kind, position) for kind in kinds]
    texts = {name: value for name in ("doc", "library_call") if (value := entries.pop(name, None)) is not None}
    inputs, outputs = _parse_operands(parser, "ins"), _parse_operands(parser, "outs")
    if parser.parse_optional_keyword("attrs") is not None:
        parser.parse_punctuation("=")
        entries |= parser.parse_optional_attr_dict()
    body = parser.parse_region()
    results = _parse_optional_results(parser)
    return cls.build(
        operands=[inputs, outputs],
        result_types=[results],
        properties={"indexing_maps": maps, "iterator_types": ArrayAttr(iterators), **texts},
        attributes=entries,
        regions=[body],
    )


def _iterator(parser: Parser, kind: Attribute, position: int) -> Attribute:
    if isinstance(kind, IteratorTypeAttr):
        return kind
    names = [str(iterator) for iterator in IteratorType]
    if not isinstance(kind, StringAttr) or kind.data not in names:
        parser.raise_error(f"expected iterator type of {', '.join(names)}, but got: {kind}", position)
    return IteratorTypeAttr(IteratorType(kind.data))


# -------------------------------------------------------------------------------------------------------------- reduce


def _parse_reduce(cls: type[linalg.ReduceOp], parser: Parser) -> linalg.ReduceOp:
    """The long form with its body after the dimensions, or ``{ arith.addf }`` before the operands."""
    payload: type[Operation] | None = None
    fastmath: dict[str, Attribute] = {}
    if parser.parse_optional_punctuation("{") is not None:
        payload, fastmath = _parse_payload(parser)
    position = parser.pos
    inputs, inits = _parse_operands(parser, "ins"), _parse_operands(parser, "outs")
    parser.parse_keyword("dimensions")
    parser.parse_punctuation("=")
    dimensions = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    attributes = parser.parse_optional_attr_dict()
    if len(inputs) != 1 or len(inits) != 1:
        parser.raise_error("linalg.reduce of more than one input is not supported", position)
    if payload is None:
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        body = parser.parse_region(arguments)
    else:
        body = _payload_body(payload, fastmath, _element(inputs[0].type), _element(inits[0].type))
    reduction = cls(inputs[0], inits[0], DenseArrayBase.from_list(i64, dimensions), body)
    reduction.attributes |= attributes
    return reduction


def _element(type: Attribute) -> Attribute:
    return type.get_element_type() if isa(type, TensorType[Attribute] | MemRefType[Attribute]) else type


def _parse_payload(parser: Parser) -> tuple[type[Operation], dict[str, Attribute]]:
    position = parser.pos
    name = parser.parse_identifier()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation("}")
    kind = parser.ctx.get_optional_op(name)
    if kind is None:
        parser.raise_error(f"Operation {name} is not registered", position)
    return kind, attributes


def _payload_body(
    kind: type[Operation], attributes: dict[str, Attribute], input_element: Attribute, init_element: Attribute
) -> Region:
    """``(%in, %init) { yield op(%init, %in) }``"""
    block = Block(arg_types=[input_element, init_element])
    block.args[0].name_hint, block.args[1].name_hint = "in", "init"
    combined = kind.create(
        operands=[block.args[1], block.args[0]], result_types=[init_element], properties=_defaults(kind) | attributes
    )
    block.add_ops([combined, linalg.YieldOp(combined.results[0])])
    return Region(block)


def _defaults(kind: Any) -> dict[str, Attribute]:
    """The properties that an operation has when nobody names them."""
    properties = kind.get_irdl_definition().properties
    return {name: each.default_value for name, each in properties.items() if each.default_value is not None}


def _short_form(op: linalg.ReduceOp) -> Operation | None:
    """The one operation of a body that the short form says completely."""
    block = op.region.block
    operations = list(block.ops)
    if len(operations) != 2 or len(block.args) != 2:
        return None
    payload, last = operations
    plain = not payload.regions and not payload.attributes and payload.properties == _defaults(type(payload))
    combines = list(payload.operands) == [block.args[1], block.args[0]]
    yields = isinstance(last, linalg.YieldOp) and list(last.operands) == list(payload.results)
    return payload if plain and combines and yields else None


def _print_reduce(op: linalg.ReduceOp, printer: Printer) -> None:
    payload = _short_form(op)
    if payload is not None:
        printer.print_string(f" {{ {payload.name} }}")
    _print_operands(printer, "ins", [op.input])
    _print_operands(printer, "outs", [op.init])
    dimensions = ", ".join(map(str, op.dimensions.get_values()))
    printer.print_string(f" dimensions = [{dimensions}] ")
    printer.print_op_attributes(op.attributes)
    if payload is None:
        with printer.indented():
            printer.print_string("\n(")
            printer.print_list(op.region.block.args, printer.print_block_argument)
            printer.print_string(") ")
            printer.print_region(op.region, print_entry_block_args=False)


# ------------------------------------------------------------------------------------------------ broadcast, transpose


def _print_broadcast(op: linalg.BroadcastOp, printer: Printer) -> None:
    _print_operands(printer, "ins", [op.input])
    _print_operands(printer, "outs", [op.init])
    printer.print_string(f" dimensions = [{', '.join(map(str, op.dimensions.get_values()))}] ")
    printer.print_op_attributes(op.attributes)


def _print_transpose(op: linalg.TransposeOp, printer: Printer) -> None:
    _print_operands(printer, "ins", op.inputs)
    _print_operands(printer, "outs", op.outputs)
    printer.print_string(f" permutation = [{', '.join(map(str, op.permutation.get_values()))}] ")
    printer.print_op_attributes(op.attributes)


# -------------------------------------------------------------------------------------------------------------- matmul


def _contraction_body(cls: type[NamedOperation], inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
    """``acc + extend(a) * extend(b)``"""
    types = cls.body_arg_types((*inputs, *outputs))
    wide = types[-1]
    is_float = isinstance(wide, AnyFloat)
    multiply, accumulate = (arith.MulfOp, arith.AddfOp) if is_float else (arith.MuliOp, arith.AddiOp)

    def extend(value: SSAValue) -> SSAValue:
        if value.type == wide:
            return value
        return SSAValue.get(arith.ExtFOp(value, wide) if is_float else arith.ExtSIOp(value, wide))  # pyright: ignore[reportArgumentType]

    @Builder.implicit_region(types)
    def body(args: tuple[BlockArgument, ...]) -> None:
        product = multiply(extend(args[0]), extend(args[1]))
        linalg.YieldOp(accumulate(args[2], product))

    return body


def _parse_contraction(cls: type[Any], parser: Parser) -> Any:
    """``indexing_maps = [..] {attributes} ins(..) outs(..) -> T``"""
    position = parser.pos
    maps: Attribute | None = None
    if parser.parse_optional_keyword("indexing_maps") is not None:
        parser.parse_punctuation("=")
        maps = parser.parse_attribute()
    entries = parser.parse_optional_attr_dict()
    maps = entries.pop("indexing_maps", maps)
    inputs, outputs = _parse_operands(parser, "ins"), _parse_operands(parser, "outs")
    entries |= parser.parse_optional_attr_dict()
    results = _parse_optional_results(parser)
    if len(inputs) != 2 or len(outputs) != 1:
        parser.raise_error(f"{cls.name} takes two inputs and one output", position)
    return cls.build(
        operands=[inputs, outputs],
        result_types=[results],
        properties={} if maps is None else {"indexing_maps": maps},
        attributes=entries,
        regions=[cls.get_hidden_region(inputs, outputs)],
    )


def _print_contraction(op: Any, printer: Printer) -> None:
    if op.indexing_maps != _defaults(op.__class__)["indexing_maps"]:
        printer.print_string(" indexing_maps = ")
        printer.print_attribute(op.indexing_maps)
    _print_operands(printer, "ins", op.inputs)
    _print_operands(printer, "outs", op.outputs)
    printer.print_op_attributes(op.attributes)
    _print_optional_results(printer, list(op.res.types))


@irdl_op_definition
class BatchMatmulOp(NamedOperation):
    """``outs[b, m, n] += ins0[b, m, k] * ins1[b, k, n]``"""

    name = "linalg.batch_matmul"

    PRINT_ATTRS_IN_FRONT: ClassVar[bool] = True

    indexing_maps = prop_def(
        ArrayAttr[AffineMapAttr],
        default_value=ArrayAttr(
            [
                AffineMapAttr(AffineMap.from_callable(lambda b, m, _, k: (b, m, k))),
                AffineMapAttr(AffineMap.from_callable(lambda b, _, n, k: (b, k, n))),
                AffineMapAttr(AffineMap.from_callable(lambda b, m, n, _: (b, m, n))),
            ]
        ),
    )

    def __init__(self, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> None:
        super().__init__(
            ins=inputs,
            outs=outputs,
            result_types=[_tensors(outputs)],
            hidden_region=self.get_hidden_region(inputs, outputs),
        )

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return _contraction_body(cls, inputs, outputs)

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        return tuple(map.data for map in self.indexing_maps)

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        return self.indexing_maps

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:  # pyright: ignore[reportUnknownParameterType]
        parallel, reduction = IteratorTypeAttr.parallel(), IteratorTypeAttr.reduction()
        return ArrayAttr([parallel, parallel, parallel, reduction])


# ------------------------------------------------------------------------------------------------ more named operations

Body = Callable[..., Operation]
"""Makes the operation that a named one applies to each element."""


def _by_kind(float_kind: type[Operation], integer_kind: type[Operation]) -> Body:
    def body(*arguments: Any) -> Operation:
        kind: Any = float_kind if isinstance(arguments[0].type, AnyFloat) else integer_kind
        return kind(*arguments)

    return body


def _reciprocal(argument: Any) -> Operation:
    return arith.DivfOp(arith.ConstantOp(FloatAttr(1.0, argument.type)), argument)


def _square(argument: Any) -> Operation:
    return (arith.MulfOp if isinstance(argument.type, AnyFloat) else arith.MuliOp)(argument, argument)


ELEMENTWISE: Mapping[str, tuple[int, Body]] = {
    "abs": (1, _by_kind(math.AbsFOp, math.AbsIOp)),
    "ceil": (1, math.CeilOp),
    "floor": (1, math.FloorOp),
    "negf": (1, arith.NegfOp),
    "reciprocal": (1, _reciprocal),
    "round": (1, math.RoundOp),
    "rsqrt": (1, math.RsqrtOp),
    "square": (1, _square),
    "tanh": (1, math.TanhOp),
    "erf": (1, math.ErfOp),
    "div": (2, _by_kind(arith.DivfOp, arith.DivSIOp)),
    "div_unsigned": (2, arith.DivUIOp),
    "powf": (2, math.PowFOp),
}
"""Named operations that the stock dialect lacks: inputs, and what is done to each element."""


def _elementwise(mnemonic: str, inputs: int, body: Body) -> type[NamedOperation]:
    """The class of a named operation that works on each element."""

    def get_hidden_region(cls: type[NamedOperation], ins: Sequence[SSAValue], outs: Sequence[SSAValue]) -> Region:
        block = Block(arg_types=cls.body_arg_types((*ins, *outs)))
        with ImplicitBuilder(block):
            linalg.YieldOp(body(*block.args[:inputs]))
        return Region(block)

    def __init__(self: Any, ins: Sequence[SSAValue], outs: Sequence[SSAValue]) -> None:
        NamedOperation.__init__(
            self,
            ins,
            outs,
            result_types=[_tensors(outs)],
            hidden_region=self.get_hidden_region(ins, outs),
        )

    def verify_(self: Any) -> None:
        if len(self.inputs) != inputs or len(self.outputs) != 1:
            raise VerifyException(f"expected {inputs} input(s) and one output")
        ElementwiseOperation.verify_(self)

    members = {
        "name": f"linalg.{mnemonic}",
        "__doc__": f"``linalg.{mnemonic}`` of each element.",
        "__init__": __init__,
        "verify_": verify_,
        "get_hidden_region": classmethod(get_hidden_region),
    }
    name = "".join(part.capitalize() for part in mnemonic.split("_")) + "Op"
    return irdl_op_definition(type(name, (ElementwiseOperation,), members))


# ---------------------------------------------------------------------------------------------------------------- rules


def _stock_verifier(kind: Any) -> Callable[[Any], None]:
    return kind.verify_


def _verify_generic(stock: Callable[[Any], None]) -> Callable[[Any], None]:
    """The stock rules, and that the body yields one element of each output."""

    def verify_(op: linalg.GenericOp) -> None:
        stock(op)
        last = op.body.block.last_op
        if not isinstance(last, linalg.YieldOp):
            raise VerifyException("expected the body to end with linalg.yield")
        yielded, expected = list(last.operands), [_element(output.type) for output in op.outputs]
        if len(yielded) != len(expected):
            raise VerifyException(
                f"expected number of yield values ({len(yielded)}) to match the number of inits / outs operands of the "
                f"enclosing LinalgOp ({len(expected)})"
            )
        for number, (value, element) in enumerate(zip(yielded, expected, strict=True)):
            if value.type != element:
                raise VerifyException(
                    f"type of yield operand {number + 1} ('{value.type}') doesn't match the element type of the "
                    f"enclosing linalg.generic op ('{element}')"
                )
        if [result.type for result in op.res] != _tensors(op.outputs):
            raise VerifyException("expected the results to have the types of the output tensors")

    return verify_


def _verify_index(stock: Callable[[Any], None]) -> Callable[[Any], None]:
    """The stock rules, and that the enclosing operation has that many loops."""

    def verify_(op: linalg.IndexOp) -> None:
        stock(op)
        around = op.parent_op()
        if isinstance(around, linalg.GenericOp) and not 0 <= op.dim.value.data < len(around.iterator_types):
            raise VerifyException(
                f"expected dim ({op.dim.value.data}) to be lower than the number of loops "
                f"({len(around.iterator_types)}) of the enclosing LinalgOp"
            )

    return verify_


def _verify_reduce(stock: Callable[[Any], None]) -> Callable[[Any], None]:
    """The stock rules, and that dimensions are distinct and in range and the body combines two elements."""

    def verify_(op: linalg.ReduceOp) -> None:
        dimensions = list(op.dimensions.get_values())
        rank = len(_shape(op.input.type))
        if any(not 0 <= dimension < rank for dimension in dimensions):
            raise VerifyException(f"dimensions for reduction should be in the range [0, {rank - 1}].")
        if sorted(set(dimensions)) != dimensions:
            raise VerifyException("reduction dimensions are not in increasing order")
        stock(op)
        elements = [_element(op.input.type), _element(op.init.type)]
        if [argument.type for argument in op.region.block.args] != elements:
            raise VerifyException("expected the body to take one element of the input and one of the init")
        last = op.region.block.last_op
        if not isinstance(last, linalg.YieldOp) or [value.type for value in last.operands] != elements[1:]:
            raise VerifyException("expected the body to yield one element of the init")
        if [result.type for result in op.result] != [op.init.type] * isinstance(op.init.type, TensorType):
            raise VerifyException("expected the result to have the type of the init")

    return verify_


def _shape(type: Attribute) -> Sequence[int]:
    return type.get_shape() if isinstance(type, TensorType | MemRefType) else ()


def _repaired() -> Dialect:
    for kind, rule in (
        (linalg.GenericOp, _verify_generic),
        (linalg.IndexOp, _verify_index),
        (linalg.ReduceOp, _verify_reduce),
    ):
        setattr(kind, "verify_", rule(_stock_verifier(kind)))  # noqa: B010  the stock methods name their parameters
    replace_text(linalg.GenericOp, _parse_generic)
    replace_text(linalg.ReduceOp, _parse_reduce, _print_reduce)
    replace_text(linalg.BroadcastOp, print=_print_broadcast)
    replace_text(linalg.TransposeOp, print=_print_transpose)
    replace_text(linalg.MatmulOp, _parse_contraction, _print_contraction)
    replace_text(BatchMatmulOp, _parse_contraction, _print_contraction)
    linalg.MatmulOp.get_hidden_region = classmethod(_contraction_body)  # pyright: ignore[reportAttributeAccessIssue]
    named = [_elementwise(mnemonic, *definition) for mnemonic, definition in ELEMENTWISE.items()]
    return extended(Linalg, [BatchMatmulOp, *named])


REQUIRED = (ARITH,)
"""Dialects whose repaired operations the bodies of named operations hold."""

LINALG = _repaired()
