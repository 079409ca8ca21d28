"""A simulated census: its truth adds up, it is published as declared, its files look like the real ones."""

from __future__ import annotations

import csv
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import chisquare

import unround
from unround import simulation as sim
from unround._version import __version__
from unround.errors import InputError
from unround.options import FORMATS
from unround.simulation import LAYOUTS as WRITERS
from unround.simulation.geography import numbers, plan
from unround.tables.canada_2021 import expand

HEADER = (
    "CENSUS_YEAR,DGUID,ALT_GEO_CODE,GEO_LEVEL,GEO_NAME,TNR_SF,TNR_LF,DATA_QUALITY_FLAG,CHARACTERISTIC_ID,"
    "CHARACTERISTIC_NAME,CHARACTERISTIC_NOTE,C1_COUNT_TOTAL,SYMBOL,C2_COUNT_MEN+,SYMBOL,C3_COUNT_WOMEN+,SYMBOL,"
    "C10_RATE_TOTAL,SYMBOL,C11_RATE_MEN+,SYMBOL,C12_RATE_WOMEN+,SYMBOL"
)
DATA = "98-401-X2021006_English_CSV_data.csv"


@cache
def census(areas, rows, seed=1):
    """A census in one piece: regions, truth, published."""
    blocks = list(sim.Rounds(seed).counts(areas, rows))
    return (
        pl.concat([block.regions for block in blocks]),
        np.concatenate([block.true for block in blocks]),
        np.concatenate([block.published for block in blocks]),
    )


def read_bulk(path):
    with path.open(encoding="latin-1", newline="") as file:
        return list(csv.reader(file))


# --- the schema ------------------------------------------------------------------------------------------


def test_the_profile_has_2631_rows_with_ids_in_order():
    assert sim.schema("all").ids.tolist() == list(range(1, 2632))
    assert sim.schema("age").ids.tolist() == list(range(1, 34))
    assert len(sim.schema("short").rows) == 462


def test_a_shape_is_expanded():
    assert expand("0(12m)2 1s") == [(0, ""), (1, ""), (2, "m"), (1, ""), (2, "m"), (1, "s")]


def test_the_paper_finds_its_groups():
    short = sim.schema("short")
    age = next(s for s in short.sums if s.total == 8 and s.why == "layout")
    assert age.parts == (9, 13, 24)
    assert sim.RowSum(8, (1,), "universe") in short.sums
    assert len(short.groups(3)) > 15
    assert len(short.groups(4)) > 15


def test_statistics_and_multiple_responses_are_no_partitions():
    everything = sim.schema("all")
    layout = [s for s in everything.sums if s.why == "layout"]
    heads = {s.total for s in layout}
    assert not heads & {111, 126, 336, 1078, 1079, 1698}
    assert {8, 9, 58, 393, 1683, 2223} <= heads
    assert 350 <= len(layout) <= 400


def test_non_counts_are_told_apart():
    rows = {row.id: row for row in sim.schema("all").rows}
    assert [rows[row].kind for row in (1, 3, 35, 39, 40, 113, 2228)] == [
        *("count", "percent", "percent", "average", "median", "median", "percent")
    ]
    assert rows[9].has_sex
    assert not rows[42].has_sex
    assert (rows[1].mechanism, rows[8].mechanism, rows[2223].mechanism) == ("exact", "rounding:5", "sample:5")


# --- truth -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("areas", "rows"), [(1, "all"), (7, "all"), (300, "all"), (1500, "short"), (3000, "age")])
def test_every_declared_sum_holds_in_truth(areas, rows):
    _, true, _ = census(areas, rows)
    table = sim.schema(rows)
    at = table.index
    for item in table.sums:
        cells = true[:, [at[part] for part in item.parts]]
        shown = (true[0, at[item.total]] >= 0) & (cells[0] >= 0).all(0)
        assert shown[0], item
        assert (true[:, at[item.total], shown] == cells[:, :, shown].sum(1)).all(), item


def test_total_is_men_plus_women():
    _, true, _ = census(300, "all")
    both = true[0, :, 1] >= 0
    assert both.sum() > 2000
    assert (true[:, both, 0] == true[:, both, 1] + true[:, both, 2]).all()


def test_no_count_is_negative_and_every_declared_cell_has_one():
    _, true, _ = census(300, "all")
    assert ((true >= 0) == sim.schema("all").shown).all()


