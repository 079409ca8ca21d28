"""The check: healthy releases are not flagged, sick ones are; the expected residuals; what is printed and drawn."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest
from scipy.stats import chisquare

import unround
import unround.simulation as sim
from tests.test_structure import census, release_of, said
from unround.checks import check_release
from unround.checks.families import CONTRADICTS, DEPARTS, FITS, LEAST_SUMS, UNTESTED, FamilyHistogram
from unround.checks.residuals import Laws, even_series, even_shares
from unround.expectation import expectation
from unround.job import audit
from unround.mechanisms import Exact, Rounding, Sample, mechanism
from unround.options import AuditOptions
from unround.prior.deconvolve import BELOW, CAP
from unround.release import Column, Proposal
from unround.show.check import fit_in_words
from unround.tables import read

LARGE = even_series(5, 2)[0].real
"""Shares of |r| = 0, 5, 10 of large counts, rounded independently."""

THOROUGH = bool(os.environ.get("UNROUND_THOROUGH"))
AREAS = 1000


# --- a census of ages, published well or badly -----------------------------------------------------------


@cache
def ages(areas=AREAS, seed=3):
    """True counts of a simulated census, areas × columns; the columns' rows and sexes; and the schema."""
    table = sim.schema("age")
    cells = [(at, s) for at, row in enumerate(table.rows) if row.is_count for s in range(3) if s == 0 or row.has_sex]
    blocks = list(sim.true_counts(areas, seed, "age"))
    at, s = np.array(cells).T
    true = np.concatenate([block.true for block in blocks]).astype(np.int64)[:, at, s]
    regions = pl.concat([block.regions for block in blocks]).select("region")
    return true, cells, table, regions


def published(how="rounding:5", seed=1, areas=AREAS):
    true, cells, table, _ = ages(areas)
    rng = np.random.default_rng(seed)
    kinds = [mechanism("exact" if table.rows[at].mechanism == "exact" else how) for at, _ in cells]
    return np.column_stack([kind.publish(true[:, c], rng) for c, kind in enumerate(kinds)])


def release(counts, declared=None, added=(), areas=AREAS):
    """The release of such counts, the mechanism of rounded ones declared or not."""
    _, cells, table, regions = ages(areas)
    place = {cell: c for c, cell in enumerate(cells)}
    columns = []
    for at, s in cells:
        row, sex = table.rows[at], sim.SEXES[s]
        exact = row.mechanism == "exact"
        key = str(row.id) if s == 0 else f"{row.id}/{sex}"
        block = "" if exact else "Total - Age"
        columns.append(Column(key, (str(row.id), sex), row.name, block, row.depth, Exact() if exact else declared))
    proposals = [
        Proposal(place[table.index[sum_.total], s], tuple(place[table.index[part], s] for part in sum_.parts), "indentation")
        for sum_ in table.sums
        for s in range(3)
        if all((table.index[row], s) in place for row in (sum_.total, *sum_.parts))
    ]
    proposals += [Proposal(place[at, 0], (place[at, 1], place[at, 2]), "sex") for at, s in cells if s == 1]
    index = {column.key: c for c, column in enumerate(columns)}
    proposals += [Proposal(index[total], tuple(index[part] for part in parts), "file") for total, *parts in added]
    return release_of(counts, columns, proposals, regions)


def family(check, start):
    (matching,) = [candidate for candidate in (*check.families, *check.untested) if candidate.family.startswith(start)]
    return matching


def test_a_healthy_release_fits():
    check = check_release(release(published()))
    assert check.verdict == FITS
    assert {members.family for members in check.families} == {
        "published counts (rounding:5): all tables",
        "ages by sex: Total - Age",
        "ages under their parent: Total - Age",
        "repeats of an exact count: Total - Age",
    }
    by_sex = family(check, "ages by sex")
    assert by_sex.sums == sum(by_sex.observed.values()) == sum(size.sums for size in by_sex.by_size) > 5000
    assert set(by_sex.observed) == {0, 5, 10}
    assert by_sex.expected[10] == pytest.approx(float(2 * expectation(2).share(10)), rel=0.1)
    assert sum(by_sex.expected.values()) == pytest.approx(1)
    assert check.doubts == {}


