"""Keeping the values of a run, so that another run can be compared with it.

Words. *visit*: the how manieth time one core runs an operation within one launch of its function, from 0. *turn*: the
how manieth launch of that function, from 0. Turn, visit and core name an execution whatever else the program does, so
executions of two versions of a program can be told to be the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ktir.errors import FileUnusable, KtirError, LimitExceeded
from ktir.files import write_whole
from ktir.interp.numerics import FLOATS, Array
from ktir.interp.observation import Point
from ktir.interp.tracing.accesses import places_stored
from ktir.interp.tracing.numbers import Lanes, lanes_of
from ktir.interp.values import Frame

MOST_BYTES = 8 << 30
STORED = -1
"""In place of the number of a result: where a store goes."""
MODULE_ENTRY = "ktir.module"
"""The entry of a saved recording that holds the text of the program; it also tells such a file from other archives."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One execution on some cores: ``rows`` of the frame, and which cores these are."""

    turn: int
    number: int
    rows: Array
    cores: Array


@dataclass(slots=True)
class Visits:
    """Counts executions."""

    turns: dict[str, dict[int, int]] = field(default_factory=lambda: {})
    counts: dict[tuple[Operation, int], Array] = field(default_factory=lambda: {})

    def of(self, point: Point, frame: Frame) -> list[Visit]:
        """The executions that a frame stands for: one, unless cores have come here differently often."""
        turns = self.turns.setdefault(point.function, {})
        turn = turns.setdefault(frame.launch.number, len(turns))
        counts = self.counts.get((point.op, turn))
        if counts is None:
            counts = self.counts[point.op, turn] = np.zeros(frame.launch.tiles, np.int64)
        before = counts[frame.cores]
        counts[frame.cores] += 1
        rows = np.arange(frame.n)
        if (before == before[0]).all():
            return [Visit(turn, int(before[0]), rows, frame.cores)]
        return [
            Visit(turn, number, rows[before == number], frame.cores[before == number])
            for number in np.unique(before).tolist()
        ]


Key = tuple[int, int]
"""Turn and visit."""


class Recording:
    """Observes a run and keeps the results of all its operations, up to ``most_bytes`` of them."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self.module: ModuleOp | None = None
        self._clear()

    def _clear(self) -> None:
        self.nbytes = 0
        self.kept: dict[tuple[Operation, int], dict[Key, list[tuple[Array, Lanes]]]] = {}
        self._visits = Visits()

    def begin(self, module: ModuleOp, names: Mapping[SSAValue, str]) -> None:
        """Forgets an earlier run."""
        self.module = module
        self._clear()

    def entered(self, point: Point, frame: Frame) -> None:
        """Arguments of blocks are results of operations, or counters."""

    def executed(self, point: Point, frame: Frame) -> None:
        found = [(number, lanes_of(frame.regs[each.slot])) for number, each in enumerate(point.values)]
        found.append((STORED, places_stored(point, frame)))
        if all(lanes is None for _, lanes in found):
            return
        for visit in self._visits.of(point, frame):
            for number, lanes in found:
                if lanes is not None:
                    self.keep(point.op, number, (visit.turn, visit.number), visit.cores, lanes.rows(visit.rows))

    def finish(self) -> None:
        """All was kept on the way."""

    def keep(self, op: Operation, number: int, key: Key, cores: Array, lanes: Lanes) -> None:
        """Keeps a result of an execution."""
        self.nbytes += lanes.nbytes
        if self.nbytes > self.most_bytes:
            raise LimitExceeded(
                f"the values of the run take more than {self.most_bytes} bytes",
                remedy="compare on smaller inputs or fewer cores",
            )
        self.kept.setdefault((op, number), {}).setdefault(key, []).append((cores, lanes))

    def wanted(self, op: Operation, number: int, visit: Visit) -> Iterator[tuple[Array, Lanes]]:
        """What was kept of the executions ``visit``: rows of the frame, and their values."""
        for cores, lanes in self.kept.get((op, number), {}).get((visit.turn, visit.number), ()):
            _, here, there = np.intersect1d(visit.cores, cores, assume_unique=True, return_indices=True)
            if len(here):
                yield visit.rows[here], lanes.rows(there)

    def times(self, op: Operation) -> int:
        """How many executions of ``op`` were kept, those of all cores together counting as one."""
        return max((len(each) for (one, _), each in self.kept.items() if one is op), default=0)

    # ------------------------------------------------------------------------------------------------------------ files

    def save(self, path: Path) -> Path:
        """Writes the recording and the program's text as a ``.npz`` file."""
        from ktir.dialect.text.printer import print_module

        assert self.module is not None, "only what was recorded can be saved"
        entries: dict[str, Array] = {MODULE_ENTRY: np.array(print_module(self.module))}
        positions = {op: position for position, op in enumerate(self.module.walk())}
        for (op, number), executions in self.kept.items():
            entries |= _packed(f"{positions[op]}.{number}", executions)
        data = BytesIO()
        np.savez(data, allow_pickle=False, **entries)  # type: ignore[arg-type]
        return write_whole(path, data.getvalue())


