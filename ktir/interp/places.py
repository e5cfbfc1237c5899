"""Where arrays lie for programs that name addresses themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Space = Literal["global", "ct_local"]


@dataclass(frozen=True, slots=True)
class Place:
    """An array at byte address ``byte`` of the global memory, or of the scratchpad of one core."""

    array: Any
    byte: int
    space: Space = "global"
    core: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Region:
    """Elements to be read back after the run: ``dtype`` is an element type of the IR, such as ``f16``."""

    byte: int
    dtype: str
    shape: tuple[int, ...]
    space: Space = "global"
    core: int | None = None
