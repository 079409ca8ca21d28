"""report.html and report-public.html: what they show, what they must not, and that they need nothing but themselves."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest

import unround
from tests.conftest import Run
from unround.errors import InputError
from unround.job import AuditFolder, audit
from unround.job.folder import OURS, Damaged, seal
from unround.options import AuditOptions
from unround.score.summary import AREA_SIZES, CLAIMS
from unround.show import charts
from unround.show.audit import example, footing, headline, picture, to_quote, verdict
from unround.show.charts import Share, squares, waffle
from unround.show.palette import PALETTE, tokens
from unround.show.parts import Bullets, Text
from unround.show.report import MOST_BLOCKS, MOST_CLASHES, MOST_ZEROS, page, write_pages
from unround.show.strongest import MOST, sentences, strongest
from unround.show.words import NOTICE, notice
from unround.tables import read
from unround.tables.frames import from_frame

BULK = "98-401-X2021006_English_CSV_data.csv"
SURVEY = Path(__file__).parents[1] / "examples" / "survey.toml"
HOSTILE = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>"
LARGEST = 3_000_000
VOID = {"meta", "br", "img", "link", "hr", "input"}


@pytest.fixture
def census(audited_census: Path) -> AuditFolder:
    """The audit of a simulated census of 600 areas, scored against the truth, with its pages."""
    return AuditFolder.open(audited_census)


@pytest.fixture
def survey(survey_audit: Path) -> AuditFolder:
    return AuditFolder.open(survey_audit)


def copied(folder: AuditFolder, to: Path, **changes: Any) -> AuditFolder:
    """Return a copy of an audit with another summary."""
    shutil.copytree(folder.path, to)
    summary = {**folder.summary, **changes}
    (to / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    seal(to, OURS)
    return AuditFolder.open(to)


def texts(folder: AuditFolder) -> tuple[str, str]:
    return tuple((folder.path / name).read_text(encoding="utf-8") for name in ("report.html", "report-public.html"))  # type: ignore[return-value]


class Outline(HTMLParser):
    """Reads a page: every element is closed in its turn; keeps text, elements and headings."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.headings: list[tuple[int, str]] = []
        self.said: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.said.append(data)
        if self.open and re.fullmatch("h[1-6]", self.open[-1]):
            level, before = self.headings[-1]
            self.headings[-1] = (level, before + data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.said).split())

    def all(self, tag: str) -> Iterator[dict[str, str]]:
        return (attributes for name, attributes in self.elements if name == tag)


# -- what is shown ----------------------------------------------------------------------------------------------------


def test_the_sections_come_in_order(census: AuditFolder) -> None:
    full, public = map(Outline, texts(census))
    wanted = [
        headline(census.summary),
        "Findings by table, compared with chance",
        "Where the risk is",
        "The strongest findings, with their arithmetic",
        "Faults in the data",
        "Compared with the truth",
        "Assumptions, and whether the data support them",
        "Self-check: published counts predicted from the others",
        "Areas within areas",
        "Method, and responsible use",
    ]
    assert [name for level, name in full.headings if level == 2] == wanted
    assert [name for level, name in public.headings if level == 2] == [name for name in wanted if "strongest" not in name]
    for outline in (full, public):
        levels = [level for level, _ in outline.headings]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels)), levels


def test_the_numbers_are_those_of_the_summary(census: AuditFolder) -> None:
    summary = census.summary
    assert summary["likely"] > 50
    for outline in map(Outline, texts(census)):
        for name in CLAIMS:
            assert f"{summary[name]:,} {name}" in outline.text
        assert " ".join(verdict(summary)) in outline.text
        assert summary["prior_in_words"] in outline.text
        for size, numbers in summary["by_area_size"].items():
            if numbers["areas"]:
                assert f"{size.replace('-', '–')} {numbers['areas']:,} " in outline.text
        assert f"likely {summary['truth']['checked']['likely']:,} {summary['truth']['wrong']['likely']:,}" in outline.text
        assert "unround 0" in outline.text


def test_claims_by_size_of_area_add_up(census: AuditFolder, survey: AuditFolder) -> None:
    for folder in (census, survey):
        summary, sizes = folder.summary, folder.summary["by_area_size"]
        assert list(sizes) == [name for _, name in AREA_SIZES]
        assert sum(row["areas"] for row in sizes.values()) == summary["areas"] - summary["areas_hidden"]
        assert sum(row["cells_published"] for row in sizes.values()) == summary["cells_published"]
        for kind in CLAIMS:
            assert sum(row[kind] for row in sizes.values()) == summary[kind]
    small = pl.read_parquet(survey.path / "model" / "published.parquet")["counts"].to_numpy().max(axis=1)
    assert survey.summary["by_area_size"]["100-499"]["areas"] == ((small >= 100) & (small < 500)).sum() > 0


