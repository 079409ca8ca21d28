"""What is published, as the arrays that the chain takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms import Exact, Mechanism, Suppressed
from unround.reconstruction.arrays import Tables, Windows
from unround.reconstruction.law import by_attribute
from unround.reconstruction.ondisk import CountTable, Rows
from unround.release import ABSENT, SUPPRESSED
from unround.simulation.persons.counting import Margin, Query, margins

WIDEST = 100_000
"""A window of more counts than this tells nothing."""

LEAST = 1e-9
"""A likelihood below this, inside of a window, counts as this."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Columns of tables, and what was published in every area.

    - `tables`: The columns.
    - `windows`: The likelihoods of all published counts.
    - `rows`: The row of `windows` for every area and column; −1 where nothing is known.
    - `areas`: The areas that there are rows of, ascending; all if not given.
    """

    tables: Tables
    windows: Windows
    rows: Rows
    areas: NDArray[np.int64] | None = None

    def of(self, area: int) -> NDArray[np.int32]:
        """Return the rows of `windows` for the columns of an area."""
        at = area if self.areas is None else int(np.searchsorted(self.areas, area))
        assert self.areas is None or self.areas[at] == area, "nothing was prepared for this area"
        return np.asarray(self.rows.read(at, at + 1)[0], dtype=np.int32)


def tables_of(queries: Sequence[Query], names: Sequence[str], sizes: Mapping[str, int]) -> Tables:
    """Return columns as arrays; `names` is the order of attributes in a record."""
    # The finest come first: most moves fail there, and need not be looked at any further.
    grouped = sorted((margin for margin in margins(queries, sizes) if margin.attributes), key=lambda one: -one.atoms)
    most = max(sizes.values())
    step = np.zeros((len(grouped), len(names), most), dtype=np.int32)
    base, starts, held, atoms, lists = [], [], [], 0, 0
    for m, margin in enumerate(grouped):
        stride = 1
        for axis in reversed(range(len(margin.attributes))):
            name = margin.attributes[axis]
            step[m, list(names).index(name), : sizes[name]] = stride * margin.classes[axis]
            stride *= margin.shape[axis]
        base.append(atoms)
        starts.append(margin.starts[:-1] + lists)
        held.append(_ascending(margin))
        atoms += margin.atoms
        lists += len(margin.held)
    none = np.zeros(0, dtype=np.int64)
    return Tables(
        np.array(base, dtype=np.int64),
        np.ascontiguousarray(step.transpose(1, 2, 0)),
        np.concatenate([*starts, [lists]]).astype(np.int64),
        np.concatenate([*held, none]).astype(np.int32),
        *by_attribute(step),
        len(queries),
    )


def _ascending(margin: Margin) -> NDArray[np.int64]:
    """Return the columns of every atom; positions within a margin ascend, and so do the columns themselves."""
    return np.asarray(margin.columns[margin.held], dtype=np.int64)


class Likelihoods:
    """The likelihoods of published counts, each worked out once however many areas show it."""

    def __init__(self) -> None:
        self._known: dict[tuple[Mechanism, int], int] = {}
        self._lows: list[int] = []
        self._logs: list[NDArray[np.float64]] = []

    def rows(self, counts: NDArray[np.int64], mechanisms: Sequence[Mechanism]) -> NDArray[np.int32]:
        """Return the rows in `windows` of some counts, areas × columns; −1 where nothing is known."""
        rows = np.full(counts.shape, -1, dtype=np.int32)
        for column, how in enumerate(mechanisms):
            values, which = np.unique(counts[:, column], return_inverse=True)
            own = np.array([self._row(how, value) for value in values.tolist()], dtype=np.int32)
            rows[:, column] = own[which.ravel()]
        return rows

    def _row(self, how: Mechanism, value: int) -> int:
        if (how, value) not in self._known:
            low, log = _window(how, value)
            self._known[how, value] = -1 if log is None else len(self._logs)
            if log is not None:
                self._lows.append(low)
                self._logs.append(log)
        return self._known[how, value]

    def windows(self) -> Windows:
        """Return them as the chain takes them."""
        sizes = np.array([len(log) for log in self._logs], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]) if self._logs else np.zeros(0)
        log = np.concatenate(self._logs) if self._logs else np.zeros(1)
        return Windows(starts.astype(np.int64), sizes, np.array(self._lows, dtype=np.int64), log)


def _window(how: Mechanism, value: int) -> tuple[int, NDArray[np.float64] | None]:
    """Return the lowest true count and the log likelihoods from there on; None where nothing is known."""
    if value <= ABSENT:
        if value != SUPPRESSED or not isinstance(how, Suppressed):
            return 0, None
        window = how.window(None)
    else:
        window = how.window(value)
    if window.weights is None or len(window.weights) > WIDEST:
        return 0, None
    return window.low, np.log(np.maximum(window.weights, LEAST))


def evidence(
    counts: CountTable,
    queries: Sequence[Query],
    mechanisms: Sequence[Mechanism],
    names: Sequence[str],
    sizes: Mapping[str, int],
    path: Path,
    areas: NDArray[np.int64] | None = None,
) -> Evidence:
    """Return published counts as the chain takes them; the number of all people is no column for it."""
    about = [at for at, one in enumerate(queries) if one]
    counts, queries, mechanisms = counts.picked(about), [queries[at] for at in about], [mechanisms[at] for at in about]
    likelihoods = Likelihoods()
    rows = Rows.new(path, counts.rows.number if areas is None else len(areas), len(about), "i4")
    with rows.writing() as file:
        for start, block in counts.blocks():
            found = likelihoods.rows(block, mechanisms)
            if areas is None:
                rows.put(file, start, found)
                continue
            first, last = np.searchsorted(areas, [start, start + len(block)]).tolist()
            rows.put(file, first, found[areas[first:last] - start])
    return Evidence(tables_of(queries, names, sizes), likelihoods.windows(), rows, areas)


def exact_evidence(
    true: CountTable, queries: Sequence[Query], names: Sequence[str], sizes: Mapping[str, int], path: Path
) -> Evidence:
    """Return the same columns as if they were published as they are, each count once."""
    first = {one: at for at, one in reversed(list(enumerate(queries)))}
    places = sorted(first.values())
    kept = [queries[at] for at in places]
    return evidence(true.picked(places), kept, [Exact()] * len(kept), names, sizes, path)


def own_totals(queries: Sequence[Query]) -> list[int]:
    """Return the columns that are about one attribute alone: an area's own totals."""
    return [at for at, one in enumerate(queries) if len(one) <= 1]
