"""Repairs: small changes to a table after which it may be publishable. Each returns the table as the repair leaves it.

Merging the sparsest categories of a table: which ones, and the table that is left.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unround.errors import InputError
from unround.mechanisms import HIDDEN, Exact, Mechanism, Rounding
from unround.mechanisms.base import BoolArray, IntArray
from unround.protection.table import parse_protection, publish_counts
from unround.release import ABSENT, FIGURE_ABSENT, NOT_AVAILABLE, SUPPRESSED, Column, Counts, gaps
from unround.reviews.complements import hide_complements
from unround.reviews.table import Equation, ReviewedSum, ReviewedTable, copies, selected

MOST_ROWS = 60
"""Rows of one total up to which neighbours are merged."""

PAIRS, ROW_PAIRS, SUMMED = "pairs", "rows", " + "
"""In place of two categories: all of them, or all rows, two by two; and what stands between the names of merged ones."""

MOST_MERGES = 3
"""Pairs of neighbours that are merged, one after the other, until one is enough."""

FEWEST = 3
"""Of fewer categories, merging two leaves nothing but their total."""

Change = Callable[[ReviewedTable, Counts, np.random.Generator], ReviewedTable]


HIDE, REDRAW = "hide", "redraw"
ROUND, BASE, TOTALS, SINGLE, MERGE = "round-totals", "base", "drop-totals", "drop", "merge"
CONTROLLED, SAME, REPEATS = "controlled", "same-numbers", "drop-repeats"
REPAIRS = (HIDE, REDRAW, ROUND, BASE, TOTALS, SINGLE, MERGE, CONTROLLED, SAME, REPEATS)
"""What can be tried; `base=N` takes any base, `drop=KEY` leaves out a column of one's own choice, `merge=A+B` merges two
categories."""

NONE = "none"
"""In place of repairs: try none."""

USUAL = Rounding(5)
"""How counts are rounded by a repair where nothing in the table is rounded yet."""


@dataclass(frozen=True, eq=False)
class Repair:
    """A change to a table.

    - `name`: How the command line calls it.
    - `action`: What to do, as an instruction.
    - `change`: Does it.
    - `needs_truth`: Whether it prints numbers that cannot be worked out from those in the draft.
    - `anew`: Whether every count that is not printed exactly is drawn anew, so that the mechanism is known for certain.
    """

    name: str
    action: str
    change: Change
    needs_truth: bool = False
    anew: bool = False

    def then(self, other: Repair) -> Repair:
        """Return both, one after the other."""

        def change(table: ReviewedTable, true: Counts, rng: np.random.Generator) -> ReviewedTable:
            return other.change(self.change(table, true, rng), true, rng)

        action = f"{self.action.removesuffix('.')}, and {other.action[:1].lower()}{other.action[1:]}"
        name = f"{self.name}+{other.name}"
        return Repair(name, action, change, self.needs_truth or other.needs_truth, self.anew or other.anew)


@dataclass(frozen=True)
class Siblings:
    """Categories that add up to one total: their codes on one axis of the columns; or rows, where that is None."""

    axis: int | None
    codes: tuple[str, ...]

    def of(self, table: ReviewedTable, codes: Collection[str]) -> tuple[Any, Any]:
        """Return which rows and columns of a table some of them are."""
        if self.axis is None:
            return [at for at, code in enumerate(table.area_codes) if code in codes], slice(None)
        return slice(None), [at for at, column in enumerate(table.columns) if column.codes[self.axis] in codes]

    def label(self, table: ReviewedTable, code: str) -> str:
        """Return what a category is called: its label, where all of its columns have one of their own."""
        if self.axis is None:
            return table.area_name(table.area_codes.index(code))
        labels = {column.label for column in table.columns if column.codes[self.axis] == code}
        return labels.pop() if self.axis == 0 and len(labels) == 1 else code

    def merging(self, table: ReviewedTable, groups: Sequence[Sequence[str]], name: str = "", action: str = "") -> Repair:
        """Return the repair that merges categories, group by group."""

        def change(here: ReviewedTable, true: Counts, rng: np.random.Generator) -> ReviewedTable:
            if self.axis is None:
                return merged_rows(here, groups, true, rng)
            return merged(here, self.axis, groups, true, rng)

        labels = [self.label(table, code) for code in groups[0]]
        name = name or f"{MERGE}={'+'.join(labels)}"
        return Repair(name, action or f"Merge {' and '.join(labels)} into one category.", change, needs_truth=True)


def _merging(draft: TableToRepair, names: str) -> Iterator[Repair]:
    """Yield two neighbours merged, those that count fewest first; then all neighbours in pairs. Or those that are named.

    Categories are neighbours in the order of the table: ages that follow each other make sense together. Of all groups of
    categories, that with most cells to act on is chosen, and of its pairs those with such a cell.
    """
    table, exposed = draft.table, draft.exposed
    groups = [group for group in _siblings(table) if len(group.codes) >= FEWEST]
    if names not in ("", PAIRS, ROW_PAIRS):
        yield _named_merge(table, groups, names)
        return
    shown = np.maximum(table.counts, 0)
    for rows in (False, True):  # areas last: which of them belong together is for those who know them
        some = [group for group in groups if (group.axis is None) == rows]
        if not some:
            continue
        group = max(some, key=lambda group: (exposed[group.of(table, group.codes)].sum(), len(group.codes)))
        codes, few = group.codes, range(len(group.codes) - 1)
        pairs = [at for at in few if exposed[group.of(table, codes[at : at + 2])].any()] or list(few)
        for at in sorted(pairs, key=lambda at: shown[group.of(table, codes[at : at + 2])].sum())[:MOST_MERGES]:
            if not names:
                yield group.merging(table, [codes[at : at + 2]])
        pairs_named = ROW_PAIRS if rows else PAIRS
        if len(codes) > FEWEST and names in ("", pairs_named):
            two = [codes[k : k + 2] if k + 3 < len(codes) else codes[k:] for k in range(0, len(codes) - 1, 2)]
            first, last = group.label(table, codes[0]), group.label(table, codes[-1])
            action = f"Merge the {len(codes)} categories from {first} to {last} in pairs of neighbours."
            yield group.merging(table, two, f"{MERGE}={pairs_named}", action)


def _named_merge(table: ReviewedTable, groups: Sequence[Siblings], names: str) -> Repair:
    """Merge two categories that the user names by their codes or labels, as in `15 to 19+20 to 24`."""
    for group in groups:
        known = {name.casefold(): code for code in group.codes for name in (group.label(table, code), code)}
        for plus in re.finditer(r"\+", names):
            halves = [half.strip().casefold() for half in (names[: plus.start()], names[plus.end() :])]
            if all(half in known for half in halves):
                return group.merging(table, [[known[half] for half in halves]])
    listed = "; ".join(", ".join(group.label(table, code) for code in group.codes[:6]) for group in groups)
    raise InputError(
        f"{MERGE}={names}: name two of three or more categories that add up to one total, as in {MERGE}=A+B. Such "
        f"categories of the table are: {listed or 'none'}."
    )


def _siblings(table: ReviewedTable) -> list[Siblings]:
    """Find categories that add up along one axis, have no parts themselves, and can be merged in all of the table."""
    siblings: dict[Siblings, None] = {}
    heads = {(axis, table.columns[total].codes[axis]) for total, parts in table.equations for axis in _axis(table, parts)}
    for _, parts in table.equations:
        for axis in _axis(table, parts):
            codes = [table.columns[part].codes[axis] for part in parts]
            leaves = tuple(code for code in codes if (axis, code) not in heads and _complete(table, axis, code, codes[0]))
            siblings.setdefault(Siblings(axis, leaves))
    if table.nested is not None and table.own is None and len(table.axes) == 1:
        parent = table.nested.parent
        for head in np.unique(parent[parent >= 0]).tolist():
            inside = [at for at in np.flatnonzero(parent == head).tolist() if not (parent == at).any()]
            if len(inside) <= MOST_ROWS:  # of more, which to merge is for those who know the areas
                siblings.setdefault(Siblings(None, tuple(table.area_codes[at] for at in inside)))
    return list(siblings)


def _axis(table: ReviewedTable, parts: Sequence[int]) -> tuple[int, ...]:
    """Return the one axis along which the parts of a sum differ; none where they differ along several."""
    codes = [table.columns[part].codes for part in parts]
    apart = [axis for axis in range(len(codes[0])) if len({code[axis] for code in codes}) > 1]
    return tuple(apart) if len(apart) == 1 and len(parts) > 1 else ()


def _others(table: ReviewedTable, axis: int, code: str) -> set[tuple[str, ...]]:
    """Return the places of a category on all other axes."""
    return {_place(column, axis) for column in table.columns if column.codes[axis] == code}


def _place(column: Column, axis: int) -> tuple[str, ...]:
    return (*column.codes[:axis], *column.codes[axis + 1 :])


def _complete(table: ReviewedTable, axis: int, code: str, other: str) -> bool:
    """Whether two categories have the same columns, and no two columns of one are in the same place."""
    columns = sum(column.codes[axis] == code for column in table.columns)
    if any(column.codes[axis] == code and at not in table.mine for at, column in enumerate(table.columns)):
        return False
    places = _others(table, axis, code)
    return len(places) == columns and places == _others(table, axis, other)


def merged(
    table: ReviewedTable,
    axis: int,
    groups: Sequence[Sequence[str]],
    true: Counts,
    rng: np.random.Generator,
) -> ReviewedTable:
    """Return the table with the categories of each group merged into one, which is published anew; other counts stay."""
    together: dict[tuple[int, tuple[str, ...]], list[int]] = {}
    of_code = {code: at for at, codes in enumerate(groups) for code in codes}
    for at, column in enumerate(table.columns):
        if column.codes[axis] in of_code:
            together.setdefault((of_code[column.codes[axis]], _place(column, axis)), []).append(at)
    first = {at: members[0] for members in together.values() for at in members}
    counts, mechanisms, columns = table.counts.copy(), list(table.mechanisms), list(table.columns)
    for (group, _), members in together.items():
        at = members[0]
        counts[:, at], mechanisms[at] = _published(table, members, true, rng)
        columns[at] = _named(table, members, axis, SUMMED.join(groups[group]))
    sums = _sums_after(table, first, {members[0]: len(members) for members in together.values()})
    whole = replace(
        table,
        sums=tuple(sums),
        columns=tuple(columns),
        mechanisms=tuple(mechanisms),
        counts=counts,
        merged=tuple(tuple(table.columns[at].key for at in members) for members in together.values()),
    )
    return selected(whole, [at for at in range(len(columns)) if first.get(at, at) == at])


def _published(
    table: ReviewedTable, members: Sequence[int], true: Counts, rng: np.random.Generator
) -> tuple[Counts, Mechanism]:
    """Publish the sum of some columns, as they are published."""
    hows = [table.mechanisms[at] for at in members]
    how = (
        Exact()
        if all(isinstance(mechanism, Exact) for mechanism in hows)
        else next(h for h in hows if not isinstance(h, Exact))
    )
    return _drawn_sum(how, true[:, list(members)], table.counts[:, list(members)], rng), how


def _drawn_sum(how: Mechanism, true: Counts, printed: Counts, rng: np.random.Generator) -> Counts:
    """Publish sums over the last axis: not known where a count is not; shown where any is."""
    known = (true > ABSENT).all(axis=1)
    whole = np.where(known, np.where(true > ABSENT, true, 0).sum(axis=1), NOT_AVAILABLE).astype(np.int32)
    return drawn(how, whole, np.asarray((printed > ABSENT).any(axis=1)), rng)


def merged_rows(
    table: ReviewedTable, groups: Sequence[Sequence[str]], true: Counts, rng: np.random.Generator
) -> ReviewedTable:
    """Return the table with the rows of each group merged into one, which is published anew; other counts stay."""
    import polars as pl

    place = {code: at for at, code in enumerate(table.area_codes)}
    counts, areas, gone = table.counts.copy(), table.areas, set[int]()
    figures = None if table.figure_values is None else table.figure_values.copy()
    for group in groups:
        rows = [place[code] for code in group]
        for at, how in enumerate(table.mechanisms):
            counts[rows[0], at] = _drawn_sum(how, true[rows, at][None], table.counts[rows, at][None], rng)[0]
        gone |= set(rows[1:])
        here = pl.int_range(pl.len()) == rows[0]
        named = {table.axes[0]: SUMMED.join(group)}
        if "region_name" in areas.columns:
            named["region_name"] = SUMMED.join(table.area_name(row) for row in rows)
        areas = areas.with_columns(
            pl.when(here).then(pl.lit(text)).otherwise(pl.col(name).cast(pl.String)).alias(name)
            for name, text in named.items()
        )
        if figures is not None:
            figures[rows[0]] = FIGURE_ABSENT
    stay = np.array([row for row in range(len(counts)) if row not in gone])
    nested = None if table.nested is None else table.nested.reordered(stay)
    changed = replace(table, areas=areas, counts=counts, figure_values=figures, merged_areas=tuple(map(tuple, groups)))
    return replace(changed.of_areas(stay), nested=nested)


def _named(table: ReviewedTable, members: Sequence[int], axis: int, code: str) -> Column:
    """Return the column of a merged category."""
    column = table.columns[members[0]]
    return replace(
        column,
        key=SUMMED.join(table.columns[at].key for at in members),
        codes=(*column.codes[:axis], code, *column.codes[axis + 1 :]),
        label=SUMMED.join(dict.fromkeys(table.columns[at].label for at in members)),
    )


def _sums_after(table: ReviewedTable, first: Mapping[int, int], sizes: Mapping[int, int]) -> list[ReviewedSum]:
    """Return the sums that hold among merged counts.

    Of a sum with merged parts, all that were merged must be in it. A sum whose total is merged holds if it did for every one
    of those that were merged: (young + old) = (young + old) men + (young + old) women.
    """
    times: Counter[Equation] = Counter()
    known: dict[Equation, ReviewedSum] = {}
    for old in table.sums:
        new, inside = old.renamed(first), Counter(first[part] for part in old.parts if part in first)
        if old.total in first or all(number == sizes[at] for at, number in inside.items()):
            times[new.equation] += 1
            known.setdefault(new.equation, new)
    # A total that was merged is the first of its columns.
    return [old for old in known.values() if old.total not in sizes or times[old.equation] == sizes[old.total]]


Judge = Callable[[ReviewedTable, IntArray], BoolArray]
"""Returns the cells of a table that are to be acted on, where nothing but some of its areas may have changed."""


@dataclass(frozen=True, eq=False)
class TableToRepair:
    """A table to be repaired: which cells are to be acted on, and what finds them in it once it is changed."""

    table: ReviewedTable
    exposed: BoolArray
    judged: Judge


def repairs_of(draft: TableToRepair, wanted: Sequence[str] | None) -> tuple[list[Repair], dict[str, str]]:
    """Return the repairs that can be tried, all or those that are wanted, and why others cannot."""
    repairs: dict[str, Repair] = {}
    refused: dict[str, str] = {}
    for name in REPAIRS if wanted is None else [name.strip() for name in wanted if name.strip() != NONE]:
        what, equals, value = name.partition("=")
        if what not in _MAKERS or (equals and (what not in (BASE, SINGLE, MERGE) or not value)):
            raise InputError(
                f"there is no repair {name!r}: choose from {', '.join(REPAIRS)}, {BASE}=N (another base), {SINGLE}=KEY (a "
                f"column to leave out), {MERGE}=A+B (two categories), or {NONE}."
            )
        made = list(_MAKERS[what](draft, value))
        repairs |= {repair.name: repair for repair in made}
        if not made:
            refused[name] = _WHY_NOT[what]
    return list(repairs.values()), refused


_WHY_NOT = {
    HIDE: "no single cell is to be acted on, or too many are",
    REDRAW: "no single cell is to be acted on, or no count is rounded at random",
    ROUND: "no count of the table is published unrounded",
    BASE: "no count of the table is rounded at random to a smaller base",
    TOTALS: "no column of the table is a sum of its other columns",
    SINGLE: "no sum leads to a cell to act on",
    MERGE: "no total has three categories or more that could be merged in all of the table",
    CONTROLLED: "nothing of the table is rounded at random, or an earlier release has some of its counts",
    SAME: (_NONE_EARLIER := "no earlier release is given (--earlier FILE), or it has none of these counts"),
    REPEATS: f"{_NONE_EARLIER}, or no others",
}


# -- cells ------------------------------------------------------------------------------------------------------------

MOST_EXPOSED, MOST_HIDDEN = 0.25, 0.5
"""The largest share of the counts that is to be acted on, and of those that are hidden for it, by a repair."""

UNSURE = 2
"""Half of how wide it is what readers know of a hidden count, when complements are first looked for."""

MOST_ROUNDS = 12
"""How often complements are added, or cells drawn again."""


def _hiding(draft: TableToRepair, _value: str) -> Iterator[Repair]:
    """Hide the cells to act on, and as few others as keep them from being worked out."""
    exposed = draft.exposed
    cells = int(exposed.sum())
    if not cells or cells > MOST_EXPOSED * draft.table.published:
        return

    def change(here: ReviewedTable, _true: Counts, _rng: np.random.Generator) -> ReviewedTable:
        counts, wrong = here.counts.copy(), exposed
        unrounded = all(isinstance(here.mechanisms[at], Exact) for at in here.mine)
        needed: dict[tuple[int, int], int] = {}
        for _ in range(MOST_ROUNDS):
            followed = list[tuple[int, int]]()
            for row, at in np.argwhere(wrong).tolist():
                # What is out already stays so: its copy in the draft can be hidden. What is hidden is told by others.
                shown = [c for c in (at, *here.same[at]) if c in here.mine and here.printed[row, c] >= 0]
                if all(counts[row, c] == SUPPRESSED for c in shown):
                    followed.append((row, at))
                counts[row, shown] = SUPPRESSED
                needed[row, at] = 2 * needed.get((row, at), UNSURE)
            if not unrounded or not hide_complements(here, counts, needed):
                for row, at in followed:
                    _hide_another(here, counts, row, at)
            wrong = draft.judged(here.changed(counts), np.flatnonzero((counts != here.counts).any(axis=1)))
            if not wrong.any() or (counts == SUPPRESSED).sum() > MOST_HIDDEN * here.counts.size:
                break
        return here.changed(counts)

    many = f"the {cells:,} cells to act on" if cells > 1 else "the cell to act on"
    yield Repair(HIDE, f"Hide {many}, and others from which {'they' if cells > 1 else 'it'} would follow.", change)


def _hide_another(table: ReviewedTable, counts: Counts, row: int, at: int) -> None:
    """Hide one more count beside a hidden one that follows from its sums: in the same area, and in a neighbouring one.

    Of an area, the smallest count that stands in a sum with it, totals last; of other areas, one in which most is hidden
    already, so that hidden counts make rectangles.
    """
    ours, heads = set(table.mine), {total for total, parts in table.equations if len(parts) > 1}
    near = {cell for total, parts in table.equations if at in (total, *parts) for cell in (total, *parts)} - {at}
    printed = [cell for cell in near if cell in ours and counts[row, cell] > ABSENT]
    hidden = [cell for cell in near if counts[row, cell] <= ABSENT and cell in ours]
    if printed and not hidden:
        counts[row, min(printed, key=lambda cell: (cell in heads, counts[row, cell] == 0, counts[row, cell]))] = SUPPRESSED
    elif table.nested is not None:
        family = _family(table, row)
        others = [other for other in family if counts[other, at] > ABSENT]
        if others:
            best = min(others, key=lambda other: (-int((counts[other] == SUPPRESSED).sum()), counts[other, at]))
            counts[best, at] = SUPPRESSED
        elif printed:
            counts[row, min(printed, key=lambda cell: (cell in heads, counts[row, cell]))] = SUPPRESSED
    elif printed:
        counts[row, min(printed, key=lambda cell: (cell in heads, counts[row, cell]))] = SUPPRESSED


def _family(table: ReviewedTable, row: int) -> list[int]:
    """Return the areas that add up to the same larger area as this one."""
    assert table.nested is not None
    parent = table.nested.parent
    return [
        other for other in range(len(table.counts)) if parent[other] == parent[row] and other != row and parent[row] >= 0
    ]


def _redrawing(draft: TableToRepair, _value: str) -> Iterator[Repair]:
    """Draw the random numbers of areas with cells to act on again, until none is left there."""
    rows = np.flatnonzero(draft.exposed.any(axis=1))
    if not rows.size or not draft.table.rounded:
        return

    def change(here: ReviewedTable, true: Counts, rng: np.random.Generator) -> ReviewedTable:
        counts, wrong = here.counts.copy(), draft.exposed
        for _ in range(MOST_ROUNDS):
            again = np.flatnonzero(wrong.any(axis=1))
            if not again.size:
                break
            for at in here.rounded:
                shown = here.counts[again, at] > ABSENT
                fresh = drawn(here.mechanisms[at], true[again, at], shown, rng)
                counts[again, at] = np.where(shown, fresh, counts[again, at])
            wrong = draft.judged(here.changed(counts), again)
        return here.changed(counts)

    areas = f"the {rows.size:,} areas" if rows.size > 1 else "the area"
    yield Repair(REDRAW, f"Round {areas} with cells to act on again, with other random numbers.", change, needs_truth=True)


# -- publishing anew --------------------------------------------------------------------------------------------------


def drawn(how: Mechanism, true: Counts, shown: BoolArray, rng: np.random.Generator) -> Counts:
    """Publish true counts where something is shown; a count whose truth is not known is not published."""
    made = how.publish(np.maximum(true, 0).astype(np.int64), rng)
    made = np.where(made == HIDDEN, SUPPRESSED, made)
    made = np.where(true > ABSENT, made, NOT_AVAILABLE)
    return np.where(shown, made, NOT_AVAILABLE).astype(np.int32)


def _published_anew(
    table: ReviewedTable, true: Counts, how: dict[int, Mechanism], rng: np.random.Generator
) -> ReviewedTable:
    counts, mechanisms = table.counts.copy(), list(table.mechanisms)
    for at, mechanism in how.items():
        shown = counts[:, at] > ABSENT
        counts[:, at] = np.where(shown, drawn(mechanism, true[:, at], shown, rng), counts[:, at])
        mechanisms[at] = mechanism
    return table.changed(counts, mechanisms)


def _usual(table: ReviewedTable) -> Mechanism:
    """Return how most of the counts are published that are not published as they are."""
    times = Counter(how for at in table.mine if not isinstance(how := table.mechanisms[at], Exact))
    return times.most_common(1)[0][0] if times else USUAL


def _round_exact(draft: TableToRepair, _value: str) -> Iterator[Repair]:
    """Round what is unrounded; no truth is needed, for it is printed."""
    table = draft.table
    if not table.exact:
        return
    how = _usual(table)
    everything = len(table.exact) == len(table.columns)
    rounded = f"Round {'all counts' if everything else 'the unrounded counts too,'} {_how(how)}."

    def change(here: ReviewedTable, true: Counts, rng: np.random.Generator) -> ReviewedTable:
        return _published_anew(here, true, dict.fromkeys(here.exact, how), rng)

    yield Repair(ROUND, rounded, change, anew=everything)


def _how(how: Mechanism) -> str:
    return f"to base {how.base}" if isinstance(how, Rounding) else f"as the others are ({how.name})"


def _coarser(draft: TableToRepair, value: str) -> Iterator[Repair]:
    """Round to another base: the user's, or twice the largest that the table has."""
    table = draft.table
    if value and (not value.isdecimal() or not 2 <= int(value) <= 1_000_000):
        raise InputError(f"{BASE}= takes a whole number of 2 or more, such as {BASE}=10; not {value!r}.")
    wanted = int(value) if value else 2 * (table.base or 0)
    finer = [at for at, base in table.rounded.items() if base < wanted]
    if not finer:
        return

    def change(here: ReviewedTable, true: Counts, rng: np.random.Generator) -> ReviewedTable:
        new: dict[int, Mechanism] = {at: Rounding(wanted) for at, base in here.rounded.items() if base < wanted}
        return _published_anew(here, true, new, rng)

    rounded = sum(not isinstance(how, Exact) for how in table.mechanisms)
    action = f"Round to base {wanted}, each count independently."
    yield Repair(f"{BASE}={wanted}", action, change, needs_truth=True, anew=len(finer) == rounded)


