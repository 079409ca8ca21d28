"""`solve` on the paper's worked examples, and the fields that it promises."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import shapes
from unround.engines.brute import brute
from unround.equations import parse
from unround.errors import InputError
from unround.mechanisms import mechanism
from unround.solution import CellAnswer, Solution, solve
from unround.system import System

SIX_CELLS = """
    population: 110!; age_0_14: 30; age_15_64: 65; age_65: 10; under_5: 10; under_10: 10; under_15: 10
    population = age_0_14 + age_15_64 + age_65
    age_0_14 = under_5 + under_10 + under_15
"""


TABLE = "; ".join(
    [f"r{i}c{j}: 20" for i in range(3) for j in range(3)]
    + [f"r{i}: 60 = " + " + ".join(f"r{i}c{j}" for j in range(3)) for i in range(3)]
    + [f"c{j}: 60 = " + " + ".join(f"r{i}c{j}" for i in range(3)) for j in range(3)]
)
"""Three rows by three columns: more loops than can be cut open."""


def values(solution: Solution) -> list[int | None]:
    return [cell.mode for cell in solution.cells]


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("48! = 20 + 20 + 20", [48, 16, 16, 16]),  # sample table 1
        ("72! = 20 + 20 + 20", [72, 24, 24, 24]),  # sample table 2
        ("60 = 20 + 20 + 20 + 20", [64, 16, 16, 16, 16]),  # sample table 3
        ("80 = 15 + 15 + 15 + 15", [76, 19, 19, 19, 19]),  # sample table 4
    ],
)
def test_the_papers_sample_tables_have_one_solution(text: str, true: list[int]) -> None:
    solution = solve(parse(text))
    assert solution.solutions == 1
    assert values(solution) == true
    assert all(cell.kind in ("given", "proved") for cell in solution.cells)


def test_87_leaves_two_ways() -> None:
    solution = solve(parse("87! = men: 35 + women: 45"))
    assert solution.solutions == 2
    assert [way.values for way in solution.top] == [
        {"total": 87, "men": 38, "women": 49},
        {"total": 87, "men": 39, "women": 48},
    ]
    assert [way.probability for way in solution.top] == pytest.approx([0.5, 0.5])
    assert solution.top[0].times_next == 1
    assert solution.top[1].times_next is None


def test_three_parts_of_15_under_30_are_known_with_three_quarters() -> None:
    solution = solve(parse("30 = 15 + 15 + 15"))
    assert solution.solutions == 4
    assert [(cell.mode, cell.probability) for cell in solution.cells] == [
        (34, pytest.approx(0.75)),
        *[(11, pytest.approx(0.75))] * 3,
    ]
    assert {cell.kind for cell in solution.cells} == {"likely"}


@pytest.mark.parametrize("parts", range(2, 9))
@pytest.mark.parametrize("side", [-1, 1])
def test_one_off_the_extreme_leaves_each_part_with_one_minus_one_over_n(parts: int, side: int) -> None:
    solution = solve(parse(f"{20 * parts + side * (4 * parts - 1)}! = " + " + ".join(["20"] * parts)))
    assert solution.solutions == parts
    for cell in solution.cells[1:]:
        assert dict(cell.distribution)[20 + 4 * side] == pytest.approx(1 - 1 / parts)


def test_waterloo() -> None:
    solution = solve(parse("population: 121,436! = a0: 17,640 + a15: 85,080 + a65: 18,705"))
    assert solution.solutions == 3
    for name, value in (("a0", 17_644), ("a15", 85_084), ("a65", 18_709)):
        assert solution[name].mode == value
        assert solution[name].probability == pytest.approx(2 / 3)
        assert solution[name].kind == "likely"


def test_the_six_cell_example_in_full_precision() -> None:
    solution = solve(parse(SIX_CELLS))
    exact = brute(parse(SIX_CELLS))
    assert (solution.feasible, solution.solutions, solution.engine, solution.prior) == (True, 1956, "tree", "flat")
    young = solution["age_0_14"]
    assert (young.published, young.low, young.high, young.mode, young.kind) == (30, 27, 34, 31, "open")
    expected = exact.marginal(1)
    assert [value for value, _ in young.distribution] == sorted(expected)
    assert [p for _, p in young.distribution] == pytest.approx([float(p) for _, p in sorted(expected.items())], rel=1e-14)
    mean = sum((value * p for value, p in expected.items()), Fraction(0))
    assert young.mean == pytest.approx(float(mean), rel=1e-14)
    assert young.sure == (30, 31, 32, 33, 34)
    best = [float(p) for _, p in exact.top(6)]
    assert [way.probability for way in solution.top] == pytest.approx(best[:5], rel=1e-13)
    assert solution.top[4].times_next == pytest.approx(best[4] / best[5])


def test_json_has_the_promised_fields() -> None:
    data = json.loads(json.dumps(solve(parse(SIX_CELLS)).to_json()))
    assert {"feasible", "solutions", "engine", "prior", "assumptions", "cells", "top", "proofs"} <= set(data)
    assert data["cells"][0]["name"] == "population"
    given_cell = data["cells"][0]
    assert (given_cell["low"], given_cell["high"], given_cell["kind"]) == (110, 110, "given")
    assert given_cell["distribution"] == [[110, 1.0]]
    for cell in data["cells"]:
        assert sum(p for _, p in cell["distribution"]) == pytest.approx(1)
        assert {"name", "published", "low", "high", "mode", "probability", "mean", "distribution", "kind"} <= set(cell)
    proof = solve(parse("48! = 20 + 20 + 20")).to_json()["proofs"][0]
    assert {"cell", "value", "text", "steps"} <= set(proof)


def test_what_nothing_bounds_is_null() -> None:
    data = solve(parse("? = 20 + ?")).to_json()
    assert data["solutions"] is None
    assert data["cells"][0]["high"] is None
    assert data["cells"][0]["distribution"] == []
    assert data["cells"][1]["probability"] == pytest.approx(0.2)


@pytest.mark.parametrize(("threshold", "kind"), [(0.66, "likely"), (0.75, "likely"), (0.751, "open")])
def test_the_threshold_decides_what_is_likely(threshold: float, kind: str) -> None:
    assert solve(parse("30 = 15 + 15 + 15"), threshold=threshold)["total"].kind == kind


def test_a_system_without_solution_names_the_smallest_clash() -> None:
    solution = solve(parse("t: 100!; a: 20; b: 20; c: 50; d: 50; t = a + b; u: 100 = c + d"))
    assert not solution.feasible
    assert solution.clash is not None
    assert set(solution.clash.cells) == {"t", "a", "b"}
    assert [str(sum_) for sum_ in solution.clash.sums] == ["t = a + b"]
    assert solution.to_json()["clash"] == {
        "cells": ["t", "a", "b"],
        "sums": [{"total": "t", "parts": ["a", "b"]}],
        "minimum": True,
        "text": "a, b ≤ 24 (20 published, base 5), so t ≤ 24 + 24 = 48. But t = 100 (exact).",
    }


def test_a_prior_that_rules_out_everything_is_told_from_a_clash() -> None:
    system = parse("48! = 20 + 20 + 20")
    solution = solve(system, prior={"part1": {17: 1.0}})
    assert not solution.feasible
    assert solution.clash is None
    assert "the given prior rules out" in solution.why


def test_a_prior_shifts_probabilities_but_not_the_name_of_bounds() -> None:
    system = parse("a: 20")
    solution = solve(system, prior={"a": {20: 1.0, 21: 3.0}})
    assert solution.prior == "given"
    assert solution["a"].distribution == ((20, pytest.approx(1 / 3.4)), (21, pytest.approx(2.4 / 3.4)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prior": {"nobody": {1: 1.0}}}, "no such cell"),
        ({"prior": {"a": {20: -1.0}}}, "not negative"),
        ({"prior": {"a": [1, 2]}}, "a weight to each true count"),
        ({"prior": {"a": {20: float("inf")}}}, "finite"),
        ({"prior": {"a": {3: 1.0}}}, "rules out every value"),
        ({"threshold": 0.0}, "threshold"),
        ({"threshold": 1.5}, "threshold"),
        ({"top": -1}, "must be 0 or more, not -1"),
        ({"engine": "magic"}, "no engine"),
    ],
)
def test_arguments_that_cannot_be_used(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        solve(parse("a: 20"), **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["tree", "cutset", "cp-sat", "z3", "brute"])
def test_all_engines_say_the_same(engine: str) -> None:
    text = "33! = a: 10 + b: 20; a = c: 5 + d: 5"
    one, other = solve(parse(text)), solve(parse(text), engine=engine)
    assert other.engine == engine
    assert one.solutions == other.solutions
    for mine, theirs in zip(one.cells, other.cells, strict=True):
        assert (mine.low, mine.high, mine.mode, mine.kind) == (theirs.low, theirs.high, theirs.mode, theirs.kind)
        assert [p for _, p in mine.distribution] == pytest.approx([p for _, p in theirs.distribution])
    assert [one.values for one in one.top] == [one.values for one in other.top]


def test_solve_says_what_it_takes() -> None:
    with pytest.raises(TypeError, match=r"read text with unround\.parse"):
        solve("48! = 20 + 20 + 20")  # type: ignore[arg-type]


def test_cells_outside_every_sum_are_mentioned() -> None:
    said = solve(parse("population: 110!; men: 55; women: 50; women = men")).assumptions
    assert any(sentence.startswith("population is in no sum") for sentence in said)
    assert not any("in no sum" in sentence for sentence in solve(parse("48! = 20 + 20")).assumptions)


def test_the_reason_for_missing_probabilities_is_the_true_one() -> None:
    assert "too many possible values" in solve(parse("50 = 20 + 30", "within:100000"), top=0).why
    no_table = "t: 9,000 = a: 5,000 + b: 4,000; t = c: 5,000 + d: 4,000; u: 10,000 = a + c; v: 8,000 = b + d; 9,000 = a + d"
    assert "the sums form loops" in solve(parse(no_table, "within:5000"), top=0).why
    assert "the sums are those of a 3 × 3 table" in solve(parse(TABLE), top=0).why


def test_negative_published_values_under_noise() -> None:
    solution = solve(parse("12 = -2 + 15", mechanism("laplace:1.45")))
    assert solution["part1"].low == 0
    assert solution["part1"].mode == 0
    assert not solution.proofs


@settings(max_examples=shapes.examples(80))
@given(shapes.single_sum())
def test_ties_go_to_the_lowest_value_and_90_percent_sets_are_smallest(known: shapes.Known) -> None:
    system, _ = known
    solution = solve(system, top=0)
    exact = brute(system)
    for i, cell in enumerate(solution.cells):
        marginal = exact.marginal(i)
        assert cell.mode == min(value for value, p in marginal.items() if p == max(marginal.values()))
        smallest = _least_number(sorted(marginal.values(), reverse=True))
        assert len(cell.sure) == smallest
        assert float(sum(marginal[value] for value in cell.sure)) >= 0.9 - 1e-9


def _least_number(probabilities: list[Fraction]) -> int:
    held = Fraction(0)
    for k, p in enumerate(probabilities):
        if held >= Fraction(9, 10):
            return k
        held += p
    return len(probabilities)


@settings(max_examples=shapes.examples(60))
@given(data=st.data())
def test_every_shape_has_a_consistent_answer(data: st.DataObject) -> None:
    system, _ = data.draw(st.one_of(*shapes.ALL.values()))
    solution = solve(system, top=3)
    assert solution.feasible
    assert [cell.name for cell in solution.cells] == [cell.name for cell in system.cells]
    for cell in solution.cells:
        check(cell)
    assume(solution.top)
    probabilities = [way.probability for way in solution.top]
    # Those that differ in the last digit alone are in the order of their values.
    assert probabilities == pytest.approx(sorted(probabilities, reverse=True), rel=1e-12)
    assert sum(probabilities) <= 1 + 1e-9


def check(cell: CellAnswer) -> None:
    assert cell.high is not None  # all cells of these shapes are bounded
    assert cell.distribution
    assert (cell.distribution[0][0], cell.distribution[-1][0]) == (cell.low, cell.high)
    assert cell.mean is not None
    assert cell.low - 1e-9 <= cell.mean <= cell.high + 1e-9
    assert cell.probability == max(p for _, p in cell.distribution)
    assert (cell.kind == "proved") <= (cell.low == cell.high)


def test_a_system_can_be_built_by_hand() -> None:
    from unround import Cell, Sum

    system = System(
        [Cell("t", 48, mechanism("exact")), Cell("a", 20, mechanism("rounding:5")), Cell("b", 20, mechanism("rounding:5"))],
        [Sum("t", ("a", "b"))],
    )
    assert values(solve(system)) == [48, 24, 24]


@pytest.mark.parametrize(
    ("text", "lead"),
    [
        ("430 = 215 + 210", "the total is 1.9 off, the sum 3.3. The true total is 426–433, so that 430 is at most 4 off."),
        ("48! = 20 + 20 + 20", "The total, 48, is exact; the sum of its parts, 60, is 12 off."),
        ("50! = 30 + 20", "The total, 50, is exact; the sum of its parts, 50, is the same."),
        ("30 = 15 + 15", "The total and the sum of its parts are both 30. The true total is 26–34"),
        ("6 @3 = 6 @3 + 6 @3", "The true total is 8: the printed total is 6, the sum of its parts, 12."),
    ],
)
def test_which_is_right_the_total_or_the_sum(text: str, lead: str) -> None:
    """The first sentence answers it, by the distribution of the total."""
    solution = solve(parse(text))
    assert lead in " ".join(str(solution).split())
    (printed,), total = solution.sums, solution["total"]
    expected = [sum(p * abs(value - guess) for value, p in total.distribution) for guess in (printed.printed, printed.added)]
    assert [printed.printed_off, printed.added_off] == pytest.approx(expected)


def test_no_sum_is_compared_with_a_total_that_is_not_printed() -> None:
    assert solve(parse("? = 20 + 25")).sums == ()
