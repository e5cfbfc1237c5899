"""Saved programs: the same bytes in a fresh process, and every damage is an error, never code that runs."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import UnknownLoc

import ktir
from ktir.dialect.locations import location_attribute, location_of, source_place_of, text_place_of
from ktir.errors import FileUnusable, PackageError
from ktir.location import Location
from ktir.module import Module
from tests.api.programs import program, signature

INPUT = np.linspace(-1, 1, 512, dtype=np.float32).reshape(8, 64)

FRESH = """
import sys, numpy as np, ktir
program = ktir.load(sys.argv[1])
out = program(np.load(sys.argv[2]))["sum"]
assert "torch" not in sys.modules
sys.stdout.buffer.write(out.tobytes())
"""


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return program().save(tmp_path / "adder.ktirpkg")


def test_a_fresh_process_without_torch_gives_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", INPUT)
    words = [sys.executable, "-c", FRESH, str(saved), str(tmp_path / "x.npy")]
    done = subprocess.run(words, capture_output=True, check=True)
    assert done.stdout == program()(INPUT)["sum"].tobytes()


def test_what_was_saved_is_what_is_loaded(saved: Path, tmp_path: Path) -> None:
    loaded, original = ktir.load(saved), program()
    assert str(loaded.module) == str(original.module)
    assert loaded.plan == original.plan and loaded.name == original.name
    assert dict(loaded.operators) == dict(original.operators)
    assert loaded.save(tmp_path / "again.ktirpkg").read_bytes() == saved.read_bytes()


def test_the_machine_comes_back_with_its_changes(tmp_path: Path) -> None:
    made = program()
    made.machine = ktir.machine("spyre", scratchpad="1MiB", clock="1.1GHz")
    loaded = ktir.load(made.save(tmp_path / "m.ktirpkg"))
    assert loaded.machine.scratchpad_bytes == 1 << 20
    assert loaded.machine.clock_hz == pytest.approx(1.1e9)


def test_tensors_of_every_element_type_come_back(tmp_path: Path) -> None:
    tensors = {
        "bf16": np.arange(3).astype(ml_dtypes.bfloat16),
        "f16": np.array([1.5, np.inf], np.float16),
        "i1": np.array([True, False]),
        "i64": np.array([[-1]]),
        "scalar": np.float32(2.5).reshape(()),
    }
    caller = signature(
        returns={"list": list(range(5))}, outputs=[{"constant": name} for name in tensors], tensors=tensors
    )
    back = ktir.load(program(caller).save(tmp_path / "t.ktirpkg"))(INPUT)
    for array, original in zip(back, tensors.values(), strict=True):
        assert array.dtype == original.dtype and array.shape == original.shape and array.tobytes() == original.tobytes()


def rewritten(path: Path, name: str, data: bytes | None) -> Path:
    """A copy of a package with one part replaced or, for None, left out."""
    with zipfile.ZipFile(path) as archive:
        parts = {entry: archive.read(entry) for entry in archive.namelist()}
    if data is None:
        del parts[name]
    else:
        parts[name] = data
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for entry, content in parts.items():
            archive.writestr(entry, content)
    changed = path.with_name("changed.ktirpkg")
    changed.write_bytes(out.getvalue())
    return changed


@pytest.mark.parametrize("name", ["manifest.json", "module.ktir", "tensors.safetensors"])
@pytest.mark.parametrize("data", [None, b"", b"{}", b"nonsense"])
def test_a_damaged_part_is_an_error(saved: Path, name: str, data: bytes | None) -> None:
    with pytest.raises(PackageError):
        ktir.load(rewritten(saved, name, data))


def test_an_unknown_part_is_an_error(saved: Path) -> None:
    with pytest.raises(PackageError, match="does not know"):
        ktir.load(rewritten(saved, "extra.py", b"print('run me')"))


def test_another_format_names_the_version_that_made_it(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    data = json.dumps({**manifest, "format": 99, "tool": "9.9"}).encode()
    with pytest.raises(PackageError, match="format 99") as error:
        ktir.load(rewritten(saved, "manifest.json", data))
    assert "9.9" in (error.value.remedy or "")


def test_what_is_no_package_is_an_error(tmp_path: Path) -> None:
    other = tmp_path / "text.ktirpkg"
    other.write_text("hello")
    with pytest.raises(PackageError):
        ktir.load(other)
    with pytest.raises(FileUnusable):
        ktir.load(tmp_path / "none.ktirpkg")


def test_truncated_packages_are_errors(saved: Path) -> None:
    data = saved.read_bytes()
    for length in range(0, len(data), max(1, len(data) // 40)):
        saved.write_bytes(data[:length])
        with pytest.raises(PackageError):
            ktir.load(saved)


def test_a_failed_save_leaves_no_file_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileUnusable):
        program().save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_lines_of_the_model_come_back_beside_those_of_the_text(tmp_path: Path) -> None:
    made = program()
    made.module = Module(made.module.op)
    places = [Location("model.py", number, 5) if number % 2 else None for number, _ in enumerate(made.module.op.walk())]
    for op, place in zip(made.module.op.walk(), places, strict=True):
        op.location = UnknownLoc() if place is None else location_attribute(place)
    loaded = ktir.load(made.save(tmp_path / "m.ktirpkg"))
    lines = (loaded.module.source or "").splitlines()
    found = list(loaded.module.op.walk())
    assert [source_place_of(op) for op in found] == [location_of(op) for op in made.module.op.walk()]
    for op in found:
        place = text_place_of(op)
        assert place is not None and place.file == f"{tmp_path / 'm.ktirpkg'}:module.ktir"
        written = op.parent_op() if op.name in ("arith.addf", "linalg.yield") else op  # the body of a linalg.add
        assert written is not None
        assert lines[place.line - 1][place.column - 1 :].startswith((written.name, written.name.split(".")[-1]))
    assert loaded.report().timing.hot_spots[0].location in [text_place_of(op) for op in found]


@pytest.mark.parametrize(
    "data", [b"1", b"{}", b'{"files": [], "places": [[0, 1, 1]]}', b'{"files": ["a"], "places": [null]}', b"[", b"\xff"]
)
def test_places_that_fit_nothing_are_an_error(saved: Path, data: bytes) -> None:
    with zipfile.ZipFile(saved) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    manifest["digests"]["sources.json"] = hashlib.sha256(data).hexdigest()
    with pytest.raises(PackageError):
        ktir.load(rewritten(rewritten(saved, "sources.json", data), "manifest.json", json.dumps(manifest).encode()))
