"""Which sums are tested, the families that they form, an observed histogram beside the expected one, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import numpy as np

from unround.expectation import chi_square_tail, surprise
from unround.mechanisms import Exact, Mechanism
from unround.mechanisms.base import step_of
from unround.release import Release, axis_of, table_of
from unround.shown import Plain
from unround.structure import JudgedSum, Structure
from unround.tables.labels import age_range

FITS, DEPARTS, CONTRADICTS, UNTESTED = "fits", "departs", "contradicts", "untested"
ORDER = (CONTRADICTS, DEPARTS, FITS)
"""The worst first."""

LEAST_SUMS = 100
"""A family of fewer sums with a large enough total is not tested."""

CHANCE = 1e-3
"""A departure must be less likely than this to be chance …"""

LEAST_DISTANCE = 0.02
"""… and the observed shares must differ from the expected ones by this much in total (total variation), …"""

LEAST_TAIL = 1.25
"""… or the largest residuals occur this many times as often, or as rarely, as expected."""

LEAST_EXPECTED = 5.0
"""Residuals that are expected less often than this are pooled with others in the test; a ratio needs at least this many of
the largest ones to be expected."""


SLIPS, SLIP_SHARE = 2, 0.002
"""This many impossible sums, or this share of all, may be typing errors."""


def more_than_slips(impossible: int, of: int) -> bool:
    """Whether so many of all sums, or counts, are impossible that typing errors do not explain it."""
    return impossible > max(SLIPS, SLIP_SHARE * of)


@dataclass(frozen=True, slots=True)
class SizedHistogram(Plain):
    """A part of a family: the sums with a total from `least` on, up to the next such part.

    `shares` are those of each |r|; `tail_ratio` is as for the family.
    """

    least: int
    sums: int
    shares: Mapping[int, float]
    tail_ratio: float | None


INDEPENDENT, ALIKE, KEYED, UNKNOWN = "independent", "alike", "keyed", "unknown"
PARTLY = "partly controlled"


@dataclass(frozen=True, slots=True)
class TableRounding(Plain):
    """What the random numbers of a table do.

    - `model`: "independent", "alike" (the same count is the same number wherever it appears), "keyed", "partly controlled"
      (rounded so that most sums add up) or "unknown".
    - `constant`, `error`: Of two parts: what the total's random number has beyond the sum of theirs, and its standard
      error; around the circle and in either direction, unless other tables with the same counts tell.
    - `whole`: Whether whole numbers were rounded, or weighted estimates; None where that cannot be told.
    - `p_value`: How likely residuals as far from this model's are, if it is right.
    - `why`: What speaks for it, or why nothing can be said.
    - `cutoff`, `cutoff_error`: The limit under which counts seem to become 0 before they are rounded, and how far off it
      may be; None where nothing suggests one.
    """

    model: str
    constant: float | None = None
    error: float | None = None
    whole: bool | None = None
    p_value: float | None = None
    why: str = ""
    cutoff: int | None = None
    cutoff_error: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data; a limit only where there is one."""
        plain = Plain.to_json(self)
        return plain if self.cutoff is not None else {name: plain[name] for name in plain if not name.startswith("cutoff")}

    @property
    def in_words(self) -> str:
        """The model and its constant, in a few words."""
        said = self.model
        if self.model == KEYED and self.constant is not None and self.error is not None:
            said = f"{KEYED}, {self.constant:.2f} ± {max(self.error, 0.005):.2f}"
        said += "" if self.cutoff is None else f", counts under {self.cutoff} become 0"
        return said + ("" if self.whole is not False else ", weighted")


