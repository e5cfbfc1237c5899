"""Places of a batch reach exactly the elements that its addresses and box name, however regular they are."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ktir.backends.dataflow.descriptor import Box
from ktir.backends.dataflow.functional_places import Places, distinct, lattice, runs
from tests.settings import examples

SIZE = 1 << 12


@st.composite
def placed(draw) -> tuple[np.ndarray, Box]:
    """An address table, regular in some way or not at all, and a box."""
    cores, rows = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    kind = draw(st.sampled_from(["affine", "grid", "separable", "any"]))
    step, stride = (2 * draw(st.integers(0, 40)) for _ in range(2))
    core, row = np.arange(cores)[:, None], np.arange(rows)
    table = {
        "affine": lambda: core * step + row * stride,
        "grid": lambda: core // 2 * step + core % 2 * 8 + row * stride,
        "separable": lambda: (
            2 * np.array(draw(st.lists(st.integers(0, 99), min_size=cores, max_size=cores)))[:, None]
            + 2 * np.array(draw(st.lists(st.integers(0, 99), min_size=rows, max_size=rows)))
        ),
        "any": lambda: 2 * np.array(draw(st.lists(st.integers(0, 99), min_size=cores * rows, max_size=cores * rows))),
    }[kind]()
    counts = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    strides = tuple(2 * draw(st.integers(0, 9)) for _ in counts)
    return table.reshape(cores, rows).astype(np.int64), Box(counts, strides, 2)


def elements(addresses: np.ndarray, box: Box):
    """Index in [cores, rows, *box] and byte of every element, row after row."""
    for row, core in product(range(addresses.shape[1]), range(addresses.shape[0])):
        for index in product(*map(range, box.counts)):
            yield (
                (core, row, *index),
                int(addresses[core, row]) + sum(i * s for i, s in zip(index, box.strides, strict=True)),
            )


@settings(max_examples=examples(400), deadline=None)
@given(placed())
def test_reading(case) -> None:
    addresses, box = case
    memory = np.random.default_rng(1).integers(0, 256, SIZE).astype(np.uint8)
    found = Places.of(addresses, box).read(memory, np.dtype(np.uint16))
    assert found.shape == (*addresses.shape, *box.counts)
    for index, byte in elements(addresses, box):
        assert found[index] == memory[byte : byte + 2].view(np.uint16)[0]


@settings(max_examples=examples(400), deadline=None)
@given(placed(), st.booleans())
def test_writing_row_after_row(case, repeated: bool) -> None:
    """Of rows that share bytes the last one stays; one element may stand for all of a box."""
    addresses, box = case
    box = box if distinct(box.counts, box.strides, 2) else Box((), (), 2)
    addresses = addresses + np.arange(addresses.shape[0])[:, None] * 512  # cores do not meet
    rows = np.random.default_rng(2).integers(0, 1 << 16, (*addresses.shape, *box.counts)).astype(np.uint16)
    if repeated:
        rows = np.broadcast_to(rows[(..., *(slice(1) for _ in box.counts))], rows.shape)
    memory, expected = np.zeros(SIZE, np.uint8), np.zeros(SIZE, np.uint8)
    given_rows = rows[(..., *(slice(1) for _ in box.counts))] if repeated else rows
    Places.by_row(addresses, box).write(memory, np.dtype(np.uint16), given_rows)
    for index, byte in elements(addresses, box):
        expected[byte : byte + 2].view(np.uint16)[0] = rows[index]
    assert np.array_equal(memory, expected)
    together, places = np.zeros(SIZE, np.uint8), Places.of(addresses, box)
    if len(places.pieces) == 1 and distinct(places.pieces[0].shape, places.pieces[0].strides, 2):
        places.write(together, np.dtype(np.uint16), given_rows)
        assert np.array_equal(together, expected)


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=12))
def test_a_lattice_enumerates_and_runs_cover(values: list[int]) -> None:
    numbers = np.array(values, np.int64)
    if (found := lattice(numbers)) is not None:
        counts, strides = found
        assert [
            values[0] + sum(i * s for i, s in zip(index, strides, strict=True))
            for index in product(*map(range, counts))
        ] == values
    assert [values[p] + i * step for p, count, step in runs(numbers) for i in range(count)] == values


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(-12, 12)), max_size=3), st.integers(1, 4))
def test_distinct_elements_share_no_bytes(dimensions, width: int) -> None:
    counts, strides = [count for count, _ in dimensions], [stride for _, stride in dimensions]
    if distinct(counts, strides, width):
        starts = [sum(i * s for i, s in zip(index, strides, strict=True)) for index in product(*map(range, counts))]
        taken = [byte for start in starts for byte in range(start, start + width)]
        assert len(taken) == len(set(taken))
