"""The titles of the report's charts: each a sentence that says what the chart shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unround.show.words import CLAIMS, percent, rate, several


def chance(families: Sequence[Mapping[str, Any]]) -> str:
    """Say how many proofs single sums give, beside what chance predicts."""
    found, expected = (sum(one[name] for one in families) for name in ("proved", "proved_expected"))
    proofs = several(found, "single sum proves its counts", "single sums prove their counts")
    return f"{proofs if found else 'No single sum proves its counts'}; chance predicts {rate(expected)}"


def by_value(told: Mapping[str, Any]) -> str:
    """Say how many claims are zeros, and how many of one or two people."""
    sizes = {name: sum(numbers.values()) for name, numbers in told["sensitive_claims"]["by_value"].items()}
    claims = sum(sizes.values())
    if not claims:
        return "Nothing is claimed"
    zeros = f"{percent(sizes['0'] / claims)} of the claims are zeros" if sizes["0"] else "No claim is a zero"
    small = sizes["1-2"]
    return f"{zeros}; {several(small, 'is a count', 'are counts') if small else 'none is a count'} of one or two"


def by_size(rates: Mapping[str, Mapping[str, float]]) -> str:
    """Say which areas give most away."""
    sums = {name: sum(row[kind] for kind in CLAIMS) for name, row in rates.items()}
    if not any(sums.values()):
        return "Nothing is claimed"
    if len(sums) == 1:
        return f"All areas are of one size; {rate(next(iter(sums.values())))} of 1,000 counts are given away"
    most = max(sums, key=lambda name: sums[name])
    return f"Areas of {most} give most away: {rate(sums[most])} of 1,000 counts"


def truth(bands: Sequence[Mapping[str, Any]]) -> str:
    """Say how often claims were right, in the band that has most of them."""
    if not bands:
        return ""
    best = max(bands, key=lambda band: int(band["claims"]))
    right = percent(best["right"])
    return f"Of {several(best['claims'], 'claim')} stated at {percent(best['stated'])} on average, {right} are right"
