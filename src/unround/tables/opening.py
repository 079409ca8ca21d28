"""Opening: a file or frame as a table with a header, wherever that stands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unround.errors import InputError
from unround.small_files import shortened
from unround.tables.frames import as_headed
from unround.tables.grid import Grid, HeadedTable, read_grid, with_header
from unround.tables.layout import Layout, find_layout
from unround.tables.pcaxis import is_pcaxis
from unround.tables.questions import Ask, Question
from unround.tables.spreadsheet import is_spreadsheet, sheets_of
from unround.tables.tidy import headed_table, is_parquet


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A table with a header: where it stood in a sheet or file, unless that is a matter of course."""

    table: HeadedTable
    path: Path | None = None
    sheet: str | None = None
    layout: Layout | None = None
    other_sheets: tuple[str, ...] = ()

    @property
    def typed(self) -> str:
        """What to type for the file."""
        return str(self.path) if self.path is not None else "FILE"


def open_table(source: object, sheet: str | None, header: tuple[int, ...] | None, ask: Ask) -> Opened:
    """Open a file or frame, and find its header.

    Raises `InputError` where it cannot be read, is empty, or has no header.
    """
    if not isinstance(source, str | Path):
        return Opened(as_headed(source))
    path = Path(source)
    if is_parquet(path) or is_pcaxis(path):
        return Opened(headed_table(path), path)
    others: tuple[str, ...] = ()
    if is_spreadsheet(path):
        grid, others = _sheet(path, sheet, ask)
    else:
        grid = read_grid(path, sheet)
    layout = find_layout(grid, header)
    return Opened(with_header(grid, layout.header, layout.rows), path, grid.sheet, layout, others)


def _sheet(path: Path, sheet: str | None, ask: Ask) -> tuple[Grid, tuple[str, ...]]:
    """Return the sheet that holds the table: the one that is asked for, or the one with most rows below a header."""
    names = sheets_of(path)
    if sheet is not None or len(names) == 1:
        return read_grid(path, sheet), ()
    found: dict[str, tuple[int, Grid]] = {}
    for name in names:
        try:
            grid = read_grid(path, name)
            layout = find_layout(grid)
        except InputError:
            continue  # a cover, notes, or nothing
        found[name] = ((layout.rows[1] - layout.rows[0] + 1) * grid.cells.width, grid)
    if not found:
        raise InputError(f"{path}: none of its sheets ({shortened(names)}) holds a table of numbers below a header.")
    largest = max(found, key=lambda name: found[name][0])
    if len(found) == 1:
        return found[largest][1], ()
    question = Question("sheet", "Several sheets hold tables. Which one?", tuple(found), largest)
    chosen = ask(question) or largest
    if chosen not in found:
        raise InputError(f"{path} has no table on a sheet {chosen!r}; choose one of {shortened(list(found))}.")
    return found[chosen][1], tuple(name for name in found if name != chosen)
