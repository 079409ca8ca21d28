"""The files of a simulated census: what an agency would publish, in one of three layouts; the truth; and notes on them.

Each writer takes blocks of areas as they come and holds no more than one of them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround._version import __version__
from unround.errors import InputError
from unround.figures import Figure
from unround.output import OutputFolder, text_of
from unround.shown import Plain
from unround.simulation.counts import MISSING, CountBlock, described_figures, ratio
from unround.simulation.geography import BOUNDARIES, LEVEL_NAMES, LEVELS
from unround.simulation.people import Floats
from unround.simulation.profile import EXACT, SEXES, Schema
from unround.tables import NOTE, fingerprint
from unround.tables.canada_2021 import vector_of
from unround.tables.written import Numbers, TidyWriter, tidy_toml

NOTE_TITLE = "Simulated: this census is invented"
"""The first line of SIMULATED.txt, by which a folder is known to hold nothing but invented numbers."""

DATA = "98-401-X2021006_English_CSV_data.csv"
WIDE, TABLE, ABOUT, TRUTH = "censusmapper.csv", "release.parquet", "release.toml", "truth.parquet"

AREAS, CONSTANTS = "areas.csv", "constants.csv"
BESIDE = {
    AREAS: "which area is within which",
    CONSTANTS: "the constants of the tables, as they were drawn or given",
    BOUNDARIES: "made-up shapes of all areas, for a map",
}
"""Files that some censuses have besides, and what they are."""


@dataclass(frozen=True, slots=True)
class Simulated(Plain):
    """What `simulate` wrote.

    - `nesting`, `constants`, `boundaries`: The files that say which area is within which, that hold the constants of the
      tables, and the made-up shapes of all areas; each where it was asked for.
    """

    ASIDE = ("constants",)

    files: tuple[Path, ...]  # the release: what an agency would publish
    truth: Path  # the true counts, or records
    note: Path
    areas: int  # how many areas, how many counts, and the size of release and truth
    cells: int
    bytes: int
    nesting: Path | None = None
    constants: Path | None = None
    boundaries: Path | None = None

    @property
    def summary(self) -> str:
        """How much it is, for people.

        >>> Simulated((), Path("truth.parquet"), Path("SIMULATED.txt"), 1, 82, 26_920).summary
        '1 area, 82 counts, 27 kB'
        """
        areas, counts = "area" if self.areas == 1 else "areas", "count" if self.cells == 1 else "counts"
        return f"{self.areas:,} {areas}, {self.cells:,} {counts}, {_size(self.bytes)}"


def _size(number: int) -> str:
    """Return a number of bytes for people.

    >>> [_size(number) for number in (812, 26_920, 999_700, 4_380_000, 12_300_000_000)]
    ['812 bytes', '27 kB', '1.0 MB', '4.4 MB', '12 GB']
    """
    if number < 1000:
        return f"{number} bytes"
    amount, unit = number / 1000, 0
    while round(amount) >= 1000 and unit < 3:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.{1 if amount < 9.95 else 0}f} {('kB', 'MB', 'GB', 'TB')[unit]}"


def finished(
    output: OutputFolder,
    typed: str,
    areas: int,
    release: Sequence[str],
    truth: tuple[str, str],
    cells: int,
    said: Sequence[str] = (),
    facts: Mapping[str, object] | None = None,
) -> Simulated:
    """Say in words for people what was written and how to make it again, move all of it out, and return what it is.

    `typed` makes the same again. `truth` names the file of true counts or records, and says what is in it. The
    fingerprints of the tables are in the note: no other table is taken for simulated because of it.
    """
    folder, out = output.done, output.path
    beside = {name: what for name, what in BESIDE.items() if (folder / name).exists()}
    files = {name: "what its columns and sums mean" if name.endswith(".toml") else "what an agency would publish"
             for name in release} | beside | {truth[0]: truth[1]}  # fmt: skip
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
        f"    {typed}",
    ]
    (folder / NOTE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    size = sum((folder / name).stat().st_size for name in files if name not in beside)
    # The note first: no invented number is ever there without it. The truth last: where it is, all files are.
    output.publish((NOTE, *files))
    extra = [out / name if name in beside else None for name in BESIDE]
    return Simulated(tuple(out / name for name in release), out / truth[0], out / NOTE, areas, cells, size, *extra)


def older_simulation(names: Iterable[str]) -> Callable[[Path], list[str]]:
    """Return what names the files of an older simulation in a folder: those that its note lists, and no others."""

    def older(out: Path) -> list[str]:
        note = text_of(out / NOTE)
        listed = re.findall(r"^    ([\w.-]+\.(?:csv|gz|parquet|toml|zip))  ", note, re.MULTILINE)
        ours = [NOTE, *dict.fromkeys(listed)] if note.startswith(NOTE_TITLE) else []
        others = [name for name in (*names, NOTE) if name not in ours and (out / name).exists()]
        if others:
            raise InputError(
                f"{out} already contains {' and '.join(others)}, but no {NOTE} written by `unround simulate` that lists "
                f"{'it' if len(others) == 1 else 'them'}: choose another folder with -o."
            )
        return ours

    return older


def _columns(rows: Mapping[str, object]) -> list[str]:
    width = max(map(len, rows))
    return [f"    {name:{width}}  {what}" for name, what in rows.items()]


def _described(figure: Figure) -> dict[str, Any]:
    """Describe a rate, a mean or a median."""

    def edge(value: Fraction | None) -> float | None:
        return None if value is None else int(value) if value.denominator == 1 else float(value)

    groups = [{"count": group.count, "low": edge(group.low), "high": edge(group.high)} for group in figure.groups]
    about = {"column": figure.name, "kind": figure.kind, "numerator": figure.numerator, "universe": figure.universe}
    return {name: value for name, value in (about | {"groups": groups, "sampled": figure.sampled}).items() if value}


def _release_toml(table: Schema, data: str, figures: Sequence[Figure]) -> str:
    """Describe a tidy release: its file, axes, hierarchies, mechanisms, sums and figures."""
    by_mechanism: dict[str, list[int]] = {}
    for row in table.rows:
        if row.is_count:
            by_mechanism.setdefault(row.mechanism, []).append(row.id)
    return tidy_toml(
        "A simulated census release, written by `unround simulate`. A parent is the sum of its children. An empty cell was\n"
        "hidden: fewer than 40 people live there, or fewer than 250 for income.",
        data,
        axes={
            "region": {"column": "region", "name": "region_name", "level": "level", "parent": "parent"},
            "characteristic": {"column": "characteristic_id", "name": "characteristic"},
            "sex": {"column": "sex", "sums": [{"total": SEXES[0], "parts": SEXES[1:]}]},
        },
        mechanisms=[{"mechanism": name, "characteristics": ids} for name, ids in by_mechanism.items()] or None,
        sums=[{"total": item.total, "parts": item.parts, "why": item.why} for item in table.sums] or None,
        figures=[_described(figure) for figure in figures] or None,
    )


def toml_sums(sums: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Return totals and their parts as descriptions have them."""
    return [{"total": total, "parts": list(parts)} for total, parts in sums.items()]