def test_chance_by_table_adds_up_to_chance(census: AuditFolder) -> None:
    summary = census.summary
    for what in ("groups", "proved", "proved_expected", "strong", "strong_expected"):
        by_kind = sum(part[what] for part in summary["chance"])
        assert sum(part[what] for part in summary["chance_by_block"].values()) == pytest.approx(by_kind)
    assert set(summary["by_block"]) <= set(summary["chance_by_block"])


def test_the_strongest_findings_come_with_their_arithmetic(survey: AuditFolder) -> None:
    text = Outline(texts(survey)[0]).text
    proved = strongest(survey, "proved")
    groups = pl.read_parquet(survey.path / "findings.parquet").filter(kind="proved").select("district", "route").unique()
    assert len(proved) == min(MOST["proved"], groups.height) > 3
    for card in proved:
        assert card.cells[0][0] == "A"
        assert card.steps[-1] == f"So A = {card.finding['value']}."
        assert card.sums
        for step in card.steps:
            assert step in text
    values = [card.finding["value"] for card in proved]
    assert values == sorted(values, key=lambda value: (value == 0, value > 2, value > 9))
    likely = strongest(survey, "likely")
    assert len(likely) == MOST["likely"]
    for card in likely:
        assert dict(card.distribution)[card.finding["value"]] == pytest.approx(card.finding["probability"], abs=1e-6)
        assert card.growth[-1][1] == pytest.approx(card.finding["probability"], abs=1e-6)
        assert f"How probable {card.finding['value']:,} becomes" in text


def test_one_finding_stands_for_those_from_the_same_sums(survey: AuditFolder) -> None:
    shown = [(card.code, card.finding["route"]) for card in strongest(survey, "proved")]
    assert len(set(shown)) == len(shown)


def test_a_finding_without_its_certificate_is_not_shown_as_proved(survey: AuditFolder, tmp_path: Path) -> None:
    folder = copied(survey, tmp_path / "audit")
    folder.put({"proofs.jsonl.gz": ""})
    with pytest.raises(Damaged, match=r"proofs\.jsonl\.gz has no certificate"):
        page(folder)


def test_contradictions_are_listed_up_to_a_number_and_then_counted(survey: AuditFolder, tmp_path: Path) -> None:
    many = MOST_CLASHES + 15
    folder = copied(survey, tmp_path / "audit", contradictions=many, contradictions_by_kind={"sum": many})
    lines = [f"D{k:02},sum,a = b + c,a; b; c,clash number {k}." for k in range(many)]
    folder.put({"contradictions.csv": "\n".join(["district,kind,sums,cells,clash", *lines])})
    text = Outline(page(folder)).text
    assert f"clash number {MOST_CLASHES - 1}." in text
    assert f"clash number {MOST_CLASHES}." not in text
    assert f"{many} sums that cannot hold" in text
    assert "15 more; contradictions.csv has them all" in text
    public = Outline(page(folder, public=True)).text
    assert "clash number" not in public
    assert f"{many} sums that cannot hold" in public


def test_canadian_releases_carry_their_notice(survey: AuditFolder, tmp_path: Path) -> None:
    product = "Statistics Canada, 2021 Census of Population, Census Profile"
    folder = copied(survey, tmp_path / "audit", product=product)
    for public in (False, True):
        assert NOTICE.format(product=product) in Outline(page(folder, public=public)).text
    assert "they are not official counts" in Outline(texts(survey)[1]).text


def test_nothing_found_is_not_called_safe(survey: AuditFolder, tmp_path: Path) -> None:
    none = {"proved": 0, "conditional": 0, "likely": 0}
    folder = copied(
        survey,
        tmp_path / "audit",
        **none,
        by_block={},
        by_route={},
        by_area_size={name: {**row, **none} for name, row in survey.summary["by_area_size"].items()},
        sensitive_claims={"by_value": dict.fromkeys(("0", "1-2", "3-9", "10+"), none), "zeros_proved": 0}
        | {"parts_proved_to_be_their_total": 0},
    )
    text = Outline(page(folder)).text
    assert "no count can be proved, and none can be inferred at 66% or more" in text
    assert "does not say what other knowledge would reveal" in text
    assert "not therefore safe" in text
    for denied in ("not therefore safe", "does not make the count safe", "does not make them safe", "no sign of safety"):
        text = text.replace(denied, "")
    assert "safe" not in text


