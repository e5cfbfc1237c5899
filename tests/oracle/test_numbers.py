"""Floats and affine expressions look as real MLIR prints them, on generated values."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import AffineMapAttr, AnyFloat, bf16, f16, f32, f64
from xdsl.ir.affine import AffineMap

from ktir.dialect.text.floats import float_text
from ktir.dialect.text.parser import parse_module
from ktir.dialect.text.printer import print_module
from tests.oracle.mlir import mlir_prints
from tests.settings import examples

FLOATS: dict[str, AnyFloat] = {"f16": f16, "bf16": bf16, "f32": f32, "f64": f64}


@given(st.sampled_from(sorted(FLOATS)), st.lists(st.binary(min_size=8, max_size=8), min_size=1, max_size=60))
@settings(max_examples=examples(300), deadline=None)
def test_floats(name: str, bits: list[bytes]) -> None:
    kind = FLOATS[name]
    size = kind.compile_time_size
    patterns = [int.from_bytes(each[:size], "little") for each in bits]
    text = "\n".join(f'"t.t"() {{v = 0x{pattern:0{2 * size}X} : {name}}} : () -> ()' for pattern in patterns)
    theirs = re.findall(r"v = (\S+) : ", mlir_prints(text))
    ours = [float_text(kind.unpack(pattern.to_bytes(size, "little"), 1)[0], kind) for pattern in patterns]
    assert [t for t in theirs if not is_nan(t, kind)] == [o for o in ours if not is_nan(o, kind)]


def is_nan(text: str, kind: AnyFloat) -> bool:
    """Whether ``text`` is the bits of a NaN, whose payload Python does not keep."""
    if not text.startswith("0x"):
        return False
    value = kind.unpack(int(text, 16).to_bytes(kind.compile_time_size, "little"), 1)[0]
    return value != value


def expressions(dims: int, symbols: int) -> st.SearchStrategy[str]:
    """Affine expressions as people write them, with spaces, signs and parentheses."""
    variables = [f"d{number}" for number in range(dims)] + [f"s{number}" for number in range(symbols)]
    leaves = st.sampled_from(variables) | st.integers(0, 70).map(str)
    constants = st.integers(1, 70).map(str)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            st.tuples(inner, st.sampled_from(["*", "floordiv", "ceildiv", "mod"]), constants).map(
                lambda t: f"({t[0]}) {t[1]} {t[2]}"
            ),
            inner.map(lambda e: f"-({e})"),
        ),
        max_leaves=8,
    )


@given(
    st.lists(expressions(3, 2), min_size=1, max_size=8),
    st.lists(st.tuples(*[st.integers(-200, 200)] * 5), min_size=1, max_size=5),
)
@settings(max_examples=examples(300), deadline=None)
def test_mlir_reads_affine_expressions_as_we_do(texts: list[str], points: list[tuple[int, ...]]) -> None:
    source = f"func.func private @f() attributes {{m = affine_map<(d0, d1, d2)[s0, s1] -> ({', '.join(texts)})>}}"
    ours = map_in(source)
    for theirs in (map_in(mlir_prints(source)), map_in(mlir_prints(print_module(parse_module(source))))):
        assert [ours.eval(p[:3], p[3:]) for p in points] == [theirs.eval(p[:3], p[3:]) for p in points]


def map_in(text: str) -> AffineMap:
    """The map that the only function of ``text`` carries."""
    attribute = next(iter(parse_module(text).ops)).attributes["m"]
    assert isinstance(attribute, AffineMapAttr)
    return attribute.data
