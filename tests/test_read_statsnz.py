"""Stats NZ long tables: made-up ones for every rule, real ones for all of them at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unround.errors import InputError
from unround.release import ABSENT, NOT_AVAILABLE, SUPPRESSED, Counts, Release
from unround.tables import matches, read, statsnz
from unround.tables.hierarchy import with_areas
from unround.tables.source import Source
from unround.tables.statsnz import understand

GROUPS = """\
usually_resident_population_count,
census_night_population_count,
sex,1_male_curp
sex,2_female_curp
sex,total_curp
age,01_0_to_4_years_curp
age,02_5_years_and_over_curp
age,total_curp
age,by_sex_01_0_to_4_years_1_male_curp
age,by_sex_01_0_to_4_years_2_female_curp
age,by_sex_02_5_years_and_over_1_male_curp
age,by_sex_02_5_years_and_over_2_female_curp
age,by_sex_total_1_male_curp
age,by_sex_total_2_female_curp
age,by_sex_total_curp
age,by_sex_median_age_1_male_curp
smoking,01_smoker_curp_15years_and_over
smoking,02_other_curp_15years_and_over
smoking,total_stated_curp_15years_and_over
smoking,99_not_elsewhere_included_curp_15years_and_over
smoking,total_curp_15years_and_over
travel_by_workplace_address,counts_001_bus_curp_15years_and_over
travel_by_workplace_address,counts_002_car_curp_15years_and_over
travel_by_workplace_address,counts_total_curp_15years_and_over
travel_by_workplace_address,proportions_001_bus_curp_15years_and_over
travel_by_workplace_address,counts_012_ferry_curp_15years_and_over
class,level_1_1_high_curp
class,level_1_2_low_curp
class,level_2_11_very_high_curp
class,level_2_12_rather_high_curp
class,total_curp
answers_total_responses,level_1_1_yes_curp
answers_total_responses,level_2_11_yes_indeed_curp
answers_total_responses,level_2_12_yes_please_curp
answers_total_responses,total_stated_curp
answers_total_responses,9_not_stated_curp
answers_total_responses,total_curp
strange,something_else
ages_summed,all_curp
"""
NAMES = [line.partition(",")[::2] for line in GROUPS.splitlines()]
DECIMAL = ("ages_summed", "all_curp")
FERRY = ("travel_by_workplace_address", "counts_012_ferry_curp_15years_and_over")


def text(areas: tuple[str, ...] = ("7001", "7002", "total"), times: int = 1) -> str:
    lines = ["code,name,variable,variable_group,count"]
    for area in areas:
        for number, (variable, group) in enumerate(NAMES):
            count = "" if (variable, group) == FERRY else "1.5" if (variable, group) == DECIMAL else str(3 * number * times)
            lines.append(f'{area},"Place, {area}",{variable},{group},{count}')
    return "\n".join(lines) + "\n"


def load(folder: Path, data: str | None = None, name: str = "nz-2013-x-sa2.csv", areas: Path | None = None) -> Release:
    path = folder / name
    path.write_text(text() if data is None else data, encoding="utf-8")
    release = statsnz.load(Source(path))
    return release if areas is None else with_areas(release, areas)


def counts(release: Release) -> Counts:
    return np.concatenate([block.counts for block in release.blocks()])


def frame(release: Release) -> pl.DataFrame:
    return pl.concat([block.areas for block in release.blocks()])


def sums(release: Release) -> dict[str, set[str]]:
    key = [column.key for column in release.columns]
    parts: dict[str, set[str]] = {}
    for item in release.proposals:
        parts.setdefault(item.origin, set()).add(f"{key[item.total]} = {' + '.join(key[part] for part in item.parts)}")
    return parts


def test_men_and_women_are_columns_of_their_group(tmp_path: Path) -> None:
    release = load(tmp_path)
    assert (release.file_format, release.axes, release.areas) == ("statsnz", ("characteristic_id", "sex"), ("region",))
    keys = [column.key for column in release.columns]
    assert keys[:14] == [
        "usually_resident_population_count",
        "census_night_population_count",
        "sex:total_curp",
        "sex:total_curp/men",
        "sex:total_curp/women",
        "age:01_0_to_4_years_curp",
        "age:01_0_to_4_years_curp/men",
        "age:01_0_to_4_years_curp/women",
        "age:02_5_years_and_over_curp",
        "age:02_5_years_and_over_curp/men",
        "age:02_5_years_and_over_curp/women",
        "age:total_curp",
        "age:total_curp/men",
        "age:total_curp/women",
    ]
    at = release.index["age:01_0_to_4_years_curp/women"]
    assert release.columns[at].codes == ("age:01_0_to_4_years_curp", "women")
    assert counts(release)[:, at].tolist() == [3 * NAMES.index(("age", "by_sex_01_0_to_4_years_2_female_curp"))] * 3


def test_labels_are_for_people(tmp_path: Path) -> None:
    release = load(tmp_path)
    columns = {column.key: (column.label, column.block, column.depth) for column in release.columns}
    assert columns["age:01_0_to_4_years_curp/men"] == ("0 to 4 years", "Age", 1)
    assert columns["age:by_sex_total_curp"][0] == "Total - Age by sex"
    assert columns["smoking:01_smoker_curp_15years_and_over"] == ("Smoker", "Smoking, 15years and over", 2)
    assert columns["smoking:total_curp_15years_and_over"] == (
        "Total - Smoking, 15years and over",
        "Smoking, 15years and over",
        0,
    )
    assert columns["usually_resident_population_count"][0] == "Usually resident population count"
    assert columns["class:level_2_11_very_high_curp"] == ("Very high", "Class", 2)
    assert release.product == "Stats NZ, 2013 Census"


def test_sums_that_names_suggest(tmp_path: Path) -> None:
    sums_of_release = sums(load(tmp_path))
    over = "_curp_15years_and_over"
    travel, answers = "travel_by_workplace_address:counts_", "answers_total_responses:"
    assert sums_of_release["names"] == {
        "age:total_curp = age:01_0_to_4_years_curp + age:02_5_years_and_over_curp",
        "age:total_curp/men = age:01_0_to_4_years_curp/men + age:02_5_years_and_over_curp/men",
        "age:total_curp/women = age:01_0_to_4_years_curp/women + age:02_5_years_and_over_curp/women",
        f"smoking:total_stated{over} = smoking:01_smoker{over} + smoking:02_other{over}",
        f"smoking:total{over} = smoking:total_stated{over} + smoking:99_not_elsewhere_included{over}",
        f"{travel}total{over} = {travel}001_bus{over} + {travel}002_car{over} + {travel}012_ferry{over}",
        "class:total_curp = class:level_1_1_high_curp + class:level_1_2_low_curp",
        "class:level_1_1_high_curp = class:level_2_11_very_high_curp + class:level_2_12_rather_high_curp",
        # The answers of one level overlap, for all to see; those of the next hardly do, and are not taken for a sum.
        f"{answers}total_stated_curp = {answers}level_1_1_yes_curp",
        f"{answers}total_curp = {answers}total_stated_curp + {answers}9_not_stated_curp",
    }
    assert sums_of_release["sex"] == {
        f"{key} = {key}/men + {key}/women"
        for key in ("sex:total_curp", "age:01_0_to_4_years_curp", "age:02_5_years_and_over_curp", "age:total_curp")
    }
    # The same people are counted again and again; those who work somewhere are not those who live there.
    everyone = "usually_resident_population_count"
    again = (
        "sex:total_curp",
        "age:total_curp",
        "age:by_sex_total_curp",
        "class:total_curp",
        "answers_total_responses:total_curp",
    )
    assert sums_of_release["universe"] == {f"{everyone} = {key}" for key in again} | {
        "sex:total_curp/men = age:total_curp/men",
        "sex:total_curp/women = age:total_curp/women",
    }


def test_shares_of_those_who_worked_leave_out_who_did_not(tmp_path: Path) -> None:
    names = ("001_bus", "002_did_not_go_to_work_today", "total_stated", "total")
    groups = [f"counts_{name}_curp" for name in names]
    groups += ["proportions_001_bus_curp", "proportions_worked_today_001_bus_curp"]
    lines = [f"{area},Place,travel,{group},{3 * at + 3}" for area in ("1", "2") for at, group in enumerate(groups)]
    release = load(tmp_path, "\n".join(["code,name,variable,variable_group,count", *lines]) + "\n")
    plain, worked = release.figures
    bus, absent, stated = (f"travel:counts_{name}_curp" for name in names[:3])
    assert (plain.numerator, plain.universe, plain.within, plain.outside) == (bus, stated, "", "")
    assert (worked.numerator, worked.universe, worked.within, worked.outside) == (bus, "", stated, absent)


def test_what_is_no_count_is_left_out_and_said(tmp_path: Path) -> None:
    release = load(tmp_path)
    assert release.left_out == {"numbers with decimals": (":".join(DECIMAL),)}
    median, share = release.figures
    assert (median.name, median.kind) == ("age:by_sex_median_age_1_male_curp", "median")
    assert share.name == "travel_by_workplace_address:proportions_001_bus_curp_15years_and_over"
    # What is hidden in a few small areas may be there; what is blank in many large ones is not.
    assert set(counts(release)[:, release.index[":".join(FERRY)]]) == {SUPPRESSED}
    large = load(tmp_path, text(tuple(map(str, range(10))), times=100))
    assert large.left_out["nothing published for any area"] == (":".join(FERRY),)
    assert any("taken as not asked" in note for note in large.notes)
    assert not any("ferry" in total for total in sums(large)["names"])
    # What is not understood is a column of its own, and told.
    assert "strange:something_else" in release.index
    assert any("strange:something_else" in note for note in release.notes)


def test_blanks_are_suppressed_and_lines_that_are_not_there_are_not(tmp_path: Path) -> None:
    lines = text().replace('7001",sex,1_male_curp,6', '7001",sex,1_male_curp,').splitlines()
    gone = [line for line in lines if not line.startswith('7002,"Place, 7002",sex,2_female')]
    assert len(gone) == len(lines) - 1
    release = load(tmp_path, "\r\n".join(gone) + "\r\n")
    counts_read = counts(release)
    assert counts_read[:, release.index["sex:total_curp/men"]].tolist() == [SUPPRESSED, 6, 6]
    assert counts_read[:, release.index["sex:total_curp/women"]].tolist() == [9, NOT_AVAILABLE, 9]


def test_areas(tmp_path: Path) -> None:
    around = tmp_path / "areas.csv"
    around.write_text(
        "SA1_2018_NAME,SA2_2018_CODE,TA_2018_CODE,RC_2018_CODE\n1,7001,01,A\n2,7001,01,B\n3,7002,02,B\n", encoding="utf-8"
    )
    release = load(tmp_path, areas=around)
    assert frame(release).columns == ["region", "region_name", "level", "parent", "adjustable", "sa2", "ta", "rc"]
    assert frame(release).rows() == [
        ("7001", "Place, 7001", "sa2", "01", None, None, "01", None),
        ("7002", "Place, 7002", "sa2", "02", None, None, "02", "B"),
        ("total", "Place, total", "total", None, None, None, None, None),
    ]
    assert any(note.startswith("1 areas lie within more than one larger area") for note in release.notes)
    assert any(note.startswith("1 areas are not in areas.csv") for note in release.notes)
    assert frame(load(tmp_path, name="other.csv"))["parent"].to_list() == [None, None, None]
    assert load(tmp_path, name="other.csv").product == "Stats NZ census tables"
    around.write_text("SA2_2018_CODE,TA_2018_CODE\n9,1\n", encoding="utf-8")
    with pytest.raises(InputError, match="has none of the areas in the table"):
        frame(load(tmp_path, areas=around))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("variable_group", "group", "Stats NZ's tables have code, name, variable, variable_group, count"),
        ("7002", "7001", "counts more than once, the first of them usually_resident_population_count"),
        ("7002,", ",", "39 lines without an area or a variable"),
    ],
)
def test_what_is_no_such_table(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, text().replace(old, new))
    assert said in str(caught.value)


def test_an_empty_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a header but no rows"):
        load(tmp_path, "code,name,variable,variable_group,count\n")


def test_detection() -> None:
    assert matches("statsnz", "\ufeffcode,name,variable,variable_group,count\r\n1,", "anything.csv")
    assert matches("statsnz", '"code";"name";"variable";"variable_group";"count"\n', "anything.csv")
    assert not matches("statsnz", "code,name,variable,count\n", "nz.csv")
    assert not matches("statsnz", "", "nz.csv")


# The real ones

FILES = ["2013-individual-sa2", *(f"{year}-individual-{level}" for year in (2013, 2018) for level in ("ta", "rc", "ward"))]


@pytest.mark.parametrize("name", FILES)
def test_real_tables(census_data: Path, name: str) -> None:
    path = census_data / f"nz-{name}.csv.gz"
    release = statsnz.load(Source(path))
    counts_read = counts(release)
    raw = pl.read_csv(path, infer_schema=False)
    areas = {"sa2": 2254, "ta": 69, "rc": 18, "ward": 246}[name.rpartition("-")[2]]
    assert counts_read.shape == (areas, len(release.columns))
    assert release.product == f"Stats NZ, {name[:4]} Census"

    # Nothing is dropped: every variable and group is a column, or left out by name; and every count is where it belongs.
    groups = raw.select("variable", pl.col("variable_group").fill_null("")).unique().rows()
    left_out = [label for labels in release.left_out.values() for label in labels]
    left_out += [figure.name for figure in release.figures]
    assert len(groups) == len(release.columns) + len(left_out)
    assert len(set(left_out)) == len(left_out)
    codes = frame(release)["region"].to_list()
    rows = {code: at for at, code in enumerate(codes)}
    parts = raw.with_columns(pl.col("variable_group").fill_null("")).partition_by("variable", "variable_group", as_dict=True)
    for (variable, group), cells in parts.items():
        one = understand(variable, group)
        if f"{variable}:{group}".rstrip(":") in left_out:
            continue
        at = release.index[one.id if one.sex == "total" else f"{one.id}/{one.sex}"]
        wanted = cells["count"].cast(pl.Int64).fill_null(SUPPRESSED).to_numpy()
        assert (counts_read[[rows[code] for code in cells["code"]], at] == wanted).all()

    # Base 3: what is left is multiples of it.
    shown = counts_read[counts_read > ABSENT]
    assert (shown % 3 == 0).all()
    ages = [
        column for column in release.columns if column.codes[0].startswith("age_5_year_groups:") and column.codes[1] == "men"
    ]
    assert len(ages) == 19
    assert all(f"{column.codes[0]}/women" in release.index and column.codes[0] in release.index for column in ages)


def test_real_sums(census_data: Path) -> None:
    release = read(census_data / "nz-2013-individual-sa2.csv.gz", areas=census_data / "nz-2018-areas.csv.gz")
    counted = counts(release).astype(np.int64)
    assert frame(release).filter(pl.col("parent").is_null())["region"].to_list() == ["total"]
    # All that is proposed holds but for what people may answer several times over.
    for item in release.proposals:
        there = (counted[:, [item.total, *item.parts]] > ABSENT).all(axis=1)
        gap = counted[there, item.total] - counted[there][:, list(item.parts)].sum(axis=1)
        possible = np.abs(gap) <= 2 * (len(item.parts) + 1)
        variable = release.columns[item.total].codes[0].partition(":")[0]
        assert there.sum() > 2000
        assert possible.all() or "_total_response" in variable
    proved = 0
    for item in release.proposals:
        if item.origin == "sex":
            there = (counted[:, [item.total, *item.parts]] > ABSENT).all(axis=1)
            gap = counted[there, item.total] - counted[there][:, list(item.parts)].sum(axis=1)
            proved += int((np.abs(gap) == 6).sum())
    assert proved > 100
