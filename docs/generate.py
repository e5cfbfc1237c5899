"""Writes the tables that are read off the code to ``docs/generated``: errors, passes, operators, machine values.

Run by ``make docs``. The tables are not kept in the repository, so they are never older than the code.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from pathlib import Path

import ktir
from ktir import errors
from ktir.frontend.torch.aten_table import OPERATORS
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


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    pages = {"errors": error_table(), "passes": pass_table(), "operators": operator_table()}
    pages |= {f"machine-{name}": machine_table(name) for name in available()}
    for name, text in pages.items():
        (TARGET / f"{name}.md").write_text(text, encoding="utf-8")
        print(f"docs/generated/{name}.md")


if __name__ == "__main__":
    main()
