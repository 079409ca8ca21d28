"""The whole audit: on simulated releases with known truth, on real ones, and on whatever should be refused."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from unround import simulate
from unround.audits.bounds import BlockBounds
from unround.audits.certificates import proofs_in, read_proof
from unround.audits.claims import ClaimKind, decide
from unround.errors import InputError
from unround.evidence.block import BlockPosterior, CellBounds, Windows
from unround.explanation.cell import explain
from unround.job import AuditFolder, audit, work
from unround.options import AuditOptions
from unround.proofs import check_proof
from unround.show.words import growth
from unround.tables import read
from unround.tables.frames import from_frame

BULK = "98-401-X2021006_English_CSV_data.csv"
KEYS = ["region", "characteristic_id", "sex"]
FLAT = AuditOptions(prior="flat")
"""For what no prior has a part in: to fit one, and to check it, takes longer than all the rest."""
COLUMNS = [
    "region",
    "region_name",
    "characteristic_id",
    "characteristic",
    "sex",
    "published",
    "low",
    "high",
    "value",
    "probability_low",
    "probability",
    "probability_high",
    "due_to_sums",
    "kind",
    "route",
    "depth",
    "assumptions",
    "method",
]


@pytest.fixture
def census(simulated_census: Path) -> Path:
    """A simulated census of 600 areas, ages by sex, in the bulk layout."""
    return simulated_census


@pytest.fixture
def audited(audited_census: Path) -> AuditFolder:
    """Its audit, with estimates, scored against the truth."""
    return AuditFolder.open(audited_census)


def truth_of(census: Path) -> dict[tuple[str, str, str], int]:
    rows = pl.read_parquet(census / "truth.parquet").iter_rows()
    return {(region, str(number), sex): true for region, number, sex, true in rows}


def findings(folder: AuditFolder) -> pl.DataFrame:
    return pl.read_parquet(folder.path / "findings.parquet")


def proofs(folder: AuditFolder) -> list[dict[str, Any]]:
    return [json.loads(line) for line in proofs_in(folder.path / "proofs.jsonl.gz")]


# -- simulated truth --------------------------------------------------------------------------------------------------


def test_findings_have_the_promised_columns(audited: AuditFolder) -> None:
    assert findings(audited).columns == COLUMNS
    with (audited.path / "findings.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == COLUMNS
    assert len(rows) == findings(audited).height > 50


def test_no_proved_or_conditional_claim_is_wrong(audited: AuditFolder, census: Path) -> None:
    truth = truth_of(census)
    certain = findings(audited).filter(pl.col("kind") != "likely")
    assert certain.height > 3
    for row in certain.to_dicts():
        assert truth[row["region"], row["characteristic_id"], row["sex"]] == row["value"] == row["low"] == row["high"]
        assert row["probability_low"] == row["probability"] == row["probability_high"] == row["due_to_sums"] == 1
    assert audited.summary["truth"]["wrong"]["proved"] == audited.summary["truth"]["wrong"]["conditional"] == 0
    assert audited.summary["truth"]["outside_bounds"] == 0
    assert audited.summary["truth"]["assumption_failed"] is None


def test_every_certain_claim_has_a_certificate_that_checks(audited: AuditFolder) -> None:
    written = proofs(audited)
    certain = findings(audited).filter(pl.col("kind") != "likely")
    assert len(written) == certain.height
    assert sorted(certain["depth"].to_list()) == sorted(read_proof(line)[1].depth for line in written)
    for line in written:
        assert check_proof(*read_proof(line))
    line = dict(written[0], value=written[0]["value"] + 1)
    assert not check_proof(*read_proof(line))


def test_likely_means_at_least_the_threshold(audited: AuditFolder) -> None:
    """Every claim is, and every count that is: but for those that are given, certain, or likely without any sum."""
    least = audited.summary["threshold"]
    rows = findings(audited).filter(kind="likely")
    assert least <= rows["probability_low"].min() < least + 0.01
    assert (rows["probability_low"] <= rows["probability"]).all()
    assert (rows["probability"] <= rows["probability_high"]).all()
    assert rows["probability_high"].max() <= 1
    assert rows["due_to_sums"].is_between(0, 1).all()


def one_cell(low: int, high: int, *, given: bool = False) -> BlockBounds:
    """Bounds of a block that is one cell."""
    ends, none = np.array([[low], [high]], dtype=np.int32)[:, :, np.newaxis], np.zeros((1, 1), dtype=np.int32)
    windows = Windows(*ends, np.full((1, 1), -1, dtype=np.int64), np.zeros(0), np.ones(1, dtype=np.bool_))
    tight = CellBounds(*ends, none, none, np.ones(1, dtype=np.bool_))
    return BlockBounds(windows, none, np.array([[given]]), tight)


def likeliest(value: int, probability: float) -> BlockPosterior:
    posterior = BlockPosterior.empty(1, 1)
    posterior.mode[:], posterior.probability[:], posterior.mean[:], posterior.deviation[:], posterior.possible[:] = (
        value,
        *[probability] * 3,
        True,
    )
    return posterior


@pytest.mark.parametrize(
    ("documented", "assumed", "likely", "kind", "value"),
    [
        (one_cell(3, 9), one_cell(3, 9), (4, 0.66), ClaimKind.LIKELY, 4),  # the threshold itself is enough
        (one_cell(3, 9), one_cell(3, 9), (4, 0.6599), ClaimKind.OPEN, 4),
        (one_cell(3, 9), one_cell(5, 5), (4, 0.9), ClaimKind.CONDITIONAL, 5),
        (one_cell(5, 5), one_cell(5, 5), (4, 0.9), ClaimKind.PROVED, 5),
        (one_cell(5, 5), one_cell(5, 5), (4, 0.1), ClaimKind.PROVED, 5),
        (one_cell(5, 5, given=True), one_cell(5, 5, given=True), (5, 1.0), ClaimKind.OPEN, 5),
        (one_cell(3, 9), one_cell(5, 5, given=True), (5, 1.0), ClaimKind.OPEN, 5),  # given, if it was not adjusted
        (one_cell(5, 5), one_cell(5, 5, given=True), (5, 1.0), ClaimKind.PROVED, 5),  # but the sums leave one value anyway
    ],
)
def test_what_can_be_claimed(
    documented: BlockBounds, assumed: BlockBounds, likely: tuple[int, float], kind: ClaimKind, value: int
) -> None:
    count, lowest = likely
    best = likeliest(count, min(lowest + 0.05, 1.0))  # only the lowest probability counts
    given = documented, assumed, best, np.array([[lowest]]), 0.66
    claims = decide(*given)
    assert (claims.kinds.item(), claims.values.item()) == (kind, value)
    nothing = np.ones((1, 1), dtype=np.bool_)
    assert decide(*given, nothing=nothing).kinds.item() == ClaimKind.OPEN
    unlikely = decide(*given, nothing_likely=nothing).kinds.item()
    assert unlikely == (ClaimKind.OPEN if kind == ClaimKind.LIKELY else kind)
    with pytest.raises(ValueError, match="read-only"):
        claims.kinds[0, 0] = ClaimKind.PROVED


def test_populations_of_small_areas_make_claims_conditional(audited: AuditFolder, census: Path, tmp_path: Path) -> None:
    """An area's population may have been adjusted by up to 5: what needs it to be exact is not proved."""
    conditional = findings(audited).filter(kind="conditional")
    assert conditional.height > 0
    assert set(conditional["assumptions"]) == {"an exact population"}
    loose = audit(read(census / BULK), tmp_path / "loose", AuditOptions(population="within5", prior="flat"))
    kinds = findings(loose)["kind"].value_counts()
    assert "conditional" not in kinds["kind"]
    assert loose.summary["proved"] == audited.summary["proved"]
    assert "an exact population" not in "".join(findings(loose)["assumptions"])