def _controlled(draft: TableToRepair, _value: str) -> Iterator[Repair]:
    """Round all counts of an area together, unrounded ones too: then no sum tells anything."""
    table = draft.table
    base = table.base if len(table.mine) == len(table.columns) else None
    if base is None and len(table.exact) == len(table.columns):
        base = USUAL.base
    if base is None:
        return
    how = parse_protection(f"{CONTROLLED}:{base}")

    def change(here: ReviewedTable, true: Counts, rng: np.random.Generator) -> ReviewedTable:
        # What is not printed, or not known, takes no part; sums with such a count are not kept up.
        there = (here.counts > ABSENT) & (true > ABSENT)
        made = publish_counts(np.where(there, true, -1).astype(np.int64), how, here.equations, rng)
        counts = np.where(there, made, np.where(here.counts > ABSENT, NOT_AVAILABLE, here.counts)).astype(np.int32)
        # Where a sum adds up wherever it is printed, the total says nothing that its parts do not.
        printed = [gaps(counts, *equation) for equation in here.equations]
        kept_up = np.array([there.any() and not more.any() for there, more in printed], dtype=np.bool_)
        return here.changed(counts, [how.mechanism] * len(here.columns), drop=kept_up)

    action = f"Round all counts of an area together (controlled rounding to base {base}), so that all sums add up."
    yield Repair(CONTROLLED, action, change, needs_truth=True, anew=True)


