"""Saved programs: one file with the IR as text, the tensors, and a manifest.

A package is an uncompressed zip archive with ``manifest.json``, ``module.ktir`` (level K), ``graph.ktir`` (level G, for
reading), ``sources.json`` (the lines of the model that operations came from) and ``tensors.safetensors``. Loading
parses text and copies bytes; it runs nothing from the file and needs neither torch nor the model's code. The manifest
holds a digest of each part; a part that does not match is an error.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import safetensors
import safetensors.numpy

from ktir.array_files import decode_safetensors
from ktir.arrays import Array
from ktir.errors import FileUnusable, PackageError
from ktir.files import write_whole
from ktir.location import Location
from ktir.module import Module
from ktir.signature import Signature
from ktir.version import PACKAGE_FORMAT, SPECIFICATION, VERSION

if TYPE_CHECKING:
    from ktir.machine.description import Machine
    from ktir.program import Program

MANIFEST, MODULE, GRAPH, TENSORS = "manifest.json", "module.ktir", "graph.ktir", "tensors.safetensors"
SOURCES = "sources.json"
Place = tuple[str, int, int]
"""File, line and column of a model."""


@dataclass(frozen=True)
class Content:
    """What a package holds. ``parameters`` names the tensors that are arguments of ``@main``.

    ``sources``: the place in the model that each operation of the module came from, in order of a walk, where known.
    """

    name: str
    module: str
    graph: str | None
    machine: Mapping[str, Any]
    plan: Any
    operators: Mapping[str, int]
    parameters: Mapping[str, Array]
    signature: Signature
    sources: tuple[Place | None, ...] = ()


def save_package(path: Path, content: Content) -> Path:
    """Writes the package whole or not at all."""
    tensors = {**content.signature.tensors, **content.parameters}
    parts = {MODULE: content.module.encode(), TENSORS: safetensors.numpy.save(_plain(tensors))}
    if content.graph is not None:
        parts[GRAPH] = content.graph.encode()
    if any(content.sources):
        parts[SOURCES] = json.dumps(_packed(content.sources), separators=(",", ":")).encode()
    manifest = {
        "format": PACKAGE_FORMAT,
        "tool": VERSION,
        "specification": SPECIFICATION,
        "name": content.name,
        "machine": dict(content.machine),
        "parameters": list(content.parameters),
        "operators": dict(content.operators),
        "plan": content.plan,
        "signature": content.signature.to_json(),
        "digests": {name: hashlib.sha256(data).hexdigest() for name, data in parts.items()},
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in {MANIFEST: json.dumps(manifest, indent=1).encode(), **parts}.items():
            archive.writestr(zipfile.ZipInfo(name), data)  # a fixed date: equal programs give equal files
    return write_whole(path, buffer.getvalue())


def read_package(path: Path) -> Content:
    """Raises :class:`PackageError` for what is no package, is damaged, or has another format; :class:`FileUnusable`."""
    parts = _parts(path)
    manifest = _manifest(path, parts)
    for name, digest in manifest["digests"].items():
        if name not in parts or hashlib.sha256(parts[name]).hexdigest() != digest:
            raise PackageError(f"{path} is damaged: {name} is missing or not what was saved")
    if set(parts) - {MANIFEST} != set(manifest["digests"]):
        raise PackageError(f"{path} holds parts that its manifest does not know")
    tensors = _tensors(path, parts.get(TENSORS, b""))
    try:
        return Content(
            name=str(manifest["name"]),
            module=parts[MODULE].decode(),
            graph=parts[GRAPH].decode() if GRAPH in parts else None,
            machine=dict(manifest["machine"]),
            plan=manifest["plan"],
            operators=dict(manifest["operators"]),
            parameters={name: tensors[name] for name in manifest["parameters"]},
            signature=Signature.from_json(manifest["signature"], tensors),
            sources=_unpacked(json.loads(parts[SOURCES])) if SOURCES in parts else (),
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise PackageError(f"{path}: the manifest is incomplete: {error}") from None


def _packed(sources: Sequence[Place | None]) -> dict[str, Any]:
    """Each file once, each place as its number, line and column."""
    files = list(dict.fromkeys(place[0] for place in sources if place is not None))
    return {"files": files, "places": [place and [files.index(place[0]), *place[1:]] for place in sources]}


def _unpacked(data: Mapping[str, Any]) -> tuple[Place | None, ...]:
    """The inverse of :func:`_packed`."""
    files = [str(file) for file in data["files"]]
    places = cast("Sequence[Sequence[int] | None]", data["places"])
    return tuple(None if place is None else (files[place[0]], int(place[1]), int(place[2])) for place in places)


def load_package(path: Path, machine: Machine | None = None) -> Program:
    """The program that was saved, for ``machine`` or the one it was compiled for."""
    from ktir.api import parse
    from ktir.machine.loader import load as load_machine
    from ktir.program import Plan, Program

    content = read_package(path)
    recipe = content.machine
    return Program(
        name=content.name,
        module=_module(content, f"{path}:{MODULE}"),
        graph=_named(parse(content.graph), f"{path}:{GRAPH}") if content.graph is not None else None,
        machine=machine or load_machine(recipe["name"], dict(recipe["overrides"]), **recipe["settings"]),
        caller=content.signature,
        parameters=content.parameters,
        plan=Plan.from_json(content.plan),
        operators=content.operators,
    )


def _module(content: Content, file: str) -> Module:
    """The module, whose operations know their line in its text and that of the model."""
    from ktir.dialect.context import create_context
    from ktir.dialect.locations import location_attribute, location_of, with_text_place
    from ktir.dialect.text.parser import parse as parse_text

    module = parse_text(content.module, file, context=create_context()).module
    operations = list(module.walk())
    if content.sources and len(content.sources) != len(operations):
        raise PackageError(f"{file}: {len(operations)} operations have {len(content.sources)} places in the model")
    for op, source in zip(operations, content.sources, strict=False):
        place = location_of(op)
        if source is not None and place is not None:
            op.location = with_text_place(location_attribute(Location(*source)), place)
    return Module(module, content.module, file)


def _named(module: Module, file: str) -> Module:
    return Module(module.op, module.source, file)


def _plain(tensors: Mapping[str, Array]) -> dict[str, Array]:
    return {name: np.ascontiguousarray(tensor).reshape(tensor.shape) for name, tensor in tensors.items()}


def _parts(path: Path) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(path) as archive:
            return {entry.filename: archive.read(entry) for entry in archive.infolist()}
    except OSError as error:
        raise FileUnusable(f"cannot read {path}: {error.strerror or error}") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise PackageError(
            f"{path} is no package: {str(error)[:1].lower()}{str(error)[1:]}",
            remedy="give a file that ktir compile wrote; a KTIR text is timed by ktir run --time",
        ) from None


def _manifest(path: Path, parts: Mapping[str, bytes]) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads(parts[MANIFEST])
        made_by, found = manifest["tool"], manifest["format"]
        digests: dict[str, str] = manifest["digests"]
    except (KeyError, TypeError, ValueError):
        raise PackageError(f"{path} is no package: its manifest is missing or not understood") from None
    if found != PACKAGE_FORMAT:
        raise PackageError(
            f"{path} has format {found}, this version reads {PACKAGE_FORMAT}",
            remedy=f"it was made by ktir {made_by}; compile the model again",
        )
    return {**manifest, "digests": dict(digests)}


def _tensors(path: Path, data: bytes) -> dict[str, Array]:
    try:
        return decode_safetensors(data)
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        raise PackageError(f"{path}: the tensors are not understood: {error}") from None
