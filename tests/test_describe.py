"""Tables that nobody described: made as people make them, with a known truth, and described as they were meant."""

from __future__ import annotations

import json
import random
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import unround
from tests import tables
from tests.conftest import Run
from tests.shapes import examples
from unround.errors import InputError
from unround.mechanisms import Exact, Rounding
from unround.release import NOT_APPLICABLE, NOT_AVAILABLE, SUPPRESSED, Counts, Release
from unround.tables import Question, describe, read

AGES = ("0-14", "15-64", "65+")


def counts(release: Release) -> Counts:
    return np.concatenate([block.counts for block in release.blocks()])


def sums(keys: dict[str, Any]) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """Return the sums of a description, by axis."""
    return {
        name: [(sum_["total"], tuple(sum_["parts"])) for sum_ in axis.get("sums", [])] for name, axis in keys["axes"].items()
    }


def published(release: Release, drawn: tables.Drawn, ages: tuple[str, ...], sexes: tuple[str, ...]) -> None:
    """Assert that every count of a drawn table stands where it should."""
    counts_read, index = counts(release), {column.codes: at for at, column in enumerate(release.columns)}
    assert len(index) == 12
    for a, age in enumerate(ages):
        for s, sex in enumerate(sexes):
            assert counts_read[:, index[age, sex]].tolist() == drawn.published[:, a, s].tolist(), (age, sex)


# Five files as people make them


def test_a_sheet_with_a_title_and_two_header_rows(tmp_path: Path) -> None:
    drawn = tables.draw(exact=True)
    described = describe(tables.draft_xlsx(tmp_path / "draft.xlsx", drawn))
    keys = described.draft.keys
    assert (keys["sheet"], keys["header"], keys["rows"]) == ("Table 1", [3, 4], [5, 44])
    assert sums(keys) == {"region": [], "age": [("Total", AGES)], "sex": [("Total", ("Men", "Women"))]}
    assert (keys["areas"], described.draft.suggested["default"]) == (["region"], "rounding:3")
    assert described.draft.suggested["exact"] == [{"age": "Total", "sex": "Total"}]
    published(described.release, drawn, (*AGES, "Total"), ("Men", "Women", "Total"))
    assert set(described.structure.mechanisms) == {Rounding(3), Exact()}


def test_the_same_sheet_as_ods(tmp_path: Path) -> None:
    drawn = tables.draw(exact=True)
    xlsx = describe(tables.draft_xlsx(tmp_path / "draft.xlsx", drawn))
    ods = describe(tables.write_ods(tmp_path / "draft.ods", tables.two_header_rows(drawn)))
    assert {**ods.draft.keys, "sheet": "Table 1"} == xlsx.draft.keys
    assert counts(ods.release).tolist() == counts(xlsx.release).tolist()


def test_a_wide_csv_whose_names_say_age_and_sex_at_once(tmp_path: Path) -> None:
    drawn = tables.draw(seed=2)
    described = describe(tables.wide_csv(tmp_path / "wide.csv", drawn))
    keys = described.draft.keys
    assert sums(keys) == {"region": [], "age": [("total", AGES)], "sex": [("total", ("Men", "Women"))]}
    assert keys["axes"]["region"] == {"column": "Code", "name": "Region"}
    assert keys["counts"]["Women 15-64"] == {"age": "15-64", "sex": "Women"}
    assert "Share of women (%)" not in keys["counts"]
    published(described.release, drawn, (*AGES, "total"), ("Men", "Women", "total"))
    areas = next(iter(described.release.blocks())).areas
    assert areas.select("region", "region_name").row(0) == ("001", "Region 01")


def test_sdmx_csv_is_known_by_the_names_of_its_columns(tmp_path: Path) -> None:
    drawn = tables.draw(seed=3, base=5, mean=400)
    described = describe(tables.sdmx_csv(tmp_path / "sdmx.csv", drawn))
    keys = described.draft.keys
    assert (keys["value"], keys["status"], described.draft.suggested["default"]) == ("OBS_VALUE", "OBS_STATUS", "rounding:5")
    assert sums(keys) == {
        "ref_area": [],
        "age": [("_T", ("Y0T14", "Y15T64", "Y_GE65"))],
        "sex": [("_T", ("M", "F"))],
    }
    assert int((counts(described.release) == SUPPRESSED).sum()) == 3  # the status says why these cells are empty
    assert described.answers == ()


