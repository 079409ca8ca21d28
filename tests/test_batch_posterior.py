"""Posteriors of whole blocks of areas against the tree engine and brute force, one system at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import shapes
from unround import simulation as sim
from unround.bounds.tighten import tighten
from unround.engines import forest, infer, messages
from unround.engines.answer import Marginal
from unround.engines.forest import posteriors
from unround.equations import parse
from unround.evidence.block import NO_UPPER_BOUND, BlockPosterior, CellBounds, PriorWeights, Windows, WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms import Exact, Rounding, mechanism
from unround.release import SUPPRESSED
from unround.sums.compiled import CompiledSums, compile_sums
from unround.system import Sum, System

Prior = Mapping[str, Mapping[int, float]]
Parts = tuple[CompiledSums, Windows, CellBounds]


def block(systems: list[System]) -> Parts:
    """Make one block of areas out of systems that differ in their published counts only."""
    first = systems[0]
    assert all(system.equations == first.equations for system in systems)
    counts = [[SUPPRESSED if cell.published is None else cell.published for cell in system.cells] for system in systems]
    mechanisms = [cell.mechanism for cell in first.cells]
    windows, misfits = WindowTable(mechanisms).of(np.array(counts, dtype=np.int32))
    assert not misfits.any()
    fixed = frozenset(i for i, system in enumerate(mechanisms) if isinstance(system, Exact))
    layout = compile_sums(len(first.cells), first.equations, fixed)
    return layout, windows, tighten(layout, windows)


def weights_of(system: System, prior: Prior, tight: CellBounds) -> PriorWeights:
    """Write a prior as weights of the possible counts, the same in all areas; cells that have none are flat."""
    weights: list[float] = []
    start = np.full(tight.low.shape, -1, dtype=np.int64)
    for a, c in np.ndindex(tight.low.shape):
        answer = prior.get(system.cells[c].name)
        if answer is not None:
            start[a, c] = len(weights)
            weights += [answer.get(x, 0.0) for x in range(tight.low[a, c], tight.high[a, c] + 1)]
    return PriorWeights(tight.low, start, np.array(weights))


def summary(marginal: Marginal) -> tuple[int, float, float, float]:
    low, chances = marginal
    values = low + np.arange(chances.size)
    mean = float(values @ chances)
    first = int(np.argmax(chances >= chances.max() * (1 - 1e-12)))
    return low + first, float(chances[first]), mean, float(np.sqrt(chances @ (values - mean) ** 2))


def agrees(posterior: BlockPosterior, a: int, c: int, marginal: Marginal | None) -> None:
    assert marginal is not None
    got = (posterior.probability[a, c], posterior.mean[a, c], posterior.deviation[a, c])
    mode, *expected = summary(marginal)
    assert posterior.mode[a, c] == mode
    assert got == pytest.approx(expected, abs=1e-9)


def certify(systems: list[System], prior: Prior | None = None, engine: str = "tree") -> int:
    """Check every number against the engine for single systems."""
    layout, windows, tight = block(systems)
    assert not layout.unused
    posterior = posteriors(
        EvidenceBlock(layout, windows, tight, None if prior is None else weights_of(systems[0], prior, tight))
    )
    for a, system in enumerate(systems):
        expected = infer(system, engine=engine, prior=prior, top=0)
        assert posterior.possible[a] == expected.feasible
        if not expected.feasible:
            assert np.isnan(posterior.mean[a]).all()
            continue
        assert expected.answer is not None
        assert expected.answer.marginals is not None
        assert posterior.cut[a] == 0
        for c, marginal in enumerate(expected.answer.marginals):
            agrees(posterior, a, c, marginal)
    return int(posterior.possible.sum())


@pytest.mark.parametrize("shape", {**shapes.ACYCLIC, **shapes.CROSSED})
def test_every_shape_agrees_with_the_tree_engine(shape: str) -> None:
    """All cells of these shapes are bounded; there is another test of cells that nothing bounds."""
    shapes.judge({**shapes.ACYCLIC, **shapes.CROSSED}[shape], 60, lambda known: certify([known[0]]))


def test_areas_without_a_solution_are_found() -> None:
    possible = shapes.judge(shapes.any_numbers(), 60, lambda system: certify([system]))
    assert possible[1] > 0
    assert possible[0] >= shapes.examples(30)


@settings(max_examples=shapes.examples(60))
@given(shapes.deep_tree(), st.data())
def test_a_prior_weighs_counts(known: shapes.Known, data: st.DataObject) -> None:
    system, true = known
    weights = st.sampled_from([0.001, 0.3, 1.0])
    prior = {}
    for name in ("a1", "c", "t"):
        value = true[system.index[name]]
        prior[name] = {v: data.draw(weights) for v in range(max(0, value - 6), value + 7)}
    certify([system], prior)
    certify([system], prior, "brute")


BASE5, BASE3, SAMPLE = Rounding(5), Rounding(3), mechanism("sample:5")


def drawn(
    rng: np.random.Generator,
    sums: dict[str, tuple[str, ...]],
    areas: int,
    most: int,
    hows: tuple[object, ...] = (BASE5,),
    sexes: bool = True,
    exact: tuple[str, ...] = (),
) -> list[System]:
    """Draw areas of one structure: `sums` in the order parents first; mechanisms at random, the same for all areas."""
    parts = [part for below in sums.values() for part in below]
    names = list(dict.fromkeys([*sums, *parts]))
    leaves = [name for name in names if name not in sums]
    layers = ("", " m", " w") if sexes else ("",)
    how = {n + s: hows[int(rng.integers(len(hows)))] for n in names for s in layers} | dict.fromkeys(exact, Exact())
    systems = []
    for _ in range(areas):
        true = {}
        for name in leaves:
            ceiling = int(rng.choice([1, 4, most]))
            for s in layers[1:] or layers:
                true[name + s] = int(rng.integers(0, ceiling + 1))
            if sexes:
                true[name] = true[name + " m"] + true[name + " w"]
        for name in reversed(list(sums)):
            for s in layers:
                true[name + s] = sum(true[part + s] for part in sums[name])
        cells = [shapes.published(n + s, true[n + s], how[n + s], rng) for n in names for s in layers]  # type: ignore[arg-type]
        equations = [Sum(name + s, tuple(part + s for part in below)) for name, below in sums.items() for s in layers]
        if sexes:
            equations += [Sum(name, (name + " m", name + " w")) for name in names]
        systems.append(System(cells, equations))
    return systems


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_by_sex_agree_with_the_tree_engine(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sums = {"t": ("a", "b", "c"), "a": ("d", "e"), "c": ("f", "g", "h"), "h": ("i",), "u": ("j", "k")}
    hows = ((BASE5,), (BASE3,), (SAMPLE,), (BASE5, BASE3), (BASE5, SAMPLE, Exact()), (BASE3,))[seed]
    certify(drawn(rng, sums, 8, 25, hows, exact=("t",) if seed % 2 else ()))


@pytest.mark.parametrize("seed", range(4))
def test_random_trees_of_single_counts_agree_with_the_tree_engine(seed: int) -> None:
    rng = np.random.default_rng(10 + seed)
    sums = {"t": ("a", "b", "c", "d"), "b": ("e", "f", "g"), "g": ("h",), "h": ("i", "j")}
    hows = ((BASE5,), (BASE3, SAMPLE), (SAMPLE,), (BASE5, Exact()))[seed]
    certify(drawn(rng, sums, 8, 40, hows, sexes=False, exact=("t",) if seed % 2 else ()))


def test_many_areas_at_once_are_the_same_as_one_at_a_time() -> None:
    systems = drawn(np.random.default_rng(3), {"t": ("a", "b", "c"), "a": ("d", "e")}, 70, 60)
    layout, windows, tight = block(systems)
    together = posteriors(EvidenceBlock(layout, windows, tight))
    for a in (0, 33, 69):
        alone = posteriors(EvidenceBlock(*block([systems[a]])))
        np.testing.assert_array_equal(together.probability[a], alone.probability[0])
        np.testing.assert_array_equal(together.mode[a], alone.mode[0])


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 1.0])
def test_what_is_wanted_is_the_same_bit_by_bit_as_if_all_were(share: float) -> None:
    rng = np.random.default_rng(7)
    sums = {"t": ("a", "b", "c"), "a": ("d", "e"), "c": ("f", "g", "h"), "h": ("i",), "u": ("j", "k")}
    layout, windows, tight = block(drawn(rng, sums, 60, 25, (BASE5, SAMPLE), exact=("t",)))
    everything = posteriors(EvidenceBlock(layout, windows, tight))
    wanted = rng.random(tight.low.shape) < share
    posterior = posteriors(EvidenceBlock(layout, windows, tight), wanted=wanted)
    for name in ("mode", "probability", "mean", "deviation"):
        np.testing.assert_array_equal(getattr(posterior, name)[wanted], getattr(everything, name)[wanted])
    np.testing.assert_array_equal(posterior.possible, everything.possible)
    assert (posterior.probability[~wanted] == 0).all()
    assert np.isnan(posterior.mean[~wanted]).all()


def test_a_subtracted_part_hangs_a_tree_by_sex_from_a_part() -> None:
    """One node is a part of two totals: seen from one of them, the other total's parts are subtracted."""
    certify(drawn(np.random.default_rng(5), {"s": ("a", "b"), "t": ("b", "c")}, 10, 20))


