"""How often claims are right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from unround.show import charts
from unround.show.parts import (
    PAGE,
    QUIET,
    TERMINAL,
    Bullets,
    Chart,
    Charts,
    Only,
    Part,
    Section,
    Table,
    TableColumn,
    TableRow,
    Terms,
    Text,
    titled,
)
from unround.show.selfcheck import OVERSTATED, between, claims_parts, value_named
from unround.show.words import percent, several
from unround.shown import plain

if TYPE_CHECKING:
    from research.calibration import Calibrations

CALIBRATION_NOTE = (
    "Off by: the expected calibration error, in percentage points: how far stated probabilities are from how often claims "
    "are right. By chance: what perfectly calibrated claims in the same number would show. Log loss: the mean of "
    "−log p(truth), a proper score."
)


# -- tables -----------------------------------------------------------------------------------------------------------


def worlds_table(worlds: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the headings and rows of a table of worlds: all likely claims of each, its worst band, and a verdict."""
    heads = ["world", "claims", "stated", "right", "worst band", "claims", "stated", "right", "verdict"]
    rows = []
    for world in worlds:
        whole = next(iter(world["claims_by_value"]), None)
        cells = (
            ["0", "", ""] if whole is None else [f"{whole['claims']:,}", percent(whole["stated"]), percent(whole["right"])]
        )
        worst = world["worst"]
        if worst is None:
            rows.append([named(world), *cells, "", "", "", "", "too few to say"])
            continue
        band = [band_named(worst), f"{worst['claims']:,}", percent(worst["stated"]), percent(worst["right"])]
        verdict = f"{world['overstated']} {OVERSTATED}" if world["overstated"] else "holds"
        rows.append([named(world), *cells, *band, verdict])
    return heads, rows


def band_named(band: Mapping[str, Any]) -> str:
    """Return what the claims of one band are called.

    >>> band_named({"value": "1–2", "from": 0.66, "to": 0.75})
    '1–2 at 66–75%'
    """
    return f"{band['value']} at {between(band)}"


def named(measured: Mapping[str, Any]) -> str:
    """Return what a calibrated table is called: its world, or where it is from."""
    return str(measured["world"] or measured["source"])


