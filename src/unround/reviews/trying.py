"""Every repair tried: published, judged by the same policy as the draft, and what it costs.

The true counts that repairs are published from: those that were given, or plausible ones.

Where nobody gives the truth, whole areas are drawn from their joint posterior, given everything that the draft prints, one
world under each prior of the set in turn. A repair is then published from every one of these worlds. That is an estimate:
the truth is none of them, but, as far as the priors are right, it could be any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.additive import nearest_whole
from unround.audits import Auditor, InferredBlock
from unround.audits.keys import Keys
from unround.checks.families import FITS
from unround.engines.forest import samples
from unround.errors import InputError
from unround.evidence.block import Ints
from unround.mechanisms import HIDDEN, Exact, Rounding
from unround.mechanisms.base import BoolArray, IntArray
from unround.options import AuditOptions
from unround.prior import Prior
from unround.release import ABSENT, LARGEST, NOT_AVAILABLE, Counts, Release, gaps
from unround.reviews.decision import CheckResults, Judgement, falls_under, judge
from unround.reviews.exposure import Exposure, exposure_of, fitted_prior, weighing
from unround.reviews.policy import KINDS, Policy
from unround.reviews.repairs import BASE, MERGE, REDRAW, ROUND, Repair, TableToRepair, repairs_of
from unround.reviews.result import NotTried, RepairCost, TriedRepair
from unround.reviews.table import ReviewedTable, original
from unround.reviews.together import KnownBefore
from unround.score.truth import Truth
from unround.sums.forest import Equations
from unround.tables.spool import Stage

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
    notes = check_fit(table, true, truth.source)
    _adds_up(table, true, truth.source)
    return Worlds((true,), EXACT), notes


def check_fit(table: ReviewedTable, true: Counts, source: str) -> list[str]:
    """Raise InputError where a table cannot have been published from these counts; return what a user should know."""
    both = (table.counts > ABSENT) & (true > ABSENT)
    if not both.any():
        raise InputError(
            f"the truth in {source} has none of the counts of the table: its areas or columns have other codes. Give a "
            "truth with the same codes, or leave out --truth."
        )
    reach = [how.base - 1 if isinstance(how, Rounding) else 0 if isinstance(how, Exact) else -1 for how in table.mechanisms]
    tested = both & (np.array(reach) >= 0)
    off = tested & (np.abs(table.counts.astype(np.int64) - true) > np.array(reach))
    seen, wrong = int(tested.sum()), int(off.sum())
    if wrong > MISFIT * seen:
        row, cell = np.argwhere(off)[0].tolist()
        raise InputError(
            f"{wrong:,} of {seen:,} counts of the table cannot have been published from the truth in {source}: in "
            f"{table.area_codes[row]}, {table.columns[cell].key} is {true[row, cell]:,} and was published as "
            f"{table.counts[row, cell]:,}. It belongs to another table, or was rounded itself. Give the true counts, or "
            "leave out --truth."
        )
    return [f"{wrong:,} of {seen:,} counts of the table do not fit the truth."] if wrong else []


def _adds_up(table: ReviewedTable, true: Counts, source: str) -> None:
    """Complain where a sum that the draft is judged by does not hold among the true counts."""
    for total, parts in table.equations:
        off = np.flatnonzero(gaps(true, total, parts)[1])
        if off.size:
            row = int(off[0])
            names, summed = [table.columns[at].key for at in (total, *parts)], true[row, list(parts)]
            numbers = " + ".join(f"{number:,}" for number in summed.tolist())
            raise InputError(
                f"the true counts in {source} do not add up: in {table.area_codes[row]}, {names[0]} is "
                f"{true[row, total]:,}, but {' + '.join(names[1:])} is {numbers} = {summed.sum():,}. Correct the truth; or, "
                "if this sum need not hold, leave it out (use = false) in a description: `unround check FILE --write "
                "FILE.toml`."
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
    states = samples(replace(here.block(variant), keyed=None), STATES, seed)
    chosen = rng.integers(0, STATES, size=len(inferred.counts))
    drawn = states[chosen, np.arange(len(inferred.counts))].astype(np.int64)
    published = np.maximum(inferred.counts, 0)
    # Where nothing bounds a count, or an area contradicts itself, what is printed has to do.
    whole = np.where(drawn >= 0, drawn, np.where(inferred.counts > ABSENT, published, HIDDEN))
    # Sums that form loops are not part of the posterior: the draw is moved as little as possible so that they hold, too.
    broken = [inferred.active[:, e] & (gaps(whole, *equation)[1] != 0) for e, equation in enumerate(model.equations)]
    off = np.flatnonzero(np.logical_or.reduce(broken))
    if off.size * whole.shape[1] > MOST_MOVED:
        raise InputError("its sums form loops, and the table is too large to find counts that add up in all of them")
    if off.size:
        bounds = here.within.rows(off)
        whole[off] = _nearest(whole[off], bounds.low, bounds.high, model.equations, inferred.active[off])
    return np.where(whole == HIDDEN, NOT_AVAILABLE, whole).astype(np.int32)


def _nearest(drawn: IntArray, low: Ints, high: Ints, equations: Equations, active: BoolArray) -> IntArray:
    """Return the counts within their bounds that are nearest to those drawn, among those for which all sums hold."""
    there = drawn != HIDDEN
    known = np.column_stack([there[:, [total, *parts]].all(axis=1) for total, parts in equations])
    least, most = np.where(there, np.maximum(low, 0), 0), np.where(there, np.minimum(high, LARGEST), 0)
    try:
        moved = nearest_whole(np.where(there, drawn, 0), least, most, equations, active & known)
    except InputError:
        raise InputError("its sums form loops for which no counts that add up could be found") from None
    return np.where(there, moved, HIDDEN)


MOST_NAMED = 200
"""Cells that are named with a repair."""

ENOUGH = 2
"""Publications after which a repair that one of them showed not to be within policy is not published again."""


@dataclass(frozen=True, eq=False)
class Excused:
    """The cells that do not count against a table.

    - `accepted`: Those that somebody accepted as exceptions, by area and key.
    - `before`: What readers know from an earlier release alone.
    - `unprinted`: The keys of counts that nobody prints or hides.
    """

    accepted: frozenset[tuple[str, str]]
    before: KnownBefore | None = None
    unprinted: frozenset[str] = frozenset()

    def mask(self, table: ReviewedTable, exposure: Exposure) -> BoolArray:
        """Return where these cells are in a table."""
        excused = np.zeros(table.counts.shape, dtype=np.bool_) if self.before is None else self.before.mask(table, exposure)
        if self.accepted:
            place = {column.key: at for at, column in enumerate(table.columns)}
            row = {code: at for at, code in enumerate(table.area_codes)}
            for area, key in self.accepted:
                if area in row and key in place:
                    excused[row[area], place[key]] = True
        if self.unprinted:
            excused[:, [column.key in self.unprinted for column in table.columns]] = True
        return excused


@dataclass(frozen=True, eq=False)
class Setting:
    """The draft, and how it was judged.

    - `table`, `exposure`, `ground`, `judgement`: The draft, what readers can learn from it, how far that can be relied
      on, and what the policy says.
    - `policy`: What is acceptable.
    - `excused`: Cells that do not count.
    - `seed`, `draws`: Of all random numbers; and how often a repair that draws some is published.
    """

    table: ReviewedTable
    exposure: Exposure
    ground: CheckResults
    judgement: Judgement
    policy: Policy
    excused: Excused
    seed: int
    draws: int

    def judged(self, table: ReviewedTable, rows: NDArray[np.int64]) -> BoolArray:
        """Return the cells of a repaired table that are to be acted on; if only some areas changed, first among these.

        What is probable is learned from all areas, so that a change to some may tell on others.
        """
        whole = np.arange(len(table.counts))
        if table.nested is not None or not table.equations:
            rows = whole
        prior = fitted_prior(table) if table.equations else None
        some = table if len(rows) == len(whole) else table.of_areas(rows)
        exposure = exposure_of(some, self.policy.least_probability, prior)
        cells = np.zeros(table.counts.shape, dtype=np.bool_)
        excused = self.excused.mask(some, exposure)
        cells[rows] = judge(self.policy, exposure, CheckResults(FITS), table.published, excused).act_on
        return cells if cells.any() or some is table else self.judged(table, whole)


@dataclass(frozen=True, eq=False)
class _Publication:
    """One publication of a repaired table: what is left, by kind and in all, and whether the policy accepts it."""

    table: ReviewedTable
    judgement: Judgement
    kinds: dict[str, int]
    left: int
    true: Counts


@dataclass(frozen=True, eq=False)
class Trials:
    """All repairs that were tried, the best first; why others were not; and the table that each leaves which is enough."""

    repairs: tuple[TriedRepair, ...] = ()
    not_tried: tuple[NotTried, ...] = ()
    tables: Mapping[str, ReviewedTable] = field(default_factory=dict)
    worlds: Worlds | None = None


def try_repairs(
    setting: Setting, wanted: Sequence[str] | None, worlds: Worlds | None, why_none: str, progress: Stage
) -> Trials:
    """Try all repairs that make sense, or those that are wanted; `why_none` says why there are no true counts."""
    tables: dict[str, ReviewedTable] = {}
    draft = TableToRepair(setting.table, setting.judgement.act_on, setting.judged)
    chosen, refused = repairs_of(draft, wanted)
    tried: list[TriedRepair] = []

    def attempt(repairs: Sequence[Repair]) -> None:
        for at, repair in enumerate(repairs):
            progress("Trying repairs", at, len(repairs))
            if repair.name.startswith(f"{MERGE}=") and wanted is None and any(name.startswith(MERGE) for name in tables):
                continue  # a cheaper one is enough
            if repair.needs_truth and worlds is None:
                refused[repair.name] = why_none
                continue
            try:
                row, runs = _tried(setting, repair, worlds)
                tried.append(row)
                if row.within_policy:
                    tables[repair.name] = runs[0].table
            except InputError as problem:  # such as sums that controlled rounding cannot keep up
                refused[repair.name] = str(problem).rstrip(".")
        progress("Trying repairs", len(repairs), len(repairs))

    attempt(chosen)
    if wanted is None and not tables:
        attempt(_stronger(draft, {repair.name: repair for repair in chosen}))
    ranked = (replace(row, rank=rank) for rank, row in enumerate(sorted(tried, key=_rank), 1))
    return Trials(tuple(ranked), tuple(NotTried(*pair) for pair in refused.items()), tables, worlds)


def _stronger(draft: TableToRepair, tried: dict[str, Repair]) -> list[Repair]:
    """Return what to try where nothing was enough: a base twice as large again, and two repairs together."""
    base = draft.table.base
    stronger = repairs_of(draft, [f"{BASE}={4 * base}"])[0] if base else []
    coarser = [repair for name, repair in tried.items() if name.startswith(f"{BASE}=")] + stronger
    if ROUND in tried:
        stronger = [*stronger, *(tried[ROUND].then(repair) for repair in coarser)]
    return stronger


def _tried(setting: Setting, repair: Repair, worlds: Worlds | None) -> tuple[TriedRepair, list[_Publication]]:
    """Publish a repaired table, several times where chance has a part in it, and say what is left and what it costs."""
    known = worlds.counts if worlds is not None else (setting.table.counts,)
    # Leaving something out takes no chance; rounding what is printed unrounded takes no truth.
    chance = repair.needs_truth or repair.name == ROUND
    method = worlds.method if worlds is not None and repair.needs_truth else EXACT
    runs: list[_Publication] = []
    for run in range(setting.draws if chance else 1):
        if len(runs) >= ENOUGH and not all(publication.judgement.within for publication in runs):
            break  # it will not do, and how much it leaves is known well enough
        true = known[run % len(known)] if repair.needs_truth else setting.table.counts
        runs.append(_published(setting, repair, true, run))
    now = _under(setting, setting.judgement, runs[0].judgement, setting.exposure, setting.table)
    left = float(np.mean([publication.left for publication in runs]))
    worst = max(runs, key=lambda publication: (len(publication.judgement.reasons), publication.left))
    row = TriedRepair(
        rank=0,
        name=repair.name,
        action=repair.action,
        method=method,
        publications=len(runs),
        within_policy=all(publication.judgement.within for publication in runs),
        cells_left=left,
        cells_left_most=max(publication.left for publication in runs),
        left=left / now if now else None,
        claims={kind: float(np.mean([publication.kinds[kind] for publication in runs])) for kind in KINDS[1:]},
        reasons=worst.judgement.reasons,
        cost=_cost(setting.table, runs, method, known if worlds is not None else ()),
        changed=_changed(setting.table, runs[0].table),
    )
    return row, runs


def _changed(draft: ReviewedTable, after: ReviewedTable) -> tuple[str, ...]:
    """Name the cells that a repair hides or prints otherwise, where rows and columns are the same and they are not many."""
    same = [column.key for column in draft.columns] == [column.key for column in after.columns]
    if not same or draft.area_codes != after.area_codes:
        return ()
    cells = np.argwhere(draft.counts != after.counts)[:MOST_NAMED].tolist()
    return tuple(f"{draft.area_codes[row]}:{draft.columns[at].key}" for row, at in cells)


def _published(setting: Setting, repair: Repair, true: Counts, run: int) -> _Publication:
    rng = np.random.default_rng([setting.seed, 5, run])
    table = repair.change(setting.table, true, rng)
    exposure = exposure_of(table, setting.policy.least_probability)
    some = len(table.equations) > 0
    ground = CheckResults(
        FITS if repair.anew or not some else setting.ground.verdict,
        exposure.contradictions,
        setting.ground.self_check_failed if some else 0,
        exposure.unknown,
    )
    excused = setting.excused.mask(table, exposure)
    judgement = judge(setting.policy, exposure, ground, table.published, excused)
    kinds = {kind: int((exposure.kinds == at).sum()) for at, kind in enumerate(KINDS) if at}
    left = _under(setting, setting.judgement, judgement, exposure, table)
    return _Publication(table, judgement, kinds, left, true)


def _under(setting: Setting, before: Judgement, after: Judgement, exposure: Exposure, table: ReviewedTable) -> int:
    """Count the cells under limits that are exceeded before a repair or after it."""
    limits = {reason.limit for judgement in (before, after) for reason in judgement.reasons if reason.limit is not None}
    cells = np.zeros(exposure.kinds.shape, dtype=np.bool_)
    for at in limits:
        cells |= falls_under(setting.policy.limits[at], exposure)
    return int((cells & ~setting.excused.mask(table, exposure)).sum())


def _cost(draft: ReviewedTable, runs: Sequence[_Publication], method: str, known: Sequence[Counts]) -> RepairCost:
    """Return what readers lose: counts, exact counts, and how much farther from the truth the others are on average."""
    after, mine = runs[0].table, [draft.columns[at].key for at in draft.mine]
    keys = {column.key for column in after.columns}
    printed = {after.columns[at].key for at in after.mine if (after.counts[:, at] > ABSENT).any()}
    place = {column.key: at for at, column in enumerate(after.columns)}
    same = [(at, place[column.key]) for at, column in enumerate(draft.columns) if column.key in keys]
    now_rounded = [old for old, new in same if old in draft.exact and not isinstance(after.mechanisms[new], Exact)]
    changed = [(old, new) for old, new in same if draft.mechanisms[old] != after.mechanisms[new]]
    errors = [_added_error(draft, run.table, run.true, same) for run in runs] if changed and known else []
    if changed and not known:  # only unrounded counts were changed, and their truth is printed
        errors = [_added_error(draft, run.table, draft.counts, changed) for run in runs]
        errors = [run * len(changed) / max(1, len(same)) for run in errors if run is not None]
    measured = [run for run in errors if run is not None]
    bases = [how.base for _, new in changed if isinstance(how := after.mechanisms[new], Rounding)]
    return RepairCost(
        columns_dropped=tuple(key for key in mine if not printed & {key, original(key)}),
        counts_lost=draft.published - after.published,
        unrounded_lost=int((draft.counts[:, now_rounded] > ABSENT).sum()),
        mean_added_error=float(np.mean(measured)) if measured else 0.0 if not changed else None,
        error_is="none" if not changed else "measured" if method == EXACT else "estimated",
        largest_error=max(bases) - 1 if bases else None,
    )


def _added_error(draft: ReviewedTable, after: ReviewedTable, true: Counts, same: Sequence[tuple[int, int]]) -> float | None:
    """Return by how much counts that both print are farther from the truth on average."""
    rows = {code: row for row, code in enumerate(after.area_codes)}
    both = [(row, rows[code]) for row, code in enumerate(draft.area_codes) if code in rows]
    (before, now), (here, elsewhere) = (tuple(zip(*pairs, strict=True)) for pairs in (both, same))
    old, real = (counts[np.ix_(before, here)].astype(np.int64) for counts in (draft.counts, true))
    new = after.counts[np.ix_(now, elsewhere)].astype(np.int64)
    there = (old > ABSENT) & (new > ABSENT) & (real > ABSENT)
    if not there.any():
        return None
    return float((np.abs(new - real)[there].sum() - np.abs(old - real)[there].sum()) / there.sum())


def _rank(row: TriedRepair) -> tuple[Any, ...]:
    """Put repairs into order: within policy first, the cheapest of these first; then what leaves least.

    Among equals, drawing again until it looks well comes last: who knows of it can learn from it.
    """
    error, cells = row.cost.mean_added_error, row.cells_left
    price = row.cost.counts_lost + row.cost.unrounded_lost, error if error is not None else float("inf")
    within = price if row.within_policy else (cells, *price)
    return (not row.within_policy, *within, cells, row.name == REDRAW, row.name)
