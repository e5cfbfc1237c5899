"""Migration: what comes out is new KTIR in strict mode, with the same locations; doing it again changes nothing."""

from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ktir.dialect import ktdp
from ktir.dialect.locations import location_of
from ktir.dialect.text.parser import parse, parse_module
from ktir.dialect.text.printer import print_module
from ktir.dialect.verification import verify
from ktir.errors import NotMigratable
from ktir.passes.migrate import MigratePass, Version, to_version
from tests.dialect.texts import EVERY_OPERATION, TOLERATED

OLD_SPACES = (Path(__file__).parent / "old_memory_spaces.ktir").read_text()
TEXTS = {**TOLERATED, "spaces": OLD_SPACES, "new": EVERY_OPERATION}


def migrated(text: str, **options: bool) -> ModuleOp:
    module = parse_module(text, "k.ktir")
    MigratePass(**options).apply(Context(), module)
    verify(module)
    return module


def spaces(module: ModuleOp) -> list[ktdp.MemorySpace]:
    return [op.space for op in module.walk() if isinstance(op, ktdp.ConstructMemoryViewOp)]


@pytest.mark.parametrize("name", TEXTS)
def test_what_comes_out_is_new_and_stays(name: str) -> None:
    module = migrated(TEXTS[name])
    text = print_module(module)
    assert "spyre_memory_space" not in text
    assert parse(text, strict=True).module.is_structurally_equivalent(module)
    assert print_module(migrated(text)) == text


@pytest.mark.parametrize("name", TEXTS)
def test_operations_keep_their_locations_and_new_ones_have_one(name: str) -> None:
    before = {location_of(op) for op in parse_module(TEXTS[name], "k.ktir").walk()}
    assert {location_of(op) for op in migrated(TEXTS[name]).walk()} == before


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("version", ["old", "new"])
def test_every_view_lies_where_it_lay(name: str, version: Version) -> None:
    module = parse_module(TEXTS[name])
    before = spaces(module)
    to_version(module, version)
    verify(module)
    assert spaces(parse_module(print_module(module))) == before


def test_old_words_come_back_as_they_were() -> None:
    module = migrated(OLD_SPACES)
    to_version(module, "old")
    assert module.is_structurally_equivalent(parse_module(OLD_SPACES))


@pytest.mark.parametrize(("device", "rule"), [("L0", "M9"), ("unspecified", "M10")])
def test_memories_without_a_new_name_are_refused_where_they_stand(device: str, rule: str) -> None:
    text = OLD_SPACES.replace("<LX, core = 0>", f"<{device}>")
    with pytest.raises(NotMigratable, match=rf"rule {rule}\)") as caught:
        migrated(text)
    assert caught.value.location is not None and caught.value.location.line == 4
    assert caught.value.remedy is not None


def test_options_say_what_they_are() -> None:
    text = OLD_SPACES.replace("memory_space<LX, core = 0>", "memory_space<L0, core = 0>").replace(
        "spyre_memory_space<LX>", "spyre_memory_space<unspecified>"
    )
    printed = print_module(migrated(text, l0_as_local=True, unspecified_as_global=True))
    assert "ktdp.memory_space<ct_local, ct_id = 0>" in printed
    assert "{b = #ktdp.memory_space<global>}" in printed


def test_a_reduction_keeps_the_type_of_its_partials() -> None:
    module = migrated(TOLERATED["M15"])
    (reduce,) = (op for op in module.walk() if isinstance(op, ktdp.InterTileReduceOp))
    partials = reduce.future.type.partial_types.data
    assert tuple(reduce.reduced.types) == tuple(reduce.identities.types) == tuple(partials)
    returned = print_module(module).splitlines()
    assert any("tensor.collapse_shape" in line and "into tensor<4xf16>" in line for line in returned)
    assert any("return" in line and "tensor<4xf16>" in line for line in returned)


def test_other_unit_dimensions_are_put_where_they_belong() -> None:
    text = TOLERATED["M15"].replace("tensor<4xf16>", "tensor<4x1x1xf16>")
    printed = print_module(migrated(text))
    assert "tensor.expand_shape" in printed
    assert parse_module(printed, strict=True)


def test_dynamic_identities_are_refused() -> None:
    text = TOLERATED["M15"].replace("1x4x1xf16", "1x?x1xf16").replace("tensor<4xf16>", "tensor<?xf16>")
    with pytest.raises(NotMigratable, match="M15"):
        migrated(text)


def test_missing_sets_are_written_with_a_symbol_for_each_dynamic_size() -> None:
    module = migrated(
        "func.func @f(%x: index, %n: index) {\n"
        "  %v = ktdp.construct_memory_view %x, sizes: [%n, 4, %n], strides: [1, 1, 1] : memref<?x4x?xf16>\n"
        "  func.return\n}"
    )
    (view,) = (op for op in module.walk() if isinstance(op, ktdp.ConstructMemoryViewOp))
    assert view.owned_set().num_symbols == 2 == len(view.sizes)
    assert view.space == ktdp.GLOBAL
