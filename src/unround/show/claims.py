"""How often likely claims are right, by the count claimed and the probability stated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unround.score.truth import ANY_VALUE, ENOUGH, ENOUGH_SMALL, TOLERANCE, TOLERANCE_FEW
from unround.show.parts import Part, Table, TableRow, Text
from unround.show.words import percent

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
