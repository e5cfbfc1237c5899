"""Named operations of ``linalg`` that work on each element.

* Those of :data:`ELEMENTWISE` exist, and ``elementwise``, which names what it does by an attribute.
* Attributes stand before the operands, as MLIR writes them.
* ``add`` and ``mul`` of i1 are ``or`` and ``and``; ``copy`` converts elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.builder import ImplicitBuilder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AffineMapAttr, AnyFloat, ArrayAttr, FloatAttr, i1
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import ElementwiseOperation, NamedOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import irdl_attr_definition, irdl_op_definition, prop_def
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from ktir.dialect.overlay.linalg_contractions import MEMOIZED
from ktir.dialect.overlay.linalg_maps import identities, repair_maps
from ktir.dialect.overlay.linalg_text import (
    cast,
    parse_operands,
    parse_optional_results,
    print_operands,
    print_optional_results,
    shape,
    tensors,
)
from ktir.dialect.overlay.repair import replace_text

Body = Callable[..., Operation]
"""Makes the operation that a named one applies to each element."""


def _by_kind(
    float_kind: type[Operation], integer_kind: type[Operation], boolean: type[Operation] | None = None
) -> Body:
    def body(*arguments: Any) -> Operation:
        element = arguments[0].type
        kind: Any = float_kind if isinstance(element, AnyFloat) else integer_kind
        if boolean is not None and element == i1:
            kind = boolean
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

KINDS: Mapping[str, tuple[int, Body]] = {
    **ELEMENTWISE,
    "exp": (1, math.ExpOp),
    "log": (1, math.LogOp),
    "sqrt": (1, math.SqrtOp),
    "add": (2, _by_kind(arith.AddfOp, arith.AddiOp, arith.OrIOp)),
    "sub": (2, _by_kind(arith.SubfOp, arith.SubiOp)),
    "mul": (2, _by_kind(arith.MulfOp, arith.MuliOp, arith.AndIOp)),
    "max_signed": (2, _by_kind(arith.MaximumfOp, arith.MaxSIOp)),
    "min_signed": (2, _by_kind(arith.MinimumfOp, arith.MinSIOp)),
    "max_unsigned": (2, _by_kind(arith.MaximumfOp, arith.MaxUIOp)),
    "min_unsigned": (2, _by_kind(arith.MinimumfOp, arith.MinUIOp)),
    "select": (3, arith.SelectOp),
}
"""What ``elementwise`` can do: inputs, and what is done to each element."""

# ---------------------------------------------------------------------------------------------------------------- text


def _parse_named(cls: type[Any], parser: Parser) -> Any:
    """``{attributes} ins(..) outs(..) -> T``"""
    position = parser.pos
    entries = parser.parse_optional_attr_dict()
    inputs, outputs = parse_operands(parser, "ins"), parse_operands(parser, "outs")
    entries |= parser.parse_optional_attr_dict()
    results = parse_optional_results(parser)
    known = cls.get_irdl_definition().properties
    properties = {name: entries.pop(name) for name in list(entries) if name in known}
    return cls.build(
        operands=[inputs, outputs],
        result_types=[results],
        properties=properties,
        attributes=entries,
        regions=[_hidden_region(cls, parser, inputs, outputs, position)],
    )


def _hidden_region(
    cls: type[Any], parser: Parser, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], position: int
) -> Region:
    try:
        return cls.get_hidden_region(inputs, outputs)
    except (AssertionError, IndexError, TypeError, ValueError, AttributeError):
        parser.raise_error(f"{cls.name} cannot work on these operands", position)


def _print_named(op: Any, printer: Printer) -> None:
    hidden = (MEMOIZED, "operandSegmentSizes")
    printer.print_op_attributes({**op.attributes, **op.properties}, reserved_attr_names=hidden)
    print_operands(printer, "ins", op.inputs)
    print_operands(printer, "outs", op.outputs)
    print_optional_results(printer, list(op.res.types))


# -------------------------------------------------------------------------------------------------- one class for each


def _body_of(cls: type[NamedOperation], ins: Sequence[SSAValue], outs: Sequence[SSAValue], body: Body) -> Region:
    block = Block(arg_types=cls.body_arg_types((*ins, *outs)))
    result = body(*block.args[: len(ins)])
    inputs = [operand.op for operand in result.operands if isinstance(operand, OpResult)]
    block.add_ops([*inputs, result, linalg.YieldOp(result)])
    return Region(block)


def _elementwise(mnemonic: str, inputs: int, body: Body) -> type[NamedOperation]:
    """The class of a named operation that works on each element."""

    def get_hidden_region(cls: type[NamedOperation], ins: Sequence[SSAValue], outs: Sequence[SSAValue]) -> Region:
        return _body_of(cls, ins, outs, body)

    def __init__(self: Any, ins: Sequence[SSAValue], outs: Sequence[SSAValue]) -> None:
        NamedOperation.__init__(
            self,
            ins,
            outs,
            result_types=[tensors(outs)],
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


# --------------------------------------------------------------------------------------------------------- elementwise


class ElementwiseKind(StrEnum):
    """What ``elementwise`` does to each element."""

    EXP = "exp"
    LOG = "log"
    ABS = "abs"
    CEIL = "ceil"
    FLOOR = "floor"
    NEGF = "negf"
    RECIPROCAL = "reciprocal"
    ROUND = "round"
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    SQUARE = "square"
    TANH = "tanh"
    ERF = "erf"
    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    DIV_UNSIGNED = "div_unsigned"
    MAX_SIGNED = "max_signed"
    MIN_SIGNED = "min_signed"
    MAX_UNSIGNED = "max_unsigned"
    MIN_UNSIGNED = "min_unsigned"
    POWF = "powf"
    SELECT = "select"


@irdl_attr_definition
class ElementwiseKindAttr(EnumAttribute[ElementwiseKind]):
    """``#linalg.elementwise_kind<exp>``"""

    name = "linalg.elementwise_kind"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ElementwiseKind:
        with parser.in_angle_brackets():
            return parser.parse_str_enum(ElementwiseKind)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.data.value)


