"""What a table would tell if something held that nobody says: asked before it is published."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations

import numpy as np

from unround.mechanisms import Exact
from unround.release import ABSENT, NOT_APPLICABLE, Counts
from unround.reviews.decision import Unsettled
from unround.reviews.table import ReviewedTable
from unround.structure.balances import balances, running_totals
from unround.structure.evidence import Equation


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
    asked = _balanced(counts, known, names, "rows") + _running(counts, names) + _within(counts, known, names)
    if table.nested is None:  # otherwise, sums between areas are known, and used
        asked += _balanced(np.ascontiguousarray(counts.T), (), table.area_codes, "columns")
    return asked + _not_applicable(table)


def _balanced(counts: Counts, known: Sequence[Equation], names: Sequence[str], others: str) -> list[Unsettled]:
    """Ask about counts that add up to others wherever all are printed, where a hidden count would follow."""
    asked = []
    for balance in balances(counts, known):
        left, right = (" + ".join(names[at] for at in side) for side in (balance.left, balance.right))
        number = "1 hidden count" if balance.follow == 1 else f"{balance.follow:,} hidden counts"
        why = (
            f"{left} = {right} in all {balance.rows:,} {others} where all counts are printed. If that always holds, "
            f"{number} can be worked out"
        )
        settle = f"hide a second count in those {others}; if it is a coincidence, leave it aside: "
        asked.append(Unsettled(f"{left} = {right}", why, f'{settle}--ignore "{left} = {right}" --because "…"'))
    return asked


def _running(counts: Counts, names: Sequence[str]) -> list[Unsettled]:
    """Ask about columns that add up another one, row by row, where a hidden count would follow."""
    asked = []
    for running in running_totals(counts):
        (added,), (total,) = running.left, running.right
        what = f"{names[total]} adds up {names[added]} row by row"
        number = "1 hidden count" if running.follow == 1 else f"{running.follow:,} hidden counts"
        why = f"{what} in all {running.rows:,} rows where that can be seen. If it always does, {number} can be worked out"
        settle = f"hide {names[total]} in those rows, too; if it is a coincidence, leave it aside: "
        asked.append(Unsettled(what, why, f'{settle}--ignore "{what}" --because "…"'))
    return asked


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
        named = steps or _WITHIN.search(names[whole]) or _WITHIN.search(names[part])
        if not named or any({whole, part} <= one for one in summed):
            continue
        printed = (counts[:, [whole, part]] > ABSENT).all(axis=1)
        rest = counts[printed, whole].astype(np.int64) - counts[printed, part]
        small = int(((rest > 0) & (rest <= SMALL)).sum())
        if len(rest) < LEAST_ROWS or (rest < 0).any() or not small:
            continue
        what = f"{names[whole]} − {names[part]}"
        rows = "1 row" if small == 1 else f"{small:,} rows"
        why = f"if {names[part]} is part of {names[whole]}, the difference is a count of one or two in {rows}"
        asked.append(Unsettled(what, why, f'hide one of them there; or leave it aside: --ignore "{what}" --because "…"'))
    return asked


def _not_applicable(table: ReviewedTable) -> list[Unsettled]:
    """Ask whether "not applicable" means none where a hidden count stands in the same sum: such sums are not used."""
    missing = table.counts == NOT_APPLICABLE
    hidden = (table.counts <= ABSENT) & ~missing
    asked = np.zeros_like(hidden)
    shown = np.where(table.counts > ABSENT, table.counts, 0)
    for total, parts in table.equations if missing.any() and hidden.any() else ():
        cells = [total, *parts]
        rows = missing[:, list(parts)].any(axis=1) & ~missing[:, total]
        printed = rows & ~hidden[:, cells].any(axis=1)
        exact = all(isinstance(table.mechanisms[at], Exact) for at in cells)
        if exact and (shown[printed, total] != shown[printed][:, list(parts)].sum(axis=1)).any():
            continue  # it does not mean none: the sum misses where all else is printed
        asked[:, cells] |= hidden[:, cells] & rows[:, None]
    number = int(asked.sum())
    if not number:
        return []
    counted = "1 hidden count stands" if number == 1 else f"{number:,} hidden counts stand"
    what = "counts that are not applicable"
    why = (
        f"{counted} in a sum with a count that is “not applicable”, and such sums are not used. If it means none, what is "
        "hidden may follow"
    )
    settle = (
        "say what the sign means: `symbols` in the description (`unround describe FILE -o draft.toml`), 0 for none; or "
        f'leave it aside: --ignore "{what}" --because "…"'
    )
    return [Unsettled(what, why, settle)]
