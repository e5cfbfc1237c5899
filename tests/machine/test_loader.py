"""Machine files are read strictly: nothing unknown, nothing without a source; presets and overrides work as told."""

import re
from collections.abc import Callable
from importlib import resources
from typing import get_args

import pytest

from ktir.errors import MachineFileError, NotCapable, UnknownMachine
from ktir.machine import Machine, available, load, loads, parse_bytes
from ktir.machine.description import Confidence

SPYRE = resources.files("ktir.backends.spyre").joinpath("data/spyre.toml").read_text()


@pytest.fixture(scope="module")
def spyre() -> Machine:
    return load("spyre")


def test_the_peak_is_the_published_one(spyre: Machine) -> None:
    assert spyre.peak_flops("f16") == 98.304e12
    assert spyre.peak_flops("bf16") == spyre.peak_flops("f16")


def test_the_slower_clock_scales_the_peak_and_nothing_of_device_memory(spyre: Machine) -> None:
    slower = load("spyre", clock="1.1GHz")
    assert slower.peak_flops("f16") == pytest.approx(72.09e12, rel=1e-3)
    assert slower.global_memory == spyre.global_memory


def test_the_usual_numbers(spyre: Machine) -> None:
    assert (spyre.cores, spyre.corelets, spyre.stick_bytes, spyre.alignment) == (32, 2, 128, 128)
    assert spyre.scratchpad_bytes == 1_625_344
    assert [spyre.lanes(name) for name in ("f16", "bf16", "f32", "i64", "i32", "i8", "i1")] == [
        64,
        64,
        32,
        16,
        32,
        128,
        128,
    ]


def test_one_core_round_trip_reproduces_the_measured_share(spyre: Machine) -> None:
    memory = spyre.global_memory
    service = memory.burst * memory.servers / memory.sustained_gbs
    assert memory.burst / (service + memory.latency_ns) == pytest.approx(0.11 * memory.sustained_gbs, rel=0.01)


def test_every_value_has_a_source_and_a_confidence(spyre: Machine) -> None:
    assert len(spyre.provenance) > 60
    for dotted, provenance in spyre.provenance.items():
        assert provenance.source, dotted
        assert provenance.confidence in get_args(Confidence), dotted


def test_paths_lead_from_device_memory_to_the_compute_units_and_back(spyre: Machine) -> None:
    assert spyre.path("ddr", "lx") == ("hbm_ld",)
    assert spyre.path("lx", "ddr") == ("hbm_st",)
    assert spyre.path("ddr", "pe") == ("hbm_ld", "lx_ld", "pe")
    assert spyre.path("sfu", "ddr") == ("sfu", "lx_st", "hbm_st")
    with pytest.raises(NotCapable, match="no path"):
        spyre.path("acc", "ddr")
    with pytest.raises(NotCapable, match="no memory or unit"):
        spyre.path("ddr", "moon")


def test_capability_and_rate_agree(spyre: Machine) -> None:
    assert spyre.rate("pe", "mac", "f16") == 512
    assert spyre.rate("sfu", "arith.addf", "f16") == 64
    assert spyre.rate("sfu", "math.exp", "f16") == 16
    assert not spyre.capable("sfu", "linalg.matmul", "f16")
    with pytest.raises(NotCapable):
        spyre.rate("sfu", "mac", "f16")


def test_the_measured_vector_rate_is_one_softmax_element_per_cycle_and_core() -> None:
    machine = load("spyre", sfu="measured")
    seven_issues = 7 * machine.unit("sfu").issue_scale
    assert machine.corelets * machine.unit("sfu").lanes["dl16"] / seven_issues == pytest.approx(1.0, rel=0.02)


def test_overrides_are_visible_in_the_provenance() -> None:
    machine = load("spyre", scratchpad="64MiB", cores=4)
    assert machine.scratchpad_bytes == 64 * 2**20 and machine.cores == 4
    assert machine.provenance["memory.lx.usable"].source == "override"
    assert load("spyre", {"queue.lx_ld_sfu.depth": 3}).queue("lx_ld", "sfu").depth == 3


def test_a_machine_is_loaded_by_path(tmp_path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(SPYRE.replace('name = "spyre"', 'name = "mine"'))
    assert load(file).name == "mine"
    assert "spyre" in available()


def test_unknown_machines_are_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownMachine, match="spyre"):
        load("abacus")
    with pytest.raises(UnknownMachine, match="cannot read"):
        load("/no/such/file.toml")


def without_source(text: str) -> str:
    return text.replace('depth = { v = 16, src = "sample", conf = "assumed" }', "depth = 16", 1)


