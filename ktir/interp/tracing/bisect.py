"""The first operation in which two versions of a program differ.

Both run on the same arguments. Operations are paired by :mod:`ktir.analysis.pairing`, and each execution of the second
version is compared with the one of the first: the values it gives, and for a store the places it goes to. What the
programs leave behind is compared as well. Two versions are *the same* where all of that agrees, and they are of
different *structure* where one has operations that the other has not, or runs them more often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ktir.dialect.locations import location_of
from ktir.errors import ArgumentError, FunctionNotFound, KtirError
from ktir.interp.executor import Execution, Numerics, execute
from ktir.interp.numerics import Array
from ktir.interp.tracing.numbers import Difference, Lanes, Tolerance, difference
from ktir.interp.tracing.recording import Recording
from ktir.interp.tracing.references import Mismatch, OtherRun
from ktir.interp.tracing.trace import Trace, mismatch_data, mismatch_text, number_text
from ktir.location import Location, location_data
from ktir.machine.description import Machine

LISTED = 5
"""Operations without a counterpart that the text names."""


@dataclass(frozen=True, slots=True)
class Version:
    """One of the programs: ``function`` is what runs, ``name`` what the report calls it, ``source`` its text."""

    name: str
    module: ModuleOp
    function: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Conditions:
    """What both run with."""

    arguments: Mapping[str, object]
    machine: Machine | None = None
    checks: bool = True
    tolerance: Tolerance = field(default_factory=Tolerance)
    numerics: Numerics = "f16"


@dataclass(frozen=True, slots=True)
class Bisection:
    """What was found. ``mismatch`` is in the second version, at an operation whose counterpart in the first is
    ``counterpart``; ``outputs`` are those that differ, None for one that only one version stores to."""

    first: Version
    second: Version
    tolerance: Tolerance
    mismatch: Mismatch | None
    counterpart: Operation | None
    outputs: Mapping[str, Difference | None]
    only_first: Sequence[Operation]
    only_second: Sequence[Operation]
    repeated: Sequence[tuple[Operation, Operation, int, int]]
    errors: tuple[KtirError | None, KtirError | None]
    compared: int

    @property
    def same(self) -> bool:
        """Whether both compute the same, and store the same in the same places."""
        return self.mismatch is None and not self.outputs and not any(self.errors)

    @property
    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "same": self.same,
            "first": self.first.name,
            "second": self.second.name,
            "tolerance": {"relative": self.tolerance.relative, "absolute": self.tolerance.absolute},
            "operations_compared": self.compared,
            "first_difference": self._difference_data(),
            "stops": [None if each is None else {"code": each.code, "message": str(each)} for each in self.errors],
            "outputs": {
                name: None if each is None else _element_data(each) for name, each in sorted(self.outputs.items())
            },
            "only_in_first": [_operation_data(op) for op in self.only_first],
            "only_in_second": [_operation_data(op) for op in self.only_second],
            "executions": [
                {"first": _operation_data(a), "second": _operation_data(b), "times": [n, m]}
                for a, b, n, m in self.repeated
            ],
        }

    def _difference_data(self) -> dict[str, Any] | None:
        if self.mismatch is None or self.counterpart is None:
            return None
        data = mismatch_data(self.mismatch)
        return {"first": _operation_data(self.counterpart), "second": _operation_data(self.mismatch.point.op), **data}

    def __str__(self) -> str:
        """A report for people; the operation comes first."""
        lines = [*self._headline(), *self._outputs(), *self._structure()]
        for version, error in zip((self.first, self.second), self.errors, strict=True):
            if error is not None:
                where = f"{error.location}: " if error.location else ""
                lines.append(f"{version.name} stops: {where}{error.message} [{error.code}]")
        return "\n".join(lines)

    def _headline(self) -> list[str]:
        if self.mismatch is None or self.counterpart is None:
            if self.same:
                return [f"no difference in {self.compared} operations; allowed: {self.tolerance}"]
            if any(self.errors):
                return [f"first difference: one version stops, after {self.compared} operations that do not differ"]
            return ["the outputs differ, and no operation that both have does"]
        op = self.mismatch.point.op
        inner = _inner_difference(self.counterpart, op)
        names = ", ".join(each.name for each in self.mismatch.point.values)
        return [
            f"first difference: {names + ' = ' if names else ''}{op.name}",
            f"  first:  {_described(self.counterpart)}",
            f"  second: {_described(op)}",
            *([f"  inside: {inner}"] if inner else []),
            f"  {mismatch_text(self.mismatch)}; allowed: {self.tolerance}",
        ]

    def _outputs(self) -> list[str]:
        if self.mismatch is not None and not self.outputs and not any(self.errors):
            return ["the outputs agree all the same"]
        lines: list[str] = []
        for name, each in sorted(self.outputs.items()):
            if each is None:
                lines.append(f"output {name}: only one version stores to it, or in another shape")
                continue
            values = f"{number_text(each.wanted)} and {number_text(each.got)}"
            lines.append(
                f"output {name}: {each.wrong} of {each.elements} elements differ, by up to {each.largest:.3g}; first "
                f"{list(each.coordinates)}: {values}"
            )
        return lines

    def _structure(self) -> list[str]:
        lines: list[str] = []
        for version, ops in ((self.first, self.only_first), (self.second, self.only_second)):
            if ops:
                lines.append(f"only in {version.name}:")
                lines += [f"  {_described(op)}" for op in ops[:LISTED]]
                lines += [f"  and {len(ops) - LISTED} more"] * (len(ops) > LISTED)
        for a, b, n, m in self.repeated[:1]:
            lines.append(f"runs {n} times in {self.first.name}, {m} times in {self.second.name}: {_described(b)}")
            del a
        return lines


def bisect(first: Version, second: Version, conditions: Conditions) -> Bisection:
    """Runs both and compares them. Raises :class:`ArgumentError` where the arguments do not fit both, and the
    first one's error where both stop without a difference before."""
    recording = Recording()
    before = _run(first, conditions, recording)
    reference = OtherRun(recording, conditions.tolerance)
    trace = Trace()
    trace.reference = reference
    after = _run(second, conditions, trace)
    assert reference.pairing is not None
    errors = tuple(each if isinstance(each, KtirError) else None for each in (before, after))
    for error in errors:
        if isinstance(error, ArgumentError | FunctionNotFound):
            raise error
    if errors[0] is not None and errors[1] is not None and trace.first is None:
        raise errors[0]
    outputs: dict[str, Difference | None] = {}
    if isinstance(before, Execution) and isinstance(after, Execution):
        outputs = dict(_compare(_left(before), _left(after), conditions.tolerance))
    pairs = reference.pairing.pairs
    runs = {row.point.op: row.runs for row in trace.rows}
    repeated = [
        (pairs[op], op, recording.times(pairs[op]), times)
        for op, times in runs.items()
        if op in pairs and recording.times(pairs[op]) not in (times, 0)
    ]
    return Bisection(
        first,
        second,
        conditions.tolerance,
        trace.first,
        None if trace.first is None else pairs.get(trace.first.point.op),
        outputs,
        reference.pairing.only_first,
        reference.pairing.only_second,
        repeated if not any(errors) else [],
        (errors[0], errors[1]),
        sum(op in pairs for op in runs),
    )


