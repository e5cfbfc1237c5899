"""Every element type: the program has the bits that the KTIR executor has, or is refused at its line with a remedy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.backends.dataflow import verify
from ktir.backends.dataflow.lower.hardware import Numerics
from ktir.backends.dataflow.run import DTYPES
from ktir.backends.dataflow.timed import simulate
from ktir.dialect.text.parser import parse_module
from ktir.errors import NotCapable, NotLowerable
from ktir.interp.executor import execute
from ktir.machine import Machine, load, loads
from tests.backends.dataflow.lower.kernels import Array, fetch, kernel, lowered, outputs, put, view
from tests.settings import examples

EIGHT_BITS = tuple(name for name in DTYPES if name.startswith("f8"))
FLOATS = ("f16", "bf16", "f32", "f64", *EIGHT_BITS)
SHAPE = [4, 64]


@cache
def every_type() -> Machine:
    """The ancestor of the target, with all floats of eight bits."""
    text = resources.files("ktir.backends.spyre").joinpath("data/rapid.toml").read_text()
    row = 'f8E4M3FN = { bits = 8, rate_as = "fp8" }\n'
    others = [name for name in EIGHT_BITS if name not in ("f8E4M3FN", "f8E5M2")]
    return loads(text.replace(row, row + "".join(row.replace("f8E4M3FN", name) for name in others)))


def agrees(text: str, arguments: Mapping[str, Any], machine: Machine, numerics: Numerics = "f16") -> dict[str, Array]:
    """Runs the kernel on both executors; what it stored."""
    program = lowered(text, None, arguments, machine, numerics)
    program.module.verify()
    verify.check(program.module, machine)
    found = outputs(program, arguments)
    module = parse_module(text, "kernel.mlir")
    wanted = execute(module, None, dict(arguments), checks=True, numerics=numerics).outputs
    assert wanted
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == array.tobytes(), name
    simulate(program.module, machine)
    return found


def numbers(name: str, seed: int, shape: list[int] | None = None) -> Array:
    """Random numbers with zeros of both signs, the largest, the smallest and, where there are some, infinities."""
    random = np.random.default_rng(seed)
    found = (random.standard_normal(shape or SHAPE) * 2.0 ** random.integers(-12, 12)).astype(DTYPES[name])
    if name.startswith("f8"):
        patterns = random.integers(0, 256, found.shape, dtype=np.uint8).view(DTYPES[name])
        found = np.where(np.isnan(patterns.astype(np.float32)), found, patterns)
    return found


def to(name: str, value: str, source: str, target: str) -> str:
    """``%name`` as ``%value`` in another type, by way of f32 where both have one width."""
    narrow, wide = sorted((source, target), key=lambda each: DTYPES[each].itemsize)
    if source == target:
        return f"%{name} = arith.addf %{value}, %zero_{source} : {tensor(source)}"
    if DTYPES[narrow].itemsize == DTYPES[wide].itemsize:
        return to(f"{name}_wide", value, source, "f32") + "\n" + to(name, f"{name}_wide", "f32", target)
    op = "extf" if source == narrow else "truncf"
    return f"%{name} = arith.{op} %{value} : {tensor(source)} to {tensor(target)}"


def tensor(element: str) -> str:
    return f"tensor<{SHAPE[0]}x{SHAPE[1]}x{element}>"


def program_of(source: str, target: str, *lines: str) -> str:
    """A kernel that makes ``%r`` of type ``target`` from ``%a`` and ``%b`` of type ``source``."""
    return kernel(
        "%x_ptr: index, %y_ptr: index, %z_ptr: index",
        [1],
        view("x", "%x_ptr", SHAPE, source),
        view("y", "%y_ptr", SHAPE, source),
        view("z", "%z_ptr", SHAPE, target),
        fetch("a", "%x", SHAPE, "%c0, %c0", SHAPE, source),
        fetch("b", "%y", SHAPE, "%c0, %c0", SHAPE, source),
        *lines,
        put("r", "%z", SHAPE, "%c0, %c0", SHAPE, target),
    )


def arrays_of(source: str, target: str, seed: int) -> dict[str, Array]:
    return {
        "x_ptr": numbers(source, seed),
        "y_ptr": numbers(source, seed + 1),
        "z_ptr": np.zeros(SHAPE, DTYPES[target]),
    }


@settings(max_examples=examples(200), deadline=None)
@given(
    st.sampled_from(FLOATS),
    st.sampled_from(FLOATS),
    st.sampled_from(("addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf")),
    st.integers(0, 1 << 20),
)
def test_arithmetic_and_conversions(source: str, target: str, op: str, seed: int) -> None:
    text = program_of(
        source,
        target,
        f"%zero_{source} = arith.constant dense<-0.0> : {tensor(source)}" if source == target else "",
        f"%s = arith.{op} %a, %b : {tensor(source)}",
        to("r", "s", source, target),
    )
    agrees(text, arrays_of(source, target, seed), every_type())


BODIES = {
    "select": "%m = arith.cmpf olt, %a, %b : {t}\n%r = arith.select %m, %a, %b : tensor<4x64xi1>, {t}",
    "constant": "%k = arith.constant dense<1.5> : {t}\n%r = arith.addf %a, %k : {t}",
    "dense constant": "%k = arith.constant dense<[{row}]> : {t}\n%r = arith.mulf %a, %k : {t}",
    "negation and magnitude": "%n = arith.negf %a : {t}\n%m = math.absf %b : {t}\n%r = arith.subf %n, %m : {t}",
    "integers": "%i = arith.fptosi %a : {t} to tensor<4x64xi32>\n%r = arith.sitofp %i : tensor<4x64xi32> to {t}",
    "fma": "%r = math.fma %a, %b, %a : {t}",
    "largest of a column": "%e = tensor.empty() : tensor<64x{e}>\n%lowest = arith.constant -0.25 : {e}\n"
    "%f = linalg.fill ins(%lowest : {e}) outs(%e : tensor<64x{e}>) -> tensor<64x{e}>\n"
    "%c = linalg.reduce ins(%a : {t}) outs(%f : tensor<64x{e}>) dimensions = [0] "
    "(%v: {e}, %acc: {e}) {{\n%w = arith.maximumf %v, %acc : {e}\nlinalg.yield %w : {e}\n}}\n"
    "%x2 = tensor.empty() : {t}\n"
    "%r = linalg.broadcast ins(%c : tensor<64x{e}>) outs(%x2 : {t}) dimensions = [0]",
    "clamped below": "%zero = arith.constant 0.0 : {e}\n%x2 = tensor.empty() : {t}\n"
    "%r = linalg.generic {{indexing_maps = "
    "[affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = "
    '["parallel", "parallel"]}} ins(%a : {t}) outs(%x2 : {t}) {{\n^bb0(%v: {e}, %out: {e}):\n'
    "%p = arith.maximumf %v, %zero : {e}\nlinalg.yield %p : {e}\n}} -> {t}",
}
WITH_ZERO = [name for name in FLOATS if name != "f8E8M0FNU"]
"""Types with zero and signs."""


@pytest.mark.parametrize("body", list(BODIES))
@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(WITH_ZERO), st.integers(0, 1 << 20))
def test_bodies(body: str, element: str, seed: int) -> None:
    row = ", ".join(f"[{', '.join(['0.5', '-2.0', '1.0', '0.25'] * 16)}]" for _ in range(SHAPE[0]))
    text = program_of(element, element, BODIES[body].format(t=tensor(element), e=element, row=row))
    given_arrays = arrays_of(element, element, seed)
    if body == "integers":
        given_arrays |= {"x_ptr": np.round(numbers("f16", seed).astype(np.float64) % 8).astype(DTYPES[element])}
    agrees(text, given_arrays, every_type())


def product(source: str, target: str, *, fused: bool = False) -> str:
    shapes = {"x": [8, 64], "y": [64, 32], "z": [8, 32]}
    return kernel(
        "%x_ptr: index, %y_ptr: index, %z_ptr: index",
        [1],
        view("x", "%x_ptr", shapes["x"], source),
        view("y", "%y_ptr", shapes["y"], source),
        view("z", "%z_ptr", shapes["z"], target),
        fetch("a", "%x", shapes["x"], "%c0, %c0", shapes["x"], source),
        fetch("b", "%y", shapes["y"], "%c0, %c0", shapes["y"], source),
        f"%zero = arith.constant 0.0 : {target}",
        f"%e = tensor.empty() : tensor<8x32x{target}>",
        f"%i = linalg.fill ins(%zero : {target}) outs(%e : tensor<8x32x{target}>) -> tensor<8x32x{target}>",
        f"%p = linalg.matmul ins(%a, %b : tensor<8x64x{source}>, tensor<64x32x{source}>) "
        f"outs(%i : tensor<8x32x{target}>) -> tensor<8x32x{target}>",
        put("p", "%z", shapes["z"], "%c0, %c0", shapes["z"], target),
    )


@pytest.mark.parametrize("target", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("source", [name for name in WITH_ZERO if name.startswith("f8")])
def test_products(source: str, target: str) -> None:
    """Of small whole numbers, so that sums are exact in any order."""
    random = np.random.default_rng(3)
    x, y = (random.integers(-3, 4, shape).astype(DTYPES[source]) for shape in ([8, 64], [64, 32]))
    z = np.zeros([8, 32], DTYPES[target])
    agrees(product(source, target), {"x_ptr": x, "y_ptr": y, "z_ptr": z}, every_type())


@pytest.mark.parametrize(("machine", "element"), [("spyre", "f8E4M3FN"), ("rapid", "f8E4M3FN"), ("rapid", "f8E5M2")])
def test_machines_multiply_what_they_rate(machine: str, element: str) -> None:
    random = np.random.default_rng(5)
    x, y = (random.integers(-3, 4, shape).astype(DTYPES[element]) for shape in ([8, 64], [64, 32]))
    agrees(product(element, "f16"), {"x_ptr": x, "y_ptr": y, "z_ptr": np.zeros([8, 32], np.float16)}, load(machine))


def test_eight_bits_are_multiplied_faster_than_sixteen() -> None:
    times: dict[str, float] = {}
    for element in ("f8E4M3FN", "f16"):
        arrays = {
            "x_ptr": np.ones([8, 64], DTYPES[element]),
            "y_ptr": np.ones([64, 32], DTYPES[element]),
            "z_ptr": np.zeros([8, 32], np.float32),
        }
        program = lowered(product(element, "f32"), None, arrays, load("rapid"))
        times[element] = simulate(program.module, program.machine).total_ns
    assert times["f8E4M3FN"] < times["f16"]


@pytest.mark.parametrize(
    ("machine", "element"),
    [("spyre", "f8E5M2"), ("rapid", "f8E8M0FNU"), ("mesh", "f8E4M3FN"), ("column", "f8E5M2"), ("spyre", "i4")],
)
def test_other_types_are_refused_where_they_stand(machine: str, element: str) -> None:
    text = program_of(element, element, "%r = arith.select %m, %a, %b : tensor<4x64xi1>, " + tensor(element)).replace(
        "%r =", "%m = arith.constant dense<true> : tensor<4x64xi1>\n%r ="
    )
    with pytest.raises(NotLowerable, match=f"{machine} has no elements of type {element}") as caught:
        blank = np.zeros(SHAPE, DTYPES.get(element, np.dtype(np.int8)))
        lowered(text, None, {"x_ptr": blank, "y_ptr": blank, "z_ptr": blank}, load(machine))
    assert caught.value.location is not None
    assert "construct_memory_view" in text.splitlines()[caught.value.location.line - 1]
    assert "f16" in (caught.value.remedy or "")


# ------------------------------------------------------------------------------------------------- DL16 as what f16 is


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(("f16", "f32", "f64")), st.sampled_from(list(BODIES)), st.integers(0, 1 << 20))
def test_dl16(other: str, body: str, seed: int) -> None:
    row = ", ".join(f"[{', '.join(['0.1', '-2.0', '1.001', '2049.0'] * 16)}]" for _ in range(SHAPE[0]))
    text = program_of("f16", "f16", BODIES[body].format(t=tensor("f16"), e="f16", row=row))
    given_arrays = arrays_of("f16", "f16", seed)
    if body == "integers":
        given_arrays |= {"x_ptr": np.round(given_arrays["x_ptr"] % np.float16(1024))}
    agrees(text, given_arrays, every_type(), "dl16")
    if other != "f16":
        agrees(
            program_of(other, "f16", to("r", "a", other, "f16")), arrays_of(other, "f16", seed), load("spyre"), "dl16"
        )
        agrees(
            program_of("f16", other, to("r", "a", "f16", other)), arrays_of("f16", other, seed), load("spyre"), "dl16"
        )


@pytest.mark.parametrize("target", ["f32", "f16"])
def test_products_of_dl16(target: str) -> None:
    random = np.random.default_rng(3)
    x, y = (random.integers(-30, 31, shape).astype(np.float16) for shape in ([8, 64], [64, 32]))
    arrays = {"x_ptr": x, "y_ptr": y, "z_ptr": np.zeros([8, 32], DTYPES[target])}
    found = agrees(product("f16", target), arrays, load("rapid"), "dl16")["z_ptr"]
    exact = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(found, exact, rtol=0 if target == "f32" else 2**-10)
    assert target == "f32" or not np.array_equal(found, exact.astype(np.float16)), "nothing was rounded to nine bits"


def test_the_lowest_number_of_f16_is_none_in_dl16() -> None:
    """A maximum that starts at minus infinity, which DL16 lacks, is no number; one may not leave the start out."""
    body = BODIES["largest of a column"].replace("-0.25 : {e}", "0xFC00 : f16").format(t=tensor("f16"), e="f16")
    arrays = arrays_of("f16", "f16", 1)
    assert np.isnan(agrees(program_of("f16", "f16", body), arrays, load("spyre"), "dl16")["z_ptr"]).all()
    assert not np.isnan(agrees(program_of("f16", "f16", body), arrays, load("spyre"))["z_ptr"]).any()


SCALED = program_of(
    "f16",
    "f16",
    f"%e2 = tensor.empty() : {tensor('f16')}",
    f"%k = linalg.fill ins(%factor : f16) outs(%e2 : {tensor('f16')}) -> {tensor('f16')}",
    f"%r = arith.mulf %a, %k : {tensor('f16')}",
).replace("%z_ptr: index", "%z_ptr: index, %factor: f16")


def test_scalars_are_rounded_once() -> None:
    for factor in (0.1, 1 + 2**-10 + 2**-12, -2e-4):
        agrees(SCALED, {**arrays_of("f16", "f16", 2), "factor": factor}, load("spyre"), "dl16")
    for factor in (1e6, 3e-5):
        with pytest.raises(NotLowerable, match="number of DL16 that f16 lacks"):
            lowered(SCALED, None, {**arrays_of("f16", "f16", 2), "factor": factor}, load("spyre"), "dl16")


@pytest.mark.parametrize("machine", ["mesh", "column"])
def test_machines_without_dl16(machine: str) -> None:
    with pytest.raises(NotCapable, match=f"{machine} has no dl16"):
        lowered(SCALED, None, {**arrays_of("f16", "f16", 2), "factor": 1.0}, load(machine), "dl16")


# ------------------------------------------------------------------------------------- products of what is too wide


@pytest.mark.parametrize(("source", "target"), [("f32", "f16"), ("f64", "f32"), ("f16", "f8E4M3FN"), ("f64", "bf16")])
def test_products_that_narrow_their_operands(source: str, target: str) -> None:
    """A named product converts its operands first; the executor does, and the lowering asks for it to be written."""
    random = np.random.default_rng(7)
    x, y = (random.standard_normal(shape).astype(DTYPES[source]) for shape in ([8, 64], [64, 32]))
    arrays = {"x_ptr": x, "y_ptr": y, "z_ptr": np.zeros([8, 32], DTYPES[target])}
    text = product(source, target)
    with pytest.raises(NotLowerable, match=f"rounds elements of {source} to {target} before it multiplies") as caught:
        lowered(text, None, arrays, every_type())
    assert caught.value.location is not None
    assert "arith.truncf" in (caught.value.remedy or "")
    found = execute(parse_module(text, "kernel.mlir"), None, dict(arrays), checks=True).outputs["z_ptr"]
    narrowed = {"x_ptr": x.astype(DTYPES[target]), "y_ptr": y.astype(DTYPES[target]), "z_ptr": arrays["z_ptr"]}
    same = execute(parse_module(product(target, target), "kernel.mlir"), None, narrowed, checks=True).outputs["z_ptr"]
    assert found.tobytes() == same.tobytes()
