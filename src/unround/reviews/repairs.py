"""Repairs: small changes to a table after which it may be publishable. Each returns the table as the repair leaves it.

Merging the sparsest categories of a table: which ones, and the table that is left.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unround.errors import InputError
from unround.mechanisms import HIDDEN, Exact, Mechanism, Rounding
from unround.mechanisms.base import BoolArray, IntArray
from unround.protection.table import parse_protection, publish_counts
from unround.release import ABSENT, NOT_AVAILABLE, SUPPRESSED, Column, Counts
from unround.reviews.table import ReviewedTable, selected

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
    """Categories that add up to one total: their codes on one axis."""

    axis: int
    codes: tuple[str, ...]


def merge_repairs(table: ReviewedTable, exposed: BoolArray) -> Iterator[Repair]:
    """Yield two neighbours merged, those that count fewest first; then all neighbours in pairs.

    Categories are neighbours in the order of the table: ages that follow each other make sense together. Of all groups of
    categories, that with most cells to act on is chosen, and of its pairs those with such a cell.
    """
    groups = [group for group in _siblings(table) if len(group.codes) >= FEWEST]
    if not groups:
        return
    weights = exposed.sum(axis=0)

    def weight(axis: int, codes: Sequence[str]) -> int:
        return int(sum(weights[at] for at, column in enumerate(table.columns) if column.codes[axis] in codes))

    group = max(groups, key=lambda group: (weight(group.axis, group.codes), len(group.codes)))
    axis, codes = group.axis, group.codes
    sizes = [_size(table, axis, code) for code in codes]
    pairs = [at for at in range(len(codes) - 1) if weight(axis, codes[at : at + 2])] or list(range(len(codes) - 1))
    for at in sorted(pairs, key=lambda at: sizes[at] + sizes[at + 1])[:MOST_MERGES]:
        yield _merging(table, axis, codes[at : at + 2])
    if len(codes) > FEWEST:
        two = [codes[k : k + 2] if k + 3 < len(codes) else codes[k:] for k in range(0, len(codes) - 1, 2)]
        first, last = _label(table, axis, codes[0]), _label(table, axis, codes[-1])
        action = f"Merge the {len(codes)} categories from {first} to {last} in pairs of neighbours."
        yield _merge(f"{MERGE}=pairs", action, axis, two)


def _named_merge(table: ReviewedTable, names: str) -> Repair:
    """Merge two categories that the user names by their codes or labels, as in `15 to 19+20 to 24`."""
    for group in _siblings(table):
        known = {name.casefold(): code for code in group.codes for name in (_label(table, group.axis, code), code)}
        for sign in re.finditer(r"\+", names):
            halves = [half.strip().casefold() for half in (names[: sign.start()], names[sign.end() :])]
            if all(half in known for half in halves) and len(group.codes) >= FEWEST:
                return _merging(table, group.axis, [known[half] for half in halves])
    groups = "; ".join(", ".join(_label(table, group.axis, code) for code in group.codes[:6]) for group in _siblings(table))
    raise InputError(
        f"{MERGE}={names}: name two of three or more categories that add up to one total, as in {MERGE}=A+B. Such "
        f"categories of the table are: {groups or 'none'}."
    )


def _merging(table: ReviewedTable, axis: int, codes: Sequence[str]) -> Repair:
    labels = [_label(table, axis, code) for code in codes]
    action = f"Merge {' and '.join(labels)} into one category."
    return _merge(f"{MERGE}={'+'.join(labels)}", action, axis, [tuple(codes)])


def _merge(name: str, action: str, axis: int, groups: Sequence[tuple[str, ...]]) -> Repair:
    def change(here: ReviewedTable, true: Counts, rng: np.random.Generator) -> ReviewedTable:
        return merged(here, axis, groups, true, rng)

    return Repair(name, action, change, needs_truth=True)


def _label(table: ReviewedTable, axis: int, code: str) -> str:
    """Return what a category is called: its label, where all of its columns have one of their own."""
    labels = {column.label for column in table.columns if column.codes[axis] == code}
    return labels.pop() if axis == 0 and len(labels) == 1 else code


def _size(table: ReviewedTable, axis: int, code: str) -> int:
    """Return how many are counted in a category, as published."""
    inside = [at for at, column in enumerate(table.columns) if column.codes[axis] == code]
    return int(np.maximum(table.counts[:, inside], 0).sum())


def _siblings(table: ReviewedTable) -> list[Siblings]:
    """Find categories that add up along one axis, have no parts themselves, and can be merged in all of the table."""
    found: dict[Siblings, None] = {}
    heads = {(axis, table.columns[total].codes[axis]) for total, parts in table.equations for axis in _axis(table, parts)}
    for _, parts in table.equations:
        for axis in _axis(table, parts):
            codes = [table.columns[part].codes[axis] for part in parts]
            leaves = tuple(code for code in codes if (axis, code) not in heads and _complete(table, axis, code, codes[0]))
            found.setdefault(Siblings(axis, leaves))
    return list(found)


def _axis(table: ReviewedTable, parts: Sequence[int]) -> tuple[int, ...]:
    """Return the one axis along which the parts of a sum differ; none where they differ along several."""
    codes = [table.columns[part].codes for part in parts]
    apart = [axis for axis in range(len(codes[0])) if len({one[axis] for one in codes}) > 1]
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
    groups: Sequence[tuple[str, ...]],
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
        columns[at] = _named(table, members, axis, " + ".join(groups[group]))
    sums = _sums_after(table, first, {members[0]: len(members) for members in together.values()})
    whole = replace(
        table,
        columns=tuple(columns),
        mechanisms=tuple(mechanisms),
        counts=counts,
        equations=tuple(sums),
        origins=tuple(origin for origin, _ in sums.values()),
        doubtful=tuple(doubt for _, doubt in sums.values()),
    )
    return selected(whole, [at for at in range(len(columns)) if first.get(at, at) == at])


def _published(
    table: ReviewedTable, members: Sequence[int], true: Counts, rng: np.random.Generator
) -> tuple[Counts, Mechanism]:
    """Publish the sum of some columns, as they are published."""
    hows = [table.mechanisms[one] for one in members]
    how = Exact() if all(isinstance(one, Exact) for one in hows) else next(h for h in hows if not isinstance(h, Exact))
    each = true[:, list(members)]
    known = (each > ABSENT).all(axis=1)
    whole = np.where(known, np.where(each > ABSENT, each, 0).sum(axis=1), NOT_AVAILABLE).astype(np.int32)
    shown = np.asarray((table.counts[:, list(members)] > ABSENT).any(axis=1))
    return drawn(how, whole, shown, rng), how


def _named(table: ReviewedTable, members: Sequence[int], axis: int, code: str) -> Column:
    """Return the column of a merged category."""
    column = table.columns[members[0]]
    return replace(
        column,
        key=" + ".join(table.columns[one].key for one in members),
        codes=(*column.codes[:axis], code, *column.codes[axis + 1 :]),
        label=" + ".join(dict.fromkeys(table.columns[one].label for one in members)),
    )


def _sums_after(
    table: ReviewedTable, first: dict[int, int], sizes: dict[int, int]
) -> dict[tuple[int, tuple[int, ...]], tuple[str, bool]]:
    """Return the sums that hold among merged counts.

    Of a sum with merged parts, all that were merged must be in it. A sum whose total is merged holds if it did for every one
    of those that were merged: (young + old) = (young + old) men + (young + old) women.
    """
    times: Counter[tuple[int, tuple[int, ...]]] = Counter()
    known: dict[tuple[int, tuple[int, ...]], tuple[str, bool]] = {}
    for (total, parts), origin, doubt in zip(table.equations, table.origins, table.doubtful, strict=True):
        new = first.get(total, total), tuple(dict.fromkeys(first.get(part, part) for part in parts))
        inside = Counter(first[part] for part in parts if part in first)
        if total in first or all(number == sizes[at] for at, number in inside.items()):
            times[new] += 1
            known.setdefault(new, (origin, doubt))
    # A total that was merged is the first of its columns.
    return {one: told for one, told in known.items() if one[0] not in sizes or times[one] == sizes[one[0]]}


Judge = Callable[[ReviewedTable, IntArray], BoolArray]
"""Returns the cells of a table that are to be acted on, where nothing but some of its areas may have changed."""


def repairs_of(
    table: ReviewedTable,
    exposed: BoolArray,
    wanted: Sequence[str] | None,
    judged: Judge,
    repeats: Mapping[str, Repair] | None = None,
) -> tuple[list[Repair], dict[str, str]]:
    """Return the repairs that can be tried, and why others cannot; `repeats` are those of counts that are out already."""
    found: dict[str, Repair] = {}
    refused: dict[str, str] = {}
    for name in REPAIRS if wanted is None else [name.strip() for name in wanted if name.strip() != NONE]:
        if name in (HIDE, REDRAW):
            made = list((_hiding if name == HIDE else _redrawing)(table, exposed, judged))
        elif name in (SAME, REPEATS):
            made = [repeats[name]] if repeats and name in repeats else []
        else:
            made = list(_repairs_named(name, table, exposed))
        found |= {repair.name: repair for repair in made}
        if not made:
            refused[name] = _WHY_NOT[name.partition("=")[0]]
    return list(found.values()), refused


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


def _repairs_named(name: str, table: ReviewedTable, exposed: BoolArray) -> Iterator[Repair]:
    """Make the repairs that a name stands for; none where the table has nothing to repair so."""
    what, equals, value = name.partition("=")
    if name == ROUND:
        yield from _round_exact(table)
    elif what == BASE:
        yield from _coarser(table, _base(value) if equals else None)
    elif name == TOTALS:
        if table.totals and len(table.totals) < len(table.mine):
            yield _dropping(TOTALS, "Leave out all totals; readers add up the parts.", table.totals)
    elif name == SINGLE:
        yield from _singles(table, exposed)
    elif what == SINGLE and equals:
        yield _single(table, _column(table, value))
    elif name == MERGE:
        yield from merge_repairs(table, exposed)
    elif what == MERGE and value == "pairs":
        yield from (repair for repair in merge_repairs(table, exposed) if repair.name == name)
    elif what == MERGE and equals:
        yield _named_merge(table, value)
    elif name == CONTROLLED:
        yield from _controlled(table)
    else:
        raise InputError(
            f"there is no repair {name!r}: choose from {', '.join(REPAIRS)}, {BASE}=N (another base), {SINGLE}=KEY (a "
            f"column to leave out), {MERGE}=A+B (two categories), or {NONE}."
        )


# -- cells ------------------------------------------------------------------------------------------------------------

MOST_HIDDEN = 0.25
"""The largest share of the counts that is hidden by a repair."""

MOST_ROUNDS = 12
"""How often complements are added, or cells drawn again."""


def _hiding(table: ReviewedTable, exposed: BoolArray, judged: Judge) -> Iterator[Repair]:
    """Hide the cells to act on, and as few others as keep them from being worked out."""
    cells = int(exposed.sum())
    if not cells or cells > MOST_HIDDEN * table.published:
        return

    def change(here: ReviewedTable, _true: Counts, _rng: np.random.Generator) -> ReviewedTable:
        counts, wrong = here.counts.copy(), exposed
        for _ in range(MOST_ROUNDS):
            for row, at in np.argwhere(wrong).tolist():
                # What is out already stays so: its copy in the draft can be hidden. What is hidden is told by others.
                shown = [c for c in (at, *here.same[at]) if c in here.mine and here.printed[row, c] >= 0]
                if any(counts[row, c] != SUPPRESSED for c in shown):
                    counts[row, shown] = SUPPRESSED
                else:
                    _hide_another(here, counts, row, at)
            wrong = judged(here.changed(counts), np.flatnonzero((counts != here.counts).any(axis=1)))
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


def _redrawing(table: ReviewedTable, exposed: BoolArray, judged: Judge) -> Iterator[Repair]:
    """Draw the random numbers of areas with cells to act on again, until none is left there."""
    rows = np.flatnonzero(exposed.any(axis=1))
    if not rows.size or not table.rounded:
        return

    def change(here: ReviewedTable, true: Counts, rng: np.random.Generator) -> ReviewedTable:
        counts, wrong = here.counts.copy(), exposed
        for _ in range(MOST_ROUNDS):
            again = np.flatnonzero(wrong.any(axis=1))
            if not again.size:
                break
            for at in here.rounded:
                shown = here.counts[again, at] > ABSENT
                fresh = drawn(here.mechanisms[at], true[again, at], shown, rng)
                counts[again, at] = np.where(shown, fresh, counts[again, at])
            wrong = judged(here.changed(counts), again)
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


def _round_exact(table: ReviewedTable) -> Iterator[Repair]:
    """Round what is unrounded; no truth is needed, for it is printed."""
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


def _coarser(table: ReviewedTable, base: int | None) -> Iterator[Repair]:
    """Round to another base: the user's, or twice the largest that the table has."""
    if base is None and table.base is None:
        return
    wanted = 2 * (table.base or 0) if base is None else base
    finer = [at for at, own in table.rounded.items() if own < wanted]
    if not finer:
        return

    def change(here: ReviewedTable, true: Counts, rng: np.random.Generator) -> ReviewedTable:
        new: dict[int, Mechanism] = {at: Rounding(wanted) for at, own in here.rounded.items() if own < wanted}
        return _published_anew(here, true, new, rng)

    rounded = sum(not isinstance(how, Exact) for how in table.mechanisms)
    action = f"Round to base {wanted}, each count independently."
    yield Repair(f"{BASE}={wanted}", action, change, needs_truth=True, anew=len(finer) == rounded)


