"""Sums that form loops, as in multi-way tables: exactly where that is affordable, else by Markov chains.

In this order: by enumeration of all tables, where they are few; by chains; and by more enumeration, where chains do not
agree. What none of these answers has no probabilities. `TableAreas` does this for one system and for the areas of a release.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unround.bounds.attain import attained_ends
from unround.bounds.search import cpsat_bounds, cpsat_witness
from unround.engines.answer import Answer, Inference, Marginal, Problem, support_of
from unround.engines.chain_kernel import CellWeights
from unround.engines.chains import AGREED, FROZEN, STUCK, Effort, sample
from unround.engines.enumeration import FEW_VISITS, Listed, best_near, list_tables
from unround.evidence.block import BY_CHAINS, BY_LISTING, UNSETTLED
from unround.jit import kernel, seeds
from unround.mechanisms import Window
from unround.mechanisms.base import FloatArray
from unround.sums.forest import Equations
from unround.sums.multiway import MultiwayTable


class TableAreas:
    """One multi-way table in some areas, and the ways to answer it.

    - `table`, `sums`: The table, and its sums as places in it.
    - `given`: What is known of every cell of the areas.
    - `method`, `possible`: By area, how it was answered, and whether any table fits.
    - `status`, `chances`, `error`, `rhat`, `best`: As in `Sampled`; exact where all tables could be listed.
    - `listed`: By area, where they could: how many tables fit, the likeliest, and their probabilities.
    """

    def __init__(self, table: MultiwayTable, equations: Equations, given: CellWeights) -> None:
        at = {cell: place for place, cell in enumerate(table.cells.tolist())}
        self.table, self.given = table, given
        self.sums = tuple((at[equations[e][0]], tuple(at[part] for part in equations[e][1])) for e in table.equations)
        self.seeds = seeds(np.stack([given.low, given.high, given.centre], axis=1))
        self.possible = np.ones(len(given.low), dtype=np.bool_)
        self.method = np.full(len(given.low), BY_CHAINS, dtype=np.int8)
        self.listed = dict[int, tuple[float, NDArray[np.int32], FloatArray]]()

    def answer(self, effort: Effort, few: Listed, visits: int) -> None:
        """Run the chains, but where all tables are listed; list more where chains do not agree, or may not reach all."""
        sampled = sample(self.table, self.given, self.seeds, effort, skipped=few.complete)
        self.status, self.chances, self.error, self.rhat, _, self.best = sampled
        for i in np.flatnonzero(few.complete).tolist():
            self._put_listed(i, few, i, self.given.area[i])
        for i in np.flatnonzero((self.status != AGREED) & ~few.complete).tolist():
            alone = self.given.one(i)
            listed = list_tables(self.table, alone, visits, few.best.shape[1])
            if listed.complete[0]:
                self._put_listed(i, listed, 0, 0)
                continue
            here = slice(self.given.area[i], self.given.area[i + 1])
            if self.status[i] == STUCK:
                begin = cpsat_witness(self.sums, _windows(alone))
                if begin is None:
                    self.possible[i] = False
                    continue
                again = sample(self.table, alone, self.seeds[i : i + 1], effort, np.array([begin], dtype=np.int32))
                self.status[i], self.chances[here], self.error[i] = again.status[0], again.chances, again.error[0]
                self.rhat[i], self.best[i] = again.rhat[0], again.best[0]
            frozen = self.status[i] == FROZEN
            if not (frozen or self.status[i] == AGREED) or (frozen and self._is_frozen(alone, self.chances[here])):
                self.method[i] = UNSETTLED

    def _put_listed(self, i: int, listed: Listed, row: int, begin: int) -> None:
        """Write down what all tables of an area are, and its probabilities, which begin at a place in those listed."""
        size = self.given.area[i + 1] - self.given.area[i]
        self.chances[self.given.area[i] :][:size] = listed.chances[begin:][:size]
        self.error[i], self.rhat[i] = 0.0, 1.0
        self.method[i], self.possible[i] = BY_LISTING, listed.number[row] > 0
        self.listed[i] = float(listed.number[row]), listed.best[row], listed.weight[row]

    def _is_frozen(self, alone: CellWeights, chances: FloatArray) -> bool:
        """Return whether a count that never changed has another value in some table that fits."""
        windows = _windows(alone)
        for c, (window, place) in enumerate(zip(windows, alone.place[0].tolist(), strict=True)):
            there = np.flatnonzero(chances[place : place + window.high - window.low + 1])
            if there.size > 1 or window.low == window.high:
                continue
            assert window.weights is not None
            for others in (slice(None, there[0]), slice(there[0] + 1, None)):
                weights = window.weights[others]
                low = window.low + (others.start or 0)
                narrow = Window(low, low + weights.size - 1, weights, holes=not weights.all())
                if weights.any() and cpsat_witness(self.sums, [*windows[:c], narrow, *windows[c + 1 :]]) is not None:
                    return True
        return False


def _windows(alone: CellWeights) -> list[Window]:
    """Return what is possible in one area, as exact searches take it."""
    windows = []
    for low, high, place in zip(alone.low[0].tolist(), alone.high[0].tolist(), alone.place[0].tolist(), strict=True):
        weights = alone.weights[place : place + high - low + 1]
        windows.append(Window(low, high, weights, holes=not weights.all()))
    return windows


@kernel
def base_of(weights: FloatArray, start: int, size: int) -> int:
    """Return the base if a window is that of unbiased random rounding, whole; 0 for any other."""
    if start < 0 or size < 3 or size > 99 or size % 2 == 0:
        return 0
    base = (size + 1) // 2
    middle = weights[start + base - 1]
    for k in range(size):
        if abs(weights[start + k] * base - middle * min(k + 1, size - k)) > 1e-9 * middle:
            return 0
    return base


# -- one system ----------------------------------------------------------------------------------------------------------


WIDEST = 20_000
"""Possible values of a cell beyond which nothing is sampled."""

SOME_VISITS, MANY_VISITS = 2_000_000, 40_000_000
"""Steps through tables that are taken before chains, a tenth of a second; and where chains have failed, some seconds."""

MANY_LEAVES = 50
"""Leaves that can change from which on few steps are enough to see that there are too many tables."""

EFFORT = 25_000_000
"""Moves of all chains together in the first round: about a second."""

MOST_SWEEPS = 160_000
"""Moves of all chains for every leaf in the first round; small tables need no more."""

ROUNDS = 2
"""Rounds that may follow where chains do not agree: four times the moves in all."""

LARGEST_ERROR, LARGEST_RHAT = 0.02, 1.05
"""The standard error of a probability, and the R-hat, with which chains are said to agree."""


class NoTable(Exception):  # noqa: N818 - it is an answer, and no error
    """No values add up."""


def solve_table(table: MultiwayTable, problem: Problem) -> Inference | None:
    """Answer a system that is one table.

    None where possible ranges are too wide. Raises `NoTable` if no values add up.
    """
    bounds, only_chains = problem.bounds, problem.engine == "chains"
    if max(high - low for low, high in zip(bounds.lows, bounds.highs, strict=True)) >= WIDEST:
        return None
    given = _given(table, problem)
    free = int(np.count_nonzero((given.high > given.low)[0, table.leaves]))
    visits = 0 if only_chains else SOME_VISITS if free < MANY_LEAVES else FEW_VISITS
    few = list_tables(table, given, visits, problem.top)
    areas = TableAreas(table, problem.system.equations, given)
    effort = Effort(min(EFFORT // max(free, 8), MOST_SWEEPS), ROUNDS, LARGEST_ERROR, LARGEST_RHAT)
    areas.answer(effort, few, 0 if only_chains else MANY_VISITS)
    if not areas.possible[0]:
        raise NoTable
    sizes = zip(given.low[0].tolist(), given.place[0].tolist(), (given.high - given.low + 1)[0].tolist(), strict=True)
    marginals = tuple((low, areas.chances[place : place + size].copy()) for low, place, size in sizes)
    seen = [support_of(marginal) for marginal in marginals]
    lows, highs = _ends(problem, seen, 0 in areas.listed)
    if 0 in areas.listed:
        inferred = _listed(areas, marginals, bool(few.complete[0]))
    else:
        # A value that never changed, though a table with another one exists: no move leads there.
        stays = any(least == most and low < high for (least, most), low, high in zip(seen, lows, highs, strict=True))
        inferred = _estimated(areas, marginals, problem.top, stays)
    return replace(inferred, lows=lows, highs=highs)


def _ends(problem: Problem, seen: list[tuple[int, int]], all_seen: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the bounds of every cell, of which some are shown by tables seen, or found by leading cells to their ends."""
    equations, bounds = problem.system.equations, problem.bounds
    tables = None
    if not all_seen and not bounds.holes:
        tables = attained_ends([*zip(bounds.lows, bounds.highs, strict=True)], equations, range(len(seen)))
    if tables is not None:
        ends = zip(seen, *(end.tolist() for end in tables), strict=True)
        seen = [(min(least, low), max(most, high)) for (least, most), low, high in ends]
    tight = cpsat_bounds(equations, problem.windows, seen)
    assert tight is not None  # solutions were found
    return tuple(tight[0]), tuple(high for high in tight[1] if high is not None)


