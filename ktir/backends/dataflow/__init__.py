"""The dataflow level: lowering to unit programs, their verifier, simulators and reports; knows no machine by name."""
