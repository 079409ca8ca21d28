"""Multi-way tables: structure, enumeration, chains, and what `solve` makes of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from bench.mixing import SHAPES, cube, measure, patterns, publish

from tests.shapes import examples
from unround import check_proof, solve
from unround.bounds.search import cpsat_bounds
from unround.engines import chains as chains_module
from unround.engines import infer
from unround.engines import multiway as loops
from unround.engines.chain_kernel import CellWeights
from unround.engines.chains import AGREED, APART, FROZEN, STUCK, Effort, sample
from unround.engines.enumeration import list_tables
from unround.errors import InputError
from unround.mechanisms import Exact, Mechanism, Nearest, Rounding, Unpublished, mechanism
from unround.show import show
from unround.sums.forest import Equations
from unround.sums.multiway import MultiwayTable, multiway_tables
from unround.system import Cell, Sum, System


def table_of(shape: tuple[int, ...]) -> tuple[MultiwayTable, Equations]:
    equations, added = cube(shape)
    (table,) = multiway_tables(len(added), equations)
    assert table is not None
    return table, equations


def grouped(leaves: int, groups: int, others: tuple[int, ...]) -> tuple[int, Equations]:
    """Return the cells and sums of a table whose first axis has groups."""
    parts = np.array_split(np.arange(1 + groups, 1 + groups + leaves), groups)
    first = [(0, tuple(range(1, 1 + groups))), *((1 + g, tuple(part.tolist())) for g, part in enumerate(parts))]
    axes = [(1 + groups + leaves, first), *((1 + size, [(0, tuple(range(1, size + 1)))]) for size in others)]
    at = {place: i for i, place in enumerate(product(*(range(size) for size, _ in axes)))}
    sums = []
    for place in at:
        for axis, (_, own) in enumerate(axes):
            for total, parts_of in own:
                if place[axis] == total:
                    sums.append((at[place], tuple(at[(*place[:axis], k, *place[axis + 1 :])] for k in parts_of)))
    return len(at), tuple(sums)


def system_of(
    equations: Equations, cells: int, how: list[Mechanism], mean: float, seed: int
) -> tuple[System, tuple[int, ...]]:
    """Publish a random table."""
    (table,) = multiway_tables(cells, equations)
    assert table is not None
    rng = np.random.default_rng(seed)
    true = rng.poisson(mean * rng.gamma(1.0, 1.0, table.leaves.size)) @ table.belongs().T.astype(np.int64)
    named = []
    for c, one in enumerate(how):
        shown = None if isinstance(one, Unpublished) else int(one.publish(true[c : c + 1], rng)[0])
        named.append(Cell(f"c{c}", shown, one))
    sums = [Sum(f"c{total}", tuple(f"c{part}" for part in parts)) for total, parts in equations]
    return System(named, sums), tuple(int(x) for x in true)


@pytest.mark.parametrize("shape", [(2, 2), (4, 3), (2, 2, 4), (5, 2, 4), (2, 3, 2, 2)])
def test_axes_are_found(shape: tuple[int, ...]) -> None:
    table, equations = table_of(shape)
    assert sorted(table.shape) == sorted(shape)
    belongs = table.belongs()
    assert belongs[table.leaves].sum() == table.leaves.size == np.prod(shape)
    for total, parts in equations:  # every total is its parts, none of them twice
        assert (belongs[total] == belongs[list(parts)].sum(axis=0)).all()


def test_groups_and_missing_cells_keep_their_axes() -> None:
    cells, equations = grouped(6, 2, (2, 3))
    (table,) = multiway_tables(cells, equations)
    assert table is not None
    assert sorted(table.shape) == [2, 3, 6]
    # Without one of the innermost cells of a 3 × 3 table.
    equations, _ = cube((3, 3))
    gone = 15
    fewer = tuple((total, tuple(part for part in parts if part != gone)) for total, parts in equations)
    tables = [one for one in multiway_tables(16, fewer) if one is not None]
    assert [one.shape for one in tables] == [(3, 3)]
    assert tables[0].leaves.size == 8


def test_what_is_no_table() -> None:
    assert multiway_tables(5, ((0, (1, 2)), (0, (3, 4)))) == (None,)  # two ways to divide, and nothing in common
    assert multiway_tables(2, ((0, (1,)), (1, (0,)))) == (None,)
    (overlapping,) = multiway_tables(6, ((0, (1, 2, 3)), (4, (1, 2)), (5, (2, 3))))
    assert overlapping is not None
    assert overlapping.axes == 1
    assert len(multiway_tables(8, ((0, (1, 2)), (4, (5, 6))))) == 2


@pytest.mark.parametrize("seed", range(examples(3)))
@pytest.mark.parametrize("how", [Rounding(2), Nearest(3), mechanism("graduated")])
def test_enumeration_agrees_with_brute_force(how: Mechanism, seed: int) -> None:
    equations, added = cube((2, 2))
    system, _ = system_of(equations, len(added), [how] * len(added), 2, seed)
    (table,) = multiway_tables(len(added), system.equations)
    assert table is not None
    wanted = infer(system, engine="brute", top=3)
    inferred = infer(system, engine="auto", top=3)
    assert wanted.answer is not None
    assert inferred.answer is not None
    assert inferred.answer.solutions == wanted.answer.solutions
    assert (inferred.lows, inferred.highs) == (wanted.lows, wanted.highs)
    given = _weights(system)
    listed = list_tables(table, given, 1_000_000, 3)
    assert listed.complete[0]
    assert listed.number[0] == wanted.answer.solutions
    assert listed.weight[0][listed.weight[0] > 0].tolist() == pytest.approx([p for _, p in wanted.answer.best])
    for c, marginal in enumerate(wanted.answer.marginals or ()):
        assert marginal is not None
        for value, p in zip(range(marginal[0], marginal[0] + marginal[1].size), marginal[1], strict=True):
            assert listed.chances[given.place[0, c] + value - given.low[0, c]] == pytest.approx(p)


def _weights(system: System) -> CellWeights:
    from unround.bounds.propagation import Bounds, propagate

    bounds = Bounds.of(system.windows)
    assert propagate(system.equations, bounds)
    given = CellWeights.empty(*(np.array([ends], dtype=np.int32) for ends in (bounds.lows, bounds.highs)))
    for low, high, place, window in zip(bounds.lows, bounds.highs, given.place[0].tolist(), system.windows, strict=True):
        assert window.weights is not None
        given.weights[place : place + high - low + 1] = window.weights[low - window.low : high - window.low + 1]
    return given


def extreme(rows: int, long: int, spare: int) -> System:
    """Return parts that were all published as 20, under exact totals that hardly let them be above 16."""
    cells = [Cell(f"r{i}", 16 * long + spare, Exact()) for i in range(rows)]
    cells += [Cell(f"c{j}", 5 * (16 * rows // 5) + 5, Rounding(5)) for j in range(long)]
    cells += [Cell(f"x{i}-{j}", 20, Rounding(5)) for i in range(rows) for j in range(long)]
    sums = [Sum(f"r{i}", tuple(f"x{i}-{j}" for j in range(long))) for i in range(rows)]
    sums += [Sum(f"c{j}", tuple(f"x{i}-{j}" for i in range(rows))) for j in range(long)]
    cells.append(Cell("t", rows * (16 * long + spare), Exact()))
    sums += [Sum("t", tuple(f"r{i}" for i in range(rows))), Sum("t", tuple(f"c{j}" for j in range(long)))]
    return System(cells, sums)


def test_chains_are_right_where_totals_are_extreme() -> None:
    """Forty parts published as 20 under an exact 16·40 + 4: what is left is 1e-28 of what the windows allow."""
    long, spare = 40, 4
    answer = solve(extreme(2, long, spare), engine="chains")
    column = {(a, b): (a + 1) * (b + 1) * max(5 - abs(a + b - 3), 0) for a in range(5) for b in range(5)}
    rest = {(0, 0): 1}
    for _ in range(long - 1):
        following: dict[tuple[int, int], int] = {}
        for (a, b), times in rest.items():
            for (c, d), weight in column.items():
                if a + c <= spare and b + d <= spare:
                    following[a + c, b + d] = following.get((a + c, b + d), 0) + times * weight
        rest = following
    weights = [sum(w * rest[spare - a, spare - b] for (a, b), w in column.items() if a == k) for k in range(spare + 1)]
    chances = dict(answer["x0-0"].distribution)
    assert [chances.get(16 + k, 0.0) for k in range(spare + 1)] == pytest.approx(
        [weight / sum(weights) for weight in weights], abs=0.01
    )


def test_a_table_with_extreme_totals_has_a_solution() -> None:
    answer = solve(extreme(3, 40, 8), top=0)
    assert answer.feasible
    assert answer.method != "exact"  # a tree no longer, and far too many tables to enumerate
    assert all(cell.low <= 16 + 8 for cell in answer.cells if cell.name.startswith("x"))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("base", [3, 5])
def test_chains_reach_every_table(shape: tuple[int, ...], base: int) -> None:
    """A short version of `make mixing`: every eleventh pattern of exact margins, sparse counts."""
    compared = 0
    for exact in list(patterns(len(shape)))[:: 11 if shape != (5, 2, 4) else 40]:
        result = measure(shape, exact, 20, base, 2, Effort(), visits=500_000, as_audits=False)
        assert not result.unseen, f"exact margins {sorted(exact)}: chains agree on what is wrong by more than 0.1"
        compared += result.areas
    assert compared >= 5


def test_product_moves_alone_would_not_be_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge can tell: without moves between any two cells, exact one-way totals leave chains in their corner."""
    from unround.engines import chains as moves

    one_way = frozenset([3, 5, 6])
    true = [measure((3, 3, 3), one_way, 8, 3, 12, Effort(), visits=500_000, as_audits=False)]
    assert not sum(one.off for one in true)
    monkeypatch.setattr(moves, "ANYWHERE", (0.0, 0.0))
    moves.moves_of.cache_clear()
    assert measure((3, 3, 3), one_way, 8, 3, 12, Effort(rounds=0), visits=500_000, as_audits=False).off
    moves.moves_of.cache_clear()


