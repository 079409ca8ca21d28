"""Probabilities under several priors, and the self-check: the same numbers and words in findings, terminal and pages."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from starlette.testclient import TestClient

from tests.conftest import Run
from tests.test_report import Outline
from unround.audits import Finding
from unround.audits.claims import due_to_sums, due_to_sums_of
from unround.audits.findings import finding
from unround.audits.weigh import Weighing
from unround.explanation.cell import Explanation, explain, explain_at, infer_area
from unround.job import AuditFolder
from unround.job.folder import OURS, seal
from unround.show import selfcheck, show
from unround.show.audit import not_listed
from unround.show.report import page
from unround.show.words import (
    WHY_FLAT_TOO,
    WHY_SEVERAL,
    at_least,
    conclusion,
    due,
    percent,
    probabilities,
)
from unround.web.app import explorer_app
from unround.web.guard import hosts_for

SELFCHECK: dict[str, Any] = {
    "cells": 2400,
    "rms_z": 1.1,
    "log_score": {"best": -1.23, "tilted": -1.24, "looser": -1.23, "flat": -1.4},
    "calibration": [
        {"low": 0.3, "high": 0.4, "predictions": 900, "stated": 0.36, "observed": 0.35},
        {"low": 0.7, "high": 0.8, "predictions": 150, "stated": 0.75, "observed": 0.77},
        {"low": 0.8, "high": 0.9, "predictions": 320, "stated": 0.84, "observed": 0.85},
    ],
    "worst_columns": [
        {
            "column": "birthplace/other",
            "label": "Born <elsewhere>",
            "predictions": 40,
            "zeros_predicted": 22.1,
            "zeros_published": 15,
            "z": -2.3,
        }
    ],
    "tables": [
        {"table": "Ages", "columns": 12, "cells": 300, "rms_z": 0.9, "verdict": "passed", "why": ""},
        {"table": "Few", "columns": 2, "cells": 20, "rms_z": None, "verdict": "too few", "why": ""},
        {
            "table": "Birth<place>",
            "columns": 9,
            "cells": 280,
            "rms_z": 3.4,
            "verdict": "failed",
            "why": "zeros were published less often than predicted, by 7 points",
        },
    ],
    "withheld": 12,
}


@pytest.fixture
def census(audited_census: Path) -> AuditFolder:
    return AuditFolder.open(audited_census)


def told_otherwise(folder: AuditFolder, to: Path, **changes: Any) -> AuditFolder:
    shutil.copytree(folder.path, to)
    told = {name: value for name, value in (folder.summary | changes).items() if value is not ...}
    (to / "summary.json").write_text(json.dumps(told), encoding="utf-8")
    seal(to, OURS)
    return AuditFolder.open(to)


def printed(folder: AuditFolder) -> str:
    console = Console(record=True, width=10_000, file=io.StringIO())
    show(folder, console, verbose=True)
    return console.export_text()


def explained(one: Explanation) -> str:
    console = Console(record=True, width=10_000, file=io.StringIO())
    show(one, console)
    return console.export_text()


def browser(folder: AuditFolder) -> TestClient:
    return TestClient(explorer_app(folder.path, hosts_for("127.0.0.1")), base_url="http://127.0.0.1")


def cells_of(folder: AuditFolder, areas: int) -> Iterator[tuple[int, int, Finding, Any]]:
    """Yield what is known of every cell of some areas."""
    for row in range(areas):
        seen = infer_area(folder, row)
        for cell in range(len(folder.model.columns)):
            yield row, cell, finding(seen.inferred, 0, cell), seen.inferred.probabilities


# -- three probabilities ----------------------------------------------------------------------------------------------


def test_a_finding_has_all_three_probabilities_where_several_priors_were_run(census: AuditFolder) -> None:
    several = single = 0
    for _, cell, one, weighed in cells_of(census, 12):
        if one.kind in ("proved", "conditional", "given"):
            assert (one.probability_low, one.probability, one.probability_high, one.due_to_sums) == (1, 1, 1, 1)
            continue
        if np.isnan(weighed.lowest[0, cell]) or weighed.cut_off[0, cell]:
            assert one.probability_low is one.probability_high is None
            single += 1
        elif one.probability is not None:
            assert one.probability_low is not None
            assert one.probability_high is not None
            assert one.probability_low <= one.probability <= one.probability_high
            several += 1
        assert (one.kind == "likely") <= (one.due_to_sums is not None and one.probability_low is not None)
    assert several > 20
    assert single > 100


def test_what_is_cut_off_from_its_sums_has_one_probability_only(census: AuditFolder) -> None:
    inferred = infer_area(census, 3).inferred
    cell = int(np.flatnonzero(~np.isnan(inferred.probabilities.lowest[0]) & ~inferred.assumed.given[0])[0])
    assert finding(inferred, 0, cell).probability_low is not None
    cut_off = inferred.probabilities.cut_off.copy()
    inferred.probabilities.cut_off[0, cell] = True
    one = finding(inferred, 0, cell)
    inferred.probabilities.cut_off[:] = cut_off
    assert one.probability is not None
    assert one.probability_low is one.probability_high is None


def test_the_share_of_doubt_is_the_same_for_one_count_as_for_many() -> None:
    rng = np.random.default_rng(1)
    probability, alone = rng.random(20_000), rng.random(20_000)
    probability[:500], alone[250:1_000], alone[5_000:5_100] = 1.0, 1.0, np.nan
    one_by_one = [due_to_sums_of(*both) for both in zip(probability.tolist(), alone.tolist(), strict=True)]
    np.testing.assert_array_equal(due_to_sums(probability, alone), one_by_one)


def test_words_for_probabilities() -> None:
    finding_ = {"kind": "likely", "probability_low": 0.71, "probability": 0.78, "probability_high": 0.84}
    assert (
        probabilities(finding_ | {"kind": "open"}, 3) == "71.0% to 84.0% under different priors"
    )  # not all may have been run
    assert probabilities(finding_, 3) == "at least 71.0% (78.0% on average over several priors; highest found 84.0%)"
    assert at_least(finding_) == "≥ 71.0%"
    for low, high in ((None, None), (0.78, 0.78)):
        alone = {"kind": "likely", "probability_low": low, "probability": 0.78, "probability_high": high}
        assert probabilities(alone, 3) == at_least(alone) == "78.0%"
    assert probabilities({"probability_low": None, "probability": None, "probability_high": None}) == "–"
    assert due({"kind": "likely", "due_to_sums": 0.834}).startswith("The area's other counts remove 83% of the doubt")
    assert "remove none of the doubt" in due({"kind": "open", "due_to_sums": 0.001})
    assert "99%" in due({"kind": "likely", "due_to_sums": 0.9999})  # doubt that is left is not rounded away
    assert due({"kind": "proved", "due_to_sums": 1.0}) == due({"kind": "likely", "due_to_sums": None}) == ""


def test_explain_shows_all_three_and_why(census: AuditFolder, run: Run) -> None:
    rows = pl.read_parquet(census.path / "findings.parquet").filter(
        pl.col("probability_low") < pl.col("probability_high") - 0.01
    )
    row = rows.filter(kind="likely").row(0, named=True)
    where = (row["region"], row["characteristic_id"], "--sex", row["sex"])
    shown = " ".join(run("explain", str(census.path), *where).out.split())
    assert f"most likely {row['value']}: {probabilities(row, 3)}." in shown
    assert WHY_SEVERAL in shown
    assert due(row) in shown
    assert "with all sums and the fitted priors, on average" in shown
    report = json.loads(run("explain", str(census.path), *where, "--json").out)
    for name in ("probability_low", "probability", "probability_high", "due_to_sums"):
        assert report[name] == pytest.approx(row[name], abs=1e-9)
    assert report["priors"] == ["best", "tilted", "looser", "denser"] == census.summary["priors"]["variants"]
    assert report["threshold"] == 0.66
    assert report["held_back"] is report["withheld"] is None
    assert report["known_alone"] is False


def test_a_count_that_was_run_under_one_prior_shows_just_its_probability(census: AuditFolder) -> None:
    row, cell = next(
        (row, cell)
        for row, cell, one, _ in cells_of(census, 3)
        if one.kind == "open" and one.probability is not None and one.probability_low is None and one.low != one.high
    )
    one = explain_at(census, row, cell)
    text = explained(one)
    assert (
        f"most likely {one.value:,} ({100 * (one.probability or 0):.1f}%). This is not a finding: it is not likely" in text
    )
    assert "at least" not in conclusion(one)
    assert WHY_SEVERAL not in text
    assert one.to_json()["probability_low"] is None


def test_a_flat_prior_is_one_prior(survey_audit: Path, tmp_path: Path, run: Run) -> None:
    survey = Path(__file__).parents[1] / "examples" / "survey.toml"
    shown = run("audit", str(survey), "-o", str(tmp_path / "flat"), "--prior", "flat").out
    folder = AuditFolder.open(tmp_path / "flat")
    assert folder.summary["priors"]["variants"] == ["flat"]
    assert folder.summary["more_likely_at_highest_found"] == folder.summary["more_likely_on_average"] == 0
    assert WHY_SEVERAL not in " ".join(shown.split())
    for text in (page(folder), page(folder, public=True)):
        assert "highest found" not in text
        assert "under all" not in text
    assert "selfcheck" not in folder.summary
    fitted = AuditFolder.open(survey_audit)  # of 40 areas: the flat prior is one of the set
    assert fitted.summary["priors"]["variants"] == ["best", "tilted", "looser", "denser", "flat"]
    assert "under all five priors" in page(fitted)
    assert WHY_FLAT_TOO in page(fitted)
    assert WHY_FLAT_TOO in " ".join(printed(fitted).split())
    assert WHY_SEVERAL not in page(fitted)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, "it is not likely enough"),
        ({"probability_high": 0.7}, "it reaches 66% under some priors, but not under all"),
        ({"known_alone": True, "probability_low": 0.8}, "it is likely from its published value alone, and sums add little"),
        ({"without_sums": True}, "a sum that it belongs to could not be used, and it was judged by itself"),
        ({"probability_low": 0.7, "contradictions": ("x",)}, "published figures next to it are inconsistent"),
        ({"probability_low": 0.7}, "it is likely without any sum"),
        (
            {"held_back": "likely", "withheld": "zeros fail", "probability_low": 0.9},
            "likely claims are withheld here: zeros fail",
        ),
        ({"held_back": "likely", "withheld": ""}, "withheld here: the prior failed its self-check"),
    ],
)
def test_why_a_likely_looking_count_is_not_a_finding(changes: dict[str, Any], why: str) -> None:
    one = {
        "kind": "open",
        "low": 0,
        "high": 4,
        "value": 0,
        "same_as": None,
        "probability_low": 0.5,
        "probability": 0.6,
        "probability_high": 0.65,
        "priors": ("best", "tilted", "looser", "denser"),
        "threshold": 0.66,
        "due_to_sums": None,
        "known_alone": False,
        "without_sums": False,
        "contradictions": (),
        "held_back": None,
        "withheld": None,
    }
    said = conclusion(SimpleNamespace(**(one | changes)))  # type: ignore[arg-type]
    assert said.endswith(f"{why}.")
    assert " This is not a finding: " in said


def test_a_conditional_claim_that_is_held_back_is_not_called_certain() -> None:
    one = {"kind": "open", "low": 5, "high": 5, "value": 5, "same_as": None, "probability": 1.0, "probability_low": 1.0}
    one |= {"held_back": "conditional", "due_to_sums": None, "without_sums": False, "withheld": None}
    one |= {"threshold": 0.66, "contradictions": (), "known_alone": False}
    said = conclusion(SimpleNamespace(**one))  # type: ignore[arg-type]
    assert said.startswith("It is 5 if an assumption holds")
    assert said.endswith("such claims are held back: the published figures contradict their mechanism.")


# -- what is not listed -----------------------------------------------------------------------------------------------


def test_counts_that_only_some_priors_make_likely_are_counted(census_audit: Path) -> None:
    """They are counted anew here, cell by cell, in areas that are not linked: others depend on their families."""
    census = AuditFolder.open(census_audit)
    summary, least = census.summary, census.summary["threshold"]
    assert 0 < summary["more_likely_on_average"] < summary["more_likely_at_highest_found"]
    highest = average = 0
    for row in range(summary["areas"]):
        seen = infer_area(census, row)
        weighed, inferred = seen.inferred.probabilities, seen.inferred
        for cell in np.flatnonzero(weighed.highest[0] >= least).tolist():
            one = seen.finding(cell)
            listed = one.kind != "open" or inferred.clashing[0, cell] or inferred.claims.without_sums[0, cell]
            if listed or one.probability_low is None or one.probability_low >= least:
                continue
            highest += 1
            average += (one.probability or 0) >= least
    assert (highest, average) == (summary["more_likely_at_highest_found"], summary["more_likely_on_average"])


def held(conditional: int) -> dict[str, dict[str, int]]:
    none = {"conditional": 0, "likely": 0}
    return dict.fromkeys(("selfcheck", "tied", "suspect", "odd"), none) | {
        "mechanism": {"conditional": conditional, "likely": 0}
    }


def test_what_is_not_listed_is_said_everywhere(census: AuditFolder, tmp_path: Path) -> None:
    changes = {"more_likely_at_highest_found": 1234, "more_likely_on_average": 56, "likely_without_sums": 7}
    changes["zeros_not_listed"] = 5
    folder = told_otherwise(census, tmp_path / "audit", **changes, held_back_because=held(3))
    doubtful, conditional, zeros, alone = not_listed(folder.summary)
    assert doubtful == ("At least 1,234 more counts reach 66% under one of the four priors, but not under all of them.")
    assert conditional.startswith("3 conditional claims are held back, because the published figures contradict")
    assert alone == "7 counts are likely from their published value alone; sums add little. They are not listed."
    start = browser(folder).get("/").text
    for text in (printed(folder), Outline(page(folder)).text, Outline(page(folder, public=True)).text, start):
        for sentence in (doubtful, conditional, zeros, alone):
            assert sentence in text
    one = folder.summary | {"more_likely_at_highest_found": 1, "more_likely_on_average": 0, "likely_without_sums": 1}
    assert not_listed(one)[0].startswith("At least 1 more count reaches 66%")
    assert not_listed(one)[-1] == "1 count is likely from its published value alone; sums add little. It is not listed."
    assert (
        zeros == "5 counts that were published as 0 are likely to be 0; they are counted here, but listed only with --zeros."
    )
    none = dict.fromkeys(changes, 0) | {"held_back_because": held(0)}
    assert not_listed(folder.summary | none) == []


# -- report and explorer ----------------------------------------------------------------------------------------------


def test_cards_of_the_report_show_all_three(census: AuditFolder) -> None:
    text = Outline(page(census)).text
    card = r"at least (\S+) on average (\S+) highest found (\S+) possible"
    found = [[float(one.strip("%>")) for one in match] for match in re.findall(card, text)]
    assert len(found) >= 4
    assert all(low <= mean <= high for low, mean, high in found)
    assert WHY_SEVERAL in text
    assert "The area's other counts remove " in text
    assert "66% or more under all four priors" in text
    assert "The area's other counts" not in page(census, public=True)


def test_the_explorer_shows_all_three(census: AuditFolder) -> None:
    client = browser(census)
    rows = pl.read_parquet(census.path / "findings.parquet").filter(kind="likely")
    same = rows.sort(pl.col("probability_high") - pl.col("probability_low")).row(-1, named=True)
    here = f"?kind=likely&area={same['region']}"
    listed = client.get(f"/findings.json{here}").json()["findings"]
    axes = ("region", "characteristic_id", "sex")
    (row,) = [one for one in listed if all(one[axis] == same[axis] for axis in axes)]
    names = ("probability_low", "probability", "probability_high", "due_to_sums")
    assert [row[name] for name in names] == [same[name] for name in names]
    assert at_least(row) in client.get(f"/findings{here}").text
    assert f"highest found {percent(row['probability_high'])}" in client.get(f"/findings{here}").text
    heading = client.get(f"/findings.csv{here}").text.partition("\n")[0]
    assert all(name in heading.split(",") for name in names)
    cell = client.get(row["address"])
    assert probabilities(row, 3) in cell.text
    assert WHY_SEVERAL in cell.text
    assert due(row).replace("'", "&#39;") in cell.text
    page_data = client.get(f"{row['address']}.json").json()
    assert [page_data[name] for name in names] == pytest.approx([row[name] for name in names], abs=1e-9)
    area = row["address"].rsplit("/", 1 + row["key"].count("/"))[0]
    lines = [line for table in client.get(f"{area}.json").json()["tables"] for line in table["lines"]]
    (shown,) = [cell for line in lines for cell in line["cells"] if cell and cell["key"] == row["key"]]
    assert [shown[name] for name in names] == pytest.approx([row[name] for name in names], abs=1e-9)
    page = client.get(area).text
    assert probabilities(row) in page
    assert "averages over several priors" in page


def test_whole_distributions_are_worked_out_for_single_counts_only(
    census: AuditFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    usual = Weighing.distributions
    monkeypatch.setattr(Weighing, "distributions", lambda here, variant: asked.append(variant) or usual(here, variant))
    client, code = browser(census), census.areas["region"][-1]
    for address in (f"/area/{code}", f"/area/{code}.json", f"/area/{code}.csv"):
        assert client.get(address).status_code == 200
    assert not asked
    page_data = client.get(f"/area/{code}/{census.model.columns[-1].key}.json").json()
    assert asked == list(census.prior.variants)
    assert page_data["mean"] == pytest.approx(sum(count * chance for count, chance in page_data["distribution"]))
    client.get(f"/area/{code}/{census.model.columns[-2].key}.json")
    client.get(f"/area/{code}/{census.model.columns[-1].key}.json")
    assert len(asked) == 2 * len(census.prior.variants), "a count that was explained is not explained again"


# -- the self-check ---------------------------------------------------------------------------------------------------


def test_the_self_check_in_sentences() -> None:
    said = selfcheck.sentences({"selfcheck": SELFCHECK})
    assert said == [
        "Of 320 published counts predicted at 80–90%, 85.0% were as predicted (stated: 84.0%).",
        "Over 2,400 predictions, the zeros published in a column miss the number predicted by 1.1 standard errors on "
        "average; 1 would be chance.",
    ]
    unsure = SELFCHECK | {"calibration": SELFCHECK["calibration"][:1], "rms_z": None}
    assert selfcheck.sentences({"selfcheck": unsure}) == ["No published count could be predicted with much certainty."]
    for none in ({}, {"selfcheck": None}):
        assert selfcheck.sentences(none) == selfcheck.withheld(none) == []
        assert "were not checked" in str(selfcheck.parts(none))
        assert selfcheck.in_short(none) == ""


def test_withheld_claims_say_of_which_table_and_why() -> None:
    assert selfcheck.withheld({"selfcheck": SELFCHECK}) == [
        "Likely claims of this table are withheld: Birth<place>. "
        "Zeros were published less often than predicted, by 7 points.",
        "12 counts would have been called likely there. That is no sign of safety.",
    ]
    many = SELFCHECK | {"tables": SELFCHECK["tables"][2:] * (selfcheck.MOST_TABLES + 2)}
    assert len(selfcheck.withheld({"selfcheck": many})) == selfcheck.MOST_TABLES + 2
    assert "Likely claims of 2 more tables are withheld; see summary.json." in selfcheck.withheld({"selfcheck": many})
    assert selfcheck.withheld({"selfcheck": SELFCHECK | {"tables": SELFCHECK["tables"][:2]}}) == []


def test_the_self_check_is_shown_everywhere(census: AuditFolder, tmp_path: Path) -> None:
    folder = told_otherwise(census, tmp_path / "audit", selfcheck=SELFCHECK)
    sentences, withheld = selfcheck.sentences(folder.summary), selfcheck.withheld(folder.summary)
    terminal = printed(folder)
    assert all(sentence in terminal for sentence in (*sentences, selfcheck.NO_TRUTH))
    assert selfcheck.in_short(folder.summary).startswith(
        "Self-check: of 320 published counts predicted at 80–90%, 85.0% were"
    )
    client = browser(folder)
    about = client.get("/about")
    start = Outline(client.get("/").text).text
    assert all(sentence in start for sentence in (selfcheck.in_short(folder.summary), *withheld))
    for text in (Outline(page(folder)).text, Outline(page(folder, public=True)).text, Outline(about.text).text):
        for sentence in (*sentences, *withheld, selfcheck.WHAT_IT_IS, selfcheck.NO_TRUTH):
            assert sentence in text
    assert all(sentence in terminal for sentence in withheld)
    assert client.get("/about.json").json()["selfcheck"] == SELFCHECK
    for html in (page(folder), page(folder, public=True)):
        part = html.partition('<section id="selfcheck"')[2].partition("</section>")[0]
        assert part.count("<svg") == part.count('role="img"') == 1
        assert part.count("<circle") == len(SELFCHECK["calibration"])
        assert "stated 84.0%, right 85.0% of 320" in part
        assert "Born &lt;elsewhere&gt;" in part
        assert "−2.3" in part
        assert "<place>" not in part
        rows = re.findall(r'<th scope="row" class="name"><bdi>(.*?)</bdi></th><td', part)
        assert rows == ["Birth&lt;place&gt;", "Ages", "Few"]  # what failed comes first
        assert "failed in 1 table" in html
        assert "Likely claims there are withheld." in html
        assert '<a href="#selfcheck">Self-check</a>' in html


def test_that_there_was_no_self_check_is_said(census: AuditFolder, tmp_path: Path) -> None:
    folder = told_otherwise(census, tmp_path / "audit", selfcheck=...)
    assert "elf-check passed" not in printed(folder)
    assert "probabilities (not tested)" in printed(folder)
    for text in (Outline(page(folder)).text, Outline(page(folder, public=True)).text):
        assert "Probabilities not tested" in text
        assert "Probabilities were not checked" in text
        assert "elf-check passed" not in text
    assert "Probabilities were not checked" in browser(folder).get("/about").text


def test_an_audit_prints_its_own_self_check(census: AuditFolder) -> None:
    """The contract with what audits write: the same names as the fixture above, and numbers that can be drawn."""
    written = census.summary["selfcheck"]
    assert set(written) == set(SELFCHECK)
    for name in ("calibration", "worst_columns", "tables"):
        assert {frozenset(one) for one in written[name]} == {frozenset(SELFCHECK[name][0])}
    assert all(sentence in printed(census) for sentence in selfcheck.sentences(census.summary))


def test_a_withheld_claim_is_explained(tmp_path: Path, census: AuditFolder) -> None:
    """Claims of a table that failed are open, and their explanation says why."""
    row = pl.read_parquet(census.path / "findings.parquet").filter(kind="likely").row(0, named=True)
    where = row["region"], row["characteristic_id"], row["sex"]
    before = explain(census, *where)
    written = census.summary["selfcheck"]
    failed = [table | {"verdict": "failed", "why": "zeros fail", "rms_z": 4.0} for table in written["tables"]]
    folder = told_otherwise(census, tmp_path / "audit", selfcheck=written | {"tables": failed})
    prior = replace(folder.prior, withheld=tuple(range(len(folder.model.columns))))
    prior.save(next((folder.path / "model").glob("prior*")))
    seal(folder.path, OURS)
    after = explain(AuditFolder.open(folder.path), *where)
    assert (before.kind, after.kind, after.value) == ("likely", "open", before.value)
    assert (after.held_back, after.withheld) == ("likely", "zeros fail")
    assert conclusion(after).endswith("likely claims are withheld here: zeros fail.")
