"""Values on the command line: ``x=x.npy``, ``n=4096``, ``scale=0.5``, ``y=f16[256,1024]``, ``w=w.npy:bf16``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ktir.arrays import DTYPES, Array
from ktir.errors import ArgumentError, FileUnusable

FORMS = "NAME=FILE.npy, NAME=FILE.npy:TYPE, NAME=TYPE[SHAPE] for a fresh array, or NAME=NUMBER"
_FRESH = re.compile(r"(\w+)\[([\d\s,x]*)\]")


@dataclass(frozen=True)
class Given:
    """The arguments of a run by name, and the files they came from."""

    values: Mapping[str, Any]
    files: tuple[Path, ...]


def name_and_value(text: str) -> tuple[str, str]:
    """Splits ``NAME=VALUE``; for argparse's ``type=``."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not {FORMS}")
    return name.lstrip("%"), value


def read_arguments(pairs: Sequence[tuple[str, str]]) -> Given:
    """Reads every value. Raises :class:`ArgumentError` or :class:`FileUnusable`."""
    values: dict[str, Any] = {}
    sources: list[Path] = []
    for name, text in pairs:
        if name in values:
            raise ArgumentError(f"argument {name!r} is given twice")
        values[name] = _value(name, text, sources)
    return Given(values, tuple(sources))


def _value(name: str, text: str, sources: list[Path]) -> Any:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    if match := _FRESH.fullmatch(text):
        return fresh(match[1], [int(extent) for extent in re.split(r"[\s,x]+", match[2]) if extent])
    file, _, element = text.rpartition(":") if text.rpartition(":")[2] in DTYPES else (text, "", "")
    if not file.endswith(".npy"):
        raise ArgumentError(f"{name}={text} is not understood", remedy=f"write {FORMS}")
    sources.append(Path(file))
    return read_array(Path(file), element)


def fresh(element: str, shape: Sequence[int]) -> Array:
    """An array that nobody has written: NaN, or the lowest value of an integer type, so that it shows in a result."""
    if element not in DTYPES:
        raise ArgumentError(f"there is no element type {element!r}", remedy=f"use one of {', '.join(DTYPES)}")
    dtype = DTYPES[element]
    if dtype.kind == "b":
        return np.zeros(shape, dtype)
    return np.full(shape, np.iinfo(dtype).min if dtype.kind == "i" else np.nan, dtype)


def read_array(path: Path, element: str = "") -> Array:
    """A ``.npy`` file; ``element`` says how to read the bits of a type the format has no word for."""
    try:
        array: Array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FileUnusable(f"cannot read {path}: {error}", remedy="give a file that numpy.save wrote") from None
    if not element:
        return array
    if array.dtype.itemsize != DTYPES[element].itemsize:
        raise ArgumentError(f"{path} holds {array.dtype}, whose elements are not the size of {element}")
    return array.view(DTYPES[element])
