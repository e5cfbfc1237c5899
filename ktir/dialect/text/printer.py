"""Prints IR as MLIR does.

Affine maps and sets get names at the top of the text (``#map``, ``#set``), locations at its end; dictionaries of
attributes are alphabetical; operations of a region's own dialect lose their prefix (``module``, ``return``); integers
and floats look as MLIR writes them; blocks say where control comes from. Value names are kept as they were read, and
results that share a name are numbered parts of it (``%0:2``).
"""

# xDSL's printer has no public hooks for value names and operation names.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from itertools import groupby
from types import MappingProxyType
from typing import IO, Any

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    AnyFloat,
    ArrayAttr,
    Builtin,
    CallSiteLoc,
    FileLineColLoc,
    Float64Type,
    FloatAttr,
    FunctionType,
    FusedLoc,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    MemRefType,
    ModuleOp,
    NameLoc,
    NoneAttr,
    Signedness,
    TensorType,
    UnitAttr,
    UnknownLoc,
    UnrankedMemRefType,
    UnregisteredOp,
    VectorType,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove

from ktir.dialect.overlay.builtin import DistinctAttr
from ktir.dialect.text.aliases import Aliases, Named, location_text, plain_affine
from ktir.dialect.text.floats import float_text
from ktir.dialect.text.limits import recursion_room, without_collections
from ktir.dialect.text.mlir_names import names_of_blocks, names_of_values


def print_module(
    module: ModuleOp,
    *,
    generic: bool = False,
    debug_info: bool = False,
    local_scope: bool = False,
    mlir_names: bool = False,
) -> str:
    """The text of ``module``; ``generic`` writes every operation in quotes, ``debug_info`` writes locations.

    ``local_scope`` writes maps, sets and locations where they are used instead of giving them names. ``mlir_names``
    calls values and blocks as MLIR does; otherwise they keep the names they were read with.
    """
    return print_operation(
        module, generic=generic, debug_info=debug_info, local_scope=local_scope, mlir_names=mlir_names
    )


def print_operation(
    op: Operation,
    *,
    generic: bool = False,
    debug_info: bool = False,
    local_scope: bool = False,
    mlir_names: bool = False,
    printer_class: type[KtirPrinter] | None = None,
) -> str:
    """The text of ``op`` and the aliases it uses; ``printer_class`` may write some attributes in another way."""
    kind = printer_class or KtirPrinter
    with recursion_room(), without_collections():
        aliases = Aliases()
        body, top, end = StringIO(), StringIO(), StringIO()
        printer = kind(body, aliases, generic=generic, debug_info=debug_info)
        if mlir_names:
            printer.forget_names(op)
        if generic:
            printer.note_aliases(op)
        printer.print_op(op)
        if local_scope:
            printer.stream = end
            printer.print_resources()
            return aliases.written_out(f"{body.getvalue()}\n{end.getvalue()}", printer.definition)
        printer.stream = top
        printer.print_definitions(deferred=False)
        printer.stream = end
        printer.print_definitions(deferred=True)
        printer.print_resources()
        return aliases.resolved(f"{top.getvalue()}{body.getvalue()}\n{end.getvalue()}")


