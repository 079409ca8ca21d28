"""Blocked Gibbs sampling of small families: runs the chains, checks convergence, and shrinks averages towards messages.

Convergence is judged by the Gelman–Rubin statistic (R-hat; Gelman and Rubin 1992). See `gibbs_kernel` for the sampler.

The shrinkage is James and Stein's (1961; Efron and Morris 1973). Averages of draws are unbiased but noisy. Beliefs by
messages (`loopy`) are free of noise but biased where areas are few: their means are right, but their variances are too
small for cells without parts and too large for totals, by a factor that all cells of a kind share. A few draws are enough
to correct that. The averages are then shrunk towards the corrected beliefs by the share of the difference that sampling
error explains. Beliefs that are far off have no influence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from unround.batch.buffers import buffers_for
from unround.batch.compiled_sums import forest_of
from unround.batch.evidence import evidence_of, plain
from unround.batch.posterior import empty_distributions
from unround.batch.tighten import lists_of
from unround.batch.types import CompiledSums, Distributions, PriorWeights
from unround.jit import in_threads
from unround.linked.bounds import Rows, seeds
from unround.linked.gibbs_kernel import Averages, Effort, FamilyRows, GibbsBlock, gibbs, swap_moves
from unround.linked.loopy import exchange_messages, without_parts
from unround.linked.weights import CountWeights
from unround.mechanisms.base import BoolArray, FloatArray

EFFORT = Effort(chains=4, settle=2, sweeps=6, swaps=1000)
"""The effort per family: see `docs/linked.md` for the accuracy that it buys."""

MOST_RHAT = 1.25
"""The largest R-hat of chains that agree. Short chains differ more by chance alone: see `CHANCE`."""

CHANCE = 20.0
"""The largest ratio of the variance between the means of chains to that of independent draws, in any cell of a family."""

STILL = 0.05
"""Variance of a cell's draws below which a chain counts as stuck there."""

LONGER = 6
"""How many times longer families are sampled whose chains disagree."""

USUAL_WIDTH = 8.0
"""Average number of possible counts per cell at which `Effort` applies unchanged: that of base 5."""


@dataclass(frozen=True, slots=True, eq=False)
class FamilySamples:
    """The result of sampling families.

    - `rows`: The areas: for every family the parent, then its children.
    - `family`: For each of these rows, the number of its family.
    - `chances`: By these rows.
    - `rhat`: By family, the largest R-hat of any cell (1: chains agree).
    - `spread`: By family, the largest standard error of any probability, from the differences between chains.
    - `failed`: By family: chains disagree by more than chance explains, or one of them found no state that fits.
    """

    rows: Rows
    family: Rows
    chances: Distributions
    rhat: FloatArray
    spread: FloatArray
    failed: BoolArray


