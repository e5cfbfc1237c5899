"""The ``ktg`` dialect: what a graph of tensors needs beside ``linalg`` and ``tensor``, and the decisions taken on it.

Terms. kernel: a group of operations that becomes one KTIR function, isolated from its surroundings; decisions such as
the core split are properties of it, absent until a pass (or a person) has taken them. fold: a reduction with running
state over one named dimension of its operands. block: the piece of the operands that one step of a fold sees.
transfer: a copy between a host tensor and a device buffer, whose layout may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Block, Data, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    MemoryReadEffect,
    MemoryWriteEffect,
    Pure,
    RecursivelySpeculatable,
    RecursiveMemoryEffect,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

T = TypeVar("T")

NOT_FOLDED = -1
"""Entry of ``fold_dims`` for an operand that every step sees whole."""

# ----------------------------------------------------------------------------------------------------------- decisions


def _parse_bracketed(parser: AttrParser, entry: Callable[[], T]) -> tuple[T, ...]:
    with parser.in_angle_brackets():
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, entry))


def _print_bracketed(printer: Printer, entries: Iterator[str]) -> None:
    with printer.in_angle_brackets():
        printer.print_string(f"[{', '.join(entries)}]")


def _require_distinct(dimensions: Sequence[str], what: str) -> None:
    if len(set(dimensions)) != len(dimensions):
        raise VerifyException(f"{what} names a dimension twice: {', '.join(dimensions)}")


@dataclass(frozen=True, slots=True)
class DimensionCut:
    """Dimension ``dimension`` cut into ``cuts`` slices of whole granules of ``granule`` iterations."""

    dimension: str
    cuts: int
    granule: int


@irdl_attr_definition
class CoreSplitAttr(Data[tuple[DimensionCut, ...]]):
    """Which dimensions are shared out between cores, e.g. ``#ktg.core_split<[d0 : 4 : 1, d2 : 8 : 64]>``.

    Core numbers are mixed-radix over the entries; the last one varies fastest. An empty list is one core.
    """

    name = "ktg.core_split"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[DimensionCut, ...]:
        def entry() -> DimensionCut:
            dimension = parser.parse_identifier()
            parser.parse_punctuation(":")
            cuts = parser.parse_integer(allow_boolean=False, allow_negative=False)
            parser.parse_punctuation(":")
            return DimensionCut(dimension, cuts, parser.parse_integer(allow_boolean=False, allow_negative=False))

        return _parse_bracketed(parser, entry)

    def print_parameter(self, printer: Printer) -> None:
        _print_bracketed(printer, (f"{cut.dimension} : {cut.cuts} : {cut.granule}" for cut in self.data))

    def verify(self) -> None:
        _require_distinct([cut.dimension for cut in self.data], "core_split")
        for cut in self.data:
            if cut.cuts < 1 or cut.granule < 1:
                raise VerifyException(f"core_split of {cut.dimension} expects cuts and granule of at least 1")


@dataclass(frozen=True, slots=True)
class DimensionTile:
    """``extent`` iterations of ``dimension`` are worked on at a time."""

    dimension: str
    extent: int


@irdl_attr_definition
class TilesAttr(Data[tuple[DimensionTile, ...]]):
    """Tile extents, e.g. ``#ktg.tiles<[d0 : 8, d1 : 64]>``; a dimension that is not named is not tiled."""

    name = "ktg.tiles"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[DimensionTile, ...]:
        def entry() -> DimensionTile:
            dimension = parser.parse_identifier()
            parser.parse_punctuation(":")
            return DimensionTile(dimension, parser.parse_integer(allow_boolean=False, allow_negative=False))

        return _parse_bracketed(parser, entry)

    def print_parameter(self, printer: Printer) -> None:
        _print_bracketed(printer, (f"{tile.dimension} : {tile.extent}" for tile in self.data))

    def verify(self) -> None:
        _require_distinct([tile.dimension for tile in self.data], "tiles")
        for tile in self.data:
            if tile.extent < 1:
                raise VerifyException(f"tiles of {tile.dimension} expects an extent of at least 1")


