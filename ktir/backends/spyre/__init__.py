"""The Spyre target: its description is in ``data/``."""
