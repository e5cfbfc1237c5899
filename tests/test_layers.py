"""The import order of the layers, read from the sources: a layer imports from itself and from layers below it.

Imports inside functions and those for type checking count as well: a layer must not know what stands on it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "ktir"

ORDER = (
    {"version", "location", "errors", "files"},
    {"maths"},
    {"machine"},
    {"dialect"},
    {"analysis"},
    {"passes"},
    {"backends", "interp", "frontend"},
    {"planner"},
    {"arrays", "array_files", "module", "signature", "saving", "package", "program", "api"},
    {"tools"},
)
LEVEL = {name: level for level, names in enumerate(ORDER) for name in names}
CONFORMANCE_MAY_USE = {"errors", "location", "maths", "files"}
"""Cases and targets stand beside the toolchain, so that any implementation can be tested with them."""

FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem != "__init__")


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """``(line, dotted name)`` of everything a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative imports hide their layer"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "ktir" else [module]
            yield from ((node.lineno, name) for name in names)


def layer(path: Path) -> str:
    """The part of the package a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path: Path) -> None:
    here = layer(path)
    used = [(line, name.split(".")[1]) for line, name in imports(path) if name.startswith("ktir.")]
    if here == "conformance":
        wrong = [(line, name) for line, name in used if name not in CONFORMANCE_MAY_USE | {"conformance"}]
    else:
        wrong = [(line, name) for line, name in used if not _allowed(here, name)]
    assert not wrong, f"{path}: imports upwards: {wrong}"


def _allowed(here: str, name: str) -> bool:
    if name == here:
        return True
    if name == "conformance":
        return here == "tools"
    level, other = LEVEL[here], LEVEL[name]
    return other < level or (other == level and here in ORDER[0] | ORDER[8])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_torch_frontend_imports_torch_when_it_is_loaded(path: Path) -> None:
    if path.is_relative_to(PACKAGE / "frontend" / "torch"):
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in top for alias in node.names} | {getattr(node, "module", None) for node in top}
    assert not {name for name in names if name and name.split(".")[0] == "torch"}
