"""Figures in audits: bounds, probabilities, claims and certificates of blocks of areas, against engines for one system."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from numpy.typing import NDArray

from unround.audits import Auditor
from unround.audits.bounds import FIGURE
from unround.audits.certificates import InferredBlock, proof_lines, read_proof
from unround.audits.claims import ClaimKind, RestsOn
from unround.audits.figures import block_rows, figure_bounds, published_figure
from unround.audits.model import AuditOptions, Model, ModelFigure
from unround.bounds.propagation import Bounds, propagate
from unround.bounds.tighten import OFF, tighten
from unround.engines.brute import brute
from unround.evidence.block import WindowTable
from unround.figures import Figure, FigureGrid, FigureKind, Group
from unround.job.folder import _figure_of, _figure_told
from unround.mechanisms import Exact, Mechanism, Rounding
from unround.prior import Prior
from unround.proofs import check_proof
from unround.release import FIGURE_ABSENT, FIGURE_UNIT, Column
from unround.system import System

Longs = NDArray[np.int64]

UNIVERSE, YOUNG, OLD, POOR, POOR_YOUNG, POOR_OLD = range(6)
KEYS = ("T", "Ta", "Tb", "x", "xa", "xb")
SUMS = ((UNIVERSE, (YOUNG, OLD)), (POOR, (POOR_YOUNG, POOR_OLD)))
STEP = Fraction(1, 10)


def rate(name: str, universe: str, numerator: str) -> Figure:
    return Figure(name, FigureKind.RATE, universe, numerator, grid=FigureGrid.of(STEP), label=f"% {numerator}")


RATES = (rate("r", "T", "x"), rate("ra", "Ta", "xa"), rate("rb", "Tb", "xb"))
AGES = (Group("Ta", Fraction(0), Fraction(17)), Group("Tb", Fraction(18), Fraction(99)))
AVERAGES = (
    Figure("mean", FigureKind.MEAN, "T", groups=AGES, grid=FigureGrid.of(Fraction(1))),
    Figure("median", FigureKind.MEDIAN, "T", groups=AGES, grid=FigureGrid.of(Fraction(1))),
)


def model_with(figures: tuple[Figure, ...], how: Mechanism | None = None) -> Model:
    columns = tuple(Column(key, (key,), key) for key in KEYS)
    mechanisms = (how or Rounding(5), *[Rounding(5)] * 5)
    placed = tuple(ModelFigure(figure, place) for place, figure in enumerate(figures))
    return Model.build(columns, mechanisms, SUMS, ("file",) * 2, figures=placed)


def rounded(value: Fraction, step: Fraction) -> int:
    return int(step * floor(value / step + Fraction(1, 2)) / FIGURE_UNIT)


def world(areas: int, seed: int, largest: int = 60) -> tuple[Longs, Longs]:
    """Return true counts, and five figures of each area: three rates, a mean and a median."""
    rng = np.random.default_rng(seed)
    parts = rng.integers(10, largest, (areas, 2))
    poor = rng.binomial(parts, 0.3)
    true = np.stack([parts.sum(1), parts[:, 0], parts[:, 1], poor.sum(1), poor[:, 0], poor[:, 1]], axis=1)
    figures = np.zeros((areas, 5), dtype=np.int64)
    for area, counts in enumerate(true.tolist()):
        for k, (t, x) in enumerate(((UNIVERSE, POOR), (YOUNG, POOR_YOUNG), (OLD, POOR_OLD))):
            figures[area, k] = rounded(Fraction(100 * counts[x], counts[t]), STEP)
        ages = np.sort(np.concatenate([rng.integers(0, 18, counts[1]), rng.integers(18, 100, counts[2])]))
        figures[area, 3] = rounded(Fraction(int(ages.sum()), len(ages)), Fraction(1))
        middle = int(ages[(len(ages) - 1) // 2] + ages[len(ages) // 2])
        figures[area, 4] = rounded(Fraction(middle, 2), Fraction(1))
    return true, figures


def published(true: Longs, seed: int, how: Mechanism | None = None) -> NDArray[np.int32]:
    rng = np.random.default_rng(seed)
    counts = Rounding(5).publish(true, rng).astype(np.int32)
    if isinstance(how, Exact):
        counts[:, 0] = true[:, 0]
    return counts


def system_of(model: Model, counts: NDArray[np.int32], values: Longs) -> System:
    stated = [published_figure(model, counts, values, f) for f in range(len(model.figures))]
    return model.system(counts, range(len(SUMS)), figures=[one for one in stated if one is not None])


# -- inequalities and bounds ------------------------------------------------------------------------------------------


def test_inequalities_of_a_block_are_those_of_each_area() -> None:
    model = model_with((*RATES, *AVERAGES))
    true, values = world(40, 1)
    values[3, 1] = FIGURE_ABSENT
    counts = published(true, 2)
    rows = block_rows(model, counts, values)
    for area in range(40):
        system = system_of(model, counts[area], values[area])
        expected = {
            (tuple(sorted((KEYS.index(system.cells[c].name), f) for c, f in row.terms)), row.at_most) for row in system.rows
        }
        of_area = [rows.row(area, r) for r in range(len(rows.figures))]
        assert {(tuple(sorted(row.terms)), row.at_most) for row in of_area if row.terms} == expected
    assert (rows.limits[3, [2, 3]] == OFF).all()


def test_grids_that_grow_with_the_value_and_shrink_with_the_units() -> None:
    fine = ((Fraction(0), Fraction(1, 10)),)
    grid = FigureGrid(((Fraction(0), Fraction(1)), (Fraction(16), Fraction(2))), ((100, fine),))
    model = model_with((Figure("r", FigureKind.RATE, "T", "x", grid=grid),))
    counts = np.array([[90, 0, 0, 10, 0, 0], [90, 0, 0, 20, 0, 0], [100, 0, 0, 20, 0, 0]], dtype=np.int32)
    values = np.array([[120_000], [180_000], [180_000]])
    for area, step in enumerate((1, 2, Fraction(1, 10))):
        one = published_figure(model, counts[area], values[area], 0)
        assert one is not None
        assert one.figure.grid == FigureGrid.of(Fraction(step))
        rows = block_rows(model, counts, values)
        said = {(frozenset(rows.row(area, r).terms), rows.row(area, r).at_most) for r in range(2)}
        system = model.system(counts[area], (), figures=(one,))
        at = {c: KEYS.index(cell.name) for c, cell in enumerate(system.cells)}
        assert said == {(frozenset((at[c], f) for c, f in row.terms), row.at_most) for row in system.rows}


@pytest.mark.parametrize("how", [None, Exact()])
def test_bounds_of_a_block_are_those_of_each_area(how: Mechanism | None) -> None:
    model = model_with((*RATES, *AVERAGES), how)
    true, values = world(60, 3)
    counts = published(true, 4, how)
    windows, _ = WindowTable(model.mechanisms).of(counts)
    tight = tighten(model.compiled, windows, rows=block_rows(model, counts, values))
    assert tight.feasible.all()
    for area in range(60):
        system = system_of(model, counts[area], values[area])
        bounds = Bounds.of(system.windows)
        assert propagate(system.equations, bounds, None, system.rows)
        at = [KEYS.index(cell.name) for cell in system.cells]
        assert tight.low[area, at].tolist() == bounds.lows
        assert tight.high[area, at].tolist() == bounds.highs
    assert ((tight.low <= true) & (true <= tight.high)).all()


def test_factors_too_large_for_exact_arithmetic_are_not_used() -> None:
    per = Fraction(10**12 + 39, 7)
    model = model_with((Figure("r", FigureKind.RATE, "T", "x", grid=FigureGrid.of(STEP), per=per),))
    counts = np.array([[100, 0, 0, 10, 0, 0]], dtype=np.int32)
    rows = block_rows(model, counts, np.array([[123_456_789]]))
    assert (rows.limits == OFF).all()


# -- probabilities ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [None, Exact()])
def test_probabilities_with_rates_are_those_of_brute_force(how: Mechanism | None) -> None:
    model = model_with(RATES, how)
    assert [model.weighs_figure(f) for f in range(3)] == [True] * 3
    true, values = world(12, 5)
    counts = published(true, 6, how)
    inferred = inferred_from(model, counts, values[:, :3])
    posterior = inferred.probabilities.posterior
    assert inferred.probabilities.by_rates is not None
    assert inferred.probabilities.by_rates[:, POOR:].all()
    assert not inferred.probabilities.by_rates[:, :POOR].any()
    for area in range(12):
        system = system_of(model, counts[area], values[area, :3])
        reference = brute(system)
        for i, cell in enumerate(system.cells):
            expected = reference.marginal(i)
            column = KEYS.index(cell.name)
            if column < POOR:
                continue  # universes may stand in other sums: they are weighed with these, and without rates
            mode = int(posterior.mode[area, column])
            assert posterior.probability[area, column] == pytest.approx(float(max(expected.values())), abs=1e-9)
            assert float(expected[mode]) == pytest.approx(float(max(expected.values())), abs=1e-9)


def test_distributions_of_one_area_are_those_of_brute_force() -> None:
    model = model_with(RATES)
    true, values = world(3, 7)
    counts = published(true, 8)
    auditor = Auditor(model, Prior.flat())
    found = auditor.infer(counts, np.zeros(3, dtype=bool), keep=1, figures=values[:, :3]).probabilities.distributions([1])[0]
    system = system_of(model, counts[1], values[1, :3])
    reference = brute(system)
    for i, cell in enumerate(system.cells):
        if KEYS.index(cell.name) < POOR:
            continue
        low, chances = found[KEYS.index(cell.name)]
        there = {low + k: p for k, p in enumerate(chances.tolist()) if p > 1e-12}
        assert there == pytest.approx({x: float(p) for x, p in reference.marginal(i).items()})


def test_means_and_medians_are_not_weighed() -> None:
    model = model_with((*RATES, *AVERAGES))
    assert [model.weighs_figure(f) for f in range(5)] == [True, True, True, False, False]


def test_rates_with_one_universe_go_into_two_forests() -> None:
    model = model_with((*RATES, rate("other", "T", "xb")))
    assert [len(forest.figures) for forest in model.rate_pairs] == [3, 1]


def test_a_part_in_other_sums_is_not_weighed() -> None:
    model = model_with((RATES[0],))
    assert not model.weighs_figure(0)  # x = xa + xb would be lost


# -- claims -----------------------------------------------------------------------------------------------------------


def inferred_from(model: Model, counts: NDArray[np.int32], values: Longs | None) -> InferredBlock:
    auditor = Auditor(model, Prior.flat(), AuditOptions())
    return auditor.audit(counts, np.zeros(len(counts), dtype=bool), figures=values)


def test_claims_by_figures_are_conditional_right_and_certified() -> None:
    model = model_with((*RATES, *AVERAGES))
    true, values = world(100, 9)
    counts = published(true, 10)
    without, inferred = inferred_from(model, counts, None), inferred_from(model, counts, values)
    assert (inferred.claims.of_kind(ClaimKind.PROVED) == without.claims.of_kind(ClaimKind.PROVED)).all()
    conditional = inferred.claims.of_kind(ClaimKind.CONDITIONAL)
    assert conditional.sum() > 200
    assert not without.claims.of_kind(ClaimKind.CONDITIONAL).any()
    assert (inferred.claims.values == true)[conditional | inferred.claims.of_kind(ClaimKind.PROVED)].all()
    certificates = {(certificate.area, certificate.cell): certificate for certificate in inferred.claims.certified}
    for area, cell in np.argwhere(conditional).tolist():
        certificate = certificates[area, cell]
        assert certificate.figures
        assert certificate.rests_on == RestsOn.FIGURES
        assert check_proof(certificate.system, certificate.proof)
    assert (inferred.by_figures & conditional == conditional).all()


def test_what_rates_make_likely_is_right_as_often_as_stated() -> None:
    model = model_with((*RATES, *AVERAGES))
    true, values = world(3000, 21, largest=90)
    auditor = Auditor(model, Prior.flat(), AuditOptions())
    inferred = auditor.infer(published(true, 22), np.zeros(3000, dtype=bool), figures=values)
    likely = inferred.claims.of_kind(ClaimKind.LIKELY) & inferred.by_figures
    right, stated = (inferred.claims.values == true)[likely], inferred.probabilities.posterior.probability[likely]
    assert likely.sum() > 200
    # Claims about one area are right or wrong together: areas are what counts.
    areas = likely.any(axis=1).sum()
    assert abs(right.mean() - stated.mean()) < 3 * np.sqrt((stated * (1 - stated)).mean() / areas) + 0.02


def test_certificates_with_figures_survive_as_lines() -> None:
    import polars as pl

    model = model_with(RATES)
    true, values = world(40, 11)
    inferred = inferred_from(model, published(true, 12), values[:, :3])
    areas = pl.DataFrame({"region": [str(k) for k in range(40)]})
    lines = list(proof_lines(model, inferred.claims.certified, areas, ("region",)))
    assert any("figures" in line for line in lines)
    for line in lines:
        system, proof = read_proof(line)
        assert check_proof(system, proof)
        if "figures" in line:
            line["figures"][0]["value"] = str(Fraction(line["figures"][0]["value"]) + Fraction(1, 10))
            assert not check_proof(*read_proof(line))


def test_a_figure_that_contradicts_is_set_aside_and_spoils_nothing() -> None:
    model = model_with((*RATES, *AVERAGES))
    true, values = world(30, 13)
    counts = published(true, 14)
    wrong = values.copy()
    wrong[5, 0] += 300_000  # 30 points too high
    inferred, without = inferred_from(model, counts, wrong), inferred_from(model, counts, values)
    (contradiction,) = [contradiction for contradiction in inferred.contradictions if contradiction.kind == FIGURE]
    assert contradiction.area == 5
    assert set(contradiction.cells) == {UNIVERSE, POOR}
    assert "It was not computed from the true counts, and is not used here." in contradiction.text
    assert inferred.figured is not None
    assert inferred.figured.values[5, 0] == FIGURE_ABSENT
    assert (inferred.figured.values[5, 1:] == values[5, 1:]).all()
    others = np.arange(30) != 5
    assert (inferred.claims.kinds == without.claims.kinds)[others].all()
    assert not inferred.clashing.any()


def test_figures_that_clash_together_are_all_set_aside() -> None:
    model = model_with((RATES[0], rate("again", "T", "x")))
    true, values = world(4, 15)
    both = np.stack([values[:, 0], values[:, 0] + 10_000], axis=1)
    windows, _ = WindowTable(model.mechanisms).of(published(true, 16))
    auditor = Auditor(model, Prior.flat())
    stated = auditor.documented(published(true, 16), np.zeros(4, dtype=bool))
    figured, found = figure_bounds(model, published(true, 16), both, stated.bounds, stated.active)
    assert windows.low.shape == figured.bounds.tight.low.shape
    assert figured.bounds.tight.feasible.all()
    assert {one.kind for one in found} == {FIGURE}
    assert (figured.values[[one.area for one in found]] == FIGURE_ABSENT).any(axis=1).all()


def test_a_figure_is_the_same_when_an_audit_is_opened_again() -> None:
    steps = ((Fraction(0), Fraction(1, 2)), (Fraction(50), Fraction(1)))
    grid = FigureGrid(steps, by_units=((100, ((Fraction(0), Fraction(1, 10)),)),), nested=True)
    kept = ModelFigure(Figure("rate", FigureKind.RATE, "T", "x", grid=grid, label="Rate (%)"), 3)
    assert _figure_of(_figure_told(kept)) == kept
