"""The verdict of an audit as text in the terminal."""

from __future__ import annotations

import shlex
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.audits import AuditFolder
from unround.audits.summary import CLAIMS
from unround.presentation.check import sentence as fit_in_words
from unround.presentation.dependence import show_dependence, show_parts
from unround.presentation.nesting import show_nesting
from unround.presentation.terminal import counted, percent
from unround.readers import SIMULATED

EXAMPLES = 8
"""Kinds of sums that are listed."""

OFFICIAL = "Values are inferred from published tables; they are not official counts."
NOTICE = (
    "Adapted from {product}. This does not constitute an endorsement by Statistics Canada of this product. "
    f"{OFFICIAL} Tell the agency before you publish what you find."
)


def notice(product: str | None) -> str:
    """Return what must stand under every result: whose data they are, and what the values are not."""
    if product and "Statistics Canada" in product:
        return NOTICE.format(product=product)
    if product == SIMULATED:
        return f"Source: {product}. No value stands for a real place."
    if product:
        return f"Source: {product}. {OFFICIAL} Tell the agency before you publish what you find."
    return f"{OFFICIAL} If this is a real release, tell the agency before you publish anything about it."


def show_audit(folder: AuditFolder, console: Console) -> None:
    """Print the verdict on a release, and where to look next."""
    told = folder.summary
    console.print(Text(verdict(told), style="bold"))
    console.print()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("true count", *CLAIMS):
        table.add_column(heading, justify="left" if heading == "true count" else "right")
    for size, numbers in told["what_would_hurt"]["by_value"].items():
        table.add_row(size.replace("-", "–"), *(f"{numbers[name]:,}" for name in CLAIMS))
    table.add_row("all", *(f"{told[name]:,}" for name in CLAIMS), style="bold")
    if any(told[name] for name in CLAIMS):
        console.print(table)
        console.print()
    if told["likely_without_sums"]:
        number = counted(told["likely_without_sums"], "more count is", "more counts are")
        console.print(f"{number} likely from the published value alone, without any sum: not listed.\n")
    _show_chance(told, console)
    if "check" in told:  # audits of earlier versions have none
        console.print(Text(f"\nDoes it fit the declared mechanism? {fit_in_words(told['check'])}"))
    show_dependence(told, console)
    show_nesting(told, console)
    if told["contradictions"]:
        console.print(f"\n{contradictions_in_words(told)}")
    for said in _not_used(told):
        console.print(Text(f"\n{said}"), style="yellow")
    if "truth" in told:
        _show_truth(told["truth"], console)
    console.print(f"\nPrior, {told['prior_in_words']}.", style="dim")
    for note in told["notes"]:
        console.print(Text(f"Note: {note}"), style="dim")
    console.print(Text(f"\n{notice(told['product'])}"), style="dim")
    console.print(f"\nWritten into {folder.path}/. Look next at:")
    look = Table.grid(padding=(0, 2, 0, 0))
    for name, what in _where_to_look(folder):
        look.add_row(f"  {name}", Text(what, style="dim"))
    console.print(look)
    # In one piece, however long: they are there to be copied.
    example = _an_example(folder)
    if example is not None:
        console.print(Text(f"  unround explain {example}"), soft_wrap=True)
    console.print(Text(f"  {shlex.join(['unround', 'serve', str(folder.path), '--open'])}"), soft_wrap=True)


def verdict(told: dict[str, Any]) -> str:
    """Say in a few sentences what an audit found."""
    areas, counts, sums = told["areas"], told["cells_published"], told["structure"]["sums_kept"]
    where = f"In {counted(areas, 'area', 'areas')} with {counted(counts, 'published count', 'published counts')}"
    proved, conditional, likely = (told[name] for name in CLAIMS)
    if not proved + conditional + likely:
        if told["areas_not_weighed"]:
            return f"{where}, nothing is proved; what is likely could not be worked out everywhere (see below)."
        return f"{where}, {counted(sums, 'sum gives', 'sums give')} nothing away: no count is proved, and none is likely."
    by_value = told["what_would_hurt"]["by_value"]
    said = [
        f"{counted(proved, 'count is', 'counts are')} proved{_zeros(by_value, 'proved')}" if proved else "no count is proved"
    ]
    if conditional:
        more = "more would be" if proved else "would be"
        said.append(f"{conditional:,} {more} if something holds that nobody promises{_zeros(by_value, 'conditional')}")
    probably = f"{likely:,} {'is' if likely == 1 else 'are'} likely, each at least {told['threshold']:.0%}"
    said.append(f"{probably}{_zeros(by_value, 'likely')}" if likely else "none is likely")
    small = by_value["1-2"]
    listed = [f"{small[name]:,} {name}" for name in CLAIMS if small[name]]
    ones = f" Counts of one or two: {', '.join(listed)}." if listed else ""
    return f"{where} and {counted(sums, 'sum', 'sums')}: {'; '.join(said)}.{ones}"


def _zeros(by_value: dict[str, dict[str, int]], kind: str) -> str:
    number = by_value["0"][kind]
    return f" ({number:,} {'zero' if number == 1 else 'zeros'})" if number else ""


