"""Figures: what a rate, a mean or a median says about the counts that it was computed from."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from statistics import mean, median

import pytest

from unround.figures import Figure, FigureGrid, FigureKind, Group, Inequality


def holds(inequality: Inequality, counts: dict[str, int]) -> bool:
    return sum((c * counts[name] for name, c in inequality.terms), Fraction(0)) <= inequality.at_most


def printed(value: Fraction, step: Fraction) -> set[Fraction]:
    """Return what an agency may print for a value: ties at half a step go either way."""
    below = value / step // 1
    rest = value / step - below
    return {step * (below + up) for up in (0, 1) if abs(rest - up) <= Fraction(1, 2)}


def test_a_rate_says_no_more_than_what_is_true_and_excludes_the_rest():
    step = Fraction(1, 10)
    figure = Figure("rate", FigureKind.RATE, "T", "x", grid=FigureGrid.of(step))
    for value in (Fraction("12.5"), Fraction(0), Fraction(100), Fraction("33.3")):
        rows = figure.inequalities(value)
        for total in range(1, 60):
            for x in range(total + 1):
                fits = value in printed(Fraction(100 * x, total), step)
                assert all(holds(row, {"x": x, "T": total}) for row in rows) == fits


@pytest.mark.parametrize("kind", [FigureKind.MEAN, FigureKind.MEDIAN])
def test_means_and_medians_say_only_what_is_true(kind):
    groups = (
        Group("a", Fraction(0), Fraction(2)),
        Group("b", Fraction(3), Fraction(5)),
        Group("c", Fraction(6), Fraction(8)),
    )
    step = Fraction(1, 2)
    figure = Figure("figure", kind, "N", groups=groups, grid=FigureGrid.of(step))
    excluded = 0
    for values in product(range(9), repeat=3):
        counts = {
            g.count: sum(g.low <= v <= g.high for v in values) for g in groups if g.low is not None and g.high is not None
        }
        counts["N"] = len(values)
        if sum(counts[g.count] for g in groups) < 3:
            continue
        true = Fraction(mean(values) if kind is FigureKind.MEAN else median(values)).limit_denominator(6)
        for value in printed(true, step):
            assert all(holds(inequality, counts) for inequality in figure.inequalities(value))
        excluded += not all(holds(inequality, counts) for inequality in figure.inequalities(true + 4))
    assert excluded > 100


def test_open_groups_leave_one_side_of_a_mean():
    groups = (Group("one", Fraction(1), Fraction(1)), Group("two or more", Fraction(2), None))
    figure = Figure("size", FigureKind.MEAN, "N", groups=groups, grid=FigureGrid.of(Fraction(1, 10)))
    (only,) = figure.inequalities(Fraction("1.2"))
    assert only.terms == (("one", Fraction(-1, 4)), ("two or more", Fraction(3, 4)))


def test_steps_grow_with_the_value_and_where_two_meet_the_larger_counts():
    grid = FigureGrid(((Fraction(0), Fraction(1)), (Fraction(16), Fraction(2))))
    assert grid.around(Fraction(15)) == (Fraction(29, 2), Fraction(31, 2))
    assert grid.around(Fraction(16)) == (15, 17)