def _run(version: Version, conditions: Conditions, observer: Recording | Trace) -> Execution | KtirError:
    try:
        return execute(
            version.module,
            version.function,
            conditions.arguments,
            machine=conditions.machine,
            checks=conditions.checks,
            numerics=conditions.numerics,
            observers=(observer,),
            source=version.source,
        )
    except KtirError as error:
        return error


def _left(execution: Execution) -> dict[str, Array]:
    """What a run leaves: arrays by name, returned values by number."""
    return {**execution.outputs, **{f"result {number}": each for number, each in enumerate(execution.results)}}


def _compare(
    before: Mapping[str, Array], after: Mapping[str, Array], tolerance: Tolerance
) -> Mapping[str, Difference | None]:
    found: dict[str, Difference | None] = {}
    for name in {**before, **after}:
        if name not in before or name not in after or before[name].shape != after[name].shape:
            found[name] = None
            continue
        each = difference(Lanes(np.array(after[name])[None]), Lanes(np.array(before[name])[None]), tolerance)
        if each is not None:
            found[name] = each
    return found


def _inner_difference(first: Operation, second: Operation) -> str:
    """The first operation in the regions of a pair that is another one, such as in the body of a ``linalg.generic``."""
    inner = zip(list(first.walk())[1:], list(second.walk())[1:], strict=False)
    for one, other in inner:
        if one.name != other.name or one.properties != other.properties:
            return f"{_described(one)}, {_described(other)}"
    return ""


def _described(op: Operation) -> str:
    return f"{_place(location_of(op))}: '{op.name}'"


def _place(location: Location | None) -> str:
    return str(location) if location is not None else "?"


def _operation_data(op: Operation) -> dict[str, Any]:
    return {
        "operation": op.name,
        "location": location_data(location_of(op)),
    }


def _element_data(each: Difference) -> dict[str, Any]:
    return {
        "coordinates": list(each.coordinates),
        "first": each.wanted,
        "second": each.got,
        "wrong": each.wrong,
        "elements": each.elements,
        "largest_difference": each.largest,
    }


__all__ = ["Bisection", "Conditions", "Version", "bisect"]
