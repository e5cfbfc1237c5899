"""Texts that people's tools emit although the dialect's definition has another word for it.

Such a text is accepted with a warning that names the rule it breaks; in strict mode the same text is an error. Where a
text is read by a parser that knows nothing of this, it is accepted in silence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod


class ToleratesSpellings(ABC):
    """A parser that decides what happens to a tolerated spelling."""

    @abstractmethod
    def tolerate(self, rule: str, message: str, position: int) -> None:
        """``rule`` is broken at ``position``: note a warning, or raise in strict mode."""


class HasOldForm(ABC):
    """An operation whose generic form had other attributes once."""

    @abstractmethod
    def modernise(self) -> tuple[str, str] | None:
        """Gives the operation its present attributes; returns the rule and what it says, or None if nothing was old.

        Raises :class:`xdsl.utils.exceptions.VerifyException` where the old form has no new one.
        """


def tolerate(parser: object, rule: str, message: str, position: int) -> None:
    """Reports a tolerated spelling to ``parser``, if it wants to know."""
    if isinstance(parser, ToleratesSpellings):
        parser.tolerate(rule, message, position)