def test_likely_claims_are_right_as_often_as_they_say(audited: AuditFolder) -> None:
    """Within three standard errors and three points, in every band that has claims enough."""
    bands = audited.summary["truth"]["calibration"]["all cells"]
    judged = 0
    for band in bands:
        if band["claims"] >= 100:
            error = (band["stated"] * (1 - band["stated"]) / band["claims"]) ** 0.5
            assert abs(band["right"] - band["stated"]) < 0.03 + 3 * error
            judged += 1
    assert judged >= 3


def test_totals_of_sparse_sums_are_calibrated(tmp_path: Path) -> None:
    """Over many mostly empty parts a flat prior claims too much of their total; the fitted one does not.

    Claims are made by the least of several probabilities, so that they may be right more often than they say.
    """
    simulate(tmp_path / "census", areas=150, seed=8, rows="short")
    release, truth = read(tmp_path / "census" / BULK), read(tmp_path / "census" / "truth.parquet")
    folder = audit(release, tmp_path / "out", truth=truth)
    for what in ("all cells", "totals of sparse sums"):
        bands = [band for band in folder.summary["truth"]["calibration"][what] if band["claims"] >= 100]
        assert len(bands) >= 3
        for band in bands:
            error = (band["stated"] * (1 - band["stated"]) / band["claims"]) ** 0.5
            assert -0.03 - 3 * error < band["right"] - band["stated"] < 0.1 + 3 * error
    assert folder.summary["truth"]["wrong"]["proved"] == 0
    assert abs(folder.summary["truth"]["mean_error"]) < 0.01


