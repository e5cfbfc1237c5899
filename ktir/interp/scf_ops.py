"""Structured control flow. Where cores take different ways, the frame is cut into parts that run one after the other
and are joined again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase
from xdsl.ir import Block, Operation, Region, SSAValue

from ktir.errors import LoopStepNotPositive, UnknownOperation
from ktir.interp.batches import batching
from ktir.interp.compile import Code, CompileOperation, FunctionCompiler, Step
from ktir.interp.extents import Mixed, evaluate, mixed
from ktir.interp.linalg_ops import integers
from ktir.interp.numerics import Array, Scalar, is_array
from ktir.interp.tensor_ops import insertion
from ktir.interp.values import Frame, Joined, Site, Value, demand, take_rows

Bounds = Callable[[Frame], tuple[Scalar, Scalar, Scalar]]
"""First number, end and step of a loop, per core where they differ."""


def loop(compiler: FunctionCompiler, op: Operation) -> Step:
    site = compiler.site(op)
    low, high, stride, *inits = _slots(compiler, op.operands)

    def bounds(frame: Frame) -> tuple[Scalar, Scalar, Scalar]:
        first, last, by = (demand(frame.regs[slot], site) for slot in (low, high, stride))
        return first, last, by

    return counted(compiler, op, bounds, inits)


def counted(compiler: FunctionCompiler, op: Operation, bounds: Bounds, inits: Sequence[int]) -> Step:
    """A loop that counts; ``inits`` are the slots of what it carries."""
    site = compiler.site(op)
    body = compiler.region(op.regions[0], op)
    counter, *carried = body.arguments
    results = _slots(compiler, op.results)
    together = None if inits or compiler.observation is not None else batching(op, body, counter, site)

    def iterate(frame: Frame, first: Scalar, step: Scalar, count: range, values: list[Value]) -> list[Value]:
        """Runs the iterations with the numbers in ``count``; the values that they carry out."""
        if together is not None and together.run(frame, first, step, count):
            return values
        regs, run, yielded = frame.regs, body.run, body.results
        for number in count:
            regs[counter] = first + number * step
            for slot, value in zip(carried, values, strict=True):
                regs[slot] = value
            run(frame)
            values = [regs[slot] for slot in yielded]
        return values

    def step(frame: Frame) -> None:
        regs = frame.regs
        first, last, by = bounds(frame)
        values = [regs[slot] for slot in inits]
        smallest = by if isinstance(by, int) else int(by.min())
        if smallest <= 0:
            raise site.fail(LoopStepNotPositive, f"has a step of {smallest}", "use a step of at least 1")
        if isinstance(first, int) and isinstance(last, int) and isinstance(by, int):
            values = iterate(frame, first, by, range(max(0, -(-(last - first) // by))), values)
        else:
            values = _on_parts(frame, first, last, by, values)
        for slot, value in zip(results, values, strict=True):
            regs[slot] = value

    def _on_parts(frame: Frame, first: Scalar, last: Scalar, by: Scalar, values: list[Value]) -> list[Value]:
        """Cores that are through with their iterations drop out."""
        counts = np.broadcast_to(np.maximum(0, -(-(last - first) // by)), frame.n)
        joined = [Joined(frame.n) for _ in values]
        rows = np.arange(frame.n)
        part, done = frame, 0
        for count in np.unique(counts).tolist():
            values = iterate(part, first, by, range(done, count), values)
            done = count
            finished = counts[rows] == count
            if finished.all() and part is frame:
                return values
            for whole, value in zip(joined, values, strict=True):
                whole.add(rows[finished], take_rows(value, np.nonzero(finished)[0], part.n))
            keep = np.nonzero(~finished)[0]
            if not len(keep):
                break
            n = part.n
            values = [take_rows(value, keep, n) for value in values]
            first, by = take_rows(first, keep, n), take_rows(by, keep, n)
            part, rows = part.part(keep, body.captured), rows[keep]
        return [whole.value(site) for whole in joined]

    return step


def branch(compiler: FunctionCompiler, op: Operation) -> Step:
    site, condition = compiler.site(op), compiler.slot(op.operands[0])
    then, otherwise = (optional_region(compiler, region, op) for region in op.regions)
    results = tuple(compiler.slot(result) for result in op.results)

    def step(frame: Frame) -> None:
        chosen = demand(frame.regs[condition], site)
        ways = [(chosen, then), (negated(chosen), otherwise)]
        split(frame, ways, results, site)

    return step


def negated(condition: Scalar) -> Scalar:
    return int(not condition) if isinstance(condition, int) else ~condition


def optional_region(compiler: FunctionCompiler, region: Region, op: Operation) -> Code | None:
    return compiler.region(region, op) if region.blocks else None


def split(frame: Frame, ways: Sequence[tuple[Scalar, Code | None]], results: Sequence[int], site: Site) -> None:
    """Sends each core the way whose condition holds for it, and joins what the ways yield."""
    regs = frame.regs
    for condition, code in ways:
        everyone = condition if isinstance(condition, int) else condition.all()
        if everyone:
            values = [] if code is None else code.call(frame, [])
            for slot, value in zip(results, values, strict=True):
                regs[slot] = value
            return
    joined = [Joined(frame.n) for _ in results]
    for condition, code in ways:
        rows = np.nonzero(condition)[0] if is_array(condition) else np.empty(0, np.int64)
        if not len(rows) or code is None:
            continue
        values = code.call(frame.part(rows, code.captured), [])
        for whole, value in zip(joined, values, strict=True):
            whole.add(rows, value)
    for slot, whole in zip(results, joined, strict=True):
        regs[slot] = whole.value(site)


def loop_while(compiler: FunctionCompiler, op: Operation) -> Step:
    """Runs the first region, and the second for the cores whose condition holds, until it holds for none."""
    site = compiler.site(op)
    inits = tuple(compiler.slot(value) for value in op.operands)
    before, after = (compiler.region(region, op) for region in op.regions)
    results = tuple(compiler.slot(result) for result in op.results)
    captured = tuple({*before.captured, *after.captured})

    def step(frame: Frame) -> None:
        values: list[Value] = [frame.regs[slot] for slot in inits]
        joined = [Joined(frame.n) for _ in results]
        part, rows = frame, np.arange(frame.n)
        while True:
            condition, *passed = before.call(part, values)
            condition = demand(condition, site)
            going = np.broadcast_to(np.asarray(condition, bool), part.n)
            stopped = np.nonzero(~going)[0]
            for whole, value in zip(joined, passed, strict=True):
                if len(stopped):
                    whole.add(rows[stopped], take_rows(value, stopped, part.n))
            keep = np.nonzero(going)[0]
            if not len(keep):
                break
            if len(stopped):
                passed = [take_rows(value, keep, part.n) for value in passed]
                part, rows = part.part(keep, captured), rows[keep]
            values = after.call(part, passed)
        for slot, whole in zip(results, joined, strict=True):
            frame.regs[slot] = whole.value(site)

    return step


def execute_region(compiler: FunctionCompiler, op: Operation) -> Step:
    body = compiler.region(op.regions[0], op)
    results = tuple(compiler.slot(result) for result in op.results)

    def step(frame: Frame) -> None:
        for slot, value in zip(results, body.call(frame, []), strict=True):
            frame.regs[slot] = value

    return step


def switch(compiler: FunctionCompiler, op: Operation) -> Step:
    site, chosen = compiler.site(op), compiler.slot(op.operands[0])
    attribute = op.properties["cases"]
    assert isinstance(attribute, DenseArrayBase)
    cases = [int(number) for number in attribute.get_values()]
    default, *ways = (compiler.region(region, op) for region in op.regions)
    results = tuple(compiler.slot(result) for result in op.results)

    def step(frame: Frame) -> None:
        value = demand(frame.regs[chosen], site)
        conditions = [as_condition(value == case) for case in cases]
        other = as_condition(np.all([np.asarray(value != case) for case in cases], axis=0)) if cases else 1
        split(frame, [*zip(conditions, ways, strict=True), (other, default)], results, site)

    return step


def as_condition(value: Any) -> Scalar:
    return value if is_array(value) and value.ndim else int(bool(value))


def parallel(compiler: FunctionCompiler, op: Operation) -> Step:
    """``scf.parallel``: its iterations in order; what each hands to ``scf.reduce`` is joined from left to right."""
    site = compiler.site(op)
    block = op.regions[0].block
    body = compiler.region(op.regions[0], op)
    rank = len(body.arguments)
    bounds, inits = _slots(compiler, op.operands[: 3 * rank]), _slots(compiler, op.operands[3 * rank :])
    results = _slots(compiler, op.results)
    last = block.last_op
    given = _slots(compiler, last.operands) if last is not None and last.name == "scf.reduce" else ()
    combiners = [compiler.region(region, op) for region in last.regions] if last is not None and given else []

    def step(frame: Frame) -> None:
        regs = frame.regs
        numbers = [demand(regs[slot], site) for slot in bounds]
        values = [regs[slot] for slot in inits]
        for place in product(*_ranges(numbers, site)):
            body.call(frame, place)
            values = [
                combiner.call(frame, [value, regs[slot]])[0]
                for combiner, value, slot in zip(combiners, values, given, strict=True)
            ]
        for slot, value in zip(results, values, strict=True):
            regs[slot] = value

    return step


def forall(compiler: FunctionCompiler, op: Operation) -> Step:
    """``scf.forall``: its iterations in order; each sees the shared outputs as they were before the first one."""
    site, operands = compiler.site(op), list(op.operands)
    bounds: list[Mixed] = []
    for name in ("staticLowerBound", "staticUpperBound", "staticStep"):
        static = integers(op, name)
        count = sum(number == DYNAMIC_INDEX for number in static)
        bounds.append(mixed(compiler, static, operands[:count]))
        operands = operands[count:]
    block, rank = op.regions[0].block, len(bounds[0])
    body = compiler.region(op.regions[0], op)
    outputs, results = _slots(compiler, operands), _slots(compiler, op.results)
    states: dict[SSAValue, int] = {argument: compiler.fresh() for argument in block.args[rank:]}
    inserts = [_parallel_insertion(compiler, inner, states) for inner in _parts(block)]

    def step(frame: Frame) -> None:
        regs = frame.regs
        numbers = [number for bound in bounds for number in evaluate(bound, frame, site)]
        before = [regs[slot] for slot in outputs]
        for slot, value in zip(states.values(), before, strict=True):
            regs[slot] = value
        for place in product(*_ranges(numbers, site)):
            body.call(frame, [*place, *before])
            for insert in inserts:
                insert(frame)
        for slot, state in zip(results, states.values(), strict=True):
            regs[slot] = regs[state]

    return step


def _parts(block: Block) -> list[Operation]:
    """What the end of the body of a ``scf.forall`` puts in place."""
    end = block.last_op
    inner = list(end.regions[0].block.ops) if end is not None and end.regions else []
    return [op for op in inner if op.name == "tensor.parallel_insert_slice"]


def _parallel_insertion(compiler: FunctionCompiler, op: Operation, states: Mapping[SSAValue, int]) -> Step:
    state = states.get(op.operands[1])
    if state is None:
        raise compiler.site(op).fail(
            UnknownOperation, "puts a part into what is no shared output of its loop", "name one of its shared_outs"
        )
    return insertion(compiler, op, state, state)


def _slots(compiler: FunctionCompiler, values: Iterable[SSAValue]) -> tuple[int, ...]:
    return tuple(compiler.slot(value) for value in values)


def _ranges(numbers: Sequence[Scalar], site: Site) -> list[range]:
    """The ranges of a loop nest, from all its lower bounds, then all upper bounds, then all steps."""
    whole = [_same_everywhere(number, site) for number in numbers]
    rank = len(whole) // 3
    return [_range(whole[axis], whole[rank + axis], whole[2 * rank + axis], site) for axis in range(rank)]


def _same_everywhere(value: Scalar, site: Site) -> int:
    if isinstance(value, int):
        return value
    if (value == value[0]).all():
        return int(value[0])
    raise site.fail(UnknownOperation, "has bounds that differ between cores", "use scf.for")


def _range(first: int, last: int, step: int, site: Site) -> range:
    if step <= 0:
        raise site.fail(LoopStepNotPositive, f"has a step of {step}", "use a step of at least 1")
    return range(first, last, step)


OPERATIONS: Mapping[str, CompileOperation] = MappingProxyType(
    {
        "scf.for": loop,
        "scf.if": branch,
        "scf.while": loop_while,
        "scf.execute_region": execute_region,
        "scf.index_switch": switch,
        "scf.parallel": parallel,
        "scf.forall": forall,
        "scf.forall.in_parallel": lambda compiler, op: None,
        "scf.reduce": lambda compiler, op: None,
    }
)

__all__ = ["OPERATIONS", "Array"]
