"""Tidy tables and frames: every key of the TOML does what it says, and everything that cannot be meant is refused."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from unround import Cell, Sum, System, check_proof, simulate, solve
from unround.errors import InputError, UnknownFormat
from unround.mechanisms import Exact, Rounding
from unround.release import NOT_APPLICABLE, NOT_AVAILABLE, SUPPRESSED, UNREADABLE, Counts, Release
from unround.tables import matches, tidy
from unround.tables.description import make_description, read_description
from unround.tables.frames import from_frame

EXAMPLES = Path(__file__).parents[1] / "examples"

CSV = """\
town,age,group,n
Aa,all,both,30
Aa,young,both,15
Aa,old,both,20
Aa,all,f,15
Aa,young,f,5
Aa,old,f,10
Bo,all,both,45
Bo,young,both,25
Bo,old,both,20
Bo,all,f,20
Bo,young,f,15
Bo,old,f,
"""

TOML = """\
value = "n"
default = "rounding:5"
[axes.town]
[axes.age]
sums = [{ total = "all", parts = ["young", "old"] }]
[axes.group]
"""


def write(folder: Path, toml: str | None = TOML, data: str = CSV, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text(data, encoding="utf-8")
    if toml is not None:
        (folder / "t.toml").write_text(toml, encoding="utf-8")
    return path


def load(folder: Path, toml: str | None = TOML, data: str = CSV) -> Release:
    return tidy.load(write(folder, toml, data))


def counts(release: Release) -> Counts:
    return np.concatenate([block.counts for block in release.blocks()])


def areas(release: Release) -> pl.DataFrame:
    return pl.concat([block.areas for block in release.blocks()])


def keys(release: Release) -> list[str]:
    return [column.key for column in release.columns]


def sums(release: Release) -> set[str]:
    assert all(proposal.origin == "file" for proposal in release.proposals)
    key = keys(release)
    return {f"{key[item.total]}={'+'.join(key[part] for part in sorted(item.parts))}" for item in release.proposals}


def error(folder: Path, toml: str, data: str = CSV) -> str:
    with pytest.raises(InputError) as caught:
        load(folder, toml, data)
    return str(caught.value)


# What the TOML says, and what comes of it


def test_a_table_and_its_toml(tmp_path: Path) -> None:
    release = load(tmp_path)
    # Nothing is said of groups, so that they are rows, as towns are: the ages add up in each by itself.
    assert (release.file_format, release.axes, release.areas) == ("tidy", ("age",), ("town", "group"))
    assert keys(release) == ["all", "young", "old"]
    assert sums(release) == {"all=young+old"}
    assert areas(release).rows() == [
        ("Aa", "both", "", None, None),
        ("Aa", "f", "", None, None),
        ("Bo", "both", "", None, None),
        ("Bo", "f", "", None, None),
    ]
    assert counts(release).tolist() == [[30, 15, 20], [15, 5, 10], [45, 25, 20], [20, 15, NOT_AVAILABLE]]
    assert {column.mechanism for column in release.columns} == {Rounding(5)}
    assert "t.toml" in release.notes[0]


def test_columns_are_combinations_of_codes(tmp_path: Path) -> None:
    release = load(tmp_path, TOML.replace("[axes.group]", '[axes.group]\nsums = [{ total = "both", parts = ["f"] }]'))
    assert keys(release) == ["all/both", "all/f", "young/both", "young/f", "old/both", "old/f"]
    assert sums(release) == {
        "all/both=young/both+old/both", "all/f=young/f+old/f",
        "all/both=all/f", "young/both=young/f", "old/both=old/f",
    }  # fmt: skip
    first = [(column.label, column.block, column.depth) for column in release.columns[:3]]
    assert first == [("all, both", "all", 0), ("all, f", "all", 0), ("young, both", "all", 1)]


def test_areas_can_be_said(tmp_path: Path) -> None:
    release = load(tmp_path, 'areas = ["town"]\n' + TOML)
    assert (release.areas, release.axes) == (("town",), ("age", "group"))
    assert keys(release)[:2] == ["all/both", "all/f"]


def test_a_table_without_areas_is_one_row(tmp_path: Path) -> None:
    data = "age,n\nall,30\nyoung,15\nold,20\n"
    release = load(tmp_path, TOML.replace("[axes.town]\n", "").replace("[axes.group]\n", ""), data)
    assert (release.areas, areas(release)["table"].to_list()) == (("table",), ["all"])
    assert counts(release).tolist() == [[30, 15, 20]]


def test_what_is_missing_and_why(tmp_path: Path) -> None:
    data = "town,age,n\nAa,all,\nAa,young,x\nAa,old,?\nBo,all,-\nBo,young, 1 205 \n"
    toml = 'missing = "suppressed"\nsymbols = { "?" = "not applicable", "-" = 0 }\n' + TOML.replace("[axes.group]\n", "")
    counts_read = counts(load(tmp_path, toml, data))
    assert counts_read.tolist() == [[SUPPRESSED, SUPPRESSED, NOT_APPLICABLE], [0, 1205, NOT_AVAILABLE]]


def test_text_that_is_no_count_is_told(tmp_path: Path) -> None:
    release = load(tmp_path, data=CSV.replace("Bo,old,f,", "Bo,old,f,lots"))
    assert counts(release)[3, 2] == UNREADABLE
    assert any("'lots'" in note and "symbols" in note for note in release.notes)


def test_columns_of_fractions_are_left_out(tmp_path: Path) -> None:
    release = load(tmp_path, data=CSV.replace("Aa,old,f,10", "Aa,old,f,9.7"))
    assert keys(release) == ["all", "young"]
    assert release.left_out == {"numbers with decimals": ("old",)}
    assert any("is skipped" in note for note in release.notes)


def test_whole_numbers_with_a_point_are_counts(tmp_path: Path) -> None:
    release = load(tmp_path, data=CSV.replace("30\n", "30.0\n"))
    assert counts(release)[0, 0] == 30


def test_later_rules_go_before_earlier_ones(tmp_path: Path) -> None:
    toml = (
        TOML
        + """
