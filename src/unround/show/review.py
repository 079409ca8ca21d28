"""A draft table and the decision on it; on a page, the first sheet is to be signed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from unround.checks.families import CONTRADICTS, DEPARTS, FITS, UNTESTED
from unround.job import AuditFolder
from unround.reviews.decision import PUBLISH
from unround.reviews.policy import LIKELY, RANGE, REVISE, STOP, UNDECIDED, UNROUNDED
from unround.reviews.result import TOGETHER, JointReview, Review, TablePicture, TableReview, TriedRepair
from unround.reviews.run import AUDIT
from unround.reviews.run import PAGE as PAGE_FILE
from unround.reviews.trying import ESTIMATED
from unround.show.charts import Picture, Share, squares
from unround.show.check import fit_in_words
from unround.show.diff import changed
from unround.show.page import page
from unround.show.parts import (
    INLINE,
    NOWHERE,
    PAGE,
    QUIET,
    TERMINAL,
    Bullets,
    Chart,
    Code,
    Document,
    Files,
    Frame,
    Line,
    Only,
    Part,
    Section,
    Side,
    Table,
    TableCell,
    TableColumn,
    TableRow,
    Terms,
    Text,
    rest,
)
from unround.show.report import files_of, write_pages
from unround.show.strongest import sentences
from unround.show.words import CLAIMS, arithmetic, few, listed, notice, number, percent, several, span

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
    REVISE: "The table is not within policy, but at least one of the repairs brings it within.",
    STOP: "The table is not within policy, and no repair that was tried brings it within.",
}
EXACT = "exact"
"""The mechanism of counts that are printed as they are."""

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
"""How coloured cells of the draft are reviewed apart without colours."""

LEGEND = {kind: f"{'size known' if kind == RANGE else kind} {mark}" for kind, mark in MARKS.items()}
LEGEND |= {kind: kind for kind in (UNROUNDED, "accepted", "hidden")}

FEW_REPAIRS, FEW_CELLS, FEW_REASONS, FEW_QUESTIONS, FEW_EXCEPTIONS = 4, 6, 5, 6, 6
"""Rows on the first page; the others follow after it."""

MOST_CELLS = 60
"""Cells that the page lists; cells.xlsx has them all."""

MOST_NAMES = 8
"""Columns, sums or places that are named of each kind."""

MOST_STEPS = 4
"""Lines of arithmetic on the first page."""

SQUARES = (("proved", "proved"), ("conditional", "conditional"), ("likely", "likely"), (UNROUNDED, "s5"), ("open", "open"))
"""The kinds of counts among 100 squares, and their colours."""


def headline(reviewed: Review) -> str:
    """Return the decision in words."""
    return HEADLINES[reviewed.decision]


def meaning(reviewed: TableReview) -> str:
    """Say in a sentence why that is the decision."""
    if reviewed.decision == STOP and any(reason.action == STOP for reason in reviewed.reasons):
        return "The policy stops a table like this whatever could be repaired."
    if reviewed.decision == STOP and not reviewed.repairs:
        return "The table is not within policy. No repair was tried."
    said = MEANINGS[reviewed.decision]
    accepted = len(reviewed.exceptions) + len(reviewed.ignored)
    if reviewed.decision == PUBLISH and accepted:
        said = f"The table is within policy only because of {several(accepted, 'exception')} on record. {BEYOND}"
    elif accepted:
        said += f" {several(accepted, 'exception')} on record {'is' if accepted == 1 else 'are'} left out of this."
    if reviewed.decision in (REVISE, STOP) and reviewed.unsettled:
        said += f" Besides, {several(len(reviewed.unsettled), 'thing is', 'things are')} not settled."
    return said


def masthead(reviewed: TableReview) -> dict[str, str]:
    """Return what identifies the table: file, digest, date, base."""
    bases = list(reviewed.table.mechanisms)
    name = files_of(reviewed.table.source)
    digests = {file["name"]: file["sha256"] for file in reviewed.files}
    return {
        "file": name,
        # Of several files, or a frame: the digest of the counts themselves.
        "sha256": f"{digests.get(name, reviewed.table.fingerprint)[:12]}…",
        "date": long_date(reviewed.date),
        "mechanism": listed([_base(name) for name in bases if name != EXACT]) or "unrounded",
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


def check_status(reviewed: TableReview) -> tuple[str, str]:
    """Return the state of the mechanism check, and a sentence about it."""
    check = reviewed.check
    if check["contradictions"]:
        said = several(check["contradictions"], "contradiction")
        return "FAILED", f"{said} between published figures. {fit_in_words(check)}"
    if set(reviewed.table.mechanisms) == {EXACT}:
        return STATUS[UNTESTED], "All counts were taken as unrounded: there is no rounding that could be tested."
    if check["judged"] != check["verdict"]:
        said = "Sums that add up exactly were left out: counts were rounded together, or totals added up afterwards."
        return STATUS[check["judged"]], said
    return STATUS[check["verdict"]], fit_in_words(check)


def not_worked_out(reviewed: TableReview) -> str:
    """Say what of the risk was not computed; nothing where all of it was."""
    sums = reviewed.check["sums_for_bounds_only"]
    if not sums:
        return ""
    return (
        f"{several(sums, 'sum forms a loop', 'sums form loops')} with others, and {'is' if sums == 1 else 'are'} used for "
        "proofs only. How likely counts are with them as well was not computed: that is no sign of safety."
    )


def self_check_status(reviewed: TableReview) -> tuple[str, str]:
    """Return the state of the prior's self-check, and a sentence about it."""
    if reviewed.selfcheck is None:
        return "NOT TESTED", "No prior was fitted to the table, or no published count of it could be predicted."
    failed = reviewed.check["self_check_failed"]
    if failed:
        said = f"In {several(failed, 'table')} the prior fails to predict what was published: probabilities may be far off."
        return "FAILED", said
    tables = reviewed.selfcheck["tables"]
    passed = sum(table["verdict"] == "passed" for table in tables)
    if not passed:
        return "NOT TESTED", "There are too few counts to check the prior by predicting what was published."
    return "PASSED", f"The prior predicts what was published in {several(passed, 'table')}."


