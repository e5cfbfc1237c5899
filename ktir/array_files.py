"""Arrays in files: ``.npy`` for one, ``.npz`` and ``.safetensors`` for several by name.

numpy's formats have no word for bf16 and f8: such arrays are written as plain bits and read back with the element type
given, which whoever reads them knows from the program. safetensors has words for all.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import numpy as np
import safetensors
import safetensors.numpy

from ktir.arrays import DTYPES, NAMES, Array
from ktir.errors import ArgumentError, FileUnusable
from ktir.files import write_whole

SUFFIXES = (".npy", ".npz", ".safetensors")
SAFETENSORS_TYPES: Mapping[str, np.dtype[Any]] = {
    "F16": DTYPES["f16"],
    "BF16": DTYPES["bf16"],
    "F32": DTYPES["f32"],
    "F64": DTYPES["f64"],
    "F8_E4M3": DTYPES["f8E4M3FN"],
    "F8_E5M2": DTYPES["f8E5M2"],
    "BOOL": DTYPES["i1"],
    "I8": DTYPES["i8"],
    "I16": DTYPES["i16"],
    "I32": DTYPES["i32"],
    "I64": DTYPES["i64"],
    "U8": np.dtype(np.uint8),
    "U16": np.dtype(np.uint16),
    "U32": np.dtype(np.uint32),
    "U64": np.dtype(np.uint64),
}


def is_array_file(path: str | Path) -> bool:
    """Whether the name is one of an array file."""
    return Path(path).suffix in SUFFIXES


def read_array(path: Path, entry: str, element: str = "") -> Array:
    """One array. In a file of several it is the one called ``entry``, or the only one.

    ``element`` is the element type of bits that the file has no word for. Raises :class:`FileUnusable` for a file that
    is missing or damaged, :class:`ArgumentError` for one without the array.
    """
    arrays = read_arrays(path)
    if entry not in arrays and len(arrays) != 1:
        near = get_close_matches(entry, list(arrays), n=3, cutoff=0.5) or list(arrays)[:8]
        raise ArgumentError(
            f"{path} has no array {entry!r}", remedy=f"it has {', '.join(near) or 'none'}; write {path}:NAME"
        )
    array = arrays[entry] if entry in arrays else next(iter(arrays.values()))
    return with_elements(array, element, str(path)) if element else array


def with_elements(array: Array, element: str, what: str) -> Array:
    """The bits of ``array`` as another element type. Raises :class:`ArgumentError` where the sizes differ."""
    dtype = DTYPES[element]
    if array.dtype.itemsize != dtype.itemsize:
        raise ArgumentError(
            f"{what} holds {described(array.dtype)}, whose elements are not the size of {element}",
            remedy=f"convert it to {element} before it is saved",
        )
    return np.ascontiguousarray(array).reshape(array.shape).view(dtype)


def described(dtype: np.dtype[Any]) -> str:
    """An element type in the IR's words where it has one."""
    if dtype.kind == "V" and dtype not in NAMES:
        return f"elements of {dtype.itemsize} bytes without a type"
    return NAMES.get(dtype, str(dtype))


def read_arrays(path: Path) -> dict[str, Array]:
    """All arrays of a file by name; that of a ``.npy`` file has the name ``""``."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileUnusable(f"cannot read {path}: {error.strerror or error}") from None
    if path.suffix == ".safetensors":
        return _from_safetensors(path, data)
    try:
        loaded: Any = np.load(BytesIO(data), allow_pickle=False)
        arrays: dict[str, Array] = (
            {"": cast("Array", loaded)}
            if isinstance(loaded, np.ndarray)
            else {str(name): loaded[name] for name in loaded.files}
        )
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError) as error:
        raise FileUnusable(
            f"cannot read {path}: {_reason(error)}", remedy="give a file that numpy.save or numpy.savez wrote"
        ) from None
    return {name: _native(array) for name, array in arrays.items()}


def _reason(error: Exception) -> str:
    if isinstance(error, ValueError) and "pickle" in str(error).lower():
        return "it holds Python objects, or is no array file"
    return str(error) or type(error).__name__


def _native(array: Array) -> Array:
    """The same numbers in the byte order of this machine."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _from_safetensors(path: Path, data: bytes) -> dict[str, Array]:
    try:
        return decode_safetensors(data)
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        raise FileUnusable(
            f"cannot read {path}: {_reason(error)}", remedy="give a file that safetensors wrote, of numbers or booleans"
        ) from None


def decode_safetensors(data: bytes) -> dict[str, Array]:
    """The tensors of a safetensors file."""
    entries = cast("list[tuple[str, dict[str, Any]]]", safetensors.deserialize(data))  # pyright: ignore
    return {
        name: np.frombuffer(entry["data"], SAFETENSORS_TYPES[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in entries
    }


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> Path:
    """Writes a file whole or not at all; what it holds follows from its suffix.

    Raises :class:`ArgumentError` for another suffix, and for several arrays in a ``.npy`` file.
    """
    refuse_names(path, list(arrays))
    if path.suffix == ".safetensors":
        plain = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
        return write_whole(path, safetensors.numpy.save(plain))
    data = BytesIO()
    if path.suffix == ".npz":
        np.savez(data, allow_pickle=False, **{name: _bits(array) for name, array in arrays.items()})  # type: ignore[arg-type]
        return write_whole(path, data.getvalue())
    np.save(data, _bits(next(iter(arrays.values()))))
    return write_whole(path, data.getvalue())


def refuse_names(path: Path, names: Sequence[str]) -> None:
    """Raises :class:`ArgumentError` where arrays of these names cannot be written to ``path``."""
    if not is_array_file(path):
        raise ArgumentError(f"{path} is no array file", remedy=f"name it {', '.join('*' + each for each in SUFFIXES)}")
    if len(names) != len(set(names)):
        raise ArgumentError(f"an array is written to {path} twice", remedy="keep one of them")
    if path.suffix == ".npy" and len(names) != 1:
        raise ArgumentError(
            f"{path} can hold one array, not {', '.join(names)}", remedy="write .npz or .safetensors, or several files"
        )


def _bits(array: Array) -> Array:
    """Elements that numpy's formats have no word for as plain bits of the same size."""
    if array.dtype.isbuiltin == 1:
        return array
    return np.ascontiguousarray(array).reshape(array.shape).view(f"V{array.dtype.itemsize}")


__all__ = ["is_array_file", "read_array", "read_arrays", "with_elements", "write_arrays"]
