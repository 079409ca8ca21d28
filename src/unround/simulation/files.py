"""The texts that go with the files: the note that they are simulated, notes inside the zip, and a tidy release's own.

Writers of a simulated census: Statistics Canada's bulk layout, CensusMapper's wide one, and a tidy table.

Each writer takes blocks of areas as they come and holds no more than one of them.

Numbers that are no counts (percentages, averages, medians, rates) are those of `figures`.

The files that a simulated census comes in: some levels or all, together or apart, published once or again and again.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from textwrap import fill
from typing import IO, Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround._version import __version__
from unround.errors import InputError
from unround.figures import Figure
from unround.simulation.counts import MISSING, NONE, PLAIN, CountBlock, Rounds, described_figures, figures, publish, ratio
from unround.simulation.geography import LEVEL_NAMES, LEVELS
from unround.simulation.people import Floats
from unround.simulation.profile import EXACT, SEXES, Row, Schema
from unround.tables import NOTE, fingerprint
from unround.tables.canada_2021 import vector_of

NOTE_TITLE = "Simulated: this census is invented"
"""The first line of SIMULATED.txt, by which a folder is known to hold nothing but invented numbers."""

_META = """\
Simulated census profile
========================

These numbers are invented. They were drawn by `unround simulate` in the layout of the bulk files of a
Canadian census profile, for testing. No line describes a real place or person, and no statistical agency
is involved.

Symbols
-------
..\tnot available
...\tnot applicable
x\thidden, because too few people live there

Data quality flag (five digits)
-------------------------------
00000\tnothing hidden
00909\tincome hidden: fewer than 250 people or 40 households
09999\tall counts hidden: fewer than 40 people

Rounding
--------
Population and dwellings (1, 2, 4, 5) are exact. Counts of 100% data are randomly rounded to base 5, {how};
so are {what}, but those under 10 become 0 or 10.

