"""What a comparison says, in sentences: each way of publishing beside the first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unround.comparison.measure import LARGE

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
    found += [_beside(rows[0], row) for row in rows[1:]]
    found += [_clamping(row) for row in rows if row["negative"] > 0]
    found += list(_noise(rows))
    return found


def _wrong(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        if row["proved_wrong"]:
            yield f"{row['name']}: {row['proved_wrong']:g} proved counts were wrong. This is a fault in unround."


def _differ(one: dict[str, Any], other: dict[str, Any], name: str) -> bool:
    """Say whether two means differ by more than their standard errors explain; after one release, any does."""
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
    return f"{'falls' if share < 0 else 'rises'} by {abs(share):.0f}%"


def _beside(first: dict[str, Any], row: dict[str, Any]) -> str:
    """Return how one way of publishing compares with the first."""
    if not first["proved"]:
        proofs = "nothing can be proved under either" if not row["proved"] else f"{number(row['proved'])} counts are proved"
    elif not row["proved"]:
        proofs = f"nothing can be proved any more (before: {number(first['proved'])})"
    else:
        proofs = f"{number(row['proved'])} counts are proved instead of {number(first['proved'])}"
    truth = "truth_probability"
    return (
        f"{row['name']} compared with {first['name']}: {proofs}; the number of likely counts goes from "
        f"{number(first['likely'])} to {number(row['likely'])}, and the probability given to the true count "
        f"{_change(first, row, truth)} ({first[truth]:.3f} to {row[truth]:.3f}). The mean error "
        f"{_change(first, row, 'mean_error')} ({first['mean_error']:.2f} to {row['mean_error']:.2f}{_promise(first, row)}); "
        f"the root-mean-square error {_change(first, row, 'rmse')} ({first['rmse']:.2f} to {row['rmse']:.2f})."
    )


def _promise(first: dict[str, Any], row: dict[str, Any]) -> str:
    """Return the same of large counts: in closed form, and as measured."""
    if first["expected"] is None or row["expected"] is None:
        return ""
    before, after = first["expected"]["mean_error"], row["expected"]["mean_error"]
    if before == after:
        return ""
    large = f"mean_error_over_{LARGE}"
    share = 100 * (after / before - 1)
    return (
        f"; for large counts it {'falls' if share < 0 else 'rises'} by {abs(share):.0f}%, from {before:.3f} to {after:.3f} "
        f"in closed form, and from {first[large]:.2f} to {row[large]:.2f} among counts over {LARGE} here"
    )


def _clamping(row: dict[str, Any]) -> str:
    """Return what publishing negative counts as 0 does."""
    return (
        f"{row['name']}: {100 * row['negative']:.1f}% of counts are negative. If they are published as 0, the mean error is "
        f"{row['clamped_mean_error']:.2f} instead of {row['mean_error']:.2f}, but counts are biased by "
        f"{row['clamped_bias']:+.3f} on average, and true zeros by {row['clamped_bias_of_zeros']:+.2f}: totals added up "
        "from many empty parts come out too large."
    )


def _noise(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Say whether noise defeats inference, as the paper hopes."""
    noisy = [row for row in rows if row["left_out_of_account"] is not None]
    if not noisy:
        return
    helped = "; ".join(
        f"under {row['name']} they raise the probability given to the true count from "
        f"{row['truth_probability_alone']:.3f} to {row['truth_probability']:.3f}, and the best guess is off by "
        f"{row['guess_error']:.2f} on average, the published count by {row['mean_error']:.2f}"
        for row in noisy
    )
    yield (
        "Does noise defeat inference? Nothing can be proved any more, and solutions cannot be listed one by one. But sums "
        f"still reveal something: {helped}."
    )


def number(value: float) -> str:
    """Return a mean count for people: whole where it is large.

    Examples
    --------
    >>> number(0.0), number(16.6), number(2394.4)
    ('0', '16.6', '2,394')
    """
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"
