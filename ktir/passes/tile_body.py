"""The body of a KTIR kernel: loads, the kernel's structured operations with the sizes of a tile, and stores.

A tile value knows the iteration dimension of each of its dimensions, so permuting, splitting, joining and broadcasting
views inside a kernel cost nothing: whoever uses the value finds the dimensions by name. Only loads and stores see
buffers, through the axes of the iteration space.

A tile that does not end with a stick is loaded in whole sticks and cut right after the load, and filled up with zeros
right before the store; all computing is on exact logical shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, cast

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from ktir.analysis.dimension_kinds import Names
from ktir.analysis.iteration_space import Load, Store, Table
from ktir.analysis.schedule import Schedule
from ktir.analysis.tensor_views import is_free, view_source
from ktir.dialect.ktdp import (
    AccessTileType,
    ConstructAccessTileOp,
    ConstructIndirectAccessTileOp,
    ConstructMemoryViewOp,
    LoadOp,
    StoreOp,
)
from ktir.dialect.ktg import NOT_FOLDED, FoldOp, GatherOp, YieldOp
from ktir.dialect.locations import location_of
from ktir.errors import NotLowerable
from ktir.maths import affine
from ktir.maths.access import Axis, Cover, Digit
from ktir.maths.sets import box_set, identity_order
from ktir.passes.contraction import emit_contraction, is_contraction
from ktir.passes.emitter import IndexEmitter, Iterations, Scope, TileValue
from ktir.passes.tensors import collapse, expand, tensor_type, transpose

UNIT = "unit"
"""The dimension of one iteration that every tile gets where some would have no dimension at all."""


@dataclass(frozen=True, slots=True)
class Buffers:
    """The element pointers of a kernel's operands and results."""

    operands: Sequence[SSAValue]
    results: Sequence[SSAValue]


