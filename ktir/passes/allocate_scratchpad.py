"""Give the buffers of ``@main`` that live in the cores' scratchpads addresses there, the same on every core.

Tiles inside kernels are values; they get addresses when the dataflow program is made, in what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ktir.passes.allocate import give_addresses, host_functions
from ktir.passes.graph import machine_of


@dataclass(frozen=True)
class AllocateScratchpadPass(ModulePass):
    """``ktir-allocate-scratchpad``"""

    name = "ktir-allocate-scratchpad"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = machine_of(ctx)
        for function in host_functions(op):
            give_addresses(function, "ct_local", machine.scratchpad_bytes, machine.alignment)
