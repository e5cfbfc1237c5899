"""How a stock operation is redefined in place: its constraints, its properties, its verifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.ir import Attribute, Dialect, Operation, OpTrait, OpTraits
from xdsl.irdl import IRDLOperation, OpDef, OperandDef, PropertyDef, ResultDef
from xdsl.irdl.operations import get_accessors_from_op_def


def redefine(
    kind: type[IRDLOperation],
    *,
    operands: Mapping[str, OperandDef] | None = None,
    results: Mapping[str, ResultDef] | None = None,
    properties: Mapping[str, PropertyDef] | None = None,
    verify: Callable[[Any], None] | None = None,
    assembly_format: str | None = None,
) -> None:
    """Replaces the named definitions of ``kind``, adds ``properties``, and sets its text and what is verified beside.

    ``verify`` takes the place of the stock class's own rules; None leaves only the constraints.
    """
    definition: OpDef = kind.get_irdl_definition()
    definition.operands = [(name, (operands or {}).get(name, known)) for name, known in definition.operands]
    definition.results = [(name, (results or {}).get(name, known)) for name, known in definition.results]
    for name, added in (properties or {}).items():
        definition.properties[name] = added
        definition.accessor_names[name] = (name, "property")
    if assembly_format is not None:
        definition.assembly_format = assembly_format
    for name, accessor in get_accessors_from_op_def(definition, verify).items():
        setattr(kind, name, accessor)


def replace_text(
    kind: type[IRDLOperation],
    parse: Callable[..., IRDLOperation] | None = None,
    print: Callable[[Any, Any], None] | None = None,
) -> None:
    """Gives ``kind`` another reader, called with the class and the parser, and another printer."""
    kind.get_irdl_definition().assembly_format = None
    if parse is not None:
        kind.parse = classmethod(parse)  # pyright: ignore[reportAttributeAccessIssue]
    if print is not None:
        setattr(kind, "print", print)  # noqa: B010  the stock method names its parameters


def replace_traits(kind: type[IRDLOperation], change: Callable[[OpTrait], OpTrait]) -> None:
    """Passes each trait of ``kind`` through ``change``."""
    traits = OpTraits(lambda known=tuple(kind.traits): tuple(change(trait) for trait in known))
    kind.get_irdl_definition().traits = traits
    kind.traits = traits


def extended(
    dialect: Dialect, operations: Sequence[type[Operation]], attributes: Sequence[type[Attribute]] = ()
) -> Dialect:
    """``dialect`` with more operations and attributes."""
    interfaces = dialect._interfaces  # pyright: ignore[reportPrivateUsage]  there is no public list of them
    return Dialect(dialect.name, [*dialect.operations, *operations], [*dialect.attributes, *attributes], [*interfaces])
