"""The numbers of a profile that are no counts: percentages, averages, medians, and the columns of rates.

They are worked out from the published counts wherever they can be, as a reader of the tables would; amounts
of money and the like are drawn, so that files look right. Nothing is to be inferred from them.
"""

from __future__ import annotations

import numpy as np

from unround.simulation.counts import FIGURES, MISSING, CountBlock, stream
from unround.simulation.people import Floats
from unround.simulation.schema import Row, Schema

MIDDLES = np.array([2.5 + 5 * step for step in range(20)] + [101.0])
AGE_IDS = (*range(10, 13), *range(14, 24), *range(25, 29), *range(30, 34))
# Percentages of one row in another: figure → (part, whole).
PERCENTAGES = {35: (9, 8), 36: (13, 8), 37: (24, 8), 38: (29, 8)}
PERCENTAGES |= {345 + at: (340 + at, 335 + at) for at in range(5)} | {360 + at: (355 + at, 350 + at) for at in range(5)}
PERCENTAGES |= {2228: (2224, 2223), 2229: (2225, 2223), 2230: (2226, 2224)}
AVERAGES = {57: (56, (50,)), 76: (90, (71,)), 77: (93, (81, 84, 86))}  # persons to households or families
HUNDREDS = frozenset({34, 148, 237})
FAMILY_SIZES = frozenset({304, 308, 312, 316})
TYPICAL_MONEY, TYPICAL_RENT, TYPICAL_VALUE = 40_000.0, 1_300.0, 420_000.0


def _significant(values: Floats, digits: int = 3) -> Floats:
    """Round to so many significant digits, as the agency does with amounts of money."""
    scale = 10.0 ** (np.floor(np.log10(np.maximum(values, 1.0))) - digits + 1)
    return np.asarray(np.rint(values / scale) * scale)


def _ratio(part: Floats, whole: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def _ages(counts: Floats) -> tuple[Floats, Floats]:
    """Return average and median age from areas × 21 ages × 3."""
    total = counts.sum(1)
    average = _ratio((counts * MIDDLES[:, None]).sum(1), total)
    reached = np.cumsum(counts, axis=1) >= total[:, None] / 2
    at = reached.argmax(1)
    before = np.take_along_axis(np.cumsum(counts, axis=1) - counts, at[:, None], 1)[:, 0]
    inside = np.take_along_axis(counts, at[:, None], 1)[:, 0]
    median = np.where(total > 0, 5.0 * at + 5.0 * np.nan_to_num(_ratio(total / 2 - before, inside)), np.nan)
    return np.round(average, 1), np.rint(median * 5.0) / 5.0


def _drawn(kind: str, row: int, areas: int, rng: np.random.Generator) -> Floats:
    """Draw a plausible figure for total, men and women."""
    if kind == "percent":
        return np.round(100.0 * rng.beta(2.0, 6.0, (areas, 3)), 1)
    if row in FAMILY_SIZES or row == 1433:
        return np.round(rng.lognormal(np.log(5.8 if row == 1433 else 2.9), 0.08, (areas, 3)), 1)
    if 378 <= row <= 382:
        return np.round(rng.uniform(0.25, 0.45, (areas, 3)), 3)
    if row == 2236:
        return np.round(rng.normal(42.0, 2.0, (areas, 3)), 1)
    typical = TYPICAL_MONEY if row < 400 else TYPICAL_VALUE if row in (1488, 1489) else TYPICAL_RENT
    by_sex = np.array([1.0, 1.12, 0.88])
    return _significant(typical * by_sex * rng.lognormal(0.0, 0.22, (areas, 1)) * rng.lognormal(0.0, 0.05, (areas, 3)))


def _figure(row: Row, values: Floats, at: dict[int, int], block: CountBlock, rng: np.random.Generator) -> Floats:
    """Work out or draw one figure of every area: areas × 3."""

    def count(*rows: int) -> Floats:
        return np.asarray(values[:, [at[each] for each in rows]].sum(1))

    if row.id == 3:
        return np.round(100.0 * _ratio(count(1) - count(2), count(2)), 1)
    if row.id in (6, 7):
        land: Floats = np.maximum(np.round(block.land, 2), 0.01)[:, None].repeat(3, axis=1)
        return land if row.id == 7 else np.asarray(np.round(count(1) / land, 1))
    if row.id in HUNDREDS:
        return np.full((len(values), 3), 100.0)
    if row.id in PERCENTAGES:
        part, whole = PERCENTAGES[row.id]
        share = _ratio(100.0 * count(part), count(whole))
        capped: Floats = np.where(share > 100.0, 100.0, share)
        return np.round(capped, 1)
    if row.id in (39, 40):
        return _ages(values[:, [at[age] for age in AGE_IDS]])[row.id - 39]
    if row.id in AVERAGES:
        part, wholes = AVERAGES[row.id]
        return np.round(_ratio(count(part), count(*wholes)), 1)
    return _drawn(row.kind, row.id, len(values), rng)


def figures(block: CountBlock, table: Schema, seed: int) -> Floats:
    """Return areas × rows × 3 numbers: published counts and the figures beside them; NaN for none."""
    if block.published is None:
        raise ValueError("figures need published counts")
    at = table.index
    values = np.where(block.published == MISSING, np.nan, block.published.astype(np.float64))
    for step in table.plans:
        rng = stream(seed, FIGURES, block.number, step.number)
        for row in table.rows[step.start : step.stop]:
            if row.is_count:
                continue
            values[:, at[row.id]] = _figure(row, values, at, block, rng)
            if not row.has_sex:
                values[:, at[row.id], 1:] = np.nan
            if row.block > 1:
                values[block.income_hidden if row.is_income else block.hidden, at[row.id]] = np.nan
    return values


def rates(values: Floats, table: Schema) -> Floats:
    """Return the columns of rates: a count in per cent of its block's total; a percentage again; else NaN."""
    shown = np.full_like(values, np.nan)
    for step in table.plans:
        rows = slice(step.start, step.stop)
        if step.block.first > 1 and table.rows[step.start].is_count:
            shown[:, rows] = np.round(100.0 * _ratio(values[:, rows], values[:, step.start : step.start + 1]), 1)
    for at, row in enumerate(table.rows):
        if not row.is_count:
            shown[:, at] = values[:, at] if row.kind == "percent" else np.nan
    return shown
