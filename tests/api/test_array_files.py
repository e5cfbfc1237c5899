"""Array files: what is written is what is read, for every element type, and every fault of a file is an error."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ktir.array_files import read_array, read_arrays, with_elements, write_arrays
from ktir.arrays import DTYPES, like, to_numpy, to_torch
from ktir.errors import ArgumentError, FileUnusable
from ktir.interp.made_arguments import parse_shaped, random_array

SUFFIXES = (".npy", ".npz", ".safetensors")


def sample(kind: str, shape: str = "3x5x") -> np.ndarray:
    found = parse_shaped(f"{shape}{kind}")
    assert found is not None
    return random_array(found, 7)


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("shape", ["3x5x", "", "0x4x"])
def test_an_array_survives_a_file(kind: str, suffix: str, shape: str, tmp_path: Path) -> None:
    array, path = sample(kind, shape), tmp_path / f"a{suffix}"
    write_arrays(path, {"a": array})
    again = read_array(path, "a", kind)
    assert (again.dtype, again.shape, again.tobytes()) == (array.dtype, array.shape, array.tobytes())
    if suffix == ".safetensors" or array.dtype.isbuiltin == 1:
        assert read_array(path, "a").dtype == array.dtype
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_several_arrays_are_kept_by_name(suffix: str, tmp_path: Path) -> None:
    path = write_arrays(tmp_path / f"a{suffix}", {"x": sample("f32"), "y": sample("i8")})
    assert set(read_arrays(path)) == {"x", "y"}
    assert read_array(path, "y").dtype == np.int8
    with pytest.raises(ArgumentError, match="has no array 'xx'") as caught:
        read_array(path, "xx")
    assert "x" in (caught.value.remedy or "")


def test_an_array_of_another_name_is_taken_where_it_is_the_only_one(tmp_path: Path) -> None:
    path = write_arrays(tmp_path / "a.npz", {"other": sample("f16")})
    assert read_array(path, "x").shape == (3, 5)


@pytest.mark.parametrize("layout", ["big endian", "fortran", "strided"])
def test_any_layout_of_the_same_numbers_is_read(layout: str, tmp_path: Path) -> None:
    array = sample("f32")
    odd = {"big endian": array.astype(">f4"), "fortran": np.asfortranarray(array), "strided": array[:, ::2]}[layout]
    np.save(tmp_path / "a.npy", odd)
    read = read_array(tmp_path / "a.npy", "a")
    np.testing.assert_array_equal(read, odd)
    assert read.dtype == np.float32 and read.dtype.isnative


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("fault", ["missing", "empty", "cut", "noise", "folder", "text"])
def test_a_file_that_cannot_be_read_is_an_error(suffix: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    if fault == "folder":
        path.mkdir()
    elif fault != "missing":
        write_arrays(path, {"a": sample("f32")})
        data = path.read_bytes()
        noise = np.random.default_rng(1).bytes(len(data))
        path.write_bytes({"empty": b"", "cut": data[: len(data) // 2], "noise": noise, "text": b"1 2 3\n"}[fault])
    with pytest.raises(FileUnusable, match=r"cannot read .*a\."):
        read_array(path, "a")


def test_python_objects_are_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}, 1], object), allow_pickle=True)
    with pytest.raises(FileUnusable, match="Python objects"):
        read_array(tmp_path / "a.npy", "a")


def test_bits_of_another_size_are_refused() -> None:
    with pytest.raises(ArgumentError, match="not the size of bf16"):
        with_elements(sample("f32"), "bf16", "x.npy")


def test_a_file_of_one_array_and_names_of_no_array_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="can hold one array"):
        write_arrays(tmp_path / "a.npy", {"x": sample("f32"), "y": sample("f32")})
    with pytest.raises(ArgumentError, match="is no array file"):
        write_arrays(tmp_path / "a.txt", {"x": sample("f32")})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", DTYPES)
def test_tensors_keep_their_bits_on_the_way_in_and_out(kind: str) -> None:
    torch = pytest.importorskip("torch")
    array = sample(kind)
    tensor = to_torch(array)
    assert isinstance(tensor, torch.Tensor) and to_numpy(tensor).dtype == array.dtype
    assert to_numpy(tensor).tobytes() == array.tobytes()
    assert to_numpy(like(array, tensor)).tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_unsigned_integers_are_integers_of_the_same_bits(dtype: type[np.unsignedinteger]) -> None:
    assert to_numpy(np.arange(3, dtype=dtype)).dtype == dtype


@pytest.mark.parametrize("array", [np.zeros(2, complex), np.array(["a"]), np.zeros(2, ml_dtypes.float8_e3m4)])
def test_other_elements_have_no_counterpart(array: np.ndarray) -> None:
    with pytest.raises(ArgumentError, match="no counterpart"):
        to_numpy(array)
