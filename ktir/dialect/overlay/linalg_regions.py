"""Operations of ``linalg`` with a body that combines elements, and those that only move them.

* ``reduce`` takes several inputs; it and ``map`` have the short form ``{ arith.addf }``, read and printed as MLIR does.
* ``map`` and ``softmax`` exist.
* ``broadcast`` and ``transpose`` keep attributes, and are the same operation whether read or built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, MemRefType, TensorType, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    SameVariadicOperandSize,
    VarOperandDef,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.overlay.linalg_text import (
    element,
    parse_numbers,
    parse_operands,
    parse_optional_payload,
    parse_optional_results,
    payload_body,
    print_long_body,
    print_operands,
    print_optional_results,
    print_payload,
    shape,
    short_form,
    tensors,
)
from ktir.dialect.overlay.repair import redefine, replace_text

ShapedConstraint = BaseAttr(TensorType) | BaseAttr(MemRefType)

# -------------------------------------------------------------------------------------------------------------- reduce


def _build_reduce(
    self: Any,
    input: SSAValue | Sequence[SSAValue],
    init: SSAValue | Sequence[SSAValue],
    dimensions: Attribute,
    region: Region,
) -> None:
    """As the stock constructor, with one input and init or several."""
    inputs = [input] if isinstance(input, SSAValue) else [*input]
    inits = [init] if isinstance(init, SSAValue) else [*init]
    IRDLOperation.__init__(
        self,
        operands=[inputs, inits],
        properties={"dimensions": dimensions},
        regions=[region],
        result_types=[tensors(inits)],
    )


def _widen_reduce() -> None:
    kind: Any = linalg.ReduceOp
    definition = kind.get_irdl_definition()
    definition.operands = [
        ("inputs", VarOperandDef(ShapedConstraint)),
        ("inits", VarOperandDef(ShapedConstraint)),
    ]
    definition.options = [*definition.options, SameVariadicOperandSize()]
    redefine(kind, verify=_verify_reduce)
    kind.__init__ = _build_reduce
    kind.input = property(lambda self: self.inputs[0])
    kind.init = property(lambda self: self.inits[0])


def _reduce_order(count: int) -> Sequence[int]:
    """The short form combines the init with the input, in that order, and there is one of each."""
    return (1, 0) if count == 2 else ()


def _parse_reduce(cls: type[linalg.ReduceOp], parser: Parser) -> linalg.ReduceOp:
    """The long form with its body after the dimensions, or ``{ arith.addf }`` before the operands."""
    payload = parse_optional_payload(parser)
    position = parser.pos
    inputs, inits = parse_operands(parser, "ins"), parse_operands(parser, "outs")
    dimensions = parse_numbers(parser, "dimensions")
    attributes = parser.parse_optional_attr_dict()
    if not inputs or len(inputs) != len(inits):
        parser.raise_error("linalg.reduce takes one init for each input", position)
    elements = [element(value.type) for value in (*inputs, *inits)]
    if payload is None:
        body = parser.parse_region(parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument))
    elif len(inputs) == 1:
        body = payload_body(payload, elements, ("in", "init"), (1, 0))
    else:
        parser.raise_error("the short form of linalg.reduce takes one input", position)
    make: Any = cls
    reduction = make(inputs, inits, DenseArrayBase.from_list(i64, dimensions), body)
    reduction.attributes |= attributes
    return reduction


def _print_reduce(op: Any, printer: Printer) -> None:
    payload = short_form(op.region, _reduce_order(len(op.operands)))
    if payload is not None:
        print_payload(printer, payload)
    print_operands(printer, "ins", op.inputs)
    print_operands(printer, "outs", op.inits)
    _print_numbers(printer, "dimensions", op.dimensions)
    printer.print_op_attributes(op.attributes)
    if payload is None:
        print_long_body(printer, op.region)


def _print_numbers(printer: Printer, keyword: str, numbers: DenseArrayBase[Any]) -> None:
    printer.print_string(f" {keyword} = [{', '.join(map(str, numbers.get_values()))}] ")


def _verify_reduce(op: Any) -> None:
    """Dimensions are distinct and in range, inits are inputs without them, the body combines an element of each."""
    dimensions = list(op.dimensions.get_values())
    rank = len(shape(op.inputs[0].type)) if op.inputs else 0
    if not op.inputs or len(op.inputs) != len(op.inits):
        raise VerifyException("expected one init for each input")
    if any(not 0 <= dimension < rank for dimension in dimensions):
        raise VerifyException(f"dimensions for reduction should be in the range [0, {rank - 1}].")
    if sorted(set(dimensions)) != dimensions:
        raise VerifyException("reduction dimensions are not in increasing order")
    first = shape(op.inputs[0].type)
    kept = tuple(extent for number, extent in enumerate(first) if number not in dimensions)
    for value, init in zip(op.inputs, op.inits, strict=True):
        if tuple(shape(value.type)) != tuple(first):
            raise VerifyException("expects all inputs to have the same shapes")
        _verify_init(value.type, init.type, dimensions, kept)
    elements = [element(value.type) for value in (*op.inputs, *op.inits)]
    if list(op.region.block.arg_types) != elements:
        raise VerifyException("expected the body to take one element of the input and one of the init")
    last = op.region.block.last_op
    if not isinstance(last, linalg.YieldOp) or [value.type for value in last.operands] != elements[len(op.inputs) :]:
        raise VerifyException("expected the body to yield one element of the init")
    if [result.type for result in op.result] != tensors(op.inits):
        raise VerifyException("expected the result to have the type of the init")


def _verify_init(input: Attribute, init: Attribute, dimensions: Sequence[int], kept: tuple[int, ...]) -> None:
    if element(input) != element(init):
        raise VerifyException(
            f"Reduction element types must be equal, but input is {element(input)} and init is {element(init)}"
        )
    if len(shape(init)) != len(kept):
        raise VerifyException("Output rank must equal input rank minus number of dimensions being reduced over")
    if tuple(shape(init)) != kept:
        remaining = [number for number in range(len(shape(input))) if number not in dimensions]
        at = next(index for index, (a, b) in enumerate(zip(shape(init), kept, strict=True)) if a != b)
        raise VerifyException(f"Non-reduced input dimension {remaining[at]} must equal output dimension {at}")


# ------------------------------------------------------------------------------------------------ broadcast, transpose


def _print_broadcast(op: linalg.BroadcastOp, printer: Printer) -> None:
    print_operands(printer, "ins", [op.input])
    print_operands(printer, "outs", [op.init])
    _print_numbers(printer, "dimensions", op.dimensions)
    printer.print_op_attributes(op.attributes)


def _print_transpose(op: linalg.TransposeOp, printer: Printer) -> None:
    print_operands(printer, "ins", op.inputs)
    print_operands(printer, "outs", op.outputs)
    _print_numbers(printer, "permutation", op.permutation)
    printer.print_op_attributes(op.attributes)


def _moving(keyword: str) -> Callable[..., Any]:
    """The reader of an operation that only moves elements, to places that the numbers after ``keyword`` say."""

    def parse(cls: Any, parser: Parser) -> Any:
        position = parser.pos
        inputs, inits = parse_operands(parser, "ins"), parse_operands(parser, "outs")
        numbers = parse_numbers(parser, keyword)
        if len(inputs) != 1 or len(inits) != 1:
            parser.raise_error(f"{cls.name} takes one input and one init", position)
        op = cls(inputs[0], inits[0], DenseArrayBase.from_list(i64, numbers))
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    return parse


def _verified_transpose(stock: Callable[[Any], None]) -> Callable[[Any], None]:
    def verify_(op: linalg.TransposeOp) -> None:
        order = list(op.permutation.get_values())
        if sorted(order) != list(range(len(order))):
            raise VerifyException("permutation is not valid")
        stock(op)

    return verify_


# ----------------------------------------------------------------------------------------------------------------- map


@irdl_op_definition
class MapOp(IRDLOperation):
    """Combines the elements at the same place of all inputs; the body's last argument is the element of the init."""

    name = "linalg.map"

    inputs = var_operand_def(ShapedConstraint)
    init = operand_def(ShapedConstraint)
    res = var_result_def(TensorType)
    mapper = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())

    def __init__(self, inputs: Sequence[SSAValue], init: SSAValue, mapper: Region) -> None:
        super().__init__(operands=[inputs, init], regions=[mapper], result_types=[tensors([init])])

    @classmethod
    def parse(cls, parser: Parser) -> MapOp:
        payload = parse_optional_payload(parser)
        position = parser.pos
        inputs, inits = parse_operands(parser, "ins"), parse_operands(parser, "outs")
        attributes = parser.parse_optional_attr_dict()
        if len(inits) != 1:
            parser.raise_error("linalg.map takes one init", position)
        if payload is None:
            arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
            mapper = parser.parse_region(arguments)
        else:
            elements = [element(value.type) for value in (*inputs, *inits)]
            names = ["in"] * len(inputs) + ["init"]
            mapper = payload_body(payload, elements, names, range(len(inputs)))
        op = cls(inputs, inits[0], mapper)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        payload = short_form(self.mapper, range(len(self.inputs)))
        if payload is not None:
            print_payload(printer, payload)
        print_operands(printer, "ins", self.inputs)
        print_operands(printer, "outs", [self.init])
        printer.print_op_attributes(self.attributes)
        if payload is None:
            print_long_body(printer, self.mapper)

    def verify_(self) -> None:
        if any(tuple(shape(value.type)) != tuple(shape(self.init.type)) for value in self.inputs):
            raise VerifyException("expected shape of input to match shape of output")
        elements = [element(value.type) for value in (*self.inputs, self.init)]
        if list(self.mapper.block.arg_types) != elements:
            raise VerifyException("expected the body to take one element of each input and of the init")
        last = self.mapper.block.last_op
        if not isinstance(last, linalg.YieldOp) or [value.type for value in last.operands] != elements[-1:]:
            raise VerifyException("expected the body to yield one element of the init")
        if [result.type for result in self.res] != tensors([self.init]):
            raise VerifyException("expected the result to have the type of the init")


