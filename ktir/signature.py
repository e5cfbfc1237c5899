"""How a call of a compiled model maps to its function, as plain data that can be saved and needs no model code.

Words. *leaf*: a tensor or other value in the nested arguments of a call, numbered in order. *structure*: the nesting
itself, as JSON: a number is a leaf, ``{"tuple": [..]}``, ``{"list": [..]}``, ``{"dict": {..}}`` and
``{"object": NAME, "fields": {..}}`` are containers. An output *object* of a class that only the model's code knows
comes back as :class:`Outputs`, which has the same keys and attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from ktir.arrays import Array, dtype_name, is_array, is_torch, like, to_numpy
from ktir.errors import PackageError, UnsupportedInput

Json: TypeAlias = Any
Execute: TypeAlias = Callable[[dict[str, Any]], Sequence[Any]]


class Caller(Protocol):
    """Turns a call into inputs of the function by name, and the function's results into what the model returns."""

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any], execute: Execute) -> Any: ...


class Outputs(dict[str, Any]):
    """An output with named fields: ``outputs["logits"]`` and ``outputs.logits`` are the same."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass(frozen=True)
class Signature:
    """The calling convention of one function; see the module's docstring for the structures.

    ``leaves``: ``{"shape", "dtype"}`` or ``{"value"}`` for each leaf. ``inputs``: ``[name, leaf]`` for each argument
    that is an input. ``outputs``: ``{"computed": result}``, ``{"literal": value}``, ``{"constant": tensor}`` or
    ``{"alias": {"leaf" | "tensor", "shape", "strides", "offset"}}``, strides in elements. ``mutations``: an output, and
    the ``leaf`` or ``tensor`` it is written to.
    """

    arguments: Json
    leaves: Sequence[Json]
    inputs: Sequence[tuple[str, int]]
    returns: Json
    outputs: Sequence[Json]
    mutations: Sequence[Json]
    tensors: Mapping[str, Array]

    def to_json(self) -> Json:
        """Everything but the tensors."""
        return {
            "arguments": self.arguments,
            "leaves": list(self.leaves),
            "inputs": [list(pair) for pair in self.inputs],
            "returns": self.returns,
            "outputs": list(self.outputs),
            "mutations": list(self.mutations),
        }

    @staticmethod
    def from_json(data: Json, tensors: Mapping[str, Array]) -> Signature:
        """Raises :class:`PackageError` when a part is missing."""
        try:
            return Signature(
                data["arguments"],
                data["leaves"],
                [(str(name), int(leaf)) for name, leaf in data["inputs"]],
                data["returns"],
                data["outputs"],
                data["mutations"],
                tensors,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise PackageError(f"the signature is incomplete: {error}") from None

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any], execute: Execute) -> Any:
        """Raises :class:`UnsupportedInput` for a call of another structure, shape or element type."""
        leaves = list(flatten(self.arguments, (tuple(args), dict(kwargs))))
        for number, (leaf, expected) in enumerate(zip(leaves, self.leaves, strict=True)):
            _check_leaf(number, leaf, expected)
        kind = next((leaf for leaf in leaves if is_array(leaf)), None)
        results = execute({name: leaves[leaf] for name, leaf in self.inputs})
        changed = [self._value(mutation["source"], results, leaves, kind) for mutation in self.mutations]
        for mutation, value in zip(self.mutations, changed, strict=True):
            _write(self._target(mutation, leaves), value)
        values = [self._value(output, results, leaves, kind) for output in self.outputs]
        return unflatten(self.returns, values)

    def _value(self, output: Json, results: Sequence[Any], leaves: Sequence[Any], kind: object) -> Any:
        if "computed" in output:
            return like(results[output["computed"]], kind)
        if "literal" in output:
            return output["literal"]
        if "constant" in output:
            return like(self.tensors[output["constant"]].copy(), kind)
        alias = output["alias"]
        return like(_strided(to_numpy(self._target(alias, leaves)), alias), kind)

    def _target(self, place: Json, leaves: Sequence[Any]) -> Any:
        return leaves[place["leaf"]] if place.get("leaf") is not None else self.tensors[place["tensor"]]


# ----------------------------------------------------------------------------------------------------------- structures


def flatten(structure: Json, value: Any) -> Iterator[Any]:
    """The leaves of ``value`` in order; raises :class:`UnsupportedInput` where its nesting is another."""
    if isinstance(structure, int):
        yield value
        return
    kind: str = next(iter(structure))
    children = structure["fields"] if kind == "object" else structure[kind]
    if kind in ("dict", "object"):
        if not isinstance(value, Mapping) or set(cast("Mapping[str, Any]", value)) != set(children):
            raise UnsupportedInput(
                f"keywords or keys of this call differ: {_keys(cast('object', value))} instead of {sorted(children)}",
                remedy="call the program as it was compiled",
            )
        for name, child in children.items():
            yield from flatten(child, value[name])
        return
    if not isinstance(value, tuple | list) or len(cast("Sequence[Any]", value)) != len(children):
        count = len(cast("Sequence[Any]", value)) if isinstance(value, tuple | list) else 1
        raise UnsupportedInput(
            f"this call has {count} values where {len(children)} are expected",
            remedy="call the program as it was compiled",
        )
    for child, part in zip(children, cast("Sequence[Any]", value), strict=True):
        yield from flatten(child, part)


def unflatten(structure: Json, leaves: Sequence[Any]) -> Any:
    """The value of that structure whose leaves are ``leaves``."""
    if isinstance(structure, int):
        return leaves[structure]
    if "tuple" in structure:
        return tuple(unflatten(child, leaves) for child in structure["tuple"])
    if "list" in structure:
        return [unflatten(child, leaves) for child in structure["list"]]
    if "dict" in structure:
        return {name: unflatten(child, leaves) for name, child in structure["dict"].items()}
    return Outputs({name: unflatten(child, leaves) for name, child in structure["fields"].items()})


def structure_of(numbered: Any) -> Json:
    """The structure of a value whose leaves are their own numbers.

    Raises :class:`PackageError` for a container that is none of tuple, list, dict, or a mapping or named tuple of a
    class.
    """
    if isinstance(numbered, int):
        return numbered
    if isinstance(numbered, Mapping):
        items = cast("Mapping[Any, Any]", numbered)
        fields = {str(name): structure_of(child) for name, child in items.items()}
        return {"dict": fields} if type(items) is dict else {"object": type(items).__name__, "fields": fields}
    if isinstance(numbered, tuple):
        parts = cast("tuple[Any, ...]", numbered)
        names: tuple[str, ...] | None = getattr(parts, "_fields", None)
        if names is None:
            return {"tuple": [structure_of(child) for child in parts]}
        fields = {name: structure_of(child) for name, child in zip(names, parts, strict=True)}
        return {"object": type(parts).__name__, "fields": fields}
    if isinstance(numbered, list):
        return {"list": [structure_of(child) for child in cast("list[Any]", numbered)]}
    raise PackageError(
        f"a {type(numbered).__name__} in the model's inputs or outputs cannot be saved",
        remedy="use tuples, lists, dicts, or transformers' output classes",
    )


def _keys(value: object) -> str:
    return str(sorted(cast("Mapping[str, Any]", value))) if isinstance(value, Mapping) else type(value).__name__


def _check_leaf(number: int, leaf: object, expected: Json) -> None:
    if "value" in expected:
        same, got, wanted = leaf == expected["value"], repr(leaf), repr(expected["value"])
    else:
        array = to_numpy(leaf) if is_array(leaf) else None
        got = f"{dtype_name(array)}{list(array.shape)}" if array is not None else repr(leaf)
        wanted = f"{expected['dtype']}{list(expected['shape'])}"
        same = got == wanted
    if not same:
        raise UnsupportedInput(
            f"argument {number} is {got} in this call and was {wanted} when the program was compiled",
            remedy="compile the model for these arguments",
        )


def _strided(array: Array, view: Json) -> Array:
    """A copy of the elements that a strided view of a contiguous array shows."""
    strides = [stride * array.itemsize for stride in view["strides"]]
    flat = array.reshape(-1)[view["offset"] :]
    reach = sum((size - 1) * stride for size, stride in zip(view["shape"], view["strides"], strict=True))
    if min(view["shape"], default=1) > 0 and not 0 <= reach < max(1, flat.size):
        raise PackageError("a view in the signature reaches outside its tensor")
    return np.lib.stride_tricks.as_strided(flat, view["shape"], strides).copy()


def _write(target: Any, value: Any) -> None:
    """Writes ``value`` into the caller's own array."""
    if is_torch(target):
        target.copy_(value if is_torch(value) else like(value, target))
        return
    np.copyto(target, to_numpy(value))
