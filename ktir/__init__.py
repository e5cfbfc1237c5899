"""ktir: compile, check, run and time KernelTile IR on a CPU.

The names below are all of the public interface; :mod:`ktir.api` describes them. They are resolved on first use, so that
``import ktir`` costs nothing and torch is imported by no one who does not bring it.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ktir.version import VERSION as __version__

if TYPE_CHECKING:
    from ktir.api import RunResult, bisect, check, compile, examine, load, machine, parse, run
    from ktir.errors import Diagnostic, KtirError
    from ktir.interp.places import Place, Region
    from ktir.interp.tracing.explain import Explain
    from ktir.interp.tracing.numbers import Tolerance
    from ktir.interp.tracing.recording import Recording
    from ktir.interp.tracing.trace import Trace
    from ktir.interp.tracing.watch import Watch
    from ktir.location import Location
    from ktir.module import Module
    from ktir.program import Options, Program

_HOMES = {
    "parse": "ktir.api",
    "run": "ktir.api",
    "bisect": "ktir.api",
    "compile": "ktir.api",
    "check": "ktir.api",
    "examine": "ktir.api",
    "load": "ktir.api",
    "machine": "ktir.api",
    "RunResult": "ktir.api",
    "Place": "ktir.interp.places",
    "Region": "ktir.interp.places",
    "Explain": "ktir.interp.tracing.explain",
    "Recording": "ktir.interp.tracing.recording",
    "Tolerance": "ktir.interp.tracing.numbers",
    "Trace": "ktir.interp.tracing.trace",
    "Watch": "ktir.interp.tracing.watch",
    "Module": "ktir.module",
    "Options": "ktir.program",
    "Program": "ktir.program",
    "Diagnostic": "ktir.errors",
    "KtirError": "ktir.errors",
    "Location": "ktir.location",
}

__all__ = [
    "Diagnostic",
    "Explain",
    "KtirError",
    "Location",
    "Module",
    "Options",
    "Place",
    "Program",
    "Recording",
    "Region",
    "RunResult",
    "Tolerance",
    "Trace",
    "Watch",
    "__version__",
    "bisect",
    "check",
    "compile",
    "examine",
    "load",
    "machine",
    "parse",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ktir' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


class _Ktir(ModuleType):
    """Keeps ``ktir.machine`` the public function although a subpackage of that name exists.

    The import system binds a subpackage to its parent's attribute; here that binding has no effect.
    """

    @property
    def machine(self) -> Any:
        return __getattr__("machine")

    @machine.setter
    def machine(self, value: object) -> None:
        del value


sys.modules[__name__].__class__ = _Ktir


def __dir__() -> list[str]:
    return list(__all__)