def _base(value: str) -> int:
    if not value.isdecimal() or not 2 <= int(value) <= 1_000_000:
        raise InputError(f"{BASE}= takes a whole number of 2 or more, such as {BASE}=10; not {value!r}.")
    return int(value)


def _controlled(table: ReviewedTable) -> Iterator[Repair]:
    """Round all counts of an area together, unrounded ones too: then no sum tells anything."""
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
        kept_up = np.array([_adds_up(counts, one) for one in here.equations], dtype=np.bool_)
        return here.changed(counts, [how.mechanism] * len(here.columns), drop=kept_up)

    action = f"Round all counts of an area together (controlled rounding to base {base}), so that all sums add up."
    yield Repair(CONTROLLED, action, change, needs_truth=True, anew=True)


def _adds_up(counts: Counts, equation: tuple[int, tuple[int, ...]]) -> bool:
    """Whether a sum adds up wherever it is printed: then the total says nothing that its parts do not."""
    total, parts = equation
    members = counts[:, [total, *parts]].astype(np.int64)
    there = (members > ABSENT).all(axis=1)
    return bool((members[there, 0] == members[there, 1:].sum(axis=1)).all() and there.any())


# -- leaving out ------------------------------------------------------------------------------------------------------


def _dropping(name: str, action: str, dropped: Sequence[int]) -> Repair:
    def change(here: ReviewedTable, _true: Counts, _rng: np.random.Generator) -> ReviewedTable:
        return without(here, dropped)

    return Repair(name, action, change)