def test_a_table_of_statistics_canada(tmp_path: Path) -> None:
    """Its columns of codes, units and vectors are told from what is counted; a sign beside an empty cell says why."""
    drawn = tables.draw(seed=5, base=5, mean=400)
    ages = {"0-14": "0 to 14 years", "15-64": "15 to 64 years", "65+": "65 years and over", "Total": "Total, all ages"}
    sexes = {"Men": "Men+", "Women": "Women+", "Total": "Total - Gender"}
    lines = ["REF_DATE,GEO,DGUID,Gender,Age group,UOM,SCALAR_ID,VECTOR,COORDINATE,VALUE,STATUS,SYMBOL,DECIMALS"]
    for at, (region, age, sex, count) in enumerate(tables.long_rows(drawn)):
        shown = ",x" if at in (7, 99) else f"{count},"
        place = f'{region},2021A0005{region[-2:]},{sexes[sex]},"{ages[age]}"'
        lines.append(f"2021,{place},Persons,0,v{466669 + at},{at // 12 + 1}.{at % 12 + 1},{shown},,0")
    described = describe(put(tmp_path, "17100005.csv", "\n".join(lines) + "\n"))
    keys = described.draft.keys
    assert (keys["value"], keys["status"], len(keys["areas"])) == ("VALUE", "STATUS", 1)
    assert sums(keys)["age_group"] == [("Total, all ages", ("0 to 14 years", "15 to 64 years", "65 years and over"))]
    assert keys["axes"]["geo"] == {"column": "DGUID", "name": "GEO"}
    assert sums(keys)["gender"] == [("Total - Gender", ("Men+", "Women+"))]
    assert int((counts(described.release) == SUPPRESSED).sum()) == 2
    assert described.answers == ()


def test_a_german_csv_with_points_between_thousands(tmp_path: Path) -> None:
    drawn = tables.draw(seed=4, mean=3000)
    described = describe(tables.semicolon_csv(tmp_path / "orte.csv", drawn))
    keys = described.draft.keys
    assert (keys["thousands"], keys["decimal"], keys["areas"]) == (".", ",", ["gemeinde"])
    ages = ("unter 15 Jahre", "15 bis unter 65 Jahre", "65 Jahre und mehr")
    assert sums(keys) == {
        "gemeinde": [],
        "altersgruppe": [("Insgesamt", ages)],
        "sex": [("Insgesamt", ("männlich", "weiblich"))],
    }
    published(described.release, drawn, (*ages, "Insgesamt"), ("männlich", "weiblich", "Insgesamt"))
    assert counts(described.release).max() > 1000


@pytest.mark.parametrize("mark", [".", ",", " ", "\u00a0", "\u202f", "\u2009", "'"])
@pytest.mark.parametrize("mean", [2_000, 400_000])
def test_thousands_are_marked_in_many_ways(mark: str, mean: float, tmp_path: Path) -> None:
    """Also where every count has thousands; a rate beside them, with a comma for its decimals, is left out."""
    drawn = tables.draw(seed=4, mean=mean)
    lines = ["Commune;Ensemble;Hommes;Femmes;Taux"]
    for at, region in enumerate(drawn.regions):
        shown = [f"{drawn.at(at, 3, sex):,}".replace(",", mark) for sex in (2, 0, 1)]
        lines.append(";".join([region, *shown, "12.5" if mark == "," else "12,5"]))
    described = describe(put(tmp_path, "t.csv", "\n".join(lines)))
    assert counts(described.release).tolist() == drawn.published[:, 3, [2, 0, 1]].tolist()
    assert sums(described.draft.keys)["sex"] == [("Ensemble", ("Hommes", "Femmes"))]
    assert described.draft.keys["ignore"] == [{"column": "Taux", "because": ""}]
    assert counts(read_toml(tmp_path, described.toml())).tolist() == counts(described.release).tolist()


