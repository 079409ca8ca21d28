"""Readers of Canadian tables other than the bulk files: profile pages, CensusMapper, indicators, first names."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unround import simulate
from unround.errors import InputError
from unround.mechanisms import Exact
from unround.regions import adjustable, published_exactly
from unround.release import ABSENT, NOT_APPLICABLE, NOT_AVAILABLE, SUPPRESSED, UNREADABLE, Release
from unround.tables import matches, read
from unround.tables.canada_2021 import KIND_OF, LAST, PARTS
from unround.tables.labels import ALL, EVER, age_range, age_runs, tile
from unround.tables.profile import COUNT, kinds_of


def whole(release: Release) -> tuple[pl.DataFrame, dict[str, list[int]]]:
    """Return all areas, and the counts of every column by its key."""
    blocks = list(release.blocks())
    assert all(block.counts.dtype == np.int32 for block in blocks)
    counts = np.vstack([block.counts for block in blocks])
    assert counts.shape[1] == len(release.columns)
    areas = pl.concat([block.areas for block in blocks])
    assert areas.columns[: len(release.areas)] == list(release.areas)
    return areas, {column.key: counts[:, at].tolist() for at, column in enumerate(release.columns)}


def sums(release: Release) -> set[tuple[str, str, tuple[str, ...]]]:
    """Return the proposals by the keys of their columns."""
    key = [column.key for column in release.columns]
    return {(p.origin, key[p.total], tuple(key[part] for part in p.parts)) for p in release.proposals}


def write(path: Path, *lines: str, end: str = "\n", encoding: str = "utf-8") -> Path:
    path.write_bytes("".join(line + end for line in lines).encode(encoding))
    return path


# CensusMapper


BASE = "GeoUID,Type,Region Name,Area (sq km),Population ,Dwellings ,Households ,CSD_UID,CD_UID"
AGES = (
    '"v_CA21_14: 0 to 4 years, - Total","v_CA21_15: 0 to 4 years, - Male","v_CA21_16: 0 to 4 years, - Female",'
    '"v_CA21_32: 5 years and over, - Total","v_CA21_33: 5 years and over, - Male","v_CA21_34: 5 years and over, - Female"'
)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write(
        tmp_path / "odd.csv",
        f"\ufeff{BASE},{AGES},"
        '"v_CA21_560: Median income ($), - Total","v_CA21_900: Something, - Total",'
        '"v_CA21_901: Rate-like, - Total",Quality Flags',
        '01,C,Canada,1e+06,1002000,"500,000",400000,NA,NA,1e+06,500000.0,500000,2000,1000, 1000 ,35000,15,1.5,"0,1"',
        '99,PR,Ormes,"1,000.5",6000,3000,2500,NA,NA,500,"250",250,5500,2750,NA,30000,20,2.5,',
        "9901,CD,Aux Ormes,12.5,6000,3000,2500,NA,9901,500,250,250,5500,2750,x,30000,20,3.0,",
        "9901001,CSD,Montréal (V),12.5,5600,3000,2500,9901001,9901,500,250,..,5100,2550,...,29000,25,4.5,",
        "9901002,CSD,Léry (V),2.5,400,200,150,9901002,9901,50,25,F,350,175,hello,29000,30,5.5,",
        "99010001,DA,99010001,2.5,400,200,150,9901002,9901,50,25,25,350,175,175,29000,35,6.5,",
        end="\r\n",
    )


def test_censusmapper_reads_every_oddity_right(small: Path) -> None:
    release = read(small)
    areas, counts = whole(release)
    assert release.file_format == "censusmapper"
    assert areas["region"].to_list() == ["01", "99", "9901", "9901001", "9901002", "99010001"]
    assert areas["region_name"].to_list()[3:5] == ["Montréal (V)", "Léry (V)"]
    assert areas["level"].to_list() == ["C", "PR", "CD", "CSD", "CSD", "DA"]
    assert areas["parent"].to_list() == [None, "01", "99", "9901", "9901", "9901002"]
    assert areas["adjustable"].to_list() == [False, False, False, False, True, True]
    assert counts["Population"] == [1_002_000, 6000, 6000, 5600, 400, 400]
    assert counts["Dwellings"][0] == 500_000
    assert counts["v_CA21_14"][0] == 1_000_000
    assert counts["v_CA21_14/men"][:2] == [500_000, 250]
    assert counts["v_CA21_14/women"][3:5] == [NOT_AVAILABLE, -(2**31) + 3]
    assert counts["v_CA21_32/women"] == [1000, NOT_AVAILABLE, SUPPRESSED, NOT_APPLICABLE, UNREADABLE, 175]
    assert release.product == "Statistics Canada, 2021 Census of Population, through CensusMapper"


def test_censusmapper_accounts_for_every_column(small: Path) -> None:
    release = read(small)
    areas, _ = whole(release)
    header = next(csv.reader([small.read_text(encoding="utf-8-sig").split("\n")[0]]))
    assert release.left_out == {"numbers with decimals": ("v_CA21_901: Rate-like, - Total",)}
    assert [(figure.name, figure.kind) for figure in release.figures] == [("v_CA21_560", "median")]
    # Region, name and level stand for GeoUID, Region Name and Type; parent and adjustable are worked out.
    assert {"csd", "cd", "Area (sq km)", "Quality Flags"} <= set(areas.columns)
    left = sum(len(labels) for labels in release.left_out.values())
    assert len(release.columns) + len(release.figures) + left + len(areas.columns) - 2 == len(header)


def test_censusmapper_proposes_sexes_ages_and_the_population(small: Path) -> None:
    release = read(small)
    assert sums(release) == {
        ("sex", "v_CA21_14", ("v_CA21_14/men", "v_CA21_14/women")),
        ("sex", "v_CA21_32", ("v_CA21_32/men", "v_CA21_32/women")),
        ("universe", "Population", ("v_CA21_14", "v_CA21_32")),
    }
    by_key = {column.key: column for column in release.columns}
    assert (by_key["Population"].mechanism, by_key["Population"].adjusted) == (Exact(), 5)
    assert (by_key["Households"].mechanism, by_key["Households"].adjusted) == (Exact(), 0)
    assert by_key["v_CA21_14/men"].codes == ("v_CA21_14", "men")
    assert by_key["v_CA21_14/men"].label == "0 to 4 years"
    assert by_key["v_CA21_14/men"].mechanism is None


@pytest.mark.parametrize(
    ("suffixes", "guessed"),
    [((", - Total", ", - Male", ", - Female"), False), ((" - Total", "- Men+", "- Women+"), False), (("", "", ""), True)],
)
def test_censusmapper_pairs_sexes_in_all_spellings(tmp_path: Path, suffixes: tuple[str, ...], guessed: bool) -> None:
    names = [f'"v_CA16_{4 + at}: 0 to 14 years{suffix}"' for at, suffix in enumerate(suffixes)]
    release = read(write(tmp_path / "a.csv", f"GeoUID,Type,{','.join(names)}", "1001,CD,25,10,15"))
    assert [column.codes for column in release.columns] == [("v_CA16_4", sex) for sex in ("total", "men", "women")]
    assert any("total, men and women" in note for note in release.notes) == guessed
    assert release.product == "Statistics Canada, 2016 Census of Population, through CensusMapper"


def test_censusmapper_keys_on_vectors_where_labels_repeat(tmp_path: Path) -> None:
    """Men without their total keep its number; a label that follows by chance is nobody's woman."""
    path = write(
        tmp_path / "a.csv",
        'GeoUID,"v_CA21_2: A, - Male","v_CA21_10: B, - Total","v_CA21_11: C, - Male",'
        '"v_CA21_20: B, - Total",v_CA21_30: D,v_CA21_31: D',
        "7,5,5,5,5,5,5",
    )
    codes = [column.codes for column in read(path).columns]
    assert codes == [
        ("v_CA21_1", "men"),
        ("v_CA21_10", "total"),
        ("v_CA21_11", "men"),
        ("v_CA21_20", "total"),
        ("v_CA21_30", "total"),
        ("v_CA21_31", "total"),
    ]