@irdl_op_definition
class ElementwiseOp(NamedOperation):
    """Does what ``kind`` says to each element; the maps may broadcast and transpose the operands."""

    name = "linalg.elementwise"

    kind = prop_def(ElementwiseKindAttr)
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        raise VerifyException("what linalg.elementwise does is not known from its operands alone")

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        return tuple(map.data for map in self.indexing_maps)

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:  # pyright: ignore[reportUnknownParameterType]
        return ArrayAttr([IteratorTypeAttr.parallel()] * self.indexing_maps.data[0].data.num_dims)

    @classmethod
    def parse(cls, parser: Parser) -> ElementwiseOp:
        position = parser.pos
        parser.parse_keyword("kind")
        parser.parse_punctuation("=")
        kind = parser.parse_attribute()
        if not isinstance(kind, ElementwiseKindAttr):
            parser.raise_error("expected #linalg.elementwise_kind", position)
        maps: Attribute | None = None
        if parser.parse_optional_keyword("indexing_maps") is not None:
            parser.parse_punctuation("=")
            maps = parser.parse_attribute()
        attributes = parser.parse_optional_attr_dict()
        inputs, outputs = parse_operands(parser, "ins"), parse_operands(parser, "outs")
        results = parse_optional_results(parser)
        count, body = KINDS[kind.data.value]
        if len(inputs) != count or len(outputs) != 1:
            parser.raise_error(f"{kind.data.value} takes {count} input(s) and one output", position)
        return cls.build(
            operands=[inputs, outputs],
            properties={"kind": kind, "indexing_maps": maps or identities(count + 1, len(shape(outputs[0].type)))},
            attributes=attributes,
            result_types=[results],
            regions=[_body_of(cls, inputs, outputs, body)],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" kind=")
        printer.print_attribute(self.kind)
        if self.indexing_maps != identities(len(self.operands), len(shape(self.outputs[0].type))):
            printer.print_string(" indexing_maps = ")
            printer.print_attribute(self.indexing_maps)
        printer.print_op_attributes(self.attributes)
        print_operands(printer, "ins", self.inputs)
        print_operands(printer, "outs", self.outputs)
        print_optional_results(printer, list(self.res.types))


# ----------------------------------------------------------------------------------------------------- stock operations


def _copy_region(cls: type[NamedOperation], ins: Sequence[SSAValue], outs: Sequence[SSAValue]) -> Region:
    source, target = cls.body_arg_types((*ins, *outs))
    block = Block(arg_types=[source, target])
    with ImplicitBuilder(block):
        linalg.YieldOp(cast(block.args[0], target))
    return Region(block)


def _region_of(kind: str) -> Any:
    def get_hidden_region(cls: type[NamedOperation], ins: Sequence[SSAValue], outs: Sequence[SSAValue]) -> Region:
        return _body_of(cls, ins, outs, KINDS[kind][1])

    return classmethod(get_hidden_region)


STOCK: Sequence[Any] = (
    linalg.AddOp,
    linalg.ExpOp,
    linalg.LogOp,
    linalg.SubOp,
    linalg.SqrtOp,
    linalg.SelectOp,
    linalg.FillOp,
    linalg.CopyOp,
    linalg.MaxOp,
    linalg.MinOp,
    linalg.MulOp,
)
"""Stock operations whose attributes stand in the wrong place."""


def repaired() -> list[type[Operation]]:
    """Repairs the stock operations; returns those that it lacks."""
    repair_maps()
    named: list[Any] = [_elementwise(mnemonic, *definition) for mnemonic, definition in ELEMENTWISE.items()]
    for kind in (*STOCK, *named):
        replace_text(kind, _parse_named, _print_named)
    for kind, does in ((linalg.AddOp, "add"), (linalg.MulOp, "mul")):
        kind.get_hidden_region = _region_of(does)
    linalg.CopyOp.get_hidden_region = classmethod(_copy_region)  # pyright: ignore[reportAttributeAccessIssue]
    return [*named, ElementwiseOp]
