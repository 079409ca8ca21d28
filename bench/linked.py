"""How exact linked posteriors are, and how often their claims are right: the tables of `docs/linked-methods.md`.

Simulated dissemination areas, ages by sex (78 counts), are put together in families of k, added up to a parent, and all of
them rounded, each count by itself. Run `python -m bench.linked` (some minutes) to print the tables; `make linked` writes
them into the page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray

from bench.row import Time
from unround.bounds.linked import linked_bounds
from unround.bounds.tighten import tighten
from unround.engines.forest import marginals, posteriors
from unround.engines.gibbs import EFFORT, sample_families, sample_with_retry
from unround.engines.linked import Linked, link
from unround.engines.linked_weights import GIBBS, LOOPY, METHODS, CountWeights, is_sampled
from unround.engines.loopy import exchange_messages
from unround.evidence.block import Distributions, WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms import Rounding
from unround.prior import PriorFit
from unround.simulation import schema, true_counts
from unround.sums.compiled import CompiledSums, compile_sums
from unround.sums.families import find_families

CHILDREN = (1, 2, 3, 4, 5, 7, 10)
BEGIN, END = "<!-- measured -->", "<!-- end -->"
"""What stands around the tables in the page."""

BASES = (5, 3)
THRESHOLD = 0.66
FITTED = 400
"""Children that the prior is fitted to at least, beside their parents."""
REFERENCE = EFFORT._replace(chains=4, settle=40, sweeps=700, swaps=2000)
"""The long chains that methods are compared with, and that do not heed messages: they are off by 0.003 or so themselves."""

NATIONAL = {1: 37, 2: 10, 3: 11, 4: 10, 5: 16, 6: 7, 8: 12}
SCALE, UNLINKED = 40, 42_600
"""A fortieth of the families of a simulated census of 61,029 areas, by their children; and the areas in larger families."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Cube:
    """Families of areas: for each the parent, then its children."""

    block: EvidenceBlock
    true: Ints
    parent: Ints

    @property
    def linked(self) -> NDArray[np.bool_]:
        """All columns are."""
        return np.ones(self.block.compiled.columns, dtype=np.bool_)


def age_layout() -> tuple[CompiledSums, list[tuple[int, int]]]:
    """Return the sums of ages by sex, and the row and sex of every column."""
    table = schema("age")
    rounded = np.array([row.mechanism != "exact" for row in table.rows])
    places = [(i, s) for i, s in np.argwhere(table.shown & rounded[:, None]).tolist()]
    at = {(table.rows[i].id, s): k for k, (i, s) in enumerate(places)}
    equations: list[tuple[int, tuple[int, ...]]] = [(k, (at[row, 1], at[row, 2])) for (row, s), k in at.items() if s == 0]
    for one in table.sums:
        equations += [
            (at[one.total, s], tuple(at[row, s] for row in one.parts))
            for s in range(3)
            if all((row, s) in at for row in (one.total, *one.parts))
        ]
    return compile_sums(len(places), tuple(equations), frozenset()), places


