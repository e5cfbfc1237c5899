"""Repairs of ``linalg``.

* ``generic`` reads several results back, ``-> (T, U)``, refuses malformed dictionaries with a location, and is printed
  with its properties in alphabetical order.
* ``generic`` and ``index`` are checked as MLIR checks them; ``index`` may stand in ``map``.
* Operands that disagree on the extent of a loop are refused.
* The other operations are in the modules ``linalg_regions``, ``linalg_contractions``, ``linalg_named`` and
  ``linalg_pack``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, StringAttr
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Attribute, Dialect
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.overlay import linalg_contractions, linalg_named, linalg_regions
from ktir.dialect.overlay.arith import ARITH
from ktir.dialect.overlay.linalg_extents import require_one_extent_per_loop
from ktir.dialect.overlay.linalg_pack import PackOp, UnpackOp
from ktir.dialect.overlay.linalg_text import (
    element,
    parse_operands,
    parse_optional_results,
    print_operands,
    print_optional_results,
    shape,
    tensors,
)
from ktir.dialect.overlay.repair import extended, replace_text, replace_traits

# ------------------------------------------------------------------------------------------------------------- generic


def _parse_generic(cls: type[linalg.GenericOp], parser: Parser) -> linalg.GenericOp:
    position = parser.pos
    entries = parser.parse_optional_attr_dict()
    maps: Any = entries.pop("indexing_maps", None)
    kinds: Any = entries.pop("iterator_types", None)
    if not _is_array_of(maps, AffineMapAttr):
        parser.raise_error("expected indexing_maps of affine maps for linalg.generic", position)
    if not _is_array_of(kinds, Attribute):
        parser.raise_error("expected iterator_types for linalg.generic", position)
    iterators: list[Attribute] = [_iterator(parser, kind, position) for kind in kinds]
    texts = {name: value for name in ("doc", "library_call") if (value := entries.pop(name, None)) is not None}
    inputs, outputs = parse_operands(parser, "ins"), parse_operands(parser, "outs")
    if parser.parse_optional_keyword("attrs") is not None:
        parser.parse_punctuation("=")
        entries |= parser.parse_optional_attr_dict()
    body = parser.parse_region()
    results = parse_optional_results(parser)
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


def _is_array_of(attribute: Any, kind: type[Attribute]) -> bool:
    return getattr(attribute, "name", None) == ArrayAttr.name and all(isinstance(each, kind) for each in attribute)


def _print_generic(op: linalg.GenericOp, printer: Printer) -> None:
    kinds = ArrayAttr(StringAttr(str(kind.data)) for kind in op.iterator_types)
    shown: dict[str, Attribute] = {"indexing_maps": op.indexing_maps, "iterator_types": kinds}
    shown |= {name: op.properties[name] for name in ("doc", "library_call") if name in op.properties}
    printer.print_op_attributes(shown)
    print_operands(printer, "ins", op.inputs)
    print_operands(printer, "outs", op.outputs)
    if op.attributes:
        printer.print_string(" attrs = ")
        printer.print_op_attributes(op.attributes)
    printer.print_string(" ")
    printer.print_region(op.body)
    print_optional_results(printer, list(op.res.types))


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
        yielded, expected = list(last.operands), [element(output.type) for output in op.outputs]
        if len(yielded) != len(expected):
            raise VerifyException(
                f"expected number of yield values ({len(yielded)}) to match the number of inits / outs operands of the "
                f"enclosing LinalgOp ({len(expected)})"
            )
        for number, (value, kind) in enumerate(zip(yielded, expected, strict=True)):
            if value.type != kind:
                raise VerifyException(
                    f"type of yield operand {number + 1} ('{value.type}') doesn't match the element type of the "
                    f"enclosing linalg.generic op ('{kind}')"
                )
        if [result.type for result in op.res] != tensors(op.outputs):
            raise VerifyException("expected the results to have the types of the output tensors")

    return verify_


def _verify_index(stock: Callable[[Any], None]) -> Callable[[Any], None]:
    """The stock rules, and that the enclosing operation has that many loops."""

    def verify_(op: linalg.IndexOp) -> None:
        stock(op)
        around = op.parent_op()
        loops = op.dim.value.data + 1
        if isinstance(around, linalg.GenericOp):
            loops = len(around.iterator_types)
        elif isinstance(around, linalg_regions.MapOp):
            loops = len(shape(around.init.type))
        if not 0 <= op.dim.value.data < loops:
            raise VerifyException(
                f"expected dim ({op.dim.value.data}) to be lower than the number of loops "
                f"({loops}) of the enclosing LinalgOp"
            )

    return verify_


def _repaired() -> Dialect:
    for kind, rule in ((linalg.GenericOp, _verify_generic), (linalg.IndexOp, _verify_index)):
        setattr(kind, "verify_", rule(_stock_verifier(kind)))  # noqa: B010  the stock methods name their parameters
    parents = HasParent(linalg.GenericOp, linalg_regions.MapOp)
    replace_traits(linalg.IndexOp, lambda trait: parents if isinstance(trait, HasParent) else trait)
    replace_text(linalg.GenericOp, _parse_generic, _print_generic)
    added = [*linalg_regions.repaired(), *linalg_contractions.repaired(), *linalg_named.repaired(), PackOp, UnpackOp]
    attributes = [linalg_contractions.TypeFnAttr, linalg_named.ElementwiseKindAttr]
    repaired = extended(Linalg, added, attributes)
    for kind in repaired.operations:
        if issubclass(kind, LinalgStructuredOperation):
            require_one_extent_per_loop(kind)
    return repaired


REQUIRED = (ARITH,)
"""Dialects whose repaired operations the bodies of named operations hold."""

LINALG = _repaired()
