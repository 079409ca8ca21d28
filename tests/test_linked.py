"""Areas within areas: against brute force on tiny families, long chains on larger ones, and simulated truth."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import shapes
from tests.test_batch_posterior import block
from unround.bounds.linked import linked_bounds
from unround.bounds.prover import Prover
from unround.bounds.search import cpsat_bounds
from unround.bounds.tighten import tighten
from unround.engines.brute import Brute, brute
from unround.engines.forest import posteriors, samples
from unround.engines.gibbs import EFFORT, normalised, shrink, swap_moves
from unround.engines.linked import Linked, link
from unround.engines.linked_weights import APART, CHAINS, FAMILY, GIBBS, LISTED, LOOPY, MERGED, METHODS, OWN, CountWeights
from unround.engines.loopy import ROUNDS, exchange_messages
from unround.errors import InputError
from unround.evidence.block import BlockPosterior, Windows, WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms import Rounding
from unround.proofs import check_proof
from unround.release import SUPPRESSED, Counts
from unround.sums.compiled import CompiledSums, compile_sums
from unround.sums.families import components, find_families
from unround.sums.forest import Equations
from unround.system import Cell, Sum, System

NAMES = ("t", "a", "b")
BY_SEX = ("t", "tm", "tw", "a", "am", "aw", "b", "bm", "bw")
PLAIN = ((0, (1, 2)),)
CROSSED = (
    (0, (1, 2)),
    (3, (4, 5)),
    (6, (7, 8)),
    (0, (3, 6)),
    (1, (4, 7)),
    (2, (5, 8)),
)


def family_system(names: tuple[str, ...], equations: Equations, counts: Counts, parent: list[int], how: Rounding) -> System:
    """Write areas and the sums between them as one system."""
    cells = [Cell(f"{a}.{name}", int(counts[a, c]), how) for a in range(len(counts)) for c, name in enumerate(names)]
    sums = [
        Sum(f"{a}.{names[total]}", tuple(f"{a}.{names[part]}" for part in parts))
        for a in range(len(counts))
        for total, parts in equations
    ]
    for p in sorted(set(parent) - {-1}):
        children = [a for a, above in enumerate(parent) if above == p]
        sums += [Sum(f"{p}.{name}", tuple(f"{a}.{name}" for a in children)) for name in names]
    return System(cells, sums)


def tiny(
    seed: int, names: tuple[str, ...], equations: Equations, parent: list[int], base: int, most: int
) -> tuple[Counts, Counts]:
    """Draw true counts of leaves, add them up within and between areas, and publish."""
    rng = np.random.default_rng(seed)
    totals = {total for total, _ in equations}
    true = np.zeros((len(parent), len(names)), dtype=np.int64)
    leaves = [a for a in range(len(parent)) if a not in parent]
    for a in leaves:
        for c in range(len(names)):
            true[a, c] = 0 if c in totals else rng.integers(0, most + 1)
    for a in range(len(parent) - 1, -1, -1):  # children come after their parents
        for _ in range(3):
            for total, parts in equations:
                true[a, total] = true[a, list(parts)].sum()
        if parent[a] >= 0:
            true[parent[a]] += true[a] * np.array([c not in totals for c in range(len(names))])
    return true, Rounding(base).publish(true, rng).astype(np.int32)


def linked(
    equations: Equations, counts: Counts, parent: list[int], base: int, **more: object
) -> tuple[CompiledSums, Windows, Linked]:
    columns = counts.shape[1]
    compiled = compile_sums(columns, equations, frozenset())
    windows, misfits = WindowTable([Rounding(base)] * columns).of(counts)
    assert not misfits.any()
    tight = tighten(compiled, windows)
    joined = link(EvidenceBlock(compiled, windows, tight), np.array(parent), np.ones(columns, dtype=np.bool_), **more)  # type: ignore[arg-type]
    return compiled, windows, joined


def agrees(posterior: BlockPosterior, reference: Brute, mean: float, chance: float) -> None:
    """Compare with all solutions: means, and the probability of the likeliest count."""
    areas, columns = posterior.mode.shape
    for a in range(areas):
        for c in range(columns):
            expected = reference.marginal(a * columns + c)
            assert posterior.mean[a, c] == pytest.approx(float(sum(x * p for x, p in expected.items())), abs=mean)
            assert posterior.probability[a, c] == pytest.approx(float(expected[int(posterior.mode[a, c])]), abs=chance)
            assert posterior.probability[a, c] == pytest.approx(float(max(expected.values())), abs=chance)


# --- drawing whole areas ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", {**shapes.ACYCLIC, **shapes.CROSSED})
def test_every_state_is_drawn_as_often_as_it_is_likely(shape: str) -> None:
    shapes.judge({**shapes.ACYCLIC, **shapes.CROSSED}[shape], 8, draws_are_fair)


def draws_are_fair(known: shapes.Known) -> None:
    system, _ = known
    compiled, windows, tight = block([system])
    assert not compiled.unused
    assert (tight.high < 1000).all()
    answers = brute(system)
    assume(answers.count <= 2000)  # or too few draws would fall on each
    number = 4000
    drawn = samples(EvidenceBlock(compiled, windows, tight), number, seed=1)[:, 0]
    tally: dict[tuple[int, ...], int] = {}
    for state in drawn.tolist():
        tally[tuple(state)] = tally.get(tuple(state), 0) + 1
    chance = dict(zip(answers.solutions, (float(w / answers.mass) for w in answers.weights), strict=True))
    assert set(tally) <= set(chance)
    # Pearson's chi-squared is near its degrees of freedom; rare states are put together.
    common = [state for state, p in chance.items() if p * number >= 5]
    rest = 1 - sum(chance[state] for state in common)
    observed = [tally.get(state, 0) for state in common]
    terms = [(n - chance[state] * number) ** 2 / (chance[state] * number) for n, state in zip(observed, common, strict=True)]
    if rest * number >= 5:
        terms.append((number - sum(observed) - rest * number) ** 2 / (rest * number))
    assert sum(terms) < len(terms) + 6 * (2 * len(terms)) ** 0.5 + 10


def test_areas_are_drawn_independently() -> None:
    system = System([Cell("t", 60, Rounding(5)), *(Cell(f"p{i}", 20, Rounding(5)) for i in range(3))], [])
    system = System(system.cells, [Sum("t", ("p0", "p1", "p2"))])
    drawn = samples(EvidenceBlock(*block([system] * 3)), 400, seed=7)
    again = samples(EvidenceBlock(*block([system] * 3)), 400, seed=7)
    assert (drawn == again).all()
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert (drawn[:, one] == drawn[:, other]).all(axis=1).mean() < 0.1
        assert abs(np.corrcoef(drawn[:, one, 1], drawn[:, other, 1])[0, 1]) < 0.2


# --- tiny families against brute force --------------------------------------------------------------------------


@pytest.mark.parametrize("base", [3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_an_only_child_is_its_parent(base: int, seed: int) -> None:
    parent = [-1, 0, 1]
    _, counts = tiny(seed, BY_SEX, CROSSED, parent, base, 12)
    _, _, joined = linked(CROSSED, counts, parent, base)
    assert joined.method.tolist() == [MERGED] * 3
    agrees(joined.posterior, brute(family_system(BY_SEX, CROSSED, counts, parent, Rounding(base))), 1e-9, 1e-9)


@pytest.mark.parametrize(
    ("base", "names", "equations", "children"),
    [
        (3, BY_SEX, CROSSED, 2),  # with three children there are too many solutions to list
        *[(base, NAMES, PLAIN, children) for base in (5, 3) for children in (2, 3)],
    ],
)
def test_small_families_agree_with_brute_force(
    base: int, names: tuple[str, ...], equations: Equations, children: int
) -> None:
    for seed in range(shapes.examples(1)):
        parent = [-1, *[0] * children]
        _, counts = tiny(10 * children + seed, names, equations, parent, base, 4)
        effort = EFFORT._replace(sweeps=600, swaps=50)
        _, _, joined = linked(equations, counts, parent, base, effort=effort)
        assert joined.method.tolist() == [GIBBS] * (children + 1)
        assert (joined.rhat < 1.05).all()
        reference = brute(family_system(names, equations, counts, parent, Rounding(base)))
        agrees(joined.posterior, reference, 0.05, 0.025)


def test_messages_are_exact_where_nothing_closes_a_loop() -> None:
    """One cell an area: the family is a tree, and messages say exactly what brute force does."""
    parent = [-1, *[0] * 5]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        true = rng.integers(5, 16, (6, 1))
        true[0] = true[1:].sum()
        counts = Rounding(5).publish(true, rng).astype(np.int32)
        _, _, joined = linked((), counts, parent, 5)
        assert joined.method.tolist() == [LOOPY] * 6
        reference = brute(family_system(("t",), (), counts, parent, Rounding(5)))
        agrees(joined.posterior, reference, 1e-6, 1e-6)


def test_totals_that_do_not_add_up_do_not_lean_on_their_parts() -> None:
    """Where no sum holds within areas, every column is a tree of its own, and messages are exact."""
    parent = [-1, *[0] * 5]
    rng = np.random.default_rng(3)
    true = rng.integers(5, 16, (6, 3))
    true[0] = true[1:].sum(axis=0)
    counts = Rounding(5).publish(true, rng).astype(np.int32)
    compiled = compile_sums(3, PLAIN, frozenset())
    windows, _ = WindowTable([Rounding(5)] * 3).of(counts)
    none = np.zeros((6, 1), dtype=np.bool_)
    tight = tighten(compiled, windows, none)
    joined = link(EvidenceBlock(compiled, windows, tight, None, none), np.array(parent), np.ones(3, dtype=np.bool_))
    assert joined.method.tolist() == [LOOPY] * 6
    # The total itself hears nothing: messages are about its parts.
    for column in (1, 2):
        reference = brute(family_system(("t",), (), counts[:, [column]], parent, Rounding(5)))
        for a in range(6):
            expected = reference.marginal(a)
            mean = float(sum(x * p for x, p in expected.items()))
            assert joined.posterior.mean[a, column] == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("hidden", [[], [1], [1, 2, 3]])
def test_a_count_that_nothing_tells_does_not_stop_the_others(hidden: list[int]) -> None:
    """The first column is not linked, and hidden in some children."""
    rng = np.random.default_rng(1)
    true = rng.integers(6, 20, (4, 1))
    true[0] = true[1:].sum()
    told = Rounding(5).publish(true, rng).astype(np.int32)
    counts = np.concatenate([np.full((4, 1), 10, dtype=np.int32), told], axis=1)
    counts[hidden, 0] = SUPPRESSED
    compiled = compile_sums(2, (), frozenset())
    windows, _ = WindowTable([Rounding(5)] * 2).of(counts)
    tight, second = tighten(compiled, windows), np.array([False, True])
    joined = link(
        EvidenceBlock(compiled, windows, tight), np.array([-1, 0, 0, 0]), second, effort=EFFORT._replace(sweeps=500)
    )
    assert joined.method.tolist() == [GIBBS] * 4
    reference = brute(family_system(("t",), (), told, [-1, 0, 0, 0], Rounding(5)))
    for a in range(4):
        expected = reference.marginal(a)
        assert joined.posterior.mean[a, 1] == pytest.approx(float(sum(x * p for x, p in expected.items())), abs=0.1)
        assert joined.posterior.probability[a, 1] == pytest.approx(float(max(expected.values())), abs=0.03)


@settings(max_examples=shapes.examples(25), deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_distributions_of_a_family_add_up(seed: int) -> None:
    """Some sums do not hold, some cells are hidden, there are two levels: a family is linked as a whole, or not at all."""
    judged, rng = 0, np.random.default_rng(seed)
    parent = [-1, *[0] * int(rng.integers(2, 7)), 1, 1]
    _, counts = tiny(seed, BY_SEX, CROSSED, parent, int(rng.choice([3, 5])), 14)
    base = 3 if (counts % 3 == 0).all() else 5
    counts[rng.random(counts.shape) < 0.1] = SUPPRESSED
    active = rng.random((len(parent), len(CROSSED))) > 0.2
    compiled = compile_sums(9, CROSSED, frozenset())
    windows, _ = WindowTable([Rounding(base)] * 9).of(counts)
    tight = tighten(compiled, windows, active)
    for keep in range(len(parent)):
        joined = link(
            EvidenceBlock(compiled, windows, tight, None, active), np.array(parent), np.ones(9, dtype=np.bool_), keep=keep
        )
        if not joined.posterior.possible[keep]:
            continue
        for column, (low, chances) in joined.kept.items():
            assert chances.sum() == pytest.approx(1.0)
            assert (chances >= 0).all()
            assert joined.tight.low[keep, column] <= low <= joined.tight.high[keep, column]
            assert chances.max() == pytest.approx(joined.posterior.probability[keep, column], abs=1e-9)
            judged += 1
    assert judged >= 9  # every cell of at least one area


def test_of_two_families_alike_it_is_the_own_one_that_counts() -> None:
    parent = np.array([-1, 0, 0, 1, 1])
    for seed in range(4):
        _, counts = tiny(seed, NAMES, PLAIN, parent.tolist(), 5, 12)
        turned = np.where(parent[::-1] >= 0, 4 - parent[::-1], -1)
        _, _, one = linked(PLAIN, counts, parent.tolist(), 5)
        _, _, other = linked(PLAIN, counts[::-1], turned.tolist(), 5)
        np.testing.assert_array_equal(one.posterior.mean, other.posterior.mean[::-1])


def test_an_area_in_two_families_is_sampled_in_the_smaller() -> None:
    parent = [-1, 0, 0, 0, 1, 1]
    _, counts = tiny(3, NAMES, PLAIN, parent, 5, 12)
    _, _, joined = linked(PLAIN, counts, parent, 5)
    assert joined.method.tolist() == [GIBBS] * 6
    assert joined.children.tolist() == [3, 2, 3, 3, 2, 2]
    assert joined.posterior.possible.all()


def test_columns_that_are_not_linked_stay_with_their_area() -> None:
    parent = np.array([-1, 0])
    counts = np.array([[30, 15, 15], [30, 10, 20]], dtype=np.int32)
    compiled = compile_sums(3, PLAIN, frozenset())
    windows, _ = WindowTable([Rounding(5)] * 3).of(counts)
    only_total = np.array([True, False, False])
    joined = link(EvidenceBlock(compiled, windows, tighten(compiled, windows)), parent, only_total)
    assert joined.posterior.mean[0, 0] == joined.posterior.mean[1, 0]
    assert joined.posterior.mode[0, 1] != joined.posterior.mode[1, 1]


def test_what_is_published_alike_counts_once() -> None:
    counts = np.array([[30, 15, 15], [30, 15, 15], [35, 15, 15], [35, -1, -1]], dtype=np.int32)
    counts[3, 1:] = SUPPRESSED
    parent = np.array([-1, 0, -1, 2])
    compiled = compile_sums(3, PLAIN, frozenset())
    windows, _ = WindowTable([Rounding(5)] * 3).of(counts)
    tight, every = tighten(compiled, windows), np.ones(3, dtype=np.bool_)
    once = link(EvidenceBlock(compiled, windows, tight), parent, every, alike=np.array([True, False, True, False])).posterior
    twice = link(EvidenceBlock(compiled, windows, tight), parent, every).posterior
    alone = posteriors(EvidenceBlock(compiled, windows, tight))
    np.testing.assert_allclose(once.probability[:2], alone.probability[:2])
    assert (twice.probability[:2] > alone.probability[:2] + 0.05).all()
    # What is hidden of one and shown of the other is known of both.
    np.testing.assert_allclose(once.probability[3], alone.probability[2])


def test_only_children_that_no_count_fits_are_taken_apart() -> None:
    """Windows with holes: bounds overlap, possible counts do not."""
    compiled = compile_sums(1, (), frozenset())
    weights = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    low = np.array([[10], [9]], dtype=np.int32)
    windows = Windows(low, low + 4, np.zeros((2, 1), dtype=np.int64), weights, np.ones(1, dtype=np.bool_))
    joined = link(
        EvidenceBlock(compiled, windows, tighten(compiled, windows)), np.array([-1, 0]), np.ones(1, dtype=np.bool_)
    )
    assert joined.method.tolist() == [OWN] * 2
    assert joined.posterior.possible.all()
    np.testing.assert_allclose(joined.posterior.mean[:, 0], [12, 11])
    assert [one.parent for one in joined.unlinked] == [0]
    assert "only child" in joined.unlinked[0].why


# --- bounds and proofs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [3, 5])
@pytest.mark.parametrize("parent", [[-1, 0], [-1, 0, 0], [-1, 0, 0, 0], [-1, 0, 0, 1, 1, 2]])
def test_bounds_are_nearly_those_of_all_sums_together(base: int, parent: list[int]) -> None:
    """Against CP-SAT on the whole family as one system: never tighter, hardly ever looser, and all that it proves is proved.

    Area by row by sex is no longer totally unimodular: single sums do not always see what all of them together do.
    """
    looser = cells = 0
    for seed in range(6):
        true, counts = tiny(50 + seed, BY_SEX, CROSSED, parent, base, 9)
        compiled = compile_sums(9, CROSSED, frozenset())
        windows, _ = WindowTable([Rounding(base)] * 9).of(counts)
        every = np.ones(9, dtype=np.bool_)
        bounds = linked_bounds(EvidenceBlock(compiled, windows, tighten(compiled, windows)), np.array(parent), every)
        assert not bounds.clashes
        system = family_system(BY_SEX, CROSSED, counts, parent, Rounding(base))
        expected = cpsat_bounds(system.equations, system.windows)
        assert expected is not None
        assert (bounds.tight.low <= true).all()
        assert (true <= bounds.tight.high).all()
        low, high = (np.array(side).reshape(counts.shape) for side in expected)
        assert (bounds.tight.low <= low).all()
        assert (high <= bounds.tight.high).all()
        looser += int((bounds.tight.low < low).sum() + (bounds.tight.high > high).sum())
        cells += low.size
        np.testing.assert_array_equal(bounds.tight.low == bounds.tight.high, low == high)
    assert looser <= 0.01 * cells


def one_cell(counts: Counts, area: int, column: int) -> Cell:
    return Cell(NAMES[column], int(counts[area, column]), Rounding(3))


def test_proofs_across_areas_are_checked() -> None:
    """At base 3 two children's rounded counts can give each other away; every certificate names both areas."""
    proved = 0
    for parent in ([-1, 0], [-1, 0, 0], [-1, 0, 1, 1]):
        for seed in range(30):
            true, counts = tiny(seed, NAMES, PLAIN, parent, 3, 9)
            compiled = compile_sums(3, PLAIN, frozenset())
            windows, _ = WindowTable([Rounding(3)] * 3).of(counts)
            every = np.ones(3, dtype=np.bool_)
            evidence_block = EvidenceBlock(compiled, windows, tighten(compiled, windows))
            bounds = linked_bounds(evidence_block, np.array(parent), every, proofs_only=True)
            names = [f"area {row}" for row in range(len(parent))]
            prover = Prover(evidence_block, bounds, every, partial(one_cell, counts), names)
            moved = bounds.moved & (bounds.tight.low == bounds.tight.high) & bounds.tight.feasible[:, np.newaxis]
            for area in np.flatnonzero(moved.any(axis=1)).tolist():
                columns = np.flatnonzero(moved[area])
                for column, system, proof in prover.prove(area, columns.tolist()):
                    assert proof.cell == f"area {area} · {NAMES[column]}"
                    assert proof.value == true[area, column]
                    assert check_proof(system, proof)
                    assert len({cell.name.split(" · ")[0] for cell in system.cells}) > 1
                    proved += 1
    assert proved > 10


