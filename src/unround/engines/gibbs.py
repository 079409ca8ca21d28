"""Blocked Gibbs sampling of small families, compiled (Geman and Geman 1984; Jensen, Kong and Kjærulff 1995).

Conditional on the other children's true counts, every published count of the parent is a second observation of one child's
own: that child's whole table can be drawn exactly, by sum-product. So children are drawn in turn. What is averaged are not
the draws but the exact conditional distributions they come from (Rao–Blackwellisation; Gelfand and Smith 1990), the parent's
included.

Where windows are tight, such chains mix poorly. So pairs of children also swap persons by Metropolis steps: one more of some
kind here, one fewer there, which leaves the parent unchanged: a vector in the lattice of tables that satisfy all sums, as in
a Markov basis (Diaconis and Sturmfels 1998). Every chain starts from a state that may violate the parent's windows, at a
penalty, and counts only once it no longer does. Convergence is judged by R-hat (Gelman and Rubin 1992).

Averages of draws are unbiased but noisy. Beliefs by messages (`loopy`) are free of noise but biased where areas are few:
their means are right, but their variances are too small for cells without parts and too large for totals, by a factor that
all cells of a kind share. A few draws are enough to correct that. The averages are then shrunk towards the corrected beliefs
by the share of the difference that sampling error explains (James and Stein 1961; Efron and Morris 1973). Beliefs that are
far off have no influence.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.bounds.tighten import BoundsInput, Lists, lists_of, tighten_areas
from unround.engines.chains import FamilySamples, r_hat
from unround.engines.linked_weights import CountWeights
from unround.engines.loopy import exchange_messages, without_parts
from unround.engines.marginals import Draw, belief_of, sample
from unround.engines.messages import (
    Buffers,
    Here,
    arrange,
    buffers_for,
    downward_pass,
    make_room,
    set_local_evidence,
    upward_pass,
)
from unround.evidence.block import CellBounds, Distributions, Ints
from unround.evidence.cells import BlockArrays, Evidence, plain, weight
from unround.jit import MINUS_ONE, ZERO, RandomState, in_threads, inner, kernel, seeds, uniform
from unround.mechanisms.base import BoolArray, FloatArray
from unround.sums.compiled import Forest, Table, forest_of
from unround.sums.families import Rows
from unround.sums.forest import Equations, neighbours

MOST_KINDS = 400
"""The most kinds of persons to look for; where there are fewer in all, most of them are found."""

_TRIES = 8
"""Attempts to start from each cell."""


class Swaps(NamedTuple):
    """Kinds of persons: one more of kind i adds one to each of `cells[first[i]:first[i + 1]]`."""

    first: Table
    cells: Table


@lru_cache(maxsize=16)
def swap_moves(columns: int, equations: Equations) -> Swaps:
    """Find kinds of persons: sets of cells such that every sum still holds if each of them grows by one.

    Starting from each cell without parts, all cells that must grow too are added; where one of several parts must, it
    is chosen at random. Failed attempts are repeated a few times.
    """
    rng = np.random.default_rng(0)
    _, touching = neighbours(equations)
    totals = {total for total, _ in equations}
    leaves = [column for column in range(columns) if column not in totals and column in touching]
    found_kinds: dict[tuple[int, ...], None] = {}
    for leaf in leaves * (1 if len(leaves) >= MOST_KINDS else 3):
        for _ in range(_TRIES):
            kind = _grown(leaf, equations, touching, rng)
            if kind is not None:
                found_kinds[kind] = None
                break
        if len(found_kinds) >= MOST_KINDS:
            break
    kinds = list(found_kinds)
    first = np.concatenate([[0], np.cumsum([len(kind) for kind in kinds])]).astype(np.int64)
    return Swaps(first, np.array([cell for kind in kinds for cell in kind], dtype=np.int64))


def _grown(
    leaf: int, equations: Equations, touching: dict[int, list[int]], rng: np.random.Generator
) -> tuple[int, ...] | None:
    """Return the cells that grow with one cell, at random where there is a choice; None if one would have to grow twice."""
    grown, forced, open_sums = {leaf}, [leaf], list[int]()
    while True:
        while forced:
            for e in touching[forced.pop()]:
                total, parts = equations[e]
                number = sum(part in grown for part in parts)
                if number > 1:
                    return None
                if number == 1 and total not in grown:
                    grown.add(total)
                    forced.append(total)
                elif number == 0 and total in grown:
                    open_sums.append(e)
        waiting = [e for e in open_sums if not any(part in grown for part in equations[e][1])]
        if not waiting:
            return tuple(sorted(grown))
        # The sum with the fewest parts first: a choice between men and women decides most of the others.
        e = min(waiting, key=lambda equation: (len(equations[equation][1]), equation))
        parts = equations[e][1]
        part = parts[int(rng.integers(len(parts)))]
        grown.add(part)
        forced.append(part)
        open_sums = waiting


PENALTY = 0.05
"""Factor by which a violated window of the parent is penalised at first, once per step away from it."""

MOST_TRIES = 200
"""Sweeps after which a chain that still violates a window is abandoned."""


class FamilyRows(NamedTuple):
    """The rows of family f are `rows[first[f]:first[f + 1]]`, the parent first; its seed, and how many sweeps to average."""

    first: Table
    rows: Table
    seeds: NDArray[np.uint64]
    sweeps: Table


class ChildWeights(NamedTuple):
    """The local evidence of one family's children: the weights of a cell's counts, by child, from `start` on.

    They are padded with a zero on either side: one fewer or one more than possible has no weight. `start` is -1 where
    nothing was published.
    """

    start: Table
    weights: FloatArray


class GibbsEffort(NamedTuple):
    """How long to sample: chains per family, sweeps to discard (burn-in) and to average, and swaps per sweep.

    Families with few possible counts are sampled for more sweeps, as these cost less.
    """

    chains: int
    settle: int
    sweeps: int
    swaps: int


class Averages(NamedTuple):
    """The kernel's output, by member (a row of `FamilyRows.rows`) and cell.

    `chances[chain, start[member, cell] + i]` adds up conditional distributions; `moments` draws and their squares, by chain;
    `kept` counts the averaged sweeps of a chain: none if it never met all windows.
    """

    start: Table
    chances: FloatArray
    moments: FloatArray
    kept: Table


class _ChildAtHand(NamedTuple):
    """One child at hand, given the others: local evidence, bounds by that and by its sums, and what the others add up to."""

    own: Evidence
    window_high: Ints
    bounds: CellBounds
    others: Ints


@inner
def _parent_weight(block: BlockArrays, parent: int, column: int, count: int, soft: bool) -> float:
    """Return the likelihood of a count of the parent; `soft` penalises what its window rules out."""
    evidence, off = block.evidence, max(block.low[parent, column] - count, count - block.high[parent, column])
    if off > 0:
        return PENALTY**off if soft and count >= 0 else 0.0
    start = evidence.start[parent, column]
    if start < 0:
        return 1.0
    likely = evidence.weights[start + count - evidence.low[parent, column]]
    return float(max(likely, PENALTY) if soft else likely)


@inner
def _condition(block: BlockArrays, linked_columns: BoolArray, row: int, parent: int, soft: bool, room: _ChildAtHand) -> None:
    """Set the local evidence of one child, conditional on the others' counts."""
    evidence, evidence_here, others, high, at = block.evidence, room.own, room.others, room.window_high[0], 0
    for c in range(len(others)):
        first, last = block.low[row, c], block.high[row, c]
        linked = linked_columns[c]
        if linked and not soft:
            first, last = max(first, block.low[parent, c] - others[c]), min(last, block.high[parent, c] - others[c])
        evidence_here.low[0, c], high[c] = first, last
        evidence_here.prior_low[0, c], evidence_here.prior_start[0, c] = (
            evidence.prior_low[row, c],
            evidence.prior_start[row, c],
        )
        start = evidence.start[row, c]
        if start < 0 and not (linked and (soft or evidence.start[parent, c] >= 0)):
            evidence_here.start[0, c] = -1
            continue
        evidence_here.start[0, c] = at
        for count in range(first, last + 1):
            likely = 1.0 if start < 0 else evidence.weights[start + count - evidence.low[row, c]]
            if linked:
                likely *= _parent_weight(block, parent, c, count + others[c], soft)
            evidence_here.weights[at] = likely
            at += 1