def example(reviewed: TableReview) -> dict[str, Any] | None:
    """Return one cell and the arithmetic by which readers find it out."""
    cell = reviewed.example
    if cell is None:
        return None
    prints = "nothing" if cell.published is None else number(cell.published)
    how = {
        "proved": f"readers can prove {number(cell.value)}",
        "conditional": f"readers can prove {number(cell.value)}, under an assumption",
    }.get(
        cell.claim,
        f"readers can tell that it is {number(cell.value)}, with a probability of up to "
        f"{percent(cell.probability_high or 0)}",
    )
    steps = (
        list(sentences(cell.argument)) if cell.argument else [f"{shown.sum}: {arithmetic(shown)}." for shown in cell.sums]
    )
    return {
        "sentence": f"{cell.area}, {cell.what}: you print {prints}; {how}.",
        "steps": steps[:MOST_STEPS],
        "more": len(steps) - len(steps[:MOST_STEPS]),
    }


# -- repairs ----------------------------------------------------------------------------------------------------------


def leaves(row: TriedRepair) -> str:
    """Say what a repair leaves: of the cells to act on, how many and which share."""
    mark = "≈ " if row.method == ESTIMATED else ""
    if not row.cells_left_most:
        return f"{mark}none"
    cells = f"{row.cells_left:.3g}" if row.cells_left < 100 else f"{row.cells_left:,.0f}"
    if row.left is None:
        return f"{mark}{cells}"
    return f"{mark}{cells} ({percent(row.left) if row.left < 1 else format(row.left, '.0%')})"


def costs(row: TriedRepair) -> str:
    """Say what a repair costs."""
    cost = row.cost
    said = []
    if cost.counts_lost:
        said.append(f"{several(cost.counts_lost, 'count')} less")
    if cost.unrounded_lost:
        up_to = f", off by up to {cost.largest_error}" if cost.largest_error else ""
        said.append(f"{several(cost.unrounded_lost, 'count')} no longer exact{up_to}")
    error = cost.mean_added_error
    if error is None:
        said.append("added error unknown")
    elif abs(error) >= 0.005:
        mark = "≈ " if cost.error_is == "estimated" else ""
        up_to = f" (off by up to {cost.largest_error})" if cost.largest_error and not cost.unrounded_lost else ""
        said.append(f"mean error {mark}{error:+.2f}{up_to}".replace("-", "−"))
    return "; ".join(said) or "nothing"


