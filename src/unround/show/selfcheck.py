"""How the prior did when published counts were hidden and predicted: sentences, rows and one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unround.show import charts
from unround.show.words import percent, several

TITLE = "Self-check: published counts predicted from the others"

WHAT_IT_IS = (
    "Published counts were hidden one at a time, predicted from everything else that was published of their area, and "
    "compared with what had been published."
)
NO_TRUTH = (
    "This needs no true counts, and it cannot see what rounding hides: priors that predict published counts equally well "
    "can differ about the true ones."
)

LEAST_STATED = 0.6
"""The sentence speaks of predictions at least so sure: claims are."""

MOST_TABLES = 20
MOST_COLUMNS = 8
"""Rows that are shown; the others are counted."""


def sentences(told: Mapping[str, Any]) -> list[str]:
    """Say in a few sentences how well published counts were predicted; nothing where that was not tried."""
    found = told.get("selfcheck")
    if not found:
        return []
    said = []
    best = _fullest(found["calibration"])
    if best is not None:
        said.append(
            f"Of {several(best['predictions'], 'published count')} predicted at {_band(best)}, "
            f"{percent(best['observed'])} {'was' if best['predictions'] == 1 else 'were'} as predicted "
            f"(stated: {percent(best['stated'])})."
        )
    else:
        said.append("No published count could be predicted with much certainty.")
    if found["rms_z"] is not None:
        said.append(
            f"Over {several(found['cells'], 'prediction')}, the zeros published in a column miss the number predicted by "
            f"{found['rms_z']:.1f} standard errors on average; 1 would be chance."
        )
    return said


def in_a_clause(told: Mapping[str, Any]) -> str:
    """Say in one short sentence how often predictions of claims' certainty came true."""
    found = told.get("selfcheck")
    best = _fullest(found["calibration"]) if found else None
    if best is None:
        return "No published count could be predicted with much certainty."
    return f"Of {several(best['predictions'], 'prediction')} at {_band(best)}, {percent(best['observed'])} came true."


def says_anything(told: Mapping[str, Any]) -> bool:
    """Whether any published count was predicted as surely as claims are made."""
    found = told.get("selfcheck")
    return found is not None and _fullest(found["calibration"]) is not None


def in_short(told: Mapping[str, Any]) -> str:
    """Say the same in one paragraph that begins with what it is about."""
    said = " ".join(sentences(told))
    return f"Self-check: {said[:1].lower()}{said[1:]}" if said else ""


def withheld(told: Mapping[str, Any]) -> list[str]:
    """Say of which tables likely claims are withheld, and why."""
    found = told.get("selfcheck")
    if not found:
        return []
    failed = [one for one in found["tables"] if one["verdict"] == "failed"]
    said = [
        f"Likely claims of this table are withheld: {one['table']}. {_sentence(one['why'])}".rstrip()
        for one in failed[:MOST_TABLES]
    ]
    if len(failed) > MOST_TABLES:
        said.append(f"Likely claims of {several(len(failed) - MOST_TABLES, 'more table')} are withheld; see summary.json.")
    if failed and found["withheld"]:
        said.append(f"{several(found['withheld'], 'count')} would have been called likely there. That is no sign of safety.")
    return said


def section(told: Mapping[str, Any]) -> dict[str, Any] | None:
    """Gather what a page shows of the self-check; None where there was none."""
    found = told.get("selfcheck")
    if not found:
        return None
    bands = [_drawn(band) for band in found["calibration"] if band["predictions"]]
    return {
        "title": TITLE,
        "caption": in_a_clause(told).rstrip("."),
        "sentences": sentences(told),
        "how": WHAT_IT_IS,
        "limits": NO_TRUTH,
        "failed": sum(one["verdict"] == "failed" for one in found["tables"]),
        "withheld": withheld(told),
        "chart": charts.reliability({"": ("likely", bands)}, "predicted probability", "share published as predicted")
        if bands
        else None,
        "tables": [
            {**one, "rms": "–" if one["rms_z"] is None else f"{one['rms_z']:.1f}"} for one in _worst(found["tables"])
        ],
        "more_tables": max(0, len(found["tables"]) - MOST_TABLES),
        "columns": found["worst_columns"][:MOST_COLUMNS],
        "scores": _scores(found["log_score"]),
    }


def _fullest(bands: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the band of rather sure predictions that has the most of them."""
    sure = [band for band in bands if band["low"] >= LEAST_STATED - 1e-9 and band["predictions"]]
    return max(sure, key=lambda band: int(band["predictions"]), default=None)


def _band(band: Mapping[str, Any]) -> str:
    return f"{100 * band['low']:.0f}–{100 * band['high']:.0f}%"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _worst(tables: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the tables to be shown, those that failed first."""
    return sorted(tables, key=lambda one: one["verdict"] != "failed")[:MOST_TABLES]


def _scores(scores: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the mean log score of every prior, the best first."""
    return [(name, f"{score:.3f}".replace("-", "−")) for name, score in sorted(scores.items(), key=lambda item: -item[1])]


def _drawn(band: Mapping[str, Any]) -> dict[str, float]:
    """Return a band as the chart takes it, with Wilson's 95% interval."""
    number, share = int(band["predictions"]), float(band["observed"])
    return {"stated": band["stated"], "right": share, "claims": number, **charts.wilson(share, number)}
