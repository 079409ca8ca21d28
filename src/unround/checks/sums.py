"""Which sums of a release are tested, and which family each belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from unround.mechanisms import Exact, Mechanism
from unround.mechanisms.base import step_of
from unround.release import Column, Release, table_of
from unround.structure import JudgedSum, PlanFile, Structure
from unround.tables.ages import age_range

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


def sums_to_test(release: Release, structure: Structure, plan_file: PlanFile | None = None) -> list[TestedSum]:
    """Return the sums to test: all that hold, and those that only the rounding made doubtful.

    A sum that the format suggests and the counts refute says nothing about the rounding: it is not a sum. Those that the
    user added are tested whatever the counts say, and so are men and women.
    """
    wanted = _wanted(release, plan_file)
    found: dict[tuple[int, frozenset[int]], TestedSum] = {}
    for one, used in _candidates(structure, wanted):
        mechanisms = [structure.mechanisms[c] for c in (one.total, *one.parts)]
        if any(how is None for how in mechanisms):
            continue
        known = [how for how in mechanisms if how is not None]
        added = one.origin == "file" or (one.total, frozenset(one.parts)) in wanted
        kind = ADDED if added else _kind(release, one, known)
        least = LEAST_STEPS * max(step_of(how) for how in known)
        rounding = next((how for how in [*known[1:], known[0]] if not isinstance(how, Exact)), Exact()).name
        block = table_of(release.columns, one.total, one.parts)
        key = one.total, frozenset(one.parts)
        found.setdefault(key, TestedSum(one.total, one.parts, kind, block, rounding, least, used))
    return list(found.values())


def _wanted(release: Release, plan_file: PlanFile | None) -> set[tuple[int, frozenset[int]]]:
    """Return the sums that the user's plan adds to those of the format."""
    place: dict[str | tuple[str, ...], int] = {}
    for at, column in enumerate(release.columns):
        place |= {column.key: at, column.codes: at}
    return {
        (place[ruling.total], frozenset(place[part] for part in ruling.parts))
        for ruling in (plan_file.sums if plan_file else ())
        if ruling.use and ruling.origin == "file"
    }


def _candidates(structure: Structure, wanted: set[tuple[int, frozenset[int]]]) -> Iterator[tuple[JudgedSum, bool]]:
    for one in structure.sums:
        yield one, True
    for one in structure.rejected:
        narrow = one.cause == "exactly" or (one.cause == "spread" and one.spread < one.expected)
        stated = one.origin in ("file", "sex") or (one.total, frozenset(one.parts)) in wanted
        refuted = stated and one.cause in ("impossible", "mean", "spread")
        if not one.unjudged and ((narrow and len(one.parts) > 1) or refuted or _perhaps_inexact(one, structure)):
            yield one, False
    for repeat in structure.repeats:
        if not repeat.alike:
            for first, second in combinations(repeat.columns, 2):
                yield JudgedSum(second, (first,), "repeat", structure.areas, 0, 0.0, 0.0, 0.0, True, ""), True


def _perhaps_inexact(one: JudgedSum, structure: Structure) -> bool:
    """Say whether a sum may have been refuted only because a count that is declared exact is not.

    Counts that the format takes for the same people but are not, such as those in private households, differ to one side.
    """
    kinds = [structure.mechanisms[c] for c in (one.total, *one.parts)]
    if one.cause not in ("impossible", "spread") or Exact() not in kinds or None in kinds:
        return False
    return one.impossible <= INEXACT * one.areas and abs(one.mean) <= one.spread / 4


def _kind(release: Release, one: JudgedSum, mechanisms: Sequence[Mechanism]) -> str:
    columns = [release.columns[c] for c in (one.total, *one.parts)]
    if len(one.parts) == 1:
        return EXACT_TWICE if any(isinstance(how, Exact) for how in mechanisms) else REPEATS
    if isinstance(mechanisms[0], Exact):
        return UNDER_EXACT
    if one.origin == "sex" or _along(release.axes, columns) == "sex":
        return AGES_BY_SEX if age_range(columns[0].label) else OTHERS_BY_SEX
    return AGES if all(age_range(column.label) for column in columns[1:]) else PARTS


def _along(axes: Sequence[str], columns: Sequence[Column]) -> str | None:
    """Return the axis along which a sum adds up; None where several codes change at once."""
    changing = [axis for at, axis in enumerate(axes) if len({column.codes[at] for column in columns}) > 1]
    return changing[0] if len(changing) == 1 else None


def families_of(sums: Sequence[TestedSum]) -> dict[str, list[int]]:
    """Return the families: those of each table, and those of all tables together where there are several.

    Tables are kept apart because agencies start their random numbers table by table. So are mechanisms: counts of a sample
    are rounded by another rule. And so are sums that an audit does not use, because they add up too well or not at all.
    """
    tables: dict[tuple[str, str, bool, str], list[int]] = {}
    for at, one in enumerate(sums):
        tables.setdefault((one.kind, one.rounding, one.used or one.kind == ADDED, one.block), []).append(at)
    several = len({one.rounding for one in sums}) > 1
    found: dict[str, list[int]] = {}
    for kind in KINDS:
        for rounding, used in product(dict.fromkeys(one.rounding for one in sums), (True, False)):
            those = {block: at for (k, r, u, block), at in tables.items() if (k, r, u) == (kind, rounding, used)}
            said = (f"{kind} ({rounding})" if several else kind) + ("" if used else LEFT_OUT)
            if len(those) > 1:
                found[f"{said}: {ALL_TABLES}"] = sorted(at for members in those.values() for at in members)
            for block, members in those.items():
                found[f"{said}: {block or NO_TABLE}"] = members
    return found
