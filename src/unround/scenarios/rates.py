"""Rates that a release prints, or may print: chosen by name, and worked out of true or of published counts on any step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from unround.comparison.rates import EVERY, RateError, proposed_rate, rate_values
from unround.errors import InputError
from unround.figures import Figure, FigureKind, Grid
from unround.release import ABSENT, FIGURE_ABSENT, Block, FigureValues, Progress, Release
from unround.scenarios.tables import Numbers
from unround.structure import JudgedFigure, PlanFile, PlannedFigure, find_structure

STEPS = tuple(Fraction(step) for step in ("0.1", "0.2", "0.5", "1", "2", "5", "10"))
"""Steps to try, from fine to coarse, in points: hundredths of the universe."""


@dataclass(frozen=True, slots=True)
class ChosenRate:
    """A rate, and what the data say of it where it is printed; None where it is only proposed."""

    figure: Figure
    judged: JudgedFigure | None

    @property
    def name(self) -> str:
        """The key of its column, or "numerator of universe"."""
        return self.figure.name


def choose_rates(release: Release, plan_file: PlanFile | None, wanted: Sequence[str]) -> tuple[ChosenRate, ...]:
    """Return the rates that are asked about, each ratio once.

    Raises `InputError` where a rate is not there, or nothing can be inferred from it.
    """
    judged = {one.figure.name: one for one in find_structure(release, rules=plan_file).figures}
    rates = {name: one for name, one in judged.items() if one.figure.kind is FigureKind.RATE}
    found: list[ChosenRate] = []
    for name in wanted:
        if name == EVERY:
            evidence = [one for one in rates.values() if one.is_evidence]
            if not evidence:
                raise InputError(
                    f"no rate of {release.source} is computed from true counts, as far as the data show. Name rates, by the "
                    "keys of their columns, or as “numerator of universe” (unround check lists columns)."
                )
            found += [ChosenRate(one.figure, one) for one in evidence]
        elif name in rates:
            found.append(ChosenRate(_usable(rates[name].figure, release), rates[name]))
        else:
            found.append(ChosenRate(proposed_rate(name, release.index, release.source), None))
    once: dict[tuple[str, str], ChosenRate] = {}
    for one in found:
        once.setdefault((one.figure.numerator, one.figure.universe), one)
    return tuple(once.values())


def _usable(figure: Figure, release: Release) -> Figure:
    if figure.sampled:
        raise InputError(f"the rate {figure.name!r} is of a sample, whose estimates are no whole numbers.")
    if not figure.is_complete:
        raise InputError(f"{release.source} does not have both counts that the rate {figure.name!r} is of.")
    return figure


def printing(release: Release, rates: Sequence[ChosenRate], points: Fraction, true: Numbers | None) -> Release:
    """Return a release that prints these rates, and no other figures, on one step."""
    steps = [points * one.figure.per / 100 for one in rates]

    def read(progress: Progress) -> Iterable[Block]:
        for block in release.blocks(progress):
            yield Block(block.areas, block.counts, _printed(release, rates, steps, block, true))

    figures = tuple(replace(one.figure, grid=Grid.of(step), declared=True) for one, step in zip(rates, steps, strict=True))
    return replace(release, read=read, figures=figures)


def error_of(release: Release, rates: Sequence[ChosenRate], true: Numbers) -> float | None:
    """Return how far the figures of a release, from `printing`, are from the true rates on average, in points."""
    error = RateError()
    for block in release.blocks():
        assert block.figures is not None
        for at, one in enumerate(rates):
            counts = true.of_areas(block.areas, (one.figure.numerator, one.figure.universe))
            error.add(block.figures[:, at], counts[:, 0], counts[:, 1], one.figure.per)
    return error.mean


def _printed(
    release: Release, rates: Sequence[ChosenRate], steps: Sequence[Fraction], block: Block, true: Numbers | None
) -> FigureValues:
    index = release.index
    columns: list[NDArray[np.int64]] = []
    for one, step in zip(rates, steps, strict=True):
        keys = (one.figure.numerator, one.figure.universe)
        published = block.counts[:, [index[key] for key in keys]]
        counts = published if true is None else true.of_areas(block.areas, keys)
        values = rate_values(counts[:, 0], counts[:, 1], one.figure.per, step)
        columns.append(np.where((published > ABSENT).all(axis=1), values, FIGURE_ABSENT))
    return np.stack(columns, axis=1)


def as_printed(release: Release, rates: Sequence[ChosenRate]) -> Release:
    """Return a release with those of its own figures that are asked about, as they are printed, and no others."""
    place = {figure.name: at for at, figure in enumerate(release.figures)}
    own = [one for one in rates if one.judged is not None]
    chosen = [place[one.name] for one in own]

    def read(progress: Progress) -> Iterable[Block]:
        for block in release.blocks(progress):
            assert block.figures is not None
            yield Block(block.areas, block.counts, np.ascontiguousarray(block.figures[:, chosen]))

    return replace(release, read=read, figures=tuple(one.figure for one in own))


def using(plan_file: PlanFile | None, names: Sequence[str]) -> PlanFile:
    """Return a plan that uses these figures whatever the data suggest, and leaves verdicts on others to the data."""
    figures = (PlannedFigure(tuple(names), True, None, 0, certain=True),) if names else ()
    return replace(plan_file or PlanFile(), figures=figures)