def _repairs(reviewed: TableReview, most: int | None = None) -> Part:
    """Return the repairs as a table; in full, with the names by which they are asked for."""
    rows: list[TableRow] = []
    for row in reviewed.repairs[:most]:
        action = TableCell(row.action, small="" if most else row.name)
        within = "yes" if row.within_policy else "no"
        tone = "" if row.within_policy else QUIET
        rows.append(TableRow([str(row.rank), action, within, leaves(row), costs(row)], tone))
    left = ("within policy", "leaves", "costs")
    return Table(("", "repair", *left), rows, "Repairs", left=left, header=1)


def footnotes(reviewed: TableReview) -> list[str]:
    """Say how to read the repairs."""
    if not reviewed.repairs:
        return []
    notes = [
        "Leaves: cells to act on that remain, on average, as a number and a share. A repair is within policy if all of its "
        f"publications are; those that draw random numbers were published up to {reviewed.draws} times."
    ]
    if reviewed.worlds is not None and any(row.method == ESTIMATED for row in reviewed.repairs):
        notes.append(
            f"≈: estimated, because the true counts were not given (--truth). {reviewed.worlds['number']} sets of "
            "plausible true counts were drawn from what the draft itself tells of them, each under one of the fitted "
            "priors, and the repaired table was published from every one."
        )
    return notes


def open_questions(reviewed: Review) -> list[str]:
    """Say what is not settled, and what settles it."""
    return [f"{matter.why.rstrip('.')}. To settle it: {matter.settle.rstrip('.')}." for matter in reviewed.unsettled]


def refusals(reviewed: TableReview) -> list[str]:
    """Say which repairs were not tried."""
    return [f"Not tried: {repair.name} ({repair.why})." for repair in reviewed.not_tried]


# -- cells ------------------------------------------------------------------------------------------------------------


def _cells(reviewed: TableReview, most: int) -> Part:
    """Return the worst cells as a table."""
    rows: list[Line] = []
    for cell in reviewed.cells[:most]:
        kind = cell.claim
        chance = f"up to {percent(cell.probability_high)}" if kind == LIKELY and cell.probability_high else ""
        value = span(cell.low, cell.high) if kind == RANGE else number(cell.value)
        rows.append(
            [
                cell.cell,
                cell.what,
                number(cell.published),
                span(cell.low, cell.high),
                TableCell(value, tone="strong"),
                TableCell(kind, badge=kind if kind in CLAIMS else "", small=chance),
                "; ".join(cell.rules),
                cell.comment,
            ]
        )
    heads = (
        "cell",
        TableColumn("count", left=True, only=PAGE),
        "you print",
        TableColumn("possible", only=PAGE),
        "readers learn",
        TableColumn("claim", left=True),
        TableColumn("rule", left=True),
        TableColumn("comment", left=True, only=PAGE if any(cell.comment for cell in reviewed.cells[:most]) else NOWHERE),
    )
    return Table(heads, rows, "Cells to act on", style="small")


def exceptions(reviewed: TableReview) -> list[str]:
    """Say which exceptions apply, and which do not."""
    said = []
    for entry in reviewed.exceptions:
        by = f" by {entry['reviewer']}" if entry.get("reviewer") else ""
        claim = "its size" if entry["claim"] == RANGE else f"{number(entry['value'])}, {entry['claim']}"
        said.append(f"{entry['cell']} ({claim}), accepted{by} on {entry['time'][:10]}: {entry['because']}")
    said += [
        f"{entry['cell']}, left aside by {entry['reviewer']} on {entry['time'][:10]}: {entry['because']}"
        for entry in reviewed.ignored
    ]
    return [*said, *(f"Not applied: {entry['cell']}; {entry['why']}." for entry in reviewed.exceptions_not_applied)]


# -- how it was read --------------------------------------------------------------------------------------------------


