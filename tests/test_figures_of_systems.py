"""Figures in systems: every engine against `brute`, and certificates against a checker that works figures out for itself."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from tests import shapes
from unround.engines import infer
from unround.engines.brute import brute
from unround.engines.cutset import with_running_counts
from unround.errors import InputError
from unround.figures import Figure, FigureGrid, FigureKind, Group
from unround.mechanisms import Exact, Rounding, Suppressed, Unpublished
from unround.proofs import Proof, check_proof, fault_in_proof
from unround.solution import solve
from unround.system import Cell, PublishedFigure, Row, Sum, System

Known = shapes.Known
STEPS = [Fraction(1, 10), Fraction(1), Fraction(5)]


def rounded(value: Fraction, step: Fraction) -> Fraction:
    return step * floor(value / step + Fraction(1, 2))


@st.composite
def with_figures(draw: st.DrawFn, shape: str) -> Known:
    """A shape, with one or two figures computed from its true counts."""
    system, true = draw(shapes.ALL[shape])
    names = [cell.name for cell in system.cells]
    figures = []
    for k in range(draw(st.integers(1, 2))):
        step = draw(st.sampled_from(STEPS))
        kind = draw(st.sampled_from(list(FigureKind)))
        value = Fraction(0)
        figure = None
        if kind is FigureKind.RATE:
            x, t = draw(st.sampled_from(names)), draw(st.sampled_from(names))
            if x != t and true[system.index[t]]:
                value = rounded(Fraction(100 * true[system.index[x]], true[system.index[t]]), step)
                figure = Figure(f"f{k}", kind, t, x, grid=FigureGrid.of(step))
        else:
            sum_ = draw(st.sampled_from(system.sums))
            counts = [true[system.index[part]] for part in sum_.parts]
            if sum(counts):
                groups = tuple(
                    Group(part, Fraction(10 * i), Fraction(10 * i + draw(st.sampled_from([0, 9]))))
                    for i, part in enumerate(sum_.parts)
                )
                value = rounded(value_of(kind, groups, counts, draw(shapes.SEEDS)), step)
                figure = Figure(f"f{k}", kind, sum_.total, groups=groups, grid=FigureGrid.of(step))
        if figure is not None:
            figures.append(PublishedFigure(figure, value))
    assume(figures)
    return System(system.cells, system.sums, figures), true


def value_of(kind: FigureKind, groups: Sequence[Group], counts: Sequence[int], seed: int) -> Fraction:
    rng = np.random.default_rng(seed)
    units: list[int] = []
    for group, number in zip(groups, counts, strict=True):
        assert group.low is not None
        assert group.high is not None
        units += rng.integers(int(group.low), int(group.high) + 1, number).tolist()
    units.sort()
    if kind is FigureKind.MEAN:
        return Fraction(sum(units), len(units))
    return Fraction(units[(len(units) - 1) // 2] + units[len(units) // 2], 2)


def agrees(known: Known, engine: str) -> str:
    system, true = known
    try:
        reference = brute(system, limit=30_000)
    except InputError:
        assume(False)
    assert true in reference.solutions
    try:
        inferred = infer(system, engine=engine, top=3)
    except InputError:
        assert engine != "auto"
        assume(False)
    assert inferred.feasible
    for i in range(len(true)):
        assert (inferred.lows[i], inferred.highs[i]) == (reference.low(i), reference.high(i))
    if inferred.aside or inferred.answer is None:
        return "bounds"
    answer = inferred.answer
    assert answer.solutions in (None, reference.count)
    assert answer.marginals is not None
    for i, marginal in enumerate(answer.marginals):
        assert marginal is not None
        low, chances = marginal
        there = {low + k: p for k, p in enumerate(chances.tolist()) if p}
        expected = reference.marginal(i)
        assert set(there) == set(expected)
        assert all(abs(there[x] - float(p)) < (1e-9 if inferred.errors is None else 0.1) for x, p in expected.items())
    for (_, p), (_, q) in zip(answer.best, reference.top(3), strict=False):
        assert answer.relative or abs(p - float(q)) < 1e-9
    return inferred.engine


@pytest.mark.parametrize("shape", shapes.ALL)
def test_every_engine_agrees_with_brute_force(shape: str) -> None:
    how = shapes.judge(with_figures(shape), 25, lambda known: agrees(known, "auto"))
    assert how["bounds"] < how.total() / 2


@pytest.mark.parametrize("engine", ["cutset", "cp-sat"])
def test_engines_that_are_asked_for_agree(engine: str) -> None:
    shapes.judge(with_figures("overlapping"), 15, lambda known: agrees(known, engine))
    shapes.judge(with_figures("shared part"), 15, lambda known: agrees(known, engine))


def test_z3_agrees() -> None:
    pytest.importorskip("z3")
    shapes.judge(with_figures("zeros"), 10, lambda known: agrees(known, "z3"))


@pytest.mark.parametrize("shape", ["rounded total", "overlapping", "tree by sex", "shared part", "cyclic"])
def test_every_proof_checks_and_is_true(shape: str) -> None:
    def proves(known: Known) -> str:
        system, true = known
        solution = solve(system, top=0)
        by = {step["by"] for proof in solution.proofs for step in proof.steps}
        for proof in solution.proofs:
            assert check_proof(system, proof)
            assert proof.value == true[system.index[proof.cell]]
            assert proof.text.endswith(f"So {proof.cell} = {proof.value}.")
        single = [cell for cell in solution.cells if cell.low == cell.high and cell.kind != "given"]
        assert len(solution.proofs) == len(single)
        return "figure" if "figure" in by else "sums" if by else "none"

    assert shapes.judge(with_figures(shape), 40, proves)["figure"] >= 1


# -- altered certificates ---------------------------------------------------------------------------------------------


def rate(value: str, step: str = "0.1", universe: str = "T", numerator: str = "x") -> PublishedFigure:
    return PublishedFigure(
        Figure("rate", FigureKind.RATE, universe, numerator, grid=FigureGrid.of(Fraction(step))), Fraction(value)
    )


def ages(kind: FigureKind, value: str) -> PublishedFigure:
    groups = (
        Group("young", Fraction(0), Fraction(14)),
        Group("middle", Fraction(15), Fraction(64)),
        Group("old", Fraction(65), Fraction(100)),
    )
    return PublishedFigure(Figure("age", kind, "N", groups=groups, grid=FigureGrid.of(Fraction(1, 10))), Fraction(value))


BY_FIGURE = {
    "rate": System([Cell("T", 500, Rounding(5)), Cell("x", 60, Rounding(5))], [], [rate("12.4")]),
    "median": System(
        [
            Cell("N", 20, Exact()), Cell("young", 10, Rounding(5)), Cell("middle", 0, Exact()), Cell("old", 10, Rounding(5)),
        ],
        [Sum("N", ("young", "middle", "old"))],
        [ages(FigureKind.MEDIAN, "40")],
    ),
    "mean": System(
        [
            Cell("N", 20, Exact()), Cell("young", 0, Rounding(5)), Cell("middle", None, Unpublished()),
            Cell("old", None, Unpublished()),
        ],
        [Sum("N", ("young", "middle", "old"))],
        [ages(FigureKind.MEAN, "99.9")],
    ),
}  # fmt: skip


def proofs_of(name: str) -> list[tuple[System, Proof]]:
    system = BY_FIGURE[name]
    proofs = [(system, proof) for proof in solve(system).proofs]
    return [one for one in proofs if any(step["by"] == "figure" for step in one[1].steps)]


@pytest.mark.parametrize("name", BY_FIGURE)
def test_no_altered_coefficient_passes(name: str) -> None:
    altered = 0
    proofs = proofs_of(name)
    assert proofs
    for system, proof in proofs:
        assert fault_in_proof(system, proof) is None
        for k, step in enumerate(proof.steps):
            if step["by"] != "figure":
                continue
            for field in (*step["terms"], None):
                number = Fraction(step["at_most"] if field is None else step["terms"][field])
                for other in (number + Fraction(1, 10**6), number - Fraction(1, 10**6), -number or 1, 3 * number + 1):
                    steps: list[Any] = copy.deepcopy(list(proof.steps))
                    if field is None:
                        steps[k]["at_most"] = str(other)
                    else:
                        steps[k]["terms"][field] = str(other)
                    assert not check_proof(system, _with_steps(proof, steps)), (field, other)
                    altered += 1
    assert altered >= 8


def _with_steps(proof: Proof, steps: list[Any]) -> Proof:
    return Proof(proof.cell, proof.value, proof.text, proof.depth, proof.rests_on, steps)


@pytest.mark.parametrize(
    "change",
    [
        lambda step: step.update(value=step["value"] + (1 if step["bound"] == "low" else -1)),
        lambda step: step.update(bound="high" if step["bound"] == "low" else "low"),
        lambda step: step.update(figure="another"),
        lambda step: step["terms"].pop("T"),
        lambda step: step["terms"].update(T="1e300000"),
        lambda step: step["terms"].update(T=0.1235),
        lambda step: step.update(uses=[]),
        lambda step: step.update(terms=[]),
        lambda step: step.pop("at_most"),
    ],
)
def test_the_checker_refuses(change: Any) -> None:
    ((system, proof),) = proofs_of("rate")
    for k, step in enumerate(proof.steps):
        if step["by"] == "figure":
            steps: list[Any] = copy.deepcopy(list(proof.steps))
            change(steps[k])
            assert not check_proof(system, _with_steps(proof, steps))


@pytest.mark.parametrize("other", ["12.5", "12.3"])
def test_a_proof_belongs_to_the_published_value_and_its_grid(other: str) -> None:
    ((system, proof),) = proofs_of("rate")
    assert check_proof(system, proof)
    assert not check_proof(System(system.cells, system.sums, [rate(other)]), proof)
    assert not check_proof(System(system.cells, system.sums, [rate("12.4", "0.2")]), proof)
    assert not check_proof(System(system.cells, system.sums), proof)


# -- words, and what is not possible ----------------------------------------------------------------------------------


def test_the_arithmetic_of_a_rate_in_words() -> None:
    ((_, proof),) = proofs_of("rate")
    assert proof.text == (
        "T ≥ 496 (500 published, base 5), and x / T ≥ 12.35% (12.4% published): 12.35% × 496 = 61.256, so x ≥ 62. "
        "T ≤ 504 (500 published, base 5), and x / T ≤ 12.45% (12.4% published): 12.45% × 504 = 62.748, so x ≤ 62. "
        "So x = 62."
    )


def test_a_ratio_above_one_is_used_from_both_sides() -> None:
    ratio = PublishedFigure(
        Figure("ratio", FigureKind.RATE, "users", "records", grid=FigureGrid.of(Fraction("0.01")), per=Fraction(1)),
        Fraction("1.33"),
    )
    cells = [Cell(name, None, Suppressed(1, 4)) for name in ("records", "users")]
    for engine in ("auto", "brute"):
        answer = solve(System(cells, [], [ratio]), engine=engine)
        assert answer.solutions == 1
        assert [(cell.low, cell.high) for cell in answer.cells] == [(4, 4), (3, 3)]


def test_the_universe_of_a_rate_is_bounded_too() -> None:
    system = System([Cell("T", None, Unpublished()), Cell("x", 62, Exact())], [], [rate("12.4")])
    assert (solve(system)["T"].low, solve(system)["T"].high) == (498, 502)
    wide = System([Cell("T", None, Unpublished()), Cell("x", 1, Exact())], [], [rate("0")])
    assert (solve(wide)["T"].low, solve(wide)["T"].high) == (2000, None)


def test_ties_at_half_a_step_go_either_way() -> None:
    for value in ("12.5", "12.4"):  # 249 / 2000 = 12.45%
        system = System([Cell("T", 2000, Exact()), Cell("x", 249, Exact())], [], [rate(value)])
        assert solve(system).feasible
    system = System([Cell("T", 2000, Exact()), Cell("x", 249, Exact())], [], [rate("12.6")])
    assert not solve(system).feasible


def test_a_figure_used_twice_counts_once() -> None:
    cells = [Cell("T", 500, Rounding(5)), Cell("x", 250, Rounding(5))]
    once, twice = System(cells, [], [rate("50")]), System(cells, [], [rate("50"), rate("50")])
    again = PublishedFigure(Figure("again", FigureKind.RATE, "T", "x"), Fraction(50))
    for system in (twice, System(cells, [], [rate("50"), again])):
        assert dict(solve(system)["x"].distribution) == pytest.approx(dict(solve(once)["x"].distribution))
    assert solve(once)["x"].distribution[0] == (248, pytest.approx(float(brute(once).marginal(1)[248])))


def test_a_clash_names_the_figure_and_nothing_that_could_be_left_out() -> None:
    cells = [Cell("T", 500, Rounding(5)), Cell("x", 60, Rounding(5)), Cell("y", 440, Rounding(5)), Cell("z", 5, Rounding(5))]
    system = System(cells, [Sum("T", ("x", "y"))], [rate("50"), rate_of_z()])
    clash = solve(system).clash
    assert clash is not None
    assert [figure.figure.name for figure in clash.figures] == ["rate"]
    assert clash.cells == ("T", "x")
    assert clash.sums == ()
    assert solve(system).argument is not None


def rate_of_z() -> PublishedFigure:
    return PublishedFigure(Figure("z / T", FigureKind.RATE, "T", "z"), Fraction(1))


def test_a_clash_without_figures_is_told_without_them() -> None:
    cells = [Cell("T", 500, Rounding(5)), Cell("x", 60, Rounding(5)), Cell("y", 400, Rounding(5))]
    clash = solve(System(cells, [Sum("T", ("x", "y"))], [rate("50")])).clash
    assert clash is not None
    assert clash.figures == ()
    assert clash.sums


def test_a_mean_of_many_groups_is_used_for_bounds_alone_and_that_is_said() -> None:
    groups = tuple(Group(f"g{i}", Fraction(5 * i), Fraction(5 * i + 4)) for i in range(12))
    cells = [Cell("N", 600, Exact()), *(Cell(g.count, 50, Rounding(5)) for g in groups)]
    figure = PublishedFigure(
        Figure("age", FigureKind.MEAN, "N", groups=groups, grid=FigureGrid.of(Fraction(1, 10))), Fraction("31.5")
    )
    solution = solve(System(cells, [Sum("N", tuple(g.count for g in groups))], [figure]))
    assert not solution.figures[0].in_probabilities
    assert any("age: used for possible ranges and proofs" in assumption for assumption in solution.assumptions)
    assert all(cell.low <= (cell.mode or 0) <= (cell.high or 0) for cell in solution.cells)


def test_engines_that_cannot_use_a_figure_say_so() -> None:
    system = System([Cell("T", 500, Rounding(5)), Cell("x", 250, Rounding(5))], [], [rate("50")])
    for engine in ("tree", "chains"):
        with pytest.raises(InputError, match=f"the {engine} engine cannot use rate. Use --engine auto"):
            infer(system, engine=engine)


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        (Figure("r", FigureKind.RATE, "T"), "the rate 'r' has no numerator"),
        (Figure("m", FigureKind.MEAN, "T"), "the mean 'm' has no groups"),
        (Figure("r", FigureKind.RATE, "T", "y"), "the figure 'r' names 'y', but there is no such cell"),
        (Figure("r", FigureKind.RATE, "T", "x", grid=FigureGrid.of(Fraction(0))), "the steps of 'r'"),
    ],
)
def test_figures_that_cannot_be_used(figure: Figure, message: str) -> None:
    cells = [Cell("T", 500, Rounding(5)), Cell("x", 250, Rounding(5))]
    with pytest.raises(InputError, match=message):
        System(cells, [], [PublishedFigure(figure, Fraction(1))])


def test_figures_survive_json() -> None:
    for system in BY_FIGURE.values():
        for figure in system.figures:
            assert PublishedFigure.of_json(figure.to_json()) == figure
    with pytest.raises(InputError, match="is not a fraction"):
        PublishedFigure.of_json({**rate("12.4").to_json(), "value": "1e400000"})


def test_running_counts_replace_the_parts_of_totals() -> None:
    ties = with_running_counts(4, ((0, (1, 2)), (3, (0,))), [Row(((1, 2), (2, 2), (3, -1)), 1, 0, 0)])
    assert ties.cells == 4
    assert ties.rows[0].terms == ((0, 2), (3, -1))