@inner
def _fits(block: BlockArrays, linked: BoolArray, parent: int, sums: Ints) -> bool:
    """Return whether the children's counts add up to what the parent's windows allow."""
    fits = True
    for c in range(len(sums)):
        fits &= not linked[c] or _parent_weight(block, parent, c, sums[c], False) > 0.0
    return fits


@inner
def _list_weights(block: BlockArrays, rows: Table, child_weights: ChildWeights) -> None:
    """List the children's local evidence count by count, so that swaps can look it up."""
    at = 0
    for b in range(len(rows) - 1):
        row = rows[1 + b]
        for c in range(child_weights.start.shape[1]):
            child_weights.start[b, c] = -1
            if block.evidence.start[row, c] < 0:
                continue
            first, last = block.low[row, c], block.high[row, c]
            child_weights.weights[at] = 0.0
            child_weights.start[b, c] = at + 1
            for count in range(first, last + 1):
                child_weights.weights[at + 1 + count - first] = weight(block.evidence, row, c, count)
            at += last - first + 3
            child_weights.weights[at - 1] = 0.0


@inner
def _weight_ratio(
    block: BlockArrays, row: int, child_weights: ChildWeights, child: int, x: Ints, change: Table, number: int, sign: int
) -> float:
    """Return the factor by which an area's weight changes if some cells change by one."""
    above, below = 1.0, 1.0
    for k in range(number):
        c, step = change[0, k], sign * change[1, k]
        at = child_weights.start[child, c]
        if at >= 0:
            at += x[c] - block.low[row, c]
            above *= child_weights.weights[at + step]
            below *= child_weights.weights[at]
        elif block.low[row, c] <= min(x[c], x[c] + step) and x[c] + step <= block.high[row, c]:
            above *= weight(block.evidence, row, c, x[c] + step)
            below *= weight(block.evidence, row, c, x[c])
        else:
            return 0.0
        if above == 0.0:
            return 0.0
    return above / below if below > 0.0 else 0.0


