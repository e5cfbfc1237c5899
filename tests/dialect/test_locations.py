"""Locations: they are read wherever their aliases stand, kept, and printed as MLIR prints them."""

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from ktir.dialect.text.parser import parse_module
from ktir.dialect.text.printer import print_module
from ktir.errors import ParseError
from tests.dialect.texts import EVERY_OPERATION, LOCATED
from tests.oracle.mlir import mlir_reads


def locations(module: ModuleOp) -> list[Attribute]:
    """Those of operations and of block arguments, in order."""
    found: list[Attribute] = []
    for op in module.walk():
        found.append(op.location)
        found += [argument.location for region in op.regions for block in region.blocks for argument in block.args]
    return found


def test_real_mlir_prints_the_same() -> None:
    assert print_module(parse_module(LOCATED), debug_info=True) == LOCATED
    assert mlir_reads(LOCATED).operation.get_asm(enable_debug_info=True).rstrip() + "\n" == LOCATED


@pytest.mark.parametrize("text", [LOCATED, EVERY_OPERATION], ids=["located", "stamped"])
@pytest.mark.parametrize("generic", [False, True])
def test_locations_come_back(text: str, generic: bool) -> None:
    module = parse_module(text, "k.ktir")
    printed = print_module(module, generic=generic, debug_info=True)
    again = parse_module(printed, "other")
    assert locations(again) == locations(module)
    assert print_module(again, generic=generic, debug_info=True) == printed


def test_an_alias_may_follow_its_use_even_in_an_argument() -> None:
    text = 'func.func @f(%x: index loc(#loc1)) {\n  func.return loc(#loc2)\n}\n#loc2 = loc("b"(#loc1))\n'
    module = parse_module(text + '#loc1 = loc("a.py":3:4)\n')
    assert print_module(module, debug_info=True).startswith('#loc1 = loc("a.py":3:4)\nmodule {\n')


def test_an_alias_without_a_definition_is_an_error_where_it_is_used() -> None:
    with pytest.raises(ParseError, match="undefined symbol alias '#loc9'") as caught:
        parse_module("func.func @f() {\n  func.return loc(#loc9)\n}\n", "k.ktir")
    assert caught.value.location is not None and caught.value.location.line == 2


def test_aliases_that_refer_to_each_other_end() -> None:
    text = "func.func @f() {\n  func.return loc(#loc1)\n}\n#loc1 = loc(fused[#loc2])\n#loc2 = loc(fused[#loc1])\n"
    print_module(parse_module(text), debug_info=True)


def test_many_forward_aliases_are_read_in_linear_time() -> None:
    count = 1000
    uses = "\n".join(f"  %{i} = arith.constant {i} : i32 loc(#loc{i})" for i in range(count))
    definitions = "\n".join(f'#loc{i} = loc("k.py":{i + 1}:1)' for i in range(count))
    module = parse_module(f"func.func @f() {{\n{uses}\n  func.return\n}}\n{definitions}\n")
    assert len({op.location for op in module.walk()}) >= count
