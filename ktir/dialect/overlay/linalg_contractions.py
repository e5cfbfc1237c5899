"""Named contractions of ``linalg``: sums of products.

* ``matmul`` multiplies narrow elements into wide ones, converts them in its body, adds to the accumulator on the left
  as MLIR does, and keeps ``indexing_maps`` other than the default and ``cast``.
* ``batch_matmul``, ``batch_reduce_matmul``, ``contract``, ``matvec``, ``vecmat``, their batches, and ``dot`` exist.
* Convolutions add to the accumulator on the left, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import AffineMapAttr, AnyFloat, ArrayAttr, IntegerType, i1
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import ConvOperation, NamedOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import (
    BaseAttr,
    OptPropertyDef,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from ktir.dialect.overlay.linalg_text import (
    cast,
    defaults,
    parse_operands,
    parse_optional_results,
    print_operands,
    print_optional_results,
    shape,
    tensors,
)
from ktir.dialect.overlay.repair import redefine, replace_text

MEMOIZED = "linalg.memoized_indexing_maps"
"""What MLIR notes on operations whose maps follow from their name; it says nothing new."""


class TypeFn(StrEnum):
    """Whether integers are converted with a sign."""

    CAST_SIGNED = "cast_signed"
    CAST_UNSIGNED = "cast_unsigned"


@irdl_attr_definition
class TypeFnAttr(EnumAttribute[TypeFn]):
    """``#linalg.type_fn<cast_unsigned>``"""

    name = "linalg.type_fn"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TypeFn:
        with parser.in_angle_brackets():
            return parser.parse_str_enum(TypeFn)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.data.value)


def _body(
    cls: type[NamedOperation], inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], *, unsigned: bool = False
) -> Region:
    """``acc + convert(a) * convert(b)``"""
    types = cls.body_arg_types((*inputs, *outputs))
    wide = types[-1]
    multiply, accumulate = _arithmetic(wide)

    @Builder.implicit_region(types)
    def body(args: tuple[BlockArgument, ...]) -> None:
        product = multiply(cast(args[0], wide, unsigned=unsigned), cast(args[1], wide, unsigned=unsigned))
        linalg.YieldOp(accumulate(args[2], product))

    return body


def _arithmetic(wide: Attribute) -> tuple[Any, Any]:
    """Product and sum of elements of type ``wide``."""
    if isinstance(wide, AnyFloat):
        return arith.MulfOp, arith.AddfOp
    return (arith.AndIOp, arith.OrIOp) if wide == i1 else (arith.MuliOp, arith.AddiOp)


def parse_contraction(cls: type[Any], parser: Parser) -> Any:
    """``indexing_maps = [..] {attributes} ins(..) outs(..) -> T``"""
    position = parser.pos
    properties: dict[str, Attribute] = {}
    if parser.parse_optional_keyword("indexing_maps") is not None:
        parser.parse_punctuation("=")
        properties["indexing_maps"] = parser.parse_attribute()
    entries = parser.parse_optional_attr_dict()
    inputs, outputs = parse_operands(parser, "ins"), parse_operands(parser, "outs")
    entries |= parser.parse_optional_attr_dict()
    results = parse_optional_results(parser)
    if len(inputs) != 2 or len(outputs) != 1:
        parser.raise_error(f"{cls.name} takes two inputs and one output", position)
    if not all(isinstance(each, AnyFloat | IntegerType) for each in _elements(cls, parser, (*inputs, *outputs))):
        parser.raise_error(f"{cls.name} works on floats and integers", position)
    known = cls.get_irdl_definition().properties
    properties |= {name: entries.pop(name) for name in ("indexing_maps", "cast") if name in entries and name in known}
    unsigned = properties.get("cast") == TypeFnAttr(TypeFn.CAST_UNSIGNED)
    return cls.build(
        operands=[inputs, outputs],
        result_types=[results],
        properties=properties,
        attributes=entries,
        regions=[_body(cls, inputs, outputs, unsigned=unsigned)],
    )


def _elements(cls: type[NamedOperation], parser: Parser, values: Sequence[SSAValue]) -> Sequence[Attribute]:
    try:
        return cls.body_arg_types(values)
    except AssertionError:
        parser.raise_error(f"{cls.name} works on floats and integers")


def print_contraction(op: Any, printer: Printer) -> None:
    default = defaults(op.__class__).get("indexing_maps")
    if "indexing_maps" in op.properties and op.indexing_maps != default:
        printer.print_string(" indexing_maps = ")
        printer.print_attribute(op.indexing_maps)
    shown = {name: value for name, value in op.attributes.items() if name != MEMOIZED}
    if (conversion := op.properties.get("cast")) is not None:
        shown["cast"] = conversion
    printer.print_op_attributes(shown)
    print_operands(printer, "ins", op.inputs)
    print_operands(printer, "outs", op.outputs)
    print_optional_results(printer, list(op.res.types))