def test_a_failed_assumption_is_an_alarm(census: AuditFolder, tmp_path: Path) -> None:
    wrong = {"region": "R-SECRET", "cell": "8", "value": 3, "true": 4}
    score = census.summary["truth"] | {"assumption_failed": "a documented fact does not hold", "proved_wrong": [wrong]}
    folder = copied(census, tmp_path / "audit", truth=score)
    assert "An assumption failed: a documented fact does not hold" in Outline(page(folder)).text
    assert "R-SECRET" in page(folder)
    assert "An assumption failed" in page(folder, public=True)
    assert "R-SECRET" not in page(folder, public=True)


def test_an_audit_that_was_not_checked_says_so(survey: AuditFolder, tmp_path: Path) -> None:
    folder = copied(survey, tmp_path / "audit", check=None)
    assert "Not checked: the sums were verified one by one, but" in Outline(page(folder)).text


@pytest.mark.parametrize(
    ("worst", "said", "alarm"),
    [
        ("fits", "The data fit the declared mechanism: 2 of 2 families of sums and counts fit", False),
        ("departs", "The data depart from the declared mechanism: 1 of 2 families of sums and counts fits", True),
        ("contradicts", "The data contradict the declared mechanism: 1 of 2 families of sums and counts fits", True),
        ("untested", "Not tested: there are too few sums to say whether the data fit the declared mechanism", False),
    ],
)
def test_the_check_is_shown(survey: AuditFolder, tmp_path: Path, worst: str, said: str, alarm: bool) -> None:
    usual = survey.summary["check"]
    families = [
        {**usual["families"][0], "family": f"family {k}", "verdict": verdict, "note": f"as in D0{k}"}
        for k, verdict in enumerate(["fits", worst])
    ]
    untested = [{"family": "x", "sums": 1, "note": ""}]
    changed = {"verdict": worst, "families": families if worst != "untested" else [], "untested": untested}
    folder = copied(survey, tmp_path / "audit", check=usual | changed)
    full, public = page(folder), page(folder, public=True)
    assert said in Outline(full).text
    assert said in Outline(public).text
    assert ('<dd><p class="alarm">' in full) == alarm == ("family 1 (" in full)
    assert ("as in D01" in full) == alarm
    assert "as in D0" not in public


@pytest.mark.parametrize(
    ("proved", "conditional", "likely", "small", "zero", "said"),
    [
        (1, 0, 0, 1, 0, "1 count can be proved and none more can be inferred at 66% or more. It is a count of one or two."),
        (
            0,
            4,
            7,
            0,
            1,
            "no count can be proved outright, 4 can be proved given an assumption the agency does not",
        ),
        (0, 4, 7, 0, 1, "None of these 11 is a count of one or two, and 1 is a zero."),
        (2, 3, 7, 1, 0, "2 counts can be proved, 3 more can be proved given an assumption"),
        (2, 3, 7, 1, 0, "and 7 more can be inferred at 66% or more."),
        (2, 3, 7, 1, 0, "1 of these 12 is a count of one or two, and none is a zero."),
    ],
)
def test_the_verdict_in_two_sentences(proved: int, conditional: int, likely: int, small: int, zero: int, said: str) -> None:
    by_value = {"1-2": {"likely": small}, "0": {"likely": zero}}
    summary = {
        "areas": 40,
        "cells_published": 880,
        "threshold": 0.66,
        "proved": proved,
        "conditional": conditional,
        "likely": likely,
        "sensitive_claims": {"by_value": by_value},
    }
    first, second = verdict(summary)
    assert said in f"{first} {second}"
    assert first.startswith("From 880 published counts in 40 areas, ")
    assert first.endswith(".")


# -- what the public page must not show -------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["census", "survey"])
def test_the_public_page_names_no_area(which: str, request: pytest.FixtureRequest) -> None:
    folder: AuditFolder = request.getfixturevalue(which)
    full, public = texts(folder)
    axis = folder.area_axes[0]
    codes = set(pl.read_parquet(folder.path / "findings.parquet")[axis])
    assert any(code in full for code in codes)
    names = codes.union(folder.areas.get_column("region_name", default=pl.Series(dtype=pl.String)))
    assert not [name for name in names if name and re.search(rf"\b{re.escape(name)}\b", public)]
    assert not re.search(r"\bSo A = |most likely|must be\b|class=\"card", public)


def test_the_public_page_does_not_depend_on_any_single_finding(census: AuditFolder, tmp_path: Path) -> None:
    """It is the same to the last sign when all findings, proofs, areas and contradictions are others, or gone."""
    folder = copied(census, tmp_path / "audit")
    before = page(folder, public=True)
    assert before == texts(census)[1]
    for name in ("findings.parquet", "findings.csv", "proofs.jsonl.gz", "contradictions.csv"):
        (folder.path / name).unlink()
    (folder.path / "model" / "areas.parquet").unlink()
    (folder.path / "model" / "published.parquet").unlink()
    assert page(folder, public=True) == before


