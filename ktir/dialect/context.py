"""The dialects that KTIR is made of, and the machine a compilation is for.

Dialects are loaded when a text or a pass first needs them. A stock xDSL dialect is repaired before it is loaded, see
:mod:`ktir.dialect.overlay`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.ir import Dialect

from ktir.dialect import overlay

if TYPE_CHECKING:
    from ktir.errors import Diagnostic
    from ktir.machine import Machine


@dataclass
class KtirContext(Context):
    """An xDSL context that also knows the machine (None is the abstract grid), and keeps what passes remark.

    ``diagnostics`` are warnings and notes; what is wrong is raised.
    """

    machine: Machine | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list["Diagnostic"])

    def clone(self) -> KtirContext:
        return KtirContext(
            self.allow_unregistered,
            self._loaded_dialects.copy(),
            self._loaded_ops.copy(),
            self._loaded_attrs.copy(),
            self._loaded_types.copy(),
            self._registered_dialects.copy(),
            self.machine,
            self.diagnostics,
        )


def create_context(
    machine: Machine | None = None, *, allow_unregistered: bool = False, experimental: bool = False
) -> KtirContext:
    """A context that knows every dialect of KTIR; ``experimental`` adds the operations of ``ktdp/shares.py``."""
    context = KtirContext(allow_unregistered=allow_unregistered, machine=machine)
    loaders = all_dialects() | ({"ktdp": _experimental_ktdp} if experimental else {})
    for name, load in loaders.items():
        context.register_dialect(name, load)
    context.load_registered_dialect("builtin")  # every text has attributes and types of it
    return context


def all_dialects() -> dict[str, Callable[[], Dialect]]:
    """Name and loader of each dialect, stock ones repaired."""
    return {
        **overlay.dialects(),
        "ktdp": _ktdp,
        "ktg": _ktg,
        "dfp": _dfp,
    }


def _ktdp() -> Dialect:
    from ktir.dialect.ktdp import KTDP

    return KTDP


def _experimental_ktdp() -> Dialect:
    from ktir.dialect.ktdp import KTDP
    from ktir.dialect.ktdp.shares import EXPERIMENTAL

    return Dialect(KTDP.name, [*KTDP.operations, *EXPERIMENTAL], [*KTDP.attributes])


def _ktg() -> Dialect:
    from ktir.dialect.ktg import KTG

    return KTG


def _dfp() -> Dialect:
    from ktir.dialect.dfp import DFP

    return DFP
