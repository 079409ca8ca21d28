"""Tidy tables: any CSV or Parquet with one row a cell, and a TOML that describes them (see `description`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from unround.errors import InputError, UnknownFormat
from unround.release import AREA, Release
from unround.small_files import is_file, open_plain, parsed_toml, require_file, shortened, small_text
from unround.tables import read_frame
from unround.tables.account import account_of
from unround.tables.cells import assemble
from unround.tables.delimited import read_table
from unround.tables.description import CHARACTERISTIC, SEX, AxisRule, Description
from unround.tables.description_file import read_description
from unround.tables.grid import HeadedTable, columns_between, with_header
from unround.tables.lines import by_sex
from unround.tables.parquet import read_parquet
from unround.tables.pcaxis import is_pcaxis, read_px
from unround.tables.reshape import read_headed
from unround.tables.source import Source
from unround.tables.spreadsheet import is_spreadsheet, read_grid

VALUES = ("published", "true", "count", "value")
"""What the column of counts is called in a table that needs no TOML."""

_PARQUET = (".parquet", ".pq")


def companion(path: Path) -> Path | None:
    """Return the TOML beside a table that describes it, if there is one.

    It is called like the table (survey.toml beside survey.csv.gz), or is a release.toml that names the table as its `data`.
    A TOML that describes no table, having neither `value` nor `axes`, is about something else. One that cannot be read is
    returned, for its faults are to be told.
    """
    if not path.name:  # a folder, which can have no file beside it
        return None
    stem = path.name.removesuffix(".gz").removesuffix(".zip")
    called, release = path.with_name(f"{Path(stem).stem}.toml"), path.with_name("release.toml")
    for beside in dict.fromkeys((called, release)):
        if beside == path or not is_file(beside):
            continue
        try:
            about = parsed_toml(small_text(beside, "TOML"), str(beside))
        except InputError:
            if beside == called:
                return beside
            continue
        named = about.get("data")
        same = isinstance(named, str) and path.parent / named == path
        if (same or (beside == called and named is None)) and ("value" in about or "axes" in about):
            return beside
    return None


def load(path: Path, toml: Path | None = None) -> Release:
    """Read a tidy table."""
    notes: list[str] = []
    description: Description | None
    if toml is None and path.suffix.lower() == ".toml":
        description = read_description(path)
        if description.data is None:
            raise InputError(f'{path} does not say which file it describes: add data = "…", or give the table too.')
        path = description.data
    else:
        if toml is None and (toml := companion(path)) is not None:
            notes.append(f"The columns are described by {toml.name}, next to the table.")
        description = read_description(toml) if toml is not None else None
    if description is not None and not description.axes:
        raise InputError(f"{description.where} names no axes of the table: add one [axes.NAME] for each column of codes.")
    if description is not None and (description.laid_out or is_spreadsheet(path) or is_pcaxis(path)):
        headed = headed_table(path, description)
        release = read_headed(headed, description, notes=notes)
        return replace(release, account=account_of(headed, description, release))
    headed = as_table(path)
    table = headed.frame
    if description is not None:
        release = assemble(table, description, source=str(path), size=headed.size, notes=[*notes, *headed.notes])
        return replace(release, account=account_of(headed, description, release))
    description = guess(table.columns)
    if description is not None:
        release = assemble(table, description, source=str(path), size=headed.size, notes=headed.notes)
        return replace(release, proposals=tuple(by_sex(release.columns)))
    if (known := read_frame(table, str(path))) is not None:
        return known
    raise UnknownFormat(
        f"{path} is a table whose columns ({shortened(table.columns)}) are not recognised. To describe them, run: "
        f"unround describe {path}"
    )


def as_table(path: Path) -> HeadedTable:
    """Return a file whose header is its first line: text as text, so that codes such as 007 stay what they are."""
    if not is_parquet(path):
        return read_table(Source(path), "check its delimiters and quotes")
    size = require_file(path)
    frame = read_parquet(path, size)
    names = tuple(name.strip() for name in frame.columns)
    frame.columns = [str(at) for at in range(frame.width)]
    return HeadedTable((names,), frame, str(path), size)


def headed_table(path: Path, description: Description | None = None) -> HeadedTable:
    """Return a file as a table with a header: where a description says, or in its first row."""
    if is_parquet(path):
        return as_table(path)
    if is_pcaxis(path):
        return read_px(path)
    grid = read_grid(path, description.sheet if description is not None else None)
    grid = grid.only(columns_between(description.columns) if description is not None and description.columns else None)
    if description is None:
        return with_header(grid, (1,))
    headings = {axis.within or axis.name: axis.headings for axis in description.axes if axis.headings}
    skip, percentages = description.skip, description.percentages
    return with_header(grid, description.header, description.rows, skip, headings, percentages)


def is_parquet(path: Path) -> bool:
    """Return whether a file is a Parquet file, by its name or its first bytes."""
    return path.suffix.lower() in _PARQUET or _begins(path) == b"PAR1"


def guess(columns: Sequence[str]) -> Description | None:
    """Return the description of a table whose columns are the conventional ones, or None.

    >>> [axis.column for axis in guess(["region", "characteristic_id", "sex", "true"]).axes]
    ['region', 'characteristic_id', 'sex']
    """
    value = [column for column in columns if column in VALUES]
    characteristic = [column for column in reversed(CHARACTERISTIC) if column in columns]
    if AREA not in columns or not characteristic or SEX not in columns or len(value) != 1:
        return None
    label = characteristic[1] if len(characteristic) > 1 else None

    def there(column: str) -> str | None:
        return column if column in columns else None

    return Description(
        value=value[0],
        axes=(
            AxisRule(AREA, AREA, there("region_name"), there("level"), there("parent")),
            AxisRule(CHARACTERISTIC[0], characteristic[0], label),
            AxisRule(SEX, SEX),
        ),
        where="the columns",
    )


def _begins(path: Path) -> bytes:
    """Return the first four bytes of a file, if it is one; what is wrong with others, `Source` tells."""
    if not is_file(path):
        return b""
    try:
        with open_plain(path) as file:
            return file.read(4)
    except OSError:
        return b""
