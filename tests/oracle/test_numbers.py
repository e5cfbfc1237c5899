"""Numbers and affine expressions look as real MLIR prints them, on generated values."""

from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir.affine import AffineMap

from ktir.dialect.context import create_context
from ktir.dialect.text.parser import parse_module
from ktir.dialect.text.printer import print_module
from tests.oracle.mlir import mlir_prints
from tests.settings import examples

FLOATS = {
    **{"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "tf32": 19, "f4E2M1FN": 4, "f6E2M3FN": 6, "f6E3M2FN": 6},
    **dict.fromkeys(("f8E5M2", "f8E4M3", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E3M4"), 8),
}
"""Bits of each type whose every pattern is a value of its own."""


def attributes(literals: list[str], kind: str) -> str:
    """A text that holds numbers alone, in a row, and as all elements of a tensor."""
    lines = [
        f'"t.t"() {{v = {literal} : {kind}, w = dense<[{literal}, 1.5]> : tensor<2x{kind}>, '
        f"x = dense<{literal}> : tensor<2x{kind}>}} : () -> ()"
        for literal in literals
    ]
    return "\n".join(lines)


def check(text: str) -> None:
    """Our text of ``text`` is that of MLIR, and is read as the same numbers."""
    context = create_context(allow_unregistered=True)
    ours = print_module(module := parse_module(text, context=context))
    assert ours == mlir_prints(text)
    assert parse_module(ours, context=context).is_structurally_equivalent(module)


@given(st.sampled_from(sorted(FLOATS)), st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40))
@settings(max_examples=examples(600), deadline=None)
def test_floats_by_their_bits(kind: str, patterns: list[int]) -> None:
    bits = FLOATS[kind]
    check(attributes([f"0x{pattern >> (64 - bits):0{-(-bits // 4)}X}" for pattern in patterns], kind))


@given(
    st.sampled_from(sorted(FLOATS)),
    st.lists(st.floats(allow_nan=False, allow_infinity=False).map("{:.17e}".format), min_size=1, max_size=20)
    | st.lists(st.decimals(-70000, 70000, places=3).map("{:f}".format), min_size=1, max_size=20),
)
@settings(max_examples=examples(600), deadline=None)
def test_floats_by_their_digits(kind: str, literals: list[str]) -> None:
    check(attributes(literals, kind))


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