def test_a_hidden_cell_takes_part() -> None:
    certify([parse("t: 40; a: ?; b: 15; c: 10; t = a + b + c; a = d: 5 + e: 5")])


def test_there_may_be_no_sums_and_no_areas() -> None:
    certify([parse("a: 10; b: 0")])
    layout, windows, _ = block([parse("a: 10 = b: 5 + c: 5")])
    none = Windows(windows.low[:0], windows.high[:0], windows.start[:0], windows.weights, windows.certain)
    assert posteriors(EvidenceBlock(layout, none, tighten(layout, none))).possible.shape == (0,)


def test_other_kinds_of_arrays_are_not_compiled_anew() -> None:
    layout, windows, tight = block([parse("a: 10 = b: 5 + c: 5")] * 2)
    usual = posteriors(EvidenceBlock(layout, windows, tight))
    known = len(forest.areas_of_block.signatures)  # type: ignore[attr-defined]
    low = np.asfortranarray(windows.low).astype(np.int64)
    low.flags.writeable = False
    other = Windows(low, windows.high, windows.start, windows.weights, windows.certain)
    again = posteriors(EvidenceBlock(layout, other, tight, active=np.ones((2, 1), dtype=np.bool_)))
    np.testing.assert_array_equal(usual.probability, again.probability)
    assert len(forest.areas_of_block.signatures) == known  # type: ignore[attr-defined]


