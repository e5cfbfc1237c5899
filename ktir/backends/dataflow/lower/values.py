"""Integers of a kernel as they look once the launch is known: one number per core, plus what loops add to it.

All cores are lowered together. A scalar of the kernel becomes a *core value*: a constant for each core and, for each
loop variable it depends on, a factor for each core. Tile ids, bounds and base addresses are constants this way; only
what really varies in a loop stays an expression.

Words. atom: what varies inside a core, a loop variable, or the quotient or remainder of a core value by a positive
constant.
uniform: the same on all cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

PerCore: TypeAlias = NDArray[np.int64]
"""One integer per core of the machine."""


class NotAffine(Exception):
    """A product, quotient or comparison that cannot be expressed by core values; the caller names the operation."""


@dataclass(eq=False, frozen=True)
class LoopVariable:
    """Counts the iterations of a loop from zero. ``trips`` is their number on each core."""

    name: str
    trips: PerCore


@dataclass(eq=False, frozen=True)
class Quotient:
    """``dividend`` divided by ``divisor``, rounded down."""

    dividend: CoreValue
    divisor: int


@dataclass(eq=False, frozen=True)
class Remainder:
    """What ``dividend`` leaves when divided by ``divisor``, from zero on."""

    dividend: CoreValue
    divisor: int


Atom: TypeAlias = LoopVariable | Quotient | Remainder


@dataclass(eq=False, frozen=True)
class CoreValue:
    """``constant + sum(terms[atom] * atom)`` on each core; no factor is zero on all cores."""

    constant: PerCore
    terms: Mapping[Atom, PerCore] = field(default_factory=dict[Atom, PerCore])

    @property
    def is_constant(self) -> bool:
        """Whether no loop changes it."""
        return not self.terms

    @property
    def uniform(self) -> int | None:
        """The number that it is everywhere and always, or None."""
        if self.terms or (self.constant != self.constant[0]).any():
            return None
        return int(self.constant[0])

    def __add__(self, other: CoreValue | int) -> CoreValue:
        if isinstance(other, int):
            return CoreValue(self.constant + other, self.terms)
        terms = dict(self.terms)
        for atom, factor in other.terms.items():
            terms[atom] = terms[atom] + factor if atom in terms else factor
        return CoreValue(self.constant + other.constant, _without_zeros(terms))

    def __neg__(self) -> CoreValue:
        return CoreValue(-self.constant, {atom: -factor for atom, factor in self.terms.items()})

    def __sub__(self, other: CoreValue | int) -> CoreValue:
        return self + (-other)

    def __mul__(self, other: CoreValue | int) -> CoreValue:
        """Raises :class:`NotAffine` where both factors vary in loops."""
        if isinstance(other, CoreValue) and not other.is_constant:
            if not self.is_constant:
                raise NotAffine("a product of two values that vary in loops")
            return other * self
        by = other if isinstance(other, int) else other.constant
        return CoreValue(self.constant * by, _without_zeros({a: f * by for a, f in self.terms.items()}))

    def floor_divide(self, divisor: int) -> CoreValue:
        """The quotient rounded down by a positive ``divisor``, exact term by term where possible."""
        if all((factor % divisor == 0).all() for factor in self.terms.values()):
            return CoreValue(self.constant // divisor, {a: f // divisor for a, f in self.terms.items()})
        return CoreValue(np.zeros_like(self.constant), {Quotient(self, divisor): np.ones_like(self.constant)})

    def modulo(self, divisor: int) -> CoreValue:
        """The remainder of :meth:`floor_divide`."""
        if all((factor % divisor == 0).all() for factor in self.terms.values()):
            return CoreValue(self.constant % divisor)
        return CoreValue(np.zeros_like(self.constant), {Remainder(self, divisor): np.ones_like(self.constant)})

    def varies_with(self, variable: LoopVariable) -> bool:
        """Whether a quotient or remainder changes with ``variable``, so that its factor does not tell all."""
        return any(
            variable in atom.dividend.terms or atom.dividend.varies_with(variable)
            for atom in self.terms
            if not isinstance(atom, LoopVariable)
        )

    def minimum(self) -> PerCore:
        """A lower bound on each core, exact where each loop variable occurs once."""
        return self._extreme(np.minimum)

    def maximum(self) -> PerCore:
        """An upper bound on each core; see :meth:`minimum`."""
        return self._extreme(np.maximum)

    def _extreme(self, pick: np.ufunc) -> PerCore:
        result = self.constant.copy()
        for atom, factor in self.terms.items():
            low, high = _range_of(atom)
            result += pick(factor * low, factor * high)
        return result

    def masked(self, active: NDArray[np.bool_]) -> CoreValue:
        """The same on the ``active`` cores and zero elsewhere, where nobody asks for it."""
        return CoreValue(np.where(active, self.constant, 0), self.terms)


def _without_zeros(terms: Mapping[Atom, PerCore]) -> dict[Atom, PerCore]:
    return {atom: factor for atom, factor in terms.items() if factor.any()}


def _range_of(atom: Atom) -> tuple[PerCore, PerCore]:
    if isinstance(atom, LoopVariable):
        return np.zeros_like(atom.trips), np.maximum(atom.trips - 1, 0)
    low, high = atom.dividend.minimum(), atom.dividend.maximum()
    if isinstance(atom, Quotient):
        return low // atom.divisor, high // atom.divisor
    in_one_run = low // atom.divisor == high // atom.divisor
    step = np.gcd.reduce([np.full_like(low, atom.divisor), *atom.dividend.terms.values()])
    least = atom.dividend.constant % step
    return (
        np.where(in_one_run, low % atom.divisor, least),
        np.where(in_one_run, high % atom.divisor, atom.divisor - step + least),
    )


def constant(value: int, cores: int) -> CoreValue:
    """``value`` on each of ``cores`` cores."""
    return CoreValue(np.full(cores, value, dtype=np.int64))


def per_core(values: PerCore) -> CoreValue:
    """The number of each core."""
    return CoreValue(np.asarray(values, dtype=np.int64))


def variable(atom: LoopVariable) -> CoreValue:
    """The loop variable itself."""
    return CoreValue(np.zeros_like(atom.trips), {atom: np.ones_like(atom.trips)})
