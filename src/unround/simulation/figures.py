"""Figures of a simulated census: rates, averages and medians beside its counts.

They are worked out from the true counts, and rounded as the Canadian ones are: rates of low income in steps of 0.1 to 1,
finer with more people; medians in steps that grow with the leading digits; all else to one decimal. So they tell something
about the true counts, as published figures may. Or they are worked out from the published counts, as a reader of the tables
could, and tell nothing. Amounts of money and the like are drawn, so that files look right.
"""

from __future__ import annotations

import numpy as np

from unround.errors import InputError
from unround.figures import Figure
from unround.simulation.counts import FIGURES, MISSING, CountBlock, stream
from unround.simulation.people import Floats
from unround.simulation.profile import SAMPLE
from unround.simulation.schema import SEXES, Row, Schema
from unround.tables.figure_labels import TableLine, propose
from unround.tables.lines import ProfileLine, blocks_of

TRUE, PUBLISHED, NONE = "true", "published", "none"
SOURCES = (TRUE, PUBLISHED, NONE)
"""What figures are computed from: true counts, published ones; or there are none."""

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


def ratio(part: Floats, whole: Floats) -> Floats:
    """Return a ratio, NaN where there is nothing to divide by."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def _ages(counts: Floats) -> tuple[Floats, Floats]:
    """Return average and median age from areas × 21 ages × 3."""
    total = counts.sum(1)
    average = ratio((counts * MIDDLES[:, None]).sum(1), total)
    reached = np.cumsum(counts, axis=1) >= total[:, None] / 2
    at = reached.argmax(1)
    before = np.take_along_axis(np.cumsum(counts, axis=1) - counts, at[:, None], 1)[:, 0]
    inside = np.take_along_axis(counts, at[:, None], 1)[:, 0]
    median = np.where(total > 0, 5.0 * at + 5.0 * np.nan_to_num(ratio(total / 2 - before, inside)), np.nan)
    return np.round(average, 1), median


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


def by_leading_digits(values: Floats) -> Floats:
    """Round as medians are: in steps of 1, 2, 4, 5 or 10 in the third digit, growing with the value.

    Examples
    --------
    >>> by_leading_digits(np.array([12.34, 23.45, 43.21, 71.3, 93.4])).tolist()
    [12.3, 23.4, 43.2, 71.5, 93.0]
    """
    known = np.maximum(np.nan_to_num(values), 1e-9)
    power = 10.0 ** np.floor(np.log10(known))
    leading = known / power
    step = np.select([leading < 1.6, leading < 3.2, leading < 6.4, leading < 8.0], [0.01, 0.02, 0.04, 0.05], 0.1) * power
    return np.round(np.rint(values / step) * step, 4)


def by_people(rates: Floats, people: Floats) -> Floats:
    """Round rates as those of low income are: in steps worth about two people, at least 0.1 and at most 1.

    Examples
    --------
    >>> by_people(np.array([12.34, 12.34, 12.34, 9.3]), np.array([2000, 800, 500, 300])).tolist()
    [12.3, 12.4, 12.4, 9.5]
    """
    known = np.maximum(np.nan_to_num(rates), 1e-9)
    leading = known / 2.0 ** np.floor(np.log2(known / 8.0))  # from 8 to 16
    worth = people * leading
    few = np.where(leading < 10.0, 0.5, 1.0)
    step: Floats = np.select([worth >= 16_000, worth >= 8_000, worth >= 4_000], [0.1, 0.2, 0.4], few)
    return np.round(np.rint(rates / step) * step, 4)


def _figure(
    row: Row, values: Floats, at: dict[int, int], block: CountBlock, rng: np.random.Generator, finer: bool
) -> Floats:
    """Work out or draw one figure of every area: areas × 3; on the agency's `finer` grids, or as a reader would."""

    def count(*rows: int) -> Floats:
        return np.asarray(values[:, [at[each] for each in rows]].sum(1))

    if row.id == 3:
        return np.round(100.0 * ratio(count(1) - count(2), count(2)), 1)
    if row.id in (6, 7):
        land: Floats = np.maximum(np.round(block.land, 2), 0.01)[:, None].repeat(3, axis=1)
        return land if row.id == 7 else np.asarray(np.round(count(1) / land, 1))
    if row.id in HUNDREDS:
        return np.full((len(values), 3), 100.0)
    if row.id in PERCENTAGES:
        part, whole = PERCENTAGES[row.id]
        share = ratio(100.0 * count(part), count(whole))
        capped: Floats = np.where(share > 100.0, 100.0, share)
        return by_people(capped, count(whole)) if finer and row.is_income else np.round(capped, 1)
    if row.id in (39, 40):
        average, median = _ages(values[:, [at[age] for age in AGE_IDS]])
        if row.id == 39:
            return average
        return by_leading_digits(median) if finer else np.round(np.rint(median * 5.0) / 5.0, 1)
    if row.id in AVERAGES:
        part, wholes = AVERAGES[row.id]
        return np.round(ratio(count(part), count(*wholes)), 1)
    return _drawn(row.kind, row.id, len(values), rng)


def figures(block: CountBlock, table: Schema, seed: int, source: str = TRUE) -> Floats:
    """Return areas × rows × 3 numbers: published counts and the figures beside them; NaN for none."""
    if block.published is None:
        raise ValueError("figures need published counts")
    at = table.index
    values = np.where(block.published == MISSING, np.nan, block.published.astype(np.float64))
    counts = _true(block, table) if source == TRUE else values
    for step in table.plans:
        rng = stream(seed, FIGURES, block.number, step.number)
        for row in table.rows[step.start : step.stop]:
            if row.is_count:
                continue
            found = _figure(row, counts, at, block, rng, source == TRUE)
            values[:, at[row.id]] = found if source != NONE or row.block == 1 else np.nan
            if not row.has_sex:
                values[:, at[row.id], 1:] = np.nan
            if row.block > 1:
                values[block.income_hidden if row.is_income else block.hidden, at[row.id]] = np.nan
    return values


def _true(block: CountBlock, table: Schema) -> Floats:
    """Return the true counts; of sample tables the estimates, where they are weighted."""
    true = np.where(block.true == MISSING, np.nan, block.true.astype(np.float64))
    if block.estimates is not None:
        sampled = np.array([row.mechanism == SAMPLE for row in table.rows])
        true[:, sampled] = np.where(block.true[:, sampled] == MISSING, np.nan, block.estimates[:, sampled])
    return true


def described_figures(table: Schema) -> list[Figure]:
    """Return the figures of a profile, and what they are of, for a description of its table."""
    blocks = blocks_of([ProfileLine(row.id, row.name, row.depth) for row in table.rows])
    lines = [
        TableLine(str(row.id), row.name, row.depth, block, "percentage" if row.kind == "percent" else row.kind,
                  SEXES if row.has_sex else SEXES[:1])
        for row, block in zip(table.rows, blocks, strict=True)
    ]  # fmt: skip
    return [figure for figure in propose(lines) if figure.universe or figure.groups]


def require_source(name: str) -> None:
    """Complain of a name that is none of `SOURCES`."""
    if name not in SOURCES:
        raise InputError(f"there are no figures called {name!r}: choose {', '.join(SOURCES)}.")
