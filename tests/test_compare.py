"""Ways of publishing side by side: errors against closed forms, inferences against the audit, and what the page shows."""

from __future__ import annotations

import json
import math
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.conftest import Run
from unround import simulate
from unround.audits import Auditor
from unround.audits.claims import ClaimKind
from unround.bounds.tighten import tighten
from unround.comparison import WHAT_IFS, Material, compare, from_release, practice, simulated, what_if
from unround.comparison.attack import Attacker, Narrower, in_steps
from unround.comparison.material import levels_of
from unround.comparison.measure import added_up, cells_of_a_person, cost, distances
from unround.comparison.run import as_counts, fitted_prior
from unround.engines import infer
from unround.engines.forest import posteriors
from unround.errors import InputError, InternalError
from unround.evidence.block import WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms import HIDDEN, Exact, Laplace, Nearest, Rounding, mechanism
from unround.prior import Prior
from unround.release import Column
from unround.show.compare import sentences
from unround.tables import read

ROUNDED, NOISY = "rounding:5", "laplace:1.45"
SEEDS = 2


@cache
def census() -> Material:
    return simulated(160, 11)


@cache
def told(*names: str, seed: int = 1) -> dict[str, Any]:
    material = census()
    return compare(material, [practice(name, material) for name in names], seed=seed, seeds=SEEDS).to_json()


def row(name: str, seed: int = 1) -> dict[str, Any]:
    """Return what a comparison says of one mechanism; what else is compared makes no difference, which a test shows."""
    return dict(told(name, seed=seed)["mechanisms"][0])


def published(spec: str, material: Material, seed: int = 5) -> np.ndarray:
    return practice(spec, material).publish(material.true.astype(np.int64), np.random.default_rng(seed))


# -- what is promised --------------------------------------------------------------------------------------------------


def test_closed_forms() -> None:
    noise, rounding, nearest = (distances(how) for how in (Laplace(1.45), Rounding(5), Nearest(5)))
    assert noise is not None
    assert rounding is not None
    assert nearest is not None
    assert rounding.mean() == pytest.approx(1.6)
    assert noise.mean() == pytest.approx(1 / math.sinh(1 / 1.45), abs=1e-10)
    assert 1 - noise.mean() / rounding.mean() == pytest.approx(0.1618, abs=1e-4)
    assert noise.variance() > rounding.variance() == pytest.approx(4.0)
    assert nearest.mean() == pytest.approx(1.2)
    assert distances(mechanism("sample:5")) is None


def test_errors_are_what_mechanisms_promise() -> None:
    for name in (NOISY, "gaussian:2"):
        row_ = row(name)
        for what in ("mean_error", "rmse", "within_4"):
            assert row_[what] == pytest.approx(row_["expected"][what], rel=0.02)
    # Where 0 stays 0, all counts together are nearer than a large one.
    assert row(ROUNDED)["mean_error"] < row(ROUNDED)["expected"]["mean_error"] < row(ROUNDED)["mean_error_over_10"]


def test_the_papers_point() -> None:
    rounded, noisy = row(ROUNDED), row(NOISY)
    assert noisy["proved"] == 0
    assert noisy["mean_error_over_10"] / rounded["mean_error_over_10"] == pytest.approx(1 - 0.16, abs=0.03)
    assert noisy["rmse"] > rounded["rmse"]
    # Noise does not defeat inference: sums help, and more is thought of the truth than under rounding of the same variance.
    assert noisy["truth_probability"] > noisy["truth_probability_alone"] + 0.03
    assert noisy["truth_probability"] > rounded["truth_probability"]
    assert noisy["guess_error"] < noisy["mean_error"]


def test_clamping_hides_errors_and_adds_bias() -> None:
    noisy = row(NOISY)
    assert noisy["negative"] > 0
    assert noisy["clamped_mean_error"] < noisy["mean_error"]
    assert abs(noisy["bias"]) < 0.03 < noisy["clamped_bias"]
    assert noisy["clamped_bias_of_zeros"] > 0.5
    assert row(ROUNDED)["negative"] == 0


def test_controlled_rounding_adds_up_and_proves_nothing() -> None:
    controlled, rounded = row("controlled:5"), row(ROUNDED)
    assert controlled["proved"] == 0
    # Of 42 sums an area only the one with the exact population cannot be kept up.
    assert controlled["sums_broken"] < 1 / 42
    assert controlled["sums_broken"] < 0.1 * rounded["sums_broken"]
    assert controlled["truth_probability"] < rounded["truth_probability"]
    # Its claims are right as often as they say, though counts were not rounded independently.
    assert controlled["guessed"] == pytest.approx(0.26, abs=0.02)


