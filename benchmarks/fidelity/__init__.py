"""How well simulated times agree with published ones: ``python -m benchmarks.fidelity``.

Each family of published results has a module that writes the dataflow program of a measurement as it ran, as far as
its split, placement, alternation and loads were published; never a plan of this project's own. ``rows`` lists the
published values with their sources, ``campaign`` times the programs, ``tables`` prints, ``__main__`` is the command.
docs/fidelity.md says what the comparison means.
"""