@pytest.mark.parametrize(
    ("rows", "areas", "seeds"),
    [("short", 400, range(1, 2)), ("age", 1000, range(1, 4))]
    if not THOROUGH
    else [("short", 1500, range(1, 11)), ("age", 6000, range(1, 21)), ("all", 400, range(1, 4))],
)
def test_at_most_one_healthy_family_in_a_hundred_is_flagged(rows, areas, seeds):
    """Counts of realistic sizes and slopes, areas nested in each other, all tables."""
    families = [members for seed in seeds for members in check_release(census(rows, areas, seed)[0]).families]
    flagged = [members for members in families if members.verdict != FITS]
    assert len(families) >= 12
    assert len(flagged) <= len(families) / 100, [(members.family, members.note) for members in flagged]


@pytest.mark.parametrize(("declared", "true"), [(5, 3), (5, 10), (10, 5), (3, 5), (5, 1)])
def test_a_wrong_base_is_flagged(declared, true):
    check = check_release(release(published(f"rounding:{true}"), Rounding(declared)))
    counts = family(check, "published counts")
    assert check.verdict == CONTRADICTS or counts.verdict == DEPARTS
    if true == 2 * declared:
        assert counts.verdict == DEPARTS
        assert f"the base appears to be {true}" in counts.note
    else:
        assert counts.verdict == CONTRADICTS
        assert f"are not multiples of {declared}" in counts.note
        assert f"cannot come from rounding to base {declared}" in counts.clash


def test_an_exact_total_that_was_adjusted_in_a_tenth_of_the_areas_is_flagged():
    counts, rng = published(), np.random.default_rng(5)
    some = rng.random(len(counts)) < 0.1
    counts[some, 0] += rng.choice([-5, -4, -3, -2, -1, 1, 2, 3, 4, 5], some.sum())
    check = check_release(release(counts))
    twice = family(check, "repeats of an exact count")
    assert twice.verdict == CONTRADICTS
    assert twice.note.startswith("Population, 2021 cannot be exact in ")
    assert "But 8" in twice.clash
    assert twice.inexact
    assert check.doubts == {}  # an audit leaves this sum out
    assert {members.family for members in check.families if members.verdict != FITS} == {twice.family}


def under_population(share):
    """Men and women under an exact population, of which a share was adjusted by up to 5."""
    true, cells, table, _ = ages(3000)
    rng = np.random.default_rng(8)
    parts = true[:, [cells.index((table.index[8], s)) for s in (1, 2)]]
    total = parts.sum(1)
    moved = rng.random(len(total)) < share
    total = total + moved * rng.choice([-5, -4, -3, -2, -1, 1, 2, 3, 4, 5], len(total))
    columns = [
        Column("all", ("all", "total"), "Population", "", mechanism=Exact(), adjusted=5),
        Column("all/men", ("all", "men"), "Population", ""),
        Column("all/women", ("all", "women"), "Population", ""),
    ]
    frame = pl.DataFrame({"region": [str(at) for at in range(len(total))], "adjustable": [True] * len(total)})
    counts = np.column_stack([total, Rounding(5).publish(parts, rng)])
    return check_release(release_of(counts, columns, [Proposal(0, (1, 2), "sex")], frame))


def test_parts_under_a_total_that_may_be_adjusted():
    assert under_population(0.0).verdict == FITS
    check = under_population(0.1)
    assert check.doubts[1] == "an exact count is not exact"
    sick = family(check, "parts under an exact total")
    assert sick.verdict == CONTRADICTS
    assert sick.tail_ratio > 1.5
    assert "it may have been adjusted by up to 5, according to the agency" in sick.note
    assert sick.inexact


