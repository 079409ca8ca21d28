"""Perturbation by a table of transition probabilities: the cell-key method."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms.base import WIDEST, FloatArray, IntArray, Window, counts, fraction, settle, window_from
from unround.mechanisms.sampling import choose, scattered
from unround.small_files import small_text

Row = tuple[tuple[int, Fraction], ...]

_TOLERANCE = Fraction(1, 10**9)
_ROUNDED = Fraction(1, 10**6)
"""Tables with intervals of keys are written by programs, with eight digits or fewer: so far their rows may be from 1."""

_LEAST = Fraction(1, 10**30)
"""The smallest probability above 0. Engines compute with floats, in which a smaller one might come out as impossible."""


@dataclass(frozen=True)
class Transition:
    """Counts are changed by draws from a table: one distribution of changes for every small true count.

    - `rows`: `rows[i]` lists the possible changes v of a true count i and their probabilities p as pairs (v, p). Counts
      beyond the last row use the last row. Probabilities are kept as exact fractions; a row whose sum differs from 1 by
      at most 1e-9 is rescaled.

    >>> table = Transition((((0, 1),), ((-1, "1/4"), (0, "1/2"), (1, "1/4"))))
    >>> list(table.window(2))
    [1, 2, 3]
    >>> table.chance(2, 3)
    Fraction(1, 4)
    >>> table.name
    'transition:0=1|-1=1/4,0=1/2,1=1/4'
    """

    rows: tuple[Row, ...]
    source: str | None = field(default=None, compare=False)  # the file that the table came from, for its name
    period: int = 1  # so many of the last rows repeat for counts beyond them
    _first: int = field(init=False, repr=False, compare=False)
    _table: FloatArray = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        return self._hash  # of some hundred fractions it takes a while, and tables are looked up by it all the time

    def __post_init__(self) -> None:
        if not self.rows:
            raise InputError("a transition table needs at least one row, for the true count 0.")
        if not 1 <= self.period <= len(self.rows):
            raise InputError(f"of {len(self.rows)} rows, {self.period} cannot repeat for larger counts.")
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
        settle(self, rows=rows, _first=first, _hash=hash((rows, self.period)), _table=table)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Transition:
        """Read a table from a CSV file with the columns i, v (or j) and p, or with pcv, ckey and pvalue."""
        return _read(str(path), small_text(Path(path), "a transition table"))

    @classmethod
    def parse(cls, text: str) -> Transition:
        """Read a table from a line of text: rows from the true count 0 on separated by |, changes v=p by commas."""
        text, _, period = text.partition("|repeat=")
        pairs = [[entry.split("=", 1) for entry in row.split(",")] for row in text.split("|")]
        return Transition(tuple(tuple((int(v), fraction(p)) for v, p in row) for row in pairs), None, int(period or 1))

    @property
    def name(self) -> str:
        """Its name on the command line: its file, or else the whole table."""
        if self.source is not None:
            return f"transition:{self.source}"
        rows = "|".join(",".join(f"{v}={p}" for v, p in row) for row in self.rows)
        return f"transition:{rows}" + f"|repeat={self.period}" * (self.period > 1)

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
        return dict(self.rows[int(self.row_of(np.asarray(true)))]).get(published - true, Fraction(0))

    def row_of(self, true: IntArray) -> IntArray:
        """Return which row is the law of each true count."""
        last = len(self.rows) - 1
        return np.where(true <= last, np.maximum(true, 0), last + 1 - self.period + (true - last - 1) % self.period)

    def likelihood(self, published: int | IntArray | None, true: IntArray) -> FloatArray:
        """Return `chance` as floats, for arrays."""
        y, x, possible = counts(published, true)
        columns = self._table.shape[1]
        column = y - x - self._first
        possible = possible & (column >= 0) & (column < columns)
        return np.where(possible, self._table[self.row_of(x), np.clip(column, 0, columns - 1)], 0.0)

    def publish(self, true: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a change for every count independently."""
        true = np.asarray(true)
        row = self.row_of(true)
        change = np.empty(true.shape, dtype=np.int64)
        for i in np.unique(row):
            values = np.array([v for v, _ in self.rows[i]])
            steps = list(accumulate(p for _, p in self.rows[i]))
            change[row == i] = values[choose(steps, int((row == i).sum()), rng)]
        return np.asarray(true + change, dtype=np.int64)

    def publish_keyed(self, true: IntArray, numbers: NDArray[np.uint64]) -> IntArray:
        """Look the change of every count up by a cell key, in units of 2⁻⁶⁴: the same key and count, the same change.

        Changes are spread over the keys as at random, anew for every count, or that of a total would follow from its parts'.
        """
        true = np.asarray(true, dtype=np.int64)
        row, u = self.row_of(true), scattered(scattered(numbers) + true.astype(np.uint64))
        change = np.empty(true.shape, dtype=np.int64)
        for i in np.unique(row):
            steps = np.array([int(step * 2**64) for step in accumulate(p for _, p in self.rows[i][:-1])], dtype=np.uint64)
            change[row == i] = np.array([v for v, _ in self.rows[i]])[np.searchsorted(steps, u[row == i], side="right")]
        return true + change


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