def _single(table: ReviewedTable, at: int) -> Repair:
    kind = "the total" if at in table.totals else "the column"
    return _dropping(f"{SINGLE}={table.columns[at].key}", f"Leave out {kind} {table.called(at)} in all areas.", (at,))


def _column(table: ReviewedTable, name: str) -> int:
    index = {table.columns[at].key: at for at in table.mine}
    if name not in index:
        few = ", ".join(list(index)[:6])
        raise InputError(f"{SINGLE}={name}: the table has no such column. Its columns are {few} …")
    return index[name]


def _singles(table: ReviewedTable, exposed: BoolArray) -> Iterator[Repair]:
    """Leave out one column: of the totals and of the others, that which stands in most sums with cells to act on."""
    weights = exposed.sum(axis=0)
    near = np.zeros(len(table.columns), dtype=np.int64)
    for total, parts in table.equations:
        members = [total, *parts]
        near[members] += int(weights[members].sum())
    ranked = [at for at in np.argsort(-near, kind="stable").tolist() if near[at] and at in table.mine]
    totals = [at for at in ranked if at in table.totals][:1]
    others = [at for at in ranked if at not in table.totals][:1]
    if len(table.mine) > 1:
        yield from (_single(table, at) for at in (*totals, *others))


def without(table: ReviewedTable, dropped: Sequence[int]) -> ReviewedTable:
    """Return a table that does not print some columns.

    Readers know that the counts exist, and how they add up: where a column stands between two sums, one follows for the
    others; where its sums leave something to say about it, it stays as a count that is not printed.
    """
    equations = list(zip(table.equations, table.origins, table.doubtful, strict=True))
    gone = set(dropped)
    if gone.issuperset(total for total, _ in table.equations):
        equations = []  # readers are left with parts, and nothing that these add up to
    for cell in dropped:
        above = [one for one in equations if cell in one[0][1]]
        below = [one for one in equations if one[0][0] == cell]
        if len(below) == 1 and not above:  # a total that nothing else tells of
            equations.remove(below[0])
        elif len(below) == 1 and len(above) == 1:
            (total, parts), (_, inside) = above[0][0], below[0][0]
            joined = (total, tuple(dict.fromkeys([*(part for part in parts if part != cell), *inside])))
            equations = [one for one in equations if one is not above[0] and one is not below[0]]
            equations.append((joined, above[0][1], above[0][2] or below[0][2]))
    counts = table.counts.copy()
    counts[:, list(dropped)] = NOT_AVAILABLE
    needed = {cell for (total, parts), _, _ in equations for cell in (total, *parts)}
    stay = [at for at in range(len(table.columns)) if at not in gone or at in needed]
    return selected(
        replace(
            table,
            counts=counts,
            equations=tuple(one for one, _, _ in equations),
            origins=tuple(origin for _, origin, _ in equations),
            doubtful=tuple(doubt for _, _, doubt in equations),
        ),
        stay,
    )