def test_seeds_agree_within_the_stated_error() -> None:
    for name in (ROUNDED, NOISY, "controlled:5"):
        one, other = row(name), row(name, seed=2)
        for what in ("mean_error", "rmse", "truth_probability", "guessed", "likely", "sums_broken"):
            spread = np.hypot(one["standard_error"][what], other["standard_error"][what])
            assert abs(one[what] - other[what]) <= 5 * spread, (name, what)
            # What is counted over a few hundred claims differs more from release to release than what all cells go into.
            assert one["standard_error"][what] < (0.5 if what == "likely" else 0.02) * one[what]


def test_the_same_seed_gives_the_same_numbers_whatever_else_is_compared() -> None:
    both = told("controlled:5", ROUNDED)["mechanisms"]
    assert both == [
        one | {"efficient": beside["efficient"]}
        for one, beside in zip(map(row, ("controlled:5", ROUNDED)), both, strict=True)
    ]
    assert [one["efficient"] for one in both] == [True, False]


def test_nothing_proved_is_wrong_and_claims_are_right_as_often_as_they_say() -> None:
    for one in map(row, (ROUNDED, "controlled:5", NOISY, "nearest:5")):
        assert one["proved_wrong"] == 0
        assert one["likely_right"] / one["likely"] == pytest.approx(one["likely_stated"] / one["likely"], abs=0.1)
    assert row("nearest:5")["proved"] > 50


# -- what is inferred --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [ROUNDED, "nearest:5"])
def test_claims_are_those_of_an_audit(spec: str) -> None:
    material = census()
    counts = as_counts(published(spec, material))
    model = material.model(practice(spec, material).mechanisms)
    prior = fitted_prior(material, practice(spec, material), published(spec, material))
    audited = Auditor(model, prior).infer(counts, np.zeros(len(counts), dtype=bool)).claims
    claims = Attacker(model, prior).infer(counts, material.true).claims
    judged = material.judged()[1]
    assert (claims.kinds[:, judged] == ClaimKind.PROVED).any() == (spec == "nearest:5")
    assert (claims.kinds[:, judged] == ClaimKind.LIKELY).any()
    assert (claims.kinds[:, judged] == audited.kinds[:, judged]).all()
    claimed = audited.kinds != 0
    assert (claims.values == audited.values)[claimed].all()


def test_the_probability_of_the_truth_is_that_of_the_engine_for_single_systems() -> None:
    material = census()
    some = slice(0, 3)
    counts = as_counts(published(ROUNDED, material))[some]
    model = material.model(material.mechanisms(Rounding(5)))
    windows, _ = WindowTable(model.mechanisms).of(counts)
    posterior = posteriors(EvidenceBlock(model.compiled, windows, tighten(model.compiled, windows)), material.true[some])
    assert posterior.asked is not None
    for area in range(3):
        system = model.system(counts[area], range(len(model.equations)))
        answer = infer(system, engine="tree", top=0).answer
        assert answer is not None
        assert answer.marginals is not None
        for cell, (low, chances) in enumerate(answer.marginals):
            true = int(material.true[area, cell])
            assert posterior.asked[area, cell] == pytest.approx(chances[true - low], abs=1e-9)


def test_probabilities_are_only_looked_up_where_somebody_asks() -> None:
    material = census()
    counts = as_counts(published(ROUNDED, material))[:5]
    windows, _ = WindowTable(material.mechanisms(Rounding(5))).of(counts)
    model = material.model(material.mechanisms(Rounding(5)))
    assert posteriors(EvidenceBlock(model.compiled, windows, tighten(model.compiled, windows))).asked is None


def test_narrowed_ranges_leave_posteriors_as_they_are() -> None:
    material = census()
    some = slice(0, 60)
    counts, true = as_counts(published(ROUNDED, material))[some], material.true[some]
    model = material.model(material.mechanisms(Rounding(5)))
    windows, _ = WindowTable(model.mechanisms).of(counts)
    exact = posteriors(EvidenceBlock(model.compiled, windows, tighten(model.compiled, windows)), true)
    narrow = Narrower(model).posteriors(counts, Prior.flat(), true)
    assert exact.asked is not None
    assert narrow.asked is not None
    assert np.abs(exact.asked - narrow.asked).max() < 0.01
    assert np.abs(exact.asked - narrow.asked).mean() < 1e-4
    assert not narrow.cut.any()


