"""The constants of the tables, where cells are rounded by keys: what is added to the sum of a cell's keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

import numpy as np

from unround.errors import InputError
from unround.simulation.profile import BLOCKS, EXACT, ProfileBlock
from unround.simulation.schema import BlockPlan

ONE = 1 << 64
"""1 in the units in which keys are added up."""

_STREAM = 6
"""The kind of random stream that constants come from; see `counts.stream`."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Which constant every table has.

    - `everywhere`: The same for all tables; None draws one for each.
    - `given`: Constants of single tables, by the ID of their first row.

    Examples
    --------
    >>> Constants.parse("8=0.31, 58=0.19").given
    ((8, 0.31), (58, 0.19))
    >>> Constants.parse("0").name
    '0'
    """

    everywhere: float | None = None
    given: tuple[tuple[int, float], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Constants:
        """Read what the user wants: "" draws them all, "0" gives all the same, "8=0.31,58=0.19" some their own.

        Raises `InputError` if a constant is not a number from 0 to 1, or there is no such table.
        """
        pieces = [piece.strip() for piece in text.split(",") if piece.strip()]
        if len(pieces) == 1 and "=" not in pieces[0]:
            return cls(_number(pieces[0]))
        found: dict[int, float] = {}
        for piece in pieces:
            table, equals, value = (part.strip() for part in piece.partition("="))
            if not equals or not table.isdecimal() or int(table) not in _heads():
                raise InputError(
                    f"{piece!r} is not the constant of a table: write one number for all, such as 0, or the ID of the "
                    "table's first row and its constant, such as 8=0.31,58=0.19."
                )
            if int(table) in found:
                raise InputError(f"table {table} has two constants: give one.")
            found[int(table)] = _number(value)
        return cls(None, tuple(found.items()))

    @property
    def name(self) -> str:
        """What to type for the same."""
        if self.everywhere is not None:
            return f"{self.everywhere:g}"
        return ",".join(f"{table}={value:g}" for table, value in self.given)

    def of(self, block: ProfileBlock, seed: int, edition: int = 1) -> int:
        """Return the constant of the table that a block stands in, in units of 2⁻⁶⁴.

        Every edition has constants of its own, unless they are given.
        """
        table = table_of(block)
        value = dict(self.given).get(table, self.everywhere)
        if value is not None:
            return int(value * ONE) % ONE
        key = np.random.SeedSequence(seed, spawn_key=(_STREAM, table, edition))
        return int(np.random.default_rng(key).integers(0, ONE - 1, dtype=np.uint64, endpoint=True))

    def rows(self, plans: Iterable[BlockPlan], seed: int, editions: int) -> list[tuple[int, int, str, float]]:
        """Return edition, table, its title and its constant, for all tables that hold rounded counts."""
        blocks = [step.block for step in plans if step.block.mechanism != EXACT and len(step.nodes)]
        heads = [block for block in blocks if table_of(block) == block.first]
        return [
            (edition, block.first, title_of(block), self.of(block, seed, edition) / ONE)
            for edition in range(1, editions + 1)
            for block in heads
        ]


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value) or not 0 <= value <= 1:
        raise InputError(f"the constant of a table is a number from 0 to 1, such as 0.31; not {text!r}.")
    return value


def _heads() -> set[int]:
    return {table_of(block) for block in BLOCKS if block.mechanism != EXACT and block.rule != "figures"}


def title_of(block: ProfileBlock) -> str:
    """Return what the table is called."""
    return block.labels.split("|")[0].removeprefix("Total - ") if block.labels else block.title


def table_of(block: ProfileBlock) -> int:
    """Return the ID of the first row of the table that a block stands in.

    A block that begins indented goes on with the table before it; some of another block's people stand in its table.
    """
    if block.rule == "within":
        return int(block.universe)
    if not block.shape.startswith("0"):
        return max(other.first for other in BLOCKS if other.first < block.first and other.shape.startswith("0"))
    return block.first
