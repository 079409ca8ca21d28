"""Known formats, however they come: a frame is its file, a part of a file is the file, and a note is not a proof."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import unround
from unround.errors import InputError
from unround.mechanisms import Rounding
from unround.release import SUPPRESSED
from unround.tables import SIMULATED

HEADER = (
    "CENSUS_YEAR,DGUID,ALT_GEO_CODE,GEO_LEVEL,GEO_NAME,TNR_SF,TNR_LF,DATA_QUALITY_FLAG,CHARACTERISTIC_ID,"
    "CHARACTERISTIC_NAME,CHARACTERISTIC_NOTE,C1_COUNT_TOTAL,SYMBOL,C2_COUNT_MEN+,SYMBOL,C3_COUNT_WOMEN+,SYMBOL"
)
PARTS = ("Employed", "Unemployed", "Looking", "Neither")


def profile(path: Path, areas: int, title: str) -> Path:
    """Write a profile in which the last area has a total of 60 for parts of 20, which whole numbers can only be as 16."""
    rng, lines = np.random.default_rng(1), [HEADER]
    for area in range(areas):
        true = rng.integers(20, 60, 4)
        parts = [int(5 * ((one + rng.integers(0, 5)) // 5)) for one in true]
        total = int(5 * ((true.sum() + rng.integers(0, 5)) // 5))
        if area == areas - 1:
            parts, total = [20] * 4, 60
        for number, (name, count) in enumerate(zip((title, *(f"  {part}" for part in PARTS)), (total, *parts), strict=True)):
            code = f"1001{area:04}"
            lines.append(
                f'2021,"2021S0512{code}","{code}","Dissemination area","{code}",1,1,"00000",{2223 + number},"{name}",'
                f',{count},"",,"...",,"..."'
            )
    path.write_text("\n".join(lines) + "\n", encoding="latin-1")
    return path


def kinds(table: object, folder: Path) -> list[str]:
    return unround.audit(table, folder).findings["kind"].to_list()


@pytest.mark.parametrize("areas", [12, 150])
def test_sample_data_are_estimates_however_much_of_them_is_there(areas: int, tmp_path: Path) -> None:
    sample = profile(tmp_path / "sample.csv", areas, "Total - Labour force - 25% sample data (12)")
    full = profile(tmp_path / "full.csv", areas, "Total - Labour force - 100% data (12)")
    assert not {"proved", "conditional"} & set(kinds(sample, tmp_path / "of sample"))
    assert {"proved", "conditional"} & set(kinds(full, tmp_path / "of all"))
    frame = pl.read_csv(sample, infer_schema_length=None)
    assert not {"proved", "conditional"} & set(kinds(frame, tmp_path / "of a frame"))


def assert_same(release: unround.Release, other: unround.Release) -> None:
    assert release.file_format == other.file_format
    assert (release.columns, release.proposals, release.figures, release.left_out) == (
        other.columns,
        other.proposals,
        other.figures,
        other.left_out,
    )
    for mine, its in zip(release.blocks(), other.blocks(), strict=True):
        assert np.array_equal(mine.counts, its.counts)
        assert mine.figures is None or np.array_equal(mine.figures, its.figures)


def test_a_frame_is_read_as_its_file_is(tmp_path: Path) -> None:
    """Pandas and polars number the columns called SYMBOL; counts beside gaps become 15.0."""
    pandas = pytest.importorskip("pandas")
    path = profile(tmp_path / "profile.csv", 7, "Total - Age - 100% data")
    file = unround.read(path)
    for frame in (pl.read_csv(path), pandas.read_csv(path)):
        assert_same(file, unround.read(frame))
    pl.read_csv(path).write_parquet(tmp_path / "profile.parquet")
    assert_same(file, unround.read(tmp_path / "profile.parquet"))
    with pytest.raises(InputError, match=r"the frame is in the format statcan, which needs no description\. Call"):
        unround.describe(pl.read_csv(path))


@pytest.mark.parametrize("name", ["canada-2021-fsa-selected.csv", "canada-2021-first-names.csv.gz"])
def test_a_frame_of_a_real_file_is_read_as_the_file_is(name: str, census_data: Path) -> None:
    path = census_data / name
    assert_same(unround.read(path), unround.read(pl.read_csv(path, infer_schema_length=None)))


def test_a_note_makes_no_other_table_a_simulated_one(tmp_path: Path) -> None:
    """Only the tables that `unround simulate` wrote are known as such, by their content; names and notes say nothing."""
    made = unround.simulate(tmp_path, areas=5)
    assert unround.read(made.files[0]).product == SIMULATED
    assert unround.read(made.truth).product == SIMULATED
    table = profile(tmp_path / "real.csv", 3, "Total - Age - 100% data")
    assert unround.read(table).product != SIMULATED
    text = made.files[0].read_bytes()
    made.files[0].write_bytes(text.replace(b"Dissemination", b"dissemination", 1))
    assert unround.read(made.files[0]).product != SIMULATED


AGES = ("0 to 44 years", "45 years and over")
METADATA = """"Cube Title","Product Id"
"Invented counts, by age group and sex","13109999"

