"""Sums that form loops, as in multi-way tables: exactly where that is affordable, else by Markov chains.

In this order: by going through all tables, where they are few; by chains; and by going through more tables, where chains do
not agree. What none of these answers has no probabilities.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unround.engines.answer import Answer, Inference, Marginal, Problem, support_of
from unround.mechanisms import Window
from unround.mechanisms.base import FloatArray
from unround.sums.multiway import CrossedTable, Ints

if TYPE_CHECKING:
    from unround.engines.chains import Sampled

Seeds = NDArray[np.uint64]

WIDEST = 20_000
"""Possible values of a cell beyond which nothing is sampled."""

SOME_VISITS, MANY_VISITS = 2_000_000, 40_000_000
"""Steps through tables that are taken before chains, a tenth of a second; and where chains have failed, some seconds."""

MANY_LEAVES = 50
"""Leaves that can change from which on few steps are enough to see that there are too many tables."""

COPIES = 8
"""Groups of chains of one system; each starts by itself."""

EFFORT = 50_000_000
"""Moves of all chains together: about a second on two processors."""

MOST_SWEEPS = 40_000
"""Moves of a group's chains for every leaf; small tables need no more."""

LONGER = 4
"""How many times as long chains run where they do not agree."""

LARGEST_ERROR, LARGEST_RHAT = 0.02, 1.05
"""The standard error of a probability, and the R-hat, with which chains are said to agree."""


class NoTable(Exception):  # noqa: N818 - it is an answer, and no error
    """No values add up."""


Ends = tuple[tuple[int, int], ...]
"""For every cell a low and a high value that occur in some table that fits."""

Answered = tuple[Inference, Ends]


def solve_table(table: CrossedTable, problem: Problem) -> Answered | None:
    """Answer a system that is one table; its bounds are still to be found.

    None where possible ranges are too wide, or the engine that was asked for cannot do it. Raises `NoTable` if no values
    add up.
    """
    if max(high - low for low, high in zip(problem.bounds.lows, problem.bounds.highs, strict=True)) >= WIDEST:
        return None
    task, engine = _Task(table, problem), problem.engine
    kind = table_in_words(table)
    if engine == "auto":
        from unround.engines.enumeration import FEW_VISITS

        visits = SOME_VISITS if task.free < MANY_LEAVES else FEW_VISITS
        listed = task.go_through(visits, f"{kind}; all solutions could be gone through")
        if listed is not None:
            return listed
    sampled = task.run_chains(kind)
    if sampled[0].answer is not None or engine == "chains":
        return sampled
    listed = task.go_through(MANY_VISITS, f"{kind}; Markov chains do not agree, but all solutions could be gone through")
    return sampled if listed is None else listed


def table_in_words(table: CrossedTable) -> str:
    """Say what kind of loops these are."""
    if table.axes == 1:
        return "the sums form loops"
    return f"the sums are those of a {' × '.join(map(str, table.shape))} table"


