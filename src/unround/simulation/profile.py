"""The simulated census profile: 2,631 rows with the shape of the Canadian one, their kinds, and the sums between them.

The core rows (population, age, dwellings, households, marital status, families, official languages) carry
their common labels. Every other block has a title in our own words and numbered entries; only its shape is
that of the real profile (`tables.canada_2021`): how deep each row is indented, what kind of number it holds, and
which people or households it counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.tables.canada_2021 import BLOCKS as BLOCKS
from unround.tables.canada_2021 import ProfileBlock as ProfileBlock
from unround.tables.canada_2021 import expand
from unround.tables.profile import above as lines_above

ROUNDED, SAMPLE, EXACT = "rounding:5", "sample:5", "exact"
FULL_DATA, SAMPLE_DATA = "100% data", "25% sample data"


def table_of(block: ProfileBlock) -> int:
    """Return the ID of the first row of the table that a block stands in.

    A block that begins indented goes on with the table before it; some of another block's people stand in its table.
    """
    if block.rule == "within":
        return int(block.universe)
    if not block.shape.startswith("0"):
        return max(other.first for other in BLOCKS if other.first < block.first and other.shape.startswith("0"))
    return block.first


INCOME_FIRST, INCOME_LAST = 111, 382  # the rows hidden where fewer than 250 people or 40 households live

ROWS = {
    "age": ((1, 33),),
    "short": ((1, 110), (383, 734)),
    "income": ((1, 110), (335, 364)),
    "sample": ((1, 33), (1949, 2029), (2223, 2258)),
    "all": ((1, 2631),),
}
"""What `--rows` can ask for, as ranges of characteristic IDs that end where blocks end."""


KINDS = {"": "count", "s": "count", "m": "median", "a": "average", "n": "average", "p": "percent"}
SEXES = ("total", "men", "women")
SAME = {97: 51, 110: 51, 92: 86}
"""Rows inside blocks that count the same: persons alone are households, single parents are families."""


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One characteristic of the profile.

    `kind` is count, percent, average or median; `block` the ID of the first row of its block; `mechanism` says how a count
    is published.
    """

    id: int
    name: str
    depth: int
    kind: str
    block: int
    mechanism: str
    has_sex: bool

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
    """A block compiled for one choice of rows: where its rows and leaves are."""

    block: ProfileBlock  # its definition
    number: int  # its place among all blocks; random streams are keyed by it, so they do not depend on the rows chosen
    start: int  # its rows in the schema
    stop: int
    nodes: NDArray[np.int64]  # the rows, counted from `start`, of the ordinary counts
    low: NDArray[np.int64]  # the leaves under each node are `low` to `high` (exclusive), in the order of the rows
    high: NDArray[np.int64]
    leaves: int  # how many leaves there are
    subsets: tuple[tuple[int, int], ...]  # counts outside partitions, counted from `start`


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The rows of a simulated profile and what is true of them."""

    rows: tuple[ProfileRow, ...]  # in the order of the file
    sums: tuple[RowSum, ...]  # every partition that holds in truth, by characteristic ID
    plans: tuple[BlockPlan, ...]  # the blocks, for those who count people

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


def _names(block: ProfileBlock, shape: list[tuple[int, str]]) -> list[str]:
    """Return the names of a block's rows: its labels, or its title and numbered entries."""
    if block.labels:
        return list(block.labels)
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


def _rows(block: ProfileBlock) -> list[ProfileRow]:
    shape = expand(block.shape)
    return [
        ProfileRow(block.first + at, name, depth, KINDS[letter], block.first, block.mechanism, block.sex)
        for at, ((depth, letter), name) in enumerate(zip(shape, _names(block, shape), strict=True))
    ]


def _plan(block: ProfileBlock, number: int, start: int) -> BlockPlan:
    """Find the leaves under each count of a block."""
    shape = expand(block.shape)
    above = lines_above([depth for depth, _ in shape])
    nodes = [at for at, (_, letter) in enumerate(shape) if not letter]
    inner = {above[at] for at in nodes}
    low, high, leaves = {}, dict[int, int](), 0
    for at in nodes:
        low[at] = leaves
        leaves += at not in inner
    for place, at in enumerate(nodes):
        below = next((later for later in nodes[place + 1 :] if shape[later][0] <= shape[at][0]), None)
        high[at] = leaves if below is None else low[below]
    subsets = tuple((at, above[at]) for at, (_, letter) in enumerate(shape) if letter == "s")
    rows, first, last = (
        np.array(values, np.int64) for values in (nodes, [low[at] for at in nodes], [high[at] for at in nodes])
    )
    return BlockPlan(block, number, start, start + len(shape), rows, first, last, leaves, subsets)


def universe_sums(blocks: list[ProfileBlock]) -> list[RowSum]:
    """Return the totals that show the same people twice: row 8 is row 1, row 50 is row 5, and so on."""
    reference = {"people": 1, "households": 5}
    same = []
    for block in blocks:
        if block.rule in ("figures", "within") or block.mechanism == EXACT:
            continue
        if block.universe.startswith("="):
            same.append(RowSum(block.first, block.counted_rows, "universe"))
        elif block.universe in reference:
            same.append(RowSum(block.first, (reference[block.universe],), "universe"))
        else:
            reference[block.universe] = block.first
    same += [RowSum(row, (other,), "universe") for row, other in SAME.items()]
    chosen = {block.first + at for block in blocks for at in range(len(expand(block.shape)))}
    return [pair for pair in same if pair.total in chosen]


@cache
def schema(rows: str = "age") -> Schema:
    """Return the profile's rows for one of the choices `age`, `short`, `income`, `sample` and `all`."""
    if rows not in ROWS:
        raise InputError(f"there are no rows called {rows!r}: choose {', '.join(ROWS)}.")
    table, sums, plans = list[ProfileRow](), list[RowSum](), list[BlockPlan]()
    for number, block in enumerate(BLOCKS):
        if any(first <= block.first <= last for first, last in ROWS[rows]):
            plans.append(_plan(block, number, len(table)))
            table += _rows(block)
            sums += [RowSum(total, parts, "layout") for total, parts in block.parts().items()]
    sums += universe_sums([step.block for step in plans])
    return Schema(tuple(table), tuple(sums), tuple(plans))
