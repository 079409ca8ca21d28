"""What is published, as the arrays that the chain takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms import Exact, Mechanism, Suppressed
from unround.reconstruction.arrays import Tables, Windows
from unround.reconstruction.law import by_attribute
from unround.release import ABSENT, SUPPRESSED
from unround.simulation.persons.counting import Margin, Query, margins

WIDEST = 100_000
"""A window of more counts than this tells nothing."""

LEAST = 1e-9
"""A likelihood below this, inside of a window, counts as this."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Columns of tables, and what was published in every area."""

    tables: Tables
    windows: Windows
    rows: NDArray[np.int32]


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


def windows_of(counts: NDArray[np.int64], mechanisms: Sequence[Mechanism]) -> tuple[Windows, NDArray[np.int32]]:
    """Return the likelihoods of all published counts, and the row of each; −1 where nothing is known."""
    rows = np.full(counts.shape, -1, dtype=np.int32)
    known: dict[tuple[Mechanism, int], int] = {}
    lows: list[int] = []
    logs: list[NDArray[np.float64]] = []
    for column, how in enumerate(mechanisms):
        values, which = np.unique(counts[:, column], return_inverse=True)
        own = np.full(len(values), -1, dtype=np.int32)
        for at, value in enumerate(values.tolist()):
            if (how, value) not in known:
                low, log = _window(how, value)
                known[how, value] = -1 if log is None else len(logs)
                if log is not None:
                    lows.append(low)
                    logs.append(log)
            own[at] = known[how, value]
        rows[:, column] = own[which.ravel()]
    sizes = np.array([len(log) for log in logs], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]) if logs else np.zeros(0)
    log = np.concatenate(logs) if logs else np.zeros(1)
    return Windows(starts.astype(np.int64), sizes, np.array(lows, dtype=np.int64), log), rows


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
    counts: NDArray[np.int64],
    queries: Sequence[Query],
    mechanisms: Sequence[Mechanism],
    names: Sequence[str],
    sizes: Mapping[str, int],
) -> Evidence:
    """Return published counts (areas × columns) as the chain takes them; the number of all people is no column for it."""
    about = [at for at, one in enumerate(queries) if one]
    counts, queries, mechanisms = counts[:, about], [queries[at] for at in about], [mechanisms[at] for at in about]
    windows, rows = windows_of(counts, mechanisms)
    return Evidence(tables_of(queries, names, sizes), windows, rows)


def exact_evidence(
    true: NDArray[np.int64], queries: Sequence[Query], names: Sequence[str], sizes: Mapping[str, int]
) -> Evidence:
    """Return the same columns as if they were published as they are, each count once."""
    first = {one: at for at, one in reversed(list(enumerate(queries)))}
    places = sorted(first.values())
    kept = [queries[at] for at in places]
    return evidence(true[:, places], kept, [Exact()] * len(kept), names, sizes)


def own_totals(queries: Sequence[Query]) -> list[int]:
    """Return the columns that are about one attribute alone: an area's own totals."""
    return [at for at, one in enumerate(queries) if len(one) <= 1]
