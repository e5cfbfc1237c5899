"""Words of older texts and what they are called now. The rule numbers are those of ``docs/compatibility.md``."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import AnyFloat, f16, f32, f64

OLD_DIALECT = "ktir."
"""What the operations of ``ktdp`` began with in the first specification (rule M1)."""

RENAMED_OPERATIONS: Mapping[str, str] = {"arith.maxf": "arith.maximumf", "arith.minf": "arith.minimumf"}
"""Operations by their old names (rule M17)."""

RENAMED_TYPES: Mapping[str, AnyFloat] = {"fp16": f16, "fp32": f32, "fp64": f64}
"""Element types by their old names (rule M6)."""

REMOVED_OPERATIONS: Mapping[str, str] = {
    "ktdp.inter_tile": "write the exchange as ktdp.inter_tile_produce and ktdp.inter_tile_reduce",
    "ktdp.reduce": "write the exchange as ktdp.inter_tile_produce and ktdp.inter_tile_reduce",
    "ktdp.transfer": "write the exchange as ktdp.inter_tile_produce and ktdp.inter_tile_consume",
    "ktdp.coreid": "use ktdp.get_compute_tile_id",
}
"""Operations that no rule turns into new ones, with what to write in their place (rule M16)."""

PLANNED_OPERATIONS = frozenset(
    f"ktdp.inter_tile_{name}" for name in ("reduce_scatter", "gather", "all_to_all", "scatter")
)
"""Operations that only the design document of the dialect knows."""


def new_name(name: str) -> tuple[str, str] | None:
    """``(rule, present name)`` of an operation whose name is an old one."""
    if name in RENAMED_OPERATIONS:
        return "M17", RENAMED_OPERATIONS[name]
    if name.startswith(OLD_DIALECT):
        return "M1", f"ktdp.{name.removeprefix(OLD_DIALECT)}"
    return None
