"""Indicators: one line per area, and columns `indicator_<ID>` by the CHARACTERISTIC_IDs of the 2021 Canadian profile.

The file has no labels, and only totals. What the IDs stand for is public (the profile's own list of 2,631 characteristics),
but of that list only what is needed is here: which IDs are no counts, and how some much used ones add up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import polars as pl

from unround.errors import InputError
from unround.readers.lines import TOTAL
from unround.readers.regions import adjustable, published_exactly
from unround.readers.source import Source
from unround.readers.wide import (
    FRACTIONS,
    LeftOut,
    WideTable,
    counts_of,
    read_blocks,
    read_wide,
    refuse_repeated,
    unreadable,
)
from unround.release import AREA, Column, Proposal, Release

LAYOUT = "indicators"
LAST = 2631
_INDICATOR = re.compile(r"indicator_0*([1-9]\d*)", re.IGNORECASE)
_NAMES = ("geo_name", "geo_code", "geo_uid", "geouid", "dguid", "alt_geo_code", "region")
_POSTAL = r"^[A-Za-z][0-9][A-Za-z]$"


def _ids(text: str) -> frozenset[int]:
    """Return the numbers of a list such as "3 6-7"."""
    ends = [(part.split("-")[0], part.split("-")[-1]) for part in text.split()]
    return frozenset(number for first, last in ends for number in range(int(first), int(last) + 1))


FIGURES = _ids(
    "3 6-7 34-40 57 76-77 113 115 117 119 121 123 125 128 130 132 134 136 138 140 143-144 146-154 206 208 210 212 214 216 "
    "219 221 223 225 227 229 232-233 235-241 243-244 246-247 249-250 252-253 255-256 258-259 302-304 306-308 310-312 "
    "314-316 318-319 321-322 324-325 327-328 330-331 333-334 345-349 360-364 379-382 1433 1483-1489 1491-1495 1497-1499 "
    "2228-2230 2236"
)
"""IDs of percentages, averages, medians, amounts, rates and ratios: many are whole numbers, and look like counts."""

EXACT: Mapping[int, str] = {
    1: "Population, 2021",
    2: "Population, 2016",
    4: "Total private dwellings",
    5: "Private dwellings occupied by usual residents",
}
"""IDs of what is not rounded."""

PARTS: Mapping[int, tuple[int, ...]] = {
    8: (9, 13, 24), 9: (10, 11, 12), 13: (*range(14, 24),), 24: (*range(25, 30),), 29: (30, 31, 32, 33),  # ages
    41: (*range(42, 50),), 50: (*range(51, 56),),  # dwellings by type, households by size
    58: (59, 66), 59: (60, 61), 61: (62, 63, 64, 65), 66: (67, 68, 69, 70),  # marital status
    171: (172, 173), 173: (*range(174, 185),), 184: (185, 186),  # after-tax income
    1974: (1975, 1976), 1976: (1977, 1978), 1978: (1979, 1982), 1979: (1980, 1981),  # mobility, 1 year
    1983: (1984, 1985), 1985: (1986, 1987), 1987: (1988, 1991), 1988: (1989, 1990),  # mobility, 5 years
}  # fmt: skip
"""How some much used IDs add up."""

SAME: Mapping[int, tuple[int, ...]] = {1: (8,), 5: (41, 50)}
"""What counts the same people or households again, rounded."""


def matches(head: str, name: str) -> bool:  # noqa: ARG001 - the header says it all
    """Say whether a file that begins so is a table of indicators."""
    return len(re.findall(r"(?:^|[,;\t\"]) *indicator_\d+ *(?=[\",;\t\r]|$)", head.split("\n", 1)[0], re.IGNORECASE)) > 0


def load(source: Source) -> Release:
    """Read a table of indicators.

    Raises
    ------
    InputError
        Where there is no column of areas, an area repeats, or lines differ in length.
    """
    table = read_wide(source)
    places = {int(found[1]): at for at, name in enumerate(table.header) if (found := _INDICATOR.fullmatch(name))}
    if len(places) < sum(_INDICATOR.fullmatch(name) is not None for name in table.header):
        raise InputError(f"{source.path} has two columns for one indicator, written in different ways; keep one of them.")
    if not places:
        raise InputError(f"{source.path} has no column called indicator_ followed by a number; check its header.")
    if max(places) > LAST:
        raise InputError(
            f"{source.path} has indicator_{max(places)}, but the 2021 profile ends with {LAST}: these are other IDs. "
            "Describe the file as a tidy table instead."
        )
    left_out = LeftOut()
    for number, place in places.items():
        if number in FIGURES:
            left_out.add("figures that are not counts, by their ID", table.header[place])
    wanted = sorted(set(places) - FIGURES)
    counts, shares = counts_of(table, [places[number] for number in wanted])
    kept = [at for at, share in enumerate(shares) if share <= FRACTIONS]
    for at in sorted(set(range(len(wanted))) - set(kept)):
        left_out.add("decimals", table.header[places[wanted[at]]])
    numbers = [wanted[at] for at in kept]
    if not numbers:
        raise InputError(f"{source.path} has no indicators that are counts; there is nothing to infer.")
    counts = counts[:, kept].copy()
    areas = _areas(source, table, counts[:, numbers.index(1)].tolist() if 1 in numbers else None)
    return Release(
        source=str(source.path),
        file_format=LAYOUT,
        columns=tuple(_column(number) for number in numbers),
        axes=("characteristic_id", "sex"),
        areas=(AREA,),
        read=read_blocks(areas, counts, source.size),
        proposals=tuple(_proposals(numbers)),
        size=source.size,
        product="Statistics Canada, 2021 Census of Population",
        left_out=left_out.by_reason,
        notes=[
            *source.notes,
            "The file has no labels; its indicators are assumed to be CHARACTERISTIC_IDs of the 2021 profile.",
            *unreadable(counts),
        ],
    )


def _column(number: int) -> Column:
    label = EXACT.get(number, f"characteristic {number}")
    exact, adjusted = published_exactly(label)
    head = next((head for head in (8, 41, 50, 58, 171, 1974, 1983) if number in _below(head)), None)
    return Column(
        str(number),
        (str(number), TOTAL),
        label,
        block="" if head is None else f"characteristic {head}",
        mechanism=exact,
        adjusted=adjusted,
    )


def _below(head: int) -> set[int]:
    """Return a total and everything that it is made of."""
    return {head}.union(*(_below(part) for part in PARTS.get(head, ())))


def _proposals(numbers: Sequence[int]) -> list[Proposal]:
    at = {number: place for place, number in enumerate(numbers)}
    found = [
        Proposal(at[exact], (at[again],), "universe")
        for exact, repeats in SAME.items()
        for again in repeats
        if exact in at and again in at
    ]
    for total in PARTS:
        parts = _present(total, at) if total in at else None
        if parts:
            found.append(Proposal(at[total], tuple(at[part] for part in parts), "names"))
    return found


def _present(total: int, at: Mapping[int, int]) -> list[int] | None:
    """Return the parts of a total; in place of those that the file has not, theirs; None where these lack too."""
    parts: list[int] = []
    for part in PARTS[total]:
        finer = [part] if part in at else _present(part, at) if part in PARTS else None
        if finer is None:
            return None
        parts += finer
    return parts


def _areas(source: Source, table: WideTable, population: list[int] | None) -> pl.DataFrame:
    names = {name.lower(): at for at, name in enumerate(table.header) if not _INDICATOR.fullmatch(name)}
    codes = [name for name in _NAMES if name in names]
    # A name can stand for the code (postal areas have no other), but where there is a code it is the better one.
    key = next((name for name in codes if name != "geo_name"), codes[0] if codes else None)
    if key is None:
        raise InputError(f"{source.path} has no column of areas such as geo_name; add one.")
    region = table.column(names[key]).str.strip_chars()
    postal = bool(region.str.contains(_POSTAL).all())
    level = "FSA" if postal else ""
    others = {name: at for name, at in names.items() if name not in (key, "geo_name")}
    people = population or [0] * len(region)
    frame = pl.DataFrame(
        {
            AREA: region,
            "region_name": table.column(names.get("geo_name", names[key])).str.strip_chars(),
            "level": pl.Series([level] * len(region), dtype=pl.String),
            "parent": pl.Series([None] * len(region), dtype=pl.String),
            "adjustable": [adjustable(level, number) for number in people],
        }
    )
    refuse_repeated(source, frame, [AREA])
    taken = set(frame.columns)
    more = [table.column(at).alias(f"{name} (file)" if name in taken else name) for name, at in others.items()]
    return frame.hstack(more)
