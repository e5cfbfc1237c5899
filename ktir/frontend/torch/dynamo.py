"""The Dynamo door: ``torch.compile(model, backend="ktir")``.

Dynamo hands over a graph whose placeholders are weights, user inputs and, once a size has varied, numbers. The graph
is compiled when it is called, once for each combination of shapes, numbers and weights it is called with: so sizes that
vary cost a compilation and no correctness, and errors reach the caller as they are.

``options`` of ``torch.compile``: ``machine`` (name of a machine, default ``spyre``), ``options`` (compile options) and
``compile``, a function with the parameters of :func:`ktir.api.compile` that takes its place.
"""

from __future__ import annotations

import importlib
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.fx import GraphModule

from ktir.errors import StaleProgram, UnsupportedInput

Compiled = Callable[..., Any]
"""A compiled model: called as the model is."""

Compile = Callable[..., Compiled]
"""``(module, args, kwargs, machine=.., options=..)`` to a compiled model."""


def ktir_backend(
    graph: GraphModule, example_inputs: Sequence[Any], options: Mapping[str, Any] | None = None
) -> Compiled:
    """The entry point that ``torch.compile`` calls with each graph."""
    settings = Settings.of(options or {})
    return _Specialised(graph, [_is_weight(value) for value in example_inputs], settings)


@dataclass(frozen=True)
class Settings:
    """What ``options`` of ``torch.compile`` say."""

    machine: Any
    options: Any
    compile: Compile

    @staticmethod
    def of(options: Mapping[str, Any]) -> Settings:
        unknown = set(options) - {"machine", "options", "compile"}
        if unknown:
            raise UnsupportedInput(
                f"the backend has no option {', '.join(sorted(unknown))}", remedy="it has machine, options and compile"
            )
        return Settings(options.get("machine", "spyre"), options.get("options"), options.get("compile", _compile))


def _compile(*arguments: Any, **settings: Any) -> Compiled:
    """The public compile function. It stands above this layer, so it is looked up when it is needed."""
    return importlib.import_module("ktir.api").compile(*arguments, **settings)


def _is_weight(value: object) -> bool:
    """Whether Dynamo passes ``value`` because a module holds it: a parameter or a buffer."""
    static = getattr(value, "_dynamo_static_input_type", None) is not None
    return isinstance(value, torch.nn.Parameter) or (isinstance(value, torch.Tensor) and static)


class _Specialised:
    """A Dynamo graph with the programs that were made of it."""

    def __init__(self, graph: GraphModule, is_weight: Sequence[bool], settings: Settings) -> None:
        self._graph, self._is_weight, self._settings = graph, tuple(is_weight), settings
        self._names = _distinct([str(node.target) for node in graph.graph.nodes if node.op == "placeholder"])
        self._programs: dict[tuple[object, ...], tuple[_Bound, Compiled]] = {}

    def __call__(self, *inputs: Any) -> Any:
        key = tuple(_signature(value, is_weight) for value, is_weight in zip(inputs, self._is_weight, strict=True))
        if key not in self._programs:
            self._programs[key] = self._specialise(inputs)
        bound, program = self._programs[key]
        try:
            return program(**bound.user_inputs(inputs))
        except StaleProgram:
            bound, program = self._programs[key] = self._specialise(inputs)
            return program(**bound.user_inputs(inputs))

    def _specialise(self, inputs: Sequence[Any]) -> tuple[_Bound, Compiled]:
        bound = _Bound(self._graph, inputs, self._is_weight, self._names)
        settings = self._settings
        program = settings.compile(
            bound, (), bound.user_inputs(inputs), machine=settings.machine, options=settings.options
        )
        return bound, program


def _is_number(value: object) -> bool:
    """Numbers are compiled in: sizes, and Python floats, which Dynamo passes as float64 without dimensions."""
    return not isinstance(value, torch.Tensor) or (value.dtype == torch.float64 and value.dim() == 0)


def _signature(value: Any, is_weight: bool) -> object:
    """What a program depends on: the identity of a weight, shape and dtype of an input, the value of a number."""
    if is_weight:
        return id(value)
    if _is_number(value):
        return value.item() if isinstance(value, torch.Tensor) else value
    return tuple(value.shape), value.dtype


class _Bound(torch.nn.Module):
    """The graph as a module that holds its weights and numbers and takes only the user's tensors."""

    def __init__(
        self, graph: GraphModule, inputs: Sequence[Any], is_weight: Sequence[bool], names: Sequence[str]
    ) -> None:
        super().__init__()
        self._graph = [graph]  # in a list, so that the graph is no submodule and the names of weights stay plain
        self._numbers = {i: value for i, value in enumerate(inputs) if not is_weight[i] and _is_number(value)}
        self._paths = {i: name for i, name in enumerate(names) if is_weight[i]}
        self._users = {
            _identifier(name, i): i for i, name in enumerate(names) if i not in self._numbers and i not in self._paths
        }
        for i, path in self._paths.items():
            _hold(self, path, inputs[i])

    def user_inputs(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """The tensors that the user passed, by name."""
        return {name: inputs[i] for name, i in self._users.items()}

    def forward(self, **users: Any) -> Any:
        values: dict[int, Any] = {i: users[name] for name, i in self._users.items()} | self._numbers
        values |= {i: _held(self, path) for i, path in self._paths.items()}
        return self._graph[0](*(values[i] for i in range(len(values))))


def _distinct(placeholders: Sequence[str]) -> list[str]:
    """Readable names, the placeholder's own one where two would be alike."""
    readable = [_readable(placeholder) for placeholder in placeholders]
    return [
        name if readable.count(name) == 1 else placeholder
        for name, placeholder in zip(readable, placeholders, strict=True)
    ]


def _readable(placeholder: str) -> str:
    """``encoder.layer.0.weight`` from ``L_self_modules_encoder_modules_layer_modules_0_parameters_weight_``."""
    words = re.sub(r"_?(?:modules|parameters|buffers)_+", ".", placeholder.removesuffix("_"))
    return re.sub(r"^L_(?:(?:self|kwargs)(?=[_.]))?[_.]*", "", words).strip(".").replace("..", ".") or placeholder


def _identifier(name: str, position: int) -> str:
    """A keyword for an input: the model's own name for it where that is one, otherwise its position."""
    return name if name.isidentifier() and not keyword.iskeyword(name) else f"input_{position}"


def _hold(root: torch.nn.Module, path: str, tensor: torch.Tensor) -> None:
    *parents, name = path.split(".")
    for parent in parents:
        if parent not in dict(root.named_children()):
            root.add_module(parent, torch.nn.Module())
        root = cast("torch.nn.Module", getattr(root, parent))
    if isinstance(tensor, torch.nn.Parameter):
        root.register_parameter(name, tensor)
    else:
        root.register_buffer(name, tensor)


def _held(root: torch.nn.Module, path: str) -> torch.Tensor:
    *parents, name = path.split(".")
    for parent in parents:
        root = cast("torch.nn.Module", getattr(root, parent))
    return cast("torch.Tensor", getattr(root, name))