@irdl_attr_definition
class LoopOrderAttr(Data[tuple[str, ...]]):
    """Order of the tile loops, outermost first, e.g. ``#ktg.loop_order<[d0, d2, d1]>``."""

    name = "ktg.loop_order"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[str, ...]:
        return _parse_bracketed(parser, parser.parse_identifier)

    def print_parameter(self, printer: Printer) -> None:
        _print_bracketed(printer, iter(self.data))

    def verify(self) -> None:
        _require_distinct(self.data, "loop_order")


class Place(StrEnum):
    """Where a tensor lives between kernels: device memory, scratchpads, or handed on over the ring."""

    DDR = "ddr"
    LX = "lx"
    RING = "ring"


@irdl_attr_definition
class PlaceAttr(Data[Place]):
    """The place of one operand or result, e.g. ``#ktg.place<lx>``."""

    name = "ktg.place"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Place:
        with parser.in_angle_brackets():
            return parser.parse_str_enum(Place)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.data.value)


# ---------------------------------------------------------------------------------------------------------- operations


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """Ends a region of :class:`KernelOp` or :class:`FoldOp` with its results."""

    name = "ktg.yield"

    traits = traits_def(IsTerminator(), Pure())


def _yielded(region: Region) -> tuple[Attribute, ...]:
    """Types that ``region`` yields; its terminator must be ``ktg.yield``."""
    if len(region.blocks) != 1:
        raise VerifyException("expects regions of exactly one block")
    last = region.block.last_op
    if not isinstance(last, YieldOp):
        raise VerifyException("expects regions that end in ktg.yield")
    return tuple(last.operand_types)


def _require_types(what: str, expected: Sequence[Attribute], got: Sequence[Attribute]) -> None:
    if tuple(expected) != tuple(got):
        raise VerifyException(
            f"{what} expects types ({', '.join(map(str, expected))}) but has ({', '.join(map(str, got))})"
        )


@irdl_op_definition
class KernelOp(IRDLOperation):
    """A fusion group: tensors in, tensors out, one region whose arguments are the operands.

    Iteration dimensions ``d0``, ``d1``, .. in the decisions are those of the body, in order of first appearance.
    Layouts and places have one entry for each operand or result; ``none`` leaves that entry open.
    """

    name = "ktg.kernel"

    ins = var_operand_def(TensorType)
    res = var_result_def(TensorType)
    body = region_def("single_block")

    sym_name = opt_prop_def(StringAttr)
    core_split = opt_prop_def(CoreSplitAttr)
    tiles = opt_prop_def(TilesAttr)
    loop_order = opt_prop_def(LoopOrderAttr)
    buffer_depth = opt_prop_def(IntegerAttr)
    store_batch = opt_prop_def(IntegerAttr)
    operand_layouts = opt_prop_def(ArrayAttr)
    result_layouts = opt_prop_def(ArrayAttr)
    operand_places = opt_prop_def(ArrayAttr)
    result_places = opt_prop_def(ArrayAttr)

    traits = traits_def(IsolatedFromAbove(), RecursiveMemoryEffect(), RecursivelySpeculatable())

    def __init__(
        self,
        ins: Sequence[SSAValue | Operation],
        result_types: Sequence[Attribute],
        body: Region | None = None,
        *,
        sym_name: str | None = None,
    ) -> None:
        values = [SSAValue.get(value) for value in ins]
        if body is None:
            body = Region(Block(arg_types=[value.type for value in values]))
        properties = {} if sym_name is None else {"sym_name": StringAttr(sym_name)}
        super().__init__(operands=[values], result_types=[result_types], regions=[body], properties=properties)

    def verify_(self) -> None:
        _require_types("ktg.kernel body", self.ins.types, self.body.block.arg_types)
        _require_types("ktg.yield of ktg.kernel", self.res.types, _yielded(self.body))
        for name, entries, count in (
            ("operand_layouts", self.operand_layouts, len(self.ins)),
            ("operand_places", self.operand_places, len(self.ins)),
            ("result_layouts", self.result_layouts, len(self.res)),
            ("result_places", self.result_places, len(self.res)),
        ):
            if entries is not None and len(entries) != count:
                raise VerifyException(f"{name} expects {count} entries but has {len(entries)}")
        for name, number in (("buffer_depth", self.buffer_depth), ("store_batch", self.store_batch)):
            if number is not None and number.value.data < 1:
                raise VerifyException(f"{name} expects a number of at least 1 but is {number.value.data}")


