"""`report.html` and `report-public.html`: an audit as one page each, complete in itself, without a script.

Whatever the release, a page stays small: it shows a limited number of tables, findings and inconsistencies and counts the
rest, and it shortens very long names. The public page is made from the summary alone, which names no area; anything in the
summary that could name one is left out as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unround.audits import AuditFolder
from unround.audits.folder import PUBLIC_REPORT, REPORT
from unround.audits.ranking import SMALL_FIRST
from unround.errors import InputError
from unround.expectation import interval, surprise
from unround.show import captions, charts, front, keys, nesting, selfcheck
from unround.show.calibrate import CLAIMS_NOTE, claims_table
from unround.show.check import fit_in_words, rounded_independently
from unround.show.diff import changed
from unround.show.footing import decision_of, footing
from unround.show.maps import map_of_report
from unround.show.page import html
from unround.show.parts import Section
from unround.show.site import render
from unround.show.strongest import MOST, Strong, first_contradictions, first_suspects, first_zeros, strongest
from unround.show.words import (
    CLAIMS,
    INCONSISTENCIES,
    block_named,
    conditions,
    headline,
    not_listed,
    notice,
    settling,
    several,
    size_named,
    verdict,
)

MOST_BLOCKS = 8
MOST_ROUTES = 14
MOST_ZEROS = 40
MOST_SUSPECTS = 12
MOST_FAMILIES = 10
MOST_CLASHES = 20
MOST_NOTES = 12
MOST_ODD = 8
"""Rows that are shown; the others are counted."""

FEWEST_AREAS = 10
"""With fewer areas the public page does not say how claims are spread over counts: that would nearly reveal the counts."""

CHANCE = 0.99
"""The probability of the range that the chart shows for chance."""

POPULATION = {
    "exact": "Counts published unrounded are taken as exact. Where the agency may have adjusted such a count slightly, "
    "whatever depends on it is called conditional, not proved.",
    "within5": "Counts published unrounded that may have been adjusted are taken as within 5 of the truth.",
}
"""What is assumed of unrounded counts."""


def write_pages(
    folder: AuditFolder, diff: Mapping[str, Any] | None = None, decision: str | None = None
) -> tuple[Path, Path]:
    """Write both pages into an audit folder, replacing older ones."""
    decision = decision or decision_of(folder)
    written = []
    for name, public in ((REPORT, False), (PUBLIC_REPORT, True)):
        path = folder.path / name
        text = page(folder, public=public, diff=diff, decision=decision)
        try:
            path.write_text(text, encoding="utf-8", newline="\n")
        except OSError as problem:
            raise InputError(f"{path} cannot be written: {problem.strerror}. Is the folder yours?") from None
        written.append(path)
    folder.reseal(REPORT, PUBLIC_REPORT)
    return written[0], written[1]


def page(
    folder: AuditFolder, *, public: bool = False, diff: Mapping[str, Any] | None = None, decision: str | None = None
) -> str:
    """Return the report of an audit as one HTML document."""
    shown = context(folder, public=public) | {"footing_entries": footing(folder.summary, decision)}
    section = None
    if diff is not None:
        title = f"What changed since {Path(diff['before']['path']).name}"
        section = html(Section(title, list(changed(diff, public=public)), "changed", "What changed"))
    return render("report.html", shown, diff=section)


def files_of(source: str) -> str:
    """Name the files of a release without their folders; several were audited as one.

    Examples
    --------
    >>> files_of("census/profile.csv + table.csv")
    'profile.csv + table.csv'
    """
    return " + ".join(Path(one).name for one in source.split(" + "))


def context(folder: AuditFolder, *, public: bool) -> dict[str, Any]:
    """Gather what a page shows; the template only lays it out."""
    told = folder.summary
    product = told["product"]
    title = f"{product[:1].upper()}{product[1:]}" if product else files_of(told["source"])
    few = public and told["areas"] < FEWEST_AREAS
    strong = {} if public else {kind: found for kind in CLAIMS if (found := _strongest(folder, kind))}
    return {
        "public": public,
        "told": told,
        "title": title,
        "file": files_of(told["source"]),
        "notice": notice(product),
        "kinds": [kind for kind in CLAIMS if told[kind]],
        "verdict": verdict(told),
        "headline": headline(told),
        "independent": rounded_independently(told),
        "tone": next((kind for kind in CLAIMS if told[kind]), "open"),
        "picture": front.picture(told),
        "example": front.example(strong),
        "next_steps": front.next_steps(told, public=public),
        "assumed": _assumed(told, public=public),
        "blocks": _blocks(told),
        "families": _families(told),
        "by_value": None if few else _by_value(told),
        "by_size": _by_size(told),
        "map": None if public else map_of_report(folder),
        "routes": _routes(told),
        "nesting": nesting.section(told),
        "selfcheck": selfcheck.section(told),
        "priors": told["priors"]["variants"],
        "not_listed": not_listed(told),
        "conditions": [*settling(told), *conditions(told)],
        "findings": {kind: [{"one": one, "chart": _histogram(one)} for one in found] for kind, found in strong.items()},
        "zeros": _zeros(folder, public=public),
        "clashes": _clashes(folder, public=public),
        "suspects": _suspects(folder, public=public),
        "truth": _truth(told, public=public),
    }


# -- what was assumed -------------------------------------------------------------------------------------------------


def _assumed(told: Mapping[str, Any], *, public: bool) -> dict[str, Any]:
    return {
        "mechanisms": list(told["mechanisms"].items()),
        "population": POPULATION[told["population"]],
        "notes": [] if public else told["notes"][:MOST_NOTES],
        "check": checked(told.get("check"), public=public),
        "keys": {"sentences": keys.sentences(told), "rows": keys.rows(told)},
    }


def checked(check: Mapping[str, Any] | None, *, public: bool) -> dict[str, Any]:
    """Say whether the release fits how it is thought to have been published."""
    odd = [one for one in (check or {"families": ()})["families"] if one["verdict"] != "fits"]
    return {
        "sentence": fit_in_words(check),
        "alarm": bool(odd),
        "odd": [(one["family"], one["verdict"], "" if public else one["note"]) for one in odd[:MOST_ODD]],
        "more": len(odd) - len(odd[:MOST_ODD]),
    }


# -- claims by table, and next to chance ------------------------------------------------------------------------------


def _blocks(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables with most claims, each with its bars, next to what chance predicts of its sums."""
    chance = told.get("chance_by_block", {})
    nothing = {"groups": 0, "proved": 0, "proved_expected": 0.0, "strong": 0, "strong_expected": 0.0}
    rows = [
        {"name": block_named(name, chance), **numbers, "chance": chance.get(name, nothing)}
        for name, numbers in told["by_block"].items()
    ]
    silent = [name for name in chance if name not in told["by_block"]]
    return {**_with_bars(rows, MOST_BLOCKS), "silent": len(silent)}