"Dimension ID","Dimension name","Dimension Notes","Dimension Definitions"
"1","Geography",,""
"2","Age at death",,""
"3","Sex",,""

"Dimension ID","Member Name","Classification Code","Member ID","Parent Member ID",Terminated,"Member Notes"
"1","North","","2","1","",,
"1","South","","3","1","",,
"1","Land","","1","","",,
"2","Age at death, 0 to 44 years","","2","1","",,
"2","Age at death, 45 years and over","","3","1","",,
"2","Age at death, all ages","","1","","",,
"3","Males","","2","1","",,
"3","Females","","3","1","",,
"3","Both sexes","","1","","",7,

"Note ID",Note
1,"The counts in this table have been rounded to a neighbouring multiple of 5."
7,"Both sexes includes persons of unknown sex."
"""


def data_table(path: Path, dates: int = 2, metadata: str = METADATA) -> Path:
    """Write a data table, and its metadata, into a zip; the second value of every date is hidden, the third a rate."""
    lines = [
        '"REF_DATE","GEO","DGUID","Age at death","Sex","UOM","SCALAR_ID","VECTOR","COORDINATE","VALUE","STATUS","DECIMALS"'
    ]
    for date in range(dates):
        for g, place in enumerate(("Land", "North", "South"), start=1):
            for a, age in enumerate(("all ages", *AGES), start=1):
                for s, sex in enumerate(("Both sexes", "Males", "Females"), start=1):
                    value, status = ("", "x") if (a, s) == (2, 2) else (5 * g * a * s, "")
                    lines.append(
                        f'"2020-0{date + 1}","{place}","2016A{g}","Age at death, {age}","{sex}","Number","0","v{g}{a}{s}",'
                        f'"{g}.{a}.{s}","{value}","{status}","0"'
                    )
        lines.append(
            f'"2020-0{date + 1}","Land","2016A1","Age at death, all ages","Rate","Rate per 1,000","0","v9","","2.5","","1"'
        )
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("13109999.csv", "\n".join(lines) + "\n")
        if metadata:
            packed.writestr("13109999_MetaData.csv", metadata)
    return path


def sums_of(release: unround.Release) -> set[tuple[str, tuple[str, ...]]]:
    keys = [column.key for column in release.columns]
    return {(keys[proposal.total], tuple(keys[part] for part in proposal.parts)) for proposal in release.proposals}


def test_a_data_table_is_read_by_its_metadata(tmp_path: Path) -> None:
    release = unround.read(data_table(tmp_path / "13109999-eng.zip"))
    assert (release.file_format, release.areas, release.axes) == (
        "data-table",
        ("REF_DATE",),
        ("GEO", "Age at death", "sex"),
    )
    said = {(column.documented, column.basis, column.known_format) for column in release.columns}
    assert said == {((Rounding(5),), "note", True)}
    assert release.product == "Statistics Canada, Table 13-10-9999-01, Invented counts, by age group and sex"
    assert release.left_out == {"values in Rate per 1,000": ("Rate",)}
    counts = next(iter(release.blocks())).counts
    assert counts.shape == (2, 27)
    hidden = [column.key for column, count in zip(release.columns, counts[0], strict=True) if count == SUPPRESSED]
    assert hidden == [f"{place}/0 to 44 years/Males" for place in ("Land", "North", "South")]
    sums = sums_of(release)
    assert ("Land/all ages/Males", ("North/all ages/Males", "South/all ages/Males")) in sums
    assert ("North/all ages/Males", tuple(f"North/{age}/Males" for age in AGES)) in sums
    # A note says that the total has persons of neither sex in it: it is not the sum of men and women.
    assert not any(total.endswith("Both sexes") and "Males" in parts[0] for total, parts in sums)
    assert any(
        "is not taken for the sum of its parts: Both sexes includes persons of unknown sex" in note for note in release.notes
    )


def test_without_metadata_names_suggest_what_adds_up(tmp_path: Path) -> None:
    release = unround.read(data_table(tmp_path / "13109999-eng.zip", metadata=""))
    sums = sums_of(release)
    assert ("North/all ages/Males", tuple(f"North/{age}/Males" for age in AGES)) in sums
    assert ("North/all ages/Both sexes", ("North/all ages/Males", "North/all ages/Females")) in sums
    assert {(column.documented, column.known_format) for column in release.columns} == {((), False)}
    assert {one.origin for one in release.proposals} == {"labels"}
    one = unround.read(data_table(tmp_path / "one.zip", dates=1))
    assert one.areas == ("GEO",)
    assert next(iter(one.blocks())).areas["parent"].to_list() == [None, "Land", "Land"]


def test_a_data_table_without_counts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    path.write_text("REF_DATE,GEO,DGUID,Sex,UOM,VECTOR,COORDINATE,VALUE\n2020,Land,1,Both sexes,Percent,v1,1.1,3\n")
    with pytest.raises(InputError, match="has no counts: its values are values in Percent"):
        unround.read(path)


def test_a_real_data_table_is_understood(census_data: Path) -> None:
    release = unround.read(census_data / "canada-13100768-eng.zip")
    assert len(release.columns) == 14 * 5 * 3
    assert sum(len(block.counts) for block in release.blocks()) == 626
    assert {len(parts) for total, parts in sums_of(release) if total.startswith("Canada/")} == {13}


def test_a_datapack_is_read_by_its_names(tmp_path: Path) -> None:
    names = ("Tot", "Age_0_4_yr", "Age_0_1_yr", "Age_2_4_yr", "Age_5_84_yr", "Age_85ov", "Age_psns_att_educ_inst_0_4")
    columns = [f"{name}_{sex}" for name in names for sex in "MFP"]
    counts = range(1, len(columns) + 1)
    path = tmp_path / "2016Census_G01_SA2.csv"
    path.write_text(f"SA2_MAINCODE_2016,{','.join(columns)},Median_age_P\n101021007,{','.join(map(str, counts))},41\n")
    release = unround.read(path)
    assert (release.file_format, release.axes, release.areas) == ("datapack", ("characteristic_id", "sex"), ("region",))
    assert release.left_out == {"median": ("Median_age_P",)}
    assert sums_of(release) >= {
        ("Tot", ("Tot/men", "Tot/women")),
        ("Tot/men", ("Age_0_4_yr/men", "Age_5_84_yr/men", "Age_85ov/men")),
        ("Age_0_4_yr", ("Age_0_1_yr", "Age_2_4_yr")),
    }
    assert not any("educ" in key for total, parts in sums_of(release) for key in (total, *parts) if "/" not in parts[0])
    block = next(iter(release.blocks()))
    assert block.areas.select("level", "parent").row(0) == ("SA2", "10102")
    assert dict(zip((column.key for column in release.columns), block.counts[0].tolist(), strict=True))["Tot"] == 3


def test_real_datapacks_cross_ages_with_what_is_counted(census_data: Path) -> None:
    crossed = sums_of(unround.read(census_data / "australia-2016-sa2-g05.csv.gz"))
    states = ("Married", "Separated", "Divorced", "Widowed", "Never_Married")
    assert ("15_19_yr_Tot/men", tuple(f"15_19_yr_{state}/men" for state in states)) in crossed
    assert ("Tot_Tot", tuple(f"Tot_{state}" for state in states)) in crossed
    assert any(total == "Tot_Widowed" and len(parts) == 9 for total, parts in crossed)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        (METADATA.replace("1,", f'"{"x" * 200_000}",', 1), "the metadata of .* cannot be read"),
        ("\0", None),
        ("no table", None),
    ],
)
def test_metadata_that_are_damaged_are_told_or_not_used(tmp_path: Path, metadata: str, said: str | None) -> None:
    path = data_table(tmp_path / "13109999-eng.zip", metadata=metadata)
    if said is not None:
        with pytest.raises(InputError, match=said):
            unround.read(path)
    else:
        assert not any(column.known_format for column in unround.read(path).columns)


def test_a_member_that_is_its_own_parent_is_no_part_of_itself(tmp_path: Path) -> None:
    turned = METADATA.replace('"2","Age at death, all ages","","1","","",,', '"2","Age at death, all ages","","1","1","",,')
    release = unround.read(data_table(tmp_path / "13109999-eng.zip", metadata=turned))
    assert all(total not in parts for total, parts in sums_of(release))
    assert ("North/all ages/Males", tuple(f"North/{age}/Males" for age in AGES)) in sums_of(release)