def _rates(values: Floats, table: Schema) -> Floats:
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


_HEADER = (
    "CENSUS_YEAR,DGUID,ALT_GEO_CODE,GEO_LEVEL,GEO_NAME,TNR_SF,TNR_LF,DATA_QUALITY_FLAG,CHARACTERISTIC_ID,"
    "CHARACTERISTIC_NAME,CHARACTERISTIC_NOTE,C1_COUNT_TOTAL,SYMBOL,C2_COUNT_MEN+,SYMBOL,C3_COUNT_WOMEN+,"
    "SYMBOL,C10_RATE_TOTAL,SYMBOL,C11_RATE_MEN+,SYMBOL,C12_RATE_WOMEN+,SYMBOL"
)
_NOTES = {1: 1, 2: 1, 4: 2, 5: 3}
_SYMBOLS = pl.Series(['""', '"..."', '"x"', '".."'])
_PRESENT, _NOT_APPLICABLE, _HIDDEN, _NOT_AVAILABLE = range(4)
_LINES_AT_ONCE = 40_000  # about 7 MB of text


class ReleaseFile:
    """The file of a release, in the layout of one of its subclasses; `opened` closes it if nobody else does."""

    names: tuple[str, ...]

    def __init__(self, folder: Path, table: Schema, opened: ExitStack, *, figures: bool) -> None:
        del figures  # every number that is there is written
        self._table = table
        self._out = opened.enter_context((folder / self.names[0]).open("wb", buffering=0))

    def add(self, block: CountBlock, values: Floats) -> None:
        """Write some areas; `values` are the numbers in their cells, figures included, NaN for none."""
        raise NotImplementedError

    def close(self) -> None:
        """Finish."""
        self._out.close()


