"""How fast text is read, verified and printed.

    python benchmarks/parse_speed.py [--operations 10000] [--rounds 5] [--json FILE]

Two measurements, both in CPU time, the least of several rounds, ours and xDSL's in turn so that a busy machine slows
both down alike:

* *reading*: texts of many operations, by this toolchain's parser (which also stamps each operation with its place) and
  by xDSL's own parser on the same operation classes; one text holds standard operations alone, one is a KTIR mix;
* *round trip*: a KTIR kernel of about 400 lines and 110 operations, as published kernels have,
  read, verified and printed.

A profile says where the time goes. The exit status is 1 where a goal is missed: 0.75 of xDSL's time for reading, 40 ms
for the round trip.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRToken, MLIRTokenKind

from ktir.dialect.context import create_context
from ktir.dialect.text.lexer import KtirLexer
from ktir.dialect.text.parser import parse_module, parse_unverified
from ktir.dialect.text.printer import print_module
from ktir.dialect.verification import verify

RATIO_GOAL, STRETCH_GOAL = 0.75, 0.6
ROUND_TRIP_GOAL = 0.040
"""Seconds."""


def arithmetic_chain(operations: int) -> str:
    """A function of integer additions, each of which uses the one before."""
    lines = [f"  %v{n + 1} = arith.addi %v{n}, %b : i32" for n in range(operations - 2)]
    return "\n".join(["func.func @chain(%v0: i32, %b: i32) {", *lines, "  func.return", "}"])


STATEMENTS = """\
    // Step {n}: one row of the block that this core owns, and the columns of one stick. The view covers the
    // whole operand, so that the tile may be moved along it; both are known when the kernel is compiled.
    //
    // The order of the tile is that of the view.
    %c{n} = arith.constant {n} : index
    %view{n} = ktdp.construct_memory_view %base, sizes : [64, 128], strides : [128, 1] {{
      coordinate_set = affine_set<(d0, d1) : (
        d0 >= 0, -d0 + 63 >= 0,
        d1 >= 0, -d1 + 127 >= 0)>,
      memory_space = #ktdp.memory_space<global>
    }} : memref<64x128xf16>
    %tile{n} = ktdp.construct_access_tile %view{n}[%i, %c{n}] {{
      access_tile_order = affine_map<(d0, d1) -> (d0, d1)>,
      access_tile_set = affine_set<(d0, d1) : (
        d0 >= 0, -d0 >= 0,
        d1 >= 0, -d1 + 63 >= 0)>
    }} : memref<64x128xf16> -> !ktdp.access_tile<1x64xindex>
    %x{n} = ktdp.load %tile{n} : <1x64xindex> -> tensor<1x64xf16>

    // What is done to them: the sum of the row with itself, then the product with the row, element by element.
    // Both keep the type of the row.
    %e{n} = tensor.empty() : tensor<1x64xf16>
    %y{n} = linalg.add
      ins(%x{n}, %x{n} : tensor<1x64xf16>, tensor<1x64xf16>)
      outs(%e{n} : tensor<1x64xf16>) -> tensor<1x64xf16>
    %z{n} = arith.mulf %y{n}, %x{n} : tensor<1x64xf16>
    ktdp.store %z{n}, %tile{n} : tensor<1x64xf16>, <1x64xindex>

"""
"""One step of a kernel, laid out as people and compilers do: a view, a tile, a load, arithmetic, a store."""

OPERATIONS_PER_STEP = 8


def kernel(steps: int) -> str:
    """A kernel whose loop has ``steps`` of :data:`STATEMENTS`."""
    body = "".join(STATEMENTS.format(n=n) for n in range(steps))
    return (
        "func.func @kernel(%base: index) attributes {grid = [32]} {\n"
        "  %core = ktdp.get_compute_tile_id : index\n"
        "  %one = arith.constant 1 : index\n"
        "  scf.for %i = %core to %base step %one {\n" + body + "  }\n  func.return\n}\n"
    )


def seconds(work: Callable[[], object]) -> float:
    """CPU time of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def stock_context() -> Context:
    """A context of the same operation classes for xDSL's parser."""
    context = Context()
    known = create_context()
    for name in known.registered_dialect_names:
        context.load_dialect(known.get_dialect(name))
    return context


