"""A draft table and the decision on it: the sentences of terminal and page, and the page to sign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unround.audits import AuditFolder
from unround.checks.families import CONTRADICTS, DEPARTS, FITS, UNTESTED
from unround.reviews.decision import PUBLISH
from unround.reviews.policy import LIKELY, RANGE, REVISE, STOP, UNDECIDED, UNROUNDED
from unround.reviews.run import AUDIT, PAGE, TOGETHER
from unround.reviews.worlds import ESTIMATED
from unround.show.charts import Picture
from unround.show.check import fit_in_words
from unround.show.parts import QUIET, STRONG, Bullets, Document, Files, Part, Row, Section, Table, Terms, Text
from unround.show.report import files_of, write_pages
from unround.show.site import render
from unround.show.strongest import sentences
from unround.show.words import arithmetic, listed, notice, number, percent, several, span

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
    STOP: "The table is not within policy, and no repair that was tried is.",
}
STATUS = {FITS: "PASSED", DEPARTS: "FAILED", CONTRADICTS: "FAILED", UNTESTED: "NOT TESTED"}

FEW_REPAIRS, FEW_CELLS, FEW_REASONS = 4, 6, 5
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
    said = MEANINGS[told["decision"]]
    accepted = len(told["exceptions"]) + len(told["ignored"])
    if told["decision"] == PUBLISH and accepted:
        said = f"The table is within policy only because of {several(accepted, 'exception')} on record. {BEYOND}"
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

    Examples
    --------
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
        "proofs only. How likely counts are with them as well was not worked out: that is no sign of safety."
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


def repair_rows(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the repairs as text."""
    return [
        {
            "rank": row["rank"],
            "name": row["name"],
            "action": row["action"],
            "leaves": leaves(row),
            "costs": costs(row),
            "within": row["within_policy"],
        }
        for row in told["repairs"]
    ]


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


def cell_rows(told: Mapping[str, Any], most: int) -> list[dict[str, Any]]:
    """Return the worst cells as text."""
    rows = []
    for one in told["cells"][:most]:
        chance = percent(one["probability_high"]) if one["claim"] == LIKELY and one["probability_high"] else one["claim"]
        rows.append(
            {
                "cell": one["cell"],
                "area": one["area_name"] or one["area"],
                "what": one["what"],
                "published": "–" if one["published"] is None else number(one["published"]),
                "value": number(one["value"]) if one["claim"] != RANGE else span(one["low"], one["high"]),
                "rule": "; ".join(one["rules"]),
                "range": span(one["low"], one["high"]),
                "kind": one["claim"],
                "chance": chance,
                "comment": one["comment"],
            }
        )
    return rows


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


