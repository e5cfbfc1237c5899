"""Texts that people's tools emit although the dialect's definition has another word for it.

Such a text is accepted with a warning that names the rule it breaks; in strict mode the same text is an error. Where a
text is read by a parser that knows nothing of this, it is accepted in silence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator


class ToleratesSpellings(ABC):
    """A parser that decides what happens to a tolerated spelling."""

    @abstractmethod
    def tolerate(self, rule: str, message: str, position: int) -> None:
        """``rule`` is broken at ``position``: note a warning, or raise in strict mode."""


class HasOldForm(ABC):
    """An operation whose generic form may hold what is only tolerated."""

    @abstractmethod
    def modernise(self) -> Iterator[tuple[str, str]]:
        """Gives the operation its present attributes; yields each rule that is broken, and what it says.

        Raises :class:`xdsl.utils.exceptions.VerifyException` where the old form has no new one.
        """


def tolerate(parser: object, rule: str, message: str, position: int) -> None:
    """Reports a tolerated spelling to ``parser``, if it wants to know."""
    if isinstance(parser, ToleratesSpellings):
        parser.tolerate(rule, message, position)
