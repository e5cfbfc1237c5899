"""Whether kernels of a graph that hand a tensor on in scratchpads agree on who owns which slice of it.

A tensor between two kernels may stay in the scratchpads (place ``lx``): each core keeps the slice that it computed, and
takes in the next kernel what it needs from its own. That is right where the slice it needs is inside the one it has.
The slices of both sides follow from the core splits that the kernels carry. What is placed elsewhere goes through
device memory or over the ring, so that any core may read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, OpResult, SSAValue

from ktir.analysis.findings import Answer, answer, proven, unknown
from ktir.analysis.iteration_space import iteration_space
from ktir.analysis.launches import Program
from ktir.analysis.schedule import Schedule, schedule_of
from ktir.analysis.tensor_views import Unfit, shape_of
from ktir.dialect.ktg import KernelOp, Place, PlaceAttr
from ktir.errors import CannotPlan, Diagnostic, OwnershipMismatch
from ktir.machine import Machine
from ktir.maths.ownership import Slice

Box = tuple[Slice, ...]
"""One slice for each dimension of a tensor."""


def check_ownership(program: Program, machine: Machine | None) -> Iterator[Answer]:
    """An answer for each operand that a kernel takes from scratchpads; layouts need a machine."""
    for kernel in program.module.walk():
        if isinstance(kernel, KernelOp):
            for position, operand in enumerate(kernel.operands):
                if place_at(kernel.operand_places, position) is Place.LX:
                    yield answer("ownership", disagreement(kernel, position, operand, machine))


def place_at(places: ArrayAttr[Attribute] | None, position: int) -> Place | None:
    """Where an operand or result lives; None where the kernel does not say."""
    place = None if places is None else places.data[position]
    return place.data if isinstance(place, PlaceAttr) else None


def disagreement(kernel: KernelOp, position: int, operand: SSAValue, machine: Machine | None) -> Iterator[Diagnostic]:
    """A slice that a core needs and does not have."""
    maker = kept_by(operand)
    if maker is None:
        text = f"operand {position} is taken from scratchpads, where no kernel leaves it"
        yield proven(
            kernel, OwnershipMismatch, text, "place it in device memory, or let the kernel that makes it keep it"
        )
        return
    has = None if machine is None else slices(*maker, machine)
    needs = None if machine is None else slices(kernel, kernel.body.block.args[position], machine)
    if has is None or needs is None:
        yield unknown(kernel, f"whether cores own what they need of operand {position} is not decided")
        return
    nothing = tuple(Slice(0, 0) for _ in shape_of(operand))
    for core, needed in enumerate(needs):
        held = has[core] if core < len(has) else nothing
        if not all(n.start >= h.start and n.stop <= h.stop for n, h in zip(needed, held, strict=True)):
            yield proven(
                kernel,
                OwnershipMismatch,
                f"core {core} needs {text_of(needed)} of operand {position}, but the kernel that makes it leaves "
                f"{text_of(held)} there",
                "split both kernels alike, or hand the tensor on over the ring or in device memory",
            )
            return


def kept_by(operand: SSAValue) -> tuple[KernelOp, SSAValue] | None:
    """The kernel that leaves a tensor in scratchpads, and the value of its body that this is."""
    if not isinstance(operand, OpResult) or not isinstance(operand.op, KernelOp):
        return None
    last = operand.op.body.block.last_op
    kept = place_at(operand.op.result_places, operand.index) is Place.LX
    return (operand.op, last.operands[operand.index]) if kept and last is not None else None


def slices(kernel: KernelOp, value: SSAValue, machine: Machine) -> list[Box] | None:
    """What each core works on of a value of a kernel's body; None where that is no box."""
    try:
        schedule = schedule_of(kernel, iteration_space(kernel, machine))
    except (Unfit, CannotPlan):
        return None
    names = schedule.space.value_dims.get(value)
    if names is None:
        return None
    boxes = [box_of(schedule, core, names, shape_of(value)) for core in range(schedule.cores)]
    known = [box for box in boxes if box is not None]
    return known if len(known) == len(boxes) else None


def box_of(schedule: Schedule, core: int, dims: Sequence[Sequence[str]], shape: Sequence[int]) -> Box | None:
    """The slice of a core in each dimension; None where an inner one of several that make a dimension is cut."""
    mine = schedule.split.slices(core)
    box: list[Slice] = []
    for names, extent in zip(dims, shape, strict=True):
        cut = [name for name in names if name in mine and len(mine[name]) != schedule.space[name].extent]
        if not cut:
            box.append(Slice(0, extent))
        elif cut == [names[0]]:
            inner = extent // schedule.space[names[0]].extent
            box.append(Slice(mine[names[0]].start * inner, mine[names[0]].stop * inner))
        else:
            return None
    return tuple(box)


def text_of(box: Box) -> str:
    return "[" + ", ".join(f"{each.start}:{each.stop}" for each in box) + "]"
