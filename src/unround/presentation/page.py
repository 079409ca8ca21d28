"""`report.html` and `report-public.html`: an audit as one page each, complete in itself, without a script.

Whatever the release, a page stays small: it shows so many tables, findings and contradictions and counts the rest, and
names are cut where they are longer than anybody reads. The public page is made from the summary alone, which names no area;
what could name one in it is left out as well.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unround._version import __version__
from unround.audits import AuditFolder
from unround.audits.folder import PUBLIC_REPORT, REPORT
from unround.audits.summary import CLAIMS
from unround.errors import InputError
from unround.expectation import interval, surprise
from unround.presentation import dependence, figures, nesting
from unround.presentation.diff_page import diff_section
from unround.presentation.release import notice
from unround.presentation.strongest import MOST, Strong, first_contradictions, strongest
from unround.presentation.terminal import percent
from unround.presentation.words import CLASHES, several, share, verdict

if TYPE_CHECKING:
    from jinja2 import Template

MOST_BLOCKS = 24
MOST_ROUTES = 14
MOST_FAMILIES = 10
MOST_CLASHES = 20
MOST_NOTES = 12
MOST_ODD = 8
"""Rows that are shown; the others are counted."""

FIT = {
    "fits": "Yes: the residuals of the sums spread as these mechanisms say.",
    "departs": "Not quite: the residuals of some sums do not spread as these mechanisms say; probabilities may be off.",
    "contradicts": "No: some published counts cannot come from these mechanisms and sums.",
    "untested": "Not checked: the sums were verified one by one, but whether the residuals of all sums spread as these "
    "mechanisms say was not tested. A wrong mechanism would make claims wrong.",
}
"""Verdicts of the check, in words."""

LONGEST = 300
"""Signs of a name that are shown."""

FEWEST_AREAS = 10
"""Of fewer areas the public page does not tell how claims spread over counts: that would be nearly the counts."""

CHANCE = 0.99
"""How much of what chance gives the range in the chart holds."""


def write_pages(folder: AuditFolder, diff: Mapping[str, Any] | None = None) -> tuple[Path, Path]:
    """Write both pages into an audit folder, in place of older ones.

    Parameters
    ----------
    folder : AuditFolder
        The audit.
    diff : mapping, optional
        What changed since another audit, `Diff.to_json()`: the pages get a section about it.

    Raises
    ------
    InputError
        If they cannot be written.
    """
    written, drawn = [], dict[str, str]()  # most charts stand in both pages
    for name, public in ((REPORT, False), (PUBLIC_REPORT, True)):
        path = folder.path / name
        text = page(folder, public=public, drawn=drawn, diff=diff)
        try:
            path.write_text(text, encoding="utf-8", newline="\n")
        except OSError as problem:
            raise InputError(f"{path} cannot be written: {problem.strerror}. Is the folder yours?") from None
        written.append(path)
    return written[0], written[1]


def page(
    folder: AuditFolder,
    *,
    public: bool = False,
    drawn: dict[str, str] | None = None,
    diff: Mapping[str, Any] | None = None,
) -> str:
    """Return the report of an audit as one HTML document.

    Parameters
    ----------
    folder : AuditFolder
        The audit.
    public : bool
        Leave out every area and every inferred value.
    drawn : dict, optional
        Charts that were drawn already, by their specification; those that are drawn now are added.
    diff : mapping, optional
        What changed since another audit, `Diff.to_json()`.
    """
    from markupsafe import Markup

    before = {} if drawn is None else drawn

    def draw(chart: Any) -> Markup:
        specification = json.dumps(figures.specification(chart))
        if specification not in before:
            before[specification] = figures.svg(chart)
        return Markup(before[specification])

    shown = context(folder, public=public)
    shown["diff"] = None if diff is None else diff_section(diff, public=public)
    text: str = template("report.html.j2").render(shown, draw=draw, theme=Markup(figures.theme_css()))
    return text


@cache
def template(name: str) -> Template:
    """Return a page's layout; every name in it comes from somebody's file, and is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("unround.presentation"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "n": lambda number: f"{number:,}",
        "rate": lambda number: f"{number:,.1f}" if number >= 0.05 or number == 0 else "<0.1",
        "percent": percent,
        "share": share,
        "cut": cut,
        "total": lambda numbers: sum(numbers.values()),
    }
    return environment.get_template(name)


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
    return {
        "public": public,
        "told": told,
        "title": title,
        "file": files_of(told["source"]),
        "version": __version__,
        "notice": notice(product),
        "kinds": [kind for kind in CLAIMS if told[kind]],
        "verdict": verdict(told),
        "assumed": _assumed(told, public=public),
        "blocks": _blocks(told),
        "families": _families(told),
        "by_value": None if few else _by_value(told),
        "by_size": _by_size(told),
        "routes": _routes(told),
        "kin": nesting.section(told),
        "findings": {} if public else {kind: found for kind in CLAIMS if (found := _findings(folder, kind))},
        "clashes": _clashes(folder, public=public),
        "truth": _truth(told, public=public),
    }