# --- what cannot be used ---------------------------------------------------------------------------------------


def test_cells_that_nothing_bounds_have_no_distribution() -> None:
    layout, windows, tight = block([parse("t: ?; a: 10; b: ?; c: 20; d: 10; e: 10; t = a + b; c = d + e")])
    posterior = posteriors(EvidenceBlock(layout, windows, tight))
    assert posterior.possible[0]
    assert posterior.cut[0] == 1
    assert posterior.mode[0, [0, 2]].tolist() == [-1, -1]
    for c, open_ended in enumerate(tight.high[0] == NO_UPPER_BOUND):
        assert (posterior.probability[0, c] == 0) == open_ended
        assert np.isnan(posterior.mean[0, c]) == open_ended
    alone = infer(parse("a: 10"), top=0).answer
    together = infer(parse("c: 20 = d: 10 + e: 10"), top=0).answer
    assert alone is not None and alone.marginals is not None  # noqa: PT018 - for the type checker
    assert together is not None and together.marginals is not None  # noqa: PT018 - likewise
    agrees(posterior, 0, 1, alone.marginals[0])
    for c, marginal in zip((3, 4, 5), together.marginals, strict=True):
        agrees(posterior, 0, c, marginal)


def test_a_link_with_a_cell_of_too_many_values_is_cut() -> None:
    layout, windows, tight = block([parse("t: 2000!; a: ?; b: ?; c: 10; t = a + b + c; c = d: 5 + e: 5")])
    posterior = posteriors(EvidenceBlock(layout, windows, tight))
    assert tight.high[0, 1] - tight.low[0, 1] > messages.MOST_VALUES
    assert posterior.cut.tolist() == [1]
    width = tight.high[0, 1] - tight.low[0, 1] + 1
    assert posterior.mode[0, 1] == tight.low[0, 1]
    assert posterior.probability[0, 1] == pytest.approx(1 / width)
    assert posterior.mean[0, 1] == pytest.approx((tight.low[0, 1] + tight.high[0, 1]) / 2)
    assert posterior.deviation[0, 1] == pytest.approx(np.sqrt((width**2 - 1) / 12))
    rest = infer(parse("c: 10 = d: 5 + e: 5"), top=0).answer
    assert rest is not None
    assert rest.marginals is not None
    for c, marginal in zip((3, 4, 5), rest.marginals, strict=True):
        agrees(posterior, 0, c, marginal)


