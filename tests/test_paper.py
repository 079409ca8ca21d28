"""The paper's numbers, its experiment on simulated areas, and the page about it."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from docs.paper_account import KEYED_RUNS, kept_runs, text, write_docs
from docs.paper_figures import places as simulated_places
from docs.paper_runs import excess, pooled, read_run, ten_seeds
from research import paper_document as paper
from research.paper import AGE, AREAS, FREE, FREE_STRONG, SEARCHES, SEX, Claim, claims, matches
from research.paper_document import experiment_notes, weighed
from research.searches import Experiment, FindPrediction, chances, experiment, places
from rich.console import Console

from unround.errors import InputError
from unround.expectation import expectation
from unround.mechanisms import Mechanism, Rounding, Sample
from unround.show import show
from unround.simulation import Rounds, schema

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def stated() -> tuple[Claim, ...]:
    return claims()


# -- claims -----------------------------------------------------------------------------------------------------------

NUMBERS = [
    # what the paper prints, where, what it should be, whether they agree
    (33, "2.1", 33, True),
    (0.75, "3.2.2", 0.75, True),
    (313, "4.1.1", 312.5, True),
    (7813, "4.1.1", 7812.5, True),
    (976562, "4.1.2", 976562.5, True),
    (1308, "4.2.1", 1302.0833333, False),
    (4882, "4.2.2", 4882.8125, True),
    (6, "4.2.1", 6, True),
    (195, "4.1.1", 195.232, True),
    (8, "4.1.1", 7.632, True),
    (0.0859, "4.1.2", 0.0859116, True),
    (48, "4.2.1", 45.792, False),
    (188, "4.2.2", 188.0457, True),
    (624, "Abstract", 624, True),
    (249, "4.2.1", 249, True),
    (864, "4.2.2", 864, True),
    (1000, "Abstract", 1113, True),
    (95, "5", 95.7649, True),
    (99.9, "5", 99.9324, True),
    (1.33, "5", 1.341131, False),
    (1.6, "5", 1.6, True),
    (20, "5", 16.17934, False),
    (21, "5", 21, True),
    (9, "5", 9, True),
    (0.6666666666666666, "4.2.1", 2 / 3, True),
]


@pytest.mark.parametrize(("paper", "section", "computed", "agrees"), NUMBERS)
def test_a_number_of_the_paper(stated: tuple[Claim, ...], paper: float, section: str, computed: float, agrees: bool) -> None:
    (claim,) = [c for c in stated if c.paper == paper and c.section.startswith(section) and c.agrees is not None]
    assert claim.computed == pytest.approx(computed, rel=1e-5)
    assert claim.agrees is agrees
    assert agrees or claim.note


@pytest.mark.parametrize(
    ("words", "computed"),
    [
        ("Sample table 1", [48, 16, 16, 16]),
        ("Sample table 2", [72, 24, 24, 24]),
        ("Sample table 3", [64, 16, 16, 16, 16]),
        ("Sample table 4", [76, 19, 19, 19, 19]),
        ("87 people", [[38, 49], [39, 48]]),
        ("Rounded total, up to 20 parts", [4, 9, 14, 19]),
        ("the probability of each part, 1 − 1/n", [(n - 1) / n for n in range(2, 9)]),
        ("Waterloo: the most likely counts by age", [17644, 85084, 18709]),
        ("Base 7: possible published values of 18", [14, 21]),
        ("Base 7: possible published values of 24", [21, 28]),
    ],
)
def test_an_example_of_the_paper(stated: tuple[Claim, ...], words: str, computed: list[Any]) -> None:
    (claim,) = [c for c in stated if words in c.claim]
    assert claim.agrees is True
    assert claim.computed == claim.paper == computed


def test_the_slips_are_found_and_nothing_else(stated: tuple[Claim, ...]) -> None:
    wrong = [c.paper for c in stated if c.agrees is False]
    assert wrong == [
        1308,
        48,
        "within range",
        "within range",
        "not commented on",
        [[11, 11, 12], [11, 12, 11], [11, 11, 12]],
        "vanishingly unlikely",
        "vanishingly unlikely",
        1.33,
        20,
        "intractable",
    ]
    assert all(c.note for c in stated if c.agrees is False)


def test_differences_that_are_not_chance(stated: tuple[Claim, ...]) -> None:
    chance = {int(c.claim.split()[0]): c.computed for c in stated if "found against" in c.claim}
    assert chance[285] == pytest.approx(2.1e-9, rel=0.05)
    assert chance[83] == pytest.approx(1e-6, rel=0.05)
    assert isinstance(chance[18], float)
    assert 0.001 < chance[18] < 0.01
    assert isinstance(chance[216], float)
    assert chance[216] > 0.01


def test_what_cannot_be_recomputed_is_listed_and_not_made_up(stated: tuple[Claim, ...]) -> None:
    unknown = [c for c in stated if c.agrees is None]
    assert all(c.computed is None and c.note for c in unknown)
    assert {285, 18, 83, 216, 61029, 61010, 59625, 83898, 918192, 20, 42, 412} <= {
        c.paper for c in unknown if isinstance(c.paper, int)
    }
    assert any("Colville Lake" in c.claim for c in unknown)
    assert any("Watson Lake" in c.claim for c in unknown)
    assert stated[-len(unknown) :] == tuple(unknown)


def test_claims_as_json(stated: tuple[Claim, ...]) -> None:
    data = json.loads(json.dumps([c.to_json() for c in stated], allow_nan=False))
    assert all(list(one) == ["claim", "section", "paper", "computed", "agrees", "note"] for one in data)
    assert len({one["claim"] for one in data}) == len(data)


@pytest.mark.parametrize(
    ("printed", "value", "agree"),
    [
        ("313", 312.5, True),
        ("312", 312.5, True),
        ("4882", 4882.8125, True),
        ("4883", 4882.8125, True),
        ("4881", 4882.8125, False),
        ("0.0859", 0.085911552, True),
        ("0.0860", 0.085911552, False),
        ("48", 45.792, False),
        ("1.02e-4", Fraction(1024, 10_000_000), True),
        ("6", Fraction(6), True),
    ],
)
def test_a_printed_number_may_be_rounded_or_cut(printed: str, value: float | Fraction, agree: bool) -> None:
    assert matches(printed, value) is agree


# -- the experiment ---------------------------------------------------------------------------------------------------


def brute_chances(total: int, parts: list[int], residual: int, exact_total: bool, mechanism: Mechanism) -> list[float]:
    """Try every way in which the cells of a group can be published."""

    def ways(true: int, exact: bool) -> list[tuple[int, Fraction]]:
        if exact:
            return [(true, Fraction(1))]
        return [(y, p) for y in range(max(0, true - 10), true + 11) if (p := mechanism.chance(y, true))]

    looked_at, below, above = Fraction(0), Fraction(0), Fraction(0)
    for cells in product(ways(total, exact_total), *(ways(part, False) for part in parts)):
        chance = Fraction(1)
        for _, p in cells:
            chance *= p
        values = [y for y, _ in cells]
        if min(values) > 10:
            looked_at += chance
            below += chance * (values[0] - sum(values[1:]) == residual)
            above += chance * (values[0] - sum(values[1:]) == -residual)
    return [float(looked_at), float(below), float(above)]


@pytest.mark.parametrize("mechanism", [Rounding(5), Sample(5)])
@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.key)
def test_chances_given_the_true_counts(search: Any, mechanism: Mechanism) -> None:
    rng = np.random.default_rng(search.residual)
    parts = rng.integers(9, 27, (60, search.parts))
    parts[:8] = np.resize([11, 16, 19, 24], (8, search.parts)) // 5 * 5 + np.repeat([1, 4], 4)[:, None]  # on the bounds
    total = parts.sum(1)
    ours = np.array(chances(total, parts, search.residual, exact_total=search.exact_total)).T
    brute = [
        brute_chances(int(t), p.tolist(), search.residual, search.exact_total, mechanism)
        for t, p in zip(total, parts, strict=True)
    ]
    assert ours == pytest.approx(np.array(brute), abs=1e-15)
    assert ours[:, 1:].sum() > 0


def test_searches_look_where_the_paper_says() -> None:
    table = schema("short")
    ids = table.ids
    ((total, (men, women)),) = places(SEX, table)
    assert (ids[total[0]], ids[men[0]], men[1], ids[women[0]], women[1]) == (1, 8, 1, 8, 2)
    ((total, parts),) = places(AGE, table)
    assert [int(ids[row]) for row, _ in parts] == [9, 13, 24]
    for search in (FREE, FREE_STRONG):
        sums = places(search, table)
        assert all(len(parts) == search.parts and len({sex for _, sex in (total, *parts)}) == 1 for total, parts in sums)
        assert {total[1] for total, _ in sums} == {0, 1, 2}
    for search in SEARCHES:
        kind = "proof" if search.key.endswith("exact") else "strong"
        model = expectation(search.parts, exact_total=search.exact_total)
        assert {abs(r.residual) for r in model.residuals if r.kind == kind} == {search.residual}


def test_the_experiment_counts_what_a_plain_loop_counts() -> None:
    run, table = experiment(700, 4, "short"), schema("short")
    counted = {search.key: [0, 0] for search in SEARCHES}
    for block in Rounds(4).counts(700, "short"):
        assert block.published is not None
        for area in block.published.tolist():
            for search in SEARCHES:
                for (row, sex), parts in places(search, table):
                    values = [area[row][sex], *(area[r][s] for r, s in parts)]
                    if min(values) > 10:
                        counted[search.key][0] += 1
                        counted[search.key][1] += abs(values[0] - sum(values[1:])) == search.residual
    assert counted == {outcome.search.key: [outcome.groups, outcome.found] for outcome in run.outcomes}


def test_areas_that_repeat_the_one_inside_them() -> None:
    blocks = list(Rounds(2).counts(900, "age"))
    people: dict[str, bytes] = {}
    inside: dict[str, list[str]] = {}
    for block in blocks:
        for region, parent, true in zip(block.regions["region"], block.regions["parent"], block.true, strict=True):
            people[region] = true.tobytes()
            inside.setdefault(parent, []).append(region)
    single = [(parent, children[0]) for parent, children in inside.items() if parent and len(children) == 1]
    assert experiment(900, 2, "age").repeated_areas == len(single) > 0
    assert all(people[parent] == people[child] for parent, child in single)


@pytest.fixture(scope="module")
def runs() -> list[Experiment]:
    return ten_seeds(2000, "short")


def test_ten_seeds_lie_inside_the_prediction_from_the_sizes(runs: list[Experiment]) -> None:
    assert len(runs) == 10
    assert all(run.inside for run in runs)
    many = pooled(runs)
    assert many.seeds == tuple(range(1, 11))
    assert many.inside
    assert all(outcome.explained_by in ("both", "sizes") for outcome in many.outcomes)
    for outcome in many.outcomes:  # how many places there are to look is predicted too
        assert outcome.groups == pytest.approx(outcome.expected_groups, rel=0.01)


def test_keeping_values_over_10_favours_parts_that_are_too_high(runs: list[Experiment]) -> None:
    free = pooled(runs)[FREE_STRONG.key]
    assert free.sizes.above > 1.15 * free.uniform.above
    assert free.sizes.below < 0.9 * free.uniform.below
    sex = pooled(runs)[SEX.key]
    assert sex.sizes.mean == pytest.approx(sex.uniform.mean, rel=0.05)


def test_a_count_outside_its_interval_is_noticed(runs: list[Experiment]) -> None:
    sex = pooled(runs)[SEX.key]
    doubled = replace(sex, above=2 * sex.above, below=2 * sex.below)
    assert not doubled.inside
    assert doubled.explained_by == "neither"
    tilted = replace(sex, sizes=FindPrediction(sex.below, 3 * sex.above), above=3 * sex.above)
    assert tilted.explained_by == "sizes"
    assert tilted.evidence_for_sizes > 5
    other = replace(sex, sizes=FindPrediction(0.1, 0.1))
    assert other.explained_by == "uniform"
    assert other.evidence_for_sizes < -5
    assert replace(sex, sizes=FindPrediction(0.0, 0.0)).evidence_for_sizes == 0


def test_an_experiment_survives_json_and_reports_progress() -> None:
    seen: list[int] = []
    run = experiment(300, 3, "age", progress=seen.append)
    assert seen[-1] == 300
    assert seen == sorted(seen)
    data = json.loads(json.dumps(run.to_json(), allow_nan=False))
    assert read_run(data) == run
    assert experiment(300, 3, "age") == run
    assert data["outcomes"][0]["condition"] == "|population − Σ 2 parts| = 8"
    with pytest.raises(KeyError):
        run["no such search"]
    with pytest.raises(InputError, match="rows"):
        experiment(300, 3, "none")


def test_an_adjusted_population_would_explain_the_excess() -> None:
    cases = excess()
    assert [case.reach for case in cases] == [1, 2, 3, 4, 5]
    for case in cases:
        assert case.expected[SEX.key] == pytest.approx(SEX.found)
        assert 0 < case.share < 1
        assert 0 < case.wrong < 1
        assert all(chance > 0.01 for chance in case.surprise.values())
        assert case.expected[AGE.key] / AGE.groups > float(expectation(3, exact_total=True).proof_share)
    json.dumps([case.to_json() for case in cases], allow_nan=False)


def test_the_simplest_adjustment_by_hand() -> None:
    # ±1 in a share q of the areas: 8 comes from 7, four times as common, on one side and from nowhere on the other.
    one = excess()[0]
    assert one.share == pytest.approx(SEX.found / (SEX.groups * 2 / 625) - 1)
    assert one.impossible == pytest.approx(SEX.groups * one.share / 625)


# -- tables and the page ----------------------------------------------------------------------------------------------


def shown(thing: Any) -> str:
    console = Console(width=140, record=True, file=io.StringIO())
    show(thing, console)
    return console.export_text()


def test_tables_in_the_terminal(stated: tuple[Claim, ...], runs: list[Experiment]) -> None:
    table = shown(paper.claims(stated))
    assert "1,302.08" in table
    assert re.search(r"48 claims agree, 11 do not, 15 cannot be recomputed", table)
    assert "5 of 5 counts are within the interval" in shown(paper.experiment(runs[0]))


def test_what_to_expect_in_the_terminal() -> None:
    table = shown(expectation(3, exact_total=True, areas=59625))
    assert re.sub(r" {2,}", "|", table.split("\n")[0].strip()) == "residual|share of sums|solutions|cell|probability|result"
    assert re.search(r"-12 +6.4e-05 +1 +part +1.000 +proved", table)
    assert "residual = published total − sum of the published parts" in table
    assert "Proved: 0.000128 of all sums, 1 in 7,812.5; 7.632 expected in 59,625 areas." in table
    assert "likely if the probability is 66% or more" in " ".join(table.split())
    assert "zero part" not in table
    assert "zero part: one published as 0" in shown(expectation(3, zero_parts=1))
    assert "Proved: none, whatever is published." in shown(expectation(2, areas=5))
    every = shown(expectation(1, exact_total=True, areas=1))
    assert "Proved: every sum; 1 expected in 1 area." in every
    often = shown(expectation(2, exact_total=True, threshold=0.2))
    assert re.search(r"Likely: 0\.\d+ of all sums\.", often)
    hardly = shown(expectation(300, exact_total=True, threshold=1))
    assert "Proved: fewer than 1 sum in 10^290, if any." in hardly
    assert "2,185 more residuals reveal nothing." in hardly
    one_part = shown(expectation(1, exact_total=True, base=40))
    assert len([line for line in one_part.split("\n") if line.rstrip().endswith("proved")]) == 60
    assert "19 more residuals reveal something, but less often." in one_part


def test_a_small_experiment_in_the_terminal() -> None:
    run = experiment(1, 1, "age")
    assert run[FREE.key].groups == 0
    assert run[FREE.key].explained_by is None
    table = shown(paper.experiment(run))
    assert re.search(r"= 20 +0 +0 +0 +0 +– +0 in 83,898", table)
    assert "1 simulated area (" in table
    assert "4 of 4 counts are within the interval by size. 1 search had no place to look. Nothing was found" in " ".join(
        table.split()
    )
    assert "No area holds the same people" in table
    notes = experiment_notes(replace(run, areas=2, repeated_areas=1))
    assert notes[0].startswith("2 simulated areas (rows “age”, seed 1)")
    assert notes[-1].startswith("1 area holds the same people as a single area within it; 0 finds are there.")
    assert experiment_notes(pooled([run, run]))[0].startswith("2 × 1 simulated area (rows “age”, seeds 1, 1)")


def test_evidence_in_words(runs: list[Experiment]) -> None:
    sex = pooled(runs)[SEX.key]
    run = replace(runs[0], outcomes=(replace(sex, sizes=sex.uniform),))
    assert weighed(run) == "All finds together are about as likely under the simulated sizes as under uniform remainders."
    better = replace(runs[0], outcomes=(replace(sex, sizes=FindPrediction(sex.below, 3 * sex.above), above=3 * sex.above),))
    assert re.fullmatch(
        r"All finds together are .* times as likely under the simulated sizes as under uniform .*", weighed(better)
    )


def test_lists_in_notes_are_written_as_in_the_paper(stated: tuple[Claim, ...]) -> None:
    assert not [c.note for c in stated if "[[" in c.note or ", " in "".join(re.findall(r"\[[^]]*\]", c.note))]
    assert any("[12 11 11]" in c.note for c in stated)


def test_the_kept_runs_are_the_papers_experiment() -> None:
    kept = kept_runs(DOCS)
    assert [run.seeds for run in kept] == [(seed,) for seed in range(1, 11)]
    assert all(run.areas == AREAS and run.rows == "all" and run.inside for run in kept)
    assert pooled(kept)[FREE_STRONG.key].explained_by == "sizes"


def test_keys_do_not_explain_the_excess() -> None:
    """Under the exact population finds are as many as by independent rounding; under a rounded total they are not."""
    kept = kept_runs(DOCS, KEYED_RUNS)
    assert [run.seeds for run in kept] == [(seed,) for seed in range(1, 11)]
    assert all(run.areas == AREAS and run.rows == "age" and run.keys for run in kept)
    exact = [outcome for run in kept for outcome in run.outcomes if outcome.search.exact_total]
    assert len(exact) == 30
    assert all(outcome.inside for outcome in exact)
    assert pooled(kept)[SEX.key].explained_by == "both"
    free = [run[FREE_STRONG.key] for run in kept]
    assert sum(not outcome.inside for outcome in free) >= 5
    run = experiment(400, 3, "age", keys=True)
    assert read_run(run.to_json()) == run
    assert any("by the keys of their records" in note for note in experiment_notes(run))
    assert not any("keys" in note for note in experiment_notes(experiment(400, 3, "age")))


def test_the_page_is_what_the_code_writes() -> None:
    page = (DOCS / "paper.md").read_text(encoding="utf-8")
    assert page == text(kept_runs(DOCS), kept_runs(DOCS, KEYED_RUNS), *simulated_places()), (
        "write it again: write_docs(Path('docs'))"
    )
    for figure in re.findall(r"\]\((figures/[^)]+)\)", page):
        assert (DOCS / figure).stat().st_size > 5_000


def test_docs_need_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run the experiment first"):
        write_docs(tmp_path)
