"""What a table counts, the truth behind it, and how it was published: everything of a draft but its layout."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tests.drafts.judge import FAR, Cell, Facts, Program

Labels = tuple[str, ...]
"""A cell: its label on every axis."""
NARROW = 3
"""Of a healthy draft, every hidden or rounded count keeps values at least this far apart."""


class Axis:
    """Labels in the order of print, some of them totals of others.

    `tree` is a list of labels and of pairs (total, parts). A label that begins with "~" is not printed. With `last`, totals
    stand below (or to the right of) their parts.
    """

    def __init__(self, name: str, tree: Sequence, last: bool = False) -> None:
        self.name, self.labels, self.depth, self.parts, self.leaves = name, [], {}, {}, []
        self._add(tree, 0, last)
        self.printed = [label for label in self.labels if not label.startswith("~")]

    def _add(self, tree: Sequence, depth: int, last: bool) -> list[str]:
        here = []
        for item in tree:
            label, below = (item, ()) if isinstance(item, str) else item
            here.append(label)
            self.depth[label] = depth
            if not last:
                self.labels.append(label)
            if below:
                self.parts[label] = self._add(below, depth + 1, last)
            else:
                self.leaves.append(label)
            if last:
                self.labels.append(label)
        return here

    def under(self, label: str) -> list[str]:
        """Return the labels without parts that make up this one."""
        return [leaf for part in self.parts.get(label, ()) for leaf in self.under(part)] or [label]

    @property
    def sums(self) -> list[tuple[str, list[str]]]:
        """Totals with their parts."""
        return list(self.parts.items())

    @property
    def total(self) -> str:
        """The label that stands for all, "" where there is none."""
        tops = [label for label in self.labels if self.depth[label] == 0]
        return tops[0] if len(tops) == 1 else ""


@dataclass(frozen=True)
class Percent:
    """Percentages, or rates, of a total on the second axis."""

    of: str
    decimals: int = 1
    true: bool = True
    heading: str = "{} (%)"
    per: int = 100


@dataclass(frozen=True)
class Hide:
    """Small counts are hidden: `sign` in place of 1 … below - 1, whose window a reader takes for `low` to `high`."""

    below: int = 5
    sign: str = "c"
    low: int = 0
    high: int = FAR
    complements: bool = False
    """Hide further counts, until none of the hidden ones can be worked out."""
    also: tuple[Labels, ...] = ()
    second: str = ""
    """The sign of a count that was hidden for the sake of another; the same sign unless given."""


@dataclass(frozen=True)
class Table:
    """One table: axes (rows first), true counts by chance, and how they are published.

    - `mean`, `weights`: of the counts without parts; a factor for some labels
    - `true`: true counts that are set by hand
    - `how`: "exact", "rounding:3", "nearest:5", "controlled:5"
    - `drawn`: what chance has made of some counts
    - `exact`: labels, or sets of labels, whose counts are published as they are
    - `marks`: what is printed of some cells, and what a reader takes it for: ("1*", 1, 1)
    - `flags`: signs behind some of the numbers, which change nothing
    """

    axes: tuple[Axis, ...]
    how: str = "exact"
    seed: int = 0
    mean: float = 40
    weights: Mapping[str, float] = field(default_factory=dict)
    true: Mapping[Labels, int] = field(default_factory=dict)
    drawn: Mapping[Labels, int] = field(default_factory=dict)
    exact: tuple[str | Labels, ...] = ()
    hide: Hide | None = None
    marks: Mapping[Labels, tuple[str, int, int]] = field(default_factory=dict)
    flags: Mapping[str, int] = field(default_factory=dict)
    percent: Percent | None = None
    zero: str = "0"

    @cached_property
    def truth(self) -> dict[Labels, int]:
        rng = np.random.default_rng(self.seed)
        sizes = {label: rng.uniform(0.6, 1.6) for label in self.axes[0].leaves}
        leaves = {}
        for labels in itertools.product(*(axis.leaves for axis in self.axes)):
            rate = self.mean * sizes[labels[0]] * math.prod(self.weights.get(label, 1) for label in labels)
            leaves[labels] = self.true.get(labels, int(rng.poisson(rate)))
        return {
            labels: sum(
                leaves[leaf]
                for leaf in itertools.product(*(axis.under(label) for axis, label in zip(self.axes, labels, strict=True)))
            )
            for labels in itertools.product(*(axis.labels for axis in self.axes))
        }

    @cached_property
    def cells(self) -> list[Labels]:
        """The cells that are printed, in the order of print."""
        return list(itertools.product(*(axis.printed for axis in self.axes)))

    @cached_property
    def sums(self) -> list[tuple[Labels, list[Labels]]]:
        """Every total with its parts, along one axis at a time, those that are not printed included."""
        return [
            ((*labels[:at], total, *labels[at + 1 :]), [(*labels[:at], part, *labels[at + 1 :]) for part in parts])
            for at, axis in enumerate(self.axes)
            for total, parts in axis.parts.items()
            for labels in itertools.product(*([""] if other is axis else other.labels for other in self.axes))
        ]

    def is_exact(self, cell: Labels) -> bool:
        return self.how == "exact" or any(
            {rule} <= set(cell) if isinstance(rule, str) else set(rule) <= set(cell) for rule in self.exact
        )

    @cached_property
    def published(self) -> dict[Labels, int]:
        """Return the counts after rounding, before anything is hidden."""
        kind, _, base = self.how.partition(":")
        rng = np.random.default_rng(self.seed + 1000)
        if kind == "controlled":
            return self._controlled(int(base))
        out = {}
        for cell in self.cells:
            true = self.truth[cell]
            out[cell] = true if self.is_exact(cell) else _rounded(kind, int(base), true, rng)
        return out | dict(self.drawn)

    def _controlled(self, base: int) -> dict[Labels, int]:
        facts = Facts({cell: (value // base, -(-value // base)) for cell, value in self.truth.items()})
        for total, parts in self.sums:
            facts.adds(total, parts)
        rng = np.random.default_rng(self.seed + 1000)
        windows = facts.propagated()
        out = {cell: low * base for cell, (low, high) in windows.items() if low == high}
        for cells, rules in facts.components(windows):
            world = Program(cells, windows, rules).solve(rng.normal(size=len(cells)))
            out |= {cell: int(value) * base for cell, value in zip(cells, world, strict=True)}
        return {cell: out[cell] for cell in self.cells}

    def window(self, cell: Labels) -> tuple[int, int]:
        """Return what a reader takes a printed count for, if it is not hidden."""
        kind, _, base = self.how.partition(":")
        value = self.published[cell]
        if self.is_exact(cell):
            return value, value
        wide = int(base)
        if kind == "nearest":
            return max(0, value - wide // 2), value + (wide - 1) // 2
        return max(0, value - wide + 1), value + wide - 1

    @cached_property
    def hidden(self) -> dict[Labels, str]:
        """The hidden cells and their signs."""
        rule = self.hide
        if rule is None:
            return {}
        out = {cell: rule.sign for cell in self.cells if 0 < self.published[cell] < rule.below}
        second = rule.second or rule.sign
        out |= dict.fromkeys(rule.also, second)
        while rule.complements:
            bounds = self.facts(out).bounds(out, NARROW)
            weak = [cell for cell in out if bounds[cell][1] - bounds[cell][0] < NARROW]
            choice = next((cell_found for cell in weak for cell_found in self._beside(cell, out)), None)
            if choice is None:
                break
            out[choice] = second
        return out

    def _beside(self, cell: Labels, hidden: Mapping[Labels, str]) -> list[Labels]:
        """Return the cells that share a sum with this one and could be hidden too: few people first, but not too few."""
        around = {other for total, parts in self.sums if cell in (total, *parts) for other in (total, *parts)}
        inner = [
            other for other in around if all(label not in axis.parts for axis, label in zip(self.axes, other, strict=True))
        ]
        return sorted(
            (other for other in inner if other not in hidden and self.published.get(other, 0) >= 6),
            key=lambda other: (self.published[other], other),
        )

    def facts(self, hidden: Mapping[Labels, str] | None = None) -> Facts:
        """Return what is printed as an integer program has it."""
        hidden = self.hidden if hidden is None else hidden
        windows = {}
        for cell in self.truth:
            if cell in hidden and self.hide is not None:
                own = hidden[cell] == self.hide.sign and bool(self.hide.second or not self.hide.complements)
                windows[cell] = (self.hide.low, self.hide.high) if own else (0, FAR)
            elif cell in self.marks:
                windows[cell] = self.marks[cell][1:]
            else:
                windows[cell] = self.window(cell) if cell in self.published else (0, FAR)
        facts = Facts(windows)
        for total, parts in self.sums:
            facts.adds(total, parts)
        if self.percent is not None and self.percent.true:
            facts.facts += [fact for cell in self.percent_cells for fact in self._percent_facts(cell)]
        return facts

    @property
    def percent_cells(self) -> list[Labels]:
        assert self.percent is not None
        return [cell for cell in self.cells if cell[1] != self.percent.of and cell not in self.hidden]

    def percent_of(self, cell: Labels) -> float:
        rule = self.percent
        assert rule is not None
        counts = self.truth if rule.true else self.published
        whole = counts[(cell[0], rule.of, *cell[2:])]
        scaled = counts[cell] * rule.per * 10**rule.decimals
        return (2 * scaled + whole) // (2 * whole) / 10**rule.decimals if whole else 0.0

    def _percent_facts(self, cell: Labels) -> list[tuple[dict[Cell, int], int, int]]:
        """Return what a percentage says of its two counts: at most half a step up or down."""
        rule = self.percent
        assert rule is not None
        whole, unit = (cell[0], rule.of, *cell[2:]), 2 * rule.per * 10**rule.decimals
        figure = 2 * round(self.percent_of(cell) * 10**rule.decimals)
        return [({cell: unit, whole: 1 - figure}, 0, FAR * unit), ({cell: -unit, whole: figure + 1}, 0, FAR * unit)]

    @cached_property
    def shown(self) -> dict[Labels, int | str]:
        """What is printed in every cell."""
        out: dict[Labels, int | str] = {
            cell: value if value or self.zero == "0" else self.zero for cell, value in self.published.items()
        }
        rng = np.random.default_rng(self.seed + 2000)
        for sign, number in self.flags.items():
            plain = [cell for cell in self.cells if isinstance(out[cell], int)]
            for at in rng.choice(len(plain), size=number, replace=False):
                out[plain[at]] = f"{out[plain[at]]}{sign}"
        return out | self.hidden | {cell: text for cell, (text, _, _) in self.marks.items()}

    @cached_property
    def meant(self) -> dict[Labels, int | None]:
        """What is to be read in every cell: a number, or None where it is hidden."""
        hidden = dict.fromkeys(self.hidden)
        marked = {cell: low if low == high else None for cell, (_, low, high) in self.marks.items()}
        return self.published | hidden | marked


def _rounded(kind: str, base: int, true: int, rng: np.random.Generator) -> int:
    if kind == "nearest":
        return (true + base // 2) // base * base
    assert kind == "rounding", kind
    down = true // base * base
    return down + base * int(rng.random() < (true - down) / base)
