"""The passes of the back ends, by name; their modules are loaded when first used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Name and loader of each pass."""
    return {"ktir-lower-to-dfp": _lower_to_dfp, "ktir-verify-dfp": _verify_dfp}


def _lower_to_dfp() -> type[ModulePass]:
    from ktir.backends.dataflow.passes import LowerToDfpPass

    return LowerToDfpPass


def _verify_dfp() -> type[ModulePass]:
    from ktir.backends.dataflow.passes import VerifyDfpPass

    return VerifyDfpPass
