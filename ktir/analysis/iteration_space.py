"""The iteration space of a kernel: which dimensions of its values are walked together, and how each may be walked.

Structured operations tie dimensions of their operands and results by indexing maps, views by what they regroup, folds
by their regions. What is tied is one *iteration dimension*; they are named ``d0``, ``d1``, .. in the order in which the
body first walks them. Neighbouring dimensions that always occur together, and lie so in memory, are one.

How each may be walked is the business of :mod:`ktir.analysis.dimension_kinds`.

Words. *load*: a value that is only a view of an operand. *store*: what becomes a result. Both know the axes
(:mod:`ktir.maths.access`) by which each of their dimensions is found in the buffer. A body whose dimensions do not fit
together, or whose views cannot be found in the buffers, has no iteration space (:class:`Unfit`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from ktir.analysis.dimension_kinds import Kind, Kinds, Names
from ktir.analysis.factors import Factor, Mismatch
from ktir.analysis.layout_rules import layouts_of
from ktir.analysis.tensor_views import VIEWS, Unfit, shape_of, view_axes
from ktir.analysis.ties import Dim, Ties
from ktir.dialect.ktg import FoldOp, GatherOp, KernelOp, YieldOp
from ktir.machine import Machine
from ktir.maths.access import Axis, regroup


@dataclass(frozen=True, slots=True)
class IterationDim:
    """A dimension of the space."""

    name: str
    extent: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class Load:
    """A view of operand number ``operand``: the axis of each of its dimensions, and the place of its first element."""

    value: SSAValue
    operand: int
    axes: Mapping[str, Axis]
    offset: int


@dataclass(frozen=True, slots=True)
class Store:
    """Result number ``result`` is made of ``value``: the axis of each dimension, and the place of its first element."""

    value: SSAValue
    result: int
    axes: Mapping[str, Axis]
    offset: int


@dataclass(frozen=True, slots=True)
class Table:
    """Operand number ``operand`` is gathered from: its row axis, and the axes of its columns by dimension."""

    operand: int
    rows: Axis
    columns: Mapping[str, Axis]


@dataclass(frozen=True, slots=True)
class IterationSpace:
    """What :func:`iteration_space` found.

    ``value_dims`` has, per dimension of each tensor of the body, the iteration dimensions it is a product of (outer
    first; none for one element); ``loop_dims`` the same per loop of each structured operation. ``folds`` are the
    operations that fold each group of fold dimensions, in order. ``indexed`` are the dimensions whose iteration number
    the body looks at, ``end`` is the operation that yields the results.
    """

    dims: tuple[IterationDim, ...]
    value_dims: Mapping[SSAValue, tuple[Names, ...]]
    loop_dims: Mapping[Operation, tuple[Names, ...]]
    loads: Mapping[SSAValue, Load]
    tables: Mapping[SSAValue, Table]
    stores: tuple[Store, ...]
    folds: Mapping[Names, tuple[Operation, ...]]
    indexed: frozenset[str]
    end: YieldOp

    def __getitem__(self, name: str) -> IterationDim:
        return next(dim for dim in self.dims if dim.name == name)

    def of_kind(self, kind: Kind) -> tuple[IterationDim, ...]:
        """The dimensions of one kind, in order."""
        return tuple(dim for dim in self.dims if dim.kind == kind)

    @property
    def made(self) -> list[SSAValue]:
        """The tensors that operations of the body compute, at any depth."""
        nested = [result for op in self.loop_dims for result in op.results]
        other = [value for value in self.value_dims if isinstance(value.owner, FoldOp | GatherOp)]
        return [*nested, *other]

    def names(self, value: SSAValue) -> Names:
        """All iteration dimensions of ``value``, each once, outer first."""
        return tuple(dict.fromkeys(name for names in self.value_dims[value] for name in names))

    def axes(self, name: str) -> Iterator[Axis]:
        """Every axis by which dimension ``name`` is loaded or stored."""
        for access in (*self.loads.values(), *self.stores):
            if name in access.axes:
                yield access.axes[name]
        yield from (table.columns[name] for table in self.tables.values() if name in table.columns)


def iteration_space(kernel: KernelOp, machine: Machine) -> IterationSpace:
    """The iteration space of ``kernel`` with the layouts it names, or the default ones; raises :class:`Unfit`."""
    return _Builder(kernel, machine).build()


def _axes(
    entries: ArrayAttr[Any] | None, values: Sequence[SSAValue], machine: Machine
) -> tuple[list[tuple[Axis, ...]], list[int]]:
    """The axes of each operand or result, and where in its buffer it begins."""
    types = [cast("TensorType[Attribute]", value.type) for value in values]
    found = [
        layout.axes(type.get_shape()) for layout, type in zip(layouts_of(entries, types, machine), types, strict=True)
    ]
    if any(each is None for each in found):
        raise Unfit("a part of a buffer that ends inside a digit of its layout")
    known = [each for each in found if each is not None]
    return [axes for axes, _ in known], [offset for _, offset in known]


class _Builder:
    def __init__(self, kernel: KernelOp, machine: Machine) -> None:
        self.kernel = kernel
        self.ties = Ties()
        self.operand_axes, self.operand_offsets = _axes(kernel.operand_layouts, kernel.operands, machine)
        self.result_axes, self.result_offsets = _axes(kernel.result_layouts, kernel.results, machine)
        self.yielded = cast("YieldOp", kernel.body.block.last_op)

    def build(self) -> IterationSpace:
        try:
            self.ties.read(self.kernel.body)
            for position, _ in enumerate(self.yielded.operands):
                self.ties.operand(self.yielded, position)
            self.ties.check_blocks()
        except Mismatch as fault:
            raise Unfit(str(fault)) from fault
        self.load_axes = {value: self._load_axes(value) for value in self._loaded_values()}
        for op in self.kernel.body.walk():
            if isinstance(op, GatherOp) and op.indices not in self.load_axes:
                raise Unfit("a gather by indices that no buffer holds")
        self.table_axes = [self._table_axes(value) for value in self.ties.tables]
        self.store_axes = [self._store_axes(position) for position in range(len(self.yielded.operands))]
        groups = self._groups()
        self.group_of = {factor: group for group in groups for factor in group}
        self.name_of = {group: f"d{number}" for number, group in enumerate(groups)}
        return self._space(groups)

    # -- loads and stores, by factor

    def _used_values(self) -> Iterator[SSAValue]:
        """What operations that compute, and the end of the body, use."""
        for op in self.kernel.body.block.ops:
            if not isinstance(op, VIEWS) or isinstance(op, YieldOp):
                yield from (value for value in op.operands if isinstance(value.type, TensorType))

    def _loaded_values(self) -> list[SSAValue]:
        found: dict[SSAValue, None] = {}
        for value in self._used_values():
            if value not in self.ties.tables and view_axes(value, self.operand_axes) is not None:
                found[value] = None
        return list(found)

    def _load_axes(self, value: SSAValue) -> tuple[int, dict[Factor, Axis], int]:
        found = view_axes(value, self.operand_axes)
        if found is None:
            raise Unfit("a view of a value that is no operand")
        operand, axes, offset = found
        return operand, self._by_factor(self.ties.value(value), axes), offset

    def _table_axes(self, value: SSAValue) -> dict[Factor, Axis]:
        found = view_axes(value, self.operand_axes)
        if found is None:
            raise Unfit("a gathered table that is no operand")
        return self._by_factor(self.ties.value(value)[1:], found[1][1:])

    def _store_axes(self, position: int) -> dict[Factor, Axis]:
        axes = [[axis] for axis in self.result_axes[position]]
        return self._by_factor(self.ties.operand(self.yielded, position), axes)

    def _by_factor(self, dims: Sequence[Dim], axes: Sequence[Sequence[Axis]]) -> dict[Factor, Axis]:
        result: dict[Factor, Axis] = {}
        for dim, parts in zip(dims, axes, strict=True):
            factors = self.ties.present(dim)
            found = regroup(parts, [self.ties.factors.extent(factor) for factor in factors])
            if found is None:
                raise Unfit("a view that the layout of its buffer cannot follow")
            result.update(zip(factors, found, strict=True))
        if len(result) != sum(len(self.ties.present(dim)) for dim in dims):
            raise Unfit("two dimensions of one value are the same")
        return result

    # -- joining factors that always occur together

    def _flat(self, dims: Iterable[Iterable[Factor]]) -> Dim:
        return tuple(factor for dim in dims for factor in self.ties.present(dim))

    def _sequences(self) -> Iterator[Dim]:
        """The factors of everything that is walked, in the order in which a value has them."""
        for op, loops in self.ties.loops.items():
            if len(set(self._flat(loops))) != len(self._flat(loops)):
                raise Unfit("two loops of one operation are the same")
            yield from (self._flat(self.ties.value(result)) for result in op.results)
        for op in self.kernel.body.walk():
            if isinstance(op, FoldOp | GatherOp):
                yield from (self._flat(self.ties.value(result)) for result in op.results)
        for value, (_, axes, _) in self.load_axes.items():
            yield tuple(factor for factor in self._flat(self.ties.value(value)) if axes[factor].walks)
        for position in range(len(self.yielded.operands)):
            yield self._flat(self.ties.operand(self.yielded, position))

    def _groups(self) -> list[Dim]:
        after: dict[Factor, set[Factor | None]] = {}
        before: dict[Factor, set[Factor | None]] = {}
        sequences = list(self._sequences())
        for sequence in sequences:
            if len(set(sequence)) != len(sequence):
                raise Unfit("two dimensions of one value are the same")
            neighbours = [None, *sequence, None]
            for position, factor in enumerate(sequence, start=1):
                before.setdefault(factor, set()).add(neighbours[position - 1])
                after.setdefault(factor, set()).add(neighbours[position + 1])
        groups: list[Dim] = []
        for factor in self._in_order(after):
            if any(factor in group for group in groups):
                continue
            group = self._chain(factor, after, before)
            groups.append(group)
        return groups

    def _in_order(self, walked: Mapping[Factor, object]) -> list[Factor]:
        """Walked factors by first appearance: loops of operations first, then what is left."""
        order: dict[Factor, None] = {}
        for op in self.kernel.body.walk():
            for dim in self.ties.loops.get(op, ()):
                order.update(dict.fromkeys(self.ties.present(dim)))
        order.update(dict.fromkeys(walked))
        return list(order)

    def _chain(
        self,
        factor: Factor,
        after: Mapping[Factor, set[Factor | None]],
        before: Mapping[Factor, set[Factor | None]],
    ) -> Dim:
        group = (factor,)
        while (preceding := self._only(before.get(group[0]))) is not None and self._joins(preceding, group, after):
            group = (preceding, *group)
        while (following := self._only(after.get(group[-1]))) is not None:
            if self._only(before.get(following)) != group[-1] or not self._may_join((*group, following)):
                break
            group = (*group, following)
        return group

    def _joins(self, preceding: Factor, group: Dim, after: Mapping[Factor, set[Factor | None]]) -> bool:
        return self._only(after.get(preceding)) == group[0] and self._may_join((preceding, *group))

    @staticmethod
    def _only(neighbours: set[Factor | None] | None) -> Factor | None:
        return next(iter(neighbours)) if neighbours is not None and len(neighbours) == 1 else None

    def _may_join(self, group: Dim) -> bool:
        special = {factor for dim in self.ties.indexed for factor in self.ties.present(dim)}
        special |= {factor for folded in self.ties.blocks.values() for factor in self.ties.present([folded])}
        if special & set(group):
            return False
        accesses = [axes for _, axes, _ in self.load_axes.values()] + self.store_axes + self.table_axes
        for axes in accesses:
            parts = [axes[factor] for factor in group if factor in axes]
            if parts and (len(parts) != len(group) or regroup(parts, [prod(part.extent for part in parts)]) is None):
                return False
        sticks = any(len(axes[group[-1]].walks) > 1 or axes[group[-1]].padded for axes in accesses if group[-1] in axes)
        return not sticks or self._ever_one_dimension(group[-2:])

    def _ever_one_dimension(self, pair: Dim) -> bool:
        return any(set(pair) <= set(self.ties.present(dim)) for dims in list(self.ties.values.values()) for dim in dims)

    # -- putting it together

    def _names(self, dims: Iterable[Iterable[Factor]]) -> tuple[Names, ...]:
        return tuple(
            tuple(dict.fromkeys(self.name_of[self.group_of[f]] for f in self.ties.present(dim) if f in self.group_of))
            for dim in dims
        )

    def _by_name(self, axes: Mapping[Factor, Axis]) -> dict[str, Axis]:
        result: dict[str, Axis] = {}
        for factor in axes:
            group = self.group_of.get(factor)
            if group is None or factor != group[0]:
                continue
            joined = regroup([axes[each] for each in group], [prod(axes[each].extent for each in group)])
            assert joined is not None, "groups are joined only where every access follows"
            result[self.name_of[group]] = joined[0]
        return result

    def _space(self, groups: Sequence[Dim]) -> IterationSpace:
        value_dims = {
            value: self._names(dims) for value, dims in self.ties.values.items() if isinstance(value, SSAValue)
        }
        loop_dims = {op: self._names(loops) for op, loops in self.ties.loops.items()}
        stores = tuple(
            Store(value, position, self._by_name(self.store_axes[position]), self.result_offsets[position])
            for position, value in enumerate(self.yielded.operands)
        )
        for position, value in enumerate(self.yielded.operands):
            value_dims.setdefault(value, self._names(self.ties.operand(self.yielded, position)))
        kinds = Kinds(self.kernel, value_dims, loop_dims)
        dims = tuple(
            IterationDim(
                name := self.name_of[group],
                prod(self.ties.factors.extent(factor) for factor in group),
                kinds.kind(name),
            )
            for group in groups
        )
        loads = {
            value: Load(value, operand, self._by_name(axes), self.operand_offsets[operand] + offset)
            for value, (operand, axes, offset) in self.load_axes.items()
        }
        indexed = frozenset(name for names in self._names(self.ties.indexed) for name in names)
        tables = {value: self._table(value) for value in self.ties.tables}
        return IterationSpace(
            dims,
            value_dims,
            loop_dims,
            loads,
            tables,
            stores,
            kinds.folds([dim.name for dim in dims]),
            indexed,
            self.yielded,
        )

    def _table(self, value: SSAValue) -> Table:
        found = view_axes(value, self.operand_axes)
        if found is None or found[2] != 0:
            raise Unfit("a gathered table that is no operand")
        rows = regroup(found[1][0], [shape_of(value)[0]])
        if rows is None or len(rows[0].walks) != 1:
            raise Unfit("a gathered table whose rows do not lie at a constant distance")
        columns = self._by_factor(self.ties.value(value)[1:], found[1][1:])
        return Table(found[0], rows[0], self._by_name(columns))
