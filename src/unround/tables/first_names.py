"""First names: a line a name, with how many people, men+ and women+ are called so (Statistics Canada, 2021).

Beside a count that is not shown the file has `...`, which its notes call "not applicable". But there are such people: of
400 with a name 370 may be men+, and women+ reads `...`. What is shown begins at a floor, the same for all columns, and what
the totals leave for a count that is not shown lies below it, give or take the rounding. So these counts are hidden for being
small: they are read as suppressed, and the sum of both sexes bounds them.
"""

from __future__ import annotations

import csv

import numpy as np
import polars as pl

from unround.release import ABSENT, AREA, NOT_APPLICABLE, SUPPRESSED, Column, Release
from unround.tables.lines import MEN, TOTAL, WOMEN, by_sex
from unround.tables.source import Source
from unround.tables.symbols import as_counts
from unround.tables.wide import LeftOut, WideTable, read_blocks, read_wide, refuse_repeated, unreadable

LAYOUT = "first-names"
NAME = "first_name"
PEOPLE = "people"
TABLE = "First names"
_COUNTS = {TOTAL: "GENDER_TOTAL", MEN: "MEN+", WOMEN: "WOMEN+"}
_FIGURES = {"PERCENTAGE": "percentage", "RANK": "rank"}
_REGION = {
    "CENSUS_YEAR": "census_year",
    "DGUID": AREA,
    "ALT_GEO_CODE": "code",
    "GEO_LEVEL": "level",
    "GEO_NAME": "region_name",
}


def matches(head: str, name: str) -> bool:  # noqa: ARG001 - the header says it all
    """Say whether a file that begins so is the table of first names."""
    first = head.split("\n", 1)[0].upper()
    delimiter = "\t" if "\t" in first else ";" if first.count(";") > first.count(",") else ","
    names = {field.strip() for field in next(csv.reader([first], delimiter=delimiter), [])}
    return {"FIRST_NAME", "GENDER_TOTAL_COUNT", "MEN+_COUNT", "WOMEN+_COUNT"} <= names


def load(source: Source) -> Release:
    """Read the table of first names. Its rows are names; of several regions, names in regions.

    Raises `InputError` where a name repeats, or lines differ in length.
    """
    table = read_wide(source)
    places = {name.upper(): at for at, name in enumerate(table.header)}
    notes, left_out = list(source.notes), LeftOut()
    counts = np.column_stack([_counts(table, places, sex) for sex in _COUNTS])
    used = {"FIRST_NAME", *(f"{sex}_{end}" for sex in _COUNTS.values() for end in ("COUNT", "SYMBOL"))}
    for sex in _COUNTS.values():
        for ending, kind in _FIGURES.items():
            if f"{sex}_{ending}" in places:
                used.add(f"{sex}_{ending}")
                left_out.add(kind, table.header[places[f"{sex}_{ending}"]])
    hidden = int(np.count_nonzero(counts == SUPPRESSED))
    if hidden:
        floor = int(counts[counts > ABSENT].min(initial=np.iinfo(np.int32).max))
        notes.append(
            f"{hidden:,} counts by sex are marked `...`; they are read as suppressed, because the totals show that "
            f"such people exist. "
            f"The smallest count shown is {floor:,}."
        )
    areas, axes = _names(source, table, places, used)
    columns = [Column(_key(sex), (PEOPLE, sex), "people with this first name", TABLE) for sex in _COUNTS]
    return Release(
        source=str(source.path),
        file_format=LAYOUT,
        columns=tuple(columns),
        axes=("characteristic_id", "sex"),
        areas=axes,
        read=read_blocks(areas, counts, source.size),
        proposals=tuple(by_sex(columns)),
        size=source.size,
        product=_product(table, places),
        left_out=left_out.by_reason,
        notes=[*notes, *unreadable(counts)],
    )


def _key(sex: str) -> str:
    return PEOPLE if sex == TOTAL else f"{PEOPLE}/{sex}"


def _counts(table: WideTable, places: dict[str, int], sex: str) -> np.ndarray:
    symbol = places.get(f"{_COUNTS[sex]}_SYMBOL")
    counts, _ = as_counts(table.column(places[f"{_COUNTS[sex]}_COUNT"]), None if symbol is None else table.column(symbol))
    return np.where((counts == NOT_APPLICABLE) & (sex != TOTAL), SUPPRESSED, counts).astype(np.int32)


def _names(source: Source, table: WideTable, places: dict[str, int], used: set[str]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return a row for every line, and the axes that tell them apart."""
    several = "DGUID" in places and table.column(places["DGUID"]).n_unique() > 1
    axes = (AREA, NAME) if several else (NAME,)
    # The names of one region are not regions: what the file says of it is only kept beside them.
    called = _REGION if several else {}
    told = {called.get(name, name.lower()): table.column(at) for name, at in places.items() if name not in used}
    lines = len(table.cells)
    about = {
        NAME: table.column(places["FIRST_NAME"]),
        "level": pl.Series([""] * lines),
        "parent": pl.Series([None] * lines, dtype=pl.String),
        "adjustable": pl.Series([None] * lines, dtype=pl.Boolean),
        **told,
    }
    first = [*axes, *(["region_name"] if "region_name" in about else []), "level", "parent", "adjustable"]
    frame = pl.DataFrame(about).select(*first, pl.exclude(first))
    refuse_repeated(source, frame, axes, "first name")
    return frame, axes


def _product(table: WideTable, places: dict[str, int]) -> str | None:
    if "CENSUS_YEAR" not in places:
        return None
    years = sorted(set(table.column(places["CENSUS_YEAR"]).drop_nulls().str.strip_chars().to_list()))
    return f"Statistics Canada, {' and '.join(years)} Census of Population, first names" if years else None
