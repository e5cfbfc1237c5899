"""ktir: compile, check, run and time KernelTile IR on a CPU. See :mod:`ktir.api` for the public functions."""
