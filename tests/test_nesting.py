"""Areas within areas: by code, by columns, by a file; verified family by family, left alone where something is missing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.conftest import Run
from unround import simulate
from unround.errors import InputError
from unround.mechanisms import Exact, Mechanism, Rounding
from unround.release import SUPPRESSED, Block, Column, Counts, Release
from unround.simulation.geography import plan
from unround.structure import Nesting, find_nesting, find_structure
from unround.tables import join, read
from unround.tables.hierarchy import AreasFile, with_areas

KEYS = ("population", *(f"age{n}" for n in range(6)))


def country(seed: int = 1, small: int = 1) -> tuple[pl.DataFrame, Counts]:
    """Draw districts of 1 to 6 wards, districts after their wards, and true counts that add up."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[str, str, str | None]] = []
    counts: list[np.ndarray] = []
    for district in range(60):
        children = []
        for ward in range(small + district % 6):
            ages = rng.poisson(rng.uniform(0, 40, 6))
            rows.append((f"{district:03}{ward:02}", "ward", f"{district:03}"))
            children.append(np.array([ages.sum(), *ages]))
        counts += [*children, np.sum(children, axis=0)]
        rows.append((f"{district:03}", "district", None))
    frame = pl.DataFrame(rows, schema={"region": pl.String, "level": pl.String, "parent": pl.String}, orient="row")
    return frame.with_columns(region_name=pl.col("region"), adjustable=pl.lit(False)), np.array(counts)


def published(true: Counts, seed: int = 2, exact: bool = True) -> tuple[Counts, list[Mechanism]]:
    shown = Rounding(5).publish(true.astype(np.int64), np.random.default_rng(seed)).astype(np.int32)
    if exact:
        shown[:, 0] = true[:, 0]
    return shown, [Exact() if exact else Rounding(5), *[Rounding(5)] * 6]


def look(frame: pl.DataFrame, counts: Counts, how: list[Mechanism], adjusted: int = 0) -> Nesting:
    columns = tuple(
        Column(key, (key, "total"), key, "Ages" if at else "Population", mechanism=kind, adjusted=0 if at else adjusted)
        for at, (key, kind) in enumerate(zip(KEYS, how, strict=True))
    )
    block = Block(frame, counts)
    release = Release("test", "test", columns, ("characteristic_id", "sex"), ("region",), lambda _: [block])
    return find_nesting(frame, lambda rows: counts[rows], find_structure(release))


def parents(found: Nesting, frame: pl.DataFrame) -> dict[str, str | None]:
    codes = frame["region"].to_list()
    return {code: codes[at] if at >= 0 else None for code, at in zip(codes, found.parent.tolist(), strict=True)}


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("by", ["parent", "code"])
def test_wards_make_up_their_districts(by: str, exact: bool) -> None:
    frame, true = country()
    counts, how = published(true, exact=exact)
    shown = frame if by == "parent" else frame.with_columns(parent=pl.lit(None, dtype=pl.String))
    proposals = look(shown, counts, how)
    assert parents(proposals, frame) == dict(zip(frame["region"], frame["parent"], strict=True))
    (level,) = proposals.levels
    assert (level.name, level.by, level.parents, level.children) == ("ward in district", by, 60, 210)
    assert level.by_k == {"1": 10, "2": 10, "3-4": 20, "5-10": 20}
    assert level.columns.all()
    assert level.alike is False
    assert proposals.sure.sum() == (60 if exact else 0)
    families = proposals.families()
    assert sum(map(len, families.values())) == 210
    assert all((proposals.parent[children] == head).all() for head, children in families.items())


def test_a_district_whose_ward_is_missing_is_not_linked() -> None:
    """Of every sixth district a ward is not there: its population says so, and without one its largest counts."""
    frame, true = country(small=2)
    gone = [f"{district:03}01" for district in range(3, 60, 6)]
    there = (~frame["region"].is_in(gone)).to_numpy()
    for exact in (True, False):
        counts, how = published(true, exact=exact)
        proposals = look(frame.filter(pl.Series(there)), counts[there], how)
        linked = {parent for parent in parents(proposals, frame.filter(pl.Series(there))).values() if parent}
        assert linked == {f"{district:03}" for district in range(60) if district % 6 != 3}
        (level,) = proposals.levels
        assert sum(level.rejected.values()) == 10
        assert "some area is missing" in next(iter(level.rejected))
        assert level.columns.all(), "what is missing in some families says nothing against columns"


def test_a_single_count_that_cannot_be_leaves_its_family_alone() -> None:
    frame, true = country()
    counts, how = published(true)
    at = frame["region"].to_list().index("007")
    counts[at, 3] += 100
    proposals = look(frame, counts, how)
    assert {code for code, parent in parents(proposals, frame).items() if parent is None and len(code) == 5} == {
        "00700",
        "00701",
    }
    assert proposals.levels[0].rejected == {"some count cannot be the sum of the children's": 1}
    assert proposals.levels[0].columns.all()


