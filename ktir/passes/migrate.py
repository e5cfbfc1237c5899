"""``ktir-migrate``: old KTIR becomes new KTIR.

Most old spellings are gone once a text is read (rules M1 to M6, M12 to M14, M17), because the parser builds what they
mean. What is left is in the IR itself:

* M7, M8: ``spyre_memory_space`` becomes ``memory_space``, in attributes and in types;
* M9, M10: the memories ``L0`` and ``unspecified`` have no new name; they are refused, or an option says what they are;
* M15: a reduction whose result lost unit dimensions gets the type of its partials and a ``tensor.collapse_shape``;
* Q5: a memory view gets the coordinate set and the memory space that were taken for granted.

Operations keep their locations; new ones have that of the operation they serve. Migrating twice changes nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineSetAttr,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from ktir.dialect import ktdp
from ktir.dialect.locations import location_of
from ktir.errors import NotMigratable

Version = Literal["old", "new"]
"""The generation of the dialect that spells memory spaces: ``spyre_memory_space`` or ``memory_space``."""

Tensor = TensorType[Attribute]


@dataclass(frozen=True)
class MigratePass(ModulePass):
    """Turns old KTIR into new KTIR; refuses what no rule translates."""

    name = "ktir-migrate"

    l0_as_local: bool = False
    unspecified_as_global: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        NewSpelling(l0_as_local=self.l0_as_local, unspecified_as_global=self.unspecified_as_global).respell(op)
        for operation in list(op.walk()):
            if isinstance(operation, ktdp.ConstructMemoryViewOp):
                complete(operation)
            elif isinstance(operation, ktdp.InterTileReduceOp):
                keep_partial_types(operation)


def to_version(module: ModuleOp, version: Version) -> None:
    """Changes ``module`` so that it is printed in the words of that generation of the dialect."""
    if version == "old":
        OldSpelling().respell(module)
    else:
        MigratePass().apply(Context(), module)


# -------------------------------------------------------------------------------------------------------- memory spaces


@dataclass
class Spelling:
    """Replaces memory spaces wherever they stand: in attributes, and in types of values and of functions."""

    done: dict[Attribute, Attribute] = field(default_factory=dict[Attribute, Attribute])

    def respell(self, module: ModuleOp) -> None:
        for operation in module.walk():
            try:
                self._respell(operation)
            except NotMigratable as fault:
                fault.location = location_of(operation)
                raise

    def _respell(self, operation: Operation) -> None:
        for held in (operation.properties, operation.attributes):
            held |= {name: new for name, old in held.items() if (new := self.spelled(old)) is not old}
        blocks = (block for region in operation.regions for block in region.blocks)
        for value in (*operation.results, *(argument for block in blocks for argument in block.args)):
            if (new := self.spelled(value.type)) is not value.type:
                Rewriter.replace_value_with_new_type(value, new)

    def spelled(self, attribute: Attribute) -> Attribute:
        """``attribute`` in the words asked for; the same object where nothing changes."""
        if (known := self.done.get(attribute)) is None:
            known = self.done[attribute] = self._spelled(attribute)
        return attribute if known == attribute else known

    def _spelled(self, attribute: Attribute) -> Attribute:
        match attribute:
            case ktdp.MemorySpaceAttribute():
                return self.space(attribute)
            case ArrayAttr():
                return ArrayAttr([self.spelled(each) for each in attribute.data])
            case DictionaryAttr():
                return DictionaryAttr({name: self.spelled(each) for name, each in attribute.data.items()})
            case ParametrizedAttribute():
                parameters = [self.spelled(each) for each in attribute.parameters]
                same = all(new is old for new, old in zip(parameters, attribute.parameters, strict=True))
                return attribute if same else type(attribute).new(parameters)
            case _:
                return attribute

    def space(self, attribute: ktdp.MemorySpaceAttribute) -> Attribute:
        """What stands for one memory space."""
        return attribute


@dataclass
class OldSpelling(Spelling):
    """``spyre_memory_space`` for every memory space."""

    def space(self, attribute: ktdp.MemorySpaceAttribute) -> Attribute:
        if isinstance(attribute, ktdp.SpyreMemorySpaceAttr):
            return attribute
        return ktdp.SpyreMemorySpaceAttr.of(attribute.space)


@dataclass
class NewSpelling(Spelling):
    """``memory_space`` for every memory space that has a new name."""

    l0_as_local: bool = False
    unspecified_as_global: bool = False

    def space(self, attribute: ktdp.MemorySpaceAttribute) -> Attribute:
        device = attribute.device.data if isinstance(attribute, ktdp.SpyreMemorySpaceAttr) else None
        if device == "L0" and not self.l0_as_local:
            raise NotMigratable(
                "memory space 'L0' was removed from the dialect (rule M9)",
                remedy="give the view another memory, or take it for ct_local with ktir-migrate{l0-as-local=true}",
            )
        if device == "unspecified" and not self.unspecified_as_global:
            raise NotMigratable(
                "memory space 'unspecified' has no new name (rule M10)",
                remedy="name the memory, or take it for global with ktir-migrate{unspecified-as-global=true}",
            )
        return ktdp.MemorySpaceAttr.of(attribute.space)


# --------------------------------------------------------------------------------------------------------- memory views


def complete(view: ktdp.ConstructMemoryViewOp) -> None:
    """Rule Q5: writes out the memory space and the coordinate set of a view that leaves them out."""
    if view.memory_space is None:
        view.memory_space = ktdp.MemorySpaceAttr.of(view.space)
    if view.coordinate_set is None:
        view.coordinate_set = AffineSetAttr(view.owned_set())


# ----------------------------------------------------------------------------------------------------------- reductions


def keep_partial_types(reduce: ktdp.InterTileReduceOp) -> None:
    """Rule M15: results and identities of a reduction have the types of its partials; reshapes stand around it."""
    partials = cast(ktdp.TileFutureType, reduce.future.type).partial_types.data
    for position, partial in enumerate(partials):
        identity, result = reduce.identities[position], reduce.reduced[position]
        if identity.type != partial:
            chain = reshapes(identity, cast(Tensor, partial), reduce)
            Rewriter.insert_op(chain, InsertPoint.before(reduce))
            reduce.operands[1 + position] = chain[-1].results[0]
        if result.type != partial:
            _collapse_after(reduce, result, partial)


def _collapse_after(reduce: ktdp.InterTileReduceOp, result: SSAValue, partial: Attribute) -> None:
    collapsed = cast(Tensor, result.type)
    whole = Rewriter.replace_value_with_new_type(result, partial)
    chain = reshapes(whole, collapsed, reduce)
    Rewriter.insert_op(chain, InsertPoint.after(reduce))
    whole.replace_uses_with_if(chain[-1].results[0], lambda use: use.operation not in chain)


def reshapes(value: SSAValue, target: Tensor, at: Operation) -> list[Operation]:
    """Operations that give ``value`` the unit dimensions of ``target``; the last one has the result."""
    source = cast(Tensor, value.type)
    if not isa(source, Tensor) or not isa(target, Tensor) or _without_units(source) != _without_units(target):
        raise NotMigratable(
            f"a value of type {source} cannot become {target} by its unit dimensions alone (rule M15)",
            location=location_of(at),
            remedy="give the reduction the types of its partials",
        )
    plain = TensorType(source.get_element_type(), _without_units(source))
    chain: list[Operation] = []
    if source != plain:
        groups = _groups(source.get_shape())
        collapse = tensor.CollapseShapeOp.build(
            operands=[value], result_types=[plain], properties={"reassociation": groups}
        )
        collapse.location = at.location
        chain.append(collapse)
    if target != plain:
        chain.append(_expanded(chain[-1].results[0] if chain else value, target, at))
    return chain


def _expanded(value: SSAValue, target: Tensor, at: Operation) -> Operation:
    shape = target.get_shape()
    if DYNAMIC_INDEX in shape:
        raise NotMigratable(
            f"cannot give a value the dynamic type {target} (rule M15)",
            location=location_of(at),
            remedy="give the reduction the types of its partials",
        )
    expand = tensor.ExpandShapeOp(value, [], _groups(shape), DenseArrayBase.from_list(i64, shape), target)
    expand.location = at.location
    return expand


def _without_units(type: Tensor) -> tuple[int, ...]:
    return tuple(extent for extent in type.get_shape() if extent != 1)


def _groups(shape: Sequence[int]) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    """The dimensions of ``shape`` that each dimension without units stands for: units go with the one that follows."""
    groups: list[list[int]] = []
    open_group: list[int] = []
    for position, extent in enumerate(shape):
        open_group.append(position)
        if extent != 1:
            groups.append(open_group)
            open_group = []
    if groups:
        groups[-1] += open_group
    return ArrayAttr([ArrayAttr([IntegerAttr(position, i64) for position in group]) for group in groups])
