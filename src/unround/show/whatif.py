"""What one more table would expose; and how coarse rates must be to add nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unround.job import AuditFolder
from unround.scenarios.run import AFTER, BEFORE
from unround.scenarios.run import PAGE as PAGE_FILE
from unround.show.diff import changed, one_side
from unround.show.page import page
from unround.show.parts import (
    ALARM,
    PAGE,
    QUIET,
    TERMINAL,
    Bullets,
    Code,
    Document,
    Fold,
    Only,
    Part,
    Row,
    Section,
    Table,
    Terms,
    Text,
)
from unround.show.report import write_pages
from unround.show.words import CLAIMS, notice, percent, several, share

if TYPE_CHECKING:
    from unround.scenarios import RateSteps, WhatIf

UNREPAIRED = "unrepaired"


def file_names(told: Mapping[str, Any]) -> tuple[str, str]:
    """Return the names of release and table; with their folders where the names alone are the same."""
    release, table = Path(told["release"]), Path(told["table"])
    if release.name != table.name:
        return release.name, table.name
    return str(Path(release.parent.name, release.name)), str(Path(table.parent.name, table.name))


HEADINGS = ("", "repair", "exposure left", "newly proved", "conditional", "likely", "of 1–2", "counts lost", "added error")


def rows(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the ranking as text: one row per repair, and the unrepaired table at the end."""
    found = []
    for row in told["repairs"]:
        mark = "" if row["method"] == "exact" else "≈ "
        costs = row["cost"]
        error = costs["mean_added_error"]
        lost = f"{costs['counts_lost']:,}"
        if costs["counts_lost_but_in_release"]:
            lost += f" (+{costs['counts_lost_but_in_release']:,})"
        cells = [
            f"{row['rank']}.",
            row["name"],
            f"{mark}{_left(row)}",
            *(f"{mark}{row['newly'][kind]:,}" for kind in CLAIMS),
            f"{mark}{sum(row['newly_small'].values()):,}",
            lost,
            "unknown" if error is None else f"{error:+.2f}" if abs(error) >= 0.005 else "0",
        ]
        found.append({"cells": cells, "method": row["method"], "left": row["left"], "kinds": row["newly"]})
    now = told["as_it_is"]
    cells = ["", UNREPAIRED, "all" if now["exposure"] else "none", *(f"{now['newly'][kind]:,}" for kind in CLAIMS)]
    cells += [f"{sum(now['newly_small'].values()):,}", "", ""]
    return [*found, {"cells": cells, "method": "", "left": 1.0 if now["exposure"] else 0.0, "kinds": now["newly"]}]


def _left(row: Mapping[str, Any]) -> str:
    if row["left"] is None:
        return "–" if row["exposure"] else "none"
    return "none" if row["exposure"] == 0 else percent(row["left"])


def advice(told: Mapping[str, Any]) -> str:
    """Say which repair leaves the least exposure."""
    if not told["as_it_is"]["exposure"]:
        return (
            "Through its sums, the table exposes nothing that the release did not already: there is nothing to repair. This "
            "rests on the assumptions of the audit, and does not say what other knowledge would reveal."
        )
    if not told["repairs"]:
        return "No repair could be tried."
    best = told["repairs"][0]
    if best["left"] is not None and best["left"] >= 1:
        return "None of these repairs reduces the exposure of the unrepaired table."
    about = "about " if best["method"] != "exact" else ""
    if best["exposure"] == 0:
        return f"The best repair is {best['name']}: {about}none of the exposure is left."
    return f"The best repair is {best['name']}: {about}{percent(best['left'])} of the exposure is left."


def footnotes(told: Mapping[str, Any]) -> list[str]:
    """Return how to read the ranking."""
    sure, small = told["weights"]["sureness"], told["weights"]["smallness"]
    found = []
    if told["repairs"]:
        found.append(
            f"Exposure left: the weighted number of claims that the release alone does not allow. A proved count has weight "
            f"{sure['proved']}, a conditional one {sure['conditional']}, a likely one {sure['likely']}; times "
            f"{small['1-2']} for counts of one or two, times {small['3-9']} for three to nine."
        )
        found.append(
            "Counts lost: counts of the table that would no longer be published (+ those that the release still has). Added "
            f"error: how much farther from the truth the table's counts are on average{_error(told)}."
        )
    world = told["simulated"]
    if world is not None:
        found.append(
            f"≈: approximate. Publishing with another base needs the true counts, and none were given (--truth). Plausible "
            f"true counts of {several(world['areas'], 'area')} were drawn from the audit's estimates{_times(world)}, and "
            f"release and table were published from them. With these, the unrepaired table exposes "
            f"{sum(world['newly'].values()):,} counts; here it exposes {sum(told['as_it_is']['newly'].values()):,}."
        )
    found += _scores(told)
    return [*found, *told["notes"]]


def _times(world: Mapping[str, Any]) -> str:
    return f", {world['times']} times over" if world["times"] > 1 else ""


