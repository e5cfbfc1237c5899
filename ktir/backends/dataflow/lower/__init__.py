"""KTIR to dataflow programs.

``launches`` runs the host function ahead of time; ``kernel`` walks each kernel with all cores at once and plans what
the units do (``plan``); ``program`` gives tiles their addresses and writes the ``dfp`` program (``emit``).
"""

from __future__ import annotations

from ktir.backends.dataflow.lower.launches import ArrayArgument, LaunchArguments, Placed
from ktir.backends.dataflow.lower.program import LoweredProgram, lower_to_dfp

__all__ = ["ArrayArgument", "LaunchArguments", "LoweredProgram", "Placed", "lower_to_dfp"]