def test_a_cell_by_itself_keeps_its_prior() -> None:
    """Also where it has more possible counts than messages can carry."""
    system = parse("t: 2000!; a: ?; b: ?; c: 10; t = a + b + c")
    layout, windows, tight = block([system])
    values = np.arange(tight.low[0, 1], tight.high[0, 1] + 1)
    assert values.size > messages.MOST_VALUES
    chances = np.where(values < 40, 1.0 + (values == 7), 0.5)
    prior = {"a": dict(zip(values.tolist(), chances.tolist(), strict=True))}
    posterior = posteriors(EvidenceBlock(layout, windows, tight, weights_of(system, prior, tight)))
    agrees(posterior, 0, 1, (int(values[0]), chances / chances.sum()))


def test_every_area_has_a_prior_of_its_own_and_a_cell_can_be_left_flat() -> None:
    systems = [parse(f"t: {t} = a: {a} + b: 5") for t, a in ((15, 10), (10, 10), (15, 5))]
    layout, windows, tight = block(systems)
    rng = np.random.default_rng(2)
    width = (tight.high - tight.low + 1).astype(np.int64)
    start = np.cumsum(width).reshape(width.shape) - width
    weights = PriorWeights(tight.low, start, rng.random(int(width.sum())))

    def prior(area: int, cells: list[int]) -> Prior:
        return {
            systems[0].cells[c].name: {
                int(tight.low[area, c]) + i: float(weights.weights[start[area, c] + i]) for i in range(width[area, c])
            }
            for c in cells
        }

    def check(answer: BlockPosterior, a: int, area: int, cells: list[int]) -> None:
        expected = infer(systems[area], engine="brute", prior=prior(area, cells), top=0).answer
        assert expected is not None
        assert expected.marginals is not None
        for c, marginal in enumerate(expected.marginals):
            agrees(answer, a, c, marginal)

    answer = posteriors(EvidenceBlock(layout, windows, tight, weights))
    for a in range(3):
        check(answer, a, a, [0, 1, 2])
    order = np.array([2, 0])
    answer = posteriors(EvidenceBlock(layout, windows, tight, weights).rows(order))
    for a, area in enumerate(order.tolist()):
        check(answer, a, area, [0, 1, 2])
    flat = weights.without(np.array([1]), np.array([True, False, False]))
    answer = posteriors(EvidenceBlock(layout, windows, tight, flat))
    for a in range(3):
        check(answer, a, a, [1, 2] if a == 1 else [0, 1, 2])
    assert (weights.start >= 0).all()  # what is left out is left out of a copy