def sample_families(
    compiled: CompiledSums,
    listed: CountWeights,
    prior: PriorWeights | None,
    active: BoolArray | None,
    families: dict[int, Rows],
    linked: BoolArray,
    effort: Effort = EFFORT,
    *,
    shrunk: bool = True,
) -> FamilySamples:
    """Sample all families of a batch of areas."""
    rows, first = list[int](), [0]
    bounds = np.stack([listed.low, listed.high])
    contents = []
    for parent, children in families.items():
        rows += [parent, *listed.in_own_order(children)]
        first.append(len(rows))
        contents.append(bounds[:, rows[first[-2] :]])
    members = np.array(rows, dtype=np.int64)
    chosen = np.flatnonzero(linked)
    found = empty_distributions(listed.low[members], listed.high[members])
    start = found.start.copy()
    parents = np.array(first[:-1])
    # Columns of a parent that are not linked are not averaged.
    start[np.ix_(parents, np.flatnonzero(~linked))] = -1
    columns = compiled.columns
    averages = Averages(
        start,
        np.zeros((effort.chains, found.chances.size)),
        np.zeros((effort.chains, 2, len(rows), columns)),
        np.zeros((len(families), effort.chains), dtype=np.int64),
    )
    sweeps = _sweeps(effort, np.diff(first), np.add.reduceat(listed.width[members][:, chosen].mean(axis=1), first[:-1]))
    members_of = FamilyRows(np.array(first, dtype=np.int64), members, seeds(contents), sweeps)
    forest = forest_of(compiled)
    holds = np.ones((1, len(compiled.equations)), dtype=np.bool_) if active is None else plain(active, np.bool_)
    block = GibbsBlock(
        evidence_of(listed.windows(), prior, columns, len(forest.nodes)),
        plain(listed.low, np.int32),
        plain(listed.high, np.int32),
        holds,
        plain(linked, np.bool_),
    )
    lists, swaps = lists_of(columns, compiled.equations), swap_moves(columns, compiled.equations)
    most = int(listed.width.sum(axis=1).max(initial=1))

    def job(begin: int, end: int) -> None:
        gibbs(begin, end, forest, buffers_for(forest), lists, block, members_of, swaps, effort, most, averages)

    in_threads(job, len(families), fewest=2)
    family = np.repeat(np.arange(len(families)), np.diff(first))
    cell = np.repeat(np.arange(found.start.size), np.where(found.start >= 0, found.high - found.low + 1, 0).ravel())
    found.chances[:] = normalised(cell, averages.chances.sum(axis=0))
    error = _error(cell, averages.chances)
    leaves = without_parts(compiled, linked)
    if shrunk and leaves.size:
        use = None if active is None else active[members]
        own_families = {begin: np.arange(begin + 1, end) for begin, end in pairwise(first)}
        own_prior = None if prior is None else prior.rows(members)
        beliefs, _ = exchange_messages(compiled, listed.take(members), own_prior, use, own_families, linked)
        kind = np.isin(np.arange(columns), leaves) + 2 * np.isin(np.arange(len(rows)), parents)[:, np.newaxis]
        kind = np.where(start >= 0, kind + 4 * family[:, np.newaxis], -1).ravel()[cell]
        found.chances[:], error = shrink(cell, kind, found.chances, beliefs.chances, error)
    worst = np.zeros(len(families))
    np.maximum.at(worst, family[cell // columns], error)
    rhat = _rhat(averages, sweeps[family], family, chosen)
    apart = rhat > np.maximum(MOST_RHAT, np.sqrt((sweeps - 1 + CHANCE) / sweeps))
    found = Distributions(found.low, found.high, start, found.chances)
    # A chain that found no state that fits cannot be trusted, and neither can its family.
    whole = averages.kept == (sweeps * (np.diff(first) - 1))[:, np.newaxis]
    return FamilySamples(members, family, found, rhat, worst, apart | ~whole.all(axis=1))


def sample_with_retry(
    compiled: CompiledSums,
    listed: CountWeights,
    prior: PriorWeights | None,
    active: BoolArray | None,
    families: dict[int, Rows],
    linked: BoolArray,
    effort: Effort = EFFORT,
) -> Iterator[tuple[dict[int, Rows], FamilySamples]]:
    """Sample all families, then those that failed once more for longer; yield each time the families and the result."""
    for chosen in (effort, effort._replace(settle=LONGER * effort.settle, sweeps=LONGER * effort.sweeps)):
        drawn = sample_families(compiled, listed, prior, active, families, linked, chosen)
        yield families, drawn
        families = {at: members for (at, members), bad in zip(families.items(), drawn.failed, strict=True) if bad}
        if not families:
            return


def _sweeps(effort: Effort, members: Rows, widths: FloatArray) -> Rows:
    """Return how many sweeps to average in each family.

    Where few counts are possible, sweeps cost little and chains mix more slowly: up to three times as many.
    """
    return np.maximum(effort.sweeps * np.clip((USUAL_WIDTH * members / widths) ** 2, 1, 3), 1).astype(np.int64)


def _error(cell: Rows, chances: FloatArray) -> FloatArray:
    """Return the standard error of the mean over chains, for the probability of every count."""
    if len(chances) < 2:
        return np.zeros(chances.shape[1])
    each = np.stack([normalised(cell, one) for one in chances])
    return np.asarray(each.std(axis=0, ddof=1) / len(each) ** 0.5)


def _rhat(averages: Averages, sweeps: Rows, family: Rows, linked: Rows) -> FloatArray:
    """Return R-hat (Gelman and Rubin): the largest over a family's cells."""
    n = sweeps[:, np.newaxis].astype(np.float64)
    means = averages.moments[:, 0] / n
    within = np.maximum(averages.moments[:, 1] / n - means**2, 0).mean(axis=0)
    between = means.var(axis=0, ddof=1) if len(means) > 1 else np.zeros_like(within)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(within > STILL, np.sqrt((n - 1) / n + between / within), 1.0)
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
    chance, apart = (np.bincount(alike, np.where(kind < 0, 0.0, one**2)) for one in (error, drawn - beliefs))
    share = np.minimum(chance / np.where(apart > 0, apart, 1.0), MOST_SHRUNK)[alike]
    # A single cell may be off where its kind is not: it is not moved further than sampling error may have brought it.
    usual = chance / np.maximum(np.bincount(alike, np.where(kind < 0, 0.0, drawn)), 1.0)
    own_chance, own_apart = (np.bincount(cell, one**2)[cell] for one in (error, drawn - beliefs))
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
    wide, goal = (np.bincount(alike, np.where(open_yet, beliefs * one[cell], 0.0)) for one in (variance, drawn_variance))
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
