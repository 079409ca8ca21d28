"""The true counts that repairs are published from: those that were given, or plausible ones.

Where nobody gives the truth, whole areas are drawn from their joint posterior, given everything that the draft prints, one
world under each prior of the set in turn. A repair is then published from every one of these worlds. That is an estimate:
the truth is none of them, but, as far as the priors are right, it could be any.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unround.audits import AuditOptions, Auditor, InferredBlock
from unround.audits.keys import Keys
from unround.audits.truth import Truth
from unround.engines.forest import samples
from unround.errors import InputError
from unround.evidence.block import Ints
from unround.mechanisms import HIDDEN, Exact, Rounding
from unround.mechanisms.base import BoolArray, IntArray
from unround.prior import Prior
from unround.release import ABSENT, LARGEST, NOT_AVAILABLE, Counts, Release
from unround.reviews.exposure import weighing
from unround.reviews.table import ReviewedTable
from unround.sums.forest import Equations

if TYPE_CHECKING:
    from collections.abc import Sequence

EXACT, ESTIMATED = "exact", "estimated"
"""Whether a repair was tried on true counts, or on plausible ones."""

STATES = 8
"""States of an area that are drawn at once. One is chosen for each area, because all areas get the same random numbers."""

MOST_MOVED = 100_000
"""Counts of areas whose draws have to be moved: each area takes an integer program."""

MISFIT = 0.01
"""The share of counts from which on a truth cannot be the truth of what is printed."""


@dataclass(frozen=True, eq=False)
class Worlds:
    """True counts, areas × columns of the draft; `ABSENT` or below where there is none.

    - `counts`: One world if the truth is known, several plausible ones if not.
    - `method`: `EXACT` or `ESTIMATED`.
    """

    counts: tuple[Counts, ...]
    method: str


def given_truth(table: ReviewedTable, truth: Release, folder: Path) -> tuple[Worlds, list[str]]:
    """Return the world that a file of true counts describes, and what the user should know about it.

    Raises `InputError` where it lacks a column, cannot be the truth of what is printed, or does not add up.
    """
    matched = Truth.of(truth, table.model, table.axes, table.areas, folder)
    missing = [column.key for column, at in zip(table.columns, matched.columns, strict=True) if at < 0]
    if missing:
        few = ", ".join(missing[:4]) + (" …" if len(missing) > 4 else "")
        raise InputError(
            f"{len(missing):,} of the {len(table.columns):,} columns of the draft are missing from the truth in "
            f"{truth.source} ({few}): give the true counts of all columns, under the same names, or leave out --truth."
        )
    true = matched.of_areas(np.arange(len(table.counts)))
    notes = _fits(table, true, truth.source)
    _adds_up(table, true, truth.source)
    return Worlds((true,), EXACT), notes


def _fits(table: ReviewedTable, true: Counts, source: str) -> list[str]:
    """Complain where the draft cannot have been published from these counts."""
    both = (table.counts > ABSENT) & (true > ABSENT)
    reach = [how.base - 1 if isinstance(how, Rounding) else 0 if isinstance(how, Exact) else -1 for how in table.mechanisms]
    tested = both & (np.array(reach) >= 0)
    off = tested & (np.abs(table.counts.astype(np.int64) - true) > np.array(reach))
    seen, wrong = int(tested.sum()), int(off.sum())
    if wrong > MISFIT * seen:
        row, cell = np.argwhere(off)[0].tolist()
        raise InputError(
            f"{wrong:,} of {seen:,} counts of the draft cannot have been published from the truth in {source}: in "
            f"{table.area_codes[row]}, {table.columns[cell].key} is {true[row, cell]:,} and was published as "
            f"{table.counts[row, cell]:,}. It belongs to another table, or was rounded itself. Give the true counts, or "
            "leave out --truth."
        )
    return [f"{wrong:,} of {seen:,} counts of the draft do not fit the truth."] if wrong else []


def _adds_up(table: ReviewedTable, true: Counts, source: str) -> None:
    """Complain where a sum that the draft is judged by does not hold among the true counts."""
    for total, parts in table.equations:
        members = true[:, [total, *parts]].astype(np.int64)
        there = np.asarray((members > ABSENT).all(axis=1))
        off = np.flatnonzero(there & (members[:, 0] != np.where(there[:, None], members[:, 1:], 0).sum(axis=1)))
        if off.size:
            row = int(off[0])
            names = [table.columns[at].key for at in (total, *parts)]
            numbers = " + ".join(f"{number:,}" for number in members[row, 1:].tolist())
            raise InputError(
                f"the true counts in {source} do not add up: in {table.area_codes[row]}, {names[0]} is {members[row, 0]:,}, "
                f"but {' + '.join(names[1:])} is {numbers} = {members[row, 1:].sum():,}. Correct the truth; or, if this sum "
                "need not hold, leave it out in a plan file: `unround check FILE --write plan.toml`."
            )


def plausible_worlds(table: ReviewedTable, prior: Prior, keys: Keys | None, number: int, seed: int) -> Worlds:
    """Draw plausible true counts of a draft; where all of it is unrounded, these are the counts themselves.

    Raises `InputError` where the sums form loops for which no counts that add up can be drawn.
    """
    if all(isinstance(how, Exact) for how in table.mechanisms):
        return Worlds((table.counts,), EXACT)
    worlds = [np.full(table.counts.shape, NOT_AVAILABLE, dtype=np.int32) for _ in range(number)]
    auditor = Auditor(table.model, prior, AuditOptions(), keys) if table.equations else None
    rng = np.random.default_rng([seed, 11])
    for rows, nested in table.blocks():
        counts = table.counts[rows]
        if auditor is None:
            raise InputError("no sum of the table tells anything about its true counts")
        inferred = auditor.infer(counts, table.adjustable[rows], nested)
        for at, world in enumerate(worlds):
            variant = prior.variants[at % len(prior.variants)]
            world[rows] = _drawn(auditor, inferred, variant, int(rng.integers(1 << 62)), rng)
    return Worlds(tuple(worlds), ESTIMATED)


def _drawn(auditor: Auditor, inferred: InferredBlock, variant: str, seed: int, rng: np.random.Generator) -> Counts:
    """Draw the true counts of some areas under one prior; all sums hold in what is returned."""
    here, model = weighing(auditor, inferred), auditor.model
    states = samples(model.compiled, here.bounds.windows, here.reach, STATES, seed, here.weights(variant), inferred.active)
    chosen = rng.integers(0, STATES, size=len(inferred.counts))
    drawn = states[chosen, np.arange(len(inferred.counts))].astype(np.int64)
    published = np.maximum(inferred.counts, 0)
    # Where nothing bounds a count, or an area contradicts itself, what is printed has to do.
    whole = np.where(drawn >= 0, drawn, np.where(inferred.counts > ABSENT, published, HIDDEN))
    # Sums that form loops are not part of the posterior: the draw is moved as little as possible so that they hold, too.
    off = np.flatnonzero(~_hold(whole, inferred.active, model.equations))
    if off.size * whole.shape[1] > MOST_MOVED:
        raise InputError("its sums form loops, and the table is too large to find counts that add up in all of them")
    for row in off.tolist():
        sums = [one for e, one in enumerate(model.equations) if inferred.active[row, e]]
        whole[row] = _nearest(whole[row], here.reach.low[row], here.reach.high[row], sums)
    return np.where(whole == HIDDEN, NOT_AVAILABLE, whole).astype(np.int32)


def _nearest(drawn: IntArray, low: Ints, high: Ints, sums: Sequence[tuple[int, tuple[int, ...]]]) -> IntArray:
    """Return the counts within their bounds that are nearest to those drawn, among those for which all sums hold."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import lil_array

    there = np.flatnonzero(drawn != HIDDEN)
    place = {int(cell): at for at, cell in enumerate(there)}
    used = [(total, parts) for total, parts in sums if all(cell in place for cell in (total, *parts))]
    many = len(there)
    # Besides each count, how far above and how far below the drawn one it is: the sum of these is to be least.
    equal = lil_array((len(used) + many, 3 * many))
    right = np.zeros(len(used) + many)
    for e, (total, parts) in enumerate(used):
        equal[e, place[total]] = 1
        for part in parts:
            equal[e, place[part]] = -1
    for at in range(many):
        equal[len(used) + at, at], equal[len(used) + at, many + at], equal[len(used) + at, 2 * many + at] = 1, -1, 1
        right[len(used) + at] = drawn[there[at]]
    far = np.full(2 * many, np.inf)
    least, most = np.maximum(low[there], 0), np.minimum(high[there].astype(np.float64), LARGEST)
    found = milp(
        np.r_[np.zeros(many), np.ones(2 * many)],
        constraints=LinearConstraint(equal.tocsr(), right, right),
        bounds=Bounds(np.r_[least, np.zeros(2 * many)], np.r_[most, far]),
        integrality=np.r_[np.ones(many), np.zeros(2 * many)],
        options={"time_limit": 10.0},
    )
    if found.x is None:
        raise InputError("its sums form loops for which no counts that add up could be found")
    moved = drawn.copy()
    moved[there] = np.rint(found.x[:many]).astype(np.int64)
    return moved


def _hold(counts: IntArray, active: BoolArray, equations: Equations) -> BoolArray:
    """Return in which areas all sums hold of which all counts are there."""
    found = np.ones(len(counts), dtype=np.bool_)
    for e, (total, parts) in enumerate(equations):
        members: Sequence[int] = [total, *parts]
        there = active[:, e] & (counts[:, members] != HIDDEN).all(axis=1)
        found &= ~there | (counts[:, total] == np.where(there[:, None], counts[:, list(parts)], 0).sum(axis=1))
    return found
