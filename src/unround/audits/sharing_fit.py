"""Fitting how total and parts share random numbers, by maximum likelihood over whole areas.

How often each residual T − M − F occurs says how much the total shares with its parts, but not with which: the two give the
same residuals. What tells them apart is the rest of the table. A total that goes up with the men's random number leaves the
sums of the totals' ages and of the men's ages off in the same direction. So the likelihood is that of all that was published
of an area: the engine works out its derivative by each share (`batch.posterior.pulls`), and steps of Newton's method, with
the scatter of that derivative over areas for its curvature, lead to the maximum. A count has its say only if its published
total is large: the prior of small counts would be taken for dependence if it is a little off. Selecting by the total does no
harm, because sharing does not change how a total is rounded; selecting by the parts would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unround.audits.dependence import (
    LEAST_OWN,
    Dependence,
    DependentSum,
    DependentTable,
    Shares,
    groups_of,
    paired,
    sharing_of,
)
from unround.audits.model import Model
from unround.batch.evidence import Drawn
from unround.batch.posterior import pulls
from unround.batch.tighten import tighten
from unround.batch.types import Tight, Windows
from unround.batch.windows import WindowTable
from unround.checks import Check
from unround.checks.families import CHANCE, DEPARTS
from unround.checks.run import NOT_INDEPENDENT
from unround.errors import InputError
from unround.mechanisms.base import step_of
from unround.prior import Prior
from unround.release import NOT_APPLICABLE, Counts
from unround.spool import Spool, Stage
from unround.structure import PlanFile

SAMPLED_AREAS = 3000
"""Areas to fit to: enough for standard errors of about a hundredth in a table of some ten large counts …"""

SAMPLED_CELLS = 1_600_000
"""… and fewer where an area has many counts, …"""

FEWEST_AREAS = 300
"""… but not fewer than this."""

LEAST_STEPS = 16
"""The least total that has its say, in steps between published counts: 80 where counts were rounded to base 5. Smaller ones
rest on the prior so much that what it has wrong is taken for sharing."""

LEAST_COUNTS = 300
"""Fewer large totals say nothing about a table."""

MOST_STEPS = 15
NEAR = 0.002
"""Shares that change by less than this from step to step have been found."""

FARTHEST = 0.25
"""The most that a share changes in a step."""

EVEN = 0.25
"""How different the two shares that the total has with its parts are before anything is known (standard deviation): where
the counts do not tell them apart, this keeps them alike."""

Floats = NDArray[np.float64]


def find_dependence(
    rounding: str,
    model: Model,
    prior: Prior,
    spool: Spool,
    checked: Check,
    plan_file: PlanFile | None = None,
    progress: Stage = lambda *_: None,
) -> Dependence:
    """Find out in which tables total and parts share random numbers, and how much.

    Parameters
    ----------
    rounding : str
        "auto" fits the tables in which `check` found a departure, and uses what is no chance; "dependent" fits all tables,
        and uses whatever comes out; "independent" does neither.
    model, prior, spool
        What all areas share, what true counts are like, and what was published.
    checked : Check
        What was found about the rounding.
    plan_file : PlanFile, optional
        The user's word: shares of a table that are taken as they are.
    progress : function
        Is told how far it is.
    """
    groups = groups_of(model)
    given = _given(groups, plan_file)
    wanted = []
    if rounding != "independent":
        wanted = [
            k
            for k in range(len(groups))
            if k not in given and (rounding == "dependent" or _departs(model, groups[k], checked))
        ]
    found = dict(given)
    if wanted:
        fitted = fit(model, prior, _sampled(model, spool), [groups[k] for k in wanted], progress)
        for k, one in zip(wanted, fitted, strict=True):
            found[k] = _judged(one, rounding)
    return Dependence(rounding, tuple(found[k] for k in sorted(found)))


def doubts_left(checked: Check, dependence: Dependence, model: Model) -> dict[int, str]:
    """Return the doubts about columns of the release; where probabilities account for a dependence, that is said instead."""
    heeded = {int(model.positions[cell]) for cell in dependence.columns(model)}
    return {
        column: said.replace(NOT_INDEPENDENT, "rounding is not independent; the probability accounts for this")
        if column in heeded
        else said
        for column, said in checked.doubts.items()
    }


def _departs(model: Model, group: DependentSum, checked: Check) -> bool:
    """Whether some family of sums that this table's counts stand in departs from independent rounding."""
    cells = {int(model.positions[c]) for split in group.splits for c in split}
    return any(one.otherwise == DEPARTS and len(cells & one.columns) >= 3 for one in checked.families)