def test_ever_wider_ranges_change_ever_less() -> None:
    material = census()
    some = slice(0, 60)
    counts, true = as_counts(published(NOISY, material))[some], material.true[some]
    model = material.model(material.mechanisms(Laplace(1.45)))
    truths = [Narrower(model, cut).posteriors(counts, Prior.flat(), true).asked for cut in (1e-3, 1e-4, 1e-5, 1e-6)]
    changes = [float(np.abs(one - other).mean()) for one, other in pairwise(t for t in truths if t is not None)]
    assert changes[0] > changes[1] > changes[2]
    assert changes[2] < 1e-5


def test_long_sums_are_added_up_in_steps() -> None:
    model = census().model(census().mechanisms(Rounding(5)))
    steps = in_steps(model)
    assert not steps.compiled.unused
    assert max(len(parts) for _, parts in steps.compiled.equations) == 3
    for parts, total, rest in steps.partials:
        assert (total, (*parts, *rest)) in model.equations
    many = sum(len(parts) - 2 for _, parts in model.equations if len(parts) > 3)
    assert len(steps.partials) == many


def test_wide_noise_is_cut_more_coarsely_and_says_so() -> None:
    material = simulated(20, 3)
    wide, narrow = (practice(spec, material) for spec in ("laplace:4", NOISY))
    rows = compare(material, [wide, narrow], seed=1, seeds=1).to_json()["mechanisms"]
    assert rows[0]["left_out_of_account"] > rows[1]["left_out_of_account"] == 1e-5
    assert rows[0]["standard_error"]["mean_error"] is None


def test_contradictions_are_not_read_as_safety() -> None:
    material = census()
    counts = as_counts(published(ROUNDED, material))
    counts[0, 5] = 7
    attacker = Attacker(material.model(material.mechanisms(Rounding(5))), Prior.flat())
    with pytest.raises(InternalError, match="contradict the mechanism"):
        attacker.infer(counts, material.true)


# -- changes to today's practice ---------------------------------------------------------------------------------------


def test_what_ifs() -> None:
    material = census()
    changes = {change: what_if(change, material) for change in WHAT_IFS}
    assert not any(isinstance(how, Exact) for how in changes["drop-invariants"].mechanisms)
    assert changes["base=10"].how == Rounding(10)
    assert changes["controlled"].name == "controlled:5"
    true = material.true.astype(np.int64)
    shared = changes["same-seed"].publish(true, np.random.default_rng(1))
    total, men, women = material.pairs[1]
    same_rest = (true[:, men] % 5 == true[:, women] % 5) & (true[:, men] % 5 > 0)
    assert same_rest.any()
    assert ((shared - true)[same_rest, men] == (shared - true)[same_rest, women]).all()
    hidden = changes["no-totals"].publish(true, np.random.default_rng(1))
    assert (hidden[:, total] == HIDDEN).all()
    assert (added_up(hidden, material)[:, total] == hidden[:, men] + hidden[:, women]).all()


def test_dropping_invariants_saves_proofs_and_sharing_draws_makes_more() -> None:
    material = simulated(600, 11)
    practices = [practice(ROUNDED, material), *(what_if(change, material) for change in ("drop-invariants", "same-seed"))]
    today, dropped, shared = compare(material, practices, seed=1, seeds=2).to_json()["mechanisms"]
    assert dropped["proved"] < today["proved"] < shared["proved"]
    # Whoever does not know of the sharing overrates what is inferred.
    held = [one["likely_right"] / one["likely_stated"] for one in (today, shared)]
    assert held[1] < 0.985
    assert held[1] < held[0] - 0.02


@pytest.mark.parametrize("change", ["nothing", "base=", "base=x", "base=0"])
def test_unknown_changes_are_rejected(change: str) -> None:
    with pytest.raises(InputError, match=r"base=10|no change 'nothing'"):
        what_if(change, census())


# -- privacy -----------------------------------------------------------------------------------------------------------


def test_a_person_is_in_every_level_of_ages_and_areas() -> None:
    material = census()
    hows = material.mechanisms(Laplace(1.45))
    # The total, an age group, 85 and over, and 85 to 89: each for both sexes, and for one.
    assert cells_of_a_person(material, hows) == 8
    assert material.levels == 4
    price = cost(material, Laplace(1.45), hows)
    assert price.epsilon == pytest.approx(32 / 1.45)
    assert "32 counts" in price.note
    gauss = cost(material, mechanism("gaussian:2"), hows)
    assert gauss.rho == pytest.approx(32 / 8)
    assert cost(material, Rounding(5), hows).epsilon is None
    assert cells_of_a_person(material, what_if("drop-invariants", material).mechanisms) == 9


def test_areas_inside_areas() -> None:
    def levels(codes: list[str], parents: list[str | None]) -> int:
        return levels_of(pl.DataFrame({"region": codes, "parent": parents}), ("region",))

    assert levels(["1", "2"], [None, None]) == 1
    assert levels(["11", "1"], ["1", "9"]) == 2
    assert levels(["1001", "1002", "10", "1"], ["10", "10", "1", None]) == 3
    assert levels(["a", "b"], ["b", "a"]) == 20