def test_the_public_page_leaves_out_notes_and_the_command(survey: AuditFolder, tmp_path: Path) -> None:
    changes = {
        "notes": ["D07 is not the same in all rows"],
        "command": "unround audit /home/me/x.csv",
        "source": "/home/me/x.csv",
    }
    folder = copied(survey, tmp_path / "audit", **changes)
    full, public = page(folder), page(folder, public=True)
    for said in ("D07 is not the same", "/home/me"):
        assert said in full
        assert said not in public
    assert "x.csv" in public


def test_of_few_areas_the_public_page_does_not_tell_the_counts(survey: AuditFolder, tmp_path: Path) -> None:
    folder = copied(survey, tmp_path / "audit", areas=3)
    assert "Inferred count" in page(folder)
    public = Outline(page(folder, public=True)).text
    assert "Inferred count" not in public
    assert "With so few areas" in public


# -- hostile names, large releases ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> AuditFolder:
    """An audit of a table whose areas, characteristics and tables are called like scripts, and some of them very long."""
    cells = [(f"{HOSTILE}{k}" if k < 3 else f"{k}{'=very long' * 20_000}") for k in range(8)]
    rows = []
    for k, area in enumerate(cells):
        men, women = 3 * (k + 1), 3 * (k + 2)
        rows += [(area, HOSTILE, "total", men + women + (6 if k % 2 else 0)), (area, HOSTILE, "men", men)]
        rows += [(area, HOSTILE, "women", women)]
    frame = pl.DataFrame(rows, schema=["region", "thing", "sex", "n"], orient="row")
    sums = [{"total": "total", "parts": ["men", "women"]}]
    release = from_frame(
        frame,
        value="n",
        axes={"region": {}, "thing": {}, "sex": {"sums": sums}},
        default="rounding:3",
        product=HOSTILE,
    )
    return unround.audit(release, tmp_path_factory.mktemp("hostile") / "audit", command=HOSTILE)


def test_names_from_files_are_text(hostile: AuditFolder) -> None:
    assert hostile.summary["proved"] >= 3
    for text in texts(hostile):
        outline = Outline(text)
        assert HOSTILE in outline.text
        tags = {name for name, _ in outline.elements}
        assert not tags & {"img", "script", "iframe", "object", "link"}
        assert not [name for _, attributes in outline.elements for name in attributes if name.startswith("on")]
        assert "<script" not in text
        assert "<img" not in text


def test_a_page_stays_small_whatever_the_names(hostile: AuditFolder, census: AuditFolder, survey: AuditFolder) -> None:
    for folder in (hostile, census, survey):
        for text in texts(folder):
            assert 20_000 < len(text.encode()) < LARGEST
    assert max(len(text) for text in texts(hostile)) < 300_000


def test_a_page_stays_small_whatever_the_summary(survey: AuditFolder, tmp_path: Path) -> None:
    claims = {"proved": 5, "conditional": 1, "likely": 9}
    folder = copied(
        survey,
        tmp_path / "audit",
        by_block={f"table {k} {'x' * 5000}": claims for k in range(3000)},
        by_route={f"route {k}": claims for k in range(3000)},
        chance=[{**survey.summary["chance"][0], "parts": k + 2, "groups": k + 1} for k in range(3000)],
        notes=["y" * 100_000] * 500,
        mechanisms={f"rounding:{k}": "z" * 3000 for k in range(500)},
    )
    text = page(folder)
    assert len(text) < 300_000
    assert f"{3000 - MOST_BLOCKS:,} more tables" in Outline(text).text


