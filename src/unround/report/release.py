"""Inspections, audits and explanations as text in the terminal."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.audit import AuditFolder
from unround.audit.summary import CLAIMS
from unround.explain import Explanation, SumShown
from unround.inspection import Inspection
from unround.report.terminal import COLOURS, percent
from unround.structure import Checked, Evidence

EXAMPLES = 8
"""Sums, repeats or contradictions that are listed unless all are asked for."""

BAR = 40
"""The longest bar of a histogram."""

NOTICE = (
    "Adapted from {product}. This does not constitute an endorsement by Statistics Canada of this product. Values are "
    "inferred from published tables; they are not official counts. Tell the agency before you publish what you find."
)
PLAIN_NOTICE = (
    "Values are inferred from published tables; they are not official counts. If this is a real release, tell the agency "
    "before you publish anything about it."
)


def notice(product: str | None) -> str:
    """Return what must stand under every result: whose data they are, and what the values are not."""
    if product and "Statistics Canada" in product:
        return NOTICE.format(product=product)
    return f"Source: {product}. {PLAIN_NOTICE}" if product else PLAIN_NOTICE


# -- inspect ----------------------------------------------------------------------------------------------------------


def show_inspection(seen: Inspection, console: Console, everything: bool = False) -> None:
    """Print what is in a release."""
    release, structure = seen.release, seen.structure
    most = 10**9 if everything else EXAMPLES
    told = Table.grid(padding=(0, 2, 0, 0))
    told.add_row("[bold]file[/]", Text(f"{release.source} ({release.layout})"))
    levels = ", ".join(f"{number:,} {level}" for level, number in list(seen.levels.items())[:6])
    told.add_row("[bold]areas[/]", Text(f"{seen.areas:,}{f' ({levels})' if levels else ''}"))
    told.add_row("[bold]columns[/]", Text(f"{len(release.columns):,} of counts{_left_out(seen)}"))
    absent = ", ".join(f"{number:,} {why}" for why, number in seen.cells.items() if why != "published")
    told.add_row("[bold]counts[/]", Text(f"{seen.cells.get('published', 0):,} published{f'; {absent}' if absent else ''}"))
    console.print(told)
    console.print("\n[bold]How counts were published[/]")
    _mechanisms(seen, console, most)
    kept = Counter(one.origin for one in structure.sums)
    origins = ", ".join(f"{number:,} from {origin}" for origin, number in kept.most_common())
    console.print(f"\n[bold]Sums that hold: {len(structure.sums):,}[/]{f' ({origins})' if origins else ''}")
    _sums(seen, structure.sums, console, most)
    if structure.rejected:
        console.print(f"\n[bold]Rejected: {len(structure.rejected):,}[/]")
        _sums(seen, structure.rejected, console, most)
    if structure.repeats:
        anew = sum(not one.alike for one in structure.repeats)
        console.print(
            f"\n[bold]Counts that appear more than once: {len(structure.repeats):,}[/] "
            f"({anew:,} rounded anew, {len(structure.repeats) - anew:,} alike)"
        )
        for repeat in structure.repeats[:most]:
            names = " = ".join(release.columns[c].key for c in repeat.columns[:5])
            more = f" … ({len(repeat.columns)} columns)" if len(repeat.columns) > 5 else ""
            console.print(Text(f"  {names}{more}: {repeat.why}"))
        _more(console, len(structure.repeats), most)
    for one in structure.geography:
        console.print(Text("\nAreas within areas: ", style="bold").append(one.why, style="not bold"))
    _contradictions(seen.contradictions, console, most)
    for note in (*release.notes, *structure.notes):
        console.print(Text(f"Note: {note}"), style="dim")


def _left_out(seen: Inspection) -> str:
    left = ", ".join(f"{len(labels):,} {why}" for why, labels in seen.release.left_out.items() if labels)
    return f"; not counts: {left}" if left else ""


def _mechanisms(seen: Inspection, console: Console, most: int) -> None:
    """Print how the columns were published: a line a mechanism, or a line a table if all are asked for."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("columns", "mechanism", "why"):
        table.add_column(heading, justify="right" if heading == "columns" else "left")
    groups: dict[str, list[Evidence]] = {}
    for one in seen.structure.how:
        groups.setdefault(one.mechanism.name if one.mechanism else "not known: not audited", []).append(one)
    for name, found in sorted(groups.items(), key=lambda item: -sum(len(one.columns) for one in item[1])):
        found.sort(key=lambda one: -len(one.columns))
        shown = found if len(found) <= 3 or most > EXAMPLES else found[:1]
        for one in shown:
            table.add_row(f"{len(one.columns):,}", name, Text(f"{one.why}{f' ({one.block})' if one.block else ''}"))
        left = found[len(shown) :]
        if left:
            table.add_row(f"{sum(len(one.columns) for one in left):,}", name, f"likewise, in {len(left):,} more tables")
    console.print(table)