class KtirPrinter(Printer):
    """xDSL's printer with MLIR's spelling."""

    def __init__(self, stream: IO[str], aliases: Aliases, *, generic: bool, debug_info: bool) -> None:
        super().__init__(stream, print_generic_format=generic, print_debuginfo=debug_info)
        self.aliases = aliases
        self.type_texts: dict[int, tuple[Attribute, str]] = {}
        self.taken: list[set[str]] = [set()]
        self.prefixes = ["builtin."]

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        if "\n" in text:
            super().print_string(text, indent=indent)
        else:
            self.stream.write(text)

    # ------------------------------------------------------------------------------------------------------ operations

    def print_op(self, op: Operation) -> None:
        if self.print_debuginfo:
            self.aliases.note(op.location, deferred=True)
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
                self._print_trailing_location(op.location)
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

    def print_operation_type(self, op: Operation) -> None:
        self.print_function_type(op.operand_types, op.result_types)
        if self.print_debuginfo:
            self._print_trailing_location(op.location)

    def print_block(self, block: Block, print_block_args: bool = True, print_block_terminator: bool = True) -> None:
        if not print_block_args or block.parent is None or block.parent.blocks.first is block:
            super().print_block(block, print_block_args, print_block_terminator)
            return
        self._print_new_line()
        self.print_block_name(block)
        if block.args:
            with self.in_parens():
                self.print_list(block.args, self.print_block_argument)
        self.print_string(f":  // {self._predecessors(block)}")
        super().print_block(block, False, print_block_terminator)

    def print_successors(self, successors: Sequence[Block]) -> None:
        if successors:
            with self.in_square_brackets():
                self.print_list(successors, self.print_block_name)

    def _predecessors(self, block: Block) -> str:
        """``pred: ^bb0`` or ``2 preds: ^bb0, ^bb1``, one for each way into ``block``."""
        before: Sequence[Block] = [] if block.parent is None else list(block.parent.blocks)
        names = [
            f"^{self._get_block_name(each)}"
            for each in before
            if each.last_op is not None
            for successor in each.last_op.successors
            if successor is block
        ]
        if not names:
            return "no predecessors"
        return f"pred: {names[0]}" if len(names) == 1 else f"{len(names)} preds: {', '.join(names)}"

    # ----------------------------------------------------------------------------------------------------------- names

    def forget_names(self, root: Operation) -> None:
        """Calls the values and blocks in ``root`` as MLIR does."""
        self._ssa_values |= names_of_values(root, generic=self.print_generic_format)
        self._blocks |= names_of_blocks(root)

    def note_aliases(self, op: Operation) -> None:
        """Notes the names of ``op`` in the order of the generic form: what is inside, types, attributes."""
        for region in op.regions:
            for block in region.blocks:
                for nested in block.ops:
                    self.note_aliases(nested)
        stream, self.stream = self.stream, StringIO()
        attributes = {**op.attributes, **op.properties}
        for attribute in (*op.operand_types, *op.result_types, *(attributes[name] for name in sorted(attributes))):
            self.print_attribute(attribute)
        self.stream = stream

    def _print_results(self, op: Operation) -> None:
        """``%a, %b:2 = ``: results in a row that share their name, or have none, are numbered parts of one."""
        if not op.results:
            return
        if op.results[0] in self._ssa_values:
            self._print_named_results(op)
            return
        parts = _named_parts(op)
        groups = [
            [result for result, _ in group]
            for _, group in groupby(zip(op.results, parts, strict=True), key=lambda pair: (pair[0].name_hint, pair[1]))
        ]
        self.print_list(groups, self._print_result_group)
        self.print_string(" = ")

    def _print_named_results(self, op: Operation) -> None:
        """As above, for results that have their names already."""
        stems = [self._ssa_values[result].partition("#")[0] for result in op.results]
        counts = [(stem, len(list(group))) for stem, group in groupby(stems)]
        self.print_string(", ".join(f"%{stem}:{count}" if count > 1 else f"%{stem}" for stem, count in counts))
        self.print_string(" = ")

    def _print_result_group(self, results: list[OpResult]) -> None:
        if len(results) == 1:
            self.print_ssa_value(results[0])
            return
        name = self._fresh_name(results[0].name_hint)
        self.taken[-1].add(name)
        self._ssa_values |= {result: f"{name}#{number}" for number, result in enumerate(results)}
        self.print_string(f"%{name}:{len(results)}")

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
        writer = WRITERS.get(type(attribute))
        if writer is None:
            super().print_attribute(attribute)
        else:
            writer(self, attribute)

    def print_name(self, attribute: Named) -> None:
        """The name of a map, set or location."""
        self.print_string(f"#{self.aliases.at_top(attribute)}")

    def print_distinct(self, attribute: DistinctAttr) -> None:
        """An attribute with an identity, by its name unless it refers to nothing."""
        if attribute.referenced == UnitAttr():
            attribute.print_builtin(self)
        else:
            self.print_name(attribute)

    def print_argument_location(self, argument: BlockArgument) -> None:
        """Where ``argument`` comes from, written out, if locations are printed."""
        if self.print_debuginfo:
            self.aliases.note(argument.location)
            self.print_string(f" loc({self.definition(argument.location)})")

    def print_block_argument(self, arg: BlockArgument, print_type: bool = True) -> None:
        self.print_ssa_value(arg)
        if print_type:
            self.print_string(": ")
            self.print_attribute(arg.type)
            self.print_argument_location(arg)

    def print_array(self, attribute: ArrayAttr[Attribute]) -> None:
        self.print_string("[")
        self.print_list(attribute.data, self._print_element)
        self.print_string("]")

    def print_type(self, type: Attribute) -> None:
        """A type; its text is worked out once."""
        known = self.type_texts.get(id(type))
        if known is None:
            stream, self.stream = self.stream, StringIO()
            self._print_new_type(type)
            known = self.type_texts[id(type)] = (type, self.stream.getvalue())
            self.stream = stream
        self.stream.write(known[1])

    def _print_new_type(self, type: Attribute) -> None:
        match type:
            case MemRefType(memory_space=IntegerAttr() as space) if space.type == i64:
                self._print_memref(type, space.value.data)
            case UnrankedMemRefType(memory_space=IntegerAttr() as space) if space.type == i64:
                self.print_string("memref<*x")
                self.print_attribute(type.element_type)
                self.print_string(f", {space.value.data}>")
            case _:
                super().print_attribute(type)

    def _print_memref(self, type: MemRefType, space: int) -> None:
        """A memref with a numbered memory space, whose type MLIR leaves out."""
        self.print_string("memref<")
        if type.get_shape():
            self.print_dimension_list(type.get_shape())
            self.print_string("x")
        self.print_attribute(type.element_type)
        if not isinstance(type.layout, NoneAttr):
            self.print_string(", ")
            self.print_attribute(type.layout)
        self.print_string(f", {space}>")

    def _print_element(self, attribute: Attribute) -> None:
        """An element of an array, whose type is left out where it is the default one."""
        match attribute:
            case IntegerAttr(type=IntegerType() as type) if type.width.data == 64 and _is_signless(type):
                self.print_int(attribute.value.data)
            case FloatAttr(type=Float64Type()):
                self.print_float(attribute.value.data, attribute.type)
            case _:
                self.print_attribute(attribute)

    # ------------------------------------------------------------------------------------------- locations, definitions

    def _print_trailing_location(self, location: LocationAttr) -> None:
        """The location of an operation, by its name where it has one."""
        self.print_string(f" loc(#{self.aliases.get(location)})")

    def _location_part(self, location: Named) -> str:
        return f"#{self.aliases.get(location)}"

    def _text_of(self, attribute: Attribute) -> str:
        out = StringIO()
        KtirPrinter(out, self.aliases, generic=self.print_generic_format, debug_info=False).print_attribute(attribute)
        return out.getvalue()

    def print_definitions(self, *, deferred: bool) -> None:
        """One alias a line."""
        for attribute, name in self.aliases.definitions(deferred=deferred):
            text = self.definition(attribute)
            self.print_string(f"#{name} = {f'loc({text})' if isinstance(attribute, LocationAttr) else text}\n")

    def definition(self, attribute: Named) -> str:
        """What an alias stands for; of a location what is inside ``loc(..)``."""
        if isinstance(attribute, LocationAttr):
            return location_text(attribute, self._text_of, self._location_part)
        if isinstance(attribute, DistinctAttr):
            return f"distinct[{attribute.number.data}]<{self._text_of(attribute.referenced)}>"
        return plain_affine(attribute)

    def print_resources(self) -> None:
        """The data of the resources that the text names."""
        out = StringIO()
        printer = KtirPrinter(out, self.aliases, generic=False, debug_info=False)
        printer._dialect_resources = self._dialect_resources
        printer.print_metadata([Builtin])
        if text := out.getvalue().strip():
            self.print_string(f"\n{text}\n")

    def print_float(self, value: float, type: AnyFloat) -> None:
        self.print_string(float_text(value, type))