def test_what_is_hidden_in_a_ward_does_not_unlink_it() -> None:
    frame, true = country()
    counts, how = published(true)
    small = (frame["level"] == "ward").to_numpy() & (true[:, 0] < 60)
    counts[np.ix_(small, range(1, 7))] = SUPPRESSED
    assert small.sum() > 5
    assert look(frame, counts, how).levels[0].parents == 60


def test_adjusted_populations_may_be_a_little_off() -> None:
    frame, true = country()
    counts, how = published(true)
    counts[:, 0] += np.random.default_rng(3).integers(-5, 6, len(counts)) * (frame["level"] == "ward").to_numpy()
    counts[:, 0] = np.maximum(counts[:, 0], 0)
    assert look(frame, counts, how).levels[0].parents < 40
    moved = frame.with_columns(adjustable=pl.col("level") == "ward")
    proposals = look(moved, counts, how, adjusted=5)
    assert proposals.levels[0].parents >= 59
    assert proposals.sure.sum() < 40, "only what adds up to the last person is sure"


def test_a_column_that_counts_others_is_left_out_with_its_table() -> None:
    frame, true = country()
    elsewhere = true.copy()
    tops = (frame["level"] == "district").to_numpy()
    elsewhere[tops, 1:4] += 40  # people who work in the district, in no known ward
    counts, how = published(elsewhere)
    proposals = look(frame, counts, how)
    assert proposals.levels[0].columns.tolist() == [True, *[False] * 6]


@pytest.mark.parametrize("alike", [True, False])
def test_whether_a_single_ward_shows_the_numbers_of_its_district(alike: bool) -> None:
    frame, true = country()
    counts, how = published(true)
    if alike:
        for at, parent in enumerate(frame["parent"].to_list()):
            if parent is not None and int(parent) % 6 == 0:
                counts[frame["region"].to_list().index(parent)] = counts[at]
    (level,) = look(frame, counts, how).levels
    assert level.alike is alike
    assert ("the same numbers, which add no information" if alike else "rounded anew") in level.why


def test_areas_that_have_nothing_to_do_with_each_other() -> None:
    frame, true = country()
    counts, how = published(true)
    wards = (frame["level"] == "ward").to_numpy()
    proposals = look(frame.filter(pl.Series(wards)), counts[wards], how)
    assert (proposals.linked, proposals.levels) == (0, ())
    none = find_nesting(frame, lambda rows: counts[rows], find_structure(_empty(frame, counts)), ("region", "year"))
    assert none.linked == 0


@pytest.mark.parametrize("levels", [True, False])
def test_areas_that_would_lie_in_each_other_are_not_linked_in_a_circle(levels: bool) -> None:
    frame, true = country()
    counts, how = published(true)
    ward = pl.col("region").replace_strict({"000": "00000"}, default=None)  # the district's only ward
    frame = frame.with_columns(parent=pl.coalesce("parent", ward))
    parents_of_areas = parents(look(frame if levels else frame.with_columns(level=pl.lit("")), counts, how), frame)
    assert None in (parents_of_areas["000"], parents_of_areas["00000"])
    assert parents_of_areas["00101"] == "001", "the others are linked as ever"


def _empty(frame: pl.DataFrame, counts: Counts) -> Release:
    columns = tuple(Column(key, (key, "total"), key) for key in KEYS)
    return Release("x", "x", columns, ("characteristic_id", "sex"), ("region",), lambda _: [Block(frame, counts)])


# Files of areas


def test_files_of_areas(tmp_path: Path) -> None:
    wide = tmp_path / "wide.csv"
    wide.write_text(
        "SA1_2018_NAME,SA2_2018_CODE,SA2_2018_NAME,TA_2018_CODE\n1,11,A,T1\n2,11,A,T1\n3,12,B,T1\n4,13,C,T2\n5,13,C,T1\n",
        encoding="utf-8",
    )
    known = AreasFile.open(wide)
    assert list(known.around) == ["sa1", "sa2", "ta"]
    assert known.find("1", "sa1") == {"sa2": "11", "ta": "T1"}
    assert known.find("13", "") == {"ta": None}, "it lies in two"
    assert (known.find("T1", ""), known.find("99", "")) == ({}, None)
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("Parent,Child\nT1,11\nT1,12\n", encoding="utf-8")
    assert AreasFile.open(pairs).find("12", "sa2") == {"parent": "T1"}
    assert AreasFile.open(pairs).find("T1", "ta") == {}, "a parent is known too"
    pairs.write_text("child,parent\n1,2\n2,2\n", encoding="utf-8")
    assert AreasFile.open(pairs).find("1", "") == {"parent": "2"}, "the largest area may name itself"
    for text, words in (
        ("child,parent\n1,2\n1,3\n", "says that 1 lies within 2 and within 3"),
        ("child,parent\n", "no pairs of child and parent; add one line"),
        ("child,parent\n1,2\n2,3\n4,2\n3,2\n", "contains a circle: 2 lies within 3 lies within 2\\. Delete"),
        ("a,b\n1,2\n", "needs columns child and parent"),
    ):
        pairs.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=words):
            AreasFile.open(pairs)