def _sums(seen: Inspection, sums: tuple[Checked, ...], console: Console, most: int) -> None:
    for one in sums[:most]:
        console.print(Text(f"  {seen.sum_in_words(one)}").append(f"  {one.why}", style="dim"))
    _more(console, len(sums), most)


def _contradictions(rows: list[dict[str, Any]], console: Console, most: int) -> None:
    if not rows:
        console.print("\nNo area contradicts itself.")
        return
    console.print(f"\n[bold]Contradictions: {len(rows):,}[/]")
    for row in rows[:most]:
        console.print(Text(f"  {next(iter(row.values()))}: {row['clash']}"))
    _more(console, len(rows), most)


def _more(console: Console, number: int, most: int) -> None:
    if number > most:
        console.print(f"  … and {number - most:,} more; --all lists them.", style="dim")


# -- audit ------------------------------------------------------------------------------------------------------------


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
    console.print(table)
    _show_chance(told, console)
    if told["contradictions"]:
        console.print(f"\n{contradictions_in_words(told)}")
    if "truth" in told:
        _show_truth(told["truth"], console)
    console.print(f"\nPrior: {told['prior_in_words']}", style="dim")
    for note in told["notes"]:
        console.print(Text(f"Note: {note}"), style="dim")
    console.print(Text(f"\n{notice(told['product'])}"), style="dim")
    console.print(f"\nWritten into {folder.path}/. Look next at:")
    for name, what in _where_to_look(folder):
        console.print(Text(f"  {name}").append(f"  {what}", style="dim"))


def verdict(told: dict[str, Any]) -> str:
    """Say in a sentence or two what an audit found."""
    where = (
        f"{told['areas']:,} areas ({told['cells_published']:,} published counts, {told['structure']['sums_kept']:,} sums)"
    )
    if not any(told[name] for name in CLAIMS):
        return f"In {where}, no count is given away by the sums: nothing is proved, and nothing is likely."
    hurt = told["what_would_hurt"]["by_value"]["1-2"]
    small = sum(hurt.values())
    said = f"In {where}, the sums prove {told['proved']:,} counts"
    if told["conditional"]:
        said += f", {told['conditional']:,} more if populations are exact,"
    said += f" and make {told['likely']:,} likely (at least {percent(told['threshold'])})."
    return f"{said} {small:,} of these are counts of one or two." if small else said


def contradictions_in_words(told: dict[str, Any]) -> str:
    """Say in one sentence how many contradictions there are, and of which kinds."""
    kinds = told["contradictions_by_kind"]
    words = {
        "sum": "sums that cannot hold",
        "cell": "counts that cannot come from their mechanism",
        "assumption": "areas whose population was adjusted",
        "unresolved": "areas without any solution",
    }
    said = ", ".join(f"{number:,} {words[kind]}" for kind, number in kinds.items())
    return f"{told['contradictions']:,} contradictions ({said}); everything else was audited."


def _show_chance(told: dict[str, Any], console: Console) -> None:
    families = [one for one in told["chance"] if one["groups"]]
    if not families:
        return
    console.print("\n[bold]One sum at a time, next to what chance predicts[/]")
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("kind of sum", "sums", "proved", "predicted", "strong", "predicted"):
        table.add_column(heading, justify="left" if heading == "kind of sum" else "right")
    for one in sorted(families, key=lambda one: -one["groups"])[:EXAMPLES]:
        numbers = (one["proved"], one["proved_expected"], one["strong"], one["strong_expected"])
        shown = [f"{number:,.1f}" if isinstance(number, float) else f"{number:,}" for number in numbers]
        table.add_row(one["family"], f"{one['groups']:,}", *shown)
    console.print(table)


def _show_truth(score: dict[str, Any], console: Console) -> None:
    console.print("\n[bold]Against the truth[/]")
    for name in CLAIMS:
        checked, wrong = score["checked"][name], score["wrong"][name]
        if checked:
            style = "bold red" if wrong and name == "proved" else ""
            console.print(Text(f"  {name}: {checked:,} checked, {wrong:,} wrong ({percent(wrong / checked)})", style=style))
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


def _where_to_look(folder: AuditFolder) -> list[tuple[str, str]]:
    what = {
        "findings.csv": "every claim: its range, probability, route (findings.parquet: the same)",
        "contradictions.csv": "what cannot be, with the smallest clash",
        "proofs.jsonl": "a certificate for every proved count",
        "estimates.parquet": "an estimate of every count, with error bars",
        "summary.json": "the numbers above, and more",
    }
    listed = [(name, text) for name, text in what.items() if (folder.path / name).exists()]
    example = _an_example(folder)
    look = (shlex.join(["unround", "serve", str(folder.path), "--open"]), "look around in a browser")
    return [*listed, (f"unround explain {example}", "the argument for one count"), look] if example else [*listed, look]


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