# -- leaving out ------------------------------------------------------------------------------------------------------


def _dropping(name: str, action: str, dropped: Sequence[int]) -> Repair:
    def change(here: ReviewedTable, _true: Counts, _rng: np.random.Generator) -> ReviewedTable:
        return without(here, dropped)

    return Repair(name, action, change)


def _without_totals(draft: TableToRepair, _value: str) -> Iterator[Repair]:
    table = draft.table
    if table.totals and len(table.totals) < len(table.mine):
        yield _dropping(TOTALS, "Leave out all totals; readers add up the parts.", table.totals)


def _singles(draft: TableToRepair, name: str) -> Iterator[Repair]:
    """Leave out one column: of the totals and of the others, that which stands in most sums with cells to act on."""
    table, weights = draft.table, draft.exposed.sum(axis=0)
    near = np.zeros(len(table.columns), dtype=np.int64)
    for total, parts in table.equations:
        members = [total, *parts]
        near[members] += int(weights[members].sum())
    ranked = [at for at in np.argsort(-near, kind="stable").tolist() if near[at] and at in table.mine]
    totals = [at for at in ranked if at in table.totals][:1]
    others = [at for at in ranked if at not in table.totals][:1]
    chosen = [*totals, *others] if len(table.mine) > 1 else []
    if name:
        index = {table.columns[at].key: at for at in table.mine}
        if name not in index:
            few = ", ".join(list(index)[:6])
            raise InputError(f"{SINGLE}={name}: the table has no such column. Its columns are {few} …")
        chosen = [index[name]]
    for at in chosen:
        kind = "the total" if at in table.totals else "the column"
        yield _dropping(f"{SINGLE}={table.columns[at].key}", f"Leave out {kind} {table.called(at)} in all areas.", (at,))


