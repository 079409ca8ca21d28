"""Perturbation by a table of transition probabilities: the cell-key method."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import NoReturn

import numpy as np

from unround.errors import InputError
from unround.mechanisms.base import WIDEST, FloatArray, IntArray, Window, counts, fraction, window_from
from unround.mechanisms.sampling import choose
from unround.small_files import small_text

Row = tuple[tuple[int, Fraction], ...]

_TOLERANCE = Fraction(1, 10**9)

_LEAST = Fraction(1, 10**30)
"""The smallest probability above 0. Engines compute with floats, in which a smaller one might come out as impossible."""


@dataclass(frozen=True)
class Transition:
    """Counts are changed by draws from a table: one distribution of changes for every small true count.

    - `rows`: `rows[i]` lists the possible changes v of a true count i and their probabilities p as pairs (v, p). Counts
      beyond the last row use the last row. Probabilities are kept as exact fractions; a row whose sum differs from 1 by
      at most 1e-9 is rescaled.
    - `source`: The file that the table came from, for its name.

    Examples
    --------
    >>> table = Transition((((0, 1),), ((-1, "1/4"), (0, "1/2"), (1, "1/4"))))
    >>> list(table.window(2))
    [1, 2, 3]
    >>> table.chance(2, 3)
    Fraction(1, 4)
    >>> table.name
    'transition:0=1|-1=1/4,0=1/2,1=1/4'
    """

    rows: tuple[Row, ...]
    source: str | None = field(default=None, compare=False)
    _first: int = field(init=False, repr=False, compare=False)
    _table: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.rows:
            raise InputError("a transition table needs at least one row, for the true count 0.")
        rows = tuple(_row(i, row) for i, row in enumerate(self.rows))
        changes = [v for row in rows for v, _ in row]
        first = min(changes)
        if (max(changes) - first + 1) * len(rows) > WIDEST or max(map(abs, changes)) > WIDEST:
            raise InputError(
                f"changes from {first:+d} to {max(changes):+d} are too wide a range for a table of probabilities."
            )
        table = np.zeros((len(rows), max(changes) - first + 1))
        for i, row in enumerate(rows):
            for v, p in row:
                table[i, v - first] = float(p)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "_first", first)
        object.__setattr__(self, "_table", table)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Transition:
        """Read a table from a CSV file with the columns i, v, p.

        Raises `InputError` if the file cannot be read, or is not such a table.
        """
        rows = _read(path)
        try:
            return cls(rows, str(path))
        except InputError as error:
            raise InputError(f"{path}: {error.message}") from None

    @classmethod
    def parse(cls, text: str) -> Transition:
        """Read a table from a line of text: rows from the true count 0 on separated by |, changes v=p by commas."""
        pairs = [[entry.split("=", 1) for entry in row.split(",")] for row in text.split("|")]
        return cls(tuple(tuple((int(v), fraction(p)) for v, p in row) for row in pairs))

    @property
    def name(self) -> str:
        """Its name on the command line: its file, or else the whole table."""
        if self.source is not None:
            return f"transition:{self.source}"
        return "transition:" + "|".join(",".join(f"{v}={p}" for v, p in row) for row in self.rows)

    @property
    def sentence(self) -> str:
        """The assumption, as a sentence."""
        last = self._first + self._table.shape[1] - 1
        where = "" if self.source is None else f" of {self.source}"
        return (
            f"Changed by {self._first:+d} to {last:+d} with the transition probabilities{where}, each count independently."
        )

    def window(self, published: int | None) -> Window:
        """Return the true counts that can be published as `published`; there may be holes between them."""
        last = self._first + self._table.shape[1] - 1
        return window_from(self.likelihood, published, last, -self._first, "this transition table")

    def chance(self, published: int | None, true: int) -> Fraction:
        """Return the probability of the change in the row of the true count."""
        if published is None or true < 0:
            return Fraction(0)
        return dict(self.rows[min(true, len(self.rows) - 1)]).get(published - true, Fraction(0))

    def likelihood(self, published: int | IntArray | None, true: IntArray) -> FloatArray:
        """Return `chance` as floats, for arrays."""
        y, x, possible = counts(published, true)
        columns = self._table.shape[1]
        column = y - x - self._first
        possible = possible & (column >= 0) & (column < columns)
        row = np.clip(x, 0, len(self.rows) - 1)
        return np.where(possible, self._table[row, np.clip(column, 0, columns - 1)], 0.0)

    def publish(self, true: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a change for every count independently."""
        true = np.asarray(true)
        row = np.clip(true, 0, len(self.rows) - 1)
        change = np.empty(true.shape, dtype=np.int64)
        for i in np.unique(row):
            values = np.array([v for v, _ in self.rows[i]])
            steps = list(accumulate(p for _, p in self.rows[i]))
            change[row == i] = values[choose(steps, int((row == i).sum()), rng)]
        return np.asarray(true + change, dtype=np.int64)


