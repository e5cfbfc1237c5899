"""How many threads torch uses for one operation.

Threads that share an operation wait for each other at its end. That costs microseconds on processors that have nothing
else to do, and a slice of the scheduler's time, milliseconds, on busy ones; so work that one thread does in a few
milliseconds is left to one. Whether it is depends on the work alone, so that a matrix product has the same bits however
many threads there are to be used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

WORTH_THREADS = 1 << 24
"""Elements from which an element-wise operation on narrow floats is shared, about 5 ms of work."""
PRODUCTS_OF_AN_ELEMENT = 32
"""Multiplications of a matrix product that take as long as one element of such an operation."""


def shared_if_worth(torch: Any, elements: int, work: Callable[[], Any]) -> None:
    """Does ``work``, which is about so many ``elements``, on one thread or on all that torch has."""
    threads = torch.get_num_threads()
    if threads == 1 or elements >= WORTH_THREADS:
        work()
        return
    torch.set_num_threads(1)
    try:
        work()
    finally:
        torch.set_num_threads(threads)