def cube(children: int, families: int, base: int, seed: int, *, fitted: bool = True) -> Cube:
    """Simulate families of areas, and publish them."""
    compiled, places = age_layout()
    ids, sexes = np.array(places).T
    need = max(families, -(-FITTED // children)) * children
    found = list[Ints]()
    for block in true_counts(max(200, 2 * need), seed, "age"):
        das = (block.regions["level"] == "DA").to_numpy() & ~block.hidden
        found.append(block.true[das][:, ids, sexes].astype(np.int64))
        if sum(map(len, found)) >= need:
            break
    own = np.concatenate(found)[:need].reshape(-1, children, compiled.columns)
    true = np.concatenate([own.sum(axis=1, keepdims=True), own], axis=1).reshape(-1, compiled.columns)
    head = np.arange(families) * (children + 1)
    parent = np.stack([np.full(families, -1), *[head] * children], axis=1).ravel()
    kept = families * (children + 1)
    how = Rounding(base)
    published = how.publish(true, np.random.default_rng([seed, children, base])).astype(np.int32)
    windows, _ = WindowTable([how] * compiled.columns).of(published[:kept])
    tight = tighten(compiled, windows)
    prior = None
    if fitted:
        fit = PriorFit(compiled.columns)
        fit.add(published)
        prior = fit.finish(compiled, [how] * compiled.columns).weights(published[:kept], tight.low, tight.high)
    return Cube(EvidenceBlock(compiled, windows, tight, prior), true[:kept], parent)


def linked_cube(one: Cube) -> Linked:
    """Link a cube by the method that it gets."""
    return link(one.block, one.parent, one.linked)


def distances(found: Distributions, other: Distributions) -> NDArray[np.float64]:
    """Return the total variation between the distributions of every cell, members × columns."""
    width = np.where(found.start >= 0, found.high.astype(np.int64) - found.low + 1, 0)
    first = found.start[width > 0]
    apart = np.zeros(width.shape)
    order = np.argsort(first)
    values = np.add.reduceat(np.abs(found.chances - other.chances), first[order]) / 2
    back = np.empty(len(order))
    back[order] = values
    apart[width > 0] = back
    return apart


@dataclass(frozen=True, slots=True, eq=False)
class Accuracy:
    """How far a method is from long chains, in total variation of cells; and the long chains from each other."""

    children: int
    base: int
    mean: float
    worst: float
    unlinked: float
    chains: float
    seconds: float
    method: str


def accuracy(
    children: int, base: int, families: int, seed: int = 5, loopy: bool | None = None, longer: int = REFERENCE.sweeps
) -> Accuracy:
    """Compare the method that families of this size get (or messages, if asked for) with chains so many sweeps long."""
    one = cube(children, families, base, seed)
    bounds = linked_bounds(one.block, one.parent, one.linked)
    found_families = find_families(bounds.parent, most=1000)
    block = replace(one.block, bounds=bounds.tight)
    listed = CountWeights(block)
    reference = sample_families(
        listed,
        found_families.families,
        one.linked,
        REFERENCE._replace(sweeps=longer),
        shrunk=False,
    )
    started = process_time()
    if loopy is None:
        loopy = not is_sampled(children, float(listed.width.mean()))
    if loopy:
        told, _ = exchange_messages(listed, found_families.families, one.linked)
        found = in_order(told, reference.rows)
    else:
        found = settled(one, listed, found_families.families)
    seconds = (process_time() - started) / families
    apart = distances(found, reference.chances)
    _, alone = marginals(block)
    without = distances(in_order(alone, reference.rows), reference.chances)
    wide = reference.chances.high > reference.chances.low
    return Accuracy(
        children,
        base,
        apart[wide].mean(),
        apart.max(),
        without[wide].mean(),
        float(reference.spread.max()),
        seconds,
        METHODS[LOOPY if loopy else GIBBS].name,
    )


def settled(one: Cube, listed: CountWeights, families: dict[int, Ints]) -> Distributions:
    """Sample families as `link` does: again where chains differ."""
    found: Distributions | None = None
    for drawn in sample_with_retry(listed, families, one.linked):
        if found is None:
            found, rows = drawn.chances, drawn.rows.tolist()
            continue
        for member, row in enumerate(drawn.rows.tolist()):
            to, start = found.start[rows.index(row)], drawn.chances.start[member]
            width = drawn.chances.high[member].astype(np.int64) - drawn.chances.low[member] + 1
            for column in np.flatnonzero(start >= 0).tolist():
                here = slice(start[column], start[column] + width[column])
                found.chances[to[column] : to[column] + width[column]] = drawn.chances.chances[here]
    assert found is not None
    return found


def in_order(found: Distributions, rows: Ints) -> Distributions:
    """Return distributions in another order of areas, packed."""
    low, high, start = found.low[rows], found.high[rows], found.start[rows]
    width = high.astype(np.int64) - low + 1
    new = (np.cumsum(width) - width.ravel()).reshape(width.shape)
    places = np.repeat(start.ravel() - new.ravel(), width.ravel()) + np.arange(int(width.sum()))
    return Distributions(low, high, new, found.chances[places])


@dataclass(frozen=True, slots=True)
class Calibration:
    """Claims of at least `THRESHOLD`: their share of all cells, and how often they are right against what they say."""

    children: int
    base: int
    alone: float
    linked: float
    right: float
    said: float
    claims: int
    proved: float
    wrong: int
    seconds: float


def calibration(children: int, base: int, families: int, seed: int = 9) -> Calibration:
    """Compare claims with the truth."""
    one = cube(children, families, base, seed)
    own = posteriors(one.block)
    started = process_time()
    found = linked_cube(one)
    seconds = (process_time() - started) / families
    pinned = found.tight.low == found.tight.high
    open_yet = ~pinned
    claimed = open_yet & (found.posterior.probability >= THRESHOLD)
    inside = (found.tight.low <= one.true) & (one.true <= found.tight.high)
    return Calibration(
        children,
        base,
        float((own.probability >= THRESHOLD).mean()),
        float((found.posterior.probability >= THRESHOLD).mean()),
        float((found.posterior.mode == one.true)[claimed].mean()),
        float(found.posterior.probability[claimed].mean()),
        int(claimed.sum()),
        float(pinned.mean()),
        int((~inside).sum()),
        seconds,
    )


def rows() -> Iterator[Time]:
    """Measure what linking costs in processor time, in a country with families as the simulated census has them."""
    _warm()
    theirs = ours = 0.0
    for children, families in NATIONAL.items():
        one = cube(children, families, 5, seed=2)
        started = process_time()
        posteriors(one.block)
        between = process_time()
        linked_cube(one)
        # Areas in larger families cost the same, linked or not: only their bounds are linked.
        theirs, ours = theirs + between - started, ours + process_time() - between
    own = (UNLINKED / 61_029) * theirs / sum((1 + k) * n for k, n in NATIONAL.items())
    each = sum((1 + k) * n for k, n in NATIONAL.items()) * SCALE / 61_029
    job = "linked posteriors of ages by sex, 61,029 areas, an area"
    per = sum((1 + k) * n for k, n in NATIONAL.items())
    yield Time(job, [ours / per * each + own], aim=0.003)


def _warm() -> None:
    """Have everything compiled: that is done once, and then kept on disk."""
    for children in (2, 6):
        linked_cube(cube(children, 1, 5, 1))


def lines() -> Iterator[str]:
    """Return both tables as Markdown, a line at a time."""
    _warm()
    yield "| children | base | method | mean distance | worst cell | if not linked | seconds a family |"
    yield "|---:|---:|---|---:|---:|---:|---:|"
    for base in BASES:
        for children in CHILDREN[1:]:
            a = accuracy(children, base, 12 if children < 5 else 6)
            yield f"| {children} | {base} | {a.method} | {a.mean:.4f} | {a.worst:.3f} | {a.unlinked:.3f} | {a.seconds:.2f} |"
    yield ""
    yield "| children | base | likely, alone | likely, linked | claims | say | right | proved | wrong bounds |"
    yield "|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for base in BASES:
        for children in CHILDREN:
            # At base 5 fewer cells are claimed, and those of an area hang together: it takes more families to tell.
            families = 1000 if children == 1 else (100 if children > 5 else 200) * (3 if base == 5 else 1)
            c = calibration(children, base, families)
            yield (
                f"| {children} | {base} | {c.alone:.2%} | {c.linked:.2%} | {c.claims:,} | {c.said:.1%} | {c.right:.1%} "
                f"| {c.proved:.2%} | {c.wrong} |"
            )


def main() -> None:
    """Print the tables; with --write, put them into the page."""
    shown = []
    for line in lines():
        print(line, flush=True)
        shown.append(line)
    if "--write" in sys.argv[1:]:
        page = Path(__file__).parents[1] / "docs" / "linked-methods.md"
        before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        _, _, after = rest.partition(END)
        page.write_text(before + BEGIN + "\n\n" + "\n".join(shown) + "\n\n" + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
