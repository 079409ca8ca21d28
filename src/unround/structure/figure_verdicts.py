"""Verdicts on figures: whether a rate, a mean or a median was computed from the published counts, or from true ones.

Both are tried on every area. If the published counts give the figure nearly everywhere, it is *recomputable* and tells
nothing new. If they do not, but true counts within their windows could nearly everywhere, it is *evidence*. What a test
finds is compared with placebos, the figures of other areas of like size: a test that finds as much in those has found
nothing. All else is *unclear*, and is not used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from unround.figures import Figure, FigureGrid, FigureKind
from unround.release import FIGURE_UNIT, FigureValues
from unround.structure.evidence import FigureVerdict, JudgedFigure
from unround.structure.figure_tests import (
    CountData,
    FigureData,
    FigureTest,
    Flags,
    Ints,
    MeanTest,
    MedianTest,
    NearbyRateTest,
    RateTest,
    all_there,
    decimals_of,
    find_grid,
    steps_of,
)

FEWEST_AREAS = 3  # areas from which rates are judged one by one, where there are too few for chance to be weighed
LEAST_AREAS = 20  # from which anything can be told
NEARLY_ALL = 0.995  # of the areas must be given by published counts, for a figure to be recomputable
MOST_BY_CHANCE = 0.9  # of the areas, at most, may placebos be given by published counts, for that to say something
MOST_CONTRADICTIONS = 0.01  # of the areas, at most, may true counts be unable to give it, for a figure to be evidence
TELLING_CONTRADICTIONS = 0.02
"""Of the areas, at least, must true counts be unable to give placebos, for that to say something."""
TIMES = 5  # and so many times as often as the figure itself
_NO_BETTER = 0.1
"""A share of hits is no better than chance if it is larger by no more than this, and three standard errors. True counts are
multiples of the base now and then, so that some hits more are to be expected."""
LARGEST = 2.0**58
"""A figure in units times a count must stay below this, for sums of such products to be whole numbers that fit."""
SHIFTS = (29, 23, 19)
"""How far figures are moved to other areas, these sorted by size: by one such part of them. Neighbours would be too alike,
for areas of one published size share their ratios."""


def judge_figures(data: FigureData) -> tuple[JudgedFigure, ...]:
    """Return the verdict on every figure of a release, in its order."""
    judged: list[JudgedFigure] = []
    seen: dict[int, list[int]] = {}
    for at, figure in enumerate(data.figures):
        values, there = data.values(at), data.there(at)
        number = int(there.sum())
        if number < LEAST_AREAS:
            judged.append(_of_few(data, at, figure))
            continue
        if float(np.abs(values[there]).max()) * data.largest(figure) > LARGEST:
            judged.append(_unclear(figure, "its values, or the counts that it is of, are too large to be compared", number))
            continue
        alike = seen.setdefault(hash((figure.kind, values[there].tobytes())), [])
        before = next((one for one in alike if np.array_equal(values, data.values(one))), None)
        alike.append(at)
        if before is not None:
            other = data.figures[before]
            judged.append(_unclear(figure, f"the same numbers as {other.name}: a figure counts once", number))
        else:
            judged.append(_judge(data, at, figure))
    return tuple(_where_hidden(data, at, found) for at, found in enumerate(judged))


def _where_hidden(data: FigureData, at: int, found: JudgedFigure) -> JudgedFigure:
    """Return the verdict on a figure that published counts give: where some of them are hidden, it tells these."""
    counts = [data.count(key) for key in found.figure.compared]
    hidden = int((data.there(at) & ~all_there(counts)).sum()) if found.verdict == "recomputable" and counts else 0
    if not hidden:
        return found
    why = found.why.removesuffix(": it tells nothing.")
    if all(bool((count.low == count.high)[count.there].all()) for count in counts):
        return replace(found, verdict="evidence", why=f"{why}, so that it tells those hidden in {_areas(hidden)}.")
    return replace(found, verdict="unclear", why=f"{why}; what it tells of those hidden in {_areas(hidden)} is not used.")


def _of_few(data: FigureData, at: int, figure: Figure) -> JudgedFigure:
    """Judge a rate that is published for a few areas: what published counts do not give, and true ones can, is of these."""
    values, there = data.values(at), data.there(at)
    number = int(there.sum())
    few = _unclear(figure, f"published for {_areas(number)} only: too few to tell how it was computed", number)
    test = _test_for(figure, data) if figure.is_complete and figure.kind is FigureKind.RATE and not figure.sampled else None
    if test is None or number < FEWEST_AREAS:
        return few
    fine, shown = decimals_of(values[there]), np.where(there, values, 0)
    usable = there & test.usable
    found = _on(few, figure.grid if figure.declared else FigureGrid.of(fine * FIGURE_UNIT), shown[there], None)
    compared, hits = int(usable.sum()), int((usable & test.hits(shown, fine)).sum())
    if compared and hits == compared:
        why = f"the published counts give it in {_share(hits, compared)}: it tells nothing."
        return replace(found, verdict="recomputable", why=why, compared=compared, hits=hits)
    possible = test.possible(shown, steps_of(found.figure.grid, shown, None))
    if possible is None or compared < FEWEST_AREAS or not bool(possible[usable].all()):
        return few
    why = f"published counts give it in {_share(hits, compared)} only, and true counts can in all of them."
    return replace(found, verdict="evidence", why=why, compared=compared, hits=hits)


def _areas(number: int) -> str:
    return "1 area" if number == 1 else f"{number:,} areas"


def _unclear(figure: Figure, why: str, areas: int) -> JudgedFigure:
    return JudgedFigure(figure, "unclear", f"{why}.", areas)


@dataclass(frozen=True, slots=True, eq=False)
class _FigureTrial:
    """One figure, to be held against counts: its values, where they are, of how many units, the step of their decimals."""

    values: FigureValues
    there: Flags
    units: Ints | None
    fine: int
    mixed: Ints
    """A number of each area that depends on its figure and its counts alone."""

    def placebos(self, chosen: Flags) -> list[FigureValues]:
        """Return the values moved among some areas, to others of like size."""
        at = np.flatnonzero(chosen)
        size = self.units[at] if self.units is not None else self.mixed[at]
        order = at[np.lexsort((self.mixed[at], size))]  # which does not depend on the order of areas in the file
        found = []
        for shift in SHIFTS:
            moved = self.values.copy()
            moved[order] = np.roll(self.values[order], max(1, len(order) // shift))
            found.append(moved)
        return found


def _judge(data: FigureData, at: int, figure: Figure) -> JudgedFigure:
    """Judge one figure."""
    values, there, units = data.values(at), data.there(at), data.units(figure)
    fine = decimals_of(values[there])
    found = JudgedFigure(figure, "unclear", "", int(there.sum()))
    shown = np.where(there, values, 0)
    test = _test_for(figure, data)
    trial = _FigureTrial(shown, there, units, fine, data.mixed(figure, shown))
    if test is not None:
        found = _against_published(found, trial, test)
    if found.verdict == "recomputable":
        # What seems coarser in ratios of rounded counts is the steps of the counts.
        return _on(found, FigureGrid.of(fine * FIGURE_UNIT), shown[there], None)
    # Steps by size take a while to find: they are looked for where they may be needed.
    known = units[there] if units is not None and test is not None and not figure.sampled else None
    grid = figure.grid if figure.declared else find_grid(values[there], known)
    found = _on(found, grid, shown[there], known)
    if test is None:
        return replace(found, why=f"{_lacking(figure)}: there is nothing to hold it against.")
    return _against_true(found, trial, test)


def _on(found: JudgedFigure, grid: FigureGrid, values: FigureValues, units: Ints | None) -> JudgedFigure:
    """Return a figure on a grid, and the step that most of its values have."""
    number, often = np.unique(steps_of(grid, values, units), return_counts=True)
    step = Fraction(int(number[often.argmax()])) * FIGURE_UNIT
    return replace(found, figure=replace(found.figure, grid=grid), step=step)


def _lacking(figure: Figure) -> str:
    if figure.kind is FigureKind.RATE:
        return "what it is out of is not in the file"
    return "no counts of groups with known edges, of the units that it is of, are in the file"


def _test_for(figure: Figure, data: FigureData) -> FigureTest | None:
    whole = data.count(figure.universe) if figure.universe else None
    if whole is None and figure.within and figure.outside:
        whole = data.difference(figure.within, figure.outside)
    if figure.kind is FigureKind.RATE:
        return _rate_test(figure, data, whole)
    counts = tuple(data.count(group.count) for group in figure.groups)
    if figure.kind is FigureKind.MEDIAN:
        if whole is None or not counts:
            return None
        return MedianTest(figure.groups, counts, whole, all_there([*counts, whole]))
    total = data.count(figure.numerator) if figure.numerator and whole is not None else None
    if not counts and total is None:
        return None
    needed = [one for one in (*counts, *((whole, total) if total is not None else ())) if one is not None]
    return MeanTest(figure.groups, counts, whole, total, all_there(needed))


def _rate_test(figure: Figure, data: FigureData, whole: CountData | None) -> FigureTest | None:
    per = int(figure.per)
    part = data.count(figure.numerator) if figure.numerator else None
    if whole is not None:
        usable = all_there([whole, part]) if part is not None else whole.there
        return RateTest(whole, part, per, part.step if part is not None else whole.step, usable & (whole.shown > 0))
    if figure.within and part is None:
        around = data.count(figure.within)
        return NearbyRateTest(around, per, data.base, around.there & (around.shown > 0))
    return None


def _against_published(found: JudgedFigure, trial: _FigureTrial, test: FigureTest) -> JudgedFigure:
    """See whether the published counts give the figure."""
    chosen = trial.there & test.usable & test.telling(trial.values, trial.fine)
    compared = int(chosen.sum())
    hits = int((test.hits(trial.values, trial.fine) & chosen).sum())
    chance = [int((test.hits(moved, trial.fine) & chosen).sum()) for moved in trial.placebos(chosen)] if compared else [0]
    by_chance = float(np.mean(chance))
    found = replace(found, compared=compared, hits=hits, hits_by_chance=by_chance)
    if compared < LEAST_AREAS or hits < NEARLY_ALL * compared:
        return found
    if by_chance > MOST_BY_CHANCE * compared:
        why = f"the published counts give it in {_share(hits, compared)}, but other areas' figures too"
        return replace(found, why=f"{why} ({_percent(by_chance / compared)}).")
    listed = found.figure.numerator or found.figure.kind is not FigureKind.RATE
    reveals = () if listed else (f"the rounded count of {found.figure.label!r}, which is not listed, in {_areas(hits)}",)
    why = f"the published counts give it in {_share(hits, compared)} ({_percent(by_chance / compared)} by chance)"
    return replace(found, verdict="recomputable", why=f"{why}: it tells nothing.", reveals=reveals)


def _share(number: int, of: int) -> str:
    return f"{number:,} of {_areas(of)}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _against_true(found: JudgedFigure, trial: _FigureTrial, test: FigureTest) -> JudgedFigure:
    """See whether true counts could give the figure, where published ones do not."""
    if found.why:
        return found
    if found.figure.sampled:
        why = f"published counts do not give it{_hits(found)}, and it is from a sample: estimates are sums of weights"
        return replace(found, why=f"{why}, not whole numbers.")
    steps = steps_of(found.figure.grid, trial.values, trial.units)
    possible = test.possible(trial.values, steps)
    if possible is None:
        return _by_hits_alone(found)
    usable = trial.there & test.usable
    judged, wrong = int(usable.sum()), int((usable & ~possible).sum())
    if judged < LEAST_AREAS:
        return replace(found, why=f"only {_areas(judged)} publish it and all the counts that it is of.")
    chance = []
    for moved in trial.placebos(usable):
        fits = test.possible(moved, steps_of(found.figure.grid, moved, trial.units))
        assert fits is not None
        chance.append(int((usable & ~fits).sum()))
    by_chance = float(np.mean(chance))
    found = replace(found, contradictions=wrong, contradictions_by_chance=by_chance)
    told = f"true counts could not give it in {_share(wrong, judged)} ({_percent(by_chance / judged)} by chance)"
    if wrong > MOST_CONTRADICTIONS * judged:
        return replace(found, why=f"neither published counts give it{_hits(found)}, nor could true ones: {told}.")
    if by_chance < max(TELLING_CONTRADICTIONS * judged, TIMES * wrong):
        return replace(found, why=f"any other area's figure would do nearly as well: {told}.")
    excluded = test.excludes(trial.values, steps)
    assert excluded is not None
    unused = "" if found.figure.is_complete else " Its universe is not in the file, so nothing is inferred from it."
    return replace(
        found,
        verdict="evidence",
        why=f"not from published counts{_hits(found)}; {told}.{unused}",
        left=test.left(trial.values, steps),
        excludes=float((excluded & usable).sum() / judged),
    )


def _hits(found: JudgedFigure) -> str:
    if not found.compared:
        return ""
    own, chance = found.hits / found.compared, found.hits_by_chance / found.compared
    return f" (a hit in {_percent(own)} of areas, {_percent(chance)} by chance)"


def _by_hits_alone(found: JudgedFigure) -> JudgedFigure:
    """Judge a figure whose counts were not all published by how often rounded counts would give it."""
    if found.compared < LEAST_AREAS:
        return replace(found, why="the counts that it is of are not in the file, and too few areas could tell.")
    own, chance = found.hits / found.compared, found.hits_by_chance / found.compared
    error = (chance * (1 - chance) / found.compared) ** 0.5
    said = f"a ratio of rounded counts fits in {_percent(own)} of {_areas(found.compared)}, {_percent(chance)} by chance"
    if own > chance + max(_NO_BETTER, 3 * error):
        return replace(found, why=f"{said}: more than chance, but not everywhere.")
    verdict: FigureVerdict = "evidence"
    why = f"not from rounded counts: {said}. The counts that it is of are not in the file, so nothing is inferred from it."
    return replace(found, verdict=verdict, why=why)
