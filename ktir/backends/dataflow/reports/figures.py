"""The figures of the page, as inline SVG: the roofline, what holds the scratchpad when, how even the cores are.

Everything that came from a program's text is escaped. Colours are classes of the page, so that they follow its scheme;
what a mark means in numbers is in its title, which browsers show under the pointer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import atan2, ceil, degrees, floor, log10, sqrt

from ktir.backends.dataflow.reports.report import Report, format_bytes, format_rate, format_time
from ktir.backends.dataflow.reports.roofline import TOTAL, Ceiling, Point, Roofline
from ktir.backends.dataflow.timing import Tenant, UnitTime

MOST_TENANTS = 3_000
"""Rectangles of the map of the scratchpad: the largest ones."""
MOST_LABELS = 12
"""Points of the roofline that are named: the slowest launch of each kernel, as long as there is room."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The field of a figure in its SVG: ``left``, ``top``, ``right`` and ``bottom`` in user units."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top


def _svg(width: float, height: float, label: str, parts: Iterable[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}">' + "".join(parts) + "</svg>"
    )


def _text(x: float, y: float, content: str, kind: str, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}"{more}>{escape(content)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, title: str = "") -> str:
    inner = f"<title>{escape(title)}</title>" if title else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}">{inner}</line>'


# ------------------------------------------------------------------------------------------------------------ roofline


@dataclass(frozen=True, slots=True)
class _Log:
    """A logarithmic axis: decades ``low`` to ``high`` from ``start`` to ``stop`` in user units."""

    low: int
    high: int
    start: float
    stop: float

    @classmethod
    def over(cls, values: Iterable[float], start: float, stop: float) -> _Log:
        """An axis that has all of ``values``, which are positive, and at least three decades."""
        exponents = [log10(value) for value in values]
        low, high = floor(min(exponents) - 0.05), ceil(max(exponents) + 0.05)
        return cls(low - (high - low < 2), max(high, low + 2), start, stop)

    def __call__(self, value: float) -> float:
        share = (log10(value) - self.low) / (self.high - self.low)
        return self.start + max(0.0, min(1.0, share)) * (self.stop - self.start)

    @property
    def decades(self) -> Iterator[float]:
        return (10.0**exponent for exponent in range(self.low, self.high + 1))


def roofline_figure(report: Report) -> str:
    """Log-log: operations per byte of device memory to the right, operations a second upwards."""
    found = report.roofline
    points = [*found.points, *found.whole]
    frame = Frame(76, 26, 712, 400)
    if not points:
        return '<p class="none">No compute unit does anything: there are no points to show.</p>'
    known = [point.intensity for point in points if point.intensity is not None]
    knees = [ceiling.peak / found.bandwidth for ceiling in found.ceilings]
    across = _Log.over([*known, *knees, *(2 * knee for knee in knees)], frame.left, frame.right)
    peaks = [ceiling.peak for ceiling in found.ceilings]
    upwards = _Log.over([*(point.rate for point in points if point.rate), *peaks], frame.bottom, frame.top)
    parts = [
        *_grid(frame, across, upwards),
        *_roofs(frame, across, upwards, found, points),
        *_marks(frame, across, upwards, report),
    ]
    label = "Roofline: operations a second against operations per byte of device memory, both logarithmic"
    return _svg(720, 444, label, parts) + _legend(found)


def _grid(frame: Frame, across: _Log, upwards: _Log) -> Iterator[str]:
    for value in across.decades:
        x = across(value)
        yield _line(x, frame.top, x, frame.bottom, "grid")
        yield _text(x, frame.bottom + 16, f"{value:g}", "tick", "middle" if x < frame.right - 1 else "end")
    for value in upwards.decades:
        y = upwards(value)
        yield _line(frame.left, y, frame.right, y, "grid")
        yield _text(frame.left - 6, y + 4, format_rate(value), "tick", "end")
    middle = (frame.left + frame.right) / 2
    yield _text(middle, frame.bottom + 36, "operations per byte of device memory (op/byte)", "axis", "middle")
    yield _text(4, 14, "operations per second (op/s)", "axis")