def _error(told: Mapping[str, Any]) -> str:
    return ", measured" if told["truth"] else ", by the mechanisms, for counts well above 0"


def _scores(told: Mapping[str, Any]) -> list[str]:
    """Say how claims compare with the truth, if it was given."""
    if told["truth"] is None:
        return []
    scored = [(UNREPAIRED, told["as_it_is"]), *((row["name"], row) for row in told["repairs"])]
    wrong = {name: row["truth"]["wrong"]["proved"] for name, row in scored if row.get("truth")}
    bad = [f"{number:,} with {name}" for name, number in wrong.items() if number]
    if bad:
        return [
            f"Compared with the truth, proved claims are wrong ({', '.join(bad)}): a documented fact does not hold, or the "
            "truth belongs to another release. Do not rely on these numbers."
        ]
    now = told["as_it_is"]["truth"]
    checked, missed = now["checked"]["likely"], now["wrong"]["likely"]
    right = (
        f" Of {checked:,} likely claims with the unrepaired table, {percent(1 - missed / checked)} are right."
        if checked
        else ""
    )
    return [f"Compared with the truth, no proved claim is wrong, with the unrepaired table or after any repair.{right}"]


def refusals(told: Mapping[str, Any]) -> list[str]:
    """Say which repairs were not tried."""
    return [f"Not tried: {one['name']} ({one['why']})." for one in told["not_tried"]]


# -- the document -----------------------------------------------------------------------------------------------------

METHOD = (
    "The release was audited alone, then together with the table, and again with the table after each repair. Everything is "
    "inferred from published cells; nothing is said about persons. A count that is not listed is not therefore safe: other "
    "tables and other knowledge were not considered. The full reports are `before/report.html` and `after/report.html`; all "
    "numbers are in `whatif.json`."
)


def what_if(found: WhatIf | Mapping[str, Any]) -> Document:
    """Say what the table would expose, and what each repair of it leaves."""
    told = found if isinstance(found, Mapping) else found.to_json()
    release, table = file_names(told)
    columns = f"{told['table_columns']:,} columns, {told['table_columns_in_release']:,} of them also in the release"
    return Document(
        f"What would {table} expose?",
        list(_what_if(told)),
        "One more table",
        f"{table} beside {release} · {several(told['table_areas'], 'area')} of the table · {columns}",
        notice(told["diff"]["after"]["product"]),
        contents=True,
    )


def _what_if(told: Mapping[str, Any]) -> Iterator[Part]:
    release, table = file_names(told)
    diff = told["diff"]
    yield Only(PAGE, [Text("Not for publication. This page shows inferred values for single areas.", ALARM)])
    yield Only(TERMINAL, [Text(f"What would {table} expose, next to {release}?")])
    sides = [(name, one_side(diff[side])) for name, side in (("release alone", "before"), ("with the table", "after"))]
    exposed = [Only(TERMINAL, [Terms(sides)]), *changed(diff)]
    yield Section("What the table exposes", exposed, "changed", "What it exposes")
    repairs: list[Part] = [Text(advice(told), "lead")]
    if told["repairs"]:
        listed = [Row(row["cells"], "" if row["method"] else QUIET, row["kinds"]) for row in rows(told)]
        repairs += [
            Table(HEADINGS, listed, "Repairs", header=1),
            Fold("The repairs", [Terms([(row["name"], row["sentence"]) for row in told["repairs"]])], only=""),
        ]
    repairs.append(Bullets((*footnotes(told), *refusals(told)), QUIET))
    yield Section("Repairs, from least to most exposure", repairs, "repairs", "Repairs")
    seed = f"seed {told['seed']}{', with the truth' if told['truth'] else ''}"
    made = Text(f"unround {told['unround']}, threshold {share(told['threshold'])}, {seed}.")
    command = [Code(told["command"])] if told["command"] else []
    how = Section("How this was made", [Text(METHOD), made, *command], "method", "How this was made")
    yield Only(PAGE, [how])


def write_whatif(folder: Path, told: Mapping[str, Any]) -> None:
    """Write all pages into a folder that `whatif` made: the reports of both audits, and its own."""
    write_pages(AuditFolder.open(folder / BEFORE))
    # The section names the earlier audit by its folder, which is not yet where it will be.
    diff = {**told["diff"], "before": {**told["diff"]["before"], "path": BEFORE}}
    write_pages(AuditFolder.open(folder / AFTER), diff=diff)
    (folder / PAGE_FILE).write_text(page(what_if(told)), encoding="utf-8", newline="\n")


# -- how coarse rates must be -----------------------------------------------------------------------------------------

RATE_HEADINGS = ("rates", *CLAIMS, "of 1–2", "mean error")


