"""The sums of a whole release, compiled: like the plan of one system, but for any sums, with loops or without.

Sums that would close a loop are left out of the forest that carries probabilities; bounds and proofs use all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.errors import InternalError
from unround.sums.forest import Crossing, Drawing, Equations, Plan, crossings_of, draw, rooted
from unround.sums.multiway import MultiwayTable, multiway_tables
from unround.system import first_of, join

MOST_IN_AUDITS = 800
"""Cells of a multi-way table beyond which an audit of many areas would take too long."""


@dataclass(frozen=True, slots=True, eq=False)
class CompiledSums:
    """The structure that all areas share, compiled once.

    - `columns`: How many cells an area has.
    - `equations`: Every sum, as (total, parts) in positions of columns. Bounds use all of them.
    - `plan`: How messages travel: a forest of those sums that carry probabilities.
    - `unused`: The sums, as positions in `equations`, that would close a loop in the forest: they are used for bounds and
      proofs only. Under a flat prior, a posterior that uses fewer sums is still right, only less sharp.
    - `links_of`: For every link of the plan, the equations that it stands for: one, or up to three parallel ones.
    - `multiway`: Connected cells, with sums among those unused, that are a multi-way table: their probabilities come
      from all their sums, by chains.
    """

    columns: int
    equations: Equations
    plan: Plan
    unused: tuple[int, ...]
    links_of: tuple[tuple[int, ...], ...]
    multiway: tuple[MultiwayTable, ...] = ()

    @property
    def left_out(self) -> tuple[int, ...]:
        """The sums that no probability uses: those unused in the forest, and in no multi-way table."""
        inside = {e for table in self.multiway for e in table.equations}
        return tuple(e for e in self.unused if e not in inside)


def compile_sums(
    columns: int, equations: Equations, fixed: frozenset[int], splits: tuple[Crossing, ...] = ()
) -> CompiledSums:
    """Compile the structure that all areas share.

    Notes
    -----
    Splits (total = men + women) that run in parallel through other sums become nodes first; then sums become links, in this
    order while they close no loop: parallel ones that link pairs, those with exact totals, those with few parts.
    A sum that only repeats another with its parts in a different order is not used twice.

    Examples
    --------
    >>> loop = ((0, (1, 2)), (3, (1, 2)), (0, (4, 5)))
    >>> compiled = compile_sums(6, loop, frozenset())
    >>> compiled.links_of, compiled.unused
    (((0,), (2,)), (1,))
    """
    compiled = _forest(draw(columns, equations, fixed, ()), columns, equations, fixed)
    multiway: tuple[MultiwayTable, ...] = ()
    crossings: tuple[Crossing, ...] = ()
    if compiled.unused:
        crossings = crossings_of(equations)
        if crossings:
            compiled = _forest(draw(columns, equations, fixed, crossings), columns, equations, fixed)
        multiway = _multiway(compiled)
    more = _without_overlap(splits, crossings, compiled, fixed)
    if more:
        # Three nodes that one link joins become one node: that closes no loop.
        compiled = _forest(draw(columns, equations, fixed, (*crossings, *more)), columns, equations, fixed)
    return replace(compiled, multiway=multiway)


def _multiway(compiled: CompiledSums) -> tuple[MultiwayTable, ...]:
    """Return the multi-way tables that have sums which the forest leaves out."""
    unused = set(compiled.unused)
    return tuple(
        table
        for table in multiway_tables(compiled.columns, compiled.equations)
        if table is not None
        and table.axes > 1
        and table.cells.size <= MOST_IN_AUDITS
        and not unused.isdisjoint(table.equations)
    )


def _without_overlap(
    splits: tuple[Crossing, ...], crossings: tuple[Crossing, ...], compiled: CompiledSums, fixed: frozenset[int]
) -> list[Crossing]:
    """Return the splits that can become nodes in addition to the crossings."""
    taken = {cell for crossing in crossings for cell in crossing} | fixed
    linked = {e for equations in compiled.links_of if len(equations) == 1 for e in equations}
    used = {(total, frozenset(parts)) for e, (total, parts) in enumerate(compiled.equations) if e in linked}
    kept = []
    for total, first, second in splits:
        if taken.isdisjoint((total, first, second)) and (total, frozenset((first, second))) in used:
            kept.append((total, first, second))
            taken |= {total, first, second}
    return kept


def _forest(drawing: Drawing, columns: int, equations: Equations, fixed: frozenset[int]) -> CompiledSums:
    """Keep links that close no loop, in order of preference (Kruskal's algorithm)."""

    def preference(i: int) -> tuple[bool, bool, int, int]:
        link = drawing.links[i]
        total = equations[link.equations[0]][0]
        return len(link.equations) == 1, total not in fixed, len(link.ends), i

    first = list(range(len(drawing.nodes)))
    keep: list[int] = []
    unused = list(drawing.repeats)
    for i in sorted(range(len(drawing.links)), key=preference):
        link = drawing.links[i]
        ends = [end.node for end in link.ends]
        if len({first_of(first, node) for node in ends}) == len(ends):  # no two of them are connected already
            join(first, ends)
            keep.append(i)
        else:
            unused += link.equations
    hung = rooted(drawing.nodes, [drawing.links[i] for i in sorted(keep)], drawing.home)
    if hung is None:
        raise InternalError("links that were chosen to form no loop form one.")
    plan, links_of = hung
    return CompiledSums(columns, equations, plan, tuple(sorted(unused)), links_of)


Table = NDArray[np.int64]

CELL, SPLIT, COPY, BELOW, BELOW_END = 0, 3, 4, 5, 6
"""The columns of `Forest.nodes`: three cells (-1 where there is only one), the equation that makes the total the sum of its
parts (-1: there is none), whether it is a copy, and the links below it, from the first to the one after the last."""

PARENT, PARENT_LAYER, END, SUM = 0, 1, 2, 3
"""The columns of `Forest.links`: the parent and its layer, the first end and the first sum. A last row ends both lists."""

CHILD, LAYER, SIGN = 0, 1, 2
"""The columns of `Forest.ends`: node, layer and sign."""

EQUATION, SUM_LAYER = 0, 1
"""The columns of `Forest.sums`: the equations that a link stands for, each with the layer that it adds up."""

HOME, HOME_LAYER = 0, 1
"""The columns of `Forest.homes`: for every cell its node and its layer there."""


class Forest(NamedTuple):
    """A plan as tables of nodes, links, their ends, their sums, and cells; the columns are named above."""

    nodes: Table
    links: Table
    ends: Table
    sums: Table
    homes: Table


@lru_cache(maxsize=8)
def forest_of(compiled: CompiledSums) -> Forest:
    """Write the plan of compiled sums as tables, once."""
    plan, equations = compiled.plan, compiled.equations
    splits = {(total, frozenset(parts)): e for e, (total, parts) in reversed(list(enumerate(equations)))}
    nodes, links, ends, sums = list[list[int]](), list[list[int]](), list[list[int]](), list[list[int]]()
    for node, below in zip(plan.nodes, plan.below, strict=True):
        split = splits.get((node.cells[0], frozenset(node.cells[1:])), -1)
        # The links below a node follow each other: the plan hangs them all on it at once.
        first = min(below, default=0)
        nodes.append([*[*node.cells, -1, -1][:3], split, node.copy, first, first + len(below)])
    for link, stands_for in zip(plan.links, compiled.links_of, strict=True):
        links.append([link.parent.node, link.parent.layer, len(ends), len(sums)])
        ends += [[end.node, end.layer, end.sign] for end in link.children]
        sums += [[e, plan.home[equations[e][0]][1]] for e in stands_for]
    links.append([-1, -1, len(ends), len(sums)])
    return Forest(
        _table(nodes, 7), _table(links, 4), _table(ends, 3), _table(sums, 2), _table([list(home) for home in plan.home], 2)
    )


def _table(rows: list[list[int]], columns: int) -> Table:
    return np.array(rows, dtype=np.int64).reshape(-1, columns)