def two_tables_that_no_move_joins() -> tuple[MultiwayTable, CellWeights]:
    """Return the fourth of five areas that publish, exactly, nearly all two-way margins."""
    shape, exact = (5, 2, 4), frozenset([1, 2, 3, 4, 7])
    table, equations = table_of(shape)
    _, added = cube(shape)
    rng = np.random.default_rng([*shape, 20, 3, *sorted(exact)])
    rate = rng.gamma(0.7, 1.0, (5, table.leaves.size))
    true = rng.poisson(20 * rate / rate.sum(axis=1, keepdims=True))
    how: list[Mechanism] = [Exact() if int(one) in exact else Rounding(3) for one in added]
    return table, publish(table, equations, true, how, rng).one(3)


def test_tables_that_no_move_joins_are_noticed() -> None:
    table, given = two_tables_that_no_move_joins()
    listed = list_tables(table, given, 500_000)
    assert listed.number.tolist() == [2]
    ended = set()
    for seed in range(20):
        samples = sample(table, given, np.array([seed], dtype=np.uint64), Effort())
        # Chains end in both tables or in one of them, or find none; nothing of this counts as agreement.
        ended.add(int(samples.status[0]))
        seen = samples.chances * 16
        assert np.allclose(seen, seen.round())  # no chain ever moved
    assert ended <= {STUCK, APART, FROZEN}
    assert {APART, FROZEN} <= ended