def _roofs(frame: Frame, across: _Log, upwards: _Log, found: Roofline, points: Sequence[Point]) -> Iterator[str]:
    """The slope of device memory up to the highest peak, and the peaks from where they cross it."""
    if not found.ceilings:
        return
    highest = found.ceilings[0].peak
    first = max(10.0**across.low, 10.0**upwards.low / found.bandwidth)
    speed = f"device memory {format_rate(found.bandwidth, 'B/s')}"
    x1, y1 = across(first), upwards(first * found.bandwidth)
    x2, y2 = across(highest / found.bandwidth), upwards(highest)
    yield _line(x1, y1, x2, y2, "roof memory", f"{speed}, sustained")
    angle = -degrees(atan2(y1 - y2, x2 - x1))
    marks = [across(point.intensity) for point in points if point.intensity is not None]
    middles = [x1 + share * (x2 - x1) for share in (0.2, 0.35, 0.5, 0.65, 0.8)]
    x = max(middles, key=lambda place: min((abs(place - mark) for mark in marks), default=0))  # away from the points
    y = y1 + (x - x1) / (x2 - x1) * (y2 - y1) - 7
    yield _text(x, y, speed, "rooflabel", "middle", f' transform="rotate({angle:.2f} {x:.1f} {y:.1f})"')
    used: list[float] = []
    for ceiling in found.ceilings:
        start, y = across(ceiling.peak / found.bandwidth), upwards(ceiling.peak)
        text = f"{ceiling.name} {format_rate(ceiling.peak)}"
        yield _line(start, y, frame.right, y, f"roof {_class(ceiling)}", f"peak of {text}")
        if all(abs(y - other) > 15 for other in used):
            yield _text(frame.right - 4, y - 5, text, "rooflabel", "end")
            used.append(y)


def _class(thing: Ceiling | Point) -> str:
    return "matrix" if thing.kind == "multiply" else "vector"


def _marks(frame: Frame, across: _Log, upwards: _Log, report: Report) -> Iterator[str]:
    found = report.roofline
    total = report.timing.total_ns or 1.0
    named: set[tuple[str, str]] = set()
    labels: list[_Label] = []
    for point in sorted((*found.points, *found.whole), key=lambda point: -point.time_ns):
        if not point.rate:
            continue
        x = across(point.intensity) if point.intensity is not None else frame.right
        y = upwards(point.rate)
        yield _mark(point, x, y, 3 + 9 * sqrt(point.time_ns / total) if point.launch is not None else 8)
        name = point.kernel if point.launch is not None else TOTAL
        if (name, point.unit) not in named and len(named) < MOST_LABELS:
            place = next((each for each in _places(frame, x, y, name) if not each.meets(labels)), None)
            if place is not None:
                named.add((name, point.unit))
                labels.append(place)
                yield _text(place.left, place.bottom - 2, name, "pointlabel")


