"""Formats of agencies that are descriptions: their columns say what is what, and they are read like any table with a TOML.

- `data-table`: Statistics Canada's data tables. The columns say which of them are dimensions. What adds up to what, and how
  counts were rounded, is documented in the `…_MetaData.csv` that is zipped with every table: the parent of every member, and
  the notes. Where that is not at hand, the names of members suggest it.
- `datapack`: the DataPacks of the Australian Bureau of Statistics. Names say everything: `_P` (or `P_` in front) are
  persons, `_M` males, `_F` females; numbers are ages; `Tot` is a total. Counts are perturbed, so that no sum holds to
  the last unit.
- `first-names`: the names of Canada's people, with how many people, men+ and women+ are called so.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from unround.errors import InputError
from unround.release import ABSENT, LARGEST, SUPPRESSED, Entry, Release, What
from unround.tables.account import account_of
from unround.tables.axes import AGE, AREA, OTHER, SEX, DraftAxis
from unround.tables.cells import read_headed
from unround.tables.delimited import read_table
from unround.tables.description import make_description
from unround.tables.grid import HeadedTable
from unround.tables.labels import ALL, EVER, Range, tile
from unround.tables.notes import read_notes
from unround.tables.profile import COUNT, MEN, TOTAL, WOMEN, kind_of
from unround.tables.source import Source
from unround.tables.suggested import find_candidates

_BOTH = {"total": TOTAL, "parts": [MEN, WOMEN]}


def _described(
    source: Source, table: pl.DataFrame, keys: Mapping[str, Any], form: str, notes: Sequence[str] = ()
) -> Release:
    """Return the release of a table that is described by keys, with its account; the counts have to confirm its sums."""
    cells = table.rename({name: str(at) for at, name in enumerate(table.columns)})
    headed = HeadedTable((tuple(table.columns),), cells, str(source.path), source.size, notes=tuple(source.notes))
    description = make_description(keys, where=f"the format {form}")
    release = read_headed(headed, description, form=form, notes=notes)
    proposals = tuple(replace(proposal, origin="names") for proposal in release.proposals)
    return replace(release, proposals=proposals, account=account_of(headed, description, release))


# Data tables of Statistics Canada

DATA_TABLE = "data-table"
_FRENCH = {
    "PÉRIODE DE RÉFÉRENCE": "REF_DATE", "GÉO": "GEO", "UNITÉ DE MESURE": "UOM", "VECTEUR": "VECTOR",
    "COORDONNÉES": "COORDINATE", "VALEUR": "VALUE", "STATUT": "STATUS", "DÉCIMALES": "DECIMALS",
    "IDENTIFICATEUR SCALAIRE": "SCALAR_ID",
}  # fmt: skip
_NEEDED = ("REF_DATE", "GEO", "UOM", "COORDINATE", "VALUE")
FEW_PLACES = 60
"""Up to so many places are columns of a table with several dates: the sums over places then hold at every date."""
_NO_COUNT = re.compile(
    r"(?:rate|ratio|index|years?|days|hours|dollars|percent|chained|pourcentage|taux|années)\b", re.IGNORECASE
)
_SEX = re.compile(r"sex|gender|sexe|genre", re.IGNORECASE)
_OTHERS_TOO = re.compile(r"\binclud\w+\b[^.]*\b(?:unknown|not stated|unspecified|missing|other)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Documents:
    """What the metadata say: the title, the parent of every member by dimension and name, and notes by number."""

    title: str = ""
    product: str = ""
    members: Mapping[int, list[tuple[str, str, str, str]]] = field(default_factory=dict)
    """By dimension: the ID of a member, its name, the ID of its parent, and the numbers of its notes."""
    notes: Mapping[str, str] = field(default_factory=dict)

    def names(self, dimension: int) -> list[str]:
        """Return the names of the members of a dimension."""
        return [name for _, name, _, _ in self.members.get(dimension, ())]

    def renamed(self, dimension: int, names: Mapping[str, str]) -> _Documents:
        """Return the metadata with other names for the members of a dimension."""
        if dimension not in self.members:
            return self
        members = [(number, names[name], parent, notes) for number, name, parent, notes in self.members[dimension]]
        return replace(self, members={**self.members, dimension: members})

    def sums(self, dimension: int, codes: Sequence[str], remarks: list[str]) -> list[dict[str, Any]] | None:
        """Return the sums of a dimension among the codes of the table; None where the metadata do not have it.

        A total that a note says includes others than its parts is not their sum, and that is told.
        """
        members = self.members.get(dimension)
        names = self.names(dimension)
        if members is None or len(set(names)) < len(names) or not set(codes) <= set(names):
            return None
        by_id, there, sums = {number: name for number, name, _, _ in members}, set(codes), []
        for number, total, _, notes in members:
            parts = [name for child, name, parent, _ in members if parent == number != child]
            more = next((self.notes[note] for note in notes.split(";") if _OTHERS_TOO.search(self.notes.get(note, ""))), "")
            if more and parts:
                remarks.append(f"{total} is not taken for the sum of its parts: {more}")
            elif total in there and len(parts) > 1 and set(parts) <= there:
                sums.append({"total": by_id[number], "parts": parts})
        return sums


def load_data_table(source: Source) -> Release:
    """Read a data table."""
    table = read_table(source, "download it again").frame
    table = table.rename({name: _FRENCH[name] for name in table.columns if name in _FRENCH})
    missing = [name for name in _NEEDED if name not in table.columns]
    if missing:
        raise InputError(f"{source.path} does not have the column {missing[0]} of a data table; download it again.")
    last = "DGUID" if "DGUID" in table.columns else "GEO"
    dimensions = table.columns[table.columns.index(last) + 1 : table.columns.index("UOM")]
    table, left_out = _only_counts(table, dimensions)
    if table.is_empty():
        raise InputError(f"{source.path} has no counts: its values are {', '.join(left_out)}. Choose a table of counts.")
    documents, remarks = _documents(source), list[str]()
    for number, name in enumerate(("GEO", *dimensions), start=1):
        short = _shortened([*table[name].drop_nulls().unique(maintain_order=True), *documents.names(number)])
        table = table.with_columns(pl.col(name).replace(short))
        documents = documents.renamed(number, short)
    keys = _dimensions(table, dimensions, documents, remarks)
    release = _described(source, table, keys, DATA_TABLE, remarks)
    how = read_notes(documents.notes.values()).mechanism
    said: dict[str, Any] = {"documented": (how,), "basis": "note"} if how is not None else {}
    columns = tuple(replace(column, **said, known_format=bool(documents.members)) for column in release.columns)
    if not documents.members:  # names suggest sums, and document none
        release = replace(release, proposals=tuple(replace(proposal, origin="labels") for proposal in release.proposals))
    aside = (Entry(f"rows: {why}", What.SILENT, "left out: they hold figures, not counts", False) for why in left_out)
    account = (*release.account, *aside)
    return replace(release, columns=columns, left_out={**release.left_out, **left_out}, account=account)


def _only_counts(table: pl.DataFrame, dimensions: Sequence[str]) -> tuple[pl.DataFrame, dict[str, tuple[str, ...]]]:
    """Keep what is counted in units; what is in another unit, scaled, or printed with decimals is told apart."""
    units = {unit: kind_of(unit) == COUNT and _NO_COUNT.match(unit) is None for unit in table["UOM"].fill_null("").unique()}
    counted = pl.col("UOM").fill_null("").replace_strict(units, return_dtype=pl.Boolean)
    for name in ("DECIMALS", "SCALAR_ID"):
        if name in table.columns:
            counted &= pl.col(name).fill_null("0").is_in(["", "0"])
    others = table.filter(~counted)
    last = dimensions[-1:] or ["UOM"]
    left_out = {
        f"values in {unit[0] or 'no unit'}": tuple(
            dict.fromkeys(", ".join(row) for row in rows.select(last).fill_null("").rows())
        )
        for unit, rows in others.group_by("UOM", maintain_order=True)
    }
    return table.filter(counted), left_out


def _dimensions(table: pl.DataFrame, dimensions: Sequence[str], documents: _Documents, remarks: list[str]) -> dict[str, Any]:
    """Return the description of a table: places and dates are its rows, unless places are few and dates several."""
    axes: dict[str, dict[str, Any]] = {}
    several = [name for name in dimensions if table[name].n_unique() > 1] or list(dimensions[:1])
    across = table["REF_DATE"].n_unique() > 1 and 1 < table["GEO"].n_unique() <= FEW_PLACES
    for number, name in enumerate(("GEO", *dimensions), start=1):
        if name == "GEO" or name in several:
            axis = "sex" if _SEX.fullmatch(name) else name
            axes[axis] = {"column": name}
            codes = table[name].unique(maintain_order=True).drop_nulls().to_list()
            sums = documents.sums(number, codes, remarks)
            sums = _suggested(name, codes) if sums is None else sums
            if sums:
                axes[axis]["sums"] = sums
    axes["REF_DATE"] = {"column": "REF_DATE"}
    rows = ["REF_DATE"] if across else ["GEO"] if table["REF_DATE"].n_unique() == 1 else ["GEO", "REF_DATE"]
    if rows == ["GEO"]:
        del axes["REF_DATE"]
    elif table["GEO"].n_unique() == 1:
        del axes["GEO"]
        rows = ["REF_DATE"]
    said = "says which series, unit or revision a value is; the dimensions tell as much"
    aside = [name for name in table.columns if name not in ("VALUE", "STATUS", "REF_DATE", "GEO", *several)]
    called = f"Statistics Canada, Table {documents.product}" if documents.product else "Statistics Canada, data table"
    return {
        "value": "VALUE",
        "axes": axes,
        "areas": rows,
        "ignore": [{"column": name, "because": said} for name in aside],
        "product": f"{called}, {documents.title}" if documents.title else called,
        **({"status": "STATUS"} if "STATUS" in table.columns else {}),
    }


def _shortened(names: Sequence[str]) -> dict[str, str]:
    """Return names without what all of them begin or end with: "Age at death, 0 to 44 years" is "0 to 44 years".

    >>> _shortened(["Age at death, all ages", "Age at death, 0 to 44 years"])
    {'Age at death, all ages': 'all ages', 'Age at death, 0 to 44 years': '0 to 44 years'}
    """
    kept = list(dict.fromkeys(names))
    if len(kept) > 1:
        heads, tails = {name.partition(", ")[0] for name in kept}, {name.rpartition(", ")[2] for name in kept}
        if len(heads) == 1 and all(", " in name for name in kept):
            kept = [name.partition(", ")[2] for name in kept]
        elif len(tails) == 1 and all(", " in name for name in kept):
            kept = [name.rpartition(", ")[0] for name in kept]
    return dict(zip(dict.fromkeys(names), kept, strict=True))


def _suggested(name: str, codes: Sequence[str]) -> list[dict[str, Any]]:
    """Return the sums that the names of members suggest; the first for every total."""
    age = re.search(r"\b(?:age|âge)\b", name, re.IGNORECASE)
    about = AREA if name == "GEO" else SEX if _SEX.fullmatch(name) else AGE if age else OTHER
    first: dict[str, dict[str, Any]] = {}
    for candidate in find_candidates(DraftAxis(name, about, tuple(codes))):
        first.setdefault(candidate.total, {"total": candidate.total, "parts": list(candidate.parts)})
    return list(first.values())


def _documents(source: Source) -> _Documents:
    """Read the metadata that come with the table, in its zip or beside it; none is not a fault."""
    text = source.companion(r"_MetaData\.csv$")
    if not text:
        return _Documents()
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text.lstrip("\ufeff")))]
    except csv.Error as error:
        raise InputError(f"the metadata of {source.path} cannot be read ({error}); download it again.") from None
    title = rows[1] if len(rows) > 1 else []
    members: dict[int, list[tuple[str, str, str, str]]] = {}
    notes: dict[str, str] = {}
    section = ""
    for row in rows:
        if not row:
            section = ""
        elif not section:
            section = " ".join(row[:2])
        elif section == "Dimension ID Member Name" and len(row) > 6 and row[0].isdecimal():
            members.setdefault(int(row[0]), []).append((row[3], row[1], row[4], row[6]))
        elif section == "Note ID Note" and len(row) > 1:
            notes[row[0]] = row[1]
    product = title[1] if len(title) > 1 else ""
    shown = f"{product[:2]}-{product[2:4]}-{product[4:8]}-01" if product.isdecimal() and len(product) == 8 else product
    return _Documents(title[0] if title else "", shown, members, notes)


# DataPacks of Australia

DATAPACK = "datapack"
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


def _parted(column: str) -> tuple[str, str]:
    """Return what a column counts, and of which sex; "" where it does not say."""
    matched = _BEHIND.fullmatch(column) or _BEFORE.fullmatch(column)
    return (matched["name"], _SEXES[matched["sex"]]) if matched else (column, "")


def load_datapack(source: Source) -> Release:
    """Read a DataPack."""
    table = read_table(source, wide=True)
    area_column = _AREA.fullmatch(table.header[0][0])
    assert area_column is not None, "the format was recognised by this column"
    level = area_column["level"].upper()
    counts: dict[str, dict[str, str]] = {}
    left_out: dict[str, list[str]] = {}
    for column in table.header[0][1:]:
        name, sex = _parted(column)
        kind = kind_of(name)
        if kind == COUNT:
            counts[column] = {"characteristic": name, "sex": sex or TOTAL}
        else:
            left_out.setdefault(kind, []).append(column)
    names = list(dict.fromkeys(codes["characteristic"] for codes in counts.values()))
    sexes = {codes["sex"] for codes in counts.values()}
    area = table.header[0][0]
    around = pl.col("0").str.slice(0, _DIGITS.get(level, 0)).replace("", None)
    cells = table.cells.with_columns(pl.lit(level).alias("level"), around.alias("parent"))
    cells.columns = [*table.header[0], "level", "parent"]
    keys: dict[str, Any] = {
        "product": f"Australian Bureau of Statistics, {area_column['year']} Census of Population and Housing, DataPacks",
        "axes": {
            "region": {"column": area, "level": "level", "parent": "parent"},
            "characteristic": {"sums": [{"total": total, "parts": list(parts)} for total, parts in _named_sums(names)]},
            "sex": {"sums": [_BOTH] if {TOTAL, MEN, WOMEN} <= sexes else []},
        },
        "areas": ["region"],
        "counts": counts,
        "ignore": [{"column": codes, "because": f"a {kind}"} for kind, those in left_out.items() for codes in those],
    }
    release = _described(source, cells, keys, DATAPACK)
    return replace(release, left_out={**release.left_out, **{kind: tuple(those) for kind, those in left_out.items()}})


def _taken_apart(name: str) -> tuple[str, Range | None, str]:
    """Return what stands before the ages in a name, the ages, and what stands behind.

    >>> _taken_apart("Age_5_14_yr"), _taken_apart("15_19_yr_Married"), _taken_apart("Age_yr_7")
    (('Age', (5, 14), ''), ('', (15, 19), 'Married'), ('Age_yr', (7, 7), ''))
    >>> _taken_apart("Tot_Married"), _taken_apart("Age_85ov")[1] == (85, EVER)
    (('', None, 'Tot_Married'), True)
    """
    matched = _AGES.search(name)
    if matched is None:
        return "", None, name
    single, over = matched["single"], matched["over"]
    ages = (int(single),) * 2 if single else (int(over), EVER) if over else (int(matched["low"]), int(matched["high"]))
    return name[: matched.start()].strip("_"), (ages[0], ages[1]), name[matched.end() :].strip("_")


def _named_sums(names: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
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
        everybody = next((candidate for candidate in _EVERYBODY if candidate in there), None)
        plain = whole == ALL and not behind and set(before.split("_")) <= {"", "Age", "yr"}
        total = named if named in there else everybody if plain else None
        tilings = tile({**ranges, whole: total} if total else ranges)
        yield from ((head, parts) for head, parts in tilings if head is not None)
    for members in crossed.values():
        parts = tuple(name for behind, name in members.items() if behind != "Tot")
        if "Tot" in members and len(parts) > 1:
            yield members["Tot"], parts


# First names of Canada

FIRST_NAMES = "first-names"
_BY_SEX = {TOTAL: "GENDER_TOTAL", MEN: "MEN+", WOMEN: "WOMEN+"}
_FIGURES = {"PERCENTAGE": "percentage", "RANK": "rank", "SYMBOL": "what an empty count means"}


def load_first_names(source: Source) -> Release:
    """Read the table of first names. Its rows are names; of several regions, names in regions.

    Beside a count that is not shown the file has `...`, which its notes call "not applicable". But there are such people:
    of 400 with a name 370 may be men+, and women+ reads `...`. What is shown begins at a floor, and what totals leave for a
    count that is not shown lies below it, give or take the rounding. So these counts are hidden for being small: they are
    suppressed, and the sum of both sexes bounds them.
    """
    table = read_table(source, wide=True)
    cells = table.cells.rename(dict(zip(table.cells.columns, (name.upper() for name in table.header[0]), strict=True)))
    for sex, column in _BY_SEX.items():
        count, symbol = pl.col(f"{column}_COUNT"), pl.col(f"{column}_SYMBOL").str.strip_chars()
        if f"{column}_SYMBOL" in cells.columns:
            said = symbol if sex == TOTAL else symbol.replace("...", "x")
            cells = cells.with_columns(pl.when(count.is_null()).then(said).otherwise(count).alias(f"{column}_COUNT"))
    several = "DGUID" in cells.columns and cells["DGUID"].n_unique() > 1
    region = {"region": {"column": "DGUID", "name": "GEO_NAME", "level": "GEO_LEVEL"}} if several else {}
    counts = {f"{column}_COUNT": {"characteristic": "people", "sex": sex} for sex, column in _BY_SEX.items()}
    used = {"FIRST_NAME", *region.get("region", {}).values(), *counts}
    left_out: dict[str, list[str]] = {}
    for name in cells.columns:
        if name not in used:
            left_out.setdefault(_FIGURES.get(name.rpartition("_")[2], "about the region"), []).append(name)
    years = sorted(set(cells["CENSUS_YEAR"].drop_nulls().str.strip_chars())) if "CENSUS_YEAR" in cells.columns else []
    keys: dict[str, Any] = {
        "axes": {**region, "first_name": "FIRST_NAME", "characteristic": {}, "sex": {"sums": [_BOTH]}},
        "areas": [*region, "first_name"],
        "counts": counts,
        "ignore": [{"column": header, "because": why} for why, those in left_out.items() for header in those],
        **({"product": f"Statistics Canada, {' and '.join(years)} Census of Population, first names"} if years else {}),
    }
    release = _described(source, cells, keys, FIRST_NAMES)
    numbers = np.concatenate([block.counts.ravel() for block in release.blocks()])
    notes = list(release.notes)
    if hidden := int((numbers == SUPPRESSED).sum()):
        notes.append(
            f"{hidden:,} counts by sex are marked `...`; they are read as suppressed, because the totals show that such "
            f"people exist. The smallest count shown is {numbers[numbers > ABSENT].min(initial=LARGEST):,}."
        )
    aside = {why: tuple(those) for why, those in left_out.items()}
    columns = tuple(replace(column, block="First names") for column in release.columns)
    return replace(release, columns=columns, left_out={**release.left_out, **aside}, notes=notes)
