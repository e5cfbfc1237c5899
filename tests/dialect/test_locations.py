"""Locations: they are read wherever their aliases stand, kept, and printed as MLIR prints them."""

import pytest
from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.ir import Attribute

from ktir.dialect.context import create_context
from ktir.dialect.locations import place_of
from ktir.dialect.text.parser import parse_module
from ktir.dialect.text.printer import print_module
from ktir.errors import ParseError, VerifyError
from ktir.location import Location
from tests.dialect.texts import EVERY_OPERATION, LOCATED
from tests.oracle.mlir import mlir_reads
from tests.oracle.test_snippets import SNIPPETS


def locations(module: ModuleOp) -> list[Attribute]:
    """Those of operations and of block arguments, in order; the text of ``scf`` loops has none for their variables."""
    found: list[Attribute] = []
    for op in module.walk():
        found.append(op.location)
        if not op.name.startswith("scf."):
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
    assert print_module(module, debug_info=True).startswith('#loc2 = loc("a.py":3:4)\nmodule {\n')


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


def test_an_argument_without_a_location_stands_where_it_is_written() -> None:
    module = parse_module("func.func @f(%x: index,\n  %y: index loc(unknown)) {\n  func.return\n}\n", "k.ktir")
    function = next(iter(module.ops))
    x, y = function.regions[0].block.args
    assert place_of(x.location) == Location("k.ktir", 1, 14)
    assert y.location == UnknownLoc()


def test_an_unknown_location_is_kept_and_an_error_there_still_has_a_place() -> None:
    text = 'func.func @f(%x: index) {\n  "arith.addi"(%x) : (index) -> index loc(unknown)\n  func.return\n}\n'
    with pytest.raises(VerifyError) as caught:
        parse_module(text, "k.ktir")
    assert caught.value.location == Location("k.ktir", 1, 1)
    text = "func.func @f() {\n  func.return loc(unknown)\n}\n"
    ours = print_module(parse_module(text), debug_info=True)
    assert ours.strip() == mlir_reads(text).operation.get_asm(enable_debug_info=True).strip()


@pytest.mark.parametrize("name", SNIPPETS)
def test_real_mlir_says_the_same_of_where_things_stand(name: str) -> None:
    text = SNIPPETS[name]
    module = parse_module(text, context=create_context(allow_unregistered=True))
    theirs = mlir_reads(text).operation.get_asm(enable_debug_info=True)
    assert print_module(module, debug_info=True, mlir_names=True).strip() == theirs.strip()
