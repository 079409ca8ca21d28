"""Tables: a file, a sheet or a frame becomes a Release; nothing else in unround parses tables.

Formats, in the order in which a file is tried on them:

- `statcan` (bulk.py): Statistics Canada's bulk files, one line per characteristic and area;
- `profile-page` (profile_page.py): the download button of a profile page, one or a few areas;
- `censusmapper` (censusmapper.py): what CensusMapper and cancensus return, one line per area;
- `indicators` (censusmapper.py): one line per area, columns called `indicator_<ID>`;
- `first-names` (agencies.py): names with total, men+ and women+;
- `data-table` (agencies.py): Statistics Canada's data tables, with their metadata;
- `statsnz` (statsnz.py): Stats NZ's long tables, one line per count;
- `datapack` (agencies.py): the Australian DataPacks, one line per area;
- `tidy` (tidy.py): any CSV, Parquet, XLSX, ODS or PX, described in a TOML file (description.py).

Behind all of these: source.py is a file of text, unpacked and decoded; symbols.py says what its cells mean. Behind the last:
delimited.py and spreadsheet.py read files, frames.py takes frames, grid.py is a sheet as rows of text, cells.py turns wide
tables into one row per count, and these into a release. profile.py has what the formats of censuses share: what their lines
are, and how columns are made of them; line_scan.py reads those of bulk files. acro.py has the tables of ACRO and τ-ARGUS. A
file that is in none of these formats raises `UnknownFormat`, and a description of it is drafted and verified:

- `describing`: START HERE. `describe` is the whole way; `Described` is what comes out
- `tidy`: a file or frame as a table with a header, what else is in the file, and what cannot be known without asking
- `layout`: where in a sheet tables stand, between titles and notes; how numbers are written
- `notes`: what the texts around a table say of its counts: how they were rounded, what signs mean
- `roles`: which columns hold codes, names, counts, figures, or what is not understood; `derived`: which follow from others
- `labels`: what ages, totals, sexes and areas are called
- `axes`: what the codes of rows and headers stand for; names such as "Men 0-14" taken apart
- `suggested`: sums that names suggest within an area and between areas, and which of them the counts confirm; how counts
  were published, and which are exact
- `draft`: the description as a TOML file, and what was found written into it
- `account`: what became of every sheet, row, column and cell

Releases, once there are some:

- `joining`: `join` takes releases and returns one; which columns are one count, and which areas are one area
- `hierarchy`: which code, and which area, is part of which, in a file of its own
- `spool`: a release on disk, read once
- `written`: tidy tables as the other commands write them

Rates, means and medians are kept beside the counts. profile.py says what they are of by labels and positions, with
labels.py for groups, or by what the user says; canada_2021.py by the documentation of the Canadian profile.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unround.errors import InputError, UnknownFormat
from unround.small_files import open_plain

if TYPE_CHECKING:
    from unround.release import Release
    from unround.tables.describing import Described as Described
    from unround.tables.describing import describe as describe
    from unround.tables.joining import join as join
    from unround.tables.joining import with_truth as with_truth
    from unround.tables.source import Source
    from unround.tables.tidy import Question as Question

_HOME = {"Described": "describing", "describe": "describing", "Question": "tidy", "join": "joining", "with_truth": "joining"}


def __getattr__(name: str) -> Any:
    """Load what is heavy when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'unround.tables' has no attribute {name!r}")
    return getattr(import_module(f"unround.tables.{_HOME[name]}"), name)


@dataclass(frozen=True, slots=True)
class Format:
    """A format that is known.

    - `looks`: What it looks like, in one line.
    - `load`: The module and the function that read it.
    - `documented`: How the agency says that its counts were published; the layout documents the sums as well. None where
      that is left to what comes with the file.
    """

    looks: str
    load: str
    documented: tuple[str, ...] | None = None


_CANADA = ("rounding:5", "sample:5")
FORMATS: Mapping[str, Format] = {
    "statcan": Format(
        "one line per characteristic: CENSUS_YEAR,DGUID,ALT_GEO_CODE,… (CSV or TAB, also zipped)", "bulk.load", _CANADA
    ),
    "profile-page": Format(
        'title lines "Census Profile, …", then Topic,Characteristic,Note,Total,…', "profile_page.load", _CANADA
    ),
    "censusmapper": Format(
        "one line per area: GeoUID,Type,…, and columns such as v_CA21_8: …, - Total", "censusmapper.load", _CANADA
    ),
    "indicators": Format("one line per area, and columns such as indicator_10", "censusmapper.load_indicators", _CANADA),
    "first-names": Format(
        "one line per first name, with counts for total, men+ and women+", "agencies.load_first_names", ("rounding:5",)
    ),
    "data-table": Format(
        "one line per value: REF_DATE,GEO,DGUID,…,UOM,…,VECTOR,COORDINATE,VALUE,STATUS (also zipped)",
        "agencies.load_data_table",
    ),
    "statsnz": Format("one line per count: code,name,variable,variable_group,count", "statsnz.load", ("rounding:3",)),
    "datapack": Format(
        "one line per area: SA2_MAINCODE_2016,Tot_P_M,Tot_P_F,Tot_P_P,… (Australia)", "agencies.load_datapack", ()
    ),
    "tidy": Format(
        "any CSV, Parquet, XLSX, ODS or PX with a TOML that describes it: release.toml, or called like it", "tidy.load"
    ),
}
"""The formats by name, in the order in which a file is tried on them."""

