"""Operands of a structured operation that disagree on a loop's extent are refused, in MLIR's words."""

import pytest

from ktir.dialect.text.parser import parse_module
from ktir.errors import VerifyError
from tests.oracle.mlir import mlir_reads

BODY = "{\n^bb0(%x: f16, %y: f16):\n  linalg.yield %x : f16\n}"
GENERIC = (
    "linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], "
    f'iterator_types = ["parallel", "parallel"]}} ins(%a : tensor<8x4xf16>) outs(%o : tensor<8x4xf16>) {BODY}'
)
DISAGREE = {
    "matmul": ("8x32", "16x32", "8x32", "linalg.matmul ins(%a, %b : {a}, {b}) outs(%o : {o})"),
    "matmul, output": ("8x32", "32x16", "8x15", "linalg.matmul ins(%a, %b : {a}, {b}) outs(%o : {o})"),
    "batch_matmul": ("2x8x4", "3x4x5", "2x8x5", "linalg.batch_matmul ins(%a, %b : {a}, {b}) outs(%o : {o})"),
    "add": ("8", "7", "8", "linalg.add ins(%a, %b : {a}, {b}) outs(%o : {o})"),
    "generic": ("8x4", "1", "8x4", GENERIC.replace("{", "{{").replace("}", "}}")),
}


def text(a: str, b: str, o: str, operation: str) -> str:
    types = {name: f"tensor<{extents}xf16>" for name, extents in zip("abo", (a, b, o), strict=True)}
    arguments = ", ".join(f"%{name}: {type}" for name, type in types.items())
    return f"func.func @k({arguments}) {{\n%r = {operation.format(**types)} -> {types['o']}\nreturn\n}}\n"


@pytest.mark.parametrize("name", DISAGREE)
def test_operands_that_disagree_are_refused_as_mlir_refuses_them(name: str) -> None:
    source = text(*DISAGREE[name])
    with pytest.raises(VerifyError) as ours:
        parse_module(source)
    with pytest.raises(Exception, match="inferred") as theirs:
        mlir_reads(source)
    message = ours.value.message.partition("inferred")[2]
    assert message and f"inferred{message}" in str(theirs.value)
    assert ours.value.location is not None and ours.value.location.line == 2