def maps_of(letters: str) -> list[AffineMap]:
    """The maps of a contraction written as the letters of its dimensions: ``mnk: mk,kn->mn``."""
    names, accesses = letters.replace(" ", "").split(":")
    return [
        AffineMap(len(names), 0, tuple(AffineDimExpr(names.index(letter)) for letter in access))
        for access in accesses.replace("->", ",").split(",")
    ]


class Contraction(NamedOperation):
    """A sum of products whose maps are given; dimensions that the output lacks are summed over."""

    PRINT_ATTRS_IN_FRONT: ClassVar[bool] = True

    def __init__(
        self, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], maps: Sequence[AffineMap] | None = None
    ) -> None:
        given = {} if maps is None else {"indexing_maps": ArrayAttr(AffineMapAttr(map) for map in maps)}
        super().__init__(
            ins=inputs,
            outs=outputs,
            result_types=[tensors(outputs)],
            properties=given,
            hidden_region=self.get_hidden_region(inputs, outputs),
        )

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return _body(cls, inputs, outputs)

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        maps: Any = self.properties["indexing_maps"]
        return tuple(map.data for map in maps)

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:  # pyright: ignore[reportUnknownParameterType]
        *_, output = maps = self.get_default_indexing_maps()
        kept = {result.position for result in output.results if isinstance(result, AffineDimExpr)}
        parallel, reduction = IteratorTypeAttr.parallel(), IteratorTypeAttr.reduction()
        return ArrayAttr([parallel if number in kept else reduction for number in range(maps[0].num_dims)])

    def verify_(self) -> None:
        if len(self.inputs) != 2 or len(self.outputs) != 1:
            raise VerifyException("expected two inputs and one output")
        for value, map in zip((*self.inputs, *self.outputs), self.get_default_indexing_maps(), strict=False):
            if len(map.results) != len(shape(value.type)):
                raise VerifyException(f"expected rank {len(map.results)} of an operand, but got {value.type}")


def _maps(letters: str) -> ArrayAttr[AffineMapAttr]:
    return ArrayAttr(AffineMapAttr(map) for map in maps_of(letters))


@irdl_op_definition
class BatchMatmulOp(Contraction):
    """``outs[b, m, n] += ins0[b, m, k] * ins1[b, k, n]``"""

    name = "linalg.batch_matmul"

    indexing_maps = prop_def(ArrayAttr[AffineMapAttr], default_value=_maps("bmnk: bmk,bkn->bmn"))
    cast = opt_prop_def(TypeFnAttr)


@irdl_op_definition
class BatchReduceMatmulOp(Contraction):
    """``outs[m, n] += ins0[b, m, k] * ins1[b, k, n]``"""

    name = "linalg.batch_reduce_matmul"

    indexing_maps = prop_def(ArrayAttr[AffineMapAttr], default_value=_maps("bmnk: bmk,bkn->mn"))
    cast = opt_prop_def(TypeFnAttr)


@irdl_op_definition
class ContractOp(Contraction):
    """A sum of products with maps of its own."""

    name = "linalg.contract"

    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    cast = opt_prop_def(TypeFnAttr)


NAMED = {
    "matvec": "mn: mn,n->m",
    "vecmat": "nm: m,mn->n",
    "batch_matvec": "bmk: bmk,bk->bm",
    "batch_vecmat": "bnk: bk,bkn->bn",
    "dot": "m: m,m->",
}
"""Contractions whose maps their names say."""


def _named(mnemonic: str, letters: str) -> type[Operation]:
    maps = tuple(maps_of(letters))

    def get_default_indexing_maps(self: Any) -> Sequence[AffineMap]:
        return maps

    members = {
        "name": f"linalg.{mnemonic}",
        "__doc__": f"``{letters}``",
        "get_default_indexing_maps": get_default_indexing_maps,
    }
    kind = irdl_op_definition(
        type("".join(part.capitalize() for part in mnemonic.split("_")) + "Op", (Contraction,), members)
    )
    replace_text(kind, parse_contraction, print_contraction)
    return kind


def _all_subclasses(kind: type[Any]) -> list[type[Any]]:
    return [each for child in kind.__subclasses__() for each in (child, *_all_subclasses(child))]


def repaired() -> list[type[Operation]]:
    """Repairs the stock operations; returns those that it lacks."""
    matmul: Any = linalg.MatmulOp
    matmul.get_hidden_region = classmethod(_body)
    redefine(matmul, properties={"cast": OptPropertyDef(BaseAttr(TypeFnAttr))})
    kinds: list[Any] = [BatchMatmulOp, BatchReduceMatmulOp, ContractOp]
    for kind in (matmul, *kinds):
        replace_text(kind, parse_contraction, print_contraction)
    for convolution in _all_subclasses(ConvOperation):
        convolution.get_hidden_region = classmethod(_body)
    return [*kinds, *(_named(mnemonic, letters) for mnemonic, letters in NAMED.items())]
