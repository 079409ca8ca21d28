"""A table that adds up: how much was gained, what was left as it was, and where it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unround.reconciliation import Reconciled
from unround.show.parts import ALARM, LEAD, QUIET, QUOTE, Bullets, Files, Part, Section, Table, Text, titled
from unround.show.words import cut, few, notice, percent, several

FEW, LONGEST = 5, 240
"""Clashes that are written out, and how much of each; summary.json has the whole."""


@titled("One table that adds up")
def reconciled(made: Reconciled) -> Iterator[Part]:
    """Say how much was gained."""
    summary = made.summary
    yield Text(lead(summary), LEAD)
    if summary["mean_error"] is not None:
        yield Text(sentence(summary), QUOTE)
        yield Text(_share(summary))
    rows = [[name, f"{many:,}"] for name, many in summary["methods"].items() if many]
    yield Section("How each count was made", [Table(("method", "counts"), rows, "Methods")])
    yield from _left(summary)
    yield Text(f"{summary['notice']}\n{notice(summary['product'])}".strip(), QUIET)
    files = [(name, "the table in its own layout, with counts that add up") for name in summary["files"]]
    files += [
        ("reconciled.parquet", "every count: published, reconciled, mean, standard error, bounds"),
        ("summary.json", "the above"),
    ]
    yield Files(f"{made.folder}/", files)


def lead(summary: dict[str, Any]) -> str:
    """Say what was wrong, and whether it is right now."""
    sums, before, after = summary["sums"], summary["sums_off_before"], summary["sums_off_after"]
    if not before:
        return f"This table adds up already, in all of its {several(sums, 'sum')}: it is returned as it is."
    off = f"{before:,} of {several(sums, 'sum')} ({percent(before / sums)}) did not add up"
    if not after:
        return f"{off}; now all do. {summary['changed']:,} of {summary['counts']:,} counts were changed."
    return f"{off}; {after:,} still do not, because no true counts fit or none were found: see below."


def sentence(summary: dict[str, Any]) -> str:
    """Say by how much errors went down, in words to cite."""
    estimated = "by the model's own estimate; not measured, for no census of this layout was simulated"
    how = "measured against the true counts" if summary["mean_error_from"] == "truth" else estimated
    return f"Mean error {summary['mean_error_published']:.2f} → {summary['mean_error']:.2f} persons per count, {how}."


def _share(summary: dict[str, Any]) -> str:
    before, after = summary["mean_error_published"], summary["mean_error"]
    if after < before:
        less = f"{percent(1 - after / before)} less"
    else:
        less = "no less, because the result was rounded again" if summary["round"] else "no less"
    return (
        f"That is {less}, over the {summary['mean_error_of']:,} counts that stand in a sum and were not published exactly."
    )


def _left(summary: dict[str, Any]) -> Iterator[Part]:
    """Name what was not made to add up."""
    if summary["clashes_in_all"]:
        named = [(clash["area"], cut(clash["text"], LONGEST)) for clash in summary["clashes"][:FEW]]
        more = summary["clashes_in_all"] - len(named)
        rest = [Text(f"{more:,} more are in reconciled.parquet, marked as clashes.")] if more else []
        title = f"No true counts fit in {several(summary['clashes_in_all'], 'place')}: these counts are left as published"
        yield Section(title, [Bullets(named, ALARM), *rest])
    for areas, what in (
        (summary["areas_left"], "No whole numbers that add up were found in {}; counts there are as published"),
        (summary["families_apart"], "The areas within {} were made to add up each by itself, not to their sum"),
    ):
        if areas:
            yield Text(f"{what.format(few(areas, FEW))}.", ALARM)
