"""Operations built and verified by their definitions, without detours.

xDSL sorts operands, results, regions and successors into the groups of a definition each time an operation is built or
verified, though most operations have one value in each group. For those the short way is taken here; every other
operation, and everything that is wrong, is left to xDSL, so that what is accepted and what is said is the same.
"""

# What is replaced here is shared by all of xDSL's operations.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import BlockArgument, Operation, OpResult, OpTrait, Region, SSAValue
from xdsl.irdl import OpDef, OptAttributeDef, OptPropertyDef, VarIRConstruct, operations
from xdsl.irdl.constraints import VerificationContext
from xdsl.traits import HasParent, IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

TRAITS = "_traits_in_order"
"""The attribute of a definition that keeps its traits, and the same in the order in which they are verified."""

SHAPE = "_shape"
"""The attribute of a definition that keeps its :class:`Shape`."""

VALUES = (OpResult, BlockArgument)
"""The classes of values; asking for them is quicker than for their abstract base."""


@dataclass(frozen=True)
class Shape:
    """How many values each group of a definition takes: one, at most one, or any number.

    ``has_sizes`` says that the sizes of the groups of operands are a property; ``is_unusual`` that more than that has
    to be written down.
    """

    operands: tuple[int | None, ...]
    results: tuple[int | None, ...]
    has_sizes: bool
    is_unusual: bool

    @property
    def is_plain(self) -> bool:
        """Whether each group of operands and results holds one value."""
        return not self.has_sizes and not self.is_unusual and {*self.operands, *self.results} <= {1}


def shape_of(definition: OpDef) -> Shape:
    known: Shape | None = definition.__dict__.get(SHAPE)
    if known is None:
        sized = operations.AttrSizedOperandSegments(as_property=True)
        known = definition.__dict__[SHAPE] = Shape(
            tuple(_most(group) for _, group in definition.operands),
            tuple(_most(group) for _, group in definition.results),
            sized in definition.options,
            any(option != sized for option in definition.options) or bool(definition.successors),
        )
    return known


def _most(group: Any) -> int | None:
    """How many values a group takes; 0 stands for at most one, None for any number."""
    if isinstance(group, operations.OptionalDef):
        return 0
    return None if isinstance(group, operations.VariadicDef) else 1


@cache
def sizes_attribute(sizes: tuple[int, ...]) -> DenseArrayBase[Any]:
    return DenseArrayBase.from_list(i32, sizes)


def quick_init(stock: Callable[..., None]) -> Callable[..., None]:
    """``irdl_op_init`` for operations that are given values, types and whole regions."""

    def init(
        self: Operation,
        definition: OpDef,
        *,
        operands: Any,
        result_types: Any,
        properties: Any,
        attributes: Any,
        successors: Any,
        regions: Any,
    ) -> None:
        shape = shape_of(definition)
        values, types = _flattened(operands, shape.operands, VALUES), _flattened(result_types, shape.results, ())
        if (
            values is None
            or types is None
            or shape.is_unusual
            or successors
            or len(regions) != len(definition.regions)
            or not all(type(region) is Region for region in regions)
        ):
            stock(
                self,
                definition,
                operands=operands,
                result_types=result_types,
                properties=properties,
                attributes=attributes,
                successors=successors,
                regions=regions,
            )
            return
        held = {name: value for name, value in properties.items() if value is not None}
        if shape.has_sizes:
            held[operations.AttrSizedOperandSegments.attribute_name] = sizes_attribute(tuple(values[1]))
        Operation.__init__(
            self,
            operands=values[0],
            result_types=types[0],
            properties=held,
            attributes={name: value for name, value in attributes.items() if value is not None},
            regions=regions,
        )

    return init


def _flattened(
    given: list[Any], groups: tuple[int | None, ...], kinds: tuple[type, ...]
) -> tuple[list[Any], list[int]] | None:
    """All that is given for ``groups``, and how much for each; None for what only xDSL can make sense of.

    Items are of one of the classes ``kinds``, or where there are none whatever is no sequence.
    """
    if len(given) != len(groups):
        return None
    flat: list[Any] = []
    sizes: list[int] = []
    for item, most in zip(given, groups, strict=True):
        if type(item) in kinds if kinds else _is_one(item):
            flat.append(item)
            sizes.append(1)
        elif (
            type(item) in (list, tuple)
            and (most is None or len(item) == 1)
            and (not kinds or all(type(each) in kinds for each in item))
        ):
            flat += item
            sizes.append(len(item))
        elif item is None and most == 0:
            sizes.append(0)
        else:
            return None
    return flat, sizes