def test_censusmapper_reads_bare_codes_and_short_names(tmp_path: Path) -> None:
    header = "id,t,name,pop,v_CA11F_5,v_CA11F_6,v_CA11N_7,parent"
    release = read(write(tmp_path / "a.csv", header, "9915022,CSD,Town,60002,25,10.0,,x"))
    areas, counts = whole(release)
    assert counts == {"Population": [60002], "v_CA11F_5": [25], "v_CA11F_6": [10], "v_CA11N_7": [NOT_AVAILABLE]}
    assert any("3 columns are named by vector code only" in note for note in release.notes)
    assert areas["parent (file)"].to_list() == ["x"]
    assert areas["adjustable"].to_list() == [False]
    assert release.product == "Statistics Canada, 2011 Census of Population, through CensusMapper"


def test_censusmapper_tells_slips_from_columns_of_figures(tmp_path: Path) -> None:
    """One fraction among a hundred counts is a cell that cannot be read; ten are a column of something else."""
    lines = [f"{area},5,{'2.5' if area == 3 else 10},{'0.5' if area % 10 == 0 else 0}" for area in range(1, 101)]
    release = read(write(tmp_path / "a.csv", "GeoUID,v_CA21_1: A,v_CA21_2: B,v_CA21_3: C", *lines))
    _, counts = whole(release)
    assert release.left_out == {"numbers with decimals": ("v_CA21_3: C",)}
    assert counts["v_CA21_2"][2] == UNREADABLE
    assert counts["v_CA21_2"][:2] == [10, 10]
    assert any(note.startswith("1 cells in columns of counts hold text") for note in release.notes)


