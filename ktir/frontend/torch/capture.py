"""Capture of a model: an ``nn.Module``, a plain ``fx.GraphModule`` or an ``ExportedProgram`` becomes :class:`Captured`.

The model is exported for exactly the arguments given (static shapes), decomposed into the curated set and imported.
Weights are not copied: the parameters of the result are the model's own tensors.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Node
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _pytree as pytree
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ktir.errors import KtirError, UnsupportedInput
from ktir.frontend.torch.aten_table import OPERATORS, decompositions
from ktir.frontend.torch.captured import (
    MOVES,
    Alias,
    Captured,
    Changed,
    Computed,
    Constant,
    InputBinding,
    LeafSpec,
    Literal,
    Move,
    Mutation,
    OutputBinding,
    View,
    version_of,
)
from ktir.frontend.torch.constants import Constants
from ktir.frontend.torch.importer import Argument, Importer


class _Function(torch.nn.Module):
    """A plain function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = _named_forward(function) if isinstance(function, FunctionType) else function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


def _named_forward(function: FunctionType) -> FunctionType:
    """``function`` under the name ``forward``: PyTorch keeps the source lines of functions of that name only."""
    code = function.__code__.replace(co_name="forward")
    copy = FunctionType(code, function.__globals__, "forward", function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def capture(
    model: torch.nn.Module | ExportedProgram | Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> Captured:
    """Capture ``model`` as it computes for ``args`` and ``kwargs``.

    Raises :class:`UnsupportedOperator` for an operator outside the curated set and :class:`UnsupportedInput` for a
    model that cannot be captured: data-dependent control flow, dynamic shapes, other element types.
    """
    with torch.inference_mode(False), torch.no_grad():
        program = _exported(model, tuple(args), dict(kwargs or {}))
        _refuse_symbols(program)
        curated = _guarded("decomposed", lambda: cast("Any", program).run_decompositions(decompositions()))
        return _Capture(curated).captured()


def _exported(
    model: torch.nn.Module | ExportedProgram | Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ExportedProgram:
    if isinstance(model, ExportedProgram):
        return model
    module = model if isinstance(model, torch.nn.Module) else _Function(model)
    apart_args, apart_kwargs = _apart((args, kwargs))
    return _guarded("exported", lambda: torch.export.export(module, apart_args, apart_kwargs, strict=False))


def _apart(arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with those that share memory replaced by copies.

    The function that is made takes separate tensors; calls with inputs that overlap are checked when they happen.
    """
    leaves, spec = pytree.tree_flatten(arguments)
    storages = Counter(_storage(leaf) for leaf in leaves)
    separate = [leaf.clone() if _storage(leaf) >= 0 and storages[_storage(leaf)] > 1 else leaf for leaf in leaves]
    return pytree.tree_unflatten(separate, spec)


def _storage(leaf: object) -> int:
    """A number for the memory of a tensor with strides, distinct from that of everything else."""
    if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided and leaf.numel() > 0:
        return cast("Any", StorageWeakRef(leaf.untyped_storage())).cdata
    return -1


def _guarded(what: str, work: Callable[[], ExportedProgram]) -> ExportedProgram:
    """Run a step of PyTorch's capture; its many kinds of failure become one error that keeps the reason."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # PyTorch uses its own deprecated names while it copies
            return work()
    except KtirError:
        raise
    except Exception as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise UnsupportedInput(
            f"the model cannot be {what} by PyTorch {torch.__version__}: {type(error).__name__}: {reason}",
            remedy="call torch.export.export(model, args, kwargs) alone: it says more of what stands in the way",
        ) from error


def _refuse_symbols(program: ExportedProgram) -> None:
    for node in program.graph.nodes:
        value = node.meta.get("val")
        dynamic = isinstance(value, torch.Tensor) and any(isinstance(extent, torch.SymInt) for extent in value.shape)
        if dynamic or isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            raise UnsupportedInput(
                f"{node.name} has a dynamic shape or value; only static shapes are compiled",
                remedy="export the program without dynamic_shapes, once for each size you need",
            )


class _Capture:
    """One exported program on its way to :class:`Captured`."""

    def __init__(self, program: ExportedProgram) -> None:
        self._program = program
        self._nodes = {node.name: node for node in program.graph.nodes}
        self._placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
        self._inputs = list(program.graph_signature.input_specs)
        self._results = list(program.graph_signature.output_specs)
        self._mutated = {spec.target for spec in self._results if spec.kind is OutputKind.BUFFER_MUTATION}
        self._sources: dict[Node, Argument] = {}
        self._constants: Constants = {}
        self._leaf_of: dict[Node, int] = {}
        self._named: dict[Node, str] = {}
        self._held: dict[str, torch.Tensor] = {}
        self._leaves: list[LeafSpec] = []
        self._folded: dict[str, int] = {}

    def captured(self) -> Captured:
        for node, spec in zip(self._placeholders, self._inputs, strict=True):
            self._bind_input(node, spec)
        importer = Importer(OPERATORS, self._sources, self._constants)
        importer.run(self._program.graph, self._returned_nodes())
        results: dict[Node, int] = {}
        bindings = [self._bind_output(spec, importer, results) for spec in self._results]
        module = self._finish(importer, results)
        outputs, mutations = self._split(bindings)
        used = importer.arguments
        by_name = {self._sources[node].name: leaf for node, leaf in self._leaf_of.items()}
        in_spec, out_spec = self._program.call_spec.in_spec, self._program.call_spec.out_spec
        assert in_spec is not None and out_spec is not None
        return Captured(
            module=module,
            inputs=tuple(InputBinding(a.name, by_name[a.name]) for a in used if a.tensor is None),
            parameters={a.name: a.tensor for a in used if a.tensor is not None},
            weights=self._held,
            outputs=tuple(outputs),
            result_names=tuple(self._names(results)),
            mutations=tuple(mutations),
            leaves=tuple(self._leaves),
            in_spec=in_spec,
            out_spec=out_spec,
            keywords=tuple(_keywords(in_spec)),
            operators=importer.operators,
            folded=self._folded,
        )

    # ----------------------------------------------------------------------------------------------------------- inputs

    def _bind_input(self, node: Node, spec: InputSpec) -> None:
        match spec.kind:
            case InputKind.USER_INPUT:
                self._bind_user_input(node, spec)
            case InputKind.PARAMETER | InputKind.BUFFER | InputKind.CONSTANT_TENSOR:
                self._bind_weight(node, spec)
            case _:
                raise UnsupportedInput(
                    f"the model holds {spec.target}, an object that is no tensor",
                    remedy="keep tensors and Python numbers only in the modules that are compiled",
                )

    def _bind_user_input(self, node: Node, spec: InputSpec) -> None:
        leaf = len(self._leaves)
        if isinstance(spec.arg, ConstantArgument):
            self._leaves.append(LeafSpec(None, spec.arg.value))
            self._constants[node] = spec.arg.value
            return
        meta = cast("torch.Tensor", node.meta["val"])
        self._leaves.append(LeafSpec((tuple(meta.shape), meta.dtype)))
        self._leaf_of[node] = leaf
        self._sources[node] = Argument(self._input_name(node, leaf), None)

    def _input_name(self, node: Node, leaf: int) -> str:
        """The keyword of a keyword argument, otherwise what the capture calls it; never the name of a weight."""
        spec = self._program.call_spec.in_spec
        assert spec is not None
        keyword = leaf - spec.child(0).num_leaves
        plain = spec.child(1).num_leaves == len(_keywords(spec))
        name = _keywords(spec)[keyword] if keyword >= 0 and plain else node.name
        return f"input.{name}" if any(name == other.target for other in self._inputs) else name

    def _bind_weight(self, node: Node, spec: InputSpec) -> None:
        """A parameter or buffer; buffers that the model does not change are constants."""
        name = cast("str", spec.target)
        stored = self._program.state_dict.get(name)
        tensor = cast("torch.Tensor", self._program.constants[name] if stored is None else stored)
        self._sources[node] = Argument(name, tensor)
        self._named[node] = name
        self._held[name] = tensor
        if spec.kind is not InputKind.PARAMETER and name not in self._mutated:
            self._constants[node] = tensor
            self._folded[name] = version_of(tensor)

    # ---------------------------------------------------------------------------------------------------------- outputs

    def _returned_nodes(self) -> list[Node]:
        """Nodes that the function has to compute for the outputs and the mutations."""
        nodes = [self._nodes[spec.arg.name] for spec in self._results if isinstance(spec.arg, TensorArgument)]
        return [node for node in nodes if self._as_alias(node) is None]

    def _bind_output(self, spec: OutputSpec, importer: Importer, results: dict[Node, int]) -> OutputBinding:
        if isinstance(spec.arg, ConstantArgument):
            return Literal(spec.arg.value)
        if not isinstance(spec.arg, TensorArgument):
            raise UnsupportedInput(f"the model returns {spec.arg}, which is no tensor, number or None")
        node = self._nodes[spec.arg.name]
        mutation = spec.kind is not OutputKind.USER_OUTPUT
        alias = self._as_alias(node) if mutation else self._as_alias(node) or self._as_changed(node)
        if alias is not None:
            return alias
        if node in importer.constants:
            return Constant(importer.constants[node])
        return Computed(results.setdefault(node, len(results)))

    def _as_alias(self, node: Node) -> Alias | None:
        """``node`` as a view of an input or weight, None if it is computed."""
        root, view = _moved(node)
        return self._alias_of(root, view) if root in self._sources and root not in self._constants else None

    def _alias_of(self, root: Node, view: View, kind: type[Alias] = Alias) -> Alias:
        if root in self._leaf_of:
            return kind(view, leaf=self._leaf_of[root])
        return kind(view, parameter=self._named[root])

    def _as_changed(self, node: Node) -> Alias | None:
        """``node`` as a view of an input after the model changed it."""
        root, view = _moved(node)
        for spec in self._results:
            if spec.kind is OutputKind.USER_INPUT_MUTATION and spec.arg.name == root.name:
                return self._alias_of(self._nodes[cast("str", spec.target)], view, Changed)
        return None

    def _split(self, bindings: Sequence[OutputBinding]) -> tuple[list[OutputBinding], list[Mutation]]:
        outputs: list[OutputBinding] = []
        mutations: list[Mutation] = []
        for spec, binding in zip(self._results, bindings, strict=True):
            match spec.kind:
                case OutputKind.USER_OUTPUT:
                    outputs.append(binding)
                case OutputKind.USER_INPUT_MUTATION:
                    target = self._nodes[cast("str", spec.target)]
                    mutations.append(Mutation(binding, self._leaf_of[target]))
                case OutputKind.BUFFER_MUTATION:
                    mutations.append(Mutation(binding, None, spec.target))
                case _:
                    raise UnsupportedInput(
                        f"the model has an output of kind {spec.kind.name}", remedy="export it for inference"
                    )
        return outputs, mutations

    def _finish(self, importer: Importer, results: Mapping[Node, int]) -> ModuleOp:
        values: list[SSAValue] = [importer.result(node) for node in results]
        return importer.finish(values, self._names(results))

    def _names(self, results: Mapping[Node, int]) -> list[str]:
        """``output.last_hidden_state`` and the like, from where the result stands in what the model returns."""
        paths = self._output_paths()
        names = {node: f"output.{node.name}" for node in results}
        for spec, path in zip(self._results, paths, strict=True):
            node = self._nodes.get(getattr(spec.arg, "name", ""))
            if node in names and path is not None:
                names[node] = path
        return list(names.values())

    def _output_paths(self) -> list[str | None]:
        spec = self._program.call_spec.out_spec
        assert spec is not None
        numbered = pytree.tree_unflatten(list(range(spec.num_leaves)), spec)
        keyed = pytree.tree_flatten_with_path(numbered)[0]
        paths = iter(_path_name(path) for path, _ in keyed)
        return [next(paths) if s.kind is OutputKind.USER_OUTPUT else None for s in self._results]


def _path_name(path: Sequence[object]) -> str:
    words = re.findall(r"\w+", pytree.keystr(tuple(cast("Any", path))))
    return ".".join(["output", *words])


def _keywords(in_spec: pytree.TreeSpec) -> list[str]:
    """Names of the keyword arguments, in the order of the capture."""
    return list(cast("Any", in_spec.child(1)).context)


def _moved(node: Node) -> tuple[Node, View]:
    """The node whose elements ``node`` holds (itself if it computes), and the moves that lead from there."""
    moves: list[Move] = []
    while (overload := str(node.target).removeprefix("aten.")) in MOVES:
        moves.append(Move(overload, tuple(node.args[1:])))
        node = cast("Node", node.args[0])
    return node, View(tuple(reversed(moves)))