def _listed(areas: TableAreas, marginals: tuple[Marginal, ...], at_once: bool) -> Inference:
    """Return the answer where all tables were listed."""
    number, values, weights = areas.listed[0]
    best = [(tuple(row), float(p)) for row, p in zip(values.tolist(), weights, strict=True) if p > 0]
    best.sort(key=lambda solution: (-round(math.log(solution[1]), 9), solution[0]))
    before = "" if at_once else "Markov chains do not agree, but "
    why = f"{table_in_words(areas.table)}; {before}all solutions could be enumerated"
    answer = Answer(int(number) if number < 2**53 else None, marginals, tuple(best))
    return Inference(True, "enumeration", why, answer=answer)


def _estimated(areas: TableAreas, marginals: tuple[Marginal, ...], top: int, frozen: bool) -> Inference:
    """Return the answer of chains, without probabilities where these do not agree, or do not reach every table."""
    kind, rhat, seen = table_in_words(areas.table), float(areas.rhat[0]), tuple(areas.best[0].tolist())
    if frozen or areas.method[0] == UNSETTLED:
        what = "do not reach every solution" if frozen else f"do not agree (R-hat {rhat:.2f})"
        why = f"{kind}; Markov chains {what}, so probabilities are not available"
        return Inference(True, "chains", why, rhat=rhat)
    ranked = best_near(areas.table, areas.given, [seen], top) if top else []
    likeliest = tuple((values, math.exp(weight - ranked[0][1])) for values, weight in ranked)
    why = f"{kind}; Markov chains, which agree (R-hat {rhat:.3f})"
    answer = Answer(None, marginals, likeliest, relative=True)
    return Inference(True, "chains", why, answer=answer, errors=tuple(areas.error[0].tolist()), rhat=rhat)


def _given(table: MultiwayTable, problem: Problem) -> CellWeights:
    """Return what is known of a system, as chains take it."""
    low, high = (np.array([ends], dtype=np.int32) for ends in (problem.bounds.lows, problem.bounds.highs))
    given = CellWeights.empty(low, high)
    leaves = set(table.leaves.tolist())
    weights = problem.weights(problem.bounds.lows, problem.bounds.highs)
    for c, (window, of_cell, place) in enumerate(zip(problem.windows, weights, given.place[0].tolist(), strict=True)):
        given.weights[place : place + of_cell.size] = of_cell / of_cell.max()
        if window.weights is not None and not (c in leaves and window.low == 0):
            base = base_of(window.weights, 0, window.weights.size)
            if base:
                given.base[0, c], given.centre[0, c] = base, window.low + base - 1
    return given


def table_in_words(table: MultiwayTable) -> str:
    """Say what kind of loops these are."""
    if table.axes == 1:
        return "the sums form loops"
    return f"the sums are those of a {' × '.join(map(str, table.shape))} table"
