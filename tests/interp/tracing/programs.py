"""Programs that the tests of tracing look into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ktir.dialect.text.parser import parse_module
from ktir.interp.executor import Execution, execute
from ktir.interp.observation import Observer
from tests.interp.kernels import kernel, load, store, tile, view

ROWS, COLUMNS, CORES = 12, 16, 3
PER_CORE = ROWS // CORES
FILE = "test.ktir"


def rows_loop(compute: Sequence[str], result: str = "%r", element: str = "f32") -> str:
    """Each of 3 cores walks its 4 rows of ``x`` one by one and stores ``result`` of ``%v`` as the row of ``y``."""
    shape, of = (1, COLUMNS), (ROWS, COLUMNS)
    return kernel(
        [
            "%c0 = arith.constant 0 : index",
            "%c1 = arith.constant 1 : index",
            f"%c4 = arith.constant {PER_CORE} : index",
            "%core = ktdp.get_compute_tile_id : index",
            "%first = arith.muli %core, %c4 : index",
            view("%xv", "%x", of, element),
            view("%yv", "%y", of, element),
            "scf.for %i = %c0 to %c4 step %c1 {",
            "%row = arith.addi %first, %i : index",
            tile("%xt", "%xv", "%row, 0", shape, of, element),
            load("%v", "%xt", shape, element),
            *compute,
            tile("%yt", "%yv", "%row, 0", shape, of, element),
            store(result, "%yt", shape, element),
            "}",
        ],
        "%x: index, %y: index",
        [CORES],
    )


DOUBLE = rows_loop(["%r = arith.addf %v, %v : tensor<1x16xf32>"])
SQUARE_PLUS = rows_loop(
    [
        "%s = arith.mulf %v, %v : tensor<1x16xf32>",
        "%r = arith.addf %s, %v : tensor<1x16xf32>",
    ]
)


def inputs(dtype: Any = np.float32) -> dict[str, Any]:
    x = np.random.default_rng(3).standard_normal((ROWS, COLUMNS)).astype(dtype)
    return {"x": x, "y": np.zeros_like(x)}


def observed(text: str, arguments: dict[str, Any], *observers: Observer, **options: Any) -> Execution:
    return execute(parse_module(text, FILE), None, arguments, observers=observers, source=text, **options)


def line_with(text: str, part: str) -> int:
    """The number of the only line that holds ``part``."""
    (found,) = [number for number, line in enumerate(text.split("\n"), 1) if part in line]
    return found
