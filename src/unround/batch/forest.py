"""A plan as tables of integers, for compiled code: few arrays, so that there is little to compile."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.batch.types import CompiledSums

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