[[mechanisms]]
mechanism = "rounding:3"
where = { age = ["young", "old"] }
[[mechanisms]]
mechanism = "nearest:10"
[mechanisms.where]
age = "old"
group = ["f"]
[[exact]]
age = "all"
group = "both"
"""
    )
    names = {column.key: column.mechanism.name for column in load(tmp_path, toml).columns if column.mechanism}
    assert names == {
        "all/both": "exact", "all/f": "rounding:5", "young/both": "rounding:3", "young/f": "rounding:3",
        "old/both": "rounding:3", "old/f": "nearest:10",
    }  # fmt: skip


def test_numbers_as_codes(tmp_path: Path) -> None:
    data = "region,characteristic_id,characteristic,sex,n\n7,8,All,total,5\n7,10,Young,total,5\n7,8,All,men,5\n"
    toml = """value = "n"
[axes.region]
[axes.characteristic]
column = "characteristic_id"
name = "characteristic"
[axes.sex]
[[mechanisms]]
mechanism = "exact"
characteristics = [8]
[[sums]]
total = 8
parts = [10]
why = "universe"
"""
    release = load(tmp_path, toml, data)
    assert (release.axes, release.areas) == (("characteristic_id", "sex"), ("region",))
    assert keys(release) == ["8", "8/men", "10"]
    assert release.columns[2].label == "Young"
    assert [column.mechanism for column in release.columns] == [Exact(), Exact(), None]
    assert sums(release) == {"8=10"}


def test_sums_by_the_keys_of_columns(tmp_path: Path) -> None:
    toml = 'areas = ["town"]\n' + TOML + '[[sums]]\naxis = "columns"\ntotal = "all/both"\nparts = ["young/f", "old/f"]\n'
    assert "all/both=young/f+old/f" in sums(load(tmp_path, toml))
    assert "there is no column 'old/g' in this release. Did you mean 'old/f'?" in error(
        tmp_path, toml.replace('"old/f"]', '"old/g"]')
    )


def test_a_sum_is_used_where_it_is_whole(tmp_path: Path) -> None:
    data = CSV.replace("Aa,old,f,10\n", "").replace("Bo,old,f,\n", "")
    release = load(tmp_path, 'areas = ["town"]\n' + TOML, data)
    assert sums(release) == {"all/both=young/both+old/both"}
    assert any("all = young + old is skipped at f" in note for note in release.notes)


# Hierarchies


def nested(hierarchy: str, more: str = "") -> str:
    return f'value = "n"\ndefault = "rounding:5"\n[axes.town]\n[axes.age]\nhierarchy = "{hierarchy}"\n{more}'


AGES = "town,age,n\n" + "".join(f"Aa,{age},5\n" for age in ("T", "young", "old", "0-4", "5-9"))


@pytest.mark.parametrize(
    ("name", "text", "more"),
    [
        ("h.hrc", "young\n@0-4\n@5-9\nold\n", 'total = "T"'),
        ("h.hrc", "T\n@young\n@@0-4\n@@5-9\n@old\n", ""),
        ("h.csv", "T,young\nT,old\nyoung,0-4\nyoung,5-9\n", ""),
        ("h.csv", "parent,child\nT,young\nT,old\nyoung,0-4\nyoung,5-9\n", ""),
        ("h.csv", "child;parent\nyoung;T\nold;T\n0-4;young\n5-9;young\n", ""),
        ("h.csv", "\ufeffover,under\nyoung,0-4\nyoung,5-9\n,old\n", 'total = "T"'),
    ],
)
def test_hierarchies(tmp_path: Path, name: str, text: str, more: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    release = load(tmp_path, nested(name, more), AGES)
    assert sums(release) == {"T=young+old", "young=0-4+5-9"}
    assert {column.key: column.depth for column in release.columns} == {"T": 0, "young": 1, "old": 1, "0-4": 2, "5-9": 2}
    assert {column.block for column in release.columns} == {"T"}


def test_subtotals_that_were_not_published_make_room_for_their_parts(tmp_path: Path) -> None:
    (tmp_path / "h.hrc").write_text("young\n@0-4\n@5-9\nold\n", encoding="utf-8")
    release = load(tmp_path, nested("h.hrc", 'total = "T"'), AGES.replace("Aa,young,5\n", ""))
    assert sums(release) == {"T=old+0-4+5-9"}
    assert any("skipped: young" in note for note in release.notes)


def test_a_total_that_is_not_named_is_pointed_at(tmp_path: Path) -> None:
    (tmp_path / "h.hrc").write_text("young\n@0-4\n@5-9\nold\n", encoding="utf-8")
    release = load(tmp_path, nested("h.hrc"), AGES)
    assert sums(release) == {"young=0-4+5-9"}
    assert any("'T'" in note and "total = " in note for note in release.notes)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("h.hrc", "T\n@@young\n", "line 2, column 1: 'young' is at depth 2, but nothing above it is at depth 1"),
        ("h.hrc", "T\n@\n", "line 2, column 1: no code follows the @"),
        ("h.hrc", "T\n@yuong\n@old\n", "do not occur in the data: 'yuong'. Did you mean 'young'?"),
        ("h.hrc", "\n", "holds no codes"),
        ("h.csv", "T,young\nT\n", "line 2, column 1: a line needs a parent and a child"),
        ("h.csv", "T,young\nold,young\n", "'young' is listed under both 'T' and 'old'"),
        ("h.csv", "T,young\nT,young\n", "line 2: 'young' is listed under 'T' twice"),
        ("h.csv", "young,old\nold,young\n", "is above itself"),
    ],
)
def test_files_that_are_no_hierarchies(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert said in error(tmp_path, nested(name), AGES)


def test_areas_within_areas(tmp_path: Path) -> None:
    data = "region,where,kind,in,age,n\nc,Country,big,,all,10\na,Aa,small,c,all,5\nb,Bo,small,c,all,5\n"
    toml = 'value = "n"\n[axes.region]\nname = "where"\nlevel = "kind"\nparent = "in"\n[axes.age]\n'
    frame = areas(load(tmp_path, toml, data))
    assert frame.columns == ["region", "region_name", "level", "parent", "adjustable"]
    assert frame.rows()[1:] == [("a", "Aa", "small", "c", None), ("b", "Bo", "small", "c", None)]
    (tmp_path / "h.hrc").write_text("c\n@a\n@b\n", encoding="utf-8")
    release = load(tmp_path, 'value = "n"\n[axes.region]\nhierarchy = "h.hrc"\n[axes.age]\n', data)
    assert (release.areas, release.axes) == (("region",), ("age",))
    assert areas(release)["parent"].to_list() == [None, "c", "c"]
    inline = 'value = "n"\nareas = ["region"]\n[axes.region]\nsums = [{ total = "c", parts = ["a", "b"] }]\n[axes.age]\n'
    assert areas(load(tmp_path, inline, data))["parent"].to_list() == [None, "c", "c"]
    assert "codes of 'region' that do not occur in the data: 'd'" in error(tmp_path, inline.replace('"b"', '"d"'), data)
    several = 'value = "n"\nareas = ["region", "where"]\naxes.region.parent = "in"\naxes.where = {}\naxes.age = {}\n'
    release = load(tmp_path, several, data)
    assert any("Sums over 'region' are not used" in note for note in release.notes)


def test_names_that_change_are_told(tmp_path: Path) -> None:
    data = "region,where,age,n\na,Aa,all,10\na,Ab,old,5\n"
    release = load(tmp_path, 'value = "n"\n[axes.region]\nname = "where"\n[axes.age]\n', data)
    assert areas(release)["region_name"].to_list() == ["Aa"]
    assert any("'where' differs between rows of region a" in note for note in release.notes)


# What cannot be meant


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("value =", "valeu =", "line 1, column 1: there is no key 'valeu' in this file. Did you mean 'value'?"),
        ("[axes.age]", '[axes.age]\nhierachy = "x"', "line 5, column 1: there is no key 'hierachy' in [axes.age]. Did"),
        ('value = "n"\n', "", 'say which column holds the counts: value = "…"'),
        ('"n"', '"m"', "value names the column 'm', which"),
        ('"n"', '"m"', "Its columns are town, age, group, n."),
        ("[axes.age]", '[axes.age]\nname = "agename"', "axes.age.name names the column 'agename'"),
        ("[axes.town]", "[axes.towns]", "Did you mean 'town'?"),
        ('"rounding:5"', '"runding:5"', "line 2, column 1: there is no mechanism 'runding'. Did you mean rounding?"),
        ('"rounding:5"', "5", "default must be text in quotes, not 5"),
        ('"old"', '"odl"', "codes of 'age' that do not occur in the data: 'odl'. Did you mean 'old'? The column 'age' "
            "holds"),
        ('"old"', '"all"', "all = young + all names a code twice"),
        ('"old"', "true", "parts must hold codes"),
        ('parts = ["young", "old"]', "part = []", "there is no key 'part' in the sums of age. Did you mean 'parts'?"),
        (', parts = ["young", "old"]', "", "a sum of age has no parts"),
        ('["young", "old"]', "[]", "parts is empty"),
        ("[axes.group]", '[axes.group]\ntotal = "both"', "axes.group has a `total` but no `hierarchy`"),
        ("[axes.group]", '[axes.group]\nhierarchy = "gone.hrc"', "gone.hrc; check its name"),
        ("[axes.group]", "[axes.group]\n[[exact]]\n", "[[exact]] needs codes"),
        ("[axes.group]", '[axes.group]\n[[exact]]\nages = "all"', "names 'ages', which is not an axis. Did you mean 'age'?"),
        ("[axes.group]", '[axes.group]\n[[exact]]\nage = "al"', "do not occur in the data: 'al'"),
        ("[axes.group]", "[axes.group]\n[[mechanisms]]\nwhere = { age = 'all' }", "[[mechanisms]] needs a mechanism"),
        ("[axes.group]", '[axes.group]\n[[mechanisms]]\nmechanism = "exact"\nage = "all"', "no key 'age' in [[mechanisms]]"),
        ("[axes.group]", '[axes.group]\n[[mechanisms]]\nmechanism = "exact"\ncharacteristics = [1]', "no axis called char"),
        ("[axes.group]", '[axes.group]\n[[sums]]\ntotal = "a"\nparts = ["b"]', "say which axis a sum is over"),
        ("[axes.group]", '[axes.group]\n[[sums]]\naxis = "aeg"\ntotal = "a"\nparts = ["b"]', "over 'aeg', which is not "
            "an axis"),
        ("[axes.group]", "[axes.group]\n[sums]\ntotal = 1", "write [[sums]]"),
        ("[axes.town]", "[axes.columns]", "an axis cannot be called 'columns'"),
        ("value =", 'missing = "hidden"\nvalue =', "missing = 'hidden' has no meaning here. Use one of 'suppressed'"),
        ("value =", 'symbols = "x"\nvalue =', "symbols must be a table"),
        ("value =", 'symbols = { x = "gone" }\nvalue =', "x = 'gone' has no meaning"),
        ("value =", 'format = "statcan"\nvalue =', "only \"tidy\" tables are"),
        ("value =", 'areas = ["twon"]\nvalue =', "areas names 'twon', which is not an axis. Did you mean 'town'?"),
        ("value =", 'areas = ["town", "age", "group"]\nvalue =', "all axes are areas"),
        ("[axes.town]", "[axes.town", "line 3, column 11: this is not TOML: "),
    ],
)  # fmt: skip
def test_what_the_toml_cannot_mean(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TOML
    assert said in error(tmp_path, TOML.replace(old, new, 1))


def test_an_area_cannot_be_in_a_rule(tmp_path: Path) -> None:
    rule = '[[mechanisms]]\nmechanism = "rounding:3"\nwhere = { town = "Aa" }\n'
    said = error(tmp_path, 'areas = ["town"]\n' + TOML + rule)
    assert "'town' is among `areas`, but a sum or mechanism names its codes" in said


def test_axes_as_a_list(tmp_path: Path) -> None:
    assert make_description({"value": "n", "axes": ["town", "age"]}).axes[1].column == "age"
    assert "name the axes" in error(tmp_path, 'value = "n"\n')


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            CSV + "Aa,old,f,5\n",
            "has 1 cells more than once, the first of them (town Aa, age old, group f) again in row 13",
        ),
        (CSV + "Aa,,f,5\n", "1 rows are empty in 'age', the first of them row 13 below the header"),
        ("town,age,group,n\n", "has a header but no rows"),
        ('town,age,group,n\nAa,all\n"', "cannot be read as a table"),
    ],
)
def test_what_the_data_cannot_be(tmp_path: Path, data: str, said: str) -> None:
    assert said in error(tmp_path, TOML, data)


def test_codes_with_a_slash_may_not_be_told_apart(tmp_path: Path) -> None:
    data = "t,a,b,n\n1,x/y,z,1\n1,x,y/z,2\n"
    said = error(tmp_path, 'value = "n"\nareas = ["t"]\naxes = ["t", "a", "b"]\n', data)
    assert "both give 'x/y/z'. Remove the / from them" in said


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.toml; check the name of the TOML"):
        tidy.load(write(tmp_path), tmp_path / "no.toml")
    with pytest.raises(InputError, match=r"there is no file .*gone\.parquet"):
        tidy.load(tmp_path / "gone.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(InputError, match=r"bad\.parquet cannot be read as Parquet"):
        tidy.load(tmp_path / "bad.parquet", write(tmp_path).with_suffix(".toml"))
    (tmp_path / "latin.toml").write_bytes('value = "Zürich"'.encode("latin-1"))
    with pytest.raises(InputError, match="is not UTF-8 text"):
        read_description(tmp_path / "latin.toml")


# How the two find each other


def test_the_toml_leads_to_its_data(tmp_path: Path) -> None:
    path = write(tmp_path, 'data = "t.csv"\n' + TOML)
    assert counts(tidy.load(path.with_suffix(".toml"))).shape == (4, 3)
    path.with_suffix(".toml").write_text(TOML, encoding="utf-8")
    with pytest.raises(InputError, match=r'does not say which file it describes: add data = "…"'):
        tidy.load(path.with_suffix(".toml"))


def test_a_toml_beside_the_table_may_be_about_something_else(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert tidy.companion(path) == tmp_path / "t.toml"
    for other in ("[tool]\n", 'data = "u.csv"\n' + TOML):
        (tmp_path / "t.toml").write_text(other, encoding="utf-8")
        assert tidy.companion(path) is None
    (tmp_path / "release.toml").write_text('data = "t.csv"\n' + TOML, encoding="utf-8")
    assert tidy.companion(path) == tmp_path / "release.toml"
    assert tidy.companion(tmp_path / "release.toml") is None
    (tmp_path / "t.toml").write_text("what = is this", encoding="utf-8")
    with pytest.raises(InputError, match=r"t\.toml, line 1, column 8: this is not TOML"):
        tidy.load(path)


def test_parquet_by_any_name(tmp_path: Path) -> None:
    write(tmp_path)
    pl.read_csv(tmp_path / "t.csv").write_parquet(tmp_path / "t.data")
    assert counts(tidy.load(tmp_path / "t.data")).tolist() == counts(tidy.load(tmp_path / "t.csv")).tolist()


def test_packed_and_foreign_tables(tmp_path: Path) -> None:
    write(tmp_path)
    data = CSV.replace(",", ";").replace("Bo", "Bö").encode("cp1252").replace(b"\n", b"\r\n")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(data))
    release = tidy.load(tmp_path / "t.csv.gz")
    assert areas(release)["town"].to_list() == ["Aa", "Aa", "Bö", "Bö"]
    assert counts(release)[0].tolist() == [30, 15, 20]


def test_a_table_with_the_usual_columns_needs_no_toml(tmp_path: Path) -> None:
    data = "region,characteristic_id,sex,true\n1,8,total,5\n1,8,men,2\n1,8,women,3\n"
    assert matches("tidy", data, "truth.csv")
    release = load(tmp_path, None, data)
    assert keys(release) == ["8", "8/men", "8/women"]
    assert [(item.total, item.parts, item.origin) for item in release.proposals] == [(0, (1, 2), "sex")]


def test_other_tables_are_told_what_to_type(tmp_path: Path) -> None:
    assert not matches("tidy", CSV, "t.csv")
    with pytest.raises(UnknownFormat) as caught:
        load(tmp_path, None)
    said = str(caught.value)
    assert "columns (town, age, group, n) are not recognised" in said
    assert said.endswith(f"unround describe {tmp_path / 't.csv'}")


# What others write


def test_what_simulate_writes(tmp_path: Path) -> None:
    simulate(tmp_path, areas=30, seed=4, format="tidy", rows="age")
    release, truth = tidy.load(tmp_path / "release.toml"), tidy.load(tmp_path / "truth.parquet")
    assert (release.axes, release.areas) == (("characteristic_id", "sex"), ("region",))
    assert keys(release) == keys(truth)
    assert areas(release)["region"].to_list() == areas(truth)["region"].to_list()
    index = release.index
    assert release.columns[index["1"]].mechanism == Exact()
    assert release.columns[index["10/men"]].mechanism == Rounding(5)
    assert "10=10/men+10/women" in sums(release)
    assert "9/women=10/women+11/women+12/women" in sums(release)
    published, true = counts(release), counts(truth)
    shown = published >= 0
    assert shown.mean() > 0.8
    assert set(np.unique(published[~shown])) <= {SUPPRESSED, NOT_AVAILABLE}
    assert np.abs(published - true)[shown].max() == 4
    for item in release.proposals:
        assert (true[:, item.total] == true[:, list(item.parts)].sum(axis=1)).all()
    frame = areas(release)
    inside = frame.filter(pl.col("parent").is_not_null())
    assert set(inside["parent"]) <= set(frame["region"])


def test_the_example(tmp_path: Path) -> None:
    release = tidy.load(EXAMPLES / "survey.csv")
    assert counts(release).shape == (40, 27)
    assert (release.areas, release.axes) == (("district",), ("age", "sex"))
    assert len(release.proposals) == 3 * 3 + 9
    exact = [column.key for column in release.columns if column.mechanism == Exact()]
    assert exact == ["total/total"]
    # All else is a multiple of 3; some counts can be proved, such as men and women whose exact total is 4 off.
    index = release.index
    table = counts(release)
    rest = [at for at, column in enumerate(release.columns) if column.mechanism == Rounding(3)]
    assert (table[:, rest] % 3 == 0).all()
    proved = 0
    for row in table:
        known = zip(release.columns, row.tolist(), strict=True)
        cells = [Cell(column.key, count, column.mechanism or Exact()) for column, count in known]
        added = [Sum(cells[item.total].name, tuple(cells[part].name for part in item.parts)) for item in release.proposals]
        system = System(cells, added)
        proofs = solve(system).proofs
        assert all(check_proof(system, proof) for proof in proofs)
        proved += len(proofs)
    assert proved > 10
    gap = table[:, index["total/total"]] - table[:, index["total/men"]] - table[:, index["total/women"]]
    assert np.abs(gap).max() == 4
    assert not list(tmp_path.iterdir())


# Frames


LONG = pl.DataFrame({"town": ["Aa"] * 3 + ["Bo"] * 3, "age": ["all", "young", "old"] * 2, "n": [30, 15, 20, 45, None, 20]})
AGE = {"sums": [{"total": "all", "parts": ["young", "old"]}]}
WIDE = pl.DataFrame({"town": ["Aa", "Bo"], "all": [30, 45], "young": [15, None], "old": [20, 20]})


def test_a_long_frame() -> None:
    for release in (
        from_frame(LONG, {"value": "n", "axes": {"town": {}, "age": AGE}, "default": "rounding:5"}),
        from_frame(LONG.lazy(), value="n", axes={"town": {}, "age": AGE}, mechanism=Rounding(5)),
    ):
        assert sums(release) == {"all=young+old"}
        assert counts(release).tolist() == [[30, 15, 20], [45, NOT_AVAILABLE, 20]]
        assert {column.mechanism for column in release.columns} == {Rounding(5)}


def test_a_wide_frame() -> None:
    release = from_frame(
        WIDE, area="town", sums={"all": ["young", "old"]}, mechanism="rounding:5", exact=["all"], missing="suppressed",
        mechanisms={"old": "rounding:3"},
    )  # fmt: skip
    assert (release.file_format, release.areas, release.axes) == ("frame", ("town",), ("column",))
    assert [column.mechanism for column in release.columns] == [Exact(), Rounding(5), Rounding(3)]
    assert counts(release).tolist() == [[30, 15, 20], [45, SUPPRESSED, 20]]
    assert areas(release)["town"].to_list() == ["Aa", "Bo"]
    assert sums(release) == {"all=young+old"}


def test_a_wide_frame_without_names() -> None:
    release = from_frame(WIDE.drop("town"), sums=[{"total": "all", "parts": ["young", "old"]}])
    assert areas(release)["area"].to_list() == ["0", "1"]
    assert {column.mechanism for column in release.columns} == {None}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"sum": {}}, "there is no argument 'sum'"),
        ({"area": "city"}, "no column 'city'. Its columns are town, all, young, old"),
        ({"sums": {"all": ["young", "odl"]}}, "no column 'odl'"),
        ({"sums": ["all"]}, "sums must be"),
        ({"exact": "all"}, "exact must be a list of columns"),
        ({"exact": ["town"], "area": "town"}, "'town' is not one of the columns that hold counts"),
        ({"columns": [], "area": "town"}, "no columns of numbers"),
        ({"mechanism": "rounded:5"}, "there is no mechanism 'rounded'"),
        ({"value": "n", "axes": ["town"]}, "value names the column 'n'"),
    ],
)
def test_what_a_frame_cannot_mean(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        from_frame(WIDE, **keys)
    assert said in str(caught.value)


def test_what_is_no_frame() -> None:
    with pytest.raises(InputError, match="list is not a table"):
        from_frame([1, 2, 3])
    with pytest.raises(InputError, match="the area 'Aa' has several rows in 'town'"):
        from_frame(pl.concat([WIDE, WIDE]), area="town")
    with pytest.raises(InputError, match="a column of counts has no name; give it one"):
        from_frame(WIDE.rename({"old": ""}), area="town")


class FakePandas:
    """As much of a pandas frame as is used: columns, an index, and to_dict."""

    class Nothing:
        def __eq__(self, other: object) -> Any:
            return self

        def __ne__(self, other: object) -> Any:
            return self

        def __bool__(self) -> bool:
            raise TypeError("boolean value of NA is ambiguous")

        __hash__ = object.__hash__

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns = list(columns)
        self._columns = columns

    def to_dict(self, orient: str) -> dict[str, list[Any]]:
        assert orient == "list"
        return self._columns


def test_frames_are_taken_by_their_columns() -> None:
    frame = FakePandas(
        {"town": ["Aa", "Bo"], "all": [30.0, float("nan")], "young": [15, FakePandas.Nothing()], "old": [None, "x"]}
    )
    release = from_frame(frame, area="town", columns=["all", "young", "old"], sums={"all": ["young", "old"]})
    assert counts(release).tolist() == [[30, 15, NOT_AVAILABLE], [NOT_AVAILABLE, NOT_AVAILABLE, SUPPRESSED]]


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(WIDE.to_dict(as_series=False))
    for given in (frame, frame.set_index("town")):
        release = from_frame(given, area="town", sums={"all": ["young", "old"]})
        assert counts(release).tolist() == [[30, 15, 20], [45, NOT_AVAILABLE, 20]]
    with pytest.raises(InputError, match="several levels"):
        from_frame(frame.set_axis(pandas.MultiIndex.from_product([["a"], list(frame.columns)]), axis=1), area="town")
