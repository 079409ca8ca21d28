"""What a table would tell if something held that nobody says: asked before it is published."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms import Exact
from unround.release import ABSENT, NOT_APPLICABLE, NOT_AVAILABLE, Counts, gaps
from unround.reviews.decision import Unsettled
from unround.reviews.table import ReviewedTable
from unround.structure.balances import balances, running_totals
from unround.structure.evidence import Equation
from unround.tables.description import Description
from unround.tables.grid import HeadedTable, letters
from unround.tables.labels import is_time, written_age
from unround.tables.profile import kind_of
from unround.tables.roles import SPARSE
from unround.tables.suggested import like_totals


def questions(table: ReviewedTable) -> list[Unsettled]:
    """Return what has to be answered: whether columns or rows balance each other, and what "not applicable" means."""
    exact = [at for at in table.mine if isinstance(table.mechanisms[at], Exact)]
    place = {column: at for at, column in enumerate(exact)}
    known = [
        (place[total], tuple(place[part] for part in parts))
        for total, parts in table.equations
        if {total, *parts} <= place.keys()
    ]
    counts = table.counts[:, exact]
    names = [table.columns[at].label or table.columns[at].key for at in exact]
    asked = _balanced(counts, known, names, "rows") + _running(counts, names, "row") + _within(counts, known, names)
    asked += _left_out(counts, table.area_codes, table.nested is not None) + _together(
        np.ascontiguousarray(counts.T), names, seen=True
    )
    if table.nested is None:  # otherwise, sums between areas are known, and used
        turned = np.ascontiguousarray(counts.T)
        asked += _balanced(turned, (), table.area_codes, "columns")
        asked += _together(counts, table.area_codes) + _like_totals(table)
        if len(turned.T) <= MOST_COMPARED:
            asked += _running(turned, table.area_codes, "column")
    return asked + _not_applicable(table)


_EXPLAINED = ("it tells nothing more", "ranks: ", "100 in every row", "an attribute", "not the column of counts")
"""How reasons begin for which a column of numbers is left out that tell why it is harmless."""
_OF_OTHERS = ("median", "average", "amount", "standard error", "area")
"""Kinds of figures that are about something else than the counts beside them."""


def columns_left(table: HeadedTable, description: Description, counted: Sequence[int], protects: bool) -> list[Unsettled]:
    """Ask about columns of numbers that were not read as counts, or that nobody sees, where counts are protected.

    They are, also if nothing else `protects` any, where such a column has ranges like <5.

    Harmless are ages, times, codes, numbers of the rows, what anybody can work out, and figures of something else where all
    counts beside them are printed.
    """
    asked = []
    axes = {axis.column for axis in description.axes}
    hiding = [row for row in range(table.cells.height) if any(_hides(table.cells[str(at)][row]) for at in counted)]
    for at, name in enumerate(table.names):
        cells = [" ".join(str(cell or "").split()) for cell in table.cells[str(at)].to_list()]
        filled = [cell for cell in cells if cell]
        place, why = f"column {letters(at)}: {name}", ""
        if at in counted:
            why = "it is hidden from view, and goes out with the file" * (protects and at in table.marks.hidden_columns)
        elif name in axes and 2 * len(set(filled)) <= len(filled):
            continue  # its codes repeat, for every code of another axis
        elif not description.ignore.get(name, "").startswith(_EXPLAINED) and not _is_code(filled):
            beside = kind_of(name) not in _OF_OTHERS or any(cells[row] for row in hiding)
            beside = beside if protects else any(cell.startswith("<") for cell in filled)
            why = "its numbers were not read as counts, and nothing says why they are harmless" * beside
        if why:
            asked.append(Unsettled.asked(place, f"{place}: {why}", "take it out, or say in a description what it holds"))
        for row in hiding if description.ignore.get(name) == SPARSE else ():
            if re.fullmatch(r"\d[\d.,\s]*", cells[row]):
                cell = f"cell {letters(at)}{table.number(row)}"
                why = f"{cell}: a remark that is a number, {cells[row]}, where counts are hidden"
                asked.append(Unsettled.asked(cell, why, "take it out, if it tells what is hidden"))
    return asked


def _hides(cell: object) -> bool:
    return cell is not None and not str(cell).strip()[:1].isdigit()


def _is_code(cells: Sequence[str]) -> bool:
    """Return whether cells are not counts for a reason: texts, ages, times, codes of one length, or numbers of the rows."""
    numbers = [cell for cell in cells if re.fullmatch(r"[<>≤≥]?-?\d[\d.,\s]*%?(?:\s?\(\d{1,2}\))?", cell)]
    if len(numbers) <= len(cells) / 2:
        return True
    plain = [cell for cell in numbers if cell.isdecimal()]
    said = sum(written_age(cell) is not None or is_time(cell) for cell in cells if not cell.isdecimal())
    if said > len(cells) / 2 or all(cell.isdecimal() and 1800 <= int(cell) < 2200 for cell in cells):
        return True
    alike = len({len(cell) for cell in plain}) == 1 and len(plain[0]) > 2
    ordered = sorted(map(int, plain))
    return len(plain) == len(cells) and (alike or ordered == [ordered[0] + at for at in range(len(ordered))])


def _hidden(number: int) -> str:
    return "1 hidden count" if number == 1 else f"{number:,} hidden counts"


def _balanced(counts: Counts, known: Sequence[Equation], names: Sequence[str], others: str) -> list[Unsettled]:
    """Ask about counts that add up to others wherever all are printed, where a hidden count would follow."""
    asked = []
    for balance in balances(counts, known):
        what = " = ".join(" + ".join(names[at] for at in side) for side in (balance.left, balance.right))
        why = (
            f"{what} in all {balance.rows:,} {others} where all counts are printed. If that is no coincidence, "
            f"{_hidden(balance.follow)} can be worked out"
        )
        asked.append(Unsettled.asked(what, why, f"hide a second count in those {others}"))
    return asked


def _running(counts: Counts, names: Sequence[str], steps: str) -> list[Unsettled]:
    """Ask about columns that add up another one, row by row, where a hidden count would follow."""
    asked = []
    for span, running in running_totals(counts):
        (added,), (total,) = running.left, running.right
        last = f"the last {span} {steps}s of {names[added]}" if span else f"{names[added]} {steps} by {steps}"
        what = f"{names[total]} adds up {last}"
        why = (
            f"{what} in all {running.rows:,} {steps}s where that can be seen. If that is no coincidence, "
            f"{_hidden(running.follow)} can be worked out"
        )
        asked.append(Unsettled.asked(what, why, f"hide {names[total]} in those {steps}s, too"))
    return asked


_AND = re.compile(r"\s*(?:[+&,/]|\b(?:and|und|et|en|og|och)\b)\s*", re.IGNORECASE)
"""What stands between the names of areas that are counted together."""


_WITHOUT = re.compile(r"(\b(?:without|excl\w*|except\w*|ohne|hors|sans|sin|zonder|less|minus)\b[.:]?)", re.IGNORECASE)
"""What stands before the name of what is left out."""


def _together(counts: Counts, names: Sequence[str], *, seen: bool = False) -> list[Unsettled]:
    """Ask about rows called "Wards E and F", or "City without Ward E", where a hidden count would follow.

    With `seen`, only where it adds up in at least one place: among categories, "R/G" may be a third one beside "R" and "G".
    """
    asked = []
    shown = counts > ABSENT
    rows = defaultdict(set)
    for row, name in enumerate(names):
        rows["".join(name.casefold().split()[-1:])].add(row)

    def called(text: str) -> set[int]:
        return rows.get("".join(text.casefold().split()[-1:]), set())

    def ask(name: str, whole: int, parts: Sequence[int]) -> None:
        rest = counts[whole].astype(np.int64) - counts[parts].sum(axis=0, dtype=np.int64)
        unknown = (~shown[[whole, *parts]]).sum(axis=0)
        if not (unknown == 1).any() or rest[unknown == 0].any() or (seen and (unknown > 0).all()):
            return
        what = f"{names[whole]} = " + " + ".join(names[row] for row in parts)
        follow = _hidden(int((unknown == 1).sum()))
        why = f"{name} is called like several rows together. If it is their sum, {follow} can be worked out"
        if names[whole] != name:
            why = f"{name} is called like {names[whole]} without a row. If it is that, {follow} can be worked out"
        asked.append(Unsettled.asked(what, why, "hide it where one of them is hidden"))

    for place, name in enumerate(names):
        named = [called(piece) - {place} for piece in _AND.split(name)]
        parts = sorted({row for some in named for row in some})
        if len(parts) > 1 and all(len(some) == 1 for some in named):
            ask(name, place, parts)
        first, word, last = _WITHOUT.split(name, maxsplit=1) if _WITHOUT.search(name) else ("", "", "")
        for part in called(last) - {place} if word else ():
            for whole in sorted(called(first) - {place, part} or {*range(len(names))} - {place, part}):
                if (counts[whole] >= counts[place])[shown[[whole, place]].all(axis=0)].all():
                    ask(name, whole, sorted((place, part)))
    return asked


def _left_out(counts: Counts, names: Sequence[str], nested: bool) -> list[Unsettled]:
    """Ask about rows a little above the sum of all those above, or below, them: a row left out, or hidden, may be the rest.

    Such rows must divide the whole table, as a last row or the totals of regions do. Where sums between areas are known
    (`nested`), hidden rows follow from these, or do not.
    """
    blank: NDArray[np.bool_] = np.asarray((counts <= ABSENT).all(axis=1) & (not nested))
    printed = np.where(blank[:, None], 0, counts)[:, (counts[~blank] > ABSENT).all(axis=0)].astype(np.int64)
    rows = list(range(len(printed)))
    for order in (rows, rows[::-1]) if printed.shape[1] > 1 else ():
        rests, group, hidden = {}, list[int](), dict[int, list[int]]()
        for row in order:
            rest = printed[row] - printed[group].sum(axis=0)
            there = int((~blank[group]).sum())
            if there >= LEAST_ROWS and not blank[row] and (rest >= 0).all() and (rest <= printed[group].max(axis=0)).all():
                rests[row], hidden[row], group = rest, [at for at in group if blank[at]], []
            else:
                group.append(row)
        small = {row: int(((rest > 0) & (rest <= SMALL)).sum()) for row, rest in rests.items()}
        asked = [_more_than_its_rows(names[row], number) for row, number in small.items() if number and not hidden[row]]
        asked += [_rest_is_hidden(names[row], names[those[0]]) for row, those in hidden.items() if len(those) == 1]
        if not group and asked:
            return asked
    return []


_SOURCE = re.compile(r"\s*(?:sources?|quellen?|fontes?|fuentes?|fonti|bron|kilde|källa|lähde)\s*:", re.IGNORECASE)
"""How a remark begins that says where a table comes from."""


def _like_totals(table: ReviewedTable) -> list[Unsettled]:
    """Ask about a first or last row, where counts are hidden, that may sum up all others, or that alone has empty cells."""
    base = max((getattr(how, "base", 1) for how in table.mechanisms), default=1)
    asked, empty, likely = [], table.counts == NOT_AVAILABLE, like_totals(table.counts, base)
    for row in sorted({0, len(empty) - 1}) if len(empty) > 2 else ():
        numbers = [str(count) for count in table.counts[row][table.printed[row] >= 0].tolist()]
        if _SOURCE.match(table.area_name(row)) and len(numbers) == 1 and is_time(numbers[0]):
            continue  # "Source: County office, 2023" was cut at its comma
        number = int((np.delete(table.hidden, row, axis=0) & (table.printed[row] >= 0)).sum())
        name = table.area_name(row)
        if row in likely and number:
            why = f"row {name} may be the sum of all others. If it is, {_hidden(number)} can be worked out, or nearly"
            asked.append(Unsettled.asked(f"row {name}", why, "leave it out"))
        elif empty[row].any() and not np.delete(empty, row, axis=0).any() and (table.hidden & ~empty).any():
            why = (
                f"row {name} is the only one with empty cells: its numbers may be about other rows, where counts are hidden"
            )
            asked.append(Unsettled.asked(f"row {name}", why, "leave it out"))
    return asked


def _more_than_its_rows(name: str, small: int) -> Unsettled:
    number = "a count of one or two" if small == 1 else f"{small:,} counts of one or two"
    return _all_its_rows(name, f"and rows were left out, {number} can be worked out")


def _rest_is_hidden(name: str, hidden: str) -> Unsettled:
    return _all_its_rows(name, f"the counts of {hidden}, which are hidden, are the rest")


def _all_its_rows(name: str, then: str) -> Unsettled:
    what = f"{name} − its rows"
    why = f"in every column, {name} is at least what the rows beside it add up to. If it counts them all, {then}"
    return Unsettled.asked(what, why, f"leave out {name}, too")


_WITHIN = re.compile(
    r"\b(?:without|excl\w*|except\w*|ohne|hors|sans|sin|zonder|incl\w*|einschl\w*|y compris)\b", re.IGNORECASE
)
_OPEN = re.compile(r"\d\+|\bat least \d|\d or more\b", re.IGNORECASE)
"""What columns are called that leave out some of the people of another one."""
MOST_COMPARED, LEAST_ROWS, SMALL = 40, 3, 2


def _within(counts: Counts, known: Sequence[Equation], names: Sequence[str]) -> list[Unsettled]:
    """Ask about columns that seem to be part of another one, where the rest is one or two."""
    asked = []
    summed = [{total, *parts} for total, parts in known]
    for whole, part in permutations(range(len(names) if len(names) <= MOST_COMPARED else 0), 2):
        steps = bool(_OPEN.search(names[whole])) and len({re.sub(r"\d", "", names[at]) for at in (whole, part)}) == 1
        outer, inner = written_age(names[whole]), written_age(names[part])
        nested = outer and inner and outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]
        named = steps or nested or _WITHIN.search(names[whole]) or _WITHIN.search(names[part])
        if not named or any({whole, part} <= members for members in summed):
            continue
        printed = (counts[:, [whole, part]] > ABSENT).all(axis=1)
        rest = counts[printed, whole].astype(np.int64) - counts[printed, part]
        small = int(((rest > 0) & (rest <= SMALL)).sum())
        if len(rest) < LEAST_ROWS or (rest < 0).any() or not small:
            continue
        what = f"{names[whole]} − {names[part]}"
        rows = "1 row" if small == 1 else f"{small:,} rows"
        why = f"if {names[part]} is part of {names[whole]}, the difference is a count of one or two in {rows}"
        asked.append(Unsettled.asked(what, why, "hide one of them there"))
    return asked


def _not_applicable(table: ReviewedTable) -> list[Unsettled]:
    """Ask whether "not applicable" means none where a hidden count stands in the same sum: such sums are not used."""
    missing = table.counts == NOT_APPLICABLE
    hidden = (table.counts <= ABSENT) & ~missing
    asked = np.zeros_like(hidden)
    zeros = np.where(missing, 0, table.counts)
    for total, parts in table.equations if missing.any() and hidden.any() else ():
        cells = [total, *parts]
        rows = missing[:, list(parts)].any(axis=1) & ~missing[:, total]
        printed = rows & ~hidden[:, cells].any(axis=1)
        exact = all(isinstance(table.mechanisms[at], Exact) for at in cells)
        if exact and gaps(zeros, total, parts)[1][printed].any():
            continue  # it does not mean none: the sum misses where all else is printed
        asked[:, cells] |= hidden[:, cells] & rows[:, None]
    number = int(asked.sum())
    if not number:
        return []
    what = "counts that are not applicable"
    why = (
        f"{_hidden(number)} {'stands' if number == 1 else 'stand'} in a sum with a count that is “not applicable”, and such "
        "sums are not used. If it means none, what is hidden may follow"
    )
    settle = "say what the symbol means: `symbols` in the description (`unround describe FILE -o draft.toml`), 0 for none"
    return [Unsettled.asked(what, why, settle)]