def _text(values: Floats) -> pl.Series:
    """Return numbers as people write them: 15, 4.7, and nothing for NaN."""
    return pl.Series(values.ravel()).fill_nan(None).cast(pl.String).str.strip_suffix(".0")


def _symbols(values: Floats, table: Schema, block: CountBlock, rate: bool) -> NDArray[np.int64]:
    """Say of every cell whether it is there, and why not."""
    blank = np.isnan(values)
    symbols = np.where(blank, _NOT_AVAILABLE, _PRESENT)
    guarded = np.array([row.mechanism != EXACT for row in table.rows])
    income = np.array([row.is_income for row in table.rows])
    for areas, rows in ((block.hidden, guarded), (block.income_hidden, income)):
        symbols[(areas[:, None] & rows)[:, :, None] & blank] = _HIDDEN
    nothing = np.zeros(values.shape[1:], dtype=bool)
    nothing[:, 1:] = np.array([not row.has_sex for row in table.rows])[:, None]
    if rate:
        plain = [row.kind in ("average", "median") or (row.block == 1 and row.id != 3) for row in table.rows]
        nothing[np.array(plain)] = True
    symbols[:, nothing] = _NOT_APPLICABLE
    return symbols


class Bulk(ReleaseFile):
    """Statistics Canada's bulk layout: 23 columns, one line per characteristic, Latin-1."""

    names = (DATA,)

    def __init__(self, folder: Path, table: Schema, opened: ExitStack, *, figures: bool) -> None:
        super().__init__(folder, table, opened, figures=figures)
        self._out.write(_HEADER.encode("latin-1") + b"\r\n")
        names = [f'{row.id},"{"  " * row.depth}{row.name}",{_NOTES.get(row.id, "")}' for row in table.rows]
        self._names = pl.Series(names)

    def add(self, block: CountBlock, values: Floats) -> None:
        """Write the lines of a block, a few areas at a time."""
        both = [(values, False), (_rates(values, self._table), True)]
        numbers = np.concatenate([shown for shown, _ in both], axis=2)
        symbols = np.concatenate([_symbols(shown, self._table, block, rate) for shown, rate in both], axis=2)
        lead = self._lead(block)
        step = max(1, _LINES_AT_ONCE // len(self._table.rows))
        for start in range(0, len(lead), step):
            few = slice(start, start + step)
            self._out.write(self._lines(lead[few], numbers[few], symbols[few]))

    def _lead(self, block: CountBlock) -> list[str]:
        """Return the first eight columns of each area."""
        lead = []
        for number, area in enumerate(block.regions.iter_rows(named=True)):
            flag = "09999" if block.hidden[number] else "00909" if block.income_hidden[number] else "00000"
            lead.append(
                f'2021,"{area["region"]}","{area["code"]}","{LEVEL_NAMES[area["level"]]}","{area["name"]}",'
                f'{area["tnr_sf"]},{area["tnr_lf"]},"{flag}"'
            )
        return lead

    def _lines(self, lead: Sequence[str], numbers: Floats, symbols: NDArray[np.int64]) -> bytes:
        areas, rows = numbers.shape[:2]
        columns = {
            "lead": pl.Series(list(lead)).gather(np.repeat(np.arange(areas), rows)),
            "names": self._names.gather(np.tile(np.arange(rows), areas)),
        }
        for column in range(6):
            columns[f"v{column}"] = _text(np.ascontiguousarray(numbers[:, :, column]))
            columns[f"s{column}"] = _SYMBOLS.gather(symbols[:, :, column].ravel())
        text = io.BytesIO()
        pl.DataFrame(columns).write_csv(text, include_header=False, quote_style="never", line_terminator="\r\n")
        return text.getvalue().decode().encode("latin-1")


_WHOLE = {"Population": 1, "Dwellings": 4, "Households": 5}
"""The counts that CensusMapper's layout shows under their own names, as they are."""


def _vectors(table: Schema) -> list[int]:
    """Return the number of every row's first vector, which is its total's, as CensusMapper numbers them.

    Rows that have no vector there get one far beyond the last.
    """
    return [vector_of(row.id) or 10_000 + 3 * row.id for row in table.rows]


class CensusMapper(ReleaseFile):
    """CensusMapper's wide layout: one line per area, one column per characteristic and sex, NA for what is missing."""

    names = (WIDE,)

    def _columns(self) -> list[tuple[int, int, str]]:
        """Return row, sex and name of every column."""
        columns = []
        for at, (row, vector) in enumerate(zip(self._table.rows, _vectors(self._table), strict=True)):
            name = row.name.removeprefix("Total - ").removesuffix(" - 100% data").removesuffix(" - 25% sample data")
            sexes = ("Total", "Male", "Female") if row.has_sex else ("Total",)
            columns += [(at, sex, f"v_CA21_{vector + sex}: {name}, - {called}") for sex, called in enumerate(sexes)]
        return columns

    def add(self, block: CountBlock, values: Floats) -> None:
        """Write the lines of a block."""
        regions, at, areas = block.regions, self._table.index, len(block.land)
        nothing = pl.Series([None] * areas, dtype=pl.String)
        columns = {
            "GeoUID": regions["code"],
            "Type": regions["level"],
            "Region Name": regions["name"],
            "Area (sq km)": pl.Series(np.round(block.land, 4)),
            **{name: pl.Series(values[:, at[row], 0].astype(np.int64)) for name, row in _WHOLE.items()},
            "CSD_UID": regions["csd"],
            "CD_UID": regions["cd"],
            "CT_UID": nothing,
            "CMA_UID": nothing,
        }
        wanted = self._columns()
        picked = values[:, [row for row, _, _ in wanted], [sex for _, sex, _ in wanted]]
        text = _text(np.ascontiguousarray(picked.T))  # one conversion, then one slice per column
        columns |= {name: text.slice(place * areas, areas) for place, (_, _, name) in enumerate(wanted)}
        pl.DataFrame(columns).write_csv(self._out, include_header=self._out.tell() == 0, null_value="NA")


def _codes(table: Schema, row: NDArray[np.int64], sex: NDArray[np.int64]) -> dict[str, pl.Series]:
    """Return the codes of some cells."""
    return {"characteristic_id": pl.Series(table.ids).gather(row), "sex": pl.Series(SEXES).gather(sex)}


class Tidy(ReleaseFile):
    """One row per cell: region, characteristic, sex, what was published; and a TOML beside it that says so.

    Figures that are of counts in the table are cells too, and then all numbers are decimals.
    """

    names = (TABLE, ABOUT)

    def __init__(self, folder: Path, table: Schema, opened: ExitStack, *, figures: bool) -> None:
        del opened  # it holds nothing open
        self._folder, self._table, shown = folder, table, table.shown
        self._described = described_figures(table) if figures else []
        for figure in self._described:
            number, _, named = figure.name.partition("/")
            shown[table.index[int(number)], SEXES.index(named or SEXES[0])] = True
        self._cells = row, sex = np.nonzero(shown)
        codes = _codes(table, row, sex)
        names = pl.Series([row.name for row in table.rows]).gather(row)
        codes = {"characteristic_id": codes["characteristic_id"], "characteristic": names, "sex": codes["sex"]}
        self._rows = TidyWriter(folder / TABLE, codes)

    def add(self, block: CountBlock, values: Floats) -> None:
        """Write the cells of a block."""
        assert block.published is not None
        shown = (values if self._described else block.published)[:, self._cells[0], self._cells[1]]
        absent = np.isnan(shown) if self._described else shown == MISSING
        areas = block.regions.select("region", pl.col("name").alias("region_name"), "level", "parent")
        self._rows.add(areas, {"published": (shown, absent)})

    def close(self) -> None:
        """Finish the table and describe it."""
        self._rows.close()
        (self._folder / ABOUT).write_text(_release_toml(self._table, TABLE, self._described), encoding="utf-8")


LAYOUTS: Mapping[str, type[ReleaseFile]] = {"statcan": Bulk, "censusmapper": CensusMapper, "tidy": Tidy}


_NO_RECORDS = (2, 4)  # counts of the census before, and of dwellings: there are no records of them here


class TruthWriter:
    """The true counts, in the same long form: region, characteristic_id, sex, true; and key, where records have keys.

    A count's key is the sum of its records' keys, modulo 1, before the constant of its table is added; it is empty where
    no table counts those records.

    Areas and characteristics go by the names that the release gives them, so that the two can be matched.
    """

    def __init__(self, folder: Path, table: Schema, wide: bool) -> None:
        row, sex = np.nonzero(table.shown)
        codes, region = _codes(table, row, sex), "region"
        if wide:
            whole = [table.index[row_id] for row_id in _WHOLE.values()]
            vectors = [f"v_CA21_{vector}" for vector in _vectors(table)]
            codes["characteristic_id"] = pl.Series([*(vectors[at] for at in row), *_WHOLE])
            row, sex = np.r_[row, whole], np.r_[sex, np.zeros(len(whole), dtype=np.int64)]
            codes["sex"], region = pl.Series(SEXES).gather(sex), "code"
        self._cells, self._region = (row, sex), pl.col(region).alias("region")
        self._no_records = np.isin(table.ids[row], _NO_RECORDS)
        self._rows, self._many, self.cells = TidyWriter(folder / TRUTH, codes), int(table.shown.sum()), 0
        self.close = self._rows.close

    def add(self, block: CountBlock) -> None:
        """Write the cells of a block."""
        numbers: dict[str, Numbers] = {"true": (block.true[:, *self._cells], None)}
        if block.keys is not None:
            keys = block.keys[:, *self._cells] / 2.0**64
            numbers["key"] = keys, np.broadcast_to(self._no_records, keys.shape)
        self.cells += len(block.land) * self._many
        self._rows.add(block.regions.select(self._region), numbers)


_CALLED = {"da": "DA", "csd": "CSD", "cd": "CD", "pr": "PR", "province": "PR"}


def levels_named(text: str | None) -> tuple[str, ...]:
    """Return the levels that are asked for, the smallest first; all where none are.

    >>> levels_named("province, da")
    ('DA', 'PR')
    """
    wanted = [name.strip().lower() for name in (text or ",".join(_CALLED)).split(",") if name.strip()]
    strange = next((name for name in wanted if name not in _CALLED), None)
    if strange is not None or not wanted:
        raise InputError(f"there is no level {strange or ''!r}: choose from da, csd, cd and province, separated by commas.")
    return tuple(level for level in LEVELS if level in {_CALLED[name] for name in wanted})


def write_areas(path: Path, regions: pl.DataFrame, levels: Iterable[str], wide: bool) -> None:
    """Write which area lies in which: for every area that is published, the smallest published one around it."""
    name = dict(zip(regions["region"], regions["code" if wide else "region"], strict=True))
    level = dict(zip(regions["region"], regions["level"], strict=True))
    parent = dict(zip(regions["region"], regions["parent"], strict=True))
    lines = []
    for region in level:
        above = parent[region]
        while above is not None and level[above] not in levels:
            above = parent[above]
        if level[region] in levels and above is not None:
            lines.append((name[region], name[above]))
    pl.DataFrame(lines, schema={"child": pl.String, "parent": pl.String}, orient="row").write_csv(path)
