"""Which cores are alike: those with the same units that do the same."""

from ktir.backends.dataflow.core_kinds import core_kinds
from ktir.backends.dataflow.resolve import compile_program
from ktir.backends.dataflow.timed import simulate
from ktir.machine import load
from tests.backends.dataflow.programs import Program

SPYRE = load("spyre", cores=4)


def loading(*, storing: list[int]) -> Program:
    """All cores load a tile; in a second launch those of ``storing`` store it."""
    p = Program(4)
    x, y, tile = p.ddr(0, 4096, "x"), p.ddr(4096, 4096, "y"), p.lx(0, 512, "tile")
    with p.unit("hbm_ld") as u:
        u.move(x, 0, tile, 0, 256)
        p.barrier(u, 1)
    with p.unit("hbm_st", storing) as u:
        p.barrier(u, 1)
        u.move(tile, 0, y, u.table(0, 512, 1024, 1536), 256)
    return p


def test_a_core_with_a_unit_more_is_of_another_kind_before_that_unit_works() -> None:
    p = loading(storing=[0, 2])
    for kinds in core_kinds(compile_program(p.module, SPYRE)).values():
        assert kinds[0] == kinds[2] != kinds[1] == kinds[3]
    assert simulate(p.module, SPYRE).total_ns == simulate(p.module, SPYRE, extrapolate=False).total_ns


def test_a_unit_without_a_program_tells_cores_apart_too() -> None:
    p = loading(storing=[0, 1, 2, 3])
    with p.unit("lx_ld", [3]) as u:
        p.barrier(u, 1)
    with p.unit("ring_tx", [1]):
        pass
    kinds = core_kinds(compile_program(p.module, SPYRE))[0]
    assert kinds[0] == kinds[2] and len({*kinds}) == 3
