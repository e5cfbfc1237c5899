"""How lit runs the IR tests: every text below this folder, with the tools of this environment first on the path."""

import os
import sys
from pathlib import Path

import lit.formats

config.name = "ktir"  # noqa: F821 - lit puts `config` into this file
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir", ".ktir"]  # noqa: F821
config.test_source_root = str(Path(__file__).parent)  # noqa: F821
config.test_exec_root = str(Path(__file__).parents[2] / "build" / "lit")  # noqa: F821
config.environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # noqa: F821