def contradictions_in_words(told: dict[str, Any]) -> str:
    """Say in one sentence how many contradictions there are, and of which kinds."""
    kinds = told["contradictions_by_kind"]
    words = {
        "sum": ("sum that cannot hold", "sums that cannot hold"),
        "cell": ("count that cannot come from its mechanism", "counts that cannot come from their mechanism"),
        "assumption": ("area whose population was adjusted", "areas whose population was adjusted"),
        "unresolved": ("area without any solution", "areas without any solution"),
        "areas": ("area that cannot be the sum of those in it", "areas that cannot be the sum of those in them"),
    }
    said = ", ".join(counted(number, *words[kind]) for kind, number in kinds.items())
    return f"{counted(told['contradictions'], 'contradiction', 'contradictions')} ({said}); everything else was audited."


def _not_used(told: dict[str, Any]) -> list[str]:
    """Say which sums told nothing, and where they were too much to weigh."""
    said = []
    added, unweighed = told["structure"]["sums_added_up_afterwards"], told["areas_not_weighed"]
    if added:
        sums = "1 sum adds" if added == 1 else f"{added:,} sums add"
        said.append(
            f"{sums} up exactly in all areas: totals were added up after rounding, or all counts rounded together. Such "
            "totals tell nothing that their parts do not, and their sums are not used."
        )
    singly = told["cells_judged_singly"]
    if singly and not unweighed:
        said.append(
            f"{counted(singly, 'count is', 'counts are')} cut off from a sum, mostly by counts that are hidden: what sums "
            "make likely of these was not worked out. That is no sign of safety."
        )
    if unweighed:
        said.append(
            f"In {unweighed:,} of {told['areas']:,} areas the noise leaves too many counts possible to weigh all sums at "
            "once: there, what sums make likely was not worked out. That is no sign of safety."
        )
    return said


def _show_chance(told: dict[str, Any], console: Console) -> None:
    """Print what single sums give away, where anything was found or to be expected."""
    families = [one for one in told["chance"] if max(one["proved"], one["strong"], one["proved_expected"]) >= 0.05]
    families += [one for one in told["chance"] if one not in families and one["strong_expected"] >= 0.05]
    if not families:
        return
    console.print("[bold]What single sums give away, next to what chance predicts[/]")
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("kind of sum", "in all areas", "proved", "by chance", "strong", "by chance"):
        table.add_column(heading, justify="left" if heading == "kind of sum" else "right")
    for one in sorted(families, key=lambda one: -one["groups"])[:EXAMPLES]:
        numbers = (one["proved"], one["proved_expected"], one["strong"], one["strong_expected"])
        shown = [f"{number:,.1f}" if isinstance(number, float) else f"{number:,}" for number in numbers]
        table.add_row(one["family"], f"{one['groups']:,}", *shown)
    console.print(table)
    console.print(
        "Sums whose counts are all well above 0, each looked at by itself; an audit joins them. proved: one solution, "
        f"for all its counts. strong: some count is at least {told['threshold']:.0%} likely under a flat prior.",
        style="dim",
    )


def _show_truth(score: dict[str, Any], console: Console) -> None:
    console.print(f"\n[bold]Against the truth[/] (of {score['areas']:,} areas and {score['columns']:,} columns)")
    for name in CLAIMS:
        checked, wrong = score["checked"][name], score["wrong"][name]
        if checked:
            style = "bold red" if wrong and name == "proved" else ""
            share = f"{wrong:,} wrong ({percent(wrong / checked)})" if wrong else "none wrong"
            console.print(Text(f"  {name}: {checked:,} checked, {share}", style=style))
    if score["assumption_failed"]:
        console.print(Text(f"  An assumption failed: {score['assumption_failed']}.", style="bold red"))
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("claimed", "what", "claims", "stated", "right"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for what, bands in score["calibration"].items():
        for band in bands:
            if band["claims"]:
                between = f"{band['from']:.0%}–{band['to']:.0%}"
                table.add_row(between, what, f"{band['claims']:,}", percent(band["stated"]), percent(band["right"]))
    console.print(table)
    show_parts(score, console)


def _where_to_look(folder: AuditFolder) -> list[tuple[str, str]]:
    what = {
        "report.html": "the result as a page; open it in a browser",
        "report-public.html": "the same without any area or inferred value, to share",
        "findings.csv": "every claim: its range, probability, route (findings.parquet: the same)",
        "contradictions.csv": "what cannot be, with the smallest clash",
        "proofs.jsonl": "a certificate for every proved count",
        "estimates.parquet": "an estimate of every count, with error bars",
        "summary.json": "the numbers above, and more",
    }
    found = any(folder.summary[name] for name in CLAIMS)
    there = {"contradictions.csv": folder.summary["contradictions"], "proofs.jsonl": found, "findings.csv": found}
    return [(name, text) for name, text in what.items() if (folder.path / name).exists() and there.get(name, True)]


def _an_example(folder: AuditFolder) -> str | None:
    """Return the arguments of `explain` for the first claim, the proved ones before the others."""
    import polars as pl

    axes = folder.told["axes"]
    found = pl.scan_parquet(folder.path / "findings.parquet")
    order = pl.col("kind").replace_strict({"proved": 0, "conditional": 1, "likely": 2}, return_dtype=pl.Int8)
    rows = found.with_columns(order.alias("order")).sort("order", maintain_order=True).head(1).collect().to_dicts()
    if not rows or len(folder.told["areas"]) > 1:
        return None
    row = rows[0]
    area = row[folder.told["areas"][0]]
    if axes == ["characteristic_id", "sex"]:
        sex = "" if row["sex"] == "total" else f" --sex {row['sex']}"
        return f"{folder.path} {area} {row['characteristic_id']}{sex}"
    codes = tuple(row[axis] for axis in axes)
    key = next(column.key for column in folder.model.columns if column.codes == codes)
    return shlex.join([str(folder.path), str(area), key])