def _judged(one: DependentTable, rounding: str) -> DependentTable:
    """Decide whether to use a fit."""
    if one.p_value is None:
        return replace(one, used=False, why=f"only {one.counts:,} large totals to fit to; {LEAST_COUNTS} are needed")
    if rounding == "dependent":
        return replace(one, used=True, why="as requested")
    if one.p_value >= CHANCE:
        return replace(one, used=False, why=f"may be chance (p = {one.p_value:.2g})")
    return replace(one, used=True, why="the check found a departure, and this explains it better than chance")


def _given(groups: Sequence[DependentSum], plan_file: PlanFile | None) -> dict[int, DependentTable]:
    """Return the tables whose shares the user gave."""
    found = {}
    for ruling in plan_file.dependence if plan_file else ():
        those = [k for k, group in enumerate(groups) if group.table == ruling.table]
        if not those:
            known = ", ".join(repr(name) for name in dict.fromkeys(group.table for group in groups)) or "none"
            raise InputError(
                f"there is no table {ruling.table!r} whose totals have two parts; tables of this kind: {known}.",
                source=plan_file.text if plan_file else "",
                line=ruling.line,
                column=1,
                where=plan_file.where if plan_file else "",
            )
        for k in those:
            empty = DependentTable(*groups[k].key, shares=(0.0, 0.0, 0.0))
            unknown = [name for name in ruling.shares if name not in empty.patterns]
            if unknown:
                raise InputError(
                    f"{unknown[0]!r} is not a pattern of this table: choose from {', '.join(empty.patterns)}.",
                    source=plan_file.text if plan_file else "",
                    line=ruling.line,
                    column=1,
                    where=plan_file.where if plan_file else "",
                )
            one, two, three = (float(ruling.shares.get(name, 0.0)) for name in empty.patterns)
            found[k] = replace(empty, shares=(one, two, three), used=one + two + three > 0, why="given in the plan")
    return found


def _sampled(model: Model, spool: Spool) -> Counts:
    """Choose areas to fit to, at random, always the same; those without any published count are left out."""
    from unround.prior.sample import AreaSample

    most = max(FEWEST_AREAS, min(SAMPLED_AREAS, SAMPLED_CELLS // len(model.columns)))
    sample = AreaSample(len(model.columns), most)
    for block in spool.blocks(4096):
        sample.add(model.counts_of(block.counts))
    return sample.counts


def fit(
    model: Model, prior: Prior, counts: Counts, groups: Sequence[DependentSum], progress: Stage = lambda *_: None
) -> list[DependentTable]:
    """Fit the shares of some tables to areas × cells, all at once.

    Notes
    -----
    Exact counts are taken as exact; areas that contradict this, or themselves, are left out.
    """
    model = paired(model, groups)
    windows, tight, active = _bounds(model, counts, groups)
    least = LEAST_STEPS * max(step_of(model.mechanisms[c]) for group in groups for c in _cells(group))
    weights = prior.weights(counts, tight.low, tight.high)
    shares = np.zeros((len(groups), 3))
    p_values: list[float | None] = []
    number = np.zeros((len(groups), 2), dtype=np.int64)
    spread = np.zeros((len(groups), 3, 3))
    moving = np.ones(len(groups), dtype=bool)
    for step in range(MOST_STEPS):
        progress("Fitting how random numbers are shared", step, MOST_STEPS)
        sharing = sharing_of(model, [(g, _three(shares[k])) for k, g in enumerate(groups)], least)
        pulled = pulls(model.compiled, windows, tight, weights, active, Drawn(sharing, counts))
        for k in range(len(groups)):
            own = pulled[:, 2 * k]
            both = own + pulled[:, 2 * k + 1][:, [0, 2, 1, 3, 4]]
            scores = both[:, 1:4] - both[:, :1]
            slope, spread[k] = scores.sum(0), scores.T @ scores
            if not step:
                number[k] = both[:, 4].sum(), (both[:, 4] > 0).sum()
                p_values.append(_p_value(slope, spread[k]) if number[k, 0] >= LEAST_COUNTS else None)
            if moving[k]:
                new = _stepped(shares[k], slope, spread[k])
                moving[k] = p_values[k] is not None and bool(np.abs(new - shares[k]).max() > NEAR)
                shares[k] = new
        if not moving.any():
            break
    progress("Fitting how random numbers are shared", MOST_STEPS, MOST_STEPS)
    found = []
    for k, group in enumerate(groups):
        covariance = np.linalg.inv(spread[k] + _EVEN_PULL + 1e-6 * np.eye(3))
        known = p_values[k] is not None
        told = known and _difference(np.linalg.pinv(spread[k] + 1e-9 * np.eye(3))) < EVEN / 2
        if not told:
            shares[k, :2] = shares[k, :2].mean()
        found.append(
            DependentTable(
                *group.key,
                _three(shares[k] if known else np.zeros(3)),
                _three(np.sqrt(np.diag(covariance))) if known else None,
                told,
                int(number[k, 0]),
                int(number[k, 1]),
                p_values[k],
            )
        )
    return found


_EVEN_PULL: Floats = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]) / EVEN**2