Notes
-----
1\tPopulation, not rounded.
2\tDwellings, not rounded.
3\tOccupied dwellings, not rounded; each holds one household.
"""


def meta(*, keyed: bool = False, weighted: bool = False) -> str:
    """Explain symbols, flags and rounding."""
    return _META.format(
        how="by the sum of their records' keys and a\nconstant of the table" if keyed else "each\nindependently",
        what="weighted estimates from the 25% sample" if weighted else "counts of 25% sample data",
    )


META_NOTE = """\
The file that ends in _meta.txt explains symbols, flags and rounding. The file that ends in
_Geo_starting_row.CSV gives the line of the data file at which each area starts (line 1 is the header).
Areas come children first: the dissemination areas of a census subdivision, then the subdivision, and so on
upwards. All numbers are simulated.
"""


def write_note(
    folder: Path, files: Mapping[str, str], again: str, said: Sequence[str] = (), facts: Mapping[str, object] | None = None
) -> None:
    """Say in words for people what lies beside this note, and how to make it again.

    `files` are what lies there, each with what it is. The fingerprints of the tables are in the note: no other table is
    taken for simulated because of it.
    """
    sentences = (
        f"Every number in the files listed here was drawn at random by `unround simulate`, version {__version__}. No number "
        "refers to a real place or person, and no statistical agency is involved.",
        *said,
    )
    tables = sorted(path for path in folder.iterdir() if path.suffix in (".csv", ".parquet", ".zip"))
    lines = [
        NOTE_TITLE,
        "=" * len(NOTE_TITLE),
        "",
        fill(" ".join(sentences), 96),
        "",
        *_columns(files),
        "",
        *([*_columns(facts), ""] if facts else []),
        "Fingerprints, by which unround knows these tables, and no others, as simulated:",
        "",
        *_columns({path.name: fingerprint(path) for path in tables}),
        "",
        "To make the same files again, with the same version of unround:",
        "",
        f"    unround simulate -o FOLDER {again}",
    ]
    (folder / NOTE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _columns(told: Mapping[str, object]) -> list[str]:
    width = max(map(len, told))
    return [f"    {name:{width}}  {what}" for name, what in told.items()]


def contents(names: Iterable[str]) -> dict[str, str]:
    """Return what the files of a release are, by their names."""
    return {
        name: "what its columns and sums mean" if name.endswith(".toml") else "what an agency would publish"
        for name in names
    }


def _list(values: tuple[int, ...] | list[int]) -> str:
    return "[" + ", ".join(str(value) for value in values) + "]"


def _edge(edge: Fraction | None, name: str) -> str:
    return "" if edge is None else f", {name} = {float(edge):g}"


def _figure_toml(figure: Figure) -> list[str]:
    """Describe a rate, a mean or a median."""
    lines = ["[[figures]]", f"column = {json.dumps(figure.name)}", f'kind = "{figure.kind}"']
    lines += [f"numerator = {json.dumps(figure.numerator)}"] if figure.numerator else []
    lines += [f"universe = {json.dumps(figure.universe)}"] if figure.universe else []
    if figure.groups:
        lines.append("groups = [")
        for group in figure.groups:
            ends = _edge(group.low, "low") + _edge(group.high, "high")
            lines.append(f"    {{ count = {json.dumps(group.count)}{ends} }},")
        lines.append("]")
    return [*lines, *(["sampled = true"] if figure.sampled else []), ""]


def release_toml(table: Schema, data: str = "release.parquet", figures: Sequence[Figure] = ()) -> str:
    """Describe a tidy release: its file, axes, hierarchies, mechanisms, sums and figures."""
    by_mechanism: dict[str, list[int]] = {}
    for row in table.rows:
        if row.is_count:
            by_mechanism.setdefault(row.mechanism, []).append(row.id)
    lines = [
        "# A simulated census release, written by `unround simulate`.",
        'format = "tidy"',
        f"data = {json.dumps(data)}",
        'value = "published"',
        'missing = "suppressed"  # an empty cell was hidden: fewer than 40 people, or 250 for income',
        "",
        "[axes.region]",
        'column = "region"',
        'name = "region_name"',
        'level = "level"',
        'parent = "parent"  # a parent is the sum of its children',
        "",
        "[axes.characteristic]",
        'column = "characteristic_id"',
        'name = "characteristic"',
        "",
        "[axes.sex]",
        'column = "sex"',
        'sums = [{ total = "total", parts = ["men", "women"] }]',
        "",
    ]
    for name, ids in by_mechanism.items():
        told = "  # published unrounded" if name == EXACT else ""
        lines += [
            "[[mechanisms]]",
            f"mechanism = {json.dumps(name)}{told}",
            f"characteristics = {_list(ids)}",
            "",
        ]
    for item in table.sums:
        lines += [
            "[[sums]]",
            f"total = {item.total}",
            f"parts = {_list(item.parts)}",
            f'why = "{item.why}"',
            "",
        ]
    for figure in figures:
        lines += _figure_toml(figure)
    return "\n".join(lines)


def rates(values: Floats, table: Schema) -> Floats:
    """Return the columns of rates: a count in per cent of its block's total; a percentage again; else NaN."""
    shown = np.full_like(values, np.nan)
    for step in table.plans:
        rows = slice(step.start, step.stop)
        if step.block.first > 1 and table.rows[step.start].is_count:
            shown[:, rows] = np.round(100.0 * ratio(values[:, rows], values[:, step.start : step.start + 1]), 1)
    for at, row in enumerate(table.rows):
        if not row.is_count:
            shown[:, at] = values[:, at] if row.kind == "percent" else np.nan
    return shown


CATALOGUE = "98-401-X2021006"
DATA, ZIP = f"{CATALOGUE}_English_CSV_data.csv", f"{CATALOGUE}_eng_CSV.zip"
WIDE, TABLE, ABOUT, TRUTH = "censusmapper.csv", "release.parquet", "release.toml", "truth.parquet"
RELEASES = {"statcan": (DATA,), "statcan, zipped": (ZIP,), "censusmapper": (WIDE,), "tidy": (TABLE, ABOUT)}
"""The files of a release, by layout."""


def release_names(file_format: str, tail: str = "") -> tuple[str, ...]:
    """Return the names of a release's files, with something added that tells them from others of the same census.

    Examples
    --------
    >>> release_names("tidy", "_2")
    ('release_2.parquet', 'release_2.toml')
    """
    return tuple(f"{Path(name).stem}{tail}{Path(name).suffix}" for name in RELEASES[file_format])