def reading(text: str, rounds: int) -> tuple[float, float]:
    """Ours and xDSL's time for ``text``."""
    ours, stock = create_context(), stock_context()
    pairs = [
        (seconds(lambda: parse_unverified(text, context=ours)), seconds(lambda: Parser(stock, text).parse_module()))
        for _ in range(rounds + 1)
    ]
    return min(pair[0] for pair in pairs[1:]), min(pair[1] for pair in pairs[1:])


def round_trip(text: str, rounds: int) -> float:
    """Time to read, verify and print ``text``."""
    context = create_context()
    return min(seconds(lambda: print_module(parse_module(text, context=context))) for _ in range(rounds + 1))


def parts(text: str, rounds: int) -> dict[str, float]:
    """Time of each part of a round trip of ``text``: tokens alone, all of reading, verifying, printing."""
    context = create_context()
    module = parse_unverified(text, context=context).module
    work = {
        "tokens": lambda: list(tokens(text)),
        "reading, tokens and all": lambda: parse_unverified(text, context=context),
        "verifying": lambda: verify(module),
        "printing": lambda: print_module(module),
    }
    return {name: min(seconds(each) for _ in range(rounds)) for name, each in work.items()}


def tokens(text: str) -> Iterator[MLIRToken]:
    lexer = KtirLexer(Input(text, "-"))
    while (token := lexer.lex()).kind is not MLIRTokenKind.EOF:
        yield token


def hot_spots(text: str, count: int) -> list[tuple[str, float]]:
    """Functions that take most of the time of reading ``text``, callees apart, with their shares of it."""
    context = create_context()
    parse_unverified(text, context=context)
    with cProfile.Profile() as recorded:
        parse_unverified(text, context=context)
    spent = {key: row[2] for key, row in pstats.Stats(recorded).stats.items()}  # pyright: ignore
    total = sum(spent.values())
    most = sorted(spent.items(), key=lambda item: -item[1])[:count]
    return [(f"{Path(file).name}:{name}", own / total) for (file, _, name), own in most]


def print_profile(texts: Mapping[str, str], small: str, rounds: int) -> dict[str, dict[str, float]]:
    """Shows where the time goes: the parts of the round trip, and what is hottest in reading each text."""
    found = {"round trip parts": parts(small, rounds)}
    print("profile of the round trip")
    for name, took in found["round trip parts"].items():
        print(f"  {1000 * took:6.1f} ms  {name}")
    for name, text in texts.items():
        found[f"profile of {name}"] = dict(hot_spots(text, 8))
        print(f"profile of reading {name}, shares by function")
        for function, share in found[f"profile of {name}"].items():
            print(f"  {100 * share:5.1f} %  {function}")
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--operations", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    texts = {
        "arith chain": arithmetic_chain(given.operations),
        "KTIR mix": kernel(given.operations // OPERATIONS_PER_STEP),
    }
    results: dict[str, dict[str, float]] = {}
    print(f"{'reading':<14}{'ktir':>10}{'xDSL':>10}{'ratio':>8}   goal {RATIO_GOAL}, stretch {STRETCH_GOAL}")
    for name, text in texts.items():
        ours, stock = reading(text, given.rounds)
        results[name] = {"ktir_s": ours, "xdsl_s": stock, "ratio": ours / stock}
        print(f"{name:<14}{ours:>9.3f}s{stock:>9.3f}s{ours / stock:>8.2f}")
    small = kernel(13)
    took = round_trip(small, max(given.rounds, 10))
    results["round trip"] = {"lines": len(small.splitlines()), "s": took}
    print(f"round trip of {len(small.splitlines())} lines: {1000 * took:.1f} ms   goal {1000 * ROUND_TRIP_GOAL:.0f} ms")
    results |= print_profile(texts, small, max(given.rounds, 10))
    if given.json is not None:
        given.json.write_text(json.dumps(results, indent=2) + "\n")
    slow = [name for name in texts if results[name]["ratio"] > RATIO_GOAL]
    return 1 if slow or took > ROUND_TRIP_GOAL else 0


if __name__ == "__main__":
    sys.exit(main())
