"""Reads machine description files: checks every key, demands source and confidence for every value, applies presets.

A description is found by name in ``data/<name>.toml`` of the packages under ``ktir.backends``, or by path. Values that
were fitted to measurements stand apart, in ``<name>.calib.toml`` beside it, the *calibration*. *Presets* are named
choices where public facts disagree; *overrides* are what a caller sets for an experiment
(``load("spyre", scratchpad="64MiB", clock="1.1GHz")``) and are recorded as such in the provenance.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, cast, get_args

from ktir.errors import MachineFileError, UnknownMachine
from ktir.machine.description import (
    Clock,
    Confidence,
    ElementType,
    Machine,
    Memory,
    MemoryKind,
    Net,
    Provenance,
    Queue,
    Scope,
    Topology,
    Unit,
    UnitKind,
)
from ktir.machine.schema import (
    CALIBRATION,
    CHECK,
    CLOCK,
    HOST,
    INSTANCES,
    LIMITS,
    MEMORY,
    MOST,
    MOST_INSTANCES,
    NET,
    QUEUE,
    SCHEMA_VERSION,
    SCOPE,
    TOP_LEVEL,
    UNIT,
    Section,
    ValueKind,
)

Table = dict[str, Any]

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|TiB|KB|MB|GB)?\s*")
_UNIT_BYTES = {
    None: 1,
    "B": 1,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
}
_SHORT_NAMES = {"cores": "scope.core.count", "corelets": "scope.corelet.count"}


def parse_bytes(text: str | int) -> int:
    """``"64MiB"``, ``"2 KiB"`` or a number, in bytes."""
    if isinstance(text, int):
        return text
    match = _SIZE.fullmatch(text)
    if match is None:
        raise MachineFileError(f"{text!r} is no size", remedy="write a number of bytes or, say, 64MiB")
    try:
        return round(float(match[1]) * _UNIT_BYTES[match[2]])
    except OverflowError:
        raise MachineFileError(f"{text!r} is no size that a machine has") from None


def available() -> tuple[str, ...]:
    """Names of the descriptions that come with the package."""
    return tuple(sorted(_descriptions()))


def load(name: str | Path, overrides: Mapping[str, object] | None = None, **settings: object) -> Machine:
    """The machine called ``name``, or the one a file of that path describes.

    ``settings`` are preset choices (``clock="1.1GHz"``), ``scratchpad`` (usable bytes of a core), ``cores``, and
    ``calibration="none"`` to leave the fitted values out; ``overrides`` are dotted keys of the file
    (``{"queue.lx_ld_sfu.depth": 8}``). Raises :class:`UnknownMachine` and :class:`MachineFileError`.
    """
    text, origin = _read(name)
    builder = _Builder(_parsed(text, origin), origin)
    wanted = str(settings.pop("calibration", "fitted"))
    if wanted not in ("fitted", "none"):
        raise MachineFileError(f"there is no calibration {wanted}", remedy="it is fitted or none")
    fitted = _read_calibration(name) if wanted == "fitted" else None
    if fitted is not None:
        builder.calibrate(_parsed(*fitted), fitted[1])
    return builder.build({**settings, **(overrides or {})})


def loads(text: str, **settings: object) -> Machine:
    """The machine that ``text`` describes."""
    return _Builder(_parsed(text, "the text"), "text").build(settings)


def _parsed(text: str, origin: str) -> Table:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MachineFileError(f"{origin} is not TOML: {error}") from error


def _installed() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for package in resources.files("ktir.backends").iterdir():
        data = package.joinpath("data")
        if package.is_dir() and data.is_dir():
            found |= {file.name[:-5]: file for file in data.iterdir() if file.name.endswith(".toml")}
    return found


def _descriptions() -> dict[str, Any]:
    return {name: file for name, file in _installed().items() if not name.endswith(".calib")}


def _read_calibration(name: str | Path) -> tuple[str, str] | None:
    """Text and name of the overlay beside a description, if there is one."""
    path = Path(name)
    if path.suffix == ".toml":
        beside = path.with_suffix(".calib.toml")
        return (beside.read_text(encoding="utf-8"), str(beside)) if beside.is_file() else None
    file = _installed().get(f"{name}.calib")
    return (file.read_text(encoding="utf-8"), f"{name}.calib") if file is not None else None


def _read(name: str | Path) -> tuple[str, str]:
    path = Path(name)
    if path.suffix == ".toml":
        try:
            return path.read_text(encoding="utf-8"), str(path)
        except OSError as error:
            raise UnknownMachine(f"cannot read {path}: {error.strerror}") from error
    installed = _descriptions()
    if str(name) not in installed:
        raise UnknownMachine(f"no machine is called {name}", remedy=f"known: {', '.join(sorted(installed))}")
    return installed[str(name)].read_text(encoding="utf-8"), str(name)


class _Builder:
    """Turns the table of a file into a :class:`Machine`; holds what has been read so far."""

    def __init__(self, table: Table, origin: str) -> None:
        self.table, self.origin = table, origin
        self.provenance: dict[str, Provenance] = {}

    def fail(self, message: str, remedy: str | None = None) -> MachineFileError:
        return MachineFileError(f"{self.origin}: {message}", remedy=remedy)

    def calibrate(self, overlay: Table, origin: str) -> None:
        """Replaces values by those of an overlay of fitted ones."""
        if not overlay.keys() <= CALIBRATION or overlay.get("schema") != SCHEMA_VERSION:
            raise MachineFileError(f"{origin}: expected schema {SCHEMA_VERSION} and {', '.join(sorted(CALIBRATION))}")
        if overlay.get("machine") != self.table.get("name"):
            raise MachineFileError(f"{origin}: it is for {overlay.get('machine')}, not for {self.table.get('name')}")
        self._sub("sources").update(overlay.get("sources", {}))
        for dotted, value in cast("Table", overlay.get("set", {})).items():
            self._place(dotted, value)

    def build(self, settings: Mapping[str, object]) -> Machine:
        self._check_top()
        presets, overrides = self._split_settings(settings)
        self._apply_presets(presets)
        self._apply_overrides(overrides)
        read = self._sections
        clock = self._section("clock.core", self._sub("clock")["core"], CLOCK)
        limits = self._section("limits", self._sub("limits"), LIMITS)
        machine = Machine(
            name=cast("str", self.table["name"]),
            description=cast("str", self.table.get("description", "")),
            clock=Clock(float(clock["ghz"]), clock["ticks_per_cycle"]),
            dtypes=self._dtypes(),
            spaces=self._spaces(),
            scopes={name: Scope(name, keys["parent"], keys["count"]) for name, keys in read("scope", SCOPE)},
            memories={name: self._memory(name, keys) for name, keys in read("memory", MEMORY)},
            units={name: self._unit(name, keys) for name, keys in read("unit", UNIT)},
            queues={
                name: Queue(name, keys["from"], keys["to"], keys["width"], keys["depth"], keys["latency"])
                for name, keys in read("queue", QUEUE)
            },
            nets={name: self._net(name, keys) for name, keys in read("net", NET)},
            presets=presets,
            provenance=self.provenance,
            host_gbs=float(self._section("host", self._sub("host"), HOST)["pcie_gbs"]),
            program_bytes=limits["program_bytes"],
            loop_count_limit=limits.get("loop_count", 0),
        )
        self._check_machine(machine)
        return machine

    # ----------------------------------------------------------------------------------------------- presets, overrides

    def _check_top(self) -> None:
        unknown = set(self.table) - TOP_LEVEL
        if unknown:
            raise self.fail(f"unknown sections {sorted(unknown)}")
        if self.table.get("schema") != SCHEMA_VERSION:
            raise self.fail(f"schema {self.table.get('schema')} is not {SCHEMA_VERSION}, the one this version reads")
        for key in ("name", "sources", "clock", "dtype", "space", "scope", "memory", "unit", "host", "limits"):
            if key not in self.table:
                raise self.fail(f"section {key} is missing")

    def _sub(self, name: str) -> Table:
        section = self.table.get(name, {})
        if not isinstance(section, dict):
            raise self.fail(f"{name} is not a section")
        return cast("Table", section)

    def _split_settings(self, settings: Mapping[str, object]) -> tuple[dict[str, str], dict[str, object]]:
        groups = self._sub("preset")
        chosen = {group: str(keys.get("default")) for group, keys in groups.items()}
        chosen |= {group: str(choice) for group, choice in settings.items() if group in groups}
        rest = {key: value for key, value in settings.items() if key not in groups}
        if "scratchpad" in rest:
            local = self._sub("space")["ct_local"]
            usable = parse_bytes(cast("str | int", rest.pop("scratchpad")))
            size = self._sub("memory")[local]["size"]["v"]
            rest |= {f"memory.{local}.usable": usable, f"memory.{local}.size": max(usable, parse_bytes(size))}
        return chosen, {_SHORT_NAMES.get(key, key): value for key, value in rest.items()}

    def _apply_presets(self, presets: Mapping[str, str]) -> None:
        for group, choice in presets.items():
            choices = self._sub("preset")[group].get("choices", {})
            if choice not in choices:
                raise self.fail(f"preset {group} has no choice {choice}", remedy=f"it has {', '.join(choices)}")
            for dotted, value in choices[choice].items():
                self._place(dotted, value)

    def _apply_overrides(self, overrides: Mapping[str, object]) -> None:
        for dotted, value in overrides.items():
            self._place(dotted, {"v": value, "src": "override", "conf": "assumed"})

    def _place(self, dotted: str, value: object) -> None:
        *way, last = dotted.split(".")
        section = self.table
        for name in way:
            if not isinstance(section.get(name), dict):
                raise self.fail(f"there is no section for {dotted}")
            section = cast("Table", section[name])
        if last not in section:
            raise self.fail(f"there is no value {dotted} to set")
        section[last] = value

    # --------------------------------------------------------------------------------------------------------- sections

    def _sections(self, group: str, schema: Section) -> list[tuple[str, Table]]:
        return [(name, self._section(f"{group}.{name}", keys, schema)) for name, keys in self._sub(group).items()]

    def _section(self, path: str, keys: object, schema: Section) -> Table:
        if not isinstance(keys, dict):
            raise self.fail(f"{path} is not a section")
        found: Table = {}
        for key, raw in cast("Table", keys).items():
            if key in schema.structure:
                if not isinstance(raw, schema.structure[key]):
                    raise self.fail(f"{path}.{key}: expected {schema.structure[key].__name__}, got {raw!r}")
                found[key] = raw
            elif key in schema.values:
                found[key] = self._value(f"{path}.{key}", raw, schema.values[key], zero=key in schema.may_be_zero)
            elif not (path.startswith("unit.") and key == "issues"):
                raise self.fail(f"unknown key {path}.{key}")
        missing = (schema.structure.keys() | schema.values.keys()) - found.keys() - schema.optional
        if missing:
            raise self.fail(f"{path} lacks {sorted(missing)}")
        return found

    def _value(self, path: str, raw: object, kind: ValueKind, *, zero: bool) -> Any:
        if not isinstance(raw, dict) or not {"v", "src", "conf"} <= cast("Table", raw).keys():
            raise self.fail(f"{path} has no source and confidence", remedy="write { v = .., src = .., conf = .. }")
        value = cast("Table", raw)
        unknown = value.keys() - {"v", "src", "conf", "note"}
        if unknown:
            raise self.fail(f"unknown key {path}.{min(unknown)}")
        self._record(path, value)
        return self._number(path, value["v"], kind, zero=zero)

    def _record(self, path: str, value: Table) -> None:
        source, confidence = value.get("src"), value.get("conf")
        sources = self._sub("sources")
        if not isinstance(source, str) or not isinstance(confidence, str):
            raise self.fail(f"{path}: src and conf are names, got {source!r} and {confidence!r}")
        if source != "override" and source not in sources:
            raise self.fail(f"{path}: source {source!r} is not listed in [sources]")
        if confidence not in get_args(Confidence):
            raise self.fail(f"{path}: confidence {confidence!r} is none of {', '.join(get_args(Confidence))}")
        title = str(sources.get(source, source))
        self.provenance[path] = Provenance(title, cast("Confidence", confidence), str(value.get("note", "")))

    def _number(self, path: str, value: object, kind: ValueKind, *, zero: bool) -> Any:
        if kind == "bytes" and isinstance(value, str | int) and not isinstance(value, bool):
            return self._in_range(path, parse_bytes(value), zero=zero)
        if kind == "integer" and isinstance(value, int) and not isinstance(value, bool):
            return self._in_range(path, value, zero=zero)
        if kind == "number" and isinstance(value, int | float) and not isinstance(value, bool):
            return self._in_range(path, value, zero=zero)
        if kind == "table" and isinstance(value, dict):
            entries = cast("Table", value)
            return {
                name: self._number(f"{path}.{name}", entry, "number", zero=False) for name, entry in entries.items()
            }
        raise self.fail(f"{path}: expected {kind}, got {value!r}")

    def _in_range(self, path: str, value: float, *, zero: bool) -> float:
        if value < 0:
            raise self.fail(f"{path} is negative")
        if not value and not zero:
            raise self.fail(
                f"{path} is zero", remedy="a machine without it leaves the key out, where it may be left out"
            )
        if not value <= MOST:
            raise self.fail(f"{path} is {value}, beyond {MOST}")
        if path.rpartition(".")[2] in INSTANCES and value > MOST_INSTANCES:
            raise self.fail(f"{path} is {value}, of {MOST_INSTANCES} at most")
        return value

    def _defaulted(self, group: str) -> Table:
        """A section whose entries share one source: its entries without the provenance keys."""
        keys = self._sub(group)
        self._record(group, keys)
        return {name: entry for name, entry in keys.items() if name not in ("src", "conf", "note")}

    def _dtypes(self) -> dict[str, ElementType]:
        found: dict[str, ElementType] = {}
        for name, entry in self._defaulted("dtype").items():
            if (
                not isinstance(entry, dict)
                or not cast("Table", entry).keys() <= {"bits", "rate_as"}
                or "bits" not in entry
            ):
                raise self.fail(f"dtype.{name}: expected bits and, optionally, rate_as")
            keys = cast("Table", entry)
            bits = self._number(f"dtype.{name}.bits", keys["bits"], "integer", zero=False)
            found[name] = ElementType(name, bits, str(keys.get("rate_as", name)))
        return found

    def _spaces(self) -> dict[str, str]:
        spaces = {name: str(memory) for name, memory in self._defaulted("space").items()}
        if spaces.keys() != {"global", "ct_local"}:
            raise self.fail("space: expected exactly global and ct_local")
        return spaces

    def _memory(self, name: str, keys: Table) -> Memory:
        steps = keys.pop("request_ns", {})
        if not all(count.isdecimal() for count in steps):
            raise self.fail(f"memory.{name}.request_ns: expected numbers of cores, got {', '.join(steps)}")
        requests = sorted((int(count), float(time)) for count, time in steps.items())
        self._one_of(f"memory.{name}.kind", keys["kind"], get_args(MemoryKind))
        return Memory(name=name, usable=keys.pop("usable", keys["size"]), request_ns=tuple(requests), **keys)

    def _unit(self, name: str, keys: Table) -> Unit:
        issues = self._sub("unit")[name].get("issues", {})
        if not isinstance(issues, dict):
            raise self.fail(f"unit.{name}.issues is not a section")
        issues = cast("Table", issues)
        if issues:
            self._record(f"unit.{name}.issues", issues)
        counts = {
            op: self._number(f"unit.{name}.issues.{op}", entry, "integer", zero=True)
            for op, entry in issues.items()
            if op not in ("src", "conf", "note")
        }
        whole = {
            row: {
                dtype: self._number(f"unit.{name}.{row}.{dtype}", rate, "integer", zero=False)
                for dtype, rate in keys.pop(row, {}).items()
            }
            for row in ("mac_per_cycle", "lanes")
        }
        self._one_of(f"unit.{name}.kind", keys["kind"], get_args(UnitKind))
        for key in ("from", "to", "ops"):
            if not all(isinstance(place, str) for place in keys[key]):
                raise self.fail(f"unit.{name}.{key}: expected names, got {keys[key]!r}")
        for key in ("rows_per_pass", "load_bytes_per_cycle") if whole["mac_per_cycle"] else ():
            if key not in keys:
                raise self.fail(f"unit.{name}.{key} is missing: the unit multiplies")
        return Unit(
            name=name,
            sources=tuple(keys.pop("from")),
            targets=tuple(keys.pop("to")),
            ops=tuple(keys.pop("ops")),
            issues=counts,
            **whole,
            **keys,
        )

    def _net(self, name: str, keys: Table) -> Net:
        self._one_of(f"net.{name}.kind", keys["kind"], get_args(Topology))
        if (keys["kind"] == "mesh") != bool(keys.get("columns")):
            raise self.fail(f"net.{name}: a mesh, and nothing else, has columns")
        if keys["directions"] not in (1, 2):
            raise self.fail(f"net.{name}.directions: {keys['directions']} is neither 1 nor 2")
        return Net(name=name, **keys)

    def _one_of(self, path: str, value: object, choices: tuple[str, ...]) -> None:
        if value not in choices:
            raise self.fail(f"{path}: {value!r} is none of {', '.join(choices)}")

    # ------------------------------------------------------------------------------------------------------ consistency

    def _check_machine(self, machine: Machine) -> None:
        places = {*machine.memories, *machine.units, *machine.nets}
        mentioned = {place for unit in machine.units.values() for place in (*unit.sources, *unit.targets)}
        mentioned |= {end for queue in machine.queues.values() for end in (queue.source, queue.target)}
        mentioned |= set(machine.spaces.values())
        if not mentioned <= places:
            raise self.fail(f"{sorted(mentioned - places)} are neither memory nor unit nor network")
        if not set(machine.spaces.values()) <= machine.memories.keys():
            raise self.fail("space: global and ct_local are memories")
        if not machine.global_memory.sustained_gbs:
            raise self.fail(f"memory.{machine.global_memory.name}.sustained_gbs is missing: it is the global space")
        if "core" not in machine.scopes:
            raise self.fail("scope.core is missing")
        scopes = {"device", *machine.scopes}
        used = {thing.scope for thing in (*machine.memories.values(), *machine.units.values())}
        if not used <= scopes:
            raise self.fail(f"unknown scopes {sorted(used - scopes)}")
        self._check_reachable(machine)
        self._check_peaks(machine)

    def _check_reachable(self, machine: Machine) -> None:
        for unit in machine.units.values():
            if unit.kind == "compute":
                machine.path(machine.global_memory.name, unit.name)
                machine.path(unit.name, machine.global_memory.name)

    def _check_peaks(self, machine: Machine) -> None:
        checks = self._section("check", self._sub("check"), CHECK).get("flop_per_cycle_core", {})
        for row, expected in checks.items():
            per_core = sum(
                2 * unit.mac_per_cycle.get(row, 0) * machine.instances(unit.name) // machine.cores
                for unit in machine.units.values()
            )
            if per_core != expected:
                raise self.fail(f"the matrix units do {per_core} {row} operations per cycle and core, not {expected}")
