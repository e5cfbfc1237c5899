"""Texts that the tests of the dialect share."""

from pathlib import Path

HERE = Path(__file__).parent
EVERY_OPERATION = (HERE / "every_operation.ktir").read_text()
IN_USE = (HERE / "in_use.ktir").read_text()
LOCATED = (HERE / "located.mlir").read_text()
TOLERATED = {path.stem: path.read_text() for path in sorted((HERE / "tolerated").glob("*.ktir"))}
"""By rule, a text that breaks it and no other."""
