"""Indicators: one line per area, and columns `indicator_<ID>` by the CHARACTERISTIC_IDs of the 2021 Canadian profile.

The file has no labels, and only totals. What the IDs stand for is public (the profile's own list of 2,631 characteristics):
`profile_2021` has their tables and sums, and here is which of them are no counts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import polars as pl

from unround.errors import InputError
from unround.regions import adjustable, published_exactly, with_limits
from unround.release import AREA, Column, Release
from unround.tables.documented import with_documented
from unround.tables.documented_figures import documented_figures, label_of
from unround.tables.figure_labels import TableLine
from unround.tables.figure_values import figures_of
from unround.tables.kinds import COUNT
from unround.tables.lines import TOTAL
from unround.tables.profile_2021 import LAST, table_of
from unround.tables.source import Source
from unround.tables.wide import (
    FRACTIONS,
    LeftOut,
    WideTable,
    counts_of,
    read_blocks,
    read_wide,
    refuse_repeated,
    unreadable,
)

LAYOUT = "indicators"
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

MEDIANS = _ids(
    "40 113 115 117 119 121 123 125 143 146 206 208 210 212 214 216 232 235 243-244 246-247 249-250 302-303 306-307 310-311 "
    "314-315 318-319 1486 1488 1494 1498"
)
AVERAGES = _ids(
    "39 57 76-77 128 130 132 134 136 138 140 144 147 219 221 223 225 227 229 233 236 252-253 255-256 258-259 304 308 312 "
    "316 321-322 324-325 327-328 330-331 333-334 1433 1487 1489 1495 1499 2236"
)
"""Those of them that are medians and averages; the rates are documented one by one."""

EXACT: Mapping[int, str] = {
    1: "Population, 2021",
    2: "Population, 2016",
    4: "Total private dwellings",
    5: "Private dwellings occupied by usual residents",
}
"""IDs of what is not rounded."""


def matches(head: str, name: str) -> bool:  # noqa: ARG001 - the header says it all
    """Say whether a file that begins so is a table of indicators."""
    return len(re.findall(r"(?:^|[,;\t\"]) *indicator_\d+ *(?=[\",;\t\r]|$)", head.split("\n", 1)[0], re.IGNORECASE)) > 0


def load(source: Source) -> Release:
    """Read a table of indicators.

    Raises `InputError` where there is no column of areas, an area repeats, or lines differ in length.
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
    labels = {number: label_of(number) or _label(number) for number in places}
    figures = documented_figures(
        {
            number: TableLine(str(number), label, 0, table_of(number), _kind(number, numbers))
            for number, label in labels.items()
        }
    )
    values = figures_of([table.column(places[int(figure.name)]) for figure in figures], len(table.cells))
    known = {table.header[places[int(figure.name)]] for figure in figures}
    areas = _areas(source, table, counts[:, numbers.index(1)].tolist() if 1 in numbers else None)
    places_of = {(number, TOTAL): at for at, number in enumerate(numbers)}
    columns, counts, proposals = with_documented(
        [_column(number) for number in numbers], counts, places_of, lambda number, _: _column(number)
    )
    return Release(
        source=str(source.path),
        file_format=LAYOUT,
        columns=tuple(with_limits(columns)),
        axes=("characteristic_id", "sex"),
        areas=(AREA,),
        read=read_blocks(areas, counts, source.size, values),
        proposals=tuple(proposals),
        size=source.size,
        product="Statistics Canada, 2021 Census of Population",
        figures=tuple(figures),
        left_out=left_out.without(known),
        notes=[
            *source.notes,
            "The file has no labels; its indicators are assumed to be CHARACTERISTIC_IDs of the 2021 profile.",
            *unreadable(counts),
        ],
    )


def _kind(number: int, counts: Collection[int]) -> str:
    """Return what kind of number a characteristic is, as `kinds` calls it."""
    if number in counts:
        return COUNT
    return "median" if number in MEDIANS else "average" if number in AVERAGES else "figure"


def _label(number: int) -> str:
    return EXACT.get(number, f"characteristic {number}")


def _column(number: int) -> Column:
    label = _label(number)
    exact, adjusted = published_exactly(label)
    return Column(str(number), (str(number), TOTAL), label, table_of(number), mechanism=exact, adjusted=adjusted)


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
