"""How the random numbers of a table are related: each count has its own, or keys add up to them; by likelihood.

Sums of two and three parts tell (`mechanisms.keyed`): the shares of |r| at every constant are known, and so is the
likelihood of what was observed. The sums of a table have one constant. It is found if it makes the residuals likelier than
independent rounding does, by more than a number that was fitted to them could by chance; if the shares then fit; and if no
sum and no part of the file has a constant of its own. Independent rounding is found if keys would not be much likelier, and
some of their constants much less likely. Otherwise, the answer is that it is not known.

Counts that appear in several tables tell too. With keys, the same records have the same random number everywhere but for the
tables' constants: which of the tables show the higher number, and which the lower, depends on where the constants lie around
the circle. How often two tables differ tells how far apart theirs are; many pairs place them all. The circle may be turned
and mirrored: the sums of the tables fix its turn, and nothing tells the mirror image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.checks.families import (
    ADDED,
    ALIKE,
    CHANCE,
    INDEPENDENT,
    KEYED,
    LEAST_DISTANCE,
    LEAST_STEPS,
    NO_TABLE,
    PARTLY,
    UNKNOWN,
    FamilyHistogram,
    TableRounding,
)
from unround.checks.residuals import (
    FINE,
    GROUPS,
    ExpectedShares,
    Laws,
    ResidualCounter,
    Series,
    even_series,
    find_cutoff,
    keyed_shares,
)
from unround.mechanisms import Exact, Mechanism, Rounding, Sample
from unround.mechanisms.base import step_of
from unround.mechanisms.keyed import MOST_PARTS, apart
from unround.release import ABSENT, Counts, Release
from unround.structure import Structure

GRID = np.arange(101) / 200
"""Constants that are tried: from 0 to 0.5, as only their distance from 0 around the circle can be known."""

LEAST = 300
"""Fewer sums say nothing about a table, a row or a part of the file."""

PENALTY = 15.0
"""Twice the gain in log likelihood that a constant must bring, and log(sums) if that is more: by chance, 15 comes once in
some thousand tables."""

UNDECIDED = 8.0
"""Twice the gain in log likelihood from which on keys are not ruled out, though not found; and by which independent rounding
must be likelier than the constants 0 and 0.5 to be found itself."""

TELLING = 10.0
"""Twice the difference in log likelihood that tells whole numbers from weighted ones."""

CONTROLLED = 0.1
"""Where so much larger a share of sums adds up than should, counts were rounded with a view to their sums."""
ACCURATE = LEAST_DISTANCE / 2
"""How far shares may be from a law (total variation), whatever the number of sums: small counts are only roughly known."""

ANOTHER = 0.05
"""By how much a constant of its own must differ for a sum, or a part of the file, to refute that there is only one."""

FEW_SUMS = 0.1
"""The share of a table's sums that may have constants of their own: the parts of a few rare rows are not independent."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def can_be_keyed(mechanisms: Sequence[Mechanism | None]) -> bool:
    """Return whether a total and its parts, or a repeated count, were all rounded at random to one base."""
    return len(set(mechanisms)) == 1 and isinstance(mechanisms[0], Rounding | Sample)


