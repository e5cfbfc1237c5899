"""The floats of eight bits by their names in IR text, and how arrays hold them."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

import ml_dtypes
import numpy as np

FLOAT8: Final[MappingProxyType[str, np.dtype[Any]]] = MappingProxyType(
    {
        "f8E3M4": np.dtype(ml_dtypes.float8_e3m4),
        "f8E4M3": np.dtype(ml_dtypes.float8_e4m3),
        "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
        "f8E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
        "f8E4M3B11FNUZ": np.dtype(ml_dtypes.float8_e4m3b11fnuz),
        "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
        "f8E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
        "f8E8M0FNU": np.dtype(ml_dtypes.float8_e8m0fnu),
    }
)
