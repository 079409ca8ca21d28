"""Ages: labels such as "5 to 9 years" are ranges, and ranges that tile another one add up to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

EVER = 1_000_000_000
"""Stands for "and over": older than anybody."""

MOST = 1_000
"""Ranges of a table of ages: a longer one counts something else, and every range is laid beside every other."""

Range = tuple[int, int]
ALL: Range = (0, EVER)

_FROM_TO = re.compile(r"(\d+) (?:to|-|–) (\d+) years(?: old| of age)?")
_OVER = re.compile(r"(\d+) years (?:and|or) (?:over|older|more)")
_UNDER = re.compile(r"under (\d+) years?")
_SINGLE = re.compile(r"(\d+)(?: years?)?")
_WHOLE = re.compile(
    r"(?:total - )?(?:all )?ages?(?: stats| groups?)?(?: of the population)?(?: - 100% data)?|(?:fe)?males?, total"
)


def age_range(label: str) -> Range | None:
    """Return the ages that a label names, both ends included; None where it names none.

    Examples
    --------
    >>> age_range("5 to 9 years"), age_range("Under 5 years"), age_range("1 person")
    ((5, 9), (0, 4), None)
    >>> age_range("85 years and over") == (85, EVER)
    True
    """
    name = label.strip().lower()
    if found := _FROM_TO.fullmatch(name):
        return (int(found[1]), int(found[2])) if int(found[1]) < int(found[2]) else None
    if found := _OVER.fullmatch(name):
        return int(found[1]), EVER
    if found := _UNDER.fullmatch(name):
        return 0, int(found[1]) - 1
    if found := _SINGLE.fullmatch(name):
        return int(found[1]), int(found[1])
    return ALL if _WHOLE.fullmatch(name) else None


@dataclass(frozen=True, slots=True)
class AgeRun:
    """One table of ages: lines that follow one upon the other, each range once."""

    ranges: dict[Range, str]

    @property
    def members(self) -> tuple[str, ...]:
        """Return the keys of its lines."""
        return tuple(self.ranges.values())

    @property
    def name(self) -> str:
        """What to call the table."""
        return "Age"

    @classmethod
    def find(cls, lines: Sequence[tuple[str, str]], range_of: Callable[[str], Range | None] = age_range) -> list[AgeRun]:
        """Find the tables of ages among lines of (key, label); or of anything else that `range_of` reads ranges of.

        A label that names no ages ends a table, and so does a range that was there before: the same names come back with
        other meanings. Fewer than two lines are no table.

        Examples
        --------
        >>> labels = ["0 to 4 years", "5 years and over", "Dwellings", "0 to 4 years", "5 to 9 years", "0 to 4 years"]
        >>> [run.members for run in AgeRun.find([(str(key), label) for key, label in enumerate(labels)])]
        [('0', '1'), ('3', '4')]
        """
        runs: list[dict[Range, str]] = [{}]
        for key, label in lines:
            ages = range_of(label)
            if ages is None or ages in runs[-1] or ages == ALL:
                runs.append({})
            if ages is not None:
                runs[-1][ages] = key
        return [cls(run) for run in runs if len(run) > 1]


def tile(run: AgeRun) -> Iterator[tuple[str | None, tuple[str, ...]]]:
    """Go through the ranges that others tile without gap or overlap, each with the fewest that do.

    The key of the whole range; None for all ages where the table has no line for them. The keys of the ranges that
    tile it, from young to old.

    Examples
    --------
    >>> labels = ["0 to 14 years", "0 to 4 years", "5 to 14 years", "15 years and over"]
    >>> run = AgeRun({age_range(label): label for label in labels})
    >>> for total, parts in tile(run):
    ...     print(total, "=", " + ".join(parts))
    0 to 14 years = 0 to 4 years + 5 to 14 years
    None = 0 to 14 years + 15 years and over
    """
    if len(run.ranges) > MOST:
        return
    wholes = dict.fromkeys((*run.ranges, ALL))
    for whole in wholes:
        parts = _fewest(whole, [ages for ages in run.ranges if ages != whole])
        if parts:
            yield run.ranges.get(whole), tuple(run.ranges[part] for part in parts)


def _fewest(whole: Range, ranges: Sequence[Range]) -> tuple[Range, ...]:
    """Return the fewest ranges that tile `whole`, or none.

    Going down from its upper end, the best tiling from each age on is one range and the best tiling behind it.
    """
    low, high = whole
    best: dict[int, tuple[Range, ...]] = {high + 1: ()}
    for first, last in sorted(ranges, reverse=True):
        if low <= first and last <= high and last + 1 in best:
            candidate = ((first, last), *best[last + 1])
            if first not in best or len(candidate) < len(best[first]):
                best[first] = candidate
    return best.get(low, ()) if low in best else ()
