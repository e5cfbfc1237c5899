"""Compares simulated times with published ones.

    python -m benchmarks.fidelity [--quick] [--only TEXT] [--jobs N] [--json FILE] [--write]

Prints a table for each kind of result: published value and source, ours under the preset that docs/fidelity.md names
with its error, ours under the other preset. ``--quick`` leaves out what takes more than a few seconds, ``--only`` all
whose name lacks TEXT. ``--write`` puts all rows into docs/fidelity.md and into the record that the tests compare with.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.fidelity.campaign import NAMED, OTHER, compare, sweep_correlation, time_all
from benchmarks.fidelity.rows import all_rows, sweep
from benchmarks.fidelity.tables import comparison, record

RECORD = Path(__file__).parent / "recorded.json"
PAGE = Path(__file__).parents[2] / "docs" / "fidelity.md"
BEGIN, END = "<!-- written by python -m benchmarks.fidelity --write -->\n", "<!-- end of what is written -->\n"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="leave out what takes more than a few seconds")
    parser.add_argument("--only", default="", metavar="TEXT", help="only rows whose name has TEXT in it; no sweep")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="simulations at a time (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the comparison there as well")
    parser.add_argument("--write", action="store_true", help="update docs/fidelity.md and the record of the tests")
    chosen = parser.parse_args()
    if chosen.write and (chosen.quick or chosen.only):
        parser.error("--write needs all rows: leave out --quick and --only")
    if chosen.json and not chosen.json.absolute().parent.is_dir():
        parser.error(f"--json: no folder {chosen.json.absolute().parent}")
    if chosen.jobs < 1:
        parser.error("--jobs is at least 1")
    return chosen


def main() -> int:
    """Runs the campaign; 2 if no row is chosen."""
    chosen = arguments()
    rows = [row for row in all_rows() if chosen.only in row.name and not (chosen.quick and row.long)]
    if not rows:
        print(f"no row has {chosen.only!r} in its name", file=sys.stderr)
        return 2
    swept = [] if chosen.only else list(sweep())
    runs = [run for row in rows for run in row.runs]
    named = time_all([*runs, *(each.run for each in swept)], NAMED, chosen.jobs)
    compared = compare(rows, named, time_all(runs, OTHER, chosen.jobs))
    correlation = sweep_correlation(swept, named) if swept else None
    text = comparison(compared, correlation)
    print(text, end="")
    kept = json.dumps(record(compared, correlation), indent=1) + "\n"
    if chosen.json:
        chosen.json.write_text(kept, encoding="utf-8")
    if chosen.write:
        RECORD.write_text(kept, encoding="utf-8")
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(before + BEGIN + "\n" + text + "\n" + END + rest.partition(END)[2], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
