"""System: the problem that every engine solves. Cells with their mechanisms, and the sums between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from unround.errors import InputError
from unround.mechanisms import Exact, Mechanism, Window

_SHOWN = 30
"""Most parts of a sum that an error lists."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One count: its name, its published value (None: not published), and the mechanism that produced it."""

    name: str
    published: int | None
    mechanism: Mechanism

    @property
    def given(self) -> bool:
        """Whether the published value is the true one, so that there is nothing to infer."""
        return isinstance(self.mechanism, Exact)


@dataclass(frozen=True, slots=True)
class Sum:
    """One additive fact: the parts exactly partition the total. One part says that two cells hold the same count."""

    total: str
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.total} = {' + '.join(self.parts)}"


@dataclass(frozen=True)
class System:
    """Cells, and the sums between them.

    Parameters
    ----------
    cells : tuple of Cell
        Every cell once; names are unique.
    sums : tuple of Sum
        Each names its cells; none may use a cell twice. Repeated sums count once.

    Raises
    ------
    InputError
        If a name is used twice, a sum names an unknown cell or uses one twice, or a published value cannot come from
        its mechanism.

    Examples
    --------
    >>> from unround import parse
    >>> system = parse("48! = 20 + 20 + 20")
    >>> [cell.name for cell in system.cells], str(system.sums[0])
    (['total', 'part1', 'part2', 'part3'], 'total = part1 + part2 + part3')
    """

    cells: tuple[Cell, ...]
    sums: tuple[Sum, ...]
    index: dict[str, int] = field(compare=False, repr=False)
    """Each cell's position by its name."""
    equations: tuple[tuple[int, tuple[int, ...]], ...] = field(compare=False, repr=False)
    """The sums as positions: (total, parts)."""

    def __init__(self, cells: Iterable[Cell], sums: Iterable[Sum]) -> None:
        cells = tuple(cells)
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "sums", tuple(dict.fromkeys(sums)))
        object.__setattr__(self, "index", {cell.name: i for i, cell in enumerate(cells)})
        if not self.cells:
            raise InputError('there are no cells. Try "48! = 20 + 20 + 20".')
        if len(self.index) < len(self.cells):
            twice = next(name for name, times in Counter(cell.name for cell in self.cells).items() if times > 1)
            raise InputError(f"two cells are named {twice!r}; names must be unique.")
        for one in self.sums:
            check_sum(one, self.index)
        at = self.index
        equations = tuple([(at[one.total], tuple([at[part] for part in one.parts])) for one in self.sums])
        object.__setattr__(self, "equations", equations)

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """The true counts that each cell's published value leaves possible, before any sum is used."""
        return tuple([cell.mechanism.window(cell.published) for cell in self.cells])


def _short(one: Sum) -> str:
    """Return a sum as text, shortened to fit a line."""
    few = Sum(one.total, one.parts[:_SHOWN])
    return str(few) if len(one.parts) <= _SHOWN else f"{few} + … ({len(one.parts):,} parts)"


def check_sum(one: Sum, known: Iterable[str]) -> None:
    """Raise InputError unless the sum has parts, and names known cells, each once."""
    if not one.parts:
        raise InputError(f"the sum for {one.total!r} has no parts.")
    names = (one.total, *one.parts)
    for name in names:
        if name not in known:
            raise InputError(f"the sum {_short(one)} names {name!r}, but there is no such cell.")
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise InputError(f"the sum {_short(one)} uses {twice!r} twice; the parts of a total must not overlap.")