def test_estimates_are_unbiased(audited: AuditFolder, census: Path) -> None:
    truth = truth_of(census)
    frame = pl.read_parquet(audited.path / "estimates.parquet")
    assert frame.columns == [
        "region",
        "characteristic_id",
        "sex",
        "published",
        "low",
        "high",
        "mean",
        "sd",
        "mode",
        "probability",
    ]
    open_cells = frame.filter(pl.col("low") < pl.col("high"))
    keys = open_cells.select("region", "characteristic_id", "sex").iter_rows()
    true = np.array([truth[key] for key in keys])
    off = open_cells["mean"].to_numpy() - true
    assert abs(off.mean()) < 4 * off.std() / len(off) ** 0.5 + 0.01
    published = open_cells["published"].to_numpy() - true
    assert (off**2).mean() < 0.7 * (published**2).mean()  # closer to the truth than what was published
    sure = open_cells["sd"].to_numpy()
    assert (off**2).mean() == pytest.approx((sure**2).mean(), rel=0.1)  # error bars as large as the errors
    assert ((open_cells["low"].to_numpy() <= true) & (true <= open_cells["high"].to_numpy())).all()


def test_the_summary_adds_up(audited: AuditFolder) -> None:
    summary = audited.summary
    claims = findings(audited)
    for kind in ("proved", "conditional", "likely"):
        number = claims.filter(kind=kind).height + (summary["zeros_not_listed"] if kind == "likely" else 0)
        assert summary[kind] == number
        assert sum(block[kind] for block in summary["by_block"].values()) == number
        assert sum(route[kind] for route in summary["by_route"].values()) == number
        assert sum(size[kind] for size in summary["sensitive_claims"]["by_value"].values()) == number
    small = claims.filter(pl.col("value").is_between(1, 2)).height
    assert sum(summary["sensitive_claims"]["by_value"]["1-2"].values()) == small
    assert summary["areas"] == 600
    assert summary["contradictions"] == 0
    assert summary["prior"] == "fitted"
    published = pl.read_parquet(audited.path / "model" / "published.parquet")
    assert 0 < summary["zeros_not_listed"] == published["zeros_not_listed"].sum()
    assert summary["listed"] == {"claims": claims.height, "in_csv": claims.height}


def test_zeros_are_listed_on_request(census_audit: Path, mapped_audit: Path) -> None:
    every, most = AuditFolder.open(census_audit), AuditFolder.open(mapped_audit)  # of the same census
    plain = (pl.col("kind") == "likely") & (pl.col("value") == 0) & pl.col("published").eq_missing(0)
    assert findings(every).filter(plain).height == most.summary["zeros_not_listed"] > 0
    assert findings(every).filter(~plain).equals(findings(most))
    assert every.summary["likely"] == most.summary["likely"]
    assert every.summary["zeros_not_listed"] == 0