def cut(text: object, longest: int = LONGEST) -> str:
    """Return a text without what goes beyond a length.

    Examples
    --------
    >>> cut("Montréal"), cut("Montréal", 5)
    ('Montréal', 'Mont…')
    """
    said = str(text)
    return said if len(said) <= longest else f"{said[: longest - 1]}…"


# -- what was assumed -------------------------------------------------------------------------------------------------


def _assumed(told: Mapping[str, Any], *, public: bool) -> dict[str, Any]:
    population = {
        "exact": "Counts that are published unrounded are taken as exact. Where the agency may have adjusted one a little, "
        "what depends on it is called conditional, not proved.",
        "within5": "Counts that are published unrounded, but may have been adjusted, are taken as within 5 of the truth.",
    }
    return {
        "mechanisms": list(told["mechanisms"].items()),
        "population": population[told["population"]],
        "notes": [] if public else told["notes"][:MOST_NOTES],
        "check": _checked(told.get("check"), public=public),
        "sharing": {"said": dependence.sentences(told), "rows": dependence.rows(told)},
    }


def _checked(check: Mapping[str, Any] | None, *, public: bool) -> dict[str, Any]:
    """Say whether the release fits how it is said to have been published; an audit that was not asked does not know."""
    if check is None or check["verdict"] not in ("fits", "departs", "contradicts"):
        few = "" if check is None else " There are too few sums to test it on."
        return {"said": f"{FIT['untested']}{few}", "alarm": False, "odd": [], "more": 0}
    odd = [one for one in check["families"] if one["verdict"] != "fits"]
    fitting = len(check["families"]) - len(odd)
    untested = len(check.get("untested", ()))
    families = several(len(check["families"]), "family", "families")
    said = f"{FIT[check['verdict']]} {fitting:,} of {families} of sums and counts fit"
    return {
        "said": f"{said}{f', and {untested:,} could not be tested' if untested else ''}.",
        "alarm": check["verdict"] != "fits",
        "odd": [(one["family"], one["verdict"], "" if public else one["note"]) for one in odd[:MOST_ODD]],
        "more": len(odd) - len(odd[:MOST_ODD]),
    }


# -- claims by table, and next to chance ------------------------------------------------------------------------------


def _blocks(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables with most claims, each with its bars, next to what chance predicts of its sums."""
    chance = told.get("chance_by_block", {})
    nameless = "all columns" if len(chance) == 1 else "columns of no table"
    nothing = {"groups": 0, "proved": 0, "proved_expected": 0.0, "strong": 0, "strong_expected": 0.0}
    rows = [
        {"name": name or nameless, **numbers, "chance": chance.get(name, nothing)}
        for name, numbers in told["by_block"].items()
    ]
    silent = [name for name in chance if name not in told["by_block"]]
    return {**_with_bars(rows, MOST_BLOCKS), "silent": len(silent)}


def _routes(told: Mapping[str, Any]) -> dict[str, Any]:
    return _with_bars([{"name": name, **numbers} for name, numbers in told["by_route"].items()], MOST_ROUTES)


def _with_bars(rows: list[dict[str, Any]], most: int) -> dict[str, Any]:
    """Keep the first rows, sum up the others, and give each of those that are kept the lengths of its bars, in percent."""
    largest = max((sum(row[kind] for kind in CLAIMS) for row in rows), default=0) or 1
    shown = [{**row, "bars": {kind: 100 * row[kind] / largest for kind in CLAIMS if row[kind]}} for row in rows[:most]]
    rest = {kind: sum(row[kind] for row in rows[most:]) for kind in CLAIMS} if rows[most:] else None
    return {"rows": shown, "more": len(rows) - len(shown), "rest": rest}


def _families(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what single sums gave away, a row a kind of sum, next to what chance predicts; and the chart of it."""
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
        "chart": figures.against_chance(drawn) if drawn else None,
        "described": "; ".join(f"{row['label']}: {row['found']:,} found, chance gives {_span(row)}" for row in drawn),
        "proved": sum(one["proved"] for one in met),
        "expected": sum(one["proved_expected"] for one in met),
        "odd": [
            f"{one['family']}: {one['proved']:,} found, {one['proved_expected']:,.1f} predicted"
            for one in odd[:MOST_FAMILIES]
        ],
    }


