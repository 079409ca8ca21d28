"""Audits of multi-way tables: every sum counts, and what is stated can be relied on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from bench.mixing import cube
from bench.multiway import areas_of, block_of, exactly
from numpy.typing import NDArray

import unround
from tests.tables import cube_release
from unround.audits import Auditor, Model
from unround.bounds.tighten import tighten
from unround.engines import enumeration, multiway_block
from unround.engines.chains import Effort
from unround.engines.forest import marginals, posteriors
from unround.engines.linked_weights import APART, CHAINS, LISTED, METHODS
from unround.evidence.block import BY_CHAINS, BY_LISTING, EXACT, UNSETTLED, WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms import Rounding
from unround.prior import PriorFit
from unround.prior.exposure import Hierarchy
from unround.release import NOT_AVAILABLE, Column
from unround.show.audit import tables_in_words
from unround.sums.compiled import compile_sums

SHORT = Effort(sweeps=400, rounds=0, error=np.inf, rhat=np.inf)


def published(shape: tuple[int, ...], areas: int, people: float, base: int) -> NDArray[np.int32]:
    equations, added = cube(shape)
    return areas_of(len(added), equations, areas, people, base)


def model_of(shape: tuple[int, ...], base: int) -> Model:
    equations, added = cube(shape)
    columns = tuple(Column(f"c{c}", (f"c{c}",), f"c{c}") for c in range(len(added)))
    return Model.build(columns, (Rounding(base),) * len(added), equations, ("layout",) * len(equations))


def test_sums_that_close_loops_are_left_out_no_more() -> None:
    equations, added = cube((4, 3))
    compiled = compile_sums(len(added), equations, frozenset())
    assert compiled.unused
    assert not compiled.left_out
    assert [table.shape for table in compiled.multiway] == [(4, 3)]
    loop = compile_sums(6, ((0, (1, 2)), (3, (1, 2)), (0, (4, 5))), frozenset())
    assert loop.left_out == loop.unused == (1,)  # no table: it stays as it was
    tree = compile_sums(3, ((0, (1, 2)),), frozenset())
    assert not tree.multiway


def test_the_prior_weighs_innermost_cells_and_nothing_else() -> None:
    equations, added = cube((3, 2, 2))
    hierarchy = Hierarchy.of(compile_sums(len(added), equations, frozenset()))
    assert hierarchy.leaves == tuple(np.flatnonzero(added == 0).tolist())
    assert not hierarchy.repeated
    assert not hierarchy.pairs
    assert not hierarchy.halves
    assert set(hierarchy.top) == {0}


@pytest.mark.parametrize(("shape", "base", "people"), [((3, 3), 3, 25), ((3, 3), 3, 60), ((2, 2, 2), 5, 120)])
def test_probabilities_are_those_of_all_tables(shape: tuple[int, ...], base: int, people: float) -> None:
    equations, added = cube(shape)
    block = block_of(len(added), equations, published(shape, 40, people, base), base, 12)
    found, distributions = marginals(block)
    assert np.isin(found.method, [BY_CHAINS, BY_LISTING]).all()
    truth = exactly(block)
    forest, _ = marginals(replace(block, compiled=_without_tables(block.compiled)))
    off, off_forest = [], []
    for a, c in np.argwhere(truth.high > truth.low).tolist():
        here = slice(truth.start[a, c], truth.start[a, c] + truth.high[a, c] - truth.low[a, c] + 1)
        exact, estimated = truth.chances[here], distributions.chances[here]
        assert found.probability[a, c] == pytest.approx(estimated.max())
        off.append(abs(found.probability[a, c] - exact[found.mode[a, c] - truth.low[a, c]]))
        off_forest.append(abs(forest.probability[a, c] - exact[forest.mode[a, c] - truth.low[a, c]]))
        assert found.error[a, c] < 0.03
    assert np.mean(off) < 0.012
    assert max(off) < 0.1
    assert np.mean(off) < 0.6 * np.mean(off_forest)


def _without_tables(compiled: object) -> object:
    from dataclasses import replace

    return replace(compiled, multiway=())  # type: ignore[type-var] # it is a dataclass


def test_an_area_is_answered_alike_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiway_block, "EFFORT", SHORT)
    monkeypatch.setattr(multiway_block, "AREAS", 3)
    equations, added = cube((3, 3))
    counts = published((3, 3), 7, 60, 3)
    compiled = compile_sums(len(added), equations, frozenset())
    whole = posteriors(EvidenceBlock(compiled, *_bounds(compiled, counts)))
    turned = posteriors(EvidenceBlock(compiled, *_bounds(compiled, counts[::-1].copy())))
    assert (whole.probability == turned.probability[::-1]).all()
    assert (whole.mode == turned.mode[::-1]).all()
    alone = posteriors(EvidenceBlock(compiled, *_bounds(compiled, counts[4:5])))
    assert (alone.probability[0] == whole.probability[4]).all()


def _bounds(compiled, counts):  # type: ignore[no-untyped-def] # a pair of what `posteriors` takes
    windows, _ = WindowTable([Rounding(3)] * counts.shape[1]).of(counts)
    return windows, tighten(compiled, windows)


def test_chains_that_disagree_leave_no_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = published((3, 3), 4, 60, 3)
    never = Effort(sweeps=50, rounds=0, error=0.0, rhat=1.0)
    model = model_of((3, 3), 3)
    windows, tight = _bounds(model.compiled, counts)
    exact = posteriors(EvidenceBlock(model.compiled, windows, tight))
    monkeypatch.setattr(multiway_block, "EFFORT", never)
    listed = posteriors(EvidenceBlock(model.compiled, windows, tight))
    assert (listed.method == BY_LISTING).any()  # few tables fit: enumeration is exact
    assert np.abs(listed.probability - exact.probability).max() < 0.08
    monkeypatch.setattr(enumeration, "FEW_VISITS", 1)
    monkeypatch.setattr(multiway_block, "VISITS", 1)
    without = posteriors(EvidenceBlock(model.compiled, windows, tight))
    assert (without.method == UNSETTLED).all()
    assert (without.probability[tight.low < tight.high] == 0).all()
    fit = PriorFit(counts.shape[1])
    fit.add(published((3, 3), 40, 60, 3))
    prior = fit.finish(model.compiled, model.mechanisms)
    inferred = Auditor(model, prior).infer(counts, np.zeros(4, dtype=np.bool_))
    assert (inferred.probabilities.methods == APART).all()
    assert inferred.probabilities.cut_off.all()
    assert not inferred.claims.of_kind(unround_likely()).any()


def unround_likely():  # type: ignore[no-untyped-def] # the kind of claim
    from unround.audits.claims import ClaimKind

    return ClaimKind.LIKELY


def test_tables_that_no_move_joins_have_exact_probabilities_or_none() -> None:
    from tests.test_multiway import two_tables_that_no_move_joins
    from unround.engines.chains import FROZEN, sample
    from unround.engines.enumeration import list_pinned, list_tables
    from unround.engines.multiway import TableAreas

    table, given = two_tables_that_no_move_joins()
    equations, _ = cube((5, 2, 4))
    areas = TableAreas(table, equations, given)
    ends = [sample(table, given, np.array([seed], dtype=np.uint64), Effort()).status[0] for seed in range(40)]
    areas.seeds = np.array([ends.index(FROZEN)], dtype=np.uint64)
    none, few = list_tables(table, given, 1), list_pinned(table, given)
    for first, visits in ((few, 1), (none, 500_000)):
        areas.answer(Effort(), first, visits)
        assert areas.method.tolist() == [BY_LISTING]
        np.testing.assert_allclose(areas.chances, list_tables(table, given, 500_000).chances)
    areas = TableAreas(table, equations, given)
    areas.seeds = np.array([ends.index(FROZEN)], dtype=np.uint64)
    areas.answer(Effort(), none, 1)  # too many tables, say: chains that never moved are not believed
    assert areas.method.tolist() == [UNSETTLED]
    # Nor would they be if the other table were the one; if it is not possible, they are.
    one, other = list_tables(table, given, 500_000, 2).best[0]
    always = np.zeros(given.weights.size)
    always[given.place[0] + one - given.low[0]] = 1.0
    assert areas._is_frozen(given, always)
    differ = int(np.flatnonzero(one != other)[0])
    given.weights[given.place[0, differ] + other[differ] - given.low[0, differ]] = 0.0
    assert not areas._is_frozen(given, always)


def test_missing_counts_and_sums_that_do_not_hold() -> None:
    counts = published((3, 2, 2), 3, 100, 3)
    counts[0, -1] = NOT_AVAILABLE  # one innermost count is missing: its table is answered all the same
    model = model_of((3, 2, 2), 3)
    windows, tight = _bounds(model.compiled, counts)
    active = np.ones((3, len(model.equations)), dtype=np.bool_)
    active[1, 2] = False
    posterior = posteriors(EvidenceBlock(model.compiled, windows, tight, None, active))
    assert posterior.method[1] == EXACT
    assert np.isin(posterior.method[[0, 2]], [BY_CHAINS, BY_LISTING]).all()
    assert posterior.probability[0, -1] > 0


def test_a_whole_audit(tmp_path: Path) -> None:
    shape, base = (3, 2, 2), 3
    counts = published(shape, 30, 80, base)
    audit = unround.audit(cube_release(counts, shape, base), tmp_path / "audit")
    summary = audit.summary
    assert summary["structure"]["sums_for_bounds_only"] == 0
    assert summary["sums_left_out_of_probabilities"] == 0
    assert [sorted(one["shape"]) for one in summary["structure"]["multiway_tables"]] == [[2, 2, 3]]
    assert summary["estimated"]["counts"] > 300
    assert 0 < summary["estimated"]["mean_error_in_points"] < 2.5
    methods = summary["linked"]["areas_by_method"]
    assert methods.keys() <= {METHODS[CHAINS].name, METHODS[LISTED].name}
    assert sum(methods.values()) == 30
    assert summary["areas_where_chains_disagree"] == 0
    assert "Markov chains" in tables_in_words(summary)[0]
    findings = pl.read_parquet(tmp_path / "audit" / "findings.parquet")
    assert set(findings["method"]) <= {METHODS[CHAINS].name, METHODS[LISTED].name}
    by_chains = (pl.col("kind") == "likely") & (pl.col("method") == METHODS[CHAINS].name)
    first = findings.filter(by_chains).row(0, named=True)
    shown = unround.explain(
        audit, first["area_id"] if "area_id" in first else first["area"], "/".join(first[n] for n in "xyz")
    )
    assert shown.to_json()["probability"] == pytest.approx(first["probability"], abs=1e-6)
    assert any("estimates by Markov chains" in one for one in shown.to_json()["assumptions"])
