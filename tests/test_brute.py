"""The reference itself: against a search without any cleverness, and against what the paper works out by hand."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import strategies as st

from tests.shapes import judge
from unround.engines.brute import answer, brute
from unround.equations import parse
from unround.errors import InputError
from unround.mechanisms import Exact, Laplace, Mechanism, Nearest, Rounding, Suppressed, Within
from unround.system import Cell, Sum, System

SHAPES = [
    [Sum("a", ("b", "c"))],
    [Sum("a", ("b",)), Sum("c", ("a", "d"))],
    [Sum("a", ("b", "c")), Sum("a", ("c", "d"))],
    [Sum("a", ("b", "c")), Sum("b", ("c", "d"))],
    [Sum("a", ("b", "c")), Sum("b", ("a", "d"))],
    [],
]


def all_worlds(system: System) -> dict[tuple[int, ...], Fraction]:
    """Try every combination of values, and look at the sums only then."""
    worlds = {}
    for values in itertools.product(*system.windows):
        if all(values[total] == sum(values[p] for p in parts) for total, parts in system.equations):
            worlds[values] = math.prod(
                (c.mechanism.chance(c.published, x) for c, x in zip(system.cells, values, strict=True)),
                start=Fraction(1),
            )
    return worlds


@st.composite
def tiny(draw: st.DrawFn) -> System:
    def cell(name: str) -> Cell:
        how: Mechanism = draw(st.sampled_from([Exact(), Rounding(2), Rounding(3), Nearest(4), Within(1), Suppressed(1, 3)]))
        hidden = isinstance(how, Suppressed)
        step = getattr(how, "base", 1)
        return Cell(name, None if hidden else step * draw(st.integers(0, 8 // step)), how)

    return System([cell(name) for name in "abcd"], draw(st.sampled_from(SHAPES)))


def test_it_finds_what_trying_everything_finds() -> None:
    possible = judge(tiny(), 150, finds_all_worlds)
    assert min(possible[True], possible[False]) >= 30


def finds_all_worlds(system: System) -> bool:
    """Check every number; return whether there is a solution."""
    worlds = all_worlds(system)
    answers = brute(system)
    assert answers.solutions == sorted(worlds)
    assert answers.count == len(worlds)
    assert dict(zip(answers.solutions, answers.weights, strict=True)) == worlds
    if not worlds:
        assert answer(system, None, 1) is None
        return False
    mass = sum(worlds.values())
    for i in range(len(system.cells)):
        expected: dict[int, Fraction] = {}
        for values, weight in worlds.items():
            expected[values[i]] = expected.get(values[i], Fraction(0)) + weight / mass
        assert answers.marginal(i) == expected
        assert sum(answers.marginal(i).values()) == 1
        assert list(answers.marginal(i)) == sorted(expected)
        assert (answers.low(i), answers.high(i)) == (min(expected), max(expected))
    ranked = sorted(worlds, key=lambda values: (-worlds[values], values))
    assert answers.top(3) == [(values, worlds[values] / mass) for values in ranked[:3]]
    return True


@pytest.mark.parametrize(
    ("text", "solutions"),
    [
        ("48! = 20 + 20 + 20", [(48, 16, 16, 16)]),
        ("72! = 20 + 20 + 20", [(72, 24, 24, 24)]),
        ("60 = 20 + 20 + 20 + 20", [(64, 16, 16, 16, 16)]),
        ("80 = 15 + 15 + 15 + 15", [(76, 19, 19, 19, 19)]),
        ("87! = 35 + 45", [(87, 38, 49), (87, 39, 48)]),
        ("30 = 15 + 15 + 15", [(33, 11, 11, 11), (34, 11, 11, 12), (34, 11, 12, 11), (34, 12, 11, 11)]),
        (
            "121436! = 17640 + 85080 + 18705",
            [(121436, 17643, 85084, 18709), (121436, 17644, 85083, 18709), (121436, 17644, 85084, 18708)],
        ),
        ("100! = 20 + 20", []),
    ],
)
def test_the_paper_by_hand(text: str, solutions: list[tuple[int, ...]]) -> None:
    assert brute(parse(text)).solutions == solutions


def test_the_paper_s_probabilities() -> None:
    parent = brute(parse("30 = 15 + 15 + 15")).marginal(0)
    assert parent == {33: Fraction(1, 4), 34: Fraction(3, 4)}
    waterloo = brute(parse("121436! = 17640 + 85080 + 18705"))
    assert [p for _, p in waterloo.top(9)] == [Fraction(1, 3)] * 3


def test_the_paper_s_six_cells() -> None:
    answers = brute(parse("110! = a: 30 + 65 + 10; a = 10 + 10 + 10"))
    assert answers.count == 1956
    assert all(sum(answers.marginal(i).values()) == 1 for i in range(7))


def test_unpublished_cells_are_bounded_by_their_sums() -> None:
    answers = brute(parse("a: ?; b: ?; 4! = a + 3!; a = b + ?"))
    assert {values[:2] for values in answers.solutions} == {(1, 0), (1, 1)}
    assert brute(parse("? = 10 + 15")).count == 81


@pytest.mark.parametrize("text", ["? = ? + 5", "a: ?", "a: ?; b: ?; a = b + 1!; b = a + 1!"])
def test_what_nothing_bounds_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="nothing bounds"):
        brute(parse(text))


def test_the_limit() -> None:
    system = parse("30 = 15 + 15 + 15")
    assert brute(system, limit=4).count == 4
    with pytest.raises(InputError, match="more than 3 solutions"):
        brute(system, limit=3)


def test_a_prior_weighs_and_excludes() -> None:
    system = parse("87! = men: 35 + women: 45")
    assert brute(system, {"men": {38: 3.0, 39: 1.0}}).marginal(1) == {38: Fraction(3, 4), 39: Fraction(1, 4)}
    assert brute(system, {"men": {38: 1.0, 39: 0.0}}).solutions == [(87, 38, 49)]
    assert brute(system, {"men": {39: 0.25, -1: 2.0, 1000: 1.0}}).solutions == [(87, 39, 48)]
    assert brute(system, {"men": {35: 1.0}}).solutions == []
    assert brute(system, {"men": {}}).solutions == []


def test_a_prior_bounds_what_nothing_else_does() -> None:
    answers = brute(parse("a: ?; a = b: 5 + c: ?"), {"a": {6: 0.5, 7: 0.25}, "b": {6: 1.0, 7: 1.0}})
    assert [values[:2] for values in answers.solutions] == [(6, 6), (7, 6), (7, 7)]


@pytest.mark.parametrize(
    ("prior", "problem"),
    [({"x": {1: 1.0}}, "no such cell"), ({"a": {1: -1.0}}, "weight -1.0"), ({"a": {1: math.nan}}, "weight nan")],
)
def test_a_prior_that_cannot_be_used(prior: dict[str, dict[int, float]], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        brute(parse("a: 5 = b: 5"), prior)


def test_cut_tails_stay_cut() -> None:
    noise = Laplace(1.45)
    system = System([Cell("a", 50, noise), Cell("b", 0, Exact())], [])
    window = noise.window(50)
    assert window.high is not None
    assert brute(system).low(0) == window.low
    assert brute(system).high(0) == window.high


def test_hundreds_of_cells_need_no_recursion() -> None:
    cells = [Cell(f"c{i}", 7, Exact()) for i in range(1500)]
    sums = [Sum(f"c{i}", (f"c{i + 1}",)) for i in range(1499)]
    assert brute(System(cells, sums)).count == 1


def test_as_an_engine() -> None:
    answered = answer(parse("30 = 15 + 15 + 15"), None, 2)
    assert answered is not None
    assert answered.solutions == 4
    assert answered.marginals is not None
    low, probabilities = answered.marginals[0] or (None, None)
    assert low == 33
    assert probabilities is not None
    assert probabilities.tolist() == [0.25, 0.75]
    assert answered.best == (((33, 11, 11, 11), 0.25), ((34, 11, 11, 12), 0.25))


def test_marginals_of_windows_with_holes_keep_their_zeros() -> None:
    system = System([Cell("a", 10, Suppressed(8, 9, Within(3)))], [])
    found = answer(system, None, 0)
    assert found is not None
    assert found.best == ()
    assert found.marginals is not None
    low, probabilities = found.marginals[0] or (None, None)
    assert low == 7
    assert probabilities is not None
    assert probabilities.tolist() == [1 / 5, 0, 0, 1 / 5, 1 / 5, 1 / 5, 1 / 5]
