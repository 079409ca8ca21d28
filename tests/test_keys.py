"""Keys: the law of keyed rounding against listed figures and chance; what `check` says of tables."""

from __future__ import annotations

import json
import os
from itertools import product

import numpy as np
import pytest

from tests.keyed import keyed_census
from tests.test_structure import release_of
from unround.checks import check_release
from unround.checks.keys import RepeatedCount, RepeatTally, differing, pattern_shares, repeat_roundings
from unround.checks.residuals import even_series, keyed_shares
from unround.mechanisms import Rounding
from unround.mechanisms.keyed import apart, arc_of, meeting
from unround.release import Column, Proposal

WHOLE = {
    0.0: (0.520, 0.480, 0.0),
    0.1: (0.528, 0.469, 0.0026),
    0.2: (0.550, 0.440, 0.0101),
    0.25: (0.562, 0.424, 0.0142),
    0.3: (0.575, 0.407, 0.0184),
    0.4: (0.593, 0.383, 0.0242),
    0.5: (0.599, 0.374, 0.0264),
}
WEIGHTED = {
    0.0: (0.500, 0.500, 0.0),
    0.1: (0.512, 0.484, 0.0041),
    0.2: (0.538, 0.449, 0.0127),
    0.3: (0.566, 0.412, 0.0220),
    0.4: (0.586, 0.385, 0.0288),
    0.5: (0.594, 0.375, 0.0313),
}
THREE = {0.0: (0.507, 0.444, 0.049, 0.0), 0.3: (0.483, 0.477, 0.040, 0.0003), 0.5: (0.471, 0.493, 0.036, 0.0005)}


# --- the law ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("parts", "whole", "listed"), [(2, True, WHOLE), (2, False, WEIGHTED), (3, True, THREE)])
def test_shares_of_residuals_are_those_of_the_design(parts, whole, listed):
    for constant, shares in listed.items():
        found = keyed_shares(even_series(5, parts, whole), constant)
        assert found == pytest.approx(shares, abs=0.0016)
        assert keyed_shares(even_series(5, parts, whole), 1 - constant) == pytest.approx(found, abs=1e-9)
    alone = {(2, True): (0.560, 0.426, 0.0134), (2, False): (0.550, 0.433, 0.0167), (3, True): (0.489, 0.469, 0.042, 0.0002)}
    assert even_series(5, parts, whole)[0].real == pytest.approx(alone[parts, whole], abs=0.0006)


@pytest.mark.parametrize(("base", "parts", "constant"), [(5, 2, 0.31), (3, 2, 0.08), (5, 3, 0.4), (10, 2, 0.19)])
def test_the_closed_form_gives_the_same_shares(base, parts, constant):
    found = np.zeros(parts + 1)
    for rests in product(range(base), repeat=parts):
        wraps, rest = divmod(sum(rests), base)
        for ups in product((False, True), repeat=parts + 1):
            arcs = tuple(arc_of(up, r / base) for up, r in zip(ups[1:], rests, strict=True))
            residual = ups[0] + wraps - sum(ups[1:])
            found[abs(residual)] += meeting(arcs, arc_of(ups[0], rest / base), constant) / base**parts
    assert found.sum() == pytest.approx(1)
    assert keyed_shares(even_series(base, parts), constant) == pytest.approx(found, abs=1e-4)


def test_arcs_meet_as_often_as_random_numbers_do():
    rng = np.random.default_rng(1)
    first, second = rng.random((2, 400_000))
    for constant, *ends in rng.random((6, 7)).tolist():
        (a, b), (c, d), (e, f) = (sorted(ends[k : k + 2]) for k in (0, 2, 4))
        total = (first + second + constant) % 1
        share = ((first >= a) & (first < b) & (second >= c) & (second < d) & (total >= e) & (total < f)).mean()
        assert meeting(((a, b), (c, d)), (e, f), constant) == pytest.approx(share, abs=0.004)
        assert meeting(((0.0, 1.0), (c, d)), (e, f), constant) == pytest.approx((d - c) * (f - e))


