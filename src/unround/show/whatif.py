"""What one more table would expose: the sentences of terminal and page, and the pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unround.audits import AuditFolder
from unround.scenarios.run import AFTER, BEFORE, PAGE
from unround.show.diff import diff_section
from unround.show.report import write_pages
from unround.show.site import render
from unround.show.words import CLAIMS, notice, percent, several

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


# -- pages -------------------------------------------------------------------------------------------------------------


def write_whatif(folder: Path, told: Mapping[str, Any]) -> None:
    """Write all pages into a folder that `whatif` made: the reports of both audits, and its own."""
    write_pages(AuditFolder.open(folder / BEFORE))
    # The section names the earlier audit by its folder, which is not yet where it will be.
    diff = {**told["diff"], "before": {**told["diff"]["before"], "path": BEFORE}}
    write_pages(AuditFolder.open(folder / AFTER), diff=diff)
    (folder / PAGE).write_text(whatif_page(told), encoding="utf-8", newline="\n")


def whatif_page(told: Mapping[str, Any]) -> str:
    """Return the page."""
    release, table = file_names(told)
    return render(
        "whatif.html",
        told=told,
        title=f"What would {table} expose?",
        release=release,
        table=table,
        advice=advice(told),
        headings=HEADINGS,
        rows=rows(told),
        footnotes=[*footnotes(told), *refusals(told)],
        diff=diff_section(told["diff"], public=False, heading="What the table exposes"),
        notice=notice(told["diff"]["after"]["product"]),
    )
