"""The characteristic tree of the simulated profile: rows, their kinds, and the sums between them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.simulation.profile import (
    BLOCKS,
    EXACT,
    FULL_DATA,
    INCOME_FIRST,
    INCOME_LAST,
    ROUNDED,
    ROWS,
    SAMPLE,
    SAMPLE_DATA,
    ProfileBlock,
)

KINDS = {"": "count", "s": "count", "m": "median", "a": "average", "n": "average", "p": "percent"}
SEXES = ("total", "men", "women")
SAME = {97: 51, 110: 51, 92: 86}
"""Rows inside blocks that count the same: persons alone are households, single parents are families."""


@dataclass(frozen=True, slots=True)
class Row:
    """One characteristic of the profile.

    `kind` is count, percent, average or median; `block` the ID of the first row of its block and `rule` how
    that block counts; `mechanism` says how a count is published; `subset` marks a count that is no part of
    a partition.
    """

    id: int
    name: str
    depth: int
    kind: str
    block: int
    rule: str
    mechanism: str
    has_sex: bool
    subset: bool = False

    @property
    def is_count(self) -> bool:
        """Whether it counts people, families or households."""
        return self.kind == "count"

    @property
    def is_income(self) -> bool:
        """Whether it is hidden where fewer than 250 people or 40 households live."""
        return INCOME_FIRST <= self.id <= INCOME_LAST


@dataclass(frozen=True, slots=True)
class RowSum:
    """A total and the rows that partition it; `why` is "layout" (indentation) or "universe" (same people).

    It holds for each sex that all of its rows show.
    """

    total: int
    parts: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class BlockPlan:
    """A block compiled for one choice of rows: where its rows and leaves are.

    - `block`: Its definition.
    - `number`: Its place among all blocks; random streams are keyed by it, so they do not depend on the rows chosen.
    - `start`, `stop`: Its rows in the schema.
    - `nodes`: The rows, counted from `start`, of the ordinary counts.
    - `low`, `high`: The leaves under each node are `low` to `high` (exclusive), in the order of the rows.
    - `leaves`: How many leaves there are.
    - `subsets`: Counts outside partitions, counted from `start`.
    """

    block: ProfileBlock
    number: int
    start: int
    stop: int
    nodes: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    leaves: int
    subsets: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The rows of a simulated profile and what is true of them.

    - `rows`: In the order of the file.
    - `sums`: Every partition that holds in truth, by characteristic ID.
    - `plans`: The blocks, for those who count people.
    """

    rows: tuple[Row, ...]
    sums: tuple[RowSum, ...]
    plans: tuple[BlockPlan, ...]

    @property
    def ids(self) -> NDArray[np.int32]:
        """The characteristic IDs."""
        return np.array([row.id for row in self.rows], dtype=np.int32)

    @property
    def index(self) -> dict[int, int]:
        """Where each characteristic ID is among the rows."""
        return {row.id: at for at, row in enumerate(self.rows)}

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Which cells (rows × sexes) hold a count: no men and women for households, no count for a median."""
        sex = np.array([[True, row.has_sex, row.has_sex] for row in self.rows])
        return np.asarray(sex & np.array([row.is_count for row in self.rows])[:, None])

    def groups(self, parts: int) -> list[RowSum]:
        """Return the partitions by layout with so many parts, as the paper's groups of 3+1 and 4+1."""
        return [s for s in self.sums if s.why == "layout" and len(s.parts) == parts]


def expand(shape: str) -> list[tuple[int, str]]:
    """Return the depth and the letter of each row of a shape.

    Examples
    --------
    >>> expand("0(12m)2")
    [(0, ''), (1, ''), (2, 'm'), (1, ''), (2, 'm')]
    """
    flat = re.sub(r"\(([^)]*)\)(\d+)", lambda found: found[1] * int(found[2]), shape)
    return [(int(depth), letter) for depth, letter in re.findall(r"(\d)([a-z]?)", flat)]


def _parents(depths: list[int]) -> list[int]:
    """Return for each row the last row before it that is one level up, or -1."""
    parents, path = [], list[int]()
    for at, depth in enumerate(depths):
        del path[depth:]
        parents.append(path[-1] if path else -1)
        path += [at] * (depth + 1 - len(path))  # a block may start below level 0
    return parents


def _names(block: ProfileBlock, shape: list[tuple[int, str]]) -> list[str]:
    """Return the names of a block's rows: its labels, or its title and numbered entries."""
    if block.labels:
        return block.labels.split("|")
    source = FULL_DATA if block.mechanism == ROUNDED else SAMPLE_DATA
    names, number = [f"Total - {block.title} - {source}"], list[int]()
    for depth, letter in shape[1:]:
        level = depth - shape[0][0]
        number = number[: level - 1] + [0] * (level - len(number)) if len(number) < level else number[:level]
        number[-1] += 1
        path = ".".join(map(str, number))
        name = f"{block.noun[:1].upper()}{block.noun[1:]} {path}"
        amount = f"{block.noun.split(', ')[-1]} {path}"
        dressed = {"m": f"Median {amount} ($)", "a": f"Average {amount} ($)"}
        dressed |= {"n": f"Average {amount}", "p": f"{name} (%)"}
        names.append(dressed.get(letter, name))
    return names