def test_patterns_of_repeats_are_those_of_keys():
    constants = [0.1, 0.34, 0.8]
    rng = np.random.default_rng(2)
    drawn, rest = rng.random(300_000), rng.integers(0, 5, 300_000)
    up = (drawn[:, None] + constants) % 1 < rest[:, None] / 5
    seen = np.bincount(np.where(up.all(1), 0, up @ [1, 2, 4]), minlength=8) / len(drawn)
    law = pattern_shares(constants, np.arange(5) / 5)
    assert [law.get(bits, 0.0) for bits in range(8)] == pytest.approx(seen.tolist(), abs=0.004)
    pair = differing(np.array([0.24]), 5, -1, True)[0]
    assert pair == pytest.approx((up[:, 0] != up[:, 1]).mean(), abs=0.004)
    assert differing(np.array([0.24]), 5, 1, True)[0] == pytest.approx(0.4)  # both never go up at remainder 1


# --- what the check finds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constants", "whole"), [((0.0, 0.12, 0.33), True), ((0.19, 0.43, 0.5), True), ((0.08, 0.37), False)]
)
def test_constants_are_found(constants, whole):
    """One table a release, so that sums alone tell."""
    for seed, constant in enumerate(constants):
        release, _ = keyed_census(4000, [constant], seed, whole=whole)
        table_found = check_release(release).numbers.tables["Table 0"]
        assert table_found.model == "keyed"
        assert apart(table_found.constant - constant) < 0.02 + 2 * table_found.error
        assert table_found.error < 0.05
        assert table_found.p_value > 1e-4
        assert table_found.whole in (whole, None)


def test_repeats_place_the_constants_of_all_tables():
    """Tables whose own sums cannot tell (0.24, and anything from 1 − c) are placed by the counts that they share."""
    constants = [0.31, 0.8, 0.43, 0.24, 0.62, 0.93]
    check = check_release(keyed_census(3000, constants, 2)[0])
    placed = np.array([check.numbers.tables[f"Table {k}"].constant for k in range(len(constants))])
    assert max(abs(apart(one) - apart(true)) for one, true in zip(placed, constants, strict=True)) < 0.02
    repeated = max(check.numbers.repeats, key=lambda one: len(one.columns))
    mine = [int(key[1]) for key in repeated.columns]
    ways = [np.abs((placed[mine] - way * np.array(constants)[mine] + 0.5) % 1 - 0.5).max() for way in (1, -1)]
    assert min(ways) < 0.02  # they may all be mirrored
    assert repeated.model == "keyed"
    assert len(repeated.columns) >= 5  # those that differ in fewer than an eighth of the areas are taken for one
    assert max(repeated.errors) < 0.02
    family = next(one for one in check.families if one.family == "other counts by sex: Table 0")
    report = json.loads(json.dumps(family.to_json()))
    assert report["table"] == "Table 0"
    assert set(report["rounding"]) >= {"model", "constant", "error", "whole", "p_value"}
    assert {one["model"] for one in report["by_sum"]} <= {"keyed", "independent", "unknown"}


def test_no_independent_table_is_called_keyed():
    """Two hundred tables in `make thorough`, forty here."""
    models, rounds = [], 20 if "UNROUND_THOROUGH" in os.environ else 4
    for seed in range(rounds):
        size = (60.0, 150.0, 400.0, 2000.0)[seed % 4]
        check = check_release(keyed_census(800, [None] * 10, 100 + seed, parts=2 + seed % 2, size=size)[0])
        models += [one.model for one in check.numbers.tables.values()]
        assert "keyed" not in {one.model for one in check.numbers.repeats}
    assert len(models) == 10 * rounds
    assert "keyed" not in models
    assert models.count("independent") > 7 * rounds  # the others: too few large sums, or it cannot be told


