"""Arrays at the border: numpy, ml_dtypes and torch in, numpy inside, the caller's kind out.

torch is never imported here: a torch tensor can only come from a caller who has it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ktir.dialect.float8 import FLOAT8
from ktir.errors import ArgumentError

Array = npt.NDArray[Any]

DTYPES: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "f8E4M3FN": FLOAT8["f8E4M3FN"],
    "f8E5M2": FLOAT8["f8E5M2"],
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()} | {
    np.dtype(f"u{dtype.itemsize}"): name for name, dtype in DTYPES.items() if dtype.kind == "i"
}
"""The IR's word for each element type; its integers have no sign of their own."""
_TORCH_BITS = {"bfloat16": "int16", "float8_e4m3fn": "int8", "float8_e5m2": "int8"}
"""Element types of torch that numpy cannot share memory with, and one of the same size that it can."""


def is_torch(value: object) -> bool:
    """Whether ``value`` is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_array(value: object) -> bool:
    """Whether ``value`` is an array of any kind that is accepted; scalars, numpy's included, are not."""
    return isinstance(value, np.ndarray) or is_torch(value)


def to_numpy(value: Any) -> Array:
    """The same elements as a contiguous numpy array; shares memory where it can, so treat it as read-only.

    Raises :class:`ArgumentError` for an element type the IR has no word for.
    """
    array = _torch_to_numpy(value) if is_torch(value) else np.asarray(value)
    if array.dtype not in NAMES:
        raise ArgumentError(
            f"element type {array.dtype} has no counterpart in the IR", remedy=f"use one of {', '.join(DTYPES)}"
        )
    return np.ascontiguousarray(array).reshape(array.shape)


def like(array: Array, original: object) -> Any:
    """``array`` as the kind of thing ``original`` is."""
    return to_torch(array) if is_torch(original) else array


def to_torch(array: Array) -> Any:
    """A torch tensor of the same elements, with memory of its own."""
    torch = _torch()
    bits = _TORCH_BITS.get(array.dtype.name)
    if bits is not None:
        return torch.from_numpy(array.view(bits).copy()).view(getattr(torch, array.dtype.name))
    return torch.from_numpy(array.copy())


def dtype_name(array: Array) -> str:
    """The IR's word for an array's element type."""
    return NAMES[array.dtype]


def _torch() -> Any:
    """torch without its incomplete types."""
    return import_module("torch")


def _torch_to_numpy(tensor: Any) -> Array:
    torch = _torch()
    plain = tensor.detach().cpu().contiguous()
    name = str(plain.dtype).removeprefix("torch.")
    if name in _TORCH_BITS:
        return plain.view(getattr(torch, _TORCH_BITS[name])).numpy().view(getattr(ml_dtypes, name))
    try:
        return plain.numpy()
    except TypeError:
        raise ArgumentError(
            f"element type {tensor.dtype} has no counterpart in the IR", remedy=f"use one of {', '.join(DTYPES)}"
        ) from None