@dataclass(frozen=True)
class Family(Plain):
    """What was found about one family of sums.

    - `family`: What kind of sums, and in which table.
    - `sums`: How many were compared: sums times areas.
    - `observed`: How often each |total − Σ parts| was published; for a family of counts, each remainder.
    - `expected`: The share expected of each.
    - `p_value`: How likely a histogram as far from the expected one is, if the mechanism is right.
    - `tail_ratio`: How often the largest |r| occurs, relative to expectation; None with too few sums.
    - `distance`: The total variation between the two.
    - `impossible`: In how many sums no true counts fit.
    - `otherwise`: The verdict without the impossible ones.
    - `verdict`, `note`: The verdict, what it is based on, and what it means.
    - `by_size`: The same, by the size of the total.
    - `clash`: The smallest set of cells that clash, for one example; "" where there is none.
    - `columns`: The columns of the release that are in these sums.
    - `inexact`: Whether it casts doubt on a count that is declared exact.
    - `refuted`: Whether more is impossible than slips explain, so that the mechanism cannot be what it is taken for.
    - `basis`: Who declared the mechanisms of its rounded counts: "format", "description"; or "inferred".
    - `table`: The table that all of its sums are in; None where they are in several, or in none.
    - `rounding`: What the random numbers of that table do; None for families of several tables, of counts and of areas.
    - `by_sum`: The same for every sum alone: its total, the number of sums, and what its random numbers do.
    """

    ASIDE = ("columns", "inexact")

    family: str
    sums: int
    observed: Mapping[int, int]
    expected: Mapping[int, float]
    p_value: float | None
    tail_ratio: float | None
    distance: float | None
    impossible: int
    otherwise: str
    verdict: str
    note: str
    by_size: tuple[SizedHistogram, ...] = ()
    clash: str = ""
    columns: frozenset[int] = field(default=frozenset(), repr=False)
    inexact: bool = False
    refuted: bool = False
    basis: tuple[str, ...] = ()
    table: str | None = None
    rounding: TableRounding | None = None
    by_sum: tuple[tuple[str, int, TableRounding], ...] = ()

    @property
    def unexplained(self) -> bool:
        """Whether sums that an audit uses depart from their mechanism, and keys do not explain it.

        A limit under which counts become 0 does not do: it is known to a count or so, and how many were below is not.
        """
        return self.otherwise == DEPARTS and self.rounding is not None and self.rounding.model != KEYED

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return Plain.to_json(self) | {
            "by_sum": [{"total": total, "sums": sums, **rounding.to_json()} for total, sums, rounding in self.by_sum]
        }


@dataclass(frozen=True, slots=True)
class FamilyHistogram:
    """An observed histogram of |r| beside the expected one.

    - `observed`, `expected`: How many sums have, and should have, each |r| from 0 on.
    - `tail`, `tail_expected`: How many sums have, and should have, the largest |r| that they can have.
    - `alike`: How much more the sums of one area vary together than independent ones would.
    - `doubt`: How far the expected shares themselves may be off (total variation), as small counts are not known.
    - `tail_range`: How many of the largest |r| there should be at least and at most, for the same reason.
    """

    observed: np.ndarray
    expected: np.ndarray
    tail: int
    tail_expected: float
    alike: float
    doubt: float = 0.0
    tail_range: tuple[float, float] | None = None

    @property
    def sums(self) -> int:
        """How many were compared."""
        return int(self.observed.sum())

    @property
    def distance(self) -> float:
        """The total variation between the shares."""
        n = max(self.sums, 1)
        return float(np.abs(self.observed - self.expected).sum() / 2 / n)

    @property
    def tail_ratio(self) -> float | None:
        """How often the largest |r| occurs, relative to expectation; None where too few are expected."""
        return float(self.tail / self.tail_expected) if self.tail_expected >= LEAST_EXPECTED else None

    @property
    def p_value(self) -> float:
        """Pearson's test on the folded histogram, its statistic reduced for the dependence of sums within an area."""
        seen, should = _joined(self.observed, self.expected)
        if len(should) < 2:
            return 1.0
        statistic = float(((seen - should) ** 2 / should).sum()) / self.alike
        return chi_square_tail(len(should) - 1, statistic)

    @property
    def departs(self) -> bool:
        """Whether it departs, both statistically and by size."""
        if self.sums < LEAST_SUMS or self.p_value >= CHANCE:
            return False
        if self.distance >= LEAST_DISTANCE + self.noise + self.doubt:
            return True
        ratio = self.tail_ratio
        if ratio is None or 1 / LEAST_TAIL < ratio < LEAST_TAIL:
            return False
        least, most = self.tail_range or (self.tail_expected, self.tail_expected)
        return not least <= self.tail <= most and surprise(self.tail, least if self.tail < least else most) < CHANCE

    @property
    def noise(self) -> float:
        """The average distance due to chance alone: few sums never match the expectation exactly."""
        shares = self.expected / max(self.expected.sum(), 1e-300)
        error = np.sqrt(shares * (1 - shares) * self.alike / max(self.sums, 1))
        return float(error.sum() * (2 / np.pi) ** 0.5 / 2)