class KeyedSums:
    """The residuals of all sums of two or three rounded parts, and how likely they are at every constant.

    - `gathered`: The residuals.
    - `mechanisms`, `blocks`: By column of the release, how it was published and its table; a sum over two tables has no
      constant of either.
    - `laws`: The expectations.
    - `doubts`: By sum, how far its expected shares may be off: small counts would be taken for dependence.
    """

    def __init__(
        self,
        gathered: ResidualCounter,
        mechanisms: Sequence[Mechanism | None],
        blocks: Sequence[str],
        laws: Laws,
        doubts: Sequence[float],
    ) -> None:
        self.gathered = gathered
        self._laws, self._mechanisms = laws, mechanisms
        self.usable = frozenset(
            s
            for s, tested in enumerate(gathered.sums)
            if 2 <= len(tested.parts) <= MOST_PARTS
            and can_be_keyed([mechanisms[c] for c in tested.members])
            and len({blocks[c] for c in tested.members}) == 1
            and doubts[s] <= ACCURATE
            and s not in gathered.twins  # the remainders of twins are alike, which looks like keys
        )
        self._series: dict[int, Series] = {}

    def base(self, s: int) -> int:
        """Return the base of the counts of a sum."""
        how = self._mechanisms[self.gathered.sums[s].total]
        assert isinstance(how, Rounding | Sample)
        return how.base

    def expected(self, s: int, constants: Sequence[float], whole: bool) -> Floats:
        """Return the expected shares of |r| = 0, b, 2b … of a sum, independent ones first, then those at each constant."""
        tested, base = self.gathered.sums[s], self.base(s)
        if s not in self._series:
            first, total = int(self.gathered.offsets[s]), self._mechanisms[tested.total]
            assert total is not None
            self._series[s] = self._laws.series(total, range(first, first + len(tested.parts)))
        series = self._series[s]
        if not whole:  # small counts change the shares by about as much whether they are whole or not
            series = series + even_series(base, len(tested.parts), False) - even_series(base, len(tested.parts))
        keyed = keyed_shares(series, (len(tested.parts) - 1) * np.asarray(constants))
        shares = np.concatenate([series[:1].real.clip(0), keyed])
        return np.asarray(shares / shares.sum(1, keepdims=True))

    def likelihoods(self, s: int, numbers: Ints) -> Floats:
        """Return log likelihoods of residuals: parts of the file × (whole, weighted) × (independent, then `GRID`)."""
        shares = np.array([self.expected(s, GRID.tolist(), whole) for whole in (True, False)])
        return np.asarray(np.einsum("pr,wgr->pwg", numbers[:, : shares.shape[-1]], np.log(np.maximum(shares, 1e-7))))


def table_roundings(
    sums: KeyedSums, tables: Mapping[str, Sequence[int]], alike: Mapping[str, float]
) -> tuple[dict[str, TableRounding], dict[str, Floats]]:
    """Return what the random numbers of every table do, and the log likelihoods of the constants of `GRID`.

    There are no likelihoods for tables in which no one constant can be right.
    """
    roundings, curves = dict[str, TableRounding](), dict[str, Floats]()
    for table, members in tables.items():
        those = [s for s in members if s in sums.usable]
        number = int(sums.gathered.stepped[those].sum())
        if number < LEAST:
            what = f"only {number:,} large sums of two or three rounded parts; {LEAST} are needed"
            roundings[table] = TableRounding(UNKNOWN, why=what)
            continue
        by_group = {s: sums.likelihoods(s, sums.gathered.stepped[s]) / alike[table] for s in those}
        roundings[table], curve = _judged(sums, those, by_group, number, alike[table])
        if curve is not None:
            curves[table] = curve
    return roundings, curves


def _judged(
    sums: KeyedSums, those: Sequence[int], by_group: Mapping[int, Floats], number: int, alike: float
) -> tuple[TableRounding, Floats | None]:
    """Choose the likeliest model of a table, and see whether it fits."""
    together = np.sum([curves_of.sum(0) for curves_of in by_group.values()], axis=0)
    alone, keyed = together[:, 0], together[:, 1:]
    penalty = max(PENALTY, float(np.log(number)))
    gain = float(2 * (keyed.max() - alone.max()))
    is_keyed = gain > penalty
    ways = keyed.max(1) if is_keyed else alone
    whole = bool(ways[0] >= ways[1])
    is_told = bool(2 * abs(ways[0] - ways[1]) > TELLING)
    curve = keyed[0 if whole else 1]
    constant, error = peak(curve) if is_keyed else (None, None)
    if is_keyed and not is_told:  # then the constant is not known better than the two ways allow
        other, _ = peak(keyed[1 if whole else 0])
        constant, error = peak(curve)
        error = max(error, abs(other - constant))
    comparison = compared(sums, those, constant, whole, alike)
    rounding = TableRounding(
        KEYED if is_keyed else INDEPENDENT, constant, error, whole if is_told else None, comparison.p_value
    )
    ruled_out = 2 * (alone.max() - keyed[:, [0, -1]].max()) > UNDECIDED
    if not is_keyed and (gain > UNDECIDED or not ruled_out):
        why = f"{number:,} large sums fit both independent rounding and keys with some constant"
        return replace(rounding, model=UNKNOWN, why=why), curve
    if comparison.p_value < CHANCE and comparison.distance > ACCURATE:
        add_up, should = (float(of[0] / of.sum()) for of in (comparison.observed, comparison.expected))
        # Rounded to the nearest multiple, counts add up as often, but then no sum of a few misses by two steps.
        if add_up > should + CONTROLLED and comparison.observed[2:].sum():
            why = f"{add_up:.0%} of {number:,} large sums add up, and {should:.0%} would if counts were rounded on their own"
            return replace(rounding, model=PARTLY, constant=None, error=None, why=f"partly controlled rounding: {why}"), None
        why = f"neither independent rounding nor keys with one constant fit (off by {comparison.distance:.1%})"
        return replace(rounding, model=UNKNOWN, constant=None, error=None, why=why), None
    numbers = {s: int(sums.gathered.stepped[s].sum()) for s in those}
    divided = _divided(by_group, numbers, 0 if whole else 1, constant)
    if divided:
        return replace(rounding, model=UNKNOWN, constant=None, error=None, why=divided), None
    return replace(rounding, why=f"fits {number:,} large sums (off by {comparison.distance:.1%})"), curve