@pytest.mark.parametrize("kind", ["pandas", "polars", "wide", "levels"])
def test_frames(kind: str) -> None:
    drawn = tables.draw(seed=6)
    rows = tables.long_rows(drawn)
    long = pd.DataFrame(rows, columns=["town", "age", "sex", "n"])
    frame: Any = long
    if kind == "polars":
        frame = pl.DataFrame(rows, schema=["town", "age", "sex", "n"], orient="row")
    elif kind == "levels":
        frame = long.pivot(index="town", columns=["age", "sex"], values="n")
    elif kind == "wide":
        frame = long.pivot(index=["town", "age"], columns="sex", values="n").reset_index()
    described = describe(frame)
    assert sums(described.draft.keys) == {"town": [], "age": [("Total", AGES)], "sex": [("Total", ("Men", "Women"))]}
    published(described.release, drawn, (*AGES, "Total"), ("Men", "Women", "Total"))
    assert described.release.source == "the frame"


# What is written works at once, and says the same


@pytest.mark.parametrize("make", ["draft_xlsx", "wide_csv", "sdmx_csv", "semicolon_csv"])
def test_the_draft_reads_like_the_description_on_the_way(make: str, run: Run, tmp_path: Path) -> None:
    suffix = "xlsx" if make == "draft_xlsx" else "csv"
    file = getattr(tables, make)(tmp_path / f"t.{suffix}", tables.draw(seed=7, exact=True, mean=300))
    ran = run("describe", str(file), "-o", str(tmp_path / "t.toml"))
    assert ran.code == 0
    assert "Sums: 2" in ran.out
    assert f"unround audit {tmp_path / 't.toml'}" in ran.err
    described, direct = read(file, toml=tmp_path / "t.toml"), describe(file).release
    assert [column.codes for column in described.columns] == [column.codes for column in direct.columns]
    assert described.proposals == direct.proposals  # what is written down is not declared by that
    assert counts(described).tolist() == counts(direct).tolist()
    assert [column.mechanism for column in described.columns] == [column.mechanism for column in direct.columns]
    # Beside the table, under its name, it is found by itself; and in place of the table.
    assert read(file).file_format == read(tmp_path / "t.toml").file_format == "described"
    # It is not written over.
    again = run("describe", str(file), "-o", str(tmp_path / "t.toml"))
    assert again.code == 2
    assert "exists, and may hold work of yours" in again.err


def test_audits_take_such_a_file_directly(run: Run, tmp_path: Path) -> None:
    drawn = tables.draw(regions=60, seed=8, exact=True)
    file = tables.draft_xlsx(tmp_path / "draft.xlsx", drawn)
    ran = run("audit", str(file), "-o", str(tmp_path / "audit"))
    assert ran.code == 0, ran.err
    notes = json.loads((tmp_path / "audit" / "summary.json").read_text())["notes"]
    assert f"Check that it is right: unround describe {file}" in notes[0]
    findings = pl.read_parquet(tmp_path / "audit" / "findings.parquet")
    proved = findings.filter(pl.col("kind") == "conditional")
    assert proved.height > 0
    assert proved["assumptions"].str.contains("if counts were rounded to base ", literal=True).all()
    place = {"Men": 0, "Women": 1, "Total": 2}
    ages = {age: at for at, age in enumerate((*AGES, "Total"))}
    for row in proved.iter_rows(named=True):
        region = drawn.regions.index(row["region"])
        assert drawn.true[region, ages[row["age"]], place[row["sex"]]] == row["value"]
    summary = json.loads((tmp_path / "audit" / "summary.json").read_text())
    assert summary["check"]["basis"] == ["inferred"]  # nobody declared the base


def test_a_frame_is_audited_without_a_word_about_it(tmp_path: Path) -> None:
    frame = pd.DataFrame(tables.long_rows(tables.draw(regions=30, seed=9)), columns=["town", "age", "sex", "n"])
    folder = unround.audit(frame, tmp_path / "audit")
    assert folder.summary["areas"] == 30
    assert len(unround.check(frame).structure.sums) == 7


def test_every_part_of_a_draft_is_valid_toml(tmp_path: Path) -> None:
    rows = [["Age", 'All "quoted"', "Men\\", "Women\t#"], *([f"R{at}", 6 * at, 3 * at, 3 * at] for at in range(1, 30))]
    file = tables.write_xlsx(tmp_path / "odd name.xlsx", rows)
    described = describe(file)
    keys = tomllib.loads(described.toml())
    assert keys["data"] == "odd name.xlsx"
    assert read_toml(tmp_path, described.toml()).columns[0].codes == described.release.columns[0].codes


