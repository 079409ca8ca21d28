"""What people write into tables: flags, ranges, headings, notes; everything is read, or said not to be."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import xlsxwriter

import unround
from unround.mechanisms import Nearest, Rounding
from unround.release import What
from unround.tables import Described
from unround.tables.notes import read_notes
from unround.tables.tidy import tables_of

NAMES = [
    "Ashford",
    "Barrow",
    "Castle",
    "Dunmore",
    "Eastgate",
    "Fairfield",
    "Greenlea",
    "Harbour",
    "Iron",
    "Jesmond",
    "King",
    "Lark",
]


def put(folder: Path, lines: list[str], name: str = "draft.csv") -> Path:
    file = folder / name
    file.write_text("\n".join(lines))
    return file


def by_sex(total: str = "", step: int = 1) -> list[str]:
    rows = [(name, 7 * at + 20, 5 * at + 31) for at, name in enumerate(NAMES)]
    rows = [(name, men * step, women * step) for name, men, women in rows]
    lines = ["District,Total,Men,Women", *(f"{name},{men + women},{men},{women}" for name, men, women in rows)]
    if total:
        men, women = sum(row[1] for row in rows), sum(row[2] for row in rows)
        lines.append(f"{total},{men + women},{men},{women}")
    return lines


def sums(described: Described, axis: str) -> dict[str, int]:
    used = [verdict for verdict in described.verdicts if verdict.used and verdict.axis == axis]
    return {verdict.total: len(verdict.parts) for verdict in used}


def entries(described: Described, what: What) -> list[str]:
    return [entry.place for entry in described.release.account if entry.what is what]


def test_ranges_in_place_of_counts_bound_them(tmp_path: Path) -> None:
    table = put(tmp_path, [*by_sex(), "E1,8,<5,1-4"])
    rows = unround.audit(table, tmp_path / "audit", mechanism="exact").findings.filter(pl.col("district") == "E1")
    assert sorted(rows["low"].to_list()) == [4, 4]


@pytest.mark.parametrize(
    "total", ["Total", "All districts", "Whole country", "England", "Gesamt", "Ensemble", "Totaal", "Somewhere else"]
)
def test_the_last_row_is_a_total_by_its_name_or_by_its_counts(tmp_path: Path, total: str) -> None:
    assert sums(unround.describe(put(tmp_path, by_sex(total))), "district") == {total: len(NAMES)}


def test_a_last_row_that_is_a_district_is_no_total(tmp_path: Path) -> None:
    assert sums(unround.describe(put(tmp_path, by_sex())), "district") == {}


@pytest.mark.parametrize("where", ["indented", "above", "below"])
def test_regions_hold_the_districts_below_or_above_them(tmp_path: Path, where: str) -> None:
    districts, lines = by_sex()[1:], ["Area,Total,Men,Women"]
    for region, few in (("North", districts[:4]), ("Centre", districts[4:8]), ("South", districts[8:])):
        sums_ = [str(sum(int(row.split(",")[at]) for row in few)) for at in (1, 2, 3)]
        head = [",".join([region, *sums_])]
        lines += [*few, *head] if where == "below" else [*head, *(f"{'   ' * (where == 'indented')}{row}" for row in few)]
    assert sums(unround.describe(put(tmp_path, lines)), "area") == {"North": 4, "Centre": 4, "South": 4}


@pytest.mark.parametrize("headings", [False, True])
def test_totals_of_regions_that_are_called_alike_are_told_apart(tmp_path: Path, headings: bool) -> None:
    districts, lines = by_sex()[1:], ["Area,Total,Men,Women" if headings else "Region,Area,Total,Men,Women"]
    for region, few in (("North", districts[:5]), ("South", districts[5:])):
        whole = ",".join(["Total", *(str(sum(int(row.split(",")[at]) for row in few)) for at in (1, 2, 3))])
        stub = "" if headings else ","
        first = [f"{region},,,", few[0]] if headings else [f"{region},{few[0]}"]
        lines += [*first, *(f"{stub}{row}" for row in (*few[1:], whole))]
    described = unround.describe(put(tmp_path, lines))
    assert sums(described, "area") == {"Total (North)": 5, "Total (South)": 7}
    (tmp_path / "draft.toml").write_text(described.toml())
    again = [block.areas["parent"].to_list() for block in unround.read(tmp_path / "draft.toml").blocks()]
    assert again == [block.areas["parent"].to_list() for block in described.release.blocks()]


def test_ages_over_sexes_with_years_in_the_headings(tmp_path: Path) -> None:
    ages = ("All ages", "0-14 years", "15-64 years", "80+ years")
    header = [",".join(["", *(f"{age},," for age in ages)]).rstrip(","), "District" + ",Total,Men,Women" * 4]
    rows = []
    for at, name in enumerate(NAMES):
        cells = [((7 * at * at + 4 * age) % 31 + 11, (5 * at * at + 3 * age) % 23 + 9) for age in range(3)]
        men, women = sum(cell[0] for cell in cells), sum(cell[1] for cell in cells)
        rows.append(",".join([name, *(f"{m + w},{m},{w}" for m, w in [(men, women), *cells])]))
    described = unround.describe(put(tmp_path, ["A table of ages", *header, *rows]))
    assert (sums(described, "age"), sums(described, "sex")) == ({"All ages": 3}, {"Total": 2})
    assert entries(described, What.UNKNOWN) == []


def test_flags_are_numbers_and_an_unrounded_one_gives_itself_away(tmp_path: Path) -> None:
    lines = [row.replace("Castle,", "Castle ,") for row in by_sex(step=5)]
    lines[4] = lines[4].replace(",", "*,", 2).replace("Dunmore*", "Dunmore")
    lines[6] = "Fairfield,70,1r,70"
    described = unround.describe(put(tmp_path, [*lines, "r = revised"]))
    assert entries(described, What.EXACT) == ["cells of Fairfield, Men"]
    assert unround.review(put(tmp_path, lines), repairs=()).decision in ("revise", "stop")


@pytest.mark.parametrize(
    ("note", "how"),
    [
        ("Counts are randomly rounded to base 3.", Rounding(3)),
        ("Figures have been rounded to the nearest 5.", Nearest(5)),
        ("Die Werte sind auf Vielfache von 5 gerundet (Zufallsrundung).", Rounding(5)),
        ("Effectifs arrondis aléatoirement à un multiple de 3.", Rounding(3)),
        ("Percentages may not add to 100 due to rounding.", None),
        ("Total is not rounded.", None),
    ],
)
def test_notes_say_how_counts_were_rounded(note: str, how: object) -> None:
    assert read_notes([note]).mechanism == how


def test_a_dash_is_nil_where_a_note_says_so(tmp_path: Path) -> None:
    lines = [*by_sex(), "Moor,30,-,30", "- = nil"]
    described = unround.describe(put(tmp_path, lines))
    assert described.draft.keys["symbols"] == {"-": 0}
    assert "- stands for 0; so a note says" in [entry.why for entry in described.release.account]


def test_a_note_that_the_counts_contradict_is_not_believed(tmp_path: Path) -> None:
    described = unround.describe(put(tmp_path, [*by_sex(step=3), "Counts are randomly rounded to base 5."]))
    assert entries(described, What.UNKNOWN) == ["notes"]


def test_numbers_of_which_nothing_is_known_are_said_to_be_left_out(tmp_path: Path) -> None:
    lines = by_sex(step=5)
    file = put(tmp_path, [f"{lines[0]},Ref", *(f"{row},{41 + 7 * at % 13}" for at, row in enumerate(lines[1:]))])
    described = unround.describe(file)
    (entry,) = [one for one in described.release.account if one.what is What.UNKNOWN]
    assert (entry.place, entry.used) == ("column E: Ref", False)
    assert '[[ignore]] column = "Ref"' in entry.settle
    toml = tmp_path / "draft.toml"
    toml.write_text(described.toml().replace('because = ""', 'because = "a number of ours"'))
    assert [one.what for one in unround.read(toml).account if "Ref" in one.place] == [What.SILENT]


def test_those_who_answered_no_are_counted(tmp_path: Path) -> None:
    lines = ["Place,Households,Yes,No", *(row for row in by_sex()[1:])]
    described = unround.describe(put(tmp_path, lines))
    assert sums(described, "column") == {"Households": 2}


def test_every_table_of_a_file_is_read_or_named(tmp_path: Path) -> None:
    other = [f"{name},{30 + at},{10 + at},20" for at, name in enumerate(NAMES)]
    file = put(tmp_path, ["Table 1", *by_sex(), "", "Table 2", "District,All homes,Owned,Rented", *other])
    tables = [unround.describe(file, header=place.header) for place in tables_of(file)]
    assert [sums(table, table.axes.across[0].name) for table in tables] == [{"Total": 2}, {"All homes": 2}]
    assert entries(unround.describe(file), What.UNKNOWN) == ["rows 18–29"]


def test_formulas_without_a_value_are_not_taken_for_nothing(tmp_path: Path) -> None:
    book = xlsxwriter.Workbook(str(tmp_path / "t.xlsx"))
    sheet = book.add_worksheet("T")
    for at, line in enumerate(by_sex()):
        for column, cell in enumerate(line.split(",")):
            sheet.write(at, column, int(cell) if cell.isdigit() else cell)
    sheet.write(13, 0, "Total")
    for column in "BCD":
        sheet.write_formula(f"{column}14", f"=SUM({column}2:{column}13)")
    book.close()
    (entry,) = [one for one in unround.describe(tmp_path / "t.xlsx").release.account if one.what is What.UNKNOWN]
    assert (entry.place, entry.why) == ("cells B14, C14, D14", "a formula whose value is not in the file")


def test_percentages_beside_counts_are_figures(tmp_path: Path) -> None:
    lines = ["District,All homes,Owned,Rented,Owned (%),Rented (%)"]
    for at, name in enumerate(NAMES):
        owned, rented = 37 + 3 * at, 24 + 2 * at
        shares = [round(100 * part / (owned + rented), 1) for part in (owned, rented)]
        lines.append(f"{name},{owned + rented},{5 * (owned // 5)},{5 * (rented // 5)},{shares[0]},{shares[1]}")
    described = unround.describe(put(tmp_path, lines))
    assert [figure["numerator"] for figure in described.draft.keys["figures"]] == ["Owned", "Rented"]
    assert [figure.is_evidence for figure in described.structure.figures] == [True, True]


def test_a_total_that_includes_others_is_not_the_sum_of_what_is_shown(tmp_path: Path) -> None:
    described = unround.describe(
        put(tmp_path, [*by_sex(), "The total includes persons of another gender, who are not shown."])
    )
    assert [verdict.used for verdict in described.verdicts] == [False]


def test_one_file_describes_a_table_and_decides_on_its_sums(tmp_path: Path) -> None:
    toml = tmp_path / "draft.toml"
    toml.write_text(unround.describe(put(tmp_path, by_sex()), mechanism="exact").toml())
    assert unround.check(toml).structure.equations
    with toml.open("a") as file:
        file.write('\n[[sums]]\nuse = false\ntotal = "Total"\nparts = ["Men", "Women"]\n')
    assert not unround.check(toml).structure.equations


def test_a_frame_is_read_as_its_file_is(tmp_path: Path) -> None:
    file = put(tmp_path, by_sex("All districts"))
    by_file, by_frame = unround.describe(file), unround.describe(pl.read_csv(file))
    assert by_file.verdicts == by_frame.verdicts
    assert by_file.draft.keys["axes"] == by_frame.draft.keys["axes"]
