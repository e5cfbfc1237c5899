"""The published cost formulas, for ranking shapes that nobody published a time of; and rank correlation.

Source: torch-spyre ``cost_model.py`` (September 2026), ``predict_ops`` and ``_matmul_ns_bundled``: the longer of
memory and arithmetic. Terms that are nought for the shapes of the sweep are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt

BANDWIDTH = 150.0
"""Bytes per nanosecond in one direction."""
TURNAROUND = 0.00574
"""Nanoseconds per byte that is read while another is written."""
MULTIPLICATIONS = 1140.0
"""Per nanosecond and core, sustained."""
FULL_ROWS, FILL_EXPONENT = 64, 0.35
"""Rows of a core that fill the matrix unit, and how its rate falls with fewer."""


def memory_ns(read: float, written: float) -> float:
    """Time of device memory for bytes read and written by one kernel."""
    return (read + written) / BANDWIDTH + TURNAROUND * min(read, written)


def product_ns(rows: int, depth: int, columns: int, row_split: int, column_split: int) -> float:
    """Time of a product in half precision."""
    filled = min(1.0, (rows / row_split / FULL_ROWS) ** FILL_EXPONENT)
    arithmetic = rows * depth * columns / (row_split * column_split) / (MULTIPLICATIONS * filled)
    return max(arithmetic, memory_ns(2 * depth * (rows + columns), 2 * rows * columns))


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> float:
    """Spearman's: the correlation of ranks, equal values sharing the mean of theirs."""
    ranks = _ranks(left), _ranks(right)
    means = [fsum(each) / len(each) for each in ranks]
    a, b = ([rank - mean for rank in each] for each, mean in zip(ranks, means, strict=True))
    return fsum(x * y for x, y in zip(a, b, strict=True)) / sqrt(fsum(x * x for x in a) * fsum(y * y for y in b))


def _ranks(values: Sequence[float]) -> list[float]:
    return [
        fsum(other < value for other in values) + (fsum(other == value for other in values) - 1) / 2 for value in values
    ]
