"""Group the operations of a graph into kernels, greedily, along edges with one consumer.

First every contraction and every fold takes the point-wise operations behind it (bias, activation, residual). Then,
from the last operation to the first, an operation joins the group of its consumers if it has no other: softmax and norm
chains, point-wise chains, a gather with what follows it. A group must have an iteration space whose smallest tile fits
the scratchpad, and joining must not leave fewer independent tiles than there are cores where there were more before.

Views cost nothing: those in front of a kernel are pulled into it, once for each consumer; those behind it are sunk into
its store where the consumer could not read through them. A view that no layout can follow is copied through a dense
buffer. Operands of ``tensor.concat`` and results of the graph are made by kernels of their own where they are not
already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal, cast

from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, NoneAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ktir.analysis.iteration_space import iteration_space
from ktir.analysis.layout_rules import DENSE
from ktir.analysis.tensor_views import VIEWS, Unfit, is_free, view_source
from ktir.analysis.tile_sizes import independent_tiles, smallest_footprint
from ktir.dialect.ktg import FoldOp, GatherOp, KernelOp, YieldOp
from ktir.dialect.locations import location_of
from ktir.errors import CannotPlan, NotLowerable
from ktir.machine import Machine
from ktir.passes.contraction import is_contraction
from ktir.passes.fingerprint import Memo
from ktir.passes.graph import erase_unused, graph_functions, machine_of

FEWER = 2
"""By how much joining may divide the number of busy cores."""

WORTH_A_LAUNCH = 512
"""Elements per core below which spreading the work out does not pay."""


@dataclass(frozen=True)
class FusePass(ModulePass):
    """``ktir-fuse``"""

    name = "ktir-fuse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in graph_functions(op):
            _Fuser(graph, machine_of(ctx)).run()


# ----------------------------------------------------------------------------------------------------------- operations


def computes(op: Operation) -> bool:
    """Whether ``op`` becomes part of a kernel and is no view and nothing that is made of nothing."""
    if isinstance(op, FoldOp | GatherOp):
        return True
    return isinstance(op, LinalgStructuredOperation) and not isinstance(op, VIEWS) and not is_free(op.results[0])


def is_pointwise(op: Operation) -> bool:
    """Whether ``op`` has no loop that reduces."""
    return isinstance(op, LinalgStructuredOperation) and all(
        kind.data is IteratorType.PARALLEL for kind in op.get_iterator_types()
    )


def behind_views(value: SSAValue) -> SSAValue:
    """What ``value`` is a view of, through all views."""
    while (source := view_source(value)) is not None:
        value = source
    return value


def ends(value: SSAValue) -> Iterator[tuple[Operation, SSAValue]]:
    """Who uses ``value``, itself or through views: the operation, and the view that it uses."""
    for use in value.uses:
        user = use.operation
        if isinstance(user, VIEWS) and use.index == 0:
            yield from ends(user.results[0])
        else:
            yield user, value


def _made_by(ops: Sequence[Operation]) -> list[SSAValue]:
    """What leaves a group: the results of its last operation that something uses."""
    return [result for result in ops[-1].results if next(iter(result.uses), None) is not None]


@dataclass(eq=False)
class Group:
    """Operations that become one kernel; ``out`` are the values it gives, results of the last operation or views."""

    ops: list[Operation]
    closed: bool = False
    out: list[SSAValue] = field(default_factory=list[SSAValue])

    @property
    def sink(self) -> Operation:
        """The operation whose results leave the group."""
        return self.ops[-1]


# ------------------------------------------------------------------------------------------------------ making kernels


Sharing = Literal["all", "roles", "none"]
"""Which uses of an input share one operand of the kernel: all; those as a factor of products, and the others; none."""

SHARINGS: tuple[Sharing, ...] = ("all", "roles", "none")


class KernelMaker:
    """Copies operations, and the views in front of them, into a new ``ktg.kernel``.

    ``members`` are copied; ``boundaries`` are values at which views stop. A tensor that a body looks at in two ways, as
    in ``gelu(x @ w) + x``, must be two operands: what is one operand is walked by one set of dimensions.
    """

    def __init__(self, members: Iterable[Operation], boundaries: Iterable[SSAValue], sharing: Sharing = "all") -> None:
        self.members, self.boundaries, self.sharing = set(members), set(boundaries), sharing
        self.block = Block()
        self.inputs: list[SSAValue] = []
        self.copies: dict[tuple[SSAValue, object], SSAValue] = {}

    def kernel(self, out: Sequence[SSAValue], name: str) -> KernelOp:
        """The kernel that makes ``out``."""
        results = [self._copy(value, None) for value in out]
        self.block.add_op(YieldOp(*results))
        kernel = KernelOp(self.inputs, [value.type for value in out], Region(self.block), sym_name=name)
        kernel.location = out[0].owner.location if isinstance(out[0].owner, Operation) else kernel.location
        return kernel

    def _copy(self, value: SSAValue, role: object) -> SSAValue:
        """The copy of ``value`` for a use; inputs, and views of them, have one for each ``role``."""
        owner = value.owner
        if isinstance(owner, Operation) and owner in self.members:
            role = None
        if (value, role) in self.copies:
            return self.copies[value, role]
        if value in self.boundaries or not isinstance(owner, Operation) or not self._is_inside(value, owner):
            return self._input(value, role)
        captured = {constant: self._copy(constant, None) for constant in self._captured(owner)}
        copied = owner.clone(captured)
        is_view = isinstance(owner, VIEWS)
        copied.operands = [
            self._copy(operand, role if is_view else self._role(owner, position))
            for position, operand in enumerate(owner.operands)
        ]
        self.block.add_op(copied)
        for old, new in zip(owner.results, copied.results, strict=True):
            self.copies[old, role] = new
        return self.copies[value, role]

    def _role(self, user: Operation, position: int) -> object:
        if self.sharing == "none":
            return user, position
        return "factor" if self.sharing == "roles" and is_contraction(user) else None

    def _is_inside(self, value: SSAValue, owner: Operation) -> bool:
        return owner in self.members or isinstance(owner, VIEWS) or is_free(value)

    @staticmethod
    def _captured(owner: Operation) -> list[SSAValue]:
        """Constants from outside that the regions of an operation use."""
        used = (value for inner in owner.walk() if inner is not owner for value in inner.operands)
        outside = (value for value in dict.fromkeys(used) if isinstance(value.owner, arith.ConstantOp))
        return [value for value in outside if not owner.is_ancestor(value.owner)]

    def _input(self, value: SSAValue, role: object) -> SSAValue:
        argument = self.block.insert_arg(value.type, len(self.block.args))
        argument.name_hint = value.name_hint
        self.inputs.append(value)
        self.copies[value, role] = argument
        return argument


# --------------------------------------------------------------------------------------------------------------- fusing


@dataclass(frozen=True, slots=True)
class Fit:
    """A kernel that can be: how many cores could share it, and the elements of the largest tensor it makes."""

    tiles: int
    work: int


class _Fuser:
    def __init__(self, graph: func.FuncOp, machine: Machine) -> None:
        self.graph, self.machine, self.block = graph, machine, graph.body.block
        self.group_of: dict[Operation, Group] = {}
        self.boundaries: set[SSAValue] = set()
        self.dense: set[SSAValue] = set()
        self.names: dict[str, int] = {}
        self.memo = Memo()

    def run(self) -> None:
        erase_unused(self.graph)
        self._buffer_constant_indices()
        self._grow_forward()
        self._grow_backward()
        for group in self._groups():
            self._settle(group)
        self._copy_what_leaves()
        self._erase_the_rest()

    def _groups(self) -> list[Group]:
        """Groups by the place of their last operation."""
        return [self.group_of[op] for op in self.block.ops if op in self.group_of and self.group_of[op].sink is op]

    def _buffer_constant_indices(self) -> None:
        """A gather reads its indices from memory, even where all are the same number."""
        for op in list(self.block.ops):
            if isinstance(op, GatherOp) and is_free(behind_views(op.indices)):
                kernel = self._copy(op.indices)
                self.block.insert_op_before(kernel, op)
                op.operands[1] = kernel.results[0]

    # -- which operations go together

    def _grow_forward(self) -> None:
        """Contractions and folds take point-wise operations behind them."""
        for op in list(self.block.ops):
            if computes(op) and (is_contraction(op) or isinstance(op, FoldOp)) and op not in self.group_of:
                self._start(op)
                while (longer := self._with_consumer(self.group_of[op])) is not None:
                    self._replace(longer)

    def _start(self, op: Operation) -> Group:
        self.group_of[op] = Group([op])
        return self.group_of[op]

    def _replace(self, group: Group) -> None:
        self.group_of.update(dict.fromkeys(group.ops, group))

    def _with_consumer(self, group: Group) -> Group | None:
        """The group with the only consumer of its result, if that is point-wise and fits.

        Another contraction that nothing else uses comes along, so that both accumulate in one loop.
        """
        if len(group.sink.results) != 1:
            return None
        users = {user: None for user, _ in ends(group.sink.results[0])}
        if len(users) != 1:
            return None
        consumer = next(iter(users))
        if not computes(consumer) or not is_pointwise(consumer) or consumer in self.group_of:
            return None
        wanted = [*group.ops, consumer]
        others = [op for op in self._private_chain(consumer, group) if op not in wanted]
        for ops in ([*group.ops, *others, consumer], wanted):
            if (ordered := self._in_order(ops)) and self._fits(ordered):
                return Group(ordered)
        return None

    def _private_chain(self, consumer: Operation, group: Group) -> list[Operation]:
        """A contraction with point-wise operations behind it that ``consumer`` alone uses."""
        chain: list[Operation] = []
        pending = [behind_views(value).owner for value in consumer.operands]
        while pending:
            op = pending.pop()
            if not isinstance(op, Operation) or not computes(op) or op in chain or op in group.ops:
                continue
            private = {user for result in op.results for user, _ in ends(result)} <= {consumer, *chain}
            if not private or not (is_pointwise(op) or is_contraction(op)):
                continue
            chain.append(op)
            if not is_contraction(op):
                pending += [behind_views(value).owner for value in op.operands]
        return chain if any(is_contraction(op) for op in chain) else []

    def _in_order(self, ops: Iterable[Operation]) -> list[Operation]:
        wanted = set(ops)
        return [op for op in self.block.ops if op in wanted]

    def _grow_backward(self) -> None:
        """An operation joins the group that all its consumers are in."""
        for op in reversed(list(self.block.ops)):
            if not computes(op) or op in self.group_of:
                continue
            groups = {self.group_of.get(user) for result in op.results for user, _ in ends(result)}
            group = next(iter(groups)) if len(groups) == 1 else None
            if group is not None and self._may_lead(op, group):
                self._replace(Group([op, *group.ops]))
            else:
                self._start(op)

    def _may_lead(self, op: Operation, group: Group) -> bool:
        """Whether ``op`` may be the first of ``group``."""
        if any(is_contraction(each) or isinstance(each, FoldOp) for each in (op, *group.ops)):
            return False
        together, alone = self._fit([op, *group.ops]), self._fit([op])
        if together is None:
            return False
        if alone is None:
            return True
        return not self._starves(together, alone)

    def _starves(self, together: Fit, alone: Fit) -> bool:
        """Whether joining leaves most cores idle that the operation alone would use.

        Work that a launch of its own would not pay for is never counted as such.
        """
        before = min(self.machine.cores, alone.tiles)
        return together.tiles * FEWER < before and alone.work > self.machine.cores * WORTH_A_LAUNCH

    # -- whether they can

    def _fits(self, ops: Sequence[Operation]) -> bool:
        return self._fit(ops) is not None

    def _fit(self, ops: Sequence[Operation], out: Sequence[SSAValue] | None = None) -> Fit | None:
        """How the kernel of ``ops`` would fit, None where it has no iteration space or not even a tile fits."""
        for sharing in SHARINGS:
            fit = self._fit_of(KernelMaker(ops, self.boundaries, sharing).kernel(out or _made_by(ops), "candidate"))
            if fit is not None:
                return fit
        return None

    def _sharing(self, ops: Sequence[Operation], out: Sequence[SSAValue]) -> Sharing:
        """The most sharing of operands with which a group that fits, fits."""
        for sharing in SHARINGS:
            if self._fit_of(KernelMaker(ops, (), sharing).kernel(out, "candidate")) is not None:
                return sharing
        return "all"

    def _fit_of(self, kernel: KernelOp) -> Fit | None:
        kernel.operand_layouts = self._known_layouts(kernel)
        fit = self.memo.get("fit", kernel, self._worked_out)
        kernel.erase()
        return fit

    def _worked_out(self, kernel: KernelOp) -> Fit | None:
        try:
            space = iteration_space(kernel, self.machine)
        except Unfit:
            return None
        if smallest_footprint(space, self.machine) > self.machine.scratchpad_bytes:
            return None
        elements = (prod(space[name].extent for name in space.names(value)) for value in space.made)
        return Fit(independent_tiles(space, self.machine), max(elements, default=0))

    def _known_layouts(self, kernel: KernelOp) -> ArrayAttr[Attribute]:
        return ArrayAttr(DENSE if value in self.dense else NoneAttr() for value in kernel.operands)

    # -- from groups to kernels

    def _settle(self, group: Group) -> None:
        """Turn a group into a kernel, with what it takes to make its views readable."""
        self._repair(group)
        used = _made_by(group.ops)
        out = [self._form(group, used[0])] if len(used) == 1 else used
        kernel = KernelMaker(group.ops, (), self._sharing(group.ops, out)).kernel(out, self._name(group))
        self.block.insert_op_before(kernel, group.sink)
        for value, result in zip(out, kernel.results, strict=True):
            value.replace_all_uses_with(result)

    def _name(self, group: Group) -> str:
        kinds = {
            "attention": any(isinstance(op, FoldOp) for op in group.ops),
            "matmul": any(is_contraction(op) for op in group.ops),
            "gather": any(isinstance(op, GatherOp) for op in group.ops),
            "reduce": any(not is_pointwise(op) for op in group.ops),
        }
        return self._fresh(next((name for name, found in kinds.items() if found), "pointwise"))

    def _fresh(self, name: str) -> str:
        self.names[name] = self.names.get(name, -1) + 1
        return f"{name}_{self.names[name]}"

    def _form(self, group: Group, result: SSAValue) -> SSAValue:
        """The view of ``result`` to store, so that the fewest consumers need a copy to read it; the earliest such."""
        forms = [result]
        while (following := self._only_view(forms[-1])) is not None:
            forms.append(following)
        best, least = result, self._copies_needed(result, result)
        for form in forms[1:]:
            if (
                least
                and self._fit(group.ops, [form]) is not None
                and (count := self._copies_needed(result, form)) < least
            ):
                best, least = form, count
        return best

    @staticmethod
    def _only_view(value: SSAValue) -> SSAValue | None:
        """The view that is the only use of ``value``, if its elements are those of ``value``."""
        users = [use.operation for use in value.uses]
        if len(users) == 1 and isinstance(users[0], tensor.CollapseShapeOp | tensor.ExpandShapeOp | linalg.TransposeOp):
            return users[0].results[0]
        return None

    def _copies_needed(self, result: SSAValue, form: SSAValue) -> int:
        count = 0
        for user, used in dict.fromkeys(ends(result)):
            if used is not form:
                count += user not in self.group_of or self._fit_behind(self.group_of[user], form) is None
        return count

    def _fit_behind(self, group: Group, boundary: SSAValue) -> Fit | None:
        kept, self.boundaries = self.boundaries, {*self.boundaries, boundary}
        fit = self._fit(group.ops)
        self.boundaries = kept
        return fit

    # -- copies

    def _repair(self, group: Group) -> None:
        """Copy inputs through dense buffers until the group has an iteration space."""
        if self._fits(group.ops):
            return
        for view in self._views_used(group):
            self.dense.add(view)
            helps = self._fit_behind(group, view) is not None
            self.dense.discard(view)
            if helps:
                self._materialise(view)
                return
        for view in self._views_used(group):
            self._materialise(view)
        if not self._fits(group.ops):
            raise CannotPlan(
                f"{group.sink.name} has no iteration space whose smallest tile fits the scratchpad",
                location=location_of(group.sink),
                remedy="split the operation, or use a machine with a larger scratchpad",
            )

    def _views_used(self, group: Group) -> list[SSAValue]:
        """Views of values from outside that operations of a group use."""
        inside = {result for op in group.ops for result in op.results}
        values = dict.fromkeys(value for op in group.ops for value in op.operands)
        return [v for v in values if view_source(v) is not None and behind_views(v) not in inside]

    def _materialise(self, view: SSAValue) -> None:
        """Give ``view`` a dense buffer of its own, copied in as many steps as it takes."""
        source = view_source(view)
        if source is None:
            return
        kernel = KernelMaker((), ()).kernel([view], "candidate")
        if self._fit_of(kernel) is None:
            if view_source(source) is not None:
                self._materialise(source)
            else:
                self._copy_densely(source, cast("Operation", view.owner))
        self._copy_densely(view, None)

    def _copy_densely(self, value: SSAValue, user: Operation | None) -> None:
        """Copy ``value`` to a dense buffer, and let ``user``, or all users, read that."""
        kernel = self._copy(value)
        kernel.result_layouts = ArrayAttr([DENSE])
        self.dense.add(kernel.results[0])
        owner = value.owner
        if isinstance(owner, Operation):
            self.block.insert_op_after(kernel, owner)
        elif self.block.first_op is not None:
            self.block.insert_op_before(kernel, self.block.first_op)
        keep = [kernel] if user is None else [use.operation for use in value.uses if use.operation is not user]
        for use in list(value.uses):
            if use.operation not in keep:
                use.operation.operands[use.index] = kernel.results[0]

    def _copy(self, value: SSAValue) -> KernelOp:
        return KernelMaker((), ()).kernel([value], self._fresh("copy"))

    def _copy_what_leaves(self) -> None:
        """Operands of concatenations, and results of the graph, get kernels that make them and nothing else."""
        for op in list(self.block.ops):
            if isinstance(op, tensor.ConcatOp | func.ReturnOp):
                for position, value in enumerate(op.operands):
                    if not self._is_made_for(value, op):
                        self._copy_operand(op, position)

    @staticmethod
    def _is_made_for(value: SSAValue, user: Operation) -> bool:
        makers = KernelOp if isinstance(user, tensor.ConcatOp) else KernelOp | tensor.ConcatOp
        alone = value.uses.get_length() == 1
        stays = isinstance(user, tensor.ConcatOp) or not any(
            isinstance(use.operation, tensor.ConcatOp) for use in value.uses
        )
        once = sum(operand is value for operand in user.operands) == 1
        return isinstance(value.owner, makers) and once and stays and (alone or isinstance(user, func.ReturnOp))

    def _copy_operand(self, op: Operation, position: int) -> None:
        value = op.operands[position]
        if self._fit_of(KernelMaker((), ()).kernel([value], "candidate")) is None:
            self._materialise(value)
            value = op.operands[position]
        kernel = self._copy(value)
        self.block.insert_op_before(kernel, op)
        op.operands[position] = kernel.results[0]

    def _erase_the_rest(self) -> None:
        erase_unused(self.graph)
        for op in self.block.ops:
            if not isinstance(op, KernelOp | tensor.ConcatOp | func.ReturnOp | arith.ConstantOp):
                raise NotLowerable(f"{op.name} has no place in a kernel", location=location_of(op))
