"""What a comparison says, in sentences: each way of publishing beside the first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unround.compare.measure import LARGE

SURE = 2.5
"""Differences of fewer standard errors than this are not called differences."""


def sentences(told: dict[str, Any]) -> list[str]:
    """Return what to make of a comparison.

    Parameters
    ----------
    told : dict
        `Comparison.to_json()`.
    """
    rows = told["mechanisms"]
    found = list(_wrong(rows))
    for row in rows[1:]:
        found.append(_beside(rows[0], row))
    found += [_clamping(row) for row in rows if row["negative"] > 0]
    found += list(_noise(rows))
    return found


def _wrong(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        if row["proved_wrong"]:
            yield f"{row['name']}: {row['proved_wrong']:g} proved counts were wrong. That is a fault of unround."


def _differ(one: dict[str, Any], other: dict[str, Any], name: str) -> bool:
    """Say whether two means differ by more than their standard errors explain; with one release each, any difference does."""
    errors = [row["standard_error"][name] or 0.0 for row in (one, other)]
    return bool(abs(one[name] - other[name]) > SURE * (errors[0] ** 2 + errors[1] ** 2) ** 0.5 + 1e-12)


def _change(one: dict[str, Any], other: dict[str, Any], name: str) -> str:
    """Return by how many per cent a number falls or rises."""
    before, after = one[name], other[name]
    if not before or not _differ(one, other, name):
        return "stays the same"
    share = 100 * (after / before - 1)
    if abs(share) < 0.5:
        return "stays the same"
    return f"{'falls' if share < 0 else 'rises'} by {abs(share):.0f} %"


def _beside(first: dict[str, Any], row: dict[str, Any]) -> str:
    """Return how one way of publishing compares with the first."""
    proofs = (
        "proofs vanish"
        if first["proved"] and not row["proved"]
        else f"proved counts go from {number(first['proved'])} to {number(row['proved'])}"
    )
    large = f"mean_error_over_{LARGE}"
    truth = "truth_probability"
    return (
        f"{row['name']} beside {first['name']}: {proofs}; likely counts go from {number(first['likely'])} to "
        f"{number(row['likely'])}; the probability put on the truth {_change(first, row, truth)} ({first[truth]:.3f} to "
        f"{row[truth]:.3f}). The mean error {_change(first, row, 'mean_error')} (of counts over {LARGE}, "
        f"{_change(first, row, large)}: {first[large]:.2f} to {row[large]:.2f}), and the root-mean-square error "
        f"{_change(first, row, 'rmse')} ({first['rmse']:.2f} to {row['rmse']:.2f})."
    )


def _clamping(row: dict[str, Any]) -> str:
    """Return what publishing negative counts as 0 does."""
    return (
        f"{row['name']}: {100 * row['negative']:.1f} % of counts come out negative. Published as 0 instead, the mean error "
        f"is {row['clamped_mean_error']:.2f} in place of {row['mean_error']:.2f}, but every count is "
        f"{row['clamped_bias']:+.3f} off on average, and a true 0 {row['clamped_bias_of_zeros']:+.2f}: totals that are added "
        "up from many empty parts come out too large."
    )


def _noise(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Say whether noise defeats inference, as the paper hopes."""
    noisy = [row for row in rows if row["left_out_of_account"] is not None]
    if not noisy:
        return
    yield "Does noise defeat inference? Nothing can be proved, and solutions cannot be listed one by one. But sums still help: " + "; ".join(
        f"under {row['name']} they raise the probability put on the truth from {row['truth_probability_alone']:.3f} to "
        f"{row['truth_probability']:.3f}, and bring the best guess from {row['mean_error']:.2f} to {row['guess_error']:.2f} of it"
        for row in noisy
    ) + "."


def number(value: float) -> str:
    """Return a mean count for people: whole where it is large.

    Examples
    --------
    >>> number(0.0), number(16.6), number(2394.4)
    ('0', '16.6', '2,394')
    """
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"
