"""Runs one kernel through ktir for the side-by-side harness that compares implementations of KTIR.

Words. *case*: a kernel with inputs and expected outputs. *built*: its inputs for one call: ``args`` by name, and for
cases with addresses in their text ``memory``, a list of arrays with a space, a core and a byte address.

``run`` executes without checks, ``run_checked`` with all of them. Times are CPU seconds of this process: ``load_s`` for
parsing and compiling, ``exec_s`` from arrays in to arrays out. Nothing survives from one call to the next.
"""

from __future__ import annotations

import time
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np

from ktir.dialect.text.parser import parse_module
from ktir.interp.executor import Program
from ktir.interp.places import Place, Region

with suppress(ImportError):  # conversions use it where it is loaded, and no call is to be charged with loading it
    import_module("torch")

NAMES = {"float16": "f16", "float32": "f32", "int32": "i32", "int64": "i64"}


def run(case: Any, text: str, built: Any, latency: bool = False) -> dict[str, Any]:
    """The outputs and times of one call, with checks off. ``latency`` asks for a report, which there is none of."""
    return _run(case, text, built, checks=False)


def run_checked(case: Any, text: str, built: Any, latency: bool = False) -> dict[str, Any]:
    """As :func:`run`, with all checks."""
    return _run(case, text, built, checks=True)


def _run(case: Any, text: str, built: Any, *, checks: bool) -> dict[str, Any]:
    began = time.process_time()
    program = Program(parse_module(text, case.file))
    program.entry(case.func).compiled()
    loaded = time.process_time()
    done = program.run(case.func, built.args, checks=checks, memory=places(built.memory), read=regions(case.readback))
    ended = time.process_time()
    unwritten = {name: np.asarray(built.args[name]) for name in case.outputs if name not in done.outputs}
    return {
        "outputs": {**unwritten, **done.outputs},
        "load_s": loaded - began,
        "exec_s": ended - loaded,
        "report": None,
    }


def places(segments: Any) -> list[Place]:
    """Where the arrays of a case with given addresses lie."""
    return [
        Place(each.data, each.byte_addr, "ct_local", each.core, each.name)
        if each.space == "lx"
        else Place(each.data, each.byte_addr, name=each.name)
        for each in segments
    ]


def regions(readback: Any) -> dict[str, Region]:
    """What is read back from given addresses."""
    return {
        name: Region(byte, NAMES[np.dtype(dtype).name], tuple(shape)) for name, (byte, shape, dtype) in readback.items()
    }