HEADER = (
    "CENSUS_YEAR,DGUID,ALT_GEO_CODE,GEO_LEVEL,GEO_NAME,TNR_SF,TNR_LF,DATA_QUALITY_FLAG,CHARACTERISTIC_ID,"
    "CHARACTERISTIC_NAME,CHARACTERISTIC_NOTE,C1_COUNT_TOTAL,SYMBOL,C2_COUNT_MEN+,SYMBOL,C3_COUNT_WOMEN+,"
    "SYMBOL,C10_RATE_TOTAL,SYMBOL,C11_RATE_MEN+,SYMBOL,C12_RATE_WOMEN+,SYMBOL"
)
NOTES = {1: 1, 2: 1, 4: 2, 5: 3}
SYMBOLS = np.array(['""', '"..."', '"x"', '".."'])
PRESENT, NOT_APPLICABLE, HIDDEN, NOT_AVAILABLE = range(4)
LINES_AT_ONCE = 40_000  # about 7 MB of text
PART_ROWS = 1_000_000


Keep = NDArray[np.bool_] | None
"""Which areas of a block are written; all, if None."""


class Writer(Protocol):
    """What takes blocks of areas and leaves files in a folder."""

    def add(self, block: CountBlock, keep: Keep = None) -> None:
        """Write one block, or some of its areas."""
        ...

    def close(self) -> list[Path]:
        """Finish, and return the files."""
        ...

    def drop(self) -> None:
        """Let go of open files, whether finished or not."""
        ...


def _text(values: Floats) -> pl.Series:
    """Return numbers as people write them: 15, 4.7, and nothing for NaN."""
    return pl.Series(values.ravel()).fill_nan(None).cast(pl.String).str.strip_suffix(".0")


def _symbols(values: Floats, table: Schema, block: CountBlock, rate: bool) -> NDArray[np.int64]:
    """Say of every cell whether it is there, and why not."""
    blank = np.isnan(values)
    symbols = np.where(blank, NOT_AVAILABLE, PRESENT)
    guarded = np.array([row.mechanism != EXACT for row in table.rows])
    income = np.array([row.is_income for row in table.rows])
    for areas, rows in ((block.hidden, guarded), (block.income_hidden, income)):
        closed = areas[:, None] & rows
        symbols[closed] = np.where(blank[closed], HIDDEN, symbols[closed])
    nothing = np.zeros(values.shape[1:], dtype=bool)
    nothing[:, 1:] = np.array([not row.has_sex for row in table.rows])[:, None]
    if rate:
        plain = [row.kind in ("average", "median") or (row.block == 1 and row.id != 3) for row in table.rows]
        nothing[np.array(plain)] = True
    symbols[:, nothing] = NOT_APPLICABLE
    return symbols