# -- the page as a document -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["census", "survey", "hostile"])
def test_a_page_needs_nothing_but_itself(which: str, request: pytest.FixtureRequest) -> None:
    for text in texts(request.getfixturevalue(which)):
        outline = Outline(text)
        for tag, attributes in outline.elements:
            assert tag not in ("script", "link", "iframe", "img", "object", "embed", "form", "base")
            for name in ("src", "href", "xlink:href", "srcset", "data", "action", "poster"):
                assert attributes.get(name, "#").startswith("#"), (tag, attributes)
        assert not re.search(r"@import|url\(", text)
        addresses = set(re.findall(r"https?://[^\"' ]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
        (policy,) = [one["content"] for one in outline.all("meta") if one.get("http-equiv") == "Content-Security-Policy"]
        assert "default-src 'none'" in policy


@pytest.mark.parametrize("which", ["census", "survey"])
def test_a_page_can_be_read_without_seeing_it(which: str, request: pytest.FixtureRequest) -> None:
    for text in texts(request.getfixturevalue(which)):
        outline = Outline(text)
        assert text.startswith("<!doctype html>")
        assert [drawing["lang"] for drawing in outline.all("html")] == ["en"]
        assert text.partition("<body")[0].count("<title>") == 1  # charts have titles too
        for landmark in ("header", "nav", "main", "footer"):
            assert len(list(outline.all(landmark))) == 1, landmark
        ids = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
        assert len(set(ids)) == len(ids)
        for link in outline.all("a"):
            assert link["href"][1:] in ids
        for section in outline.all("section"):
            assert section["aria-labelledby"] in ids
        assert all(drawing.get("scope") in ("col", "row", "colgroup") for drawing in outline.all("th"))
        # A drawing is told in words, or is a bar next to its number, which says the same.
        hidden = [drawing for drawing in outline.all("svg") if drawing.get("aria-hidden") == "true"]
        labels = [drawing["aria-label"] for drawing in outline.all("svg") if drawing.get("role") == "img"]
        assert len(labels) + len(hidden) == len(list(outline.all("svg")))
        assert len(labels) >= 2
        assert all(len(words) > 30 for words in labels)
        assert {drawing["class"] for drawing in hidden} <= {"chart strip"}


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1])
def test_colours_stand_out(scheme: int) -> None:
    """As the palette promises: text by 4.5 to 1, bars by 3 to 1, and bars get lighter (on dark pages: darker) with doubt."""

    def contrast(name: str, ground: str) -> float:
        bright, dark = sorted((luminance(PALETTE[one][scheme]) for one in (name, ground)), reverse=True)
        return (bright + 0.05) / (dark + 0.05)

    needed = {(text, ground): 4.5 for text in ("ink", "soft", "link") for ground in ("paper", "card", "tint")}
    needed |= {("warn", "paper"): 4.5, ("warn", "warn-tint"): 4.5, ("ink", "here"): 4.5}
    for kind in (*CLAIMS, "open", "given"):
        needed |= {(kind, "paper"): 4.5, (kind, f"{kind}-tint"): 4.5, (f"{kind}-bar", "paper"): 3.0}
    needed |= {(f"series-{number}", "paper"): 3.0 for number in range(1, 6)}
    low = {pair: round(contrast(*pair), 2) for pair, least in needed.items() if contrast(*pair) < least}
    assert not low
    bars = [contrast(f"{kind}-bar", "paper") for kind in (*CLAIMS, "open")]
    assert bars[:3] == sorted(bars[:3], reverse=scheme == 0)


def test_green_never_means_a_leak() -> None:
    """Nor is any claim of a colour that two kinds share."""
    for name, pair in PALETTE.items():
        for colour in pair:
            red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
            assert not (green > red + 12 and green > blue + 12), name
    assert len({PALETTE[kind] for kind in (*CLAIMS, "open")}) == 4


def test_charts_follow_the_readers_scheme(survey: AuditFolder) -> None:
    """Charts name no colour of their own: classes have the tokens of the page, which come in light and in dark."""
    static = Path(charts.__file__).parent / "static"
    text = texts(survey)[0]
    css = "".join((static / name).read_text(encoding="utf-8") for name in ("charts.css", "style.css"))
    assert str(tokens()) in text
    assert "prefers-color-scheme:dark" in tokens()
    assert set(re.findall(r"var\(--([\w-]+)\)", css)) <= PALETTE.keys()
    styled = set(re.findall(r"\.([a-z][\w-]*)", css))
    drawn = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(drawn) > 3
    for svg in drawn:
        assert not re.search(r"(?:fill|stroke)=\"#|style=", svg)
        used = {name for names in re.findall(r'class="([^"]+)"', svg) for name in names.split()}
        assert used - {"bar", "best"} <= styled, used - styled


# -- the charts -------------------------------------------------------------------------------------------------------


def bars(svg: str) -> list[tuple[str, float, float]]:
    """Return the bars of a chart: kind, width and height."""
    return [
        (kind, float(wide), float(tall))
        for kind, wide, tall in re.findall(r'<rect class="bar ([^"]+)" [^>]*?width="([\d.]+)" height="([\d.]+)"', svg)
    ]