def test_of_a_pair_with_too_many_states_the_total_takes_part() -> None:
    """The total's own sums are still used, if they are no parallel ones; men and women stand alone."""
    text = "; ".join(
        [
            "t: 300!; t_m: ?; t_w: ?; x: 200; x_m: ?; x_w: ?; y: 100; y_m: ?; y_w: ?; u: 150; v: 155",
            "t = t_m + t_w; x = x_m + x_w; y = y_m + y_w; t = x + y; t_m = x_m + y_m; t_w = x_w + y_w; x = v + z: 45",
        ]
    )
    system = parse(text.replace("u: 150; ", ""))
    layout, windows, tight = block([system])
    posterior = posteriors(EvidenceBlock(layout, windows, tight))
    assert posterior.cut.tolist() == [1]
    alone = infer(parse("x: 200 = v: 155 + z: 45"), top=0).answer
    assert alone is not None
    assert alone.marginals is not None
    for name, marginal in zip("xvz", alone.marginals, strict=True):
        agrees(posterior, 0, system.index[name], marginal)
    at = system.index["x_m"]
    assert posterior.probability[0, at] == pytest.approx(1 / (tight.high[0, at] - tight.low[0, at] + 1))


def without(system: System, *left_out: Sum) -> System:
    return System(system.cells, [sum_ for sum_ in system.sums if sum_ not in left_out])


def use_all_but(system: System, *left_out: Sum) -> BlockPosterior:
    layout, windows, _ = block([system])
    active = np.array([[sum_ not in left_out for sum_ in system.sums]])
    return posteriors(EvidenceBlock(layout, windows, tighten(layout, windows, active), None, active))


def same(posterior: BlockPosterior, system: System, skip: tuple[str, ...] = ()) -> None:
    expected = infer(system, top=0).answer
    assert expected is not None
    assert expected.marginals is not None
    for c, marginal in enumerate(expected.marginals):
        if system.cells[c].name not in skip:
            agrees(posterior, 0, c, marginal)


@pytest.mark.parametrize("seed", range(4))
def test_sums_that_do_not_hold_are_not_used(seed: int) -> None:
    rng = np.random.default_rng(20 + seed)
    (system,) = drawn(rng, {"t": ("a", "b"), "a": ("c", "d")}, 1, 20, (BASE3,))
    total, men, women = (Sum("a" + s, ("c" + s, "d" + s)) for s in ("", " m", " w"))
    split = Sum("c", ("c m", "c w"))
    # Two of three parallel sums imply the third; one of them is not enough for a link between pairs.
    same(use_all_but(system, total), without(system, total))
    same(use_all_but(system, total, men, women), without(system, total, men, women))
    assert use_all_but(system, total, men).cut.tolist() == [0]
    # A total that is not the sum of its parts stands alone; the parts still take part in their own sums.
    loose = use_all_but(system, split, total)
    same(loose, without(system, split, total))


def test_areas_that_are_not_feasible_are_left_out() -> None:
    systems = [parse("t: 30; t = a: 5 + b: 5"), parse("t: 10; t = a: 5 + b: 5")]
    posterior = posteriors(EvidenceBlock(*block(systems)))
    assert posterior.possible.tolist() == [False, True]
    assert posterior.mode[0].tolist() == [-1, -1, -1]
    assert posterior.probability[0].tolist() == [0, 0, 0]


# --- scale -----------------------------------------------------------------------------------------------------