def peak(curve: Floats) -> tuple[float, float]:
    """Return the likeliest constant and its standard error, from log likelihoods over `GRID`."""
    at = int(curve.argmax())
    # A parabola through the neighbours; beyond the ends, likelihoods go on as in a mirror.
    left, right = curve[abs(at - 1)], curve[at + 1 if at + 1 < len(curve) else at - 1]
    bend = 2 * curve[at] - left - right
    step = float(GRID[1])
    move = float(np.clip((right - left) / (2 * bend), -0.5, 0.5)) if bend > 0 else 0.0
    # The standard error: half the width of the interval within half a unit of log likelihood, half a step at least.
    inside = GRID[curve >= curve[at] - 0.5]
    error = max(inside.max() - GRID[at], GRID[at] - inside.min(), step / 2)
    return float(np.clip(GRID[at] + move * step, 0.0, 0.5)), float(error)


def compared(sums: KeyedSums, those: Sequence[int], constant: float | None, whole: bool, alike: float) -> FamilyHistogram:
    """Return the histogram of |r| in steps of some sums, beside the one that a model implies."""
    width = sums.gathered.stepped.shape[-1]
    seen, should = np.zeros(width), np.zeros(width)
    for s in those:
        numbers = sums.gathered.stepped[s].sum(0)
        expected = sums.expected(s, [] if constant is None else [constant], whole)[-1]
        seen += numbers
        should[: len(expected)] += numbers.sum() * expected
    return FamilyHistogram(seen, should, 0, 0.0, alike)


def _divided(by_group: Mapping[int, Floats], numbers: Mapping[int, int], way: int, constant: float | None) -> str:
    """Say why a table has more than one constant, if it has: by sum, or by part of the file; "" if not."""
    at = 0 if constant is None else 1 + int(np.abs(GRID - constant).argmin())
    by_sum = np.array([curves_of.sum(0)[way] for curves_of in by_group.values()])
    by_part = np.sum([curves_of[:, way] for curves_of in by_group.values()], axis=0)
    often = np.array([numbers[s] for s in by_group])
    for curves, shares, what in (
        (by_sum, often / often.sum(), "sums"),
        (by_part, np.full(len(by_part), 1.0), "parts of the file"),
    ):
        best, nearest = curves[:, 1:].max(1), GRID[curves[:, 1:].argmax(1)]
        away = np.abs(nearest - (EVEN if constant is None else constant)) > ANOTHER
        away &= 2 * (best - curves[:, at]) > PENALTY + 2 * np.log(len(curves))
        if shares[away].sum() > FEW_SUMS:
            return f"some {what} have constants of their own, such as {nearest[away][0]:.2f}"
    return ""


EVEN = 0.243
"""The constant at which the residuals of two parts are as those of independent rounding."""


class FamilyRounding(NamedTuple):
    """What is known of a family's table: its name, what its random numbers do, and the same by sum (see `Family`)."""

    table: str | None = None
    rounding: TableRounding | None = None
    by_sum: tuple[tuple[str, int, TableRounding], ...] = ()