def test_an_areas_file_that_knows_none_of_the_areas(tmp_path: Path) -> None:
    made = simulate(tmp_path / "c", areas=30, seed=1)
    strange = tmp_path / "areas.csv"
    strange.write_text("child,parent\nx,y\n", encoding="utf-8")
    with pytest.raises(InputError, match="has none of the areas in the table"):
        list(with_areas(read(made.files[0]), strange).blocks())


# Simulated and real censuses


def test_many_csds_have_few_das() -> None:
    das = plan(20_000, 1, small=True).regions.filter(level="DA").group_by("csd").len()["len"]
    shares = [float(((das >= low) & (das <= high)).mean()) for low, high in ((1, 1), (2, 4), (5, 10), (200, 10_000))]
    assert shares[0] == pytest.approx(1 / 3, abs=0.01)
    assert shares[1] == pytest.approx(1 / 4, abs=0.01)
    assert shares[2] > 0.15
    assert 0 < shares[3] < 0.03
    assert int(das.sum()) == plan(20_000, 1).regions.filter(level="DA").height


@pytest.mark.parametrize("layout", ["statcan", "censusmapper", "tidy"])
def test_a_file_a_level_and_together_again(tmp_path: Path, layout: str) -> None:
    together = simulate(tmp_path / "one", areas=200, seed=2, format=layout, levels="da,csd,cd,province")
    apart = [
        simulate(tmp_path / level, areas=200, seed=2, format=layout, levels=level)
        for level in ("province", "cd", "csd", "da")
    ]
    assert together.nesting is not None
    assert all(pl.read_parquet(made.truth).equals(pl.read_parquet(together.truth)) for made in apart)
    table, four = read(together.files[0]), join([read(made.files[0]) for made in apart])
    keys = [column.key for column in table.columns]
    rows = {}
    for release in (table, four):
        blocks = list(release.blocks())
        codes = pl.concat([block.areas for block in blocks])["region"]
        counts = np.concatenate([block.counts for block in blocks])[:, [release.index[key] for key in keys]]
        rows[release.source] = {code: counts[at].tolist() for at, code in enumerate(codes)}
    assert rows[table.source] == rows[four.source]
    note = together.note.read_text(encoding="utf-8")
    assert "--levels da,csd,cd,province\n" in note
    assert "areas.csv" in note
    simulate(tmp_path / "one", areas=10, seed=2, format=layout)
    assert len(list((tmp_path / "one").iterdir())) == len(together.files) + 2, "what belonged to the other census is gone"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"levels": "da,town"}, "there is no level 'town'"),
        ({"levels": ","}, "there is no level"),
    ],
)
def test_what_simulate_cannot_write(tmp_path: Path, given: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        simulate(tmp_path, areas=30, seed=1, **given)  # type: ignore[arg-type]


def test_inspect_shows_which_areas_make_up_which(run: Run, tmp_path: Path) -> None:
    made = simulate(tmp_path, areas=300, seed=6, levels="da,csd,cd,province")
    report = json.loads(run("check", str(made.files[0]), "--nesting", str(made.nesting), "--json").out)
    assert [(level["child"], level["parent"]) for level in report["nesting"]["levels"]] == [
        ("Dissemination area", "Census subdivision"),
        ("Census subdivision", "Census division"),
        ("Census division", "Province"),
    ]
    assert report["nesting"]["linked"] == 299
    assert all(level["rejected"] == {} for level in report["nesting"]["levels"])
    shown = " ".join(run("check", str(made.files[0]), "--nesting", str(made.nesting)).out.split())
    assert "299 areas are parts of others" in shown
    assert "rounded anew" in shown
    # Without the file, codes tell in which division a dissemination area lies, but its subdivision is not known.
    alone = json.loads(run("check", str(made.files[0]), "--json").out)["nesting"]["levels"]
    assert [(level["child"], level["parent"]) for level in alone] == [
        ("Census subdivision", "Census division"),
        ("Census division", "Province"),
    ]


def test_new_zealand_in_one_command(run: Run, census_data: Path, tmp_path: Path) -> None:
    files = [str(census_data / f"nz-2013-individual-{level}.csv.gz") for level in ("sa2", "ta", "rc")]
    areas = ("--nesting", str(census_data / "nz-2018-areas.csv.gz"))
    report = json.loads(run("check", *files, *areas, "--json").out)
    assert report["areas"] == 2339
    first, second = report["nesting"]["levels"]
    assert (first["child"], first["parent"], first["parents"], first["children"]) == ("sa2", "ta", 68, 2253)
    assert first["rejected"] == {}
    # Districts that lie in two regions leave these incomplete; regions of one district show its numbers.
    assert (second["child"], second["parent"], second["parents"], second["alike"]) == ("ta", "rc", 8, True)
    assert sum(second["rejected"].values()) == 9
    ran = run("audit", *files[1:], *areas, "-o", str(tmp_path / "nz"), "--json", "--prior", "flat")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["areas"] == 86


def test_an_areas_file_with_two_columns_of_one_name_is_refused(tmp_path):
    from unround.tables.hierarchy import AreasFile

    (tmp_path / "areas.csv").write_text("code,region, region\n1,10,100\n")
    with pytest.raises(InputError, match="more than one column called 'region'"):
        AreasFile.open(tmp_path / "areas.csv")
