"""Wide Canadian profiles: one line per area, and a column per characteristic, called by its number.

CensusMapper (censusmapper.ca, cancensus, pycancensus; any census year) calls it a vector. Headers read `v_CA21_14: 0 to 4
years, - Total`, or for older years and other options `v_CA16_4: 0 to 14 years`, or only `v_CA21_14`. A characteristic by
sex has three vectors in a row: total, men, women. Columns are paired by vector and label together, for labels repeat with
other meanings. Tables of indicators have columns `indicator_<ID>` by the CHARACTERISTIC_IDs of 2021, totals without labels.
What both stand for in 2021 is documented: `canada_2021` has their tables, sums and figures.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from unround.errors import InputError
from unround.regions import areas_frame, with_limits
from unround.release import AREA, Column, Counts, Proposal, Release
from unround.tables.canada_2021 import (
    DATASET,
    FIVE_YEARS,
    KIND_OF,
    LAST,
    TABLES,
    documented_figures,
    id_of,
    label_of,
    table_of,
    table_of_vector,
    vector_of,
    with_documented,
)
from unround.tables.delimited import read_table
from unround.tables.grid import HeadedTable
from unround.tables.labels import ALL, age_range, age_runs, tile
from unround.tables.profile import (
    COUNT,
    DECIMALS,
    FIRST,
    MEN,
    TOTAL,
    WOMEN,
    TableLine,
    by_sex,
    census,
    columns_of,
    counts_of,
    figures_of,
    in_memory,
    key_of,
    kind_of,
    propose,
    refuse_repeated,
    unreadable,
)
from unround.tables.source import Source
from unround.tables.symbols import FRACTIONS

LAYOUT = "censusmapper"
_VECTOR = re.compile(r"(v_([A-Za-z0-9]+(?:_[A-Za-z0-9]+)*)_(\d+))(?:\s*:\s*(.*?))?\s*", re.DOTALL)
_SEX = re.compile(r"(.*?)\s*,?\s*-\s*(total|males?|females?|men\+?|women\+?)", re.IGNORECASE | re.DOTALL)
_SEXES = {"t": TOTAL, "m": MEN, "f": WOMEN, "w": WOMEN}
_STEP = {TOTAL: 0, MEN: 1, WOMEN: 2}

_BASE = {
    "geouid": AREA, "geo_uid": AREA, "id": AREA,
    "type": "level", "t": "level",
    "region_name": "region_name", "name": "region_name",
    "population": "Population", "pop": "Population",
    "dwellings": "Dwellings", "dw": "Dwellings",
    "households": "Households", "hh": "Households",
    "csd_uid": "csd", "cd_uid": "cd", "ct_uid": "ct", "cma_uid": "cma", "pr_uid": "pr", "c_uid": "c", "da_uid": "da",
}  # fmt: skip
"""What is known of columns other than vectors, by their names in lower case: GeoJSON and some versions shorten them."""

EXACT = ("Population", "Dwellings", "Households")
_BASE_IDS = {"Population": 1, "Dwellings": 4, "Households": 5}

_CODES = ("csd", "cd", "ct", "cma", "pr", "c", "da")
_WITHIN = {
    "DB": ("da", 8), "DA": ("csd", 4), "EA": ("csd", 0), "CT": ("cma", 0), "CSD": ("cd", 4), "CD": ("pr", 2), "PR": ("c", 0),
}  # fmt: skip
"""By level, the column that names the area around one, and how much of its own code does so where that is not there."""

_HOUSEHOLDS = re.compile(
    r"(?:total - )?(?:occupied private dwellings by structural type|private dwellings occupied by usual residents"
    r"|private households by household size|household type\b"
    r"|household (?:total|after-tax) income groups .*private households)",
    re.IGNORECASE,
)
_DWELLINGS = re.compile(r"total private dwellings", re.IGNORECASE)
"""Totals of tables that count the same people, dwellings or households."""


@dataclass(frozen=True, slots=True)
class _Vector:
    """One column of the file: `place` there, the parts of its header, and `of`, the number of its characteristic's total.

    An indicator has the ID of its characteristic for a number, and no data set.
    """

    place: int
    header: str
    code: str
    dataset: str
    number: int
    label: str
    sex: str
    of: int

    @property
    def id(self) -> str:
        """What its characteristic is called in the release."""
        return f"v_{self.dataset}_{self.of}" if self.dataset else str(self.of)

    @property
    def key(self) -> str:
        """The key of its column."""
        return key_of(self.id, self.sex)

    @property
    def characteristic(self) -> int | None:
        """The CHARACTERISTIC_ID of 2021, if that is known."""
        return id_of(self.of) if self.dataset == DATASET else None if self.dataset else self.of

    @property
    def kind(self) -> str:
        """What kind of number it is, as `kinds` calls it: by its label, or by the list."""
        return kind_of(self.label) if self.dataset else KIND_OF.get(self.of, COUNT)


def load(source: Source) -> Release:
    """Read a CensusMapper table."""
    table = read_table(source, wide=True)
    base, others = _base(table)
    if AREA not in base:
        raise InputError(f"{source.path} has no column GeoUID and so no area codes; ask CensusMapper for it, or add one.")
    notes = list(source.notes)
    vectors = _paired(_vectors(source, table), notes)
    exact = {name: counts_of(table, [base[name]])[0][:, 0] for name in EXACT if name in base}
    return _release(source, table, vectors, _areas(table, base, others, exact), exact, notes)


def _release(
    source: Source,
    table: HeadedTable,
    vectors: Sequence[_Vector],
    areas: pl.DataFrame,
    exact: Mapping[str, Counts],
    notes: Sequence[str],
) -> Release:
    """Return the release of vectors that are understood; `exact` are columns of the file beside them."""
    refuse_repeated(source, areas[AREA])
    counting = [vector for vector in vectors if vector.kind == COUNT]
    read, shares = counts_of(table, [vector.place for vector in counting])
    # What has decimals in one sex is not a count in the others.
    broken = {vector.id for vector, share in zip(counting, shares, strict=True) if share > FRACTIONS}
    kinds = {vector.id: DECIMALS if vector.id in broken else vector.kind for vector in vectors}
    known, labelled = _is_documented(vectors), any(vector.dataset for vector in vectors)
    tables = _tables(vectors, kinds, known)
    lines = {name: TableLine(name, name, 0, FIRST) for name in exact}
    for vector in vectors:
        sexes = (*(lines[vector.id].sexes if vector.id in lines else ()), vector.sex)
        lines[vector.id] = TableLine(vector.id, vector.label, 0, tables[vector.code], kinds[vector.id], sexes)
    columns = columns_of(list(lines.values()), anywhere=True)
    if not columns:
        raise InputError(f"{source.path} has no columns of counts, so that there is nothing to infer; ask for counts.")
    at = {vector.key: place for place, vector in enumerate(counting)}
    kept = [at[column.key] for column in columns[len(exact) :]]
    counts = np.hstack([*(column[:, None] for column in exact.values()), read[:, kept]])
    proposals = _proposals(columns) if labelled else []
    figures = [] if known else propose(list(lines.values()))
    if known:
        numbers = {vector.id: vector.characteristic for vector in vectors} | {name: _BASE_IDS[name] for name in exact}
        figures = documented_figures({number: lines[code] for code, number in numbers.items() if number})
        order = [*range(len(exact), len(columns)), *range(len(exact))]  # what is beside the vectors comes before them
        there = {(number, columns[at].codes[1]): at for at in order if (number := numbers[columns[at].codes[0]])}
        codes = {number: f"v_{DATASET}_{vector_of(number)}" if labelled else str(number) for number in range(1, LAST + 1)}
        columns, counts, more = with_documented(columns, counts, there, codes)
        proposals += more
    figured, places = {figure.name for figure in figures}, {vector.key: vector.place for vector in vectors}
    left_out: dict[str, list[str]] = {kind: [] for kind in kinds.values() if kind != COUNT}
    for vector in vectors:
        if kinds[vector.id] != COUNT and vector.key not in figured:
            left_out[kinds[vector.id]].append(vector.header)
    values = figures_of([table.column(places[figure.name]) for figure in figures], len(table.cells))
    return census(
        source,
        LAYOUT if labelled else INDICATORS,
        with_limits(columns),
        read=in_memory(areas, counts, source.size, values),
        proposals=tuple(proposals),
        product=_product({vector.dataset for vector in vectors if kinds[vector.id] == COUNT}),
        figures=tuple(figures),
        left_out={kind: tuple(headers) for kind, headers in left_out.items() if headers},
        notes=[*notes, *unreadable(counts)],
    )


# The header


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _base(table: HeadedTable) -> tuple[dict[str, int], dict[str, int]]:
    """Return the places of the columns that are not vectors: those that have a meaning here, and the others."""
    base: dict[str, int] = {}
    others: dict[str, int] = {}
    for place, name in enumerate(table.header[0]):
        if _VECTOR.fullmatch(name):
            continue
        meaning = _BASE.get(_plain(name))
        if meaning is not None and meaning not in base:
            base[meaning] = place
        else:
            others[name or f"column {place + 1}"] = place
    return base, others


def _vectors(source: Source, table: HeadedTable) -> list[_Vector]:
    vectors, seen = [], set[str]()
    for place, header in enumerate(table.header[0]):
        if parsed := _VECTOR.fullmatch(header):
            code, dataset, number, text = parsed[1], parsed[2], int(parsed[3]), parsed[4] or ""
            suffix = _SEX.fullmatch(text)
            label = suffix[1] if suffix else text
            sex = _SEXES[suffix[2][0].lower()] if suffix else ""
            if code in seen:
                raise InputError(f"{source.path} has vector {code} more than once; keep one of its columns.")
            seen.add(code)
            vectors.append(_Vector(place, header, code, dataset, number, label.rstrip(" ,") or code, sex, number))
    return sorted(vectors, key=lambda vector: (vector.dataset, vector.number))


def _paired(vectors: Sequence[_Vector], notes: list[str]) -> list[_Vector]:
    """Find the total of every vector: itself, or one or two numbers before.

    Without suffixes, three vectors in a row with one label are total, men and women. A suffix is taken at its word, unless
    the vector that should be the total has another label.
    """
    at = {(vector.dataset, vector.number): vector for vector in vectors}
    paired: dict[tuple[str, int], _Vector] = {}
    guessed = 0
    for vector in vectors:
        here = vector.dataset, vector.number
        if here in paired:
            continue
        if vector.sex:
            first = at.get((vector.dataset, vector.number - _STEP[vector.sex]))
            alike = first is None or (first.label == vector.label and first.sex in ("", TOTAL))
            paired[here] = replace(vector, of=vector.number - _STEP[vector.sex] if alike else vector.number)
            continue
        three = [at.get((vector.dataset, vector.number + step)) for step in range(3)]
        if vector.label != vector.code and all(v is not None and v.label == vector.label and not v.sex for v in three):
            guessed += 1
            for sex, member in zip((TOTAL, MEN, WOMEN), three, strict=True):
                assert member is not None  # all three are there
                paired[member.dataset, member.number] = replace(member, sex=sex, of=vector.number)
        else:
            paired[here] = replace(vector, sex=TOTAL)
    if guessed:
        notes.append(f"{guessed} labels occur three times in a row; they are read as total, men and women, in this order.")
    bare = sum(vector.label == vector.code for vector in vectors)
    if bare:
        notes.append(
            f"{bare} columns are named by vector code only: their sex is not known, and medians or amounts cannot be "
            f"distinguished from "
            "counts unless they have decimals. Download the table with labels to resolve this."
        )
    return [paired[vector.dataset, vector.number] for vector in vectors]


def _areas(
    table: HeadedTable, base: Mapping[str, int], others: Mapping[str, int], exact: Mapping[str, np.ndarray]
) -> pl.DataFrame:
    def text(name: str) -> pl.Series:
        if name not in base:
            return pl.Series(name, [None] * len(table.cells), dtype=pl.String)
        cells = table.column(base[name]).str.strip_chars()
        return cells.set(cells.is_in(["NA", ""]), None).alias(name)

    nothing = [0] * len(table.cells)
    levels = text("level").fill_null("").to_list()
    population = exact["Population"].tolist() if "Population" in exact else nothing
    codes = {name: text(name) for name in _CODES if name in base}
    around = {name: column.to_list() for name, column in codes.items()}
    country = next((code for code, level in zip(text(AREA), levels, strict=True) if level == "C"), None)

    def parent(code: str | None, level: str, at: int) -> str | None:
        column, digits = _WITHIN.get(level, ("", 0))
        named = around[column][at] if column in around else None
        return named or (code[:digits] if code and digits else country if level == "PR" else None)

    above = [parent(code, level, at) for at, (code, level) in enumerate(zip(text(AREA), levels, strict=True))]
    frame = areas_frame(text(AREA), text("region_name").fill_null(text(AREA)), levels, population, above)
    taken = {*frame.columns, *codes}
    more = [table.column(place).alias(f"{name} (file)" if name in taken else name) for name, place in others.items()]
    return frame.hstack([*codes.values(), *more])


# The columns and what they may add up to


def _is_documented(vectors: Sequence[_Vector]) -> bool:
    """Return whether vectors of 2021 have the numbers that are documented: titles and ages stand where they should."""
    heads = {vector_of(first) for first in TABLES}
    for vector in vectors:
        if not vector.dataset:
            return True
        if vector.dataset != DATASET or vector.sex != TOTAL:
            continue
        if vector.label.startswith("Total - ") and vector.number not in heads:
            return False
        ages, youngest = age_range(vector.label), FIVE_YEARS.get(id_of(vector.number) or 0)
        if youngest is not None and ages not in (None, (youngest, youngest + 4)):
            return False
    return any(vector.dataset == DATASET for vector in vectors)


def _tables(vectors: Sequence[_Vector], kinds: Mapping[str, str], known: bool) -> dict[str, str]:
    """Return the table of every vector, by its code: as documented, or as titles tell."""
    tables: dict[str, str] = {}
    for dataset in dict.fromkeys(vector.dataset for vector in vectors):
        members = [vector for vector in vectors if vector.dataset == dataset]
        if not dataset or (known and dataset == DATASET):
            tables |= {vector.code: (table_of_vector if dataset else table_of)(vector.of) for vector in members}
            continue
        totals = [vector for vector in members if vector.of == vector.number]
        names = tables_by_title([(total.number, total.label, kinds[total.id] == COUNT) for total in totals])
        by_number = {vector.number: name for vector, name in zip(totals, names, strict=True)}
        tables |= {vector.code: by_number.get(vector.of, vector.label) for vector in members}
    return tables


def _proposals(columns: Sequence[Column]) -> list[Proposal]:
    """Propose sums by sex, by ages, and by what counts the same people."""
    at = {column.key: place for place, column in enumerate(columns)}
    proposals = by_sex(columns)

    def add(total: str, parts: Sequence[str], origin: str, sexes: Sequence[str] = (TOTAL, MEN, WOMEN)) -> None:
        for sex in sexes:
            keys = [key_of(code, sex) for code in (total, *parts)]
            if all(key in at for key in keys):
                proposals.append(Proposal(at[keys[0]], tuple(at[key] for key in keys[1:]), origin))

    totals = [column for column in columns if column.codes[1] == TOTAL]
    for column in totals:
        same = _same_as(column)
        if same is not None and same != column.key:
            add(same, [column.key], "universe", [TOTAL])
    for run in age_runs([(column.key, column.label) for column in totals]):
        for total, parts in tile(run):
            if total is None:
                add("Population", parts, "universe", [TOTAL])
            else:
                add(total, parts, "names")
    return proposals


def _same_as(column: Column) -> str | None:
    """Return the column that counts the same people, dwellings or households as another one, or None."""
    label, vector = column.label, _VECTOR.fullmatch(column.codes[0])
    everyone = age_range(label) == ALL and "male" not in label.lower()
    if everyone or (vector and label == f"Population, {_year(vector[2])}"):
        return "Population"
    return "Households" if _HOUSEHOLDS.match(label) else "Dwellings" if _DWELLINGS.fullmatch(label) else None


def _product(datasets: set[str]) -> str | None:
    """Return what to cite: the censuses, by the two digits in the code of a data set."""
    if datasets == {""}:
        return "Statistics Canada, 2021 Census of Population"
    years = sorted({_year(dataset) for dataset in datasets} - {""})
    if not years:
        return None
    return f"Statistics Canada, {' and '.join(years)} Census of Population, through CensusMapper"


def _year(dataset: str) -> str:
    """Return the year of a data set, or nothing.

    >>> _year("CA21"), _year("CA11F"), _year("CA1996"), _year("TX2018")
    ('2021', '2011', '1996', '')
    """
    matched = re.match(r"CA(\d{4}|\d\d)(?!\d)", dataset)
    return "" if not matched else matched[1] if len(matched[1]) == 4 else f"20{matched[1]}"


INDICATORS = "indicators"
_INDICATOR = re.compile(r"indicator_0*([1-9]\d*)", re.IGNORECASE)
_NAMES = ("geo_name", "geo_code", "geo_uid", "geouid", "dguid", "alt_geo_code", "region")
_POSTAL = r"^[A-Za-z][0-9][A-Za-z]$"


def load_indicators(source: Source) -> Release:
    """Read a table of indicators."""
    table = read_table(source, wide=True)
    places = {int(matched[1]): at for at, name in enumerate(table.header[0]) if (matched := _INDICATOR.fullmatch(name))}
    if len(places) < sum(_INDICATOR.fullmatch(name) is not None for name in table.header[0]):
        raise InputError(f"{source.path} has two columns for one indicator, written in different ways; keep one of them.")
    if not places:
        raise InputError(f"{source.path} has no column called indicator_ followed by a number; check its header.")
    if max(places) > LAST:
        raise InputError(
            f"{source.path} has indicator_{max(places)}, but the 2021 profile ends with {LAST}: these are other IDs. "
            "Describe the file as a tidy table instead."
        )
    labels = {number: label_of(number) or f"characteristic {number}" for number in sorted(places)}
    every = [
        _Vector(places[number], table.header[0][places[number]], f"indicator_{number}", "", number, label, TOTAL, number)
        for number, label in labels.items()
    ]
    people = counts_of(table, [places[1]])[0][:, 0].tolist() if 1 in places else [0] * len(table.cells)
    said = "The file has no labels; its indicators are assumed to be CHARACTERISTIC_IDs of the 2021 profile."
    return _release(source, table, every, _indicated(source, table, people), {}, [*source.notes, said])


def _indicated(source: Source, table: HeadedTable, people: Sequence[int]) -> pl.DataFrame:
    """Return the areas of a table of indicators. A name can stand for the code: postal areas have no other."""
    names = {name.lower(): at for at, name in enumerate(table.header[0]) if not _INDICATOR.fullmatch(name)}
    codes = [name for name in _NAMES if name in names]
    # Where there is a code, it is better than a name.
    key = next((name for name in codes if name != "geo_name"), codes[0] if codes else None)
    if key is None:
        raise InputError(f"{source.path} has no column of areas such as geo_name; add one.")
    region = table.column(names[key]).str.strip_chars()
    postal = bool(region.str.contains(_POSTAL).all())
    others = {name: at for name, at in names.items() if name not in (key, "geo_name")}
    names_shown = table.column(names.get("geo_name", names[key])).str.strip_chars()
    frame = areas_frame(region, names_shown, ["FSA" if postal else ""] * len(region), people)
    taken = set(frame.columns)
    more = [table.column(at).alias(f"{name} (file)" if name in taken else name) for name, at in others.items()]
    return frame.hstack(more)


_TITLE = re.compile(
    r"total\s*[-–—:].*|.+ by (?!the\b).+|.+ for (?:the )?.*(?:population|households|families|labour force)\b.*"
    r"|(?:marital status|household type|age groups?)\b.*",
    re.IGNORECASE,
)
_FAR = 90
"""Numbers between two lines of one table: those of a religion's denominations, say, that nobody asked for."""


