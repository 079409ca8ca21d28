"""Areas within areas whose tables have several axes: a family is a table with one more axis, and is answered as one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from bench.mixing import cube
from numpy.typing import NDArray

import unround
from tests.tables import cube_places, cube_release
from unround.bounds.tighten import tighten
from unround.engines import multiway_block
from unround.engines.chains import Effort
from unround.engines.enumeration import list_tables
from unround.engines.forest import posteriors
from unround.engines.linked import Linked, link
from unround.engines.linked_weights import CHAINS, FAMILY, MERGED, METHODS
from unround.engines.linked_weights import NOT_CONVERGED as DISAGREE
from unround.evidence.block import BY_CHAINS, UNSETTLED, BlockPosterior, Windows, WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms import Rounding
from unround.sums.compiled import CompiledSums, compile_sums
from unround.sums.forest import Equations
from unround.sums.multiway import multiway_tables

Ints = NDArray[np.int64]
BASE = 3


def sums_between(equations: Equations, columns: int, children: int) -> Equations:
    """Return the sums of a family: those of the parent, of each child, and those between them."""
    own = [
        (total + m * columns, tuple(part + m * columns for part in parts))
        for m in range(children + 1)
        for total, parts in equations
    ]
    between = [(c, tuple(c + m * columns for m in range(1, children + 1))) for c in range(columns)]
    return (*own, *between)


def true_areas(shape: tuple[int, ...], areas: int, mean: float, seed: int) -> Ints:
    equations, added = cube(shape)
    (table,) = multiway_tables(len(added), equations)
    assert table is not None
    rng = np.random.default_rng(seed)
    return np.asarray(rng.poisson(mean, (areas, table.leaves.size)) @ table.belongs().T.astype(np.int64))


def families_of(shape: tuple[int, ...], children: int, families: int, mean: float, seed: int = 1) -> tuple[Ints, Ints]:
    """Return true counts of parents, each followed by its children, and the parents' rows."""
    own = true_areas(shape, families * children, mean, seed).reshape(families, children, -1)
    true = np.concatenate([own.sum(axis=1, keepdims=True), own], axis=1).reshape(families * (children + 1), -1)
    heads = np.arange(families) * (children + 1)
    return true, np.stack([np.full(families, -1), *[heads] * children], axis=1).ravel()


def published(true: Ints, seed: int = 2) -> NDArray[np.int32]:
    return Rounding(BASE).publish(true, np.random.default_rng(seed)).astype(np.int32)


def linked_areas(
    compiled: CompiledSums, counts: NDArray[np.int32], parent: Ints, active: NDArray[np.bool_] | None = None, **options: int
) -> Linked:
    windows, _ = WindowTable([Rounding(BASE)] * counts.shape[1]).of(counts)
    tight = tighten(compiled, windows, active)
    linked = np.ones(counts.shape[1], dtype=np.bool_)
    linked[options.pop("without", [])] = False  # type: ignore[call-overload]
    return link(EvidenceBlock(compiled, windows, tight, active=active), parent, linked, **options)


def compiled_cube(shape: tuple[int, ...]) -> CompiledSums:
    equations, added = cube(shape)
    return compile_sums(len(added), equations, frozenset())


@pytest.mark.parametrize(("shape", "children"), [((2, 3), 2), ((3, 2, 2), 4)])
def test_a_family_is_the_table_that_its_sums_say_it_is(shape: tuple[int, ...], children: int) -> None:
    equations, added = cube(shape)
    columns = len(added)
    (own,) = multiway_tables(columns, equations)
    (whole,) = multiway_tables(columns * (children + 1), sums_between(equations, columns, children))
    assert own is not None
    assert whole is not None
    found = own.of_family(children, columns, len(equations))
    assert sorted(found.shape) == sorted(whole.shape) == sorted([*shape, children])
    np.testing.assert_array_equal(found.cells, whole.cells)
    np.testing.assert_array_equal(found.leaves, whole.leaves)
    np.testing.assert_array_equal(found.belongs(), whole.belongs())
    assert sorted(found.equations) == sorted(whole.equations)