class _Task:
    """One table, and the ways to answer it."""

    def __init__(self, table: CrossedTable, problem: Problem) -> None:
        from unround.engines.chain_kernel import CellWeights

        bounds, windows = problem.bounds, problem.windows
        self.table, self.problem, self.lows = table, problem, bounds.lows
        self.weights = problem.weights(bounds.lows, bounds.highs)
        leaves = set(table.leaves.tolist())
        self.free = sum(self.weights[leaf].size > 1 for leaf in leaves)
        bases = [0 if i in leaves and window.low == 0 else tent(window) for i, window in enumerate(windows)]
        centres = [window.low + base - 1 for window, base in zip(windows, bases, strict=True)]
        self.given = CellWeights.of_one(bounds.lows, self.weights, bases, centres, COPIES)

    def go_through(self, visits: int, why: str) -> Answered | None:
        """Answer by going through all solutions; None if there are too many."""
        from unround.engines.enumeration import list_tables

        listed = list_tables(self.table, self.given.one(0), visits, self.problem.top)
        if not listed.complete[0]:
            return None
        if not listed.number[0]:
            raise NoTable
        marginals = self._marginals(listed.chances)
        best = [
            (tuple(values), float(p)) for values, p in zip(listed.best[0].tolist(), listed.weight[0], strict=True) if p > 0
        ]
        best.sort(key=lambda solution: (-round(math.log(solution[1]), 9), solution[0]))
        number = int(listed.number[0]) if listed.number[0] < 2**53 else None
        answer = Answer(number, marginals, tuple(best))
        return Inference(True, "enumeration", why, answer=answer), tuple(map(support_of, marginals))

    def run_chains(self, kind: str) -> Answered:
        """Answer by chains, longer ones where the first do not agree."""
        sweeps = min(EFFORT // (COPIES * max(self.free, 8)), MOST_SWEEPS)
        seeds, begin = self._seeds(), None
        for longer in (1, LONGER):
            sampled = self._sample(sweeps * longer, seeds, begin)
            chances = sampled.chances.reshape(COPIES, -1)
            errors, rhat = self._judged(chances, sampled.rhat)
            agreed = rhat <= LARGEST_RHAT and max(errors) <= LARGEST_ERROR
            seeds, begin = seeds + np.uint64(COPIES), sampled.best
            if agreed:
                break
        from unround.engines.enumeration import shown_ends

        marginals = self._marginals(chances.mean(axis=0))
        seen = tuple(map(support_of, marginals))
        ends = shown_ends(self.table, self.given, seen, sampled.best[0])
        # A value that never changed, though a table with another one exists: no move leads there.
        frozen = any(before[0] == before[1] and now[0] < now[1] for before, now in zip(seen, ends, strict=True))
        if frozen or not agreed:
            what = "do not reach every solution" if frozen else f"do not agree (R-hat {rhat:.2f})"
            why = f"{kind}; Markov chains {what}, so probabilities are not available"
            return Inference(True, "chains", why, rhat=rhat), ends
        answer = Answer(None, marginals, self._best(sampled.best), relative=True)
        why = f"{kind}; Markov chains, which agree (R-hat {rhat:.3f})"
        return Inference(True, "chains", why, answer=answer, errors=tuple(errors), rhat=rhat), ends

    def _sample(self, sweeps: int, seeds: Seeds, begin: Ints | None) -> Sampled:
        """Run chains; where they find no table to start from, a search does, or shows that there is none."""
        from unround.bounds.search import cpsat_witness
        from unround.engines.chains import STUCK, Effort, sample

        effort = Effort(sweeps, 0, LARGEST_ERROR, LARGEST_RHAT)
        sampled = sample(self.table, self.given, seeds, effort, begin)
        if (sampled.status == STUCK).any():
            values = cpsat_witness(self.problem.system.equations, self.problem.windows)
            if values is None:
                raise NoTable
            sampled = sample(self.table, self.given, seeds, effort, np.array([values] * COPIES, dtype=np.int32))
        return sampled

    def _best(self, seen: Ints) -> tuple[tuple[tuple[int, ...], float], ...]:
        if not self.problem.top:
            return ()
        from unround.engines.enumeration import best_near

        ranked = best_near(self.table, self.given, dict.fromkeys(map(tuple, seen.tolist())), self.problem.top)
        return tuple((values, math.exp(weight - ranked[0][1])) for values, weight in ranked)

    def _judged(self, chances: FloatArray, rhats: FloatArray) -> tuple[list[float], float]:
        """Return the standard error of every cell's likeliest value, and the largest R-hat, from groups of chains."""
        from unround.engines.chains import LANES

        errors, worst = [], float(rhats.max())
        for place, of_cell in zip(self.given.place[0].tolist(), self.weights, strict=True):
            each = chances[:, place : place + of_cell.size]
            mode = int(np.argmax(each.mean(axis=0)))
            errors.append(float(each[:, mode].std(ddof=1) / math.sqrt(COPIES)))
            values = np.arange(of_cell.size)
            means = each @ values
            within = float((each @ values**2 - means**2).mean())
            between = float(means.var(ddof=1)) * LANES
            if between > 0:
                worst = max(worst, math.sqrt(1 + between / within) if within > 0 else math.inf)
        return errors, worst

    def _marginals(self, chances: FloatArray) -> tuple[Marginal, ...]:
        return tuple(
            (low, np.asarray(chances[place : place + of_cell.size], dtype=np.float64))
            for low, place, of_cell in zip(self.lows, self.given.place[0].tolist(), self.weights, strict=True)
        )

    def _seeds(self) -> Seeds:
        """Return seeds that depend on the system alone."""
        digest = blake2b(digest_size=8)
        for low, of_cell in zip(self.lows, self.weights, strict=True):
            digest.update(low.to_bytes(8, "little") + of_cell.astype("<f4").tobytes())
        return np.arange(COPIES, dtype=np.uint64) + np.uint64(int.from_bytes(digest.digest(), "little") >> 1)


def tent(window: Window) -> int:
    """Return the base if a window is that of unbiased random rounding, whole; 0 for any other."""
    if window.weights is None or window.weights.size % 2 == 0 or window.weights.size < 3:
        return 0
    base = (window.weights.size + 1) // 2
    rising = np.minimum(np.arange(1, 2 * base), np.arange(2 * base - 1, 0, -1)) / base
    return base if np.allclose(window.weights, rising * window.weights.max(), rtol=1e-12, atol=0) else 0
