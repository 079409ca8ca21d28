"""The figures of docs/paper.md. Every place in them is simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unround.equations import parse
from unround.replication.outcome import Experiment
from unround.replication.proposal import laplace_distances, rounding_distances
from unround.simulation import published_counts, schema
from unround.solution import Solution, solve

if TYPE_CHECKING:
    import altair

AGES = {9: "0 to 14", 10: "0 to 4", 11: "5 to 9", 12: "10 to 14", 13: "15 to 64", 24: "65 and over"}
SPOUSES = 91
HAMLET, TOWN = 110, 1130
"""About how many people live in the two places that the paper shows."""

TRUE, OTHER, PAPER = "#b35806", "#9ebcda", "#b2182b"


@dataclass(frozen=True, slots=True)
class Place:
    """A simulated place: what was published of it, what is true, and what can be inferred."""

    people: int
    solution: Solution
    true: dict[str, int]


def places(areas: int = 3000, seed: int = 1) -> tuple[Place, Place]:
    """Return a hamlet with its ages and a town with its couples: the simulated CSDs nearest to the sizes wanted."""
    at = schema("short").index
    best: dict[int, tuple[int, Any, Any]] = {}
    for block in published_counts(areas, seed, "short"):
        assert block.published is not None
        for i, level in enumerate(block.regions["level"]):
            people = int(block.published[i, at[1], 0])
            for wanted in (HAMLET, TOWN):
                held = best.get(wanted)
                if level == "CSD" and (held is None or abs(people - wanted) < abs(held[0] - wanted)):
                    best[wanted] = people, block.published[i].copy(), block.true[i].copy()
    return _hamlet(at, *best[HAMLET]), _town(at, *best[TOWN])


def _hamlet(at: dict[int, int], people: int, published: Any, true: Any) -> Place:
    lines = [f'"{name}": {published[at[row], 0]}' for row, name in AGES.items()]
    lines += [f'{people}! = "0 to 14" + "15 to 64" + "65 and over"', '"0 to 14" = "0 to 4" + "5 to 9" + "10 to 14"']
    return Place(people, solve(parse("\n".join(lines))), {name: int(true[at[row], 0]) for row, name in AGES.items()})


def _town(at: dict[int, int], people: int, published: Any, true: Any) -> Place:
    sexes = ("spouses and partners", "men", "women")
    total, men, women = (int(published[at[SPOUSES], sex]) for sex in range(3))
    solution = solve(parse(f'"{sexes[0]}": {total} = men: {men} + women: {women}'))
    return Place(people, solution, {name: int(true[at[SPOUSES], sex]) for sex, name in enumerate(sexes)})


def histograms(place: Place) -> altair.VConcatChart:
    """Draw what can be inferred of each cell, with the true value marked."""
    import altair as alt

    panels = []
    for cell in place.solution.cells:
        if cell.kind == "given":
            continue
        truth = place.true[cell.name]
        bars = [{"value": v, "probability": p, "is": "true value" if v == truth else "other"} for v, p in cell.distribution]
        title = alt.TitleParams(cell.name, subtitle=f"published {cell.published:,}, truly {truth:,}", anchor="start")
        panels.append(
            alt.Chart(alt.InlineData(values=bars), title=title, width=200, height=120)
            .mark_bar()
            .encode(
                x=alt.X("value:O", title="true count", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
                y=alt.Y("probability:Q", title="probability", axis=alt.Axis(format=".0%", tickCount=4)),
                color=_colours("is", {"true value": TRUE, "other": OTHER}),
            )
        )
    rows = [alt.hconcat(*panels[i : i + 3], spacing=30) for i in range(0, len(panels), 3)]
    return _finished(alt.vconcat(*rows, spacing=25))


def distances() -> altair.VConcatChart:
    """Draw how far from the truth both mechanisms publish."""
    import altair as alt

    panels = []
    for title, found in (
        ("Random rounding, base 5", rounding_distances()),
        ("Discrete Laplace, t = 1.45", laplace_distances()),
    ):
        bars = [{"distance": d, "probability": found.shares.get(d, 0.0)} for d in range(-10, 11)]
        subtitle = (
            f"mean distance {found.mean():.3f}, variance {found.variance():.2f}, within 4: {100 * found.within(4):.1f} %"
        )
        panels.append(
            alt.Chart(
                alt.InlineData(values=bars),
                title=alt.TitleParams(title, subtitle=subtitle, anchor="start"),
                width=330,
                height=180,
            )
            .mark_bar(color="#4575b4")
            .encode(
                x=alt.X("distance:O", title="published less true", axis=alt.Axis(labelAngle=0)),
                y=alt.Y("probability:Q", axis=alt.Axis(format=".0%"), scale=alt.Scale(domain=[0, 0.36])),
            )
        )
    return _finished(alt.vconcat(alt.hconcat(*panels, spacing=40)))


def found_against_predicted(runs: Sequence[Experiment]) -> altair.VConcatChart:
    """Draw found over predicted, for simulated censuses and for the paper; the search that found nothing is left out."""
    import altair as alt

    points, bars = [], []
    for outcome in runs[0].outcomes:
        search = outcome.search
        if not search.found:
            continue
        low, high = outcome.uniform.interval
        bars.append({"search": search.title, "low": low / outcome.uniform.mean, "high": high / outcome.uniform.mean})
        expected = outcome.uniform.mean / outcome.groups * search.groups
        points.append({"search": search.title, "ratio": search.found / expected, "census": "the paper"})
        for run in runs:
            same = run[search.key]
            points.append({"search": search.title, "ratio": same.found / same.uniform.mean, "census": "simulated"})
    order = [str(bar["search"]) for bar in bars]
    rows = alt.Y("search:N", sort=order, title=None, axis=alt.Axis(labelLimit=300, minExtent=260))
    scale_title = "found, as a multiple of what uniform remainders predict"
    scale = alt.X("ratio:Q", title=scale_title)
    band_ends = alt.X("low:Q", title=scale_title)
    band = alt.Chart(alt.InlineData(values=bars)).mark_bar(color="#e4e4e4", height=18)
    dots = alt.Chart(alt.InlineData(values=points)).mark_point(filled=True, size=60, opacity=0.8)
    one = alt.Chart(alt.InlineData(values=[{"ratio": 1}])).mark_rule(color="#666666").encode(x=scale)
    colours = _colours("census", {"the paper": PAPER, "simulated": "#4575b4"})
    chart = alt.layer(band.encode(y=rows, x=band_ends, x2="high:Q"), one, dots.encode(x=scale, y=rows, color=colours))
    title = alt.TitleParams(
        "Found against predicted", subtitle="grey: where 99.9 % of counts should lie, in a simulated census", anchor="start"
    )
    return _finished(alt.vconcat(chart.properties(title=title, width=480, height=170)))


def _colours(field: str, palette: dict[str, str]) -> altair.Color:
    import altair as alt

    scale = alt.Scale(domain=list(palette), range=list(palette.values()))
    return alt.Color(f"{field}:N", scale=scale, legend=alt.Legend(title=None, orient="bottom"))


def _finished(chart: altair.VConcatChart) -> altair.VConcatChart:
    done: altair.VConcatChart = (
        chart.properties(padding=12, background="white")
        .configure_view(strokeOpacity=0)
        .configure_title(fontSize=13, subtitleColor="#666666")
    )
    return done
