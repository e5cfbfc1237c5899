"""The pipelines of the Spyre target, as ``ktir-opt`` takes them.

The lowering itself knows no machine: units, queues, capacities and rates are those of the description file beside this
module (``data/spyre.toml``).
"""

from __future__ import annotations

LOWER = "ktir-lower-to-dfp{machine=spyre},ktir-verify-dfp{machine=spyre}"
"""From a level-K module with a host function ``@main`` to a verified dataflow program."""
