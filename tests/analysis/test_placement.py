"""Addresses of buffers, against buffers of which every byte is tracked through copies in and out."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ktir.analysis.check import examine
from ktir.dialect.text.parser import parse_module
from ktir.errors import Diagnostic
from ktir.machine.loader import load
from tests.faults.catalogue import copy, kernel
from tests.settings import examples

STEP = 128
"""Addresses are multiples of this many bytes; each buffer is twice as long."""


@dataclass(frozen=True)
class Copy:
    """Into the device buffer of that number, or out of it."""

    buffer: int
    into: bool


@dataclass(frozen=True)
class Host:
    """The addresses of the buffers in steps, and what ``@main`` does."""

    addresses: tuple[int, ...]
    copies: tuple[Copy, ...]


hosts = st.builds(
    Host,
    st.tuples(*[st.integers(0, 4)] * 3),
    st.lists(st.builds(Copy, st.integers(0, 2), st.booleans()), max_size=8).map(tuple),
)


def text(host: Host) -> str:
    """``@main``, and a launch of an empty kernel so that it is one."""
    lines = [
        f"%b{n} = memref.alloc() {{alignment = 128 : i64, ktdp.address = {address * STEP} : i64}} : memref<128xf16>"
        for n, address in enumerate(host.addresses)
    ]
    for each in host.copies:
        ends = f"%x, %b{each.buffer}" if each.into else f"%b{each.buffer}, %x"
        lines.append(f"ktg.transfer {ends} : memref<128xf16>, memref<128xf16>")
    body = "\n  ".join([*lines, "func.call @k(%p, %p) : (index, index) -> ()", "return"])
    return kernel(copy()) + f"func.func @main(%x: memref<128xf16>, %p: index) {{\n  {body}\n}}\n"


def loses_bytes(host: Host) -> bool:
    """Whether something is copied out of a buffer after another buffer's copy has taken some of its bytes."""
    owner: dict[int, int] = {}
    filled: set[int] = set()
    lost = False
    for each in host.copies:
        steps = (host.addresses[each.buffer], host.addresses[each.buffer] + 1)
        if each.into:
            owner |= dict.fromkeys(steps, each.buffer)
            filled.add(each.buffer)
        elif each.buffer in filled:
            lost = lost or any(owner[step] != each.buffer for step in steps)
    return lost


def found(source: str, machine: str | None = None) -> list[Diagnostic]:
    described = load(machine) if machine else None
    return list(examine(parse_module(source, "k.ktir"), described, ("placement",)).findings)


OPEN_ONE_WAY_LOST_THE_OTHER = Host(
    (0, 0, 2), (Copy(1, True), Copy(0, True), Copy(1, True), Copy(0, False), Copy(1, False))
)


@settings(max_examples=examples(1500), deadline=None)
@given(hosts)
@example(OPEN_ONE_WAY_LOST_THE_OTHER)
def test_overlaps_are_reported_where_bytes_are_lost(host: Host) -> None:
    errors = [d for d in found(text(host)) if d.severity == "error"]
    assert {d.code for d in errors} == ({"BufferOverlap"} if loses_bytes(host) else set()), text(host)


@pytest.mark.parametrize(
    ("address", "code"), [(0, None), (64, "UnalignedAddress"), (137438953472, "CapacityExceeded")], ids=str
)
def test_addresses_fit_the_machine(address: int, code: str | None) -> None:
    source = text(Host((0, 2, 4), (Copy(0, into=True),)))
    findings = found(source.replace("ktdp.address = 0", f"ktdp.address = {address}"), "spyre")
    assert [d.code for d in findings] == ([code] if code else [])
