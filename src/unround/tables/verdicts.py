"""Verdicts: which suggested sums the counts confirm, how counts were published, and which of them are exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from unround.mechanisms import Exact, Mechanism
from unround.release import Release
from unround.structure import JudgedSum, Structure, find_structure
from unround.structure.evidence import LABELS
from unround.structure.plan_file import MOST
from unround.tables.axes import AGE, AREA, OTHER, SEX, TIME, DraftAxis
from unround.tables.candidates import Candidate, Verdict

REFUSED = ("impossible", "mean", "spread")
"""Why a sum is wrong; other reasons say that nothing tells."""
UNTESTED = ("unknown", "absent")
"""Why nothing can be said of a sum: how its counts were published is not known, or they are not there."""
TOLERATED = 0.2
"""A sum of codes may be refused in this share of the columns that it spreads over: chance, where there are many."""
MANY_ROWS = 8
"""Codes from which an axis can be that of the rows, though it has a total."""
MOST_RULES = 50


def row_axes(axes: Sequence[DraftAxis], candidates: Mapping[str, Sequence[Candidate]]) -> list[str]:
    """Return the axes of the rows: areas, years, and whatever has no sums; the others are columns.

    Sums of the columns are what an audit infers from. Areas come in rows even if they have a total, for they are many.
    """
    areas = [axis.name for axis in axes if axis.about == AREA][:1]
    summed = [axis.name for axis in axes if candidates.get(axis.name)]
    columns = [axis.name for axis in axes if axis.about in (AGE, SEX) or (axis.name in summed and axis.name not in areas)]
    if areas:  # then a header does not name areas
        columns += [axis.name for axis in axes if axis.column is None and axis.about == OTHER and axis.name not in columns]
    columns = [name for name in columns if next(a for a in axes if a.name == name).about != TIME]
    if not columns:
        headers = [axis.name for axis in axes if axis.column is None]
        columns = headers or [axis.name for axis in axes if axis.name not in areas and axis.about != TIME] or areas
    rows = [axis.name for axis in axes if axis.name not in columns]
    large = [axis for axis in axes if axis.about == OTHER and len(axis.codes) >= MANY_ROWS]
    if not rows and len(columns) > 1 and large:
        rows = [max(large, key=lambda axis: len(axis.codes)).name]
    return rows


def verify(release: Release, candidates: Sequence[Candidate]) -> tuple[Structure, list[Verdict]]:
    """Let the counts judge the sums that were suggested.

    Parameters
    ----------
    release : Release
        The table, with all suggested sums of its columns as proposals.
    candidates : sequence of Candidate
        These sums, as codes of axes.
    """
    # What a person says in a file is taken as said; what names suggest has to stand the test.
    doubted = tuple(replace(one, origin="names") for one in release.proposals)
    structure = find_structure(replace(release, proposals=doubted))
    verdicts = [_judged(one, release, structure) for one in candidates if one.axis in release.axes]
    return structure, _best(verdicts)


def _judged(candidate: Candidate, release: Release, structure: Structure) -> Verdict:
    """Gather what the counts say of one sum at all codes of the other axes."""
    place = release.axes.index(candidate.axis)
    columns = release.columns
    wanted = frozenset(candidate.parts)
    mine: list[JudgedSum] = []
    for one in (*structure.sums, *structure.rejected):
        total = columns[one.total].codes
        if total[place] == candidate.total and len(one.parts) == len(wanted):
            codes = {columns[part].codes for part in one.parts}
            along = all(c[:place] + c[place + 1 :] == total[:place] + total[place + 1 :] for c in codes)
            if along and frozenset(c[place] for c in codes) == wanted:
                mine.append(one)
    refused = [one for one in mine if not one.kept and one.cause in REFUSED]
    fine = [one for one in mine if one.kept or one.unjudged or one.exactly or one.cause in UNTESTED]
    hopeless = any(one.impossible > MOST * one.areas for one in refused)  # nobody may insist on such a sum
    used = bool(fine) and len(refused) <= TOLERATED * len(mine) and not hopeless
    return Verdict(candidate, used, _words(mine, fine, refused), len(refused), len(mine))


def _words(mine: Sequence[JudgedSum], fine: Sequence[JudgedSum], refused: Sequence[JudgedSum]) -> str:
    if not mine:
        return "its codes never occur together"
    if not fine or len(refused) > TOLERATED * len(mine) or any(one.impossible > MOST * one.areas for one in refused):
        worst = max(refused or mine, key=lambda one: one.impossible)
        return f"does not hold: {worst.why}"
    exactly = sum(one.exactly for one in fine)
    if fine and exactly == len(fine):
        return "adds up exactly: the total was added up after rounding, and tells nothing about its parts"
    untested = [one for one in fine if one.cause in UNTESTED]
    if untested and len(untested) == len(fine):
        return f"taken on trust, for the counts cannot confirm it: {untested[0].why}"
    areas = max((one.areas for one in fine), default=0)
    trusted = sum(one.unjudged for one in fine)
    if fine and trusted == len(fine):
        return f"too small to be tested by the counts of {areas:,} rows; taken on trust"
    impossible = sum(one.impossible for one in fine)
    return f"confirmed by the counts of {areas:,} rows" + (f"; impossible in {impossible:,} places" if impossible else "")


def _best(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Use of several sums for a total, which share parts, the one that is refused least; of equals the first."""
    chosen: list[Verdict] = []
    for one in sorted((one for one in verdicts if one.used), key=lambda one: one.refused):
        if not any(_rivals(one.candidate, other.candidate) for other in chosen):
            chosen.append(one)
    made = []
    for one in verdicts:
        rival = next((other for other in chosen if other is not one and _rivals(one.candidate, other.candidate)), None)
        if one.used and rival is not None and not any(other is one for other in chosen):
            one = replace(one, used=False, why=f"another sum fits at least as well: {rival.candidate.shown}")
        made.append(one)
    return made


