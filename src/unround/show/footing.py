"""What the claims of an audit rest on, in short: the strip on top of the report and of every page of the explorer.

`footing` makes its content from the summary of an audit; the macro of the same name in `macros.html` lays it out. Each entry
names a check, says how it came out in a word or two and a sentence, and leads to the reasons: `anchor` is the name of the
section that has them, in the report and on the explorer's page "About".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from unround.audits import AuditFolder
from unround.audits.folder import REVIEW, REVIEWED
from unround.checks.families import CONTRADICTS, DEPARTS, FITS, UNTESTED
from unround.show import selfcheck
from unround.show.check import keys_explain, known_by
from unround.show.words import listed, several

FINE, DOUBT, UNKNOWN = "fine", "doubt", "unknown"
"""How an entry looks: as it should be; a reason for doubt; or nobody knows."""

STATES = {FITS: "passed", DEPARTS: "departs", CONTRADICTS: "contradicts", UNTESTED: "not tested"}
"""What the check of the mechanism came to."""

DECISIONS = {name: (name, FINE if name == "publish" else DOUBT) for name in ("publish", "undecided", "revise", "stop")}


@dataclass(frozen=True, slots=True)
class Footing:
    """One thing that claims rest on.

    - `what`: What was looked at.
    - `state`: What came of it, in a word or two.
    - `tone`: `FINE`, `DOUBT` or `UNKNOWN`.
    - `said`: The same in a sentence.
    - `anchor`: The section with the reasons.
    """

    what: str
    state: str
    tone: str
    said: str
    anchor: str


def footing(told: Mapping[str, Any], decision: str | None = None) -> tuple[Footing, ...]:
    """Return what the claims of an audit rest on."""
    return tuple(_entries(told, decision))


def decision_of(folder: AuditFolder) -> str | None:
    """Return the decision of the review that an audit belongs to; None where there is none."""
    path = folder.path.resolve().parent / REVIEW
    if folder.path.resolve().name != REVIEWED or not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["decision"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None  # damaged, or none of ours: the audit stands without it
    return found if found in DECISIONS else None


def _entries(told: Mapping[str, Any], decision: str | None) -> Iterator[Footing]:
    if decision is not None:
        state, tone = DECISIONS[decision]
        yield Footing("Decision", state, tone, "The table was held against a policy: see review.html.", "verdict")
    yield mechanism(told.get("check"))
    yield probabilities(told)
    faults = _faults(told)
    if faults is not None:
        yield faults
    held = _held_back(told)
    if held is not None:
        yield held


def mechanism(check: Mapping[str, Any] | None) -> Footing:
    """Say whether the data fit how they are thought to have been published."""
    what, verdict = "Mechanism check", UNTESTED if check is None else check["verdict"]
    if check is None or verdict == UNTESTED:
        return Footing(what, STATES[UNTESTED], UNKNOWN, "A wrong mechanism would make claims wrong.", "check")
    how = f"the {known_by(check)} mechanism"
    if verdict == FITS:
        return Footing(what, STATES[FITS], FINE, f"The data fit {how}.", "check")
    if verdict == DEPARTS:
        why = "keys explain it." if keys_explain(check["families"]) else "probabilities may be off."
        return Footing(what, STATES[DEPARTS], DOUBT, f"The data depart from {how}: {why}", "check")
    impossible = max((one.get("impossible", 0) for one in check["families"] if one["verdict"] == CONTRADICTS), default=0)
    some = f"At least {impossible:,}" if impossible > 1 else "Some"
    return Footing(what, STATES[CONTRADICTS], DOUBT, f"{some} published figures cannot come from {how}.", "check")


def probabilities(told: Mapping[str, Any]) -> Footing:
    """Say how probabilities did when published counts were hidden and predicted."""
    what, found = "Probabilities", told.get("selfcheck")
    if not found:
        return Footing(what, STATES[UNTESTED], UNKNOWN, "No prior was fitted that could have been checked.", "selfcheck")
    failed = sum(one["verdict"] == "failed" for one in found["tables"])
    said = selfcheck.in_a_clause(told)
    if failed:
        state = f"failed in {several(failed, 'table')}"
        return Footing(what, state, DOUBT, f"{said} Likely claims there are withheld.", "selfcheck")
    if not selfcheck.says_anything(told):  # a check that had nothing to look at has not been passed
        return Footing(what, "nothing to check", UNKNOWN, said, "selfcheck")
    return Footing(what, "self-check passed", FINE, said, "selfcheck")


def _faults(told: Mapping[str, Any]) -> Footing | None:
    suspect, clashes = told["suspect"]["areas"], told["contradictions"]
    if not suspect and not clashes:
        return None
    parts = [several(clashes, "inconsistency", "inconsistencies")] if clashes else []
    parts += [several(suspect, "area with suspect data", "areas with suspect data")] if suspect else []
    return Footing("Data", "faults found", DOUBT, f"{listed(parts)}; set apart.", "faults")


def _held_back(told: Mapping[str, Any]) -> Footing | None:
    number = sum(told["held_back"].values())
    if not number:
        return None
    return Footing("Held back", several(number, "claim"), DOUBT, "Not listed, and no sign of safety.", "held")
