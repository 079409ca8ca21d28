"""The tree engine against brute force, shape by shape."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import shapes
from unround.bounds.propagation import Bounds, propagate
from unround.engines import infer
from unround.engines.brute import Brute, brute
from unround.equations import parse
from unround.errors import InputError
from unround.mechanisms import Rounding
from unround.sums.forest import crossings_of, plan_for
from unround.system import System

LIMIT = 30_000


def reference(system: System, prior: dict[str, dict[int, float]] | None = None) -> Brute:
    try:
        return brute(system, prior, limit=LIMIT)
    except InputError:
        assume(False)
        raise


def certify(system: System, engine: str = "tree", prior: dict[str, dict[int, float]] | None = None) -> bool:
    """Check every number that the engine gives against exact fractions; return whether there is a solution."""
    truth = reference(system, prior)
    inferred = infer(system, engine=engine, prior=prior, top=4)
    assert inferred.feasible == (truth.count > 0)
    if not inferred.feasible:
        return False
    assert inferred.answer is not None
    assert inferred.answer.marginals is not None
    assert inferred.answer.solutions == truth.count
    for i, marginal in enumerate(inferred.answer.marginals):
        expected = truth.marginal(i)
        assert (inferred.lows[i], inferred.highs[i]) == (min(expected), max(expected))
        assert marginal is not None
        low, probabilities = marginal
        got = {low + k: p for k, p in enumerate(probabilities.tolist()) if p > 0}
        assert got.keys() == expected.keys()
        for value, probability in expected.items():
            assert got[value] == pytest.approx(float(probability), rel=1e-12)
    best = truth.top(4)
    total = sum(truth.weights, Fraction(0))
    assert [p for _, p in inferred.answer.best] == pytest.approx([float(p) for _, p in best], rel=1e-12)
    weight = dict(zip(truth.solutions, truth.weights, strict=True))
    for values, probability in inferred.answer.best:
        assert probability == pytest.approx(float(weight[values] / total), rel=1e-12)
    assert len({values for values, _ in inferred.answer.best}) == len(inferred.answer.best)
    return True


@pytest.mark.parametrize("shape", shapes.ACYCLIC)
def test_acyclic_shapes_agree_with_brute_force(shape: str) -> None:
    possible = shapes.judge(shapes.ACYCLIC[shape], 120, lambda known: certify(known[0]))
    assert not possible[False]


@pytest.mark.parametrize("shape", shapes.CROSSED)
def test_trees_crossed_with_a_split_agree_with_brute_force(shape: str) -> None:
    possible = shapes.judge(shapes.CROSSED[shape], 60, lambda known: certify(known[0]))
    assert not possible[False]


@pytest.mark.parametrize("shape", ["overlapping", "deep tree", "tree by sex"])
def test_loops_cut_open_agree_with_brute_force(shape: str) -> None:
    possible = shapes.judge(shapes.ALL[shape], 60, lambda known: certify(known[0], engine="cutset"))
    assert not possible[False]


def test_a_loop_is_cut_at_its_cheapest_cell() -> None:
    text = "t: 105!; a: 30; b: 40; c: 36 @3; u: 75; t = a + b + c; u = b + c"
    inferred = infer(parse(text))
    assert (inferred.engine, inferred.why) == ("cutset", "the sums form loops, cut open at c")
    with pytest.raises(InputError, match="too many combinations of values"):
        infer(parse("t: ?; a: ?; b: ?; u: ?; v: 9,000!; t = a + b; u = a + b; v = t + u"), engine="cutset")


def test_freely_drawn_numbers_agree_with_brute_force() -> None:
    possible = shapes.judge(shapes.any_numbers(), 300, certify)
    assert min(possible[True], possible[False]) >= shapes.examples(30)


@settings(max_examples=shapes.examples(60))
@given(shapes.deep_tree(), st.data())
def test_a_given_prior_agrees_with_brute_force(known: shapes.Known, data: st.DataObject) -> None:
    system, true = known
    weights = st.sampled_from([0.0, 0.001, 0.3, 1.0])
    prior = {}
    for name in ("a1", "c"):
        value = true[system.index[name]]
        prior[name] = {v: data.draw(weights) for v in range(max(0, value - 3), value + 4)} | {value: 0.5}
    certify(system, prior=prior)


@pytest.mark.parametrize("shape", shapes.ALL)
@settings(max_examples=shapes.examples(60))
@given(data=st.data())
def test_the_truth_lies_inside_the_bounds_and_has_a_probability(shape: str, data: st.DataObject) -> None:
    system, true = data.draw(shapes.ALL[shape])
    inferred = infer(system)
    assert inferred.feasible
    assert inferred.answer is not None
    assert inferred.answer.marginals is not None
    for i, value in enumerate(true):
        high = inferred.highs[i]
        assert inferred.lows[i] <= value
        assert high is None or value <= high
        marginal = inferred.answer.marginals[i]
        assert marginal is not None
        low, probabilities = marginal
        assert probabilities[value - low] > 0
        assert probabilities.sum() == pytest.approx(1)


@pytest.mark.parametrize("shape", shapes.ALL)
@settings(max_examples=shapes.examples(40))
@given(data=st.data())
def test_relabelling_changes_nothing(shape: str, data: st.DataObject) -> None:
    system, _ = data.draw(shapes.ALL[shape])
    cells = data.draw(st.permutations(system.cells))
    sums = data.draw(st.permutations([type(s)(s.total, tuple(data.draw(st.permutations(s.parts)))) for s in system.sums]))
    other = System(cells, sums)
    inferred, two = infer(system), infer(other)
    assert inferred.answer is not None
    assert two.answer is not None
    assert inferred.answer.solutions == two.answer.solutions
    assert inferred.answer.marginals is not None
    assert two.answer.marginals is not None
    for i, cell in enumerate(system.cells):
        j = other.index[cell.name]
        assert (inferred.lows[i], inferred.highs[i]) == (two.lows[j], two.highs[j])
        mine, theirs = inferred.answer.marginals[i], two.answer.marginals[j]
        assert mine is not None
        assert theirs is not None
        np.testing.assert_allclose(mine[1], theirs[1], rtol=1e-11)
    np.testing.assert_allclose([p for _, p in inferred.answer.best], [p for _, p in two.answer.best], rtol=1e-11)


@pytest.mark.parametrize("shape", shapes.ALL)
@settings(max_examples=shapes.examples(40))
@given(data=st.data())
def test_an_added_sum_never_widens_a_bound(shape: str, data: st.DataObject) -> None:
    system, _ = data.draw(shapes.ALL[shape])
    fewer = System(system.cells, system.sums[:-1])
    inferred, two = infer(fewer), infer(system)
    for i in range(len(system.cells)):
        wide, tight = inferred.highs[i], two.highs[i]
        assert two.lows[i] >= inferred.lows[i]
        assert wide is None or (tight is not None and tight <= wide)


def test_long_sums_neither_overflow_nor_underflow() -> None:
    """300 parts: over 10^242 solutions, and weights far below the smallest double."""
    parts = " + ".join(["20"] * 300)
    inferred = infer(parse(f"5,400! = {parts}"), top=2)
    assert inferred.answer is not None
    assert inferred.answer.solutions is not None
    assert inferred.answer.marginals is not None
    # The coefficient of x^600 in (1 + x + … + x^8)^300, by one multiplication of very long numbers.
    bits = 1024
    polynomial = sum(1 << (bits * k) for k in range(9)) ** 300
    assert inferred.answer.solutions == (polynomial >> (bits * (5400 - 300 * 16))) % (1 << bits)
    first, last = inferred.answer.marginals[1], inferred.answer.marginals[300]
    assert first is not None
    assert last is not None
    np.testing.assert_allclose(first[1], last[1], rtol=1e-10)
    # All parts are alike, so that each has a three-hundredth of the total as its mean.
    assert float(np.arange(first[0], first[0] + first[1].size) @ first[1]) == pytest.approx(18, rel=1e-10)


def test_counts_beyond_any_machine_number_are_exact() -> None:
    """Free parts under an unpublished total: the number of solutions is a product of windows."""
    inferred = infer(parse("? = " + " + ".join(["20"] * 40)), top=0)
    assert inferred.answer is not None
    assert inferred.answer.solutions == 9**40


def test_a_split_is_found_whatever_the_order_of_its_parts() -> None:
    text = """
        t: 60; x: 30; y: 30; tm: 30; tw: 30; xm: 15; xw: 15; ym: 15; yw: 15
        t = x + y; tm = ym + xm; tw = xw + yw
        t = tw + tm; x = xm + xw; y = yw + ym
    """
    system = parse(text)
    crossings = crossings_of(system.equations)
    assert len(crossings) == 3
    assert infer(system).engine == "tree"
    assert plan_for(len(system.cells), system.equations, frozenset()) is not None


def test_a_cell_with_one_value_cannot_close_a_loop() -> None:
    """Two sums that share two cells are a loop, unless one of the two is known."""
    loop = "a: 10; b: 20; c: 10; d: 30; e: 30; d = a + b + c; e = a + b + c"
    assert infer(parse(loop)).engine == "cutset"
    assert infer(parse(loop.replace("a: 10", "a: 10!").replace("b: 20", "b: 15!"))).engine == "tree"


def test_a_cell_that_nothing_bounds_leaves_the_others_alone() -> None:
    inferred = infer(parse("? = 20 + ?"))
    assert inferred.highs[0] is None
    assert inferred.highs[2] is None
    assert inferred.answer is not None
    assert inferred.answer.solutions is None
    assert inferred.answer.marginals is not None
    assert inferred.answer.marginals[0] is None
    low, probabilities = inferred.answer.marginals[1] or (0, np.zeros(0))
    assert low == 16
    np.testing.assert_allclose(probabilities, [0.04, 0.08, 0.12, 0.16, 0.2, 0.16, 0.12, 0.08, 0.04])


def test_loops_among_cells_that_nothing_bounds_do_say_something() -> None:
    """t = a + b and t = a + c: whatever t and a are, b and c are the same count."""
    loop = "t: ?; a: ?; b: 5; c: {}; t = a + b; t = a + c"
    assert not infer(parse(loop.format(50))).feasible
    inferred = infer(parse(loop.format(10)))
    assert (inferred.lows[2:], inferred.highs[2:]) == ((6, 6), (9, 9))
    assert inferred.highs[:2] == (None, None)


def test_tiny_likelihoods_are_not_impossible_ones() -> None:
    """28 parts, each 39 away from what was published: a likelihood of about 10^-330, but the only way."""
    parts = " + ".join(["50 @laplace:1.45"] * 28)
    inferred = infer(parse(f"{28 * 89}! = {parts}"))
    assert inferred.feasible
    assert inferred.answer is not None
    assert inferred.answer.marginals is not None
    low, probabilities = inferred.answer.marginals[1] or (0, np.zeros(0))
    assert float(np.arange(low, low + probabilities.size) @ probabilities) == pytest.approx(89, rel=1e-9)


def test_tiny_priors_are_not_impossible_ones() -> None:
    system = parse("? = p0: 20 + p1: 20 + p2: 20")
    inferred = infer(system, prior={f"p{i}": {16: 1e-200, 17: 1e-200} for i in range(3)})
    assert inferred.answer is not None
    assert inferred.answer.marginals is not None
    np.testing.assert_allclose((inferred.answer.marginals[1] or (0, 0))[1], [1 / 3, 2 / 3])


def test_one_count_published_very_often() -> None:
    """The same count 1,000 times over, as 10 or 15: each repeat multiplies its distribution once more."""
    repeats = 1000
    cells = "; ".join(f"a{i}: {10 if i % 5 < 3 else 15}" for i in range(repeats))
    inferred = infer(parse(f"t: ?; {cells}; " + "; ".join(f"t = a{i}" for i in range(repeats))), top=4)
    assert inferred.answer is not None
    assert inferred.answer.marginals is not None
    low, probabilities = inferred.answer.marginals[0] or (0, np.zeros(0))
    logs = [600 * np.log((15 - x) / 5) + 400 * np.log((x - 10) / 5) for x in range(11, 15)]
    np.testing.assert_allclose(np.log(probabilities / probabilities.max()), np.array(logs) - max(logs), rtol=1e-9, atol=1e-9)
    assert (low, len(inferred.answer.best)) == (11, 4)


def test_wide_windows_do_not_overflow() -> None:
    """170 windows of 100 values each: more solutions than the largest double."""
    inferred = infer(parse("? = " + " + ".join(["?0..99"] * 170)), top=0)
    assert inferred.answer is not None
    assert inferred.answer.solutions is None  # counting them would take too long
    assert inferred.answer.marginals is not None
    np.testing.assert_allclose((inferred.answer.marginals[1] or (0, 0))[1], 0.01)


def test_bounds_travel_the_whole_length_of_a_chain() -> None:
    n = 700
    cells = "; ".join(f"a{i}: ?{i}..{n + 5}" for i in range(n + 1))
    inferred = infer(parse(f"{cells}; " + "; ".join(f"a{i} = a{i + 1}" for i in range(n))), top=0)
    assert set(inferred.lows) == {n}
    assert set(inferred.highs) == {n + 5}


def test_cells_that_nothing_bounds_leave_the_bounds_of_the_others_tight() -> None:
    crossed = """
        t: 25; x: 20; y: 0; tm: 10; tf: 15; xm: 10; xf: 10; ym: 0; yf: 0
        x = xm + xf; y = ym + yf; tm = xm + ym; tf = xf + yf; t = tm + tf
    """
    alone, beside = infer(parse(crossed)), infer(parse(crossed + "u: ?; w: ?; u = w + x"))
    assert (beside.lows[:9], beside.highs[:9]) == (alone.lows, alone.highs)
    assert (beside.lows[9], beside.highs[9]) == (17, None)


def test_the_least_value_of_a_cell_that_nothing_bounds() -> None:
    inferred = infer(parse("t: 20!; u: ?; v: ?; a: ?; b: ?; t = a + b; u = a + b + v"))
    assert (inferred.lows[1], inferred.highs[1]) == (20, None)


def test_the_order_of_the_best_survives_probabilities_below_any_double() -> None:
    triples = "; ".join(f"t{i}: 40 = x{i}: 20 + y{i}: 20" for i in range(300))
    inferred = infer(parse(triples), top=3)
    assert inferred.answer is not None
    assert set(inferred.answer.best[0][0]) == {20, 40}


def test_bounds_do_not_rest_on_probabilities_too_small_for_doubles() -> None:
    """A loop, and 31 priors of which one value each is 10^-12 times as likely as the other: both stay possible."""
    parts = "; ".join(f"p{i}: 20" for i in range(31))
    loop = "t: 620 = " + " + ".join(f"p{i}" for i in range(31)) + "; u: 40; u = p0 + p1"
    prior = {f"p{i}": {20: 1.0, 21: 1e-12} for i in range(31)}
    inferred = infer(parse(f"{parts}; {loop}"), prior=prior, top=0)
    assert inferred.engine == "cutset"
    assert (set(inferred.lows[:31]), set(inferred.highs[:31])) == ({20}, {21})
    assert (inferred.lows[31], inferred.highs[31]) == (620, 624)


def test_cells_without_any_sum() -> None:
    inferred = infer(parse("; ".join(f"a{i}: 20" for i in range(40))), top=0)
    assert inferred.answer is not None
    assert inferred.answer.solutions == 9**40


@pytest.mark.parametrize("text", ["1000000000! = ? + ?", "?1..1000000000000 = 5 + ?", "a: 500 @within:100000000"])
def test_what_would_not_fit_into_memory_is_left_or_refused(text: str) -> None:
    try:
        said = infer(parse(text)).why
    except InputError as problem:
        said = str(problem)
    assert "too many" in said


def test_wide_windows_are_left_to_bounds() -> None:
    inferred = infer(parse("9,000,000! = ? + ? + ? + 20"))
    assert inferred.answer is None
    assert inferred.highs[1] == 9_000_000 - 16


@settings(max_examples=shapes.examples(150))
@given(shapes.tree_by_sex(5))
def test_propagated_bounds_are_tight_on_trees_by_sex(known: shapes.Known) -> None:
    """The fixpoint of single sums equals the support of the exact posterior, which knows all sums at once."""
    system, _ = known
    assume(len({sum_.total for sum_ in system.sums}) < len(system.sums))  # the total's own sum over the tree is there
    bounds = Bounds.of(system.windows)
    assert propagate(system.equations, bounds)
    inferred = infer(system, engine="tree", top=0)
    assert (bounds.lows, bounds.highs) == (list(inferred.lows), list(inferred.highs))


def test_the_tree_engine_says_when_it_cannot() -> None:
    system, _ = shapes.build(
        {f"r{i}c{j}": 7 for i in range(3) for j in range(3)},
        [shapes.Sum(f"r{i}", tuple(f"r{i}c{j}" for j in range(3))) for i in range(3)]
        + [shapes.Sum(f"c{j}", tuple(f"r{i}c{j}" for i in range(3))) for j in range(3)],
        lambda _: Rounding(5),
        1,
    )
    with pytest.raises(InputError, match="without loops"):
        infer(system, engine="tree")
    with pytest.raises(InputError, match="no engine 'magic'"):
        infer(system, engine="magic")
    inferred = infer(system, engine="cp-sat", top=0)
    assert inferred.answer is None
    assert "are not available" in inferred.why
