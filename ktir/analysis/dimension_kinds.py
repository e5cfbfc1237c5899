"""How each dimension of an iteration space may be walked.

*parallel*: it is in all results, so its tiles are independent and may go to different cores. *fold*: it is folded away
by reductions of which none needs another's result, so it can be a loop that carries their accumulators. *whole*:
everything else, such as the axis of a softmax, which is reduced and walked again: a tile holds all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, cast

from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Operation, SSAValue

from ktir.dialect.ktg import NOT_FOLDED, FoldOp, GatherOp, KernelOp, YieldOp

Kind = Literal["parallel", "fold", "whole"]
Names = tuple[str, ...]


class Kinds:
    """Which top-level operations walk, and which reduce, each dimension."""

    def __init__(
        self,
        kernel: KernelOp,
        value_dims: Mapping[SSAValue, tuple[Names, ...]],
        loop_dims: Mapping[Operation, tuple[Names, ...]],
    ) -> None:
        self.value_dims, self.loop_dims = value_dims, loop_dims
        self.ops = [op for op in kernel.body.block.ops if op in loop_dims or isinstance(op, FoldOp | GatherOp)]
        self.yielded = cast("YieldOp", kernel.body.block.last_op)
        self.reducers: dict[str, list[Operation]] = {}
        self.inner: set[str] = set()
        self.users: dict[str, list[Operation]] = {}
        for op in self.ops:
            for name in dict.fromkeys(self._walked(op)):
                self.users.setdefault(name, []).append(op)
            for name in dict.fromkeys(self._reduced(op)):
                self.reducers.setdefault(name, []).append(op)
        self.needs = {op: self._upstream(op) for op in self.ops}
        self._make_whole_what_overlaps()

    def _flat(self, dims: Iterable[Names]) -> list[str]:
        return [name for names in dims for name in names]

    def _walked(self, op: Operation) -> list[str]:
        inner = [name for each in op.walk() for name in self._flat(self.loop_dims.get(each, ()))]
        values = [*op.operands, *op.results] if isinstance(op, FoldOp) else list(op.results)
        return [*inner, *(name for value in values for name in self._flat(self.value_dims.get(value, ())))]

    def _reduced(self, op: Operation) -> list[str]:
        if isinstance(op, FoldOp):
            folded = self._folded(op)
            inner = [name for each in op.walk() for name in self._reduced_by_loops(each)]
            self.inner.update(name for name in inner if name not in folded)
            return [*folded, *inner]
        return self._reduced_by_loops(op)

    def _folded(self, op: FoldOp) -> list[str]:
        dims = zip(op.ins, op.folded, strict=True)
        return [name for value, dim in dims if dim != NOT_FOLDED for name in self.value_dims[value][dim]]

    def _reduced_by_loops(self, op: Operation) -> list[str]:
        if op not in self.loop_dims or not isinstance(op, LinalgStructuredOperation):
            return []
        iterators = zip(op.get_iterator_types(), self.loop_dims[op], strict=True)
        return [name for kind, names in iterators if kind.data is IteratorType.REDUCTION for name in names]

    def _upstream(self, op: Operation) -> set[Operation]:
        """Every operation whose result ``op`` needs, directly or not."""
        found: set[Operation] = set()
        pending = list(op.operands)
        while pending:
            owner = pending.pop().owner
            if isinstance(owner, Operation) and owner not in found:
                found.add(owner)
                pending += owner.operands
        return found

    def _can_be_folded(self, name: str) -> bool:
        reducers = self.reducers.get(name, [])
        stored = any(name in self._flat(self.value_dims.get(value, ())) for value in self.yielded.operands)
        independent = not any(reducer in self.needs[user] for reducer in reducers for user in self.users[name])
        return bool(reducers) and name not in self.inner and not stored and independent

    def _make_whole_what_overlaps(self) -> None:
        """Fold dimensions share a loop only if the very same operations fold them."""
        foldable = {name: tuple(ops) for name, ops in self.reducers.items() if self._can_be_folded(name)}
        self.foldable: dict[str, tuple[Operation, ...]] = {}
        for name, ops in foldable.items():
            others = [each for each in foldable.values() if set(each) & set(ops) and set(each) != set(ops)]
            alone = len(ops) == 1 or not any(isinstance(op, FoldOp) for op in ops)
            if not others and alone:
                self.foldable[name] = ops

    def kind(self, name: str) -> Kind:
        if name in self.foldable:
            return "fold"
        in_all = all(name in self._flat(self.value_dims.get(value, ())) for value in self.yielded.operands)
        return "parallel" if in_all and name not in self.reducers else "whole"

    def folds(self, names: Sequence[str]) -> dict[Names, tuple[Operation, ...]]:
        """The operations of each group of dimensions that are folded together."""
        groups: dict[tuple[Operation, ...], list[str]] = {}
        for name in names:
            if self.kind(name) == "fold":
                groups.setdefault(self.foldable[name], []).append(name)
        return {tuple(members): ops for ops, members in groups.items()}
