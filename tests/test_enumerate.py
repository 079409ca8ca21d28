"""Listing solutions and finding bounds by search, against brute force, shape by shape."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import shapes
from tests.shapes import examples
from unround.bounds import search as engine
from unround.bounds.search import cpsat_bounds, cpsat_solutions, cpsat_witness, z3_solutions
from unround.engines.answer import domains, weigh
from unround.engines.brute import Brute, brute
from unround.equations import parse
from unround.errors import Infeasible, InputError, InternalError
from unround.mechanisms import Exact, Gaussian, Mechanism, Rounding, Suppressed, Unpublished, Window, Within
from unround.mechanisms.base import IntArray
from unround.sums.forest import Equations
from unround.system import Cell, Sum, System

Lister = Callable[[Equations, Sequence[Window], int], IntArray | None]

LIMIT = 1_500
SIX = "110! = a: 30 + 65 + 10; a = 10 + 10 + 10"


def reference(system: System, limit: int = LIMIT) -> Brute:
    try:
        return brute(system, limit=limit)
    except InputError:
        assume(False)
        raise


def rows(array: IntArray | None) -> list[tuple[int, ...]]:
    assert array is not None
    assert array.dtype == np.int64
    return [tuple(row) for row in array.tolist()]


def certify(system: System) -> bool:
    """Check that listing, weighing, bounds and feasibility say what brute force says; return whether there is a solution."""
    truth = reference(system)
    equations, windows = system.equations, system.windows
    listed = cpsat_solutions(equations, windows, LIMIT)
    assert rows(listed) == truth.solutions
    assert (cpsat_witness(equations, windows) is not None) == (truth.count > 0)
    bounds = cpsat_bounds(equations, windows)
    if not truth.count:
        assert bounds is None
        return False
    cells = range(len(system.cells))
    assert bounds == ([truth.low(i) for i in cells], [truth.high(i) for i in cells])
    assert listed is not None
    certify_weights(listed, windows, truth)
    return True


def certify_weights(listed: IntArray, windows: Sequence[Window], truth: Brute, top: int = 5) -> None:
    answer = weigh(listed, windows, top)
    assert answer.solutions == truth.count
    assert answer.marginals is not None
    for i, marginal in enumerate(answer.marginals):
        assert marginal is not None
        low, probabilities = marginal
        expected = truth.marginal(i)
        assert (low, low + len(probabilities) - 1) == (min(expected), max(expected))
        for k, probability in enumerate(probabilities):
            assert abs(probability - float(expected.get(low + k, 0))) < 1e-14
    best = truth.top(top)
    assert [values for values, _ in answer.best] == [values for values, _ in best]
    assert all(abs(p - float(q)) < 1e-14 for (_, p), (_, q) in zip(answer.best, best, strict=True))


@pytest.mark.parametrize("shape", shapes.ALL)
def test_every_shape(shape: str) -> None:
    possible = shapes.judge(shapes.ALL[shape], 30, lambda known: certify(known[0]))
    assert not possible[False]


def test_systems_that_often_have_no_solution() -> None:
    possible = shapes.judge(shapes.any_numbers(), 80, certify)
    assert min(possible[True], possible[False]) >= shapes.examples(5)


@st.composite
def tables(draw: st.DrawFn) -> System:
    """Two rows and two or three columns with all margins; values drawn around a table that adds up, or freely."""
    columns = draw(st.integers(2, 3))
    names = [f"r{i}c{j}" for i in range(3) for j in range(columns + 1)]
    sums = [Sum(f"r{i}c{columns}", tuple(f"r{i}c{j}" for j in range(columns))) for i in range(3)]
    sums += [Sum(f"r2c{j}", (f"r0c{j}", f"r1c{j}")) for j in range(columns + 1)]
    inner = np.array(draw(st.lists(st.integers(0, 5), min_size=2 * columns, max_size=2 * columns)))
    inner = inner.reshape(2, columns)
    whole = np.vstack([inner, inner.sum(0)])
    whole = np.hstack([whole, whole.sum(1)[:, None]])
    rng = np.random.default_rng(draw(shapes.SEEDS))
    hows: list[Mechanism] = draw(
        st.lists(
            st.sampled_from([Rounding(2), Rounding(3), Exact(), Suppressed(1, 2), Unpublished()]),
            min_size=len(names),
            max_size=len(names),
        )
    )
    cells = []
    for name, how, true in zip(names, hows, whole.ravel(), strict=True):
        shift = draw(st.sampled_from([0, 0, 0, 0, 0, 1])) * getattr(how, "base", 1)
        value = int(how.publish(np.array([true]), rng)[0])
        hidden = value == np.iinfo(np.int64).min
        cells.append(Cell(name, None if hidden else value + shift * (not isinstance(how, Suppressed)), how))
    return System(cells, sums)


def test_tables_with_margins() -> None:
    shapes.judge(tables(), 150, certify)


@st.composite
def with_holes(draw: st.DrawFn) -> tuple[Equations, tuple[Window, ...]]:
    """Windows with holes, in shapes with and without loops."""
    equations = draw(st.sampled_from([((0, (1, 2)),), ((0, (1, 2)), (3, (0, 1))), ((0, (1, 2)), (0, (2, 3)), (3, (1,)))]))
    windows = []
    for _ in range(4):
        weights = np.array(draw(st.lists(st.sampled_from([0.0, 0.0, 0.25, 1.0]), min_size=1, max_size=8)))
        weights[0] = weights[-1] = 0.5
        low = draw(st.integers(0, 6))
        windows.append(Window(low, low + len(weights) - 1, weights, holes=not weights.all()))
    return equations, tuple(windows)


@given(with_holes())
@settings(max_examples=examples(150))
def test_windows_with_holes(case: tuple[Equations, tuple[Window, ...]]) -> None:
    equations, windows = case
    worlds = np.stack(np.meshgrid(*(list(w) for w in windows), indexing="ij"), axis=-1).reshape(-1, 4)
    fits = np.ones(len(worlds), dtype=bool)
    for total, parts in equations:
        fits &= worlds[:, total] == worlds[:, list(parts)].sum(axis=1)
    expected = worlds[fits]
    assert rows(cpsat_solutions(equations, windows, LIMIT)) == [tuple(row) for row in expected.tolist()]
    assert (cpsat_witness(equations, windows) is not None) == bool(len(expected))
    bounds = cpsat_bounds(equations, windows)
    assert bounds == ((expected.min(0).tolist(), expected.max(0).tolist()) if len(expected) else None)


@pytest.mark.parametrize("lister", [cpsat_solutions, z3_solutions])
def test_the_paper_s_examples(lister: Lister) -> None:
    for text, expected in [
        ("48! = 20 + 20 + 20", [(48, 16, 16, 16)]),
        ("87! = 35 + 45", [(87, 38, 49), (87, 39, 48)]),
        ("100! = 20 + 20", []),
    ]:
        system = parse(text)
        solutions = lister(system.equations, system.windows, 10)
        assert rows(solutions) == expected
        assert solutions is not None
        assert solutions.shape == (len(expected), len(system.cells))


def test_the_paper_s_six_cells() -> None:
    system = parse(SIX)
    truth = brute(system)
    listed = cpsat_solutions(system.equations, system.windows, 1956)
    assert rows(listed) == truth.solutions
    assert listed is not None
    certify_weights(listed, system.windows, truth, top=200)


@given(shapes.any_numbers())
@settings(max_examples=examples(10))
def test_z3_finds_the_same(system: System) -> None:
    truth = reference(system, limit=60)
    assert rows(z3_solutions(system.equations, system.windows, 60)) == truth.solutions


def test_z3_respects_holes_and_open_windows() -> None:
    holed = Window(0, 4, np.array([1.0, 0.0, 0.0, 0.0, 1.0]), holes=True)
    exact = Window(4, 4, np.ones(1))
    free = Window(0, None, None)
    assert rows(z3_solutions(((2, (0, 1)),), (holed, free, exact), 10)) == [(0, 4, 4), (4, 0, 4)]
    assert z3_solutions(((0, (1, 2)),), (free, free, exact), 10) is None


def test_z3_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(InputError, match=r'pip install "unround\[z3\]"'):
        z3_solutions((), (), 1)


@pytest.mark.parametrize("lister", [cpsat_solutions, z3_solutions])
def test_the_limit(lister: Lister) -> None:
    system = parse("30 = 15 + 15 + 15")
    assert len(rows(lister(system.equations, system.windows, 4))) == 4
    assert lister(system.equations, system.windows, 3) is None
    assert lister(system.equations, system.windows, 0) is None


def test_infinitely_many_solutions_are_more_than_any_limit() -> None:
    for text in ("? = ? + 5", "a: ?", "a: ?; b: ?; a = b + 10"):
        system = parse(text)
        assert cpsat_solutions(system.equations, system.windows, 1000) is None
    system = parse("a: ?; b: ?; 10! = 50; a = b + 10")
    assert len(rows(cpsat_solutions(system.equations, system.windows, 10))) == 0


def test_wide_ranges_are_divided() -> None:
    system = parse("5000! = a: ? + b: ?; a = c: ? + 4000!")
    listed = cpsat_solutions(system.equations, system.windows, 2000)
    assert rows(listed) == [(5000, 4000 + c, 1000 - c, c, 4000) for c in range(1001)]
    system = parse("9999999999999999! = ? + ?")
    assert cpsat_solutions(system.equations, system.windows, 2000) is None
    assert cpsat_bounds(system.equations, system.windows) == (
        [9999999999999999, 0, 0],
        [9999999999999999, 9999999999999999, 9999999999999999],
    )


def test_dividing_leaves_out_what_has_no_solution() -> None:
    # Without loops bounds are as tight as can be; here they are not, and most of the range is empty.
    system = parse("a: ?; b: ?; c: ?; d: ?; 90000! = a + b; a = b + c; b = a + d")
    assert rows(cpsat_solutions(system.equations, system.windows, 10)) == [(45000, 45000, 0, 0, 90000)]


def test_bounds_say_which_cells_nothing_bounds() -> None:
    system = parse("a: ?; b: ?; c: ?; d: ?; e: ?; a = b + c; c = a + d; 20 = d + e")
    # a = b + a + d leaves nothing for b and d, which no single sum shows; a and c can be any count.
    assert cpsat_bounds(system.equations, system.windows) == ([0, 0, 0, 0, 16, 16], [None, 0, None, 0, 24, 24])
    system = parse("a: ?; b: ?; c: ?; a = b + c + 5; b = c")
    bounds = cpsat_bounds(system.equations, system.windows)
    assert bounds == ([1, 0, 0, 1], [None, None, None, 9])


def test_growth_without_end_that_contradicts_itself() -> None:
    system = parse("a: ?; b: ?; a = b + 1!; b = a + 1!")
    assert cpsat_witness(system.equations, system.windows) is None
    assert cpsat_bounds(system.equations, system.windows) is None
    assert len(rows(cpsat_solutions(system.equations, system.windows, 10))) == 0


def test_a_search_that_breaks_off_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    system = parse(SIX)
    patient = engine.single_worker

    def hasty() -> object:
        solver = patient()
        solver.parameters.max_time_in_seconds = 0.0
        return solver

    monkeypatch.setattr(engine, "single_worker", hasty)
    for ask in (cpsat_witness, cpsat_bounds, lambda e, d: cpsat_solutions(e, d, 10)):
        with pytest.raises(InternalError, match="CP-SAT stopped without an answer"):
            ask(system.equations, system.windows)


def test_an_enumeration_that_breaks_off_is_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    system = parse(SIX)
    collector = engine._collector

    def tired(cells: int, limit: int) -> object:
        collect = collector(cells, limit)

        class Tired(type(collect)):  # type: ignore[misc] # a class made by a function has no type of its own
            def on_solution_callback(self) -> None:
                super().on_solution_callback()
                if self.count == 100:
                    self.stop_search()

        return Tired()

    monkeypatch.setattr(engine, "_collector", tired)
    with pytest.raises(InternalError, match="CP-SAT stopped without an answer"):
        cpsat_solutions(system.equations, system.windows, 5000)


def test_results_are_the_same_every_time() -> None:
    system = parse("t: 60 = a: 20 + 20 + 15; a = ? + 10; t = ? + 30")
    first, second = (cpsat_bounds(system.equations, system.windows) for _ in range(2))
    assert first == second


def test_weights_of_hundreds_of_cells_do_not_underflow() -> None:
    cells = 900
    window = Window(0, 1, np.array([1e-3, 3e-3]))
    solutions = np.zeros((3, cells), dtype=np.int64)
    solutions[1, 5] = solutions[2, 5] = solutions[2, 7] = 1
    answer = weigh(solutions[[0, 1, 2]], [window] * cells, top=3)
    assert [p for _, p in answer.best] == pytest.approx([9 / 13, 3 / 13, 1 / 13], rel=1e-12)
    assert answer.marginals is not None
    low, probabilities = answer.marginals[5] or (None, None)
    assert low == 0
    assert probabilities == pytest.approx([1 / 13, 12 / 13], rel=1e-12)


def test_subnormal_weights_keep_their_digits() -> None:
    window = Window(0, 1, np.array([5e-324, 1.5e-323]))
    answer = weigh(np.array([[0], [1]]), [window], top=2)
    assert [p for _, p in answer.best] == [0.75, 0.25]


def test_many_equal_weights_add_up_without_error() -> None:
    rng = np.random.default_rng(1)
    window = Window(0, 1, np.array([0.1, 0.1]))
    answer = weigh(rng.integers(0, 2, size=(300_000, 1)), [window], top=0)
    assert answer.marginals is not None
    ones = int(np.random.default_rng(1).integers(0, 2, size=(300_000, 1)).sum())
    low, probabilities = answer.marginals[0] or (None, None)
    assert low == 0
    assert probabilities is not None
    assert abs(probabilities[1] - ones / 300_000) < 2e-16


def test_equal_weights_are_ranked_by_values_not_by_last_digits() -> None:
    # 0.1 × 0.3 × 0.7 differs in its last digit from 0.7 × 0.3 × 0.1.
    window = Window(0, 2, np.array([0.1, 0.3, 0.7]))
    solutions = np.array([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
    answer = weigh(solutions, [window] * 3, top=6)
    assert [values for values, _ in answer.best] == [tuple(row) for row in solutions.tolist()]


def test_weighing_nothing_is_infeasible() -> None:
    with pytest.raises(Infeasible):
        weigh(np.empty((0, 2), dtype=np.int64), (Window(0, None, None),) * 2, 1)


def test_a_prior_and_noise_go_into_the_weights() -> None:
    system = System(
        [Cell("t", 20, Rounding(5)), Cell("a", 8, Gaussian(2.0)), Cell("b", 9, Within(1))], [Sum("t", ("a", "b"))]
    )
    prior = {"b": {8: 0.5, 9: 0.25, 10: 0.25}, "t": dict.fromkeys(range(15, 19), 1.0)}
    windows = domains(system, prior)
    truth = brute(system, prior)
    listed = cpsat_solutions(system.equations, windows, LIMIT)
    assert rows(listed) == truth.solutions
    assert listed is not None
    certify_weights(listed, windows, truth)
