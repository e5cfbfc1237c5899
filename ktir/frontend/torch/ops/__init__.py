"""Handlers of operators by class: each file exports one table from ATen overload name to handler."""
