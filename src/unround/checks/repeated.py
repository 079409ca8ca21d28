"""Counts that appear in several tables: how the random numbers that rounded them differ.

With keys, the same records have the same random number everywhere but for the tables' constants: which of the tables show
the higher number, and which the lower, depends on where the constants lie around the circle. How often two tables differ
tells how far apart theirs are; many pairs place them all. The circle may be turned and mirrored: the sums of the tables fix
its turn, and nothing tells the mirror image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.checks.families import CHANCE, INDEPENDENT, KEYED, UNKNOWN, FamilyHistogram, TableRounding
from unround.checks.gather import GROUPS
from unround.checks.keys import GRID, LEAST, PENALTY, can_be_keyed
from unround.checks.law import FINE
from unround.checks.sums import LEAST_STEPS
from unround.mechanisms import Exact
from unround.mechanisms.base import step_of
from unround.mechanisms.keyed import apart
from unround.release import ABSENT, Counts, Release
from unround.structure import Structure

CIRCLE = 400
"""Places around the circle that constants can have."""

MISPRINTS = 0.01
"""The share of counts that may do anything: one misprint must not refute a law that explains all others."""

FITTING = 0.03
"""How far the shares of patterns may be from a law (total variation), beyond chance."""

SURE = 0.02
"""The largest standard error of a constant that is of use."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Pattern = tuple[int, int]
"""The remainder of the exact count (−1 where none is published), and which columns show the higher number, as bits."""


@dataclass(frozen=True, slots=True)
class RepeatedCount:
    """One count in several columns, all rounded alike to one base; `names` are the tables, or columns outside tables."""

    columns: tuple[int, ...]
    names: tuple[str, ...]
    exact: int | None
    base: int


@dataclass(frozen=True, slots=True)
class RepeatRounding:
    """What was found about one of them.

    - `columns`: The keys of the columns.
    - `model`: "independent", "keyed" or "unknown".
    - `constants`, `errors`: With keys, those of the columns' tables, and the standard errors of their differences from
      the first.
    - `whole`: Whether whole numbers were rounded.
    - `areas`: In how many areas it was observed.
    - `p_value`: How likely patterns as far from this model's are, if it is right.
    - `why`: What speaks for it, or why nothing can be said.
    """

    columns: tuple[str, ...]
    model: str
    constants: tuple[float, ...] = ()
    errors: tuple[float, ...] = ()
    whole: bool = True
    areas: int = 0
    p_value: float | None = None
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data; constants as differences from the first column's."""
        first = self.constants[0] if self.constants else 0.0
        return {
            "columns": list(self.columns),
            "model": self.model,
            "differences": [round((one - first) % 1.0, 4) for one in self.constants],
            "errors": [round(one, 4) for one in self.errors],
            "whole": self.whole,
            "areas": self.areas,
            "p_value": self.p_value,
            "why": self.why,
        }


@dataclass
class RepeatTally:
    """Counts which columns show the higher of the two numbers that a repeated count can have."""

    groups: list[RepeatedCount]
    areas: int
    patterns: list[dict[Pattern, Ints]] = field(default_factory=list)

    @classmethod
    def of(cls, release: Release, structure: Structure, areas: int) -> RepeatTally:
        """Find the counts that were rounded anew for several columns."""
        groups = []
        for repeat in structure.repeats:
            kinds = {c: structure.mechanisms[c] for c in repeat.columns}
            rounded = tuple(c for c, how in kinds.items() if can_be_keyed([how]))
            if repeat.alike or len(rounded) < 2 or not can_be_keyed([kinds[c] for c in rounded]) or len(rounded) > 60:
                continue
            exact = next((c for c, how in kinds.items() if isinstance(how, Exact)), None)
            blocks = [release.columns[c].block for c in rounded]
            names = tuple(
                block if block and blocks.count(block) == 1 else release.columns[c].key
                for c, block in zip(rounded, blocks, strict=True)
            )
            groups.append(RepeatedCount(rounded, names, exact, step_of(kinds[rounded[0]] or Exact())))
        return cls(groups, max(areas, 1), [{} for _ in groups])

    def add(self, start: int, counts: Counts) -> None:
        """Take in some areas."""
        part = (start + np.arange(len(counts))) * GROUPS // self.areas
        for group, patterns in zip(self.groups, self.patterns, strict=True):
            shown = counts[:, group.columns].astype(np.int64)
            least, most = shown.min(1), shown.max(1)
            fine = (least >= LEAST_STEPS * group.base) & (most - least <= group.base)
            rest = np.full(len(counts), -1)
            if group.exact is not None:
                true = counts[:, group.exact].astype(np.int64)
                fine &= (true > ABSENT) & (true > most - group.base) & (true < least + group.base)
                rest = true % group.base
            bits = (shown > least[:, None]) @ (1 << np.arange(len(group.columns)))
            found = np.stack([rest, bits, part], axis=1)[fine]
            for (r, b, p), times in zip(*np.unique(found, axis=0, return_counts=True), strict=True):
                patterns.setdefault((int(r), int(b)), np.zeros(GROUPS, dtype=np.int64))[p] += times