def _is_one(item: object) -> bool:
    return item is not None and not isinstance(item, Sequence)


def quick_verify(stock: Callable[[OpDef, Operation], None]) -> Callable[[OpDef, Operation], None]:
    """``OpDef.verify``; what does not hold is said by ``stock``."""

    def verify(self: OpDef, op: Operation) -> None:
        context = VerificationContext()
        try:
            _verify_values(self, op, context)
            if op.regions or self.regions:
                operations.irdl_op_verify_regions(op, self, context)
            if op.successors or self.successors:
                operations.verify_variadic_size(op, self, VarIRConstruct.SUCCESSOR)
            _verify_named(self.properties, op.properties, OptPropertyDef, context)
            if len(op.properties) > len(self.properties) or not op.properties.keys() <= self.properties.keys():
                raise VerifyException("a property that is not defined")
            _verify_named(self.attributes, op.attributes, OptAttributeDef, context)
        except VerifyException:
            stock(self, op)
            return
        for trait in traits_in_order(self):
            trait.verify(op)

    return verify


def traits_in_order(definition: OpDef) -> list[OpTrait]:
    """The traits, the one about the operation around first; a set keeps them in no order."""
    traits, known = definition.traits, definition.__dict__.get(TRAITS)
    if known is None or known[0] is not traits:
        in_order = sorted(traits, key=lambda trait: (not isinstance(trait, HasParent), type(trait).__name__))
        known = definition.__dict__[TRAITS] = (traits, in_order)
    return known[1]


def _verify_values(definition: OpDef, op: Operation, context: VerificationContext) -> None:
    if not shape_of(definition).is_plain:
        operations.irdl_op_verify_arg_list(op, definition, VarIRConstruct.OPERAND, context)
        operations.irdl_op_verify_arg_list(op, definition, VarIRConstruct.RESULT, context)
        return
    for values, groups in ((op._operands, definition.operands), (op.results, definition.results)):
        if len(values) != len(groups):
            raise VerifyException("another number of values")
        for value, (_, group) in zip(values, groups, strict=True):
            group.constr.verify((value.type,), context)


def _verify_named(groups: Any, given: Any, optional: type, context: VerificationContext) -> None:
    for name, group in groups.items():
        if (value := given.get(name)) is not None:
            group.constr.verify(value, context)
        elif not isinstance(group, optional):
            raise VerifyException("something is missing")


def quick_isolation(stock: Callable[[IsolatedFromAbove, Operation], None]) -> Callable[[Any, Operation], None]:
    """Whether all that is used inside is defined inside; what is not is said by ``stock``."""

    def verify(self: IsolatedFromAbove, op: Operation) -> None:
        inside: set[SSAValue] = set()
        used: list[SSAValue] = []
        _collect(op, inside, used)
        if not inside.issuperset(used):
            stock(self, op)

    return verify


def _collect(op: Operation, defined: set[SSAValue], used: list[SSAValue]) -> None:
    for region in op.regions:
        for block in region.blocks:
            defined.update(block.args)
            for nested in block.ops:
                defined.update(nested.results)
                used += nested._operands
                if nested.regions and not nested.has_trait(IsolatedFromAbove, value_if_unregistered=False):
                    _collect(nested, defined, used)


def quick_groups(stock: Callable[..., Any]) -> Callable[..., Any]:
    """The values of a group whose size an attribute says; anything but plain sizes is left to ``stock``."""

    def get(self: Any, op: Operation | None, kind: type[Operation] | None = None) -> Any:
        if op is None:
            return stock(self, op, kind)
        sizes: Any = self.option.container(op).get(self.option.attribute_name)
        if type(sizes) is not DenseArrayBase or sizes.elt_type != i32:
            return stock(self, op, kind)
        values = operations.get_op_constructs(op, self.construct)
        return self.index(struct.unpack(f"<{len(sizes.data.data) // 4}i", sizes.data.data), values)

    return get


def shorten_detours() -> None:
    """Replaces the functions, for all of xDSL."""
    shared: Any = operations
    shared.irdl_op_init = quick_init(operations.irdl_op_init)
    definitions: Any = OpDef
    definitions.verify = quick_verify(OpDef.verify)
    accessor: Any = operations.BaseAttrAccessor
    accessor.__get__ = quick_groups(accessor.__get__)
    trait: Any = IsolatedFromAbove
    trait.verify = quick_isolation(IsolatedFromAbove.verify)
