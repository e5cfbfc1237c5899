"""The state of lowering one launch: what each SSA value of the kernel is known to be, and where steps go.

Words. value: an SSA value of the kernel. A value is a core value (integers), a tensor, a memory view, an access tile or
a future; :class:`Lowering` answers for one kind each and refuses the others with the place of the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

import numpy as np
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    Float16Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    i64,
)
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from ktir.backends.dataflow.dl16 import from_dl16, to_dl16
from ktir.backends.dataflow.element_types import before_narrow
from ktir.backends.dataflow.lower import moves
from ktir.backends.dataflow.lower.hardware import Hardware
from ktir.backends.dataflow.lower.plan import Mask, Planner, ScalarBody, Storage, View
from ktir.backends.dataflow.lower.tensors import Pending, Splat, Tensor, Undefined
from ktir.backends.dataflow.lower.values import CoreValue, PerCore
from ktir.dialect import ktdp
from ktir.dialect.locations import location_of
from ktir.errors import NotLowerable
from ktir.machine.description import Machine

if TYPE_CHECKING:
    from ktir.backends.dataflow.lower.memory import Constants, Places
    from ktir.backends.dataflow.lower.structured import HeldSum

T = TypeVar("T")
Rule = Callable[["Lowering", Operation], None]
"""Lowers one operation."""

FUSED_OPERATIONS = 24
"""Operations of one vector step beyond which a chain of pointwise work is cut."""


def refuse(op: Operation, reason: str, remedy: str | None = None) -> NoReturn:
    """Raises :class:`NotLowerable` for ``op``."""
    raise NotLowerable(f"{op.name} has no lowering here: {reason}", location=location_of(op), remedy=remedy)


def shape_and_element(type: Attribute, op: Operation) -> tuple[tuple[int, ...], Attribute]:
    """Shape and element type of a tensor type; a scalar type is a tensor without dimensions."""
    if not isinstance(type, TensorType):
        return (), type
    shape = type.get_shape()
    if any(extent < 0 for extent in shape):
        refuse(op, f"the shape of {type} is not known", "use static shapes")
    return tuple(shape), cast("TensorType[Attribute]", type).element_type


@dataclass(eq=False)
class Lowering:
    """Everything a rule needs. ``lower`` finds the rule of an operation and applies it.

    ``values`` is the environment; ``targets`` are places chosen ahead for results; ``open`` are tiles that are still
    being written, ``held`` sums that stay in the matrix unit. ``everyone`` are the cores of the grid and
    ``coordinates`` their tile ids along its axes; ``stores_locally``: the kernel writes scratchpad views;
    ``buffers``: the allocations that arguments point into.
    """

    lower: Rule
    planner: Planner
    places: Places
    constants: Constants
    everyone: Mask
    coordinates: tuple[PerCore, ...]
    stores_locally: bool
    buffers: Mapping[SSAValue, Storage]
    values: dict[SSAValue, object] = field(default_factory=dict[SSAValue, object])
    targets: dict[SSAValue, View] = field(default_factory=dict[SSAValue, View])
    open: dict[SSAValue, View] = field(default_factory=dict[SSAValue, View])
    held: dict[Operation, HeldSum] = field(default_factory=dict[Operation, "HeldSum"])

    def lower_operation(self, op: Operation) -> None:
        """Lowers one operation."""
        self.lower(self, op)

    def lower_body(self, block: Block) -> None:
        """Lowers the operations of ``block`` in order; its terminator is left to the caller."""
        for op in block.ops:
            if not op.has_trait(IsTerminator):
                self.planner.origin = op
                self.lower_operation(op)

    @property
    def hardware(self) -> Hardware:
        """The parts of the machine."""
        return self.planner.hardware

    @property
    def machine(self) -> Machine:
        """The machine that is lowered for."""
        return self.hardware.machine

    @property
    def sender(self) -> str:
        """The unit that sends to other cores."""
        return self._network(self.hardware.send)

    @property
    def receiver(self) -> str:
        """The unit that receives from other cores."""
        return self._network(self.hardware.receive)

    def _network(self, unit: str | None) -> str:
        if unit is None:
            refuse(self.planner.origin, f"no network joins the cores of {self.machine.name}", "exchange through memory")
        return unit

    @property
    def prefetch_slots(self) -> int:
        """Slots of a loaded tile: in a loop the next one is loaded while this one is used."""
        return 2 if self.planner.block.loop is not None else 1

    @property
    def cores(self) -> int:
        """Cores of the machine."""
        return self.planner.cores

    def loaded_tile(self, shape: Sequence[int], element: Attribute) -> tuple[View, View]:
        """A tile that is loaded from device memory: where to write it and where to read it."""
        return self.planner.value_tile(shape, element, self.hardware.load, slots=self.prefetch_slots)

    def received_tile(self, shape: Sequence[int], element: Attribute) -> tuple[View, View]:
        """A tile that comes from other cores."""
        return self.planner.value_tile(shape, element, self.receiver, slots=self.prefetch_slots)

    def made_tile(self, shape: Sequence[int], element: Attribute, *, slots: int = 1) -> tuple[View, View]:
        """A tile that a compute unit makes."""
        return self.planner.value_tile(shape, element, self.hardware.drain, slots=slots)

    # ------------------------------------------------------------------------------------------------------ environment

    def get(self, value: SSAValue, kind: type[T] | tuple[type[T], ...], reader: Operation, what: str) -> T:
        """What ``value`` is known to be, if it is of ``kind``."""
        found = self.values.get(value)
        if not isinstance(found, kind):
            known = "depends on data" if isinstance(found, View | Pending) else "is of another kind"
            refuse(reader, f"{what} {_name(value)} {known}", "compute it from arguments, tile ids and loop variables")
        return found

    def integer(self, value: SSAValue, reader: Operation) -> CoreValue:
        """An integer that decides addresses or control flow."""
        return self.get(value, CoreValue, reader, "the integer")

    def tensor(self, value: SSAValue, reader: Operation) -> Tensor:
        """A tensor, or a scalar that depends on data or is a constant."""
        found = self.values.get(value)
        if isinstance(found, View | Splat | Undefined | Pending):
            return found
        if isinstance(found, CoreValue) and (number := found.uniform) is not None:
            return Splat(scalar_attribute(self.hardware, number, value.type, reader), (), value.type)
        if isinstance(found, CoreValue):
            single = self.numbers(found, 1, reader).shaped((), ())
            return Pending((), value.type, (single,), widened(value.type))
        refuse(reader, f"the operand {_name(value)} is not known")

    def numbers(self, first: CoreValue, extent: int, reader: Operation) -> View:
        """A tile with ``extent`` numbers from ``first`` on, as i64."""
        source = self.constants.number(first, extent)
        if source is None:
            refuse(reader, "an index that it computes with is negative or too large")
        target, view = self.loaded_tile((extent,), source.element)
        moves.load(self.planner, source, target)
        return view

    def view(self, value: SSAValue, reader: Operation) -> View:
        """A tensor in storage; gives it a tile of its own where it has none."""
        found = self.tensor(value, reader)
        if isinstance(found, View):
            return found
        view = self.stored(found)
        if isinstance(found, Pending):
            self.values[value] = view
        return view

    def stored(self, tensor: Tensor, *, slots: int = 1) -> View:
        """A fresh tile in the current block that holds ``tensor``."""
        if isinstance(tensor, Splat) and tensor.shape:
            single = self.stored(Splat(tensor.value, (), tensor.element))
            return single.shaped(tensor.shape, (0,) * len(tensor.shape))
        target, view = self.made_tile(tensor.shape, tensor.element, slots=slots)
        moves.write(self.planner, tensor, target)
        return view

    def dense(self, tensor: Tensor) -> View:
        """A fresh tile with dense row-major strides."""
        target, view = self.made_tile(tensor.shape, tensor.element)
        moves.write(self.planner, tensor, target)
        return view

    # ---------------------------------------------------------------------------------------------------------- results

    def define(self, result: SSAValue, tensor: Tensor) -> None:
        """``result`` is ``tensor``. Pending work is done at once unless its only reader can do it on the way."""
        if not isinstance(tensor, Pending) or self._may_wait(result):
            self.values[result] = tensor
            return
        target, view = self.place(result, tensor.shape, tensor.element)
        moves.write(self.planner, tensor, target)
        self.values[result] = view

    def _may_wait(self, result: SSAValue) -> bool:
        reader = only_reader(result)
        owner = result.owner
        home = owner.parent if isinstance(owner, Operation) else owner
        return reader is not None and reader.parent is home and is_pointwise_reader(reader, result)

    def place(self, result: SSAValue, shape: Sequence[int], element: Attribute) -> tuple[View, View]:
        """Where to write ``result`` and where to read it: a place chosen ahead or a tile of its own."""
        if (target := self.targets.pop(result, None)) is not None:
            return target, target
        reader = only_reader(result)
        stored_in_loop = isinstance(reader, ktdp.StoreOp) and self.planner.block.loop is not None
        return self.made_tile(shape, element, slots=2 if stored_in_loop else 1)


def only_reader(value: SSAValue) -> Operation | None:
    """The operation that uses ``value``, if there is exactly one use."""
    uses = list(value.uses)
    return uses[0].operation if len(uses) == 1 else None


def is_parallel(op: LinalgStructuredOperation) -> bool:
    """Whether no loop of ``op`` is a reduction."""
    return all(kind.data is IteratorType.PARALLEL for kind in op.get_iterator_types())


def is_pointwise_reader(op: Operation, operand: SSAValue) -> bool:
    """Whether ``op`` takes pending work of the same shape into its own vector step or writes it where it belongs."""
    if isinstance(op, tensor.InsertSliceOp | tensor.PadOp | ktdp.StoreOp):
        return op.operands[0] is operand
    if op.name in ("linalg.reduce", "linalg.matmul", "linalg.batch_matmul", "linalg.transpose", "linalg.broadcast"):
        return False
    if isinstance(op, GenericOp):
        return is_parallel(op)
    if isinstance(op, arith.ConstantOp | scf.YieldOp):
        return isinstance(op, scf.YieldOp)
    return op.name.split(".")[0] in ("arith", "math", "linalg")


def widened(type: Attribute) -> ScalarBody:
    """From a number of the table, i64, to ``type``."""

    def body(args: Sequence[SSAValue]) -> tuple[list[Operation], SSAValue]:
        if type == i64:
            return [], args[0]
        narrow = cast("IntegerType", type)
        made = arith.IndexCastOp(args[0], type) if isinstance(type, IndexType) else arith.TruncIOp(args[0], narrow)
        return [made], made.results[0]

    return body


def scalar_attribute(hardware: Hardware, number: float, type: Attribute, op: Operation) -> Attribute:
    """``number`` as an attribute of an integer or float type, rounded once.

    Where f16 is DL16, a number beyond the range of f16 is refused: its text has no word for it.
    """
    if not isinstance(type, AnyFloat):
        return IntegerAttr(int(number), cast("IntegerType", type) if isinstance(type, IntegerType) else IndexType())
    if hardware.numerics == "f16" or not isinstance(type, Float16Type):
        return FloatAttr(float(number), type)
    rounded = float(from_dl16(to_dl16(before_narrow(np.array([number], np.float64))))[0])
    found = FloatAttr(rounded, type)
    if found.value.data != rounded:
        refuse(op, f"{number:g} is a number of DL16 that f16 lacks", "pass it in an array, or compute it in f32")
    return found


def splat_value(attribute: Attribute) -> Attribute | None:
    """The scalar attribute of a scalar or splat constant, None for other constants."""
    if isinstance(attribute, FloatAttr | IntegerAttr):
        return cast("Attribute", attribute)
    if isinstance(attribute, DenseIntOrFPElementsAttr) and attribute.is_splat():
        return next(attribute.iter_attrs())
    return None


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else "of its operation"
