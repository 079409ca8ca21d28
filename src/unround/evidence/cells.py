"""A block of areas with all that is known of their counts, and how that weighs each true count before any sum is used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.evidence.block import CellBounds, Ints, PriorWeights, Windows
from unround.evidence.convolution import Box
from unround.evidence.keys import ANY_CONSTANT, OWN, KeyedEvidence, KeyInput
from unround.jit import inner
from unround.mechanisms.base import BoolArray, FloatArray
from unround.sums.compiled import CompiledSums, Table


class Evidence(NamedTuple):
    """Local evidence as the kernels take it: `Windows`, `PriorWeights`, keys.

    Without keys, kernels are compiled without the code that is about them.
    """

    low: Ints
    start: Table
    weights: FloatArray
    prior_low: Ints
    prior_start: Table
    prior_weights: FloatArray
    keys: KeyInput | None


class BlockArrays(NamedTuple):
    """A block as the kernels take it: what is known of each cell by itself, bounds, and which sums hold where.

    `holds` has one row for all areas where all sums do.
    """

    evidence: Evidence
    low: Ints
    high: Ints
    holds: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceBlock:
    """Areas that share one structure, and what is known of their counts: what engines take.

    - `compiled`: The sums of every area.
    - `windows`: The counts that are possible by what was published of each, and their likelihoods.
    - `bounds`: What all sums leave possible.
    - `prior`: How likely each count is a priori; None is flat.
    - `active`: Areas × sums: which hold where; None where all do.
    - `keyed`: What keys make of the windows; None where random numbers are independent.
    """

    compiled: CompiledSums
    windows: Windows
    bounds: CellBounds
    prior: PriorWeights | None = None
    active: BoolArray | None = None
    keyed: KeyedEvidence | None = None

    def rows(self, rows: NDArray[np.integer]) -> EvidenceBlock:
        """Return some areas."""
        return replace(
            self,
            windows=self.windows.rows(rows),
            bounds=self.bounds.rows(rows),
            prior=None if self.prior is None else self.prior.rows(rows),
            active=None if self.active is None else self.active[rows],
            keyed=None if self.keyed is None else self.keyed.rows(rows),
        )

    def only(self, chosen: BoolArray) -> EvidenceBlock:
        """Return the same areas, of which only some are worked on."""
        return replace(self, bounds=self.bounds._replace(feasible=self.bounds.feasible & chosen))

    def arrays(self) -> BlockArrays:
        """Return the block as kernels take it."""
        every = np.ones((1, len(self.compiled.equations)), dtype=np.bool_)
        return BlockArrays(
            evidence_of(self.windows, self.prior, self.keyed),
            plain(self.bounds.low, np.int32),
            plain(self.bounds.high, np.int32),
            every if self.active is None else plain(self.active, np.bool_),
        )


def evidence_of(windows: Windows, prior: PriorWeights | None, keyed: KeyedEvidence | None = None) -> Evidence:
    """Put local evidence together."""
    windows = windows if keyed is None else keyed.windows
    prior = prior or PriorWeights(windows.low, np.full(windows.start.shape, -1, dtype=np.int64), np.ones(1))
    return Evidence(
        plain(windows.low, np.int32),
        plain(windows.start, np.int64),
        plain(windows.weights, np.float64),
        plain(prior.low, np.int32),
        plain(prior.start, np.int64),
        plain(prior.weights, np.float64),
        None if keyed is None else _plain_keys(keyed.keys),
    )


def _plain_keys(keys: KeyInput) -> KeyInput:
    constant, published, start = (
        plain(keys.constant, np.float64),
        plain(keys.published, np.int32),
        plain(keys.start, np.int64),
    )
    return keys._replace(constant=constant, published=published, start=start)


@inner
def weight(evidence: Evidence, area: int, column: int, count: int) -> float:
    """Return the weight of one true count of a cell, from its own published count and prior alone."""
    product = 1.0
    prior, start = evidence.prior_start[area, column], evidence.start[area, column]
    if prior >= 0:
        product = evidence.prior_weights[prior + count - evidence.prior_low[area, column]]
    if start >= 0:
        product *= evidence.weights[start + count - evidence.low[area, column]]
    return float(product)


@inner
def _arc(keys: KeyInput, evidence: Evidence, area: int, column: int, count: int, number: int) -> tuple[float, float]:
    """Return one of the arcs of a cell's random number, if a count is its true one."""
    lows, starts, weights = evidence.low, evidence.start, evidence.weights
    if keys.start[area, column] >= 0:
        arc = keys.arcs[keys.first[keys.start[area, column] + count - lows[area, column]] + number]
        return arc[0], arc[1]
    likely = weights[starts[area, column] + count - lows[area, column]]
    return (0.0, likely) if count < keys.published[area, column] else (1.0 - likely, 1.0)


@inner
def _number_of_arcs(keys: KeyInput, evidence: Evidence, area: int, column: int, count: int) -> int:
    """Return how many arcs there are; −1 where the cell's random number is not known to lie anywhere."""
    if keys.start[area, column] >= 0:
        at = keys.start[area, column] + count - evidence.low[area, column]
        return int(keys.first[at + 1] - keys.first[at])
    return 1 if keys.two_way[column] and evidence.start[area, column] >= 0 else -1


@inner
def _bend(x: float) -> float:
    """Return Bernoulli's third polynomial of a place on the circle, divided by 3!."""
    x -= np.floor(x)
    return ((x - 1.5) * x + 0.5) * x / 6.0