def test_probabilities_of_a_family_are_those_of_all_its_tables() -> None:
    shape, children, families = (2, 2, 2), 2, 6
    compiled = compiled_cube(shape)
    columns = compiled.columns
    true, parent = families_of(shape, children, families, 0.8)
    counts = published(true)
    found = linked_areas(compiled, counts, parent)
    (table,) = compiled.multiway
    whole = table.of_family(children, columns, len(compiled.equations))
    windows, _ = WindowTable([Rounding(BASE)] * columns).of(counts)
    given = _given(windows, found, (families, (children + 1) * columns))
    listed = list_tables(whole, given, 20_000_000)
    assert listed.complete.all()
    wide = (found.tight.low < found.tight.high).reshape(families, -1)

    def errors(posterior: BlockPosterior) -> NDArray[np.float64]:
        """Return how far probabilities are from the exact ones of the same counts."""
        exact = listed.chances[given.place + posterior.mode.reshape(given.low.shape) - given.low]
        return np.abs(posterior.probability.reshape(exact.shape) - exact)[wide]

    off = errors(found.posterior)
    assert off.mean() < 0.012
    assert off.max() < 0.1  # by other random numbers: .03 to .08
    assert errors(posteriors(EvidenceBlock(compiled, windows, found.tight))).mean() > 4 * off.mean()
    assert (found.method == FAMILY).all()
    assert (found.children == children).all()
    assert (found.rhat < 1.1).all()


def _given(windows: Windows, found: Linked, shape: tuple[int, int]):  # type: ignore[no-untyped-def] # weights of a block
    from unround.engines.chain_kernel import CellWeights

    given = CellWeights.empty(found.tight.low.reshape(shape), found.tight.high.reshape(shape))
    start = (windows.start + found.tight.low - windows.low).reshape(shape)
    for place, width, at in zip(given.place.ravel(), (given.high - given.low + 1).ravel(), start.ravel(), strict=True):
        given.weights[place : place + width] = windows.weights[at : at + width]
    return given


def test_results_do_not_depend_on_where_areas_stand() -> None:
    compiled = compiled_cube((3, 3))
    true, parent = families_of((3, 3), 3, 3, 4.0)
    counts = published(true)
    found = linked_areas(compiled, counts, parent)
    order = np.random.default_rng(5).permutation(len(counts))
    place = np.argsort(order)
    turned = linked_areas(compiled, counts[order], np.where(parent[order] >= 0, place[parent[order]], -1))
    np.testing.assert_array_equal(found.posterior.probability[order], turned.posterior.probability)
    np.testing.assert_array_equal(found.method[order], turned.method)


def test_an_area_in_two_families_takes_its_probabilities_from_the_smaller() -> None:
    """A country of three districts, the first of which has two parts."""
    compiled = compiled_cube((3, 3))
    parts = true_areas((3, 3), 4, 2.0, 3)
    first = parts[:2].sum(axis=0)
    true = np.stack([parts.sum(axis=0), first, parts[2], parts[3], parts[0], parts[1]])
    parent = np.array([-1, 0, 0, 0, 1, 1])
    counts = published(true)
    found = linked_areas(compiled, counts, parent)
    assert found.children.tolist() == [3, 2, 3, 3, 2, 2]
    assert (found.method == FAMILY).all()
    # Bounds of the whole country hold in its parts, although those are sampled by themselves.
    assert (found.posterior.mode >= found.tight.low).all()
    assert (found.posterior.mode <= found.tight.high).all()


def test_an_only_child_is_the_same_area() -> None:
    compiled = compiled_cube((3, 3))
    true, parent = families_of((3, 3), 1, 4, 3.0)
    counts = published(true)
    found = linked_areas(compiled, counts, parent)
    assert set(found.method.tolist()) <= {FAMILY, MERGED}
    np.testing.assert_array_equal(found.posterior.probability[::2], found.posterior.probability[1::2])
    alone = linked_areas(compiled, counts, np.full(len(counts), -1))
    assert (alone.method == CHAINS).all()
    assert (found.posterior.probability >= 0.66).sum() > 1.5 * (alone.posterior.probability >= 0.66).sum()


def test_chains_that_disagree_leave_areas_to_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compiled_cube((3, 3))
    true, parent = families_of((3, 3), 2, 2, 6.0)
    counts = published(true)
    monkeypatch.setattr(multiway_block, "FAMILY_EFFORT", Effort(sweeps=50, rounds=0, error=0.0, rhat=1.0))
    monkeypatch.setattr(multiway_block, "VISITS", 1)
    found = linked_areas(compiled, counts, parent)
    assert [(one.parent, one.why) for one in found.unlinked] == [(0, DISAGREE), (3, DISAGREE)]
    assert (found.method == CHAINS).all()
    assert (found.posterior.method == BY_CHAINS).all()