def _difference(covariance: Floats) -> float:
    """Return the standard error of the difference between the total's two shares."""
    way = np.array([1.0, -1.0, 0.0])
    return float(max(way @ covariance @ way, 0.0) ** 0.5)


def _three(values: Floats) -> Shares:
    one, two, three = (float(value) for value in values)
    return one, two, three


def _cells(group: DependentSum) -> list[int]:
    return [cell for split in group.splits for cell in split]


def _bounds(model: Model, counts: Counts, groups: Sequence[DependentSum]) -> tuple[Windows, Tight, NDArray[np.bool_]]:
    """Work out what is possible; sums that are not connected with any of the groups do not take part."""
    concerned = {int(model.piece[cell]) for group in groups for cell in _cells(group)}
    windows, _ = WindowTable(model.mechanisms).of(counts)
    active = np.ones((len(counts), len(model.equations)), dtype=bool)
    missing = counts == NOT_APPLICABLE
    for e in range(len(model.equations)):
        members = list(model.members(e))
        active[:, e] = ~missing[:, members].any(axis=1) & (int(model.piece[members[0]]) in concerned)
    return windows, tighten(model.compiled, windows, active), active


def _p_value(slope: Floats, spread: Floats) -> float:
    """Return how likely so steep a likelihood is where nothing is shared."""
    from scipy.stats import chi2

    return float(chi2.sf(slope @ np.linalg.pinv(spread) @ slope, 3))


def _stepped(shares: Floats, slope: Floats, spread: Floats) -> Floats:
    """Return the shares after a step towards the maximum, within their limits."""
    from scipy.optimize import minimize

    curve = spread + _EVEN_PULL + 1e-6 * np.eye(3)
    uphill = slope - _EVEN_PULL @ shares
    size = float(np.abs(curve).max())

    def loss(new: Floats) -> tuple[float, Floats]:
        way = new - shares
        return float(way @ curve @ way / 2 - uphill @ way) / size, (curve @ way - uphill) / size

    limits = [(max(0.0, share - FARTHEST), min(1 - LEAST_OWN, share + FARTHEST)) for share in shares.tolist()]
    inside = {"type": "ineq", "fun": lambda new: 1 - LEAST_OWN - new.sum(), "jac": lambda _: -np.ones(3)}
    done = minimize(loss, shares, jac=True, bounds=limits, constraints=[inside], method="SLSQP", options={"ftol": 1e-12})
    return np.asarray(np.clip(done.x, 0.0, 1.0), dtype=np.float64)