def _joined(observed: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pool residuals from the outside in until each group is expected often enough."""
    seen, should = list[float](), list[float]()
    count = number = 0.0
    for far in np.flatnonzero((expected > 0) | (observed > 0))[::-1].tolist():
        count, number = count + float(observed[far]), number + float(expected[far])
        if number >= LEAST_EXPECTED:
            seen.append(count)
            should.append(number)
            count = number = 0.0
    if number > 0 and should:
        seen[-1] += count
        should[-1] += number
    return np.array(seen), np.array(should)


def worst(verdicts: list[str]) -> str:
    """Return the worst of some verdicts; "untested" if there is none."""
    return next((verdict for verdict in ORDER if verdict in verdicts), UNTESTED)


LEAST_STEPS = 8
"""The least total, in steps between published counts: 40 where counts were rounded to base 5. Below that, the windows of
most parts end at 0, and residuals depend more on the sizes of counts than on their rounding."""

AGES_BY_SEX = "ages by sex"
OTHERS_BY_SEX = "other counts by sex"
UNDER_EXACT = "parts under an exact total"
AGES = "ages under their parent"
PARTS = "parts under their total"
REPEATS = "repeated totals"
EXACT_TWICE = "repeats of an exact count"
ADDED = "added sums"
KINDS = (AGES_BY_SEX, OTHERS_BY_SEX, AGES, PARTS, UNDER_EXACT, EXACT_TWICE, REPEATS, ADDED)

INEXACT = 0.25
"""A sum with an exact count that is impossible in at most this share of the areas, and balanced, may only be inexact."""

ALL_TABLES = "all tables"
LEFT_OUT = ", not used by an audit"
NO_TABLE = "ungrouped columns"


@dataclass(frozen=True, slots=True)
class TestedSum:
    """A sum whose residuals are compared with what its mechanisms imply.

    - `total`, `parts`: Positions of columns.
    - `kind`, `block`: What it adds up, one of `KINDS`; and its table.
    - `rounding`: The mechanism of its parts, by name; of the total, where the parts are exact.
    - `least`: The least published total of the areas in which it is compared.
    - `used`: Whether the audit uses it.
    """

    total: int
    parts: tuple[int, ...]
    kind: str
    block: str
    rounding: str
    least: int
    used: bool

    @property
    def members(self) -> tuple[int, ...]:
        """The total and the parts."""
        return self.total, *self.parts


def sums_to_test(release: Release, structure: Structure) -> list[TestedSum]:
    """Return the sums to test: all that hold, and those that only the rounding made doubtful.

    A sum that the format suggests and the counts refute says nothing about the rounding: it is not a sum. Those that the
    user added are tested whatever the counts say, and so are men and women.
    """
    # The sums that the user adds to those of the format.
    wanted = {
        (proposal.total, frozenset(proposal.parts))
        for proposal in release.proposals
        if proposal.use and proposal.origin == "file"
    }
    tested: dict[tuple[int, frozenset[int]], TestedSum] = {}
    for judged, used in _candidates(structure, wanted):
        mechanisms = [structure.mechanisms[c] for c in (judged.total, *judged.parts)]
        if any(how is None for how in mechanisms):
            continue
        known = [how for how in mechanisms if how is not None]
        added = judged.origin in ("file", "labels") or (judged.total, frozenset(judged.parts)) in wanted
        kind = ADDED if added else _kind(release, judged, known)
        least = LEAST_STEPS * max(step_of(how) for how in known)
        rounding = next((how for how in [*known[1:], known[0]] if not isinstance(how, Exact)), Exact()).name
        block = table_of(release.columns, judged.total, judged.parts)
        key = judged.total, frozenset(judged.parts)
        tested.setdefault(key, TestedSum(judged.total, judged.parts, kind, block, rounding, least, used))
    return list(tested.values())


def _candidates(structure: Structure, wanted: set[tuple[int, frozenset[int]]]) -> Iterator[tuple[JudgedSum, bool]]:
    for judged in structure.sums:
        yield judged, True
    for judged in structure.rejected:
        narrow = judged.cause == "exactly" or (judged.cause == "spread" and judged.spread < judged.expected)
        stated = judged.origin in ("file", "labels", "sex") or (judged.total, frozenset(judged.parts)) in wanted
        refuted = stated and judged.cause in ("impossible", "mean", "spread")
        if not judged.unjudged and ((narrow and len(judged.parts) > 1) or refuted or _perhaps_inexact(judged, structure)):
            yield judged, False
    for repeat in structure.repeats:
        if not repeat.alike:
            for first, second in combinations(repeat.columns, 2):
                yield JudgedSum(second, (first,), "repeat", structure.areas, 0, 0.0, 0.0, 0.0, True, ""), True


def _perhaps_inexact(judged: JudgedSum, structure: Structure) -> bool:
    """Return whether a sum may have been refuted only because a count that is declared exact is not.

    Counts that the format takes for the same people but are not, such as those in private households, differ to one side.
    """
    kinds = [structure.mechanisms[c] for c in (judged.total, *judged.parts)]
    if judged.cause not in ("impossible", "spread") or Exact() not in kinds or None in kinds:
        return False
    return judged.impossible <= INEXACT * judged.areas and abs(judged.mean) <= judged.spread / 4


def _kind(release: Release, judged: JudgedSum, mechanisms: Sequence[Mechanism]) -> str:
    columns = [release.columns[c] for c in (judged.total, *judged.parts)]
    if len(judged.parts) == 1:
        return EXACT_TWICE if any(isinstance(how, Exact) for how in mechanisms) else REPEATS
    if isinstance(mechanisms[0], Exact):
        return UNDER_EXACT
    along = axis_of(columns)
    if judged.origin == "sex" or (along is not None and release.axes[along] == "sex"):
        return AGES_BY_SEX if age_range(columns[0].label) else OTHERS_BY_SEX
    return AGES if all(age_range(column.label) for column in columns[1:]) else PARTS


def families_of(sums: Sequence[TestedSum]) -> dict[str, list[int]]:
    """Return the families: those of each table, and those of all tables together where there are several.

    Tables are kept apart because agencies start their random numbers table by table. So are mechanisms: counts of a sample
    are rounded by another rule. And so are sums that an audit does not use, because they add up too well or not at all.
    """
    tables: dict[tuple[str, str, bool, str], list[int]] = {}
    for at, tested in enumerate(sums):
        tables.setdefault((tested.kind, tested.rounding, tested.used or tested.kind == ADDED, tested.block), []).append(at)
    several = len({tested.rounding for tested in sums}) > 1
    families: dict[str, list[int]] = {}
    for kind in KINDS:
        for rounding, used in product(dict.fromkeys(tested.rounding for tested in sums), (True, False)):
            those = {block: at for (k, r, u, block), at in tables.items() if (k, r, u) == (kind, rounding, used)}
            said = (f"{kind} ({rounding})" if several else kind) + ("" if used else LEFT_OUT)
            if len(those) > 1:
                families[f"{said}: {ALL_TABLES}"] = sorted(at for members in those.values() for at in members)
            for block, members in those.items():
                families[f"{said}: {block or NO_TABLE}"] = members
    return families