@dataclass(frozen=True, slots=True)
class _Label:
    """The room that a name takes."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, others: Iterable[_Label]) -> bool:
        """Whether it shares room with another one."""
        return any(
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
            for other in others
        )


def _places(frame: Frame, x: float, y: float, name: str) -> Iterator[_Label]:
    """Where the name of a mark may stand: at its right, its left, right below, left above."""
    width = 7.0 * len(name)
    for left, bottom in ((x + 13, y + 6), (x - 13 - width, y + 6), (x + 10, y + 22), (x - 10 - width, y - 10)):
        if frame.left <= left and left + width <= frame.right and frame.top <= bottom - 14:
            yield _Label(left, bottom - 14, left + width, bottom)


def _mark(point: Point, x: float, y: float, size: float) -> str:
    intensity = f"{point.intensity:.3g} op/byte" if point.intensity is not None else "no byte of device memory"
    number = "" if point.launch is None else f" (launch {point.launch})"
    title = (
        f"{point.kernel}{number} on {point.unit}: {intensity}, {format_rate(point.rate)}, {point.share:.1%} of its "
        f"roof of {format_rate(point.roof)}; {point.operations:,} operations, {format_bytes(point.bytes)}, "
        f"{format_time(point.time_ns)}"
    )
    kind = f"point {_class(point)}{' whole' if point.launch is None else ''}"
    inner = f"<title>{escape(title)}</title>"
    if point.kind == "multiply":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" class="{kind}">{inner}</circle>'
    corners = f"{x:.1f},{y - size:.1f} {x + size:.1f},{y:.1f} {x:.1f},{y + size:.1f} {x - size:.1f},{y:.1f}"
    return f'<polygon points="{corners}" class="{kind}">{inner}</polygon>'


def _legend(found: Roofline) -> str:
    units = {(point.kind, point.unit) for point in found.points}
    shapes = {
        "multiply": '<circle cx="7" cy="7" r="5.5" class="point matrix"/>',
        "vector": '<polygon points="7,1 13,7 7,13 1,7" class="point vector"/>',
    }
    keys = [(shapes[kind], f"{unit}, a mark for each launch") for kind, unit in sorted(units)]
    keys.append(('<circle cx="7" cy="7" r="5.5" class="point whole"/>', TOTAL))
    marks = "".join(
        f'<span class="mark"><svg viewBox="0 0 14 14" width="14" height="14">{shape}</svg>{escape(text)}</span>'
        for shape, text in keys
    )
    return f'<p class="legend">{marks}The larger a mark, the longer its launch.</p>'


# ---------------------------------------------------------------------------------------------------------- scratchpad


def scratchpad_figure(report: Report) -> str:
    """Time to the right, addresses of a core's scratchpad upwards: a rectangle for each tenant, the bytes in use as a
    line."""
    timing = report.timing
    if not timing.tenants or not timing.total_ns:
        return '<p class="none">No scratchpad is used.</p>'
    frame = Frame(76, 26, 712, 270)
    top = min(timing.scratchpad_bytes or timing.scratchpad_used, int(1.15 * timing.scratchpad_used) + 1)
    times = {launch.launch: (launch.start_ns, launch.stop_ns) for launch in timing.launches}

    def x(ns: float) -> float:
        return frame.left + frame.width * ns / timing.total_ns

    def y(byte: float) -> float:
        return frame.bottom - frame.height * byte / top

    kept = sorted(timing.tenants, key=lambda tenant: -tenant.bytes)[:MOST_TENANTS]
    parts = [*_scratchpad_grid(frame, top, timing.total_ns)]
    for number, tenant in enumerate(kept):
        if tenant.first not in times or tenant.last not in times:
            continue
        left, right = x(times[tenant.first][0]), x(times[tenant.last][1])
        low, high = y(tenant.offset), y(tenant.offset + tenant.bytes)
        parts.append(
            f'<rect x="{left:.1f}" y="{high:.1f}" width="{max(0.5, right - left):.1f}" '
            f'height="{max(0.7, low - high):.1f}" class="tenant t{number % 6}">'
            f"<title>{escape(_tenant_title(report, tenant))}</title></rect>"
        )
    steps = [
        f"{x(at):.1f},{y(launch.scratchpad):.1f}"
        for launch in timing.launches
        for at in (launch.start_ns, launch.stop_ns)
    ]
    parts.append(f'<polyline points="{" ".join(steps)}" class="inuse"/>')
    label = "Scratchpad: which buffer holds which addresses of a core when"
    left_out = len(timing.tenants) - len(kept)
    aside = f" The {left_out:,} smallest buffers are left out." if left_out else ""
    share = timing.scratchpad_used / timing.scratchpad_bytes if timing.scratchpad_bytes else 0.0
    return (
        _svg(720, 310, label, parts)
        + '<p class="legend">A rectangle is a buffer, all its slots, from its first launch to its last; the line is '
        f"the bytes in use. At most {format_bytes(timing.scratchpad_used)} of {format_bytes(timing.scratchpad_bytes)}, "
        f"{share:.0%}.{aside}</p>"
    )


def _scratchpad_grid(frame: Frame, top: int, total_ns: float) -> Iterator[str]:
    step = _round_step(top / 4)
    for number in range(int(top // step) + 1):
        y = frame.bottom - frame.height * number * step / top
        yield _line(frame.left, y, frame.right, y, "grid")
        yield _text(frame.left - 6, y + 4, format_bytes(int(number * step)), "tick", "end")
    for number in range(5):
        x = frame.left + frame.width * number / 4
        yield _text(x, frame.bottom + 16, format_time(total_ns * number / 4), "tick", "middle" if number < 4 else "end")
    yield _text((frame.left + frame.right) / 2, frame.bottom + 36, "time", "axis", "middle")
    yield _text(4, 14, "address in the scratchpad of a core", "axis")


def _round_step(least: float) -> float:
    """The next power of two from ``least`` on, so that marks are whole in binary units."""
    step = 1.0
    while step < least:
        step *= 2
    return step


def _tenant_title(report: Report, tenant: Tenant) -> str:
    slots = f" in {tenant.slots} slots" if tenant.slots > 1 else ""
    when = f"launches {tenant.first} to {tenant.last}" if tenant.last > tenant.first else f"launch {tenant.first}"
    place = f"\n{tenant.location}\n{report.line(tenant.location)}" if tenant.location is not None else ""
    stop = tenant.offset + tenant.bytes
    return f"{tenant.name}: {format_bytes(tenant.bytes)}{slots} at [{tenant.offset}, {stop}), {when}{place}"


# --------------------------------------------------------------------------------------------------------------- cores


def cores_figure(report: Report) -> str:
    """A row for each kind of unit, a column for each core: per cent of the time that it is busy."""
    rows: dict[str, dict[int, list[UnitTime]]] = {}
    for unit in report.timing.units:
        rows.setdefault(unit.unit, {}).setdefault(unit.core, []).append(unit)
    if not rows:
        return '<p class="none">No core does anything.</p>'
    cores = range(max(report.machine.cores, 1 + max(core for cells in rows.values() for core in cells)))
    left, size, height = 76.0, max(4.0, min(36.0, 640 / len(cores))), 22
    place = {core: left + number * size for number, core in enumerate(cores)}
    parts = [
        part
        for number, (name, cells) in enumerate(rows.items())
        for part in _core_row(name, cells, place, size, 4.0 + number * height)
    ]
    bottom = 4 + len(rows) * height
    every = max(1, ceil(len(cores) * 18 / 640))
    parts += [
        _text(place[core] + size / 2, bottom + 14, str(core), "tick", "middle")
        for number, core in enumerate(cores)
        if number % every == 0
    ]
    parts.append(_text(left, bottom + 32, "core", "axis"))
    width = left + size * len(cores) + 8
    return _svg(max(720, width), bottom + 38, "How busy each unit of each core is", parts)


def _core_row(
    name: str, cells: Mapping[int, Sequence[UnitTime]], place: Mapping[int, float], size: float, top: float
) -> Iterator[str]:
    yield _text(70, top + 14, name, "tick", "end")
    for core, units in cells.items():
        whole = sum(unit.total_ns for unit in units) or 1.0
        busy = sum(unit.busy_ns for unit in units)
        title = f"core {core}, {name}: busy {busy / whole:.1%}, {format_time(busy / len(units))}"
        yield (
            f'<rect x="{place[core]:.1f}" y="{top:.1f}" width="{max(1.0, size - 1):.1f}" height="20" class="cell"/>'
            f'<rect x="{place[core]:.1f}" y="{top:.1f}" width="{max(1.0, size - 1):.1f}" height="20" class="heat" '
            f'fill-opacity="{0.75 * busy / whole:.3f}"><title>{escape(title)}</title></rect>'
        )
        if size >= 18:
            yield _text(place[core] + (size - 1) / 2, top + 14, f"{100 * busy / whole:.0f}", "percent", "middle")


__all__ = ["cores_figure", "roofline_figure", "scratchpad_figure"]
