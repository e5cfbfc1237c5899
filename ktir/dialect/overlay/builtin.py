"""Repairs of ``builtin``.

* Floats keep their bits, see :mod:`ktir.dialect.overlay.floats`.
* Whether elements are all the same is decided by their bits: 0 and -0 differ, and a NaN is itself.
* Many elements are written as one string of bytes, but bits (``i1``) never are.
* Strings with a type, sparse elements and distinct attributes, which xDSL does not have.
"""

# Elements of a dense literal are printed by private methods of it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import (
    Builtin,
    DenseIntOrFPElementsAttr,
    IntAttr,
    StringAttr,
    UnitAttr,
    i1,
)
from xdsl.ir import Attribute, BuiltinAttribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.printer import Printer

from ktir.dialect.overlay.definitions import shorten_detours
from ktir.dialect.overlay.floats import repair_floats
from ktir.dialect.overlay.repair import extended

HEX_FROM = 100
"""Dense literals of more elements than this are written as one string of bytes."""


def print_elements(dense: Any, printer: Printer, *, may_be_splat: bool = True) -> None:
    """What is between the brackets of ``dense<..>``."""
    values = dense.get_values()
    if not values:
        return
    if may_be_splat and dense.is_splat():
        dense._print_one_elem(values[0], printer)
    elif len(values) > HEX_FROM and dense.type.element_type != i1:
        printer.print_string(f'"0x{dense.data.data.hex().upper()}"')
    else:
        dense._print_dense_list(values, dense.get_shape(), printer)


def print_dense(dense: Any, printer: Printer) -> None:
    printer.print_string("dense<")
    print_elements(dense, printer)
    printer.print_string(">")


def is_splat(dense: Any) -> bool:
    """Whether all elements have the same bits."""
    data: bytes = dense.data.data
    size: int = dense.type.element_type.compile_time_size
    return data == data[:size] * (len(data) // size)


@irdl_attr_definition
class TypedStringAttr(ParametrizedAttribute, BuiltinAttribute):
    """``"text" : type``"""

    name = "typed_string"

    text: StringAttr
    type: Attribute

    def print_builtin(self, printer: Printer) -> None:
        printer.print_attribute(self.text)
        printer.print_string(" : ")
        printer.print_attribute(self.type)


@irdl_attr_definition
class SparseElementsAttr(ParametrizedAttribute, BuiltinAttribute):
    """``sparse<[[0, 1], [2, 3]], [5, 6]> : tensor<3x4xi32>``: the elements that are not zero, and where they are.

    ``indices`` has a row for each element, ``values`` the elements.
    """

    name = "sparse"

    indices: DenseIntOrFPElementsAttr
    values: DenseIntOrFPElementsAttr
    type: Attribute

    def print_builtin(self, printer: Printer) -> None:
        printer.print_string("sparse<")
        if len(self.indices):
            print_elements(self.indices, printer, may_be_splat=self.indices.get_shape()[0] == 1)
            printer.print_string(", ")
            print_elements(self.values, printer)
        printer.print_string("> : ")
        printer.print_attribute(self.type)


@irdl_attr_definition
class DistinctAttr(ParametrizedAttribute, BuiltinAttribute):
    """``distinct[0]<attribute>``: an attribute with an identity, which its number is."""

    name = "distinct"

    number: IntAttr
    referenced: Attribute

    def print_builtin(self, printer: Printer) -> None:
        printer.print_string(f"distinct[{self.number.data}]<")
        if self.referenced != UnitAttr():
            printer.print_attribute(self.referenced)
        printer.print_string(">")


def _repaired() -> Any:
    repair_floats()
    shorten_detours()
    stock: Any = DenseIntOrFPElementsAttr
    stock.print_without_type, stock.is_splat = print_dense, is_splat
    return extended(Builtin, [], [TypedStringAttr, SparseElementsAttr, DistinctAttr])


BUILTIN = _repaired()