SIMULATED = "a census simulated by `unround simulate`"
"""The product of every file that such a census came in."""
NOTE = "SIMULATED.txt"
"""The note that lies beside simulated tables, with their fingerprints."""

_PARQUET = (".parquet", ".pq")


def read(
    path: str | Path, file_format: str = "auto", toml: str | Path | None = None, areas: str | Path | None = None
) -> Release:
    """Open a published table, in one of `FORMATS`; its counts come when `Release.blocks` is gone through.

    `toml` describes a tidy table: one that lies beside it under its name, or as a release.toml that names it, is found by
    itself. `areas` is a file that tells which area lies in which: columns child and parent, or one of codes for every level.
    """
    release = _read(Path(path), file_format, toml)
    if areas is not None:
        from unround.tables.hierarchy import with_areas

        release = with_areas(release, areas)
    return replace(release, product=SIMULATED) if _is_simulated(Path(release.source)) else release


def fingerprint(path: Path) -> str:
    """Return what tells a table from any other: its size and how it begins, which takes no time in files of any size."""
    with open_plain(path) as file:
        return sha256(b"%d %b" % (path.stat().st_size, file.read(1 << 20))).hexdigest()[:32]


def _is_simulated(path: Path) -> bool:
    """Return whether the note beside a table has its fingerprint, so that `unround simulate` wrote this very table."""
    note = path.with_name(NOTE)
    try:
        if not note.is_file() or not path.is_file():  # a pipe would be waited for
            return False
        with open_plain(note) as file:
            text = file.read(1 << 20)
        return text.startswith(b"Simulated:") and fingerprint(path).encode() in text
    except (OSError, ValueError):
        return False


def _read(path: Path, file_format: str, toml: str | Path | None) -> Release:
    from unround.tables import acro, delimited, spreadsheet, tidy
    from unround.tables.source import Source

    if file_format not in ("auto", *FORMATS):
        raise InputError(f"there is no format {file_format!r}; choose auto, {', '.join(FORMATS)}.")
    if file_format not in ("auto", "tidy") and toml is not None:
        raise InputError(f"a TOML file describes a tidy table, not the format {file_format}; leave one of the two out.")
    if file_format == "auto":
        toml = toml if toml is not None or path.suffix.lower() == ".toml" else tidy.companion(path)
        if toml is not None or path.suffix.lower() in (".toml", *_PARQUET):
            file_format = "tidy"
        elif acro.is_jj(path):
            return acro.read_jj(path)
        elif spreadsheet.is_spreadsheet(path) or delimited.is_pcaxis(path):
            raise UnknownFormat(f"{path} needs a description, for nothing says what its cells are: unround describe {path}")
    source = Source(path) if file_format != "tidy" else None
    if source is not None and file_format == "auto":
        file_format = _detect(source)
    if source is None or file_format == "tidy":
        return tidy.load(path, None if toml is None else Path(toml))
    if not matches(file_format, source.head(), source.name):
        raise InputError(
            f"{path} is not in the format {file_format}, which is {FORMATS[file_format].looks}; {_seen(source)}"
        )
    return _load(file_format, source)


def read_marked(path: Path, text: bytes, file_format: str) -> Release:
    """Read a text of a known format as if it were the file: what `path` holds, with other numbers in it."""
    from unround.tables.source import Source

    return _load(file_format, Source(path, text))


def read_frame(frame: object, name: str = "the frame") -> Release | None:
    """Return the release in a frame whose columns are those of a known format, read as its file would be; else None."""
    from unround.tables.frames import as_polars
    from unround.tables.source import Source

    known = census_format(frame)
    if known is None:
        return None
    return _load(known, Source.of_frame(as_polars(frame), name))


def census_format(table: object) -> str | None:
    """Return the format of a file or frame that needs no description, or None."""
    from unround.tables.frames import as_polars, is_flat
    from unround.tables.source import Source, header_of
    from unround.tables.spreadsheet import is_spreadsheet

    if isinstance(table, Path):
        if table.suffix.lower() in _PARQUET or is_spreadsheet(table):
            return None
        source = Source(table)
        head, name = source.head(), source.name
    elif is_flat(table):
        head, name = header_of(as_polars(table)), ""
    else:
        return None
    return next((form for form in FORMATS if form != "tidy" and matches(form, head, name)), None)