def test_results_do_not_depend_on_neighbours_or_threads() -> None:
    table, equations = table_of((3, 2, 2))
    rng = np.random.default_rng(3)
    given = publish(table, equations, rng.poisson(4, (6, 12)), [Rounding(3)] * table.cells.size, rng)
    seeds = np.arange(6, dtype=np.uint64)
    effort = Effort(sweeps=200, rounds=1)
    one, two = (sample(table, given, seeds, effort, threads=threads) for threads in (1, 3))
    assert (one.chances == two.chances).all()
    assert (one.rhat == two.rhat).all()
    alone = sample(table, given.one(0), seeds[:1], effort)
    assert (alone.chances == one.chances[: given.area[1]]).all()


def test_an_area_that_cannot_be_started_says_so() -> None:
    """All single sums allow it, the table does not: 2 × 2 with exact margins, and cells that are odd and even."""
    table, _equations = table_of((2, 2))
    low = np.array([[2, 1, 1, 1, 0, 0, 1, 0, 0]], dtype=np.int32)
    high = low.copy()
    high[0, [4, 5, 7, 8]] = 1
    given = CellWeights.empty(low, high)
    for c in range(9):
        given.weights[given.place[0, c] : given.place[0, c] + high[0, c] - low[0, c] + 1] = 1.0
    given.weights[given.place[0, 4]] = given.weights[given.place[0, 8] + 1] = 0.0  # one of them is 1, the other 0
    samples = sample(table, given, np.zeros(1, dtype=np.uint64), Effort(100, 0))
    assert samples.status.tolist() == [STUCK]
    assert not samples.chances.any()
    listed = list_tables(table, given, 1000)
    assert listed.complete[0]
    assert listed.number[0] == 0


