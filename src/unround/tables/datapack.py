"""The DataPacks of the Australian Bureau of Statistics: one line per area, and a column per count such as `Age_5_14_yr_M`.

Names say everything: `_P` (or `P_` in front) are persons, `_M` males, `_F` females; numbers are ages; `Tot` is a total.
Counts are perturbed, so that no sum holds to the last unit. With this the table is described, and read like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from unround.release import Release
from unround.tables.description_file import make_description
from unround.tables.grid import HeadedTable
from unround.tables.kinds import COUNT, kind_of
from unround.tables.labels import ALL, EVER, AgeRun, Range, tile
from unround.tables.lines import MEN, TOTAL, WOMEN
from unround.tables.reshape import read_headed
from unround.tables.source import Source
from unround.tables.wide import read_wide

NAME = "datapack"
_AREA = re.compile(
    r"(?P<level>SA[1-4]|GCCSA|STE|AUS|LGA|POA|SSC|SAL|CED|SED|UCL|SUA|SOS|SOSR|RA|ILOC|IARE|IREG)_\w*CODE\w*?_(?P<year>20\d\d)",
    re.IGNORECASE,
)
_SEXES = {"P": TOTAL, "M": MEN, "F": WOMEN}
_BEHIND, _BEFORE = re.compile(r"(?P<name>.+)_(?P<sex>[PMF])"), re.compile(r"(?P<sex>[PMF])_(?P<name>.+)")
_AGES = re.compile(
    r"(?:^|(?<=_))(?:(?P<low>\d+)_(?P<high>\d+)(?:_yrs?)?|(?P<over>\d+)_?(?:yrs?_)?(?:ov|over)|(?<=yr_)(?P<single>\d+)(?=$))(?=_|$)"
)
_DIGITS = {"SA2": 5, "SA3": 3, "SA4": 1}
"""How many digits of an area's code are that of the area around it."""
_EVERYBODY = ("Tot", "Tot_P", "Total", "Total_P")


def matches(head: str, name: str) -> bool:  # noqa: ARG001 - the header says it all
    """Return whether a file that begins so is a DataPack.

    Examples
    --------
    >>> matches("SA2_MAINCODE_2016,Tot_P_M,Tot_P_F,Tot_P_P", "x.csv"), matches("SA2_MAINCODE_2016,Name", "x.csv")
    (True, False)
    """
    names = [name.strip().strip('"') for name in head.lstrip("\ufeff").partition("\n")[0].split(",")]
    return len(names) > 1 and _AREA.fullmatch(names[0]) is not None and any(_parted(one)[1] for one in names[1:])


def _parted(column: str) -> tuple[str, str]:
    """Return what a column counts, and of which sex; "" where it does not say."""
    found = _BEHIND.fullmatch(column) or _BEFORE.fullmatch(column)
    return (found["name"], _SEXES[found["sex"]]) if found else (column, "")


def load(source: Source) -> Release:
    """Read a DataPack."""
    table = read_wide(source)
    found = _AREA.fullmatch(table.header[0])
    assert found is not None, "the format was recognised by this column"
    level = found["level"].upper()
    counts: dict[str, dict[str, str]] = {}
    left_out: dict[str, list[str]] = {}
    for column in table.header[1:]:
        name, sex = _parted(column)
        kind = kind_of(name)
        if kind == COUNT:
            counts[column] = {"characteristic": name, "sex": sex or TOTAL}
        else:
            left_out.setdefault(kind, []).append(column)
    names = list(dict.fromkeys(one["characteristic"] for one in counts.values()))
    sexes = {one["sex"] for one in counts.values()}
    area = table.header[0]
    around = pl.col("0").str.slice(0, _DIGITS.get(level, 0)).replace("", None)
    cells = table.cells.with_columns(pl.lit(level).alias("level"), around.alias("parent"))
    cells.columns = [str(at) for at in range(cells.width)]
    headed = HeadedTable(
        ((*table.header, "level", "parent"),), cells, str(source.path), source.size, notes=tuple(source.notes)
    )
    keys: dict[str, Any] = {
        "product": f"Australian Bureau of Statistics, {found['year']} Census of Population and Housing, DataPacks",
        "axes": {
            "region": {"column": area, "level": "level", "parent": "parent"},
            "characteristic": {"sums": [{"total": total, "parts": list(parts)} for total, parts in _sums(names)]},
            "sex": {"sums": [{"total": TOTAL, "parts": [MEN, WOMEN]}] if {TOTAL, MEN, WOMEN} <= sexes else []},
        },
        "areas": ["region"],
        "counts": counts,
    }
    release = read_headed(headed, make_description(keys, where=f"the format {NAME}"), form=NAME)
    return replace(release, left_out={**release.left_out, **{kind: tuple(those) for kind, those in left_out.items()}})


def _taken_apart(name: str) -> tuple[str, Range | None, str]:
    """Return what stands before the ages in a name, the ages, and what stands behind.

    Examples
    --------
    >>> _taken_apart("Age_5_14_yr"), _taken_apart("15_19_yr_Married"), _taken_apart("Age_yr_7")
    (('Age', (5, 14), ''), ('', (15, 19), 'Married'), ('Age_yr', (7, 7), ''))
    >>> _taken_apart("Tot_Married"), _taken_apart("Age_85ov")[1] == (85, EVER)
    (('', None, 'Tot_Married'), True)
    """
    found = _AGES.search(name)
    if found is None:
        return "", None, name
    single, over = found["single"], found["over"]
    ages = (int(single),) * 2 if single else (int(over), EVER) if over else (int(found["low"]), int(found["high"]))
    return name[: found.start()].strip("_"), (ages[0], ages[1]), name[found.end() :].strip("_")


def _sums(names: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Go through the sums that names document: ages that tile others, or all; and totals over what is crossed with ages."""
    there = set(names)
    by_ages: dict[tuple[str, str], dict[Range, str]] = {}
    crossed: dict[tuple[str, Range | None], dict[str, str]] = {}
    for name in names:
        before, ages, behind = _taken_apart(name)
        if ages is not None:
            by_ages.setdefault((before, behind), {})[ages] = name
            crossed.setdefault((before, ages), {})[behind] = name
        elif name.startswith("Tot_"):
            crossed.setdefault(("", None), {})[name.removeprefix("Tot_")] = name
    for (before, behind), ranges in by_ages.items():
        whole = (min(low for low, _ in ranges), max(high for _, high in ranges))
        named = "_".join(part for part in (before, "Tot", behind) if part)
        everybody = next((one for one in _EVERYBODY if one in there), None)
        plain = whole == ALL and not behind and set(before.split("_")) <= {"", "Age", "yr"}
        total = named if named in there else everybody if plain else None
        found = AgeRun({**ranges, whole: total} if total else ranges)
        yield from ((head, parts) for head, parts in tile(found) if head is not None)
    for members in crossed.values():
        parts = tuple(name for behind, name in members.items() if behind != "Tot")
        if "Tot" in members and len(parts) > 1:
            yield members["Tot"], parts