_CENSUSMAPPER = re.compile(r"(?i)(?:^|[,;\t\"]) *v_[a-z0-9]+(?:_[a-z0-9]+)*_\d")
_INDICATOR = re.compile(r"(?i)(?:^|[,;\t\"]) *indicator_\d+ *(?=[\",;\t\r]|$)")
_DATA_TABLE = (
    {"REF_DATE", "GEO", "UOM", "COORDINATE", "VALUE", "VECTOR"},
    {"PÉRIODE DE RÉFÉRENCE", "GÉO", "UNITÉ DE MESURE", "COORDONNÉES", "VALEUR", "VECTEUR"},
)
_DATAPACK = re.compile(
    r"(?i)(?:SA[1-4]|GCCSA|STE|AUS|LGA|POA|SSC|SAL|CED|SED|UCL|SUA|SOS|SOSR|RA|ILOC|IARE|IREG)_\w*CODE\w*?_20\d\d"
)


def matches(file_format: str, head: str, name: str) -> bool:
    """Return whether a file that begins so, and is called so, is in a format.

    >>> matches("statsnz", "code,name,variable,variable_group,count", "x"), matches("statsnz", "code,name,count", "x")
    (True, False)
    >>> matches("data-table", '"REF_DATE","GEO","DGUID","Sex","UOM","VECTOR","COORDINATE","VALUE"', "x")
    True
    >>> matches("datapack", "SA2_MAINCODE_2016,Tot_P_M,Tot_P_F,Tot_P_P", "x"), matches("tidy", "", "x.toml")
    (True, True)
    """
    first = head.lstrip("\ufeff").partition("\n")[0].rstrip("\r")
    try:
        header = [cell.strip() for cell in next(csv.reader([first], delimiter=max(",;\t|", key=first.count)), [])]
    except csv.Error:  # a carriage return within a name, which a frame may have, or one of over 131,072 signs
        header = [""]
    there = set(header)
    match file_format:
        case "statcan":
            return all(column in first for column in ("DGUID", "CHARACTERISTIC_ID", "CHARACTERISTIC_NAME", "C1_COUNT_TOTAL"))
        case "profile-page":
            titled = re.match(r'\s*"?Census Profile\b', head, re.IGNORECASE)
            return titled is not None and re.search(r'(?im)^"?topic"?\W+"?characteristics?\b', head) is not None
        case "censusmapper":
            return _CENSUSMAPPER.search(first) is not None and "characteristic_id" not in first.lower()
        case "indicators":
            return _INDICATOR.search(first) is not None
        case "first-names":
            wanted = {"FIRST_NAME", *(f"{sex}_COUNT" for sex in ("GENDER_TOTAL", "MEN+", "WOMEN+"))}
            return wanted <= {column.upper() for column in header}
        case "data-table":
            return any(names <= there for names in _DATA_TABLE)
        case "statsnz":
            return [column.lower() for column in header] == ["code", "name", "variable", "variable_group", "count"]
        case "datapack":
            parted = any(re.fullmatch(r".+_[PMF]|[PMF]_.+", column) for column in header[1:])
            return parted and _DATAPACK.fullmatch(header[0]) is not None
        case _:
            from unround.tables.tidy import guess

            return name.lower().endswith((".toml", *_PARQUET)) or guess(header) is not None


def _load(file_format: str, source: Source) -> Release:
    """Read a file of a format; its columns say what the agency documents of it, the sums of its layout included."""
    from unround.mechanisms import mechanism

    known = FORMATS[file_format]
    module, _, function = known.load.partition(".")
    release: Release = getattr(import_module(f"unround.tables.{module}"), function)(source)
    if known.documented is None:
        return release
    kinds = tuple(mechanism(name) for name in known.documented)
    columns = (replace(column, documented=kinds, basis="format", known_format=True) for column in release.columns)
    return replace(release, columns=tuple(columns))


def _detect(source: Source) -> str:
    """Find the format by the head of the file."""
    form = next((name for name in FORMATS if matches(name, source.head(), source.name)), None)
    if form is None:
        known = "\n".join(f"  {name:13} {known_format.looks}" for name, known_format in FORMATS.items())
        raise UnknownFormat(
            f"{source.path} matches none of the formats that unround knows; {_seen(source)}\nThe formats "
            f"are:\n{known}\nTo describe a table of your own, run: unround describe {source.path}"
        )
    return form


def _seen(source: Source) -> str:
    """Say what the head looks like, and what may be wrong with it."""
    from unround.tables.source import called

    lines = [line for line in source.head().splitlines() if line.strip()]
    first = lines[0] if lines else ""
    shown = first if len(first) <= 120 else first[:119] + "…"
    return f"its first line, separated by {called(source.delimiter)}s, is\n    {shown}"