def reading_rows(reviewed: TableReview) -> list[tuple[str, str]]:
    """Say how the table was read: what its columns are, which sums hold, what is hidden, and what was left out."""
    read = reviewed.reading
    by_mechanism: dict[str, list[str]] = {}
    for column in read.columns:
        by_mechanism.setdefault(column.mechanism, []).append(column.what)
    rows = [
        ("Exact counts" if name == EXACT else f"Counts, {_base(name)}", f"{len(names):,}: {few(names, MOST_NAMES, '; ')}")
        for name, names in by_mechanism.items()
    ]
    sums = [*read.sums, *(["areas within areas"] if read.over_areas else [])]
    rows.append(("Sums", f"{len(sums):,}: {few(sums, MOST_NAMES, '; ')}" if sums else "none"))
    if read.hidden:
        rows.append(("Hidden counts", number(read.hidden)))
    if read.figures:
        rows.append(("Figures used", f"{len(read.figures):,}: {few(read.figures, MOST_NAMES, '; ')}"))
    kinds: dict[str, list[str]] = {}
    for entry in read.account:
        if not entry.used:
            kinds.setdefault(entry.what, []).append(f"{entry.place} ({entry.why})" if entry.why else entry.place)
    rows += [(f"Not used: {what}", f"{len(places):,}: {few(places, MOST_NAMES, '; ')}") for what, places in kinds.items()]
    return rows


# -- the page ---------------------------------------------------------------------------------------------------------