def test_text_has_the_first_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MOST_LINES", 7)
    monkeypatch.setattr(work, "LINES_AT_A_TIME", 5)
    assert work._write_csv(pl.LazyFrame({"claim": range(12)}), tmp_path / "findings.csv", bom=False) == 12
    assert pl.read_csv(tmp_path / "findings.csv")["claim"].to_list() == list(range(7))


def test_all_layouts_give_the_same_findings(audited: AuditFolder, tmp_path: Path) -> None:
    simulate(tmp_path / "tidy", areas=600, seed=5, format="tidy")
    tidy = audit(read(tmp_path / "tidy" / "release.parquet"), tmp_path / "out", FLAT)
    one, other = (findings(folder).filter(pl.col("kind") != "likely").sort(KEYS) for folder in (audited, tidy))
    assert one.select(*KEYS, "value").equals(other.select(*KEYS, "value"))


def test_a_wide_census_is_scored_with_its_own_truth(tmp_path: Path) -> None:
    simulate(tmp_path / "wide", areas=100, seed=2, format="censusmapper")
    truth = read(tmp_path / "wide" / "truth.parquet")
    folder = audit(read(tmp_path / "wide" / "censusmapper.csv"), tmp_path / "out", truth=truth)
    score = folder.summary["truth"]
    assert score["cells"] > 5000
    assert (score["wrong"]["proved"], score["outside_bounds"]) == (0, 0)


def test_a_flat_prior_is_the_papers(census: Path, tmp_path: Path) -> None:
    folder = audit(read(census / BULK), tmp_path / "flat", FLAT)
    assert folder.summary["prior"] == "flat"
    likely = findings(folder).filter(kind="likely")
    assert likely.height > 50
    assert likely["depth"].is_null().all()


# -- contradictions ---------------------------------------------------------------------------------------------------


def spoiled(census: Path, out: Path, change: Callable[[list[str]], None], region: str, characteristic: str) -> Path:
    """Copy a bulk file with one line changed."""
    lines = (census / BULK).read_text(encoding="latin-1").splitlines()
    for at, line in enumerate(lines):
        cells = next(csv.reader([line]))
        if cells[1] == region and cells[8] == characteristic:
            change(cells)
            lines[at] = ",".join(f'"{cell}"' if i not in (11, 13, 15) else cell for i, cell in enumerate(cells))
    path = out / BULK
    path.write_text("\n".join(lines) + "\n", encoding="latin-1")
    return path


def test_an_impossible_sum_is_reported_and_the_rest_audited(census: Path, audited: AuditFolder, tmp_path: Path) -> None:
    region = str(pl.read_parquet(census / "truth.parquet").filter(pl.col("true") > 200)["region"][0])

    def change(cells: list[str]) -> None:
        cells[13] = str(int(cells[13]) + 300)

    file = spoiled(census, tmp_path, change, region, "12")
    held = audit(read(file), tmp_path / "held", FLAT)
    assert held.summary["held_back"]["conditional"] > 0  # too many such claims are wrong where the data contradict
    assert findings(held).filter(kind="conditional").is_empty()
    folder = audit(read(file), tmp_path / "out", AuditOptions(doubtful=True, prior="flat"))
    assert folder.summary["held_back"]["conditional"] == 0
    clashes = pl.read_csv(folder.path / "contradictions.csv")
    assert clashes["region"].unique().to_list() == [region]
    assert "12/men" in clashes["cells"][0]
    assert folder.summary["contradictions"] == clashes.height > 0
    others = pl.col("region") != region
    keys = ["region", "characteristic_id", "sex", "value", "kind"]
    same = [findings(one).filter(others, pl.col("kind") != "likely").select(keys) for one in (audited, folder)]
    assert same[0].equals(same[1])
    assert findings(folder).filter(region=region, characteristic_id="12", sex="men").height == 0


