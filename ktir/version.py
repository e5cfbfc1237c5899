"""Versions: of this tool, of the KTIR specification it follows, and of each dialect's text."""

from __future__ import annotations

from collections.abc import Mapping

VERSION = "0.1.0"
SPECIFICATION = "RFC 0682 as amended to 2026-08 (memory_space spelling, inter-tile operations)"
DIALECTS: Mapping[str, str] = {"ktdp": "2026-08", "ktg": "1", "dfp": "1"}
PACKAGE_FORMAT = 1