def squares_chart(told: Mapping[str, Any]) -> str:
    """Draw 100 squares: the share of counts that is open, likely, proved."""
    each = shares(told)
    said = listed([f"{each[kind]} {kind}" for kind, _ in SQUARES if each[kind]])
    picture = Picture(164, 164, f"Of 100 counts: {said}", "squares")
    at = 0
    for kind, colour in SQUARES:
        for _ in range(each[kind]):
            picture.rect(2 + 16 * (at % 10), 2 + 16 * (at // 10), 14, 14, f"bar {colour}", kind, 2)
            at += 1
    return picture.done()


def squares_key(told: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the colours of the squares, with how many counts they stand for."""
    numbers = {kind: sum(sizes.values()) for kind, sizes in told["claims"].items()}
    numbers["open"] = max(0, told["table"]["counts"] - sum(numbers.values()))
    names = {LIKELY: f"likely ({_least(told)} or more)", "open": "open"}
    return [
        {"colour": colour, "name": names.get(kind, kind), "number": number(numbers[kind])}
        for kind, colour in SQUARES
        if numbers[kind]
    ]


def _least(told: Mapping[str, Any]) -> str:
    found = [one["probability"] for one in told["policy"]["limits"] if one["probability"] is not None]
    return f"{100 * min(found):.6g}%" if found else "66%"


def table_rows(told: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the tables of a review of several, the worst first: what each is called, its decision, and why."""
    order = [STOP, REVISE, UNDECIDED, PUBLISH]
    tables = sorted(told["tables"], key=lambda one: order.index(one["decision"]))
    return [
        {
            "name": "All tables together" if one["name"] == TOGETHER else one["name"],
            "decision": one["decision"],
            "headline": headline(one),
            "why": _why(one),
            "cells": number(one["cells_to_act_on"]),
            "counts": f"{number(one['table']['counts'])} in {several(one['table']['areas'], 'area')}",
            "page": f"{one['folder']}/{PAGE}",
            "sha256": one["reading"]["sha256"],
        }
        for one in tables
    ]


def _why(told: Mapping[str, Any]) -> str:
    """Say in a sentence what the decision on a table rests on."""
    reasons = [one["sentence"] for one in told["reasons"] if one["action"] != UNDECIDED]
    open_ = [one["why"].rstrip(".") + "." for one in told["unsettled"]]
    return " ".join([*reasons, *open_][:2]) or meaning(told)


def write_review(folder: Path, told: Mapping[str, Any]) -> None:
    """Write all pages into a folder that `review` made: the reports of the audit, and its own."""
    if "tables" in told:
        for one in told["tables"]:
            write_review(folder / one["folder"], one)
        page = render(
            "tables.html",
            told=told,
            title=f"Review of {several(len(told['files']), 'file')}: {headline(told).lower()}",
            headline=headline(told),
            meaning=MEANINGS[told["decision"]].replace("The table is", "At least one table is")
            if told["decision"] != PUBLISH
            else f"All tables are within policy, each alone and all together. {BEYOND}",
            date=long_date(told["date"]),
            rows=table_rows(told),
            tables=told["tables"],
            questions=open_questions(told),
            exceptions=[one for table in told["tables"] for one in exceptions(table)],
        )
        (folder / PAGE).write_text(page, encoding="utf-8", newline="\n")
        return
    if (folder / AUDIT).is_dir():
        write_pages(AuditFolder.open(folder / AUDIT), decision=told["decision"])
    (folder / PAGE).write_text(review_page(told), encoding="utf-8", newline="\n")


def review_page(told: Mapping[str, Any]) -> str:
    """Return the page."""
    repairs = repair_rows(told)
    return render(
        "review.html",
        told=told,
        title=f"Review of {files_of(told['table']['source'])}: {headline(told).lower()}",
        head=masthead(told),
        headline=headline(told),
        meaning=meaning(told),
        squares=squares_chart(told),
        key=squares_key(told),
        example=example(told),
        repairs=repairs,
        first_repairs=repairs[:FEW_REPAIRS],
        reasons=told["reasons"][:FEW_REASONS],
        first_cells=cell_rows(told, FEW_CELLS),
        cells=cell_rows(told, MOST_CELLS),
        check=check_status(told),
        self_check=self_check_status(told),
        not_worked_out=not_worked_out(told),
        footnotes=[*footnotes(told), *refusals(told)],
        exceptions=exceptions(told),
        questions=open_questions(told),
        reading=reading_rows(told),
        notice=notice(told["table"]["product"]),
    )


# -- the terminal -----------------------------------------------------------------------------------------------------

_TONES = {PUBLISH: STRONG, UNDECIDED: "conditional", REVISE: "conditional", STOP: "proved"}


def review(found: Review | Mapping[str, Any]) -> Document:
    """Say the decision first, then why, what to do, and where to look."""
    told = found if isinstance(found, Mapping) else found.to_json()
    parts = list(_several(told) if "tables" in told else _parts(told))
    out = None if isinstance(found, Mapping) else found.folder
    if out is not None:
        files = [(name, said) for name, said in _FILES.items() if (out / name).exists()]
        parts.append(Files(str(out), files))
    return Document("Draft release review", parts)


_FILES = {
    "review.html": "the decision on one page, to be signed; then the details",
    "cells.xlsx": "every cell to act on, with the proposed action and room for your word",
    "review.json": "every number",
    "decisions.jsonl": "the exceptions on record",
    "audit/report.html": "the audit of the draft",
    "tables": "the review of each table",
    "together": "the review of all tables together",
}


def _parts(told: Mapping[str, Any]) -> Iterator[Part]:
    head = masthead(told)
    line = f"DRAFT RELEASE REVIEW · {head['file']} · sha256 {head['sha256']} · {head['date']} · {head['mechanism']}"
    yield Text(line, QUIET)
    yield Text(f"■ {headline(told).upper()}", _TONES[told["decision"]])
    yield Text(meaning(told))
    if told["unsettled"]:
        yield Section("Not settled", [Bullets(open_questions(told))], level=3)
    reasons = [one["sentence"] for one in told["reasons"] if one["action"] != UNDECIDED]
    yield Bullets(reasons or [f"{one['found']}." for one in told["limits"]])
    yield Text(f"Policy “{told['policy']['name']}”: {' '.join(one['sentence'] for one in told['limits'])}", QUIET)
    if told["check"]["clashes"]:
        yield Section("What contradicts", [Bullets(told["check"]["clashes"])], level=3)
    if (shown := example(told)) is not None:
        yield Section("In one example", [Text(shown["sentence"]), Bullets(shown["steps"], QUIET)], level=3)
    yield from _repairs(told)
    cells = cell_rows(told, FEW_CELLS)
    if cells:
        listed = [[one["cell"], one["published"], one["value"], _claimed(one), one["rule"]] for one in cells]
        heads = ("cell", "you print", "readers learn", "claim", "rule")
        parts: list[Part] = [Table(heads, listed, "Cells to act on", left=("claim", "rule"))]
        if more := told["cells_to_act_on"] - len(cells):
            parts.append(Text(f"and {several(more, 'more cell')}", QUIET))
        yield Section(f"Cells to act on: {told['cells_to_act_on']:,}", parts, level=3)
    checks = [("Mechanism check", check_status(told)), ("Self-check", self_check_status(told))]
    if not_worked_out(told):
        checks.append(("Probabilities", ("NOT COMPLETE", not_worked_out(told))))
    yield Terms([(name, f"{state}. {said}") for name, (state, said) in checks])
    yield Section("How this table was read", [Terms(reading_rows(told))], level=3)
    if exceptions(told):
        yield Section("Exceptions on record", [Bullets(exceptions(told))], level=3)
    if told["notes"]:
        yield Bullets([f"Note: {note}" for note in told["notes"]], QUIET)


def _claimed(cell: Mapping[str, Any]) -> str:
    return f"likely, up to {cell['chance']}" if cell["kind"] == LIKELY else str(cell["kind"])


def _repairs(told: Mapping[str, Any]) -> Iterator[Part]:
    rows = repair_rows(told)
    if rows:
        title = "do this" if told["decision"] == REVISE else "tried"
        listed = [
            Row(
                [str(row["rank"]), row["action"], "yes" if row["within"] else "no", row["leaves"], row["costs"]],
                "" if row["within"] else QUIET,
            )
            for row in rows
        ]
        heads = ("", title, "within policy", "leaves", "costs")
        yield Table(heads, listed, "Repairs", left=(title, "within policy", "leaves", "costs"), header=1)
    if said := [*footnotes(told), *refusals(told)]:
        yield Bullets(said, QUIET)


def _several(told: Mapping[str, Any]) -> Iterator[Part]:
    """Say the one decision on several tables, and list them by status."""
    tables = sum(one["name"] != TOGETHER for one in told["tables"])
    yield Text(f"DRAFT RELEASE REVIEW · {several(tables, 'table')} · {long_date(told['date'])}", QUIET)
    yield Text(f"■ {headline(told).upper()}", _TONES[told["decision"]])
    listed = [[row["name"], row["decision"], row["cells"], row["why"]] for row in table_rows(told)]
    yield Table(("table", "decision", "cells to act on", "why"), listed, "Tables by status", left=("decision", "why"))
    if told["unsettled"]:
        yield Section("Not settled", [Bullets(open_questions(told))], level=3)
    if told["notes"]:
        yield Bullets([f"Note: {note}" for note in told["notes"]], QUIET)
