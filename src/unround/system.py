"""System: the problem that every engine solves. Cells with their mechanisms, the sums between them, and figures on them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from typing import Any, NamedTuple

from unround.errors import InputError
from unround.figures import Figure, FigureGrid, FigureKind, Group, Inequality
from unround.mechanisms import Exact, Mechanism, Window
from unround.mechanisms.base import window_of

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


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A rate, a mean or a median as it was published: taken to be computed from true counts, and rounded to its grid."""

    figure: Figure
    value: Fraction

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data: fractions as text, so that no digit is lost."""
        figure = self.figure
        return {
            "name": figure.name,
            "kind": figure.kind.value,
            "value": str(self.value),
            "universe": figure.universe,
            "numerator": figure.numerator,
            "groups": [
                {
                    "count": g.count,
                    "low": None if g.low is None else str(g.low),
                    "high": None if g.high is None else str(g.high),
                }
                for g in figure.groups
            ],
            "grid": [[str(start), str(step)] for start, step in figure.grid.steps],
            "per": str(figure.per),
        }

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> PublishedFigure:
        """Read what `to_json` returned."""
        groups = tuple(
            Group(g["count"], None if g["low"] is None else _read(g["low"]), None if g["high"] is None else _read(g["high"]))
            for g in kept["groups"]
        )
        grid = FigureGrid(tuple((_read(start), _read(step)) for start, step in kept["grid"]))
        figure = Figure(
            kept["name"], FigureKind(kept["kind"]), kept["universe"], kept["numerator"], groups, grid, _read(kept["per"])
        )
        return cls(figure, _read(kept["value"]))


def _read(text: str) -> Fraction:
    """Read a fraction; 1e3000000 is a number too, and takes minutes."""
    if not isinstance(text, str) or not re.fullmatch(r"-?[0-9]{1,18}(/[1-9][0-9]{0,17})?", text):
        raise InputError(f"{text!r} is not a fraction.")
    return Fraction(text)


class Row(NamedTuple):
    """An inequality in whole numbers: the sum of factors times cells, by position, is at most a number.

    `figure` and `which` say where it is from: the place of the figure, and of the inequality among those of the figure.
    """

    terms: tuple[tuple[int, int], ...]
    at_most: int
    figure: int
    which: int

    @property
    def cells(self) -> tuple[int, ...]:
        """The cells that it is about."""
        return tuple([cell for cell, _ in self.terms])


@dataclass(frozen=True)
class System:
    """Cells, the sums between them, and figures about them.

    Parameters
    ----------
    cells : tuple of Cell
        Every cell once; names are unique.
    sums : tuple of Sum
        Each names its cells; none may use a cell twice. Repeated sums count once.
    figures : tuple of PublishedFigure
        Each names its cells, and has a name of its own. Repeated figures count once.

    Raises
    ------
    InputError
        If a name is used twice, a sum or a figure names an unknown cell or a sum uses one twice, or a published value
        cannot come from its mechanism.

    Examples
    --------
    >>> from unround import parse
    >>> system = parse("48! = 20 + 20 + 20")
    >>> [cell.name for cell in system.cells], str(system.sums[0])
    (['total', 'part1', 'part2', 'part3'], 'total = part1 + part2 + part3')
    """

    cells: tuple[Cell, ...]
    sums: tuple[Sum, ...]
    figures: tuple[PublishedFigure, ...]
    index: dict[str, int] = field(compare=False, repr=False)
    """Each cell's position by its name."""
    equations: tuple[tuple[int, tuple[int, ...]], ...] = field(compare=False, repr=False)
    """The sums as positions: (total, parts)."""

    def __init__(self, cells: Iterable[Cell], sums: Iterable[Sum], figures: Iterable[PublishedFigure] = ()) -> None:
        cells = tuple(cells)
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "sums", tuple(dict.fromkeys(sums)))
        object.__setattr__(self, "figures", _each_once(figures))
        object.__setattr__(self, "index", {cell.name: i for i, cell in enumerate(cells)})
        if not self.cells:
            raise InputError('there are no cells. Try "48! = 20 + 20 + 20".')
        if len(self.index) < len(self.cells):
            twice = next(name for name, times in Counter(cell.name for cell in self.cells).items() if times > 1)
            raise InputError(f"two cells are named {twice!r}; names must be unique.")
        for added in self.sums:
            check_sum(added, self.index)
        for stated in self.figures:
            check_figure(stated.figure, self.index)
        if len({stated.figure.name for stated in self.figures}) < len(self.figures):
            times = Counter(stated.figure.name for stated in self.figures)
            twice = next(name for name in times if times[name] > 1)
            raise InputError(f"two figures are named {twice!r}; names must be unique.")
        at = self.index
        equations = tuple([(at[added.total], tuple([at[part] for part in added.parts])) for added in self.sums])
        object.__setattr__(self, "equations", equations)

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """The true counts that each cell's published value leaves possible, before any sum is used."""
        return tuple([window_of(cell.mechanism, cell.published) for cell in self.cells])

    @cached_property
    def known_sums(self) -> frozenset[Sum]:
        """The sums, to look one up."""
        return frozenset(self.sums)

    @cached_property
    def figure_named(self) -> dict[str, PublishedFigure]:
        """The figures, by their names."""
        return {stated.figure.name: stated for stated in self.figures}

    @cached_property
    def said(self) -> tuple[tuple[Inequality, ...], ...]:
        """What each of the figures says about the cells."""
        return tuple([stated.figure.inequalities(stated.value) for stated in self.figures])

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The same, as inequalities in whole numbers."""
        return tuple(
            [
                _row(inequality, self.index, f, number)
                for f, said in enumerate(self.said)
                for number, inequality in enumerate(said)
                if inequality.terms  # without any, it holds: 0 is at most 0, or 1
            ]
        )


def _each_once(figures: Iterable[PublishedFigure]) -> tuple[PublishedFigure, ...]:
    """Leave out repeated figures; those of different names are different, and need not be compared."""
    stated = tuple(figures)
    names = {figure.figure.name for figure in stated}
    return stated if len(names) == len(stated) else tuple(dict.fromkeys(stated))


def _row(inequality: Inequality, index: dict[str, int], figure: int, number: int) -> Row:
    """Write an inequality in the smallest whole numbers: exactly, since every coefficient is a fraction."""
    scale = lcm(inequality.at_most.denominator, *(factor.denominator for _, factor in inequality.terms))
    at_most = int(inequality.at_most * scale)
    terms = [(index[name], int(factor * scale)) for name, factor in inequality.terms]
    common = gcd(*(factor for _, factor in terms)) if terms else 1
    # The counts are whole numbers, so that the sum of the terms is a multiple of what their factors have in common.
    return Row(tuple([(cell, factor // common) for cell, factor in terms]), at_most // common, figure, number)


def _short(long: Sum) -> str:
    """Return a sum as text, shortened to fit a line."""
    few = Sum(long.total, long.parts[:_SHOWN])
    return str(few) if len(long.parts) <= _SHOWN else f"{few} + … ({len(long.parts):,} parts)"


def check_sum(added: Sum, known: Iterable[str]) -> None:
    """Raise InputError unless the sum has parts, and names known cells, each once."""
    if not added.parts:
        raise InputError(f"the sum for {added.total!r} has no parts.")
    names = (added.total, *added.parts)
    for name in names:
        if name not in known:
            raise InputError(f"the sum {_short(added)} names {name!r}, but there is no such cell.")
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise InputError(f"the sum {_short(added)} uses {twice!r} twice; the parts of a total must not overlap.")


def check_figure(figure: Figure, known: Iterable[str]) -> None:
    """Raise InputError unless a figure has what its kind needs, and names known cells."""
    if figure.kind is FigureKind.RATE and not figure.numerator:
        raise InputError(f"the rate {figure.name!r} has no numerator.")
    if figure.kind is not FigureKind.RATE and not figure.groups:
        raise InputError(f"the {figure.kind} {figure.name!r} has no groups.")
    if figure.per <= 0 or any(step <= 0 for _, step in figure.grid.steps):
        raise InputError(f"the steps of {figure.name!r}, and what a rate of one is printed as, must be above 0.")
    for name in figure.counts:
        if name not in known:
            raise InputError(f"the figure {figure.name!r} names {name!r}, but there is no such cell.")


def connected(number: int, groups: Iterable[Iterable[int]]) -> list[int]:
    """Return for each of so many things the first of those that groups connect it with.

    >>> connected(6, [(1, 2), (4, 3), (2, 5)])
    [0, 1, 1, 3, 3, 1]
    """
    first = list(range(number))
    for group in groups:
        join(first, group)
    return [first_of(first, thing) for thing in range(number)]


def first_of(first: list[int], thing: int) -> int:
    """Return the first of the things that one is joined with (union-find, with path halving)."""
    while first[thing] != thing:
        first[thing] = first[first[thing]]
        thing = first[thing]
    return thing


def join(first: list[int], group: Iterable[int]) -> None:
    """Join all things of a group: all that they are joined with get one first."""
    firsts = [first_of(first, thing) for thing in group]
    least = min(firsts, default=0)
    for here in firsts:
        first[here] = least


def grouped(number: int, groups: Iterable[Iterable[int]]) -> list[list[int]]:
    """Put so many things together as groups connect them, each set in order.

    >>> grouped(6, [(1, 2), (4, 3), (2, 5)])
    [[0], [1, 2, 5], [3, 4]]
    """
    together: dict[int, list[int]] = {}
    for thing, first in enumerate(connected(number, groups)):
        together.setdefault(first, []).append(thing)
    return list(together.values())