@pytest.mark.parametrize("areas", [2, 3, 5, 7, 50, 500, 1500])
def test_parents_are_the_sums_of_their_children(areas):
    regions, true, _ = census(areas, "age")
    place = {region: at for at, region in enumerate(regions["region"])}
    summed = np.zeros_like(true)
    for child, parent in enumerate(regions["parent"]):
        if parent is not None:
            summed[place[parent]] += true[child]
            assert place[parent] > child
    parents = regions["level"].to_numpy() != "DA"
    shown = sim.schema("age").shown
    assert (summed[parents][:, shown] == true[parents][:, shown]).all()


def test_groups_of_multiple_responses_overlap():
    _, true, _ = census(300, "all")
    at = sim.schema("all").index
    population = true[:, at[1078], 0]
    official, parts = true[:, at[1079], 0], true[:, [at[1080], at[1081]], 0]
    assert (parts.sum(1) >= official).all()
    assert (parts.sum(1) > official).mean() > 0.5
    assert (parts.max(1) <= official).all()
    assert (official <= population).all()


def test_universes_agree():
    _, true, _ = census(300, "all")
    at = sim.schema("all").index
    total = {row: true[:, at[row], 0] for row in (1, 5, 8, 9, 41, 50, 51, 52, 53, 54, 55, 56, 58, 89, 91, 93)}
    assert (total[1] == total[8]).all()
    assert (total[58] == total[1] - total[9]).all()
    assert (total[5] == total[41]).all()
    assert (total[56] <= total[1]).all()
    least = total[51] + 2 * total[52] + 3 * total[53] + 4 * total[54] + 5 * total[55]
    assert (least <= total[56]).all()
    assert (total[56] == total[89]).all()


# --- geography -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("areas", [1, 2, 3, 4, 5, 6, 7, 8, 13, 50, 500, 5000])
def test_codes_nest_and_areas_are_as_many_as_asked_for(areas):
    regions = plan(areas, 3).regions
    assert len(regions) == areas
    assert regions["region"].n_unique() == areas
    prefixes = {"DA": "2021S0512", "CSD": "2021A0005", "CD": "2021A0003", "PR": "2021A0002"}
    digits = {"DA": 8, "CSD": 7, "CD": 4, "PR": 2}
    level_of = dict(zip(regions["region"], regions["level"], strict=True))
    for area in regions.iter_rows(named=True):
        assert area["region"] == prefixes[area["level"]] + area["code"]
        assert len(area["code"]) == digits[area["level"]]
        if area["parent"]:
            up = level_of[area["parent"]]
            assert (area["level"], up) in {("DA", "CSD"), ("CSD", "CD"), ("CD", "PR")}
            shared = area["parent"].removeprefix(prefixes[up]) if area["level"] != "DA" else area["cd"]
            assert area["code"].startswith(shared)


def test_a_single_area_is_a_dissemination_area():
    assert numbers(1) == (1, 0, 0, 0)
    assert plan(1, 1).regions["level"].to_list() == ["DA"]
    assert plan(1, 1).regions["parent"].to_list() == [None]


def test_half_of_the_subdivisions_have_one_area_only():
    das = plan(20_000, 1).regions.filter(level="DA").group_by("csd").len()
    assert 0.4 < (das["len"] == 1).mean() < 0.6
    assert das["len"].max() > 100


def test_a_country_larger_than_canada_does_not_run_out_of_codes():
    regions = plan(300_000, 1).regions
    assert regions["region"].n_unique() == 300_000
    assert regions.filter(level="DA")["code"].str.len_chars().unique().to_list() == [8]
    assert regions.filter(level="CD")["code"].str.len_chars().unique().to_list() == [4]


def test_populations_are_spread_like_real_ones():
    regions, true, _ = census(3000, "age")
    population = true[regions["level"].to_numpy() == "DA", 0, 0]
    low, median, high = np.quantile(population, [0.05, 0.5, 0.95])
    assert 250 < low < 350
    assert 480 < median < 600
    assert 1100 < high < 1900
    assert 0.001 < (population < 40).mean() < 0.01
    young, old = true[:, 8, 0].sum() / true[:, 7, 0].sum(), true[:, 23, 0].sum() / true[:, 7, 0].sum()
    assert 0.13 < young < 0.19
    assert 0.15 < old < 0.22


# --- publishing ------------------------------------------------------------------------------------------


