"""Runs one kernel once on the public interpreter ktir-cpu and times it. For that interpreter's own Python and checkout:

    PYTHON peer_worker.py CHECKOUT KERNEL.ktir INPUTS.npz FUNCTION OUTPUT RESULT.npy

Prints the CPU seconds from arrays in to arrays out, and stores the output. Needs numpy and the
checkout, nothing of ktir.
"""

import contextlib
import io
import os
import sys
import time
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"


def main(checkout: str, kernel: str, inputs: str, function: str, output: str, result: str) -> None:
    sys.path.insert(0, checkout)
    import ktir_cpu  # pyright: ignore[reportMissingImports]
    import numpy as np

    interpreter = ktir_cpu.KTIRInterpreter()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    interpreter.load(Path(kernel).read_text())  # pyright: ignore[reportUnknownMemberType]
    arguments = dict(np.load(inputs))
    with contextlib.redirect_stdout(io.StringIO()):
        began = time.process_time()
        found = interpreter.execute_function(function, **arguments)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        seconds = time.process_time() - began
    np.save(result, found[output])  # pyright: ignore[reportUnknownArgumentType]
    print(seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
