"""Runs of bytes, and short descriptions of many of them.

A *run* is a first byte and the byte after the last. A *box* is a run that is repeated along one or more dimensions:
``(first, width, count, stride, ...)`` with a count and a stride for each, the last one innermost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Runs = NDArray[np.int64]
"""One row for each run, in order, none of which touches another."""

MOST_BOXES = 64


def boxes_of(runs: Runs) -> list[tuple[int, ...]] | None:
    """Boxes that have the bytes of ``runs``, each once; None where many are needed."""
    if not len(runs):
        return []
    widths = runs[:, 1] - runs[:, 0]
    ends = [*(np.flatnonzero(widths[1:] != widths[:-1]) + 1), len(runs)]
    boxes: list[tuple[int, ...]] = []
    begin = 0
    for end in ends:
        starts = runs[begin:end, 0]
        while len(starts):
            if len(boxes) == MOST_BOXES:
                return None
            taken, dims = _grid(starts)
            boxes.append((int(starts[0]), int(widths[begin]), *(number for dim in reversed(dims) for number in dim)))
            starts = starts[taken:]
        begin = int(end)
    return boxes


def _grid(starts: NDArray[np.int64]) -> tuple[int, list[tuple[int, int]]]:
    """How many of ``starts`` from the first on are a grid, and its counts and strides, innermost first."""
    taken, dims = 1, list[tuple[int, int]]()
    while taken < len(starts):
        whole = starts[: len(starts) // taken * taken].reshape(-1, taken)
        alike = whole - whole[:, :1] == whole[0] - whole[0, 0]
        steps = np.diff(whole[:, 0])
        if not len(steps):
            break
        good = alike.all(1)[1:] & (steps == steps[0])
        count = 1 + (len(good) if good.all() else int(np.argmin(good)))
        if count == 1:
            break
        dims.append((count, int(steps[0])))
        taken *= count
    return taken, dims


def runs_of(boxes: Sequence[Sequence[int]]) -> Runs:
    """The runs of boxes, in the order of the boxes; those that touch are not joined."""
    parts = [np.zeros((0, 2), np.int64)]
    for first, width, *dims in boxes:
        starts = np.array([first], np.int64)
        for count, stride in zip(dims[::2], dims[1::2], strict=True):
            starts = (starts[:, None] + np.arange(count, dtype=np.int64) * stride).ravel()
        parts.append(np.stack([starts, starts + width], axis=1))
    return np.concatenate(parts)


__all__ = ["Runs", "boxes_of", "runs_of"]