FAULTS: list[tuple[str, Callable[[str], str], str]] = [
    ("not toml", lambda text: text + "\n[", "not TOML"),
    ("another schema", lambda text: text.replace("schema = 1", "schema = 9", 1), "schema 9"),
    ("unknown section", lambda text: text + '\n[magic]\npower = "much"\n', "unknown sections"),
    ("unknown key", lambda text: text.replace("hop_cycles", "hop_time", 1), "unknown key net.ring.hop_time"),
    ("no source", without_source, "queue.lx_ld_pe.depth has no source"),
    ("unlisted source", lambda text: text.replace('src = "sample"', 'src = "hearsay"', 1), "not listed"),
    ("unknown confidence", lambda text: text.replace('conf = "assumed"', 'conf = "sure"', 1), "confidence"),
    ("negative", lambda text: text.replace("v = 100.0", "v = -1.0"), "negative"),
    ("wrong kind", lambda text: text.replace("v = 100.0", 'v = "soon"'), "expected number"),
    ("missing key", lambda text: text.replace('kind = "ring"\n', "", 1), "lacks"),
    ("no such place", lambda text: text.replace('from = ["ddr"]', 'from = ["dram"]', 1), "neither memory"),
    ("broken identity", lambda text: text.replace("dl16 = 512", "dl16 = 500", 1), "operations per cycle and core"),
    ("no such size", lambda text: text.replace('"2MiB"', '"2 heaps"'), "no size"),
    ("endless size", lambda text: text.replace('"2MiB"', '"' + "9" * 400 + 'MiB"'), "no size that a machine has"),
    ("negative size", lambda text: text.replace('"2MiB"', "-1"), "negative"),
    ("huge size", lambda text: text.replace('"112GiB"', '"99999999999GiB"'), "beyond"),
    ("no number", lambda text: text.replace("v = 100.0", "v = nan"), "latency_ns is nan"),
    ("infinite", lambda text: text.replace("v = 100.0", "v = inf"), "latency_ns is inf"),
    ("no ticks", lambda text: text.replace("ticks_per_cycle = { v = 16", "ticks_per_cycle = { v = 0"), "cycle is zero"),
    ("no width", lambda text: text.replace("width = { v = 128", "width = { v = 0", 1), "width is zero"),
    (
        "a row of no rate",
        lambda text: re.sub(r"lanes = \{ v = \{ (\w+) = 64", r"lanes = { v = { \1 = 0", text),
        "dl16 is zero",
    ),
    (
        "half a lane",
        lambda text: re.sub(r"lanes = \{ v = \{ (\w+) = 64", r"lanes = { v = { \1 = 0.5", text),
        "expected integer",
    ),
    ("bits of another type", lambda text: text.replace("bits = 64", 'bits = "many"', 1), "expected integer"),
    ("three ways", lambda text: text.replace("directions = { v = 2", "directions = { v = 3", 1), "neither 1 nor 2"),
    ("too many cores", lambda text: text.replace("count = { v = 32", "count = { v = 1000000000", 1), "at most"),
    ("a source that is no name", lambda text: text.replace('src = "superdsc"', "src = []", 1), "are names"),
    ("kind of memory", lambda text: text.replace('kind = "dram"', 'kind = "tape"'), "none of dram"),
    ("kind of unit", lambda text: text.replace('kind = "load"', 'kind = "lode"', 1), "none of load"),
    ("memory without a rate", lambda text: re.sub("sustained_gbs = .*", "", text, count=1), "sustained_gbs is missing"),
    (
        "a product without passes",
        lambda text: re.sub("rows_per_pass = .*", "", text, count=1),
        "rows_per_pass is missing",
    ),
    ("a space that is a unit", lambda text: text.replace('global = "ddr"', 'global = "pe"'), "are memories"),
    ("no cores", lambda text: text.replace("[scope.core]", "[scope.cores]"), "scope.core is missing"),
    ("places that are no names", lambda text: text.replace('from = ["ddr"]', "from = [1]", 1), "expected names"),
    ("cores that are no number", lambda text: text.replace("{ 1 = 8.75", "{ one = 8.75"), "expected numbers of cores"),
]


@pytest.mark.parametrize(("change", "message"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_faulty_files_are_refused(change: Callable[[str], str], message: str) -> None:
    changed = change(SPYRE)
    assert changed != SPYRE
    with pytest.raises(MachineFileError, match=message):
        loads(changed)


def test_a_compute_unit_that_device_memory_does_not_reach_is_refused() -> None:
    cut = SPYRE.replace('[queue.lx_ld_pe]\nfrom = "lx_ld"', '[queue.lx_ld_pe]\nfrom = "pe"')
    with pytest.raises(NotCapable, match="no path from ddr to pe"):
        loads(cut.replace('[queue.sfu_pe]\nfrom = "sfu"', '[queue.sfu_pe]\nfrom = "pe"'))


def test_settings_that_do_not_exist_are_refused() -> None:
    with pytest.raises(MachineFileError, match="no choice 9GHz"):
        load("spyre", clock="9GHz")
    with pytest.raises(MachineFileError, match="no value"):
        load("spyre", {"queue.lx_ld_sfu.width_of_mind": 3})
    with pytest.raises(MachineFileError, match="no section"):
        load("spyre", {"soul.depth": 3})


@pytest.mark.parametrize(("text", "size"), [("2KiB", 2048), ("1.5 MiB", 1572864), ("3GB", 3 * 10**9), ("7", 7), (9, 9)])
def test_sizes(text: str | int, size: int) -> None:
    assert parse_bytes(text) == size


def test_time_converts_and_rounds_up(spyre: Machine) -> None:
    assert spyre.clock.ticks(1.0) == 24
    assert spyre.clock.ticks(1.01) == 25
    assert spyre.clock.nanoseconds(24) == 1.0
