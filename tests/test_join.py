"""Several files as one release: however a census is cut up, joined it is the same; repeats are told from the data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.conftest import Run
from tests.shapes import judge
from unround import check, protect, simulate
from unround.errors import InputError
from unround.figures import Figure, FigureKind
from unround.mechanisms import Exact, Rounding
from unround.release import ABSENT, NOT_AVAILABLE, SUPPRESSED, Block, Column, Counts, Match, Proposal, Release, adjustable
from unround.structure import find_structure
from unround.tables import join, read, with_truth

SEXES = ("total", "men", "women")


def release(
    name: str,
    areas: list[str],
    keys: list[str],
    counts: Counts,
    *,
    level: str = "",
    layout: str = "test",
    proposals: tuple[Proposal, ...] = (),
    labels: dict[str, str] | None = None,
    mechanism: Rounding | Exact | None = None,
) -> Release:
    """Return a small release in memory; keys are such as "a" or "a/men"."""
    columns = []
    for key in keys:
        code, _, sex = key.partition("/")
        label = (labels or {}).get(key, code)
        columns.append(Column(key, (code, sex or "total"), label, "Table", mechanism=mechanism))
    frame = pl.DataFrame(
        {"region": areas, "region_name": areas, "level": [level] * len(areas), "parent": [None] * len(areas)}
    )
    frame = frame.with_columns(pl.col("parent").cast(pl.String), adjustable=pl.lit(False))
    table = np.asarray(counts, dtype=np.int32)

    def go(_progress: object) -> list[Block]:
        half = len(table) // 2
        return [Block(frame[part], table[part]) for part in (slice(0, half), slice(half, None)) if len(table[part])]

    return Release(name, layout, tuple(columns), ("characteristic_id", "sex"), ("region",), go, proposals)


def whole(of: Release) -> tuple[pl.DataFrame, Counts]:
    blocks = list(of.blocks())
    return pl.concat([block.areas for block in blocks]), np.concatenate([block.counts for block in blocks])


def cells(of: Release) -> dict[tuple[str, str], int]:
    """Return everything that is published, by area and key."""
    areas, counts = whole(of)
    keys = [column.key for column in of.columns]
    return {
        (area, key): int(counts[row, at])
        for row, area in enumerate(areas["region"])
        for at, key in enumerate(keys)
        if counts[row, at] != NOT_AVAILABLE
    }


AREAS, KEYS = [f"A{n:02}" for n in range(14)], ["a", "b", "c", "a/men", "b/men"]
COUNTS = np.arange(14 * 5, dtype=np.int32).reshape(14, 5) * 5


@settings(max_examples=60)
@given(st.data())
def test_whatever_way_a_census_is_cut_up_it_is_the_same_again(data: st.DataObject) -> None:
    """Every cell goes to one of a few files; files have whole rows and columns, and cells that went elsewhere are empty."""
    number = data.draw(st.integers(2, 4))
    row_file = [data.draw(st.integers(0, number - 1)) for _ in AREAS]
    column_file = [data.draw(st.integers(0, number - 1)) for _ in KEYS]
    along_rows = data.draw(st.booleans())
    parts = []
    for file in range(number):
        rows = [r for r, f in enumerate(row_file) if f == file or not along_rows]
        columns = [c for c, f in enumerate(column_file) if f == file or along_rows]
        if rows and columns:
            rows = data.draw(st.permutations(rows))
            counts = COUNTS[np.ix_(rows, columns)]
            parts.append(release(f"{file}.csv", [AREAS[r] for r in rows], [KEYS[c] for c in columns], counts))
    joined = join(parts)
    assert cells(joined) == {(area, key): int(COUNTS[r, c]) for r, area in enumerate(AREAS) for c, key in enumerate(KEYS)}
    assert cells(joined) == cells(joined), "it can be read again"
    assert not any("@" in column.key for column in joined.columns)


def test_nothing_that_is_published_is_lost_or_made_up() -> None:
    """Files overlap as they like: of every area and count, the numbers that come out are those that went in."""
    judge(st.data(), 60, joined_is_what_was_published)


def joined_is_what_was_published(data: st.DataObject) -> None:
    parts, expected = [], dict[tuple[str, str], list[int]]()
    for file in range(data.draw(st.integers(2, 3))):
        rows = sorted(data.draw(st.sets(st.integers(0, 13), min_size=3)))
        columns = sorted(data.draw(st.sets(st.integers(0, 4), min_size=1)))
        counts = COUNTS[np.ix_(rows, columns)] + file
        absent = data.draw(st.lists(st.booleans(), min_size=counts.size, max_size=counts.size))
        counts = np.where(np.array(absent).reshape(counts.shape), SUPPRESSED, counts)
        parts.append(release(f"{file}.csv", [AREAS[r] for r in rows], [KEYS[c] for c in columns], counts))
        for i, r in enumerate(rows):
            for j, c in enumerate(columns):
                expected.setdefault((AREAS[r], KEYS[c]), []).append(int(counts[i, j]))
    shared = {key for part in parts for key in (column.key for column in part.columns)}
    joined = join(parts)
    assert {column.key.partition("@")[0] for column in joined.columns} == shared
    places = dict[tuple[str, str], list[int]]()
    for (area, key), value in cells(joined).items():
        places.setdefault((area, key.partition("@")[0]), []).append(value)
    assume("too few to compare" not in " ".join(joined.notes))
    for cell, values in expected.items():
        published = [value for value in values if value > ABSENT]
        if published:
            assert places[cell] == published
        else:
            assert places[cell] == [SUPPRESSED]


def test_a_file_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "1.csv"
    path.write_text("region,characteristic_id,sex,published\n1,10,total,15\n1,10,men,10\n", encoding="utf-8")
    (tmp_path / "same.csv").symlink_to(path)
    for other in (path, tmp_path / "." / "1.csv", tmp_path / "same.csv"):
        with pytest.raises(InputError, match=r"1\.csv is given twice\. Name each file once"):
            join([read(path), read(other)])


def test_proposals_go_with_their_columns() -> None:
    sums = (Proposal(0, (1, 2), "indentation"),)
    one = release("1.csv", AREAS, ["a", "b", "c"], COUNTS[:, :3], proposals=sums)
    two = release("2.csv", AREAS, ["b", "c", "d"], COUNTS[:, :3], proposals=(Proposal(2, (0, 1), "names"),))
    joined = join([one, two])
    keys = [column.key for column in joined.columns]
    assert keys == ["a", "b", "c", "d", "b@2", "c@2"]
    said = {(keys[p.total], tuple(keys[part] for part in p.parts), p.origin) for p in joined.proposals}
    assert said == {
        ("a", ("b", "c"), "indentation"),
        ("a", ("b@2", "c@2"), "indentation"),
        ("d", ("b", "c"), "names"),
        ("d", ("b@2", "c@2"), "names"),
        ("b@2", ("b",), "files"),
        ("c@2", ("c",), "files"),
    }
    assert [column.codes for column in joined.columns[-2:]] == [("b@2", "total"), ("c@2", "total")]


def test_a_hidden_count_is_given_by_the_file_that_shows_it() -> None:
    hidden = np.full((14, 1), SUPPRESSED, dtype=np.int32)
    hidden[0] = 5
    joined = join([release("1.csv", AREAS, ["a"], hidden), release("2.csv", AREAS, ["a"], COUNTS[:, 1:2])])
    areas, counts = whole(joined)
    assert areas["region"].to_list() == AREAS
    assert counts[0].tolist() == [5, 5]
    assert counts[1:, 0].tolist() == COUNTS[1:, 1].tolist()
    assert set(counts[1:, 1].tolist()) == {NOT_AVAILABLE}


def test_labels_and_the_plan_match_what_keys_do_not() -> None:
    one = release("1.csv", AREAS, ["10", "10/men"], COUNTS[:, :2], labels={"10": "0 to 4 years", "10/men": "0 to 4 years"})
    other = {"v_1": "0 to 4 Years", "v_2/men": "0 to 4 years", "v_3": "pets"}
    two = release("2.csv", AREAS, list(other), COUNTS[:, :3], labels=other, layout="other")
    assert [column.key for column in join([one, two]).columns] == ["10", "10/men", "v_3", "10@2", "10/men@2"]
    said = [Match("2.csv", {"v_3": "10", "v_1": ""})]
    assert [column.key for column in join([one, two], said).columns] == ["10", "10/men", "v_1", "10@2", "10/men@2"]
    two = release("2.csv", AREAS, ["x", "x/men"], COUNTS[:, :2])
    said = [Match("2.csv", characteristics={"x": "10"})]
    assert [column.key for column in join([one, two], said).columns] == ["10", "10/men", "10@2", "10/men@2"]


def test_a_key_that_means_something_else_is_another_column() -> None:
    one = release("1.csv", AREAS, ["9"], COUNTS[:, :1], labels={"9": "cats"})
    two = release("2.csv", AREAS, ["9"], COUNTS[:, :1], labels={"9": "dogs"})
    joined = join([one, two])
    assert [(column.key, column.label) for column in joined.columns] == [("9", "cats"), ("9@file2", "dogs")]
    assert not joined.proposals
    exact = release("2.csv", AREAS, ["9"], COUNTS[:, :1], labels={"9": "cats"}, mechanism=Exact())
    rounded = replace(one, columns=(replace(one.columns[0], mechanism=Rounding(5)),))
    assert [column.mechanism for column in join([rounded, exact]).columns] == [Rounding(5), Exact()]


def test_areas_go_by_their_codes_in_every_layout() -> None:
    bulk = [f"2021S0512100100{n:02}" for n in range(14)]
    wide = [f"100100{n:02}" for n in range(14)]
    one = release("1.csv", bulk, ["a"], COUNTS[:, :1], level="Dissemination area")
    for two in (
        release("2.csv", wide, ["b"], COUNTS[:, 1:2], level="DA", layout="wide"),
        release("2.csv", wide, ["b"], COUNTS[:, 1:2], layout="plain"),
    ):
        areas, counts = whole(join([one, two]))
        assert areas["region"].to_list() == bulk
        assert np.array_equal(counts, COUNTS[:, :2])


@pytest.mark.parametrize(
    ("files", "matches", "words"),
    [
        (
            (release("1.csv", AREAS, ["a"], COUNTS[:, :1]), release("2.csv", ["Z1", "Z2"], ["z"], COUNTS[:2, :1])),
            (),
            r"2\.csv has neither an area nor a column in common with 1\.csv .* \[\[match\]\]",
        ),
        (
            (
                release("1.csv", AREAS, ["a"], COUNTS[:, :1], level="ta"),
                release("2.csv", AREAS, ["a"], COUNTS[:, :1], level="rc"),
            ),
            (),
            r"the code A00 stands for a 'ta' in 1\.csv and for a 'rc' in 2\.csv: .* one by one",
        ),
        (
            (release("1.csv", AREAS, ["a"], COUNTS[:, :1]), release("2.csv", ["A1", "A1"], ["a"], COUNTS[:2, :1])),
            (),
            r"A1 occurs more than once in 2\.csv",
        ),
        (
            (release("1.csv", AREAS, ["a"], COUNTS[:, :1]), release("2.csv", [], ["a"], COUNTS[:0, :1])),
            (),
            r"there is no area in 2\.csv",
        ),
        (
            (release("1.csv", AREAS, ["abc"], COUNTS[:, :1]), release("2.csv", AREAS, ["z"], COUNTS[:, :1])),
            (Match("2.csv", {"z": "abd"}),),
            r"no column 'abd' in 1\.csv\. Did you mean 'abc'\?",
        ),
        (
            (release("1.csv", AREAS, ["a"], COUNTS[:, :1]), release("2.csv", AREAS, ["z"], COUNTS[:, :1])),
            (Match("2.csv", characteristics={"y": "a"}),),
            r"no column 'y' in 2\.csv",
        ),
        (
            (release("1.csv", AREAS, ["a"], COUNTS[:, :1]), release("2.csv", AREAS, ["z"], COUNTS[:, :1])),
            (Match("3.csv", {"z": "a"}),),
            r"file = '3\.csv' names none of the files. They are 1\.csv, 2\.csv",
        ),
    ],
)
def test_what_cannot_be_joined(files: tuple[Release, ...], matches: tuple[Match, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        join(files, matches)


def test_other_axes_cannot_be_joined() -> None:
    one = release("1.csv", AREAS, ["a"], COUNTS[:, :1])
    two = replace(release("2.csv", AREAS, ["a"], COUNTS[:, :1]), axes=("characteristic_id",))
    with pytest.raises(InputError, match=r"2\.csv gives counts by region, characteristic_id, and 1\.csv by region, .*sex"):
        join([one, two])


# Repeats: told from the data


def rounded(true: Counts, seed: int) -> Counts:
    return Rounding(5).publish(true.astype(np.int64), np.random.default_rng(seed)).astype(np.int32)


def people() -> Counts:
    rng = np.random.default_rng(7)
    parts = rng.poisson((60, 25, 0.4), (400, 3))
    return np.column_stack([parts.sum(1), parts]).astype(np.int32)


NAMES = [f"B{n:03}" for n in range(400)]
TABLE = ["all", "young", "old", "rare"]
SUMS = (Proposal(0, (1, 2, 3), "indentation"),)


def test_numbers_that_differ_are_two_observations() -> None:
    true = people()
    files = [release(f"{n}.csv", NAMES, TABLE, rounded(true, n), proposals=SUMS) for n in (1, 2)]
    structure = find_structure(join(files))
    keys = [column.key for column in structure.columns]
    assert {tuple(keys[c] for c in one.columns) for one in structure.repeats if not one.alike} == {
        (key, f"{key}@2") for key in TABLE
    }
    assert not structure.alias
    # The sum is used once: that it holds for the second numbers too follows.
    said = {(keys[total], tuple(keys[p] for p in parts)) for total, parts in structure.equations}
    assert said == {("all", ("young", "old", "rare")), *((f"{key}@2", (key,)) for key in TABLE)}


def test_numbers_that_are_alike_are_one_observation() -> None:
    shown = rounded(people(), 1)
    misprinted = shown.copy()
    misprinted[3, 1] += 5
    for second in (shown, misprinted):
        files = [release("1.csv", NAMES, TABLE, shown, proposals=SUMS), release("2.csv", NAMES, TABLE, second)]
        structure = find_structure(join(files))
        assert [one.alike for one in structure.repeats] == [True] * 4
        assert len(structure.equations) == 1


def test_a_name_alone_is_not_believed() -> None:
    """Two censuses have the same areas and columns, and other people."""
    now, then = people(), people() * 2
    files = [release(f"{n}.csv", NAMES, TABLE, rounded(true, n), proposals=SUMS) for n, true in ((1, now), (2, then))]
    structure = find_structure(join(files))
    keys = [column.key for column in structure.columns]
    refused = {keys[one.total] for one in structure.rejected if one.origin == "files"}
    assert {"all@2", "young@2", "old@2"} <= refused
    said = {(keys[total], tuple(keys[p] for p in parts)) for total, parts in structure.equations}
    assert {("all", ("young", "old", "rare")), ("all@2", ("young@2", "old@2", "rare@2"))} <= said
    assert not any(len(parts) == 1 and total in ("all@2", "young@2", "old@2") for total, parts in said)


def test_a_few_areas_in_two_files_do_not_double_the_columns() -> None:
    one = release("1.csv", [*NAMES[:200], "total"], TABLE, rounded(people(), 1)[:201])
    two = release("2.csv", [*NAMES[200:399], "total"], TABLE, rounded(people(), 1)[200:])
    joined = join([one, two])
    assert [column.key for column in joined.columns] == TABLE
    assert whole(joined)[0]["region"].to_list() == [*NAMES[:200], "total", *NAMES[200:399]]
    assert any("1 area is in several files, too few to compare" in note for note in joined.notes)
    assert whole(joined)[1].shape == (400, 4)
    assert sum("too few to compare" in note for note in joined.notes) == 1, "it is said once, however often it is read"


def test_truth_is_known_of_every_publication() -> None:
    true = people()
    joined = join([release(f"{n}.csv", NAMES, TABLE, rounded(true, n)) for n in (1, 2, 3)])
    known = with_truth(release("t.csv", NAMES, TABLE, true), joined)
    assert [column.key for column in known.columns] == [*TABLE, *(f"{key}@{n}" for n in (2, 3) for key in TABLE)]
    assert np.array_equal(whole(known)[1], np.hstack([true, true, true]))


# Whole censuses


def test_layouts_together(tmp_path: Path) -> None:
    """One census in three layouts: the areas and ages are the same, and known to be."""
    made = [simulate(tmp_path / name, areas=60, seed=4, format=name) for name in ("statcan", "censusmapper", "tidy")]
    releases = [read(one.files[0]) for one in made]
    joined = join(releases)
    areas, _ = whole(joined)
    assert areas.height == 60
    keys = {column.key for column in joined.columns}
    assert {"10", "10/men", "10@2", "10@3", "10/men@3"} <= keys
    structure = find_structure(joined)
    names = [column.key for column in structure.columns]
    alias = {names[column]: names[other] for column, other in structure.alias.items()}
    assert alias["10@2"] == alias["10@3"] == "10", "the same seed gives the same numbers in every layout"
    assert (alias["10/men@2"], alias["33/women@3"]) == ("10/men", "33/women")


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("twice")
    simulate(folder, areas=150, seed=5, format="tidy")
    protect(folder / "truth.parquet", folder / "again", base=5, seed=2, exact=["1", "2", "4", "5"])
    (folder / "again" / "release.parquet").replace(folder / "release_2.parquet")
    about = (folder / "again" / "release.toml").read_text(encoding="utf-8")
    (folder / "release_2.toml").write_text(about.replace("release.parquet", "release_2.parquet"), encoding="utf-8")
    return folder


def test_one_audit_of_two_files(run: Run, twice: Path, tmp_path: Path) -> None:
    files = [str(twice / "release.parquet"), str(twice / "release_2.toml")]
    truth = ("--truth", str(twice / "truth.parquet"))
    alone = json.loads(run("audit", files[0], "-o", str(tmp_path / "one"), *truth, "--json").out)
    ran = run("audit", *files, "-o", str(tmp_path / "both"), *truth, "--json")
    assert ran.code == 0, ran.err
    both = json.loads(ran.out)
    frame = pl.read_parquet(tmp_path / "both" / "findings.parquet")
    once = pl.read_parquet(tmp_path / "one" / "findings.parquet")
    first = frame.filter(~pl.col("characteristic_id").cast(pl.String).str.contains("@"))
    assert first.height > 1.5 * once.height, "two roundings tell more than one"
    assert both["source"] != alone["source"]
    truth_frame = pl.read_parquet(twice / "truth.parquet").with_columns(pl.col("characteristic_id").cast(pl.String))
    scored = first.join(truth_frame, on=["region", "characteristic_id", "sex"])
    assert scored.height == first.height
    right = (
        scored.filter(kind="likely").select((pl.col("value") == pl.col("true")).mean(), pl.col("probability").mean()).row(0)
    )
    assert right[0] > right[1] - 0.05
    assert scored.filter(pl.col("kind") == "proved", pl.col("value") != pl.col("true")).height == 0


def test_inspect_and_check_take_several_files_and_a_plan(run: Run, twice: Path, tmp_path: Path) -> None:
    files = [str(twice / "release.toml"), str(twice / "release_2.toml")]
    plan = tmp_path / "plan.toml"
    match = '[[match]]\nfile = "release_2.toml"\ncharacteristics = { "10" = "" }\ncolumns = { "12" = "12" }\n'
    plan.write_text(match, encoding="utf-8")
    ran = run("check", *files, "--describe", str(plan), "--write", str(tmp_path / "new.toml"), "--json")
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    assert "[[match]]" in (tmp_path / "new.toml").read_text(encoding="utf-8")
    assert " ".join(files) in ran.err
    named = {key for one in report["mechanisms"] for key in one["columns"]}
    assert "11@2" in named
    assert "10@file2" in named
    assert "10@2" not in named
    matched = {one["total"]: one["ground"] for one in report["sums"] if one["origin"] == "files"}
    assert matched.pop("12@2") == "declared"
    assert set(matched.values()) == {"inferred"}
    ran = run("check", *files)
    assert any(line.strip().startswith("files ") for line in ran.out.split("\n"))
    assert "counts that appear in several files" in " ".join(ran.out.split())
    assert run("check", *files).code == 0
    ran = run("check", files[0], "--describe", str(plan))
    assert (ran.code, "links the columns of several files" in ran.err) == (2, True)
    ran = run("check", *files, "--describe", files[0])
    assert (ran.code, "axes are those of one table" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[match]]\nfile = "b.csv"\n', "a match needs columns"),
        ('[[match]]\ncolumns = { "a" = "b" }\n', "file must hold codes"),
        ('[[match]]\nfile = "b.csv"\ncolumns = ["a"]\n', "columns must be a table such as"),
        ('[[match]]\nfile = "b.csv"\ncolums = { "a" = "b" }\n', "there is no key 'colums' in [[match]]"),
        ("match = 3\n", "match must be a list of tables"),
    ],
)
def test_plans_that_match_nothing(run: Run, twice: Path, tmp_path: Path, text: str, words: str) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(text, encoding="utf-8")
    ran = run("check", str(twice / "release.toml"), str(twice / "release_2.toml"), "--describe", str(plan))
    assert ran.code == 2
    assert words in ran.err


def test_a_file_that_calls_its_counts_exact_does_not_speak_for_one_that_says_nothing(tmp_path: Path) -> None:
    from unround.mechanisms import Exact

    for name, how, areas in (("sure", 'default = "exact"', range(20)), ("silent", "", range(10, 60))):
        rows = [f"{area},{code},{5 * (area + at)}" for area in areas for at, code in enumerate(("all", "a", "b"))]
        (tmp_path / f"{name}.csv").write_text("region,what,value\n" + "\n".join(rows) + "\n", encoding="utf-8")
        (tmp_path / f"{name}.toml").write_text(
            f'data = "{name}.csv"\nvalue = "value"\n{how}\n[axes.region]\n[axes.what]\n'
            'sums = [{ total = "all", parts = ["a", "b"] }]\n',
            encoding="utf-8",
        )
    both = join([read(tmp_path / "sure.toml"), read(tmp_path / "silent.toml")])
    exact = [column.key for column in both.columns if column.mechanism == Exact()]
    assert sorted(exact) == ["a", "all", "b"]
    assert len(both.columns) == 6, "the other file's counts keep a name of their own"


def test_no_order_of_files_makes_populations_exact(tmp_path: Path) -> None:
    """A tidy table does not say where populations were adjusted: it must not overrule the file that does."""
    bulk = simulate(tmp_path / "bulk", areas=80, seed=2).files[0]
    tidy = simulate(tmp_path / "tidy", areas=80, seed=2, format="tidy").files[-1]
    flags = []
    for files in ((bulk, tidy), (tidy, bulk)):
        areas = pl.concat([block.areas for block in join([read(file) for file in files]).blocks()])
        flags.append(dict(zip(areas["region_name"].to_list(), adjustable(areas).tolist(), strict=True)))
    assert flags[0] == flags[1]
    assert set(flags[0].values()) == {True, False}


def test_an_area_of_which_nothing_is_known_may_be_adjusted() -> None:
    areas = pl.DataFrame({"region": ["a", "b", "c"]})
    assert adjustable(areas).tolist() == [True, True, True]
    assert adjustable(areas.with_columns(adjustable=pl.Series([True, False, None]))).tolist() == [True, False, True]


def test_figures_are_left_out_and_that_is_said() -> None:
    one, other = (release(name, ["1", "2"], [name, "n"], [[5, 50], [10, 60]]) for name in "ab")
    figured = replace(one, figures=(Figure("r", FigureKind.RATE, "n", "a"),))
    assert not any("left out" in note for note in join([one, other]).notes)
    joined = join([figured, other])
    assert joined.figures == ()
    assert any("audit that file by itself" in note for note in joined.notes)


def test_what_one_file_leaves_out_stays_out_of_all(tmp_path: Path) -> None:
    rows = [f"D{n:02},{30 + n},{10 + n},20" for n in range(15)]
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["town,all,young,old", *rows]), encoding="utf-8")
        sums = (
            'default = "exact"\n[axes.town]\n[axes.age]\nheader = 1\nsums = [{ total = "all", parts = ["young", "old"] }]\n'
        )
        (tmp_path / f"{name}.toml").write_text(f'data = "{name}.csv"\n{sums}', encoding="utf-8")
    files = [tmp_path / "a.toml", tmp_path / "b.toml"]
    assert any(len(sum_.parts) == 2 for sum_ in check(files).structure.sums)
    with files[0].open("a", encoding="utf-8") as file:
        file.write('[[sums]]\naxis = "age"\ntotal = "all"\nparts = ["young", "old"]\n')
        file.write('use = false\nbecause = "others are in neither"\n')
    structure = check(files).structure
    assert not any(sum_.total == 0 and len(sum_.parts) == 2 for sum_ in structure.sums)
    assert any(sum_.cause == "decided" for sum_ in structure.rejected)
    (entry,) = (sum_ for sum_ in check(files[0]).release.account if sum_.place.startswith("sum "))
    assert (entry.what.value, entry.used) == ("note", False)
    assert "others are in neither" in entry.why
