"""A program's IR as the public functions hand it round: the xDSL module, and the text and file it came from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ktir.errors import Diagnostic, FileUnusable, FunctionNotFound

Source: TypeAlias = "Module | ModuleOp | str | Path"
"""What the public functions take for a program: a module, a path, or a text (anything with a line break or a brace)."""


@dataclass(frozen=True)
class Module:
    """Wraps ``op``. ``str(module)`` is its text; ``source`` the text it was read from, ``file`` the name to report;
    ``diagnostics`` the warnings that reading it gave."""

    op: ModuleOp
    source: str | None = None
    file: str = "-"
    diagnostics: tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        from ktir.dialect.text.printer import print_module

        return print_module(self.op)

    @property
    def functions(self) -> dict[str, FuncOp]:
        """The functions by name, in the order of the text."""
        return {op.sym_name.data: op for op in self.op.walk() if isinstance(op, FuncOp)}

    @property
    def kernels(self) -> list[str]:
        """Names of the functions with a ``grid``."""
        return [name for name, function in self.functions.items() if "grid" in function.attributes]

    def entry(self, name: str | None = None) -> str:
        """The function to run: ``name``, else ``main``, else the only kernel, else the only function.

        Raises :class:`FunctionNotFound` when that leaves none or several.
        """
        known = self.functions
        if name is not None:
            if name in known:
                return name
            raise FunctionNotFound(f"there is no function {name!r}", remedy=_choices(list(known)))
        for candidates in (["main"] if "main" in known else [], self.kernels, list(known)):
            if len(candidates) == 1:
                return candidates[0]
        raise FunctionNotFound("which function is meant is not clear", remedy=_choices(self.kernels or list(known)))


def read_source(source: str | Path) -> tuple[str, str]:
    """``(text, file name)`` of a path or a text."""
    if isinstance(source, str) and ("\n" in source or "{" in source or not source.strip()):
        return source, "-"
    path = Path(source)
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except UnicodeDecodeError:
        raise FileUnusable(f"{path} is not a text", remedy="give KTIR as text; ktir report reads packages") from None
    except OSError as error:
        raise FileUnusable(f"cannot read {path}: {error.strerror or error}") from None


def _choices(names: list[str]) -> str:
    return f"name one of: {', '.join(names)}" if names else "the module has no functions"
