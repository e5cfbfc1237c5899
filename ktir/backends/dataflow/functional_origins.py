"""Puts together the elements that a batch takes, from where each of its rows has them.

Elements are arrays [cores, rows, ...]; where all elements of a row are the same, one stands for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktir.backends.dataflow.element_types import raw_dtype
from ktir.backends.dataflow.functional_batch import Batch, Origin
from ktir.backends.dataflow.functional_memory import Memories

Array = NDArray[Any]


def pullers(batch: Batch) -> list[tuple[Callable[[Memories], Array], str]]:
    """For each queue that the batch pops, a function that gives the elements, and their type."""
    flows = batch.instruction.pops
    return [(puller(batch, rows, flow.elements), flow.element) for rows, flow in zip(batch.sources, flows, strict=True)]


def full(elements: Array, count: int) -> Array:
    """Elements [cores, rows, count], with those that one stands for."""
    cores, rows = elements.shape[:2]
    flat = elements.reshape(cores, rows, -1)
    return flat if flat.shape[2] == count else np.broadcast_to(flat, (cores, rows, count))


def puller(batch: Batch, origins: Sequence[Origin], count: int) -> Callable[[Memories], Array]:
    """A function that puts together the elements of all rows, [cores, rows, ...], from where each row has them."""
    groups: list[tuple[int, list[int]]] = []
    for origin in origins:
        if isinstance(origin, list):
            return _parts(len(batch.team.cores), origins, count)
        source, row = origin
        if groups and groups[-1][0] == source.position:
            groups[-1][1].append(row)
        else:
            groups.append((source.position, [row]))
    if len(groups) == 1:
        position, rows = groups[0]
        first = origins[0]
        assert isinstance(first, tuple)
        if rows == list(range(len(first[0].rows))):
            return lambda memories: memories.outputs[position]
        chosen = _chosen(rows)
        return lambda memories: memories.outputs[position][:, chosen]
    several = [(position, _chosen(rows)) for position, rows in groups]

    def pull(memories: Memories) -> Array:
        found = [memories.outputs[position][:, chosen] for position, chosen in several]
        flat = [part.reshape(*part.shape[:2], -1) for part in found]
        if len({part.shape[2] for part in flat}) > 1:
            flat = [full(part, count) for part in flat]
        return np.concatenate(flat, axis=1)

    return pull


def _chosen(rows: list[int]) -> slice | list[int]:
    """``rows`` as a slice where they are one."""
    step = rows[1] - rows[0] if len(rows) > 1 else 1
    if step > 0 and rows == list(range(rows[0], rows[-1] + 1, step)):
        return slice(rows[0], rows[-1] + 1, step)
    return rows


def _parts(cores: int, origins: Sequence[Origin], count: int) -> Callable[[Memories], Array]:
    """Rows of which some come in several parts."""
    parts: list[tuple[int, int, int, int, int, int]] = []
    for number, origin in enumerate(origins):
        if isinstance(origin, tuple):
            parts.append((number, 0, origin[0].position, origin[1], 0, count))
            continue
        at = 0
        for part in origin:
            parts.append((number, at, part.batch.position, part.row, part.start, part.stop))
            at += part.stop - part.start

    def pull(memories: Memories) -> Array:
        found = np.empty((cores, len(origins), count), memories.outputs[parts[0][2]].dtype)
        for number, at, position, row, start, stop in parts:
            block = memories.outputs[position][:, row].reshape(cores, -1)
            taken = block if block.shape[1] == 1 else block[:, start:stop]
            found[:, number, at : at + stop - start] = taken
        return found

    return pull


def messages(batch: Batch, end: int, element: str) -> Callable[[Memories], Array]:
    """Puts together what all cores receive at one end of a link, [cores, rows, elements]."""
    count, dtype = batch.instruction.accesses[0].box.elements, raw_dtype(element)
    shape = (len(batch.team.cores), len(batch.rows), count)
    parts: list[tuple[int, int, int, int, int, int, int, int]] = []
    for row, ends in enumerate(batch.incoming):
        for core, origin in enumerate(ends[end]):
            if isinstance(origin, tuple):
                parts.append((core, row, 0, origin[0].position, 0, origin[1], 0, count))
                continue
            at = 0
            for part in origin:
                parts.append((core, row, at, part.batch.position, part.core, part.row, part.start, part.stop))
                at += part.stop - part.start

    def pull(memories: Memories) -> Array:
        found = np.empty(shape, dtype)
        for core, row, at, position, sender, sent, start, stop in parts:
            block = memories.outputs[position][sender, sent].reshape(-1)
            found[core, row, at : at + stop - start] = block if block.size == 1 else block[start:stop]
        return found

    return pull