def _rows(block: ProfileBlock) -> list[Row]:
    shape = expand(block.shape)
    return [
        Row(
            id=block.first + at,
            name=name,
            depth=depth,
            kind=KINDS[letter],
            block=block.first,
            rule=block.rule,
            mechanism=block.mechanism,
            has_sex=block.sex,
            subset=letter == "s",
        )
        for at, ((depth, letter), name) in enumerate(zip(shape, _names(block, shape), strict=True))
    ]


def _plan(block: ProfileBlock, number: int, start: int) -> BlockPlan:
    """Find the leaves under each count of a block."""
    shape = expand(block.shape)
    parents = _parents([depth for depth, _ in shape])
    nodes = [at for at, (_, letter) in enumerate(shape) if not letter]
    inner = {parents[at] for at in nodes if parents[at] >= 0}
    low, high, leaves = {}, dict[int, int](), 0
    for at in nodes:
        low[at] = leaves
        leaves += at not in inner
    for place, at in enumerate(nodes):
        below = next((later for later in nodes[place + 1 :] if shape[later][0] <= shape[at][0]), None)
        high[at] = leaves if below is None else low[below]
    return BlockPlan(
        block=block,
        number=number,
        start=start,
        stop=start + len(shape),
        nodes=np.array(nodes, dtype=np.int64),
        low=np.array([low[at] for at in nodes], dtype=np.int64),
        high=np.array([high[at] for at in nodes], dtype=np.int64),
        leaves=leaves,
        subsets=tuple((at, parents[at]) for at, (_, letter) in enumerate(shape) if letter == "s"),
    )


def _layout_sums(block: ProfileBlock) -> list[RowSum]:
    """Return the partitions inside a block; statistics and multiple responses have none."""
    if block.rule not in ("split", "core", "within") or block.mechanism == EXACT:
        return []
    shape = expand(block.shape)
    parts: dict[int, list[int]] = {}
    for at, parent in enumerate(_parents([depth for depth, _ in shape])):
        if parent >= 0 and not shape[at][1]:
            parts.setdefault(parent, []).append(block.first + at)
    return [RowSum(block.first + head, tuple(below), "layout") for head, below in parts.items()]


def _universe_sums(blocks: list[ProfileBlock], sample: bool = False) -> list[RowSum]:
    """Return the totals that show the same people twice: row 8 is row 1, row 50 is row 5, and so on.

    Of a weighted sample (`sample`), estimates are the same as other estimates only, never as counts.
    """
    reference = {} if sample else {"people": 1, "households": 5}
    same = []
    for block in blocks:
        if block.rule in ("figures", "within") or block.mechanism == EXACT:
            continue
        if block.universe.startswith("="):
            same.append(RowSum(block.first, tuple(int(part) for part in block.universe[1:].split("+")), "universe"))
        elif block.universe in reference:
            same.append(RowSum(block.first, (reference[block.universe],), "universe"))
        else:
            reference[block.universe] = block.first
    chosen = {row.id for block in blocks for row in _rows(block)}
    same = [one for one in same if chosen.issuperset(one.parts)] if sample else same
    return same + [RowSum(row, (other,), "universe") for row, other in SAME.items() if {row, other} <= chosen]


@cache
def schema(rows: str = "age", weighted: bool = False) -> Schema:
    """Return the profile's rows for one of the choices `age`, `short`, `sample` and `all`.

    Where sample tables are `weighted`, no sum has both counts and estimates.
    """
    if rows not in ROWS:
        raise InputError(f"there are no rows called {rows!r}: choose {', '.join(ROWS)}.")
    chosen = [
        (number, block)
        for number, block in enumerate(BLOCKS)
        if any(first <= block.first <= last for first, last in ROWS[rows])
    ]
    table, sums, plans = list[Row](), list[RowSum](), list[BlockPlan]()
    for number, block in chosen:
        plans.append(_plan(block, number, len(table)))
        table += _rows(block)
        sums += _layout_sums(block)
    blocks = [block for _, block in chosen]
    if weighted:
        sampled = [block.mechanism == SAMPLE for block in blocks]
        sums += _universe_sums([block for block, own in zip(blocks, sampled, strict=True) if not own])
        sums += _universe_sums([block for block, own in zip(blocks, sampled, strict=True) if own], sample=True)
    else:
        sums += _universe_sums(blocks)
    return Schema(tuple(table), tuple(sums), tuple(plans))