def test_published_counts_follow_their_mechanisms():
    _, true, published = census(300, "all")
    for at, row in enumerate(sim.schema("all").rows):
        seen = published[:, at] >= 0
        exact, shown = true[:, at][seen], published[:, at][seen]
        if row.mechanism == "exact":
            assert (exact == shown).all()
            continue
        assert (shown % 5 == 0).all()
        near = np.abs(shown - exact) <= 4
        if row.mechanism == "rounding:5":
            assert near.all()
        else:
            assert not (shown == 5).any()
            assert np.isin(shown[exact < 10], [0, 10]).all()
            assert near[exact >= 10].all()


def test_rounding_is_unbiased_and_fives_are_common_in_full_data():
    _, true, published = census(3000, "age")
    ages = slice(8, 33)
    seen = published[:, ages] >= 0
    assert abs((published[:, ages] - true[:, ages])[seen].mean()) < 0.02
    assert (published[:, ages][seen] == 5).mean() > 0.1


def test_each_cell_is_rounded_on_its_own():
    """T − M − F has P(r) = Σ f(s)·max(0, 1 − |r+s|/5), where f convolves (5−|k|)/25 with itself."""
    _, true, published = census(1500, "short")
    table = sim.schema("short")
    keep = [at for at, row in enumerate(table.rows) if row.mechanism == "rounding:5" and row.has_sex and row.is_count]
    total, men, women = (published[:, keep, sex] for sex in range(3))
    big = (true[:, keep, 1] >= 15) & (true[:, keep, 2] >= 15) & (total >= 0)
    residual = (total - men - women)[big]
    tent = (5 - np.abs(np.arange(-4, 5))) / 25
    error = np.convolve(tent, tent)
    steps = np.arange(-10, 11, 5)
    sums = np.arange(-8, 9)
    chance = np.array([(error * np.maximum(0, 1 - np.abs(step + sums) / 5)).sum() for step in steps])
    assert chance.sum() == pytest.approx(1.0)
    seen = np.array([(residual == step).sum() for step in steps])
    assert seen.sum() == len(residual) > 50_000
    # Truth repeats between rows (a group of one part), but the rounding does not: the plain test is fair.
    assert chisquare(seen, chance * seen.sum()).pvalue > 1e-3


def test_small_areas_are_hidden_but_their_truth_is_kept():
    _, true, published = census(3000, "age")
    small = true[:, 0, 0] < 40
    assert 3 <= small.sum() < 60
    assert (published[small, 7:] == sim.MISSING).all()
    assert (published[small, 0, 0] == true[small, 0, 0]).all()
    assert (true[small, 7] >= 0).all()
    assert (published[~small, 7] >= 0).all()


def test_income_is_hidden_where_few_people_live():
    regions, true, published = census(300, "all")
    at = sim.schema("all").index
    few = (true[:, 0, 0] < 250) | (true[:, 4, 0] < 40)
    assert few.any()
    assert (published[few, at[155]] == sim.MISSING).all()
    assert (published[~few, at[155]] >= 0).all()
    assert (published[(true[:, 0, 0] >= 40), at[58]] >= 0).all()
    assert len(regions) == 300


# --- the same census, whatever one asks for --------------------------------------------------------------


def test_rows_do_not_change_each_other():
    _, age, shown_age = census(300, "age")
    _, short, shown_short = census(300, "short")
    _, everything, shown_all = census(300, "all")
    at = sim.schema("all").ids.searchsorted(sim.schema("short").ids)
    assert (age == short[:, :33]).all()
    assert (shown_age == shown_short[:, :33]).all()
    assert (short == everything[:, at]).all()
    assert (shown_short == shown_all[:, at]).all()


def test_the_seed_decides():
    again = list(sim.Rounds(1).counts(300, "age"))
    other = list(sim.Rounds(2).counts(300, "age"))
    _, true, published = census(300, "age")
    assert (np.concatenate([block.true for block in again]) == true).all()
    assert (np.concatenate([block.published for block in again]) == published).all()
    assert (np.concatenate([block.true for block in other]) != true).any()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    root = tmp_path_factory.mktemp("simulated")
    return {name: unround.simulate(root / name, areas=200, seed=5, format=name, rows="age") for name in FORMATS}


