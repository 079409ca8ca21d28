"""Worlds that no prior assumes: their sums hold, their seed decides, and each has the property that it is named for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from research.calibration import SENTENCES, SHORT, calibrate, calibrate_worlds, from_world, material_of_world
from research.commands import world as write_world
from research.worlds import TOTAL, WORLDS, World, world

from tests.conftest import Run
from unround.errors import InputError
from unround.job import audit
from unround.mechanisms import Exact
from unround.tables import read

EACH = pytest.mark.parametrize("one", WORLDS.values(), ids=WORLDS)


def leaves(name: str, areas: int = 3000, seed: int = 7) -> dict[str, np.ndarray]:
    """Return the counts of the leaves by name: per area, or per area and sex."""
    one = world(name)
    drawn = one.draw(areas, np.random.default_rng(seed))
    return {leaf: drawn[:, place] for place, leaf in enumerate(one.leaves)}


def excess(counts: np.ndarray) -> float:
    """Return the variance over the mean: 1 for Poisson counts."""
    return float(counts.var() / counts.mean())


# -- all worlds -------------------------------------------------------------------------------------------------------


@EACH
def test_every_sum_holds_and_no_count_is_negative(one: World) -> None:
    true = one.counts(60, 3)
    assert true.shape == (60, len(one.columns))
    assert true.min() >= 0
    assert true[:, 0].sum() > 60
    for total, parts in one.equations:
        assert (true[:, total] == true[:, list(parts)].sum(axis=1)).all()
    reached = {0} | {part for _, parts in one.equations for part in parts}
    assert reached == set(range(len(one.columns)))


@EACH
def test_the_seed_decides(one: World) -> None:
    assert np.array_equal(one.counts(40, 3), one.counts(40, 3))
    assert not np.array_equal(one.counts(40, 3), one.counts(40, 4))


@EACH
def test_a_sentence_says_what_is_special(one: World) -> None:
    assert one.sentence.endswith(".")
    assert len(one.sentence) < 125
    assert len({column.key for column in one.columns}) == len(one.columns)


@EACH
@pytest.mark.parametrize("spec", ["rounding:3", "rounding:5", "sample:5"])
@pytest.mark.parametrize("rounded_total", [False, True])
def test_every_world_is_audited_however_it_is_published(one: World, spec: str, rounded_total: bool) -> None:
    material = from_world(one, 70, 5, rounded_total=rounded_total)
    calibration = calibrate(material, spec, seed=2)
    assert calibration.areas == 70
    assert calibration.groups["all cells"]["fitted"].cells > 0
    assert calibration.mechanism == spec
    assert material.exact == (frozenset() if rounded_total else {0})


def test_worlds_do_not_share_their_random_numbers() -> None:
    ages = world("institutions").law
    assert not np.array_equal(World("one", "", world("institutions").tree, ages, by_sex=True).counts(9, 1),
                              World("two", "", world("institutions").tree, ages, by_sex=True).counts(9, 1))  # fmt: skip


def test_a_hand_made_world_adds_up() -> None:
    tiny = World(
        "tiny", "", {TOTAL: ("a", "b"), "b": ("c", "d")}, lambda n, _: np.arange(6 * n).reshape(n, 3, 2), by_sex=True
    )
    assert tiny.nodes == (TOTAL, "a", "b", "c", "d")
    assert tiny.leaves == ("a", "c", "d")
    assert tiny.add_up(tiny.draw(1, np.random.default_rng(0))).tolist() == [
        [15, 6, 9, 1, 0, 1, 14, 6, 8, 5, 2, 3, 9, 4, 5]
    ]  # total, men and women of each: a is 0 + 1, c is 2 + 3, d is 4 + 5
    assert tiny.equations[:3] == ((0, (3, 6)), (1, (4, 7)), (2, (5, 8)))
    assert tiny.equations[-1] == (12, (13, 14))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: world("atlantis"), "there is no world 'atlantis'"),
        (lambda: world("couples").counts(0, 1), "at least one area"),
        (lambda: material_of_world("atlantis"), "choose from census, unlike-evenness"),
        (lambda: calibrate_worlds([]), "name at least one world"),
        (lambda: calibrate_worlds(["couples"], rows="short"), "go with the world census"),
        (lambda: calibrate_worlds(["census"], rounded_total=True), "publishes its population exactly"),
    ],
)
def test_what_cannot_be_drawn_is_said(call, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=said):
        call()


# -- each world's own property ----------------------------------------------------------------------------------------


def test_evenness_differs_between_kinds_of_the_same_size() -> None:
    leaves_of_world = leaves("unlike-evenness")
    size = sum(leaves_of_world.values())
    spread = {name: float((counts / np.maximum(size, 1)).std() / (counts / np.maximum(size, 1)).mean())
              for name, counts in leaves_of_world.items()}  # fmt: skip
    assert spread["kind 2"] > 3 * spread["kind 1"]
    assert spread["kind 8"] > 1.3 * spread["kind 7"]
    small = leaves_of_world["kind 10"]
    assert small.mean() < 3
    assert excess(small) < 4
    assert excess(leaves_of_world["kind 6"]) > 10


def test_one_part_is_even_and_small() -> None:
    leaves_of_world = leaves("one-even-part")
    assert excess(leaves_of_world["small and even"]) == pytest.approx(1, abs=0.1)
    assert leaves_of_world["small and even"].mean() == pytest.approx(1.2, abs=0.1)
    assert excess(leaves_of_world["large"]) > 50
    assert excess(leaves_of_world["medium"]) > 50


def test_rare_languages_live_in_one_to_three_areas() -> None:
    leaves_of_world = leaves("rare-languages")
    present = {name: int((counts > 0).sum()) for name, counts in leaves_of_world.items()}
    rare = [number for name, number in present.items() if "rare" in name]
    assert len(rare) == 12
    assert set(rare) <= {1, 2, 3}
    assert all(counts[counts > 0].min() >= 3 for name, counts in leaves_of_world.items() if "rare" in name)
    scattered = [name for name in leaves_of_world if "scattered" in name]
    assert len(scattered) == 6
    assert all(present[name] > 80 and leaves_of_world[name].max() <= 3 for name in scattered)


def test_families_make_ones_and_twos_rarer_than_chance() -> None:
    for name, counts in leaves("households").items():
        if name != "majority":
            few = ((counts == 1) | (counts == 2)).mean()
            rate = counts.mean()
            by_chance = np.exp(-rate) * (rate + rate**2 / 2)
            assert few < 0.6 * by_chance
            assert excess(counts) > 2.5


def test_institutions_are_there_and_prisons_hold_men() -> None:
    leaves_of_world = leaves("institutions")
    young = leaves_of_world["20 to 24"] + leaves_of_world["25 to 29"] + leaves_of_world["30 to 34"]
    men = young[:, 0] - young[:, 1] > 40
    assert 0.01 < men.mean() < 0.08
    assert np.median(young[~men, 0] / np.maximum(young[~men, 1], 1)) == pytest.approx(1, abs=0.1)
    old = leaves_of_world["85 and over"]
    homes = old[:, 1] > 20
    assert 0.02 < homes.mean() < 0.15
    assert old[homes, 1].sum() > 2.5 * old[homes, 0].sum()


def test_couples_have_a_man_and_a_woman() -> None:
    leaves_of_world = leaves("couples")
    for name in ("married", "common-law"):
        assert np.array_equal(leaves_of_world[name][:, 0], leaves_of_world[name][:, 1])
    widowed = leaves_of_world["widowed"].sum(axis=0)
    assert widowed[1] > 3 * widowed[0]
    assert not np.array_equal(leaves_of_world["single"][:, 0], leaves_of_world["single"][:, 1])


def test_sizes_are_zipfs() -> None:
    sizes = np.sort(sum(counts.sum(axis=1) for counts in leaves("zipf-sizes").values()))[::-1]
    assert sizes[0] > 5_000
    assert 40 < np.median(sizes) < 90
    ranks = np.arange(10, 1000)
    slope = np.polyfit(np.log(ranks), np.log(sizes[ranks - 1]), 1)[0]
    assert slope == pytest.approx(-1, abs=0.2)


def test_neighbourhoods_are_of_types() -> None:
    leaves_of_world = leaves("neighbourhoods")
    size = sum(leaves_of_world.values())
    share = leaves_of_world["detached house"] / size
    shares = [(low <= share) & (share < high) for low, high in ((0, 0.1), (0.1, 0.33), (0.33, 0.65), (0.65, 1.1))]
    assert [float(here.mean()) for here in shares] == pytest.approx([0.15, 0.25, 0.15, 0.45], abs=0.05)
    assert ((share > 0.62) & (share < 0.72)).mean() < 0.03  # between two types there is nobody
    assert (leaves_of_world["mobile home"] / size > 0.15).mean() == pytest.approx(0.15, abs=0.04)


def test_most_categories_are_empty() -> None:
    leaves_of_world = leaves("mostly-empty")
    assert len(leaves_of_world) == 40
    empty = np.mean([(counts == 0).mean() for counts in leaves_of_world.values()])
    assert 0.7 < empty < 0.9


def test_the_deep_tree_is_deep() -> None:
    tree = world("deep-tree")

    def depth(node: str) -> int:
        return 1 + max((depth(part) for part in tree.tree.get(node, ())), default=0)

    assert depth(TOTAL) == 4
    assert len(tree.leaves) == 31
    zeros = np.mean([(counts == 0).mean() for name, counts in leaves("deep-tree").items() if "country" in name])
    assert zeros > 0.5


# -- several worlds, and files ----------------------------------------------------------------------------------------


def test_the_worst_world_comes_first() -> None:
    calibration = calibrate_worlds(["couples", "one-even-part", "rare-languages"], areas=700)
    assert calibration.worst is calibration.worlds[0]
    assert {one.world for one in calibration.worlds} == {"couples", "one-even-part", "rare-languages"}
    over = [
        (one.claims.worst.overstated, one.claims.worst.gap) for one in calibration.worlds if one.claims.worst is not None
    ]
    assert over == sorted(over, reverse=True)
    report = calibration.to_json()
    assert report["world"] == calibration.worst.world
    assert [one["world"] for one in report["worlds"]] == [one.world for one in calibration.worlds]
    assert report["worlds"][0] | {"worlds": report["worlds"]} == report


def test_the_short_set_has_the_census_and_others() -> None:
    assert set(SHORT) <= set(SENTENCES)
    assert SHORT[0] == "census"
    assert set(SENTENCES) == {"census", *WORLDS}


@pytest.mark.parametrize("name", ["couples", "households"])
@pytest.mark.parametrize("rounded_total", [False, True])
def test_a_world_is_written_audited_and_scored_alike(tmp_path: Path, name: str, rounded_total: bool) -> None:
    one = world(name)
    options = {"mechanism": "rounding:3", "rounded_total": rounded_total}
    made = write_world(name, tmp_path / "world", areas=80, seed=5, **options)
    release, truth = read(made.files[0]), read(made.truth)
    assert len(release.columns) == len(one.columns)
    assert [isinstance(column.mechanism, Exact) for column in release.columns].count(True) == (not rounded_total)
    written = pl.read_parquet(made.truth)["true"].to_numpy().reshape(80, -1)
    assert np.array_equal(written, one.counts(80, 5))
    told = audit(release, tmp_path / "audit", truth=truth).summary["truth"]
    assert told["wrong"]["proved"] == 0
    assert sum(group["claims"] for group in told["claims_by_value"][1:]) == told["checked"]["likely"]


def test_a_written_world_says_that_it_is_invented(run: Run, tmp_path: Path) -> None:
    ran = run("world", "couples", "-o", str(tmp_path / "one"), "--areas", "50")
    assert ran.code == 0, ran.err
    note = (tmp_path / "one" / "SIMULATED.txt").read_text(encoding="utf-8")
    again = note.strip().splitlines()[-1].split()[3:]
    again[again.index("FOLDER")] = str(tmp_path / "two")
    assert run(*again).code == 0
    for name in ("release.parquet", "release.toml", "truth.parquet"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("atlantis",), "there is no world 'atlantis'"),
        (("couples", "--areas", "0"), "--areas must be at least 1, not 0"),
    ],
)
def test_rejections(run: Run, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    ran = run("world", *arguments, "-o", str(tmp_path / "world"))
    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "world").exists()
