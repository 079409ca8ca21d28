"""Noise that nobody declared: what the sums tell of it, and what they do not."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import unround
from unround.mechanisms import CellKey, mechanism
from unround.structure.evidence import BOUNDED, UNTOLD
from unround.structure.noise import _added_up, _keyed_law, _Law

AGES = [f"{5 * at} to {5 * at + 4}" for at in range(10)]


def perturbed(spec: str, sums: int, seed: int = 1, low: int = 30) -> pl.DataFrame:
    """Ten ages by sex in as many areas as make so many sums, every count published on its own."""
    rng, how = np.random.default_rng(seed), mechanism(spec)
    men, women = rng.integers(low, low + (300 if low else 60), (2, sums // 10, 10))
    shown = {sex: how.publish(true, rng) for sex, true in (("Total", men + women), ("Men", men), ("Women", women))}
    columns = {f"{sex} {age}": shown[sex][:, at] for at, age in enumerate(AGES) for sex in shown}
    return pl.DataFrame({"area": [f"A{at:05}" for at in range(sums // 10)], **columns})


def noise_of(frame: pl.DataFrame) -> dict:
    (noise,) = unround.check(frame).to_json()["noise"]
    return noise


@pytest.mark.parametrize(("spec", "largest"), [("uniform:3", 3), ("cellkey:2,1.26", 2)])
def test_the_largest_change_is_told_from_many_sums(spec, largest):
    noise = noise_of(perturbed(spec, 4_000))
    assert (noise["model"], noise["max_change"], noise["sums"]) == (BOUNDED, largest, 4_000)
    assert noise["also_possible"] == []
    low, high = noise["variance_interval"]
    assert low <= float(mechanism(spec).variance) <= high + 1e-9
    assert len(noise["columns"]) == 30
    assert f"no change is larger than {largest}" in noise["why"]


@pytest.mark.parametrize("spec", ["uniform:3", "cellkey:2,1.26", "cellkey:5,4.5"])
def test_no_largest_change_is_named_that_others_match(spec):
    noise = noise_of(perturbed(spec, 300))
    assert noise["max_change"] is None
    assert mechanism(spec).max_change in noise["also_possible"]
    assert noise["variance"] == pytest.approx(float(mechanism(spec).variance), rel=0.25)


def test_counts_that_are_never_published():
    noise = noise_of(perturbed("uniform:3,js=2", 4_000, low=0))
    assert (noise["blocked"], noise["max_change"]) == ([1, 2], 3)
    assert noise["mechanism"] == "uniform:3,js=2"
    assert "1 and 2 are never published" in noise["why"]


def test_counts_that_no_sum_tells_anything_of_are_not_exact_beside_perturbed_ones(tmp_path):
    rng, how = np.random.default_rng(5), mechanism("uniform:3,js=2")
    people, lone = rng.integers(0, 150, (5, 2, 1_000)), rng.integers(0, 60, 1_000)
    ages = {**{f"Age_yr_{age}": people[age] for age in range(5)}, "Age_yr_0_4": people.sum(0)}
    true = {}
    for age, (men, women) in ages.items():
        true |= {f"{age}_M": men, f"{age}_F": women, f"{age}_P": men + women}
    shown = {name: how.publish(counts, rng) for name, counts in {**true, "Age_yr_55_M": lone}.items()}
    codes = [str(101011001 + at) for at in range(1_000)]
    pl.DataFrame({"SA2_MAINCODE_2016": codes, **shown, "Age_yr_56_M": lone}).write_csv(tmp_path / "ages.csv")
    structure = unround.check(tmp_path / "ages.csv").structure
    kinds = {column.key: kind for column, kind in zip(structure.columns, structure.mechanisms, strict=True)}
    assert kinds["Age_yr_55/men"] == kinds["Age_yr_4/men"]  # without 1 and 2, as the others
    assert kinds["Age_yr_56/men"] is None
    assert "no sum tells whether these counts were, too" in structure.how[-1].why


@pytest.mark.parametrize("spec", ["exact", "rounding:3", "rounding:5"])
def test_rounding_stays_rounding(spec):
    assert unround.check(perturbed(spec, 1_000)).to_json()["noise"] == []


def test_what_was_inferred_is_a_condition_and_the_widest_law_counts():
    structure = unround.check(perturbed("uniform:3", 4_000)).structure
    (how,) = structure.how
    assert how.mechanism == CellKey(3, 4)
    assert how.condition == "if no count was changed by more than 3, which 4,000 sums of large counts support"
    (how,) = unround.check(perturbed("uniform:3", 300)).structure.how
    (noise,) = unround.check(perturbed("uniform:3", 300)).structure.noise
    assert noise.model == UNTOLD
    assert how.mechanism.max_change == max(noise.also_possible)
    assert "any largest change from 3 on would fit as well" in how.condition


def test_neither_a_description_nor_a_plan_declares_what_was_inferred(tmp_path):
    perturbed("uniform:3", 4_000).write_csv(tmp_path / "ages.csv")
    unround.describe(tmp_path / "ages.csv", out=tmp_path / "described.toml")
    checked = unround.check(tmp_path / "ages.csv")
    plan = checked.toml(tmp_path / "plan.toml")
    (tmp_path / "plan.toml").write_text(plan)
    drafts = unround.check(tmp_path / "described.toml"), unround.check(tmp_path / "plan.toml")
    for drafted in drafts:
        assert [(how.basis, how.mechanism) for how in drafted.structure.how] == [("inferred", CellKey(3, 4))]
    assert 'If the agency says so, uncomment this:\n# default = "uniform:3"' in (tmp_path / "described.toml").read_text()
    confirmed = re.search(r"(?m)^# \[\[mechanisms\]\]\n(# .*\n)+", plan)
    assert confirmed is not None
    (tmp_path / "confirmed.toml").write_text(confirmed[0].replace("# ", ""))
    declared = unround.check(tmp_path / "ages.csv", describe=tmp_path / "confirmed.toml").structure
    assert {how.basis for how in declared.how} == {"description"}


def test_the_law_of_keys_that_add_up_by_drawing_them():
    law, rng = _Law(3, "bounded", 0.4).law, np.random.default_rng(3)
    keys = rng.random((2, 400_000))
    total, men, women = (np.searchsorted(np.cumsum(law)[:-1], u, side="right") - 3 for u in (keys.sum(0) % 1, *keys))
    seen = np.bincount(total - men - women + 100, minlength=201) / 400_000
    assert np.abs(seen - _keyed_law(law, 3)).max() < 4e-3
    assert np.abs(seen - _added_up(law, 3)).max() > 0.03  # as if they were independent


@pytest.mark.parametrize("name", ["australia-2016-sa3-g01.csv.gz", "nz-2018-individual-ta.csv.gz"])
def test_real_releases(census_data: Path, name):
    noise = unround.check(census_data / name).to_json()["noise"]
    if name.startswith("nz"):
        assert noise == []
    else:
        assert [(one["model"], one["blocked"]) for one in noise] == [(BOUNDED, [1, 2])]
        assert noise[0]["max_change"] is not None


def test_more_counts_stay_than_usual():
    noise = noise_of(perturbed("cellkey:4,3,pstay=0.5", 4_000))
    assert noise["stay"] == pytest.approx(0.5, abs=0.05)
    assert noise["mechanism"].startswith("cellkey:4,")
    assert "of the counts are not changed" in noise["why"]
    assert noise_of(perturbed("cellkey:4,3", 4_000))["stay"] is None