def calibration_table(measured: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the headings and rows of how often claims are right, by kind of count."""
    heads = ["", "counts", "flat: off by", "log loss", "fitted: off by", "log loss", "by chance", "trust"]
    return heads, [
        [
            name,
            f"{group['fitted']['cells']:,}",
            f"{100 * group['flat']['calibration_error']:.1f}",
            f"{group['flat']['log_loss']:.3f}",
            f"{100 * group['fitted']['calibration_error']:.1f}",
            f"{group['fitted']['log_loss']:.3f}",
            f"{100 * group['fitted']['by_chance']:.1f}",
            group["trust"],
        ]
        for name, group in measured["groups"].items()
    ]


# -- sentences --------------------------------------------------------------------------------------------------------


def calibration_lead(measured: Mapping[str, Any]) -> list[str]:
    """Say what was calibrated, and which world is the worst."""
    published = f"{several(measured['areas'], 'area')} published with {measured['mechanism']}, from {measured['source']}."
    if measured["world"] is None:
        return [published]
    worst = "" if len(measured["worlds"]) == 1 else f"The worst of {len(measured['worlds'])} worlds is "
    return [f"{worst}{measured['world']}. {measured['description']}", published]


def claims_sentences(measured: Mapping[str, Any]) -> list[str]:
    """Say how far likely claims can be trusted, by the worst of the worlds."""
    where = f" in the world {measured['world']}" if measured["world"] else ""
    worst = measured["worst"]
    if worst is None:
        return [f"There are too few likely claims{where} to judge any band of stated probability."]
    said = (
        f"{worst['claims']:,} claims of {value_named(worst['value'])}, stated at {between(worst)}, state "
        f"{percent(worst['stated'])} on average, and {percent(worst['right'])} "
        f"are right (± {100 * worst['standard_error']:.1f} points)"
    )
    if not measured["overstated"]:
        return [f"No band overstates{where}. The one farthest above the truth: {said}."]
    number = several(measured["overstated"], "band overstates", "bands overstate")
    return [f"{number}{where}. The worst: {said}."]


def calibration_sentences(measured: Mapping[str, Any]) -> list[str]:
    """Return which prior to trust when."""
    groups = measured["groups"]
    whole = groups["all cells"]
    sentences = [
        f"The fitted prior is {100 * whole['fitted']['calibration_error']:.1f} points off overall, the flat one "
        f"{100 * whole['flat']['calibration_error']:.1f}."
    ]
    sparse = groups.get("totals of sparse sums")
    if sparse:
        sentences.append(
            f"On totals of sparse sums it is {100 * sparse['fitted']['calibration_error']:.1f} points off, the flat one "
            f"{100 * sparse['flat']['calibration_error']:.1f}: a flat prior makes such totals too large."
        )
    by_choice: dict[str, list[str]] = {}
    for name, group in groups.items():
        by_choice.setdefault(group["trust"], []).append(name)
    if set(by_choice) <= {"fitted", "too few to say"}:
        sentences.append("Trust the fitted prior for every kind of count with enough cases to judge.")
    called = {"flat": "the flat one", "either": "either"}
    sentences += [f"Trust {called[name]} for: {', '.join(by_choice[name])}." for name in called if name in by_choice]
    return sentences


# -- the document -----------------------------------------------------------------------------------------------------

DIAGONAL = (
    "The likeliest counts of all cells, whether an audit would list them or not. On the diagonal, claims are right as often "
    "as they state; below it they are overconfident. Larger points stand for more claims."
)


@titled("How often claims are right", "Calibration")
def calibration(result: Calibrations | Mapping[str, Any]) -> Iterator[Part]:
    """Say how often claims are right, the worst world first, and which prior to trust when."""
    measured = plain(result)
    yield Text("\n".join(calibration_lead(measured)), "lead")
    if len(measured["worlds"]) > 1:
        title, (heads, rows) = "Likely claims, the worst world first", worlds_table(measured["worlds"])
        marked = [TableRow(row, "wrong" if row[-1].endswith(OVERSTATED) else "") for row in rows]
        worlds = [(world["world"], world["description"]) for world in measured["worlds"] if world["world"]]
        table = Table(heads, marked, title, left=("worst band", "verdict"))
        yield Section(title, [table, Only(PAGE, [Terms(worlds)])])
    title = "Likely claims, by the count claimed"
    yield Section(title, [Bullets(claims_sentences(measured)), *claims_parts(measured["claims_by_value"])])
    groups = measured["groups"]
    drawn = [name for name in ("all cells", "totals of sparse sums") if name in groups]
    pictures = Charts([Chart(_reliability_chart(groups[name]), name.capitalize()) for name in drawn])
    bins = Only(TERMINAL, [_reliability(groups["all cells"])])
    yield Section("Of claims made at this probability, this share is right", [Text(DIAGONAL, QUIET), pictures, bins])
    heads, rows = calibration_table(measured)
    yield Section("By kind of count", [Table(heads, rows, "By kind of count", left=("trust",), legend=CALIBRATION_NOTE)])
    yield Section("Which prior to trust", [Bullets([*calibration_sentences(measured), *measured["notes"]])])


def _reliability(group: Mapping[str, Any]) -> Part:
    """Return bands of probability, with a bar of the share that is right, and a mark where it should end."""
    by_bin = {prior: {row["from"]: row for row in group[prior]["bins"]} for prior in ("flat", "fitted")}
    rows = []
    for start in sorted({*by_bin["flat"], *by_bin["fitted"]}):
        cells = [f"{100 * start:.0f}–{100 * start + 5:.0f}%"]
        for prior in ("flat", "fitted"):
            row = by_bin[prior].get(start)
            cells += [f"{row['claims']:,}", f"{100 * row['right']:.1f}%"] if row else ["", ""]
        fitted = by_bin["fitted"].get(start)
        rows.append([*cells, _ruler(fitted["stated"], fitted["right"]) if fitted else ""])
    return Table(("stated", "flat: claims", "right", "fitted: claims", "right", TableColumn("", left=True)), rows)


def _ruler(stated: float, right: float, width: int = 40) -> str:
    bar = ["█" if k < round(width * right) else " " for k in range(width + 1)]
    bar[round(width * stated)] = "│"
    return "".join(bar).rstrip()


def _reliability_chart(group: Mapping[str, Any]) -> Markup:
    series = {
        f"{prior} prior": (kind, [row for row in group[prior]["bins"] if row["claims"] >= 10])
        for prior, kind in (("flat", "s3"), ("fitted", "s1"))
    }
    return charts.reliability(series, "stated probability", "share that is right")