def read_toml(folder: Path, text: str) -> Release:
    (folder / "made.toml").write_text(text, encoding="utf-8")
    return read(folder / "made.toml")


# What names suggest is believed only if the counts say so


def test_a_total_that_is_none_is_refused() -> None:
    drawn = tables.draw(seed=10)
    rows = [(r, a, s, n + (120 if s == "Total" else 60) * (a == "Total")) for r, a, s, n in tables.long_rows(drawn)]
    described = describe(pl.DataFrame(rows, schema=["region", "age", "sex", "n"], orient="row"))
    verdict = {judged.axis: judged for judged in described.verdicts}
    assert not verdict["age"].used
    assert "impossible in" in verdict["age"].why
    assert verdict["sex"].used
    assert "# Not used (age): Total = 0-14 + 15-64 + 65+" in described.toml()


def test_ages_within_ages_and_those_unknown() -> None:
    rng = np.random.default_rng(3)
    fine = rng.poisson(200, (40, 5))  # 0-4, 5-14, 15-64, 65+, unknown
    true = {
        "All ages": fine.sum(1), "0-14": fine[:, :2].sum(1), "0-4": fine[:, 0], "5-14": fine[:, 1], "15-64": fine[:, 2],
        "65+": fine[:, 3], "Unknown": fine[:, 4],
    }  # fmt: skip
    frame = pl.DataFrame(
        {"county": [f"C{at}" for at in range(40)]} | {a: tables.rounded(n, 5, rng) for a, n in true.items()}
    )
    described = describe(frame)
    assert sums(described.draft.keys)["age"] == [
        ("All ages", ("0-14", "15-64", "65+", "Unknown")),
        ("0-14", ("0-4", "5-14")),
    ]


def test_the_total_of_all_regions_is_their_parent() -> None:
    drawn = tables.draw(regions=20, seed=12)
    true = drawn.true.sum(0)
    rng = np.random.default_rng(1)
    rows = tables.long_rows(drawn)
    country = tables.Drawn(("Total",), true[None], tables.rounded(true[None], 3, rng))
    frame = pl.DataFrame([*rows, *tables.long_rows(country)], schema=["region", "age", "sex", "n"], orient="row")
    described = describe(frame)
    assert sums(described.draft.keys)["region"] == [("Total", drawn.regions)]
    areas = next(iter(described.release.blocks())).areas
    assert set(areas["parent"].drop_nulls()) == {"Total"}
    assert described.release.areas == ("region",)


def test_a_table_with_areas_in_its_header() -> None:
    drawn = tables.draw(regions=25, seed=13)
    frame = pl.DataFrame(
        {"Age": [*AGES, "Total"]} | {region: drawn.published[at, :, 2] for at, region in enumerate(drawn.regions)}
    )
    described = describe(frame)
    assert (described.release.areas, described.release.axes) == (("column",), ("age",))
    assert sums(described.draft.keys)["age"] == [("Total", AGES)]


def test_areas_without_a_heading(tmp_path: Path) -> None:
    drawn = tables.draw(seed=17)
    rows = tables.two_header_rows(drawn)
    rows[2][0] = None
    described = describe(tables.write_xlsx(tmp_path / "t.xlsx", rows))
    assert described.draft.keys["axes"]["area"] == {"column": "column A"}
    assert described.release.areas == ("area",)
    assert counts(read_toml(tmp_path, described.toml())).tolist() == counts(described.release).tolist()


