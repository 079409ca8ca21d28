"""Families of few areas: from the arrays of a block to the sampler and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unround.batch.evidence import evidence_of, plain
from unround.batch.forest import forest_of
from unround.batch.posterior import ranges
from unround.batch.room import room_for
from unround.batch.threads import in_threads
from unround.batch.tighten import lists_of
from unround.batch.types import Distributions, Layout, PriorTable
from unround.linked.bounds import Rows
from unround.linked.gibbs import Averages, Block, Effort, Kin, gibbs
from unround.linked.kin import in_own_order, seeds
from unround.linked.persons import kinds_of_persons
from unround.linked.weights import Listed
from unround.mechanisms.base import BoolArray, FloatArray

EFFORT = Effort(chains=4, settle=5, sweeps=38, swaps=1000)
"""What is spent on a family: see `docs/linked.md` for what it buys."""


USUAL_WIDTH = 8.0
"""Possible counts of a cell, on average, in families that are sampled for as long as `Effort` says: so it is at base 5."""


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """What sampling found.

    Parameters
    ----------
    rows : array
        The areas: for every family the parent, then its children.
    family : array
        For each of these rows, the number of its family.
    chances : Distributions
        By these rows.
    rhat : array
        By family, how far chains differ: the largest R-hat of any cell (1: not at all).
    spread : array
        By family: how far the probability of any cell's likeliest count is off, as chains differ (one standard error).
    failed : array
        By family: no chain ever met all windows.
    """

    rows: Rows
    family: Rows
    chances: Distributions
    rhat: FloatArray
    spread: FloatArray
    failed: BoolArray


def sampled(
    layout: Layout,
    listed: Listed,
    prior: PriorTable | None,
    active: BoolArray | None,
    families: dict[int, Rows],
    linked: BoolArray,
    effort: Effort = EFFORT,
) -> Sampled:
    """Sample all families of a batch of areas.

    Parameters
    ----------
    layout, prior, active
        As for `posteriors`.
    listed : Listed
        What is known of the areas' cells.
    families : dict
        The rows of the children, by the row of the parent.
    linked : array of bool
        The columns in which children add up to their parent.
    effort : Effort
        How long to sample.
    """
    rows, first = list[int](), [0]
    bounds = np.stack([listed.low, listed.high])
    contents = []
    for parent, children in families.items():
        rows += [parent, *in_own_order(children, listed.low, listed.high)]
        first.append(len(rows))
        contents.append(bounds[:, rows[first[-2] :]])
    members = np.array(rows, dtype=np.int64)
    chosen = np.flatnonzero(linked)
    found = ranges(listed.low[members], listed.high[members])
    start = found.start.copy()
    parents = np.array(first[:-1])
    # What no link tells about a parent is not averaged.
    start[np.ix_(parents, np.flatnonzero(~linked))] = -1
    columns = layout.columns
    averages = Averages(
        start,
        np.zeros((effort.chains, found.chances.size)),
        np.zeros((effort.chains, 2, len(rows), columns)),
        np.zeros((len(families), effort.chains), dtype=np.int64),
    )
    sweeps = _sweeps(effort, np.diff(first), np.add.reduceat(listed.width[members][:, chosen].mean(axis=1), first[:-1]))
    kin = Kin(np.array(first, dtype=np.int64), members, seeds(contents), sweeps)
    forest = forest_of(layout)
    holds = np.ones((1, len(layout.equations)), dtype=np.bool_) if active is None else plain(active, np.bool_)
    block = Block(
        evidence_of(listed.windows(), prior, columns, len(forest.nodes)),
        plain(listed.low, np.int32),
        plain(listed.high, np.int32),
        holds,
        plain(linked, np.bool_),
    )
    lists, swaps = lists_of(columns, layout.equations), kinds_of_persons(columns, layout.equations)
    most = int(listed.width.sum(axis=1).max(initial=1))

    def job(begin: int, end: int) -> None:
        gibbs(begin, end, forest, room_for(forest), lists, block, kin, swaps, effort, most, averages)

    in_threads(job, len(families))
    family = np.repeat(np.arange(len(families)), np.diff(first))
    found.chances[:] = _normalised(found, averages.chances.sum(axis=0))
    rhat = _rhat(averages, sweeps[family], family, chosen)
    spread = _spread(found, averages, family)
    found = Distributions(found.low, found.high, start, found.chances)
    return Sampled(members, family, found, rhat, spread, averages.kept.sum(axis=1) == 0)


def _sweeps(effort: Effort, members: Rows, widths: FloatArray) -> Rows:
    """Return how many sweeps to average in each family.

    Where few counts are possible a sweep costs little, and chains stick more easily: up to twice as many.
    """
    more = np.clip(USUAL_WIDTH * members / widths, 1, 2)
    return np.maximum(effort.sweeps * np.minimum(members, 5) / 5 * more, 1).astype(np.int64)


def _normalised(found: Distributions, chances: FloatArray) -> FloatArray:
    width = np.where(found.start >= 0, found.high.astype(np.int64) - found.low + 1, 0).ravel()
    width = width[width > 0]
    if not width.size:
        return chances
    firsts = np.cumsum(width) - width
    whole = np.add.reduceat(chances, firsts)
    return np.asarray(chances / np.repeat(np.where(whole > 0, whole, 1.0), width))


def _rhat(averages: Averages, sweeps: Rows, family: Rows, linked: Rows) -> FloatArray:
    """Compare how chains differ with how their draws do (Gelman and Rubin); the largest of a family's cells."""
    n = sweeps[:, np.newaxis].astype(np.float64)
    means = averages.moments[:, 0] / n
    within = np.maximum(averages.moments[:, 1] / n - means**2, 0).mean(axis=0)
    between = means.var(axis=0, ddof=1) if len(means) > 1 else np.zeros_like(within)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(within > 0.05, np.sqrt((n - 1) / n + between / within), 1.0)
    worst = np.ones(int(family.max(initial=-1)) + 1)
    np.maximum.at(worst, family, ratio[:, linked].max(axis=1, initial=1.0))
    return worst


def _spread(found: Distributions, averages: Averages, family: Rows) -> FloatArray:
    """Return how far chains disagree about the likeliest count of any cell: one standard error."""
    worst = np.zeros(int(family.max(initial=-1)) + 1)
    chains = len(averages.chances)
    if chains < 2 or not found.chances.size:
        return worst
    each = np.stack([_normalised(found, one) for one in averages.chances])
    error = each.std(axis=0, ddof=1) / chains**0.5
    width = np.where(found.start >= 0, found.high.astype(np.int64) - found.low + 1, 0)
    member = np.repeat(np.repeat(np.arange(width.shape[0]), width.shape[1]), width.ravel())
    np.maximum.at(worst, family[member], error)
    return worst
