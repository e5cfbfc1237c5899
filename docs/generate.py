"""Writes the tables that are read off the code to ``docs/generated``: errors, passes, operators,
operations, machine values.

Run by ``make docs``. The tables are not kept in the repository, so they are never older than the code.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from pathlib import Path

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

import ktir
from ktir import errors
from ktir.dialect.context import all_dialects
from ktir.dialect.ktdp.shares import EXPERIMENTAL
from ktir.frontend.torch.aten_table import OPERATORS
from ktir.interp.compile import TERMINATORS, operations_of
from ktir.machine.loader import available
from ktir.passes.registry import all_passes

TARGET = Path(__file__).parent / "generated"


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A page with one table."""
    head = [f"# {title}", "", _row(headings), "|" + "---|" * len(headings)]
    return "\n".join([*head, *map(_row, rows)]) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def first_line(thing: object) -> str:
    """The first paragraph of a docstring on one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def error_table() -> str:
    classes = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ktir.KtirError)]
    return table(
        "Errors", ("code", "is a", "meaning"), ((k.__name__, k.__base__.__name__, first_line(k)) for k in classes)
    )


def pass_table() -> str:
    rows = ((f"`{name}`", first_line(inspect.getmodule(load()))) for name, load in sorted(all_passes().items()))
    return table("Passes", ("name", "what it does"), rows)


def operator_table() -> str:
    return table("Imported operators", ("operator",), ((f"`{name}`",) for name in sorted(OPERATORS)))


def machine_table(name: str) -> str:
    machine = ktir.machine(name)
    rows = ((f"`{path}`", f.confidence, f"{f.source}. {f.note}".strip(". ")) for path, f in machine.provenance.items())
    return table(f"Machine {name}", ("value", "confidence", "source"), rows)


DIALECTS = ("ktdp", "arith", "math", "linalg", "tensor", "scf", "affine", "memref", "func")
"""The dialects of kernels and host programs."""


def executable_operations() -> list[type[Operation]]:
    """The operations that the executor runs, block terminators included."""
    return [kind for kind in _registered() if _is_executable(kind)]


def refused_operations() -> list[type[Operation]]:
    """The operations that a text may hold and the executor refuses."""
    return [kind for kind in _registered() if not _is_executable(kind)]


def _registered() -> list[type[Operation]]:
    found = [kind for name in DIALECTS for kind in all_dialects()[name]().operations]
    return sorted({*found, *EXPERIMENTAL} - {FuncOp}, key=lambda kind: kind.name)


def _is_executable(kind: type[Operation]) -> bool:
    return kind.name in TERMINATORS or kind.name in operations_of(kind.name.partition(".")[0])


def operations_table() -> str:
    rows = [(f"`{kind.name}`", _state(kind)) for kind in _registered()]
    return table("Operations and the executor", ("operation", "executed"), rows)


def _state(kind: type[Operation]) -> str:
    if not _is_executable(kind):
        return "no: `UnknownOperation` where it stands"
    return "yes, with `--experimental`" if kind in EXPERIMENTAL else "yes"


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    pages = {"errors": error_table(), "passes": pass_table(), "operators": operator_table()}
    pages["operations"] = operations_table()
    pages |= {f"machine-{name}": machine_table(name) for name in available()}
    for name, text in pages.items():
        (TARGET / f"{name}.md").write_text(text, encoding="utf-8")
        print(f"docs/generated/{name}.md")


if __name__ == "__main__":
    main()
