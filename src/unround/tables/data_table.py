"""Statistics Canada's data tables: REF_DATE, GEO, DGUID, a column per dimension, UOM, VECTOR, COORDINATE, VALUE, STATUS.

The columns say which of them are dimensions. What adds up to what, and how counts were rounded, is documented in the
`…_MetaData.csv` that is zipped with every table: the parent of every member, and the notes. Where that is not at hand, the
names of members suggest it. With this the table is described, and read like any table with a description.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from unround.errors import InputError
from unround.mechanisms import mechanism
from unround.release import Release
from unround.tables.axes import AGE, AREA, OTHER, SEX, DraftAxis
from unround.tables.candidates import find_candidates
from unround.tables.description_file import make_description
from unround.tables.grid import HeadedTable
from unround.tables.kinds import COUNT, kind_of
from unround.tables.reshape import read_headed
from unround.tables.source import Source
from unround.tables.wide import read_table

NAME = "data-table"
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
_ROUNDED = re.compile(
    r"\b(?:rounded|rounding)\b[^.]*?\b(?P<how>nearest (?:multiple of )?|(?:neighbouring )?multiples? of |base (?:of )?)"
    r"(?P<base>\d+)\b(?! or)",
    re.IGNORECASE,
)
_SEX = re.compile(r"sex|gender|sexe|genre", re.IGNORECASE)
_OTHERS_TOO = re.compile(r"\binclud\w+\b[^.]*\b(?:unknown|not stated|unspecified|missing|other)\b", re.IGNORECASE)


def matches(head: str, name: str) -> bool:  # noqa: ARG001 - the header says it all
    """Return whether a file that begins so is a data table.

    Examples
    --------
    >>> matches('"REF_DATE","GEO","DGUID","Sex","UOM","VECTOR","COORDINATE","VALUE"', "x.csv"), matches("GEO,VALUE", "x.csv")
    (True, False)
    """
    first = head.lstrip("\ufeff").partition("\n")[0]
    names = next(csv.reader([first], delimiter=max(",;\t", key=first.count)), [])
    return {_FRENCH.get(name.strip(), name.strip()) for name in names} >= {*_NEEDED, "VECTOR"}


@dataclass(frozen=True, slots=True)
class _Documents:
    """What the metadata say: the title, the parent of every member by dimension and name, and notes by number."""

    title: str = ""
    product: str = ""
    members: Mapping[int, list[tuple[str, str, str, str]]] = field(default_factory=dict)
    """By dimension: the ID of a member, its name, the ID of its parent, and the numbers of its notes."""
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def mechanism(self) -> str | None:
        """How the notes say that counts were rounded, if they do."""
        said = next((found for text in self.notes.values() if (found := _ROUNDED.search(text))), None)
        if said is None:
            return None
        return f"{'nearest' if said['how'].lower().startswith('nearest') else 'rounding'}:{said['base']}"

    def names(self, dimension: int) -> list[str]:
        """Return the names of the members of a dimension."""
        return [name for _, name, _, _ in self.members.get(dimension, ())]

    def renamed(self, dimension: int, names: Mapping[str, str]) -> _Documents:
        """Return the metadata with other names for the members of a dimension."""
        if dimension not in self.members:
            return self
        members = [(number, names[name], parent, notes) for number, name, parent, notes in self.members[dimension]]
        return replace(self, members={**self.members, dimension: members})

    def sums(self, dimension: int, codes: Sequence[str], told: list[str]) -> list[dict[str, Any]] | None:
        """Return the sums of a dimension among the codes of the table; None where the metadata do not have it.

        A total that a note says includes others than its parts is not their sum, and that is told.
        """
        members = self.members.get(dimension)
        names = self.names(dimension)
        if members is None or len(set(names)) < len(names) or not set(codes) <= set(names):
            return None
        by_id, there, found = {number: name for number, name, _, _ in members}, set(codes), []
        for number, total, _, notes in members:
            parts = [name for _, name, parent, _ in members if parent == number]
            more = next((self.notes[one] for one in notes.split(";") if _OTHERS_TOO.search(self.notes.get(one, ""))), "")
            if more and parts:
                told.append(f"{total} is not taken for the sum of its parts: {more}")
            elif total in there and len(parts) > 1 and set(parts) <= there:
                found.append({"total": by_id[number], "parts": parts})
        return found


def load(source: Source) -> Release:
    """Read a data table.

    Raises `InputError` where a column is missing, or no value is a count.
    """
    table = read_table(source, "download it again")
    table = table.rename({name: _FRENCH[name] for name in table.columns if name in _FRENCH})
    missing = [name for name in _NEEDED if name not in table.columns]
    if missing:
        raise InputError(f"{source.path} does not have the column {missing[0]} of a data table; download it again.")
    last = "DGUID" if "DGUID" in table.columns else "GEO"
    dimensions = table.columns[table.columns.index(last) + 1 : table.columns.index("UOM")]
    table, left_out = _only_counts(table, dimensions)
    if table.is_empty():
        raise InputError(f"{source.path} has no counts: its values are {', '.join(left_out)}. Choose a table of counts.")
    documents, told = _documents(source), list[str]()
    for number, name in enumerate(("GEO", *dimensions), start=1):
        short = _shortened([*table[name].drop_nulls().unique(maintain_order=True), *documents.names(number)])
        table = table.with_columns(pl.col(name).replace(short))
        documents = documents.renamed(number, short)
    keys = _described(table, dimensions, documents, told)
    kept = [*(rule["column"] for rule in keys["axes"].values()), "VALUE", *(["STATUS"] if "status" in keys else [])]
    cells = table.select(pl.col(name).alias(str(at)) for at, name in enumerate(kept))
    headed = HeadedTable((tuple(kept),), cells, str(source.path), source.size, notes=tuple(source.notes))
    release = read_headed(headed, make_description(keys, where=f"the format {NAME}"), form=NAME, notes=told)
    if documents.mechanism:
        how = (mechanism(documents.mechanism),)
        release = replace(release, columns=tuple(replace(one, documented=how, basis="note") for one in release.columns))
    if documents.members:
        release = replace(release, columns=tuple(replace(one, known_format=True) for one in release.columns))
    else:  # names suggest sums, and document none
        release = replace(release, proposals=tuple(replace(one, origin="labels") for one in release.proposals))
    return replace(release, left_out={**release.left_out, **left_out})


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


def _described(table: pl.DataFrame, dimensions: Sequence[str], documents: _Documents, told: list[str]) -> dict[str, Any]:
    """Return the description of a table: places and dates are its rows, unless places are few and dates several."""
    axes: dict[str, dict[str, Any]] = {}
    several = [name for name in dimensions if table[name].n_unique() > 1] or list(dimensions[:1])
    across = table["REF_DATE"].n_unique() > 1 and 1 < table["GEO"].n_unique() <= FEW_PLACES
    for number, name in enumerate(("GEO", *dimensions), start=1):
        if name == "GEO" or name in several:
            axis = "sex" if _SEX.fullmatch(name) else name
            axes[axis] = {"column": name}
            codes = table[name].unique(maintain_order=True).drop_nulls().to_list()
            sums = documents.sums(number, codes, told)
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
    called = f"Statistics Canada, Table {documents.product}" if documents.product else "Statistics Canada, data table"
    return {
        "value": "VALUE",
        "axes": axes,
        "areas": rows,
        "product": f"{called}, {documents.title}" if documents.title else called,
        **({"status": "STATUS"} if "STATUS" in table.columns else {}),
    }


def _shortened(names: Sequence[str]) -> dict[str, str]:
    """Return names without what all of them begin or end with: "Age at death, 0 to 44 years" is "0 to 44 years".

    Examples
    --------
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
    for one in find_candidates(DraftAxis(name, about, tuple(codes))):
        first.setdefault(one.total, {"total": one.total, "parts": list(one.parts)})
    return list(first.values())


def _documents(source: Source) -> _Documents:
    """Read the metadata that come with the table, in its zip or beside it; none is no fault."""
    text = source.companion(r"_MetaData\.csv$")
    if not text:
        return _Documents()
    rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text.lstrip("\ufeff")))]
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
