"""Times the executor against eager PyTorch, and against the public interpreter ktir-cpu where there is a checkout.

    python -m benchmarks.executor [--only NAME,..] [--json FILE] [--repeat N]
        [--peer CHECKOUT --peer-python PYTHON [--harness DIR]]

Every kernel runs in processes of its own, once with one thread (against ktir-cpu, with and without checks) and once
with two (against eager PyTorch in f32). Times are milliseconds, the least of some runs after a first one: CPU time of
the process for one thread, time by the clock for two. ``--harness`` names the folder of the side-by-side harness for
ktir-cpu's own examples, which are run through it as well.

Below the tables stands each target with what was measured. Exits with 1 where a result is wrong, not where a target is
missed: times depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
EAGER_THREADS = 2
EAGER_LIMITS: Mapping[str, float] = {
    "matmul-2048": 2, "matmul-4096": 2, "attention-2048": 4, "softmax-4096": 6, "gather-1024": 20,
    "gather-rows-4096": 20,
}  # fmt: skip
"""How many times as long as eager PyTorch a kernel may take."""
NOT_FOR_PEER = ("long-kernel", "gather-1024", "gather-rows-4096")
"""Kernels that the comparison with ktir-cpu does not ask for."""
WORTH_COMPARING = 20.0
"""Milliseconds that ktir-cpu has to need at least for a case to count."""
SPEED, SPEED_CHECKED, SLOWEST, OVERHEAD, FIRST_COMPILE = 50.0, 25.0, 5.0, 2.0, 100.0
GROWTH_FACTOR, GROWTH_FREE = 2, 200 << 20


@dataclass(frozen=True, slots=True)
class Compared:
    """A case that ktir-cpu ran too, in milliseconds of CPU time."""

    name: str
    peer: float
    plain: float
    checked: float
    right: bool


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked for, what was measured."""

    text: str
    measured: str
    met: bool


# ------------------------------------------------------------------------------------------------------------ measuring


def measured(name: str, threads: int, repeat: int) -> dict[str, Any]:
    """What :mod:`benchmarks.measure` says of a kernel."""
    command = [sys.executable, "-m", "benchmarks.measure", name, f"--threads={threads}", f"--repeat={repeat}"]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def beside_peer(name: str, one: Mapping[str, Any], checkout: Path, python: Path) -> Compared:
    """Runs a kernel on ktir-cpu, once."""
    import numpy as np

    from benchmarks.kernels import BENCHMARKS

    case = BENCHMARKS[name]()
    with tempfile.TemporaryDirectory() as folder:
        kernel, inputs, result = (Path(folder) / file for file in ("kernel.mlir", "inputs.npz", "result.npy"))
        kernel.write_text(case.text)
        np.savez(inputs, **case.inputs)
        command = [python, ROOT / "benchmarks/peer_worker.py", checkout, kernel, inputs, "kernel", case.output, result]
        run = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
        milliseconds, theirs = 1e3 * float(run.stdout), np.load(result)
    ours = expected(case)
    right = one["near"] and one["same"] and bool(np.allclose(theirs, ours, rtol=1e-2, atol=case.tolerance))
    return Compared(name, milliseconds, one["plain"]["cpu"], one["checked"]["cpu"], right)


def expected(case: Any) -> Any:
    """What eager PyTorch computes."""
    import torch

    tensors = {key: torch.from_numpy(value).float() for key, value in case.inputs.items()}
    return case.eager(**tensors).numpy()


def examples(harness: Path, checkout: Path, python: Path, repeat: int) -> list[Compared]:
    """ktir-cpu's own examples, by the harness that runs them side by side; those that it fails on are left out."""
    plain, checked = "benchmarks.peer_adapter:run", "benchmarks.peer_adapter:run_checked"
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "rows.json"
        command = [
            *(sys.executable, harness / "peer_harness.py", "--adapters", f"ktir_cpu,{plain},{checked}", "--isolate"),
            *("--peer-dir", checkout, "--peer-python", python, "--reps", repeat, "--json", found),
        ]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        subprocess.run(list(map(str, command)), cwd=ROOT, env=environment, check=False, stdout=subprocess.DEVNULL)
        rows = json.loads(found.read_text())["rows"]
    return [
        Compared(
            row["id"],
            row["ktir_cpu"].get("exec_ms", 0.0) if row["ktir_cpu"]["status"] == "ok" else 0.0,
            row[plain].get("exec_ms", float("nan")),
            row[checked].get("exec_ms", float("nan")),
            row[plain]["status"] == row[checked]["status"] == "ok",
        )
        for row in rows
    ]


