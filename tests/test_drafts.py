"""Drafts as people make them: is the judge right, and does the program pass?"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import xlsxwriter

import unround
from tests.conftest import Run
from tests.drafts import chance, small
from tests.drafts.corpus import DRAFTS
from tests.drafts.fifth import RAW
from tests.drafts.judge import Facts
from tests.drafts.score import RIGHT, Verdict, in_words, judge
from unround.mechanisms import Exact, Rounding
from unround.release import ABSENT, SUPPRESSED, Column, between
from unround.reviews.contents import Saying
from unround.reviews.numbers import Printed
from unround.reviews.table import ReviewedTable
from unround.structure.balances import balances
from unround.tables.notes import meaning_of


@pytest.mark.parametrize("seed", range(20))
def test_the_judge_finds_the_least_and_greatest_values_that_going_through_all_tables_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    leaves = np.array(list(itertools.product(range(4), repeat=6))).reshape(-1, 2, 3)
    rows = np.concatenate([leaves, leaves.sum(axis=2, keepdims=True)], axis=2)
    worlds = np.concatenate([rows, rows.sum(axis=1, keepdims=True)], axis=1)
    table, hidden = worlds[rng.integers(len(worlds))], rng.random((3, 4)) < 0.6
    facts = Facts({(row, column): (0, 3 if row < 2 and column < 3 else 18) for row, column in np.ndindex(3, 4)})
    facts.windows |= {place: (int(table[place]),) * 2 for place in np.ndindex(3, 4) if not hidden[place]}
    for row in range(3):
        facts.adds((row, 3), [(row, column) for column in range(3)])
    for column in range(4):
        facts.adds((2, column), [(row, column) for row in range(2)])
    fitting = worlds[(worlds[:, ~hidden] == table[~hidden]).all(axis=1)]
    least, most = fitting.min(axis=0), fitting.max(axis=0)
    assert facts.bounds() == {place: (least[place], most[place]) for place in np.ndindex(3, 4)}


QUICK = [
    name for name, draft in DRAFTS.items() if draft.kind != "open" and all(table.how == "exact" for table in draft.tables)
]


@pytest.mark.parametrize("name", [name for name in QUICK if "proper" not in name])
def test_a_draft_is_what_it_is_said_to_be(name: str) -> None:
    kind, follows = DRAFTS[name].judged()
    assert kind == DRAFTS[name].kind, follows


def test_there_are_enough_drafts_of_every_kind() -> None:
    kinds = [draft.kind for draft in DRAFTS.values()]
    assert all(sum(name.endswith(suffix) for name in DRAFTS) > 1 for suffix in (".xlsx", ".ods", ".csv", ".px"))
    assert (kinds.count("leaky") >= 30, kinds.count("healthy") >= 30, kinds.count("open") >= 5) == (True, True, True)


def test_the_score_counts_what_was_published_wrongly() -> None:
    verdicts = [
        Verdict("one-row-hidden.csv", "leaky", "", "publish", "", 1.0),
        Verdict("two-sheets.xlsx", "leaky", "", "stop", "", 1.0),
        Verdict("wrong-note.csv", "open", "", "publish", "", 1.0),
        Verdict("exact-healthy.csv", "healthy", "1 counts read wrongly", "undecided", "what is column G?", 1.0),
    ]
    words = in_words(verdicts)
    assert "read right      2 of 3" in words
    assert "decided right   1 of 4" in words
    assert "wrong PUBLISH   2 of 3" in words
    assert "WRONG PUBLISH one-row-hidden.csv" in words
    assert "said: what is column G?" in words


# The program is held to these in the suite; `make drafts` goes through all of them.
PASSED = [
    *(
        "ages-over-sex.xlsx",
        "sex-over-ages-healthy.ods",
        "one-row-hidden.csv",
        "margins-proper.csv",
        "regions-indented.xlsx",
    ),
    *("flags.csv", "nearest-five.xlsx", "percent-whole.csv", "together-they-tell.xlsx", "ages-en-francais.csv", "hidden.px"),
    *("rounded-sdmx.csv", "number-and-percent.xlsx", "footnoted-headings.xlsx", "years.csv", "years-healthy.xlsx"),
    *("side-by-side.xlsx", "percent-below.xlsx", "pupils-unicode.csv", "ine.xlsx", "province.xlsx", "change-rank.xlsx"),
]


@pytest.mark.parametrize("name", PASSED)
def test_a_draft_is_read_and_decided_as_it_should_be(name: str, tmp_path: Path) -> None:
    DRAFTS[name].write(tmp_path / name)
    verdict = judge(name, tmp_path)
    assert (verdict.read, verdict.decision in RIGHT[verdict.kind]) == ("", True), verdict


@pytest.mark.parametrize(
    ("name", "decision", "code"),
    [("codes-healthy.xlsx", "publish", 0), ("all-districts.xlsx", "stop", 5), ("formulas-empty.xlsx", "undecided", 6)],
)
def test_the_command_says_so_too(name: str, decision: str, code: int, tmp_path: Path, run: Run) -> None:
    DRAFTS[name].write(tmp_path / name)
    ran = run("review", str(tmp_path / name), "-o", str(tmp_path / "out"), "--repairs", "none", "--json")
    assert (ran.code, json.loads(ran.out)["decision"]) == (code, decision)
    assert decision in (tmp_path / "out" / "review.html").read_text().casefold()


@pytest.mark.parametrize("name", [name for name, draft in DRAFTS.items() if draft.kind == "open"])
def test_what_nobody_could_decide_is_not_published(name: str, tmp_path: Path) -> None:
    DRAFTS[name].write(tmp_path / name)
    assert judge(name, tmp_path).decision in RIGHT["open"]


@pytest.mark.parametrize("name", ["wrong-note.csv", "base-5-unsaid-healthy.csv", "margins-leaky.xlsx", "nearest-five.xlsx"])
def test_a_draft_is_decided_by_its_description_as_by_itself(name: str, tmp_path: Path) -> None:
    DRAFTS[name].write(tmp_path / name)
    unround.describe(tmp_path / name, out=tmp_path / "described.toml")
    reviews = [unround.review(tmp_path / source, repairs=()) for source in (name, "described.toml")]
    assert reviews[0].decision == reviews[1].decision != "publish"
    asked = [[entry["what"] for entry in review.to_json()["unsettled"]] for review in reviews]
    assert asked[0] == asked[1]


def test_what_was_inferred_is_not_declared_by_writing_it_down(tmp_path: Path) -> None:
    DRAFTS["base-3-unsaid.csv"].write(tmp_path / "draft.csv")
    unround.describe(tmp_path / "draft.csv", out=tmp_path / "draft.toml")
    text = (tmp_path / "draft.toml").read_text()
    assert '\n# default = "rounding:3"\n' in text
    assert "\ninferred = true " in text
    assert unround.audit(tmp_path / "draft.toml", out=tmp_path / "one").summary["proved"] == 0
    declared = text.replace('# default = "rounding:3"', 'default = "rounding:3"').replace(
        "inferred = true", "inferred = false"
    )
    declared = declared.replace("# [[exact]]\n# ", "\n[[exact]]\n")
    (tmp_path / "draft.toml").write_text(declared)
    assert unround.audit(tmp_path / "draft.toml", out=tmp_path / "two").summary["proved"] > 0


def test_columns_that_balance_each_other_are_asked_about(tmp_path: Path) -> None:
    DRAFTS["prison-flow.csv"].write(tmp_path / "flow.csv")
    review = unround.review(tmp_path / "flow.csv", repairs=())
    asked = "Held on 1 January + Received = Released + Held on 31 December"
    assert (review.decision, [entry["what"] for entry in review.to_json()["unsettled"]]) == ("undecided", [asked])
    text = (tmp_path / "flow.csv").read_text()
    (tmp_path / "flow.csv").write_text(text.replace("198,160", "199,160"))  # in one of eight prisons, it does not hold
    assert unround.review(tmp_path / "flow.csv", repairs=()).decision == "publish"


def test_a_percentage_in_the_cell_of_its_count_is_a_figure(tmp_path: Path) -> None:
    DRAFTS["wards-n-percent-healthy.csv"].write(tmp_path / "wards.csv")
    described = unround.describe(tmp_path / "wards.csv")
    assert [column.key for column in described.release.columns] == ["Admissions", "Discharged", "Transferred", "Died"]
    assert [figure.name for figure in described.release.figures] == ["Discharged (%)", "Transferred (%)", "Died (%)"]


@pytest.mark.parametrize(("total", "asked"), [(70, ["counts that are not applicable"]), (75, [])])
def test_a_hidden_count_beside_one_not_applicable_is_asked_about(total: int, asked: list[str], tmp_path: Path) -> None:
    rows = [f"School {name},{40 + at},{30 + 2 * at},{25 + at},{95 + 4 * at}" for at, name in enumerate("ABCDEFGH")]
    rows += ["School J,[c],33,[z],72", f"School K,30,40,[z],{total}", "[z] not applicable, [c] confidential"]
    (tmp_path / "schools.csv").write_text("\n".join(["School,Boys,Girls,Sixth form,Total", *rows]))
    review = unround.review(tmp_path / "schools.csv", repairs=())
    assert [entry["what"] for entry in review.to_json()["unsettled"]] == asked


@pytest.mark.parametrize(("more", "claimed"), [(0, []), (7, [("C", 7)])])
def test_nothing_is_claimed_where_a_count_is_not_applicable_unless_somebody_is_counted_there(
    more: int, claimed: list[tuple[str, int]], tmp_path: Path
) -> None:
    rows = [f"{name},{40 + 3 * at},{30 + 2 * at}" for at, name in enumerate("ABDEFGH")]
    men, women = sum(40 + 3 * at for at in range(7)) + 50, sum(30 + 2 * at for at in range(7)) + more
    rows += ["C,50,[z]", f"All,{men},{women}", "[z] not applicable"]
    (tmp_path / "schools.csv").write_text("\n".join(["School,Boys,Girls", *rows]))
    cells = unround.review(tmp_path / "schools.csv", repairs=()).to_json()["cells"]
    assert [(cell["area"], cell["value"]) for cell in cells if cell["claim"] in ("proved", "conditional")] == claimed


def test_a_balance_that_known_sums_imply_is_no_news() -> None:
    parts = np.random.default_rng(1).integers(10, 99, (12, 3))
    whole = parts.sum(1)
    counts = np.column_stack([whole, *parts.T, parts[:, 0] // 2, whole - parts[:, 0] // 2])
    counts[3, 2] = ABSENT
    sums = [(0, (1, 2, 3)), (0, (4, 5))]
    assert list(balances(counts, sums)) == []
    assert [(balance.left, balance.right) for balance in balances(counts, sums[:1])] == [((1, 2, 3), (4, 5))]


def test_nothing_is_called_proved_of_small_tables_in_which_nothing_is_declared() -> None:
    claims = [small.audited(number) for number in range(2 * len(small.FAMILIES))]
    assert [claim for claim in claims if claim.false] == []
    assert sum(claim.conditional for claim in claims) > 0


def test_rows_that_add_up_to_a_neighbour_by_chance_are_no_region(tmp_path: Path) -> None:
    table = small.controlled(np.random.default_rng([415, 31])).frame()  # 18 wards; Ward 9 could be Ward 10 + Ward 11
    table.write_csv(tmp_path / "wards.csv")
    sums = unround.describe(tmp_path / "wards.csv").to_json()["sums"]
    assert [entry["axis"] for entry in sums] == ["age"]


@pytest.mark.parametrize(("heading", "asked"), [("School", True), ("Rank", False)])
def test_numbers_that_may_not_be_counts_are_asked_about(heading: str, asked: bool, tmp_path: Path) -> None:
    DRAFTS["exact-healthy.csv"].write(tmp_path / "table.csv")
    first, *rows = (tmp_path / "table.csv").read_text().splitlines()
    lines = [f"{first},{heading}", *(f"{row},{number}" for number, row in enumerate(rows, 1))]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    review = unround.review(tmp_path / "table.csv", repairs=())
    questions = [entry["what"] for entry in review.to_json()["unsettled"]]
    assert (review.decision, questions) == (("undecided", [f"column G: {heading}"]) if asked else ("publish", []))


@pytest.mark.parametrize(("below", "used"), [(28, False), (12, True)])
def test_ranks_that_leave_a_hidden_count_hardly_any_values_are_asked_about(below: int, used: bool, tmp_path: Path) -> None:
    cases = [40, 30, "c", below, 10]
    rows = [f"Ward {name},{count},{at + 1}" for at, (name, count) in enumerate(zip("ABCDE", cases, strict=True))]
    (tmp_path / "table.csv").write_text("\n".join(["Ward,Cases,Rank", *rows]))
    (entry,) = [entry for entry in unround.describe(tmp_path / "table.csv").release.account if "Rank" in entry.place]
    assert (entry.what == "figure that tells nothing", "gives none of their counts away" in entry.why) == (used, used)


def test_a_second_table_on_a_sheet_is_named_with_the_option_that_reads_it(tmp_path: Path) -> None:
    DRAFTS["two-on-a-sheet.csv"].write(tmp_path / "table.csv")
    (other,) = [entry for entry in unround.read(tmp_path / "table.csv").account if not entry.used]
    assert (other.place, "table.csv --header 14 -o" in other.settle) == ("rows 15–22", True)
    assert "All households" in str(unround.describe(tmp_path / "table.csv", header=[14]).to_json()["sums"])


@pytest.mark.parametrize("number", [0, 12, 19, 20, 28, 40, 49, 106, 109, 150, 220])
def test_a_draft_drawn_at_random_is_read_and_decided_as_it_should_be(number: int, tmp_path: Path) -> None:
    name = str(chance.draw(number))
    try:
        DRAFTS[name].write(tmp_path / name)
        verdict = judge(name, tmp_path)
    finally:
        del DRAFTS[name]
    assert (verdict.read, verdict.decision in RIGHT[verdict.kind]) == ("", True), verdict


@pytest.mark.parametrize(
    ("option", "decision"), [({}, "undecided"), ({"base": 3}, "publish"), ({"mechanism": "nearest:3"}, "stop")]
)
def test_rounding_that_may_be_conventional_is_asked_about_where_it_would_tell_more(
    option: dict[str, Any], decision: str, tmp_path: Path
) -> None:
    name = str(chance.draw(290))  # to the nearest 3, and no note says so
    DRAFTS.pop(name).write(tmp_path / name)
    review = unround.review(tmp_path / name, repairs=(), **option)
    asked = [entry["what"] for entry in review.to_json()["unsettled"]]
    assert (review.decision, "rounding" in asked) == (decision, not option)


def by_sex(path: Path, share: float) -> Path:
    """Write a table of three crops by sex; the first is larger than both others together, if they have a small share."""
    rng = np.random.default_rng(5)
    crops = ("Wheat", "Barley", "Oats")
    lines = ["District," + ",".join(f"{crop} {sex}" for crop in crops for sex in ("Total", "Men", "Women"))]
    for number in range(12):
        men, women = rng.poisson([[900] * 2, [900 * share] * 2, [900 * share] * 2]).T
        cells = [str(count) for pair in zip(men + women, men, women, strict=True) for count in pair]
        lines.append(",".join([f"District {number + 1}", *cells]))
    path.write_text("\n".join(lines))
    return path


def test_an_axis_that_may_have_a_sum_nobody_knows_is_asked_about(tmp_path: Path) -> None:
    review = unround.review(by_sex(tmp_path / "table.csv", 0.2), repairs=())
    assert (review.decision, [entry["what"] for entry in review.to_json()["unsettled"]]) == ("undecided", ["axis category"])
    assert "sums = [" in review.to_json()["unsettled"][0]["settle"]


def test_nothing_is_asked_about_an_axis_whose_counts_rule_out_every_sum(tmp_path: Path) -> None:
    assert unround.review(by_sex(tmp_path / "table.csv", 1.0), repairs=()).decision == "publish"


def test_small_tables_are_drawn_alike_every_time() -> None:
    for family in small.FAMILIES:
        one, other = (family(np.random.default_rng(7)) for _ in range(2))
        assert one.frame().equals(other.frame())
        assert one.printed.shape == one.truth.shape == (len(one.rows), len(one.headings))


def test_a_list_that_goes_on_beside_itself_is_asked_about(tmp_path: Path) -> None:
    DRAFTS["newspaper.xlsx"].write(tmp_path / "wards.xlsx")
    review = unround.review(tmp_path / "wards.xlsx", repairs=())
    assert review.decision == "undecided"
    assert any("rows beside" in entry["what"] for entry in review.to_json()["unsettled"])


def test_a_row_that_is_called_a_total_and_is_none_is_asked_about(tmp_path: Path) -> None:
    rows = [f"Ward {name},{40 + 7 * at},{20 + 3 * at},{20 + 4 * at}" for at, name in enumerate("ABCDEFGH")]
    (tmp_path / "table.csv").write_text("\n".join(["Ward,Total,Men,Women", *rows, "Total,900,450,450"]))
    entries = [entry for entry in unround.read(tmp_path / "table.csv").account if entry.place == "row Total"]
    assert [(entry.used, "which rows add up to it is not known" in entry.why) for entry in entries] == [(False, True)]


@pytest.mark.parametrize("gone", ["", "H"])
def test_areas_by_years_are_added_up_year_by_year_though_one_is_missing(gone: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    lines = ["Council area,Year,Total,Men,Women"]
    for year in (2020, 2021):
        counts = {name: rng.integers(30, 90, 2) for name in "ABCDEFGH"}
        for name, (men, women) in counts.items():
            shown = ("c", "c") if (name, year) == ("C", 2021) else (men, women)
            lines += [f"Area {name},{year},{men + women},{shown[0]},{shown[1]}"] if (name, year) != (gone, 2020) else []
        men, women = sum(counts.values())
        lines.append(f"Scotland,{year},{men + women},{men},{women}")
    (tmp_path / "years.csv").write_text("\n".join(lines))
    assert unround.review(tmp_path / "years.csv", repairs=()).decision == "stop"


WARDS = [
    ("Ward", "Total", "Men", "Women"),
    *((f"Ward {name}", 57 + 5 * at, 23 + 2 * at, 34 + 3 * at) for at, name in enumerate("ABCDEFGH")),
]
"""Of which ward D hides both sexes, so that the table alone tells nothing."""


@pytest.mark.parametrize(
    ("beside", "decision"),
    [
        ("nothing", "publish"),
        ("sheet", "undecided"),
        ("very hidden sheet", "undecided"),
        ("comment", "undecided"),
        ("idle comment", "publish"),
    ],
)
def test_what_goes_out_with_the_file_unseen(beside: str, decision: str, tmp_path: Path) -> None:
    import xlsxwriter

    book = xlsxwriter.Workbook(str(tmp_path / "wards.xlsx"))
    sheet = book.add_worksheet("Table")
    for row, cells in enumerate(WARDS):
        sheet.write_row(row, 0, (*cells[:2], "c", "c") if row == 4 else cells)
    if beside.endswith("sheet"):
        other = book.add_worksheet("before")
        for row, cells in enumerate(WARDS):
            other.write_row(row, 0, cells)
        other.very_hidden() if beside.startswith("very") else other.hide()
    elif beside.endswith("comment"):
        sheet.write_comment("C5", "29 before" if beside == "comment" else "to be hidden")
    book.close()
    assert unround.review(tmp_path / "wards.xlsx", repairs=()).decision == decision


@pytest.mark.parametrize(
    ("note", "decision"),
    [
        ("In Ward D there were 29 men.", "undecided"),
        ("In Ward E there were 31 men.", "publish"),  # nothing of it is hidden
        ("Ward D was Ward K until 2019.", "publish"),
        ("Table 12, revised", "publish"),
    ],
)
def test_a_note_that_may_tell_what_is_hidden_is_asked_about(note: str, decision: str, tmp_path: Path) -> None:
    lines = [",".join(map(str, (*cells[:2], "c", "c") if row == 4 else cells)) for row, cells in enumerate(WARDS)]
    (tmp_path / "wards.csv").write_text("\n".join([*lines, "", note]))
    assert unround.review(tmp_path / "wards.csv", repairs=()).decision == decision


def test_a_note_about_an_area_of_one_letter_is_asked_about(tmp_path: Path) -> None:
    lines = ["Ward,Total,Men,Women", "A,57,23,34", "B,62,25,37", "C,67,27,40", "D,72,c,c", "E,77,31,46", ""]
    for note, decision in (("In D there were 29 men.", "undecided"), ("In E there were 31 men.", "publish")):
        (tmp_path / "wards.csv").write_text("\n".join([*lines, note]))
        assert unround.review(tmp_path / "wards.csv", repairs=()).decision == decision


@pytest.mark.parametrize("hidden", [False, True])
def test_a_rate_beside_a_hidden_count_is_asked_about(hidden: bool, tmp_path: Path) -> None:
    rows = [(f"Town {name}", 830 + 71 * at, 9 + 4 * at) for at, name in enumerate("ABCDEFGHIJ")]
    lines = ["Town,Population,Deaths,Deaths per 1000 inhabitants"]
    for town, people, deaths in rows:
        shown = "*" if hidden and deaths == 29 else deaths
        lines.append(f"{town},{people},{shown},{1000 * deaths / people:.2f}")
    (tmp_path / "deaths.csv").write_text("\n".join(lines))
    review = unround.review(tmp_path / "deaths.csv", repairs=())
    assert review.decision == ("undecided" if hidden else "publish")
    assert [entry["what"] for entry in review.to_json()["unsettled"]] == ["Deaths per 1000 inhabitants"] * hidden


def test_a_running_total_beside_a_hidden_count_is_asked_about(tmp_path: Path) -> None:
    counts = [14, 9, 21, 17, 2, 30, 12, 8]
    lines = ["Month,Permits,Permits so far"]
    lines += [f"M{at},{'<5' if count < 5 else count},{sum(counts[: at + 1])}" for at, count in enumerate(counts)]
    (tmp_path / "permits.csv").write_text("\n".join(lines))
    review = unround.review(tmp_path / "permits.csv", repairs=())
    assert review.decision == "undecided"
    assert any(entry["what"] == "Permits so far adds up Permits row by row" for entry in review.to_json()["unsettled"])


@pytest.mark.parametrize("turned", [False, True])
def test_a_moving_total_beside_a_hidden_count_is_asked_about(tmp_path: Path, turned: bool) -> None:
    counts = [14, 9, 21, 17, 1, 30, 12, 8, 25, 11]
    table = [
        ["Month", *(f"M{at}" for at in range(10))],
        ["Permits", *("<5" if count < 5 else str(count) for count in counts)],
    ]
    table += [["In the last quarter", *(str(sum(counts[at - 2 : at + 1])) if at > 1 else "" for at in range(10))]]
    lines = table if turned else zip(*table, strict=True)
    (tmp_path / "permits.csv").write_text("\n".join(map(",".join, lines)))
    review = unround.review(tmp_path / "permits.csv", repairs=())
    assert review.decision == "undecided"


@pytest.mark.parametrize(("left_out", "decision"), [((18, 2, 37), "undecided"), ((18, 12, 37), "publish")])
def test_a_row_may_be_left_out_that_the_last_row_counts(tmp_path: Path, left_out: tuple[int, ...], decision: str) -> None:
    rows = [(47, 56, 40), (45, 39, 29), (52, 75, 86), (45, 33, 86), (79, 15, 50), (39, 79, 64)]
    city = tuple(sum(column) for column in zip(*rows, left_out, strict=True))
    lines = ["Ward,Employed,Unemployed,Inactive"]
    lines += [f"{name}," + ",".join(map(str, row)) for name, row in zip("ABCDEF", rows, strict=True)]
    lines += ["City," + ",".join(map(str, city))]
    (tmp_path / "wards.csv").write_text("\n".join(lines))
    review = unround.review(tmp_path / "wards.csv", repairs=())
    assert review.decision == decision
    assert [entry["what"] for entry in review.to_json()["unsettled"]] == ["City − its rows"] * (decision != "publish")


@pytest.mark.parametrize("above", [False, True])
def test_a_row_may_be_left_out_that_the_total_of_its_region_counts(tmp_path: Path, above: bool) -> None:
    lines = ["A,47,56", "B,45,39", "C,52,75", "D,45,33", "North,207,205", "G,39,79", "H,38,57", "I,30,26", "South,107,162"]
    (tmp_path / "wards.csv").write_text("\n".join(["Ward,Cases,Controls", *(lines[::-1] if above else lines)]))
    review = unround.review(tmp_path / "wards.csv", repairs=())
    assert [entry["what"] for entry in review.to_json()["unsettled"]] == ["North − its rows"]


def test_a_region_that_does_not_add_up_is_asked_about_beside_one_that_does(tmp_path: Path) -> None:
    rows = ["North,A,47,56", "North,B,45,39", "North,C,52,75", "North,D,45,33", "North,,207,205"]
    rows += ["South,G,39,79", "South,H,38,57", "South,I,30,26", "South,J,48,83", "South,,155,245"]
    (tmp_path / "wards.csv").write_text("\n".join(["Region,Ward,Cases,Controls", *rows]))
    review = unround.review(tmp_path / "wards.csv", repairs=())
    assert [entry["what"] for entry in review.to_json()["unsettled"]] == ["North − its rows"]


def test_a_row_called_like_two_others_is_asked_about(tmp_path: Path) -> None:
    lines = ["Ward,Cases,Others", "Ward A,31,40", "Ward B,17,52", "Ward E,15,79", "Ward F,c,18", "Wards E and F,17,97"]
    (tmp_path / "wards.csv").write_text("\n".join(lines))
    review = unround.review(tmp_path / "wards.csv", repairs=())
    assert [entry["what"] for entry in review.to_json()["unsettled"]] == ["Wards E and F = Ward E + Ward F"]


def test_ages_within_others_are_asked_about(tmp_path: Path) -> None:
    lines = ["Ward,0-17,0-19,20-64", "A,30,41,80", "B,52,60,91", "C,44,45,77", "D,61,75,120", "E,38,49,66"]
    (tmp_path / "wards.csv").write_text("\n".join(lines))
    review = unround.review(tmp_path / "wards.csv", repairs=())
    assert [entry["what"] for entry in review.to_json()["unsettled"]] == ["0-19 − 0-17"]


def _decided(path: Path, rows: Sequence[str], out: Path) -> str:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(unround.review(path, out).decision)


def test_one_sheet_is_the_sum_of_others(tmp_path: Path) -> None:
    """Men are hidden soundly on their own sheet, and follow from the sheets of persons and of women."""
    men = [[40 + 7 * row, 31 + 5 * row, 25 + 11 * row] for row in range(6)]
    women = [[52 + 3 * row, 44 + 9 * row, 37 + 2 * row] for row in range(6)]
    men[2][1] = 1
    persons = [[one + other for one, other in zip(*pair, strict=True)] for pair in zip(men, women, strict=True)]
    book = xlsxwriter.Workbook(tmp_path / "draft.xlsx")
    for name, counts in (("Persons", persons), ("Men", men), ("Women", women)):
        sheet = book.add_worksheet(name)
        sheet.write_row(0, 0, ["District", "Total", "Full-time", "Part-time", "Not working"])
        rows = [[sum(row), *row] for row in counts]
        for at, row in enumerate([*rows, [sum(column) for column in zip(*rows, strict=True)]]):
            hidden = name == "Men" and at in (2, 4)
            sheet.write_row(at + 1, 0, [f"Place {at}" if at < 6 else "Total", *row[:2], *(["c"] * 2 if hidden else row[2:])])
    book.close()
    assert unround.review(tmp_path / "draft.xlsx", tmp_path / "out").decision in ("revise", "stop")


def test_a_total_on_another_sheet_is_asked_about(tmp_path: Path) -> None:
    book = xlsxwriter.Workbook(tmp_path / "draft.xlsx")
    book.add_worksheet("Read me").write_column(0, 0, ["c means confidential.", "201 children live in these parishes."])
    sheet = book.add_worksheet("Data")
    rows = [("Ashford", 48, 46), ("Birchley", 41, 46), ("Colwick", 51, "c"), ("Dunmore", 64, 70), ("Elswick", 73, 36)]
    for at, row in enumerate([("Parish", "Adults", "Children"), *rows]):
        sheet.write_row(at, 0, row)
    book.close()
    review = unround.review(tmp_path / "draft.xlsx", repairs=())
    assert [entry["what"] for entry in review.to_json()["unsettled"]] == ["row 2 of Read me"]


def test_thousands_in_every_number(tmp_path: Path) -> None:
    """Nothing is below 1,000 in this table: the points group digits all the same."""
    counts = [(3571 + 211 * row, 6405 + 137 * row) for row in range(6)]
    rows = [(f"Place {row}", sum(pair), *pair) for row, pair in enumerate(counts)]
    men, women = sum(pair[0] for pair in counts), sum(pair[1] for pair in counts)
    rows.append(("Total", men + women, men, women))
    lines = [f"{name};{both:,};{one:,};{other:,}".replace(",", ".") for name, both, one, other in rows]
    assert _decided(tmp_path / "a.csv", ["Provincia;Ambos sexos;Hombres;Mujeres", *lines], tmp_path / "out") == "publish"


def test_year_to_date(tmp_path: Path) -> None:
    """It is a column of counts, and the total of the months."""
    months = [(61, 17, 80), (41, 33, 52), (22, 85, 39), (74, 28, 19), (35, 66, 90), (53, 47, 24)]
    header = "Offence,January,February,March,Year to date"
    rows = [",".join(map(str, (f"Kind {row}", *month, sum(month)))) for row, month in enumerate(months)]
    assert _decided(tmp_path / "a.csv", [header, *rows], tmp_path / "safe") == "publish"
    rows[1] = f"Kind 1,41,33,c,{41 + 33 + 1}"
    assert _decided(tmp_path / "a.csv", [header, *rows], tmp_path / "leaky") in ("revise", "stop")


def test_averages_in_other_languages(tmp_path: Path) -> None:
    """A mean age is no count, and nothing to ask about."""
    counts = [(201, 77), (64, 158), (143, 121), (99, 230), (187, 46), (72, 265), (118, 92)]
    ages = ["41,3", "38,9", "44,2", "40,7", "43,8", "39,1", "42,6"]
    rows = [f"{name};{sum(pair)};{pair[0]};{pair[1]};{age}" for name, pair, age in zip("ABCDEFG", counts, ages, strict=True)]
    header = "Gemeente;Totaal;Mannen;Vrouwen;Gemiddelde leeftijd"
    assert _decided(tmp_path / "a.csv", [header, *rows], tmp_path / "out") == "publish"


@pytest.mark.parametrize("name", RAW)
def test_a_file_as_it_comes_is_decided_as_it_should_be(name: str, tmp_path: Path) -> None:
    right, text = RAW[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert unround.review(tmp_path / name, repairs=()).decision in right


@pytest.mark.parametrize(
    ("form", "decision"), [('[<5]"<5";0', "undecided"), (";;;", "undecided"), ('#,##0;-#,##0;"-"', "publish")]
)
def test_numbers_that_a_format_hides_are_asked_about(form: str, decision: str, tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "masked.xlsx") as book:
        sheet, shown = book.add_worksheet(), book.add_format({"num_format": form})
        for at, row in enumerate(
            [("Ward", "Total", "Men", "Women"), ("A", 90, 41, 49), ("B", 80, 3, 77), ("C", 71, 30, 41)]
        ):
            sheet.write_row(at, 0, row, shown)
    assert unround.review(tmp_path / "masked.xlsx", repairs=()).decision == decision


WOMEN = [("Ashford", 48, 46), ("Birchley", 41, 39), ("Colwick", 45, "c"), ("Dunmore", 64, 70), ("Elswick", 30, 33)]


def _chart(book: Any, title: str = "Men", labels: list[dict[str, str]] | None = None) -> Any:
    chart = book.add_chart({"type": "column"})
    chart.add_series({"values": "=Table!$B$2:$B$6", "data_labels": {"value": True, "custom": labels or []}})
    chart.set_title({"name": title})
    return chart


PIXEL = BytesIO(
    base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
)
BESIDE = {
    "chart title": (lambda book, sheet: sheet.insert_chart("F2", _chart(book, "Women in Colwick: 2")), "undecided"),
    "data label": (
        lambda book, sheet: sheet.insert_chart("F2", _chart(book, labels=[{}, {"value": "2 women"}])),
        "undecided",
    ),
    "picture": (lambda book, sheet: sheet.insert_chart("F2", _chart(book), {"description": "2 women"}), "undecided"),
    "text box": (lambda _, sheet: sheet.insert_textbox("F2", "Colwick: only 2 women took part"), "undecided"),
    "footer": (lambda _, sheet: sheet.set_footer('&L&"Arial,Bold"&12All women: 190&RPage &P'), "undecided"),
    "properties": (lambda book, _: book.set_properties({"comments": "Colwick women = 2"}), "undecided"),
    "tool tip": (lambda _, sheet: sheet.write_url("C4", "https://example.org/", None, "c", "2 women"), "undecided"),
    "formula": (lambda _, sheet: sheet.write_formula("C4", '=IF(2<5,"c",2)', None, "c"), "undecided"),
    "sheet": (lambda book, _: book.add_worksheet("About").write(0, 0, "190 women took part"), "undecided"),
    "name of a sheet": (lambda book, _: book.add_worksheet("190 women"), "undecided"),
    "number in a formula": (lambda _, sheet: sheet.write_formula("C2", "=MROUND(47,2)", None, 46), "undecided"),
    "defined name": (lambda book, _: book.define_name("Colwick_n", "=2"), "undecided"),
    "hidden column": (lambda _, sheet: sheet.set_column("C:C", None, None, {"hidden": True}), "undecided"),
    "picture without a text": (lambda _, sheet: sheet.insert_image("F2", "p.png", {"image_data": PIXEL}), "undecided"),
    "rule for cells": (
        lambda _, sheet: sheet.conditional_format("C2:C6", {"type": "cell", "criteria": "<", "value": 5, "format": None}),
        "publish",
    ),
    "limit in a formula": (lambda _, sheet: sheet.write_formula("C4", '=IF(B9<5,"c",B9)', None, "c"), "publish"),
    "harmless title": (
        lambda book, sheet: sheet.insert_chart("F2", _chart(book, "Figure 2. Aged 16 to 64, 2023")),
        "publish",
    ),
    "harmless footer": (lambda _, sheet: sheet.set_footer("&LTable 4, version 2&RPage &P of &N"), "publish"),
}


@pytest.mark.parametrize("name", BESIDE)
def test_what_goes_out_beside_the_cells_is_asked_about(name: str, tmp_path: Path) -> None:
    """One count is hidden, 190 women are in all: 2 in Colwick."""
    add, decision = BESIDE[name]
    with xlsxwriter.Workbook(tmp_path / "draft.xlsx") as book:
        sheet = book.add_worksheet("Table")
        for at, row in enumerate([("District", "Men", "Women"), *WOMEN]):
            sheet.write_row(at, 0, row)
        add(book, sheet)
    assert unround.review(tmp_path / "draft.xlsx", repairs=()).decision == decision


def _printed(hidden: int, base: int = 1) -> Printed:
    how = Rounding(base) if base > 1 else Exact()
    counts = np.array([[48, 46], [41, 39], [45, hidden], [64, 70], [30, 33]], dtype=np.int32)
    areas = pl.DataFrame({"District": [name for name, *_ in WOMEN]})
    columns = tuple(Column(name, (name,), name) for name in ("Men", "Women"))
    return Printed([ReviewedTable(areas, ("District",), columns, (how, how), (), counts)])


HARMLESS = [
    "Table 3. Women, aged 16 to 64, by district, 2021 Census",
    "Data as at 31 March 2024, version 2.1, extracted 2024-03-01 10:30",
    "c: fewer than 5",
    "Counts from 1 to 4 are suppressed",
    "<5: one to four cases",
    "Les effectifs de 1 à 4 sont masqués. Au 31 décembre 2023",
    "Source: County office, release 12 of 4 May 2024; contact +44 20 7946 0018, stats@example.org",
    "Rates per 1,000 inhabitants; 95% confidence intervals",
    "Births to mothers under 20, women 15-19",
    "Regulation (EC) No 223/2009, article 20, ISO 3166",
    "I valori sono arrotondati in modo casuale a multipli di 3.",
    "persons_rr3 COVID-19 E06000012",
    "1 Usually resident.",
    "(1) (2) (3)",
    "In Elswick there were 33 women.",  # as it prints
    "228 men were counted",  # as anybody can add up
    "two dots: confidential",
    "1 of all cells is suppressed",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_a_number_is_harmless_for_a_reason(text: str) -> None:
    assert _printed(SUPPRESSED).unexplained(Saying("row 1", text), {1}) == ""


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Women in Colwick: 2", "2"),
        ("190 women took part", "190"),
        ("Colwick: 4%", "4%"),
        ("In Colwick nobody applied", "nobody"),
        ("2013 women took part", "2013"),
        ("Only eleven women took part", "eleven"),
        ("(1) Four fewer than in 2022.", "four fewer"),
        ("In Colwick there were fewer than 3 women", "3"),
        ("29 before", "29"),
    ],
)
def test_a_number_that_nothing_explains_is_asked_about(text: str, number: str) -> None:
    assert _printed(SUPPRESSED).unexplained(Saying("comment on C4", text, comment=text == "29 before"), {1}) == number
    assert _printed(45).protects is False


def test_a_number_between_hidden_counts_and_their_sums_is_none_of_them() -> None:
    assert [_printed(between(1, 4)).unexplained(Saying("row 1", f"{at} offices"), set()) for at in (4, 12, 47)] == [
        "4",
        "",
        "47",
    ]
    assert _printed(45, 3).unexplained(Saying("row 1", "12 offices"), set()) == "12"


@pytest.mark.parametrize(("women", "decision"), [(87, "undecided"), (85, "publish"), (300, "publish")])
def test_a_summary_that_another_sheet_adds_up_to(women: int, decision: str, tmp_path: Path) -> None:
    """Of North, 85 women are printed, and one count is hidden; 300 are more than could be."""
    with xlsxwriter.Workbook(tmp_path / "draft.xlsx") as book:
        for name, rows in (
            ("North", WOMEN[:3]),
            ("South", WOMEN[3:]),
            ("Summary", [("North", 134, women), ("South", 94, 103)]),
        ):
            sheet = book.add_worksheet(name)
            for at, row in enumerate([("District", "Men", "Women"), *rows]):
                sheet.write_row(at, 0, row)
    reviewed = unround.review(tmp_path / "draft.xlsx", repairs=())
    assert reviewed.decision == decision
    assert any("North of " in one.what for one in reviewed.unsettled) == (decision == "undecided")


ONE_COLUMN = ["Abbey,18", "Barton,c", "Castle,27", "Dene,c", "Eastfield,9", "Foxley,33"]


@pytest.mark.parametrize(
    ("rows", "decision"),
    [
        (ONE_COLUMN, "publish"),
        ([*ONE_COLUMN, "Gorse,94"], "undecided"),  # it may be all others
        ([*ONE_COLUMN, "Gorse,87"], "undecided"),  # or all of them that are printed
        ([*ONE_COLUMN, "Gorse,1"], "stop"),
        ([*ONE_COLUMN, "All parishes,80"], "undecided"),
        (["North,53", *ONE_COLUMN[:4], "South,42", *ONE_COLUMN[4:]], "undecided"),  # two groups, each below its total
    ],
)
def test_one_column_whose_rows_do_not_add_up_tells_nothing(rows: list[str], decision: str, tmp_path: Path) -> None:
    (tmp_path / "draft.csv").write_text("\n".join(["Place,Clients", *rows, "c: fewer than five clients"]), encoding="utf-8")
    review = unround.review(tmp_path / "draft.csv", repairs=())
    assert review.decision == decision
    assert any("known from elsewhere" in note for note in review.notes) == (decision in ("publish", "stop"))


@pytest.mark.parametrize(
    ("last", "asked"),
    [("Check,,418", "may be the sum of all others"), ("Check,418,", "only one with empty cells"), ("Hill,12,31", "")],
)
def test_a_row_that_may_be_a_sum_of_hidden_counts_is_asked_about(last: str, asked: str, tmp_path: Path) -> None:
    rows = [
        "Aldham,41,61",
        "Brockley,57,28",
        "Cowden,33,77",
        "Densham,62,c",
        "Elmley,48,84",
        "Farnwell,75,81",
        "Gosford,39,83",
    ]
    (tmp_path / "draft.csv").write_text("\n".join(["Parish,Cases,Controls", *rows, last, "c = fewer than 5"]))
    review = unround.review(tmp_path / "draft.csv", repairs=())
    assert [asked in entry.why for entry in review.unsettled] == [True] * bool(asked)
    assert review.decision == ("undecided" if asked else "publish")


@pytest.mark.parametrize(("name", "asked"), [("Check: all", True), ("Source: register", False)])
def test_only_the_year_of_a_source_is_no_sum(name: str, asked: bool, tmp_path: Path) -> None:
    rows = ["Aldham,41,300", "Brockley,57,280", "Cowden,33,350", "Densham,62,c", "Elmley,48,340", "Farnwell,75,360"]
    lines = ["Parish,Cases,Controls", *rows, "Gosford,39,390", f"{name},,2023", "c = fewer than 5"]
    (tmp_path / "draft.csv").write_text("\n".join(lines))
    review = unround.review(tmp_path / "draft.csv", repairs=())
    assert any("may be the sum of all others" in entry.why for entry in review.unsettled) == asked


@pytest.mark.parametrize("remark", ["3", "was 3", "late"])
def test_a_remark_beside_a_hidden_count_is_asked_about(remark: str, tmp_path: Path) -> None:
    rows = [
        "Aldham,41,61,",
        "Brockley,57,28,late",
        "Cowden,33,77,",
        f"Densham,62,c,{remark}",
        "Elmley,48,54,",
        "Farnwell,75,66,",
    ]
    (tmp_path / "draft.csv").write_text("\n".join(["Parish,Cases,Controls,Remark", *rows, "c = fewer than 5"]))
    review = unround.review(tmp_path / "draft.csv", repairs=())
    assert [entry.what for entry in review.unsettled] == ["cell D5"] * (remark != "late")


@pytest.mark.parametrize(("kept", "decision"), [(0, "publish"), (3, "undecided")])
def test_a_chart_plots_texts_as_nothing(kept: int, decision: str, tmp_path: Path) -> None:
    rows: list[tuple[str, int | str]] = [("Salmonella", 41), ("Norovirus", 133), ("Shigella", "c"), ("Giardia", 38)]
    with xlsxwriter.Workbook(tmp_path / "draft.xlsx") as book:
        sheet, chart = book.add_worksheet("Cases"), book.add_chart({"type": "bar"})
        for at, row in enumerate([("Pathogen", "Cases"), *rows, ("c: fewer than five",)]):
            sheet.write_row(at, 0, row)
        cached = [kept if count == "c" else count for _, count in rows]
        chart.add_series({"values": "=Cases!$B$2:$B$5", "values_data": cached})
        sheet.insert_chart("D2", chart)
    assert unround.review(tmp_path / "draft.xlsx", repairs=()).decision == decision


def test_a_note_about_one_of_two_hidden_counts_is_no_range_of_both() -> None:
    assert meaning_of("one of the two counts is 1 to 4; both hidden") == SUPPRESSED


def test_the_sum_of_one_table_may_be_the_total_that_another_one_lacks(tmp_path: Path) -> None:
    (tmp_path / "countries.csv").write_text(
        "Country,Students\nSpain,44\nFrance,37\nItaly,21\nIceland,c\nNorway,18\nc: fewer than 5"
    )
    (tmp_path / "fields.csv").write_text("Field,Students\nArts,33\nScience,41\nLaw,19\nMedicine,30\n")
    both = unround.review([tmp_path / "countries.csv", tmp_path / "fields.csv"], repairs=())
    assert [table.decision for table in both.tables][:2] == ["publish", "publish"]
    assert both.decision == "undecided"