def test_a_family_may_know_what_an_area_alone_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compiled_cube((3, 3))
    true, parent = families_of((3, 3), 2, 1, 6.0)
    monkeypatch.setattr(multiway_block, "EFFORT", Effort(sweeps=50, rounds=0, error=0.0, rhat=1.0))
    monkeypatch.setattr(multiway_block, "VISITS", 1)
    counts = published(true)
    alone = linked_areas(compiled, counts, np.full(3, -1))
    assert (alone.posterior.method == UNSETTLED).all()
    found = linked_areas(compiled, counts, parent)
    assert (found.posterior.method == BY_CHAINS).all()
    assert (found.posterior.probability > 0).all()


def test_families_that_chains_cannot_take_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compiled_cube((3, 3))
    true, parent = families_of((3, 3), 2, 1, 6.0)
    counts = published(true)
    active = np.ones((3, len(compiled.equations)), dtype=np.bool_)
    active[1, 0] = False
    assert [one.why for one in linked_areas(compiled, counts, parent, active).unlinked] == [multiway_block.SOME_SUMS]
    assert [one.why for one in linked_areas(compiled, counts, parent, without=3).unlinked] == [multiway_block.PARTLY]
    monkeypatch.setattr(multiway_block, "MOST_CELLS", 47)
    found = linked_areas(compiled, counts, parent)
    assert [one.why for one in found.unlinked] == [multiway_block.MANY.format(most=47)]
    assert (found.method == CHAINS).all()


def test_columns_beside_a_table_are_linked_as_ever() -> None:
    """Two more counts and their total, which form no table with the others."""
    equations, added = cube((3, 3))
    columns = len(added) + 3
    compiled = compile_sums(columns, (*equations, (columns - 3, (columns - 2, columns - 1))), frozenset())
    true, parent = families_of((3, 3), 2, 8, 3.0)
    beside = np.random.default_rng(8).poisson(4.0, (len(true), 2))
    for head in range(0, len(true), 3):
        beside[head] = beside[head + 1 : head + 3].sum(axis=0)
    counts = published(np.column_stack([true, beside.sum(axis=1), beside]))
    both = linked_areas(compiled, counts, parent)
    only = linked_areas(compile_sums(3, ((0, (1, 2)),), frozenset()), counts[:, -3:], parent)
    np.testing.assert_allclose(both.posterior.probability[:, -3:], only.posterior.probability, atol=0.15)
    np.testing.assert_allclose(both.posterior.mean[:, -3:], only.posterior.mean, atol=0.3)
    table = linked_areas(compiled_cube((3, 3)), counts[:, :-3], parent)
    np.testing.assert_allclose(both.posterior.probability[:, :-3], table.posterior.probability, atol=0.08)


def test_a_whole_audit_of_nested_areas(tmp_path: Path) -> None:
    shape, children, families = (3, 2, 2), 2, 12
    true, parent = families_of(shape, children, families, 3.0)
    counts = published(true)
    inside = pl.DataFrame(
        [{"child": f"a{a:02d}", "parent": f"a{above:02d}"} for a, above in enumerate(parent.tolist()) if above >= 0]
    )
    inside.write_csv(tmp_path / "areas.csv")
    release = cube_release(counts, shape, BASE)
    linked = unround.audit(release, tmp_path / "linked", nesting=tmp_path / "areas.csv")
    alone = unround.audit(release, tmp_path / "alone", nesting=tmp_path / "areas.csv", link=False)
    told = linked.summary["linked"]
    assert told["areas_by_method"] == {METHODS[FAMILY].name: len(counts)}
    assert not told["families_not_linked"]
    assert linked.summary["likely"] > 1.2 * alone.summary["likely"]
    assert told["claims_that_need_other_areas"]["likely"] > 0
    assert linked.summary["estimated"]["counts"] > 300
    findings = pl.read_parquet(tmp_path / "linked" / "findings.parquet").filter(pl.col("kind") == "likely")
    assert set(findings["method"]) == {METHODS[FAMILY].name}
    # Claims say what they are worth: the truth is known here.
    names = {f"a{a:02d}": a for a in range(len(counts))}
    at = {place: c for c, place in enumerate(cube_places(shape))}
    right = [
        true[names[one["area"]], at[one["x"], one["y"], one["z"]]] == one["value"] for one in findings.iter_rows(named=True)
    ]
    said = findings["probability"].to_numpy()
    assert abs(np.mean(right) - said.mean()) < 0.03 + 2 * (0.16 / len(right)) ** 0.5
    first = findings.row(0, named=True)
    shown = unround.explain(linked, first["area"], "/".join(first[n] for n in "xyz")).to_json()
    assert shown["probability"] == pytest.approx(first["probability"], abs=1e-6)
    assert any("tables of all of them are sampled together" in one for one in shown["other_areas"]["said"])