# -------------------------------------------------------------------------------------------------------------- targets


def geometric_mean(numbers: Iterable[float]) -> float:
    logarithms = [log(number) for number in numbers]
    return exp(sum(logarithms) / len(logarithms))


def targets(
    ones: Sequence[Mapping[str, Any]], twos: Sequence[Mapping[str, Any]], compared: Sequence[Compared]
) -> list[Target]:
    """All targets that the measurements say something of."""
    return [*_speed(compared), *_eager(twos), *_compile(ones), *_growth(ones), *_overhead(ones, compared)]


def _speed(compared: Sequence[Compared]) -> list[Target]:
    counted = [each for each in compared if each.peer >= WORTH_COMPARING]
    if not counted:
        return []
    found: list[Target] = []
    for what, asked, ratios in (
        ("without checks", SPEED, {each.name: each.peer / each.plain for each in counted}),
        ("with checks", SPEED_CHECKED, {each.name: each.peer / each.checked for each in counted}),
    ):
        mean, slowest = geometric_mean(ratios.values()), min(ratios, key=lambda name: ratios[name])
        found.append(
            Target(f"ktir-cpu, {len(counted)} cases, {what}: mean >= {asked:g}x", f"{mean:.1f}x", mean >= asked)
        )
        low = ratios[slowest]
        found.append(Target(f"ktir-cpu, {what}: none < {SLOWEST:g}x", f"{slowest} {low:.1f}x", low >= SLOWEST))
    return found


def _eager(twos: Sequence[Mapping[str, Any]]) -> list[Target]:
    found: list[Target] = []
    for row in twos:
        if (limit := EAGER_LIMITS.get(row["name"])) is not None:
            ratio, cpu = (row["plain"][kind] / row["eager"][kind] for kind in ("wall", "cpu"))
            text = f"eager, {EAGER_THREADS} threads, {row['name']}: <= {limit:g}x"
            found.append(Target(text, f"{ratio:.1f}x (CPU {cpu:.1f}x)", ratio <= limit))
    return found


def _compile(ones: Sequence[Mapping[str, Any]]) -> list[Target]:
    return [
        Target(
            f"first compile, {row['lines']} lines: <= {FIRST_COMPILE:g} ms",
            f"{row['first_compile']:.1f} ms",
            row["first_compile"] <= FIRST_COMPILE,
        )
        for row in ones
        if row["name"] == "long-kernel"
    ]


def _growth(ones: Sequence[Mapping[str, Any]]) -> list[Target]:
    found: list[Target] = []
    for what, key in (("without checks", "growth"), ("with checks", "growth_checked")):
        shares = {row["name"]: row[key] / (GROWTH_FACTOR * row["data"] + GROWTH_FREE) for row in ones}
        if shares:
            worst = max(shares, key=lambda name: shares[name])
            row = next(row for row in ones if row["name"] == worst)
            text = f"{worst}: {row[key] >> 20} MB for {row['data'] >> 20} MB"
            found.append(
                Target(f"growth, {what}: <= {GROWTH_FACTOR}x data + {GROWTH_FREE >> 20} MB", text, shares[worst] <= 1)
            )
    return found


def _overhead(ones: Sequence[Mapping[str, Any]], compared: Sequence[Compared]) -> list[Target]:
    ratios = {each.name: each.checked / each.plain for each in compared if each.peer >= WORTH_COMPARING}
    ratios |= {row["name"]: row["checked"]["cpu"] / row["plain"]["cpu"] for row in ones}
    if not ratios:
        return []
    worst = max(ratios, key=lambda name: ratios[name])
    mean = geometric_mean(ratios.values())
    text = f"{worst} {ratios[worst]:.2f}x, mean {mean:.2f}x"
    return [Target(f"checks: <= {OVERHEAD:g}x the time", text, ratios[worst] <= OVERHEAD)]