def test_all_formats_hold_the_same_numbers(written):
    truths = [pl.read_parquet(done.truth) for name, done in written.items() if name != "censusmapper"]
    assert all(truth.equals(truths[0]) for truth in truths[1:])
    wide = pl.read_parquet(written["censusmapper"].truth)  # goes by the names of that layout
    assert wide.filter(pl.col("characteristic_id").str.starts_with("v_"))["true"].equals(truths[0]["true"])
    assert wide.filter(characteristic_id="Population")["true"].equals(truths[0].filter(characteristic_id=1)["true"])
    regions, true, published = census(200, "age", 5)
    tidy = pl.read_parquet(written["tidy"].files[0])
    assert len(tidy) == len(truths[0]) == written["tidy"].cells
    shown = sim.schema("age").shown
    assert (truths[0]["true"].to_numpy() == true[:, shown].ravel()).all()
    assert truths[0]["true"].dtype == pl.Int32
    flat = published[:, shown].ravel()
    assert (tidy["published"].fill_null(sim.MISSING).to_numpy() == flat).all()
    assert tidy["published"].null_count() == (flat == sim.MISSING).sum()
    lines = read_bulk(written["statcan"].files[0])[1:]
    counts = np.array([[int(line[at] or -1) if line[8] not in "367" else -1 for at in (11, 13, 15)] for line in lines])
    assert (counts.reshape(200, 33, 3) == published).all()
    wide = pl.read_csv(written["censusmapper"].files[0], null_values="NA", infer_schema_length=None)
    assert wide["GeoUID"].cast(pl.String).to_list() == regions["code"].to_list()
    for name, row, sex in (
        ("v_CA21_14: 0 to 4 years, - Total", 10, 0),
        ("v_CA21_73: 15 to 19 years, - Female", 14, 2),
    ):
        assert (wide[name].fill_null(-1).to_numpy() == published[:, row - 1, sex]).all()


# --- files -----------------------------------------------------------------------------------------------


def test_the_bulk_layout_is_the_real_one(tmp_path):
    done = unround.simulate(tmp_path, areas=7, seed=1, rows="all")
    raw = done.files[0].read_bytes()
    assert done.files[0].name == DATA
    assert raw.split(b"\r\n")[0].decode() == HEADER
    lines = read_bulk(done.files[0])
    assert len(lines) == 1 + 7 * 2631
    assert {len(line) for line in lines} == {23}
    assert [int(line[8]) for line in lines[1:2632]] == list(range(1, 2632))
    first = raw.split(b"\r\n")[1].decode("latin-1")
    assert first.startswith('2021,"2021S051210010001","10010001","Dissemination area","10010001",')
    assert first.endswith(',"...",,"...",,"...",,"...",,"..."')
    named = {int(line[8]): line for line in lines[1:2632]}
    assert named[10][9] == "    0 to 4 years"
    assert named[42][14] == named[42][16] == "..."
    assert [line[3] for line in lines[1::2631]] == ["Dissemination area"] * 4 + [
        *("Census subdivision", "Census division", "Province")
    ]


def test_names_are_latin_1(tmp_path):
    done = unround.simulate(tmp_path, areas=300, seed=1)
    raw = done.files[0].read_bytes()
    assert any(byte > 127 for byte in raw)
    assert "é" in raw.decode("latin-1")
    with pytest.raises(UnicodeDecodeError):
        raw.decode("utf-8")


def test_hidden_counts_are_marked(tmp_path):
    _, true, _ = census(3000, "age")
    done = unround.simulate(tmp_path, areas=3000, seed=1)
    lines = read_bulk(done.files[0])[1:]
    hidden = int(np.flatnonzero(true[:, 0, 0] < 40)[0])
    area = lines[33 * hidden : 33 * (hidden + 1)]
    assert area[0][11] == str(true[hidden, 0, 0])
    assert {tuple(line[11:17]) for line in area[7:]} == {("", "x") * 3}
    assert area[0][7] == "09999"
    shown = lines[33 * int(np.flatnonzero(true[:, 0, 0] > 300)[0]) + 8]
    assert shown[12] == shown[14] == ""


def test_the_tidy_release_explains_itself(written):
    about = tomllib.loads(written["tidy"].files[1].read_text(encoding="utf-8"))
    assert about["axes"]["region"]["parent"] == "parent"
    assert about["mechanisms"][0] == {"mechanism": "exact", "characteristics": [1, 2, 4, 5]}
    assert {"total": 8, "parts": [9, 13, 24], "why": "layout"} in about["sums"]


