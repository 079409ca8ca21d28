"""Areas within areas: against brute force on tiny families, long chains on larger ones, and simulated truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import shapes
from tests.test_batch_posterior import block
from unround.batch.compile import compile_layout
from unround.batch.posterior import samples
from unround.batch.tighten import tighten
from unround.batch.types import Layout, Posterior, Windows
from unround.batch.windows import windows_of
from unround.infer.bounds import Equations
from unround.infer.brute import Brute, brute
from unround.linked.engine import Linked, link
from unround.linked.kin import GIBBS, MERGED
from unround.linked.sampled import EFFORT
from unround.mechanisms import Rounding
from unround.release import Counts
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
) -> tuple[Layout, Windows, Linked]:
    columns = counts.shape[1]
    layout = compile_layout(columns, equations, frozenset())
    windows, misfits = windows_of(counts, [Rounding(base)] * columns)
    assert not misfits.any()
    tight = tighten(layout, windows)
    found = link(layout, windows, tight, np.array(parent), np.ones(columns, dtype=np.bool_), **more)  # type: ignore[arg-type]
    return layout, windows, found


def agrees(found: Posterior, reference: Brute, mean: float, chance: float) -> None:
    """Compare with all solutions: means, and the probability of the likeliest count."""
    areas, columns = found.mode.shape
    for a in range(areas):
        for c in range(columns):
            expected = reference.marginal(a * columns + c)
            assert found.mean[a, c] == pytest.approx(float(sum(x * p for x, p in expected.items())), abs=mean)
            assert found.probability[a, c] == pytest.approx(float(expected[int(found.mode[a, c])]), abs=chance)
            assert found.probability[a, c] == pytest.approx(float(max(expected.values())), abs=chance)


# --- drawing whole areas ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", {**shapes.ACYCLIC, **shapes.CROSSED})
@settings(max_examples=shapes.examples(8))
@given(data=st.data())
def test_every_state_is_drawn_as_often_as_it_is_likely(shape: str, data: st.DataObject) -> None:
    system, _ = data.draw({**shapes.ACYCLIC, **shapes.CROSSED}[shape])
    layout, windows, tight = block([system])
    if (tight.high >= 1000).any() or layout.unused:
        return
    found = brute(system)
    if found.count > 2000:
        return
    number = 4000
    drawn = samples(layout, windows, tight, number, seed=1)[:, 0]
    tally: dict[tuple[int, ...], int] = {}
    for state in drawn.tolist():
        tally[tuple(state)] = tally.get(tuple(state), 0) + 1
    chance = dict(zip(found.solutions, (float(w / found.mass) for w in found.weights), strict=True))
    assert set(tally) <= set(chance)
    # Pearson's chi-squared is near its degrees of freedom; rare states are put together.
    common = [state for state, p in chance.items() if p * number >= 5]
    rest = 1 - sum(chance[state] for state in common)
    observed = [tally.get(state, 0) for state in common]
    terms = [(n - chance[state] * number) ** 2 / (chance[state] * number) for n, state in zip(observed, common, strict=True)]
    if rest * number >= 5:
        terms.append((number - sum(observed) - rest * number) ** 2 / (rest * number))
    assert sum(terms) < len(terms) + 6 * (2 * len(terms)) ** 0.5 + 10


# --- tiny families against brute force --------------------------------------------------------------------------


@pytest.mark.parametrize("base", [3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_an_only_child_is_its_parent(base: int, seed: int) -> None:
    parent = [-1, 0, 1]
    _, counts = tiny(seed, BY_SEX, CROSSED, parent, base, 12)
    _, _, found = linked(CROSSED, counts, parent, base)
    assert found.method.tolist() == [MERGED] * 3
    agrees(found.posterior, brute(family_system(BY_SEX, CROSSED, counts, parent, Rounding(base))), 1e-9, 1e-9)


@pytest.mark.parametrize(("base", "names", "equations"), [(3, BY_SEX, CROSSED), (5, NAMES, PLAIN), (3, NAMES, PLAIN)])
@pytest.mark.parametrize("children", [2, 3])
def test_small_families_agree_with_brute_force(
    base: int, names: tuple[str, ...], equations: Equations, children: int
) -> None:
    for seed in range(2):
        parent = [-1, *[0] * children]
        if children == 3 and len(names) > 3:
            return  # too many solutions to list
        _, counts = tiny(10 * children + seed, names, equations, parent, base, 4)
        effort = EFFORT._replace(sweeps=800)
        _, _, found = linked(equations, counts, parent, base, effort=effort)
        assert found.method.tolist() == [GIBBS] * (children + 1)
        assert (found.rhat < 1.05).all()
        reference = brute(family_system(names, equations, counts, parent, Rounding(base)))
        agrees(found.posterior, reference, 0.05, 0.025)