def question(told: Mapping[str, Any]) -> str:
    """Return what is asked."""
    names = [one["name"] for one in told["rates"]]
    which = ", ".join(names[:4]) + (f" and {several(len(names) - 4, 'other')}" if len(names) > 4 else "")
    noun = "the rate" if len(names) == 1 else "the rates"
    return f"How coarse must {noun} {which} be to add nothing to the counts of {Path(told['release']).name}?"


def points(step: float) -> str:
    """Say a step.

    Examples
    --------
    >>> points(0.5), points(1.0)
    ('0.5 points', '1 point')
    """
    return "1 point" if step == 1 else f"{step:g} points"


def answer(told: Mapping[str, Any]) -> str:
    """Say which step adds nothing."""
    fine, steps = told["adds_nothing_from"], told["steps"]
    if fine is None:
        first = f"add {_some(told, steps[-1])} even in steps of {points(steps[-1]['step'])}"
    elif fine == steps[0]["step"]:
        first = f"add no claim in steps of {points(fine)} or coarser, and finer ones were not tried"
    else:
        finer = next(row for row in reversed(steps) if row["step"] < fine)
        first = (
            f"add no claim in steps of {points(fine)} or coarser; steps of {points(finer['step'])} add {_some(told, finer)}"
        )
    return f"Rates computed from true counts {first}. Rates computed from the rounded counts add nothing on any step."


def _some(told: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    number = sum(row["newly"].values())
    about = "" if told["method"] == "exact" else "about "
    return f"{about}{several(number, 'claim')}" if number else "less than one claim"


def rate_rows(told: Mapping[str, Any]) -> list[list[str]]:
    """Return the table as text: as printed, one row for each step, and from the rounded counts."""
    found = []
    mark = "" if told["method"] == "exact" else "≈ "
    if told["as_printed"] is not None:
        found.append(["as printed", *_claims(told["as_printed"], ""), ""])
    found += [[f"steps of {points(row['step'])}", *_claims(row, mark), _rate_error(row)] for row in told["steps"]]
    rounded = told["from_published_counts"]
    found.append([f"from rounded counts, {points(rounded['step'])}", *_claims(rounded, mark), _rate_error(rounded)])
    return found


def _claims(row: Mapping[str, Any], mark: str) -> list[str]:
    """Return numbers of claims; where there are some, but less than one when scaled, so."""
    numbers = [*(row["newly"][kind] for kind in CLAIMS), sum(row["newly_small"].values())]
    if not any(numbers) and row.get("adds_nothing") is False:
        return ["< 1" for _ in numbers]
    return [f"{mark if number else ''}{number:,}" for number in numbers]


def _rate_error(row: Mapping[str, Any]) -> str:
    return "unknown" if row["mean_error"] is None else f"{row['mean_error']:.2g}"


def rate_footnotes(told: Mapping[str, Any]) -> list[str]:
    """Return how to read the table."""
    found = [
        "Claims: counts that are claimed because of the rates, or with more certainty; all rates are printed on the same "
        "step, and no other figure is used. Of 1–2: those about counts of one or two. Mean error: from the true rate, in "
        "points.",
        "From rounded counts: whoever has the counts can compute such rates, so they cannot tell anything on any step; the "
        "audit of the finest confirms it." if not any(told["from_published_counts"]["newly"].values())
        else "From rounded counts: such rates cannot tell anything, but the audit took them for computed from true counts. "
        "Its verdicts on rates are not to be relied on here (unround check).",
    ]  # fmt: skip
    drawn = told["drawn"]
    if drawn is not None:
        times = f", {drawn['times']} times over" if drawn["times"] > 1 else ""
        found.append(
            f"≈: approximate. Rates on other steps need the true counts, and none were given (--truth). Plausible true "
            f"counts of {several(drawn['areas'], 'area')} were drawn from the audit's estimates{times}, counts and rates "
            "were published from them, and numbers are scaled to all areas."
        )
    else:
        wrong = sum(row["truth"]["wrong"][kind] for row in told["steps"] for kind in ("proved", "conditional"))
        found.append(
            "Compared with the truth, no proved or conditional claim is wrong, on any step."
            if not wrong
            else f"Compared with the truth, {several(wrong, 'claim')} that should hold {'is' if wrong == 1 else 'are'} "
            "wrong: a documented fact does not hold, or the truth belongs to another release. Do not rely on these numbers."
        )
    found.append(
        "This is so in these areas. A true rate close to the edge of a step can tell something on any step, so other areas "
        "may need coarser ones; and nothing here accounts for what somebody knows from elsewhere."
    )
    return [*found, *told["notes"]]


def rate_steps(found: RateSteps | Mapping[str, Any]) -> Document:
    """Say how coarse rates must be to add nothing."""
    told = found if isinstance(found, Mapping) else found.to_json()
    table = Table(RATE_HEADINGS, rate_rows(told), "Claims by step")
    notes = Bullets(rate_footnotes(told), QUIET)
    return Document("How coarse must rates be?", [Text(question(told)), Text(answer(told), "lead"), table, notes])