@dataclass(frozen=True)
class RandomNumbers:
    """What was found.

    - `tables`: By table; columns outside tables are one, but need not have one constant.
    - `by_sum`: By position among the tested sums, of those that are frequent enough.
    - `repeats`: By count that appears in several columns.
    """

    tables: Mapping[str, TableRounding]
    by_sum: Mapping[int, TableRounding]
    repeats: tuple[RepeatRounding, ...]

    def of_family(self, release: Release, gathered: ResidualCounter, those: Sequence[int]) -> FamilyRounding:
        """Return what is known of a family's table."""
        blocks = {gathered.sums[s].block for s in those}
        if len(blocks) > 1:
            return FamilyRounding()
        (block,) = blocks
        by_sum = tuple(
            (release.columns[gathered.sums[s].total].key, int(gathered.stepped[s].sum()), self.by_sum[s])
            for s in those
            if s in self.by_sum
        )
        if all(len(gathered.sums[s].parts) == 1 for s in those):
            return FamilyRounding(block or None, self._of_repeats(release, gathered, those), by_sum)
        return FamilyRounding(block or None, self.tables.get(block or NO_TABLE), by_sum)

    def _of_repeats(self, release: Release, gathered: ResidualCounter, those: Sequence[int]) -> TableRounding | None:
        """Return what a family of repeated counts does; with two columns, how far apart their constants are."""
        keys = {release.columns[c].key for s in those for c in gathered.sums[s].members}
        mine = [repeat for repeat in self.repeats if keys & set(repeat.columns)]
        if not mine:
            return None
        models = {repeat.model for repeat in mine}
        if len(models) > 1:
            return TableRounding(UNKNOWN, why="some of these counts do one thing, and some another")
        first = mine[0]
        if len(mine) > 1 or first.model != KEYED or len(first.constants) > 2:
            return TableRounding(first.model, whole=first.whole, p_value=first.p_value, why=first.why)
        here, other = first.constants
        error = (first.errors[0] ** 2 + first.errors[1] ** 2) ** 0.5
        return TableRounding(KEYED, abs((other - here + 0.5) % 1.0 - 0.5), error, first.whole, first.p_value, first.why)


def random_numbers(
    release: Release,
    structure: Structure,
    gathered: ResidualCounter,
    laws: Laws,
    expected: Sequence[ExpectedShares],
    members: Mapping[str, Sequence[int]],
    repeated: RepeatTally,
) -> RandomNumbers:
    """Find out what the random numbers of every table do."""
    blocks = [column.block for column in release.columns]
    sums = KeyedSums(gathered, structure.mechanisms, blocks, laws, [of_sum.doubt for of_sum in expected])
    tables: dict[str, list[int]] = {}
    for s, tested in enumerate(gathered.sums):
        if len(tested.parts) > 1 and (tested.used or tested.kind == ADDED):
            tables.setdefault(tested.block or NO_TABLE, []).append(s)
    alike = dict.fromkeys(tables, 1.0)
    for place, those in enumerate(members.values()):
        those_blocks = {gathered.sums[s].block or NO_TABLE for s in those}
        if len(those_blocks) == 1 and (block := those_blocks.pop()) in alike:
            alike[block] = max(alike[block], gathered.alike(place))
    roundings, curves = table_roundings(sums, tables, alike)
    single = {str(s): [s] for s in sorted(sums.usable) if gathered.stepped[s].sum() >= LEAST}
    by_sum, _ = table_roundings(sums, single, dict.fromkeys(single, 1.0))
    repeats, constants = repeat_roundings(release, repeated, roundings, curves)
    for table, (constant, error) in constants.items():
        before = roundings.get(table, TableRounding(UNKNOWN))
        if table in curves or before.p_value is None:  # its own sums do not refute it
            why = "counts that are in other tables too" + (f"; {before.why}" if before.model == KEYED else "")
            roundings[table] = replace(before, model=KEYED, constant=constant, error=error, why=why)
    for table, those in tables.items():
        limits = [limit for s in those if (limit := find_cutoff(gathered, structure.mechanisms, s)) is not None]
        if limits and len({below for below, _ in limits}) == 1:  # sums of one table have one limit, or none is told
            error = max(error for _, error in limits)
            roundings[table] = replace(roundings[table], cutoff=limits[0][0], cutoff_error=error)
    for table in _always_the_same(release, structure):
        if table in roundings and roundings[table].model == INDEPENDENT:
            roundings[table] = replace(roundings[table], model=ALIKE)
    return RandomNumbers(roundings, {int(s): rounding for s, rounding in by_sum.items()}, tuple(repeats))


def _always_the_same(release: Release, structure: Structure) -> set[str]:
    """Return the tables with a count that other tables show as well, always as the same number."""
    tables = set[str]()
    for repeat in structure.repeats:
        blocks = {release.columns[c].block or NO_TABLE for c in repeat.columns}
        if repeat.alike and len(blocks) > 1:
            tables |= blocks
    return tables


