"""The comparison as text and as JSON: one table for each kind of row, and the summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

from benchmarks.fidelity import mlp
from benchmarks.fidelity.campaign import NAMED, OTHER, Compared, peaks, summaries, times_correlation
from benchmarks.fidelity.rows import Row

HEADINGS: Mapping[str, str] = {
    "calibration": "Calibration: device memory was fitted to these",
    "memory": "Blind: device memory decides",
    "product": "Blind: products",
    "ratio": "Blind: orders and ratios",
    "information": "Blind: without a bar",
}


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown whose columns line up."""
    cells = [list(headings), *map(list, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def number(value: float) -> str:
    """With four digits."""
    return f"{value:.4g}"


def published(row: Row) -> str:
    """The published value or range with its unit."""
    low, high = row.published if isinstance(row.published, tuple) else (row.published, row.published)
    if high == inf:
        return f"over {number(low)} {row.unit}".strip()
    return f"{number(low)}{f' to {number(high)}' if high > low else ''} {row.unit}".strip()


def _row(each: Compared) -> list[str]:
    row = each.row
    if row.order is not None:
        verdict = "as published" if each.as_published else "**not as published**"
    else:
        verdict = f"{each.error:+.1f} %"
        if row.bar is not None and abs(each.error) > row.bar:
            verdict = f"**{verdict}**"
    return [row.name, published(row), row.source, number(each.named), verdict, number(each.other)]


def comparison(compared: Sequence[Compared], sweep: float | None) -> str:
    """All tables and the summary."""
    named, other = (f"ours, {preset['clock']}" for preset in (NAMED, OTHER))
    parts = ["### Peaks, in 10^12 operations a second"]
    parts.append(table(("peak", "published", "source", "ours"), ([n, p, s, f"{o:.4f}"] for n, p, s, o in peaks())))
    for kind, heading in HEADINGS.items():
        found = [each for each in compared if each.row.kind == kind]
        if found:
            columns = ("result", "published", "source", named, "order" if kind == "ratio" else "error", other)
            parts += [f"### {heading}", table(columns, map(_row, found))]
    parts += ["### Summary", "\n".join(_summary(compared, sweep))]
    return "\n\n".join(parts) + "\n"


def _summary(compared: Sequence[Compared], sweep: float | None) -> Iterable[str]:
    for each in summaries(compared):
        yield (
            f"* {each.kind}: {each.within} of {each.rows} rows within {each.bar:g} %; mean error {each.mean:.1f} %, "
            f"largest {each.largest:.1f} %."
        )
    orders = [each.as_published for each in compared if each.as_published is not None]
    if orders:
        yield f"* orders: {sum(orders)} of {len(orders)} as published."
    if (correlation := times_correlation(compared)) is not None:
        yield f"* rank correlation with the published times: {correlation:.3f}."
    if sweep is not None:
        yield f"* rank correlation with the published cost formula over the sweep of shapes: {sweep:.3f}."
    for each in compared:
        if each.row.name.startswith("MLP block") and each.row.kind == "product":
            here, there = mlp.utilisation(each.named, 1.1), mlp.utilisation(each.other, 1.5)
            yield f"* {each.row.name}: {here:.0f} % of 72.1 TFLOPS at 1.1 GHz, {there:.0f} % of 98.3 at 1.5 GHz."


def record(compared: Sequence[Compared], sweep: float | None) -> dict[str, Any]:
    """What is kept: the values by the name of the row."""
    return {
        "preset": dict(NAMED),
        "other preset": dict(OTHER),
        "rows": {
            each.row.name: {
                "kind": each.row.kind,
                "published": published(each.row),
                "source": each.row.source,
                "ours": round(each.named, 6),
                "error_percent": round(each.error, 3),
                "as_published": each.as_published,
                "other": round(each.other, 6),
            }
            for each in compared
        },
        "rank_correlation": {
            "published times": _rounded(times_correlation(compared)),
            "published formula": _rounded(sweep),
        },
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
