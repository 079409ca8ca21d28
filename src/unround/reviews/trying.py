"""Every repair tried: published, judged by the same policy as the draft, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unround.checks.families import FITS
from unround.errors import InputError
from unround.mechanisms import Exact, Rounding
from unround.mechanisms.base import BoolArray
from unround.release import ABSENT, Counts
from unround.reviews.decision import Ground, Judgement, falls_under, judge
from unround.reviews.exposure import Exposure, exposure_of
from unround.reviews.policy import KINDS, Policy
from unround.reviews.repairs import BASE, ROUND, Repair, repairs_of
from unround.reviews.table import ReviewedTable
from unround.reviews.together import KnownBefore
from unround.reviews.worlds import EXACT, Worlds
from unround.tables.spool import Stage

MOST_NAMED = 200
"""Cells that are named with a repair."""

ENOUGH = 2
"""Publications after which a repair that one of them showed not to be within policy is not published again."""


@dataclass(frozen=True, eq=False)
class Excused:
    """The cells that do not count against a table.

    - `accepted`: Those that somebody accepted as exceptions, by area and key.
    - `before`: What readers know from an earlier release alone.
    """

    accepted: frozenset[tuple[str, str]]
    before: KnownBefore | None = None

    def mask(self, table: ReviewedTable, exposure: Exposure) -> BoolArray:
        """Return where these cells are in a table."""
        found = np.zeros(table.counts.shape, dtype=np.bool_) if self.before is None else self.before.mask(table, exposure)
        if self.accepted:
            place = {column.key: at for at, column in enumerate(table.columns)}
            row = {code: at for at, code in enumerate(table.area_codes)}
            for area, key in self.accepted:
                if area in row and key in place:
                    found[row[area], place[key]] = True
        return found


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
    ground: Ground
    judgement: Judgement
    policy: Policy
    excused: Excused
    seed: int
    draws: int

    def judged(self, table: ReviewedTable) -> BoolArray:
        """Return the cells of a repaired table that are to be acted on."""
        exposure = exposure_of(table, self.policy.least_probability)
        ground, excused = Ground(FITS), self.excused.mask(table, exposure)
        return judge(self.policy, exposure, ground, table.published, excused).act_on


@dataclass(frozen=True, eq=False)
class _Tried:
    """One publication of a repaired table: what is left, by kind and in all, and whether the policy accepts it."""

    table: ReviewedTable
    judgement: Judgement
    kinds: dict[str, int]
    left: int
    true: Counts


def try_repairs(
    setting: Setting,
    wanted: Sequence[str] | None,
    worlds: Worlds | None,
    why_none: str,
    progress: Stage,
    earlier: Repair | None = None,
) -> tuple[list[dict[str, Any]], list[dict[str, str]], dict[str, ReviewedTable]]:
    """Try all repairs that make sense.

    What each repair leaves and costs, the best first; why others were not tried; and the table that each leaves, of those
    that are within policy.
    """
    tables: dict[str, ReviewedTable] = {}
    chosen, refused = repairs_of(setting.table, setting.judgement.act_on, wanted, setting.judged, earlier)
    rows: list[dict[str, Any]] = []

    def attempt(repairs: Sequence[Repair]) -> None:
        for at, repair in enumerate(repairs):
            progress("Trying repairs", at, len(repairs))
            if repair.needs_truth and worlds is None:
                refused[repair.name] = why_none
                continue
            try:
                row, runs = _row(setting, repair, worlds)
                rows.append(row)
                if row["within_policy"]:
                    tables[repair.name] = runs[0].table
            except InputError as problem:  # such as sums that controlled rounding cannot keep up
                refused[repair.name] = str(problem).rstrip(".")
        progress("Trying repairs", len(repairs), len(repairs))

    attempt(chosen)
    if wanted is None and not any(row["within_policy"] for row in rows):
        attempt(_stronger(setting, {repair.name: repair for repair in chosen}))
    return _ranked(rows), [{"name": name, "why": why} for name, why in refused.items()], tables


def _stronger(setting: Setting, tried: dict[str, Repair]) -> list[Repair]:
    """Return what to try where nothing was enough: a base twice as large again, and two repairs together."""
    table, base = setting.table, setting.table.base
    found = repairs_of(table, setting.judgement.act_on, [f"{BASE}={4 * base}"], setting.judged)[0] if base else []
    coarser = [one for name, one in tried.items() if name.startswith(f"{BASE}=")] + found
    if ROUND in tried:
        found = [*found, *(tried[ROUND].then(one) for one in coarser)]
    return found


def _row(setting: Setting, repair: Repair, worlds: Worlds | None) -> tuple[dict[str, Any], list[_Tried]]:
    """Publish a repaired table, several times where chance has a part in it, and say what is left and what it costs."""
    known = worlds.counts if worlds is not None else (setting.table.counts,)
    # Leaving something out takes no chance; rounding what is printed unrounded takes no truth.
    chance = repair.needs_truth or repair.name == ROUND
    method = worlds.method if worlds is not None and repair.needs_truth else EXACT
    runs: list[_Tried] = []
    for run in range(setting.draws if chance else 1):
        if len(runs) >= ENOUGH and not all(one.judgement.within for one in runs):
            break  # it will not do, and how much it leaves is known well enough
        true = known[run % len(known)] if repair.needs_truth else setting.table.counts
        runs.append(_published(setting, repair, true, run))
    now = _under(setting, setting.judgement, runs[0].judgement, setting.exposure, setting.table)
    left = float(np.mean([one.left for one in runs]))
    worst = max(runs, key=lambda one: (len(one.judgement.reasons), one.left))
    row = {
        "name": repair.name,
        "action": repair.action,
        "method": method,
        "publications": len(runs),
        "within_policy": all(one.judgement.within for one in runs),
        "cells_left": left,
        "cells_left_most": max(one.left for one in runs),
        "left": left / now if now else None,
        "claims": {kind: float(np.mean([one.kinds[kind] for one in runs])) for kind in KINDS[1:]},
        "reasons": [reason.to_json() for reason in worst.judgement.reasons],
        "cost": _cost(setting.table, runs, method, known if worlds is not None else ()),
        "changed": _changed(setting.table, runs[0].table),
    }
    return row, runs


def _changed(draft: ReviewedTable, after: ReviewedTable) -> list[str]:
    """Name the cells that a repair hides or prints otherwise, where the columns are the same and they are not many."""
    if [column.key for column in draft.columns] != [column.key for column in after.columns]:
        return []
    cells = np.argwhere(draft.counts != after.counts)[:MOST_NAMED].tolist()
    return [f"{draft.area_codes[row]}:{draft.columns[at].key}" for row, at in cells]


def _published(setting: Setting, repair: Repair, true: Counts, run: int) -> _Tried:
    rng = np.random.default_rng([setting.seed, 5, run])
    table = repair.change(setting.table, true, rng)
    exposure = exposure_of(table, setting.policy.least_probability)
    some = len(table.equations) > 0
    ground = Ground(
        FITS if repair.anew or not some else setting.ground.verdict,
        exposure.contradictions,
        setting.ground.self_check_failed if some else 0,
        exposure.unknown,
    )
    excused = setting.excused.mask(table, exposure)
    judgement = judge(setting.policy, exposure, ground, table.published, excused)
    kinds = {kind: int((exposure.kinds == at).sum()) for at, kind in enumerate(KINDS) if at}
    left = _under(setting, setting.judgement, judgement, exposure, table)
    return _Tried(table, judgement, kinds, left, true)


def _under(setting: Setting, before: Judgement, after: Judgement, exposure: Exposure, table: ReviewedTable) -> int:
    """Count the cells under limits that are exceeded before a repair or after it."""
    limits = {reason.limit for one in (before, after) for reason in one.reasons if reason.limit is not None}
    cells = np.zeros(exposure.kinds.shape, dtype=np.bool_)
    for at in limits:
        cells |= falls_under(setting.policy.limits[at], exposure)
    return int((cells & ~setting.excused.mask(table, exposure)).sum())


def _cost(draft: ReviewedTable, runs: Sequence[_Tried], method: str, known: Sequence[Counts]) -> dict[str, Any]:
    """Return what readers lose: counts, exact counts, and how much farther from the truth the others are on average."""
    after = runs[0].table
    keys = {column.key for column in after.columns}
    printed = {column.key for at, column in enumerate(after.columns) if (after.counts[:, at] > ABSENT).any()}
    place = {column.key: at for at, column in enumerate(after.columns)}
    same = [(at, place[column.key]) for at, column in enumerate(draft.columns) if column.key in keys]
    now_rounded = [old for old, new in same if old in draft.exact and not isinstance(after.mechanisms[new], Exact)]
    changed = [(old, new) for old, new in same if draft.mechanisms[old] != after.mechanisms[new]]
    errors = [_added_error(draft, one.table, one.true, same) for one in runs] if changed and known else []
    if changed and not known:  # only unrounded counts were changed, and their truth is printed
        errors = [_added_error(draft, one.table, draft.counts, [(o, n) for o, n in changed]) for one in runs]
        errors = [one * len(changed) / max(1, len(same)) for one in errors if one is not None]
    found = [one for one in errors if one is not None]
    bases = [how.base for _, new in changed if isinstance(how := after.mechanisms[new], Rounding)]
    return {
        "columns_dropped": [column.key for column in draft.columns if column.key not in printed],
        "counts_lost": draft.published - after.published,
        "unrounded_lost": int((draft.counts[:, now_rounded] > ABSENT).sum()),
        "mean_added_error": float(np.mean(found)) if found else 0.0 if not changed else None,
        "error_is": "none" if not changed else "measured" if method == EXACT else "estimated",
        "largest_error": max(bases) - 1 if bases else None,
    }


def _added_error(draft: ReviewedTable, after: ReviewedTable, true: Counts, same: Sequence[tuple[int, int]]) -> float | None:
    """Return by how much counts that both print are farther from the truth on average."""
    old = draft.counts[:, [at for at, _ in same]].astype(np.int64)
    new = after.counts[:, [at for _, at in same]].astype(np.int64)
    real = true[:, [at for at, _ in same]].astype(np.int64)
    there = (old > ABSENT) & (new > ABSENT) & (real > ABSENT)
    if not there.any():
        return None
    return float((np.abs(new - real)[there].sum() - np.abs(old - real)[there].sum()) / there.sum())


def _ranked(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put repairs into order: within policy first, the cheapest of these first; then what leaves least."""

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        costs, within = row["cost"], row["within_policy"]
        error = costs["mean_added_error"]
        price = costs["counts_lost"] + costs["unrounded_lost"], error if error is not None else float("inf")
        return (not within, *(price if within else (row["cells_left"], *price)), row["cells_left"], row["name"])

    return [{"rank": at, **row} for at, row in enumerate(sorted(rows, key=key), 1)]