def test_columns_with_the_same_random_numbers_are_flagged():
    true, cells, table, _ = ages()
    counts, rng = published(), np.random.default_rng(6)
    for at, row in enumerate(table.rows):
        if row.is_count and row.has_sex:
            drawn = rng.random(len(true))
            for s in (1, 2):
                x = true[:, cells.index((at, s))]
                counts[:, cells.index((at, s))] = x - x % 5 + 5 * (drawn < x % 5 / 5)
    check = check_release(release(counts))
    by_sex = family(check, "ages by sex")
    assert by_sex.verdict == DEPARTS
    assert by_sex.tail_ratio == pytest.approx(0.0352 / 0.01344, rel=0.15)
    assert by_sex.rounding.model == "unknown"
    assert (
        "What the random numbers do is not known: neither independent rounding nor keys with one constant fit" in by_sex.note
    )
    assert check.doubts[cells.index((table.index[10], 1))] == "rounding departs from independence"
    assert [members.family for members in check.families if members.verdict != FITS] == [by_sex.family]


def test_conventional_rounding_sold_as_random_is_flagged():
    check = check_release(release(published("nearest:5"), Rounding(5)))
    assert check.verdict == DEPARTS
    for start in ("ages by sex", "ages under their parent", "repeats of an exact count"):
        some = [one for one in check.families if one.family.startswith(start)]
        assert DEPARTS in {one.verdict for one in some}
        for one in some:
            said = "neither independent rounding nor keys with one constant fit"
            said = "An audit does not use these sums" if "not used" in one.family else said
            assert one.verdict == FITS or said in one.note or "ages by sex" not in one.family
        assert all(one.tail_ratio in (0, None) for one in some)
    assert check_release(release(published("nearest:5"), mechanism("nearest:5"))).verdict == FITS


@pytest.mark.parametrize("parts", [("10", "11"), ("10", "11", "12", "14")])
def test_an_added_sum_that_does_not_hold_is_flagged(parts):
    check = check_release(release(published(), added=[("9", *parts)]))
    added = family(check, "added sums")
    assert added.verdict == CONTRADICTS
    assert added.impossible > 100
    assert "so 9 " in added.clash or "But 9 " in added.clash
    assert [members.family for members in check.families if members.verdict != FITS] == [added.family]


def test_a_sum_of_the_plan_is_tested_too():
    added = said(release(published()), '[[sums]]\ntotal = "9"\nparts = ["10", "11"]\nuse = true\n')
    assert family(check_release(added), "added sums").verdict == CONTRADICTS


def test_one_impossible_area_is_named_with_its_smallest_clash():
    counts = published()
    counts[17, [4, 5, 6]] = 2000, 500, 500  # total, men and women of all ages
    check = check_release(release(counts))
    by_sex = family(check, "ages by sex")
    assert (by_sex.verdict, by_sex.otherwise, by_sex.impossible) == (FITS, FITS, 1)
    assert by_sex.clash.startswith(str(ages()[3]["region"][17]))
    assert "8/men, 8/women ≤ 504" in by_sex.clash
    assert check.doubts == {}  # a slip of the pen is no reason to doubt the others


