"""Does every KTIR text below some folders survive the toolchain? A report for each file, and an exit status.

    python scripts/corpus_check.py DIR... [--strict] [--all]

Each text is parsed, verified, printed and read again, in the custom and in the generic form; both must give the same
IR. A file whose ``RUN`` line splits its input, or that has none, is cut at ``// -----``. The pieces are

* *negative* where they hold an ``expected-error``: refused or not, they count as good;
* *foreign* where they use a dialect that is no part of KTIR (``tt``, ..);
* *invalid* where ``docs/compatibility.md`` lists them, with the reason;
* *positive* otherwise, and these must all pass.

Exits with 1 if a positive piece fails or a listed one passes.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ktir.dialect.context import all_dialects, create_context
from ktir.dialect.text.parser import parse
from ktir.dialect.text.printer import print_module
from ktir.errors import KtirError

SUFFIXES = (".mlir", ".ktir")
LIST_OF_INVALID = Path(__file__).parents[1] / "docs" / "compatibility.md"
MARKER = re.compile(r"^[ \t]*// -----(?!-)[^\n]*\n?", re.MULTILINE)
NOT_REGISTERED = re.compile(r"(\w+)\.[\w.]+'? is not registered|Could not find dialect '?(\w+)")
LISTED = re.compile(r"^\| `([^`]+)` \| (\d+) \|", re.MULTILINE)


@dataclass(frozen=True)
class Piece:
    """One text of a file: its number, from 1, and how it ended."""

    path: Path
    number: int
    text: str
    allow_unregistered: bool


@dataclass(frozen=True)
class Outcome:
    """``kind`` is positive, negative, foreign or invalid; ``fault`` is None for a text that came through."""

    piece: Piece
    kind: str
    fault: str | None

    @property
    def is_wrong(self) -> bool:
        return (self.kind == "positive" and self.fault is not None) or (self.kind == "invalid" and self.fault is None)


def files(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        found = [folder] if folder.is_file() else folder.rglob("*")
        yield from sorted(path for path in found if path.suffix in SUFFIXES and path.is_file())


def pieces(path: Path) -> Iterator[Piece]:
    """The texts of a file, with line breaks before each so that lines count from the start of the file."""
    text = path.read_text(encoding="utf-8")
    commands = re.findall(r"^\s*(?://|#) RUN:(.*)$", text, re.MULTILINE)
    is_split = not commands or any("split-input-file" in command for command in commands)
    unregistered = any("allow-unregistered-dialect" in command for command in commands)
    start = 0
    for number, part in enumerate(MARKER.split(text) if is_split else [text], start=1):
        start = text.index(part, start)
        yield Piece(path, number, "\n" * text.count("\n", 0, start) + part, unregistered)
        start += len(part)


def fault_of(piece: Piece, *, strict: bool) -> str | None:
    """What is wrong with a piece, None if nothing is."""
    context = create_context(allow_unregistered=piece.allow_unregistered)
    try:
        module = parse(piece.text, str(piece.path), strict=strict, context=context).module
        for generic in (False, True):
            printed = print_module(module, generic=generic)
            again = parse(printed, "<printed>", context=context).module
            form = "generic" if generic else "custom"
            if not again.is_structurally_equivalent(module):
                return f"the {form} form is read as other IR"
            if print_module(again, generic=generic) != printed:
                return f"the {form} form is not printed as it was read"
    except KtirError as fault:
        return str(fault)
    return None


def outcome(piece: Piece, listed: set[tuple[str, int]], *, strict: bool) -> Outcome:
    fault = fault_of(piece, strict=strict)
    if any(str(piece.path).endswith(name) and number == piece.number for name, number in listed):
        return Outcome(piece, "invalid", fault)
    if "expected-error" in piece.text:
        return Outcome(piece, "negative", fault)
    if fault is not None and (match := NOT_REGISTERED.search(fault)) and (match[1] or match[2]) not in all_dialects():
        return Outcome(piece, "foreign", fault)
    return Outcome(piece, "positive", fault)


def report(outcomes: Sequence[Outcome], *, everything: bool) -> None:
    """One line a file, and the faults of its positive pieces."""
    for path in dict.fromkeys(each.piece.path for each in outcomes):
        of_file = [each for each in outcomes if each.piece.path == path]
        wrong = [each for each in of_file if each.is_wrong]
        counts = Counter(each.kind for each in of_file)
        print("FAIL" if wrong else "ok  ", path, ", ".join(f"{count} {kind}" for kind, count in counts.items()))
        for each in of_file if everything else wrong:
            print(f"     piece {each.piece.number} ({each.kind}): {(each.fault or 'passes').splitlines()[0]}")
    total = Counter(each.kind for each in outcomes)
    passed = sum(each.kind == "positive" and each.fault is None for each in outcomes)
    print(f"{passed} of {total['positive']} positive pieces pass;", *(f"{total[k]} {k}" for k in sorted(total)))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--strict", action="store_true", help="refuse tolerated spellings as well")
    parser.add_argument("--all", action="store_true", help="show how every piece ended")
    options = parser.parse_args(arguments)
    text = LIST_OF_INVALID.read_text(encoding="utf-8") if LIST_OF_INVALID.is_file() else ""
    listed = {(name, int(number)) for name, number in LISTED.findall(text)}
    found = [outcome(piece, listed, strict=options.strict) for path in files(options.folders) for piece in pieces(path)]
    report(found, everything=options.all)
    return int(any(each.is_wrong for each in found))


if __name__ == "__main__":
    sys.exit(main())
