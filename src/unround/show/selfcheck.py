"""How often probabilities came true: of published counts that were hidden and predicted, and of claims beside the truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unround.score.truth import ANY_VALUE, ENOUGH, ENOUGH_SMALL, TOLERANCE, TOLERANCE_FEW
from unround.show import charts
from unround.show.parts import (
    ALARM,
    QUIET,
    Chart,
    Columns,
    Fold,
    Part,
    Section,
    Side,
    Table,
    TableCell,
    TableRow,
    Text,
    rest,
    tabulated,
)
from unround.show.words import percent, rate, several

TITLE = "Self-check: published counts predicted from the others"

WHAT_IT_IS = (
    "Published counts were hidden one at a time, predicted from everything else that was published of their area, and "
    "compared with what had been published."
)
NO_TRUTH = (
    "This needs no true counts, and it cannot see what rounding hides: priors that predict published counts equally well "
    "can differ about the true ones."
)

UNSURE = "No published count could be predicted with much certainty."

LEAST_STATED = 0.6
"""The sentence speaks of predictions at least so sure: claims are."""

MOST_TABLES = 20
MOST_COLUMNS = 8
"""Rows that are shown; the others are counted."""


def sentences(summary: Mapping[str, Any]) -> list[str]:
    """Say in a few sentences how well published counts were predicted; nothing where that was not tried."""
    checked = summary.get("selfcheck")
    if not checked:
        return []
    said = []
    best = _fullest(checked["calibration"])
    if best is not None:
        said.append(
            f"Of {several(best['predictions'], 'published count')} predicted at {_band(best)}, "
            f"{percent(best['observed'])} {'was' if best['predictions'] == 1 else 'were'} as predicted "
            f"(stated: {percent(best['stated'])})."
        )
    else:
        said.append(UNSURE)
    if checked["rms_z"] is not None:
        said.append(
            f"Over {several(checked['cells'], 'prediction')}, the zeros published in a column miss the number predicted by "
            f"{checked['rms_z']:.1f} standard errors on average; 1 would be chance."
        )
    return said


def in_a_clause(summary: Mapping[str, Any]) -> str:
    """Say in one short sentence how often predictions of claims' certainty came true; nothing where there were none."""
    best = _fullest((summary.get("selfcheck") or {"calibration": ()})["calibration"])
    if best is None:
        return ""
    return f"Of {several(best['predictions'], 'prediction')} at {_band(best)}, {percent(best['observed'])} came true."


def in_short(summary: Mapping[str, Any]) -> str:
    """Say the same in one paragraph that begins with what it is about."""
    said = " ".join(sentences(summary))
    return f"Self-check: {said[:1].lower()}{said[1:]}" if said else ""


def withheld(summary: Mapping[str, Any]) -> list[str]:
    """Say which tables have likely claims withheld, and why."""
    checked = summary.get("selfcheck")
    if not checked:
        return []
    failed = [table for table in checked["tables"] if table["verdict"] == "failed"]
    said = [
        f"Likely claims of this table are withheld: {table['table']}. {_sentence(table['why'])}".rstrip()
        for table in failed[:MOST_TABLES]
    ]
    if len(failed) > MOST_TABLES:
        said.append(f"Likely claims of {several(len(failed) - MOST_TABLES, 'more table')} are withheld; see summary.json.")
    if failed and checked["withheld"]:
        said.append(
            f"{several(checked['withheld'], 'count')} would have been called likely there. That is no sign of safety."
        )
    return said


def parts(summary: Mapping[str, Any]) -> list[Part]:
    """Return what is shown of the self-check, also where there was none."""
    checked = summary.get("selfcheck")
    if not checked:
        said = (
            "Probabilities were not checked: no prior was fitted to the release, or no published count could be predicted "
            "from the others."
        )
        return [Section("Self-check", [Text(said)], "selfcheck", "Self-check")]
    bands = [_drawn(band) for band in checked["calibration"] if band["predictions"]]
    right: list[Part] = []
    if bands:
        drawn = charts.reliability({"": ("likely", bands)}, "predicted probability", "share published as predicted")
        note = "each point is a band of predictions, larger for more of them; bars: 95% sampling error"
        right.append(Chart(drawn, (in_a_clause(summary) or UNSURE).rstrip("."), note))
    left = [
        *(Text(sentence) for sentence in sentences(summary)),
        *(Text(sentence, ALARM) for sentence in withheld(summary)),
        *_details(checked),
    ]
    return [Section(TITLE, [Side([left, right])], "selfcheck", "Self-check")]