@inner
def _choose(swaps: Swaps, change: Table, random_state: RandomState) -> int:
    """Propose a swap of a person of one kind, or of two kinds; set the cells that change, and return how many."""
    kinds = len(swaps.first) - 1
    kind = int(uniform(random_state) * kinds)
    i, end = swaps.first[kind], swaps.first[kind + 1]
    j, stop = ZERO, ZERO
    if uniform(random_state) < 0.5:
        kind = int(uniform(random_state) * kinds)
        j, stop = swaps.first[kind], swaps.first[kind + 1]
    number = 0
    # Cells are sorted; those of both kinds stay as they are.
    while i < end or j < stop:
        if j < stop and i < end and swaps.cells[i] == swaps.cells[j]:
            i += 1
            j += 1
        elif j >= stop or (i < end and swaps.cells[i] < swaps.cells[j]):
            change[0, number], change[1, number] = swaps.cells[i], 1
            number += 1
            i += 1
        else:
            change[0, number], change[1, number] = swaps.cells[j], -1
            number += 1
            j += 1
    return number


@inner
def _swap(
    block: BlockArrays,
    rows: Table,
    swaps: Swaps,
    child_weights: ChildWeights,
    x: Ints,
    change: Table,
    random_state: RandomState,
) -> None:
    """Propose a swap between two children, and accept it with the Metropolis probability."""
    first = int(uniform(random_state) * len(x))
    second = (first + 1 + int(uniform(random_state) * (len(x) - 1))) % len(x)
    number = _choose(swaps, change, random_state)
    bar = uniform(random_state)
    ratio = _weight_ratio(block, rows[1 + first], child_weights, first, x[first], change, number, 1)
    if ratio > 0.0:
        ratio *= _weight_ratio(block, rows[1 + second], child_weights, second, x[second], change, number, -1)
    if bar < ratio:
        for k in range(number):
            x[first, change[0, k]] += change[1, k]
            x[second, change[0, k]] -= change[1, k]


