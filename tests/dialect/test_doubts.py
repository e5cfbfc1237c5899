"""Warnings about what is legal and seldom meant: they come with a place, in strict mode too, and are never errors."""

import pytest

from ktir.dialect.text.parser import parse

VIEW = (
    "%{name} = ktdp.construct_memory_view %x, sizes: [4, 8], strides: [8, 1] {{coordinate_set = {owned}, "
    "memory_space = {space}}} : {type}"
)
GLOBAL, LOCAL = "#ktdp.memory_space<global>", "#ktdp.memory_space<ct_local>"


def box(*ranges: tuple[int, int]) -> str:
    names = [f"d{position}" for position in range(len(ranges))]
    bounds = ", ".join(f"{n} - {lo} >= 0, {hi - 1} - {n} >= 0" for n, (lo, hi) in zip(names, ranges, strict=True))
    return f"affine_set<({', '.join(names)}) : ({bounds})>"


def view(name: str = "v", owned: str | None = None, space: str = GLOBAL, type: str = "memref<4x8xf16>") -> str:
    return VIEW.format(name=name, owned=owned or box((0, 4), (0, 8)), space=space, type=type)


def codes(*lines: str) -> list[str]:
    """The codes of the warnings about a function of ``lines``; each stands at the last line."""
    body = "\n  ".join(lines)
    diagnostics = parse(f"func.func @f(%x: index) {{\n  {body}\n  func.return\n}}", "k.ktir", strict=True).diagnostics
    assert all(each.location is not None and each.location.line == 1 + len(lines) for each in diagnostics)
    assert all(each.severity == "warning" and each.remedy for each in diagnostics)
    return [each.code for each in diagnostics]


def tile(order: str, shape: str, points: str = box((0, 2), (0, 8))) -> str:
    return (
        f"%t = ktdp.construct_access_tile %v[0, 0] {{access_tile_order = affine_map<(i, j) -> ({order})>, "
        f"access_tile_set = {points}}} : memref<4x8xf16> -> !ktdp.access_tile<{shape}xindex>"
    )


@pytest.mark.parametrize(("order", "shape"), [("i, j", "2x8"), ("j, i", "8x2"), ("i, j", "2x?"), ("i + j, j", "8x2")])
def test_a_tile_whose_shape_follows_its_order_is_not_doubted(order: str, shape: str) -> None:
    assert codes(view(), tile(order, shape)) == []


@pytest.mark.parametrize(("order", "shape"), [("i, j", "8x2"), ("j, i", "2x8"), ("i, j", "2x4")])
def test_a_tile_of_another_shape_is_doubted(order: str, shape: str) -> None:
    assert codes(view(), tile(order, shape)) == ["TileShapeMismatch"]


def test_so_is_an_indirect_one() -> None:
    indirect = (
        "%t = ktdp.construct_indirect_access_tile intermediate_variables(%i, %j) %v[(%i), (%j)] "
        "{variables_space_order = affine_map<(i, j) -> (j, i)>, variables_space_set = " + box((0, 2), (0, 8)) + "} : "
        "memref<4x8xf16> -> !ktdp.access_tile<2x8xindex>"
    )
    assert codes(view(), indirect) == ["TileShapeMismatch"]


@pytest.mark.parametrize(
    ("type", "doubted"),
    [
        (f"memref<4x8xf16, {GLOBAL}>", False),
        ("memref<4x8xf16, #ktdp.spyre_memory_space<HBM>>", False),
        (f"memref<4x8xf16, {LOCAL}>", True),
        ("memref<4x8xf16, strided<[8, 1]>>", False),
        ("memref<4x8xf16, strided<[?, 1]>>", False),
        ("memref<4x8xf16, strided<[1, 4]>>", True),
    ],
)
def test_a_type_that_says_otherwise_than_its_operation_is_doubted(type: str, doubted: bool) -> None:
    assert bool(codes(view(type=type))) == doubted


@pytest.mark.parametrize(("start", "doubted"), [(4, False), (3, True), (0, True)])
def test_partitions_that_share_coordinates_are_doubted(start: int, doubted: bool) -> None:
    second = view("w", box((start, start + 4), (0, 8)))
    both = "%d = ktdp.construct_distributed_memory_view(%v, %w : memref<4x8xf16>, memref<4x8xf16>) : memref<8x8xf16>"
    assert codes(view(), second, both) == (["DistributedViewOverlap"] if doubted else [])