def _details(checked: Mapping[str, Any]) -> Iterator[Part]:
    best_first = sorted(checked["log_score"].items(), key=lambda item: -item[1])
    scores = ", ".join(f"{name} {score:.3f}".replace("-", "−") for name, score in best_first)
    better = f"Mean log score of the predictions under each prior, nearer 0 is better: {scores}." if scores else ""
    yield Fold("What this check does, and what it cannot see", [Text(f"{WHAT_IT_IS} {NO_TRUTH}"), Text(better, QUIET)])
    tables = sorted(checked["tables"], key=lambda table: table["verdict"] != "failed")[:MOST_TABLES]
    by_table: Columns = [
        ("Table", "table"),
        ("columns", "columns"),
        ("predictions", "cells"),
        ("zeros miss by", lambda row: "–" if row["rms_z"] is None else f"{row['rms_z']:.1f}"),
        ("verdict", lambda row: row["verdict"] + (f": {row['why']}" if row["why"] and row["verdict"] != "passed" else "")),
    ]
    by_column: Columns = [
        ("Column", lambda row: TableCell(row["label"], small=row["column"])),
        ("predictions", "predictions"),
        ("zeros predicted", lambda row: rate(row["zeros_predicted"])),
        ("zeros published", "zeros_published"),
        ("z", lambda row: f"{row['z']:+.1f}".replace("-", "−")),
    ]
    if tables:
        more = rest(len(checked["tables"]), MOST_TABLES, "`summary.json` has them all")
        listed = tabulated(tables, by_table, "Self-check by table", left=("verdict",))
        yield Fold(f"By table: {several(len(tables), 'table')}", [listed, more])
    if checked["worst_columns"]:
        title = "Columns that were predicted worst"
        yield Fold(title, [tabulated(checked["worst_columns"][:MOST_COLUMNS], by_column, title)])


def _fullest(bands: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the band of rather sure predictions that has the most of them."""
    sure = [band for band in bands if band["low"] >= LEAST_STATED - 1e-9 and band["predictions"]]
    return max(sure, key=lambda band: int(band["predictions"]), default=None)


def _band(band: Mapping[str, Any]) -> str:
    return f"{100 * band['low']:.0f}–{100 * band['high']:.0f}%"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _drawn(band: Mapping[str, Any]) -> dict[str, float]:
    """Return a band as the chart takes it, with Wilson's 95% interval."""
    number, share = int(band["predictions"]), float(band["observed"])
    return {"stated": band["stated"], "right": share, "claims": number, **charts.wilson(share, number)}


# -- likely claims beside the truth ------------------------------------------------------------------------------------

OVERSTATED = "overstated"

CLAIMS_NOTE = (
    "Likely claims that an audit lists, by the count claimed and the probability stated. ±: one standard error of right "
    "less stated, in points; claims about one area are not taken as independent. "
    f"{OVERSTATED.capitalize()}: right less often than stated by more than {100 * TOLERANCE:.0f} points and two standard "
    f"errors, in at least {ENOUGH} claims; or, for counts of 0 and of 1–2, by more than {100 * TOLERANCE_FEW:.0f} points "
    f"and two standard errors in at least {ENOUGH_SMALL}."
)


def claims_table(by_value: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the headings and rows of how often likely claims are right, by the count claimed and by band."""
    heads = ["count claimed", "stated between", "claims", "stated", "right", "±", "verdict"]
    return heads, [
        [
            value_named(group["value"]),
            between(row) if "from" in row else "any",
            f"{row['claims']:,}",
            percent(row["stated"]),
            percent(row["right"]),
            f"{100 * row['standard_error']:.1f}",
            OVERSTATED if row["overstated"] else "",
        ]
        for group in by_value
        for row in (group, *group["bands"])
    ]


def value_named(value: str) -> str:
    """Return what a group of claims is called."""
    return "any count" if value == ANY_VALUE else value


def between(band: Mapping[str, Any]) -> str:
    """Return the edges of a band.

    >>> between({"from": 0.66, "to": 0.75})
    '66–75%'
    """
    return f"{100 * band['from']:.0f}–{100 * band['to']:.0f}%"


def claims_parts(by_value: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Return how often likely claims are right, by the count claimed and by band."""
    heads, rows = claims_table(by_value)
    if not rows:
        return [Text("There are none.")]
    above, marked = "", []
    for value, *numbers in rows:
        marked.append(TableRow(["" if value == above else value, *numbers], "wrong" if numbers[-1] else ""))
        above = value
    left = ("stated between", "verdict")
    return [Table(heads, marked, "Likely claims, by the count claimed", left=left, legend=CLAIMS_NOTE)]
