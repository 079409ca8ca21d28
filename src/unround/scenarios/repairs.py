"""Small changes to a table that may keep it from exposing what stood in an older one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unround.differences import Diff
from unround.differences.run import KINDS
from unround.errors import InputError
from unround.mechanisms import Exact, Mechanism, Rounding
from unround.release import ABSENT, Release
from unround.scenarios.scenario import Scenario
from unround.scenarios.tables import Numbers, published_anew, with_numbers_of, without
from unround.score.summary import SIZES

SAME, REPEATS, TOTALS, SINGLE, BASE = "same-numbers", "drop-repeats", "drop-totals", "drop", "base"
REPAIRS = (SAME, REPEATS, TOTALS, SINGLE, BASE)
"""What can be tried; `drop=KEY` leaves out a column of one's own choice, `base=N` takes any base."""

SINGLES = 2
"""Totals, and other columns, that are left out one at a time: those next to most that is exposed."""


@dataclass(frozen=True)
class Repair:
    """A change to a table.

    - `name`: How the command line calls it.
    - `sentence`: What is done, for people.
    - `dropped`: Columns that are left out.
    - `same`: Whether counts that the release has are published with its numbers.
    - `base`: What rounded counts are rounded to instead.
    """

    name: str
    sentence: str
    dropped: tuple[int, ...] = ()
    same: bool = False
    base: int | None = None

    def mechanisms(self, setting: Scenario) -> dict[int, Mechanism]:
        """Return how the columns that it changes are published."""
        if self.same:
            return {at: how for at, there in setting.shared.items() if (how := setting.of_release(there)) is not None}
        return {} if self.base is None else dict.fromkeys(coarser(setting, self.base), Rounding(self.base))

    def applied(self, setting: Scenario, table: Release, truth: Numbers | None) -> Release:
        """Return the table as the repair leaves it; `truth` is needed for another base."""
        if self.dropped:
            return without(table, self.dropped)
        if self.same:
            return with_numbers_of(table, setting.release_numbers, self.mechanisms(setting))
        assert truth is not None
        return published_anew(table, truth, self.mechanisms(setting), setting.seed + 1)


def coarser(setting: Scenario, base: int) -> list[int]:
    """Return the columns of the table that are rounded to a smaller base."""
    bases = {at: how.base for at in range(len(setting.table.columns)) if isinstance(how := setting.of_table(at), Rounding)}
    return [at for at, own in bases.items() if own < base]


def repairs(setting: Scenario, wanted: Sequence[str] | None) -> tuple[list[Repair], dict[str, str]]:
    """Return the repairs that can be tried, and why others cannot."""
    found: dict[str, Repair] = {}
    refused: dict[str, str] = {}
    for name in wanted if wanted is not None else REPAIRS:
        made = list(_named(name.strip(), setting))
        for one in made:
            if len(set(one.dropped)) == len(setting.table.columns):
                refused[one.name] = "nothing would be left of the table"
            elif not any(set(one.dropped) == set(other.dropped) for other in found.values() if one.dropped):
                found[one.name] = one
        if not made:
            refused[name] = _why_not(name.strip())
    return list(found.values()), refused


def _why_not(name: str) -> str:
    words = {
        SAME: "no count of the table is in the release",
        REPEATS: "no count of the table is in the release",
        TOTALS: "no column of the table is a sum of its other columns",
        SINGLE: "the table exposes nothing",
    }
    return words.get(name, "no count of the table is rounded to a smaller base")


def _named(name: str, setting: Scenario) -> Iterator[Repair]:
    """Make the repairs that a name stands for; none where the table has nothing to repair so."""
    what, equals, value = name.partition("=")
    if name == SAME and setting.shared:
        said = "Publish counts that are already in the release with the same numbers, not rounded anew."
        yield Repair(SAME, said, same=True)
    elif name == REPEATS and setting.shared:
        yield Repair(REPEATS, "Leave out counts that are already in the release.", tuple(setting.shared))
    elif name == TOTALS and setting.totals:
        yield Repair(TOTALS, "Leave out all totals of the table; users add up the parts.", tuple(sorted(setting.totals)))
    elif name == SINGLE:
        yield from _singles(setting)
    elif what == SINGLE and equals:
        yield _dropping(setting, _column(setting, value))
    elif what == BASE:
        base = _base(value, equals, setting)
        if base is not None and coarser(setting, base):
            said = f"Round the table to base {base}, each count independently."
            yield Repair(f"{BASE}={base}", said, base=base)
    elif name not in REPAIRS:
        raise InputError(
            f"there is no repair {name!r}: choose from {', '.join(REPAIRS)}, {SINGLE}=KEY (a column to leave out), "
            f"{BASE}=N (another base)."
        )


def _base(value: str, equals: str, setting: Scenario) -> int | None:
    """Return the base to try: the user's, or twice the largest that the table has."""
    if equals:
        if not value.isdecimal() or int(value) < 2:
            raise InputError(f"{BASE}= takes a whole number of 2 or more, such as {BASE}=10; not {value!r}.")
        return int(value)
    every = range(len(setting.table.columns))
    bases = [how.base for at in every if isinstance(how := setting.of_table(at), Rounding)]
    return 2 * max(bases) if bases else None


def _column(setting: Scenario, name: str) -> int:
    index = setting.table.index
    if name not in index:
        few = ", ".join(list(index)[:6])
        raise InputError(f"{SINGLE}={name}: the table has no such column. Its columns are {few} …")
    return index[name]


