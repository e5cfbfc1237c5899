"""``ktir doctor``: whether this installation has what it needs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, entry_points, requires, version

from ktir.errors import KtirError
from ktir.tools.console import FAULT, OK, Console
from ktir.version import DIALECTS, SPECIFICATION, VERSION

HELP = "check the installation: packages, machine files, the torch.compile entry point"
EXAMPLES = """  ktir doctor
  ktir doctor --json"""

REQUIRED = ("xdsl", "numpy", "ml_dtypes", "safetensors", "rich", "lark")
OPTIONAL = {
    "torch": "compiling models",
    "iree-base-compiler": "checking text against real MLIR",
    "transformers": "the demo",
    "sentence-transformers": "the demo",
}


@dataclass(frozen=True)
class Finding:
    """One line of the answer; ``needed`` says whether the tool works without it."""

    name: str
    found: str
    good: bool
    needed: bool = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    del parser  # no arguments of its own


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Exit status 1 when something that is needed is missing."""
    del arguments
    findings = list(examine())
    good = all(finding.good or not finding.needed for finding in findings)
    rows = [f"{'ok' if f.good else 'MISSING' if f.needed else 'absent':<8}{f.name:<24}{f.found}" for f in findings]
    console.result({"ok": good, "findings": [asdict(finding) for finding in findings]}, "\n".join(rows))
    return OK if good else FAULT


def examine() -> Iterator[Finding]:
    """Everything in the order it is shown."""
    dialects = ", ".join(f"{name} {text}" for name, text in DIALECTS.items())
    yield Finding("ktir", f"{VERSION}; {SPECIFICATION}; {dialects}", True)
    yield Finding("python", sys.version.split()[0], sys.version_info >= (3, 11))
    exact = {name for name, _, _ in (text.partition("==") for text in requires("ktir") or []) if name == "xdsl"}
    for package in REQUIRED:
        yield _package(package, needed=True, note="this exact version" if package in exact else "")
    for package, purpose in OPTIONAL.items():
        yield _package(package, needed=False, note=f"for {purpose}")
    yield _entry_point()
    yield from _machines()


def _package(name: str, *, needed: bool, note: str) -> Finding:
    try:
        return Finding(name, f"{version(name)}{f' ({note})' if note else ''}", True, needed)
    except PackageNotFoundError:
        return Finding(name, f"not installed {f'({note})' if note else ''}", False, needed)


def _entry_point() -> Finding:
    found = [point.value for point in entry_points(group="torch_dynamo_backends") if point.name == "ktir"]
    return Finding(
        'torch.compile "ktir"', found[0] if found else "not registered; install the package", bool(found), False
    )


def _machines() -> Iterator[Finding]:
    from ktir.machine.loader import available, load

    for name in available():
        try:
            machine = load(name)
        except KtirError as error:
            yield Finding(f"machine {name}", error.message, False)
        else:
            yield Finding(f"machine {name}", f"{machine.cores} cores, {machine.clock_hz / 1e9:g} GHz", True)