class TileBody:
    """Emits the values of one kernel, each on demand and once for each scope that needs it."""

    def __init__(self, schedule: Schedule, buffers: Buffers, root: Scope, index: IndexEmitter) -> None:
        self.schedule, self.space, self.buffers = schedule, schedule.space, buffers
        self.root, self.index = root, index
        self.dropped = schedule.dropped()
        self.views: dict[tuple[SSAValue | int, Names], SSAValue] = {}
        self.constants: dict[Attribute, SSAValue] = {}
        self.unit = self._needs_unit()

    # ------------------------------------------------------------------------------------------------------ dimensions

    def _needs_unit(self) -> bool:
        walked = [result for op in self.space.loop_dims for result in op.results]
        return any(not self._shown(self.space.names(value)) for value in (*walked, *self.space.loads))

    def _shown(self, names: Sequence[str]) -> Names:
        return tuple(name for name in dict.fromkeys(names) if name not in self.dropped)

    def kept(self, names: Sequence[str]) -> Names:
        """The dimensions that a tile with these iteration dimensions has."""
        return (UNIT, *self._shown(names)) if self.unit else self._shown(names)

    # ---------------------------------------------------------------------------------------------------------- values

    def value(self, value: SSAValue, scope: Scope) -> TileValue:
        """The tile of ``value`` that ``scope`` stands for."""
        if (known := scope.known(value)) is not None:
            return known
        if value in self.space.loads:
            return self._remember(value, self._load(self.space.loads[value], scope), scope)
        if (source := view_source(value)) is not None:
            return self.value(source, scope)
        op = value.owner
        if not isinstance(op, Operation):
            raise NotLowerable("a value of the kernel has no operation that makes it")
        with self.root.origin.of(op):
            if isinstance(op, GatherOp):
                return self._remember(value, self._gather(op, scope), scope)
            self._emit_op(op, scope)
        known = scope.known(value)
        if known is None:
            raise NotLowerable(f"{op.name} has no lowering to tiles", location=location_of(op))
        return known

    def _remember(self, value: SSAValue, tile: TileValue, scope: Scope) -> TileValue:
        home = next(each for each in scope.chain() if each.depth == tile.depth)
        home.tiles[value] = tile
        return tile

    def _emit_op(self, op: Operation, scope: Scope) -> None:
        for names, reducers in self.space.folds.items():
            if op in reducers:
                self._fold(names, reducers, scope)
                return
        if isinstance(op, FoldOp):
            self._fold(self._folded_names(op), (op,), scope)
        elif isinstance(op, LinalgStructuredOperation):
            for result, tile in zip(op.results, self._structured(op, scope, None), strict=True):
                self._remember(result, tile, scope)

    def _folded_names(self, op: FoldOp) -> Names:
        pairs = zip(op.ins, op.folded, strict=True)
        return tuple(
            dict.fromkeys(n for value, dim in pairs if dim != NOT_FOLDED for n in self.space.value_dims[value][dim])
        )

    def operand(self, op: Operation, position: int, names: Sequence[str], scope: Scope) -> TileValue:
        """The tile of an operand; one that is made of nothing is made with dimensions ``names``."""
        value = op.operands[position]
        return self._free(value, self.kept(names), scope) if is_free(value) else self.value(value, scope)

    def _free(self, value: SSAValue, names: Names, scope: Scope) -> TileValue:
        home = scope.home(names)
        element = cast("TensorType[Attribute]", value.type).element_type
        empty = home.emit(tensor.EmptyOp([], tensor_type(element, home.shape(names))))
        filling = self._filling(value, home)
        if filling is None:
            return TileValue(empty, names, home.depth)
        return TileValue(home.emit(linalg.FillOp([filling], [empty], [empty.type])), names, home.depth)

    def _filling(self, value: SSAValue, scope: Scope) -> SSAValue | None:
        """The scalar that a free tensor holds everywhere; None where it holds nothing yet."""
        match value.owner:
            case linalg.FillOp() as op:
                return self.scalar(op.inputs[0])
            case tensor.SplatOp() as op:
                return self.scalar(op.input)
            case arith.ConstantOp() as op:
                return self._splat(op)
            case _:
                return None

    def _splat(self, op: arith.ConstantOp) -> SSAValue:
        element = cast("TensorType[Attribute]", op.result.type).element_type
        value = cast("int | float", cast("DenseIntOrFPElementsAttr", op.value).get_values()[0])
        return self._constant(number(value, element))

    def scalar(self, value: SSAValue) -> SSAValue:
        """A scalar constant of the kernel, in the function."""
        op = value.owner
        if not isinstance(op, arith.ConstantOp):
            raise NotLowerable("a scalar of a kernel must be a constant", remedy="pass it as a tensor of no dimensions")
        return self._constant(cast("Number", op.value))

    def _constant(self, value: Number) -> SSAValue:
        if value not in self.constants:
            self.constants[value] = self.index.at_top(arith.ConstantOp(value))
        return self.constants[value]

    # ------------------------------------------------------------------------------------------- structured operations

    def _structured(
        self, op: LinalgStructuredOperation, scope: Scope, carried: Sequence[TileValue] | None
    ) -> list[TileValue]:
        """Emit ``op`` for a tile; ``carried`` replaces what it accumulates into."""
        loops = self.space.loop_dims[op]
        maps = [attribute.data for attribute in op.get_indexing_maps()]
        names = [self._operand_names(map, loops) for map in maps]
        inputs = [self.operand(op, position, names[position], scope) for position in range(len(op.inputs))]
        walked = self.kept([name for loop in loops for name in loop])
        depth = max([scope.home(walked).depth, *(tile.depth for tile in (*inputs, *(carried or ())))])
        first = len(op.inputs)
        outputs = list(carried) if carried is not None else []
        if carried is None:
            outputs = [self._initial(op, first + at, names[first + at], scope) for at in range(len(op.outputs))]
            depth = max([depth, *(tile.depth for tile in outputs)])
        home = scope.home((), depth)
        if is_contraction(op) and (product := emit_contraction(inputs, outputs[0], home)) is not None:
            return [product]
        return self._generic(op, walked, inputs, outputs, home)

    @staticmethod
    def _operand_names(map: AffineMap, loops: Sequence[Names]) -> list[str]:
        dims = [result.position for result in map.results if isinstance(result, AffineDimExpr)]
        return [name for dim in dims for name in loops[dim]]

    def _initial(self, op: LinalgStructuredOperation, position: int, names: Sequence[str], scope: Scope) -> TileValue:
        """What an output starts from: nothing at all where the body does not look at it."""
        kept = self.kept(names)
        if next(iter(op.body.block.args[position].uses), None) is not None:
            return self.arranged(self.operand(op, position, names, scope), kept, scope)
        element = cast("TensorType[Attribute]", op.operands[position].type).element_type
        home = scope.home(kept)
        empty = home.emit(tensor.EmptyOp([], tensor_type(element, home.shape(kept))))
        return TileValue(empty, kept, home.depth)

    def _generic(
        self,
        op: LinalgStructuredOperation,
        walked: Sequence[str],
        inputs: Sequence[TileValue],
        outputs: Sequence[TileValue],
        home: Scope,
    ) -> list[TileValue]:
        order = list(dict.fromkeys(walked))
        reduced = {name for kind, names in self._iterators(op) if kind is IteratorType.REDUCTION for name in names}
        maps = [
            AffineMapAttr(AffineMap(len(order), 0, tuple(AffineDimExpr(order.index(name)) for name in tile.names)))
            for tile in (*inputs, *outputs)
        ]
        iterators = [IteratorTypeAttr.reduction() if n in reduced else IteratorTypeAttr.parallel() for n in order]
        emitted = linalg.GenericOp(
            [tile.tensor for tile in inputs],
            [tile.tensor for tile in outputs],
            self._body(op, order, home),
            maps,
            iterators,
            [tile.tensor.type for tile in outputs],
        )
        home.place(emitted)
        return [
            TileValue(result, tile.names, home.depth) for result, tile in zip(emitted.results, outputs, strict=True)
        ]

    def _iterators(self, op: LinalgStructuredOperation) -> list[tuple[IteratorType, Names]]:
        kinds = [kind.data for kind in op.get_iterator_types()]
        return list(zip(kinds, self.space.loop_dims[op], strict=True))

    def _body(self, op: LinalgStructuredOperation, order: Sequence[str], home: Scope) -> Region:
        """The scalar body, with ``linalg.index`` counted from the start of the dimension and not of the tile."""
        region = Region(Block(arg_types=[argument.type for argument in op.body.block.args]))
        mapping: dict[SSAValue, SSAValue] = dict(zip(op.body.block.args, region.block.args, strict=True))
        for inner in op.body.block.ops:
            for operand in inner.operands:
                if operand not in mapping:
                    mapping[operand] = self.scalar(operand)
            if isinstance(inner, linalg.IndexOp):
                mapping[inner.results[0]] = self._index(op, inner, order, home, region.block)
            else:
                region.block.add_op(inner.clone(mapping))
        return region

    def _index(
        self, op: LinalgStructuredOperation, inner: linalg.IndexOp, order: Sequence[str], home: Scope, block: Block
    ) -> SSAValue:
        names = self.space.loop_dims[op][inner.dim.value.data]
        if not names:
            return self.index.constant(0)
        iterations = home.iterations(names[0])
        first = self._first(iterations, home)
        if names[0] not in order:
            return first
        local = linalg.IndexOp(order.index(names[0]))
        block.add_op(local)
        if iterations.number is None and iterations.first == 0:
            return local.results[0]
        moved = arith.AddiOp(local.results[0], first)
        block.add_op(moved)
        return moved.result

    def _first(self, iterations: Iterations, home: Scope) -> SSAValue:
        if iterations.number is None:
            return self.index.constant(iterations.first)
        first = iterations.number
        if iterations.tile != 1:
            first = home.emit(arith.MuliOp(first, self.index.constant(iterations.tile)))
        return first if iterations.first == 0 else home.emit(arith.AddiOp(first, self.index.constant(iterations.first)))

    # ----------------------------------------------------------------------------------------------------------- folds

    def _fold(self, names: Names, reducers: Sequence[Operation], scope: Scope) -> None:
        """Emit the loop over ``names`` in which all of ``reducers`` accumulate."""
        outer = [name for op in reducers for name in self._walked(op) if name not in names]
        home = scope.home(outer)
        states = [state for op in reducers for state in self._initial_states(op, home)]
        counts = [len(self._initial_types(op)) for op in reducers]

        def step(inner: Scope, carried: Sequence[TileValue]) -> list[TileValue]:
            results: list[TileValue] = []
            rest = list(carried)
            for op, count in zip(reducers, counts, strict=True):
                results += self._step(op, inner, rest[:count])
                rest = rest[count:]
            return [self.arranged(tile, state.names, inner) for tile, state in zip(results, carried, strict=True)]

        finals = self._fold_nest(names, home, states, step)
        for op, count in zip(reducers, counts, strict=True):
            for result, tile in zip(op.results, self._finished(op, home, finals[:count]), strict=True):
                home.tiles[result] = tile
            finals = finals[count:]

    def _walked(self, op: Operation) -> list[str]:
        if isinstance(op, FoldOp):
            values = [*op.ins, *op.results]
            return [name for value in values for name in self.space.names(value)]
        return [name for loop in self.space.loop_dims[op] for name in loop]

    def _initial_types(self, op: Operation) -> Sequence[Attribute]:
        return op.state_types if isinstance(op, FoldOp) else op.result_types

    def _initial_states(self, op: Operation, home: Scope) -> list[TileValue]:
        if isinstance(op, FoldOp):
            last = cast("YieldOp", op.init.block.last_op)
            arguments = op.step.block.args[len(op.folded) :]
            return [self._named(last, position, argument, home) for position, argument in enumerate(arguments)]
        structured = cast("LinalgStructuredOperation", op)
        first, maps = len(structured.inputs), [attribute.data for attribute in structured.get_indexing_maps()]
        names = [self._operand_names(map, self.space.loop_dims[op]) for map in maps[first:]]
        return [
            self.arranged(self.operand(op, first + at, each, home), self.kept(each), home)
            for at, each in enumerate(names)
        ]

    def _named(self, op: Operation, position: int, like: SSAValue, scope: Scope) -> TileValue:
        """The tile of an operand with the dimensions of ``like``, in their order."""
        names = self.space.names(like)
        return self.arranged(self.operand(op, position, names, scope), self.kept(names), scope)

    def _step(self, op: Operation, scope: Scope, carried: Sequence[TileValue]) -> list[TileValue]:
        if not isinstance(op, FoldOp):
            return self._structured(cast("LinalgStructuredOperation", op), scope, carried)
        blocks = op.step.block.args[: len(op.folded)]
        for position, argument in enumerate(blocks):
            scope.tiles[argument] = self.operand(op, position, self.space.names(argument), scope)
        states = op.step.block.args[len(op.folded) :]
        scope.tiles.update(zip(states, carried, strict=True))
        return self._yielded(op.step, states, scope)

    def _yielded(self, region: Region, like: Sequence[SSAValue], scope: Scope) -> list[TileValue]:
        last = cast("YieldOp", region.block.last_op)
        return [self._named(last, position, value, scope) for position, value in enumerate(like)]

    def _finished(self, op: Operation, home: Scope, finals: Sequence[TileValue]) -> list[TileValue]:
        if not isinstance(op, FoldOp):
            return list(finals)
        home.tiles.update(zip(op.finish.block.args, finals, strict=True))
        return self._yielded(op.finish, op.results, home)

    def _fold_nest(
        self,
        names: Names,
        scope: Scope,
        carried: list[TileValue],
        step: Callable[[Scope, Sequence[TileValue]], list[TileValue]],
    ) -> list[TileValue]:
        if not names:
            return [self._moved(tile, scope) for tile in step(scope, carried)]
        name, rest = names[0], names[1:]
        extent, tile = self.space[name].extent, self.schedule.tiles[name]
        whole, ragged = divmod(extent, tile)
        if whole > 1:
            carried = self._fold_loop(
                name, whole, scope, carried, lambda inner, c: self._fold_nest(rest, inner, c, step)
            )
        elif whole == 1:
            inner = scope.inner({name: Iterations(tile, tile)})
            carried = self._back(self._fold_nest(rest, inner, carried, step), scope)
        if ragged:
            inner = scope.inner({name: Iterations(ragged, tile, first=whole * tile)})
            carried = self._back(self._fold_nest(rest, inner, carried, step), scope)
        return carried

    def _moved(self, tile: TileValue, scope: Scope) -> TileValue:
        return TileValue(tile.tensor, tile.names, scope.depth)

    def _back(self, tiles: Sequence[TileValue], scope: Scope) -> list[TileValue]:
        return [self._moved(tile, scope) for tile in tiles]

    def _fold_loop(
        self,
        name: str,
        count: int,
        scope: Scope,
        carried: list[TileValue],
        body: Callable[[Scope, list[TileValue]], list[TileValue]],
    ) -> list[TileValue]:
        tile = self.schedule.tiles[name]
        types = [each.tensor.type for each in carried]
        block = Block(arg_types=[IndexType(), *types])
        lower, upper, one = self.index.constant(0), self.index.constant(count), self.index.constant(1)
        loop = scf.ForOp(lower, upper, one, [each.tensor for each in carried], Region(block))
        with scope.around(loop):
            inner = scope.inner({name: Iterations(tile, tile, number=block.args[0])}, block)
            pairs = zip(block.args[1:], carried, strict=True)
            results = body(inner, [TileValue(argument, each.names, inner.depth) for argument, each in pairs])
            inner.place(scf.YieldOp(*(each.tensor for each in results)))
        pairs = zip(loop.results, carried, strict=True)
        return [TileValue(result, each.names, scope.depth) for result, each in pairs]

    # ----------------------------------------------------------------------------------------------------------- loads

    def _load(self, load: Load, scope: Scope) -> TileValue:
        real = [name for name in self.space.names(load.value) if load.axes[name].walks]
        names = stick_last(real, load.axes)
        home = scope.home(names)
        view = self._view(load.value, self._pointer(load), names, load.axes, load.value.type)
        covers = [self._cover(load.axes[name], home.iterations(name)) for name in names]
        tile = home.emit(self._access(view, names, covers, home))
        loaded = home.emit(LoadOp(tile, self._element(load.value)))
        return TileValue(self._cut(loaded, names, covers, home), self.kept(names), home.depth)

    def _element(self, value: SSAValue) -> Attribute:
        return cast("TensorType[Attribute]", value.type).element_type

    def _pointer(self, load: Load) -> SSAValue:
        pointer = self.buffers.operands[load.operand]
        return self.index.add(pointer, load.offset) if load.offset else pointer

    def _view(
        self, key: SSAValue | int, pointer: SSAValue, names: Sequence[str], axes: Mapping[str, Axis], type: Attribute
    ) -> SSAValue:
        """The memory view with one dimension per digit; one for each buffer and order of dimensions."""
        known = self.views.get((key, tuple(names)))
        if known is not None:
            return known
        walks = [walk for name in names for walk in axes[name].walks]
        sizes, strides = [walk.size for walk in walks] or [1], [walk.stride for walk in walks] or [1]
        element = cast("TensorType[Attribute]", type).element_type
        view = self.root.emit(ConstructMemoryViewOp.build_static(pointer, sizes, strides, element))
        self.views[(key, tuple(names))] = view
        return view

    @staticmethod
    def _cover(axis: Axis, iterations: Iterations) -> Cover:
        cover = axis.cover(iterations.tile, iterations.length)
        assert cover is not None, "schedules are checked for covers"
        return cover

    def _access(
        self, view: SSAValue, names: Sequence[str], covers: Sequence[Cover], home: Scope
    ) -> ConstructAccessTileOp:
        values: list[SSAValue] = []
        starts = [
            self._place(digit, home.iterations(name).start(values))
            for name, cover in zip(names, covers, strict=True)
            for digit in cover.digits
        ] or [AffineConstantExpr(0)]
        shape = [digit.count for cover in covers for digit in cover.digits] or [1]
        return ConstructAccessTileOp(
            view,
            AffineMap(len(values), 0, tuple(starts)),
            values,
            box_set(shape),
            identity_order(len(shape)),
            AccessTileType(shape),
        )

    @staticmethod
    def _place(digit: Digit, first: AffineExpr) -> AffineExpr:
        if not digit.moves:
            return AffineConstantExpr(0)
        place = affine.floordiv(first, AffineConstantExpr(digit.walk.step))
        return affine.mod(place, AffineConstantExpr(digit.walk.size)) if digit.wraps else place

    def _cut(self, loaded: SSAValue, names: Sequence[str], covers: Sequence[Cover], home: Scope) -> SSAValue:
        """From a box of digits to a tile: join the digits of each dimension, drop lanes beyond the tile."""
        counts = [(name, digit.count) for name, cover in zip(names, covers, strict=True) for digit in cover.digits]
        shown = self.kept(names)
        joined = self._join(loaded, counts, shown, home)
        lengths = home.shape(shown)
        if lengths == cast("TensorType[Attribute]", joined.type).get_shape():
            return joined
        zeros, ones = [0] * len(lengths), [1] * len(lengths)
        result = tensor_type(cast("TensorType[Attribute]", joined.type).element_type, lengths)
        return home.emit(tensor.ExtractSliceOp(joined, zeros, list(lengths), ones, result))

    def _join(self, loaded: SSAValue, counts: Sequence[tuple[str, int]], shown: Sequence[str], home: Scope) -> SSAValue:
        """Collapse the digits to one dimension for each of ``shown``; digits of dropped dimensions join a neighbour."""
        if not counts:
            return loaded if shown else collapse(loaded, [], home)
        groups: list[list[int]] = []
        current: str | None = None
        leading: list[int] = []
        for position, (name, _) in enumerate(counts):
            if name not in shown:
                (groups[-1] if groups else leading).append(position)
            elif name == current:
                groups[-1].append(position)
            else:
                groups.append([*leading, position])
                leading = []
            current = name if name in shown else current
        if leading:
            groups.append(leading)
        has_unit = bool(shown) and shown[0] == UNIT
        if has_unit and len(groups) == len(shown):
            return collapse(loaded, groups, home)
        joined = collapse(loaded, groups, home)
        if has_unit:
            shape = cast("TensorType[Attribute]", joined.type).get_shape()
            return expand(joined, (1, *shape), home)
        return joined if shown else collapse(joined, [], home)

    def _gather(self, op: GatherOp, scope: Scope) -> TileValue:
        """Load the rows of a table that a tile of the index buffer names."""
        indices, table = self.space.loads[op.indices], self.space.tables[op.table]
        row_names = list(self.space.names(op.indices))
        column_names = list(self.space.value_dims[op.result][-1])
        names = [*row_names, *column_names]
        home = scope.home(names)
        index_view = self._view(op.indices, self._pointer(indices), row_names, indices.axes, op.indices.type)
        rows = [(name, self._cover(indices.axes[name], home.iterations(name))) for name in row_names]
        columns = [(name, self._cover(table.columns[name], home.iterations(name))) for name in column_names]
        access = home.emit(self._indirect_tile(self._table_view(op, table), index_view, rows, columns, home))
        loaded = home.emit(LoadOp(access, self._element(op.result)))
        tile = self._cut(loaded, names, [cover for _, cover in (*rows, *columns)], home)
        return TileValue(tile, self.kept(names), home.depth)

    def _table_view(self, op: GatherOp, table: Table) -> SSAValue:
        """The view of a table with its rows first, then the digits of its columns."""
        key = (op.table, tuple(table.columns))
        if key not in self.views:
            walks = [*table.rows.walks, *(walk for axis in table.columns.values() for walk in axis.walks)]
            sizes, strides = [walk.size for walk in walks], [walk.stride for walk in walks]
            pointer = self.buffers.operands[table.operand]
            view = ConstructMemoryViewOp.build_static(pointer, sizes, strides, self._element(op.table))
            self.views[key] = self.root.emit(view)
        return self.views[key]

    def _indirect_tile(
        self,
        table: SSAValue,
        index_view: SSAValue,
        rows: Sequence[tuple[str, Cover]],
        columns: Sequence[tuple[str, Cover]],
        home: Scope,
    ) -> ConstructIndirectAccessTileOp:
        captured: list[SSAValue] = []
        row_starts = self._starts(rows, captured, home)
        column_starts = self._starts(columns, captured, home)
        shape = [digit.count for _, cover in (*rows, *columns) for digit in cover.digits] or [1]
        variables = [AffineDimExpr(len(captured) + position) for position in range(len(shape))]

        def subscripts(starts: Sequence[AffineExpr], first: int) -> list[AffineExpr]:
            return [affine.add(start, variables[first + at]) for at, start in enumerate(starts)]

        arity = len(captured) + len(shape)
        row_map = AffineMap(arity, 0, tuple(subscripts(row_starts, 0) or [AffineConstantExpr(0)]))
        column_maps = [AffineMap(arity, 0, (each,)) for each in subscripts(column_starts, len(row_starts))]
        return ConstructIndirectAccessTileOp(
            table,
            [(index_view, row_map), *((None, each) for each in column_maps)],
            captured,
            box_set(shape),
            identity_order(len(shape)),
            AccessTileType(shape),
        )

    def _starts(self, parts: Sequence[tuple[str, Cover]], values: list[SSAValue], home: Scope) -> list[AffineExpr]:
        return [
            self._place(digit, home.iterations(name).start(values)) for name, cover in parts for digit in cover.digits
        ]

    # ---------------------------------------------------------------------------------------------------------- stores

    def store(self, store: Store, scope: Scope) -> None:
        """Store the tile of a result that ``scope`` stands for.

        A ragged end whose stick belongs to somebody else is stored by itself, without filling up the stick.
        """
        names = stick_last(self.space.names(store.value), store.axes)
        tile = self.operand(self.space.end, store.result, names, scope)
        tile = self.arranged(tile, self.kept(names), scope)
        pointer = self.buffers.results[store.result]
        pointer = self.index.add(pointer, store.offset) if store.offset else pointer
        view = self._view(store.result, pointer, names, store.axes, store.value.type)
        for pieces in product(*(self._pieces(store.axes[name], scope.iterations(name)) for name in names)):
            part = tile
            opened: dict[str, Iterations] = {}
            for name, (first, cover) in zip(names, pieces, strict=True):
                if (first, cover.length) != (0, scope.length(name)):
                    part = self._slice(part, name, first, cover.length, scope)
                opened[name] = scope.iterations(name).part(first, cover.length)
            self._store_box(part, view, names, [cover for _, cover in pieces], scope.inner(opened))

    def _pieces(self, axis: Axis, iterations: Iterations) -> list[tuple[int, Cover]]:
        if axis.padded:
            return [(0, self._cover(axis, iterations))]
        pieces = axis.pieces(iterations.tile, iterations.length)
        assert pieces is not None, "schedules are checked for covers"
        return pieces

    def _slice(self, tile: TileValue, name: str, first: int, length: int, scope: Scope) -> TileValue:
        if name not in tile.names:
            return tile
        type, at = cast("TensorType[Attribute]", tile.tensor.type), tile.names.index(name)
        starts = [first if position == at else 0 for position in range(len(tile.names))]
        sizes = [length if position == at else size for position, size in enumerate(type.get_shape())]
        result = tensor_type(type.element_type, sizes)
        piece = scope.emit(tensor.ExtractSliceOp(tile.tensor, starts, sizes, [1] * len(sizes), result))
        return TileValue(piece, tile.names, scope.depth)

    def _store_box(
        self, tile: TileValue, view: SSAValue, names: Sequence[str], covers: Sequence[Cover], scope: Scope
    ) -> None:
        filled = self._filled(tile, names, covers, scope)
        shape = [digit.count for cover in covers for digit in cover.digits] or [1]
        access = scope.emit(self._access(view, names, covers, scope))
        scope.place(StoreOp(self._reshaped(filled, shape, scope), access))

    def _filled(self, tile: TileValue, names: Sequence[str], covers: Sequence[Cover], scope: Scope) -> SSAValue:
        """The tile with zeros up to the end of its sticks."""
        type = cast("TensorType[Attribute]", tile.tensor.type)
        covered = dict(zip(names, (cover.covered if cover.digits else cover.length for cover in covers), strict=True))
        sizes = [covered.get(name, 1) for name in tile.names]
        if tuple(sizes) == type.get_shape():
            return tile.tensor
        element = type.element_type
        empty = scope.emit(tensor.EmptyOp([], tensor_type(element, sizes)))
        zeros = scope.emit(linalg.FillOp([self._constant(number(0, element))], [empty], [empty.type]))
        return scope.emit(tensor.InsertSliceOp.get(tile.tensor, zeros, list(type.get_shape())))

    def _reshaped(self, value: SSAValue, shape: Sequence[int], scope: Scope) -> SSAValue:
        """``value`` with the digits of each dimension apart; only sizes of one come or go at other places."""
        present = cast("TensorType[Attribute]", value.type).get_shape()
        if tuple(shape) == present:
            return value
        if present and present[0] == 1 and self.unit and len(present) > 1:
            value = collapse(value, [[0, 1], *([at] for at in range(2, len(present)))], scope)
        return expand(value, shape, scope)

    # ------------------------------------------------------------------------------------------------------ arranging

    def arranged(self, tile: TileValue, names: Sequence[str], scope: Scope) -> TileValue:
        """The tile with exactly these dimensions in this order; missing ones are broadcast."""
        if tile.names == tuple(names):
            return tile
        if set(tile.names) == set(names):
            order = [tile.names.index(name) for name in names]
            return TileValue(transpose(tile.tensor, order, scope), tuple(names), scope.depth)
        return self._broadcast(tile, tuple(names), scope)

    def _broadcast(self, tile: TileValue, names: Names, scope: Scope) -> TileValue:
        element = cast("TensorType[Attribute]", tile.tensor.type).element_type
        empty = scope.emit(tensor.EmptyOp([], tensor_type(element, scope.shape(names))))
        block = Block(arg_types=[element, element])
        block.add_op(linalg.YieldOp(block.args[0]))
        maps = [
            AffineMapAttr(AffineMap(len(names), 0, tuple(AffineDimExpr(names.index(name)) for name in each)))
            for each in (tile.names, names)
        ]
        op = linalg.GenericOp(
            [tile.tensor], [empty], Region(block), maps, [IteratorTypeAttr.parallel()] * len(names), [empty.type]
        )
        return TileValue(scope.emit(op), names, scope.depth)


Number = FloatAttr[Any] | IntegerAttr[Any]
"""A scalar constant."""


def number(value: float, element: Attribute) -> Number:
    """``value`` as a constant of an element type."""
    if isinstance(element, AnyFloat):
        return FloatAttr(float(value), element)
    return IntegerAttr(int(value), cast("IntegerType", element))


def stick_last(names: Sequence[str], axes: Mapping[str, Axis]) -> list[str]:
    """``names`` with the dimension whose neighbours lie next to each other in the buffer at the end."""
    contiguous = [name for name in names if axes[name].finest_stride == 1 and axes[name].extent > 1]
    return [*(name for name in names if name not in contiguous), *contiguous]
