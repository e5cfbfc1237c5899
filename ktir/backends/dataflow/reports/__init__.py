"""Reports of a timed run: text for a terminal, JSON, one self-contained HTML page, and a trace for Perfetto."""
