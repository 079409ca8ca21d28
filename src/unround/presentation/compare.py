"""Comparisons and calibrations as text in the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.comparison.calibration import Calibration
from unround.comparison.measure import LARGE
from unround.comparison.verdict import number, sentences


def show_comparison(told: dict[str, Any], console: Console) -> None:
    """Print a comparison: the table, and what to make of it."""
    releases = f"{told['seeds']} releases" if told["seeds"] > 1 else "one release"
    console.print(
        Text(
            f"{told['areas']:,} areas, {told['cells']:,} counts and {told['sums']:,} sums an area, from {told['source']}; "
            f"the means of {releases} each."
        )
    )
    table = Table(box=None, pad_edge=False, header_style="bold", title="\nHow far off", title_justify="left")
    columns = ("", "mean error", f"over {LARGE}", "promised", "RMSE", "within 4", "bias", "sums broken", "ε")
    for name in columns:
        table.add_column(name, justify="left" if not name else "right", no_wrap=True)
    for row in told["mechanisms"]:
        promised = row["expected"]
        table.add_row(
            row["name"],
            f"{row['mean_error']:.3f}",
            f"{row[f'mean_error_over_{LARGE}']:.3f}",
            "" if promised is None else f"{promised['mean_error']:.3f}",
            f"{row['rmse']:.3f}",
            f"{100 * row['within_4']:.1f} %",
            f"{row['bias']:+.3f}",
            f"{100 * row['sums_broken']:.1f} %",
            "none" if row["epsilon"] is None else f"{row['epsilon']:.1f}",
        )
    console.print(table)
    table = Table(box=None, pad_edge=False, header_style="bold", title="\nWhat it gives away", title_justify="left")
    for name in ("", "proved", "wrong", "likely", "right", "p(truth)", "±", "alone", "best guess", "1s and 2s"):
        table.add_column(name, justify="left" if not name else "right", no_wrap=True)
    for row in told["mechanisms"]:
        spread = row["standard_error"]["truth_probability"]
        table.add_row(
            row["name"],
            number(row["proved"]),
            number(row["proved_wrong"]),
            number(row["likely"]),
            f"{100 * row['likely_right'] / row['likely']:.0f} %" if row["likely"] else "",
            f"{row['truth_probability']:.3f}",
            "" if spread is None else f"{spread:.4f}",
            f"{row['truth_probability_alone']:.3f}",
            f"{100 * row['guessed']:.0f} %",
            number(row["small_disclosed"]),
        )
    console.print(table)
    console.print()
    for sentence in sentences(told):
        console.print(Text(f" • {sentence}"))
    for sentence in footnotes(told):
        console.print(Text(f" • {sentence}"), style="dim")


def footnotes(told: dict[str, Any]) -> list[str]:
    """Return how to read the numbers of a comparison, and what was left out of account."""
    found = [
        f"promised: the mean error of a large count, in closed form. p(truth): the probability that all sums, the mechanism "
        f"and a prior fitted to the release put on the true count, on average over {told['cells_to_infer']:,} counts; "
        "alone: without sums, from the published count and that prior. ±: one standard error over releases. 1s and 2s: "
        "true counts of one or two that are proved or likely, and rightly so.",
    ]
    rows = told["mechanisms"]
    found += [f"ε of {row['name']}, whole release: {row['epsilon_note']}." for row in rows if row["epsilon"] is not None]
    if any(row["epsilon"] is None for row in told["mechanisms"]):
        found.append(
            "ε is none where some tables can be told apart for certain, as with all rounding: then there is no bound on "
            "what a release may give away."
        )
    if any(row["left_out_of_account"] for row in told["mechanisms"]):
        cut = max(row["left_out_of_account"] or 0.0 for row in told["mechanisms"])
        found.append(
            f"Noise has no bounds: counts less than {cut:g} as likely as the likeliest, by what is published next to them, "
            "are left out of account."
        )
    found += [
        f"{row['name']}: in {number(row['not_exact'])} areas some sums had too many possible counts to be used, so that "
        "more could be inferred than is shown."
        for row in rows
        if row["not_exact"]
    ]
    return [*found, *told["notes"]]


def show_calibration(found: Calibration, console: Console) -> None:
    """Print how often claims are right, and which prior to trust when."""
    told = found.to_json()
    console.print(Text(f"{found.areas:,} areas published by {found.mechanism}, from {found.source}."))
    console.print()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", "counts", "flat off by", "log loss", "fitted off by", "log loss", "chance", "trust"):
        table.add_column(name, justify="right" if name not in ("", "trust") else "left", no_wrap=not name)
    for name, group in told["groups"].items():
        flat, fitted = group["flat"], group["fitted"]
        table.add_row(
            name,
            f"{fitted['cells']:,}",
            f"{100 * flat['calibration_error']:.1f}",
            f"{flat['log_loss']:.3f}",
            f"{100 * fitted['calibration_error']:.1f}",
            f"{fitted['log_loss']:.3f}",
            f"{100 * fitted['by_chance']:.1f}",
            group["trust"],
        )
    console.print(table)
    console.print("\n[bold]Of claims that state so much, so many are right[/]")
    _reliability(told["groups"]["all cells"], console)
    console.print()
    for sentence in calibration_sentences(told):
        console.print(Text(f" • {sentence}"))
    console.print(
        Text(
            " • off by: the expected calibration error, in points: how far what is stated lies from how often it is right. "
            "chance: what perfectly calibrated claims, as many as these, would show. log loss: the mean of −log p(truth), "
            "a proper score."
        ),
        style="dim",
    )
    for note in told["notes"]:
        console.print(Text(f" • {note}"), style="dim")


def _reliability(group: dict[str, Any], console: Console) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("stated", "flat: claims", "right", "fitted: claims", "right", ""):
        table.add_column(name, justify="right" if name else "left")
    by_bin = {prior: {row["from"]: row for row in group[prior]["bins"]} for prior in ("flat", "fitted")}
    for start in sorted({*by_bin["flat"], *by_bin["fitted"]}):
        cells = [f"{100 * start:.0f}–{100 * start + 5:.0f} %"]
        for prior in ("flat", "fitted"):
            row = by_bin[prior].get(start)
            cells += [f"{row['claims']:,}", f"{100 * row['right']:.1f} %"] if row else ["", ""]
        fitted = by_bin["fitted"].get(start)
        table.add_row(*cells, _ruler(fitted["stated"], fitted["right"]) if fitted else "")
    console.print(table)


def _ruler(stated: float, right: float, width: int = 40) -> str:
    """Draw a bar of how many are right, with a mark where it should end."""
    bar = ["█" if k < round(width * right) else " " for k in range(width + 1)]
    bar[round(width * stated)] = "│"
    return "".join(bar).rstrip()


def calibration_sentences(told: dict[str, Any]) -> list[str]:
    """Return which prior to trust when."""
    groups = told["groups"]
    whole = groups["all cells"]
    found = [
        f"The fitted prior is {100 * whole['fitted']['calibration_error']:.1f} points off overall, the flat one "
        f"{100 * whole['flat']['calibration_error']:.1f}."
    ]
    sparse = groups.get("totals of sparse sums")
    if sparse:
        found.append(
            f"On totals of sparse sums it is {100 * sparse['fitted']['calibration_error']:.1f} against "
            f"{100 * sparse['flat']['calibration_error']:.1f}: there, a flat prior makes totals too large."
        )
    by_choice: dict[str, list[str]] = {}
    for name, group in groups.items():
        by_choice.setdefault(group["trust"], []).append(name)
    if set(by_choice) <= {"fitted", "too few to say"}:
        found.append("Trust the fitted prior, for every kind of count that there are enough of to tell.")
    called = {"flat": "the flat one", "either": "either"}
    found += [f"Trust {called[one]} for: {', '.join(by_choice[one])}." for one in called if one in by_choice]
    return found