def tables_by_title(lines: Sequence[tuple[int, str, bool]]) -> list[str]:
    """Return the table of every line, given its number, its label, and whether it is a count; others stand in none.

    A table goes from its title to the next one, to figures or to a gap; lines below no title are a table each, but for ages.

    >>> labels = ["0 to 14 years", "15 years and over", "Average age", "Marital status for the population", "Married"]
    >>> tables_by_title([(at, label, label != "Average age") for at, label in enumerate(labels)])
    ['Age', 'Age', '', 'Marital status for the population', 'Marital status for the population']
    """
    tables, often, title, last = list[str](), Counter[str](), "", 0
    ages: set[str] = set()

    def named(name: str) -> str:
        often[name] += 1
        return name if often[name] == 1 else f"{name} ({often[name]})"

    for number, label, counts in lines:
        if not counts or number - last > _FAR:
            title = ""
        last, aged = number, counts and not title and age_range(label) not in (None, ALL)
        if counts and (_TITLE.fullmatch(label) or age_range(label) == ALL):
            title = named(label.removeprefix("Total - "))
        goes_on = aged and bool(ages) and label not in ages
        ages = {*(ages if goes_on else ()), label} if aged else set()
        tables.append(tables[-1] if goes_on else named("Age") if aged else title or named(label) if counts else "")
    return tables