def repeat_roundings(
    release: Release, tally: RepeatTally, tables: Mapping[str, TableRounding], curves: Mapping[str, Floats]
) -> tuple[list[RepeatRounding], dict[str, tuple[float, float]]]:
    """Return what the repeats of every count do, and the constants of their tables with their standard errors."""
    placed = _Circle(tally, tables, curves)
    best = placed.places(np.ones(GROUPS))
    without = np.array([placed.places(np.arange(GROUPS) != k, best) for k in range(GROUPS)])
    # Jackknife: what the constants would be without each part of the file.
    moved = (without - best + 0.5) % 1.0 - 0.5
    draws = best + np.sqrt(GROUPS - 1) * (moved - moved.mean(0))
    errors = _spread_of(draws)
    found = []
    for group, patterns in zip(tally.groups, tally.patterns, strict=True):
        at = [placed.index[name] for name in group.names]
        found.append(_judged(release, group, patterns, placed.whole(group), best[at], draws[:, at], tables))
    known = {name for group, one in zip(tally.groups, found, strict=True) if one.model == KEYED for name in group.names}
    return found, {
        name: (float(best[at]), float(errors[at])) for name, at in placed.index.items() if name in known & placed.fixed
    }


def _spread_of(draws: Floats) -> Floats:
    """Return the standard errors that the jackknife gives, and the width of a place."""
    return np.asarray(np.sqrt(draws.var(0) + CIRCLE**-2 / 12))