def test_censusmapper_goes_through_blocks_twice_and_tells_how_far(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "GeoUID,v_CA21_1: A", *(f"{area},{5 * area}" for area in range(4500)))
    release = read(path)
    steps: list[int] = []
    sizes = [len(block.areas) for block in release.blocks(steps.append)]
    assert sizes == [2000, 2000, 500]
    assert steps == sorted(steps)
    assert steps[-1] == release.size == path.stat().st_size
    _, counts = whole(release)
    assert counts["v_CA21_1"] == [5 * area for area in range(4500)]


def test_censusmapper_survives_a_header_longer_than_the_head_of_a_file(tmp_path: Path) -> None:
    names = [f'"v_CA21_{3 * at + 1}: {"characteristic " * 6}number {at}, - Total"' for at in range(1500)]
    release = read(write(tmp_path / "a.csv", f"GeoUID,{','.join(names)}", "1," + ",".join(["5"] * 1500)))
    assert len(release.columns) == 1500


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["GeoUID,v_CA21_1: A"], "a header but no lines of data"),
        (["GeoUID,v_CA21_1: A", "7,5", "8,5", "7,10"], "the area 7 more than once"),
        (
            ["GeoUID,v_CA21_1: A,v_CA21_2: B", "7,5,5", "8,5"],
            r"line 3: 2 fields where the header has 3.*missing or extra comma",
        ),
        (["GeoUID,v_CA21_1: A,v_CA21_2: B", "7,5,5", '"8\n9",5,5', "8,5,5,5"], "line 5: 4 fields where the header has 3"),
        (["GeoUID,v_CA21_1: A,v_CA21_1: A", "7,5,5"], "more than one column called 'v_CA21_1: A'"),
        (["GeoUID,v_CA21_1: A,v_CA21_1", "7,5,5"], "vector v_CA21_1 more than once"),
        (["Region Name,v_CA21_1: A", "7,5"], "no column GeoUID"),
        (["GeoUID,v_CA21_1: A", "7,5", ",5"], "line 2 below the header has no region"),
        (["GeoUID,v_CA21_1: Median age", "7,5"], "no columns of counts"),
        (["GeoUID,v_CA21_1: A", '7,"5', *(["8,5"] * 50_000)], "quote"),
    ],
)
def test_censusmapper_says_what_is_wrong(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(InputError, match=re.compile(message, re.DOTALL)):
        read(write(tmp_path / "a.csv", *lines))


def test_blank_lines_at_the_end_are_no_areas(tmp_path: Path) -> None:
    areas, _ = whole(read(write(tmp_path / "a.csv", "GeoUID,v_CA21_1: A", "7,5", "", "")))
    assert areas["region"].to_list() == ["7"]


def test_a_simulated_census_reads_back(tmp_path: Path) -> None:
    simulate(tmp_path, areas=120, seed=3, format="censusmapper")
    release = read(tmp_path / "censusmapper.csv")
    areas, counts = whole(release)
    assert len(areas) == 120
    assert set(areas["parent"].drop_nulls()) <= set(areas["region"])
    sums_of_release = sums(release)
    assert ("universe", "Population", ("v_CA21_8",)) in sums_of_release
    assert ("names", "v_CA21_11/men", ("v_CA21_14/men", "v_CA21_32/men", "v_CA21_50/men")) in sums_of_release
    assert sum(origin == "names" for origin, _, _ in sums_of_release) == 15
    for _, total, parts in sums_of_release:
        values = np.array([counts[key] for key in (total, *parts)])
        shown = values[:, (values > ABSENT).all(axis=0)]
        assert shown.shape[1] > 100
        # Every cell is within 4 of the truth, populations within 5.
        assert (np.abs(shown[0] - shown[1:].sum(axis=0)) <= 4 * len(parts) + 5).all()


def test_the_real_areas_of_censusmapper(census_data: Path) -> None:
    path = census_data / "canada-2021-da-censusmapper.csv.gz"
    release = read(path)
    areas, counts = whole(release)
    assert len(areas) == 27_013
    assert areas["level"].unique().to_list() == ["DA"]
    assert areas["adjustable"].all()
    assert areas["parent"].to_list() == areas["csd"].to_list()
    left = sum(len(labels) for labels in release.left_out.values())
    read_columns = [column for column in release.columns if column.is_in_file]
    assert len(read_columns) + len(release.figures) + left + len(areas.columns) - 2 == 330
    triples = [proposal for proposal in release.proposals if proposal.origin == "sex"]
    medians = [figure for figure in release.figures if figure.name.endswith("/men")]
    assert len(triples) + len(medians) == 69
    ages = [p for p in triples if age_range(release.columns[p.total].label)]
    assert len(ages) == 18
    assert ("universe", "Population", tuple(release.columns[p.total].key for p in ages)) in sums(release)
    raw = pl.read_csv(path, infer_schema=False)
    names = {name.split(":")[0]: name for name in raw.columns}
    for place, column in enumerate(read_columns):
        vector = column.codes[0]
        if column.codes[1] != "total":
            stem, number = vector.rsplit("_", 1)
            vector = f"{stem}_{int(number) + ('total', 'men', 'women').index(column.codes[1])}"
        text = raw[names[vector]]
        assert counts[column.key].count(NOT_AVAILABLE) == (text == "NA").sum()
        assert not any(code < ABSENT and code != NOT_AVAILABLE for code in counts[column.key])
        if place % 20 == 0:
            assert counts[column.key] == text.replace({"NA": str(NOT_AVAILABLE)}).cast(pl.Float64).cast(pl.Int64).to_list()


# Profile pages


def page(
    *rows: str, titles: tuple[str, ...] | None = None, header: str | None = None, below: tuple[str, ...] = ()
) -> list[str]:
    if titles is None:
        titles = (',,,"Ormes, Ville (V) [Census subdivision], Québec",,', ',,,"Counts",,')
    return [
        '"Census Profile, 2021 Census of Population"',
        *titles,
        header or '"Topic","Characteristic","Note","Total","Total_Flag",',
        *rows,
        *below,
    ]


ROWS = (
    '"Population","Population, 2021",1,   4103,"",',
    '"Population","Population percentage change, 2016 to 2021",,    4.9,"",',
    '"Population","Private dwellings occupied by usual residents",3,1800,"",',
    '"Age","Total - Age groups of the population - 100% data",,   4105,"",',
    '"Age","  0 to 14 years",,    605,"",',
    '"Age","    0 to 4 years",,       ,"x",',
    '"Age","    5 to 14 years, n.o.s.",,    400,"",',
    '"Age","  15 years and over",,"3,500","",',
    '"Age","Total - Distribution (%) of the population by broad age groups - 100% data",,  100.0,"",',
    '"Age","  0 to 14 years",,   15.0,"",',
    '"Age","Number of persons in private households",,4000,"",',
    '"Age","Persons of mean height",,,"...",',
    '"Age","Gerbil owners",,  12.0,"",',
)
BELOW = (
    "",
    "Symbols:",
    '...,"not applicable"',
    "",
    "Notes:",
    '1,"A quote that never closes, with Montréal in it',
    ',"Age","  not, a, row"',
    "",
    '"Source: Statistics Canada, 2021 Census of Population."',
)


def test_profile_page_reads_counts_and_leaves_figures_out(tmp_path: Path) -> None:
    release = read(write(tmp_path / "page.csv", *page(*ROWS, below=BELOW), encoding="latin-1"))
    areas, counts = whole(release)
    assert release.file_format == "profile-page"
    assert counts == {
        "1": [4103],
        "3": [1800],
        "4": [4105],
        "5": [605],
        "6": [SUPPRESSED],
        "7": [400],
        "8": [3500],
        "11": [4000],
    }
    assert {reason: len(labels) for reason, labels in release.left_out.items()} == {
        "percentage": 2,
        "not applicable": 1,
        "numbers with decimals": 1,
    }
    assert areas.row(0) == ("Ormes, Ville (V), Québec", "Ormes, Ville (V)", "Census subdivision", None, True)
    assert [(column.depth, column.block) for column in release.columns][-4:] == [
        (2, "Total - Age groups of the population - 100% data"),
        (2, "Total - Age groups of the population - 100% data"),
        (1, "Total - Age groups of the population - 100% data"),
        (0, "Number of persons in private households"),
    ]
    assert sums(release) == {
        ("indentation", "4", ("5", "8")),
        ("indentation", "5", ("6", "7")),
        ("universe", "1", ("4",)),
    }
    assert release.columns[0].mechanism == Exact()
    assert (release.columns[0].adjusted, release.columns[1].adjusted, release.columns[1].mechanism) == (5, 0, Exact())
    assert release.product == "Statistics Canada, 2021 Census of Population"


def test_profile_page_with_several_areas_sexes_and_rates(tmp_path: Path) -> None:
    titles = (
        ',,,"Ormes, Ville (V) [Census subdivision], Québec",,,,,,,,"Ormes [Province]",,,,,,,',
        ',,,"Counts",,,,,,"Rates",,"Counts",,,,,,"Rates",',
    )
    sexes = '"Total","Total_Flag","Men+","Men+_Flag","Women+","Women+_Flag","Total","Total_Flag"'
    path = write(
        tmp_path / "page.csv",
        *page(
            '"P","Population, 2021",1,7000,"",,"...",,"...",,"...",90000,"",,"...",,"...",,"..."',
            '"A","Total - Age",,7000,"",3500,"",3500,"",100.0,"",90000,"",45000,"",45005,"",100.0,""',
            '"A","  0 to 14 years",,1500,"",,"x",750,"",21.4,"",9000,"",4500,"E",,"F",10.0,""',
            titles=titles,
            header=f'"Topic","Characteristics","Note",{sexes},{sexes}',
        ),
        end="\r\n",
    )
    release = read(path)
    areas, counts = whole(release)
    assert areas["region"].to_list() == ["Ormes, Ville (V), Québec", "Ormes"]
    assert areas["level"].to_list() == ["Census subdivision", "Province"]
    assert areas["adjustable"].to_list() == [False, False]
    assert counts["1"] == [7000, 90000]
    assert counts["2/women"] == [3500, 45005]
    assert counts["3/men"] == [SUPPRESSED, 4500]
    assert release.left_out == {
        "rate": ("all lines, total",),
        "not applicable": ("Population, 2021, men", "Population, 2021, women"),
    }
    assert ("sex", "3", ("3/men", "3/women")) in sums(release)
    assert ("indentation", "2/men", ("3/men",)) in sums(release)


def test_profile_page_tells_areas_of_one_name_apart(tmp_path: Path) -> None:
    titles = (',,,"Ormes [Census division]",,"Ormes [Census subdivision]",', ',,,"Counts",,"Counts",')
    header = '"Topic","Characteristic","Note","Total","Total_Flag","Total","Total_Flag"'
    areas, _ = whole(read(write(tmp_path / "p.csv", *page('"P","Cats",,5,"",10,""', titles=titles, header=header))))
    assert areas["region"].to_list() == ["Ormes [Census division]", "Ormes [Census subdivision]"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (page(), "a header but no lines of data"),
        (page(below=BELOW), "a header but no lines of data"),
        (page(ROWS[0], '"Age","  0 to 14 years",,605'), "line 6: 4 fields where the header has 6"),
        (page(ROWS[0], '"Age","",,605,"",'), "line 6: no characteristic"),
        (page(ROWS[0], "", ROWS[4]), "line 7: there are data after the footnotes"),
        (page(ROWS[1]), "no lines of counts"),
        (page(ROWS[0], '"Age","  0 to 14 years,,605,"",', *(["Age,B,,5,,"] * 30_000)), "line .*quote"),
        (page(ROWS[0], header='"Topic","Characteristic","Note","Sum","Sum_Flag",'), "no column called Total"),
        (page(ROWS[0], header='"Topic","Characteristic","Note","Total","Extra",'), "a column 'Extra'"),
        (page(ROWS[0], titles=(",,,,,",)), "does not say which area column 4"),
        (
            page(
                '"P","Cats",,5,"",10,""',
                titles=(',,,"Ormes [CD]",,"Ormes [CD]",',),
                header='"Topic","Characteristic","Note","Total","Total_Flag","Total","Total_Flag"',
            ),
            r"the area Ormes \[CD\] more than once",
        ),
    ],
)
def test_profile_page_says_what_is_wrong(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(write(tmp_path / "page.csv", *lines))


def test_the_real_profile_page(census_data: Path) -> None:
    release = read(census_data / "canada-2021-vancouver-profile-page.csv")
    areas, counts = whole(release)
    assert areas.select("level", "adjustable").rows() == [("Census subdivision", False)]
    left = [label for labels in release.left_out.values() for label in labels]
    assert len(release.columns) + len(release.figures) + len(left) == LAST
    assert any("Distribution (%)" in label for label in left)
    assert {str(row) for row in range(35, 39)} <= {figure.name for figure in release.figures}
    # Line numbers are the official IDs, and every label is the official one.
    official = {}
    for line in (census_data / "canada-2021-characteristics.txt").read_text(encoding="latin-1").splitlines():
        number, name = line.split("\t", 1)
        official[number] = re.sub(r" \(\d+\)$", "", name).strip()
    assert all(column.label == official[column.key] for column in release.columns)
    assert not any(value[0] <= ABSENT for value in counts.values())
    exact = [column.key for column in release.columns if column.mechanism == Exact()]
    assert exact == ["1", "2", "4", "5"]
    assert all(value[0] % 5 == 0 for key, value in counts.items() if key not in exact)
    assert ("indentation", "29", ("30", "31", "32", "33")) in sums(release)
    assert {("universe", "1", ("8",)), ("universe", "5", ("41",)), ("universe", "5", ("50",))} <= sums(release)


# Indicators


def test_indicators_put_finer_parts_in_place_of_missing_ones(tmp_path: Path) -> None:
    numbers = [1, 8, 10, 11, 12, 13, *range(25, 29), 30, 31, 32, 33, 39, 208, 41, 42]
    lines = [
        f"{area},"
        + ",".join("" if number == 12 and area == "Z9Z" else "5.5" if number == 42 else "100" for number in numbers)
        for area in ("Z9Y", "Z9Z")
    ]
    header = '"geo_name",' + ",".join(f'"indicator_{number}"' for number in numbers)
    release = read(write(tmp_path / "a.csv", "\ufeff" + header, *lines, end="\r\n"))
    areas, counts = whole(release)
    assert areas.select("region", "region_name", "level").rows() == [("Z9Y", "Z9Y", "FSA"), ("Z9Z", "Z9Z", "FSA")]
    assert counts["12"] == [100, NOT_AVAILABLE]
    ages = ("10", "11", "12", "13", "25", "26", "27", "28", "30", "31", "32", "33")
    assert sums(release) == {("names", "8", ages), ("universe", "1", ("8",))}
    assert release.left_out == {"numbers with decimals": ("indicator_42",)}
    assert [(figure.name, figure.kind, figure.universe) for figure in release.figures] == [
        ("39", "mean", "8"),
        ("208", "median", ""),
    ]
    assert release.columns[0].mechanism == Exact()
    assert release.columns[2].label == "0 to 4 years"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["geo_name,indicator_8"], "a header but no lines of data"),
        (["geo_name,indicator_8", "Z9Z,5", "Z9Z,5"], "the area Z9Z more than once"),
        (["place,indicator_8", "Z9Z,5"], "no column of areas"),
        (["geo_name,indicator_9999", "Z9Z,5"], "the 2021 profile ends with 2631"),
        (["geo_name,indicator_08,indicator_8", "Z9Z,5,5"], "two columns for one indicator"),
        (["geo_name,indicator_39", "Z9Z,5"], "no columns of counts"),
        (["geo_name,indicator_8,indicator_9", "Z9Z,5"], "line 2: 2 fields where the header has 3"),
    ],
)
def test_indicators_say_what_is_wrong(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(write(tmp_path / "a.csv", *lines))


def test_what_is_known_of_the_ids_agrees_with_the_official_list(census_data: Path) -> None:
    names = [
        line.split("\t", 1)[1]
        for line in (census_data / "canada-2021-characteristics.txt").read_text(encoding="latin-1").splitlines()
    ]
    depths = [(len(name) - len(name.lstrip())) // 2 for name in names]
    kinds = kinds_of(names, depths)
    assert len(names) == LAST
    assert {at for at, kind in enumerate(kinds, start=1) if kind != COUNT} == set(KIND_OF)
    for total, parts in PARTS.items():
        if total < 0:  # stands for people who have no line of their own
            continue
        below = total + 1
        inside = []
        while below <= LAST and depths[below - 1] > depths[total - 1]:
            if depths[below - 1] == depths[total - 1] + 1:
                inside.append(below)
            below += 1
        assert tuple(one for one in inside if one not in KIND_OF) == parts


def test_the_real_indicators(census_data: Path) -> None:
    release = read(census_data / "canada-2021-fsa-selected.csv")
    areas, counts = whole(release)
    assert len(areas) == 1646
    assert areas["level"].unique().to_list() == ["FSA"]
    left = sum(len(labels) for labels in release.left_out.values())
    assert len(release.columns) + len(release.figures) + left == 76
    values = np.array(list(counts.values()))
    assert set(values[values <= ABSENT].tolist()) == {NOT_AVAILABLE}
    assert (values[values > ABSENT] % 5 == 0).all()
    assert len(release.proposals) == 13
    for _, total, parts in sums(release):
        rows = np.array([counts[key] for key in (total, *parts)])
        shown = rows[:, (rows > ABSENT).all(axis=0)]
        # A sum that holds is off by no more than rounding: nearly everywhere, for samples are rounded more coarsely.
        assert (np.abs(shown[0] - shown[1:].sum(axis=0)) <= 5 * (len(parts) + 1)).mean() > 0.98


# First names


NAMES = (
    "CENSUS_YEAR,DGUID,ALT_GEO_CODE,GEO_LEVEL,GEO_NAME,FIRST_NAME,GENDER_TOTAL_COUNT,GENDER_TOTAL_PERCENTAGE,"
    "GENDER_TOTAL_RANK,MEN+_COUNT,MEN+_PERCENTAGE,MEN+_RANK,MEN+_SYMBOL,WOMEN+_COUNT,WOMEN+_PERCENTAGE,WOMEN+_RANK,WOMEN+_SYMBOL"
)


def name(name: str, total: int, men: int | None, women: int | None, region: str = "2021A000011124") -> str:
    def by_sex(count: int | None) -> str:
        return ',,,"..."' if count is None else f'{count},0.001,9,""'

    return f'2021,"{region}","01","Country","Canada","{name}",{total},0.001,9,{by_sex(men)},{by_sex(women)}'


def test_first_names_read_hidden_counts_as_suppressed(tmp_path: Path) -> None:
    lines = (name("ÉTOILE", 700, None, 660), name("QUUX", 255, None, None), name("ZORB", 900, 450, 455))
    release = read(write(tmp_path / "names.csv", "\ufeff" + NAMES, *lines, end="\r\n"))
    areas, counts = whole(release)
    assert release.file_format == "first-names"
    assert release.areas == ("first_name",)
    assert areas["first_name"].to_list() == ["ÉTOILE", "QUUX", "ZORB"]
    assert "region" not in areas.columns
    assert counts == {
        "people": [700, 255, 900],
        "people/men": [SUPPRESSED, SUPPRESSED, 450],
        "people/women": [660, SUPPRESSED, 455],
    }
    assert sums(release) == {("names", "people", ("people/men", "people/women"))}
    assert any("3 counts by sex" in note and "smallest count shown is 255" in note for note in release.notes)
    accounted = {label for labels in release.left_out.values() for label in labels} | {"FIRST_NAME"}
    accounted |= {column.upper() for column in areas.columns}
    assert {field for field in NAMES.split(",") if not field.endswith(("_COUNT", "_SYMBOL"))} <= accounted


def test_first_names_of_several_regions(tmp_path: Path) -> None:
    lines = (name("ZORB", 900, 450, 455), name("ZORB", 300, 290, None, "2021A000299"))
    release = read(write(tmp_path / "names.csv", NAMES, *lines))
    areas, _ = whole(release)
    assert release.areas == ("region", "first_name")
    assert areas["region"].to_list() == ["2021A000011124", "2021A000299"]
    assert areas["region_name"].to_list() == ["Canada", "Canada"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([NAMES], "a header but no lines of data"),
        (
            [NAMES, name("ZORB", 900, 450, 455), name("ZORB", 905, 450, 455)],
            "more than once, the first of them .first_name ZORB",
        ),
        ([NAMES, name("ZORB", 900, 450, 455), "2021,ZORB"], "line 3: 2 fields where the header has 17"),
    ],
)
def test_first_names_say_what_is_wrong(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(write(tmp_path / "names.csv", *lines))


def test_the_real_first_names(census_data: Path) -> None:
    """What `...` stands for is a count below the floor: that is what the totals leave for it."""
    release = read(census_data / "canada-2021-first-names.csv.gz")
    areas, counts = whole(release)
    assert len(areas) == 9152
    total, men, women = (np.array(counts[key]) for key in ("people", "people/men", "people/women"))
    assert (men == SUPPRESSED).sum() == 4865
    assert (women == SUPPRESSED).sum() == 3930
    floor = min(values[values > ABSENT].min() for values in (total, men, women))
    hidden = (women == SUPPRESSED) & (men > ABSENT)
    rest = total[hidden] - men[hidden]
    assert (rest <= floor + 5).all()
    assert (rest > 5).mean() > 0.5  # so that it cannot mean that there are none


# What they share


@pytest.mark.parametrize(
    ("label", "ages"),
    [
        ("0 to 4 years", (0, 4)),
        ("85 years and over", (85, EVER)),
        ("Under 1 year", (0, 0)),
        ("Under 5 years", (0, 4)),
        ("17", (17, 17)),
        ("Total - Age", ALL),
        ("Age Stats", ALL),
        ("2 persons", None),
        ("15 to 29 minutes", None),
        ("9 to 5 years", None),
        ("Average age", None),
    ],
)
def test_age_ranges(label: str, ages: tuple[int, int] | None) -> None:
    assert age_range(label) == ages


def test_ranges_with_gaps_or_overlaps_tile_nothing() -> None:
    def tiled(*labels: str) -> dict[str | None, tuple[str, ...]]:
        runs = age_runs([(label, label) for label in labels])
        return {total: parts for run in runs for total, parts in tile(run)}

    assert tiled("0 to 14 years", "0 to 4 years", "10 to 14 years") == {}
    assert tiled("0 to 9 years", "0 to 5 years", "5 to 9 years") == {}
    # The longer way round is not proposed where a shorter one is there; a greedy choice would be stuck at 0 to 9.
    assert tiled("0 to 14 years", "0 to 9 years", "0 to 4 years", "5 to 14 years") == {
        "0 to 14 years": ("0 to 4 years", "5 to 14 years")
    }


def test_what_is_published_exactly() -> None:
    assert published_exactly("Population, 2016") == (Exact(), 5)
    assert published_exactly("Population density per square kilometre") == (None, 0)
    assert published_exactly("Private dwellings occupied by usual residents") == (Exact(), 0)
    assert adjustable("CSD", NOT_AVAILABLE)
    assert not adjustable("Census division", 300)


def test_each_layout_is_told_from_the_others() -> None:
    heads = {
        "censusmapper": "GeoUID,v_CA06_2: A\n1,5\n",
        "bare": '"GeoUID"\t"v_CA21_1"\n',
        "indicators": 'geo_name,"indicator_8"\r\nA1A,5\r\n',
        "names": NAMES + "\n",
        "page": "\n".join(page(*ROWS)),
        "other": "region,age,sex,published\nv_CA21_1,indicator_8,5,5\n",
    }
    found = {
        head: [matches(form, text, "x.csv") for form in ("censusmapper", "indicators", "first-names", "profile-page")]
        for head, text in heads.items()
    }
    assert found == {
        "censusmapper": [True, False, False, False],
        "bare": [True, False, False, False],
        "indicators": [False, True, False, False],
        "names": [False, False, True, False],
        "page": [False, False, False, True],
        "other": [False, False, False, False],
    }