def test_rows_in_groups(tmp_path: Path) -> None:
    """A region stands in the first of its rows only: as merged cells, or with empty ones below."""
    drawn = tables.draw(seed=18)
    rows: list[list[object]] = [["Region", "Age", "Both sexes", "Males", "Females"]]
    for at, region in enumerate(drawn.regions):
        for row, (age, name) in enumerate(((3, "All ages"), (0, "0 to 14"), (1, "15 to 64"), (2, "65 and over"))):
            rows.append([region if row == 0 else None, name, *(drawn.at(at, age, sex) for sex in (2, 0, 1))])
    merged = [(4 * at + 1, 0, 4 * at + 4, 0) for at in range(len(drawn.regions))]
    for file in (tables.write_xlsx(tmp_path / "a.xlsx", rows, merged), tables.write_ods(tmp_path / "b.ods", rows)):
        described = describe(file)
        assert described.draft.keys["axes"]["region"] == {"column": "Region", "fill": "down"}
        published(
            described.release, drawn, ("0 to 14", "15 to 64", "65 and over", "All ages"), ("Males", "Females", "Both sexes")
        )
    rows[3][1] = None
    with pytest.raises(InputError, match="1 row is empty in 'Age', the first of them row 4"):
        describe(tables.write_xlsx(tmp_path / "c.xlsx", rows))


def test_one_total_of_ages_and_of_sexes() -> None:
    drawn = tables.draw(regions=60, seed=19, mean=300)
    names = {
        "age_0_14": (0, 2),
        "age_15_64": (1, 2),
        "age_65_plus": (2, 2),
        "total": (3, 2),
        "male": (3, 0),
        "female": (3, 1),
    }
    counted = {name: drawn.published[:, age, sex] for name, (age, sex) in names.items()}
    described = describe(pl.DataFrame({"geo_code": range(1000, 1060), "geo_name": drawn.regions, **counted}))
    assert sorted(sums(described.draft.keys)["age"]) == [
        ("total", ("age_0_14", "age_15_64", "age_65_plus")),
        ("total", ("male", "female")),
    ]
    assert described.draft.keys["axes"]["geo_code"] == {"name": "geo_name"}


# Where nothing can be known


def test_questions_have_defaults_and_answers_count(tmp_path: Path) -> None:
    drawn = tables.draw(seed=14)
    rows = [[r, a, s, n] for r, a, s, n in tables.long_rows(drawn)]
    rows[5][3], rows[17][3], rows[30][3], rows[31][3] = "-", "(c)", "x", None
    file = tmp_path / "t.csv"
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in [["town", "age", "sex", "n"], *rows]]
    file.write_text("\n".join(lines), encoding="utf-8")
    asked: list[Question] = []

    def answer(question: Question) -> str:
        asked.append(question)
        return {"-": "0", "(c)": "suppressed", "missing": "not applicable"}.get(question.key, "")

    described = describe(file, ask=answer)
    assert {one.key for one in asked} == {"-", "(c)", "missing"}
    flat = counts(described.release)
    assert (int((flat == SUPPRESSED).sum()), int((flat == NOT_APPLICABLE).sum())) == (2, 1)
    keys = described.draft.keys
    assert (keys["symbols"], keys["missing"]) == ({"-": 0, "(c)": "suppressed"}, "not applicable")
    alone = counts(describe(file).release)
    assert (int((alone == SUPPRESSED).sum()), int((alone == NOT_AVAILABLE).sum())) == (1, 3)


def test_the_description_as_json(run: Run, tmp_path: Path) -> None:
    file = tables.semicolon_csv(tmp_path / "t.csv", tables.draw(seed=4, mean=3000))
    report = json.loads(run("describe", str(file), "--json").out)
    assert (report["mechanism"], report["description"]["thousands"]) == ("rounding:3", ".")
    assert [(sum_["axis"], sum_["used"]) for sum_ in report["sums"]] == [("altersgruppe", True), ("sex", True)]
    assert [axis["name"] for axis in report["axes"] if axis["rows"]] == ["gemeinde"]


@pytest.mark.parametrize(("rows", "found"), [("3-4", [3, 4]), ("3,4", [3, 4])])
def test_the_header_can_be_said(run: Run, tmp_path: Path, rows: str, found: list[int]) -> None:
    file = tables.draft_xlsx(tmp_path / "t.xlsx", tables.draw())
    report = json.loads(run("describe", str(file), "--header", rows, "--json").out)
    assert (report["header"], report["rows"]) == (found, [5, 44])
    for wrong in ("0", "b", "5-4", "3-"):
        ran = run("describe", str(file), "--header", wrong)
        assert ran.code == 2
        assert "--header must be rows, counted from 1" in ran.err


