"""Conformance: cases that say in their own text what a kernel gets and what it must give."""
