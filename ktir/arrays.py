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

from ktir.errors import ArgumentError

Array = npt.NDArray[Any]

DTYPES: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


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
    if array.dtype == DTYPES["bf16"]:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
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
    if plain.dtype == torch.bfloat16:
        return plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    try:
        return plain.numpy()
    except TypeError:
        raise ArgumentError(
            f"element type {tensor.dtype} has no counterpart in the IR", remedy=f"use one of {', '.join(DTYPES)}"
        ) from None
