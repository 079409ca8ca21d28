"""Tidy tables: any table with a TOML that describes it (see `description`); and any file or frame opened as such a table.

Opening finds the header, wherever that stands, and what else is in the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from unround.errors import InputError, UnknownFormat
from unround.release import AREA, Entry, Release, What
from unround.small_files import open_plain, parsed_toml, require_file, shortened, small_text
from unround.tables import read_frame
from unround.tables.account import account_of
from unround.tables.cells import assemble, read_headed
from unround.tables.delimited import is_pcaxis, read_parquet, read_px, read_table
from unround.tables.description import CHARACTERISTIC, SEX, AxisRule, Description, read_description
from unround.tables.frames import as_headed
from unround.tables.grid import Grid, HeadedTable, columns_between, with_header
from unround.tables.layout import Layout, find_layout, find_layouts
from unround.tables.notes import Documented
from unround.tables.profile import by_sex
from unround.tables.source import Source
from unround.tables.spreadsheet import Workbook, is_spreadsheet, read_grid

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
        if beside == path or not os.path.isfile(beside):
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
    if not os.path.isfile(path):
        return b""
    try:
        with open_plain(path) as file:
            return file.read(4)
    except OSError:
        return b""


FEW = 6
"""Cells that are listed one by one."""


@dataclass(frozen=True, slots=True)
class Question:
    """Something that only a person can know.

    - `key`: What it is about: "sheet", "value", "missing", or the symbol in question.
    - `text`: The question, in one sentence.
    - `choices`: The possible answers.
    - `default`: The answer if nobody is asked; "" if there is none that would be safe, so that the question has to be
      answered.
    """

    key: str
    text: str
    choices: tuple[str, ...]
    default: str


Ask = Callable[[Question], str]
"""Asks a person; returns one of the choices, or "" for no answer."""


def take_default(question: Question) -> str:
    """Answer as if nobody were there."""
    return question.default


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A table with a header: where it stood in a sheet or file, unless that is a matter of course.

    `others` are the other tables of the file; `texts` the texts on sheets without a table, by sheet and row. `headings` are
    rows that name groups, by the name of the axis that they make.
    """

    table: HeadedTable
    path: Path | None = None
    layout: Layout | None = None
    others: tuple[Layout, ...] = ()
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    headings: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def sheet(self) -> str | None:
        """The sheet that it stands on, in a spreadsheet."""
        return None if self.layout is None else self.layout.sheet

    @property
    def typed(self) -> str:
        """What to type for the file."""
        return str(self.path) if self.path is not None else "FILE"

    @property
    def notes(self) -> tuple[str, ...]:
        """All texts around the table in which its counts may be explained."""
        around = self.layout.texts if self.layout is not None else ()
        return (*around, *(text for texts in self.texts.values() for text in texts), *self.table.texts)


def tables_of(path: Path) -> list[Layout]:
    """Return where the tables of a file stand, on all of its sheets; a table without a sheet of rows has none."""
    return _places(path, None)[0]


def open_table(
    source: object, sheet: str | None, header: tuple[int, ...] | None, ask: Ask, columns: str | None = None
) -> Opened:
    """Open a file or frame, and find its header; `columns` are the letters of the first and last one, if not all count."""
    if not isinstance(source, str | Path):
        return Opened(as_headed(source))
    path = Path(source)
    if is_parquet(path) or is_pcaxis(path):
        return Opened(headed_table(path), path)
    places, texts = _places(path, sheet)
    if header is not None or columns is not None:
        named = sheet or (places[0].sheet if places else None)
        within = columns_between(columns) if columns is not None else None
        alike = [layout for layout in places if layout.sheet == named and header in (None, layout.header)]
        chosen = next((layout for layout in alike if within in (None, layout.columns)), None)
        if chosen is None:
            chosen = replace(find_layout(read_grid(path, named).only(within), header), columns=within)
    else:
        chosen = _chosen(path, [layout for layout in places if sheet in (None, layout.sheet)], ask)
    grid = read_grid(path, chosen.sheet).only(chosen.columns)
    others = tuple(layout for layout in places if layout.name != chosen.name)
    headings = _headings(grid, chosen)
    skip = chosen.skip if not headings else ()
    table = with_header(grid, chosen.header, chosen.rows, skip, headings, chosen.percentages)
    return Opened(table, path, chosen, others, texts, headings)


def _places(path: Path, sheet: str | None) -> tuple[list[Layout], dict[str, tuple[str, ...]]]:
    """Return the tables of a file, and the texts of sheets that hold none; the sheet that is asked for must hold one."""
    layouts: list[Layout] = []
    texts: dict[str, tuple[str, ...]] = {}
    wrong: InputError | None = None
    book = Workbook(path) if is_spreadsheet(path) else None
    names: list[str] | list[None] = [None] if book is None else book.names
    if sheet is not None and sheet not in names:
        read_grid(path, sheet)  # which says what is wrong with that
    for name in names:
        grid: Grid | None = None
        try:
            grid = read_grid(path) if book is None else book.grid(name)
            layouts += find_layouts(grid)
        except InputError as error:
            wrong = error if wrong is None or name == sheet else wrong
            if name is not None and grid is not None:
                texts[name] = _texts(grid)
            elif "is empty" not in str(error):  # what cannot be read must not pass for what holds no table
                raise
    if wrong is not None and (not layouts or (sheet is not None and all(layout.sheet != sheet for layout in layouts))):
        if sheet is None and len(names) > 1:
            raise InputError(
                f"{path}: none of its sheets ({shortened(list(texts))}) holds a table of numbers below a header."
            )
        raise wrong
    return layouts, texts