def test_censusmapper_has_its_columns(written):
    header = written["censusmapper"].files[0].read_text(encoding="utf-8").split("\n")[0]
    assert header.startswith(
        "GeoUID,Type,Region Name,Area (sq km),Population,Dwellings,Households,CSD_UID,CD_UID,CT_UID,CMA_UID,"
    )
    assert '"v_CA21_33: 5 to 9 years, - Male"' in header


@pytest.mark.parametrize("name", FORMATS)
def test_an_interrupted_run_leaves_nothing(tmp_path, name):
    def stop(_, done, __):
        if done > 150:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unround.simulate(tmp_path / "new" / "deep", areas=500, seed=1, format=name, progress=stop)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "kept.txt").write_text("mine")
    with pytest.raises(KeyboardInterrupt):
        unround.simulate(tmp_path, areas=500, seed=1, format=name, progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]


def test_progress_counts_areas(tmp_path):
    counted = []
    done = unround.simulate(tmp_path, areas=300, seed=1, progress=lambda _, done, whole: counted.append((done, whole)))
    assert counted == [(128, 300), (256, 300), (300, 300)]
    assert done.areas == 300
    assert done.bytes == sum(path.stat().st_size for path in (*done.files, done.truth))
    assert sorted(path.name for path in tmp_path.iterdir()) == [DATA, "SIMULATED.txt", "truth.parquet"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"areas": 0}, "at least 1 area, not 0"),
        ({"areas": -3}, "at least 1 area, not -3"),
        ({"areas": 2_000_000}, "at most 1,000,000 areas"),
        ({"format": "sas"}, "format must be statcan, censusmapper or tidy, not 'sas'"),
        ({"rows": "some"}, "no rows called 'some': choose age, short, income, sample, all"),
        ({"seed": -1}, "seed must be at least 0, not -1"),
    ],
)
def test_what_cannot_be_simulated_is_said(tmp_path, change, words):
    with pytest.raises(InputError, match=words):
        unround.simulate(tmp_path / "out", **({"areas": 5, "seed": 1} | change))
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError, match=r"cannot write to .*file"):
        unround.simulate(tmp_path / "file", areas=5, seed=1)
    with pytest.raises(InputError, match="Choose another folder"):
        unround.simulate(Path("/proc/nowhere"), areas=5, seed=1)


def test_a_long_table_is_joined_from_parts(tmp_path, monkeypatch):
    whole = unround.simulate(tmp_path / "whole", areas=400, seed=1, format="tidy")
    monkeypatch.setattr("unround.tables.written.PART_ROWS", 9_000)
    parts = unround.simulate(tmp_path / "parts", areas=400, seed=1, format="tidy")
    for one, other in zip((*whole.files[:1], whole.truth), (*parts.files[:1], parts.truth), strict=True):
        assert pl.read_parquet(one).equals(pl.read_parquet(other))
    assert len(list((tmp_path / "parts").iterdir())) == 4


# --- what else lies in the folder ------------------------------------------------------------------------

LAYOUTS = {
    "statcan": {},
    "censusmapper": {"format": "censusmapper"},
    "tidy": {"format": "tidy"},
}


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_writes_the_files_that_are_looked_for(tmp_path, layout):
    done = unround.simulate(tmp_path, areas=3, seed=1, **LAYOUTS[layout])
    assert tuple(path.name for path in done.files) == WRITERS[layout].names
    assert set(contents(tmp_path)) == {*WRITERS[layout].names, "truth.parquet", "SIMULATED.txt"}


@pytest.mark.parametrize(("old", "new"), [(a, b) for a in LAYOUTS for b in LAYOUTS if a != b])
def test_a_census_of_another_layout_is_replaced_too(tmp_path, old, new):
    unround.simulate(tmp_path, areas=6, seed=1, boundaries=True, **LAYOUTS[old])
    (tmp_path / "mine.csv").write_text("mine")
    unround.simulate(tmp_path, areas=3, seed=2, **LAYOUTS[new])
    assert set(contents(tmp_path)) == {*WRITERS[new].names, "truth.parquet", "SIMULATED.txt", "mine.csv"}