def _squares(reviewed: TableReview) -> Part:
    """Draw 100 squares: the share of counts that is open, likely, proved; with how many counts each colour stands for."""
    numbers = {kind: sum(sizes.values()) for kind, sizes in reviewed.claims.items()}
    numbers["open"] = max(0, reviewed.table.counts - sum(numbers.values()))
    shares = [Share(kind, colour, numbers[kind]) for kind, colour in SQUARES]
    each = squares(shares, max(sum(numbers.values()), 1), 100)
    said = listed([f"{many} {share.name}" for share, many in zip(shares, each, strict=True) if many])
    picture = Picture(164, 164, f"Of 100 counts: {said}", "squares")
    kinds = [share for share, many in zip(shares, each, strict=True) for _ in range(many)]
    for at, share in enumerate(kinds):
        picture.rect(2 + 16 * (at % 10), 2 + 16 * (at // 10), 14, 14, f"bar {share.kind}", share.name, 2)
    names = {LIKELY: f"likely ({_least(reviewed)} or more)"}
    key = [(share.kind, names.get(share.name, share.name), number(share.number), "") for share in shares if share.number]
    return Chart(picture.done(), "Of 100 counts", key=key)


def _least(reviewed: TableReview) -> str:
    limits = [limit.probability for limit in reviewed.policy.limits if limit.probability is not None]
    return f"{100 * min(limits):.6g}%" if limits else "66%"


def write_review(folder: Path, reviewed: Review) -> None:
    """Write all pages into a folder that `review` made: the reports of the audits, and its own."""
    if isinstance(reviewed, JointReview):
        for table, place in zip(reviewed.tables, reviewed.places, strict=True):
            write_review(folder / place, table)
    elif isinstance(reviewed, TableReview) and (folder / AUDIT).is_dir():
        write_pages(AuditFolder.open(folder / AUDIT), decision=reviewed.decision, diff=reviewed.diff)
    (folder / PAGE_FILE).write_text(page(review(reviewed)), encoding="utf-8", newline="\n")


def review(reviewed: Review) -> Document:
    """Give the decision first, then why, what to do, and where to look; on a page, the first sheet is to be signed."""
    folder = reviewed.folder
    if isinstance(reviewed, JointReview):
        parts, of, product = list(_several(reviewed)), several(len(reviewed.files), "file"), None
    else:
        (table,) = reviewed.tables
        parts = [Frame(list(_sheet(table)), "sheet", "article"), *_after(table)]
        of, product = files_of(table.table.source), table.table.product
    if folder is not None:
        parts.append(Files(f"{folder}/", [(name, what) for name, what in FILES.items() if (folder / name).exists()]))
    title = f"Review of {of}: {headline(reviewed).lower()}"
    return Document(title, parts, notice=notice(product), style="review", masthead=False)


def _heading(reviewed: Review, facts: str, more: str, said: str) -> Iterator[Part]:
    """Return the decision, as a terminal and as a page begin with it."""
    yield Only(TERMINAL, [Text(f"DRAFT RELEASE REVIEW · {facts}", QUIET)])
    yield Only(TERMINAL, [Text(f"■ {headline(reviewed).upper()}", TONES[reviewed.decision]), Text(said)])
    verdict = Frame([Section(headline(reviewed), [Text(said)], level=1)], f"verdict {reviewed.decision}")
    yield Only(PAGE, [Text("Draft release review", "kicker"), Text(f"{facts}{more}", "facts-line"), verdict])


def _several(reviewed: JointReview) -> Iterator[Part]:
    """Give the one decision on several tables, and list them by status."""
    decision, tables = reviewed.decision, reviewed.tables
    number_of = several(sum(table.name != TOGETHER for table in tables), "table")
    said = {
        REVISE: "At least one table is not within policy, but repairs would bring it within: see its own page.",
        STOP: "At least one table is not within policy, and no repair that was tried brings it within: see its own page.",
        PUBLISH: f"All tables are within policy, each alone and all together. {BEYOND}",
    }.get(decision, MEANINGS[decision])
    out_of_policy = [table for table in tables if table.decision in (REVISE, STOP)]
    if all(table.name == TOGETHER for table in out_of_policy) and out_of_policy:
        repaired = "repairs would bring them" if decision == REVISE else "no repair that was tried brings them"
        said = f"Each table is within policy alone. Together they are not, but {repaired} within: see their own page."
        said = said if decision == REVISE else said.replace("but no repair", "and no repair")
    if accepted := sum(len(table.exceptions) + len(table.ignored) for table in tables):
        said += f" {several(accepted, 'exception')} on record."
    order = [STOP, REVISE, UNDECIDED, PUBLISH]
    rows: list[Line] = []
    for table, place in sorted(
        zip(tables, reviewed.places, strict=True), key=lambda placed: order.index(placed[0].decision)
    ):
        counts = f"{number(table.table.counts)} in {several(table.table.areas, 'area')}"
        cell = TableCell(_called(table), small=counts, link=f"{place}/{PAGE_FILE}")
        rows.append([cell, table.decision, number(table.cells_to_act_on), _why(table), f"{table.reading.sha256[:12]}…"])
    heads = (
        "table",
        TableColumn("decision", left=True),
        "cells to act on",
        TableColumn("why", left=True),
        TableColumn("read as", left=True, only=PAGE),
    )
    parts = [*_heading(reviewed, f"{number_of} · {long_date(reviewed.date)}", "", said)]
    parts.append(_inline("The tables, the worst first", [Table(heads, rows, "Tables by status")]))
    questions = open_questions(reviewed)
    if questions:
        parts.append(_inline("Not settled", [Bullets(questions, style="reasons")]))
    for table in out_of_policy:
        more = rest(len(table.cells), FEW_CELLS, "its own page has more")
        parts.append(_inline(f"Cells to act on, {_called(table)}: {len(table.cells):,}", [_cells(table, FEW_CELLS), more]))
    on_record = [sentence for table in tables for sentence in exceptions(table)]
    if on_record:
        parts.append(_inline("Exceptions on record", [Bullets(on_record)]))
    yield Frame([*parts, Only(PAGE, list(_signature(reviewed)))], "sheet", "article")
    drafts = sorted((table for table in tables if table.name != TOGETHER or table.cells), key=lambda table: not table.cells)
    yield Only(PAGE, [_draft(table.picture, _called(table)) for table in drafts if table.picture])
    yield Bullets([f"Note: {note}" for note in reviewed.notes], QUIET)


def _called(reviewed: TableReview) -> str:
    return "All tables together" if reviewed.name == TOGETHER else reviewed.name


def _why(reviewed: TableReview) -> str:
    """Say in a sentence what the decision on a table rests on."""
    reasons = [reason.sentence for reason in reviewed.reasons if reason.action != UNDECIDED]
    open_ = [matter.why.rstrip(".") + "." for matter in reviewed.unsettled]
    if not reasons and not open_ and reviewed.name == TOGETHER:
        return "Nothing out of policy follows from the tables together that does not follow from one of them alone."
    return " ".join([*reasons, *open_][:2]) or meaning(reviewed)


def _sheet(reviewed: TableReview) -> Iterator[Part]:
    head, table = masthead(reviewed), reviewed.table
    counts = f"{several(table.counts, 'count')} in {several(table.areas, 'area')}"
    facts = f"{head['file']} · sha256 {head['sha256']} · {head['date']} · {head['mechanism']}"
    yield from _heading(reviewed, facts, f" · {counts}", meaning(reviewed))
    questions = open_questions(reviewed)
    if questions:
        more = rest(len(questions), FEW_QUESTIONS, "`review.json` has them all")
        yield _inline("Not settled", [Bullets(questions[:FEW_QUESTIONS], style="reasons"), more])
    yield Side([_reasons(reviewed), [_squares(reviewed)]], "found")
    clashes = reviewed.check["clashes"]
    if clashes:
        more = rest(reviewed.check["contradictions"], len(clashes[:2]), "`audit/contradictions.csv` has them all")
        yield _inline("What contradicts", [Bullets(clashes[:2], style="arithmetic"), more])
    shown = example(reviewed)
    if shown is not None:
        longer = [f"and {shown['more']} more steps: see the audit"] if shown["more"] else []
        steps = Bullets([*shown["steps"], *longer], QUIET, "arithmetic")
        yield _inline("In one example", [Text(shown["sentence"], "example"), steps])
    if reviewed.repairs:
        title = "Any one of these is enough" if reviewed.decision == REVISE else "What was tried"
        left = len(reviewed.repairs) - FEW_REPAIRS
        tried = f"{several(left, 'more repair was', 'more repairs were')} tried: the page lists all." if left > 0 else ""
        within = [row for row in reviewed.repairs if row.within_policy]
        if reviewed.decision == REVISE and len(within) < len(reviewed.repairs[:FEW_REPAIRS]):
            title = "Any one of these that is within policy is enough"
        yield _inline(title, [_repairs(reviewed, FEW_REPAIRS), Text(tried, QUIET)])
    if reviewed.cells:
        worst = "The worst first. " if reviewed.cells_to_act_on > FEW_CELLS else ""
        note = Text(f"{worst}All of them, with the proposed action: `cells.xlsx`.", QUIET)
        yield _inline(f"Cells to act on: {reviewed.cells_to_act_on:,}", [_cells(reviewed, FEW_CELLS), note])
    if on_record := exceptions(reviewed):
        more = rest(len(on_record), FEW_EXCEPTIONS, "see below")
        yield Only(PAGE, [_inline("What was accepted, and why", [Bullets(on_record[:FEW_EXCEPTIONS]), more])])
    yield Terms(list(_checks(reviewed)), "wide checks")
    yield Only(PAGE, list(_signature(reviewed)))


def _inline(title: str, parts: Sequence[Part]) -> Section:
    return Section(title, parts, style=INLINE)


def _reasons(reviewed: TableReview) -> list[Part]:
    """Return why it is not within policy; or, where nothing exceeds it, what was found for every limit."""
    reasons, name = [reason.sentence for reason in reviewed.reasons if reason.action != UNDECIDED], reviewed.policy.name
    if not reasons:
        accepted = [f"; {limit.allowed:,} would be acceptable" if limit.allowed else "" for limit in reviewed.limits]
        sentences = [f"{limit.found}{more}." for limit, more in zip(reviewed.limits, accepted, strict=True)]
        return [_inline(f"Policy check: “{name}”", [Bullets(sentences, style="reasons")])]
    limits = Text(f"Policy “{name}”: {' '.join(limit.sentence for limit in reviewed.limits)}", "quiet policy-line")
    more = rest(len(reasons), FEW_REASONS, "see below")
    return [_inline("Why", [Bullets(reasons[:FEW_REASONS], style="reasons"), more, limits])]


def _checks(reviewed: TableReview) -> Iterator[tuple[str, str]]:
    for name, (state, said) in (
        ("Fit of the data", check_status(reviewed)),
        ("Self-check of probabilities", self_check_status(reviewed)),
    ):
        said = said.removeprefix("Not tested: ")
        yield name, f"{state}. {said[:1].upper()}{said[1:]}"
    if not_worked_out(reviewed):
        yield "Probabilities", f"NOT COMPLETE. {not_worked_out(reviewed)}"
    if exceptions(reviewed):
        applied = len(reviewed.exceptions) + len(reviewed.ignored)
        refused = f", {len(reviewed.exceptions_not_applied)} not applied" if reviewed.exceptions_not_applied else ""
        yield "Exceptions", f"{applied} applied{refused}; listed below."


def _signature(reviewed: TableReview | JointReview) -> Iterator[Part]:
    by = f": {reviewed.reviewer}" if reviewed.reviewer else ""
    yield Frame([Text(f"Reviewer{by}"), Text("Signature"), Text("Date")], "signature")
    files = [f"{file['name']} sha256 {file['sha256']}" for file in reviewed.files]
    read = [(table.name or "Read", table.reading.sha256) for table in reviewed.tables]
    lines = [
        *(f"{name}, as it was read: sha256 {digest} (counts, columns, sums and what was left out)" for name, digest in read),
        *files,
        f"unround {reviewed.unround} · seed {reviewed.seed} · {reviewed.date} · Not for publication: this page "
        "shows inferred values of single cells.",
    ]
    yield Text("\n".join(lines), "made")


def _after(reviewed: TableReview) -> Iterator[Part]:
    """Return what follows the first sheet."""
    yield Section("How this table was read", [Terms(reading_rows(reviewed), "wide")], "reading")
    picture = reviewed.picture
    if picture:
        yield Only(PAGE, [_draft(picture)])
    if reviewed.diff is not None:
        yield Section("What it adds to what is out", [*changed(reviewed.diff)], "changed")
    yield Only(PAGE, list(_policy(reviewed)))
    notes = [*footnotes(reviewed), *refusals(reviewed)]
    if reviewed.repairs or notes:
        table = [_repairs(reviewed)] if reviewed.repairs else []
        yield Only(PAGE, [Section("All repairs", [*table, Bullets(notes, QUIET)], "repairs")])
        yield Only(TERMINAL, [Bullets(notes, QUIET)])
    if reviewed.cells:
        more = rest(reviewed.cells_to_act_on, MOST_CELLS, "`cells.xlsx` has them all")
        yield Only(PAGE, [Section("Cells to act on", [_cells(reviewed, MOST_CELLS), more, Text(ACCEPT, QUIET)], "cells")])
    if exceptions(reviewed):
        said = (
            "From `decisions.jsonl`. An exception applies to this very table, and to no surer claim than the one that was "
            "accepted."
        )
        yield Section("Exceptions on record", [Bullets(exceptions(reviewed)), Text(said, QUIET)], "exceptions")
    alone = reviewed.likely_alone
    known = (
        f" {several(alone, 'count is', 'counts are')} likely from the published value alone; sums add little to that, and "
        "no limit counts them."
        if alone
        else ""
    )
    command: list[Part] = [Code(reviewed.command)] if reviewed.command else []
    made: list[Part] = [Text(f"{METHOD}{known} {BEYOND} {WHERE}"), Bullets(reviewed.notes, QUIET), *command]
    yield Only(PAGE, [Section("How this was made", made, "method")])
    yield Only(TERMINAL, [Text("\n".join(f"Note: {note}" for note in reviewed.notes), QUIET)])


def _policy(reviewed: TableReview) -> Iterator[Part]:
    rows = [
        [limit.sentence, limit.found, number(limit.allowed), "yes" if limit.exceeded else "no"] for limit in reviewed.limits
    ]
    highest = (
        "How likely a count is goes by the highest probability that any of the priors gives to it: the highest found, which "
        "is not an upper bound."
    )
    table = Table(("limit", "found", "acceptable", "exceeded"), rows, "Limits", left=("found", "exceeded"), legend=highest)
    source = Text(f"Word for word, from {reviewed.policy.source}:")
    yield Section("The policy in force", [table, source, Code(reviewed.policy.text)], "policy")


def _draft(picture: TablePicture, name: str = "The table") -> Part:
    """Return the table itself, with the cells to act on coloured and marked."""
    rows: list[Line] = []
    for row in picture.rows:
        line: Line = [row.area]
        for value, kind, reach in row.cells:
            top = "any" if reach and reach[1] is None else reach[1] if reach else ""
            known = f"{kind}: {reach[0]}{f' to {top}' if top != reach[0] else ''}" if kind and reach else ""
            text = f"{'·' if value is None else number(value)}{MARKS.get(kind, '') if kind else ''}"
            line.append(TableCell(text, tone=f"cell-{kind}" if kind else "", title=known))
        rows.append(line)
    left = picture.left_out
    more = f" {several(left, 'row')} without cells to act on {'is' if left == 1 else 'are'} not shown." if left else ""
    kinds = {kind for row in picture.rows for _, kind, _ in row.cells if kind}
    shown = [said for kind, said in LEGEND.items() if kind in kinds]
    legend = f"{f'Coloured and marked: {listed(shown)}.' if shown else ''}{more}"
    title = "with the cells that were accepted" if "accepted" in kinds else "in which no cell is to be acted on"
    title = "with the cells to act on" if kinds - {"accepted", "hidden"} else title
    table = Table(("", *picture.columns), rows, "The table", legend=legend, style="small draft")
    return Section(f"{name}, {title}", [table], "table" if name == "The table" else "")