CIRCLE = 400
"""Places around the circle that constants can have."""

MISPRINTS = 0.01
"""The share of counts that may do anything: one misprint must not refute a law that explains all others."""

FITTING, DEPARTING = 0.03, 0.01
"""How far the shares of patterns may be from a law (total variation), beyond chance; and must be from that of independent
roundings for keys to be found."""

SURE = 0.02
"""The largest standard error of a constant that is of use."""


Pattern = tuple[int, int]
"""The remainder of the exact count (−1 where none is published), and which columns show the higher number, as bits."""


@dataclass(frozen=True, slots=True)
class RepeatedCount:
    """One count in several columns, all rounded alike to one base; `names` are the tables, or columns outside tables."""

    columns: tuple[int, ...]
    names: tuple[str, ...]
    exact: int | None
    base: int

    def only(self, places: Sequence[int]) -> RepeatedCount:
        """Return the same count with some of its columns."""
        return replace(self, columns=tuple(self.columns[at] for at in places), names=tuple(self.names[at] for at in places))


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
            "differences": [round((number - first) % 1.0, 4) for number in self.constants],
            "errors": [round(number, 4) for number in self.errors],
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
            # Selected by one column alone: to ask it of all would favour counts whose roundings agree.
            fine = (shown[:, 0] >= LEAST_STEPS * group.base) & (most - least <= group.base)
            rest = np.full(len(counts), -1)
            if group.exact is not None:
                true = counts[:, group.exact].astype(np.int64)
                fine &= (true > ABSENT) & (true > most - group.base) & (true < least + group.base)
                rest = true % group.base
            bits = (shown > least[:, None]) @ (1 << np.arange(len(group.columns)))
            shown_as = np.stack([rest, bits, part], axis=1)[fine]
            for (r, b, p), times in zip(*np.unique(shown_as, axis=0, return_counts=True), strict=True):
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
    judged, known = list[RepeatRounding](), set[str]()
    waiting = list(zip(tally.groups, tally.patterns, strict=True))
    while waiting:  # total, men and women are in the same tables: together they tell more
        names = waiting[0][0].names
        those, waiting = [pair for pair in waiting if pair[0].names == names], [p for p in waiting if p[0].names != names]
        at = [placed.index[name] for name in names]
        fits = [_PatternFit.of(group, patterns, placed.whole(group), draws[:, at]) for group, patterns in those]
        doubtful, is_alone = _told_alone(fits)
        if doubtful is not None and is_alone:
            left = [place for place in range(len(names)) if place != doubtful]
            waiting += [(group.only(left), _without(patterns, doubtful, len(names))) for group, patterns in those]
            continue
        for (group, _), fit in zip(those, fits, strict=True):
            given = placed.whole(group), best[at], draws[:, at], tables
            judged.append(_repeated_judged(release, group, fit, doubtful, *given))
            known |= set(names) if judged[-1].model == KEYED else set()
    return judged, {
        name: (float(best[at]), float(errors[at])) for name, at in placed.index.items() if name in known & placed.fixed
    }


def _spread_of(draws: Floats) -> Floats:
    """Return the standard errors that the jackknife gives, and the width of a place."""
    return np.asarray(np.sqrt(draws.var(0) + CIRCLE**-2 / 12))


