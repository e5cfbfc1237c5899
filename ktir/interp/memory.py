"""The memory of one run: the global one, the scratchpads, and arrays that are lent to a kernel."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ktir.interp.lending import Lent
from ktir.interp.numerics import Array
from ktir.machine.memory_arena import Arena

LENT = 1 << 40
"""The address from which lent arrays have theirs, where no global memory is."""


class Memory:
    """The global memory and the scratchpads of all cores, which lie one behind the other in one arena."""

    def __init__(self, *, limit: int, granule: int) -> None:
        self.limit, self.granule = limit, granule
        self.shared = Arena("global", limit=limit, granule=granule)
        self.local = Arena("scratchpad", limit=limit, granule=granule)
        self.cores, self.span = 0, 0
        self.lent: dict[SSAValue, Lent] = {}
        self._lent_bytes = 0

    def lend(self, pointer: SSAValue, name: str, contents: Array, itemsize: int) -> Lent:
        """Lets a kernel use ``contents``, bytes of elements of ``itemsize``, through a pointer; no copy is made."""
        first = -(-(LENT + self._lent_bytes) // itemsize)
        self._lent_bytes += contents.size + itemsize
        if self.shared.size + self._lent_bytes > self.limit:
            self.shared.require_room(self.shared.size + self._lent_bytes)
        lent = self.lent[pointer] = Lent(Arena.over(name, contents, granule=itemsize), first)
        return lent

    def provide_cores(self, cores: int) -> None:
        """Makes sure that ``cores`` scratchpads exist."""
        if cores > self.cores:
            self.local.grow(cores * self.span)
            self.cores = cores

    def provide_span(self, size: int) -> None:
        """Makes each scratchpad at least ``size`` bytes big, keeping the contents."""
        if size <= self.span:
            return
        span = max(4096, self.span)
        while span < size:
            span *= 2
        self.local.respace(self.cores, self.span, span)
        self.span = span
