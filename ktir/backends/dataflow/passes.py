"""``ktir-lower-to-dfp`` and ``ktir-verify-dfp``: the lowering and the verifier as passes on text.

A kernel without a host program needs arguments: ``arguments = "x_ptr=256x1024xf16", "n=4"`` says that ``x_ptr`` is an
array and ``n`` a number.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ktir.backends.dataflow import verify
from ktir.backends.dataflow.lower import ArrayArgument, lower_to_dfp
from ktir.backends.dataflow.lower.launches import Argument
from ktir.errors import ArgumentError
from ktir.machine import Machine, load


@dataclass(frozen=True)
class LowerToDfpPass(ModulePass):
    """Replaces the functions of a module by the dataflow program of one of them."""

    name = "ktir-lower-to-dfp"
    machine: str | None = None
    function: str | None = None
    arguments: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        launch = dict(map(parse_argument, self.arguments))
        lowered = lower_to_dfp(op, _machine(ctx, self.machine), self.function, launch)
        for each in list(op.body.block.ops):
            each.detach()
            each.erase(safe_erase=False)
        made = lowered.module.body.block.first_op
        assert made is not None
        made.detach()
        op.body.block.add_op(made)


@dataclass(frozen=True)
class VerifyDfpPass(ModulePass):
    """Raises the first fault of the module's dataflow program."""

    name = "ktir-verify-dfp"
    machine: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        verify.check(op, _machine(ctx, self.machine))


def _machine(context: Context, name: str | None) -> Machine:
    """The machine that is named, else that of the context, else Spyre."""
    known = getattr(context, "machine", None)
    return known if name is None and isinstance(known, Machine) else load(name or "spyre")


def parse_argument(text: str) -> tuple[str, Argument]:
    """``name=256x1024xf16``, ``name=4`` or ``name=0.5``; :class:`ArgumentError` for anything else."""
    name, _, value = text.partition("=")
    *extents, element = value.split("x")
    if name and element and extents and all(extent.isdigit() for extent in extents):
        return name, ArrayArgument(tuple(map(int, extents)), element)
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    raise ArgumentError(
        f"the argument {text!r} is neither an array nor a number", remedy="write x_ptr=256x1024xf16 or n=4"
    )