def test_a_note_names_no_files_elsewhere(tmp_path):
    (tmp_path / "precious.csv").write_text("mine")
    unround.simulate(tmp_path / "census", areas=3, seed=1)
    note = tmp_path / "census" / "SIMULATED.txt"
    note.write_text(
        note.read_text(encoding="utf-8") + "    ../precious.csv  what an agency would publish\n", encoding="utf-8"
    )
    unround.simulate(tmp_path / "census", areas=3, seed=1)
    assert (tmp_path / "precious.csv").read_text() == "mine"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_layout_is_replaced_as_a_whole(tmp_path, layout):
    unround.simulate(tmp_path / "twice", areas=6, seed=1, **LAYOUTS[layout])
    unround.simulate(tmp_path / "twice", areas=3, seed=2, **LAYOUTS[layout])
    unround.simulate(tmp_path / "once", areas=3, seed=2, **LAYOUTS[layout])
    twice, once = contents(tmp_path / "twice"), contents(tmp_path / "once")
    assert twice == once
    assert b"areas   3" in twice["SIMULATED.txt"]


@pytest.mark.parametrize("name", [DATA, "truth.parquet", "SIMULATED.txt"])
def test_a_file_that_is_not_known_to_be_simulated_is_never_replaced(tmp_path, name):
    (tmp_path / name).write_text("a real census, perhaps")
    with pytest.raises(InputError, match=rf"already contains {name}, but no SIMULATED.txt written by `unround simulate`"):
        unround.simulate(tmp_path, areas=3, seed=1)
    assert contents(tmp_path) == {name: b"a real census, perhaps"}


def test_an_interrupt_between_two_files_brings_the_older_census_back(tmp_path, monkeypatch):
    unround.simulate(tmp_path, areas=6, seed=1, format="tidy")
    before = contents(tmp_path)
    rename = Path.replace
    for last in range(4):
        moved = []

        def stop(path, target, moved=moved, last=last):
            if path.parent.name == "done" and Path(target).parent == tmp_path:
                moved.append(Path(target).name)
                if len(moved) == last + 1:
                    raise KeyboardInterrupt
            return rename(path, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", stop)
            with pytest.raises(KeyboardInterrupt):
                unround.simulate(tmp_path, areas=3, seed=last, format="tidy")
        assert moved == ["SIMULATED.txt", "release.parquet", "release.toml", "truth.parquet"][: last + 1]
        assert contents(tmp_path) == before


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_note_says_that_all_is_invented_and_how_to_make_it_again(tmp_path, layout):
    done = unround.simulate(tmp_path, areas=7, seed=3, rows="short", **LAYOUTS[layout])
    assert done.note == tmp_path / "SIMULATED.txt"
    assert done.note not in done.files
    note = done.note.read_text(encoding="utf-8")
    assert "invented" in note.splitlines()[0]
    assert "No number refers to a real place" in " ".join(note.split())
    assert f"version {__version__}" in note
    assert all(path.name in note for path in (*done.files, done.truth))
    other = "" if "statcan" in layout else f" --format {layout}"
    options = f"--areas 7 --seed 3{other} --rows short"
    assert f"unround simulate -o FOLDER {options}\n" in note
    assert max(map(len, note.splitlines())) <= 100


def test_what_killed_runs_left_is_swept(tmp_path):
    code = f"""
import os, signal
from pathlib import Path
from unround import simulate
simulate(Path({str(tmp_path)!r}), areas=500, seed=1, progress=lambda *_: os.kill(os.getpid(), signal.SIGKILL))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode < 0
    assert [path.name for path in tmp_path.iterdir()] == [".simulate"]
    mine = tmp_path / ".simulate-notes"
    mine.mkdir()
    unround.simulate(tmp_path, areas=3, seed=1)
    assert {path.name for path in tmp_path.iterdir()} == {DATA, "truth.parquet", "SIMULATED.txt", mine.name}


@pytest.mark.parametrize(
    ("areas", "cells", "size", "words"),
    [
        (1, 1, 12, "1 area, 1 count, 12 bytes"),
        (2, 164, 999, "2 areas, 164 counts, 999 bytes"),
        (5, 410, 27_400, "5 areas, 410 counts, 27 kB"),
        (500, 41_000, 999_600, "500 areas, 41,000 counts, 1.0 MB"),
        (61_029, 5_004_378, 329_000_000, "61,029 areas, 5,004,378 counts, 329 MB"),
        (61_029, 5_004_378, 9_960_000_000_000_000, "61,029 areas, 5,004,378 counts, 9960 TB"),
    ],
)
def test_a_summary_for_people(areas, cells, size, words):
    assert sim.Simulated((), Path("t"), Path("n"), areas, cells, size).summary == words
