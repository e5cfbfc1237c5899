"""Repairs of ``func``.

* Attributes of the arguments and results of a declaration are kept.
* A declaration without results is printed without ``-> ()``.
* ``no_inline`` is a property of the function.
* ``constant`` and ``call_indirect`` exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FlatSymbolRefAttrConstr, FunctionType, StringAttr, UnitAttr
from xdsl.dialects.func import Func
from xdsl.ir import Attribute, BlockArgument, Dialect, Region, SSAValue
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    OptPropertyDef,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure
from xdsl.utils.exceptions import VerifyException

from ktir.dialect.overlay.repair import extended, redefine, replace_text
from ktir.dialect.text.printer import KtirPrinter

RESERVED = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs")
"""Properties that the text of a function says in words of its own."""


@dataclass(frozen=True)
class _Parameter:
    """An argument or result: its name where it has one, its type, its attributes."""

    argument: Parser.Argument | None
    type: Attribute
    attributes: DictionaryAttr


def _parse_function(cls: type[func.FuncOp], parser: Parser) -> func.FuncOp:
    visibility = parser.parse_optional_visibility_keyword()
    name = parser.parse_symbol_name().data
    position = parser.pos
    parameters = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, lambda: _parse_parameter(parser))
    results: list[_Parameter] = []
    if parser.parse_optional_punctuation("->") is not None:
        results = _parse_results(parser)
    extra = parser.parse_optional_attr_dict_with_keyword(RESERVED)
    names = [parameter.argument for parameter in parameters if parameter.argument is not None]
    if names and len(names) != len(parameters):
        parser.raise_error("expected all arguments to have a name or none of them", position)
    body = parser.parse_optional_region(names)
    if body is None:
        body = Region()
    elif len(names) != len(parameters):
        parser.raise_error("the arguments of a function with a body need names", position)
    function = cls(
        name,
        ([parameter.type for parameter in parameters], [result.type for result in results]),
        body,
        visibility,
        arg_attrs=_attributes_of(parameters),
        res_attrs=_attributes_of(results),
    )
    for key, value in extra.data.items() if extra is not None else ():
        (function.properties if key == "no_inline" else function.attributes)[key] = value
    return function


def _parse_parameter(parser: Parser) -> _Parameter:
    argument = parser.parse_optional_argument()
    type = argument.type if argument is not None else parser.parse_type()
    attributes = parser.parse_optional_dictionary_attr_dict()
    location = parser.parse_optional_location()
    if argument is not None:
        argument.location = location
    return _Parameter(argument, type, DictionaryAttr(attributes))


def _parse_results(parser: Parser) -> list[_Parameter]:
    def result() -> _Parameter:
        type = parser.parse_type()
        return _Parameter(None, type, DictionaryAttr(parser.parse_optional_dictionary_attr_dict()))

    results = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, result)
    return results if results is not None else [_Parameter(None, parser.parse_type(), DictionaryAttr({}))]


def _attributes_of(parameters: Sequence[_Parameter]) -> ArrayAttr[DictionaryAttr] | None:
    """The attributes of all parameters, or None where none has any."""
    if not any(parameter.attributes.data for parameter in parameters):
        return None
    return ArrayAttr(parameter.attributes for parameter in parameters)


def _print_function(op: func.FuncOp, printer: Printer) -> None:
    if op.sym_visibility is not None:
        printer.print_string(f" {op.sym_visibility.data}")
    printer.print_string(" ")
    printer.print_symbol_name(op.sym_name)
    arguments: Sequence[SSAValue | Attribute] = op.function_type.inputs.data if op.is_declaration else op.args
    with printer.in_parens():
        printer.print_list(
            zip(arguments, _dictionaries(op.arg_attrs, len(arguments)), strict=True),
            lambda pair: _print_parameter(printer, *pair),
        )
    _print_results(op, printer)
    shown = dict(op.attributes)
    if (no_inline := op.properties.get("no_inline")) is not None:
        shown["no_inline"] = no_inline
    printer.print_op_attributes(shown, reserved_attr_names=RESERVED, print_keyword=True)
    if not op.is_declaration:
        printer.print_string(" ", indent=0)
        printer.print_region(op.body, print_entry_block_args=False, print_empty_block=False)


def _dictionaries(attributes: ArrayAttr[DictionaryAttr] | None, count: int) -> Sequence[DictionaryAttr]:
    return attributes.data if attributes is not None else (DictionaryAttr({}),) * count


def _print_parameter(printer: Printer, parameter: SSAValue | Attribute, attributes: DictionaryAttr) -> None:
    if isinstance(parameter, SSAValue):
        printer.print_ssa_value(parameter)
        printer.print_string(": ")
    printer.print_attribute(parameter.type if isinstance(parameter, SSAValue) else parameter)
    printer.print_op_attributes(attributes.data)
    if isinstance(printer, KtirPrinter) and isinstance(parameter, BlockArgument):
        printer.print_argument_location(parameter)


def _print_results(op: func.FuncOp, printer: Printer) -> None:
    results = op.function_type.outputs.data
    if not results:
        return
    attributes = _dictionaries(op.res_attrs, len(results))
    printer.print_string(" -> ")
    if len(results) == 1 and not attributes[0].data and not isinstance(results[0], FunctionType):
        printer.print_attribute(results[0])
        return
    with printer.in_parens():
        printer.print_list(zip(results, attributes, strict=True), lambda pair: _print_parameter(printer, *pair))


# ---------------------------------------------------------------------------------------------- functions as values


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A function as a value."""

    name = "func.constant"

    value = prop_def(FlatSymbolRefAttrConstr)
    result = result_def(FunctionType)

    traits = traits_def(Pure(), ConstantLike())

    assembly_format = "attr-dict $value `:` type($result)"


@irdl_op_definition
class CallIndirectOp(IRDLOperation):
    """Calls a function that is a value."""

    name = "func.call_indirect"

    callee = operand_def(FunctionType)
    callee_operands = var_operand_def()
    results_ = var_result_def()

    def verify_(self) -> None:
        type = self.callee.type
        if not isinstance(type, FunctionType):
            raise VerifyException(f"expected a function, but got {type}")
        given = [value.type for value in self.callee_operands], [value.type for value in self.results_]
        if given != (list(type.inputs.data), list(type.outputs.data)):
            raise VerifyException(f"operands and results do not match the type of the callee {type}")

    @classmethod
    def parse(cls, parser: Parser) -> CallIndirectOp:
        callee: UnresolvedOperand = parser.parse_unresolved_operand()
        position = parser.pos
        names = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_function_type()
        operands = parser.resolve_operands(names, type.inputs.data, position)
        function = parser.resolve_operand(callee, type)
        return cls.build(operands=[function, operands], result_types=[type.outputs.data], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.callee)
        printer.print_operands(self.callee_operands)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.callee.type)


def _repaired() -> Dialect:
    redefine(
        func.FuncOp,
        properties={
            "no_inline": OptPropertyDef(BaseAttr(UnitAttr)),
            "sym_visibility": OptPropertyDef(BaseAttr(StringAttr)),
        },
        verify=func.FuncOp.verify_,
    )
    replace_text(func.FuncOp, _parse_function, _print_function)
    return extended(Func, [ConstantOp, CallIndirectOp])


FUNC = _repaired()
