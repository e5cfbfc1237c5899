"""Pass pipelines as text: MLIR's ``builtin.module(a,func.func(b{x=1}))`` and the plain ``a,b{x=1 y=2}``.

A pass works on the whole module, so an anchor such as ``func.func(..)`` only groups; what is inside runs in its place.
Passes come from three places, in this order: this toolchain's own, its back ends', and the general ones of xDSL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ktir.errors import PipelineError

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

REGISTRIES = ("ktir.passes.registry", "ktir.backends.registry")
"""Modules with a function ``all_passes() -> dict[name, loader of the pass class]``."""

GENERAL = (
    "canonicalize",
    "constant-fold-interp",
    "control-flow-hoist",
    "cse",
    "dce",
    "licm",
    "linalg-generalize-named-ops",
    "lower-affine",
    "reconcile-unrealized-casts",
    "scf-for-loop-flatten",
    "scf-for-loop-range-folding",
    "scf-for-loop-unroll",
)
"""Passes of xDSL that make sense on KTIR."""

PassLoader = Callable[[], "type[ModulePass]"]


def all_passes() -> dict[str, PassLoader]:
    """Name and loader of every pass there is."""
    from xdsl.transforms import get_all_passes

    stock = get_all_passes()
    passes: dict[str, PassLoader] = {name: stock[name] for name in GENERAL}
    for registry in REGISTRIES:
        if find_spec(registry) is not None:
            passes |= import_module(registry).all_passes()
    return passes


def build(pipeline: str, passes: Mapping[str, PassLoader]) -> list[ModulePass]:
    """The passes that ``pipeline`` names, with their options; raises :class:`PipelineError` for what it cannot mean."""
    return [_build_one(entry, passes) for entry in entries(pipeline)]


def entries(pipeline: str) -> Iterator[str]:
    """The passes of a pipeline text, one text each, anchors unfolded."""
    for entry in _split(pipeline):
        name, bracket, rest = entry.partition("(")
        if bracket and "{" not in name:
            if not rest.endswith(")"):
                raise PipelineError(f"missing ')' after {name}( in pass pipeline")
            yield from entries(rest[:-1])
        elif entry:
            yield entry


def _split(text: str) -> Iterator[str]:
    """The entries of ``text`` between commas that no bracket or string encloses."""
    depth, start, quoted = 0, 0, False
    for position, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        if quoted:
            continue
        depth += (character in "({[") - (character in ")}]")
        if depth < 0:
            raise PipelineError(f"unbalanced '{character}' in pass pipeline '{text}'")
        if character == "," and depth == 0:
            yield text[start:position].strip()
            start = position + 1
    if depth or quoted:
        raise PipelineError(f"unbalanced bracket or quote in pass pipeline '{text}'")
    yield text[start:].strip()


def _build_one(entry: str, passes: Mapping[str, PassLoader]) -> ModulePass:
    from xdsl.utils.arg_spec import parse_spec
    from xdsl.utils.exceptions import ArgSpecParseError

    name = entry.partition("{")[0].strip()
    if name not in passes:
        raise PipelineError(f"'{name}' does not refer to a registered pass", remedy=_nearest(name, passes))
    try:
        return passes[name]().from_spec(parse_spec(entry))
    except ArgSpecParseError as fault:
        raise PipelineError(f"cannot read the options of pass '{entry}': {_last_line(fault)}") from None
    except ValueError as fault:
        raise PipelineError(f"pass '{name}': {_last_line(fault)}", remedy=options_of(passes[name]())) from None


def options_of(kind: type[ModulePass]) -> str:
    """The options of a pass with their types, for people."""
    from xdsl.passes import get_pass_option_infos

    infos = get_pass_option_infos(kind)
    return "; ".join(f"{info[0]} : {info[1]}" for info in infos) or "this pass has no options"


def _last_line(fault: BaseException) -> str:
    return next((line for line in reversed(str(fault).splitlines()) if line.strip()), type(fault).__name__).strip()


def _nearest(name: str, passes: Mapping[str, PassLoader]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, passes, n=3)
    return f"did you mean {', '.join(close)}?" if close else "ktir-opt --list-passes names all passes"