def _dropping(setting: Scenario, at: int) -> Repair:
    column = setting.table.columns[at]
    kind = "the total" if at in setting.totals else "the column"
    known = setting.release.columns[setting.shared[at]] if at in setting.shared else column
    label = "" if known.label in (*known.codes, known.key, "") else f" ({known.label})"
    return Repair(f"{SINGLE}={column.key}", f"Leave out {kind} {column.key}{label} in all areas.", (at,))


def _singles(setting: Scenario) -> Iterator[Repair]:
    """Leave out single columns: of the totals and of the others those that stand next to most that is exposed."""
    weights, place = exposure_of_columns(setting.diff), setting.table.index
    near = dict.fromkeys(place.values(), 0)
    for total, parts in setting.equations:
        members = (total, *parts)
        weight = sum(weights.get(name, 0) for name in members)
        for name in members:
            if name in place:
                near[place[name]] += weight
    for at in setting.shared:  # a copy is next to the count that it copies
        near[at] += weights.get(setting.names[at], 0)
    ranked = sorted((at for at, weight in near.items() if weight), key=lambda at: (-near[at], at))
    totals = [at for at in ranked if at in setting.totals][:SINGLES]
    others = [at for at in ranked if at not in setting.totals][:SINGLES]
    for at in (*totals, *others):
        yield _dropping(setting, at)


# -- what a repair costs ----------------------------------------------------------------------------------------------


def cost(repair: Repair, setting: Scenario, repaired: Release) -> dict[str, object]:
    """Return what a repair costs: counts that readers no longer get, and how much farther off the others are."""
    lost = still = 0
    for block in setting.table_numbers.spool.blocks(4096):
        dropped = list(repair.dropped)
        shown = block.counts[:, dropped] > ABSENT
        lost += int(shown.sum())
        again = setting.release_numbers.of_areas(block.areas, [setting.table.columns[at].key for at in dropped])
        still += int((shown & (again > ABSENT)).sum())
    error, how = _added_error(repair, setting, repaired)
    columns = [setting.table.columns[at].key for at in repair.dropped]
    return {
        "columns_dropped": columns,
        "counts_lost": lost - still,
        "counts_lost_but_in_release": still,
        "mean_added_error": error,
        "error_is": how,
    }


def _added_error(repair: Repair, setting: Scenario, repaired: Release) -> tuple[float | None, str]:
    """Return by how much the table's remaining counts are farther from the truth on average."""
    if repair.dropped:
        return 0.0, "exact"
    changed = repair.mechanisms(setting)
    if setting.truth is None:
        pairs = [(expected_error(how), expected_error(setting.of_table(at))) for at, how in changed.items()]
        known = [one - other for one, other in pairs if one is not None and other is not None]
        if len(known) < len(pairs):
            return None, "unknown"
        return sum(known) / max(1, len(setting.table.columns)), "expected"
    off = seen = 0
    names = [column.key for column in setting.table.columns]
    for old, new in zip(setting.table_numbers.spool.blocks(4096), repaired.blocks(), strict=True):
        true = setting.truth.of_areas(old.areas, names)
        there = (old.counts > ABSENT) & (new.counts > ABSENT) & (true > ABSENT)
        off += int((np.abs(new.counts - true)[there]).sum()) - int((np.abs(old.counts - true)[there]).sum())
        seen += int(there.sum())
    return (off / seen if seen else None), "measured"


def expected_error(how: Mechanism | None) -> float | None:
    """Return how far from the truth counts are published, on average over counts well above 0.

    Examples
    --------
    >>> expected_error(Rounding(5)), expected_error(Exact())
    (1.6, 0.0)
    """
    if isinstance(how, Exact):
        return 0.0
    return (how.base**2 - 1) / (3 * how.base) if isinstance(how, Rounding) else None


SURENESS = {"none": 0, "likely": 1, "conditional": 5, "proved": 10}
"""What a claim weighs by its kind. A count that is published as it is weighs as much as a proved one."""

SMALLNESS = {"1-2": 10, "3-9": 3, "0": 1, "10+": 1}
"""The same by the count that it names: those of one or two people tell most."""


def exposure(found: Diff) -> int:
    """Return the weight of all that is newly claimed, less what was claimed before of the same cells.

    A proved count of one or two weighs 100, a likely one 10; a proved count of ten or more 10, a likely one 1.
    """
    total = 0
    for row in found.counted.cube.iter_rows(named=True):
        if row["after"] > row["before"]:
            gained = SURENESS[KINDS[row["after"]]] - SURENESS[KINDS[row["before"]]]
            total += row["len"] * gained * _smallness(row["class"])
    return total + sum(SURENESS["proved"] * SMALLNESS[name] * many for name, many in found.laid_open.items())


def exposure_of_columns(found: Diff) -> dict[str, int]:
    """Return the weight of what is newly claimed of each column, by its key; all columns of a cell have the same."""
    weights = dict.fromkeys((key for cell in found.match.cells for key in (*cell.before, *cell.after)), 0)
    for row in found.counted.by_cell.iter_rows(named=True):
        cell = found.match.cells[row["cell"]]
        for key in {*cell.before, *cell.after}:
            weights[key] += row["len"] * SURENESS[KINDS[row["after"]]] * _smallness(row["class"])
    return weights


def _smallness(size: int) -> int:
    return SMALLNESS[SIZES[size][1]]