def _texts(grid: Grid) -> tuple[str, ...]:
    rows = range(min(grid.cells.height, 200))
    return tuple(text for row in rows if (text := " ".join(cell for cell in grid.row(row) if cell)))


def _chosen(path: Path, places: list[Layout], ask: Ask) -> Layout:
    """Return the table that is meant: the only one, the one that is answered, or the largest."""
    largest = max(places, key=lambda layout: layout.rows[1] - layout.rows[0])
    if len(places) == 1:
        return places[0]
    if len({layout.sheet for layout in places}) == 1:
        return largest
    by_sheet = {str(layout.sheet): layout for layout in reversed(places)}
    question = Question("sheet", "Several sheets hold tables. Which one?", tuple(reversed(by_sheet)), str(largest.sheet))
    answer = ask(question) or str(largest.sheet)
    if answer not in by_sheet:
        raise InputError(f"{path} has no table on a sheet {answer!r}; choose one of {shortened(list(by_sheet))}.")
    return largest if answer == str(largest.sheet) else by_sheet[answer]


def _headings(grid: Grid, layout: Layout) -> dict[str, tuple[int, ...]]:
    """Return the rows that name groups, if the rows below are told apart only by them; they make an axis then."""
    if not layout.skip or layout.skip[0] != layout.rows[0]:
        return {}
    rows = [grid.row(row - 1) for row in range(layout.rows[0], layout.rows[1] + 1) if row not in layout.skip]
    first = next((at for at in range(grid.cells.width) if any(row[at] for row in rows)), 0)
    labels = [row[first] for row in rows if row[first]]
    return {"group": layout.skip} if len(set(labels)) < len(labels) else {}


def entries_around(opened: Opened, notes: Documented) -> Iterable[Entry]:
    """Return the entries of what stands around the table, and elsewhere in the file."""
    for sheet, texts in opened.texts.items():
        explains = any(text in notes.used for text in texts)
        yield Entry(
            f"sheet {sheet}",
            What.NOTE,
            "a sheet of text, without a table" + ("; it explains the counts" if explains else ""),
        )
    for other in opened.others:
        yield Entry(
            other.name, What.UNKNOWN, "another table of the file, which is not part of this reading", False,
            f"unround describe {opened.typed} {other.options} -o other.toml, which reads it",
        )  # fmt: skip
    layout = opened.layout
    if layout is None:
        return
    yield Entry(_rows(layout.header), What.LABEL, "the header")
    for row, text in (*layout.above.items(), *layout.below.items()):
        yield _text_entry(f"row {row}", text, notes)
    for cell, text in opened.table.marks.comments.items():
        yield _text_entry(f"comment on {cell}", text, notes)
    for code, cells in opened.table.marks.masked.items():
        few = ", ".join(cells[:FEW]) + (f" and {len(cells) - FEW:,} more" if len(cells) > FEW else "")
        why = f"the format {code} hides the numbers there, which are in the file for every reader"
        yield Entry(
            f"cell {few}" if len(cells) == 1 else f"cells {few}",
            What.UNKNOWN,
            why,
            False,
            "write what is to be read into the cells, not the number",
        )
    if layout.continued:
        why = "the same headings stand beside it, over other rows: it may go on there, and a total may be that of both"
        yield Entry("rows beside", What.UNKNOWN, why, False, "put all rows below each other, in the same columns")
    if layout.percentages:
        yield Entry(_rows(layout.percentages), What.FIGURE, "percentages of the row above each, read as columns beside it")
    groups = {row for rows in opened.headings.values() for row in rows}
    for row in layout.skip:
        why = "names the group of the rows below" if row in groups else "a text between rows of counts"
        yield Entry(f"row {row}", What.LABEL, why)
    for row in opened.table.marks.hidden_rows:
        if row + 1 in opened.table.numbers:
            yield Entry(f"row {row + 1}", What.LABEL, "hidden in the spreadsheet, and read all the same")


def _text_entry(place: str, text: str, notes: Documented) -> Entry:
    """Return the entry of a text; whether its numbers tell what is hidden, a review asks."""
    short = text if len(text) <= 80 else f"{text[:79]}…"
    return Entry(place, What.NOTE, f"{'read as a note' if text in notes.used else 'a text'}: {short}")


def _rows(rows: Sequence[int]) -> str:
    return f"row {rows[0]}" if len(rows) == 1 else f"rows {rows[0]}–{rows[-1]}"