def test_charts_are_valid_and_as_large_as_they_say() -> None:
    rows = {"0": {"proved": 1, "conditional": 0, "likely": 5}, "1–2": {"proved": 0, "conditional": 0, "likely": 0}}
    hostile = '<b>&"'
    drawn = [
        charts.stacked_bars(rows, "claims"),
        charts.stacked_bars(dict.fromkeys(rows, dict.fromkeys(CLAIMS, 0.0)), "claims", 1),
        charts.against_chance([{"label": hostile, "found": 3, "low": 0, "high": 5, "expected": 2}]),
        charts.reliability(
            {"likely": ("likely", [{"stated": 0.7, "right": 0.5, "low": 0.3, "high": 0.8, "claims": 9}])}, "x", "y"
        ),
        charts.histogram([(3, 0.75), (4, 0.25)], name=hostile, kind="likely", published=5),
        charts.histogram([(value, 0.02) for value in range(50)], name="many", kind="proved", published=None),
    ]
    for svg in drawn:
        root = ElementTree.fromstring(str(svg))
        width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
        assert 0 < width <= 800
        assert height > 0
        assert root.attrib["aria-label"]
        for one in root.iter("{http://www.w3.org/2000/svg}rect"):
            assert -0.1 <= float(one.attrib["x"]) <= width - float(one.attrib["width"]) + 0.1
            assert -0.1 <= float(one.attrib["y"]) <= height - float(one.attrib["height"]) + 0.1


def test_bars_are_as_long_as_their_numbers() -> None:
    rows = {"0": {"proved": 2, "conditional": 1, "likely": 5}}
    widths = {kind: wide for kind, wide, _ in bars(charts.stacked_bars(rows, "claims"))}
    assert widths["proved"] / widths["conditional"] == pytest.approx(2, rel=0.05)
    assert widths["likely"] / widths["conditional"] == pytest.approx(5, rel=0.05)
    heights = [tall for _, _, tall in bars(charts.histogram([(3, 0.75), (4, 0.25)], name="a", kind="likely", published=5))]
    assert heights[0] / heights[1] == pytest.approx(3, rel=0.05)


def test_an_argument_is_taken_apart_into_sentences() -> None:
    text = "B = 832 (exact), so C ≤ 832. So A = 421."
    assert " ".join(sentences(text)) == text


# -- the command, and the folder --------------------------------------------------------------------------------------


def test_report_writes_both_again(run: Run, survey: AuditFolder, tmp_path: Path) -> None:
    folder = copied(survey, tmp_path / "audit")
    for name in ("report.html", "report-public.html"):
        (folder.path / name).unlink()
    ran = run("audit", str(folder.path))
    assert (ran.code, ran.err) == (0, "")
    assert "report-public.html" in ran.out
    assert texts(folder)[1] == texts(survey)[1]
    assert run("audit", str(tmp_path)).code == 2
    assert "no folder" in run("explain", str(tmp_path / "nowhere"), "a", "b").err


def test_pages_that_cannot_be_written_are_an_error(survey: AuditFolder, tmp_path: Path) -> None:
    folder = copied(survey, tmp_path / "audit")
    (folder.path / "report.html").unlink()
    (folder.path / "report.html").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_pages(folder)


def test_an_older_page_does_not_survive_an_audit_without_one(survey: AuditFolder, tmp_path: Path) -> None:
    folder = copied(survey, tmp_path / "audit")
    audit(read(SURVEY), folder.path, AuditOptions(threshold=0.9))
    assert not (folder.path / "report.html").exists()
    assert not (folder.path / "report-public.html").exists()


def test_audit_says_where_the_page_is(run: Run, tmp_path: Path) -> None:
    ran = run("audit", str(SURVEY), "-o", str(tmp_path / "audit"))
    assert "report.html" in ran.out
    assert (tmp_path / "audit" / "report.html").exists()


# -- the first page ---------------------------------------------------------------------------------------------------


def first_page(text: str) -> str:
    """Return what the first page says."""
    return Outline(text[text.index('<section id="verdict"') : text.index("</section>")] + "</section>").text


def test_the_first_page_says_whether_why_and_what_next(census: AuditFolder, survey: AuditFolder) -> None:
    for folder in (census, survey):
        summary = folder.summary
        for text in texts(folder):
            said = first_page(text)
            assert said.startswith(headline(summary))
            assert " ".join(verdict(summary)) in said
            assert "Of 10,000 published counts, " in said
            assert "What to do next" in said
            assert "Declared rounding fits the data" in said
            assert "Probabilities self-check passed" in said
            assert notice(summary["product"]).replace("`", "") in said.replace(" .", ".")
        full, public = map(first_page, texts(folder))
        assert "For example" in full
        assert re.search(r"A is [^;]+; B is ", full)
        assert "For example" not in public


def test_the_example_is_the_first_finding_that_two_lines_explain(survey: AuditFolder) -> None:
    first = survey.findings.row(0, named=True)
    sentence, arithmetic, _ = example({kind: strongest(survey, kind) for kind in CLAIMS if survey.summary[kind]})
    assert isinstance(sentence, Text)
    assert isinstance(arithmetic, Bullets)
    assert first["kind"] == "proved"
    assert len(arithmetic.items) == 2
    assert arithmetic.items[-1].endswith(f"So A = {re.search(r'must be ([0-9]+)', sentence.text)[1]}.")  # type: ignore
    assert first["district"] in sentence.text


