"""How coarse rates must be to add nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unround.show.parts import QUIET, Bullets, Document, Table, Text
from unround.show.words import CLAIMS, several
from unround.shown import plain

if TYPE_CHECKING:
    from unround.reviews.rate_steps import RateSteps


def points(step: float) -> str:
    """Say a step.

    >>> points(0.5), points(1.0)
    ('0.5 points', '1 point')
    """
    return "1 point" if step == 1 else f"{step:g} points"


def _answer(answered: Mapping[str, Any]) -> str:
    """Say which step adds nothing."""
    fine, steps = answered["adds_nothing_from"], answered["steps"]
    finer = steps[-1] if fine is None else next((row for row in reversed(steps) if row["step"] < fine), None)
    if finer is None:
        first = f"add no claim in steps of {points(fine)} or coarser, and finer ones were not tried"
    else:
        number, about = sum(finer["newly"].values()), "" if answered["method"] == "exact" else "about "
        some = f"{about}{several(number, 'claim')}" if number else "less than one claim"
        first = f"add no claim in steps of {points(fine or 0)} or coarser; steps of {points(finer['step'])} add {some}"
        first = f"add {some} even in steps of {points(finer['step'])}" if fine is None else first
    return f"Rates computed from true counts {first}. Rates computed from the rounded counts add nothing on any step."


def _row(name: str, row: Mapping[str, Any], mark: str) -> list[str]:
    """Return numbers of claims; where there are some, but less than one when scaled, so; and the mean error."""
    numbers = [*(row["newly"][kind] for kind in CLAIMS), sum(row["newly_small"].values())]
    shown = [f"{mark if number else ''}{number:,}" for number in numbers]
    if not any(numbers) and row.get("adds_nothing") is False:
        shown = ["< 1" for _ in numbers]
    error = "" if name == "as printed" else "unknown" if row["mean_error"] is None else f"{row['mean_error']:.2g}"
    return [name, *shown, error]


def _footnotes(answered: Mapping[str, Any]) -> list[str]:
    notes = [
        "Claims: counts that are claimed because of the rates, or with more certainty; all rates are printed on the same "
        "step, and no other figure is used. Of 1–2: those about counts of one or two. Mean error: from the true rate, in "
        "points.",
        "From rounded counts: whoever has the counts can compute such rates, so they cannot tell anything on any step; the "
        "audit of the finest confirms it." if not any(answered["from_published_counts"]["newly"].values())
        else "From rounded counts: such rates cannot tell anything, but the audit took them for computed from true counts. "
        "Its verdicts on rates are not to be relied on here (unround check).",
    ]  # fmt: skip
    drawn = answered["drawn"]
    if drawn is not None:
        times = f", {drawn['times']} times over" if drawn["times"] > 1 else ""
        notes.append(
            f"≈: approximate. Rates on other steps need the true counts, and none were given (--truth). Plausible true "
            f"counts of {several(drawn['areas'], 'area')} were drawn from the audit's estimates{times}, counts and rates "
            "were published from them, and numbers are scaled to all areas."
        )
    else:
        wrong = sum(row["truth"]["wrong"][kind] for row in answered["steps"] for kind in ("proved", "conditional"))
        notes.append(
            "Compared with the truth, no proved or conditional claim is wrong, on any step."
            if not wrong
            else f"Compared with the truth, {several(wrong, 'claim')} that should hold {'is' if wrong == 1 else 'are'} "
            "wrong: a documented fact does not hold, or the truth belongs to another release. Do not rely on these numbers."
        )
    notes.append(
        "This is so in these areas. A true rate close to the edge of a step can tell something on any step, so other areas "
        "may need coarser ones; and nothing here accounts for what somebody knows from elsewhere."
    )
    return [*notes, *answered["notes"]]


def rate_steps(result: RateSteps | Mapping[str, Any]) -> Document:
    """Say how coarse rates must be to add nothing."""
    answered = plain(result)
    names = [rate["name"] for rate in answered["rates"]]
    others = f" and {several(len(names) - 4, 'other')}" if len(names) > 4 else ""
    rates = f"the {'rate' if len(names) == 1 else 'rates'} {', '.join(names[:4])}{others}"
    question = f"How coarse must {rates} be to add nothing to the counts of {Path(answered['release']).name}?"
    mark, rounded = "" if answered["method"] == "exact" else "≈ ", answered["from_published_counts"]
    rows = [_row("as printed", answered["as_printed"], "")] if answered["as_printed"] is not None else []
    rows += [_row(f"steps of {points(row['step'])}", row, mark) for row in answered["steps"]]
    rows.append(_row(f"from rounded counts, {points(rounded['step'])}", rounded, mark))
    table = Table(("rates", *CLAIMS, "of 1–2", "mean error"), rows, "Claims by step")
    notes = Bullets(_footnotes(answered), QUIET)
    return Document("How coarse must rates be?", [Text(question), Text(_answer(answered), "lead"), table, notes])
