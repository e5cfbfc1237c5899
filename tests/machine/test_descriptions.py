"""The descriptions that come with the package: peaks that were published, and fitted values where they belong."""

import tomllib
from importlib import resources
from pathlib import Path

import pytest

from ktir.errors import MachineFileError
from ktir.machine import available, load

DATA = resources.files("ktir.backends.spyre").joinpath("data")


def test_four_descriptions_come_with_the_package() -> None:
    assert available() == ("column", "mesh", "rapid", "spyre")


@pytest.mark.parametrize(
    "machine, dtype, teraflops",
    [("spyre", "f16", 98.304), ("rapid", "fp8", 26.2), ("rapid", "int4", 104.9), ("mesh", "f16", 74.0)],
)
def test_published_peaks(machine: str, dtype: str, teraflops: float) -> None:
    """Published figures are rounded to the digits shown; Spyre's is exact."""
    assert load(machine).peak_flops(dtype) / 1e12 == pytest.approx(teraflops, rel=4e-3)


def test_only_device_memory_is_fitted() -> None:
    overlay = tomllib.loads(DATA.joinpath("spyre.calib.toml").read_text())
    assert set(overlay["set"]) <= {
        "memory.ddr.latency_ns",
        "memory.ddr.servers",
        "unit.hbm_ld.outstanding",
        "unit.hbm_st.outstanding",
    }
    fitted = [name for name, value in load("spyre").provenance.items() if value.confidence == "fitted"]
    assert sorted(fitted) == sorted(overlay["set"])


def test_a_description_stands_without_its_calibration() -> None:
    plain = load("spyre", calibration="none")
    assert all(value.confidence != "fitted" for value in plain.provenance.values())
    assert plain.global_memory.sustained_gbs == load("spyre").global_memory.sustained_gbs


def test_an_unknown_calibration_is_refused() -> None:
    with pytest.raises(MachineFileError, match="there is no calibration guessed"):
        load("spyre", calibration="guessed")


@pytest.mark.parametrize(
    "overlay, message",
    [
        ('schema = 1\nmachine = "other"', "it is for other, not for spyre"),
        ("schema = 2", "expected schema 1"),
        ('schema = 1\nmachine = "spyre"\n[fit]\n', "expected schema 1"),
        ('schema = 1\nmachine = "spyre"\n[set]\n"memory.ddr.colour" = 3', "no value memory.ddr.colour"),
        ('schema = 1\nmachine = "spyre"\n[set]\n"memory.ddr.servers" = 3', "has no source and confidence"),
        ("schema =", "is not TOML"),
    ],
)
def test_a_bad_overlay_is_refused(tmp_path: Path, overlay: str, message: str) -> None:
    (tmp_path / "mine.toml").write_text(DATA.joinpath("spyre.toml").read_text())
    (tmp_path / "mine.calib.toml").write_text(overlay)
    with pytest.raises(MachineFileError, match=message):
        load(tmp_path / "mine.toml")


@pytest.mark.parametrize("change", [('kind = "ring"', 'kind = "star"'), ("depth = { v = 128", "columns = { v = 128")])
def test_a_network_of_unknown_shape_is_refused(tmp_path: Path, change: tuple[str, str]) -> None:
    text = DATA.joinpath("spyre.toml").read_text()
    assert change[0] in text
    (tmp_path / "mine.toml").write_text(text.replace(*change))
    with pytest.raises(MachineFileError, match=r"net\.ring"):
        load(tmp_path / "mine.toml")