def test_nothing_underflows_in_a_forest_of_thousands_of_cells() -> None:
    """One root over 300 totals, each a repeat of it: likelihoods of all of them multiply."""
    rng = np.random.default_rng(8)
    sums = [Sum(f"r{i}", ("t",)) for i in range(300)]
    sums += [Sum(f"r{i}{s}", (f"a{i}{s}", f"b{i}{s}", f"c{i}{s}")) for i in range(300) for s in ("",)]
    true = {"t": 500} | {f"r{i}": 500 for i in range(300)}
    for i in range(300):
        a, b = (int(x) for x in rng.integers(0, 200, 2))
        true |= {f"a{i}": a, f"b{i}": b, f"c{i}": 500 - a - b}
    system = System([shapes.published(name, count, BASE5, rng) for name, count in true.items()], sums)
    posterior = posteriors(EvidenceBlock(*block([system])))
    assert posterior.possible[0]
    assert posterior.mode[0, 0] == 500
    assert posterior.probability[0, 0] > 0.999
    assert np.isfinite(posterior.mean).all()
    certify([system])


def census(areas: int, rows: str) -> tuple[EvidenceBlock, np.ndarray]:
    """Simulate areas: rows by sex, with the population exact."""
    schema = sim.schema(rows)
    published = np.concatenate([sum_.published for sum_ in sim.Rounds(1).counts(areas, rows) if sum_.published is not None])
    true = np.concatenate([sum_.true for sum_ in sim.true_counts(areas, 1, rows)])
    used = [row.id == 1 or row.mechanism != "exact" for row in schema.rows]
    places = [(i, s) for i, s in np.argwhere(schema.shown).tolist() if used[i]]
    where = {(schema.rows[i].id, s): at for at, (i, s) in enumerate(places)}
    mechanisms = [mechanism(schema.rows[i].mechanism) for i, _ in places]
    equations = [(at, (where[row, 1], where[row, 2])) for (row, s), at in where.items() if s == 0 and (row, 1) in where]
    for sum_ in schema.sums:
        for s in range(3):
            cells = [where.get((row, s)) for row in (sum_.total, *sum_.parts)]
            if None not in cells:
                equations.append((cells[0], tuple(cells[1:])))  # type: ignore[arg-type]
    index = tuple(np.array(places).T)
    counts = np.where(published[:, index[0], index[1]] < 0, SUPPRESSED, published[:, index[0], index[1]])
    windows, misfits = WindowTable(mechanisms).of(counts.astype(np.int32))
    assert not misfits.any()
    layout = compile_sums(len(places), tuple(equations), frozenset([where[1, 0]]))
    return (layout, windows, tighten(layout, windows)), true[:, index[0], index[1]]


def test_claims_about_a_simulated_census_are_as_often_right_as_they_say() -> None:
    (layout, windows, tight), true = census(2000, "age")
    posterior = posteriors(EvidenceBlock(layout, windows, tight))
    assert posterior.possible.all()
    shown = (windows.start >= 0).all(axis=1)
    assert not posterior.cut[shown].any()
    # Ages of areas with many people: the flat prior is about right for them.
    large = shown[:, None] & (tight.low < tight.high) & (true >= 15)
    assert ((posterior.mean - true)[large] / posterior.deviation[large]).std() == pytest.approx(1, abs=0.03)
    assert large.sum() > 50_000
    for least, tolerance in ((0.0, 0.01), (0.4, 0.03), (0.5, 0.05)):
        claimed = large & (posterior.probability >= least)
        assert (posterior.mode == true)[claimed].mean() == pytest.approx(
            posterior.probability[claimed].mean(), abs=tolerance
        )


def test_all_rows_of_a_profile_by_sex_are_worked_out() -> None:
    (layout, windows, tight), true = census(6, "all")
    posterior = posteriors(EvidenceBlock(layout, windows, tight))
    assert posterior.possible.all()
    inside = (
        (tight.low <= posterior.mode)
        & (posterior.mode <= tight.high)
        & (posterior.mean >= tight.low)
        & (posterior.mean <= tight.high)
    )
    assert inside[posterior.probability > 0].all()
    assert (posterior.probability > 0).mean() > 0.99
    wide = tight.low < tight.high
    assert np.abs((posterior.mean - true)[wide & (posterior.probability > 0)]).mean() < 2