def _number(value: Fraction) -> str:
    """Return a fraction as a readable decimal."""
    try:
        return f"{float(value):.10g}"
    except OverflowError:
        return "far more than 1"


def _row(i: int, row: Row) -> Row:
    """Check one distribution; return it sorted, exact, and without changes of probability 0."""
    exact = sorted((int(v), fraction(p)) for v, p in row)
    changes = [v for v, _ in exact]
    if len(set(changes)) < len(changes):
        twice = next(v for v in changes if changes.count(v) > 1)
        raise InputError(f"the true count {i} lists the change {twice} twice.")
    for v, p in exact:
        if p < 0:
            raise InputError(f"the true count {i} has the change {v} with a negative probability, {_number(p)}.")
        if 0 < p < _LEAST:
            raise InputError(
                f"the true count {i} has the change {v} with a probability below 1e-30, too small to compute with: write 0 "
                "if it cannot happen, else at least 1e-30."
            )
        if p > 0 and i + v < 0:
            raise InputError(f"the change {v} would publish the true count {i} as {i + v}: counts cannot be negative.")
    total = sum((p for _, p in exact), Fraction(0))
    if abs(total - 1) > _TOLERANCE:
        raise InputError(f"the probabilities of the true count {i} sum to {_number(total)}, not to 1.")
    return tuple((v, p / total) for v, p in exact if p)


def _read(path: str | PathLike[str]) -> tuple[Row, ...]:
    """Return the rows of a CSV file, ordered by their true count."""
    import csv  # only here: most runs read no table

    text = small_text(Path(path), "a transition table")
    lines = text.splitlines() or [""]
    mark = ";" if ";" in lines[0] else ","

    def fail(message: str, line: int, field: int = 0) -> NoReturn:
        column = 1 + sum(len(part) + 1 for part in lines[line - 1].split(mark)[:field])
        raise InputError(message, source=text, line=line, column=column, where=str(path))

    def whole(parts: list[str], name: str, line: int) -> int:
        value = parts[place[name]].strip()
        if not re.fullmatch(r"[+-]?\d{1,15}", value):
            fail(f"{name} must be a whole number, not {value[:40]!r}.", line, place[name])
        return int(value)

    header = [name.strip().lower() for name in next(csv.reader(lines[:1], delimiter=mark), [])]
    place: dict[str, int] = {name: header.index(name) for name in ("i", "v", "j", "p") if name in header}
    if not {"i", "p"} <= place.keys() or not {"v", "j"} & place.keys():
        fail("a transition table needs a header with the columns i, v (or j) and p.", 1)

    rows: dict[int, list[tuple[int, Fraction]]] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        parts = next(csv.reader([line], delimiter=mark))
        if len(parts) <= max(place.values()):
            fail(f"this line has {len(parts)} fields, but the header has {len(header)}.", number)
        i = whole(parts, "i", number)
        v = whole(parts, "v", number) if "v" in place else whole(parts, "j", number) - i
        if "j" in place and whole(parts, "j", number) != i + v:
            fail(f"j must be i + v = {i + v}.", number, place["j"])
        try:
            # With semicolons between fields a comma is a decimal one.
            p = fraction(parts[place["p"]].replace(",", "."))
        except InputError as error:
            fail(error.message, number, place["p"])
        rows.setdefault(i, []).append((v, p))
    wrong = next((min(place, i) for place, i in enumerate(sorted(rows)) if place != i), None if rows else 0)
    if wrong is not None:
        raise InputError(f"{path}: a transition table needs every true count from 0 to its largest; check {wrong}.")
    return tuple(tuple(rows[i]) for i in sorted(rows))
