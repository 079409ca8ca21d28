"""A draft table and the decision on it; on a page, the first sheet is to be signed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unround.checks.families import CONTRADICTS, DEPARTS, FITS, UNTESTED
from unround.job import AuditFolder
from unround.reviews.decision import PUBLISH
from unround.reviews.policy import LIKELY, RANGE, REVISE, STOP, UNDECIDED, UNROUNDED
from unround.reviews.run import AUDIT, TOGETHER
from unround.reviews.run import PAGE as PAGE_FILE
from unround.reviews.trying import ESTIMATED
from unround.show.charts import Picture
from unround.show.check import fit_in_words
from unround.show.diff import changed
from unround.show.page import page
from unround.show.parts import (
    INLINE,
    NOWHERE,
    PAGE,
    QUIET,
    TERMINAL,
    Box,
    Bullets,
    Cell,
    Chart,
    Code,
    Column,
    Document,
    Files,
    Line,
    Only,
    Part,
    Row,
    Section,
    Side,
    Table,
    Terms,
    Text,
    rest,
)
from unround.show.report import files_of, write_pages
from unround.show.strongest import sentences
from unround.show.words import CLAIMS, arithmetic, listed, notice, number, percent, several, span

if TYPE_CHECKING:
    from unround.reviews import Review

HEADLINES = {
    PUBLISH: "Publish",
    UNDECIDED: "Undecided: settle this first",
    REVISE: "Revise before publishing",
    STOP: "Stop: do not publish",
}
BEYOND = "Other tables, and what readers know from elsewhere, were not considered."
MEANINGS = {
    PUBLISH: f"The table is within policy. {BEYOND}",
    UNDECIDED: "Nothing found is out of policy, but something that could matter was not understood or not used.",
    REVISE: "The table is not within policy, but at least one repair below is.",
    STOP: "The table is not within policy, and no repair that was tried brings it within.",
}
STATUS = {FITS: "PASSED", DEPARTS: "FAILED", CONTRADICTS: "FAILED", UNTESTED: "NOT TESTED"}

TONES = {PUBLISH: "strong", UNDECIDED: "conditional", REVISE: "conditional", STOP: "wrong"}

FILES = {
    "review.html": "the decision on one page, to be signed; then the details",
    "cells.xlsx": "every cell to act on, with the proposed action and room for your word",
    "review.json": "every number",
    "decisions.jsonl": "the exceptions on record",
    "repaired": "the draft with the repair, in its own layout",
    "audit/report.html": "the audit of the draft",
    "before": "the audit of what is out already",
    "tables": "the review of each table",
    "together": "the review of all tables together",
}

METHOD = (
    "The draft was audited as readers could do it: from the printed numbers, the sums between them, and how they were "
    "rounded. Every count was weighed under every prior of the set. Everything is inferred from cells; nothing is said "
    "about persons."
)
WHERE = "The full report is `audit/report.html`; all numbers are in `review.json`."
ACCEPT = (
    "To accept a cell, write yes and the reason beside it in `cells.xlsx`, save, and run the review again; or use `--accept "
    "CELL --because TEXT`."
)
MARKS = {"proved": "ᵖ", "conditional": "ᶜ", "range": "ʳ", "likely": "ˡ"}
"""How coloured cells of the draft are told apart without colours."""

LEGEND = {kind: f"{'size known' if kind == RANGE else kind} {mark}" for kind, mark in MARKS.items()}
LEGEND |= {kind: kind for kind in (UNROUNDED, "accepted", "hidden")}

FEW_REPAIRS, FEW_CELLS, FEW_REASONS, FEW_QUESTIONS = 4, 6, 5, 6
"""Rows on the first page; the others follow after it."""

MOST_CELLS = 60
"""Cells that the page lists; cells.xlsx has them all."""

MOST_NAMES = 8
"""Columns, sums or places that are named of each kind."""

MOST_STEPS = 4
"""Lines of arithmetic on the first page."""

SQUARES = (("proved", "proved"), ("conditional", "conditional"), ("likely", "likely"), (UNROUNDED, "s5"), ("open", "open"))
"""The kinds of counts among 100 squares, and their colours."""


def headline(told: Mapping[str, Any]) -> str:
    """Return the decision in words."""
    return HEADLINES[told["decision"]]


def meaning(told: Mapping[str, Any]) -> str:
    """Say in a sentence why that is the decision."""
    if told["decision"] == STOP and any(one["action"] == STOP for one in told["reasons"]):
        return "The policy stops a table like this whatever could be repaired."
    if told["decision"] == STOP and not told["repairs"]:
        return "The table is not within policy. No repair was tried."
    said = MEANINGS[told["decision"]]
    accepted = len(told["exceptions"]) + len(told["ignored"])
    if told["decision"] == PUBLISH and accepted:
        said = f"The table is within policy only because of {several(accepted, 'exception')} on record. {BEYOND}"
    elif accepted:
        said += f" {several(accepted, 'exception')} on record {'is' if accepted == 1 else 'are'} left out of this."
    if told["decision"] in (REVISE, STOP) and told["unsettled"]:
        said += f" Besides, {several(len(told['unsettled']), 'thing is', 'things are')} not settled."
    return said


def masthead(told: Mapping[str, Any]) -> dict[str, str]:
    """Return what identifies the table: file, digest, date, base."""
    bases = list(told["table"]["mechanisms"])
    name = files_of(told["table"]["source"])
    digests = {one["name"]: one["sha256"] for one in told["files"]}
    return {
        "file": name,
        # Of several files, or a frame: the digest of the counts themselves.
        "sha256": f"{digests.get(name, told['table']['fingerprint'])[:12]}…",
        "date": long_date(told["date"]),
        "mechanism": listed([_base(name) for name in bases if name != "exact"]) or "unrounded",
    }


def _base(name: str) -> str:
    return name.replace("rounding:", "base ")


def long_date(iso: str) -> str:
    """Return a date as people write it.

    >>> long_date("2026-11-06")
    '6 November 2026'
    """
    day = date.fromisoformat(iso)
    return f"{day.day} {day:%B %Y}"


def check_status(told: Mapping[str, Any]) -> tuple[str, str]:
    """Return the state of the mechanism check, and a sentence about it."""
    check = told["check"]
    if check["contradictions"]:
        said = several(check["contradictions"], "contradiction")
        return "FAILED", f"{said} between published figures. {fit_in_words(check)}"
    if check["judged"] != check["verdict"]:
        said = "Sums that add up exactly were left out: counts were rounded together, or totals added up afterwards."
        return STATUS[check["judged"]], said
    return STATUS[check["verdict"]], fit_in_words(check)


def not_worked_out(told: Mapping[str, Any]) -> str:
    """Say what of the risk was not worked out; nothing where all of it was."""
    sums = told["check"]["sums_for_bounds_only"]
    if not sums:
        return ""
    return (
        f"{several(sums, 'sum forms a loop', 'sums form loops')} with others, and {'is' if sums == 1 else 'are'} used for "
        "proofs only. How likely counts are with them as well was not computed: that is no sign of safety."
    )


def self_check_status(told: Mapping[str, Any]) -> tuple[str, str]:
    """Return the state of the prior's self-check, and a sentence about it."""
    if told["selfcheck"] is None:
        return "NOT TESTED", "No prior was fitted to the table, or no published count of it could be predicted."
    failed = told["check"]["self_check_failed"]
    if failed:
        said = f"In {several(failed, 'table')} the prior fails to predict what was published: probabilities may be far off."
        return "FAILED", said
    tables = told["selfcheck"]["tables"]
    passed = sum(one["verdict"] == "passed" for one in tables)
    if not passed:
        return "NOT TESTED", "There are too few counts to check the prior by predicting what was published."
    return "PASSED", f"The prior predicts what was published in {several(passed, 'table')}."


