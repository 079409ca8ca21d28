"""Rounding by keys, where only the counts of tables are at hand: the sum of keys of every cell, from a secret.

An agency that has the records gives each a key once, uniform on [0, 1), and rounds a cell by the sum of its records' keys
and a constant of the table, modulo 1. The same records then round alike wherever the constant is the same. With counts
alone, sums of keys are drawn that could be those of such records: 0 for a cell without records, uniform otherwise, and
in every sum the parts' keys come to the total's; apart from that, nothing is tied to anything. Keys follow from the
secret and the names of area and column, totals first, so that a total has the same key in other tables of the same
secret. Units are 2⁻⁶⁴: 64-bit arithmetic is modulo 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.jit import kernel
from unround.mechanisms.base import IntArray
from unround.mechanisms.sampling import scattered
from unround.protection.table import keepable, patterns
from unround.protection.walk import Loops, Signs, Tableau, exchange, tableaux
from unround.sums.forest import Equations

Keys = NDArray[np.uint64]
Mask = NDArray[np.bool_]

ONE = 1 << 64  # 1, in the units of keys


def secret_from(rng: np.random.Generator) -> int:
    """Draw a secret that keys can follow from."""
    first, second = (int(rng.integers(0, 1 << 62)) for _ in range(2))
    return first << 62 | second


def hashed(secret: int, kind: str, names: Sequence[str]) -> Keys:
    """Return a number of 64 bits for every name."""
    start = blake2b(f"{secret}\0{kind}\0".encode(), digest_size=8)
    hashes = np.empty(len(names), dtype=np.uint64)
    for at, name in enumerate(names):
        digest = start.copy()
        digest.update(name.encode())
        hashes[at] = int.from_bytes(digest.digest(), "little")
    return hashes


@dataclass(frozen=True, eq=False)
class CellKeys:
    """The sums of keys of all cells of a table."""

    columns: tuple[str, ...]  # what the columns are called; a total that is called the same elsewhere has the same key there
    sums: Equations  # Totals and parts, as positions of columns
    secret: int  # what keys follow from

    def of(self, areas: Sequence[str], true: IntArray) -> Keys:
        """Return the sums of keys of some areas, whose true counts are areas × columns; negative ones are not counts."""
        drawn = scattered(
            scattered(hashed(self.secret, "area", areas))[:, None] + hashed(self.secret, "column", self.columns)
        )
        empty = true <= 0
        keys = np.where(empty, np.uint64(0), drawn)
        for rows, held in patterns(keepable(true, self.sums)):
            _add_up(keys, empty, rows, tuple(self.sums[at] for at in held))
        return keys


def _add_up(keys: Keys, empty: Mask, rows: IntArray, sums: Equations) -> None:
    """Make the keys of some areas add up, in place; what is free keeps its own."""
    for pieces in (_parts_follow, _totals_follow):
        whole = keys[rows]
        try:
            for piece in pieces(keys.shape[1], sums):
                members = np.concatenate([piece.basic, piece.free])
                here = whole[:, members]
                if not _settle(here, empty[np.ix_(rows, members)], piece.signs):
                    raise Loops
                whole[:, members] = here
        except Loops:
            continue
        keys[rows] = whole
        return
    raise InputError(
        "keys cannot be made to add up in these sums: they form loops other than those of hierarchies that cross each "
        "other. Leave some of them out."
    )


def _parts_follow(columns: int, sums: Equations) -> list[Tableau]:
    """Solve the sums so that later columns follow from earlier ones: parts from totals, women from men."""
    return _in_order(list(range(columns))[::-1], sums)


def _totals_follow(columns: int, sums: Equations) -> list[Tableau]:
    """Solve the sums so that totals follow from parts, as they must where hierarchies cross each other."""
    heads = {total for total, _ in sums}
    return _in_order(sorted(range(columns), key=lambda column: column not in heads), sums)


def _in_order(order: list[int], sums: Equations) -> list[Tableau]:
    """Solve the sums for the cells that come first in an order."""
    place = {column: at for at, column in enumerate(order)}
    moved = tuple((place[total], tuple(place[part] for part in parts)) for total, parts in sums)
    back = np.array(order)
    return [replace(piece, basic=back[piece.basic], free=back[piece.free]) for piece in tableaux(len(order), moved)]


@kernel
def _settle(keys: Keys, empty: Mask, tableau: Signs) -> bool:
    """Let basic cells follow from free ones, in place; columns are the basic cells, then the free ones.

    A basic cell without records changes places with a free one that has some: its key is 0, and the other's follows.
    """
    many, free = tableau.shape
    signs = np.empty_like(tableau)
    basic, loose = np.empty(many, dtype=np.int64), np.empty(free, dtype=np.int64)
    for area in range(len(keys)):
        signs[:] = tableau
        for row in range(many):
            basic[row] = row
        for place in range(free):
            loose[place] = many + place
        for row in range(many):
            if not empty[area, basic[row]]:
                continue
            for column in range(free):
                if signs[row, column] != 0 and not empty[area, loose[column]]:
                    if not exchange(signs, row, column, free):
                        return False
                    # The column now is the one of the cell that was basic.
                    loose[column], basic[row] = basic[row], loose[column]
                    break
        for row in range(many):
            total = np.uint64(0)
            for column in range(free):
                if signs[row, column] > 0:
                    total -= keys[area, loose[column]]
                elif signs[row, column] < 0:
                    total += keys[area, loose[column]]
            keys[area, basic[row]] = total
    return True


def constants_of(tables: Sequence[str], secret: int, given: float | None = None) -> dict[str, float]:
    """Return the constant of every table, by its name: drawn, or the same one for all."""
    names = list(dict.fromkeys(tables))
    if given is not None:
        return dict.fromkeys(names, given)
    return {name: int(number) / ONE for name, number in zip(names, hashed(secret, "table", names), strict=True)}


def shifted(keys: Keys, tables: Sequence[str], constants: dict[str, float]) -> Keys:
    """Add the constants of their tables to keys, areas × columns."""
    return keys + np.array([int(constants[table] * ONE) % ONE for table in tables], dtype=np.uint64)
