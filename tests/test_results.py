"""Results in a notebook: cards, tables of polars and pandas, charts, distributions as arrays, and text when printed."""

from __future__ import annotations

import gc
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import unround
from tests.conftest import Run
from tests.shared import EXAMPLES, FORMULA, IMAGE
from unround import InputError
from unround.shown import Plain

SURVEY = EXAMPLES / "survey.toml"


@pytest.fixture(scope="module")
def audited(survey_audit: Path) -> unround.AuditFolder:
    return unround.AuditFolder.open(survey_audit)


@pytest.fixture(scope="module")
def solution() -> unround.Solution:
    return unround.solve("87! = men: 35 + women: 45")


@pytest.fixture(scope="module")
def checked() -> unround.Check:
    return unround.check(SURVEY)


class Tags(HTMLParser):
    """Whether all tags are closed, and what a card refers to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: set[str] = set()
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("rect", "line", "path", "circle", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - as it is called
        self.found.add(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            assert self.open.pop() == tag


RESULTS: dict[str, Callable[..., Any]] = {
    "solution": lambda solution, **_: solution,
    "clash": lambda **_: unround.solve("100! = 20 + 20"),
    "expectation": lambda **_: unround.expect("20 = 10 + 10"),
    "audit": lambda audited, **_: audited,
    "explanation": lambda audited, **_: audited.explain("D03", "15-64/men"),
    "proof": lambda audited, **_: audited.explain("D08", "30-44/men"),
    "posterior": lambda audited, **_: audited.posterior("D08"),
    "description": lambda **_: unround.describe(EXAMPLES / "survey.csv"),
    "verification": lambda audited, **_: unround.verify(audited),
    "check": lambda checked, **_: checked,
    "diff": lambda audited, **_: unround.diff(audited, audited),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_show_themselves(name: str, audited: unround.AuditFolder, solution: Any, checked: Any) -> None:
    result = RESULTS[name](audited=audited, solution=solution, checked=checked)
    card = Tags(result._repr_html_())
    assert card.open == []
    assert {"div", "style"} < card.found
    assert not card.found & {"script", "iframe", "link", "img"}
    assert card.links == []  # nothing is fetched
    assert len(str(result)) > 80
    assert repr(result).startswith(f"<{type(result).__name__}")
    assert len(repr(result)) < 200  # a list of results can be read


def test_a_card_says_what_the_terminal_says(run: Run, audited: unround.AuditFolder, solution: unround.Solution) -> None:
    shown = run("solve", "87! = men: 35 + women: 45").out
    assert "".join(str(solution).split()) == "".join(shown.split())
    card = re.sub(r"\s+", " ", re.sub(r"<style>.*?</style>|<[^>]+>", " ", audited._repr_html_()))
    headline = "20 counts can be proved; 11 more counts of one or two"
    for said in (headline, "all 20 0 63", "declared rounding (fits the data)", "65 more in .findings"):
        assert said in card
    assert "38 or 39" in solution._repr_html_()


def test_the_style_of_a_card_holds_within_it_only(solution: unround.Solution) -> None:
    style = solution._repr_html_().partition("<style>")[2].partition("</style>")[0]
    assert style.startswith(".unround {")
    assert style.endswith("}")
    depth, left = 0, []
    for at, sign in enumerate(style):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        left += [at] if depth == 0 and sign == "}" else []
    assert left == [len(style) - 1]  # one rule around all others


def test_hostile_names_are_shown_not_run(hostile_audit: Path) -> None:
    folder = unround.AuditFolder.open(hostile_audit)
    for result in (folder, folder.explain(IMAGE, "30-44/men"), folder.posterior(FORMULA)):
        assert "img" not in Tags(result._repr_html_()).found
    assert unround.solve('10! = "<script>x": 5 + 5')._repr_html_().count("<script") == 0


# -- tables -----------------------------------------------------------------------------------------------------------


def test_a_solution_is_a_table(solution: unround.Solution) -> None:
    table = solution.to_polars()
    assert table["cell"].to_list() == ["total", "men", "women"]
    assert table.row(1, named=True)["counts"] == [38, 39]
    assert table.row(1, named=True)["probabilities"] == pytest.approx([0.5, 0.5])
    unbounded = unround.solve("? = 20 + ?").to_polars()
    assert unbounded["published"].null_count() == 2


def test_estimated_probabilities_come_with_their_standard_errors(solution: unround.Solution) -> None:
    """A 5 × 5 table is too large to be eliminated, and is left to Markov chains."""
    rows = [[20, 35, 15, 40, 25], [30, 10, 45, 20, 15], [25, 25, 30, 10, 35], [15, 40, 20, 30, 20], [35, 20, 25, 15, 30]]
    lines = [f"r{i}: {sum(row)} = " + " + ".join(f"c{i}{j}: {n}" for j, n in enumerate(row)) for i, row in enumerate(rows)]
    lines += [f"k{j}: {sum(row[j] for row in rows)} = " + " + ".join(f"c{i}{j}" for i in range(5)) for j in range(5)]
    lines.append("t: 625 = " + " + ".join(f"r{i}" for i in range(5)))
    lines.append("t = " + " + ".join(f"k{j}" for j in range(5)))
    found = unround.solve("\n".join(lines))
    assert found.engine == "chains"
    error = found["c00"].error
    assert error is not None
    assert f" ± {100 * error:.1f}" in found._repr_html_()
    assert found.to_polars()["error"].min() > 0  # type: ignore[operator] # a number
    assert " ± " not in solution._repr_html_()
    assert solution.to_polars()["error"].to_list() == [0.0] * 3


def test_pandas_keeps_whole_numbers_and_arrays(solution: unround.Solution, audited: unround.AuditFolder) -> None:
    pytest.importorskip("pandas")
    table = unround.solve("? = 20 + ?").to_pandas()
    assert str(table["published"].dtype) == "Int64"
    assert table["published"].isna().tolist() == [True, False, True]
    assert isinstance(solution.to_pandas()["probabilities"][1], np.ndarray)
    findings = audited.to_pandas()
    assert (len(findings), list(findings.columns)) == (audited.findings.height, audited.findings.columns)
    assert findings["kind"].tolist() == audited.findings["kind"].to_list()


def test_pandas_is_asked_for_in_words(solution: unround.Solution, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pandas is not installed"):
        solution.to_pandas()


def test_checks_and_explanations_are_tables(checked: unround.Check, audited: unround.AuditFolder) -> None:
    assert set(checked.to_polars()["verdict"]) == {"fits"}
    likely = audited.explain("D03", "15-64/men")
    assert likely.to_polars().rows() == [pytest.approx(pair) for pair in likely.distribution]
    assert repr(likely) == "<Explanation of 15-64/men: likely, 53>"
    assert "How probable 53 becomes" in str(likely)


# -- distributions ----------------------------------------------------------------------------------------------------


def test_a_posterior_holds_what_explain_shows(audited: unround.AuditFolder) -> None:
    posterior = audited.posterior("D03")
    assert list(posterior) == [column.key for column in audited.model.columns]
    assert len(posterior) == 27
    for key in ("15-64/men", "0-14/total", "80+/women"):
        one, shown = posterior[key], unround.explain(audited, "D03", key)
        assert isinstance(one.counts, np.ndarray)
        assert list(zip(one.counts.tolist(), one.probabilities.tolist(), strict=True)) == list(shown.distribution)
        assert (one.kind, one.published, one.low, one.high) == (shown.kind, shown.published, shown.low, shown.high)
        assert one.mean == pytest.approx(shown.mean, abs=1e-6)
        assert one.probabilities.sum() == pytest.approx(1)
    proved = audited.posterior("D08")["30-44/men"]
    assert (proved.counts.tolist(), proved.probabilities.tolist(), proved.mode, proved.sd) == ([11], [1.0], 11, 0.0)
    table = posterior.to_polars()
    assert table.height == 27
    assert (table["probabilities"].list.sum() - 1).abs().max() < 1e-6


# -- charts -----------------------------------------------------------------------------------------------------------


SEEN = {
    "solution": "bar open",
    "audit": "bar proved",
    "explanation": "bar likely",
    "posterior": "bar proved",
    "check": "bar s1",
}
"""A colour that must be in the picture."""


@pytest.mark.parametrize("name", SEEN)
def test_cards_and_pages_have_pictures(
    name: str, audited: unround.AuditFolder, solution: unround.Solution, checked: unround.Check, tmp_path: Path
) -> None:
    result = RESULTS[name](audited=audited, solution=solution, checked=checked)
    result.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for drawn in (page, result._repr_html_()):
        assert "<svg" in drawn
        assert f'class="{SEEN[name]}' in drawn
    assert page.startswith("<!doctype html>")
    assert 'src="http' not in page  # everything is inside


def test_a_page_has_a_name_that_says_so(solution: unround.Solution, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"written as \.html"):
        solution.save(tmp_path / "x.svg")
    with pytest.raises(InputError, match="there is no folder"):
        solution.save(tmp_path / "none" / "x.html")
    assert not list(tmp_path.iterdir())


def test_where_nothing_is_likely_nothing_is_drawn(tmp_path: Path) -> None:
    unround.solve("100! = 20 + 20").save(tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "No true counts fit" in page
    assert "<svg" not in page


# -- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda folder: folder.posterior(5), "an area is named by text, not by 5"),
        (lambda folder: folder.posterior("nowhere"), "there is no area 'nowhere'"),
        (lambda folder: folder.posterior("D08")["nothing"], "there is no characteristic 'nothing'"),
    ],
)
def test_wrong_arguments_are_answered_in_words(audited: unround.AuditFolder, call: Callable[..., Any], message: str) -> None:
    with pytest.raises(InputError) as problem:
        call(audited)
    assert message in str(problem.value)


def test_an_audit_without_a_folder_lasts_as_long_as_its_result() -> None:
    frame = pl.DataFrame({"town": [f"T{n}" for n in range(9)], "all": [20] * 9, "men": [9] * 9, "women": [9] * 9})
    about = {"area": "town", "sums": {"all": ["men", "women"]}, "exact": ["all"]}
    folder = unround.audit(frame, describe=about, base=3, prior="flat")
    path = folder.path
    assert (path / "findings.parquet").exists()
    assert unround.read(frame, describe=about, base=3).columns[1].documented == (unround.mechanism("rounding:3"),)
    del folder
    gc.collect()
    assert not path.exists()


def test_plain_data_is_what_json_can_hold() -> None:
    @dataclass(frozen=True)
    class Inner:
        where: Path

    @dataclass(frozen=True)
    class Outer(Plain):
        ALSO = ("half",)
        ASIDE = ("left_out",)

        inner: tuple[Inner, ...]
        by_count: dict[int, Fraction]
        left_out: int = 1

        @property
        def half(self) -> Fraction:
            return Fraction(1, 2)

    said = Outer((Inner(Path("a/b")),), {3: Fraction(1, 4)}).to_json()
    assert json.loads(json.dumps(said)) == {"inner": [{"where": "a/b"}], "by_count": {"3": 0.25}, "half": 0.5}
