"""A world: a small table, and the law by which its true counts are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unround.errors import InputError
from unround.mechanisms.base import IntArray
from unround.release import Column, Counts
from unround.simulation.schema import SEXES
from unround.sums.forest import Equations

TOTAL = "total"
"""The total of everything, at the root of every tree."""

Tree = Mapping[str, tuple[str, ...]]
"""Totals, and the parts of each."""

Law = Callable[[int, np.random.Generator], IntArray]
"""Draws true counts for so many areas: areas × leaves, or areas × leaves × (men, women)."""


@dataclass(frozen=True)
class World:
    """A table whose true counts follow a law that no prior of unround assumes.

    - `name`: What people call it.
    - `sentence`: What is special about it.
    - `tree`: Totals, the root `TOTAL` first, and the parts of each.
    - `law`: Draws the counts of the leaves, in the order of `leaves`.
    - `by_sex`: Whether every count is split into men and women.
    """

    name: str
    sentence: str
    tree: Tree
    law: Law
    by_sex: bool = False

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Totals and leaves, each total before its parts."""
        return tuple(self._below(TOTAL))

    def _below(self, node: str) -> Iterator[str]:
        yield node
        for part in self.tree.get(node, ()):
            yield from self._below(part)

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The counts that have no parts, except men and women."""
        return tuple(node for node in self.nodes if node not in self.tree)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """All counts of an area; where they are split by sex, both sexes, men and women of each node."""
        if not self.by_sex:
            return tuple(Column(node, (node,), node) for node in self.nodes)
        return tuple(
            Column(node if sex == SEXES[0] else f"{node}/{sex}", (node, sex), node) for node in self.nodes for sex in SEXES
        )

    @cached_property
    def equations(self) -> Equations:
        """The sums between the columns, by their positions."""
        width, at = len(SEXES) if self.by_sex else 1, {node: place for place, node in enumerate(self.nodes)}
        sums = tuple(
            (at[total] * width + sex, tuple(at[part] * width + sex for part in parts))
            for total, parts in self.tree.items()
            for sex in range(width)
        )
        return sums + tuple((cell, (cell + 1, cell + 2)) for cell in range(0, len(self.columns), 3) if self.by_sex)

    def draw(self, areas: int, rng: np.random.Generator) -> IntArray:
        """Draw the counts of the leaves: areas × leaves, or areas × leaves × (men, women).

        Raises `InputError`: Without any area.
        """
        if areas < 1:
            raise InputError(f"a world has at least one area, not {areas}.")
        return self.law(areas, rng)

    def add_up(self, leaves: IntArray) -> Counts:
        """Return all columns of some areas, from the counts of their leaves."""
        if self.by_sex:
            leaves = np.concatenate([leaves.sum(axis=2, keepdims=True), leaves], axis=2)
        known = {leaf: leaves[:, place] for place, leaf in enumerate(self.leaves)}
        for node in reversed(self.nodes):  # parts before their total
            if node in self.tree:
                known[node] = np.sum([known[part] for part in self.tree[node]], axis=0)
        table = np.stack([known[node] for node in self.nodes], axis=1)
        return np.ascontiguousarray(table.reshape(len(table), -1), dtype=np.int32)

    def counts(self, areas: int, seed: int) -> Counts:
        """Draw the true table, areas × `columns`; the same seed gives the same table."""
        return self.add_up(self.draw(areas, np.random.default_rng(np.random.SeedSequence([seed, *self.name.encode()]))))
