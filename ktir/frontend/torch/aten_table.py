"""The curated set: which composite operators the capture keeps whole, which it rewrites, and who imports what is left.

Both doors, ``torch.export`` and Dynamo, decompose with :func:`decompositions` and import with :data:`OPERATORS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

import torch

from ktir.frontend.torch.importer import Handler
from ktir.frontend.torch.ops.attention import ATTENTION
from ktir.frontend.torch.ops.contractions import CONTRACTIONS
from ktir.frontend.torch.ops.normalisation import NORMALISATION
from ktir.frontend.torch.ops.pointwise import POINTWISE
from ktir.frontend.torch.ops.reductions import REDUCTIONS
from ktir.frontend.torch.ops.views import VIEWS

OPERATORS: Final = MappingProxyType[str, Handler](
    {**POINTWISE, **VIEWS, **REDUCTIONS, **NORMALISATION, **CONTRACTIONS, **ATTENTION}
)
"""Handler of each ATen overload in the set."""

_KEPT: Final = (
    "scaled_dot_product_attention",  # one fold instead of forty nodes in f32, and grouped heads stay grouped
    "linear",  # the weight stays (out, in): no transposed copy
    "matmul",  # batch dimensions stay dimensions: no expand and reshape around bmm
    "silu",
    "rms_norm",
    "linalg_vector_norm",
)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's core decompositions without the composites that the importer takes whole."""
    aten = cast("Any", torch.ops.aten)
    table = dict(cast("Mapping[Any, Callable[..., Any]]", torch.export.default_decompositions()).items())
    for name in _KEPT:
        table.pop(getattr(aten, name).default, None)
    table[aten._assert_tensor_metadata.default] = _nothing
    return table


def _nothing(*_arguments: object, **_keywords: object) -> None:
    """A check of the capture that has no value."""