@irdl_op_definition
class FoldOp(IRDLOperation):
    """A reduction with running state over the fold dimension of its operands.

    ``states = init()``; for each block in order ``states = step(block, states)``; ``results = finish(states)``.
    A block holds ``tile`` positions of the fold dimension of each operand with ``fold_dims[i] >= 0`` and all of an
    operand with ``fold_dims[i] == -1``. Where ``tile`` does not divide ``extent`` the last block is smaller and runs
    the body that :func:`ktir.dialect.ktg_blocks.step_over` gives. ``merge`` joins the states of two disjoint sets of
    blocks and makes the fold legal to split between cores. Regions capture nothing but constants.
    """

    name = "ktg.fold"

    ins = var_operand_def(TensorType)
    res = var_result_def(TensorType)
    fold_dims = prop_def(DenseArrayBase.constr(i64))
    extent = prop_def(IntegerAttr)
    tile = prop_def(IntegerAttr)

    init = region_def("single_block")
    step = region_def("single_block")
    merge = region_def("single_block")
    finish = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect(), RecursivelySpeculatable())

    def __init__(
        self,
        ins: Sequence[SSAValue | Operation],
        result_types: Sequence[Attribute],
        *,
        fold_dims: Sequence[int],
        extent: int,
        tile: int,
        init: Region,
        step: Region,
        merge: Region,
        finish: Region,
    ) -> None:
        super().__init__(
            operands=[[SSAValue.get(value) for value in ins]],
            result_types=[result_types],
            regions=[init, step, merge, finish],
            properties={
                "fold_dims": DenseArrayBase.from_list(i64, list(fold_dims)),
                "extent": IntegerAttr(extent, i64),
                "tile": IntegerAttr(tile, i64),
            },
        )

    @property
    def folded(self) -> tuple[int, ...]:
        """Per operand the dimension that is folded, or -1."""
        return self.fold_dims.get_values()

    @property
    def state_types(self) -> tuple[Attribute, ...]:
        """Types of the running states."""
        return _yielded(self.init)

    def block_type(self, operand: int, positions: int) -> TensorType[Attribute]:
        """Type of the block of operand number ``operand`` that holds ``positions`` positions of the fold dimension."""
        whole = cast("TensorType[Attribute]", self.ins[operand].type)
        dimension = self.folded[operand]
        if dimension == NOT_FOLDED:
            return whole
        shape = [*whole.get_shape()]
        shape[dimension] = positions
        return TensorType(whole.element_type, shape)

    def block_types(self, positions: int) -> tuple[TensorType[Attribute], ...]:
        """Types of the block arguments of a step over ``positions`` positions, without the states."""
        return tuple(self.block_type(operand, positions) for operand in range(len(self.ins)))

    def verify_(self) -> None:
        extent, tile = self.extent.value.data, self.tile.value.data
        if not 1 <= tile <= extent:
            raise VerifyException(f"expects 1 <= tile <= extent but tile is {tile} and extent {extent}")
        self._verify_fold_dims(extent)
        if self.init.block.args:
            raise VerifyException("init of ktg.fold expects no arguments")
        states = self.state_types
        _require_types("step of ktg.fold", [*self.block_types(tile), *states], self.step.block.arg_types)
        _require_types("merge of ktg.fold", [*states, *states], self.merge.block.arg_types)
        _require_types("finish of ktg.fold", states, self.finish.block.arg_types)
        _require_types("ktg.yield in step of ktg.fold", states, _yielded(self.step))
        _require_types("ktg.yield in merge of ktg.fold", states, _yielded(self.merge))
        _require_types("ktg.yield in finish of ktg.fold", self.res.types, _yielded(self.finish))
        for region in self.regions:
            _verify_captures_constants_only(region)

    def _verify_fold_dims(self, extent: int) -> None:
        if len(self.folded) != len(self.ins):
            raise VerifyException(f"fold_dims expects {len(self.ins)} entries but has {len(self.folded)}")
        if all(dimension == NOT_FOLDED for dimension in self.folded):
            raise VerifyException("ktg.fold expects at least one operand with a fold dimension")
        for number, (value, dimension) in enumerate(zip(self.ins, self.folded, strict=True)):
            shape = cast("TensorType[Attribute]", value.type).get_shape()
            if dimension == NOT_FOLDED:
                continue
            if not 0 <= dimension < len(shape):
                raise VerifyException(f"fold dimension {dimension} of operand {number} is not one of its {len(shape)}")
            if shape[dimension] != extent:
                raise VerifyException(
                    f"dimension {dimension} of operand {number} has {shape[dimension]} positions, extent is {extent}"
                )


