"""What `unround audit` prints."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.audits import AuditFolder
from unround.audits.ranking import SMALL_FIRST
from unround.show import selfcheck
from unround.show.calibrate import claims_parts
from unround.show.check import fit_in_words
from unround.show.footing import DOUBT, FINE, UNKNOWN, decision_of, footing
from unround.show.keys import by_part, rows, sentences
from unround.show.nesting import TITLE, section
from unround.show.parts import Document
from unround.show.terminal import show
from unround.show.terminal.layout import plain_table
from unround.show.words import (
    CLAIMS,
    conditions,
    figures_used,
    headline,
    inconsistencies,
    not_listed,
    notice,
    percent,
    settling,
    several,
    share,
    size_named,
    tables_in_words,
    verdict,
    why_several,
)

TONES = {FINE: "", DOUBT: "bold yellow", UNKNOWN: "bold"}
"""How the state of what claims rest on is printed."""

EXAMPLES = 8
"""Kinds of sums that are listed."""


def show_audit(folder: AuditFolder, console: Console) -> None:
    """Print the verdict on a release, and where to look next."""
    summary = folder.summary
    console.print(Text(headline(summary), style="bold"))
    console.print(Text(f"\n{' '.join(verdict(summary))}"))
    console.print(_footing(summary, decision_of(folder)))
    if any(summary[name] for name in CLAIMS):
        console.print()
        table = plain_table("inferred count", *CLAIMS)
        by_value = summary["sensitive_claims"]["by_value"]
        for size in SMALL_FIRST:
            table.add_row(size_named(size), *(f"{by_value[size][name]:,}" for name in CLAIMS))
        table.add_row("all", *(f"{summary[name]:,}" for name in CLAIMS), style="bold")
        console.print(table)
    for sentence in settling(summary):
        console.print(Text(f"\n{sentence}"), style="yellow")
    for sentence in conditions(summary):
        console.print(Text(f"\n{sentence}"))
    for sentence in not_listed(summary):
        console.print(Text(f"\n{sentence}"))
    _show_chance(summary, console)
    if "check" in summary:  # audits of earlier versions have none
        console.print(Text(f"\n{fit_in_words(summary['check'])}"))
    for sentence in tables_in_words(summary):
        console.print(Text(f"\n{sentence}"))
    _show_keys(summary, console)
    for sentence in figures_used(summary):
        console.print(Text(f"\n{sentence}"))
    _show_nesting(summary, console)
    if summary["contradictions"]:
        console.print(Text(f"\n{inconsistencies(summary)}"))
    for sentence in _not_used(summary):
        console.print(Text(f"\n{sentence}"), style="yellow")
    if "truth" in summary:
        _show_truth(summary["truth"], console)
    _show_prior(summary, console)
    if folder.run.get("started_anew"):
        console.print(Text(f"Note: {folder.run['started_anew']}, so that everything was done again."), style="dim")
    for note in summary["notes"]:
        console.print(Text(f"Note: {note}"), style="dim")
    console.print(Text(f"\n{notice(summary['product'])}"), style="dim")
    _show_files(folder, console)


def _footing(summary: Mapping[str, Any], decision: str | None) -> Text:
    """Say in a line what the claims rest on."""
    line = Text("\nWhat this rests on: ")
    for at, one in enumerate(footing(summary, decision)):
        line.append(f"{'; ' if at else ''}{one.what.lower()} ").append(one.state, style=TONES[one.tone])
    return line.append(".")


def _show_prior(summary: Mapping[str, Any], console: Console) -> None:
    """Print what the prior is, and how it did when it was to predict published counts."""
    console.print(Text(f"\nPrior, {summary['prior_in_words']}."), style="dim")
    why = why_several(summary["priors"]["variants"])
    if why:
        console.print(Text(why), style="dim")
    checked = selfcheck.in_short(summary)
    if checked:
        console.print(Text(f"{checked} {selfcheck.NO_TRUTH}"), style="dim")
    for sentence in selfcheck.withheld(summary):
        console.print(Text(sentence), style="yellow")


def _not_used(summary: Mapping[str, Any]) -> list[str]:
    """Say which sums told nothing, and where there were too many possibilities to use them."""
    found = []
    added, unweighed = summary["structure"]["sums_added_up_afterwards"], summary["areas_not_weighed"]
    if added:
        found.append(
            f"{several(added, 'sum adds', 'sums add')} up exactly in all areas: totals were added up after rounding, or all "
            "counts were rounded together. Such totals add no information to their parts, and their sums are not used."
        )
    singly = summary["cells_judged_singly"]
    if singly and not unweighed:
        found.append(
            f"{several(singly, 'count is', 'counts are')} cut off from a sum, mostly by counts that are hidden. What sums "
            "make likely there was not worked out: that is no sign of safety."
        )
    apart = summary["areas_where_chains_disagree"]
    if apart:
        found.append(
            f"In {several(apart, 'area')} the Markov chains for tables by several axes do not agree. What sums make likely "
            "there is not known: that is no sign of safety."
        )
    if unweighed:
        found.append(
            f"In {unweighed:,} of {summary['areas']:,} areas the noise leaves too many counts possible to use all sums at "
            "once. What sums make likely there was not worked out: that is no sign of safety."
        )
    return found


def _show_chance(summary: Mapping[str, Any], console: Console) -> None:
    """Print what single sums give away, where anything was found or was to be expected."""
    families = [one for one in summary["chance"] if max(one["proved"], one["strong"], one["proved_expected"]) >= 0.05]
    families += [one for one in summary["chance"] if one not in families and one["strong_expected"] >= 0.05]
    if not families:
        return
    console.print("\n[bold]What single sums reveal, compared with chance[/]")
    table = plain_table("kind of sum", "sums", "proved", "by chance", "likely", "by chance")
    for one in sorted(families, key=lambda one: -one["groups"])[:EXAMPLES]:
        numbers = (one["proved"], one["proved_expected"], one["strong"], one["strong_expected"])
        shown = [f"{number:,.1f}" if isinstance(number, float) else f"{number:,}" for number in numbers]
        table.add_row(one["family"], f"{one['groups']:,}", *shown)
    console.print(table)
    console.print(
        "Each sum on its own, if all its counts are well above 0; the audit itself combines sums. proved: the sum has only "
        f"one solution. likely: one of its counts is at least {share(summary['threshold'])} likely under a flat prior.",
        style="dim",
    )


def _show_keys(summary: Mapping[str, Any], console: Console) -> None:
    """Print what was found about keys."""
    for at, sentence in enumerate(sentences(summary)):
        console.print(Text(f"\n{sentence}" if not at else sentence))
    listed = rows(summary)
    if listed:
        table = plain_table("table", "constant", "by", left=["constant", "by"])
        for row in listed:
            table.add_row(Text(row["table"]), row["constant"], Text(row["why"]))
        console.print(table)


def _show_nesting(summary: Mapping[str, Any], console: Console) -> None:
    """Print how areas within areas were linked, and what came of it."""
    shown = section(summary)
    if shown is None:
        return
    console.print(f"\n[bold]{TITLE}[/]")
    for sentence in shown["sentences"]:
        console.print(Text(sentence))
    console.print()
    table = plain_table("areas in areas", "families", "linked", "columns", "left out")
    for row in shown["levels"]:
        table.add_row(Text(row["name"]), *(row[name] for name in ("families", "linked", "columns", "rejected")))
    console.print(table)
    for row in shown["levels"]:
        if row["why"]:
            console.print(Text(f"left out, {row['name']}: {row['why']}"), style="dim")
    console.print()
    table = plain_table("probabilities", "areas", "likely", "mean error", "largest error")
    for row in shown["methods"]:
        table.add_row(*(row[name] for name in ("name", "areas", "likely", "mean", "worst")))
    console.print(table)
    for row in shown["methods"]:
        console.print(Text(f"{row['name']}: {row['sentence']}"), style="dim")
    console.print(
        "error: the distance from the exact distribution (total variation), measured where the exact one is known; the "
        "mean over counts, and the largest.",
        style="dim",
    )


def _show_truth(score: dict[str, Any], console: Console) -> None:
    console.print(f"\n[bold]Compared with the truth[/] ({score['areas']:,} areas, {score['columns']:,} columns)")
    for name in CLAIMS:
        checked, wrong = score["checked"][name], score["wrong"][name]
        if checked:
            style = "bold red" if wrong and name == "proved" else ""
            share = f"{wrong:,} wrong ({percent(wrong / checked)})" if wrong else "none wrong"
            console.print(Text(f"  {name}: {checked:,} checked, {share}", style=style))
    if score["assumption_failed"]:
        console.print(Text(f"  An assumption failed: {score['assumption_failed']}.", style="bold red"))
    table = plain_table("claimed", "what", "claims", "stated", "right", left=["what"])
    for what, bands in score["calibration"].items():
        for band in bands:
            if band["claims"] and what != "findings":  # these follow, by the count claimed
                between = f"{band['from']:.0%}–{band['to']:.0%}"
                table.add_row(between, what, f"{band['claims']:,}", percent(band["stated"]), percent(band["right"]))
    console.print(table)
    if score["claims_by_value"]:
        console.print("[bold]Likely claims, by the count claimed[/]")
        show(Document("", claims_parts(score["claims_by_value"])), console)
    _show_parts(score, console)


def _show_parts(score: Mapping[str, Any], console: Console) -> None:
    """Print how often likeliest counts were right, for totals and parts each."""
    found = by_part(score)
    if not found:
        return
    table = plain_table("likeliest counts of", "counts", "stated", "right", "off", "likely ones off")
    for row in found:
        table.add_row(*(row[name] for name in ("part", "cells", "stated", "right", "off", "likely")))
    console.print(table)


def _show_files(folder: AuditFolder, console: Console) -> None:
    """Say where to look next."""
    what = {
        "report.html": "the result as a page; open it in a browser",
        "report-public.html": "the same without any area or inferred value, to share",
        "findings.csv": "every claim, those that matter most first (also as findings.parquet)",
        "contradictions.csv": "inconsistent published figures, with the smallest clash",
        "suspects.csv": "areas whose counts are possible, but add up absurdly badly",
        "proofs.jsonl": "a certificate for every proved count",
        "estimates.parquet": "an estimate of every count, with error bars",
        "summary.json": "the numbers above, and more",
    }
    found = any(folder.summary[name] for name in CLAIMS)
    useful = {"contradictions.csv": folder.summary["contradictions"], "suspects.csv": folder.summary["suspect"]["areas"]}
    useful |= {"proofs.jsonl": found, "findings.csv": found}
    console.print(f"\nWritten to {folder.path}/. Look next at:")
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, text in what.items():
        if (folder.path / name).exists() and useful.get(name, True):
            table.add_row(f"  {name}", Text(text, style="dim"))
    console.print(table)
    # In one piece, however long: they are there to be copied.
    example = _an_example(folder)
    if example is not None:
        console.print(Text(f"  unround explain {example}"), soft_wrap=True)
    console.print(Text(f"  {shlex.join(['unround', 'serve', str(folder.path), '--open'])}"), soft_wrap=True)


def _an_example(folder: AuditFolder) -> str | None:
    """Return the arguments of `explain` for the claim that matters most."""
    axes = folder.told["axes"]
    rows = folder.first_findings(1).to_dicts()
    if not rows or len(folder.told["areas"]) > 1:
        return None
    row = rows[0]
    area = row[folder.told["areas"][0]]
    if axes == ["characteristic_id", "sex"]:
        sex = [] if row["sex"] == "total" else ["--sex", row["sex"]]
        return shlex.join([str(folder.path), str(area), str(row["characteristic_id"]), *sex])
    codes = tuple(row[axis] for axis in axes)
    key = next(column.key for column in folder.model.columns if column.codes == codes)
    return shlex.join([str(folder.path), str(area), key])
