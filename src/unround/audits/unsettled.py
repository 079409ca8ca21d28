"""What keeps an audit from saying that a release is safe: not understood, not used, withheld, contradicted, given up.

Each entry says what it is, why it is not settled, and the option or the line of TOML that settles it. The headline of an
audit names the first; `summary.json` lists all, and a review reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from unround.audits.contradictions import ASSUMPTION, CELL
from unround.checks import Check
from unround.checks.families import CONTRADICTS
from unround.release import Release, What
from unround.structure import Structure

Entry = dict[str, str]
"""`what`, `why` and `settle`; and `check`, where it is one of the checks that a policy decides on by itself."""

MOST_NAMED = 5
"""Columns that an entry names; of more it tells how many there are."""

_SAY_HOW = "say how counts were published: --base, --mechanism or --exact, or [[structure.mechanisms]] in a plan file"


def before(release: Release, structure: Structure, checked: Check) -> list[Entry]:
    """Return what is not settled before the first area is looked at."""
    return [*_mechanisms(structure, checked), *_sums(structure), *_figures(structure), *_reading(release)]


def after(told: Mapping[str, Any]) -> list[Entry]:
    """Return what is not settled once all areas were looked at, from the summary of an audit: the worst first."""
    return [*_contradicted(told), *told["unsettled"], *_held_back(told), *_given_up(told)]


def _named(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return f"{'column' if len(names) == 1 else 'columns'} {', '.join(names[:MOST_NAMED])}{more}"


def _mechanisms(structure: Structure, checked: Check) -> Iterator[Entry]:
    if checked.verdict == CONTRADICTS:
        why = "the check finds figures that cannot come from how counts are said or thought to have been published"
        yield {"what": "mechanism", "why": why, "settle": _SAY_HOW, "check": "contradicts"}
    for one in structure.how:
        if one.mechanism is None and "no count above 0" not in one.why:
            settle = _SAY_HOW if one.suggested is None else f"--mechanism {one.suggested.name}, if the agency says so"
            names = [structure.columns[at].key for at in one.columns]
            yield {"what": _named(names), "why": f"not used: {one.why}", "settle": settle}


def _sums(structure: Structure) -> Iterator[Entry]:
    """Yield the sums that may well hold, for all that the counts tell, and are not used."""
    used = {one.total for one in structure.sums}
    for one in structure.rejected:
        if one.unjudged and one.is_documented and one.areas and one.total not in used:
            names = [structure.columns[at].key for at in (one.total, *one.parts)]
            listed = " + ".join(names[1:] if len(names) <= MOST_NAMED else [names[1], names[2], "…", names[-1]])
            settle = "[[structure.sums]] in a plan file, with use = true if it holds, and use = false if not"
            yield {"what": f"sum {names[0]} = {listed}", "why": f"not used: {one.why}", "settle": settle}


def _figures(structure: Structure) -> Iterator[Entry]:
    unclear = [one.figure.name for one in structure.figures if one.verdict == "unclear"]
    if unclear:
        why = "it cannot be told whether they were computed from true counts, so they are not used"
        settle = "[[structure.figures]] in a plan file, with use = true or use = false"
        yield {"what": f"figures: {_named(unclear)}", "why": why, "settle": settle}


def _reading(release: Release) -> Iterator[Entry]:
    for one in release.account:
        if one.what == What.UNKNOWN:
            yield {"what": one.place, "why": f"not understood: {one.why}", "settle": one.settle, "check": "reading"}


def _contradicted(told: Mapping[str, Any]) -> Iterator[Entry]:
    """Yield that counts cannot come from their mechanism, or contradict each other: nothing reassures then."""
    kinds = told["contradictions_by_kind"]
    misfits = kinds.get(CELL, 0)
    others = sum(number for kind, number in kinds.items() if kind not in (CELL, ASSUMPTION))
    if misfits:
        how = " or ".join(told["mechanisms"])
        why = f"{misfits:,} of {told['cells_published']:,} published counts cannot come from {how}; they were not used"
        yield {"what": "mechanism", "why": why, "settle": _SAY_HOW, "check": "contradicts"}
    if others:
        why = f"{others:,} sets of published figures cannot all be right; what they say was set aside"
        settle = "correct what contradictions.csv lists"
        yield {"what": "contradictions", "why": why, "settle": settle, "check": "contradicts"}


_WITHHELD = {
    "mechanism": ("the published figures contradict their mechanism", "--doubtful lists them", "contradicts"),
    "selfcheck": ("the prior failed its self-check there", "give the true counts (--truth FILE)", "self-check"),
    "tied": ("the same count appears in tables whose sums cannot all be used at once", "--rounding independent", "withheld"),
    "suspect": ("the data of the area are suspect", "correct what suspects.csv lists", "withheld"),
}


def _held_back(told: Mapping[str, Any]) -> Iterator[Entry]:
    for because, claims in told["held_back_because"].items():
        number = sum(claims.values())
        if number:
            why, settle, check = _WITHHELD[because]
            yield {"what": "claims held back", "why": f"{number:,}, because {why}", "settle": settle, "check": check}


def _given_up(told: Mapping[str, Any]) -> Iterator[Entry]:
    settle = "audit fewer columns or sums at once (use = false in a plan file)"
    if number := told["hidden"]["not_settled"]:
        why = f"the sums around {number:,} of them form loops too large to search: their intervals may be narrower"
        yield {"what": "hidden counts", "why": why, "settle": settle}
    if number := sum(level["parents"] - level["used"] for level in told["linked"]["levels"]):
        why = f"{number:,} of them are not used: too many counts would have to be looked at together"
        yield {"what": "sums of areas", "why": why, "settle": "audit one region at a time"}
    for areas, why in (
        (told["areas_not_weighed"], "noise leaves too many counts possible to use all sums at once"),
        (told["areas_where_chains_disagree"], "the Markov chains do not agree"),
    ):
        if areas:
            text = f"in {areas:,} areas {why}: what sums make likely there is not known"
            yield {"what": "probabilities", "why": text, "settle": settle, "check": "not-weighed"}