class StatCan:
    """The bulk layout: 23 columns, a line a characteristic, Latin-1; zipped with its companions if wanted."""

    def __init__(
        self, folder: Path, table: Schema, seed: int, *, zipped: bool, tail: str = "", rounds: Rounds = PLAIN
    ) -> None:
        self._table, self._seed, self._areas, self._rounds = table, seed, 0, rounds
        self._path = folder / release_names("statcan, zipped" if zipped else "statcan", tail)[0]
        self._zip = zipfile.ZipFile(self._path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) if zipped else None
        self._out: IO[bytes] = (
            self._zip.open(DATA, "w", force_zip64=True) if self._zip else self._path.open("wb", buffering=0)
        )
        self._out.write(HEADER.encode("latin-1") + b"\r\n")
        self._names = pl.Series([_middle(row) for row in table.rows])
        self._starts: list[str] = []

    def add(self, block: CountBlock, keep: Keep = None) -> None:
        """Write the lines of a block, a few areas at a time."""
        values = figures(block, self._table, self._seed, self._rounds.figures)
        shares = rates(values, self._table)
        numbers = np.concatenate([values, shares], axis=2)
        symbols = np.concatenate(
            [
                _symbols(values, self._table, block, rate=False),
                _symbols(shares, self._table, block, rate=True),
            ],
            axis=2,
        )
        if keep is not None:
            numbers, symbols = numbers[keep], symbols[keep]
        lead = self._lead(block, keep)
        step = max(1, LINES_AT_ONCE // len(self._table.rows))
        for start in range(0, len(lead), step):
            few = slice(start, start + step)
            self._out.write(self._lines(lead[few], numbers[few], symbols[few]))

    def _lead(self, block: CountBlock, keep: Keep) -> list[str]:
        """Return the first eight columns of each area."""
        lead = []
        for number, area in enumerate(block.regions.iter_rows(named=True)):
            if keep is not None and not keep[number]:
                continue
            flag = "09999" if block.hidden[number] else "00909" if block.income_hidden[number] else "00000"
            lead.append(
                f'2021,"{area["region"]}","{area["code"]}","{LEVEL_NAMES[area["level"]]}","{area["name"]}",'
                f'{area["tnr_sf"]},{area["tnr_lf"]},"{flag}"'
            )
            line = 2 + self._areas * len(self._table.rows)
            self._starts.append(f'"{area["code"]}","{area["name"]}",{line}\r\n')
            self._areas += 1
        return lead

    def _lines(self, lead: Sequence[str], numbers: Floats, symbols: NDArray[np.int64]) -> bytes:
        areas, rows = numbers.shape[:2]
        columns = {
            "lead": pl.Series(list(lead)).gather(np.repeat(np.arange(areas), rows)),
            "names": self._names.gather(np.tile(np.arange(rows), areas)),
        }
        signs = pl.Series(SYMBOLS)
        for column in range(6):
            columns[f"v{column}"] = _text(np.ascontiguousarray(numbers[:, :, column]))
            columns[f"s{column}"] = signs.gather(symbols[:, :, column].ravel())
        text = io.BytesIO()
        pl.DataFrame(columns).write_csv(text, include_header=False, quote_style="never", line_terminator="\r\n")
        return text.getvalue().decode().encode("latin-1")

    def close(self) -> list[Path]:
        """Finish the file; in a zip, add what comes with it."""
        self._out.close()
        if self._zip:
            starts = '"Geo Code","Geo Name","Line Number"\r\n' + "".join(self._starts)
            self._zip.writestr(f"{CATALOGUE}_Geo_starting_row.CSV", starts.encode("latin-1"))
            self._zip.writestr(
                f"{CATALOGUE}_English_meta.txt",
                meta(keyed=self._rounds.constants is not None, weighted=self._rounds.weighted).encode("latin-1"),
            )
            self._zip.writestr("README_meta.txt", META_NOTE.encode("latin-1"))
            self._zip.close()
        return [self._path]

    def drop(self) -> None:
        """Let go of the file."""
        self._out.close()
        if self._zip:
            self._zip.close()


def _middle(row: Row) -> str:
    """Return the columns of the characteristic: its ID, its indented name, its note."""
    return f'{row.id},"{"  " * row.depth}{row.name}",{NOTES.get(row.id, "")}'


class CensusMapper:
    """The wide layout: a line an area, a column a characteristic and sex, NA for what is missing."""

    SEX = ("Total", "Male", "Female")

    def __init__(self, folder: Path, table: Schema, seed: int, tail: str = "", rounds: Rounds = PLAIN) -> None:
        self._table, self._seed, self._rounds = table, seed, rounds
        self._path = folder / release_names("censusmapper", tail)[0]
        self._out = self._path.open("wb")
        self._first = True

    def _columns(self) -> list[tuple[int, int, str]]:
        """Return row, sex and name of every column."""
        columns = []
        for at, (row, vector) in enumerate(zip(self._table.rows, vectors(self._table), strict=True)):
            name = row.name.removeprefix("Total - ").removesuffix(" - 100% data").removesuffix(" - 25% sample data")
            sexes = range(3 if row.has_sex else 1)
            columns += [(at, sex, f"v_CA21_{vector + sex}: {name}, - {self.SEX[sex]}") for sex in sexes]
        return columns

    def add(self, block: CountBlock, keep: Keep = None) -> None:
        """Write the lines of a block."""
        values, at = figures(block, self._table, self._seed, self._rounds.figures), self._table.index
        regions = block.regions
        whole = {name: pl.Series(values[:, at[row], 0].astype(np.int64)) for name, row in _WHOLE.items()}
        columns = {
            "GeoUID": regions["code"],
            "Type": regions["level"],
            "Region Name": regions["name"],
            "Area (sq km)": pl.Series(np.round(block.land, 4)),
            **whole,
            "CSD_UID": regions["csd"],
            "CD_UID": regions["cd"],
            "CT_UID": pl.Series([None] * len(regions), dtype=pl.String),
            "CMA_UID": pl.Series([None] * len(regions), dtype=pl.String),
        }
        wanted = self._columns()
        picked = values[:, [row for row, _, _ in wanted], [sex for _, sex, _ in wanted]]
        text, areas = (
            _text(np.ascontiguousarray(picked.T)),
            len(regions),
        )  # one conversion, then one slice a column
        columns |= {name: text.slice(at * areas, areas) for at, (_, _, name) in enumerate(wanted)}
        lines = pl.DataFrame(columns)
        lines = lines if keep is None else lines.filter(pl.Series(keep))
        lines.write_csv(self._out, include_header=self._first, null_value="NA")
        self._first = False

    def close(self) -> list[Path]:
        """Finish the file."""
        self._out.close()
        return [self._path]

    def drop(self) -> None:
        """Let go of the file."""
        self._out.close()


_NO_RECORDS = (2, 4)
"""Counts of the census before, and of dwellings: there are no records of them here."""

_WHOLE = {"Population": 1, "Dwellings": 4, "Households": 5}
"""The counts that this layout shows under their own names, as they are."""


def vectors(table: Schema) -> list[int]:
    """Return the number of every row's first vector, which is its total's, as CensusMapper numbers them.

    Rows that have no vector there get one far beyond the last.
    """
    return [vector_of(row.id) or 10_000 + 3 * row.id for row in table.rows]


class Parts:
    """A Parquet file written part by part, so that a table of any length passes through little memory."""

    def __init__(self, path: Path) -> None:
        self._path, self._parts, self._waiting, self._rows = path, list[Path](), list[pl.DataFrame](), 0

    def add(self, table: pl.DataFrame) -> None:
        """Append rows."""
        self._waiting.append(table)
        self._rows += len(table)
        if self._rows >= PART_ROWS:
            self._flush()

    def _flush(self) -> None:
        part = self._path.with_name(f"{self._path.stem}.part{len(self._parts):05d}")
        pl.concat(self._waiting).write_parquet(part, row_group_size=PART_ROWS)
        self._parts.append(part)
        self._waiting, self._rows = [], 0

    def close(self) -> list[Path]:
        """Join the parts."""
        if self._waiting:
            self._flush()
        if len(self._parts) == 1:
            self._parts[0].replace(self._path)
        else:
            pl.scan_parquet(self._parts, glob=False).sink_parquet(self._path, row_group_size=PART_ROWS)
            for part in self._parts:
                part.unlink()
        return [self._path]


def _cells(block: CountBlock, shown: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return area, row and sex of every cell that is shown, in the order of the file."""
    row, sex = np.nonzero(shown)
    areas = len(block.land)
    return np.repeat(np.arange(areas), len(row)), np.tile(row, areas), np.tile(sex, areas)


class Tidy:
    """One row a cell: region, characteristic, sex, what was published; and a `release.toml` beside it.

    Figures that are of counts in the table are cells too, and then all numbers are decimals.
    """

    def __init__(self, folder: Path, table: Schema, seed: int, tail: str = "", rounds: Rounds = PLAIN) -> None:
        data, about = release_names("tidy", tail)
        self._table, self._about, self._data = table, folder / about, data
        self._seed, self._rounds = seed, rounds
        self._figures = described_figures(table) if rounds.figures != NONE else []
        self._parts = Parts(folder / data)
        self._names = pl.Series([row.name for row in table.rows])
        self._ids = pl.Series(table.ids)

    def add(self, block: CountBlock, keep: Keep = None) -> None:
        """Write the cells of a block."""
        if block.published is None:
            raise ValueError("the tidy table needs published counts")
        shown = self._table.shown
        numbers: NDArray[np.int32] | Floats = block.published
        if self._figures:
            at = self._table.index
            for figure in self._figures:
                number, _, named = figure.name.partition("/")
                shown[at[int(number)], SEXES.index(named or SEXES[0])] = True
            numbers = figures(block, self._table, self._seed, self._rounds.figures)
        area, row, sex = _cells(block, shown)
        if keep is not None:
            area, row, sex = area[keep[area]], row[keep[area]], sex[keep[area]]
        regions = block.regions
        published = pl.Series(numbers[area, row, sex])
        published = published.fill_nan(None) if published.dtype.is_float() else published.set(published == MISSING, None)
        self._parts.add(
            pl.DataFrame(
                {
                    "region": regions["region"].gather(area),
                    "region_name": regions["name"].gather(area),
                    "level": regions["level"].gather(area),
                    "parent": regions["parent"].gather(area),
                    "characteristic_id": self._ids.gather(row),
                    "characteristic": self._names.gather(row),
                    "sex": pl.Series(SEXES).gather(sex),
                    "published": published,
                }
            )
        )

    def close(self) -> list[Path]:
        """Finish the table and describe it."""
        self._about.write_text(release_toml(self._table, self._data, self._figures), encoding="utf-8")
        return [*self._parts.close(), self._about]

    def drop(self) -> None:
        """Hold no file open between blocks: nothing to do."""


class TruthWriter:
    """The true counts, in the same long form: region, characteristic_id, sex, true; and key, where records have keys.

    Of a weighted sample, the truth is the estimate before it was rounded. A cell's key is the sum of its records' keys,
    modulo 1, before the constant of its table is added; it is empty where no table counts those records.

    Areas and characteristics go by the names that the release gives them, so that the two can be matched.
    """

    def __init__(self, folder: Path, table: Schema, wide: bool = False) -> None:
        self._table, self.cells = table, 0
        self._parts = Parts(folder / TRUTH)
        self._ids = pl.Series([f"v_CA21_{vector}" for vector in vectors(table)]) if wide else pl.Series(table.ids)
        self._region = "code" if wide else "region"
        self._whole = _WHOLE if wide else {}

    def add(self, block: CountBlock) -> None:
        """Write the cells of a block."""
        area, row, sex = _cells(block, self._table.shown)
        self.cells += len(area)
        cells = pl.DataFrame(
            {
                "region": block.regions[self._region].gather(area),
                "characteristic_id": self._ids.gather(row),
                "sex": pl.Series(SEXES).gather(sex),
                **self._numbers(block, (area, row, sex)),
            }
        )
        whole = [
            pl.DataFrame(
                {
                    "region": block.regions[self._region],
                    "characteristic_id": pl.Series([name] * len(block.true)),
                    "sex": pl.Series([SEXES[0]] * len(block.true)),
                    **self._numbers(block, (slice(None), self._table.index[own], 0)),
                }
            )
            for name, own in self._whole.items()
        ]
        self._parts.add(pl.concat([cells, *whole]))

    def _numbers(self, block: CountBlock, at: Any) -> dict[str, pl.Series]:
        """Return the truth of some cells, and their keys if there are any."""
        found = {"true": pl.Series((block.true if block.estimates is None else block.estimates)[at])}
        if block.keys is not None:
            ids = np.broadcast_to(self._table.ids[:, None], block.true.shape)[at]
            key = pl.Series(block.keys[at] / 2.0**64)
            found["key"] = key.set(pl.Series(np.isin(ids, _NO_RECORDS)), None)
        return found

    def close(self) -> list[Path]:
        """Finish the table."""
        return self._parts.close()


AREAS = "areas.csv"
MOST_EDITIONS = 99
_CALLED = {"da": "DA", "csd": "CSD", "cd": "CD", "pr": "PR", "province": "PR"}


@dataclass(frozen=True, slots=True)
class Editions:
    """What is written of a census.

    - `levels`: The levels whose areas are written, among `LEVELS`.
    - `nested`: Whether levels were asked for: then the country has many CSDs of few DAs, as real ones have, and a file
      says which area is within which.
    - `apart`: Whether every level has a file of its own.
    - `repeat`: How often everything is published, each time with roundings of its own.
    """

    levels: tuple[str, ...] = LEVELS
    nested: bool = False
    apart: bool = False
    repeat: int = 1

    @classmethod
    def of(cls, levels: str | None, apart: bool, repeat: int) -> Editions:
        """Read what the user wants.

        Examples
        --------
        >>> Editions.of("province, da", apart=True, repeat=1).levels
        ('DA', 'PR')
        """
        if not 1 <= repeat <= MOST_EDITIONS:
            raise InputError(f"a census can be published 1 to {MOST_EDITIONS} times, not {repeat}.")
        if levels is None:
            return cls(apart=apart, repeat=repeat)
        wanted = [name.strip().lower() for name in levels.split(",") if name.strip()]
        strange = next((name for name in wanted if name not in _CALLED), None)
        if strange is not None or not wanted:
            raise InputError(
                f"there is no level {strange or ''!r}: choose from da, csd, cd and province, separated by commas."
            )
        chosen = {_CALLED[name] for name in wanted}
        return cls(tuple(level for level in LEVELS if level in chosen), True, apart, repeat)

    @property
    def files(self) -> list[tuple[str, int, tuple[str, ...]]]:
        """The files: what is added to their names, which edition they are of, and which levels they hold."""
        parts = [(f"_{level}", (level,)) for level in self.levels] if self.apart else [("", self.levels)]
        return [
            (f"{tail}_{edition}" if edition > 1 else tail, edition, levels)
            for edition in range(1, self.repeat + 1)
            for tail, levels in parts
        ]

    def names(self, file_format: str) -> tuple[str, ...]:
        """Return the names of all files of the release."""
        return tuple(name for tail, _, _ in self.files for name in release_names(file_format, tail))

    def options(self) -> str:
        """Return what to type for the same."""
        called = {level: name for name, level in _CALLED.items()}
        levels = f" --levels {','.join(called[level] for level in self.levels)}" if self.nested else ""
        return f"{levels}{' --apart' if self.apart else ''}{f' --repeat {self.repeat}' if self.repeat > 1 else ''}"


class Files:
    """Writes all files of a census at once, as blocks of areas come.

    - `folder`: Where they go.
    - `file_format`: `statcan`, `statcan, zipped`, `censusmapper` or `tidy`.
    - `table`: The rows of the profile.
    - `seed`: Of the census.
    - `editions`: What is wanted.
    - `rounds`: How counts are rounded, in every edition.
    """

    def __init__(
        self,
        folder: Path,
        file_format: str,
        table: Schema,
        seed: int,
        editions: Editions,
        rounds: Rounds = PLAIN,
    ) -> None:
        self._table, self._seed, self._rounds = table, seed, rounds
        self._writers = [
            (_writer(folder, file_format, table, seed, tail, rounds), edition, levels)
            for tail, edition, levels in editions.files
        ]

    def add(self, block: CountBlock) -> None:
        """Write one block into every file that has areas of it."""
        published, edition = block, 1
        level = block.regions["level"].to_numpy()
        for writer, number, levels in self._writers:
            if number != edition:
                anew = publish(block, self._table, self._seed, number, self._rounds)
                published, edition = replace(block, published=anew), number
            keep = np.isin(level, levels)
            if keep.any():
                writer.add(published, None if keep.all() else keep)

    def close(self) -> list[Path]:
        """Finish, and return the files."""
        return [path for writer, _, _ in self._writers for path in writer.close()]

    def drop(self) -> None:
        """Let go of open files, whether finished or not."""
        for writer, _, _ in self._writers:
            writer.drop()


def _writer(folder: Path, file_format: str, table: Schema, seed: int, tail: str, rounds: Rounds) -> Writer:
    if file_format == "censusmapper":
        return CensusMapper(folder, table, seed, tail, rounds)
    if file_format == "tidy":
        return Tidy(folder, table, seed, tail, rounds)
    return StatCan(folder, table, seed, zipped=file_format != "statcan", tail=tail, rounds=rounds)


def write_areas(path: Path, regions: pl.DataFrame, levels: Sequence[str], wide: bool) -> None:
    """Write which area lies in which: for every area that is published, the smallest published one around it."""
    name = dict(zip(regions["region"], regions["code" if wide else "region"], strict=True))
    level = dict(zip(regions["region"], regions["level"], strict=True))
    parent = dict(zip(regions["region"], regions["parent"], strict=True))
    lines = []
    for region, own in level.items():
        above = parent[region]
        while above is not None and level[above] not in levels:
            above = parent[above]
        if own in levels and above is not None:
            lines.append((name[region], name[above]))
    pl.DataFrame(lines, schema={"child": pl.String, "parent": pl.String}, orient="row").write_csv(path)