def test_many_areas_make_no_keys_of_counts_that_are_just_large_enough():
    """At the edge of what is large, roundings that agree are seen more often: a flaw of two points, however many areas."""
    rng = np.random.default_rng(3)
    true, rounding = rng.normal(44, 8, 60_000).clip(0).astype(np.int64), Rounding(5)
    shown = np.stack([rounding.publish(true, rng), rounding.publish(true, rng)], axis=1)
    tally = RepeatTally([RepeatedCount((0, 1), ("one", "two"), None, 5)], len(shown), [{}])
    tally.add(0, shown)
    release = release_of(shown, [Column(name, (name, "total"), name, name) for name in ("one", "two")])
    (found,), constants = repeat_roundings(release, tally, {}, {})
    assert found.model == "independent"
    assert found.areas > 30_000
    assert constants == {}


def test_what_is_not_one_constant_is_unknown():
    drifting = np.linspace(0, 0.5, 3000)
    two = np.where(np.arange(3000) < 1500, 0.05, 0.45)
    for constant in (drifting, two):
        check = check_release(keyed_census(3000, [constant, None], 5)[0])
        assert check.numbers.tables["Table 0"].model == "unknown"
        assert "parts of the file have constants of their own" in check.numbers.tables["Table 0"].why
        assert check.numbers.tables["Table 1"].model == "independent"
    few = check_release(keyed_census(40, [0.0, 0.3], 6)[0]).numbers
    assert {one.model for one in few.tables.values()} == {"unknown"}
    assert {one.model for one in few.repeats} <= {"unknown"}


def test_repeats_whose_differences_drift_are_unknown():
    check = check_release(keyed_census(3000, [0.1, np.linspace(0, 0.6, 3000), 0.4], 7)[0])
    assert "unknown" in {one.model for one in check.numbers.repeats}


def test_a_table_with_two_constants_is_unknown():
    """Two tables taken for one: each row would have its own constant."""
    from dataclasses import replace

    release, _ = keyed_census(3000, [0.02, 0.47], 8)
    columns = tuple(replace(column, block="Both") for column in release.columns)
    found = check_release(replace(release, columns=columns)).numbers.tables["Both"]
    assert found.model == "unknown"
    assert found.constant is None
    assert "some sums have constants of their own" in found.why


def test_couples_are_not_taken_for_keys():
    """As many married men as women: their remainders are alike, and with them the residuals, however counts are rounded."""
    rng = np.random.default_rng(4)
    married = rng.poisson(60 * rng.lognormal(0, 0.4, 4000))
    single = rng.poisson(50, (2, 4000))
    rows = {"married": np.stack([married, married]), "single": single}
    columns, shown, proposals = [], [], []
    for name, (men, women) in rows.items():
        first = len(columns)
        for sex, count in (("total", men + women), ("men", men), ("women", women)):
            key = name if sex == "total" else f"{name}/{sex}"
            columns.append(Column(key, (name, sex), name, "Marital status", mechanism=Rounding(3)))
            shown.append(Rounding(3).publish(count, rng))
        proposals.append(Proposal(first, (first + 1, first + 2), "sex"))
    check = check_release(release_of(np.column_stack(shown), columns, proposals))
    assert check.numbers.tables["Marital status"].model == "independent"


def test_a_column_with_random_numbers_of_its_own_is_left_out_of_the_others():
    """The same people may be other records in one table, with other keys: there its roundings are new observations."""
    release, _ = keyed_census(1500, [0.1, 0.42, 0.7, None], 4, parts=2)
    repeats = check_release(release).numbers.repeats
    assert {one.columns for one in repeats} == {tuple(f"t{k}.0{sex}" for k in range(3)) for sex in ("", "/men", "/women")}
    assert "independent" not in {one.model for one in repeats}


def test_two_columns_a_quarter_of_the_circle_apart_are_told_from_independent_ones():
    for constants, model in (([0.1, 0.345], "keyed"), ([None, None], "independent")):
        release, _ = keyed_census(9000, constants, 6, parts=2)
        (repeats,) = [one for one in check_release(release).numbers.repeats if one.columns == ("t0.0", "t1.0")]
        assert repeats.model == model
    release, _ = keyed_census(9000, [0.1, 0.345], 6, parts=2)
    (repeats,) = [one for one in check_release(release).numbers.repeats if one.columns == ("t0.0", "t1.0")]
    assert abs(abs(repeats.constants[1] - repeats.constants[0]) - 0.245) < 0.02
