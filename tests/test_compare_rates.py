"""Rates beside the counts: those from true counts are closer and give counts away, those from published counts do not."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unround.audits import Auditor
from unround.audits.claims import ClaimKind
from unround.audits.model import Model, ModelFigure
from unround.comparison import Material, compare, practice, simulated
from unround.comparison.rates import RateComparison, averaged, checked_step, rates_of
from unround.comparison.run import as_counts, fitted_prior
from unround.errors import InputError
from unround.release import FIGURE_ABSENT, Column
from unround.show.compare import footnotes, rates_table, sentences

from .conftest import Run

KEYS = ("all", "young", "old", "poor", "poor young", "poor old")
SUMS = ((0, (1, 2)), (3, (4, 5)))
WANTED = ["poor of all", "poor young of young"]


def material(areas: int = 120) -> Material:
    rng = np.random.default_rng(3)
    parts = rng.integers(20, 300, (areas, 2))
    poor = rng.binomial(parts, 0.1)
    true = np.stack([parts.sum(1), parts[:, 0], parts[:, 1], poor.sum(1), poor[:, 0], poor[:, 1]], axis=1)
    columns = tuple(Column(key, (key,), key) for key in KEYS)
    return Material("invented areas", true.astype(np.int32), columns, SUMS, frozenset())


def compared(*names: str, step: float = 0.1, seeds: int = 2) -> dict[str, Any]:
    table = material()
    ways = [practice(name, table) for name in names]
    return compare(table, ways, 1, seeds, rates=rates_of(table, WANTED), step=step).to_json()


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return compared("rounding:5", "controlled:5", "laplace:1.45")


def row(told: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in told["mechanisms"] if one["name"] == name)
    return found


@pytest.mark.parametrize("name", ["rounding:5", "controlled:5"])
def test_rates_from_true_counts_give_counts_away_and_others_do_not(told: dict[str, Any], name: str) -> None:
    rates = row(told, name)["rates"]
    true, published = rates["true"], rates["published"]
    assert true["conditional"] > 120  # more than one an area
    assert true["conditional_wrong"] == 0
    assert true["small_disclosed"] > 0
    assert {key: published[key] for key in true if key != "mean_error"} == dict.fromkeys(
        ("conditional", "conditional_wrong", "likely", "likely_right", "small_disclosed"), 0.0
    )


def test_rates_from_true_counts_are_closer(told: dict[str, Any]) -> None:
    rates = row(told, "rounding:5")["rates"]
    assert 0.02 < rates["true"]["mean_error"] < 0.03  # a quarter of a step
    assert rates["published"]["mean_error"] > 10 * rates["true"]["mean_error"]


def test_what_is_not_worked_out_does_not_read_as_none(told: dict[str, Any]) -> None:
    rates = row(told, "laplace:1.45")["rates"]
    assert rates["true"]["conditional"] is None
    assert rates["published"]["small_disclosed"] is None
    assert rates["true"]["mean_error"] > 0
    cells = [cells for cells in rates_table(told["mechanisms"]).rows if cells[0] == "laplace:1.45"]
    assert [one[2] for one in cells] == ["not computed", "not computed"]
    said = [one for one in sentences(told) if one.startswith("laplace:1.45: ") and "rates" in one]
    assert said == ["laplace:1.45: what rates from true counts add is not computed; it need not be nothing."]
    assert any("What rates add" in one and "not computed" in one for one in footnotes(told))


def test_repeated_counts_rounded_by_keys_are_not_worked_out() -> None:
    table = material()
    twice = replace(
        table,
        true=np.ascontiguousarray(table.true[:, [0, 1, 2, 3, 4, 5, 3]]),
        columns=(*table.columns, Column("poor again", ("poor again",), "poor again")),
        equations=(*SUMS, (3, (6,))),
        tables=("one",) * 6 + ("two",),
    )
    found = compare(twice, [practice("keyed:5", twice)], 1, 1, rates=rates_of(twice, WANTED)).to_json()
    rates = found["mechanisms"][0]["rates"]
    assert rates["true"]["conditional"] is None
    assert rates["true"]["mean_error"] > 0


def test_coarser_rates_give_less_away(told: dict[str, Any]) -> None:
    coarse = row(compared("rounding:5", step=5), "rounding:5")["rates"]["true"]
    fine = row(told, "rounding:5")["rates"]["true"]
    assert coarse["conditional"] < fine["conditional"] / 3
    assert coarse["mean_error"] > 10 * fine["mean_error"]


def test_the_rest_of_a_comparison_does_not_depend_on_rates(told: dict[str, Any]) -> None:
    table = material()
    plain = compare(table, [practice("rounding:5", table)], 1, 2).to_json()
    (alone,) = plain["mechanisms"]
    assert alone["rates"] is None
    assert (plain["rates"], plain["rate_step"]) == ([], None)
    beside = row(told, "rounding:5")
    others = alone.keys() - {"rates", "efficient"}  # which are efficient depends on what they are compared with
    assert {key: alone[key] for key in others} == {key: beside[key] for key in others}
    assert rates_table(plain["mechanisms"]).rows == []


def test_numbers_are_those_of_an_audit_with_figures() -> None:
    table = material()
    one = practice("rounding:5", table)
    published = one.publish(table.true.astype(np.int64), np.random.default_rng(5))
    counts, prior = as_counts(published), fitted_prior(table, one, published)
    printed = RateComparison(table, rates_of(table, WANTED), Fraction(1, 2), 0.66)
    found = printed.judge(one, counts, counts, prior)["true"]
    values = np.stack(
        [
            [int(Fraction(100 * int(x), int(t)) * 2 + Fraction(1, 2)) * 5000 for x, t in table.true[:, places]]
            for places in ([3, 0], [4, 1])
        ],
        axis=1,
    )
    figures = tuple(ModelFigure(rate, at) for at, rate in enumerate(printed.rates))
    model = Model.build(table.columns, one.assumed, SUMS, ("truth",) * 2, figures=figures)
    block = Auditor(model, prior).infer(counts, np.zeros(len(counts), dtype=np.bool_), figures=values)
    assert found["conditional"] == (block.by_figures & block.claims.of_kind(ClaimKind.CONDITIONAL)).sum() > 0
    assert found["likely"] == (block.by_figures & block.claims.of_kind(ClaimKind.LIKELY)).sum()


def test_a_rate_is_not_printed_beside_hidden_counts() -> None:
    table = material(30)
    printed = RateComparison(table, rates_of(table, WANTED), Fraction(1, 10), 0.66)
    counts = table.true.copy()
    counts[4, 3] = np.iinfo(np.int32).min  # suppressed
    for source in ("true", "published"):
        values = printed._values(counts, source)
        assert values[4, 0] == FIGURE_ABSENT
        assert (values[:, 1] != FIGURE_ABSENT).all()


def test_rates_of_a_simulated_census() -> None:
    census = simulated(30, 1, "income")
    rates = rates_of(census, ["all"])
    assert ("340", "335") in {(one.numerator, one.universe) for one in rates}
    assert rates_of(census, ["345"])[0].numerator == "340"
    assert len(rates_of(census, ["340 of 335", "345", "345"])) == 1


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (["all"], "no rates are known of invented areas: name some"),
        ([], "no rate is named"),
        (["poor"], "there is no rate 'poor' in invented areas"),
        (["poor of rich"], "there is no count 'rich'"),
    ],
)
def test_rates_that_are_not_there(wanted: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        rates_of(material(30), wanted)


@pytest.mark.parametrize("points", [0, -1, 101, 0.00003])
def test_steps_that_make_no_sense(points: float) -> None:
    with pytest.raises(InputError, match="a step of rates must be above 0, at most 100"):
        checked_step(points)


def test_means_need_every_release() -> None:
    one = {"true": {"likely": 2.0}, "published": {"likely": None}}
    other = {"true": {"likely": 4.0}, "published": {"likely": 1.0}}
    assert averaged([one, other]) == {"true": {"likely": 3.0}, "published": {"likely": None}}


def test_rates_of_a_description_need_both_counts() -> None:
    (rate,) = rates_of(material(30), ["poor of all"])
    table = replace(material(30), rates=(replace(rate, name="share"),))
    assert [one.name for one in rates_of(table, ["all"])] == ["share"]
    assert [one.name for one in rates_of(table, ["poor of all", "share"])] == ["poor of all"]


def test_the_command_shows_them(tmp_path: Path, run: Run) -> None:
    arguments = ("compare", "--areas", "40", "--seeds", "1", "--mechanism", "rounding:5", "--rates", "9 of 8")
    done = run(*arguments, "-o", str(tmp_path / "out"))
    assert done.code == 0
    said = " ".join(done.out.split())
    assert "What rates add" in said
    assert "rounding:5: rates from true counts add" in said
    assert "What rates add" in (tmp_path / "out" / "compare.html").read_text(encoding="utf-8")
    kept = json.loads((tmp_path / "out" / "compare.json").read_text(encoding="utf-8"))
    assert kept["rates"] == ["9 of 8"]
    assert kept["mechanisms"][0]["rates"]["published"]["conditional"] == 0