def _span(row: Mapping[str, Any]) -> str:
    return f"{row['low']:,} to {row['high']:,}"


# -- where the risk sits ----------------------------------------------------------------------------------------------


def _by_value(told: Mapping[str, Any]) -> dict[str, Any]:
    rows = {name.replace("-", "–"): numbers for name, numbers in told["what_would_hurt"]["by_value"].items()}
    claims = sum(sum(numbers.values()) for numbers in rows.values())
    return {
        "rows": rows,
        "chart": figures.claims_by_class(rows, "claims") if claims else None,
        "described": "; ".join(f"{name}: {_listed(numbers)}" for name, numbers in rows.items()),
    }


def _by_size(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return claims by the size of their area, with how many there are among 1,000 counts, published or suppressed."""
    rows, rates = {}, {}
    for name, numbers in told.get("by_area_size", {}).items():
        if numbers["areas"]:
            size = name.replace("-", "–")
            rows[size] = numbers
            rates[size] = {kind: 1000 * numbers[kind] / max(1, numbers["cells"]) for kind in CLAIMS}
    claims = sum(numbers[kind] for numbers in rows.values() for kind in CLAIMS)
    axis = "claims per 1,000 counts"
    return {
        "rows": rows,
        "rates": {name: sum(of.values()) for name, of in rates.items()},
        "chart": figures.claims_by_class(rates, axis, digits=1) if claims else None,
        "described": "; ".join(f"areas of {name}: {sum(of.values()):.1f}" for name, of in rates.items()),
    }


def _listed(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{numbers[kind]:,} {kind}" for kind in CLAIMS if numbers[kind]) or "none"


# -- findings, contradictions, truth ----------------------------------------------------------------------------------


def _findings(folder: AuditFolder, kind: str) -> list[dict[str, Any]]:
    """Return the strongest findings of a kind, the likely ones with their histograms."""
    if not folder.summary[kind] or not MOST[kind]:
        return []
    return [{"one": one, **_histogram(one)} for one in strongest(folder, kind)]


def _histogram(one: Strong) -> dict[str, Any]:
    if not one.distribution:
        return {"chart": None, "described": ""}
    likeliest = sorted(one.distribution, key=lambda pair: -pair[1])[:4]
    shown = [pair for pair in one.distribution if pair[1] >= likeliest[0][1] / 200]
    return {
        "chart": figures.distribution(shown),
        "described": ", ".join(f"{value:,}: {percent(p)}" for value, p in likeliest),
    }


def _clashes(folder: AuditFolder, *, public: bool) -> dict[str, Any]:
    number = folder.summary["contradictions"]
    rows = first_contradictions(folder, MOST_CLASHES) if number and not public else []
    kinds = folder.summary["contradictions_by_kind"]
    return {
        "number": number,
        "kinds": [(CLASHES.get(kind, kind), many) for kind, many in kinds.items()],
        "rows": rows,
        "more": number - len(rows),
    }


def _truth(told: Mapping[str, Any], *, public: bool) -> dict[str, Any] | None:
    """Return how claims compare with the truth, if it was given."""
    score = told.get("truth")
    if score is None:
        return None
    bands = [{**band, **_error_bar(band)} for band in score["calibration"].get("findings", []) if band["claims"]]
    return {
        "score": score,
        "bands": bands,
        "parts": dependence.by_part(score),
        "wrong": [] if public else score["proved_wrong"],
        "chart": figures.calibration(bands) if bands else None,
        "described": "; ".join(f"stated {percent(b['stated'])}, right {percent(b['right'])}" for b in bands),
    }


def _error_bar(band: Mapping[str, Any]) -> dict[str, float]:
    """Return Wilson's interval of 95 % around the share that was right."""
    z, n, share = 1.96, band["claims"], band["right"]
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return {"low": max(0.0, middle - half), "high": min(1.0, middle + half)}
