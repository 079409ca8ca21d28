"""Candidates: the sums that the names of codes suggest. None is believed before the counts confirm it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unround.tables.axes import AGE, AREA, OTHER, SEX, TIME, DraftAxis
from unround.tables.labels import Range, age_sums, is_total, is_unknown, sex_of, written_age

MOST_PARTS = 5_000
"""Parts of a sum that a description lists."""
HEADED = 0.8
"""Where codes make a hierarchy, so many of those of an upper level have others below them."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sum of codes that may hold, and what suggests it."""

    axis: str
    total: str
    parts: tuple[str, ...]
    why: str

    @property
    def shown(self) -> str:
        """The sum for people, shortened."""
        few = self.parts if len(self.parts) <= 6 else (*self.parts[:2], "…", f"{self.parts[-1]} ({len(self.parts)} parts)")
        return f"{self.total} = {' + '.join(few)}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the counts say of a suggested sum: whether it is used, and why."""

    candidate: Candidate
    used: bool
    why: str
    refused: int = 0
    columns: int = 0


def find_candidates(axis: DraftAxis) -> list[Candidate]:
    """Return the sums that the codes of an axis suggest; several for one total are alternatives, the likelier first.

    Examples
    --------
    >>> axis = DraftAxis("sex", SEX, ("T", "M", "F"))
    >>> [one.shown for one in find_candidates(axis)]
    ['T = M + F']
    >>> axis = DraftAxis("age", AGE, ("Total", "0-14", "15-64", "65+"))
    >>> [one.shown for one in find_candidates(axis)]
    ['Total = 0-14 + 15-64 + 65+']
    """
    if axis.figures:
        axis = replace(axis, codes=tuple(code for code in axis.codes if code not in axis.figures), figures=frozenset())
    if axis.about == TIME or len(axis.codes) < 2:
        return []
    totals = [code for code in axis.codes if is_total(*axis.names_of(code), of_places=axis.about == AREA)]
    unknown = [code for code in axis.codes if is_unknown(*axis.names_of(code)) and code not in totals]
    found = _sexes(axis, totals) + (_ages(axis, totals, unknown) if axis.about in (AGE, OTHER) else [])
    if not any(one.total in totals for one in found):
        found += _all_others(axis, totals, unknown)
    if axis.about not in (AGE, SEX):
        found += _prefixes(axis, found)
    return [one for one in dict.fromkeys(found) if 2 <= len(one.parts) <= MOST_PARTS]


def _sexes(axis: DraftAxis, totals: list[str]) -> list[Candidate]:
    known = {sex: code for code in axis.codes if (sex := sex_of(*axis.names_of(code))) and code not in totals}
    others = [code for code in axis.codes if code not in known.values() and code not in totals]
    if len(known) == 2 and not totals and len(others) == 1:
        totals, others = others, []  # whatever the third is called
    others = [code for code in others if axis.about == SEX]
    if len(known) < 2 or not totals:
        return []
    both = tuple(code for code in axis.codes if code in known.values())
    found = [Candidate(axis.name, totals[0], both, "the sexes")]
    if others:
        found.insert(0, Candidate(axis.name, totals[0], (*both, *others), "the sexes, and those of neither"))
    return found


def _ages(axis: DraftAxis, totals: list[str], unknown: list[str]) -> list[Candidate]:
    ages: dict[str, Range] = {}
    for code in axis.codes:
        span = next((span for text in axis.names_of(code) if (span := written_age(text)) is not None), None)
        if span is not None and code not in totals and code not in unknown:
            ages[code] = span
    found = []
    for total, parts in age_sums(ages, totals[0] if totals else None):
        if unknown and total in totals:
            found.append(Candidate(axis.name, total, (*parts, *unknown), "ages that tile another, and those unknown"))
        found.append(Candidate(axis.name, total, parts, "ages that tile another"))
    return found


def _all_others(axis: DraftAxis, totals: list[str], unknown: list[str]) -> list[Candidate]:
    if not totals:
        return []
    total = totals[0]
    others = tuple(code for code in axis.codes if code not in totals)
    found = [Candidate(axis.name, total, others, "a total and all others")]
    if unknown:
        found.append(
            Candidate(axis.name, total, tuple(c for c in others if c not in unknown), "a total and all others known")
        )
    return found


def _numbered(codes: Sequence[str]) -> bool:
    """Say whether codes only count up, as R1 to R30 do: then R1 is not above R10."""
    shared = codes[0].rstrip("0123456789")
    numbers = [code.removeprefix(shared) for code in codes]
    if not all(number.isdecimal() for number in numbers):
        return False
    counted = sorted(map(int, numbers))
    return counted[0] <= 1 and counted == list(range(counted[0], counted[0] + len(counted)))


def _prefixes(axis: DraftAxis, known: list[Candidate]) -> list[Candidate]:
    """Propose that codes such as C10 and C11 are the parts of C; where a total heads them all, only the top ones are."""
    codes = [code for code in axis.codes if code.isalnum() and not is_total(*axis.names_of(code))]
    if len(codes) < 3 or len(set(map(len, codes))) < 2 or _numbered(codes):
        return []
    below: dict[str, list[str]] = {}
    for code in codes:
        above = next((code[:cut] for cut in range(len(code) - 1, 0, -1) if code[:cut] in codes), None)
        if above is not None:
            below.setdefault(above, []).append(code)
    heads = {len(head) for head in below}
    with_heads = [code for code in codes if len(code) in heads]
    if len(below) < HEADED * len(with_heads):
        return []  # R1 is not above R10, or R2 would be above others too
    found = [Candidate(axis.name, head, tuple(parts), "codes that begin alike") for head, parts in below.items()]
    inner = {part for one in found for part in one.parts if len(one.parts) > 1}
    found += [
        Candidate(axis.name, one.total, tuple(part for part in one.parts if part not in inner), "a total and its top codes")
        for one in known
        if inner and one.why.startswith("a total")
    ]
    return found