# --- what is expected ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("parts", "base", "exact"), [(2, 5, False), (3, 5, True), (2, 3, False), (6, 3, False)])
def test_large_counts_have_the_residuals_of_the_closed_form(parts, base, exact):
    how = Rounding(base)
    shares = even_shares(Exact() if exact else how, (how,) * parts)
    model = expectation(parts, exact_total=exact, base=base)
    for r, share in enumerate(shares, -(len(shares) // 2)):
        assert share == pytest.approx(float(model.share(r)), abs=1e-12)


@pytest.mark.parametrize("how", [Rounding(5), Rounding(3), Sample(5), mechanism("nearest:5")])
def test_the_residuals_of_small_counts_follow_from_their_distribution(how):
    """Parts that are often 0, under totals chosen by their published size: expected against simulated."""
    rng = np.random.default_rng(9)
    true = rng.poisson(rng.gamma(2.0, (20.0, 4.0, 1.0), (60_000, 3)))
    total, shown = how.publish(true.sum(1), rng), how.publish(true, rng)
    least = 40
    chosen = total >= least
    tallies = np.zeros((3, BELOW + CAP + 1), dtype=np.int32)
    for part in range(3):
        tallies[part] = np.bincount(shown[chosen, part] + BELOW, minlength=BELOW + CAP + 1)
    shares = Laws([how] * 3, tallies).residuals(how, range(3))
    middle = len(shares) // 2
    folded = np.append(shares[middle], shares[middle + 1 :] + shares[:middle][::-1])
    seen = np.bincount(np.abs(total - shown.sum(1))[chosen], minlength=len(folded))[: len(folded)] / chosen.sum()
    assert np.abs(seen - folded).sum() / 2 < 0.015


def test_few_sums_are_not_judged_and_not_called_fitting():
    check = check_release(release(published()[:9]))
    assert check.verdict == UNTESTED
    assert [members.family for members in check.families] == ["published counts (rounding:5): all tables"]
    assert all(members.verdict == UNTESTED for members in check.untested)
    assert "too few sums" in fit_in_words(check.to_json())


def test_the_test_has_the_size_that_it_states():
    rng = np.random.default_rng(10)
    shares = np.array([0.56032, 0.42624, 0.01344])
    p_values = []
    for _ in range(2000):
        seen = rng.multinomial(800, shares)
        p_values.append(FamilyHistogram(seen, 800 * shares, int(seen[2]), 800 * shares[2], 1.0).p_value)
    tenths = np.histogram(p_values, np.linspace(0, 1, 11))[0]
    assert chisquare(tenths).pvalue > 1e-4
    alike = FamilyHistogram(np.array([500, 300]), np.array([450.0, 350.0]), 300, 350.0, 4.0)
    assert alike.p_value > FamilyHistogram(alike.observed, alike.expected, 300, 350.0, 1.0).p_value


def test_a_departure_needs_both_chance_and_size():
    large = np.array([561_000, 425_500, 13_500])
    slight = FamilyHistogram(large, 1e6 * LARGE, 13_500, 13_440.0, 1.0)
    assert slight.distance < 0.01
    assert not slight.departs
    few = FamilyHistogram(np.array([30, 60, 0]), 90 * LARGE, 0, 1.2, 1.0)
    assert few.sums < LEAST_SUMS
    assert not few.departs
    tail = FamilyHistogram(np.array([5580, 4242, 178]), 1e4 * LARGE, 178, 134.4, 1.0)
    assert tail.tail_ratio > 1.3
    assert tail.departs
    assert tail.distance < 0.02


# --- areas within areas, the mechanism, JSON -------------------------------------------------------------


def nested(shift=0):
    true, _, _, _ = ages()
    rng = np.random.default_rng(11)
    large = true[true[:, 0] > 400][:800] * 6
    parents = large.reshape(-1, 4, large.shape[1]).sum(1)
    whole = np.concatenate([large, parents])
    counts = np.column_stack([whole[:, 0], Rounding(5).publish(whole[:, 7:], rng)])
    counts[-1, 0] += shift
    codes = [f"d{at}" for at in range(len(large))] + [f"p{at}" for at in range(len(parents))]
    parent = [f"p{at // 4}" for at in range(len(large))] + [None] * len(parents)
    columns = [Column("pop", ("pop", "total"), "Population", "", mechanism=Exact())]
    columns += [
        Column(f"c{at}", (f"c{at}", "total"), f"c{at}", "t", mechanism=Rounding(5)) for at in range(1, counts.shape[1])
    ]
    return release_of(counts, columns, frame=pl.DataFrame({"region": codes, "parent": parent}))


def test_areas_under_their_parent():
    check = check_release(nested())
    assert family(check, "areas under their parent area: exact counts").verdict == FITS
    rounded = family(check, "areas under their parent area (rounding:5)")
    assert rounded.verdict == FITS
    assert rounded.sums > 1000
    sick = family(check_release(nested(3)), "areas under their parent area: exact counts")
    assert (sick.verdict, sick.impossible) == (CONTRADICTS, 1)
    assert "Population differs from the sum of its areas by +3" in sick.clash


def test_round_up_rates_where_the_exact_count_is_published_too():
    (rates,) = check_release(release(published())).estimates.rates
    assert (rates["exact"], rates["rounded"]) == ("1", "8")
    assert rates["by_remainder"]["0"]["up"] == 0
    for rest in range(1, 5):
        assert rates["by_remainder"][str(rest)]["up"] == pytest.approx(rest / 5, abs=0.12)
    assert rates["p_value"] > 1e-3


def test_two_roundings_of_one_count_that_never_err_together():
    rng = np.random.default_rng(12)
    true = rng.integers(60, 400, 4000)
    drawn = rng.random(len(true))

    def rounded(number):
        return true - true % 5 + 5 * (number < true % 5 / 5)

    columns = [Column(key, (key, "total"), key, key) for key in "eab"]
    for shift, verdict in ((0.24, DEPARTS), (None, FITS)):
        second = rng.random(len(true)) if shift is None else (drawn + shift) % 1
        counts = np.column_stack([true, rounded(drawn), rounded(second)])
        check = check_release(release_of(counts, columns))
        assert family(check, "repeated totals").verdict == verdict
        (pair,) = check.estimates.together
        if shift is not None:
            assert pair["by_remainder"]["1"]["both_up"] == pair["by_remainder"]["4"]["both_down"] == 0
            assert pair["p_value"] < 1e-20
        else:
            assert pair["p_value"] > 1e-3


def test_the_json_is_as_promised():
    report = check_release(release(published())).to_json()
    assert json.loads(json.dumps(report)) == report
    assert report["verdict"] == FITS
    for members in report["families"]:
        assert {"family", "sums", "observed", "expected", "p_value", "tail_ratio", "verdict", "note"} <= set(members)
        assert members["verdict"] in (FITS, DEPARTS, CONTRADICTS)
        assert all(key.isdigit() for key in (*members["observed"], *members["expected"]))


def test_it_says_whether_the_mechanism_was_declared_or_inferred():
    plan = '[[mechanisms]]\nmechanism = "rounding:5"\ncolumns = ["8"]'
    declared, inferred = release(published(), Rounding(5)), release(published())
    known = replace(declared, columns=tuple(replace(column, basis="format") for column in declared.columns))
    for given, rules, basis, word in (
        (known, None, {"format"}, "declared"),
        (inferred, None, {"inferred"}, "inferred"),
        (declared, None, {"description"}, "declared"),
        (known, plan, {"format", "description"}, "declared"),
        (inferred, plan, {"inferred", "description"}, "inferred"),
    ):
        report = check_release(given if rules is None else said(given, rules)).to_json()
        assert set(report["basis"]) == basis
        sums = [family for family in report["families"] if "mechanism." in family["note"]]
        assert sums
        assert all(f"under the {word} mechanism." in family["note"] for family in sums if family["basis"] == report["basis"])
        for table in report["mechanism"]["tables"]:
            assert table["declared"] == (table["basis"] != "inferred")


# --- from a file to the terminal, a picture, and the audit -----------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return unround.simulate(tmp_path_factory.mktemp("check"), areas=300, seed=1)


def test_the_command_prints_draws_and_writes_json(run, folder, tmp_path):
    said = run("check", str(folder.files[0]), "--page", str(tmp_path / "check.html"))
    assert said.code == 0, said.err
    assert "The data fit the declared mechanism: 4 of 4 families" in " ".join(said.out.split())
    assert "ages by sex" in said.out
    page = (tmp_path / "check.html").read_text(encoding="utf-8")
    assert "Observed and expected residuals" in page
    assert page.count("<svg") >= 4
    report = json.loads(run("check", str(folder.files[0]), "--json").out)
    assert report["fit"]["verdict"] == FITS
    wrong = run("check", str(folder.files[0]), "--page", "check.gif")
    assert wrong.code == 2
    assert "written as .html" in wrong.err


def test_nothing_is_drawn_where_nothing_was_tested(tmp_path):
    check_release(release_of(np.zeros((3, 1)), [Column("a", ("a", "total"), "a")])).save(tmp_path / "page.html")
    assert "<svg" not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_an_audit_checks_first_and_marks_what_is_doubtful(tmp_path):
    from unround.job import audit
    from unround.options import AuditOptions

    true, cells, table, _ = ages()
    counts, rng = published(), np.random.default_rng(6)
    for at in range(table.index[8], len(table.rows)):
        drawn = rng.random(len(true))
        for s in (1, 2):
            x = true[:, cells.index((at, s))]
            counts[:, cells.index((at, s))] = x - x % 5 + 5 * (drawn < x % 5 / 5)
    said = {
        "independent": ("rounding departs from independence", ["conditional", "likely"]),
        "auto": ("rounding by keys, which the probability accounts for", ["likely"]),
    }
    for rounding, (doubt, kinds) in said.items():
        audited = audit(release(counts), tmp_path / rounding, AuditOptions(rounding=rounding, prior="flat"))
        assert audited.summary["check"]["verdict"] == DEPARTS
        claims = pl.read_parquet(tmp_path / rounding / "findings.parquet")
        marked = claims["assumptions"].str.contains(doubt, literal=True)
        assert (marked == claims["kind"].is_in(kinds)).all()
        assert not (marked & claims["assumptions"].str.contains("independent rounding")).any() or rounding == "independent"
        assert all("independently" not in sentence for sentence in audited.summary["mechanisms"].values())
    well = audit(release(published()), tmp_path / "well", AuditOptions(prior="flat"))
    assert well.summary["check"]["verdict"] == FITS
    assert any("independently" in sentence for sentence in well.summary["mechanisms"].values())
    assert not pl.read_parquet(tmp_path / "well" / "findings.parquet")["assumptions"].str.contains("the check").any()


# --- real releases ---------------------------------------------------------------------------------------


def test_canada_rounds_total_men_and_women_not_independently(census_data):
    check = check_release(read(census_data / "canada-2021-da-censusmapper.csv.gz"))
    by_sex = family(check, "ages by sex (rounding:5)")
    assert by_sex.otherwise == DEPARTS
    assert 1.3 < by_sex.tail_ratio < 1.6
    assert family(check, "parts under an exact total (rounding:5): Age - 100% data").otherwise == FITS
    (pair,) = check.estimates.together
    assert pair["by_remainder"]["1"]["both_up"] == 0


@pytest.mark.parametrize("name", ["canada-2021-first-names.csv.gz", "nz-2018-individual-ta.csv.gz"])
def test_real_releases_get_a_verdict(census_data, name):
    check = check_release(read(census_data / name))
    assert check.families
    assert check.verdict in (FITS, DEPARTS, CONTRADICTS)


@pytest.mark.parametrize("world", ["neighbourhoods", "households", "mostly-empty"])
def test_healthy_sample_data_are_not_flagged(world, tmp_path):
    """Rounding hides how counts below 10 are distributed; what is expected must allow for it."""
    from research.commands import world as write_world

    import unround

    write_world(world, tmp_path / world, areas=1500, seed=3, mechanism="sample:5", rounded_total=True)
    (file,) = [path for path in (tmp_path / world).glob("*.parquet") if "truth" not in path.name]
    assert unround.check(file).verdict == FITS


def test_partly_controlled_rounding_is_named():
    counts, (_, cells, table, _) = published(), ages()
    rng = np.random.default_rng(8)
    for at, row in enumerate(table.rows):
        if row.is_count and row.has_sex:
            total, men, women = (cells.index((at, s)) for s in (0, 1, 2))
            off = counts[:, total] - counts[:, men] - counts[:, women]
            mended = (np.abs(off) == 5) & (rng.random(len(off)) < 0.6)  # most sums are made to add up, by the total
            counts[:, total] -= np.where(mended, off, 0)
    checked = check_release(release(counts))
    by_sex = family(checked, "ages by sex")
    assert by_sex.rounding.model == "partly controlled"
    assert checked.refuted >= by_sex.columns  # and nothing is claimed to be likely there
    assert "Partly controlled rounding: " in by_sex.note
    assert "would if counts were rounded on their own. Proofs are not affected" in by_sex.note


ADD_UP = '[[sums]]\ntotal = "all"\nparts = [' + ", ".join(f'"g{k}"' for k in range(10)) + "]\nuse = true\n"
"""That groups of incomes are all households: nobody could tell it from a part that is missing, in so few areas."""


def incomes(how, seed=3, areas=2000):
    """Households, exactly, and in ten groups of which most are small; rounded by a mechanism."""
    rng = np.random.default_rng(seed)
    shares = np.array([1, 1, 1, 2, 2, 3, 3, 5, 8, 14]) / 40
    true = rng.poisson(rng.gamma(6, 40, areas)[:, None] * shares * rng.gamma(3, 1 / 3, (areas, 10)))
    counts = np.column_stack([true.sum(1), mechanism(how).publish(true, rng)])
    columns = [Column("all", ("all", "total"), "Households", "Income", mechanism=Exact())]
    columns += [Column(f"g{k}", (f"g{k}", "total"), f"group {k}", "Income", 1, Rounding(5)) for k in range(10)]
    return release_of(counts, columns, [Proposal(0, tuple(range(1, 11)), "indentation")]), true


@pytest.mark.parametrize(("how", "limit"), [("rounding:5", None), ("cutoff:4,rounding:5", 4), ("cutoff:5,rounding:5", 5)])
def test_small_counts_that_become_zero_are_found_by_what_parts_miss_of_their_total(how, limit):
    checked = check_release(said(incomes(how)[0], ADD_UP))
    found = checked.numbers.tables["Income"]
    assert found.cutoff == limit
    assert limit is None or found.cutoff_error < 0.5
    if limit == 4:
        assert "counts under 4 became 0" in family(checked, "added sums").note
        assert checked.refuted >= family(checked, "added sums").columns  # and nothing is claimed to be likely there


def test_probabilities_of_a_table_with_a_limit_account_for_it(tmp_path, monkeypatch):
    """Estimates of counts published as 0 and 5 are right on average; as if there were no limit, they are too low."""
    made, true = incomes("cutoff:4,rounding:5")
    shown = np.concatenate([block.counts for block in made.blocks()])[:, 1:]
    error = {}
    for heeded in (True, False):
        if not heeded:
            monkeypatch.setattr("unround.job.run.with_cutoffs", lambda structure, _: structure)
        folder = tmp_path / str(heeded)
        summary = audit(said(made, ADD_UP), folder, AuditOptions(estimates="means")).summary
        assert ("cutoff:4,rounding:5,unless=1/100" in summary["mechanisms"]) == heeded
        means = pl.read_parquet(folder / "estimates.parquet").filter(pl.col("characteristic_id") != "all")
        wide = means.select("region", "characteristic_id", "mean").pivot(
            on="characteristic_id", index="region", values="mean"
        )
        ordered = wide.sort(pl.col("region").str.slice(1).cast(pl.Int64)).select(f"g{k}" for k in range(10)).to_numpy()
        error[heeded] = [float((ordered - true)[shown == value].mean()) for value in (0, 5)]
    assert all(abs(off) < 0.15 for off in error[True])
    assert error[False][1] < -0.35