def _named_parts(op: Operation) -> Sequence[int]:
    """For each result which named part of the operation it belongs to; most operations have one part without a name."""
    count = len(op.results)
    match op.name:
        case "arith.addui_extended" | "arith.mulsi_extended" | "arith.mului_extended" | "math.sincos":
            return range(count)
        case "memref.extract_strided_metadata":
            rank = (count - 2) // 2
            return [0, 1, *[2] * rank, *[3] * rank]
        case _:
            return [0] * count


def _is_signless(type: IntegerType) -> bool:
    return type.signedness.data is Signedness.SIGNLESS


def _default_prefix(op: Operation | None) -> str:
    """What operations directly inside ``op`` leave out of their names."""
    if isinstance(op, ModuleOp):
        return "builtin."
    return "func." if isinstance(op, FuncOp) else "none."


WRITERS: Mapping[type, Callable[[KtirPrinter, Any], None]] = MappingProxyType(
    {
        DistinctAttr: KtirPrinter.print_distinct,
        ArrayAttr: KtirPrinter.print_array,
        **dict.fromkeys(
            (AffineMapAttr, AffineSetAttr, UnknownLoc, FileLineColLoc, NameLoc, CallSiteLoc, FusedLoc),
            KtirPrinter.print_name,
        ),
        **dict.fromkeys(
            (MemRefType, UnrankedMemRefType, TensorType, VectorType, IntegerType, FunctionType, IndexType),
            KtirPrinter.print_type,
        ),
    }
)
"""How attributes of a class are written; those of other classes as xDSL does."""
