"""Runs one kernel through the dataflow simulator, for the side-by-side harness that compares implementations of KTIR.

``run`` lowers for the machine ``spyre``, with the scratchpad that the case asks for, and executes the program of the
units. ``load_s`` is all that needs no data: parsing, lowering, verifying and preparing the run. ``exec_s`` is from
arrays in to arrays out, both CPU seconds; with ``latency`` the report has the modelled time. A kernel that cannot be
lowered raises, with the operation and the reason.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import ktir
from ktir.arrays import dtype_name
from ktir.backends.dataflow import run as dataflow
from ktir.backends.dataflow import timed, verify
from ktir.backends.dataflow.lower import lower_to_dfp
from ktir.backends.dataflow.lower.launches import Argument, ArrayArgument
from ktir.dialect.text.parser import parse_module
from ktir.errors import NotLowerable


def run(case: Any, text: str, built: Any, latency: bool = False) -> dict[str, Any]:
    """The outputs and times of one call."""
    began = time.process_time()
    machine = ktir.machine("spyre", **({"scratchpad": f"{case.lx_mb}MiB"} if case.lx_mb else {}))
    arrays, launch = arguments(case, built)
    lowered = lower_to_dfp(parse_module(text, case.file), machine, case.func, launch)
    verify.check(lowered.module, machine)
    runner = dataflow.Runner(lowered)
    loaded = time.process_time()
    outputs = runner.run(arrays).outputs
    ended = time.process_time()
    return {
        "outputs": {name: outputs.get(name, arrays[name]) for name in case.outputs},
        "load_s": loaded - began,
        "exec_s": ended - loaded,
        "report": {"kernel_time_us": timed.simulate(lowered.module, machine).total_ns / 1e3} if latency else None,
    }


def arguments(case: Any, built: Any) -> tuple[dict[str, Any], dict[str, Argument]]:
    """Arrays by name, and what the launch is told of them; a readback where an image lies goes by the image."""
    arrays: dict[str, Any] = {name: value for name, value in built.args.items() if isinstance(value, np.ndarray)}
    launch: dict[str, Argument] = {
        name: ArrayArgument(value.shape, dtype_name(value)) if isinstance(value, np.ndarray) else value
        for name, value in built.args.items()
    }
    for name, (byte, shape, dtype) in case.readback.items():
        arrays[name] = np.zeros(shape, dtype)
        launch[name] = ArrayArgument(tuple(shape), dtype_name(arrays[name]), byte)
    for number, segment in enumerate(built.memory):
        if segment.space == "lx":
            raise NotLowerable(
                f"ktdp.load of {case.func} reads {segment.data.nbytes} bytes that are in the scratchpad of core "
                f"{segment.core} before the launch; the host of a dataflow program copies to device memory alone",
                remedy="let an earlier launch load them from device memory and store them there",
            )
        place = next((n for n, (byte, shape, _) in case.readback.items() if byte == segment.byte_addr), None)
        name = place or segment.name or f"image{number}"
        arrays[name] = segment.data
        launch[name] = ArrayArgument(segment.data.shape, dtype_name(segment.data), segment.byte_addr)
    return arrays, launch