def example(told: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return one cell and the arithmetic by which readers find it out."""
    one = told["example"]
    if one is None:
        return None
    prints = "nothing" if one["published"] is None else number(one["published"])
    how = {
        "proved": f"readers can prove {number(one['value'])}",
        "conditional": f"readers can prove {number(one['value'])}, under an assumption",
    }.get(
        one["claim"],
        f"readers can tell that it is {number(one['value'])}, with a probability of up to "
        f"{percent(one['probability_high'] or 0)}",
    )
    steps = list(sentences(one["argument"])) if one["argument"] else [_sum_in_words(shown) for shown in one["sums"]]
    return {
        "sentence": f"{one['area']}, {one['what']}: you print {prints}; {how}.",
        "steps": steps[:MOST_STEPS],
        "more": len(steps) - len(steps[:MOST_STEPS]),
    }


class _Shown:
    """A sum from JSON, as `arithmetic` takes it."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.total, self.parts, self.residual = told["total"], told["parts"], told["residual"]


def _sum_in_words(told: Mapping[str, Any]) -> str:
    return f"{told['sum']}: {arithmetic(_Shown(told))}."  # type: ignore[arg-type]  # it has what is needed


# -- repairs ----------------------------------------------------------------------------------------------------------


def leaves(row: Mapping[str, Any]) -> str:
    """Say what a repair leaves: of the cells to act on, how many and which share."""
    mark = "≈ " if row["method"] == ESTIMATED else ""
    if not row["cells_left_most"]:
        return f"{mark}none"
    cells = f"{row['cells_left']:.3g}" if row["cells_left"] < 100 else f"{row['cells_left']:,.0f}"
    if row["left"] is None:
        return f"{mark}{cells}"
    return f"{mark}{cells} ({percent(row['left']) if row['left'] < 1 else format(row['left'], '.0%')})"


def costs(row: Mapping[str, Any]) -> str:
    """Say what a repair costs."""
    cost = row["cost"]
    said = []
    if cost["counts_lost"]:
        said.append(f"{several(cost['counts_lost'], 'count')} less")
    if cost["unrounded_lost"]:
        up_to = f", off by up to {cost['largest_error']}" if cost["largest_error"] else ""
        said.append(f"{several(cost['unrounded_lost'], 'count')} no longer exact{up_to}")
    error = cost["mean_added_error"]
    if error is None:
        said.append("added error unknown")
    elif abs(error) >= 0.005:
        mark = "≈ " if cost["error_is"] == "estimated" else ""
        up_to = f" (off by up to {cost['largest_error']})" if cost["largest_error"] and not cost["unrounded_lost"] else ""
        said.append(f"mean error {mark}{error:+.2f}{up_to}".replace("-", "−"))
    return "; ".join(said) or "nothing"


def _repairs(told: Mapping[str, Any], most: int | None = None) -> Part:
    """Return the repairs as a table; in full, with the names by which they are asked for."""
    rows: list[Row] = []
    for row in told["repairs"][:most]:
        action = Cell(row["action"], small="" if most else row["name"])
        within = "yes" if row["within_policy"] else "no"
        tone = "" if row["within_policy"] else QUIET
        rows.append(Row([str(row["rank"]), action, within, leaves(row), costs(row)], tone))
    left = ("within policy", "leaves", "costs")
    return Table(("", "repair", *left), rows, "Repairs", left=left, header=1)


def footnotes(told: Mapping[str, Any]) -> list[str]:
    """Say how to read the repairs."""
    if not told["repairs"]:
        return []
    found = [
        "Leaves: cells to act on that remain, on average, as a number and a share. A repair is within policy if all of its "
        f"publications are; those that draw random numbers were published up to {told['draws']} times."
    ]
    if any(row["method"] == ESTIMATED for row in told["repairs"]):
        found.append(
            f"≈: estimated, because the true counts were not given (--truth). {told['worlds']['number']} sets of plausible "
            "true counts were drawn from what the draft itself tells of them, each under one of the fitted priors, and the "
            "repaired table was published from every one."
        )
    return found


def open_questions(told: Mapping[str, Any]) -> list[str]:
    """Say what is not settled, and what settles it."""
    return [f"{one['why'].rstrip('.')}. To settle it: {one['settle'].rstrip('.')}." for one in told["unsettled"]]


def refusals(told: Mapping[str, Any]) -> list[str]:
    """Say which repairs were not tried."""
    return [f"Not tried: {one['name']} ({one['why']})." for one in told["not_tried"]]


# -- cells ------------------------------------------------------------------------------------------------------------


def _cells(told: Mapping[str, Any], most: int) -> Part:
    """Return the worst cells as a table."""
    rows: list[Line] = []
    for one in told["cells"][:most]:
        kind = one["claim"]
        chance = f"up to {percent(one['probability_high'])}" if kind == LIKELY and one["probability_high"] else ""
        value = span(one["low"], one["high"]) if kind == RANGE else number(one["value"])
        rows.append(
            [
                one["cell"],
                one["what"],
                number(one["published"]),
                span(one["low"], one["high"]),
                Cell(value, tone="strong"),
                Cell(kind, badge=kind if kind in CLAIMS else "", small=chance),
                "; ".join(one["rules"]),
                one["comment"],
            ]
        )
    heads = (
        "cell",
        Column("count", left=True, only=PAGE),
        "you print",
        Column("possible", only=PAGE),
        "readers learn",
        Column("claim", left=True),
        Column("rule", left=True),
        Column("comment", left=True, only=PAGE if any(one["comment"] for one in told["cells"][:most]) else NOWHERE),
    )
    return Table(heads, rows, "Cells to act on", style="small")


def exceptions(told: Mapping[str, Any]) -> list[str]:
    """Say which exceptions apply, and which do not."""
    found = []
    for one in told["exceptions"]:
        by = f" by {one['reviewer']}" if one.get("reviewer") else ""
        found.append(
            f"{one['cell']} ({one['claim']} {number(one['value'])}), accepted{by} on {one['time'][:10]}: {one['because']}"
        )
    found += [
        f"{one['cell']}, left aside by {one['reviewer']} on {one['time'][:10]}: {one['because']}" for one in told["ignored"]
    ]
    return [*found, *(f"Not applied: {one['cell']}; {one['why']}." for one in told["exceptions_not_applied"])]


# -- how it was read --------------------------------------------------------------------------------------------------


def reading_rows(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Say how the table was read: what its columns are, which sums hold, what is hidden, and what was left out."""
    read = told["reading"]
    by_mechanism: dict[str, list[str]] = {}
    for column in read["columns"]:
        by_mechanism.setdefault(column["mechanism"], []).append(column["what"])
    rows = [
        ("Exact counts" if name == "exact" else f"Counts, {_base(name)}", f"{len(names):,}: {_few(names)}")
        for name, names in by_mechanism.items()
    ]
    sums = [*read["sums"], *(["areas within areas"] if read["over_areas"] else [])]
    rows.append(("Sums", f"{len(sums):,}: {_few(sums, '; ')}" if sums else "none"))
    if read["hidden"]:
        rows.append(("Hidden counts", number(read["hidden"])))
    if read["figures"]:
        rows.append(("Figures used", f"{len(read['figures']):,}: {_few(read['figures'])}"))
    kinds: dict[str, list[str]] = {}
    for entry in read["account"]:
        if not entry["used"]:
            kinds.setdefault(entry["what"], []).append(
                f"{entry['place']} ({entry['why']})" if entry["why"] else entry["place"]
            )
    rows += [(f"Not used: {what}", f"{len(places):,}: {_few(places, '; ')}") for what, places in kinds.items()]
    return rows


def _few(names: Sequence[str], mark: str = ", ") -> str:
    return mark.join(names[:MOST_NAMES]) + (" …" if len(names) > MOST_NAMES else "")


# -- the page ---------------------------------------------------------------------------------------------------------


def shares(told: Mapping[str, Any]) -> dict[str, int]:
    """Divide 100 squares among the kinds of counts; whatever occurs gets one at least."""
    numbers = {kind: sum(sizes.values()) for kind, sizes in told["claims"].items()}
    whole = max(told["table"]["counts"], sum(numbers.values()), 1)
    squares = {kind: max(1, round(100 * many / whole)) if many else 0 for kind, many in numbers.items()}
    over = max(0, sum(squares.values()) - 100)
    largest = max(squares, key=lambda kind: squares[kind])
    squares[largest] -= over
    return {**squares, "open": 100 - sum(squares.values())}


def _squares(told: Mapping[str, Any]) -> Part:
    """Draw 100 squares: the share of counts that is open, likely, proved; with how many counts each colour stands for."""
    each = shares(told)
    said = listed([f"{each[kind]} {kind}" for kind, _ in SQUARES if each[kind]])
    picture = Picture(164, 164, f"Of 100 counts: {said}", "squares")
    at = 0
    for kind, colour in SQUARES:
        for _ in range(each[kind]):
            picture.rect(2 + 16 * (at % 10), 2 + 16 * (at // 10), 14, 14, f"bar {colour}", kind, 2)
            at += 1
    numbers = {kind: sum(sizes.values()) for kind, sizes in told["claims"].items()}
    numbers["open"] = max(0, told["table"]["counts"] - sum(numbers.values()))
    names = {LIKELY: f"likely ({_least(told)} or more)"}
    key = [(colour, names.get(kind, kind), number(numbers[kind]), "") for kind, colour in SQUARES if numbers[kind]]
    return Chart(picture.done(), "Of 100 counts", key=key)


def _least(told: Mapping[str, Any]) -> str:
    found = [one["probability"] for one in told["policy"]["limits"] if one["probability"] is not None]
    return f"{100 * min(found):.6g}%" if found else "66%"


def write_review(folder: Path, told: Mapping[str, Any]) -> None:
    """Write all pages into a folder that `review` made: the reports of the audits, and its own."""
    for one in told.get("tables", ()):
        write_review(folder / one["folder"], one)
    if "tables" not in told and (folder / AUDIT).is_dir():
        write_pages(AuditFolder.open(folder / AUDIT), decision=told["decision"], diff=told["diff"])
    (folder / PAGE_FILE).write_text(page(review(told)), encoding="utf-8", newline="\n")


def review(found: Review | Mapping[str, Any]) -> Document:
    """Give the decision first, then why, what to do, and where to look; on a page, the first sheet is to be signed."""
    told = found if isinstance(found, Mapping) else found.to_json()
    folder = None if isinstance(found, Mapping) else found.folder
    if "tables" in told:
        parts, of, product = list(_several(told)), several(len(told["files"]), "file"), None
    else:
        parts, of = [Box(list(_sheet(told)), "sheet", "article"), *_after(told)], files_of(told["table"]["source"])
        product = told["table"]["product"]
    if folder is not None:
        parts.append(Files(f"{folder}/", [(name, what) for name, what in FILES.items() if (folder / name).exists()]))
    title = f"Review of {of}: {headline(told).lower()}"
    return Document(title, parts, notice=notice(product), style="review", masthead=False)


def _heading(told: Mapping[str, Any], facts: str, more: str, said: str) -> Iterator[Part]:
    """Return the decision, as a terminal and as a page begin with it."""
    yield Only(TERMINAL, [Text(f"DRAFT RELEASE REVIEW · {facts}", QUIET)])
    yield Only(TERMINAL, [Text(f"■ {headline(told).upper()}", TONES[told["decision"]]), Text(said)])
    verdict = Box([Section(headline(told), [Text(said)], level=1)], f"verdict {told['decision']}")
    yield Only(PAGE, [Text("Draft release review", "kicker"), Text(f"{facts}{more}", "facts-line"), verdict])


def _several(told: Mapping[str, Any]) -> Iterator[Part]:
    """Give the one decision on several tables, and list them by status."""
    decision, tables = told["decision"], told["tables"]
    number_of = several(sum(one["name"] != TOGETHER for one in tables), "table")
    said = {
        REVISE: "At least one table is not within policy, but repairs would bring it within: see its own page.",
        STOP: "At least one table is not within policy, and no repair that was tried brings it within: see its own page.",
        PUBLISH: f"All tables are within policy, each alone and all together. {BEYOND}",
    }.get(decision, MEANINGS[decision])
    if told["exceptions"] or told["ignored"]:
        said += f" {several(len(told['exceptions']) + len(told['ignored']), 'exception')} on record."
    order = [STOP, REVISE, UNDECIDED, PUBLISH]
    rows: list[Line] = []
    for one in sorted(tables, key=lambda one: order.index(one["decision"])):
        name = "All tables together" if one["name"] == TOGETHER else one["name"]
        counts = f"{number(one['table']['counts'])} in {several(one['table']['areas'], 'area')}"
        cell = Cell(name, small=counts, link=f"{one['folder']}/{PAGE_FILE}")
        rows.append([cell, one["decision"], number(one["cells_to_act_on"]), _why(one), f"{one['reading']['sha256'][:12]}…"])
    heads = (
        "table",
        Column("decision", left=True),
        "cells to act on",
        Column("why", left=True),
        Column("read as", left=True, only=PAGE),
    )
    parts = [*_heading(told, f"{number_of} · {long_date(told['date'])}", "", said)]
    parts.append(_inline("The tables, the worst first", [Table(heads, rows, "Tables by status")]))
    questions = open_questions(told)
    if questions:
        parts.append(_inline("Not settled", [Bullets(questions, style="reasons")]))
    accepted = [one for table in tables for one in exceptions(table)]
    if accepted:
        parts.append(_inline("Exceptions on record", [Bullets(accepted)]))
    yield Box([*parts, Only(PAGE, list(_signature(told)))], "sheet", "article")
    drafts = [(one, one["picture"]) for one in tables if one["name"] != TOGETHER and one["picture"]]
    yield Only(PAGE, [_draft(picture, one["name"]) for one, picture in drafts])
    yield Bullets([f"Note: {note}" for note in told["notes"]], QUIET)


def _why(told: Mapping[str, Any]) -> str:
    """Say in a sentence what the decision on a table rests on."""
    reasons = [one["sentence"] for one in told["reasons"] if one["action"] != UNDECIDED]
    open_ = [one["why"].rstrip(".") + "." for one in told["unsettled"]]
    if not reasons and not open_ and told["name"] == TOGETHER:
        return "Nothing out of policy follows from the tables together that does not follow from one of them alone."
    return " ".join([*reasons, *open_][:2]) or meaning(told)


def _sheet(told: Mapping[str, Any]) -> Iterator[Part]:
    head, table = masthead(told), told["table"]
    counts = f"{several(table['counts'], 'count')} in {several(table['areas'], 'area')}"
    facts = f"{head['file']} · sha256 {head['sha256']} · {head['date']} · {head['mechanism']}"
    yield from _heading(told, facts, f" · {counts}", meaning(told))
    questions = open_questions(told)
    if questions:
        more = rest(len(questions), FEW_QUESTIONS, "`review.json` has them all")
        yield _inline("Not settled", [Bullets(questions[:FEW_QUESTIONS], style="reasons"), more])
    yield Side([_reasons(told), [_squares(told)]], "found")
    clashes = told["check"]["clashes"]
    if clashes:
        more = rest(told["check"]["contradictions"], len(clashes[:2]), "`audit/contradictions.csv` has them all")
        yield _inline("What contradicts", [Bullets(clashes[:2], style="arithmetic"), more])
    shown = example(told)
    if shown is not None:
        longer = [f"and {shown['more']} more steps: see the audit"] if shown["more"] else []
        steps = Bullets([*shown["steps"], *longer], QUIET, "arithmetic")
        yield _inline("In one example", [Text(shown["sentence"], "example"), steps])
    if told["repairs"]:
        title = "Any one of these is enough" if told["decision"] == REVISE else "What was tried"
        left = len(told["repairs"]) - FEW_REPAIRS
        tried = f"{several(left, 'more repair was', 'more repairs were')} tried; see all repairs." if left > 0 else ""
        within = [row for row in told["repairs"] if row["within_policy"]]
        if told["decision"] == REVISE and len(within) < len(told["repairs"][:FEW_REPAIRS]):
            title = "Any one of these that is within policy is enough"
        yield _inline(title, [_repairs(told, FEW_REPAIRS), Text(tried, QUIET)])
    if told["cells"]:
        worst = "The worst first. " if told["cells_to_act_on"] > FEW_CELLS else ""
        note = Text(f"{worst}All of them, with the proposed action: `cells.xlsx`.", QUIET)
        yield _inline(f"Cells to act on: {told['cells_to_act_on']:,}", [_cells(told, FEW_CELLS), note])
    yield Terms(list(_checks(told)), "wide checks")
    yield Only(PAGE, list(_signature(told)))


def _inline(title: str, parts: Sequence[Part]) -> Section:
    return Section(title, parts, style=INLINE)


def _reasons(told: Mapping[str, Any]) -> list[Part]:
    reasons = [one["sentence"] for one in told["reasons"] if one["action"] != UNDECIDED]
    title, listed_ = "Why", reasons[:FEW_REASONS]
    if not reasons:
        title = "Policy check"
        accepted = [f"; {one['allowed']:,} would be acceptable" if one["allowed"] else "" for one in told["limits"]]
        listed_ = [f"{one['found']}{more}." for one, more in zip(told["limits"], accepted, strict=True)]
    limits = " ".join(one["sentence"] for one in told["limits"])
    policy = Text(f"Policy “{told['policy']['name']}”: {limits}", "quiet policy-line")
    return [_inline(title, [Bullets(listed_, style="reasons"), rest(len(reasons), FEW_REASONS, "see below"), policy])]


def _checks(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, (state, said) in (
        ("Fit of the data", check_status(told)),
        ("Self-check of probabilities", self_check_status(told)),
    ):
        said = said.removeprefix("Not tested: ")
        yield name, f"{state}. {said[:1].upper()}{said[1:]}"
    if not_worked_out(told):
        yield "Probabilities", f"NOT COMPLETE. {not_worked_out(told)}"
    if exceptions(told):
        applied = len(told["exceptions"]) + len(told["ignored"])
        refused = f", {len(told['exceptions_not_applied'])} not applied" if told["exceptions_not_applied"] else ""
        yield "Exceptions", f"{applied} applied{refused}; listed below."


def _signature(told: Mapping[str, Any]) -> Iterator[Part]:
    by = f": {told['reviewer']}" if told["reviewer"] else ""
    yield Box([Text(f"Reviewer{by}"), Text("Signature"), Text("Date")], "signature")
    files = [f"{file['name']} sha256 {file['sha256']}" for file in told["files"]]
    read = [(one.get("name", "Read"), one["reading"]["sha256"]) for one in told.get("tables", [told])]
    lines = [
        *(f"{name} as sha256 {digest} (counts, columns, sums and what was left out)" for name, digest in read),
        *files,
        f"unround {told['unround']} · seed {told['seed']} · {told['date']} · Not for publication: this page shows inferred "
        "values of single cells.",
    ]
    yield Text("\n".join(lines), "made")


def _after(told: Mapping[str, Any]) -> Iterator[Part]:
    """Return what follows the first sheet."""
    yield Section("How this table was read", [Terms(reading_rows(told), "wide")], "reading")
    picture = told["picture"]
    if picture:
        yield Only(PAGE, [_draft(picture)])
    if told["diff"] is not None:
        yield Section("What is new beside what is out", [*changed(told["diff"])], "changed")
    yield Only(PAGE, list(_policy(told)))
    notes = [*footnotes(told), *refusals(told)]
    if told["repairs"] or notes:
        table = [_repairs(told)] if told["repairs"] else []
        yield Only(PAGE, [Section("All repairs", [*table, Bullets(notes, QUIET)], "repairs")])
        yield Only(TERMINAL, [Bullets(notes, QUIET)])
    if told["cells"]:
        more = rest(told["cells_to_act_on"], MOST_CELLS, "`cells.xlsx` has them all")
        yield Only(PAGE, [Section("Cells to act on", [_cells(told, MOST_CELLS), more, Text(ACCEPT, QUIET)], "cells")])
    if exceptions(told):
        said = (
            "From `decisions.jsonl`. An exception applies to this very table, and to no surer claim than the one that was "
            "accepted."
        )
        yield Section("Exceptions on record", [Bullets(exceptions(told)), Text(said, QUIET)], "exceptions")
    alone = told["likely_alone"]
    known = (
        f" {several(alone, 'count is', 'counts are')} likely from the published value alone; sums add little to that, and "
        "no limit counts them."
        if alone
        else ""
    )
    command: list[Part] = [Code(told["command"])] if told["command"] else []
    made: list[Part] = [Text(f"{METHOD}{known} {BEYOND} {WHERE}"), Bullets(told["notes"], QUIET), *command]
    yield Only(PAGE, [Section("How this was made", made, "method")])
    yield Only(TERMINAL, [Text("\n".join(f"Note: {note}" for note in told["notes"]), QUIET)])


def _policy(told: Mapping[str, Any]) -> Iterator[Part]:
    rows = [
        [one["sentence"], one["found"], number(one["allowed"]), "yes" if one["exceeded"] else "no"] for one in told["limits"]
    ]
    highest = (
        "How likely a count is goes by the highest probability that any of the priors gives to it: the highest found, which "
        "is not an upper bound."
    )
    table = Table(("limit", "found", "acceptable", "exceeded"), rows, "Limits", left=("found", "exceeded"), legend=highest)
    source = Text(f"Word for word, from {told['policy']['source']}:")
    yield Section("The policy in force", [table, source, Code(told["policy"]["text"])], "policy")


def _draft(picture: Mapping[str, Any], name: str = "The table") -> Part:
    """Return the table itself, with the cells to act on coloured and marked."""
    rows: list[Line] = []
    for row in picture["rows"]:
        line: Line = [row["area"]]
        for value, kind, reach in row["cells"]:
            top = "any" if reach and reach[1] is None else reach[1] if reach else ""
            known = f"{kind}: {reach[0]}{f' to {top}' if top != reach[0] else ''}" if kind and reach else ""
            text = f"{'·' if value is None else number(value)}{MARKS.get(kind, '') if kind else ''}"
            line.append(Cell(text, tone=f"cell-{kind}" if kind else "", title=known))
        rows.append(line)
    left = picture["left_out"]
    more = f" {several(left, 'row')} without cells to act on {'is' if left == 1 else 'are'} not shown." if left else ""
    kinds = {kind for row in picture["rows"] for _, kind, _ in row["cells"] if kind}
    shown = [said for kind, said in LEGEND.items() if kind in kinds]
    legend = f"{f'Coloured and marked: {listed(shown)}.' if shown else ''}{more}"
    title = "with the cells to act on" if kinds - {"accepted", "hidden"} else "in which no cell is to be acted on"
    table = Table(("", *picture["columns"]), rows, "The table", legend=legend, style="small draft")
    return Section(f"{name}, {title}", [table], "table" if name == "The table" else "")
