"""The first page of a report: is this release dangerous, why, and what to look at. It stands by itself, on paper too."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unround.checks.families import DEPARTS, FITS
from unround.show.check import keys_explain
from unround.show.strongest import Strong
from unround.show.waffle import Share, per_10_000, waffle
from unround.show.words import CLAIMS, at_least, percent, several
from unround.tables import SIMULATED

MOST_STEPS = 4
"""Steps of a proof that can be told in two lines."""

NAMED = 4
"""Cells of the arithmetic that are named."""

PICTURED = (("proved", "proved"), ("conditional", "conditional"), ("likely", "likely"))


@dataclass(frozen=True, slots=True)
class Example:
    """A finding in two lines of arithmetic.

    - `kind`: Proved, conditional or likely.
    - `sentence`: What was printed, and what it must or most likely was.
    - `lines`: The arithmetic, with letters for counts.
    - `letters`: What the letters stand for.
    """

    kind: str
    sentence: str
    lines: tuple[str, ...]
    letters: str


def picture(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the picture of 10,000 counts, its title, and what its colours mean."""
    zeros = told["sensitive_claims"]["by_value"]["0"]["likely"]
    numbers = {kind: told[kind] for kind, _ in PICTURED} | {"likely": told["likely"] - zeros}
    shares = [Share(kind, colour, numbers[kind]) for kind, colour in PICTURED]
    shares[-1] = Share("likely, and not 0", "likely", numbers["likely"])
    claims = sum(told[kind] for kind in CLAIMS)
    whole = max(told["cells_published"], claims)
    shares += [Share("likely 0", "likely zero", zeros), Share("open: nothing is claimed", "open", whole - claims)]
    rows = [(one, per_10_000(one.number, whole)) for one in shares]
    said = "; ".join(f"{one.name}: {many}" for one, many in rows)
    return {
        "title": _picture_title(told, claims, whole),
        "chart": waffle(shares, whole, f"10,000 squares for the published counts. {said}"),
        "key": [{"kind": one.kind, "name": one.name, "of": many, "number": one.number} for one, many in rows if one.number],
    }


def _picture_title(told: Mapping[str, Any], claims: int, whole: int) -> str:
    if not claims:
        return "Of 10,000 published counts, none can be worked out"
    known = per_10_000(claims, whole)
    certain = told["proved"]
    sure = f"; {per_10_000(certain, whole)} for certain" if certain and certain < claims else ""
    return f"Of 10,000 published counts, {known} can be worked out{sure}"


# -- one example ------------------------------------------------------------------------------------------------------


def example(strong: Mapping[str, Sequence[Strong]]) -> Example | None:
    """Return the finding that matters most, of the strongest of each kind, among those that two lines explain."""
    for kind, found in strong.items():
        short = [one for one in found if kind == "likely" or (len(one.steps) <= MOST_STEPS and not one.more_steps)]
        if short:
            return _likely(short[0]) if kind == "likely" else _certain(short[0])
    return None


def _opening(one: Strong, means: str) -> str:
    row = one.finding
    published = "nothing was published" if row["published"] is None else f"{row['published']:,} was published"
    return f"{one.what} in {one.area or one.code}: {published}; {means}."


def _certain(one: Strong) -> Example:
    row = one.finding
    on = f", given {row['assumptions']}" if row["kind"] == "conditional" and row["assumptions"] else ""
    *first, last = one.steps
    lines = (" ".join(first[:-1]), f"{first[-1]} {last}") if len(first) > 1 else (*first, last)
    return Example(row["kind"], _opening(one, f"it must be {row['value']:,}{on}"), lines, _letters(one, lines))


def _likely(one: Strong) -> Example:
    row = one.finding
    lines = list(one.steps[:1])
    grown = dict(one.growth)
    alone = next((grown[name] for name in grown if "fitted to the release" in name), None)
    if alone is None:
        alone = next(iter(grown.values()), None)
    if alone is not None:
        lines.append(
            f"From its published value alone, {row['value']:,} has a probability of {percent(alone)}; with everything else "
            f"that was published of the area, {at_least(row)}."
        )
    means = f"most likely it is {row['value']:,} ({at_least(row)})"
    return Example(row["kind"], _opening(one, means), tuple(lines), _letters(one, lines))


def _letters(one: Strong, lines: Sequence[str]) -> str:
    """Say what the letters in some lines stand for."""
    used = set(re.findall(r"\b[A-Z]+\b", " ".join(lines)))
    cells = [cell for cell in one.cells if cell.letter in used]
    more = f"; the others are {several(len(cells) - NAMED, 'more count')}" if len(cells) > NAMED else ""
    return "; ".join(f"{cell.letter} is {cell.what}" for cell in cells[:NAMED]) + more + "."


# -- what to do next ---------------------------------------------------------------------------------------------------


def next_steps(told: Mapping[str, Any], *, public: bool) -> list[str]:
    """Say what to do now, the most urgent first."""
    claims = sum(told[kind] for kind in CLAIMS)
    by_value = told["sensitive_claims"]["by_value"]
    small = sum(by_value["1-2"].values())
    steps = []
    check = told.get("check")
    if check is not None and not _explained(check):
        steps.append("Find out why the data do not fit the mechanism (see Assumptions): until then, doubt probabilities.")
    if told["contradictions"] or told["suspect"]["areas"]:
        steps.append("Have the faults in the data corrected: contradictions.csv and suspects.csv list them.")
    if claims and not public:
        among = "first" if not told["proved"] + told["conditional"] else "first among those of their kind"
        first = f": the {several(small, 'count')} of one or two {'comes' if small == 1 else 'come'} {among}" if small else ""
        steps.append(f"Go through the findings, in findings.csv or with “unround serve”{first}.")
    if claims:
        steps.append("Try safer ways of publishing: “unround review” for a draft, “unround compare” for a release.")
    else:
        steps.append("Ask what other tables would add (“unround review --more”): this audit says nothing about them.")
    if told["product"] != SIMULATED:
        steps.append("Tell the agency before anything about this release is published.")
    return steps


def _explained(check: Mapping[str, Any]) -> bool:
    """Whether the data fit the mechanism, or depart from it in a way that probabilities account for."""
    return check["verdict"] == FITS or (check["verdict"] == DEPARTS and keys_explain(check["families"]))