class _Circle:
    """The places of all tables' constants around the circle, by the likelihood of pairs and of sums."""

    def __init__(self, tally: RepeatTally, tables: Mapping[str, TableRounding], curves: Mapping[str, Floats]) -> None:
        names = dict.fromkeys(name for group in tally.groups for name in group.names)
        self.index = {name: at for at, name in enumerate(names)}
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
        fixed = {name for name in self.index if name in curves and np.ptp(curves[name]) > PENALTY}
        while more := {n for group in tally.groups if fixed & set(group.names) for n in group.names} - fixed:
            fixed |= more
        return fixed

    def whole(self, group: RepeatedCount) -> bool:
        """Return whether the tables of a count show whole numbers; they do unless one of them is found to be weighted."""
        return not any(name in self._tables and self._tables[name].whole is False for name in group.names)

    def places(self, parts: NDArray[Any], start: Floats | None = None) -> Floats:
        """Return the likeliest constants given some parts of the file, one at a time until none moves."""
        number = len(self.index)
        pairs = {both: parts @ curve for both, curve in self._pairs.items()}
        share = float(np.asarray(parts).mean())
        near: list[list[tuple[int, Floats]]] = [[] for _ in range(number)]
        for (first, other), curve in pairs.items():
            near[first].append((other, curve))
            near[other].append((first, curve))
        order = sorted(range(number), key=lambda at: (-float(np.ptp(self._own[at])), -len(near[at]), at))
        if start is not None:
            return self._settled(np.rint(start * CIRCLE).astype(np.int64) % CIRCLE, set(range(number)), order, near, share)[
                0
            ]
        tried = [self._settled(np.full(number, turn), set(), order, near, share) for turn in range(0, CIRCLE, CIRCLE // 8)]
        return max(tried, key=lambda pair: pair[1])[0]

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
            for table in order:
                likely = share * self._own[table].copy()
                for other, curve in near[table]:
                    if other in known:
                        likely += np.roll(curve, at[other])
                if not likely.any():
                    likely[turn] = 1.0  # the first of its circle: anywhere
                if near_only:
                    likely[np.abs((steps - at[table] + CIRCLE // 2) % CIRCLE - CIRCLE // 2) > CIRCLE // 10] = -np.inf
                at[table] = int(likely.argmax())
                gains[table] = likely[at[table]] + share * self._own[table, at[table]]
                known.add(table)
            at = self._turned(at, near)
            if (at == before).all():
                break
        return np.asarray(at / CIRCLE), float(gains.sum())

    def _turned(self, at: Ints, near: list[list[tuple[int, Floats]]]) -> Ints:
        """Turn tables that are connected, all together, to where their sums are likeliest."""
        at, left = at.copy(), set(range(len(at)))
        while left:
            group = {left.pop()}
            while more := {other for table in group for other, _ in near[table]} - group:
                group |= more
            left -= group
            likely = np.sum([np.roll(self._own[table], -at[table]) for table in group], axis=0)
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


def pattern_shares(constants: Sequence[float], chances: Floats, alone: int | None = None) -> dict[int, float]:
    """Return how often which columns show the higher number, as bits, for counts that go up with these chances.

    The column `alone`, if any, has a random number of its own.
    """
    shares: dict[int, float] = {}
    places = np.asarray(constants)
    bits = 1 << np.arange(len(places))
    everything, own_bit = int(bits.sum()), 0 if alone is None else int(bits[alone])
    for chance in chances.tolist():
        ends = np.unique(np.concatenate([[0.0, 1.0], -places % 1.0, (chance - places) % 1.0]))
        middle = (ends[1:] + ends[:-1]) / 2
        up = ((middle[:, None] + places) % 1.0 < chance) @ bits
        for pattern, length in zip(up.tolist(), np.diff(ends).tolist(), strict=True):
            for bit, share in ((own_bit, chance), (0, 1 - chance)) if own_bit else ((pattern & own_bit, 1.0),):
                key = (pattern & ~own_bit) | bit
                key = 0 if key == everything else key
                shares[key] = shares.get(key, 0.0) + share * length / len(chances)
    return shares


def _alone(pattern: int, number: int, chances: Floats) -> float:
    """Return how often a pattern comes if every column has a random number of its own."""
    ups = bin(pattern).count("1")
    share = chances**ups * (1 - chances) ** (number - ups)
    return float((share if pattern else share + chances**number).mean())


def _without(patterns: Mapping[Pattern, Ints], column: int, number: int) -> dict[Pattern, Ints]:
    """Return the patterns of all columns but one."""
    fewer: dict[Pattern, Ints] = {}
    for (rest, bits), times in patterns.items():
        left = bits >> (column + 1) << column | bits & ((1 << column) - 1)
        left = 0 if left == (1 << (number - 1)) - 1 else left  # all alike
        fewer[rest, left] = fewer.get((rest, left), 0) + times
    return fewer


@dataclass(frozen=True, slots=True, eq=False)
class _PatternFit:
    """How often one repeated count showed each pattern, and should: by chance, and by keys.

    `by_keys` has the law in which all columns have one random number (None), and those in which one of them has its own:
    the same people may be other records there.
    """

    observed: Floats
    by_chance: Floats
    by_keys: Mapping[int | None, Floats]

    @classmethod
    def of(cls, group: RepeatedCount, patterns: Mapping[Pattern, Ints], whole: bool, draws: Floats) -> _PatternFit:
        """Work out the laws at the constants that were drawn."""
        number = len(group.columns)
        ways = (None, *range(number)) if number > 2 else (None,)
        seen, alone = list[int](), list[float]()
        keyed: dict[int | None, list[float]] = {way: [] for way in ways}
        for rest in sorted({rest for rest, _ in patterns}):
            here = {bits: int(times.sum()) for (r, bits), times in patterns.items() if r == rest}
            chances = np.array([rest / group.base]) if rest >= 0 else _chances(group.base, whole)
            laws = {way: [pattern_shares(draw, chances, way) for draw in draws.tolist()] for way in ways}
            times = sum(here.values())
            for bits in sorted(set(here).union(*(law for several in laws.values() for law in several))):
                seen.append(here.get(bits, 0))
                alone.append(times * _alone(bits, number, chances))
                for way, several in laws.items():
                    keyed[way].append(times * float(np.mean([law.get(bits, 0.0) for law in several])))
        return cls(np.array(seen, dtype=np.float64), np.array(alone), {way: np.array(law) for way, law in keyed.items()})

    def gain(self, way: int | None) -> float:
        """Return twice the gain in log likelihood over independent roundings, but for a few misprints."""
        some = self.observed > 0
        by_chance = np.maximum(self.by_chance[some], 1e-300)
        mixed = (1 - MISPRINTS) * self.by_keys[way][some] + MISPRINTS * by_chance
        return 2 * float(self.observed[some] @ (np.log(mixed) - np.log(by_chance)))


def _told_alone(fits: Sequence[_PatternFit]) -> tuple[int | None, bool]:
    """Return the column that has, or may have, random numbers of its own, by counts in the same tables; whether it has."""
    gains = {way: sum(fit.gain(way) for fit in fits) for way in fits[0].by_keys}
    likeliest = max((way for way in gains if way is not None), key=lambda way: gains[way], default=None)
    if likeliest is None or max(gains.values()) <= PENALTY or gains[None] - gains[likeliest] > UNDECIDED:
        return None, False
    return likeliest, gains[likeliest] - gains[None] > UNDECIDED


def _repeated_judged(
    release: Release,
    group: RepeatedCount,
    fit: _PatternFit,
    doubtful: int | None,
    whole: bool,
    constants: Floats,
    draws: Floats,
    tables: Mapping[str, TableRounding],
) -> RepeatRounding:
    """Choose between keys and independent rounding for one count, and see whether the choice fits."""
    keys, number = tuple(release.columns[c].key for c in group.columns), len(group.columns)
    areas = int(fit.observed.sum())
    if areas < LEAST:
        return RepeatRounding(keys, UNKNOWN, areas=areas, why=f"large in only {areas:,} areas; {LEAST} are needed")
    errors = _spread_of(draws - draws[:, :1])  # how the circle is turned does not matter here
    penalty = max(PENALTY, (number - 1) * float(np.log(areas)))
    independent, by_keys = (FamilyHistogram(fit.observed, law, 0, 0.0, 1.0) for law in (fit.by_chance, fit.by_keys[None]))
    # No law is exact. In many areas any flaw would be significant, so that it has to miss by enough as well.
    is_keyed = fit.gain(None) > penalty and independent.distance - independent.noise > DEPARTING
    best = by_keys if is_keyed else independent
    p_value, off = best.p_value, best.distance - best.noise
    placed = tuple(constants.tolist()), tuple(errors.tolist())
    why = ""
    if p_value < CHANCE and off > FITTING:
        why = f"neither independent roundings nor keys fit (off by {best.distance:.1%})"
    elif is_keyed and errors.max() > SURE:
        why = f"the constants are not the same everywhere, or not known well enough (± {errors.max():.2f})"
    elif is_keyed and doubtful is not None:
        why = f"whether {keys[doubtful]} has the random numbers of the others cannot be told"
    elif is_keyed:
        return RepeatRounding(keys, KEYED, *placed, whole, areas, p_value, f"fits {areas:,} areas")
    elif number == 2 and group.exact is None and any(tables[name].model == KEYED for name in group.names if name in tables):
        why = "two columns that differ as often as independent ones, or as ones with constants 0.2 apart"
    if why:
        return RepeatRounding(keys, UNKNOWN, whole=whole, areas=areas, p_value=p_value, why=why)
    return RepeatRounding(keys, INDEPENDENT, (), (), whole, areas, p_value, f"fits {areas:,} areas")
