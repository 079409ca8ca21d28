"""The three ways in which unround can fail.

`InputError` is about what the user gave: it says where, and what to do. `Infeasible` is about the data: no true counts
fit what was published. `InternalError` is a fault in unround itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable

WIDEST = 200
"""Characters of a line that are shown with an error."""


class UnroundError(Exception):
    """The root of every error that unround raises on purpose."""


class InputError(UnroundError):
    """Something given to unround cannot be used.

    Parameters
    ----------
    message : str
        What is wrong and what to do about it, in one or two sentences.
    source : str, optional
        The text that was being read; shown with a caret under the offending spot.
    line, column : int, optional
        Where in `source`, both counted from 1.
    where : str, optional
        What to call the source: a file's name, or "<text>".

    Examples
    --------
    >>> print(InputError("a sum needs parts.", source="48! =", line=1, column=6))
    <text>, line 1, column 6: a sum needs parts.
        48! =
             ^
    """

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        line: int | None = None,
        column: int | None = None,
        where: str = "<text>",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.source = source
        self.line = line
        self.column = column
        self.where = where

    def __str__(self) -> str:
        if self.line is None:
            return self.message
        head = f"{self.where}, line {self.line}, column {self.column or 1}: {self.message}"
        if self.source is None:
            return head
        lines = self.source.splitlines()
        shown = lines[self.line - 1] if self.line <= len(lines) else ""
        if not shown.strip():
            return head
        column = self.column or 1
        if len(shown) > WIDEST:
            # Of a line of a million characters, show those around the spot.
            cut = max(0, min(column - 1 - WIDEST // 2, len(shown) - WIDEST))
            shown, column = shown[cut : cut + WIDEST], column - cut
        # Tabs stay tabs in the caret's line, so that the two lines keep their alignment.
        lead = "".join("\t" if c == "\t" else " " for c in shown[: column - 1]).ljust(column - 1)
        return f"{head}\n    {shown}\n    {lead}^"


class ArgumentError(InputError):
    """Arguments that do not go together; in `message`, their names are in braces, so that others can be shown instead.

    Examples
    --------
    >>> problem = ArgumentError("{release} and {rounded_total} exclude each other.")
    >>> print(problem)
    release and rounded_total exclude each other.
    >>> print(problem.renamed(lambda name: "--" + name.replace("_", "-")))
    --release and --rounded-total exclude each other.
    """

    def __init__(self, message: str) -> None:
        self._template = message
        super().__init__(self.renamed(str))

    def renamed(self, shown: Callable[[str], str]) -> str:
        """Return the message with every argument as `shown` names it."""
        return renamed(self._template, shown)


def renamed(template: str, shown: Callable[[str], str]) -> str:
    """Return a text with every name in braces as `shown` has it."""
    return re.sub(r"\{(\w+)\}", lambda name: shown(name[1]), template)


class UnknownFormat(InputError):  # noqa: N818 - it says what the file is: one that has yet to be described
    """A table in no format that is known by its looks. It can still be described."""


class Infeasible(UnroundError):  # noqa: N818 - it reads as a verdict on the data, not as an error of the program
    """No true counts fit what was published."""


class InternalError(UnroundError):
    """A fault in unround itself: please report it with the input that caused it."""