def without(table: ReviewedTable, dropped: Sequence[int]) -> ReviewedTable:
    """Return a table that does not print some columns.

    Readers know that the counts exist, and how they add up: where a column stands between two sums, one follows for the
    others; where its sums leave something to say about it, it stays as a count that is not printed.
    """
    sums, gone = list(table.sums), set(dropped)
    if gone.issuperset(total for total, _ in table.equations):
        sums = []  # readers are left with parts, and nothing that these add up to
    for cell in dropped:
        above = [sum_ for sum_ in sums if cell in sum_.parts]
        below = [sum_ for sum_ in sums if sum_.total == cell]
        if len(below) == 1 and not above:  # a total that nothing else tells of
            sums.remove(below[0])
        elif len(below) == 1 and len(above) == 1:
            parts = dict.fromkeys([*(part for part in above[0].parts if part != cell), *below[0].parts])
            sums = [sum_ for sum_ in sums if sum_ is not above[0] and sum_ is not below[0]]
            sums.append(replace(above[0], parts=tuple(parts), doubtful=above[0].doubtful or below[0].doubtful))
    counts = table.counts.copy()
    counts[:, list(dropped)] = NOT_AVAILABLE
    needed = {cell for sum_ in sums for cell in (sum_.total, *sum_.parts)}
    stay = [at for at in range(len(table.columns)) if at not in gone or at in needed]
    return selected(replace(table, sums=tuple(sums), counts=counts), stay)