@inner
def _sum_of_others(block: BlockArrays, rows: Table, x: Ints, drawn: int, j: int, into: Ints) -> None:
    """Add up the counts of all children but one; children not drawn yet count as the middle of their range."""
    into[:] = 0
    for b in range(len(x)):
        for c in range(len(into)):
            if b == j:
                continue
            row = rows[1 + b]
            into[c] += x[b, c] if b < drawn else (block.low[row, c] + block.high[row, c]) // 2


class _Sampler(NamedTuple):
    """What all families of a run share; `most_weights` is the most counts possible in all cells of an area together."""

    forest: Forest
    lists: Lists
    swaps: Swaps
    effort: GibbsEffort
    linked: BoolArray
    most_weights: int


@kernel
def _narrow(sampler: _Sampler, block: BlockArrays, rows: Table, j: int, soft: bool, room: _ChildAtHand) -> bool:
    """Work out the evidence and the bounds of one child, given what the others add up to; return whether any count fits."""
    row, evidence_here, bounds = rows[1 + j], room.own, room.bounds
    use = block.holds[row : row + 1] if len(block.holds) > 1 else block.holds
    _condition(block, sampler.linked, row, rows[0], soft, room)
    bounds.low[:], bounds.high[:] = evidence_here.low, room.window_high
    bounds.by_low[:] = bounds.by_high[:] = -1
    no_holes = np.zeros(1, dtype=np.int64)
    given = BoundsInput(evidence_here.low, room.window_high, evidence_here.start, evidence_here.weights, no_holes, use)
    tighten_areas(0, 1, sampler.lists, given, bounds)
    return bool(bounds.feasible[0])


@inner
def _average(
    here: Here, block: BlockArrays, linked: BoolArray, rows: Table, j: int, others: Ints, into: tuple[Table, FloatArray]
) -> None:
    """Add one child's conditional distributions to the averages: its own and the parent's."""
    row, parent, share, spare = rows[1 + j], rows[0], 1.0 / (len(rows) - 1), here.scratch[0]
    start, chances = into
    for c in range(len(linked)):
        if start[1 + j, c] < 0:
            continue
        begin, length = belief_of(here, c, spare)
        everything = 0.0
        for k in range(length):
            everything += spare[k]
        at = start[1 + j, c] + begin - block.low[row, c]
        for k in range(length):
            chances[at + k] += spare[k] / everything
        if linked[c]:
            at = start[0, c] + begin + others[c] - block.low[parent, c]
            for k in range(length):
                chances[at + k] += share * spare[k] / everything