# ------------------------------------------------------------------------------------------------------------- softmax


@irdl_op_definition
class SoftmaxOp(IRDLOperation):
    """``exp(x - max(x)) / sum(exp(x - max(x)))`` along one dimension."""

    name = "linalg.softmax"

    input = operand_def(ShapedConstraint)
    output = operand_def(ShapedConstraint)
    dimension = prop_def(IntegerAttr)
    res = var_result_def(TensorType)

    @classmethod
    def parse(cls, parser: Parser) -> SoftmaxOp:
        attributes = parser.parse_optional_attr_dict()
        position = parser.pos
        parser.parse_keyword("dimension")
        with parser.in_parens():
            dimension = parser.parse_integer(allow_boolean=False)
        inputs, outputs = parse_operands(parser, "ins"), parse_operands(parser, "outs")
        if len(inputs) != 1 or len(outputs) != 1:
            parser.raise_error("linalg.softmax takes one input and one output", position)
        return cls.build(
            operands=[inputs[0], outputs[0]],
            properties={"dimension": IntegerAttr(dimension, i64)},
            attributes=attributes,
            result_types=[parse_optional_results(parser)],
        )

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(f" dimension({self.dimension.value.data})")
        print_operands(printer, "ins", [self.input])
        print_operands(printer, "outs", [self.output])
        print_optional_results(printer, self.res.types)

    def verify_(self) -> None:
        if tuple(shape(self.input.type)) != tuple(shape(self.output.type)):
            raise VerifyException("incompatible output shape")
        rank, dimension = len(shape(self.input.type)), self.dimension.value.data
        if not 0 <= dimension < rank:
            raise VerifyException(f"incorrect dimension specified: {dimension}, the rank is {rank}")
        if [result.type for result in self.res] != tensors([self.output]):
            raise VerifyException("expected the result to have the type of the output")


def repaired() -> list[type[Operation]]:
    """Repairs the stock operations; returns those that it lacks."""
    _widen_reduce()
    replace_text(linalg.ReduceOp, _parse_reduce, _print_reduce)
    replace_text(linalg.BroadcastOp, _moving("dimensions"), _print_broadcast)
    replace_text(linalg.TransposeOp, _moving("permutation"), _print_transpose)
    verify_transpose = _verified_transpose(linalg.TransposeOp.verify_)
    setattr(linalg.TransposeOp, "verify_", verify_transpose)  # noqa: B010  the stock method names its parameter
    return [MapOp, SoftmaxOp]
