"""Values on the command line: ``x=x.npy``, ``n=4096``, ``scale=0.5``, ``y=f16[256,1024]``, ``w=w.safetensors:q_proj``.

A file is followed by what to take from it, where that is not plain: the name of one of several arrays, or the element
type of bits that the file has no word for.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktir.errors import ArgumentError, FileUnusable, KtirError

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp

    from ktir.arrays import Array

FORMS = "NAME=FILE (.npy, .npz, .safetensors), NAME=FILE:TYPE, NAME=TYPE[SHAPE] for a fresh array, or NAME=NUMBER"
WORDS = {"true": 1, "false": 0}


@dataclass(frozen=True)
class Given:
    """The arguments of a run by name, and the files they came from."""

    values: Mapping[str, Any]
    files: tuple[Path, ...]


def name_and_value(text: str) -> tuple[str, str]:
    """Splits ``NAME=VALUE``; for argparse's ``type=``."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.lstrip("%"), value


def name_and_shape(text: str) -> tuple[str, str]:
    """Splits ``NAME=SHAPExTYPE`` or takes ``NAME`` alone; for argparse's ``type=``."""
    return name_and_value(text) if "=" in text else (text.lstrip("%"), "")


def report_file(text: str) -> Path:
    """A file whose name says which form of report it is to hold; for argparse's ``type=``."""
    from ktir.backends.dataflow.reports.report import form_of

    try:
        form_of(text)
    except FileUnusable as error:
        raise argparse.ArgumentTypeError(f"{error.message}: {error.remedy}") from None
    return Path(text)


def page_file(text: str) -> Path:
    """A file named like a page; for argparse's ``type=``."""
    return _file_named(text, (".html", ".htm"))


def trace_file(text: str) -> Path:
    """A file named like a trace; for argparse's ``type=``."""
    return _file_named(text, (".json",))


def _file_named(text: str, endings: tuple[str, ...]) -> Path:
    if not text.lower().endswith(endings):
        raise argparse.ArgumentTypeError(f"{text!r} does not end in {' or '.join(endings)}")
    return Path(text)


def read_arguments(
    function: FuncOp, pairs: Sequence[tuple[str, str]], random: Sequence[tuple[str, str]] = (), seed: int = 0
) -> Given:
    """Reads every value, for a call of ``function``.

    Raises :class:`ArgumentError` or :class:`FileUnusable`, naming the argument.
    """
    from ktir.interp.made_arguments import parse_shaped, random_array, shape_of_argument

    names = [name for name, _ in (*pairs, *random)]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(f"argument {name!r} is given twice", remedy="keep one of them")
    sources: list[Path] = []
    values = {name: _value(name, text, sources) for name, text in pairs}
    for position, (name, text) in enumerate(random):
        kind = parse_shaped(text) if text else shape_of_argument(function, name, values)
        if kind is None:
            raise ArgumentError(f"--random {name}={text} is not understood", remedy="write, for example, x=67x1000xf16")
        values[name] = random_array(kind, seed * 1000 + position)
    return Given(values, tuple(sources))


def _value(name: str, text: str, sources: list[Path]) -> Any:
    from ktir.array_files import is_array_file
    from ktir.interp.made_arguments import parse_shaped, unwritten

    number = parse_number(text)
    if number is not None:
        return number
    file, colon, part = text.rpartition(":")
    if is_array_file(text) or (colon and is_array_file(file)):
        path = Path(text if is_array_file(text) else file)
        sources.append(path)
        return _read(name, path, "" if is_array_file(text) else part)
    if "[" in text and (kind := parse_shaped(text)) is not None:
        return unwritten(kind)
    raise ArgumentError(f"{name}={text} is not understood", remedy=f"write {FORMS}")


def parse_number(text: str) -> int | float | None:
    """``4096``, ``0x10``, ``0.5``, ``inf``, ``true``; None for another text."""
    if text in WORDS:
        return WORDS[text]
    for read in (int, partial(int, base=0), float):
        try:
            return read(text)
        except ValueError:
            continue
    return None


def _read(name: str, path: Path, part: str) -> Array:
    from ktir.array_files import read_array
    from ktir.arrays import DTYPES

    element = part if part in DTYPES else ""
    try:
        return read_array(path, name if element or not part else part, element)
    except KtirError as error:
        kind = type(error) if isinstance(error, ArgumentError | FileUnusable) else ArgumentError
        raise kind(f"argument {name}: {error.message}", remedy=error.remedy) from None