# --------------------------------------------------------------------------------------------------------------- output


def table_of_kernels(ones: Sequence[Mapping[str, Any]], twos: Sequence[Mapping[str, Any]]) -> str:
    """One line a kernel."""
    lines = [
        f"{'':<18}{'one thread, CPU ms':^38}{f'{EAGER_THREADS} threads, wall ms':^28}{'memory MB':^24}",
        f"{'':<18}{'compile':>8}{'run':>10}{'checked':>10}{'ratio':>8}{'run':>11}{'eager':>9}{'ratio':>8}{'data':>8}"
        f"{'grown':>8}{'checked':>8}",
    ]
    for one, two in zip(ones, twos, strict=True):
        plain, checked = one["plain"]["cpu"], one["checked"]["cpu"]
        run, eager = two["plain"]["wall"], two["eager"]["wall"]
        data, growth, growth_checked = (one[key] >> 20 for key in ("data", "growth", "growth_checked"))
        lines.append(
            f"{one['name']:<18}{one['first_compile']:>8.1f}{plain:>10.1f}{checked:>10.1f}{checked / plain:>7.2f}x"
            f"{run:>11.1f}{eager:>9.1f}{run / eager:>7.1f}x{data:>8}{growth:>8}{growth_checked:>8}   "
            f"{'right' if one['near'] and one['same'] else 'WRONG'}"
        )
    return "\n".join(lines)


def table_of_cases(compared: Sequence[Compared]) -> str:
    """One line a case that ktir-cpu ran."""
    lines = [f"{'CPU ms':<26}{'ktir-cpu':>10}{'run':>10}{'checked':>10}{'':>9}{'checked':>9}{'ratio':>8}"]
    for each in compared:
        known = each.peer > 0
        faster = f"{each.peer / each.plain:>8.1f}x{each.peer / each.checked:>8.1f}x" if known else f"{'-':>9}{'-':>9}"
        counted = "" if each.peer >= WORTH_COMPARING else "  not counted"
        lines.append(
            f"{each.name:<26}{each.peer:>10.1f}{each.plain:>10.2f}{each.checked:>10.2f}{faster}"
            f"{each.checked / each.plain:>7.2f}x   {'right' if each.right else 'WRONG'}{counted}"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    names = options.only.split(",") if options.only else []
    compared: list[Compared] = []
    if options.peer is not None and options.harness is not None:
        compared += examples(options.harness, options.peer, options.peer_python, options.repeat)
    ones: list[dict[str, Any]] = []
    twos: list[dict[str, Any]] = []
    for name in names:
        print(f"{name} ..", file=sys.stderr)
        ones.append(measured(name, 1, options.repeat))
        twos.append(measured(name, EAGER_THREADS, options.repeat))
        if options.peer is not None and name not in NOT_FOR_PEER:
            compared.append(beside_peer(name, ones[-1], options.peer, options.peer_python))
    found = targets(ones, twos, compared)
    if ones:
        print(table_of_kernels(ones, twos), end="\n\n")
    if compared:
        print(table_of_cases(compared), end="\n\n")
    for target in found:
        print(f"{'met' if target.met else 'MISSED':<8}{target.text:<58}{target.measured}")
    if options.json is not None:
        rows = {"one_thread": ones, "two_threads": twos, "compared": compared, "targets": found}
        options.json.write_text(json.dumps(rows, indent=1, default=_fields) + "\n")
    return int(not all(row["near"] and row["same"] for row in ones) or not all(each.right for each in compared))


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    from benchmarks.kernels import BENCHMARKS

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default=",".join(BENCHMARKS), help="kernels, separated by commas; empty for none")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each kind; the least counts")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--peer", type=Path, help="a checkout of ktir-cpu")
    parser.add_argument("--peer-python", type=Path, help="its Python, 3.12 or newer")
    parser.add_argument("--harness", type=Path, help="the folder of the harness for ktir-cpu's own examples")
    options = parser.parse_args(arguments)
    if (options.peer is None) != (options.peer_python is None) or (options.harness and options.peer is None):
        parser.error("give --peer and --peer-python together, and --harness only with them")
    if unknown := [name for name in filter(None, options.only.split(",")) if name not in BENCHMARKS]:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(BENCHMARKS)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