HEADLINES = [
    (
        (20, 0, 63, 3, 11, 10),
        "This release gives counts away: 20 counts can be proved, 3 of them of one or two; 11 more counts of",
    ),
    ((1, 0, 0, 0, 0, 0), "This release gives counts away: 1 count can be proved."),
    ((0, 2, 5, 0, 0, 5), "This release gives counts away, if its unrounded counts are exact: 2 counts can then be proved."),
    (
        (0, 0, 45_302, 0, 87, 44_513),
        "This release gives some counts away: none can be proved, but 87 counts of one or two can be",
    ),
    (
        (0, 0, 12, 0, 0, 4),
        "This release gives little away: no count can be proved; 8 counts of three or more can be inferred at 66%",
    ),
    ((0, 0, 4, 0, 0, 4), "This release gives little away: no count can be proved; 4 zeros can be inferred at 66% or more."),
    (
        (0, 0, 0, 0, 0, 0),
        "This release gives nothing away that this audit can see: no count can be proved, and none inferred at 66% or more.",
    ),
]


@pytest.mark.parametrize(("numbers", "said"), HEADLINES)
def test_the_headline(numbers: tuple[int, ...], said: str) -> None:
    proved, conditional, likely, small_proved, small, zeros = numbers
    none = dict.fromkeys(CLAIMS, 0)
    by_value = {
        "0": none | {"likely": zeros},
        "1-2": none | {"proved": small_proved, "likely": small},
        "3-9": none,
        "10+": none,
    }
    summary = {"proved": proved, "conditional": conditional, "likely": likely, "threshold": 0.66, "areas_not_weighed": 0}
    summary |= {"sensitive_claims": {"by_value": by_value}, "held_back": none, "unsettled": [], "cells_published": 9}
    summary |= {"contradictions_by_kind": {}, "conditions": {"most_claims": [], "number": 0}}
    assert headline(summary).startswith(said)


def test_the_headline_of_nothing_says_when_claims_are_held_back() -> None:
    none = dict.fromkeys(CLAIMS, 0)
    summary = none | {"threshold": 0.66, "areas_not_weighed": 0, "held_back": none | {"likely": 4}}
    summary |= {"sensitive_claims": {"by_value": dict.fromkeys(("0", "1-2", "3-9", "10+"), none)}, "unsettled": []}
    summary |= {"contradictions_by_kind": {}, "cells_published": 9}
    assert "holds claims back, which is no sign of safety" in headline(summary)


def test_zeros_are_folded(census: AuditFolder, census_audit: Path) -> None:
    """They are counted, and the first are listed where somebody asks for them; no card shows one."""
    assert 'id="zeros"' not in texts(census)[0]
    census = AuditFolder.open(census_audit)
    number = census.summary["sensitive_claims"]["by_value"]["0"]["likely"]
    assert number > MOST_ZEROS
    text, public = page(census), page(census, public=True)
    folded = text[text.index('<details class="folded" id="zeros">') :]
    folded = folded[: folded.index("</details>")]
    assert f"<summary>{number:,} likely zeros</summary>" in folded
    assert folded.count("<tr>") == 1 + MOST_ZEROS
    assert all(card.finding["value"] != 0 for card in strongest(census, "likely"))
    assert 'id="zeros"' not in public


@pytest.mark.parametrize(
    ("numbers", "wanted"),
    [((0, 3, 50, 9_947), [0, 3, 50, 9947]), ((1, 0, 0, 10**7), [1, 0, 0, 9999]), ((9, 1, 0, 0), [9000, 1000, 0, 0])],
)
def test_10_000_squares(numbers: tuple[int, ...], wanted: list[int]) -> None:
    shares = [Share(name, name, number) for name, number in zip((*CLAIMS, "open"), numbers, strict=True)]
    found = squares(shares, sum(numbers))
    assert found == wanted
    drawn = ElementTree.fromstring(waffle(shares, sum(numbers), "squares"))
    covered = dict.fromkeys((*CLAIMS, "open"), 0.0)
    for square in drawn.iter("{http://www.w3.org/2000/svg}rect"):
        covered[square.get("class", "").split()[-1]] += float(square.get("width", 0)) * float(square.get("height", 0)) / 9
    assert [round(area) for area in covered.values()] == wanted


# -- what the claims rest on -------------------------------------------------------------------------------------------


