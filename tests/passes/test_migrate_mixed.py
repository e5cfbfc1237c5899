"""Texts in which every place is spelt old or new by chance: migration gives the same module whatever the mixture."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ktir.dialect.locations import location_of
from ktir.dialect.text.parser import parse
from ktir.dialect.text.printer import print_module
from ktir.errors import ParseError
from ktir.passes.migrate import MigratePass
from tests.settings import examples


@dataclass(frozen=True)
class Spelling:
    """What a rule makes of an old spelling: ``new`` is a pattern, ``old`` what may stand in its place."""

    rule: str
    new: str
    old: str


NEW = (Path(__file__).parent / "new_spellings.ktir").read_text()

SPELLINGS = (
    Spelling("M1", r"= ktdp\.(?=construct|load)", "= ktir."),
    Spelling("M2", r"ind\((%i\[%v, %w\])\)", r"\1"),
    Spelling("M2", r"\((%w floordiv 2 \+ %w mod 3)\)", r"\1"),
    Spelling("M3", r"floordiv 2", "/ 2"),
    Spelling("M3", r"mod 3", "% 3"),
    Spelling("M4", r"(?<=xi32>) -> (?=!ktdp)", ", "),
    Spelling("M6", r"(?<=x)f16", "fp16"),
    Spelling("M7", r"#ktdp\.memory_space<global>", "#ktdp.spyre_memory_space<HBM>"),
    Spelling("M8", r"#ktdp\.memory_space<ct_local, ct_id = 1>", "#ktdp.spyre_memory_space<LX, core = 1>"),
    Spelling("M8", r"#ktdp\.memory_space<ct_local>", "#ktdp.spyre_memory_space<LX>"),
    Spelling("M12", r"(?<=<)\((tensor<2x64xf16>)\)(?=, groups)", r"\1"),
    Spelling("M13", r"(?<=#all) -> (?=<)", " : tensor<2x64xf16> -> "),
    Spelling(
        "M14", r"#all -> <\(tensor<2x64xf16>\), groups = #groups>", "#all, groups = #groups -> <(tensor<2x64xf16>)>"
    ),
    Spelling("M17", r"maximumf", "maxf"),
    Spelling("M18", r"(?<=[:,] )(?=<2x64xindex>)", "!ktdp.access_tile"),
    Spelling("Q5", r"coordinate_set = #rows, ", ""),
    Spelling("Q5", r", memory_space = #ktdp\.memory_space<global>", ""),
)
KEPT = {"M7", "M8", "M18"}
"""Rules whose old spelling is legal in strict mode too."""


def migrated(text: str) -> ModuleOp:
    module = parse(text, "k.ktir").module
    MigratePass().apply(Context(), module)
    return module


@cache
def expected() -> str:
    return print_module(migrated(NEW))


@st.composite
def mixtures(draw: st.DrawFn) -> str:
    """The text with some places spelt the old way; one place after the other, so that spellings may meet."""
    text = NEW
    for spelling in SPELLINGS:
        text = re.sub(spelling.new, lambda m, s=spelling: m.expand(s.old) if draw(st.booleans()) else m[0], text)
    return text


@settings(max_examples=examples(1500), deadline=None)
@given(mixtures())
def test_every_mixture_becomes_the_same_new_text(text: str) -> None:
    before = {location_of(op) for op in parse(text, "k.ktir").module.walk()}
    module = migrated(text)
    assert {location_of(op) for op in module.walk()} == before
    printed = print_module(module)
    assert printed == expected()
    assert print_module(migrated(printed)) == printed
    assert not parse(printed, strict=True).diagnostics


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda s: f"{s.rule} {s.old}")
def test_each_old_spelling_alone_is_named_and_becomes_new(spelling: Spelling) -> None:
    text = re.sub(spelling.new, spelling.old, NEW)
    assert text != NEW
    assert print_module(migrated(text)) == expected()
    if spelling.rule in KEPT:
        assert not parse(text, strict=True).diagnostics
    else:
        with pytest.raises(ParseError, match=rf"rule {spelling.rule}\)"):
            parse(text, strict=True)
