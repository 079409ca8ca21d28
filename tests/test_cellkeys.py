"""Cell keys from records: the same cell shows the same change everywhere, and nothing else follows from anything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import unround
from unround.comparison import cell_key_designs, compare, practice, simulated
from unround.errors import InputError
from unround.mechanisms import CellKey, Transition, mechanism

SPEC = "cellkey:2,1.5"


def keys(size: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64 - 1, size, dtype=np.uint64, endpoint=True)


@pytest.mark.parametrize("spec", [SPEC, "uniform:3,js=2", "cellkey:4,1,pstay=0.5"])
def test_changes_by_keys_have_the_law_of_the_table(spec: str) -> None:
    how = mechanism(spec)
    assert isinstance(how, Transition)
    for true in (0, 1, 2, 5, 40):
        shown = how.publish_keyed(np.full(60_000, true), keys(60_000, true))
        published, seen = np.unique(shown, return_counts=True)
        for count, number in zip(published, seen, strict=True):
            p = float(how.chance(int(count), true))
            assert abs(number / 60_000 - p) <= 5 * (p * (1 - p) / 60_000) ** 0.5
        assert np.array_equal(how.publish_keyed(np.full(60_000, true), keys(60_000, true)), shown)


def test_the_change_of_a_total_does_not_follow_from_its_parts() -> None:
    how, (men, women) = CellKey(2, 2), (keys(200_000, 1), keys(200_000, 2))
    total = how.publish_keyed(np.full(200_000, 100), men + women) - 100
    parts = how.publish_keyed(np.full(200_000, 60), men) - 60 + how.publish_keyed(np.full(200_000, 40), women) - 40
    residual = np.bincount(total - parts + 6, minlength=13) / 200_000
    law = np.ones(5) / 5
    assert np.abs(residual - np.convolve(np.convolve(law, law), law)).max() < 0.004


def test_the_next_record_changes_the_noise() -> None:
    how, many = CellKey(2, 2), keys(100_000)
    before, after = (how.publish_keyed(np.full(100_000, n), many + more) - n for n, more in ((50, 0), (51, keys(1, 9)[0])))
    assert abs(np.corrcoef(before, after)[0, 1]) < 0.015


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """Two tables of the same persons, by keys or not."""
    folders = {}
    for by_keys in (True, False):
        folders[by_keys] = tmp_path_factory.mktemp("records") / "tables"
        names = ["age_sex_education", "age_sex_marital"]
        unround.simulate(folders[by_keys], persons=True, areas=60, people=120, keys=by_keys, mechanism=SPEC, tables=names)
    return folders


def test_check_tells_alike_from_independent(records: dict[bool, Path]) -> None:
    for by_keys, folder in records.items():
        checked = unround.check([folder / "age_sex_education.toml", folder / "age_sex_marital.toml"]).structure
        repeats = [one for one in checked.repeats if not {"all/all"} & {checked.columns[at].key for at in one.columns}]
        assert len(repeats) > 10
        told = [one.alike for one in repeats if not any("exact" in checked.mechanisms[at].name for at in one.columns)]
        assert set(told) == {by_keys}


def test_repeats_that_are_alike_carry_nothing(records: dict[bool, Path]) -> None:
    for by_keys, folder in records.items():
        both = unround.check([folder / "age_sex_education.toml", folder / "age_sex_marital.toml"]).structure
        twice = [one for one in both.sums if len(one.parts) == 1]
        if by_keys:
            assert len(both.alias) > 10
            assert not any(both.mechanisms[one.total].name == SPEC for one in twice)  # no count is seen twice
        else:
            assert sum(both.mechanisms[one.total].name == SPEC for one in twice) > 10


def test_protect_by_keys_publishes_one_change_for_one_cell(tmp_path: Path) -> None:
    true = pl.DataFrame({"area": [f"A{at}" for at in range(200)], "Men": np.arange(200) % 37, "Women": np.arange(200) % 23})
    true = true.with_columns((pl.col("Men") + pl.col("Women")).alias("Total"))
    for name, columns in (("a", true.columns), ("b", ["area", "Men", "Women", "Total"])):
        true.select(columns).write_csv(tmp_path / f"{name}.csv")
        unround.protect(tmp_path / f"{name}.csv", tmp_path / name, SPEC, keys=True, seed=3)
    shown = [pl.read_parquet(tmp_path / name / "release.parquet").sort(pl.all()) for name in ("a", "b")]
    assert shown[0].equals(shown[1])
    assert f'default = "{SPEC}"' in (tmp_path / "a" / "release.toml").read_text()
    with pytest.raises(InputError, match="a constant is that of tables rounded by keys"):
        unround.protect(tmp_path / "a.csv", tmp_path / "c", SPEC, keys=True, constant=0.3)
    with pytest.raises(InputError, match="laplace:1 does not do that"):
        unround.protect(tmp_path / "a.csv", tmp_path / "c", "laplace:1", keys=True)


# -- designs ------------------------------------------------------------------------------------------------------------


def test_designs_that_can_be_had() -> None:
    every = [mechanism(name) for name in cell_key_designs("all")]
    assert len(every) > 60
    assert {how.max_change for how in every} == set(range(1, 11))
    assert {how.js for how in every} == {0, 1, 2}
    for text, said in (("D=1 V=2", "there is no cell key table"), ("E=3", "not 'E=3'"), ("D=x", "such as D=1-4")):
        with pytest.raises(InputError, match=said):
            cell_key_designs(text)


def test_efficient_designs_and_feasibility_intervals() -> None:
    material = simulated(30, 3)
    names = ["uniform:2", "cellkey:2,1", "cellkey:4,2", "rounding:5", "laplace:1.45"]
    rows = {
        row["name"]: row
        for row in compare(material, [practice(name, material) for name in names], seeds=1).to_json()["mechanisms"]
    }
    # uniform:2 changes counts by as much as cellkey:4,2, which proves nothing and gives less away.
    assert not rows["uniform:2"]["efficient"]
    assert rows["cellkey:2,1"]["efficient"]
    assert rows["cellkey:2,1"]["mean_change"] == pytest.approx(rows["cellkey:2,1"]["mean_error"], abs=0.06)
    for name, widest in (("uniform:2", 5), ("cellkey:4,2", 9), ("rounding:5", 9)):
        assert 1 <= rows[name]["interval"] <= rows[name]["interval_alone"] <= widest
    assert rows["uniform:2"]["interval_up_to_3"] > rows["cellkey:4,2"]["interval_up_to_3"]
    assert rows["laplace:1.45"]["interval"] is None


# -- tables that differ by a few records --------------------------------------------------------------------------------


def test_review_prices_what_two_tables_that_differ_by_a_few_records_tell(tmp_path: Path) -> None:
    """One table leaves some persons out: by cell keys, the rows in which they are stand out."""
    rng, how = np.random.default_rng(2), CellKey(2, 1)
    everyone, sums = rng.integers(30, 90, (2, 120)), keys(240).reshape(2, 120)
    left = (rng.random((2, 120)) < 0.1).astype(np.int64)
    areas = [f"Area {at:03}" for at in range(120)]
    for name, out in (("all.csv", 0 * left), ("resident.csv", left)):
        more = np.where(out > 0, keys(240, 7).reshape(2, 120), 0).astype(np.uint64)
        parts = how.publish_keyed(everyone - out, sums - more)
        total = how.publish_keyed((everyone - out).sum(0), (sums - more).sum(0, dtype=np.uint64))
        columns = {"District": areas, "Total": total, "Men": parts[0], "Women": parts[1]}
        pl.DataFrame(columns).write_csv(tmp_path / name)
    reviewed = unround.review(
        tmp_path / "resident.csv", earlier=[tmp_path / "all.csv"], mechanism="cellkey:2,1", repairs=[]
    ).to_json()
    asked = {
        matter["why"].split(" of ")[0]: matter["why"] for matter in reviewed["unsettled"] if "by cell keys" in matter["why"]
    }
    assert set(asked) == {"Total", "Men", "Women"}
    for at, name in enumerate(("Men", "Women")):
        shown = [pl.read_csv(tmp_path / file)[name].to_numpy() for file in ("all.csv", "resident.csv")]
        assert f"another one in {int((shown[0] != shown[1]).sum())}:" in asked[name]
        assert not (left[at] == 0)[shown[0] != shown[1]].any()  # every one of them has somebody whom one table leaves out
    assert reviewed["decision"] != "publish"


def test_a_total_that_shows_what_its_only_part_shows_is_bounded_by_it_in_proofs_too(tmp_path: Path) -> None:
    parts = {"all": 4, "men": 4, "women": 0, "young": 9, "old": 3}  # 1 to 7 in all; 6 to 12 young, 1 to 6 old: 7 = 6 + 1
    (tmp_path / "t.toml").write_text(
        'data = "t.csv"\nvalue = "n"\nareas = ["area"]\ndefault = "uniform:3,js=2"\n[axes.area]\n[axes.part]\n'
        '[[sums]]\naxis = "part"\ntotal = "all"\nparts = ["men", "women"]\n'
        '[[sums]]\naxis = "part"\ntotal = "all"\nparts = ["young", "old"]\n'
    )
    rows = [f"a{k},{part},{n}" for k in range(12) for part, n in parts.items()]
    (tmp_path / "t.csv").write_text("\n".join(["area,part,n", *rows, ""]))
    assert unround.audit(tmp_path / "t.toml", tmp_path / "audit").summary["proved"] == 36


@pytest.mark.parametrize("seed", [5, 6])
def test_claims_are_right_as_often_as_stated_where_cells_have_the_same_records(tmp_path: Path, seed: int) -> None:
    """A total with one part that is not empty shows its noise: as two observations, they stated 9 points too much."""
    unround.simulate(tmp_path / "census", format="tidy", areas=100, seed=seed)
    truth = tmp_path / "census" / "truth.parquet"
    unround.protect(truth, tmp_path / "out", "cellkey:3,2", keys=True, seed=1, exact=["population"])
    scored = unround.audit(tmp_path / "out" / "release.toml", tmp_path / "audit", truth=truth, zeros=True).summary["truth"]
    assert scored["wrong"]["proved"] == scored["outside_bounds"] == 0
    bands = [band for band in scored["calibration"]["all cells"] if band["claims"] >= 50]
    assert len(bands) >= 4
    for band in bands:
        error = (band["stated"] * (1 - band["stated"]) / band["claims"]) ** 0.5
        assert band["right"] >= band["stated"] - 0.02 - 2 * error


# -- one truth published twice ------------------------------------------------------------------------------------------


def test_releases_of_one_truth_under_two_mechanisms_are_one_audit(tmp_path: Path) -> None:
    unround.simulate(tmp_path / "census", format="tidy", areas=100, seed=4)
    truth, folders = tmp_path / "census" / "truth.parquet", {}
    for name, spec in (("changed", "cellkey:3,2"), ("rounded", "rounding:5")):
        unround.protect(truth, tmp_path / name, spec, seed=1, exact=["population"])
    changed, rounded = (tmp_path / name / "release.toml" for name in ("changed", "rounded"))
    for name, files in (("rounded", [rounded]), ("both", [changed, rounded])):
        folders[name] = unround.audit(files, tmp_path / f"audit-{name}", truth=truth).summary["truth"]
    both, alone = folders["both"], folders["rounded"]
    assert both["checked"]["likely"] > 2 * alone["checked"]["likely"]
    assert both["wrong"]["proved"] == both["wrong"]["conditional"] == both["outside_bounds"] == 0
    assert both["checked"]["proved"] + both["checked"]["conditional"] > 10
    bands = [band for band in both["calibration"]["findings"] if band["claims"] >= 30]
    assert bands
    for band in bands:
        error = (band["stated"] * (1 - band["stated"]) / band["claims"]) ** 0.5
        assert band["right"] >= band["stated"] - 0.02 - 2 * error
