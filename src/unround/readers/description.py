"""Rules: what is known of a tidy table, once its TOML has been read: axes, sums, mechanisms, exact cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from unround.errors import InputError
from unround.mechanisms import Mechanism
from unround.release import AREA, NOT_AVAILABLE

AREAS = (AREA, "area", "geo")
"""Axes called so are the rows of the table, unless a rule needs them as columns."""

CHARACTERISTIC, SEX = ("characteristic", "characteristic_id"), "sex"
"""Axes called so are columns; `characteristics` is short for the first."""

MOST_COMPARED, LONGEST_COMPARED = 5_000, 80
"""Words, and signs of each, that are compared with one that is not known."""

BY_KEY = "columns"
"""A sum over this "axis" names columns by their keys ("10/men"), and holds for them alone."""


@dataclass(frozen=True, slots=True)
class SumRule:
    """A total and its parts, as codes of one axis; it holds at every combination of the other axes' codes."""

    axis: str
    total: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AxisRule:
    """One axis: the column of its codes, those of what people read, and how its codes add up."""

    name: str
    column: str
    label: str | None = None
    level: str | None = None
    parent: str | None = None
    sums: tuple[SumRule, ...] = ()
    hierarchy: Path | None = None
    total: str | None = None


@dataclass(frozen=True, slots=True)
class CellRule:
    """How the cells of some codes were published. Of two rules for one cell the later one counts."""

    mechanism: Mechanism
    where: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Description:
    """All that a TOML says about a tidy table. `where` is what to call the file in errors."""

    value: str
    axes: tuple[AxisRule, ...]
    areas: tuple[str, ...] | None = None
    missing: int = NOT_AVAILABLE
    symbols: Mapping[str, int] = field(default_factory=dict)
    default: Mechanism | None = None
    rules: tuple[CellRule, ...] = ()
    sums: tuple[SumRule, ...] = ()
    data: Path | None = None
    product: str | None = None
    where: str = "the layout"

    @property
    def named(self) -> set[str]:
        """The axes that some rule or sum speaks of."""
        return {axis for rule in self.rules for axis in rule.where} | {rule.axis for rule in self.sums}

    def split(self) -> tuple[tuple[AxisRule, ...], tuple[AxisRule, ...]]:
        """Return the axes of the rows and those of the columns.

        Sums and mechanisms speak of columns, so that an axis they name is one of columns. Other axes are rows: areas,
        years, whatever the same table was published for again and again.

        Raises
        ------
        InputError
            Where `areas` says otherwise, or nothing is left to be a column.
        """
        named = self.named
        if self.areas is not None:
            clash = sorted(set(self.areas) & named)
            if clash:
                raise InputError(
                    f"{self.where}: {clash[0]!r} is among `areas`, but a sum or mechanism names its codes. Sums and "
                    f"mechanisms "
                    f"are about columns: remove {clash[0]!r} from `areas`, or from the rule."
                )
            rows = set(self.areas)
        else:
            certain = {axis.name for axis in self.axes if axis.name in (*CHARACTERISTIC, SEX)}
            columns = named | certain | {a.name for a in self.axes if (a.sums or a.hierarchy) and a.name not in AREAS}
            columns |= {axis.name for axis in self.axes if axis.sums}
            if not columns:
                columns = {axis.name for axis in self.axes if axis.name not in AREAS}
            rows = {axis.name for axis in self.axes} - columns
        if len(rows) == len(self.axes):
            raise InputError(f"{self.where}: all axes are areas. Name an axis for what is counted, such as [axes.age].")
        return tuple(a for a in self.axes if a.name in rows), tuple(a for a in self.axes if a.name not in rows)


def near(word: str, known: Iterable[str]) -> str:
    """Return a hint at what may have been meant, or nothing.

    Examples
    --------
    >>> near("hierachy", ["hierarchy", "total"])
    " Did you mean 'hierarchy'?"
    """
    from difflib import get_close_matches  # only here: it takes a while to import

    # Words are compared letter by letter: beyond some thousands of them nobody would wait for the hint.
    few = [one for one in islice(known, MOST_COMPARED) if len(one) <= LONGEST_COMPARED]
    close = get_close_matches(word[:LONGEST_COMPARED], few, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