@kernel
def gibbs(
    first: int, last: int, buffers: Buffers, sampler: _Sampler, block: BlockArrays, families: FamilyRows, averages: Averages
) -> None:
    """Sample a range of families."""
    forest, swaps, effort, most_weights = sampler.forest, sampler.swaps, sampler.effort, sampler.most_weights
    columns, shown = block.low.shape[1], block.evidence
    arena, scratch = np.empty(1 << 16), np.empty((3, 1 << 13))
    draw = Draw(np.zeros(1, dtype=np.uint64), np.zeros((len(forest.nodes), 2), dtype=np.int64), False)
    ints, places = np.zeros((7, 1, columns), dtype=np.int32), np.zeros((2, 1, columns), dtype=np.int64)
    evidence_here = Evidence(ints[0], places[0], np.empty(most_weights), ints[1], places[1], shown.prior_weights, shown.keys)
    bounds = CellBounds(ints[3], ints[4], ints[5], ints[6], np.ones(1, dtype=np.bool_))
    low, high, others = ints[3, 0], ints[4, 0], np.zeros(columns, dtype=np.int32)
    room = _ChildAtHand(evidence_here, ints[2], bounds, others)
    change = np.zeros((2, columns), dtype=np.int64)  # the cells that a swap changes, and by how much
    for f in range(first, last):
        member, rows = families.first[f], families.rows[families.first[f] : families.first[f + 1]]
        x = np.zeros((len(rows) - 1, columns), dtype=np.int32)
        child_weights = ChildWeights(np.zeros(x.shape, dtype=np.int64), np.empty(len(x) * (most_weights + 2 * columns)))
        _list_weights(block, rows, child_weights)
        for chain in range(effort.chains):
            into = averages.start[member : member + len(rows)], averages.chances[chain]
            draw.random[0] = families.seeds[f] + np.uint64(chain) * np.uint64(0x632BE59BD9B4E019)
            x[:] = -1
            fits, tries, sweep, drawn = False, 0, 0, 0
            while sweep < effort.settle + families.sweeps[f] and tries < MOST_TRIES:
                tries += not fits
                for j in range(len(x)):
                    row = rows[1 + j]
                    _sum_of_others(block, rows, x, drawn, j, others)
                    possible = _narrow(sampler, block, rows, j, not fits, room)
                    size, needed, _ = arrange(forest, buffers, low, high, block.holds[row if len(block.holds) > 1 else 0])
                    arena, scratch = make_room(arena, scratch, size, needed)
                    here = Here(forest, buffers, arena, scratch, evidence_here, ZERO, low, high)
                    if not (possible and size >= 0 and set_local_evidence(here) and upward_pass(here, False)):
                        tries = MOST_TRIES
                        break
                    sample(here, draw, x[j])
                    drawn = max(drawn, j + 1)
                    settled = fits and sweep >= effort.settle
                    if settled and downward_pass(here):
                        _average(here, block, sampler.linked, rows, j, others, into)
                        averages.kept[f, chain] += 1
                for _ in range(effort.swaps if len(swaps.first) > 1 and tries < MOST_TRIES else 0):
                    _swap(block, rows, swaps, child_weights, x, change, draw.random)
                if fits:
                    sweep += 1
                    for b in range(len(x) if sweep > effort.settle else 0):
                        for c in range(columns):
                            averages.moments[chain, 0, member + 1 + b, c] += x[b, c]
                            averages.moments[chain, 1, member + 1 + b, c] += float(x[b, c]) ** 2
                elif tries < MOST_TRIES:
                    _sum_of_others(block, rows, x, drawn, MINUS_ONE, others)
                    fits = _fits(block, sampler.linked, rows[0], others)


EFFORT = GibbsEffort(chains=4, settle=2, sweeps=6, swaps=1000)
"""The effort per family: see `docs/linked-methods.md` for the accuracy that it buys."""

MOST_RHAT = 1.25
"""The largest R-hat of chains that agree. Short chains differ more by chance alone: see `CHANCE`."""

CHANCE = 20.0
"""The largest ratio of the variance between the means of chains to that of independent draws, in any cell of a family."""

STILL = 0.05
"""Variance of a cell's draws below which a chain counts as stuck there."""

_NEVER_LEFT = 1e-12
"""How near to 1 the average probability of a count is, if every draw of every chain was that count."""

LONGER = 6
"""How many times longer families are sampled whose chains disagree."""

USUAL_WIDTH = 8.0
"""Average number of possible counts per cell at which `GibbsEffort` applies unchanged: that of base 5."""


