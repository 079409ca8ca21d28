"""Rates beside published counts: from true counts they are nearer to the truth, and give some of it away.

Rates are worked out in whole numbers. What those from true counts add is what an audit adds by them: counts that have one
value left, or a likely one, because of rates. Those from published counts are left to the verdict of the data, as in an
audit, which ought to find that they tell nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from unround.audits.block import Auditor
from unround.audits.claims import BlockClaims, ClaimKind
from unround.audits.model import AuditOptions, Model, ModelFigure
from unround.comparison.material import Material
from unround.comparison.measure import SMALL
from unround.comparison.practice import Practice
from unround.errors import InputError
from unround.evidence.block import WindowTable
from unround.figures import Figure, FigureGrid, FigureKind
from unround.mechanisms.base import BoolArray
from unround.prior import Prior
from unround.release import ABSENT, FIGURE_ABSENT, FIGURE_UNIT, Block, Counts, FigureValues
from unround.structure.figure_verdicts import FigureData, judge_figures

TRUE, PUBLISHED = "true", "published"
SOURCES = (TRUE, PUBLISHED)  # the counts that rates are computed from

EVERY = "all"
OF = " of "  # between numerator and universe of a rate that no column has
FINE = 0.1  # what rates are usually rounded to, in points

AT_A_TIME = 512


# -- which rates ------------------------------------------------------------------------------------------------------


def rates_of(material: Material, wanted: Sequence[str]) -> tuple[Figure, ...]:
    """Return the rates that are asked about, each ratio once."""
    known = {figure.name: figure for figure in material.rates}
    keys = [column.key for column in material.columns]
    found: list[Figure] = []
    for name in wanted:
        if name == EVERY and not known:
            raise InputError(f"no rates are known of {material.source}: name some, as “numerator of universe”.")
        if name == EVERY:
            found += known.values()
        else:
            found.append(known[name] if name in known else proposed_rate(name, keys, material.source))
    if not found:
        raise InputError("no rate is named: name some, or “all”.")
    return tuple({(one.numerator, one.universe): one for one in reversed(found)}.values())[::-1]


def proposed_rate(name: str, keys: Collection[str], source: str) -> Figure:
    """Return the rate that is called "numerator of universe"."""
    numerator, of, universe = (part.strip() for part in name.partition(OF))
    if not of:
        raise InputError(
            f"there is no rate {name!r} in {source}: name the column of a rate, or one that is not printed yet by "
            "its counts, as “numerator of universe”."
        )
    for key in (numerator, universe):
        if key not in keys:
            raise InputError(f"there is no count {key!r} in {source} (unround check lists columns).")
    if numerator == universe:
        raise InputError(f"the rate {name!r} has the same numerator and universe, so it is always 100%.")
    return Figure(f"{numerator}{OF}{universe}", FigureKind.RATE, universe, numerator)


def checked_step(points: float) -> Fraction:
    """Return a step in points as a fraction.

    >>> checked_step(0.1)
    Fraction(1, 10)
    """
    step = Fraction(str(points)) if 0 < points <= 100 else Fraction(0)
    if not step or (step / FIGURE_UNIT).denominator != 1:
        raise InputError(f"a step of rates must be above 0, at most 100, with at most four decimals; not {points:g}.")
    return step


# -- their values -----------------------------------------------------------------------------------------------------


def rate_values(numerator: Counts, universe: Counts, per: Fraction, step: Fraction) -> FigureValues:
    """Return rates, rounded to the nearest step, halves up; at most a whole, absent where a count is, or nobody is meant.

    >>> rate_values(np.array([62], np.int32), np.array([499], np.int32), Fraction(100), Fraction(1, 10)).tolist()
    [124000]
    """
    there = (universe > 0) & (numerator >= 0)
    top = np.where(there, numerator, 0).astype(np.int64)
    whole = np.where(there, universe, 1).astype(np.int64)
    units = int(step / FIGURE_UNIT)
    upper = 2 * np.minimum(top, whole) * per.numerator * FIGURE_UNIT.denominator
    lower = whole * per.denominator * units
    return np.where(there, (upper + lower) // (2 * lower) * units, FIGURE_ABSENT)


@dataclass(slots=True)
class RateError:
    """How far printed rates are from true ones, in points: the mean over all that are printed."""

    total: float = 0.0
    rates: int = 0

    def add(self, values: FigureValues, numerator: Counts, universe: Counts, per: Fraction) -> None:
        """Take in rates of some areas, with their true counts."""
        known = (values != FIGURE_ABSENT) & (numerator > ABSENT) & (universe > 0)
        true = 100.0 * numerator[known] / universe[known]
        printed = values[known] * float(FIGURE_UNIT * 100 / per)
        self.total += float(np.abs(printed - np.minimum(true, 100.0)).sum())
        self.rates += int(known.sum())

    @property
    def mean(self) -> float | None:
        """The mean; None where no true rate is known."""
        return self.total / self.rates if self.rates else None


# -- what they give away ----------------------------------------------------------------------------------------------


class RateComparison:
    """Prints rates beside one release after the other of a practice, from true counts and from published ones."""

    def __init__(self, material: Material, rates: Sequence[Figure], points: Fraction, threshold: float) -> None:
        self._material = material
        self._options = AuditOptions(threshold=threshold)
        self._index = {column.key: at for at, column in enumerate(material.columns)}
        self.rates = tuple(replace(rate, grid=FigureGrid.of(points * rate.per / 100), declared=True) for rate in rates)

    def judge(self, one: Practice, counts: Counts, seen: Counts, prior: Prior) -> dict[str, dict[str, float | None]]:
        """Return what rates cost and give away beside one release, by what they are computed from.

        What they give away is None where that is not worked out: beside noise without bounds, and where the reader looks
        at other numbers than the published ones, as with repeated counts that are rounded by keys.
        """
        windows, _ = WindowTable(one.assumed).of(counts)
        worked_out = bool(windows.certain.all()) and np.array_equal(counts, seen)
        found = {}
        for source in SOURCES:
            values = self._values(counts, source)
            known = dict.fromkeys(_NUMBERS, None) if not worked_out else self._risks(one, counts, values, prior, source)
            found[source] = {**known, "mean_error": self._error(values)}
        return found

    def _places(self, rate: Figure) -> list[int]:
        return [self._index[rate.numerator], self._index[rate.universe]]

    def _values(self, counts: Counts, source: str) -> FigureValues:
        """Return the rates, where both of their counts are published."""
        columns = []
        for rate in self.rates:
            published = counts[:, self._places(rate)]
            of = published if source == PUBLISHED else self._material.true[:, self._places(rate)]
            values = rate_values(of[:, 0], of[:, 1], rate.per, rate.grid.steps[0][1])
            columns.append(np.where((published > ABSENT).all(axis=1), values, FIGURE_ABSENT))
        return np.stack(columns, axis=1)

    def _error(self, values: FigureValues) -> float | None:
        error = RateError()
        for at, rate in enumerate(self.rates):
            top, whole = self._places(rate)
            error.add(values[:, at], self._material.true[:, top], self._material.true[:, whole], rate.per)
        return error.mean

    def _used(self, one: Practice, counts: Counts, values: FigureValues, source: str) -> list[int]:
        """Return which rates the reader uses: all from true counts; else those that the data show to be from such."""
        if source == TRUE:
            return list(range(len(self.rates)))
        data = FigureData(self.rates, self._index)
        data.add(Block(pl.DataFrame({"region": np.arange(len(counts)).astype(str)}), counts, values))
        data.close(one.mechanisms, [0] * len(self._material.columns))
        return [at for at, judged in enumerate(judge_figures(data)) if judged.is_evidence]

    def _risks(
        self, one: Practice, counts: Counts, values: FigureValues, prior: Prior, source: str
    ) -> dict[str, float | None]:
        """Return the claims that exist because of rates, and how many of them are right."""
        material, used = self._material, self._used(one, counts, values, source)
        told: dict[str, float | None] = dict.fromkeys(_NUMBERS, 0.0)
        if not used:
            return told
        figures = tuple(ModelFigure(self.rates[at], at) for at in used)
        origins = ("truth",) * len(material.equations)
        model = Model.build(material.columns, one.assumed, material.equations, origins, figures=figures)
        auditor, risks = Auditor(model, prior, self._options), material.judged()[1]
        for start in range(0, len(counts), AT_A_TIME):
            some = slice(start, start + AT_A_TIME)
            here, shown = np.ascontiguousarray(counts[some]), np.ascontiguousarray(values[some][:, used])
            block = auditor.infer(here, np.zeros(len(here), dtype=np.bool_), figures=shown)
            _count(told, block.by_figures & risks, block.claims, material.true[some])
        return told


_NUMBERS = ("conditional", "conditional_wrong", "likely", "likely_right", "small_disclosed")


def _count(told: dict[str, Any], because: BoolArray, claims: BlockClaims, true: Counts) -> None:
    """Add the claims of a block to numbers."""
    right = claims.values == true
    conditional, likely = (because & claims.of_kind(kind) for kind in (ClaimKind.CONDITIONAL, ClaimKind.LIKELY))
    told["conditional"] += float(conditional.sum())
    told["conditional_wrong"] += float((conditional & ~right).sum())
    told["likely"] += float(likely.sum())
    told["likely_right"] += float((likely & right).sum())
    told["small_disclosed"] += float(((conditional | likely) & right & np.isin(true, SMALL)).sum())


def averaged(rows: Sequence[dict[str, dict[str, float | None]]]) -> dict[str, dict[str, float | None]]:
    """Return the means over releases; None where there are none."""
    found: dict[str, dict[str, float | None]] = {}
    for source in SOURCES:
        found[source] = {}
        for name in rows[0][source]:
            numbers = [number for row in rows if (number := row[source][name]) is not None]
            found[source][name] = float(np.mean(numbers)) if len(numbers) == len(rows) else None
    return found