def _rivals(one: Candidate, other: Candidate) -> bool:
    """Say whether two sums cannot both be meant. A total may well be that of ages, and of sexes."""
    same = (one.axis, one.total) == (other.axis, other.total)
    return same and bool(set(one.parts) & set(other.parts))


def trusted(release: Release, structure: Structure) -> Release:
    """Return a release whose sums are taken as labels suggest them, unless the counts make that impossible.

    Every one of them was verified as a sum of codes; where counts are too small to tell, it holds as it does elsewhere. Only
    where it is not known how counts were published do labels not count. Nobody says that these sums hold: claims that need
    one are conditional on it.
    """
    untold = {column.codes for column, how in zip(structure.columns, structure.mechanisms, strict=True) if how is None}
    columns = release.columns
    origin = [
        "names" if any(columns[at].codes in untold for at in (one.total, *one.parts)) else LABELS
        for one in release.proposals
    ]
    return replace(
        release, proposals=tuple(replace(one, origin=by) for one, by in zip(release.proposals, origin, strict=True))
    )


@dataclass(frozen=True, slots=True)
class Protection:
    """How counts were published: usually, and where otherwise; as far as the counts tell, or as a person says."""

    default: Mechanism | None
    why: str
    others: tuple[tuple[Mechanism, tuple[Mapping[str, tuple[str, ...]], ...]], ...] = ()
    said: bool = False
    note: str = ""

    def as_said(self, mechanism: Mechanism) -> Protection:
        """Return what holds if a person says how counts were published; those that are exact among others stay so."""
        exact = () if self.default in (None, Exact()) else tuple(one for one in self.others if one[0] == Exact())
        return Protection(mechanism, "as you say", exact, said=True)


def protection(release: Release, structure: Structure) -> Protection:
    """Return how counts were published, as rules of a description."""
    told = Counter(how for how in structure.mechanisms if how is not None)
    rounded = {how: times for how, times in told.items() if not isinstance(how, Exact)}
    if not told:
        why = next((one.why for one in structure.how), "there are no counts")
        return Protection(None, why)
    default = max(rounded or told, key=lambda how: told[how])
    why = max((one for one in structure.how if one.mechanism == default), key=lambda one: len(one.columns)).why
    others = []
    for how in told:
        if how != default:
            those = [at for at, one in enumerate(structure.mechanisms) if one == how]
            others.append((how, tuple(_where(release, those))))
    return Protection(default, why, tuple(others))


def _where(release: Release, those: Sequence[int]) -> list[Mapping[str, tuple[str, ...]]]:
    """Return the rules, as codes of axes, that say which columns are meant: one if that is possible."""
    wanted = {release.columns[at].codes for at in those}
    everything = [column.codes for column in release.columns]
    sides = [
        tuple(dict.fromkeys(codes[place] for codes in everything if codes in wanted)) for place in range(len(release.axes))
    ]
    product = {codes for codes in everything if all(code in side for code, side in zip(codes, sides, strict=True))}
    if product == wanted:
        full = [{codes[place] for codes in everything} for place in range(len(release.axes))]
        rule = {
            axis: side for axis, side, all_ in zip(release.axes, sides, full, strict=True) if set(side) != all_
        }  # fmt: skip
        return [rule or {release.axes[0]: sides[0]}]
    if len(wanted) > MOST_RULES:
        return []
    return [
        {axis: (code,) for axis, code in zip(release.axes, codes, strict=True)} for codes in everything if codes in wanted
    ]