def test_the_strip_leads_to_the_reasons(census: AuditFolder) -> None:
    for text in texts(census):
        strip = text[text.index('<ul class="footing"') :]
        links = re.findall(r'href="#([a-z]+)"', strip[: strip.index("</ul>")])
        assert {"check", "selfcheck"} <= set(links)
        assert all(f'id="{link}"' in text for link in links)


@pytest.mark.parametrize(
    ("check", "state", "said"),
    [
        (None, "not tested", "A wrong rounding would make claims wrong."),
        ({"verdict": "untested", "families": []}, "not tested", "A wrong rounding would make claims wrong."),
        ({"verdict": "fits", "families": []}, "fits the data", "The data fit the assumed rounding."),
        ({"verdict": "departs", "families": []}, "departs from the data", "probabilities may be off."),
        (
            {"verdict": "contradicts", "families": [{"verdict": "contradicts", "impossible": 5}]},
            "contradicted by the data",
            "The data contradict the assumed rounding: at least 5 published figures cannot come from it.",
        ),
    ],
)
def test_the_strip_says_what_the_check_found(survey: AuditFolder, check: Any, state: str, said: str) -> None:
    complete = check and {**check, "mechanism": {"tables": []}}
    one = footing({**survey.summary, "check": complete})[0]
    assert (one.what, one.value) == ("Rounding" if state == "not tested" else "Assumed rounding", state)
    assert one.said.endswith(said)
    assert (one.tone == "fine") == (state == "fits the data")


def test_the_strip_says_what_else_is_in_doubt(survey: AuditFolder) -> None:
    selfcheck = survey.summary["selfcheck"]
    failed = {**selfcheck, "tables": [{"verdict": "failed"}, *selfcheck["tables"]]}
    told = {
        **survey.summary,
        "selfcheck": failed,
        "suspect": {"areas": 2},
        "contradictions": 1,
        "held_back": {"conditional": 1, "likely": 1200},
    }
    shown = {one.what: (one.value, one.said, one.tone) for one in footing(told, "stop")}
    assert list(shown) == ["Decision", "Declared rounding", "Probabilities", "Data", "Held back"]
    assert shown["Decision"][0] == "stop"
    assert shown["Probabilities"][0] == "failed in 1 table"
    assert shown["Data"][1] == "1 inconsistency and 2 areas with suspect data; set apart."
    assert shown["Held back"][0] == "1,201 claims"
    assert {tone for *_, tone in shown.values()} == {"fine", "doubt"}
    without = footing({**survey.summary, "selfcheck": None})
    assert [one.value for one in without] == ["fits the data", "not tested"]


def test_nothing_is_called_independent_where_the_check_found_otherwise(survey: AuditFolder, tmp_path: Path) -> None:
    assert "rounded independently of each other" in Outline(page(survey)).text
    check = survey.summary["check"]
    departs = {
        **check,
        "verdict": "departs",
        "families": [{**family, "otherwise": "departs"} for family in check["families"]],
    }
    mechanisms = {
        name: said.replace(", each count independently", "") for name, said in survey.summary["mechanisms"].items()
    }
    folder = copied(survey, tmp_path / "audit", check=departs, mechanisms=mechanisms)
    assert "independently" not in Outline(page(folder)).text


# -- in a browser -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (320, False), (800, True)])
def test_a_browser_shows_it(hostile: AuditFolder, tmp_path: Path, width: int, dark: bool) -> None:
    """Chromium lays the page out without fetching, running or complaining about anything."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no chromium here")
    picture = tmp_path / "page.png"
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command += [*scheme, "--enable-logging=stderr", f"--window-size={width},900", f"--screenshot={picture}"]
    shown = subprocess.run(
        [*command, (hostile.path / "report.html").as_uri()], capture_output=True, text=True, timeout=600, check=False
    )
    assert shown.returncode == 0, shown.stderr
    assert picture.stat().st_size > 5_000
    assert "CONSOLE" not in shown.stderr


def test_a_sentence_to_quote_says_what_it_rests_on(survey: AuditFolder) -> None:
    """It names proved, conditional and likely counts apart, never as one number of counts that are known."""
    said = to_quote(survey.summary | {"conditional": 3}, "the survey")
    assert "20 can be proved from the published tables alone, 3 can be proved on an assumption" in said
    assert "63 can be inferred by a model that gives one value at least 66%" in said
    assert "not official counts, and not about persons" in said
    assert to_quote(survey.summary, "survey.csv") in Outline(page(survey)).text


def test_the_picture_names_proofs_on_assumptions_apart(survey: AuditFolder) -> None:
    told = survey.summary | {"proved": 0, "conditional": 20}
    assert picture(told).caption == "Of 10,000 published counts, 185 proved on an assumption and 583 inferred at 66% or more"