def _routes(told: Mapping[str, Any]) -> dict[str, Any]:
    return _with_bars([{"name": name, **numbers} for name, numbers in told["by_route"].items()], MOST_ROUTES)


def _with_bars(rows: list[dict[str, Any]], most: int) -> dict[str, Any]:
    """Keep the first rows and sum up the others; the largest row's claims are the longest bar."""
    largest = max((sum(row[kind] for kind in CLAIMS) for row in rows), default=0)
    rest = {kind: sum(row[kind] for row in rows[most:]) for kind in CLAIMS} if rows[most:] else None
    return {"rows": rows[:most], "largest": largest, "more": len(rows) - len(rows[:most]), "rest": rest}


def _families(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what single sums reveal, one row per kind of sum, with what chance predicts; and the chart of it."""
    met = sorted((one for one in told["chance"] if one["groups"]), key=lambda one: -one["groups"])
    telling = [one for one in met if one["proved"] or one["proved_expected"] >= 0.05]
    one_base = len({one["base"] for one in met}) == 1
    drawn = []
    for one in telling[:MOST_FAMILIES]:
        low, high = interval(one["proved_expected"], CHANCE)
        base = "" if one_base else f", base {one['base']}"
        label = f"{one['parts']} parts, {'exact' if one['exact_total'] else 'rounded'} total{base}"
        drawn.append({"label": label, "found": one["proved"], "low": low, "high": high})
    odd = [one for one in met if surprise(one["proved"], one["proved_expected"]) < 1 - CHANCE]
    return {
        "rows": met[:MOST_FAMILIES],
        "more": len(met) - len(met[:MOST_FAMILIES]),
        "chart": charts.against_chance(drawn) if drawn else None,
        "caption": captions.chance(met),
        "proved": sum(one["proved"] for one in met),
        "expected": sum(one["proved_expected"] for one in met),
        "odd": [
            f"{one['family']}: {one['proved']:,} found, {one['proved_expected']:,.1f} predicted"
            for one in odd[:MOST_FAMILIES]
        ],
    }


# -- where the risk sits ----------------------------------------------------------------------------------------------


def _by_value(told: Mapping[str, Any]) -> dict[str, Any]:
    by_value = told["sensitive_claims"]["by_value"]
    rows = {size_named(name): by_value[name] for name in SMALL_FIRST}
    claims = sum(sum(numbers.values()) for numbers in rows.values())
    chart = charts.stacked_bars(rows, "Claims by inferred count") if claims else None
    return {"rows": rows, "chart": chart, "caption": captions.by_value(told)}


def _by_size(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return claims by the size of their area, and their number per 1,000 counts, published or suppressed."""
    rows, rates = {}, {}
    for name, numbers in told.get("by_area_size", {}).items():
        if numbers["areas"]:
            size = size_named(name)
            rows[size] = numbers
            rates[size] = {kind: 1000 * numbers[kind] / max(1, numbers["cells"]) for kind in CLAIMS}
    claims = sum(numbers[kind] for numbers in rows.values() for kind in CLAIMS)
    what = "Claims per 1,000 counts by size of area"
    chart = charts.stacked_bars(rates, what, digits=1) if claims else None
    return {"rows": rows, "chart": chart, "caption": captions.by_size(rates)}


# -- findings, inconsistencies, truth ----------------------------------------------------------------------------------


def _strongest(folder: AuditFolder, kind: str) -> list[Strong]:
    """Return the strongest findings of a kind, none where there are none or none are shown."""
    return strongest(folder, kind) if folder.summary[kind] and MOST[kind] else []


def _histogram(one: Strong) -> str:
    if not one.distribution:
        return ""
    finding = one.finding
    return charts.histogram(
        one.distribution, name=one.what, kind=finding["kind"], published=finding["published"], height=120
    )


def _zeros(folder: AuditFolder, *, public: bool) -> dict[str, Any]:
    """Return how many likely counts are zeros, and the first of them."""
    number = folder.summary["sensitive_claims"]["by_value"]["0"]["likely"]
    rows = first_zeros(folder, MOST_ZEROS) if number and not public else []
    return {"number": number, "rows": rows, "more": number - len(rows)}


def _suspects(folder: AuditFolder, *, public: bool) -> dict[str, Any]:
    told = folder.summary["suspect"]
    rows = first_suspects(folder, MOST_SUSPECTS) if told["areas"] and not public else []
    return {"number": told["areas"], "rows": rows, "more": told["sums"] - len(rows), "level": told["level"]}


def _clashes(folder: AuditFolder, *, public: bool) -> dict[str, Any]:
    number = folder.summary["contradictions"]
    rows = first_contradictions(folder, MOST_CLASHES) if number and not public else []
    kinds = folder.summary["contradictions_by_kind"]
    return {
        "number": number,
        "kinds": [several(many, *INCONSISTENCIES.get(kind, (kind, kind))) for kind, many in kinds.items()],
        "rows": rows,
        "more": number - len(rows),
    }


def _truth(told: Mapping[str, Any], *, public: bool) -> dict[str, Any] | None:
    """Return how claims compare with the truth, if it was given."""
    score = told.get("truth")
    if score is None:
        return None
    bands = [
        {**band, **charts.wilson(band["right"], band["claims"])}
        for band in score["calibration"].get("findings", [])
        if band["claims"]
    ]
    return {
        "score": score,
        "claims": claims_table(score.get("claims_by_value", [])),
        "claims_note": CLAIMS_NOTE,
        "parts": keys.by_part(score),
        "wrong": [] if public else score["proved_wrong"],
        "chart": charts.reliability({"": ("likely", bands)}, "stated probability", "share that is right") if bands else None,
        "caption": captions.truth(bands),
    }