def test_a_link_that_contradicts_is_dropped_and_spoils_nothing() -> None:
    parent = [-1, 0, 0, -1, 3, 3]
    _, counts = tiny(4, NAMES, PLAIN, parent, 3, 30)
    _, _, right = linked(PLAIN, counts, parent, 3)
    counts[3] += np.array([60, 30, 30], dtype=np.int32)  # this parent was misprinted
    _, _, joined = linked(PLAIN, counts, parent, 3)
    assert [clash.parent for clash in joined.clashes] == [3]
    assert joined.parent.tolist() == [-1, 0, 0, -1, -1, -1]
    assert joined.method.tolist() == [GIBBS] * 3 + [OWN] * 3
    np.testing.assert_array_equal(joined.posterior.probability[:3], right.posterior.probability[:3])
    assert joined.posterior.possible.all()


def test_a_contradiction_that_only_an_area_shows_drops_its_family() -> None:
    """Each count of the parent can be its child's; all together they cannot."""
    counts = np.array([[24, 15, 3], [21, 12, 9]], dtype=np.int32)
    compiled = compile_sums(3, PLAIN, frozenset())
    windows, _ = WindowTable([Rounding(5)] * 3).of(counts)
    windows.low[:] = [[22, 14, 4], [18, 12, 6]]
    windows.high[:] = [[24, 19, 7], [22, 14, 9]]
    tight = tighten(compiled, windows)
    assert tight.feasible.all()
    bounds = linked_bounds(EvidenceBlock(compiled, windows, tight), np.array([-1, 0]), np.ones(3, dtype=np.bool_))
    assert [clash.parent for clash in bounds.clashes] == [0]
    np.testing.assert_array_equal(bounds.tight.low, tight.low)