@inner
def _ratio(keys: KeyInput, evidence: Evidence, area: int, cells: Table, first: int, second: int, constant: float) -> float:
    """Return how much likelier a pair is with keys than with independent random numbers: `meeting`, over all arcs."""
    total = first + second
    several = _number_of_arcs(keys, evidence, area, cells[0], total)
    of_first = _number_of_arcs(keys, evidence, area, cells[1], first)
    of_second = _number_of_arcs(keys, evidence, area, cells[2], second)
    alone = together = 0.0
    if first == 0 or second == 0:  # an empty part has no records: the other has those of the total, and its random number
        part, count, arcs = (cells[1], first, of_first) if second == 0 else (cells[2], second, of_second)
        for i in range(several if total > 0 else 0):
            t1, t2 = _arc(keys, evidence, area, cells[0], total, i)
            for j in range(arcs):
                a1, a2 = _arc(keys, evidence, area, part, count, j)
                alone += (t2 - t1) * (a2 - a1)
                together += max(0.0, min(t2, a2) - max(t1, a1))
        return together / alone if alone > 1e-12 else 1.0
    if constant == ANY_CONSTANT:
        return 1.0
    for i in range(several):
        t1, t2 = _arc(keys, evidence, area, cells[0], total, i)
        for j in range(of_first):
            a1, a2 = _arc(keys, evidence, area, cells[1], first, j)
            for k in range(of_second):
                b1, b2 = _arc(keys, evidence, area, cells[2], second, k)
                alone += (t2 - t1) * (a2 - a1) * (b2 - b1)
                for end, sign in ((t2, 1.0), (t1, -1.0)):
                    at = constant - end
                    together += sign * (
                        _bend(a2 + b2 + at) - _bend(a1 + b2 + at) - _bend(a2 + b1 + at) + _bend(a1 + b1 + at)
                    )
    return max(0.0, 1.0 + together / alone) if alone > 1e-12 else 1.0


@inner
def weigh_keys(
    keys: KeyInput | None, evidence: Evidence, area: int, n: int, cells: Table, arena: FloatArray, at: int, box: Box
) -> None:
    """Multiply the weights of a node's pairs by how much likelier keys make them."""
    if keys is None:
        return
    if np.isnan(keys.constant[n]):
        return
    starts = evidence.start
    if keys.row[n] >= 0:
        known, steps = True, 0
        for k in range(3):
            known &= keys.start[area, cells[k]] < 0 and starts[area, cells[k]] >= 0
        if known:
            first, second = int(keys.published[area, cells[1]]), int(keys.published[area, cells[2]])
            steps = (first + second - int(keys.published[area, cells[0]])) // keys.base + 2
        if known and 0 <= steps < 5:
            table, least = keys.ratios[keys.row[n], steps], 1 - keys.base
            for r in range(box[2]):
                for c in range(box[3]):
                    k = at + r * box[3] + c
                    if arena[k] > 0.0 and box[0] + r > 0 and box[1] + c > 0:
                        arena[k] *= (1.0 - OWN) * table[box[0] + r - first - least, box[1] + c - second - least] + OWN
                    elif arena[k] > 0.0:
                        arena[k] *= _mixed_ratio(keys, evidence, area, n, cells, box[0] + r, box[1] + c)
            return
    for r in range(box[2]):
        for c in range(box[3]):
            k = at + r * box[3] + c
            if arena[k] > 0.0:
                arena[k] *= _mixed_ratio(keys, evidence, area, n, cells, box[0] + r, box[1] + c)


@inner
def _mixed_ratio(keys: KeyInput, evidence: Evidence, area: int, n: int, cells: Table, first: int, second: int) -> float:
    """Return how much likelier a pair is with keys, where a few counts may have random numbers of their own."""
    return (1.0 - OWN) * _ratio(keys, evidence, area, cells, first, second, keys.constant[n]) + OWN


@inner
def same_records(
    keys: KeyInput, evidence: Evidence, area: int, part: int, whole: Table, cells: Table, first: int, second: int
) -> float:
    """Return how much likelier keys make what was published of a total if a part has all of its people.

    Both have the same records, hence one random number, and are one observation. `whole` and `cells` are a count each, the
    second number, or a total and two parts of the node `part`.
    """
    starts, likely, alike = evidence.start, 1.0, True
    for k in range(len(cells)):
        count = second if len(cells) == 1 or k == 2 else first if k == 1 else first + second
        if starts[area, whole[k]] < 0 or starts[area, cells[k]] < 0 or keys.start[area, cells[k]] >= 0:
            return 1.0  # one of them is not published, or known by more than this table
        alike &= keys.published[area, whole[k]] == keys.published[area, cells[k]]
        likely *= evidence.weights[starts[area, cells[k]] + count - evidence.low[area, cells[k]]]
    if not alike:
        return OWN
    if len(cells) > 1 and not np.isnan(keys.constant[part]):
        likely *= _mixed_ratio(keys, evidence, area, part, cells, first, second)
    return (1.0 - OWN) / likely + OWN if likely > 1e-9 else 1.0


def plain(array: NDArray[Any], kind: type[np.generic]) -> NDArray[Any]:
    """Return an array in the type and layout that the kernels are compiled for; any other would trigger a recompilation."""
    if array.dtype == kind and array.flags.carray:  # as nearly all are; numpy takes ten times as long to find that out
        return array
    return np.require(array, kind, ("C", "W"))
