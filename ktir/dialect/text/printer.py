"""Prints IR as MLIR does.

Affine maps and sets get names at the top of the text (``#map``, ``#set``); attribute dictionaries are alphabetical;
operations of a region's own dialect lose their prefix (``module``, ``return``); integers and floats look as MLIR writes
them. Value names are kept as they were read.
"""

# xDSL's printer has no public hooks for value names and operation names.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from typing import IO

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    AnyFloat,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    Signedness,
    UnregisteredOp,
    i1,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove

from ktir.dialect.text.floats import float_text
from ktir.dialect.text.limits import recursion_room
from ktir.maths.affine import map_text, set_text

HEX_FROM = 100
"""Dense literals of more elements than this are written as one string of bytes."""


def print_module(module: ModuleOp, *, generic: bool = False, debug_info: bool = False) -> str:
    """The text of ``module``; ``generic`` writes every operation in quotes, ``debug_info`` writes locations."""
    return print_operation(module, generic=generic, debug_info=debug_info)


def print_operation(op: Operation, *, generic: bool = False, debug_info: bool = False) -> str:
    """The text of ``op`` and the aliases it uses."""
    with recursion_room():
        aliases = Aliases()
        scratch = KtirPrinter(StringIO(), aliases, generic=generic, debug_info=debug_info)
        scratch.print_op(op)
        names = aliases.names()
        out = StringIO()
        for attribute, name in names.items():
            out.write(f"#{name} = {plain_affine(attribute)}\n")
        printer = KtirPrinter(out, names, generic=generic, debug_info=debug_info)
        printer.print_op(op)
        return out.getvalue() + "\n"


Affine = AffineMapAttr | AffineSetAttr


def plain_affine(attribute: Affine) -> str:
    """``affine_map<..>`` or ``affine_set<..>``"""
    if isinstance(attribute, AffineMapAttr):
        return f"affine_map<{map_text(attribute.data)}>"
    return f"affine_set<{set_text(attribute.data)}>"


class Aliases:
    """The affine attributes of a text, in the order in which they are first printed."""

    def __init__(self) -> None:
        self.seen: dict[Affine, None] = {}

    def get(self, attribute: Affine) -> str | None:
        self.seen.setdefault(attribute)
        return None

    def names(self) -> dict[Affine, str]:
        """``map``, ``map1``, .. and then ``set``, ``set1``, .."""
        names: dict[Affine, str] = {}
        maps = [attribute for attribute in self.seen if isinstance(attribute, AffineMapAttr)]
        sets = [attribute for attribute in self.seen if not isinstance(attribute, AffineMapAttr)]
        for prefix, members in (("map", maps), ("set", sets)):
            names |= {attribute: f"{prefix}{number or ''}" for number, attribute in enumerate(members)}
        return names


class KtirPrinter(Printer):
    """xDSL's printer with MLIR's spelling."""

    def __init__(
        self, stream: IO[str], aliases: Aliases | Mapping[Affine, str], *, generic: bool, debug_info: bool
    ) -> None:
        super().__init__(stream, print_generic_format=generic, print_debuginfo=debug_info)
        self.aliases = aliases
        self.taken: list[set[str]] = [set()]
        self.prefixes = ["builtin."]

    # ------------------------------------------------------------------------------------------------------ operations

    def print_op(self, op: Operation) -> None:
        self._print_results(op)
        isolated = op.has_trait(IsolatedFromAbove, value_if_unregistered=False)
        if isolated:
            self.enter_scope()
        if isinstance(op, UnregisteredOp):
            self._print_unregistered(op)
        elif self.print_generic_format or type(op).print is Operation.print:
            self.print_string(f'"{op.name}"')
            self.print_op_with_default_format(op)
        else:
            self.print_string(op.name.removeprefix(self.prefixes[-1]))
            op.print(self)
            if self.print_debuginfo:
                self.print_string(" ")
                self.print_attribute(op.location)
        if isolated:
            self.exit_scope()

    def _print_unregistered(self, op: UnregisteredOp) -> None:
        self.print_string(f'"{op.op_name.data}"')
        name = op.attributes.pop("op_name__")
        try:
            self.print_op_with_default_format(op)
        finally:
            op.attributes["op_name__"] = name

    def print_region(
        self,
        region: Region,
        print_entry_block_args: bool = True,
        print_empty_block: bool = True,
        print_block_terminators: bool = True,
    ) -> None:
        self.prefixes.append(_default_prefix(region.parent_op()))
        try:
            super().print_region(region, print_entry_block_args, print_empty_block, print_block_terminators)
        finally:
            self.prefixes.pop()

    # ----------------------------------------------------------------------------------------------------------- names

    def print_ssa_value(self, value: SSAValue) -> str:
        name = self._ssa_values.get(value)
        if name is None:
            name = self._ssa_values[value] = self._fresh_name(value.name_hint)
            self.taken[-1].add(name)
        self.print_string(f"%{name}")
        return name

    def _fresh_name(self, hint: str | None) -> str:
        taken = self.taken[-1]
        if hint and hint not in taken:
            return hint
        while True:
            if hint:
                number = self.ssa_names[hint] = self.ssa_names.get(hint, 0) + 1
                name = f"{hint}_{number}"
            else:
                name = self._get_new_valid_name_id()
            if name not in taken:
                return name

    def enter_scope(self) -> None:
        super().enter_scope()
        self.taken.append(self.taken[-1].copy())

    def exit_scope(self) -> None:
        super().exit_scope()
        self.taken.pop()

    # ------------------------------------------------------------------------------------------------------ attributes

    def print_attr_dict(self, attr_dict: Mapping[str, Attribute]) -> None:
        super().print_attr_dict(dict(sorted(attr_dict.items())))

    def print_attribute(self, attribute: Attribute) -> None:
        match attribute:
            case AffineMapAttr() | AffineSetAttr():
                name = self.aliases.get(attribute)
                self.print_string(plain_affine(attribute) if name is None else f"#{name}")
            case ArrayAttr():
                with self.in_square_brackets():
                    self.print_list(attribute.data, self._print_element)
            case DenseIntOrFPElementsAttr() if _prefers_bytes(attribute):
                self.print_string(f'dense<"0x{attribute.data.data.hex().upper()}"> : ')
                self.print_attribute(attribute.type)
            case _:
                super().print_attribute(attribute)

    def _print_element(self, attribute: Attribute) -> None:
        """An element of an array, whose type is left out where it is the default one."""
        match attribute:
            case IntegerAttr(type=IntegerType() as type) if type.width.data == 64 and _is_signless(type):
                self.print_int(attribute.value.data)
            case FloatAttr(type=Float64Type()):
                self.print_float(attribute.value.data, attribute.type)
            case _:
                self.print_attribute(attribute)

    def print_float(self, value: float, type: AnyFloat) -> None:
        self.print_string(float_text(value, type))


def _is_signless(type: IntegerType) -> bool:
    return type.signedness.data is Signedness.SIGNLESS


def _prefers_bytes(attribute: DenseIntOrFPElementsAttr) -> bool:
    return len(attribute) > HEX_FROM and not attribute.is_splat() and attribute.type.element_type != i1


def _default_prefix(op: Operation | None) -> str:
    """What operations directly inside ``op`` leave out of their names."""
    if isinstance(op, ModuleOp):
        return "builtin."
    return "func." if isinstance(op, FuncOp) else "none."
