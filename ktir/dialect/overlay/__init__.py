"""Stock xDSL dialects as KTIR needs them: repaired in place, so that xDSL's own passes still know the classes.

One file per dialect; each says what MLIR accepts or prints and the stock class does not. A repair is applied when its
dialect is loaded, once per process, and only widens what is accepted or corrects what was wrong.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Dialect


def dialects() -> dict[str, Callable[[], Dialect]]:
    """Name and loader of every stock dialect that KTIR uses."""
    return {
        "builtin": _builtin,
        "func": _func,
        "arith": _arith,
        "math": _math,
        "scf": _scf,
        "linalg": _linalg,
        "tensor": _tensor,
        "memref": _memref,
        "affine": _affine,
        "cf": _cf,
    }


def repair_all() -> None:
    """Loads and repairs every dialect, for code that builds IR before any text was read."""
    for load in dialects().values():
        load()


def _builtin() -> Dialect:
    from ktir.dialect.overlay.builtin import BUILTIN

    return BUILTIN


def _func() -> Dialect:
    from ktir.dialect.overlay.func import FUNC

    return FUNC


def _arith() -> Dialect:
    from ktir.dialect.overlay.arith import ARITH

    return ARITH


def _math() -> Dialect:
    from ktir.dialect.overlay.math import MATH

    return MATH


def _scf() -> Dialect:
    from ktir.dialect.overlay.scf import SCF

    return SCF


def _linalg() -> Dialect:
    from ktir.dialect.overlay.linalg import LINALG

    return LINALG


def _tensor() -> Dialect:
    from ktir.dialect.overlay.tensor import TENSOR

    return TENSOR


def _memref() -> Dialect:
    from ktir.dialect.overlay.memref import MEMREF

    return MEMREF


def _affine() -> Dialect:
    from ktir.dialect.overlay.affine import AFFINE

    return AFFINE


def _cf() -> Dialect:
    from ktir.dialect.overlay.cf import CF

    return CF
