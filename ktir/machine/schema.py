"""The schema of machine description files: which sections exist, which keys they take, and of what kind each is.

A key is *structure* (a name or a list of names: what the machine is made of) or a *value* (a number or a table of
numbers: ``{ v = .., src = .., conf = .. }``). Structure has its provenance from the file as a whole; a value without
one is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ValueKind = Literal["integer", "number", "bytes", "table"]


@dataclass(frozen=True, slots=True)
class Section:
    """Keys of one section: ``structure`` maps a name to its Python type, ``values`` to the kind of number.

    Numbers are positive, but for those in ``may_be_zero``, which then stand for no time or no limit.
    """

    structure: Mapping[str, type]
    values: Mapping[str, ValueKind]
    optional: frozenset[str] = frozenset()
    may_be_zero: frozenset[str] = frozenset()


MOST = (1 << 63) - 1
"""The largest number: addresses and times have 64 bits."""
MOST_INSTANCES = 1 << 16
"""How often a part may exist: each instance is simulated."""
INSTANCES = frozenset({"count", "servers", "columns"})
"""The keys that say how often a part exists."""


CLOCK = Section({}, {"ghz": "number", "ticks_per_cycle": "integer"})

SCOPE = Section({"parent": str}, {"count": "integer"})

MEMORY = Section(
    {"scope": str, "kind": str},
    {
        "size": "bytes",
        "usable": "bytes",
        "word": "bytes",
        "align": "bytes",
        "burst": "bytes",
        "span_limit": "bytes",
        "read_port": "integer",
        "write_port": "integer",
        "peak_gbs": "number",
        "sustained_gbs": "number",
        "turnaround_ns": "number",
        "request_ns": "table",
        "latency_ns": "number",
        "servers": "integer",
    },
    optional=frozenset(
        {
            "usable",
            "word",
            "align",
            "burst",
            "span_limit",
            "read_port",
            "write_port",
            "peak_gbs",
            "sustained_gbs",
            "turnaround_ns",
            "request_ns",
            "latency_ns",
            "servers",
        }
    ),
    may_be_zero=frozenset({"span_limit", "burst", "read_port", "write_port", "turnaround_ns", "latency_ns"}),
)

UNIT = Section(
    {"scope": str, "kind": str, "from": list, "to": list, "ops": list},
    {
        "bytes_per_cycle": "integer",
        "outstanding": "integer",
        "descriptor_dims": "integer",
        "mac_per_cycle": "table",
        "rows_per_pass": "integer",
        "fill_cycles": "integer",
        "load_bytes_per_cycle": "integer",
        "lanes": "table",
        "issue_scale": "integer",
        "reduce_latency": "integer",
    },
    optional=frozenset(
        {
            "bytes_per_cycle",
            "outstanding",
            "descriptor_dims",
            "mac_per_cycle",
            "rows_per_pass",
            "fill_cycles",
            "load_bytes_per_cycle",
            "lanes",
            "issue_scale",
            "reduce_latency",
        }
    ),
    may_be_zero=frozenset({"bytes_per_cycle", "descriptor_dims", "fill_cycles", "reduce_latency"}),
)

QUEUE = Section(
    {"from": str, "to": str},
    {"width": "bytes", "depth": "integer", "latency": "integer"},
    may_be_zero=frozenset({"latency"}),
)

NET = Section(
    {"kind": str, "nodes": str},
    {"width": "bytes", "directions": "integer", "hop_cycles": "integer", "depth": "integer", "columns": "integer"},
    optional=frozenset({"columns"}),
    may_be_zero=frozenset({"hop_cycles"}),
)

HOST = Section({}, {"pcie_gbs": "number"})

LIMITS = Section(
    {},
    {"program_bytes": "bytes", "loop_count": "integer"},
    optional=frozenset({"loop_count"}),
    may_be_zero=frozenset({"loop_count"}),
)

CHECK = Section({}, {"flop_per_cycle_core": "table"}, optional=frozenset({"flop_per_cycle_core"}))

TOP_LEVEL = frozenset(
    {
        "schema",
        "name",
        "description",
        "sources",
        "clock",
        "check",
        "dtype",
        "space",
        "scope",
        "memory",
        "unit",
        "queue",
        "net",
        "host",
        "limits",
        "preset",
    }
)
CALIBRATION = frozenset({"schema", "machine", "sources", "set"})
"""Sections of an overlay of fitted values."""

SCHEMA_VERSION = 1
