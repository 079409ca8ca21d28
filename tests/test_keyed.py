"""Censuses rounded by keys: the keys add up as the records do, and sums come out as the mathematics of keys says."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import unround
from unround import simulation as sim
from unround.errors import InputError
from unround.mechanisms import Rounding, Sample
from unround.simulation.keyed import ONE, drawn_keys, keys_of_parts, keys_of_some
from unround.simulation.profile import BLOCKS, table_of

TWO_PARTS = {
    0.0: (0.520, 0.480, 0.0),
    0.1: (0.528, 0.469, 0.0026),
    0.2: (0.550, 0.440, 0.0101),
    0.3: (0.575, 0.407, 0.0184),
    0.5: (0.599, 0.374, 0.0264),
    0.8: (0.550, 0.440, 0.0101),
}
"""Shares of |total − men − women| = 0, 5 and 10 in large whole counts, by c: u(total) = u(men) + u(women) + c."""

THREE_PARTS = {0.0: (0.507, 0.444, 0.049, 0.0), 0.3: (0.483, 0.477, 0.040, 0.0003), 0.5: (0.471, 0.493, 0.036, 0.0005)}
"""Shares of |r| = 0, 5, 10 and 15 for three parts, by c₃."""

INDEPENDENT = (0.560, 0.426, 0.0134)


@cache
def blocks(areas: int, rows: str, rounds: sim.Rounds) -> tuple[sim.CountBlock, ...]:
    return tuple(rounds.counts(areas, rows))


def joined(areas: int, rows: str, rounds: sim.Rounds, *names: str) -> list[np.ndarray]:
    return [np.concatenate([getattr(block, name) for block in blocks(areas, rows, rounds)]) for name in names]


def keyed(constant: float | None) -> sim.Rounds:
    return sim.Rounds(1, True, constant)


def shares(published: np.ndarray, large: np.ndarray, steps: int) -> tuple[np.ndarray, int]:
    """Return how often |total − Σ parts| is 0, 5, 10 …, of the sums that are large (… × total and parts)."""
    shown = large & (published != sim.MISSING).all(-1)
    off = np.abs(published[..., 0] - published[..., 1:].sum(-1))[shown]
    assert (off % 5 == 0).all()
    numbers = np.bincount(off // 5, minlength=steps)
    return numbers / numbers.sum(), int(numbers.sum())


def agrees(answer: tuple[np.ndarray, int], expected: tuple[float, ...]) -> bool:
    """Whether shares lie within four standard errors, and the three digits that are known, of what is expected."""
    share, number = answer
    assert share.size == len(expected)
    error = np.sqrt(np.array(expected) * (1 - np.array(expected)) / number)
    return bool((np.abs(share - expected) < 4 * error + 0.0015).all())


# -- the law -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", sorted(TWO_PARTS))
def test_men_and_women_under_their_total(c: float) -> None:
    true, published = joined(6000, "age", keyed(1 - c), "true", "published")
    rows = slice(7, None)  # from row 8 on: ages
    shares_of_tables = shares(published[:, rows], (true[:, rows, 1:] >= 15).all(-1), 3)
    assert shares_of_tables[1] > 50_000
    assert agrees(shares_of_tables, TWO_PARTS[c])
    others = [expected for other, expected in TWO_PARTS.items() if min(abs(other - c), abs(1 - other - c)) > 0.05]
    assert not any(agrees(shares_of_tables, expected) for expected in (*others, INDEPENDENT))


@pytest.mark.parametrize("c", sorted(THREE_PARTS))
def test_three_ages_under_their_total(c: float) -> None:
    at = sim.schema("age").index
    rows = [at[8], at[9], at[13], at[24]]
    true, published = joined(20_000, "age", keyed(1 - c / 2), "true", "published")
    shares_of_tables = shares(published[:, rows].swapaxes(1, 2), (true[:, rows] >= 15).all(1), 4)
    assert shares_of_tables[1] > 50_000
    assert agrees(shares_of_tables, THREE_PARTS[c])
    assert not any(agrees(shares_of_tables, expected) for other, expected in THREE_PARTS.items() if other != c)


# -- keys add up as records do ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", ["all", "short"])
def test_the_sums_of_keys_add_up_like_the_counts(rows: str) -> None:
    true, keys = joined(150, rows, keyed(None), "true", "keys")
    table = sim.schema(rows)
    # A person who lives alone is another record than the household.
    sums = [sum_ for sum_ in table.sums if (sum_.total, sum_.parts) not in ((97, (51,)), (92, (86,)))]
    assert any(sum_.why == "universe" for sum_ in sums)
    at = table.index
    for values in (true, keys):
        for sum_ in sums:
            members = [at[row] for row in (sum_.total, *sum_.parts)]
            cells = table.shown[members].all(0)
            assert cells.any()
            assert (values[:, members[0]][:, cells] == values[:, members[1:]][:, :, cells].sum(1)).all(), sum_
        both = table.shown[:, 1]
        assert (values[:, both, 0] == values[:, both, 1] + values[:, both, 2]).all()
    assert (keys[true == 0] == 0).all()


def test_a_parent_has_the_keys_of_the_areas_in_it() -> None:
    named_blocks = blocks(400, "age", keyed(None))
    regions = pl.concat([block.regions for block in named_blocks])
    (keys,) = joined(400, "age", keyed(None), "keys")
    parent, region = regions["parent"].to_list(), regions["region"].to_list()
    inside = {name: [at for at, above in enumerate(parent) if above == name] for name in region}
    checked = 0
    for at, name in enumerate(region):
        if inside[name]:
            assert (keys[at] == keys[inside[name]].sum(0)).all()
            checked += 1
    assert checked > 20


def test_the_same_records_round_alike_without_constants_and_not_with_them() -> None:
    at = sim.schema("short").index
    heads = [at[row] for row in (383, 388, 393, 724)]
    (alike,) = joined(600, "short", keyed(0.0), "published")
    assert (alike[:, heads] == alike[:, heads[:1]]).all()
    (unlike,) = joined(600, "short", keyed(None), "published")
    assert 0.2 < (unlike[:, heads[1]] != unlike[:, heads[0]]).mean() < 0.5
    true, published, keys = joined(600, "short", keyed(None), "true", "published", "keys")
    for row in (383, 388):  # by hand
        block = next(one for one in BLOCKS if one.first == row)
        u = (keys[:, at[row], 0].astype(object) + keyed(None).constant_of(block)) % ONE
        rest = true[:, at[row], 0] % 5
        up = np.array([5 * int(one) < int(r) * ONE for one, r in zip(u, rest, strict=True)])
        by_hand = true[:, at[row], 0] - rest + 5 * up
        shown = published[:, at[row], 0] != sim.MISSING
        assert (published[shown, at[row], 0] == by_hand[shown]).all()


def test_keys_leave_the_true_counts_as_they_are() -> None:
    (plain,) = joined(200, "all", sim.Rounds(), "true")
    assert (joined(200, "all", keyed(None), "true")[0] == plain).all()
    # Nor do other rows change the keys of these.
    few, many = (joined(200, rows, keyed(None), "keys", "published") for rows in ("age", "short"))
    for one, other in zip(few, many, strict=True):
        assert (one == other[:, : one.shape[1]]).all()


# -- the steps ---------------------------------------------------------------------------------------------------------


def test_parts_use_up_the_universe_and_empty_parts_have_no_key() -> None:
    rng = np.random.default_rng(3)
    leaves = rng.poisson(1.2, (200, 2, 5))
    whole = drawn_keys(leaves.sum(2), rng)
    parts = keys_of_parts(whole, leaves, rng)
    assert (parts.sum(2) == whole).all()
    assert (parts[leaves == 0] == 0).all()


def test_a_subset_that_is_the_whole_has_its_key() -> None:
    rng = np.random.default_rng(4)
    true = rng.poisson(2.0, (300, 2))
    whole, number = drawn_keys(true, rng), rng.binomial(true, 0.6)
    some = keys_of_some(whole, true, number, rng)
    same, none = number == true, number == 0
    assert same.any()
    assert (some[same] == whole[same]).all()
    assert (some[none] == 0).all()
    assert (some[~same & ~none] != whole[~same & ~none]).all()


@pytest.mark.parametrize("how", [Rounding(5), Rounding(3), Sample(5)])
def test_a_count_goes_up_below_its_remainder(how: Rounding | Sample) -> None:
    rng = np.random.default_rng(5)
    numbers = rng.integers(0, ONE - 1, 4000, dtype=np.uint64, endpoint=True)
    true = rng.integers(0, 40, 4000)
    whole, real = how.publish_keyed(true, numbers), how.publish_keyed(true.astype(float), numbers)
    assert (whole == real).all()
    for x, u, y in zip(true.tolist(), numbers.tolist(), whole.tolist(), strict=True):
        up = float(how.chance(y, x)) if y > x else 1 - float(how.chance(y, x)) if y < x else 0
        assert (u / ONE < up) if y > x else (u / ONE >= up)
    edge = np.array([0, ONE // 5, ONE // 5 + 1], dtype=np.uint64)
    assert Rounding(5).publish_keyed(np.array([11, 11, 11]), edge).tolist() == [15, 15, 10]


# -- files -------------------------------------------------------------------------------------------------------------


def test_files_hold_the_keys_and_the_constants(tmp_path: Path) -> None:
    made = unround.simulate(tmp_path, areas=60, seed=2, rows="short", format="tidy", keys=True)
    assert made.constants == tmp_path / "constants.csv"
    constants = pl.read_csv(made.constants)
    assert constants["constant"].n_unique() == len(constants)
    truth = pl.read_parquet(made.truth)
    assert truth.columns == ["region", "characteristic_id", "sex", "true", "key"]
    assert truth.filter(pl.col("key").is_null())["characteristic_id"].unique().sort().to_list() == [2, 4]
    release = pl.read_parquet(tmp_path / "release.parquet").join(truth, on=["region", "characteristic_id", "sex"])
    constant = constants.filter(pl.col("table") == 58)["constant"].item()
    marital = release.filter(pl.col("characteristic_id").is_between(58, 70)).drop_nulls("published")
    u = (marital["key"].to_numpy() + constant) % 1
    true = marital["true"].to_numpy()
    assert (marital["published"].to_numpy() == true - true % 5 + 5 * (u < true % 5 / 5)).all()
    note = made.note.read_text()
    assert "--keys\n" in note
    assert "constants.csv" in note
    again = unround.simulate(tmp_path, areas=60, seed=2, rows="short", format="tidy")  # replaces all of it
    assert again.constants is None
    assert not (tmp_path / "constants.csv").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"constant": 0.3}, "constant goes with keys"),
        ({"keys": True, "constant": 1.5}, "constant must be at least 0 and at most 1"),
        ({"keys": True, "constant": float("nan")}, "constant must be at least 0 and at most 1"),
    ],
)
def test_what_cannot_be(tmp_path: Path, options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        unround.simulate(tmp_path, areas=5, **options)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_every_table_has_a_constant_of_its_own_unless_it_is_given() -> None:
    age, marital, within = (next(one for one in BLOCKS if one.first == row) for row in (8, 58, 340))
    assert keyed(0.25).constant_of(age) / ONE == keyed(0.25).constant_of(marital) / ONE == 0.25
    drawn = keyed(None)
    assert drawn.constant_of(age) != drawn.constant_of(marital)
    assert table_of(within) == 335
    assert drawn.constant_of(within) == drawn.constant_of(next(one for one in BLOCKS if one.first == 335))
