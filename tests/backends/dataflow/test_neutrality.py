"""No name of a machine is known to the verifier or the simulators: under other names the machine behaves the same."""

from importlib import resources

import numpy as np
import pytest

from ktir.backends.dataflow.functional import execute
from ktir.backends.dataflow.timed import simulate
from ktir.backends.dataflow.verify import verify
from ktir.dialect.text.parser import parse_module
from ktir.dialect.text.printer import print_module
from ktir.machine import load, loads
from tests.backends.dataflow.programs import Memory, Program, matmul_program, pointwise_program

NAMES = {
    "hbm_ld": "dma_in",
    "hbm_st": "dma_out",
    "lx_ld": "feeder",
    "lx_st": "drainer",
    "sfu": "vector",
    "pe": "matrix",
    "ddr": "dram0",
    "lx": "tcm",
    "spyre": "other",
    "ring": "loop",
    "ring_tx": "loop_out",
    "ring_rx": "loop_in",
}


def renamed(text: str, quote: str = '"') -> str:
    for old, new in NAMES.items():
        text = text.replace(f"{quote}{old}{quote}", f"{quote}{new}{quote}")
    return text


def renamed_machine() -> str:
    text = resources.files("ktir.backends.spyre").joinpath("data/spyre.toml").read_text()
    for old, new in NAMES.items():
        for section in ("memory", "unit", "net"):
            text = text.replace(f"[{section}.{old}]", f"[{section}.{new}]")
            text = text.replace(f"[{section}.{old}.issues]", f"[{section}.{new}.issues]")
            text = text.replace(f'"{section}.{old}.issue_scale"', f'"{section}.{new}.issue_scale"')
    kept = text.replace('kind = "ring"', "kind = RING")
    return renamed(kept).replace("kind = RING", 'kind = "ring"')


@pytest.mark.parametrize(
    ("program", "size"), [(matmul_program(64, 128, 64, cores=4), 49152), (pointwise_program(3, cores=4), 73728)]
)
def test_other_names_change_nothing(program: Program, size: int) -> None:
    spyre, other = load("spyre", calibration="none"), loads(renamed_machine())
    module = parse_module(renamed(print_module(program.module)))
    assert "hbm_ld" not in print_module(module).replace('sym_name = "', "")
    assert verify(program.module, spyre) == [] and verify(module, other) == []

    data = np.random.default_rng(0).standard_normal(size // 2).astype(np.float16)
    first, second = Memory.of(size, (0, data)), Memory.of(size, (0, data))
    execute(program.module, spyre, first)
    execute(module, other, second)
    assert np.array_equal(first.bytes, second.bytes)

    ours, theirs = simulate(program.module, spyre), simulate(module, other)
    assert (ours.total_ns, ours.bound_ns, ours.events) == (theirs.total_ns, theirs.bound_ns, theirs.events)
    assert {NAMES[name]: shares for name, shares in ours.shares.items()} == dict(theirs.shares)
