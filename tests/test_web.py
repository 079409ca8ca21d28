"""The explorer without a browser: every view and its twin, what it refuses, and that it says what the audit says."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.conftest import Run
from tests.shared import FORMULA, IMAGE, OLDEST, SLASHED
from unround import check_proof, parse, solve
from unround.audits.certificates import read_proof
from unround.explanation.cell import explain
from unround.job import AuditFolder
from unround.show import document
from unround.show.charts import histogram
from unround.show.page import html
from unround.web import lists, trial
from unround.web.app import explorer_app
from unround.web.claims import AREA_SIZES, TextIndex
from unround.web.explorer import Explorer
from unround.web.guard import POLICY, hosts_for
from unround.web.outline import Places
from unround.web.page import area_address, cell_address, key_meant, meant, segment
from unround.web.trial import LONGEST, MOST_CELLS, Bench

HERE = "http://127.0.0.1"


@pytest.fixture(scope="module")
def hostile(hostile_audit: Path) -> Iterator[TestClient]:
    yield from client(hostile_audit)


@pytest.fixture(scope="module")
def census(census_audit: Path) -> Iterator[TestClient]:
    yield from client(census_audit)


def client(folder: Path) -> Iterator[TestClient]:
    bench = Bench()
    app = explorer_app(folder, hosts_for("127.0.0.1"), bench)
    yield TestClient(app, base_url=HERE, raise_server_exceptions=False)
    bench.close()


def told(asked: TestClient, path: str) -> Any:
    answer = asked.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/json")
    return answer.json()


PAGES = {
    "/": "/index.json",
    "/areas": "/areas.json",
    "/areas?q=D1": "/areas.json?q=D1",
    area_address("D01"): f"{area_address('D01')}.json",
    area_address(SLASHED): f"{area_address(SLASHED)}.json",
    cell_address(IMAGE, "30-44/men"): f"{cell_address(IMAGE, '30-44/men')}.json",
    cell_address(SLASHED, f"{OLDEST}/women"): f"{cell_address(SLASHED, f'{OLDEST}/women')}.json",
    "/findings": "/findings.json",
    "/findings?kind=proved&size=3-9": "/findings.json?kind=proved&size=3-9",
    "/structure": "/structure.json",
    "/structure/0": "/structure/0.json",
    "/contradictions": "/contradictions.json",
    "/try": "/try.json",
    "/try?system=48!+%3D+20+%2B+20+%2B+20": "/try.json?system=48!+%3D+20+%2B+20+%2B+20",
    "/about": "/about.json",
}


@pytest.mark.parametrize(("page", "twin"), PAGES.items())
def test_every_view_is_a_page_and_says_the_same_as_json(hostile: TestClient, page: str, twin: str) -> None:
    answer = hostile.get(page)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.text.startswith("<!doctype html>")
    assert f'<link rel="alternate" type="application/json" href="{twin.split("?")[0]}' in answer.text
    assert '<ul class="footing" aria-label="What the claims rest on">' in answer.text  # always in sight
    assert isinstance(told(hostile, twin), dict)


def test_what_the_claims_rest_on_has_its_reasons(hostile: TestClient) -> None:
    linked = set(re.findall(r'href="/about#([a-z]+)"', hostile.get("/").text))
    assert {"check", "selfcheck"} <= linked
    about = hostile.get("/about").text
    for name in linked - {"selfcheck"}:  # without a fitted prior there is nothing to check
        assert f'id="{name}"' in about


def test_an_audit_that_finds_nothing_says_so_and_no_more(tmp_path: Path) -> None:
    """Large counts that add up: nothing follows, and every page still has something to say."""
    from unround.job import audit
    from unround.tables import read

    lines = ["place,age,persons"]
    for k in range(40):
        young, old = 100 + 5 * (k % 7), 200 + 5 * (k % 11)
        lines += [f"p{k},young,{young}", f"p{k},old,{old}", f"p{k},all,{young + old + 5 * (k % 3 - 1)}"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "t.toml").write_text(
        'data = "t.csv"\nvalue = "persons"\ndefault = "rounding:5"\n[axes.place]\n[axes.age]\n'
        'sums = [{ total = "all", parts = ["young", "old"] }]\n',
        encoding="utf-8",
    )
    audit(read(tmp_path / "t.toml"), tmp_path / "audit")
    asked = TestClient(explorer_app(tmp_path / "audit", hosts_for("127.0.0.1")), base_url=HERE)
    assert told(asked, "/findings.json")["total"] == 0
    first = asked.get("/").text
    assert "This release gives nothing away that this audit can see" in first
    assert "nothing to check" in first  # no published count could be predicted: that is no check passed
    assert "What is not in these lists" not in first
    assert "this audit says nothing about them" in first
    for view, said in (("", "This audit has no findings"), ("?size=1-2", "No findings match these filters")):
        text = asked.get(f"/findings{view}").text
        assert said in text
        assert "does not make other counts safe" in text
    assert 'href="/findings"' in first  # no size to begin with
    for view in ("/areas", area_address("p1"), "/structure", "/contradictions", "/about", "/findings?size=1-2&sort=area"):
        assert asked.get(view).status_code == 200, view


def test_the_audit_behind_the_pages_is_the_one_on_disk(hostile: TestClient, hostile_audit: Path) -> None:
    summary = json.loads((hostile_audit / "summary.json").read_text(encoding="utf-8"))
    assert told(hostile, "/index.json")["summary"] == summary
    assert f"{summary['proved']:,} counts can be proved" in hostile.get("/").text


def test_a_cell_says_what_explain_says(hostile: TestClient, hostile_audit: Path) -> None:
    folder = AuditFolder.open(hostile_audit)
    for area, key in ((IMAGE, "30-44/men"), ("D01", "total/women"), (SLASHED, "65+/men"), ("D02", "total/total")):
        expected = explain(folder, area, key).to_json()
        assert told(hostile, f"{cell_address(area, key)}.json") == json.loads(json.dumps(expected))
        assert expected["label"] in hostile.get(cell_address(area, key)).text


def test_an_area_shows_every_finding_of_the_audit(census: TestClient, census_audit: Path) -> None:
    frame = pl.read_parquet(census_audit / "findings.parquet")
    worst = frame["region"].value_counts(sort=True)["region"][:3].to_list()
    for region in worst:
        shown = {
            (cell["characteristic_id"], cell["sex"]): cell
            for table in told(census, f"{area_address(region)}.json")["tables"]
            for line in table["lines"]
            for cell in line["cells"]
            if cell
        }
        findings_there = frame.filter(pl.col("region") == region).to_dicts()
        assert findings_there
        claimed = {place for place, cell in shown.items() if cell["kind"] not in ("open", "given")}
        assert claimed == {(finding["characteristic_id"], finding["sex"]) for finding in findings_there}
        for finding in findings_there:
            cell = shown[finding["characteristic_id"], finding["sex"]]
            assert [cell[name] for name in ("published", "low", "high", "value", "kind")] == [
                finding[name] for name in ("published", "low", "high", "value", "kind")
            ]
            assert cell["probability"] == pytest.approx(finding["probability"], abs=1e-12)


def test_certificates_hold(hostile: TestClient, hostile_audit: Path) -> None:
    proved = pl.read_parquet(hostile_audit / "findings.parquet").filter(pl.col("kind") == "proved").to_dicts()[:5]
    assert proved
    for claim in proved:
        line = told(hostile, cell_address(claim["district"], f"{claim['age']}/{claim['sex']}", "certificate") + ".json")
        system, proof = read_proof(line)
        assert check_proof(system, proof)
        assert proof.value == claim["value"]
    assert hostile.get("/certificate/D01/total/total.json").status_code == 404


def test_a_table_that_is_not_by_sex(tmp_path: Path) -> None:
    from unround.job import audit
    from unround.tables import read

    lines = ["year,place,age,persons"]
    for year in (2020, 2021):
        for k in range(30):
            lines += [
                f"{year},p{k},{age},{n}" for age, n in (("all", 48 + k % 9), ("young", 20), ("middle", 20), ("old", 20))
            ]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "t.toml").write_text(
        'data = "t.csv"\nvalue = "persons"\ndefault = "rounding:5"\n[[exact]]\nage = "all"\n[axes.year]\n[axes.place]\n'
        '[axes.age]\nsums = [{ total = "all", parts = ["young", "middle", "old"] }]\n',
        encoding="utf-8",
    )
    audit(read(tmp_path / "t.toml"), tmp_path / "audit")
    asked = TestClient(explorer_app(tmp_path / "audit", hosts_for("127.0.0.1")), base_url=HERE)
    proved = told(asked, "/findings.json?kind=proved")["findings"]
    assert {(claim["name"], claim["key"], claim["value"]) for claim in proved} >= {
        ("2020/p0", "young", 16),
        ("2021/p9", "old", 16),
    }
    for view in (
        "/",
        "/findings",
        proved[0]["address"],
        area_address("2020/p1"),
        "/structure/0",
    ):
        assert asked.get(view).status_code == 200
    area = told(asked, f"{area_address('2021/p3')}.json")["tables"][0]
    assert [(line["label"], line["level"]) for line in area["lines"]] == [
        ("all", 0),
        ("young", 1),
        ("middle", 1),
        ("old", 1),
    ]


def test_areas_within_areas_and_levels(census: TestClient) -> None:
    page = census.get("/areas?q=10010001").text
    assert "Dissemination area" in page
    area = told(census, "/area/10010001.json")["area"]  # the end of a code will do, as in `unround explain`
    assert area["region"].endswith("10010001")
    assert 'aria-label="Where you are"' in census.get("/area/10010001").text


# -- searching --------------------------------------------------------------------------------------------------------


def test_searching_finds_codes_names_and_parts_of_them() -> None:
    codes = ["10010001", "10010002", "2466023", "2410001"]
    index = TextIndex(codes, ["", "", "Montréal (V)", "Saint-Montréal, Village (VL)"], ["", "in Hill", "", ""])
    assert index.find("montreal").tolist() == [2, 3]
    assert index.find("MONTRÉAL village").tolist() == [3]
    assert index.find("0001").tolist()[0] == 0
    assert index.find("2410001").tolist() == [3]
    assert index.find("nowhere").tolist() == []
    assert index.find("hill").tolist() == [1]  # by what is said about it
    assert index.find("").tolist() == [0, 1, 2, 3]
    assert index.find("", np.array([0, 5, 9, 5])).tolist() == [2, 1, 3, 0]
    assert index.find("(v").tolist() == [2, 3]  # no pattern, only signs


def test_search_pages(census: TestClient) -> None:
    first = told(census, "/areas.json")
    assert (first["total"], len(first["areas"]), first["pages"]) == (120, 50, 3)
    assert told(census, "/areas.json?few=1&q=1001")["areas"][0]["address"].startswith("/area/")
    last = told(census, "/areas.json?page=3")["areas"]
    assert len(last) == 20
    assert census.get("/areas?page=4").status_code == 404
    assert "No area" in census.get("/areas?q=zzz").text


# -- findings ---------------------------------------------------------------------------------------------------------


def test_filters_keep_what_they_say(census: TestClient, census_audit: Path) -> None:
    frame = pl.read_parquet(census_audit / "findings.parquet")
    areas = pl.read_parquet(census_audit / "model" / "areas.parquet")
    level = frame.join(areas.select("region", "level"), on="region")["level"]
    expected = {
        "": frame.height,
        "?kind=likely": (frame["kind"] == "likely").sum(),
        "?kind=likely&kind=conditional": frame["kind"].is_in(["likely", "conditional"]).sum(),
        "?probability=90": (frame["probability_low"] >= 0.9).sum(),
        "?size=1-2": frame["value"].is_between(1, 2).sum(),
        "?size=10%2B": (frame["value"] >= 10).sum(),
        "?level=Census+subdivision": (level == "Census subdivision").sum(),
        "?area=1001000": frame["region"].str.contains("1001000", literal=True).sum(),
        "?kind=likely&size=0&probability=80": (
            (frame["kind"] == "likely") & (frame["value"] == 0) & (frame["probability_low"] >= 0.8)
        ).sum(),
    }
    for query, number in expected.items():
        assert told(census, f"/findings.json{query}")["total"] == number, query
    assert 0 < expected["?probability=90"] <= (frame["probability"] >= 0.9).sum()  # the least counts, not the mean
    assert 0 < expected["?level=Census+subdivision"] < frame.height
    tables = told(census, "/structure.json")["tables"]
    assert sum(told(census, f"/findings.json?table={table['at']}")["total"] for table in tables) == frame.height
    sizes = [told(census, f"/findings.json?area_size={quote(band)}")["total"] for band in AREA_SIZES]
    assert sum(sizes) <= frame.height
    assert max(sizes) < frame.height


def test_findings_come_the_most_sensitive_first_or_as_asked(census: TestClient, census_audit: Path) -> None:
    def listed(query: str) -> list[dict[str, Any]]:
        return [one for page in (1, 2, 3) for one in told(census, f"/findings.json?page={page}{query}")["findings"]]

    bands = ["1-2", "3-9", "10+", "0"]
    strength = [
        (
            ["proved", "conditional", "likely"].index(one["kind"]),
            bands.index(one["size"]),
            -round(1e4 * one["probability_low"]),
        )
        for one in listed("")
    ]
    assert strength == sorted(strength)
    assert len(set(strength)) > 20
    rows = {code: k for k, code in enumerate(pl.read_parquet(census_audit / "model" / "areas.parquet")["region"])}
    places = [rows[one["region"]] for one in listed("&sort=area")]
    assert places == sorted(places)
    least = [one["probability_low"] for one in listed("&sort=probability")]
    assert least == sorted(least, reverse=True)
    assert least[0] > least[-1]
    for sort, name in (("count", "value"), ("published", "published")):
        numbers = [one[name] if one[name] is not None else -1 for one in listed(f"&sort={sort}")]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "size=1-2",
        "size=1-2&size=3-9&kind=likely",
        "table=1&size=0",
        "q=years+men&size=0",
        "probability=90&route=weighed",
    ],
)
def test_facets_say_how_many_findings_each_choice_would_show(census: TestClient, query: str) -> None:
    """The number beside a choice is what the list shows when it is the only one chosen of its facet."""
    report = told(census, f"/findings.json?{query}")
    assert {"kind", "size", "table", "place", "level", "route", "area_size"} == set(report["facets"])
    compared = 0
    for facet, offered in report["facets"].items():
        others = "&".join(part for part in query.split("&") if part and not part.startswith(f"{facet}="))
        for one in offered[:5]:
            alone = told(census, f"/findings.json?{others}&{facet}={quote(one['key'])}")
            assert alone["total"] == one["number"], (facet, one)
            compared += one["number"] > 0
    assert compared > 5


def test_choices_of_one_facet_add_up_and_of_several_narrow_down(census: TestClient) -> None:
    sizes = {finding["key"]: finding["number"] for finding in told(census, "/findings.json")["facets"]["size"]}
    assert told(census, "/findings.json?size=1-2&size=0")["total"] == sizes["1-2"] + sizes["0"]
    both = told(census, "/findings.json?size=0&q=women")
    assert 0 < both["total"] < sizes["0"]
    assert all(finding["sex"] == "women" and finding["value"] == 0 for finding in both["findings"])


def test_zeros_are_folded_and_lead_to_their_list(census: TestClient) -> None:
    zeros = told(census, "/findings.json?size=0")["total"]
    page = census.get("/findings?size=1-2").text
    assert f"{zeros:,} zeros are folded away" in page
    assert 'href="/findings?size=0"' in page
    assert "folded away" not in census.get("/findings?size=0").text
    assert "folded away" not in census.get("/findings").text  # there they are
    assert 'href="/findings?size=1-2"' in census.get("/about").text  # where one begins


def test_a_row_is_a_sentence(census: TestClient) -> None:
    finding = told(census, "/findings.json?size=1-2&kind=likely")["findings"][0]
    text = re.sub(r"<[^>]+>|\s+", " ", census.get("/findings?size=1-2&kind=likely").text)
    said = re.sub(r"\s+", " ", text)
    sex = "" if finding["sex"] == "total" else f", {finding['sex']}"
    sure = (
        "almost certainly"
        if finding["probability_low"] >= 0.99
        else "very likely"
        if finding["probability_low"] >= 0.9
        else "probably"
    )
    assert re.search(
        rf"{re.escape(finding['label'] + sex)} ?, {re.escape(finding['name'])} ?: "
        rf"published {finding['published']}, {sure} {finding['value']}",
        said.replace(" ,", ","),
    )


def test_places_have_names(census: TestClient) -> None:
    area = told(census, "/area/10010001.json")["area"]
    above = told(census, "/areas.json?q=" + quote(area["within"].split(",")[0]))
    assert above["areas"]
    assert area["name"] == "Dissemination area 10010001"
    places = told(census, "/findings.json")["facets"]["place"]
    assert places
    assert all(not place["label"].isdigit() for place in places)


def test_places_come_from_the_columns_of_the_file() -> None:
    areas = pl.DataFrame(
        {
            "region": ["1", "2", "3"],
            "level": ["DA", "DA", ""],
            "csd": ["35", "36", ""],
            "cma": ["505", "505", "535"],
            "CMA_NAME": ["Ottawa", "Ottawa", None],
            "parent": ["35", "36", None],
        }
    )
    places = Places(areas, ["1", "2", "3"], ["", "Hill", ""])
    assert [places.title(row) for row in range(3)] == ["Dissemination area 1", "Hill", "3"]
    assert [places.around(row) for row in range(3)] == [
        "subdivision 35, Ottawa",
        "subdivision 36, Ottawa",
        "metropolitan area 535",
    ]
    grouping = places.grouping()
    assert grouping is not None
    assert (grouping.word, grouping.names, grouping.of.tolist()) == (
        "metropolitan area",
        ["Ottawa", "metropolitan area 535", "elsewhere"],
        [0, 0, 1],
    )
    unnamed = Places(areas.drop("CMA_NAME"), ["1", "2", "3"], ["", "", ""])
    assert unnamed.around(2) == "Toronto"  # as the classification has it, where the file has its code only
    assert Places(areas.select("region", "level"), ["1", "2", "3"], ["", "", ""]).grouping() is None


def test_searching_finds_characteristics_too(census: TestClient) -> None:
    report = told(census, "/areas.json?q=20+to+24")
    names = [characteristic["name"] for characteristic in report["characteristics"]]
    assert names == ["20 to 24 years"]
    assert report["characteristics"][0]["findings"] > 0
    listed = told(census, report["characteristics"][0]["address"].replace("?", ".json?"))
    assert listed["total"] == report["characteristics"][0]["findings"]
    assert {characteristic["label"] for characteristic in listed["findings"]} == {"20 to 24 years"}
    assert "20 to 24 years" in census.get("/areas?q=20+to+24").text


def test_areas_come_with_the_most_findings_first(census: TestClient, census_audit: Path) -> None:
    frame = pl.read_parquet(census_audit / "findings.parquet")
    weights = frame.group_by("region").agg(
        small=pl.col("value").is_between(1, 2).sum(), other=(pl.col("value") > 2).sum(), all=pl.len()
    )
    best = weights.sort("small", "other", "all", descending=True).row(0, named=True)
    first = told(census, "/areas.json")["areas"][0]
    assert (first["small"], first["findings"]) == (best["small"], best["all"])
    files = told(census, "/areas.json?sort=file")["areas"]
    assert [file["code"] for file in files] == pl.read_parquet(census_audit / "model" / "areas.parquet")["region"][
        :50
    ].to_list()
    assert census.get("/areas?sort=up").status_code == 400


def test_an_area_opens_at_its_findings(census: TestClient, census_audit: Path) -> None:
    frame = pl.read_parquet(census_audit / "findings.parquet")
    region = frame.filter(pl.col("value") > 0)["region"].value_counts(sort=True)["region"][0]
    rows = frame.filter(pl.col("region") == region)
    page = census.get(area_address(region)).text
    assert page.count('<li class="row') == rows.height
    assert page.index('<li class="row') < page.index("All counts of this area")
    assert '<details class="all-counts" id="counts">' in page  # folded
    assert '<details class="all-counts" id="counts" open>' in census.get(f"{area_address(region)}?table=0").text
    assert len(told(census, f"{area_address(region)}.json")["findings"]) == rows.height


def test_only_a_count_opens_beside_a_list(census: TestClient) -> None:
    finding = told(census, "/findings.json?size=0")["findings"][0]
    page = census.get(f"/findings?size=0&open={quote(finding['address'])}").text
    assert f'data-open="{finding["address"]}"' in page
    for address in ("https://elsewhere.example/", "//elsewhere.example", "javascript:alert(1)", "/try"):
        assert census.get(f"/findings?open={quote(address)}").status_code == 400


@pytest.mark.parametrize(
    "query",
    [
        "kind=sure",
        "probability=2x",
        "probability=101",
        "size=9",
        "level=Moon",
        "table=99",
        "table=-1",
        "sort=up",
        "line=9999",
        "line=x",
        "route=magic",
        "place=Atlantis",
    ],
)
def test_a_filter_that_means_nothing_is_refused(census: TestClient, query: str) -> None:
    answer = census.get(f"/findings?{query}")
    assert answer.status_code == 400
    assert "Findings" in answer.text
    assert "error" in census.get(f"/findings.json?{query}").json()


def test_export_is_what_is_on_the_screen(census: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = told(census, "/findings.json?kind=likely&page=2")["findings"]
    exported = list(csv.DictReader(io.StringIO(census.get("/findings.csv?kind=likely&page=2").text)))
    assert [(line["region"], line["key"], str(line["value"])) for line in shown] == [
        (line["region"], line["key"], line["value"]) for line in exported
    ]
    everything = list(csv.DictReader(io.StringIO(census.get("/findings.csv?kind=likely&all=1").text)))
    assert len(everything) == told(census, "/findings.json?kind=likely")["total"] > len(exported)
    assert len(told(census, "/findings.json?all=1")["findings"]) == 50
    monkeypatch.setattr(lists, "MOST_EXPORTED", 60)
    assert "findings.csv from the folder" in census.get("/findings.csv?all=1").text
    assert "all=1" not in census.get("/findings?page=3").text
    answer = census.get("/area/10010001.csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="area-10010001.csv"'
    assert census.get("/try.csv").status_code == 404


def test_no_export_runs_in_a_spreadsheet(hostile: TestClient) -> None:
    rows = list(csv.DictReader(io.StringIO(hostile.get(f"/findings.csv?area={quote('HYPERLINK')}").text)))
    assert rows
    assert all(line["district"] == f"'{FORMULA}" for line in rows)
    for path in (f"{area_address(FORMULA)}.csv", "/areas.csv", "/findings.csv?all=1"):
        table = csv.reader(io.StringIO(hostile.get(path).text))
        assert not any(field.startswith(("=", "+", "-", "@", "\t", "\r")) for row in table for field in row)


# -- hostile names and visitors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page", [*PAGES, area_address(IMAGE), f"/areas?q={quote(IMAGE)}", f"/{quote(IMAGE)}", "/findings?area=img"]
)
def test_names_from_files_and_addresses_are_escaped(hostile: TestClient, page: str) -> None:
    text = hostile.get(page).text
    assert "<img" not in text
    assert "<b>80" not in text
    assert "<script src=" in text
    assert text.count("<script") == 1
    assert " style=" not in text
    assert not re.search(r"\son\w+=", text.replace("onerror=alert(1)", ""))


def test_hostile_names_are_shown(hostile: TestClient) -> None:
    assert "&lt;img src=x onerror=alert(1)&gt;" in hostile.get(area_address(IMAGE)).text
    assert told(hostile, f"{area_address(IMAGE)}.json")["area"]["district"] == IMAGE
    assert told(hostile, f"{area_address(SLASHED)}.json")["area"]["district"] == SLASHED


@pytest.mark.parametrize("path", ["/", "/index.json", "/findings.csv", "/static/unround.css", "/nothing", "/area/none.json"])
def test_every_answer_is_guarded(hostile: TestClient, path: str) -> None:
    headers = hostile.get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "frame-ancestors 'none'" in POLICY
    assert "unsafe" not in POLICY
    assert "server" not in headers


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:8765", 200),
        ("localhost:1234", 200),
        ("LOCALHOST", 200),
        ("[::1]:8765", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:8765", 421),
        ("127.0.0.1@evil.example", 421),
        ("evil.example@127.0.0.1", 421),
        ("192.168.0.7", 421),
        ("[::1", 421),
        *((f"127.0.0.1{more}", 421) for more in ("#evil", "/evil", "?x", ":80:80", ":", " ", "\\")),
        ("localhost:abc", 421),
        ("", 421),
    ],
)
def test_only_its_own_names_are_answered(hostile: TestClient, host: str, status: int) -> None:
    answer = hostile.get("/about.json", headers={"host": host})
    assert answer.status_code == status
    assert answer.headers["content-security-policy"] == POLICY


@pytest.mark.parametrize("header", ["origin", "referer"])
def test_old_browsers_that_name_another_page_are_told_apart_too(hostile: TestClient, header: str) -> None:
    """They send no Sec-Fetch-Site."""
    theirs = (
        "https://evil.example",
        "null",
        f"{HERE}.evil.example/",
        f"{HERE}:1/",
        "http://evil.example/?http://localhost/",
    )
    for page in theirs:
        assert hostile.get("/try", headers={header: page}).status_code == 403, page
    assert hostile.get("/try", headers={header: HERE}).status_code == 200
    assert hostile.get("/try", headers={header: f"{HERE}/area/1"}).status_code == 200


def test_listening_everywhere_answers_numbers_but_no_strange_names(hostile_audit: Path) -> None:
    asked = TestClient(explorer_app(hostile_audit, hosts_for("0.0.0.0")), base_url=HERE)
    assert asked.get("/about.json", headers={"host": "192.168.0.7:8765"}).status_code == 200
    assert asked.get("/about.json", headers={"host": "evil.example"}).status_code == 421
    named = TestClient(explorer_app(hostile_audit, hosts_for("Server.Example")), base_url=HERE)
    assert named.get("/about.json", headers={"host": "server.example:8765"}).status_code == 200
    assert named.get("/about.json", headers={"host": "192.168.0.7"}).status_code == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_can_be_written(hostile: TestClient, method: str) -> None:
    answer = hostile.request(method, "/try", content=b"x" * 10)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2Fapp.py",
        "/static/%2Fetc%2Fpasswd",
        "/summary.json",
        "/model/model.json",
        "/area/..%2F..%2Fsummary.json",
        "/area/~2E~2E~2Fsummary.json",
        "/structure/..%2Fsummary.json",
        "/structure/1e3",
        "/area/D01/nothing",
        "/area/nobody",
        "/%00",
        "/try/",
    ],
)
def test_what_is_not_there_is_not_found(hostile: TestClient, path: str) -> None:
    answer = hostile.get(path)
    assert answer.status_code == 404
    assert "Traceback" not in answer.text
    assert "root:" not in answer.text
    if not path.endswith(".json"):
        assert 'href="/"' in answer.text  # a way back


def test_a_fault_is_told_without_its_inside(hostile: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret inside")

    monkeypatch.setattr(Explorer, "look", broken)
    for path in ("/area/D01?unseen=1", "/area/D01.json?unseen=1"):  # pages that were shown before are remembered
        answer = hostile.get(path)
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert "Traceback" not in answer.text
        assert "Nothing can be concluded from its absence" in answer.text
        assert answer.headers["content-security-policy"] == POLICY


def test_another_audit_in_its_place_is_noticed(hostile_audit: Path, census_audit: Path, tmp_path: Path) -> None:
    place = tmp_path / "audit"
    shutil.copytree(hostile_audit, place)
    asked = TestClient(explorer_app(place, hosts_for("127.0.0.1")), base_url=HERE)
    assert told(asked, "/areas.json")["total"] == 40
    (place / "summary.json").unlink()
    gone = asked.get("/areas")
    assert gone.status_code == 400
    assert "is being written anew" in gone.text
    shutil.rmtree(place)
    shutil.copytree(census_audit, place)
    assert told(asked, "/areas.json")["total"] == 120


# -- try it -----------------------------------------------------------------------------------------------------------


def test_a_typed_system_is_solved_as_by_solve(hostile: TestClient) -> None:
    text = "87! = men: 35 + women: 45"
    expected = solve(parse(text)).to_json()
    assert told(hostile, f"/try.json?system={quote(text)}") == json.loads(json.dumps(expected))
    page = hostile.get(f"/try?system={quote(text)}").text
    assert page.count("<svg") == 2
    assert "2 solutions." in page
    assert "16" in hostile.get(f"/try?system={quote('6 = 6 + 6')}&mechanism=rounding:3").text
    assert "No true counts fit" in hostile.get(f"/try?system={quote('60! = 20 + 20')}").text


def test_estimated_probabilities_are_shown_with_their_standard_errors() -> None:
    solved = solve(parse("87! = men: 35 + women: 45"))
    assert "standard error" not in html(document(solved).parts)
    cells = tuple(
        replace(cell, error=0.0042) if at == 1 else cell for at, cell in enumerate(solved.cells)
    )  # as if estimated
    page = html(document(replace(solved, cells=cells)).parts)
    assert "50.0% ± 0.4<" in page
    assert page.count("±") == 2
    assert "the standard error of a probability that was estimated, in points" in page


def test_a_typed_error_is_an_answer(hostile: TestClient) -> None:
    page = hostile.get(f"/try?system={quote('48! =')}")
    assert page.status_code == 200
    assert "line 1, column" in page.text
    twin = hostile.get(f"/try.json?system={quote('48! =')}")
    assert twin.status_code == 422
    assert "column" in twin.json()["error"]
    assert hostile.get("/try?mechanism=transition:/etc/passwd").status_code == 400


def test_typed_systems_have_limits(hostile: TestClient, tmp_path: Path) -> None:
    long = hostile.get(f"/try.json?system={quote('1 = ' + '1 + ' * LONGEST)}")
    assert f"{LONGEST:,} characters" in long.json()["error"]
    wide = hostile.get(f"/try.json?system={quote('500! = ' + ' + '.join(['5'] * MOST_CELLS))}")
    assert f"{MOST_CELLS} cells" in wide.json()["error"]
    table = tmp_path / "table.csv"
    table.write_text("i,v,p\n0,0,1\n", encoding="utf-8")
    for name in ("transition", "TRANSITION", "suppressed:1..7,transition"):
        answer = hostile.get(f"/try.json?system={quote(f'20 = 10 @{name}:{table} + 10')}")
        assert "does not read" in answer.json()["error"]


def test_a_system_that_takes_too_long_is_ended_and_the_next_is_solved() -> None:
    bench = Bench(seconds=0.2)
    try:
        bench._start()
        bench._worker._process.send_signal(signal.SIGSTOP)  # a system that would take for ever
        assert "takes longer than the 0.2 seconds" in bench.solve("48! = 20 + 20 + 20", "rounding:5")["error"]
        bench.seconds = 600
        assert bench.solve("48! = 20 + 20 + 20", "rounding:5")["solution"]["solutions"] == 1
        worker = bench._worker._process
        worker.kill()
        worker.wait()
        assert bench.solve("48! = 20 + 20 + 20", "rounding:5")["solution"]["solutions"] == 1
    finally:
        bench.close()
    assert worker.poll() is not None


def test_a_solver_that_does_not_start_in_time_is_said_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    try:
        monkeypatch.setattr(trial, "STARTING", 0.001)
        assert "did not start in time" in bench.solve("48! = 20 + 20 + 20", "rounding:5")["error"]
        monkeypatch.setattr(trial, "STARTING", 180.0)
        assert bench.solve("48! = 20 + 20 + 20", "rounding:5")["solution"]["solutions"] == 1
    finally:
        bench.close()


# -- pieces -----------------------------------------------------------------------------------------------------------


@given(st.text(max_size=30))
def test_any_code_has_an_address(text: str) -> None:
    path = segment(text)
    assert re.fullmatch(r"[A-Za-z0-9_+,:~-]+", path)
    assert meant(path) == text
    assert key_meant(cell_address("x", text).removeprefix("/area/x/")) == text


def test_without_indentation_the_sums_tell_what_stands_under_what(tmp_path: Path) -> None:
    from unround import simulate
    from unround.job import audit
    from unround.tables import read

    file = simulate(tmp_path / "census", areas=80, seed=3, format="censusmapper").files[0]
    outline = Explorer(audit(read(file), tmp_path / "audit")).outline
    lines = {line.label: line for table in outline.tables for line in table.lines}
    levels = {line.level for line in lines.values()}
    assert levels >= {0, 1}
    at = {line.at: line for line in lines.values()}
    under = [at[line.parent].label for line in lines.values() if line.label == "0 to 4 years" and line.parent is not None]
    assert under == ["0 to 14 years"]


def test_histograms_are_drawn_to_scale_and_told_in_words() -> None:
    drawn = str(histogram([(11, 0.25), (12, 0.75)], name="<a>", kind="likely", published=15))
    heights = {float(tall) for tall in re.findall(r'<rect class="bar[^>]*height="([\d.]+)"', drawn)}
    assert max(heights) / min(heights) == pytest.approx(3, rel=0.01)
    assert drawn.count('class="bar likely best"') == 1
    assert "12 with 75.0%" in drawn
    assert "15 was published" in drawn
    assert "<a>" not in drawn
    wide = str(histogram([(k, 1 / 500) for k in range(500)], name="a", kind="open", published=None))
    assert wide.count("<rect") == 250  # two counts share a bar
    huge = str(histogram([(k, 1e-5) for k in range(100_000)], name="a", kind="open", published=70))
    assert len(huge) < 80_000
    assert huge.count(">published<") == 1


# -- the command line -------------------------------------------------------------------------------------------------


def test_one_view_without_a_server(run: Run, hostile_audit: Path) -> None:
    ran = run("serve", str(hostile_audit), "--get", "/findings.json?kind=proved")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["filter"] == {"kind": ["proved"]}
    assert run("serve", str(hostile_audit), "--get", "/area/D01").out.startswith("<!doctype html>")
    missing = run("serve", str(hostile_audit), "--get", "/area/nobody.json")
    assert missing.code == 2
    assert "there is no area" in json.loads(missing.out)["error"].lower()
    assert "starts with a slash" in run("serve", str(hostile_audit), "--get", "findings").err


def test_serving_refuses_what_cannot_be_served(run: Run, hostile_audit: Path, tmp_path: Path) -> None:
    assert "contains no finished audit" in run("serve", str(tmp_path)).err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = run("serve", str(hostile_audit), "--port", str(port))
    assert ran.code == 2
    assert f"port {port} is taken" in ran.err
    assert "--port" in ran.err
    nowhere = run("serve", str(hostile_audit), "--host", "203.0.113.1")
    assert nowhere.code == 2
    assert "cannot listen on 203.0.113.1" in nowhere.err
    assert "this is not an address" in run("serve", str(hostile_audit), "--host", "a" * 3_000).err


def test_it_serves_until_interrupted_and_ends_quietly(hostile_audit: Path) -> None:
    import http.client

    command = [sys.executable, "-m", "unround", "serve", str(hostile_audit), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        said = server.stdout.readline()
        match = re.search(r"http://127\.0\.0\.1:(\d+)/", said)
        assert match is not None, said
        asked = http.client.HTTPConnection("127.0.0.1", int(match[1]), timeout=600)
        asked.request("GET", "/about.json")
        answer = asked.getresponse()
        assert answer.status == 200
        assert json.loads(answer.read())["unround"]
        assert answer.getheader("server") is None
        asked.close()
        server.send_signal(signal.SIGINT)
        assert server.communicate(timeout=600) == ("", "")
        assert server.returncode == 0


def test_threads_that_make_what_others_need_do_not_wait_for_each_other() -> None:
    """Two properties, each of which takes the other's parts, asked for at the same moment by many threads."""
    import threading
    from concurrent.futures import ThreadPoolExecutor

    from unround.web.explorer import once

    class Made:
        def __init__(self) -> None:
            self._lock = threading.RLock()
            self.times = 0

        @once
        def parts(self) -> int:
            time.sleep(0.001)
            self.times += 1
            return 1

        @once
        def one(self) -> int:
            with self._lock:
                return self.parts + 1

        @once
        def other(self) -> int:
            return self.parts + 2

        def work(self) -> int:
            with self._lock:
                return self.other

    for _ in range(50):
        made = Made()
        start = threading.Barrier(3)

        def ask(what: int, made: Made = made, start: threading.Barrier = start) -> int:
            start.wait()
            return (made.work(), made.one, made.other)[what]

        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(ask, range(3), timeout=600))
        assert found == [3, 2, 3]
        assert made.times == 1
