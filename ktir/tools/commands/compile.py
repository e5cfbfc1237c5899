"""``ktir compile``: a PyTorch model to a saved package.

``module:callable`` names a function that takes nothing and returns ``(model, args)`` or ``(model, args, kwargs)``; the
module is a dotted name or the path of a Python file. This is the only command that runs code of yours.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from ktir.errors import UnsupportedInput
from ktir.tools.console import OK, Console

HELP = "compile a PyTorch model to KTIR and save it as a package"
EXAMPLES = """  ktir compile examples/models.py:swiglu --output swiglu.ktirpkg
  ktir compile my_package.models:build --emit ktir
  ktir compile examples/models.py:swiglu --emit dfp --machine spyre"""
LEVELS = {"graph": "graph", "ktir": "module", "dfp": "dataflow"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("callable", metavar="MODULE:CALLABLE", help="returns (model, args) or (model, args, kwargs)")
    parser.add_argument("--machine", metavar="NAME", default="spyre", help="machine to plan for; default: spyre")
    parser.add_argument("--output", "-o", metavar="FILE", type=Path, help="write the package (.ktirpkg)")
    parser.add_argument("--emit", choices=tuple(LEVELS), help="print the IR of this level instead of the plan")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Prints the plan, or the IR that was asked for."""
    from ktir import api
    from ktir.files import refuse_outputs

    if arguments.output is not None:
        refuse_outputs([arguments.output], [Path(arguments.callable.rpartition(":")[0])])
    model, args, kwargs = _model(arguments.callable)
    with console.step("compiling"):
        program = api.compile(model, args, kwargs, machine=arguments.machine)
    if arguments.output is not None:
        program.save(arguments.output)
    if arguments.emit:
        text = str(getattr(program, LEVELS[arguments.emit]))
        console.result({"ok": True, "level": arguments.emit, "text": text}, text)
        return OK
    console.result(
        {"ok": True, "package": str(arguments.output) if arguments.output else None, "plan": program.plan.data},
        str(program.plan),
    )
    return OK


def _model(text: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    module_name, colon, name = text.rpartition(":")
    if not colon or not module_name or not name:
        raise UnsupportedInput(
            f"{text!r} is not MODULE:CALLABLE", remedy="write, for example, examples/models.py:swiglu"
        )
    module = _module(module_name)
    build = getattr(module, name, None)
    if not callable(build):
        known = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        remedy = f"did you mean {' or '.join(near)}?" if near else "name a function of that module"
        raise UnsupportedInput(f"{module_name} has no callable {name!r}", remedy=remedy)
    made: object = build()
    parts = list(cast("tuple[Any, ...]", made)) if isinstance(made, tuple) else []
    args: object = parts[1] if len(parts) in (2, 3) else None
    kwargs: object = parts[2] if len(parts) == 3 else {}
    if not isinstance(args, tuple | list) or not isinstance(kwargs, dict):
        raise UnsupportedInput(
            f"{text} returned something else than a model and its arguments",
            remedy="return (model, args) or (model, args, kwargs)",
        )
    return parts[0], tuple(cast("list[Any]", args)), cast("dict[str, Any]", kwargs)


def _module(name: str) -> ModuleType:
    try:
        if not name.endswith(".py"):
            sys.path.insert(0, str(Path.cwd()))
            return importlib.import_module(name)
        spec = importlib.util.spec_from_file_location(Path(name).stem, name)
        assert spec is not None and spec.loader is not None  # a .py file always has a loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    except (ImportError, OSError, SyntaxError) as error:
        raise UnsupportedInput(
            f"cannot import {name}: {error}", remedy="give a module's dotted name, or the path of a .py file"
        ) from None