def test_several_sheets(run: Run, tmp_path: Path) -> None:
    drawn = tables.draw(seed=15)
    rows = tables.two_header_rows(drawn)
    file = tables.write_xlsx(tmp_path / "two.xlsx", rows, Small=rows[:12])
    assert describe(file).opened.sheet == "Table 1"
    assert describe(file, ask=lambda question: question.choices[0]).opened.sheet == "Small"
    ran = run("check", str(file), "--sheet", "Small", "--json")
    assert json.loads(ran.out)["areas"] == 8
    wrong = run("check", str(file), "--sheet", "Smal")
    assert wrong.code == 2
    assert "has no sheet 'Smal'; its sheets are Small, Table 1" in wrong.err


def test_a_base_that_the_counts_cannot_tell_is_said(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "tiny.csv"
    file.write_text("region,Total,Men,Women\nA,6,3,3\nB,9,3,6\n", encoding="utf-8")
    ran = run("audit", str(file), "-o", str(tmp_path / "audit"))
    assert ran.code == 2
    assert f"unround describe {file} --base 3 -o tiny.toml" in ran.err
    assert run("describe", str(file), "--base", "3", "-o", str(tmp_path / "tiny.toml")).code == 0
    assert run("audit", str(tmp_path / "tiny.toml"), "-o", str(tmp_path / "audit")).code == 0


# What cannot be meant


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def bad_files(folder: Path) -> dict[str, tuple[Path, str]]:
    drawn = tables.draw(regions=12)
    long = tables.long_rows(drawn)
    body = "\n".join(f"{r},{a},{s},{n},{7 * n + at % 5}" for at, (r, a, s, n) in enumerate(long))
    return {
        "empty": (tables.write_xlsx(folder / "empty.xlsx", []), "the sheet 'Table 1' is empty"),
        "text": (tables.write_xlsx(folder / "text.xlsx", [["a", "b"], ["c", "d"]]), "no column of numbers"),
        "merged": (
            tables.write_xlsx(folder / "merged.xlsx", tables.two_header_rows(drawn), [(6, 4, 6, 5)]),
            "the cells E7:F7 are merged",
        ),
        "two values": (put(folder, "two.csv", f"region,age,sex,count,weighted\n{body}\n"), "--value count -o two.toml"),
        "no sum": (
            put(
                folder, "none.csv", "region,dogs,cats\n" + "".join(f"R{n},{3 * n + 3},{7 * n % 11 * 3}\n" for n in range(30))
            ),
            "no sum was found",
        ),
        "rates": (put(folder, "rates.csv", "region,age,rate\nA,all,0.5\nA,young,0.25\nB,all,0.7\n"), "no column of counts"),
        "decimals": (put(folder, "d.csv", "region;Total;Men\nA;1,5;0,75\nB;2,5;1,25\n"), "numbers with decimals"),
        "percentages": (put(folder, "p.csv", "region,Men,Women\nA,40%,60%\nB,51%,49%\n"), "percentages"),
        "no header": (put(folder, "n.csv", "R1,5,10\nR2,10,5\n"), "has no header"),
        "nameless": (put(folder, "one.csv", "n\n5\n10\n"), "nothing that says what they count"),
        "same names": (put(folder, "same.csv", "region,Total,Total\nA,5,10\n"), "more than one column called 'Total'"),
    }


@pytest.mark.parametrize(
    "kind",
    ["empty", "text", "merged", "two values", "no sum", "rates", "decimals", "percentages", "no header", "nameless",
     "same names"],
)  # fmt: skip
def test_bad_input_is_one_error_and_nothing_is_written(kind: str, run: Run, tmp_path: Path) -> None:
    file, saying = bad_files(tmp_path)[kind]
    before = sorted(tmp_path.iterdir())
    ran = run("audit", str(file), "-o", str(tmp_path / "audit"))
    assert ran.code == 2
    assert ran.err.startswith("error: ")
    assert saying in " ".join(ran.err.split())
    assert "Traceback" not in ran.err
    assert sorted(tmp_path.iterdir()) == before


def test_tables_of_rates_with_a_description_are_refused(run: Run, tmp_path: Path) -> None:
    put(tmp_path, "rates.csv", "region,age,rate\nA,all,0.5\nA,young,0.25\nA,old,0.25\n")
    toml = put(tmp_path, "rates.toml", 'data = "rates.csv"\nvalue = "rate"\n[axes.region]\n[axes.age]\n')
    for command in (["check", str(toml)], ["check", str(toml)], ["audit", str(toml), "-o", str(tmp_path / "audit")]):
        ran = run(*command)
        assert (ran.code, ran.out) == (2, "")
        assert "has no counts: it has 3 columns of numbers with decimals" in ran.err


def test_spreadsheets_that_are_damaged_or_reach_too_far(tmp_path: Path) -> None:
    import xlsxwriter

    broken = tmp_path / "broken.xlsx"
    broken.write_bytes(b"PK\x03\x04junk")
    with pytest.raises(InputError, match="cannot be read as a spreadsheet"):
        describe(broken)
    far = tmp_path / "far.xlsx"
    book = xlsxwriter.Workbook(str(far))
    book.add_worksheet("T").write(1_048_575, 16_383, 5)
    book.close()
    with pytest.raises(InputError, match="reaches to row 1,048,576"):
        describe(far)
    # No program writes columns like this one, but the file would be read so.
    with zipfile.ZipFile(far) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    with zipfile.ZipFile(far, "w") as packed:
        for name, content in parts.items():
            packed.writestr(name, content.replace(b'r="XFD1048576"', b"r = 'zzzzz2'"))
    with pytest.raises(InputError, match="reaches to row 2 and column 12,356,630"):
        describe(far)
    with pytest.raises(InputError, match="is not a spreadsheet, so it has no sheet"):
        describe(put(tmp_path, "t.csv", "a,b\nx,5\n"), sheet="T")


def test_census_files_need_no_description(run: Run, simulated_census: Path) -> None:
    file = simulated_census / "98-401-X2021006_English_CSV_data.csv"
    ran = run("describe", str(file))
    assert ran.code == 2
    assert f"needs no description. Run: unround check {file}" in ran.err


def test_pc_axis(tmp_path: Path) -> None:
    drawn = tables.draw(regions=20, seed=16)
    names = {"region": drawn.regions, "age": (*AGES, "Total"), "sex": ("Men", "Women", "Total")}
    values = "\n".join(
        f'VALUES("{name}")={",".join(chr(34) + one + chr(34) for one in ones)};' for name, ones in names.items()
    )
    numbers = drawn.published.reshape(-1).tolist()
    data = " ".join(map(str, [*numbers[:7], '".."', *numbers[8:]]))
    text = f'CHARSET="ANSI";\nSTUB="region","age";\nHEADING="sex";\nVALUES[sv]("age")="x";\n{values}\nDATA=\n{data};\n'
    file = put(tmp_path, "t.px", text)
    described = describe(file)
    assert sums(described.draft.keys) == {"region": [], "age": [("Total", AGES)], "sex": [("Total", ("Men", "Women"))]}
    assert int((counts(described.release) == NOT_AVAILABLE).sum()) == 1
    assert counts(read_toml(tmp_path, described.toml())).tolist() == counts(described.release).tolist()
    file.write_text(text.replace(" 0 ", " ", 1).replace(f"DATA=\n{numbers[0]} ", "DATA=\n"), encoding="utf-8")
    with pytest.raises(InputError, match="where its variables make 240"):
        describe(file)
    file.write_text(text.replace('"region","age"', '"region","age","age"'), encoding="utf-8")
    with pytest.raises(InputError, match="names the variable 'age' twice in STUB and HEADING"):
        describe(file)


def spoilt(text: str, rng: random.Random) -> str:
    """Return a CSV with a few of the faults that files have."""
    lines, mark = text.split("\n"), ";" if ";" in text else ","
    for _ in range(rng.randint(1, 3)):
        at, column = rng.randrange(len(lines)), rng.randrange(6)
        fault = rng.randrange(7)
        if fault == 0:
            lines.insert(at, rng.choice(["", "A title", mark * 4, '"not closed', mark.join("12345")]))
        elif fault == 1:
            lines = lines[: max(1, at)]
        elif fault == 2:
            lines[at] = lines[at].replace(rng.choice(list(lines[at] or "a")), rng.choice(["", mark, '"', "é", "%", "1.5"]))
        elif fault == 3:
            lines = [mark.join(cell for place, cell in enumerate(line.split(mark)) if place != column) for line in lines]
        elif fault == 4:
            lines = [mark.join(reversed(line.split(mark))) for line in lines]
        elif fault == 5:
            del lines[at]
            lines = lines or [""]
        else:
            lines = [mark.join([*line.split(mark)[:column], "", *line.split(mark)[column:]]) for line in lines]
    return "\n".join(lines)


@pytest.mark.parametrize("make", ["wide_csv", "sdmx_csv", "semicolon_csv"])
def test_spoilt_files_are_refused_or_described_as_the_draft_says(make: str, tmp_path: Path) -> None:
    text = getattr(tables, make)(tmp_path / "whole.csv", tables.draw(regions=8, seed=20)).read_text(encoding="utf-8")
    rng, described, refused = random.Random(make), 0, list[str]()
    for _ in range(examples(16)):
        file = put(tmp_path, "spoilt.csv", spoilt(text, rng))
        try:
            found = describe(file)
        except InputError as problem:
            refused.append(str(problem))
            continue
        again = read_toml(tmp_path, found.toml())
        assert [column.codes for column in again.columns] == [column.codes for column in found.release.columns]
        assert counts(again).tolist() == counts(found.release).tolist()
        described += 1
    assert described > 5
    assert all("spoilt.csv" in one for one in refused)


def test_a_table_too_small_to_test_is_audited_with_what_its_labels_say(tmp_path: Path) -> None:
    """Two rows, and what was published is declared: the sum is taken on trust, and what follows from it is conditional."""
    file = tmp_path / "two.csv"
    file.write_text("District,Total,Men,Women\nNorth,88,35,45\nSouth,60,30,30\n", encoding="utf-8")
    (total,) = unround.check(file, base=5, exact=["Total"]).to_json()["sums"]
    assert total["kept"]
    assert "taken on trust" in total["why"]
    findings = unround.audit(file, base=5, exact=["Total"], out=tmp_path / "audit").findings
    assert set(findings.filter(pl.col("district") == "North").select("sex", "value", "kind").rows()) == {
        ("Men", 39, "conditional"),
        ("Women", 49, "conditional"),
    }


def test_columns_beside_the_sexes_add_up_to_the_same_total() -> None:
    """Three fives under an exact total of 3 are three ones, though labels name only the sexes as parts of it."""
    draws = random.Random(7)
    lines: list[list[int]] = []
    for _ in range(14):
        total = draws.randint(150, 900)
        men, employed, unemployed = total // 2 + draws.randint(-9, 9), 55 * total // 100, draws.randint(12, 40)
        counts = men, total - men, employed, unemployed, total - employed - unemployed
        lines.append([total, *(5 * ((count + draws.randint(0, 4)) // 5) for count in counts)])
    lines.append([3, 5, 0, 5, 5, 5])
    heads = ("Total", "Men", "Women", "Employed", "Unemployed", "Not in labour force")
    table = pl.DataFrame(
        {"town": [f"Town {at}" for at in range(15)]} | dict(zip(heads, zip(*lines, strict=True), strict=True))
    )
    assert sums_of(unround.describe(table, base=5)) == {"Total = Men + Women", f"Total = {' + '.join(heads[3:])}"}
    assert "exact: column Total" in str(unround.describe(table, base=5))
    workers = pl.when(pl.col("Total") == 3).then(5).otherwise(pl.col("Employed") + pl.col("Unemployed"))
    force = table.with_columns(workers.alias("Labour force"))
    headed = force.select("town", *heads[:3], "Labour force", *heads[3:])
    assert {
        "Labour force = Employed + Unemployed",
        "Total = Labour force + Not in labour force",
    } < sums_of(unround.describe(headed, base=5))
    others = table.with_columns((pl.col("Unemployed") * 3).alias("Unemployed"))  # which adds up to nothing
    assert sums_of(unround.describe(others, base=5)) == {"Total = Men + Women"}
    reviewed = unround.review(table, base=5, repairs=())
    assert reviewed.decision == "stop"
    assert "3 counts of one or two" in str(reviewed)


def sums_of(described: Any) -> set[str]:
    """Return the sums that a description uses, as people read them."""
    return {verdict.shown for verdict in described.verdicts if verdict.used}
