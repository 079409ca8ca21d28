"""Find the area and the count that somebody means, by code or by name; ask back where several are meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from unround.audits.folder import AuditFolder
from unround.errors import InputError
from unround.release import Column

MOST_CANDIDATES = 12
"""Areas or characteristics that are listed when a name fits several."""


def find_area(folder: AuditFolder, wanted: str) -> int:
    """Return the row of an area by its code, the end of its code, or its name.

    Raises
    ------
    InputError
        If there is none, or several.
    """
    import polars as pl

    axes = folder.told["areas"]
    # Rows of several axes go by all of their codes: D00/2001.
    code = pl.concat_str([pl.col(axis).cast(pl.String) for axis in axes], separator="/")
    areas, axis = folder.areas.with_row_index("row").with_columns(code.alias("_code")), "_code"
    code = pl.col("_code")
    ways = [code == wanted, code.str.ends_with(wanted) if wanted else pl.lit(False)]
    if "region_name" in areas.columns:
        name = pl.col("region_name").str.to_lowercase()
        ways += [name == wanted.lower(), name.str.contains(wanted.lower(), literal=True)]
    for way in ways:
        found = areas.filter(way)
        if found.height == 1:
            return int(found["row"][0])
        if found.height > 1:
            listed = [f"{one[axis]} {one.get('region_name') or ''}".strip() for one in found.to_dicts()[:MOST_CANDIDATES]]
            raise InputError(_several(wanted, "areas", found.height, listed))
    raise InputError(f"there is no area {wanted!r} in this audit. Codes look like {areas[axis][0]}.")


def find_cell(folder: AuditFolder, wanted: str, sex: str | None) -> int:
    """Return the cell of a characteristic by its ID, key or name.

    Raises
    ------
    InputError
        If there is none, or several.
    """
    columns, axes = folder.model.columns, folder.told["axes"]
    by_sex = "sex" in axes
    if sex is not None and not by_sex:
        raise InputError(f"this table is not by sex: its axes are {', '.join(axes)}. Leave --sex out.")
    at = axes.index("sex") if by_sex else -1
    key = wanted if sex in (None, "total") else f"{wanted}/{sex}"
    key = folder.told["alias"].get(key, key)  # a count that is shown twice, number by number, is audited once
    if key in folder.model.index:
        return folder.model.index[key]
    chosen = [i for i, column in enumerate(columns) if not by_sex or column.codes[at] == (sex or "total")]
    if not chosen:
        raise InputError(f"there is no sex {sex!r} in this table: choose one of {', '.join(_sexes(columns, at))}.")
    low, again = wanted.strip().lower(), folder.model.repeated
    ways = (
        [i for i in chosen if columns[i].codes[0].lower() == low or columns[i].key.lower() == low],
        [i for i in chosen if i not in again and columns[i].label.lower() == low],
        [i for i in chosen if i not in again and low and low in columns[i].label.lower()],
    )
    for found in ways:
        if len(found) == 1:
            return found[0]
        if found:
            listed = [_candidate(columns[i], by_sex) for i in found[:MOST_CANDIDATES]]
            raise InputError(_several(wanted, "characteristics", len(found), listed))
    there = sorted({column.codes[0] for column in columns if column.codes[0].lower() == low})
    if there:
        raise InputError(f"characteristic {wanted} has no {sex or 'total'} among the audited counts.")
    raise InputError(
        f"there is no characteristic {wanted!r} among the {len(columns):,} audited counts: give an ID such as "
        f"{columns[0].codes[0]}, or a name such as {columns[0].label!r}. `unround inspect` shows what is not audited."
    )


def _candidate(column: Column, by_sex: bool) -> str:
    """Name a column so that the first word can be typed."""
    code = column.codes[0] if by_sex and len(column.codes) == 2 else column.key
    more = [text for text in (column.label, f"({column.block})") if text not in (code, "()")]
    return " ".join([code, *more])


def _sexes(columns: Iterable[Any], at: int) -> list[str]:
    return list(dict.fromkeys(column.codes[at] for column in columns))


def _several(wanted: str, what: str, number: int, listed: list[str]) -> str:
    more = f"\n  and {number - len(listed)} more" if number > len(listed) else ""
    shown = "".join(f"\n  {one}" for one in listed)
    return f"{wanted!r} matches {number} {what}; give the code of the one you mean:{shown}{more}"