# --- who belongs to whom ----------------------------------------------------------------------------------------


def test_chains_of_only_children_are_one_unit() -> None:
    #        country  one CD  its CSD  two DAs; another CD that is its own DA
    families = find_families(np.array([-1, 0, 1, 2, 2, 0, 5]))
    assert families.unit.tolist() == [0, 2, 2, 3, 4, 6, 6]
    assert {at: rows.tolist() for at, rows in families.families.items()} == {0: [2, 6], 2: [3, 4]}
    assert families.height.tolist() == [0, 1, 0, 0, 0, 1, 0]


def test_families_with_too_many_children_are_not_linked_and_named() -> None:
    parent = np.array([-1, *[0] * 20, 1, 1])
    families = find_families(parent, most=12)
    assert families.large == (0,)
    assert list(families.families) == [1]
    (batch,) = components(families, 100)
    assert batch.tolist() == [1, 21, 22]


def test_batches_keep_families_together() -> None:
    parent = np.array([-1, 0, 0, -1, 3, 3, -1, 6, 6, -1])
    batches = components(find_families(parent), 4)
    assert [batch.tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_results_do_not_depend_on_where_areas_stand() -> None:
    parent = np.array([-1, 0, 0, -1, *[3] * 7, -1, 11, 12])
    true, counts = tiny(8, NAMES, PLAIN, parent.tolist(), 5, 20)
    order = np.random.default_rng(1).permutation(len(parent))
    back = np.argsort(order)
    moved = np.where(parent[order] >= 0, back[parent[order]], -1)
    _, _, one = linked(PLAIN, counts, parent.tolist(), 5)
    _, _, other = linked(PLAIN, counts[order], moved.tolist(), 5)
    assert set(one.method.tolist()) == {MERGED, GIBBS, LOOPY}
    for name in ("mode", "probability", "mean", "deviation"):
        np.testing.assert_array_equal(getattr(one.posterior, name)[order], getattr(other.posterior, name))
    _, _, few = linked(PLAIN, counts[:3], parent[:3].tolist(), 5)
    np.testing.assert_array_equal(few.posterior.mean, one.posterior.mean[:3])
    assert (one.tight.low <= true).all()


def test_parents_must_be_rows() -> None:
    counts = np.array([[10, 5, 5]], dtype=np.int32)
    with pytest.raises(InputError, match="the row of its parent"):
        linked(PLAIN, counts, [3], 5)


def test_a_family_of_which_too_much_is_hidden_is_not_linked_for_probabilities() -> None:
    counts = np.array([[300, 150, 150], [SUPPRESSED] * 3, [SUPPRESSED] * 3], dtype=np.int32)
    _, _, found = linked(PLAIN, counts, [-1, 0, 0], 5)
    assert found.method.tolist() == [OWN] * 3
    assert [one.parent for one in found.unlinked] == [0]
    assert "possible values" in found.unlinked[0].why
    assert found.tight.high[1, 0] == 304  # bounds are linked all the same


def test_one_person_adds_up_in_every_sum() -> None:
    for columns, equations in ((9, CROSSED), (7, ((0, (1, 2)), (0, (3, 4)), (3, (5, 6))))):
        moves = swap_moves(columns, equations)
        assert len(moves.first) > 3
        for first, last in zip(moves.first[:-1], moves.first[1:], strict=True):
            person = np.zeros(columns, dtype=np.int64)
            person[moves.cells[first:last]] = 1
            for total, parts in equations:
                assert person[total] == person[list(parts)].sum()


# --- whole profiles of ages -------------------------------------------------------------------------------------


LONG = shapes.examples(1) > 1
SOME = [(2, 3, 2), (4, 3, 1), (7, 3, 1), (2, 5, 1), (6, 5, 1)]
ALL = [(children, base, 4) for children in (2, 3, 4, 5, 7, 10) for base in (3, 5)]


@pytest.mark.parametrize(("children", "base", "families"), ALL if LONG else SOME)
def test_ages_by_sex_are_near_long_chains(children: int, base: int, families: int) -> None:
    """The short version; see `docs/linked-methods.md` for all sizes of families, and `make thorough`."""
    from bench.linked import accuracy

    errors = accuracy(children, base, families, longer=700 if LONG else 120)
    assert errors.mean < (0.02 if LONG else 0.025)  # the short chains err too
    assert errors.worst < 0.15
    assert errors.unlinked > 1.5 * errors.mean


@pytest.mark.parametrize(("children", "base", "families"), [(1, 5, 300), (1, 3, 100), (2, 3, 20), (7, 3, 12)])
def test_claims_about_linked_areas_are_as_often_right_as_they_say(children: int, base: int, families: int) -> None:
    from bench.linked import calibration

    measured = calibration(children, base, shapes.examples(families))
    assert measured.wrong == 0
    assert measured.linked > 1.1 * measured.alone
    assert abs(measured.right - measured.said) < 0.02 + 2 * (0.16 / measured.claims) ** 0.5


def test_messages_settle_within_a_few_rounds() -> None:
    """Totals lean on their parts; without that, they would take a hundred rounds to agree."""
    from bench.linked import cube, distances

    one = cube(6, 2, 5, seed=3)
    listed = CountWeights(one.block)
    families = {0: np.arange(1, 7), 7: np.arange(8, 14)}
    few, many = (exchange_messages(listed, families, one.linked, rounds)[0] for rounds in (ROUNDS, 60))
    apart = distances(few, many)
    assert apart.mean() < 0.003
    assert apart.max() < 0.05


def test_draws_are_drawn_towards_messages_as_far_as_chance_explains() -> None:
    rng = np.random.default_rng(6)
    cells, width = 400, 7
    cell, kind = np.repeat(np.arange(cells), width), np.repeat(np.arange(cells) % 2, width)
    true = np.exp(-((np.arange(width) - rng.uniform(2, 4, (cells, 1))) ** 2) / 4)
    true = (true / true.sum(axis=1, keepdims=True)).ravel()
    draws = normalised(cell, np.maximum(true * (1 + 0.3 * rng.standard_normal(true.size)), 0))
    error = 0.3 * true
    kinds = np.where(kind == 0, 0, -1)
    found, left = shrink(cell, kinds, draws, true, error)
    # Messages that are right take most of the error away; those of no kind are not asked.
    assert np.abs(found - true)[kind == 0].mean() < 0.3 * np.abs(draws - true)[kind == 0].mean()
    np.testing.assert_array_equal(found[kind == 1], draws[kind == 1])
    np.testing.assert_allclose(np.bincount(cell, found), 1)
    assert (left <= error).all()
    # Messages that are far off are not heeded, nor is one cell that is off where the others are not.
    wrong = true.reshape(cells, width)[:, ::-1].ravel()
    far, _ = shrink(cell, np.zeros_like(kind), draws, wrong, error)
    assert np.abs(far - draws).mean() < 0.25 * np.abs(wrong - draws).mean()
    one_off = true.copy()
    one_off[:width] = np.eye(width)[0]
    single, _ = shrink(cell, np.zeros_like(kind), draws, one_off, error)
    assert np.abs(single - draws)[:width].max() < 0.4
    # What is certain stays.
    sure, _ = shrink(cell, kind, draws, wrong, np.zeros_like(error))
    np.testing.assert_allclose(sure, draws)


def test_methods_say_how_exact_they_are() -> None:
    assert [method.code for method in METHODS] == [OWN, MERGED, GIBBS, LOOPY, CHAINS, LISTED, APART, FAMILY]
    assert METHODS[MERGED].mean == METHODS[MERGED].worst == 0
    assert all(method.mean < 0.02 and method.worst < 0.15 for method in METHODS)


def test_the_page_shows_errors_that_the_methods_admit() -> None:
    page = (Path(__file__).parents[1] / "docs" / "linked-methods.md").read_text(encoding="utf-8")
    rows = [
        line.strip("| ").split(" | ") for line in page.splitlines() if "| sampled | 0" in line or "| messages | 0" in line
    ]
    assert {(int(row[0]), int(row[1])) for row in rows} >= {(k, base) for k in (2, 3, 5, 10) for base in (3, 5)}
    for row in rows:
        (method,) = [one for one in METHODS if one.name == row[2]]
        assert round(float(row[3]), 3) <= method.mean
        assert round(float(row[4]), 2) <= method.worst
