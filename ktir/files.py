"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from ktir.errors import FileUnusable


def write_whole(path: Path, data: bytes, *, inputs: Iterable[Path] = ()) -> Path:
    """Writes ``data`` beside ``path`` under another name, then renames it.

    Raises :class:`FileUnusable` when ``path`` is one of ``inputs``, or cannot be written.
    """
    refuse_input(path, inputs)
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
        raise FileUnusable(f"cannot write {path}: {error.strerror or error}") from None
    return path


def refuse_input(path: Path, inputs: Iterable[Path]) -> None:
    """Raises :class:`FileUnusable` when writing ``path`` would overwrite one of ``inputs``."""
    for given in inputs:
        if path.exists() and given.exists() and path.samefile(given):
            raise FileUnusable(f"{path} is an input of this run", remedy="write the output to another file")


def refuse_outputs(paths: Sequence[Path], inputs: Iterable[Path] = ()) -> None:
    """Raises :class:`FileUnusable` before the work where writing ``paths`` after it would fail or lose something.

    That is where one of them is an input, a directory or another of them, or stands where nothing can be written.
    """
    given = list(inputs)
    for number, path in enumerate(paths):
        refuse_input(path, given)
        if path.is_dir():
            raise FileUnusable(f"{path} is a directory", remedy="name a file in it")
        if any(path.resolve() == other.resolve() for other in paths[:number]):
            raise FileUnusable(f"{path} is to be written twice", remedy="give each output a file of its own")
        around = next(parent for parent in path.resolve().parents if parent.exists())
        if not around.is_dir() or not os.access(around, os.W_OK):
            raise FileUnusable(f"cannot write {path}: {around} is no directory that can be written to")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