# -- beside an earlier release ----------------------------------------------------------------------------------------


def _same_numbers(draft: TableToRepair, _value: str) -> Iterator[Repair]:
    """Print counts that are out already with the earlier numbers."""

    def change(here: ReviewedTable, _true: Counts, _rng: np.random.Generator) -> ReviewedTable:
        return _as_before(here, copies(here))

    if copies(draft.table):
        yield Repair(
            SAME, "Print counts that are in the earlier release with the same numbers (the same random numbers).", change
        )


def _without_repeats(draft: TableToRepair, _value: str) -> Iterator[Repair]:
    again = list(copies(draft.table))
    if again and len(again) < len(draft.table.mine):
        yield _dropping(REPEATS, "Leave out counts that are in the earlier release.", again)


def _as_before(table: ReviewedTable, first: Mapping[int, int]) -> ReviewedTable:
    """Return the table in which each copy shows the earlier number, and so is not a count of its own."""
    sums: dict[Equation, ReviewedSum] = {}
    for sum_ in table.sums:
        new = sum_.renamed(first)
        if new.parts != (new.total,):
            sums.setdefault(new.equation, new)
    counts = table.counts.copy()
    for copy, there in first.items():  # where only the draft has the area, its number is all that there is
        counts[:, there] = np.where(counts[:, there] > ABSENT, counts[:, there], counts[:, copy])
    keys = frozenset((table.own or frozenset()) | {table.columns[there].key for there in first.values()})
    whole = replace(table, sums=tuple(sums.values()), counts=counts, own=keys)
    return selected(whole, [at for at in range(len(table.columns)) if at not in first])


_MAKERS: dict[str, Callable[[TableToRepair, str], Iterator[Repair]]] = {
    HIDE: _hiding,
    REDRAW: _redrawing,
    ROUND: _round_exact,
    BASE: _coarser,
    TOTALS: _without_totals,
    SINGLE: _singles,
    MERGE: _merging,
    CONTROLLED: _controlled,
    SAME: _same_numbers,
    REPEATS: _without_repeats,
}
"""What makes the repairs of a name, with what stands behind its “=”; none where the table has nothing to repair so."""