# -- explain ----------------------------------------------------------------------------------------------------------


def show_explanation(one: Explanation, console: Console) -> None:
    """Print the argument for one cell."""
    where = " ".join(str(part) for part in dict.fromkeys(one.area.values()))
    codes = [str(code) for axis, code in one.cell.items() if axis not in ("label", "block")]
    console.print(Text(f"{where} · {one.cell['label']} ({', '.join(codes)})", style="bold"))
    if one.cell["block"]:
        console.print(Text(f"in {one.cell['block']}"), style="dim")
    published = f"{one.published:,}" if one.published is not None else f"nothing ({one.why_absent})"
    console.print(Text(f"\nPublished: {published}. {one.mechanism}"))
    console.print(Text(conclusion(one), style=COLOURS.get(one.kind, "")))
    if one.sums:
        console.print("\n[bold]The sums it stands in[/]")
        for shown in one.sums:
            console.print(Text(f"  {shown.sum}: {arithmetic(shown)}{'' if shown.used else ' (not used here)'}"))
    if one.proof:
        console.print("\n[bold]The argument[/]")
        console.print(Text(f"  {one.proof['text']}"))
    elif one.growth and one.value is not None and one.probability is not None:
        _growth(one, console)
    if one.distribution and one.low != one.high:
        console.print("\n[bold]How likely each count is[/]")
        _histogram(one.distribution, console)
    for text in one.contradictions:
        console.print(Text(f"\nThis area contradicts itself: {text}"), style="red")
    console.print("\n[bold]Assumed:[/]")
    for sentence in one.assumptions:
        console.print(Text(f" • {sentence}"), style="dim")


def _growth(one: Explanation, console: Console) -> None:
    """Print how the probability of the likeliest count grows with every sum that is used."""
    console.print(f"\n[bold]How sure {one.value:,} becomes[/]")
    for said, probability in growth_in_words(one):
        console.print(f"  {percent(probability):>8}  {said}")


def growth_in_words(one: Explanation) -> list[tuple[str, float]]:
    """Say what makes the likeliest count how likely: its published value alone, the sums around it, the prior."""
    steps = ["from its published value alone", "with the sums that it stands in", "with the sums next to these"]
    last = len(one.growth) - 1
    told = [
        ("with all sums" if k == last > 1 else steps[k] if k < len(steps) else f"with sums up to {k} away", probability)
        for k, probability in enumerate(one.growth)
    ]
    if told and one.probability is not None and abs(one.probability - one.growth[-1]) > 1e-9:
        told.append(("with the prior that was fitted to the release", one.probability))
    return told


def conclusion(one: Explanation) -> str:
    """Say in one sentence what is known of a cell."""
    span = f"from {one.low:,} to {one.high:,}" if one.high is not None else f"at least {one.low:,}"
    if one.kind == "given":
        return f"It was published as it is: {one.published:,}."
    if one.kind in ("proved", "conditional"):
        deep = f" (a chain of {one.depth} sums)" if one.depth and one.depth > 1 else ""
        proviso = " if the population is exact" if one.kind == "conditional" else ""
        return f"It is {one.value:,}{proviso}: {one.kind}{deep}."
    if one.probability is None:
        return f"It is {span}; nothing says how likely each count is."
    return f"It is {span}, most likely {one.value:,} ({percent(one.probability)})."


def arithmetic(shown: SumShown) -> str:
    """Return what was published of a sum, and by how much it fails to add up."""
    numbers = ["?" if number is None else f"{number:,}" for number in shown.parts]
    listed = " + ".join(numbers) if len(numbers) <= 12 else f"{' + '.join(numbers[:6])} + … + {numbers[-1]}"
    total = "?" if shown.total is None else f"{shown.total:,}"
    off = "" if shown.residual is None else ", which adds up" if shown.residual == 0 else f", {shown.residual:+,} off"
    return f"{total} against {listed}{off}"


def _histogram(distribution: tuple[tuple[int, float], ...], console: Console) -> None:
    largest = max(p for _, p in distribution)
    shown = [(value, p) for value, p in distribution if p >= largest / 200] if len(distribution) > 30 else distribution
    for value, p in shown:
        bar = "█" * max(1 if p > 0 else 0, round(BAR * p / largest))
        console.print(Text(f"  {value:>7,} {percent(p):>8}  {bar}"))