CASES = {
    "4 × 3": ((4, 3), 5, 8.0),
    "2 × 2 × 4": ((2, 2, 4), 5, 8.0),
    "3 × 3 × 3": ((3, 3, 3), 3, 6.0),
    "5 × 2 × 4": ((5, 2, 4), 5, 8.0),
}


@pytest.mark.parametrize("case", CASES)
def test_solve_answers_tables(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shape, base, mean = CASES[case]
    monkeypatch.setattr(loops, "EFFORT", 4_000_000)
    equations, added = cube(shape)
    system, true = system_of(equations, len(added), [Rounding(base)] * len(added), mean, 11)
    answer = solve(system)
    shown = answer.to_json()
    assert (answer.engine, shown["method"]) == ("chains", "estimated")
    assert " × ".join(map(str, sorted(shape))) == " × ".join(
        sorted(answer.why.split(" table")[0].split(" a ")[1].split(" × "))
    )
    assert answer.solutions is None
    tight = cpsat_bounds(system.equations, system.windows)
    assert tight is not None
    for c, (cell, json) in enumerate(zip(answer.cells, shown["cells"], strict=True)):
        assert cell.low <= true[c] <= cell.high  # type: ignore[operator] # a table bounds all its cells
        assert (cell.low, cell.high) == (tight[0][c], tight[1][c])
        assert sum(p for _, p in cell.distribution) == pytest.approx(1)
        assert json["error"] == cell.error is not None
        assert (cell.error == 0) == (cell.low == cell.high)
    assert answer.rhat is not None
    for ranked in answer.top:
        assert ranked.probability is None
        for one in system.sums:
            assert ranked.values[one.total] == sum(ranked.values[part] for part in one.parts)
    times = [ranked.times_next for ranked in answer.top]
    assert all(one is not None and one >= 1 for one in times)
    assert all(check_proof(system, proof) for proof in answer.proofs)


def test_estimates_are_as_good_as_their_errors_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains against enumeration: differences in units of their standard errors are what such units are."""
    monkeypatch.setattr(loops, "SOME_VISITS", 40_000_000)
    equations, added = cube((3, 3))
    system, _ = system_of(equations, len(added), [Rounding(3)] * len(added), 8, 2)
    exact, estimated = solve(system), solve(system, engine="chains")
    assert (exact.engine, estimated.engine) == ("enumeration", "chains")
    off = []
    for cell, other in zip(exact.cells, estimated.cells, strict=True):
        chances = dict(cell.distribution)
        assert other.mode is not None
        assert other.probability is not None
        assert other.error is not None
        if other.error:
            off.append((other.probability - chances[other.mode]) / other.error)
        assert abs(other.probability - chances[other.mode]) < 0.02
    assert 0.3 < np.std(off) < 2.5


def test_groups_exact_totals_and_hidden_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "EFFORT", 3_000_000)
    monkeypatch.setattr(loops, "LARGEST_ERROR", 0.05)
    monkeypatch.setattr(loops, "LARGEST_RHAT", 1.3)
    cells, equations = grouped(6, 2, (3, 3))
    how: list[Mechanism] = [Rounding(3)] * cells
    how[0], how[1], how[cells - 1] = Exact(), Exact(), Unpublished()
    system, true = system_of(equations, cells, how, 4, 7)
    answer = solve(system)
    assert answer.engine == "chains"
    assert all(cell.low <= x <= (cell.high or 0) for cell, x in zip(answer.cells, true, strict=True))
    assert answer.cells[0].kind == "given"


def test_pieces_are_answered_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "EFFORT", 4_000_000)
    equations, added = cube((3, 3))
    system, _ = system_of(equations, len(added), [Rounding(5)] * len(added), 8, 4)
    alone = solve(system, top=2)
    tree = [Cell("t", 30, Rounding(5)), *(Cell(name, 15, Rounding(5)) for name in "xyz"), Cell("far", 10, Rounding(5))]
    both = solve(System([*tree, *system.cells], [Sum("t", ("x", "y", "z")), *system.sums]), top=2)
    assert both.engine == alone.engine == "chains"
    assert both["t"].probability == pytest.approx(0.75)
    assert both["far"].probability == pytest.approx(0.2)
    for cell in alone.cells:
        assert both[cell.name].probability == pytest.approx(cell.probability)
    assert len(both.top) == 2


def test_an_impossible_table_is_found_and_explained() -> None:
    equations, added = cube((3, 3, 3))
    system, _ = system_of(equations, len(added), [Rounding(3)] * len(added), 6, 1)
    cells = list(system.cells)
    last = cells[-1]
    assert last.published is not None
    cells[-1] = Cell(last.name, last.published + 60, last.mechanism)
    answer = solve(System(cells, system.sums))
    assert not answer.feasible
    assert answer.engine == "bounds"
    assert answer.clash is not None
    assert last.name in answer.clash.cells


def test_chains_that_do_not_agree_give_no_probability(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    monkeypatch.setattr(loops, "EFFORT", 200_000)
    monkeypatch.setattr(loops, "LARGEST_RHAT", 1.0)
    monkeypatch.setattr(loops, "MANY_VISITS", 10_000)
    equations, added = cube((5, 2, 4))
    system, true = system_of(equations, len(added), [Rounding(5)] * len(added), 8, 1)
    answer = solve(system)
    assert answer.method == "none"
    assert "do not agree" in answer.why
    assert all(cell.probability is None and cell.error is None for cell in answer.cells if cell.low != cell.high)
    assert all(cell.low <= x <= (cell.high or 0) for cell, x in zip(answer.cells, true, strict=True))
    assert any("Probabilities are not available" in assumption for assumption in answer.assumptions)
    show(answer, Console(width=120))
    assert "No probabilities:" in capsys.readouterr().out


def test_people_see_the_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    monkeypatch.setattr(loops, "EFFORT", 4_000_000)
    equations, added = cube((3, 3, 3))
    system, _ = system_of(equations, len(added), [Rounding(3)] * len(added), 6, 1)
    show(solve(system), Console(width=120))
    shown = capsys.readouterr().out
    assert "% ± " in shown
    assert "best solutions found; there may be better ones" in " ".join(shown.split())
    assert "estimates by Markov chains, with a standard error of at most" in " ".join(shown.split())


def test_engines_refuse_what_they_cannot_do() -> None:
    two_ways = System(
        [Cell(name, 40 if name == "a" else 20, Rounding(5)) for name in "abcde"],
        [Sum("a", ("b", "c")), Sum("a", ("d", "e"))],
    )
    with pytest.raises(InputError, match="chains need sums in which every total"):
        solve(two_ways, engine="chains")


def test_longer_rounds_follow_where_chains_do_not_agree() -> None:
    table, equations = table_of((3, 3, 3))
    rng = np.random.default_rng(8)
    given = publish(table, equations, rng.poisson(6, (2, 27)), [Rounding(3)] * table.cells.size, rng)
    seeds = np.arange(2, dtype=np.uint64)
    short = sample(table, given, seeds, Effort(50, 0))
    long = sample(table, given, seeds, Effort(50, 8))
    assert (short.status != AGREED).all()
    assert (long.status == AGREED).all()
    assert (long.moves > 10 * short.moves).all()
    assert (long.error.max(axis=1) < short.error.max(axis=1)).all()
    assert chains_module.LANES == 16