def _verify_captures_constants_only(region: Region) -> None:
    for op in region.walk():
        for operand in op.operands:
            owner = operand.owner
            home = owner if isinstance(owner, Block) else owner.parent
            inside = home is not None and region.is_ancestor(home)
            if not inside and not isinstance(owner, arith.ConstantOp):
                raise VerifyException(f"regions of ktg.fold capture constants only, but {op.name} uses another value")


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Rows of a table by index: ``result[i.., j] = table[indices[i..], j]``.

    ``table`` is ``V x D``, ``indices`` any shape of integers in ``0 <= index < V``, the result has the shape of the
    indices followed by ``D``.
    """

    name = "ktg.gather"

    table = operand_def(TensorType)
    indices = operand_def(base(TensorType))
    result = result_def(TensorType)

    assembly_format = "$table `,` $indices attr-dict `:` `(` type($table) `,` type($indices) `)` `->` type($result)"

    traits = traits_def(Pure())

    def __init__(self, table: SSAValue | Operation, indices: SSAValue | Operation) -> None:
        table, indices = SSAValue.get(table), SSAValue.get(indices)
        table_type = cast("TensorType[Attribute]", table.type)
        index_type = cast("TensorType[Attribute]", indices.type)
        shape = [*index_type.get_shape(), *table_type.get_shape()[1:]]
        super().__init__(operands=[table, indices], result_types=[TensorType(table_type.element_type, shape)])

    def verify_(self) -> None:
        table = cast("TensorType[Attribute]", self.table.type)
        indices = cast("TensorType[Attribute]", self.indices.type)
        if table.get_num_dims() != 2:
            raise VerifyException(f"ktg.gather expects a table of two dimensions but has {table}")
        if not isinstance(indices.element_type, IntegerType | IndexType):
            raise VerifyException(f"ktg.gather expects integer indices but has {indices}")
        expected = TensorType(table.element_type, [*indices.get_shape(), table.get_shape()[1]])
        _require_types("ktg.gather result", [expected], [self.result.type])


@irdl_op_definition
class TransferOp(IRDLOperation):
    """Copy the logical elements of ``source`` to ``destination``: host tensor to device buffer or back.

    The side that comes from an ``alloc`` with ``ktdp.stick_layout`` is the device. Padding of a device destination is
    filled as the layout's ``pad`` says. Host time, so it stands in ``@main`` only.
    """

    name = "ktg.transfer"

    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)

    assembly_format = "$source `,` $destination attr-dict `:` type($source) `,` type($destination)"

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, source: SSAValue | Operation, destination: SSAValue | Operation) -> None:
        super().__init__(operands=[source, destination])

    def verify_(self) -> None:
        source = cast("MemRefType[Attribute]", self.source.type)
        destination = cast("MemRefType[Attribute]", self.destination.type)
        if source.element_type != destination.element_type:
            raise VerifyException(
                f"ktg.transfer expects one element type but has {source.element_type} and {destination.element_type}"
            )


KTG = Dialect(
    "ktg",
    [KernelOp, FoldOp, GatherOp, TransferOp, YieldOp],
    [CoreSplitAttr, TilesAttr, LoopOrderAttr, PlaceAttr],
)