def _packed(name: str, executions: Mapping[Key, list[tuple[Array, Lanes]]]) -> dict[str, Array]:
    """Arrays of one result, those of each shape and type together; ``.at`` lists turn, visit, core and row."""
    groups: dict[tuple[tuple[int, ...], np.dtype[Any]], list[tuple[Key, Array, Lanes]]] = {}
    for key, parts in executions.items():
        for cores, lanes in parts:
            groups.setdefault((lanes.shape, lanes.values.dtype), []).append((key, cores, lanes))
    found: dict[str, Array] = {}
    for group, ((_, dtype), parts) in enumerate(groups.items()):
        at: list[tuple[int, int, int, int]] = []
        first = 0
        for (turn, visit), cores, lanes in parts:
            shared = len(lanes.values) == 1
            at += [(turn, visit, core, first + (0 if shared else row)) for row, core in enumerate(cores.tolist())]
            first += len(lanes.values)
        label = f"{name}.{group}"
        values = np.concatenate([lanes.values for _, _, lanes in parts])
        found[f"{label}.at"] = np.array(at, np.int64)
        found[f"{label}.type"] = np.array(dtype.name)
        found[f"{label}.values"] = values.view(f"u{dtype.itemsize}") if dtype.isbuiltin != 1 else values
        if any(lanes.undefined is not None for _, _, lanes in parts):
            masks = [np.zeros(p.values.shape, bool) if p.undefined is None else p.undefined for _, _, p in parts]
            found[f"{label}.undefined"] = np.concatenate(masks)
    return found


def is_recording(path: Path) -> bool:
    """Whether a file is one that :meth:`Recording.save` wrote."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return hasattr(archive, "files") and MODULE_ENTRY in archive.files
    except (OSError, ValueError, EOFError, BadZipFile):
        return False


def load_recording(path: Path) -> Recording:
    """Reads what :meth:`Recording.save` wrote. Raises :class:`FileUnusable`."""
    from ktir.dialect.text.parser import parse_module

    try:
        with np.load(path, allow_pickle=False) as archive:
            entries = {name: archive[name] for name in archive.files}
        text = str(entries.pop(MODULE_ENTRY))
        recording = Recording()
        recording.module = parse_module(text, str(path))
        operations = list(recording.module.walk())
        for label in [name.removesuffix(".at") for name in entries if name.endswith(".at")]:
            position, number, _ = (int(part) for part in label.split("."))
            _unpack(recording, operations[position], number, label, entries)
    except (OSError, ValueError, EOFError, BadZipFile, KeyError, IndexError, KtirError) as error:
        raise FileUnusable(
            f"{path} is no trace: {error}", remedy="give a file that ktir run --trace-save wrote"
        ) from None
    return recording


def _unpack(recording: Recording, op: Operation, number: int, label: str, entries: Mapping[str, Array]) -> None:
    dtype = _dtype(str(entries[f"{label}.type"]))
    values, undefined = entries[f"{label}.values"].view(dtype), entries.get(f"{label}.undefined")
    at = entries[f"{label}.at"]
    for turn, visit in np.unique(at[:, :2], axis=0).tolist():
        chosen = at[(at[:, 0] == turn) & (at[:, 1] == visit)]
        rows = chosen[:, 3]
        lanes = Lanes(values[rows], None if undefined is None else undefined[rows])
        recording.keep(op, number, (turn, visit), chosen[:, 2], lanes)


def _dtype(name: str) -> np.dtype[Any]:
    by_name = {element.dtype.name: element.dtype for element in FLOATS.values()}
    return by_name.get(name) or np.dtype(name)


__all__ = ["STORED", "Recording", "Visit", "Visits", "is_recording", "load_recording"]
