"""How often claims are right: scores by hand, the fitted prior and the flat one, worlds, and the command."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from bench.honest import Case, Claims, audited, judged, oracle, shares_of_oracle
from research.calibration import BINS, Calibration, Reliability, calibrate, calibrate_release, material_of_world

from tests.conftest import Run
from unround import simulate
from unround.audits.model import AuditOptions
from unround.comparison import simulated
from unround.errors import InputError
from unround.job import audit
from unround.score.truth import ANY_VALUE, ENOUGH, ENOUGH_SMALL, ClaimScore, Scored
from unround.tables import read


@cache
def short() -> Calibration:
    return calibrate(simulated(250, 11, "short"), seed=3)


def test_the_fitted_prior_is_calibrated() -> None:
    groups = short().groups
    assert groups["all cells"]["fitted"].error < 0.02
    assert groups["totals of sparse sums"]["fitted"].error < 0.03
    assert groups["totals of sparse sums"]["fitted"].cells > 1000
    for sex in ("both sexes", "men", "women"):
        assert abs(groups[sex]["fitted"].bias) < 0.01


def test_the_flat_prior_is_not_and_the_score_tells() -> None:
    for name in ("all cells", "totals of sparse sums", "published as 0"):
        flat, fitted = short().groups[name]["flat"], short().groups[name]["fitted"]
        assert flat.error > 2 * fitted.error
        assert flat.log_loss > fitted.log_loss
        assert short().trusted(name) == "fitted"
    assert short().groups["totals of sparse sums"]["flat"].error > 0.05


def test_groups_split_the_cells() -> None:
    groups = {name: group["fitted"].cells for name, group in short().groups.items()}
    assert groups["both sexes"] + groups["men"] + groups["women"] == groups["all cells"]
    assert sum(number for name, number in groups.items() if name.startswith("published as")) == groups["all cells"]
    by_parts = [number for name, number in groups.items() if "parts" in name]
    assert len(by_parts) == 3
    assert sum(by_parts) == groups["all cells"]


def test_reliability_by_hand() -> None:
    reliability = Reliability()
    reliability.add(np.array([0.9, 0.9, 0.5, 1.0]), np.array([True, False, True, True]), np.array([0.9, 0.1, 0.5, 1.0]))
    assert reliability.error == pytest.approx((abs(1.8 - 1) + abs(0.5 - 1) + 0) / 4)
    assert reliability.bias == pytest.approx((3 - 3.3) / 4)
    assert reliability.log_loss == pytest.approx(-np.log(0.9 * 0.1 * 0.5) / 4)
    assert reliability.chance == pytest.approx((np.sqrt(2 / np.pi * 0.18) + np.sqrt(2 / np.pi * 0.25)) / 4)
    assert [row["claims"] for row in reliability.to_json()["bins"]] == [1, 2, 1]
    assert reliability.bins.shape == (BINS, 4)


def test_what_calibrated_claims_show_by_chance() -> None:
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(200):
        stated = rng.uniform(0.2, 1.0, 400)
        reliability = Reliability()
        reliability.add(stated, rng.random(400) < stated, stated)
        errors.append(reliability.error)
    assert np.mean(errors) == pytest.approx(reliability.chance, rel=0.1)


# -- claims by the count claimed --------------------------------------------------------------------------------------


def by_hand() -> ClaimScore:
    """Six claims about three areas; the last two of one area are of the same band."""
    score = ClaimScore()
    score.add_claims(
        np.array([0, 0, 1, 12, 0, 0]),
        np.array([0.7, 0.9, 0.7, 0.995, 0.95, 0.97]),
        np.array([True, False, True, True, False, True]),
        np.array([4, 4, 5, 5, 9, 9]),
    )
    return score


def test_claims_by_value_and_band_by_hand() -> None:
    rows = {(row.value, row.band): row for row in by_hand().rows}
    whole = rows[ANY_VALUE, None]
    assert (whole.claims, whole.right) == (6, pytest.approx(4 / 6))
    assert whole.stated == pytest.approx((0.7 + 0.9 + 0.7 + 0.995 + 0.95 + 0.97) / 6)
    off = np.array([(1 - 0.7) + (0 - 0.9), (1 - 0.7) + (1 - 0.995), (0 - 0.95) + (1 - 0.97)])  # by area
    assert whole.standard_error == pytest.approx(np.sqrt((off**2).sum()) / 6)
    zeros = rows["0", (0.95, 0.99)]  # a band holds its lower edge
    assert (zeros.claims, zeros.stated, zeros.right) == (2, pytest.approx(0.96), 0.5)
    assert zeros.standard_error == pytest.approx(0.92 / 2)
    assert rows["0", (0.85, 0.95)].right == 0
    assert rows["1–2", (0.66, 0.75)].claims == 1
    assert rows["10+", (0.99, 1.0)].standard_error == pytest.approx(0.005)
    assert not any(value == "3–9" for value, _ in rows)
    assert rows[ANY_VALUE, (0.66, 0.75)].claims == 2


def test_blocks_add_up() -> None:
    rng = np.random.default_rng(1)
    areas = np.sort(rng.integers(0, 50, 900))
    values, stated, right = rng.integers(0, 14, 900), rng.uniform(0.66, 1, 900), rng.random(900) < 0.8
    whole, parts = ClaimScore(), ClaimScore()
    whole.add_claims(values, stated, right, areas)
    for some in (areas < 20, areas >= 20):
        claim_score = ClaimScore()
        claim_score.add_claims(values[some], stated[some], right[some], areas[some])
        parts.table += claim_score.table
    assert parts.to_json() == whole.to_json()
    report = whole.to_json()
    assert [group["value"] for group in report] == ["any", "0", "1–2", "3–9", "10+"]
    assert sum(group["claims"] for group in report[1:]) == report[0]["claims"] == 900
    for group in report:
        assert sum(band["claims"] for band in group["bands"]) == group["claims"]


def test_claims_below_the_usual_threshold_are_kept() -> None:
    score = ClaimScore()
    score.add_claims(np.array([3]), np.array([0.5]), np.array([True]), np.array([0]))
    assert [row.band for row in score.bands if row.value == "3–9"] == [(0.0, 0.66)]


@pytest.mark.parametrize(
    ("value", "claims", "over", "overstated"),
    [
        ("3–9", ENOUGH, 0.021, True),
        ("3–9", ENOUGH, 0.019, False),
        ("3–9", ENOUGH - 1, 0.5, False),
        ("0", ENOUGH, 0.021, True),
        ("0", ENOUGH - 1, 0.021, False),
        ("0", ENOUGH_SMALL, 0.031, True),
        ("1–2", ENOUGH_SMALL, 0.031, True),
        ("1–2", ENOUGH_SMALL - 1, 0.5, False),
        (ANY_VALUE, ENOUGH_SMALL, 0.5, False),
    ],
)
def test_what_is_overstated(value: str, claims: int, over: float, overstated: bool) -> None:
    row = Scored(value, (0.75, 0.85), claims, stated=0.8, right=0.8 - 2 * 0.015 - over, standard_error=0.015)
    assert row.overstated is overstated


def test_the_standard_error_holds_where_claims_of_an_area_go_together() -> None:
    rng = np.random.default_rng(2)
    off = []
    for _ in range(300):
        score, areas = ClaimScore(), np.repeat(np.arange(100), 4)
        right = np.repeat(rng.random(100) < 0.8, 4)  # all four claims of an area are right, or none is
        score.add_claims(np.zeros(400, dtype=np.int64), np.full(400, 0.8), right, areas)
        whole = score.whole
        assert whole is not None
        off.append(whole.right - whole.stated)
    assert whole.standard_error == pytest.approx(np.std(off), rel=0.25)


def test_nothing_claimed_nothing_scored() -> None:
    score = ClaimScore()
    assert (score.rows, score.whole, score.worst, score.to_json()) == ((), None, None, [])


def test_an_audit_and_a_calibration_say_the_same(tmp_path: Path) -> None:
    made = simulate(tmp_path / "census", areas=120, seed=5, format="tidy")
    release, truth = (read(path) for path in (made.files[1], made.truth))
    claims_by_value = calibrate_release(release, truth).to_json()["claims_by_value"]
    scored = audit(release, tmp_path / "audit", AuditOptions(link=False, rounding="independent"), truth=truth)
    assert claims_by_value[0]["claims"] > 50
    assert scored.summary["truth"]["claims_by_value"] == claims_by_value


# -- priors -----------------------------------------------------------------------------------------------------------


def test_few_claims_decide_nothing() -> None:
    calibration = Calibration("here")
    calibration.groups["all cells"] = {"flat": Reliability(cells=10, loss=9.0), "fitted": Reliability(cells=10, loss=1.0)}
    assert calibration.trusted("all cells") == "too few to say"
    calibration.groups["all cells"] = {
        "flat": Reliability(cells=1000, loss=1000.0),
        "fitted": Reliability(cells=1000, loss=1001.0),
    }
    assert calibration.trusted("all cells") == "either"
    calibration.groups["all cells"]["fitted"].loss = 1100.0
    assert calibration.trusted("all cells") == "flat"


def test_noise_is_calibrated_too() -> None:
    scored = calibrate(simulated(50, 5), "laplace:1.45", seed=2).groups["all cells"]
    assert scored["fitted"].error < 0.025


def test_a_release_and_its_truth(tmp_path: Path) -> None:
    made = simulate(tmp_path / "census", areas=90, seed=5)
    calibration = calibrate_release(read(made.files[0]), read(made.truth))
    assert calibration.mechanism == "exact, rounding:5"
    assert calibration.groups["all cells"]["fitted"].error < 0.03
    with pytest.raises(InputError, match=r"cannot be matched|no column of the truth"):
        calibrate_release(read(made.files[0]), read(Path(__file__).parents[1] / "examples" / "survey.toml"))


def test_the_command(run: Run, tmp_path: Path) -> None:
    chosen = ("--world", "census", "--world", "unlike-evenness", "--areas", "120")
    ran = run("calibrate", *chosen, "-o", str(tmp_path))
    assert ran.code == 0, ran.err
    assert "points off overall" in ran.out
    kept = json.loads((tmp_path / "calibrate.json").read_text(encoding="utf-8"))
    assert set(kept["groups"]["all cells"]) == {"flat", "fitted", "trust"}
    assert next(world["world"] for world in kept["worlds"]) == kept["world"]
    assert {world["world"] for world in kept["worlds"]} == {"census", "unlike-evenness"}
    assert f"The worst of 2 worlds is {kept['world']}. {kept['description']}" in " ".join(ran.out.split())
    page = (tmp_path / "calibrate.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1
    assert f"The worst of 2 worlds is {kept['world']}." in page
    for world in kept["worlds"]:
        assert world["claims_by_value"][0]["claims"] == sum(group["claims"] for group in world["claims_by_value"][1:])
        assert world["overstated"] == sum(
            band["overstated"] for group in world["claims_by_value"] for band in group["bands"]
        )
    assert json.loads(run("calibrate", *chosen, "--json").out) == kept


def test_one_world_is_not_called_the_worst(run: Run) -> None:
    ran = run("calibrate", "--world", "couples", "--areas", "80", "--mechanism", "rounding:3", "--rounded-total")
    assert ran.code == 0, ran.err
    assert "The worst" not in ran.out
    assert "couples. Marital status by sex" in ran.out
    assert "count claimed" in ran.out


def test_without_likely_claims_it_says_so(run: Run) -> None:
    ran = run("calibrate", "--world", "unlike-evenness", "--areas", "60", "--mechanism", "rounding:50")
    assert ran.code == 0, ran.err
    assert "too few likely claims" in " ".join(ran.out.split())


def test_the_worlds_are_listed(run: Run) -> None:
    ran = run("calibrate", "--list-worlds")
    assert ran.code == 0
    report = json.loads(run("calibrate", "--list-worlds", "--json").out)
    assert next(iter(report)) == "census"
    for name, sentence in report.items():
        assert f"{name}: {sentence}" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--release", "a.csv"), "--release goes with --truth"),
        (("--release", "a.csv", "--truth", "b.csv", "--areas", "9"), "--release and --areas exclude each other"),
        (("--release", "a.csv", "--truth", "b.csv", "--world", "couples"), "--release and --world exclude each other"),
        (("--world", "atlantis"), "there is no world 'atlantis'"),
        (("--world", "couples", "--world", "couples"), "--world names couples more than once"),
        (("--world", "couples", "--rows", "short"), "go with the world census"),
        (("--seed", "-1"), "--seed must be at least 0, not -1"),
        (("--mechanism", "roundin:5", "--areas", "60"), "Did you mean rounding"),
    ],
)
def test_rejections(run: Run, arguments: tuple[str, ...], said: str) -> None:
    ran = run("calibrate", *arguments)
    assert ran.code == 2
    assert said in ran.err


# -- how much is left unsaid ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("world", "areas", "at_66", "at_90"),
    [("dirichlet", 150, 0.6, 0.05), ("mostly-empty", 150, 0.6, 0.05)],
)
def test_most_of_what_an_oracle_claims_is_claimed(world: str, areas: int, at_66: float, at_90: float) -> None:
    case = Case(world, "rounding:5", material_of_world(world, areas))
    claims = audited(case)
    assert not any(over for *_, over in judged(claims, claims.made).values())
    assert not claims.withheld.any()
    mode, probability = oracle(case, claims)
    sure = (probability >= 0.66) & (claims.low < claims.high)
    assert probability[sure].mean() == pytest.approx((mode == claims.true)[sure].mean(), abs=0.05)
    shares = shares_of_oracle(case, claims)
    assert shares[0] >= at_66
    assert shares[1] >= at_90


def test_claims_that_state_too_much_are_called_overstated() -> None:
    shape = 400, 1
    zeros, stated = np.zeros(shape, dtype=np.int64), np.full(shape, 0.8)
    true = (np.arange(400) >= 280)[:, None].astype(np.int64)
    everywhere = np.ones(shape, dtype=np.bool_)
    claims = Claims(zeros.astype(np.int32), true, zeros, stated, stated, everywhere, ~everywhere, zeros, zeros + 4)
    assert judged(claims, claims.made) == {"0": (400, pytest.approx(0.8), 0.7, True)}
    assert judged(claims, claims.made & (true == 0)) == {"0": (280, pytest.approx(0.8), 1.0, False)}
    assert judged(claims, claims.withheld) == {}