_ONS = ("pcv", "ckey", "pvalue")
_ONS_ROWS, _ONS_PERIOD = 750, 250
"""In the layout of the Office for National Statistics, rows 501 to 750 repeat for larger counts."""


@lru_cache(maxsize=4)
def _read(path: str, text: str) -> Transition:
    """Return the table that stands in a CSV file; a name is turned into its mechanism many times in one run."""
    file = _TableFile(path, text)
    header = file.header
    if set(_ONS) <= header.keys():
        rows = file.key_shares()
        period = _ONS_PERIOD if len(rows) - 1 == _ONS_ROWS else 1
    elif {"i", "p"} <= header.keys() and {"v", "j"} & header.keys():
        rows, period = file.probabilities(), 1
    else:
        file.fail("a transition table needs a header with the columns i, v (or j) and p. Or with pcv, ckey and pvalue.", 1)
    wrong = next((min(place, i) for place, i in enumerate(sorted(rows)) if place != i), None if rows else 0)
    if wrong is not None:
        raise InputError(f"{path}: a transition table needs every true count from 0 to its largest; check {wrong}.")
    try:
        return Transition(tuple(tuple(rows[i].items()) for i in sorted(rows)), path, period)
    except InputError as error:
        raise InputError(f"{path}: {error.message}") from None


class _TableFile:
    """The lines of a CSV file, and errors that point at one of them."""

    def __init__(self, path: str, text: str) -> None:
        import csv  # only here: most runs read no table

        self.path, self.text = path, text
        self.lines = text.splitlines() or [""]
        self.mark = ";" if ";" in self.lines[0] else ","
        self._csv = csv
        names = next(csv.reader(self.lines[:1], delimiter=self.mark), [])
        self.header = {name.strip().lower(): place for place, name in reversed([*enumerate(names)])}
        self.width = len(names)

    def fail(self, message: str, line: int, name: str = "") -> NoReturn:
        place = self.header.get(name, 0)
        column = 1 + sum(len(part) + 1 for part in self.lines[line - 1].split(self.mark)[:place])
        raise InputError(message, source=self.text, line=line, column=column, where=self.path)

    def records(self, names: Iterable[str]) -> Iterator[tuple[int, dict[str, str]]]:
        """Go through the lines below the header, with their fields of some names."""
        places = {name: self.header[name] for name in names if name in self.header}
        for number, line in enumerate(self.lines[1:], start=2):
            if not line.strip():
                continue
            parts = next(self._csv.reader([line], delimiter=self.mark))
            if len(parts) <= max(places.values()):
                self.fail(f"this line has {len(parts)} fields, but the header has {self.width}.", number)
            yield number, {name: parts[place].strip() for name, place in places.items()}

    def whole(self, record: dict[str, str], name: str, line: int) -> int:
        value = record[name]
        if not re.fullmatch(r"[+-]?\d{1,15}", value):
            self.fail(f"{name} must be a whole number, not {value[:40]!r}.", line, name)
        return int(value)

    def probabilities(self) -> dict[int, dict[int, Fraction]]:
        """Read a table as the ptable package, τ-ARGUS and cellKey write it: one line for every true count and change.

        With intervals of keys (p_int_ub), a change may have several: their probabilities are added up.
        """
        rows: dict[int, dict[int, Fraction]] = {}
        for line, record in self.records(("i", "v", "j", "p", "type")):
            i = self.whole(record, "i", line)
            v = self.whole(record, "v", line) if "v" in record else self.whole(record, "j", line) - i
            if "j" in record and self.whole(record, "j", line) != i + v:
                self.fail(f"j must be i + v = {i + v}.", line, "j")
            if record.get("type", "all") != "all":
                self.fail(f"this is a table for magnitudes (type {record['type'][:20]!r}), not for counts.", line, "type")
            try:
                # With semicolons between fields a comma is a decimal one.
                p = fraction(record["p"].replace(",", "."))
            except InputError as error:
                self.fail(error.message, line, "p")
            row = rows.setdefault(i, {})
            if v in row and "p_int_ub" not in self.header:
                raise InputError(f"{self.path}: the true count {i} lists the change {v} twice.")
            row[v] = row.get(v, Fraction(0)) + p
        if "p_int_ub" in self.header:
            for row in rows.values():
                total = sum(row.values(), Fraction(0))
                if 0 < abs(total - 1) <= _ROUNDED:
                    row.update({v: p / total for v, p in row.items()})
        return rows

    def key_shares(self) -> dict[int, dict[int, Fraction]]:
        """Read a table with a change for every count and cell key (ONS); where there is none, nothing is changed."""
        changes: dict[int, dict[int, int]] = {}
        for line, record in self.records(_ONS):
            pcv, key, change = (self.whole(record, name, line) for name in _ONS)
            if changes.setdefault(pcv, {}).setdefault(key, change) != change:
                self.fail(f"the count {pcv} lists the key {key} twice, with different changes.", line, "ckey")
        keys = 1 + max((key for row in changes.values() for key in row), default=0)
        rows: dict[int, dict[int, Fraction]] = {0: {0: Fraction(1)}}
        for pcv, row in changes.items():
            numbers = Counter(row.values())
            numbers[0] += keys - len(row)
            rows[pcv] = {v: Fraction(number, keys) for v, number in numbers.items() if number}
        return rows