def test_two_small_sums_by_hand() -> None:
    columns = tuple(Column(key, (key,), key) for key in ("t", "a", "b", "c"))
    true = np.array([[6, 1, 2, 3]] * 3, dtype=np.int32)
    material = Material("by hand", true, columns, ((0, (1, 2, 3)),), frozenset())
    assert cells_of_a_person(material, material.mechanisms(Laplace(1))) == 2
    exact = compare(material, [practice("exact", material)], seeds=1).to_json()["mechanisms"][0]
    assert exact["mean_error"] == exact["sums_broken"] == 0
    assert exact["prior"] == "flat"


# -- files and the command line ----------------------------------------------------------------------------------------


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    made = simulate(tmp_path / "census", areas=70, seed=3, format="tidy")
    material = from_release(read(made.truth))
    drawn = simulated(70, 3)
    assert {column.key for column in material.columns} >= {column.key for column in drawn.columns}
    assert [material.columns[c].key for c in material.exact] == ["1"]
    assert len(material.true) >= len(drawn.true)
    assert len(from_release(read(made.truth), ("population", "8")).exact) == 2
    with pytest.raises(InputError, match="there is no such column"):
        from_release(read(made.truth), ("happiness",))
    with pytest.raises(InputError, match="leave some out"):
        from_release(read(made.truth), tuple(column.key for column in material.columns))


def test_the_command(run: Run, tmp_path: Path) -> None:
    ran = run("compare", "--areas", "40", "--seeds", "2", "--mechanism", f"{ROUNDED},{NOISY},clamped", "-o", str(tmp_path))
    assert ran.code == 0, ran.err
    assert "laplace:1.45,clamped compared with rounding:5" in ran.out
    kept = json.loads((tmp_path / "compare.json").read_text(encoding="utf-8"))
    keys = ("name", "mean_error", "rmse", "within_4", "proved", "proved_wrong", "likely", "likely_right")
    for one in kept["mechanisms"]:
        assert {*keys, "truth_probability", "small_disclosed", "epsilon"} <= set(one)
    page = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 4  # risk, what sums add, and two of distances
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert ".chart text {" in page
    assert "fill: var(--ink)" in page
    assert "prefers-color-scheme:dark" in page
    assert sorted(path.name for path in tmp_path.iterdir()) == ["compare.html", "compare.json"]
    again = run("compare", "--areas", "40", "--seeds", "2", "--mechanism", f"{ROUNDED},{NOISY},clamped", "--json")
    assert json.loads(again.out) == kept


def test_the_command_with_changes(run: Run) -> None:
    ran = run("compare", "--areas", "70", "--seeds", "1", "--what-if", "drop-invariants,base=7")
    assert ran.code == 0, ran.err
    assert "drop-invariants compared with rounding:5" in ran.out
    assert "base=7 compared with rounding:5" in ran.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--mechanism", ROUNDED, "--what-if", "all"), "--what-if and --mechanism exclude each other: give one of them."),
        (("--mechanism", ","), "--mechanism is empty"),
        (("--mechanism", f"{ROUNDED},{ROUNDED}"), "--mechanism names rounding:5 more than once"),
        (("--mechanism", "roundin:5"), "Did you mean rounding"),
        (("--what-if", "less"), "there is no change 'less'"),
        (("--seeds", "0"), "seeds must be 1 or more, not 0"),
        (("--threshold", "0"), "--threshold must be above 0 and at most 1, not 0"),
        (("--seed", "-1"), "--seed must be at least 0, not -1"),
        (("--rows", "some"), "no rows called"),
        (("--exact", "population"), "--exact goes with --truth: give both, or neither."),
        (("--truth", "nowhere.csv", "--areas", "3"), "--areas and --truth exclude each other: give one of them."),
        (("--truth", "nowhere.csv"), "nowhere.csv"),
        (("-o", __file__), "is a file"),
    ],
)
def test_rejections(run: Run, arguments: tuple[str, ...], said: str) -> None:
    areas = () if "--truth" in arguments or "--areas" in arguments else ("--areas", "60")
    ran = run("compare", *areas, *arguments)
    assert ran.code == 2
    assert said in ran.err


def test_wrong_proofs_would_be_told_first() -> None:
    broken = json.loads(json.dumps(told(ROUNDED)))
    broken["mechanisms"][0]["proved_wrong"] = 1.0
    assert "fault in unround" in sentences(broken)[0]
    assert "fault" not in " ".join(sentences(told(ROUNDED)))
