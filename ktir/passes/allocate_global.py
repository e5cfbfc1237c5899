"""Give the buffers of ``@main`` addresses in device memory, shared by buffers that are not in use together."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ktir.passes.allocate import give_addresses, host_functions
from ktir.passes.graph import machine_of


@dataclass(frozen=True)
class AllocateGlobalPass(ModulePass):
    """``ktir-allocate-global``"""

    name = "ktir-allocate-global"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = machine_of(ctx)
        for function in host_functions(op):
            give_addresses(function, "global", machine.global_memory.usable, machine.alignment)
