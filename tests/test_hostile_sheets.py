"""Spreadsheets that are there to fill a memory: refused while they are unpacked, before anything of them is held."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from fuzz.written import CONTENT, ODS_PARTS, SHEET, XLSX_PARTS

from tests.test_hostile_files import bounded
from unround.errors import InputError
from unround.tables import spreadsheet
from unround.tables.spreadsheet import Workbook
from unround.tables.tidy import tables_of

ODS_CELL, ODS_END = "table:table-cell", "</table:table>"
FAR = "too far for a table"


def put(path: Path, parts: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    return path


def xlsx(folder: Path, rows: str = "", **more: str) -> Path:
    """Write a sound sheet with further rows; or with other parts."""
    sheet = SHEET.replace("</sheetData>", f"{rows}</sheetData>")
    return put(folder / "t.xlsx", {**XLSX_PARTS, "xl/worksheets/sheet1.xml": sheet, **more})


def ods(folder: Path, rows: str) -> Path:
    return put(folder / "t.ods", {**ODS_PARTS, "content.xml": CONTENT.replace(ODS_END, f"{rows}{ODS_END}")})


def refused(path: Path) -> str:
    with bounded(), pytest.raises(InputError) as caught:
        Workbook(path).grid()
    return str(caught.value)


@pytest.mark.parametrize(
    "rows",
    [
        '<row r="1048576"><c r="AU1048576"><v>1</v></c></row>',  # 49 million cells, of which ten hold something
        '<row r="4"><c r="AZZZ4"><v>1</v></c></row>',  # beyond the last column
        '<row r="4"><c r="a1048576"/><c><v>1</v></c><c r="xfd4"><f>1</f></c></row>',
        '<row r="1048576"/><row><c><v>1</v></c></row>',  # beyond the last row, without saying so
        '<row r="1048570">' + "<c/>" * 2000 + "<x:c xmlns:x='x'><v>1</v></x:c></row>",
    ],
)
def test_a_stray_cell_in_a_far_corner(tmp_path: Path, rows: str) -> None:
    assert FAR in refused(xlsx(tmp_path, rows))


def test_a_format_in_a_far_corner_is_no_cell(tmp_path: Path) -> None:
    """People format whole sheets."""
    assert Workbook(xlsx(tmp_path, '<row r="1048576"><c r="XFD1048576" s="0"/></row>')).grid().cells.shape == (3, 3)


@pytest.mark.parametrize(
    "cell",
    [
        "<{0} {1} office:value-type='float' office:value='5'><text:p>5</text:p></{0}>",
        "<{0} {1} office:value-type='float' office:value='5'/>",  # no text
        "<{0} {1}><text:p>5</text:p></{0}>",
        "<table:covered-table-cell {1} office:value-type='float' office:value='5'/>",
        "<{0} {1}/><{0} office:value-type='float' office:value='5'/>",  # which the reader would leave out
    ],
)
def test_cells_that_are_repeated_without_end(tmp_path: Path, cell: str) -> None:
    again = "table:number-columns-repeated='1000000000'"
    assert FAR in refused(ods(tmp_path, f"<table:table-row>{cell.format(ODS_CELL, again)}</table:table-row>"))
    many = "<table:table-row table:number-rows-repeated='1000000000'>"
    assert FAR in refused(ods(tmp_path, f"{many}{cell.format(ODS_CELL, '')}</table:table-row>"))


def test_empty_cells_up_to_the_edge_of_a_sheet_are_how_programs_end_it(tmp_path: Path) -> None:
    edge = f"<table:table-row><{ODS_CELL} table:number-columns-repeated='1000000000'/></table:table-row>"
    assert Workbook(ods(tmp_path, edge)).grid().cells.shape == (2, 2)


def test_a_table_within_a_cell_does_not_hide_what_is_around_it(tmp_path: Path) -> None:
    inner = f"<table:table><table:table-row><{ODS_CELL}/></table:table-row></table:table>"
    row = f"<table:table-row><{ODS_CELL}>{inner}</{ODS_CELL}></table:table-row>"
    assert "a table within a cell" in refused(ods(tmp_path, row))


def test_another_encoding_hides_nothing(tmp_path: Path) -> None:
    """In EBCDIC these are other letters; who reads the sheet takes them for ASCII."""
    hidden = '<row r="9"><c r="XFD1048576"><v>1</v></c></row>'
    both = '<?xml version="1.0" encoding="cp037"?>' + "<a>".encode("cp037").decode("latin-1")
    sheet = both + hidden + "</a>".encode("cp037").decode("latin-1")
    assert "cannot be read" in refused(xlsx(tmp_path, **{"xl/worksheets/sheet1.xml": sheet}))


def test_thousands_of_sheets(tmp_path: Path) -> None:
    book = XLSX_PARTS["xl/workbook.xml"].replace("</sheets>", '<sheet name="t" sheetId="2" r:id="r1"/>' * 1000 + "</sheets>")
    assert "over 1,000 sheets" in refused(xlsx(tmp_path, **{"xl/workbook.xml": book}))


def test_a_workbook_is_opened_once_for_all_of_its_sheets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = "".join(f'<sheet name="t{at}" sheetId="{at}" r:id="r1"/>' for at in range(2, 40))
    book = XLSX_PARTS["xl/workbook.xml"].replace("</sheets>", f"{more}</sheets>")
    opened = []
    unpacked = spreadsheet.unpacked
    monkeypatch.setattr("unround.tables.spreadsheet.unpacked", lambda path: opened.append(path) or unpacked(path))
    assert len(tables_of(xlsx(tmp_path, **{"xl/workbook.xml": book}))) == 39
    assert len(opened) == 1


def test_what_takes_memory_is_counted_over_all_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreadsheet, "MOST_CELLS", 10_000)
    strings = XLSX_PARTS["xl/sharedStrings.xml"].replace("</sst>", "<si/>" * 10_000 + "</sst>")
    assert "over 10,000 elements" in refused(xlsx(tmp_path, **{"xl/sharedStrings.xml": strings}))
    assert "over 10,000 elements" in refused(xlsx(tmp_path, "<row/>" * 10_000))
    assert FAR in refused(xlsx(tmp_path, **{"elsewhere/sheet9.XML": SHEET.replace("C3", "ALL10")}))
    half = f"<table:table-row>{f'<{ODS_CELL}/>' * 69}<{ODS_CELL} office:value-type='float'/></table:table-row>" * 80
    assert Workbook(ods(tmp_path, half)).grid().cells.shape == (2, 2)  # without a value there is nothing
    assert FAR in refused(ods(tmp_path, f"{half}</table:table><table:table>{half}"))


def test_parts_that_unpack_to_more_than_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreadsheet, "MOST_BYTES", 20_000)
    assert "unpacks to" in refused(xlsx(tmp_path, " " * 20_000))
    assert "unpacks to" in refused(xlsx(tmp_path, **{"a.xml": f"<a>{' ' * 12_000}</a>", "b.xml": f"<a>{' ' * 12_000}</a>"}))
    monkeypatch.undo()
    monkeypatch.setattr(spreadsheet, "SUSPICIOUS", 1 << 16)
    assert "unpacks to" in refused(xlsx(tmp_path, " " * (1 << 20)))
    small = put(tmp_path / "lying.xlsx", {**XLSX_PARTS, "xl/worksheets/sheet1.xml": SHEET})
    data = small.read_bytes()
    size = len(SHEET).to_bytes(4, "little")
    assert data.count(size) == 2  # before the part, and in the list at the end
    small.write_bytes(data.replace(size, (100).to_bytes(4, "little")))
    assert "cannot be read" in refused(small)


def test_workbooks_that_no_program_makes(tmp_path: Path) -> None:
    twice = {"xl/Worksheets/sheet1.xml": SHEET}
    assert "packed as no program" in refused(xlsx(tmp_path, **twice))
    merged = SHEET.replace("</mergeCells>", '<mergeCell ref="A1:XFD1048576"/>' * 50_000 + "</mergeCells>")
    assert "over 50,000 merged" in refused(xlsx(tmp_path, **{"xl/worksheets/sheet1.xml": merged}))
    assert "XLSB" in refused(xlsx(tmp_path, **{"xl/workbook.bin": ""}))


def test_the_far_corner_of_an_old_workbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Sheet:
        name, visible, total_height, total_width = "s", "SheetVisibleEnum.Visible", 65_536, 256

        def iter_rows(self) -> list[list[str]]:
            return [["Region", "Total"], ["A", "21"]]

    class Book:
        sheets_metadata = (Sheet(),)

        @classmethod
        def from_path(cls, _: Path) -> Book:
            return cls()

        def get_sheet_by_name(self, _: str) -> Sheet:
            return Sheet()

    monkeypatch.setattr("python_calamine.CalamineWorkbook", Book)
    (tmp_path / "t.xls").write_bytes(b"\xd0\xcf\x11\xe0")
    assert "would take 16,777,216 cells" in refused(tmp_path / "t.xls")


def test_a_sheet_that_cannot_be_read_is_not_one_without_a_table(tmp_path: Path) -> None:
    """A text beyond the list of texts, a merged range that is none: whatever else the file holds, it is not all read."""
    for odd in (SHEET.replace("<sheetData>", '<sheetData><row><c t="s"><v>999</v></c></row>'), _merged("A:E"), _merged("")):
        with pytest.raises(InputError, match="cannot be read as a spreadsheet"):
            tables_of(xlsx(tmp_path, **{"xl/worksheets/sheet1.xml": odd}))


def _merged(place: str) -> str:
    return SHEET.replace("</sheetData>", f'</sheetData><mergeCells><mergeCell ref="{place}"/></mergeCells>')