def test_a_count_that_cannot_be_rounded_is_reported(census: Path, tmp_path: Path) -> None:
    region = str(pl.read_parquet(census / "truth.parquet")["region"][0])

    def change(cells: list[str]) -> None:
        cells[11] = "17"

    folder = audit(read(spoiled(census, tmp_path, change, region, "12")), tmp_path / "out", FLAT)
    clashes = pl.read_csv(folder.path / "contradictions.csv").filter(kind="cell")
    assert clashes["region"].to_list() == [region]
    assert "17, which cannot come from rounding:5" in clashes["clash"][0]


def test_proofs_by_sums_that_fail_elsewhere_are_conditional(tmp_path: Path) -> None:
    """What is extreme in one area is next to what is impossible in another: that sum may not hold in either."""
    rng = np.random.default_rng(4)
    parts = rng.integers(20, 90, (400, 3))
    rounded = parts // 5 * 5 + 5 * (rng.integers(0, 5, parts.shape) < parts % 5)
    rounded[:, 0] = parts.sum(axis=1)  # the first column is the exact total of all three …
    parts[0], rounded[0] = (40, 20, 20), (48, 20, 20)
    frame = pl.DataFrame({"area": [f"A{i}" for i in range(400)], "total": rounded[:, 0]})
    thirds = np.stack([parts[:, 0] // 5 * 5 + 5 * (rng.integers(0, 5, 400) < parts[:, 0] % 5), *rounded[:, 1:].T])
    thirds[:, 0] = 20  # … and area A0 shows 48 = 20 + 20 + 20: proved, as it stands
    frame = frame.with_columns(a=thirds[0], b=thirds[1], c=thirds[2])
    keys = {"area": "area", "sums": {"total": ["a", "b", "c"]}, "mechanism": "rounding:5", "exact": ["total"]}
    sound = audit(from_frame(frame, **keys), tmp_path / "sound")
    assert findings(sound).filter(area="A0")["kind"].to_list() == ["proved"] * 3
    broken = frame.with_columns(total=pl.when(pl.col("area") == "A1").then(5).otherwise("total"))
    doubtful = audit(from_frame(broken, **keys), tmp_path / "doubtful", AuditOptions(doubtful=True))
    claims = findings(doubtful).filter(area="A0")
    assert claims["kind"].to_list() == ["conditional"] * 3
    assert claims["assumptions"].to_list() == ["a sum that cannot hold in some other area"] * 3
    assert len(proofs(doubtful)) == findings(doubtful).filter(pl.col("kind") != "likely").height


def test_a_rule_that_hides_small_counts_takes_part_in_proofs(tmp_path: Path) -> None:
    """B is 1 or 2, and so is B1: then B2, which was published as 0 and may be 0, 3 or 4, is 0."""
    (tmp_path / "t.csv").write_text("area,what,n\nR,T,40\nR,B,\nR,B1,\nR,B2,0\nR,C,35\n", encoding="utf-8")
    (tmp_path / "t.toml").write_text(
        'data = "t.csv"\nvalue = "n"\ndefault = "suppressed:1..2,rounding:5"\nmissing = "suppressed"\n[axes.area]\n'
        '[axes.what]\nsums = [{total = "B", parts = ["B1", "B2"]}, {total = "T", parts = ["B", "C"]}]\n',
        encoding="utf-8",
    )
    folder = audit(read(tmp_path / "t.toml"), tmp_path / "out")
    assert folder.findings.select("what", "value", "kind").rows() == [("B2", 0, "proved")]
    assert all(check_proof(*read_proof(line)) for line in proofs(folder))
    assert explain(str(tmp_path / "out"), "R", "B2").kind == "proved"


def test_columns_that_differ_now_and_then_do_not_stand_for_each_other(tmp_path: Path) -> None:
    """Two totals that are equal in 98.5 % of the areas are two counts: a sum that took one for the other would be wrong."""
    rng = np.random.default_rng(5)
    parts = rng.integers(9, 60, (600, 2))
    total = parts.sum(axis=1)
    other = total + (np.arange(600) % 67 == 0)  # one more, in nine areas

    def rounded(true: np.ndarray) -> np.ndarray:
        return true // 3 * 3 + 3 * (rng.integers(0, 3, true.shape) < true % 3)

    shown = rounded(total)
    frame = pl.DataFrame(
        {"area": [f"A{i}" for i in range(600)], "t": shown, "a": rounded(parts[:, 0]), "b": rounded(parts[:, 1])}
    )
    frame = frame.with_columns(u=np.where(other == total, shown, rounded(other)))
    keys = {"area": "area", "sums": {"t": ["a", "b"], "u": ["t"]}, "mechanism": "rounding:3"}
    folder = audit(from_frame(frame, **keys), tmp_path / "out")
    truth = {f"A{i}": dict(zip("tabu", (total[i], *parts[i], other[i]), strict=True)) for i in range(600)}
    certain = findings(folder).filter(pl.col("kind") != "likely")
    assert certain.height > 5
    code = next(name for name in certain.columns[1:])
    assert all(truth[row["area"]][row[code]] == row["value"] for row in certain.to_dicts())


def test_a_misprint_does_not_end_an_audit(tmp_path: Path) -> None:
    """A count that no rounding gives is treated as not published, also in the proofs of its neighbours."""
    (tmp_path / "t.csv").write_text("area,what,n\nR,t,46\nR,p,50\nR,q,1\nR,r,0\n", encoding="utf-8")
    (tmp_path / "t.toml").write_text(
        'data = "t.csv"\nvalue = "n"\ndefault = "rounding:5"\n[[exact]]\nwhat = "t"\n[axes.area]\n'
        '[axes.what]\nsums = [{total = "t", parts = ["p", "q", "r"]}]\n',
        encoding="utf-8",
    )
    folder = audit(read(tmp_path / "t.toml"), tmp_path / "out", AuditOptions(doubtful=True))
    assert folder.summary["contradictions_by_kind"]["cell"] == 1
    assert dict(folder.findings.select("what", "value").iter_rows()) == {"p": 46, "r": 0}  # of q itself nothing is said
    assert all(check_proof(*read_proof(line)) for line in proofs(folder))
    assert explain(folder, "R", "p").value == 46


def test_a_truth_of_other_areas_is_refused(tmp_path: Path) -> None:
    simulate(tmp_path / "a", areas=60, seed=1)
    truth = pl.read_parquet(tmp_path / "a" / "truth.parquet").with_columns(region="X" + pl.col("region"))
    truth.write_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="the truth and the release have no area in common"):
        audit(read(tmp_path / "a" / BULK), tmp_path / "out", truth=read(tmp_path / "other.parquet"))
    assert not (tmp_path / "out").exists()


def test_counts_that_are_cut_off_from_their_sums_are_counted_not_claimed(tmp_path: Path) -> None:
    """Where a total does not apply, the fitted prior's word on how it splits means nothing: its parts are judged singly."""
    rng = np.random.default_rng(6)
    rows = []
    for area in range(120):
        parts = rng.poisson(3, 8)
        shown = parts // 5 * 5 + 5 * (rng.integers(0, 5, 8) < parts % 5)
        total = "" if area < 30 else str(int(parts.sum()))
        rows += [f"A{area},t,{total}", *(f"A{area},p{i},{count}" for i, count in enumerate(shown))]
    (tmp_path / "t.csv").write_text("\n".join(["area,what,n", *rows]) + "\n", encoding="utf-8")
    parts = ", ".join(f'"p{i}"' for i in range(8))
    (tmp_path / "t.toml").write_text(
        'data = "t.csv"\nvalue = "n"\ndefault = "rounding:5"\nmissing = "not applicable"\n[[exact]]\nwhat = "t"\n'
        f'[axes.area]\n[axes.what]\nsums = [{{total = "t", parts = [{parts}]}}]\n',
        encoding="utf-8",
    )
    folder = audit(read(tmp_path / "t.toml"), tmp_path / "out")
    assert folder.summary["prior"] == "fitted"
    assert folder.summary["cells_judged_singly"] == 30 * 9
    cut_off = [f"A{area}" for area in range(30)]
    assert folder.findings.filter(pl.col("area").is_in(cut_off)).height == 0


# -- explain ----------------------------------------------------------------------------------------------------------


def test_explanations_agree_with_the_findings(audited: AuditFolder) -> None:
    shown = findings(audited)
    sample = pl.concat([shown.filter(pl.col("kind") != "likely").head(3), shown.filter(kind="likely").head(6)])
    for row in sample.to_dicts():
        explanation = explain(audited, row["region"], row["characteristic_id"], row["sex"])
        assert (explanation.kind, explanation.value, explanation.low, explanation.high) == (
            row["kind"],
            row["value"],
            row["low"],
            row["high"],
        )
        for name in ("probability_low", "probability", "probability_high", "due_to_sums"):
            assert getattr(explanation, name) == pytest.approx(row[name], abs=1e-9)
        assert dict(explanation.distribution)[row["value"]] == pytest.approx(row["probability"], abs=1e-6)
        assert (explanation.proof is not None) == (row["kind"] != "likely")


def test_what_is_not_available_is_not_called_impossible(tmp_path: Path) -> None:
    """Before any sum, nothing says how likely a count is that was not published: that is no probability of 0."""
    frame = pl.DataFrame({"area": ["A0", "A1"], "total": [48, 60], "a": [20, 20], "b": [20, 20], "c": [None, 20]})
    keys = {"area": "area", "sums": {"total": ["a", "b", "c"]}, "mechanism": "rounding:5", "exact": ["total"]}
    folder = audit(from_frame(frame, **keys), tmp_path / "audit", FLAT)
    hidden, shown = (explain(folder, area, "c") for area in ("A0", "A1"))
    assert (hidden.published, hidden.value) == (None, 8)
    assert hidden.growth == (None, pytest.approx(hidden.probability))
    assert hidden.alone is None
    assert "from its published value alone" not in dict(growth(hidden))
    assert len(dict(growth(hidden))) == 1
    assert (shown.value, shown.growth[0]) == (20, pytest.approx(0.2))
    assert "from its published value alone" in dict(growth(shown))


def test_explain_asks_back_where_a_name_fits_several(audited: AuditFolder) -> None:
    area = findings(audited)["region"][0]
    with pytest.raises(InputError, match="'years' matches 25 characteristics"):
        explain(audited, area, "years")
    with pytest.raises(InputError, match="no area 'nowhere'"):
        explain(audited, "nowhere", "10")
    with pytest.raises(InputError, match="no characteristic 'unicorns'"):
        explain(audited, area, "unicorns")
    with pytest.raises(InputError, match="no sex 'other'"):
        explain(audited, area, "10", "other")
    assert explain(audited, area[-8:], "0 to 4 years").key == "10"


# -- what is refused --------------------------------------------------------------------------------------------------


def test_a_table_without_sums_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    rows = "\n".join(f"{area},{what},{5 * area}" for area in range(1, 80) for what in "ab")
    table.write_text(f"region,characteristic,count\n{rows}\n", encoding="utf-8")
    (tmp_path / "table.toml").write_text(
        'format = "tidy"\ndata = "table.csv"\nvalue = "count"\ndefault = "rounding:5"\n'
        '[axes.region]\ncolumn = "region"\n[axes.characteristic]\ncolumn = "characteristic"\n',
        encoding="utf-8",
    )
    with pytest.raises(InputError, match="no usable sum"):
        audit(read(tmp_path / "table.toml"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_of_something_else_is_left_alone(census: Path, tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=r"already contains summary\.json"):
        audit(read(census / BULK), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]


def test_an_older_audit_is_replaced(census: Path, tmp_path: Path) -> None:
    audit(read(census / BULK), tmp_path / "out", AuditOptions(estimates="means", prior="flat"))
    folder = audit(read(census / BULK), tmp_path / "out", FLAT)
    names = sorted(path.name for path in folder.path.iterdir())
    assert names == [
        "contradictions.csv",
        "findings.csv",
        "findings.parquet",
        "hidden.parquet",
        "model",
        "proofs.jsonl.gz",
        "run.json",
        "summary.json",
        "suspects.csv",
    ]


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    for options, message in (
        ({"threshold": 0}, "threshold"),
        ({"threshold": 7}, "threshold"),
        ({"prior": "mine"}, "prior must be fitted or flat, not 'mine'"),
        ({"population": "roughly"}, "population must be .*, not 'roughly'"),
    ):
        with pytest.raises(InputError, match=message):
            AuditOptions(**options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no folder"):
        AuditFolder.open(tmp_path / "out")
    with pytest.raises(InputError, match="no finished audit"):
        AuditFolder.open(tmp_path)


# -- real releases ----------------------------------------------------------------------------------------------------


def test_new_zealand_sex_splits_give_proofs(census_data: Path, tmp_path: Path) -> None:
    """A residual of ±6 proves total, men and women at base 3; all 18 five-year ages are covered."""
    folder = audit(read(census_data / "nz-2013-individual-sa2.csv.gz"), tmp_path / "nz", FLAT)
    written = proofs(folder)
    assert len(written) == folder.summary["proved"] + folder.summary["conditional"]
    assert folder.summary["proved"] > 2000
    assert all(check_proof(*read_proof(line)) for line in written)
    release = read(census_data / "nz-2013-individual-sa2.csv.gz")
    ages = [c for c in release.columns if c.key.startswith("age_5_year_groups") and c.key.endswith("years_curp/men")]
    ages += [c for c in release.columns if c.key == "age_5_year_groups:18_85_years_and_over_curp/men"]
    assert len(ages) == 18
    proved = findings(folder).filter(pl.col("kind") != "likely")
    for column in ages:
        split = proved.filter(characteristic_id=column.codes[0])
        counts = np.concatenate([block.counts for block in release.blocks()])
        men = release.index[column.key]
        total, women = release.index[column.codes[0]], release.index[f"{column.codes[0]}/women"]
        shown = (counts[:, [total, men, women]] >= 3).all(axis=1)
        extreme = shown & (np.abs(counts[:, total] - counts[:, men] - counts[:, women]) == 6)
        regions = np.concatenate([block.areas["region"].to_numpy() for block in release.blocks()])[extreme]
        for sex in ("men", "women"):
            assert set(regions) <= set(split.filter(sex=sex)["region"])


def test_known_oddities_are_contradictions(census_data: Path, tmp_path: Path) -> None:
    """Some Canadian areas contradict themselves; they are named, and the areas around them are audited."""
    odd = ["48062625", "48112706", "35204599", "35060400", "35203185", "48111161"]
    with gzip.open(census_data / "canada-2021-da-censusmapper.csv.gz", "rt", encoding="utf-8") as file:
        lines = [line for at, line in enumerate(file) if at <= 800 or line.startswith(tuple(odd))]
    (tmp_path / "da.csv").write_text("".join(lines), encoding="utf-8")
    folder = audit(read(tmp_path / "da.csv"), tmp_path / "out", FLAT)
    clashes = pl.read_csv(folder.path / "contradictions.csv", schema_overrides={"region": pl.String})
    assert set(clashes["region"]) == set(odd)
    ages = clashes.filter(region="48062625")["cells"].to_list()
    assert len(ages) == 2
    assert folder.summary["areas"] > 800
    assert folder.summary["likely"] > 0


@pytest.mark.parametrize(
    "name",
    [
        "canada-2021-fsa-selected.csv",
        "canada-2021-first-names.csv.gz",
        "canada-2021-vancouver-profile-page.csv",
        "nz-2013-individual-rc.csv.gz",
        "nz-2018-individual-ta.csv.gz",
    ],
)
def test_every_real_file_is_audited(census_data: Path, tmp_path: Path, name: str) -> None:
    folder = audit(read(census_data / name), tmp_path / "out")
    claims = findings(folder)
    assert folder.summary["structure"]["sums_kept"] >= 1
    assert ((claims["low"] <= claims["value"]) & (claims["value"] <= claims["high"])).all()
    assert (claims["probability"] >= 0.66).all()
    assert all(check_proof(*read_proof(line)) for line in proofs(folder))
