"""The importer: an exported graph of the curated operators becomes a level-G function.

User inputs and parameters become arguments of ``@main`` when they are first used; constants that are used become
scalars in bodies where all their elements are equal, and arguments like parameters otherwise. Views of
inputs and constants that the model returns are no results of the function: see :mod:`ktir.frontend.torch.captured`.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch.fx import Graph, Node
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue

from ktir.errors import UnsupportedOperator
from ktir.frontend.torch.builder import GraphBuilder, Operand
from ktir.frontend.torch.calls import Call, described
from ktir.frontend.torch.constants import Constants, fold, splat
from ktir.frontend.torch.elements import element, element_of, shape_of
from ktir.frontend.torch.scalars import Number
from ktir.frontend.torch.sources import location_attribute, source_of

Imported = SSAValue | tuple[SSAValue | None, ...]
"""What a call gives: a tensor, or one for each of its results (None for one that is not made)."""

Handler = Callable[["Importer", Call], Imported]


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of the function: its name, the tensor behind it or None for a user input."""

    name: str
    tensor: torch.Tensor | None


@dataclass
class Importer:
    """Builds ``@main`` from ``graph``; ``sources`` says what each placeholder stands for.

    A placeholder in ``sources`` becomes an argument when used; one in ``constants`` has that value.
    """

    table: Mapping[str, Handler]
    sources: Mapping[Node, Argument]
    constants: Constants
    operators: Counter[str] = field(default_factory=lambda: Counter[str]())
    arguments: list[Argument] = field(default_factory=lambda: list[Argument]())
    values: dict[Node, Imported] = field(default_factory=lambda: dict[Node, Imported]())

    def __post_init__(self) -> None:
        self.block = Block()
        self.build = GraphBuilder(self.block)
        self._entry: dict[str, SSAValue] = {}
        self._materialised: dict[Node, SSAValue] = {}

    # ----------------------------------------------------------------------------------------------- walking the graph

    def run(self, graph: Graph, wanted: Iterable[Node]) -> None:
        """Import the nodes that ``wanted`` needs, in order of the graph."""
        for node in graph.nodes:
            if node not in self.constants and (value := fold(node, self.constants)) is not NotImplemented:
                self.constants[node] = value
        needed = self._needed(wanted)
        for node in graph.nodes:
            if node in needed and node.op == "call_function":
                self._import(node)

    def _needed(self, wanted: Iterable[Node]) -> set[Node]:
        pending, needed = list(wanted), set[Node]()
        while pending:
            node = pending.pop()
            if node not in needed and node not in self.constants:
                needed.add(node)
                pending.extend(node.all_input_nodes)
        return needed

    def _import(self, node: Node) -> None:
        self.build.location = location_attribute(source_of(node))
        if node.target is operator.getitem:
            return
        call = _call(node)
        handler = self.table.get(call.name)
        if handler is None:
            raise call.refuse(
                "this operator is not imported",
                remedy="rewrite this line of the model with operators of the imported set, or run it outside the model",
            )
        for tensor in call.tensors():
            meta = described(tensor)
            if meta is not None and tensor not in self.constants:
                element(meta.dtype, call.location)
        self.operators[call.name] += 1
        self.values[node] = handler(self, call)

    # -------------------------------------------------------------------------------------------- operands of handlers

    def tensor(self, argument: object) -> SSAValue:
        """The tensor that an argument of a call stands for; constants are put into the function."""
        node = cast("Node", argument)
        if node in self.constants:
            return self._constant(node)
        if node in self.sources:
            return self._argument(self.sources[node], cast("torch.Tensor", described(node)))
        if node.target is operator.getitem:
            whole, index = cast("tuple[Node, int]", node.args)
            part = cast("tuple[SSAValue | None, ...]", self.values[whole])[index]
            if part is None:
                raise _call(whole).refuse(f"result {index} of this operator is not imported")
            return part
        return cast("SSAValue", self.values[node])

    def result(self, node: Node) -> SSAValue:
        """The tensor of ``node`` as a result of the function: a value of its own, never an argument."""
        value = self.tensor(node)
        if not isinstance(value, BlockArgument):
            return value
        shape = shape_of(value)
        operands = [Operand.aligned(value, len(shape))]
        return self.build.pointwise(operands, shape, element_of(value), lambda scalars, values: values[0])

    def number(self, argument: object) -> Number | None:
        """The number that an argument is, or that all elements of a constant tensor are; None if it is neither."""
        return splat(self.constants.get(argument) if isinstance(argument, Node) else argument)

    def constant(self, argument: object) -> Any:
        """The value of a constant argument, None if it is computed from inputs."""
        return self.constants.get(argument) if isinstance(argument, Node) else argument

    def unexpanded(self, argument: object) -> SSAValue:
        """The tensor that an argument stands for, with one element where broadcasting repeats it anyway."""
        node = cast("Node", argument)
        while node not in self.constants and str(node.target) in ("aten.expand.default", "aten.alias.default"):
            node = cast("Node", node.args[0])
        value = self.tensor(node)
        if not isinstance(value.owner, linalg.BroadcastOp):
            return value
        added = value.owner.dimensions.get_values()
        single = [1 if d in added else extent for d, extent in enumerate(shape_of(value))]
        return self.build.reshape(value.owner.input, single)

    def operand(self, argument: object, rank: int) -> Operand:
        return Operand.aligned(self.unexpanded(argument), rank)

    # ---------------------------------------------------------------------------------------------- function arguments

    def _argument(self, source: Argument, meta: torch.Tensor) -> SSAValue:
        if source.name not in self._entry:
            kind = TensorType(element(meta.dtype), tuple(meta.shape))
            self._entry[source.name] = self.block.insert_arg(kind, len(self.block.args))
            self.arguments.append(source)
        return self._entry[source.name]

    def _constant(self, node: Node) -> SSAValue:
        if node not in self._materialised:
            self._materialised[node] = self._materialise(node, self.constants[node])
        return self._materialised[node]

    def _materialise(self, node: Node, value: Any) -> SSAValue:
        held = value if isinstance(value, torch.Tensor) else torch.tensor(value)
        kind, shape = element(held.dtype, source_of(node)), tuple(held.shape)
        same = splat(held)
        if same is not None:
            return self.build.filled(shape, kind, same)
        return self.array(held, self.sources[node].name if node in self.sources else f"ktir.constant.{node.name}")

    def array(self, held: torch.Tensor, name: str) -> SSAValue:
        """A constant tensor as an argument of the function."""
        return self._argument(Argument(name, held.detach().contiguous()), held)

    # -------------------------------------------------------------------------------------------------------- function

    def finish(self, results: Sequence[SSAValue], names: Sequence[str]) -> ModuleOp:
        """The module with ``@main``: user inputs first, then parameters and constants."""
        self.block.add_op(func.ReturnOp(*results))
        self._drop_unused()
        self._order_arguments()
        signature = FunctionType.from_lists(list(self.block.arg_types), [result.type for result in results])
        function = func.FuncOp("main", signature, Region(self.block))
        function.arg_attrs = ArrayAttr([_argument_attributes(argument) for argument in self.arguments])
        if results:
            function.res_attrs = ArrayAttr([DictionaryAttr({"ktg.name": StringAttr(name)}) for name in names])
        return ModuleOp([function])

    def _drop_unused(self) -> None:
        """Remove what handlers made and nothing uses, such as the statistics of a norm, and arguments for it."""
        for op in reversed(list(self.block.ops)):
            if not isinstance(op, func.ReturnOp) and not any(result.uses for result in op.results):
                op.detach()
                op.erase()
        used = [bool(value.uses) for value in self.block.args]
        self.arguments = [argument for argument, keep in zip(self.arguments, used, strict=True) if keep]
        for value, keep in reversed(list(zip(self.block.args, used, strict=True))):
            if not keep:
                self.block.erase_arg(value)

    def _order_arguments(self) -> None:
        """Move the arguments into the order of the function; they were added in order of first use."""
        old = list(zip(self.block.args, self.arguments, strict=True))
        ordered = sorted(old, key=lambda pair: pair[1].tensor is not None)
        for value, _ in ordered:
            value.replace_all_uses_with(self.block.insert_arg(value.type, len(self.block.args)))
        for value, _ in old:
            self.block.erase_arg(value)
        self.arguments = [argument for _, argument in ordered]


def _call(node: Node) -> Call:
    if not hasattr(node.target, "_schema"):
        raise UnsupportedOperator(
            f"{node.target} is not an operator of PyTorch's tensor library",
            location=source_of(node),
            remedy="move it out of the compiled model",
        )
    return Call.of(node)


def _argument_attributes(argument: Argument) -> DictionaryAttr:
    attributes: dict[str, Attribute] = {"ktg.name": StringAttr(argument.name)}
    if argument.tensor is not None:
        attributes["ktg.parameter"] = UnitAttr()
    return DictionaryAttr(attributes)