class _Circle:
    """The places of all tables' constants around the circle, by the likelihood of pairs and of sums."""

    def __init__(self, tally: RepeatTally, tables: Mapping[str, TableRounding], curves: Mapping[str, Floats]) -> None:
        self.index = {name: at for at, name in enumerate(dict.fromkeys(n for one in tally.groups for n in one.names))}
        self._tables = tables
        far = np.array([apart(k / CIRCLE) for k in range(CIRCLE)])
        self._own = np.zeros((len(self.index), CIRCLE))
        for name, at in self.index.items():
            if name in curves:
                self._own[at] = np.interp(far, GRID, curves[name] - curves[name].max())
        self.fixed = self._fixed(tally, curves)
        self._pairs: dict[tuple[int, int], Floats] = {}  # parts of the file × places
        for group, patterns in zip(tally.groups, tally.patterns, strict=True):
            for i, j in combinations(range(len(group.columns)), 2):
                both = self.index[group.names[i]], self.index[group.names[j]]
                curve = self._pairs.setdefault((min(both), max(both)), np.zeros((GROUPS, CIRCLE)))
                for (rest, bits), times in patterns.items():
                    differ = differing(far, group.base, rest, self.whole(group)).clip(1e-4, 1 - 1e-4)
                    curve += times[:, None] * np.log(differ if (bits >> i ^ bits >> j) & 1 else 1 - differ)

    def _fixed(self, tally: RepeatTally, curves: Mapping[str, Floats]) -> set[str]:
        """Return the tables whose constants are known, not only how far apart they are: by some sums among them."""
        found = {name for name in self.index if name in curves and np.ptp(curves[name]) > PENALTY}
        while more := {n for one in tally.groups if found & set(one.names) for n in one.names} - found:
            found |= more
        return found

    def whole(self, group: RepeatedCount) -> bool:
        """Say whether the tables of a count show whole numbers; they do unless one of them is found to be weighted."""
        return not any(name in self._tables and self._tables[name].whole is False for name in group.names)

    def places(self, parts: NDArray[Any], start: Floats | None = None) -> Floats:
        """Return the likeliest constants given some parts of the file, one at a time until none moves."""
        number = len(self.index)
        pairs = {both: parts @ curve for both, curve in self._pairs.items()}
        share = float(np.asarray(parts).mean())
        near: list[list[tuple[int, Floats]]] = [[] for _ in range(number)]
        for (one, other), curve in pairs.items():
            near[one].append((other, curve))
            near[other].append((one, curve))
        order = sorted(range(number), key=lambda at: (-float(np.ptp(self._own[at])), -len(near[at]), at))
        if start is not None:
            return self._settled(np.rint(start * CIRCLE).astype(np.int64) % CIRCLE, set(range(number)), order, near, share)[
                0
            ]
        found = [self._settled(np.full(number, turn), set(), order, near, share) for turn in range(0, CIRCLE, CIRCLE // 8)]
        return max(found, key=lambda pair: pair[1])[0]

    def _settled(
        self, at: Ints, known: set[int], order: list[int], near: list[list[tuple[int, Floats]]], share: float
    ) -> tuple[Floats, float]:
        """Place one table after the other, given those that have a place, then move each until none moves."""
        at, gains, turn = at.copy(), np.zeros(len(at)), int(at[0]) if len(at) else 0
        steps = np.arange(CIRCLE)
        # From places that are known, none moves far: the mirror image is as likely.
        near_only = bool(known)
        for _ in range(60):
            before = at.copy()
            for one in order:
                likely = share * self._own[one].copy()
                for other, curve in near[one]:
                    if other in known:
                        likely += np.roll(curve, at[other])
                if not likely.any():
                    likely[turn] = 1.0  # the first of its circle: anywhere
                if near_only:
                    likely[np.abs((steps - at[one] + CIRCLE // 2) % CIRCLE - CIRCLE // 2) > CIRCLE // 10] = -np.inf
                at[one] = int(likely.argmax())
                gains[one] = likely[at[one]] + share * self._own[one, at[one]]
                known.add(one)
            at = self._turned(at, near)
            if (at == before).all():
                break
        return np.asarray(at / CIRCLE), float(gains.sum())

    def _turned(self, at: Ints, near: list[list[tuple[int, Floats]]]) -> Ints:
        """Turn tables that are connected, all together, to where their sums are likeliest."""
        at, left = at.copy(), set(range(len(at)))
        while left:
            group = {left.pop()}
            while more := {other for one in group for other, _ in near[one]} - group:
                group |= more
            left -= group
            likely = np.sum([np.roll(self._own[one], -at[one]) for one in group], axis=0)
            turn = int(likely.argmax())
            if likely[turn] > likely[0]:
                at[list(group)] = (at[list(group)] + turn) % CIRCLE
        return at


def differing(far: Floats, base: int, rest: int, whole: bool) -> Floats:
    """Return how often two roundings of one large count differ, by how far apart the constants are."""
    up = np.array([rest / base]) if rest >= 0 else _chances(base, whole)
    return np.asarray(2 * np.minimum(far[:, None], np.minimum(up, 1 - up)).mean(1))


def _chances(base: int, whole: bool) -> Floats:
    """Return the probabilities of going up that large counts can have, all equally frequent."""
    return np.arange(base) / base if whole else (np.arange(FINE) + 0.5) / FINE


def pattern_shares(constants: Sequence[float], chances: Floats) -> dict[int, float]:
    """Return how often which columns show the higher number, as bits, for counts that go up with these chances."""
    found: dict[int, float] = {}
    places = np.asarray(constants)
    bits = 1 << np.arange(len(places))
    everything = int(bits.sum())
    for chance in chances.tolist():
        ends = np.unique(np.concatenate([[0.0, 1.0], -places % 1.0, (chance - places) % 1.0]))
        middle = (ends[1:] + ends[:-1]) / 2
        up = ((middle[:, None] + places) % 1.0 < chance) @ bits
        for pattern, length in zip(up.tolist(), np.diff(ends).tolist(), strict=True):
            key = 0 if pattern == everything else pattern
            found[key] = found.get(key, 0.0) + length / len(chances)
    return found


def _alone(pattern: int, number: int, chances: Floats) -> float:
    """Return how often a pattern comes if every column has a random number of its own."""
    ups = bin(pattern).count("1")
    share = chances**ups * (1 - chances) ** (number - ups)
    return float((share if pattern else share + chances**number).mean())


def _judged(
    release: Release,
    group: RepeatedCount,
    patterns: Mapping[Pattern, Ints],
    whole: bool,
    constants: Floats,
    draws: Floats,
    tables: Mapping[str, TableRounding],
) -> RepeatRounding:
    """Choose between keys and independent rounding for one count, and see whether the choice fits."""
    keys, number = tuple(release.columns[c].key for c in group.columns), len(group.columns)
    areas = int(sum(times.sum() for times in patterns.values()))
    if areas < LEAST:
        return RepeatRounding(keys, UNKNOWN, areas=areas, why=f"large in only {areas:,} areas; {LEAST} are needed")
    seen, keyed, alone = [], [], []
    for rest in sorted({rest for rest, _ in patterns}):
        here = {bits: int(times.sum()) for (r, bits), times in patterns.items() if r == rest}
        chances = np.array([rest / group.base]) if rest >= 0 else _chances(group.base, whole)
        laws = [pattern_shares(one, chances) for one in draws.tolist()]
        times = sum(here.values())
        for bits in sorted(set(here).union(*laws)):
            seen.append(here.get(bits, 0))
            alone.append(times * _alone(bits, number, chances))
            keyed.append(times * float(np.mean([law.get(bits, 0.0) for law in laws])))
    errors = _spread_of(draws - draws[:, :1])  # how the circle is turned does not matter here
    observed, own, shared = (np.array(of, dtype=np.float64) for of in (seen, alone, keyed))
    mixed = (1 - MISPRINTS) * shared + MISPRINTS * own
    some = observed > 0
    gain = 2 * float(observed[some] @ (np.log(mixed[some]) - np.log(np.maximum(own[some], 1e-300))))
    penalty = max(PENALTY, (number - 1) * float(np.log(areas)))
    independent, by_keys = (FamilyHistogram(observed, law, 0, 0.0, 1.0) for law in (own, shared))
    # The law for independent roundings is not exact: counts that are just large enough are seen more often where their
    # roundings agree. In many areas any such flaw would be significant, so that it has to miss by enough as well.
    is_keyed = gain > penalty and independent.distance - independent.noise > FITTING
    fit = by_keys if is_keyed else independent
    p_value, off = fit.p_value, fit.distance - fit.noise
    told = tuple(float(one) for one in constants), tuple(float(one) for one in errors)
    if p_value < CHANCE and off > FITTING:
        why = f"neither independent roundings nor keys fit (off by {fit.distance:.1%})"
        return RepeatRounding(keys, UNKNOWN, whole=whole, areas=areas, p_value=p_value, why=why)
    if is_keyed and errors.max() > SURE:
        why = f"the constants are not the same everywhere, or not known well enough (± {errors.max():.2f})"
        return RepeatRounding(keys, UNKNOWN, whole=whole, areas=areas, p_value=p_value, why=why)
    if is_keyed:
        return RepeatRounding(keys, KEYED, *told, whole, areas, p_value, f"fits {areas:,} areas")
    if number == 2 and group.exact is None and any(_may_be_keyed(tables.get(name)) for name in group.names):
        why = "two columns that differ as often as independent ones, or as ones with constants 0.2 apart"
        return RepeatRounding(keys, UNKNOWN, whole=whole, areas=areas, p_value=p_value, why=why)
    return RepeatRounding(keys, INDEPENDENT, (), (), whole, areas, p_value, f"fits {areas:,} areas")


def _may_be_keyed(table: TableRounding | None) -> bool:
    return table is not None and table.model == KEYED
