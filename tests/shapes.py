"""A catalogue of named shapes of systems, as Hypothesis strategies. Every engine is tested on all of them.

Each strategy draws true counts first and publishes them, so that the truth is known and the system has a solution;
`any_numbers` draws published values freely, so that many systems have none.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from unround.mechanisms import Exact, Mechanism, Nearest, Rounding, Unpublished, Within, mechanism
from unround.system import Cell, Sum, System

Known = tuple[System, tuple[int, ...]]
"""A system, and the true counts that it was published from."""

Example = TypeVar("Example")

SEEDS = st.integers(0, 2**32 - 1)


def examples(number: int) -> int:
    """Return how many examples to draw: the number given, or a multiple of it under `make thorough`."""
    return number * int(os.environ.get("UNROUND_THOROUGH", "1"))


def judge(strategy: st.SearchStrategy[Example], number: int, check: Callable[[Example], object]) -> Counter[object]:
    """Check examples until so many have been judged; fail if there are fewer.

    `check` leaves out an example that it cannot judge by Hypothesis' `assume`, which does not count. It may return what
    kind of example it has judged; how many there were of each is what comes back.
    """
    judged = Counter[object]()

    @settings(max_examples=examples(number))
    @given(strategy)
    def judge_one(example: Example) -> None:
        judged[check(example)] += 1

    judge_one()
    assert judged.total() >= examples(number), f"only {judged.total()} of {examples(number)} examples were judged"
    return judged


def published(name: str, true: int, how: Mechanism, rng: np.random.Generator) -> Cell:
    if isinstance(how, Unpublished):
        return Cell(name, None, how)
    return Cell(name, int(how.publish(np.array([true]), rng)[0]), how)


def build(leaves: dict[str, int], sums: list[Sum], how: Callable[[str], Mechanism], seed: int) -> Known:
    """Publish a system: leaves have the given true counts, totals follow from the sums, which come children first."""
    true = dict(leaves)
    for sum_ in sums:
        added = sum(true[part] for part in sum_.parts)
        assert true.setdefault(sum_.total, added) == added
    rng = np.random.default_rng(seed)
    cells = [published(name, count, how(name), rng) for name, count in true.items()]
    return System(cells, sums), tuple(true.values())


def counts(least: int = 0, most: int = 30) -> st.SearchStrategy[int]:
    return st.integers(least, most)


HOW = st.sampled_from(
    [
        Rounding(5),
        Rounding(3),
        Rounding(2),
        Nearest(5),
        Within(2),
        mechanism("sample:2"),
        mechanism("graduated"),
    ]
)


@st.composite
def single_sum(draw: st.DrawFn, total: Mechanism | None = None, most: int = 30) -> Known:
    how = draw(HOW) if total is not Exact() else Rounding(5)
    n = draw(st.integers(1, 4 if getattr(how, "base", 5) <= 3 else 3))
    leaves = {f"part{i}": draw(counts(0, most)) for i in range(n)}
    sums = [Sum("total", tuple(leaves))]
    return build(leaves, sums, lambda name: total if name == "total" and total is not None else how, draw(SEEDS))


def exact_total() -> st.SearchStrategy[Known]:
    return single_sum(Exact())


def unpublished_total() -> st.SearchStrategy[Known]:
    return single_sum(Unpublished())


def zeros() -> st.SearchStrategy[Known]:
    return single_sum(most=3)


@st.composite
def unpublished_part(draw: st.DrawFn) -> Known:
    leaves = {"a": draw(counts()), "b": draw(counts()), "c": draw(counts())}
    hidden = draw(st.sampled_from(["a", "b", "c"]))
    how = draw(HOW)
    return build(
        leaves,
        [Sum("t", ("a", "b", "c"))],
        lambda name: Unpublished() if name == hidden else how,
        draw(SEEDS),
    )


@st.composite
def two_partitions(draw: st.DrawFn) -> Known:
    """One total, divided in two ways."""
    a, b = draw(counts()), draw(counts())
    c = draw(st.integers(0, a + b))
    leaves = {"a": a, "b": b, "c": c, "d": a + b - c}
    how = draw(HOW)
    return build(leaves, [Sum("t", ("a", "b")), Sum("t", ("c", "d"))], lambda _: how, draw(SEEDS))


@st.composite
def deep_tree(draw: st.DrawFn) -> Known:
    leaves = {name: draw(counts(0, 12)) for name in ("a1", "a2", "b", "c")}
    sums = [Sum("a", ("a1", "a2")), Sum("t", ("a", "b")), Sum("all", ("t", "c"))]
    how = draw(st.sampled_from([Rounding(3), Rounding(2), Nearest(3), Rounding(5)]))
    top: Mechanism = draw(st.sampled_from([Exact(), how]))
    return build(leaves, sums, lambda name: top if name == "all" else how, draw(SEEDS))


@st.composite
def chain(draw: st.DrawFn) -> Known:
    """Sums of one part: the same count several times over."""
    leaves = {"a": draw(counts())}
    sums = [Sum("b", ("a",)), Sum("c", ("b",)), Sum("d", ("b",))]
    hows = {name: draw(HOW) for name in "abcd"}
    return build(leaves, sums, hows.__getitem__, draw(SEEDS))


@st.composite
def shared_part(draw: st.DrawFn) -> Known:
    """A cell that is a part of two totals: the tree hangs from a part."""
    leaves = {name: draw(counts(0, 12)) for name in ("a", "b", "c")}
    how = draw(st.sampled_from([Rounding(3), Rounding(5), Within(1)]))
    return build(leaves, [Sum("s", ("a", "b")), Sum("t", ("b", "c"))], lambda _: how, draw(SEEDS))


@st.composite
def tree_by_sex(draw: st.DrawFn, base: int = 2) -> Known:
    """Two levels, each cell divided into men and women."""
    split = draw(st.sampled_from([("x", "y"), ("x", "y", "z")]))
    leaves = {f"{node}_{sex}": draw(counts(0, 9)) for node in split for sex in "mw"}
    sums = [Sum(node, (f"{node}_m", f"{node}_w")) for node in split]
    sums += [Sum(f"t_{sex}", tuple(f"{node}_{sex}" for node in split)) for sex in "mw"]
    sums += [Sum("t", ("t_m", "t_w")), Sum("t", split)]
    keep = draw(st.sampled_from([sums, sums[:-1]]))  # the total's own sum is implied by the other two
    top: Mechanism = draw(st.sampled_from([Exact(), Rounding(base), Rounding(base)]))
    return build(leaves, keep, lambda name: top if name == "t" else Rounding(base), draw(SEEDS))


@st.composite
def crossed_with_branches(draw: st.DrawFn) -> Known:
    """A table by sex, of which single layers are divided further without regard to sex."""
    leaves = {f"{node}_{sex}": draw(counts(0, 6)) for node in "xy" for sex in "mw"}
    sums = [Sum(node, (f"{node}_m", f"{node}_w")) for node in "xy"]
    sums += [Sum(f"t_{sex}", (f"x_{sex}", f"y_{sex}")) for sex in "mw"]
    sums += [Sum("t", ("t_m", "t_w")), Sum("t", ("x", "y"))]
    branch = draw(st.sampled_from(["x", "x_m", "t", "y_w"]))
    known, true = build(leaves, sums, lambda _: Rounding(2), draw(SEEDS))
    whole = true[known.index[branch]]
    first = draw(st.integers(0, whole))
    leaves |= {"u": first, "v": whole - first}
    return build(leaves, [*sums, Sum(branch, ("u", "v"))], lambda _: Rounding(2), draw(SEEDS))


@st.composite
def overlapping(draw: st.DrawFn) -> Known:
    """Two totals that share two parts: a loop that one cell cuts open."""
    leaves = {name: draw(counts(0, 9)) for name in ("young", "mid1", "mid2", "old")}
    sums = [
        Sum("mid", ("mid1", "mid2")),
        Sum("adult", ("mid", "old")),
        Sum("all", ("young", "mid", "old")),
    ]
    how = draw(st.sampled_from([Rounding(2), Rounding(3), Nearest(3)]))
    top: Mechanism = draw(st.sampled_from([Exact(), how]))
    return build(leaves, sums, lambda name: top if name == "all" else how, draw(SEEDS))


@st.composite
def cyclic(draw: st.DrawFn) -> Known:
    """A table of three rows and three columns: no split in two makes it a tree."""
    leaves = {f"r{i}c{j}": draw(counts(0, 5)) for i in range(3) for j in range(3)}
    sums = [Sum(f"r{i}", tuple(f"r{i}c{j}" for j in range(3))) for i in range(3)]
    sums += [Sum(f"c{j}", tuple(f"r{i}c{j}" for i in range(3))) for j in range(3)]
    sums += [Sum("t", ("r0", "r1", "r2")), Sum("t", ("c0", "c1", "c2"))]
    exact = draw(st.sets(st.sampled_from(sorted(leaves)), min_size=4, max_size=7))
    return build(leaves, sums, lambda name: Exact() if name in exact else Rounding(2), draw(SEEDS))


@st.composite
def any_numbers(draw: st.DrawFn) -> System:
    """Published values drawn freely, mostly without a solution."""
    multiples = st.integers(0, 6).map(lambda k: 5 * k)
    cells = [Cell(name, draw(multiples), Rounding(5)) for name in ("t", "a", "b", "c", "d")]
    if draw(st.booleans()):
        cells[0] = Cell("t", draw(st.integers(0, 40)), Exact())
    return System(cells, [Sum("t", ("a", "b")), Sum("b", ("c", "d"))])


ACYCLIC: dict[str, st.SearchStrategy[Known]] = {
    "exact total": exact_total(),
    "rounded total": single_sum(),
    "unpublished total": unpublished_total(),
    "unpublished part": unpublished_part(),
    "zeros": zeros(),
    "two partitions": two_partitions(),
    "deep tree": deep_tree(),
    "chain": chain(),
    "shared part": shared_part(),
}
CROSSED: dict[str, st.SearchStrategy[Known]] = {
    "tree by sex": tree_by_sex(),
    "crossed with branches": crossed_with_branches(),
}
ALL = {**ACYCLIC, **CROSSED, "overlapping": overlapping(), "cyclic": cyclic()}
