"""The description of a table: all that a person can say of it, in one TOML file; docs/describe.md has every key.

    value = "published"          # the column of counts; not for a table with one row per area
    default = "rounding:5"       # how counts were protected, where nothing else is said; not known if it is left out
    inferred = true              # nobody has confirmed the sums below: what follows from one is conditional

    [axes.district]              # one table an axis; `column` is its own name unless said
    [axes.age]
    header = 1                   # its codes stand in the first row of the header
    sums = [{ total = "all", parts = ["young", "old"] }]

What is said of columns ([[mechanisms]], [[exact]], [[sums]], [[repeats]], [[figures]], [[keys]], [[match]]) may name them by
their keys: then it is about a table of any format, needs no axes, and may overrule what the counts suggest.

    [[sums]]
    total = "8"
    parts = ["9", "13"]
    use = false                  # or true, whatever the counts suggest; left to them by default
    because = "residents of institutions are in neither"

Every word of the file is checked: one that is not known is an error, for a misspelt key must not pass for a missing one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from unround.errors import InputError
from unround.figures import Figure
from unround.mechanisms import Exact, Mechanism
from unround.release import AREA, NOT_APPLICABLE, NOT_AVAILABLE, SUPPRESSED, UNRELIABLE, Entry, Match

KEYS = (
    "format", "data", "sheet", "columns", "header", "rows", "skip", "percentages", "value", "status", "thousands", "decimal",
    "missing", "symbols", "default", "product", "areas", "inferred", "open", "exact", "ignore", "figures", "mechanisms",
    "axes", "counts", "sums", "repeats", "keys", "match",
)  # fmt: skip
"""What a description may say, in the order in which it is written."""

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
    """A total and its parts, as codes of one axis; it holds at every combination of the other axes' codes.

    - `where`: The codes of other axes that it is about, where these are not all.
    - `use`, `because`: The user's decision, which overrules the counts, and the reason; None where it is left to them.
    """

    axis: str
    total: str
    parts: tuple[str, ...]
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    use: bool | None = None
    because: str = ""

    @property
    def shown(self) -> str:
        """The sum for people."""
        return f"{self.total} = {' + '.join(self.parts)}"


@dataclass(frozen=True, slots=True)
class RepeatRule:
    """Columns that show the same count, or not after all: by their keys, and whether their numbers are the same."""

    columns: tuple[str, ...]
    alike: bool
    use: bool


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
    within: str | None = None
    """The column of groups that tells codes apart which are there in several of them: totals of regions."""
    headings: tuple[int, ...] = ()
    """Rows of the file that name a group of those below, where its codes stand in such rows."""
    header: int | None = None
    """The row of the header that its codes stand in, counted from 1 within the header; None if they stand in a column."""
    fill: bool = False
    """Whether an empty cell of its column repeats the one above."""


@dataclass(frozen=True, slots=True)
class CellRule:
    """How the cells of some codes, or columns by their keys, were published. Of two for one cell the later one counts."""

    mechanism: Mechanism
    where: Mapping[str, tuple[str, ...]]
    inferred: bool = False
    """Whether only the counts suggest it, so that what follows from it is conditional."""


@dataclass(frozen=True, slots=True)
class Description:
    """All that a TOML says about a table. `where` is what to call the file in errors, and `text` what is in it.

    Without `axes` it is about a table of a known format, or several files as one. `value` is "" for a table with one row
    per area, whose columns hold counts. `header`, `rows` and `skip` are numbered from
    1. `ignore` are columns that are left out, each with the reason; one without a reason is still open, and so is what
    `open` lists. `inferred` says that nobody has confirmed the sums: labels and counts suggest them.
    """

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
    where: str = "the description"
    sheet: str | None = None
    columns: str | None = None
    header: tuple[int, ...] = (1,)
    rows: tuple[int, int] | None = None
    counts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ignore: Mapping[str, str] = field(default_factory=dict)
    skip: tuple[int, ...] = ()
    percentages: tuple[int, ...] = ()
    thousands: str = ""
    decimal: str = ""
    status: str | None = None
    figures: tuple[Figure, ...] = ()
    use_figures: Mapping[str, tuple[bool, str]] = field(default_factory=dict)
    """Figures to use or not, by the keys of their columns, and the reason."""
    repeats: tuple[RepeatRule, ...] = ()
    keys: Mapping[str, float | None] = field(default_factory=dict)
    matches: tuple[Match, ...] = ()
    open: tuple[Entry, ...] = ()
    inferred: bool = False
    text: str = field(default="", repr=False)
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The keys and values themselves."""

    def error(self, message: str, word: str = "") -> InputError:
        """Return the error that points at the place where a word stands in quotes."""
        return pointed(message, self.text, self.where, re.escape(f'"{word}"'))

    @property
    def wide(self) -> bool:
        """Whether counts stand in many columns, one row per area."""
        return not self.value

    @property
    def placed(self) -> bool:
        """Whether the description says where in its file the table is."""
        return bool(
            self.sheet is not None or self.columns or self.rows or self.header != (1,) or self.skip or self.percentages
        )

    @property
    def laid_out(self) -> bool:
        """Whether the table has to be brought into shape before it has one count per row, written plainly."""
        stubs = any(axis.fill or axis.within or axis.headings for axis in self.axes)
        return bool(self.wide or self.placed or stubs or self.thousands or self.decimal or self.status)

    @property
    def named(self) -> set[str]:
        """The axes that some rule or sum speaks of."""
        ruled = {axis for rule in self.rules for axis in rule.where if not self.is_of_cells(rule)}
        return ruled.union(*({rule.axis, *(axis for axis, _ in rule.where)} for rule in self.sums)) - {BY_KEY}

    def is_of_cells(self, rule: CellRule) -> bool:
        """Return whether a rule is about single cells: counts that are printed as they are in some rows only."""
        return isinstance(rule.mechanism, Exact) and not set(self.areas or ()).isdisjoint(rule.where)

    def split(self) -> tuple[tuple[AxisRule, ...], tuple[AxisRule, ...]]:
        """Return the axes of the rows and those of the columns.

        Sums and mechanisms speak of columns, so that an axis they name is one of columns. Other axes are rows: areas,
        years, whatever the same table was published for again and again.

        Raises `InputError` where `areas` says otherwise, or nothing is left to be a column.
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


def pointed(message: str, text: str, where: str, pattern: str, start: int = 0) -> InputError:
    r"""Return an error at what a pattern finds in a TOML, outside comments; from `start` on, within one entry.

    >>> print(pointed("there is no column 'x'.", '[[sums]]\ntotal = "x"', "a.toml", '"x"'))
    a.toml, line 2, column 9: there is no column 'x'.
        total = "x"
                ^
    """
    end = text.find("\n[", start + 1) if start else -1
    found = re.compile(rf"(?m)^[^#\n]*?(?P<here>{pattern})").search(text, start, end if end >= 0 else len(text))
    if found is None and not start:
        return InputError(f"{where}: {message}")
    at = start if found is None else found.start("here")
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return InputError(message, source=text, line=line, column=column, where=where)


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


MISSING: Mapping[str, int] = {
    "suppressed": SUPPRESSED,
    "not applicable": NOT_APPLICABLE,
    "not available": NOT_AVAILABLE,
    "unreliable": UNRELIABLE,
}
"""What an empty cell, or a symbol in place of a count, can mean."""
