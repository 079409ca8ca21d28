"""The figures of docs/paper.md. Every place in them is simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from research.paper import FIVE, LAPLACE, noise_distances
from research.searches import Experiment

from docs.panels import Plot
from unround.equations import parse
from unround.mechanisms import Laplace
from unround.show.charts import Picture, Scale, columns, ticks
from unround.show.parts import Chart
from unround.simulation import Rounds, schema
from unround.solution import Solution, solve

AGES = {9: "0 to 14", 10: "0 to 4", 11: "5 to 9", 12: "10 to 14", 13: "15 to 64", 24: "65 and over"}
SPOUSES = 91
HAMLET, TOWN = 110, 1130
"""About how many people live in the two places that the paper shows."""


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
    for block in Rounds(seed).counts(areas, "short"):
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


def histograms(place: Place, title: str) -> Plot:
    """Draw what can be inferred of each cell, with the true value marked."""
    panels = []
    for cell in place.solution.cells:
        if cell.kind == "given":
            continue
        truth = place.true[cell.name]
        chart = columns(
            dict(cell.distribution), f"{cell.name}: distribution", kind="open", marked={truth: "s1"}, below="true count"
        )
        panels.append(Chart(chart, cell.name, f"published {cell.published:,}, true count {truth:,}"))
    return Plot(title, "Probability of each count; the true count is blue.", tuple(panels))


def distances() -> Plot:
    """Draw how far from the truth both mechanisms publish."""
    panels = []
    for title, found in (
        ("Random rounding, base 5", noise_distances(FIVE)),
        ("Discrete Laplace, t = 1.45", noise_distances(Laplace(LAPLACE))),
    ):
        shares = {d: found.shares.get(d, 0.0) for d in range(-10, 11)}
        lines = (
            f"mean distance {found.mean():.3f}, variance {found.variance():.2f}",
            f"within 4: {100 * found.within(4):.1f}%",
        )
        panels.append(Chart(columns(shares, title, top=0.36, below="published − true"), title, "\n".join(lines)))
    return Plot("Rounding and noise publish about equally far from the truth", "Share of counts by distance.", tuple(panels))


def found_against_predicted(runs: Sequence[Experiment]) -> Plot:
    """Draw found over predicted, for simulated censuses and for the paper; the search that found nothing is left out."""
    rows = []
    for outcome in runs[0].outcomes:
        search = outcome.search
        if search.found:
            low, high = outcome.uniform.interval
            expected = outcome.uniform.mean / outcome.groups * search.groups
            simulated = [run[search.key].found / run[search.key].uniform.mean for run in runs]
            band = low / outcome.uniform.mean, high / outcome.uniform.mean
            rows.append((search.title, band, simulated, search.found / expected))
    largest = max(max(band[1], paper, *simulated) for _, band, simulated, paper in rows)
    drawn = Picture(640, 34 * len(rows) + 40, "Found, as a multiple of what uniform remainders predict")
    scale = Scale(0, largest, 270, 620)
    for tick in ticks(0, largest):
        drawn.line(scale(tick), 0, scale(tick), 34 * len(rows), "axis" if tick == 1 else "grid")
        drawn.text(scale(tick), 34 * len(rows) + 15, f"{tick:g}×", "soft", "middle")
    drawn.text(620, 34 * len(rows) + 34, "found ÷ predicted by uniform remainders", "soft", "end")
    for at, (title, band, simulated, paper) in enumerate(rows):
        y = 34 * at + 17
        drawn.text(258, y + 4, title, anchor="end")
        drawn.rect(scale(band[0]), y - 9, scale(band[1]) - scale(band[0]), 18, "range")
        for ratio in simulated:
            drawn.dot(scale(ratio), y, 4, "bar s1 faint", f"simulated: {ratio:.2f}")
        drawn.dot(scale(paper), y, 5, "bar s3", f"the paper: {paper:.2f}")
    note = "Blue: ten simulated censuses. Pink: the paper. Grey: the range of 99.9% of counts, in a simulated census."
    return Plot("Found against predicted", note, (Chart(drawn.done()),))