def sample_families(
    listed: CountWeights, families: dict[int, Rows], linked: BoolArray, effort: GibbsEffort = EFFORT, *, shrunk: bool = True
) -> FamilySamples:
    """Sample all families of a batch of areas."""
    compiled, given = listed.compiled, listed.block()
    rows, first = list[int](), [0]
    bounds = np.stack([listed.low, listed.high])
    contents = []
    for parent, children in families.items():
        rows += [parent, *listed.in_own_order(children)]
        first.append(len(rows))
        contents.append(bounds[:, rows[first[-2] :]])
    members = np.array(rows, dtype=np.int64)
    chosen = np.flatnonzero(linked)
    distributions = Distributions.empty(listed.low[members], listed.high[members])
    start = distributions.start.copy()
    parents = np.array(first[:-1])
    # Columns of a parent that are not linked are not averaged.
    start[np.ix_(parents, np.flatnonzero(~linked))] = -1
    columns = compiled.columns
    averages = Averages(
        start,
        np.zeros((effort.chains, distributions.chances.size)),
        np.zeros((effort.chains, 2, len(rows), columns)),
        np.zeros((len(families), effort.chains), dtype=np.int64),
    )
    sweeps = _sweeps(effort, np.diff(first), np.add.reduceat(listed.width[members][:, chosen].mean(axis=1), first[:-1]))
    members_of = FamilyRows(np.array(first, dtype=np.int64), members, seeds(contents), sweeps)
    forest = forest_of(compiled)
    block = given.arrays()
    most = int(listed.width.sum(axis=1).max(initial=1))
    equations = compiled.equations
    sampler = _Sampler(
        forest, lists_of(columns, equations), swap_moves(columns, equations), effort, plain(linked, np.bool_), most
    )

    def job(begin: int, end: int) -> None:
        gibbs(begin, end, buffers_for(forest), sampler, block, members_of, averages)

    in_threads(job, len(families), fewest=2)
    family = np.repeat(np.arange(len(families)), np.diff(first))
    cell = np.repeat(
        np.arange(distributions.start.size),
        np.where(distributions.start >= 0, distributions.high - distributions.low + 1, 0).ravel(),
    )
    distributions.chances[:] = normalised(cell, averages.chances.sum(axis=0))
    # Where no draw and no swap leads to counts that the sums leave too, chains agree only because none can move.
    moved = np.ones(len(families), dtype=np.bool_)
    stuck = (distributions.chances > 1 - _NEVER_LEFT) & (np.bincount(cell)[cell] > 1)
    moved[family[cell[stuck] // columns]] = False
    error = _error(cell, averages.chances)
    leaves = without_parts(compiled, linked)
    if shrunk and leaves.size:
        own_families = {begin: np.arange(begin + 1, end) for begin, end in pairwise(first)}
        beliefs, _ = exchange_messages(listed.take(members), own_families, linked)
        kind = np.isin(np.arange(columns), leaves) + 2 * np.isin(np.arange(len(rows)), parents)[:, np.newaxis]
        kind = np.where(start >= 0, kind + 4 * family[:, np.newaxis], -1).ravel()[cell]
        distributions.chances[:], error = shrink(cell, kind, distributions.chances, beliefs.chances, error)
    worst = np.zeros(len(families))
    np.maximum.at(worst, family[cell // columns], error)
    rhat = _rhat(averages, sweeps[family], family, chosen)
    apart = rhat > np.maximum(MOST_RHAT, np.sqrt((sweeps - 1 + CHANCE) / sweeps))
    distributions = Distributions(distributions.low, distributions.high, start, distributions.chances)
    # A chain that found no state that fits cannot be trusted, and neither can its family.
    whole = averages.kept == (sweeps * (np.diff(first) - 1))[:, np.newaxis]
    return FamilySamples(members, family, distributions, rhat, worst, apart | ~moved | ~whole.all(axis=1))


def sample_with_retry(
    listed: CountWeights, families: dict[int, Rows], linked: BoolArray, effort: GibbsEffort = EFFORT
) -> Iterator[FamilySamples]:
    """Sample all families, then those that failed once more for longer."""
    for chosen in (effort, effort._replace(settle=LONGER * effort.settle, sweeps=LONGER * effort.sweeps)):
        drawn = sample_families(listed, families, linked, chosen)
        yield drawn
        families = {at: members for (at, members), bad in zip(families.items(), drawn.failed, strict=True) if bad}
        if not families:
            return


def _sweeps(effort: GibbsEffort, members: Rows, widths: FloatArray) -> Rows:
    """Return how many sweeps to average in each family.

    Where few counts are possible, sweeps cost little and chains mix more slowly: up to three times as many.
    """
    return np.maximum(effort.sweeps * np.clip((USUAL_WIDTH * members / widths) ** 2, 1, 3), 1).astype(np.int64)


def _error(cell: Rows, chances: FloatArray) -> FloatArray:
    """Return the standard error of the mean over chains, for the probability of every count."""
    if len(chances) < 2:
        return np.zeros(chances.shape[1])
    each = np.stack([normalised(cell, of_chain) for of_chain in chances])
    return np.asarray(each.std(axis=0, ddof=1) / len(each) ** 0.5)


def _rhat(averages: Averages, sweeps: Rows, family: Rows, linked: Rows) -> FloatArray:
    """Return the largest R-hat of a family's cells."""
    n = sweeps[:, np.newaxis].astype(np.float64)
    means = averages.moments[:, 0] / n
    within = np.maximum(averages.moments[:, 1] / n - means**2, 0).mean(axis=0)
    between = means.var(axis=0, ddof=1) if len(means) > 1 else np.zeros_like(within)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(within > STILL, r_hat(between, within, n), 1.0)
    ratio[(within <= STILL) & (between > STILL)] = np.inf  # every chain is stuck, each somewhere else
    worst = np.ones(int(family.max(initial=-1)) + 1)
    np.maximum.at(worst, family, ratio[:, linked].max(axis=1, initial=1.0))
    return worst


MOST_CORRECTED = 1.4
"""The largest factor by which variances are corrected."""

NEARLY_CERTAIN = 0.3
"""Variance up to which the belief about a cell is not corrected."""

MOST_LIFTED = 1.0
"""Logarithm of the largest factor by which a correction raises the weight of a count."""

FARTHEST = 3.0
"""Standard errors beyond which a single cell is shrunk no further, even if others of its kind are."""

MOST_SHRUNK = 0.9
"""The largest weight of beliefs in a result: they are never certain to be right."""


def shrink(
    cell: Rows, kind: Rows, drawn: FloatArray, beliefs: FloatArray, error: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Shrink averages of draws towards beliefs.

    The probabilities, and the standard error of each.
    """
    beliefs = _match_variances(cell, kind, drawn, beliefs)
    alike = np.where(kind < 0, 0, kind)
    chance, apart = (np.bincount(alike, np.where(kind < 0, 0.0, off**2)) for off in (error, drawn - beliefs))
    share = np.minimum(chance / np.where(apart > 0, apart, 1.0), MOST_SHRUNK)[alike]
    # A single cell may be off where its kind is not: it is not moved further than sampling error may have brought it.
    usual = chance / np.maximum(np.bincount(alike, np.where(kind < 0, 0.0, drawn)), 1.0)
    own_chance, own_apart = (np.bincount(cell, off**2)[cell] for off in (error, drawn - beliefs))
    farthest = FARTHEST * np.sqrt(np.maximum(own_chance, usual[alike]))
    share *= np.minimum(1.0, farthest / np.sqrt(np.where(own_apart > 0, own_apart, 1.0)))
    share = np.where((kind >= 0) & (np.bincount(cell, beliefs)[cell] > 0), share, 0.0)
    return drawn + share * (beliefs - drawn), error * np.sqrt(1 - share)


def _match_variances(cell: Rows, kind: Rows, drawn: FloatArray, beliefs: FloatArray) -> FloatArray:
    """Match the average variance of beliefs to that of draws, by one factor per kind.

    The factor is exact for normal distributions, and approximate for others.
    """
    mean, variance = _moments(cell, beliefs)
    _, drawn_variance = _moments(cell, drawn)
    # The variance of a nearly certain cell says nothing about its shape.
    open_yet = (kind >= 0) & (variance > NEARLY_CERTAIN)[cell]
    alike = np.where(open_yet, kind, 0)
    wide, goal = (
        np.bincount(alike, np.where(open_yet, beliefs * spread[cell], 0.0)) for spread in (variance, drawn_variance)
    )
    ratio = np.clip(goal / np.where(wide > 0, wide, 1.0), 1 / MOST_CORRECTED, MOST_CORRECTED)[alike]
    steep = np.where(open_yet, (1 / ratio - 1) / 2 / np.where(open_yet, variance[cell], 1.0), 0.0)
    distance = _steps(cell) - mean[cell]
    return normalised(cell, beliefs * np.exp(np.minimum(-steep * distance**2, MOST_LIFTED)))


def _steps(cell: Rows) -> Rows:
    """Return how far above the least count of its cell each entry is."""
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    return np.arange(cell.size) - np.repeat(first, np.diff(np.append(first, cell.size)))


def _moments(cell: Rows, chances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean (above the least count) and variance of every cell."""
    step = _steps(cell)
    mean = np.bincount(cell, chances * step).astype(np.float64)
    return mean, np.bincount(cell, chances * (step - mean[cell]) ** 2).astype(np.float64)


def normalised(cell: Rows, chances: FloatArray) -> FloatArray:
    """Make the weights of every cell add up to 1."""
    whole = np.bincount(cell, chances)
    return np.asarray(chances / np.where(whole > 0, whole, 1.0)[cell])
