"""Writes docs/paper.md: an account of the paper in which every number is computed.

The words are in templates/paper.md. The runs of the experiment are kept beside the figures, in
experiment.json, because ten of them take a quarter of an hour; everything else is worked out anew each time.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from research.paper import (
    AGE,
    AGE_STRONG,
    FIVE,
    FREE_STRONG,
    LAPLACE,
    SEARCHES,
    SEX,
    Claim,
    Search,
    claims,
    noise_distances,
    predicted,
)
from research.paper_document import EXPLAINED, prediction_text, summary, value_text, weighed
from research.searches import Experiment, condition

from docs.panels import svg
from docs.paper_figures import Place, distances, found_against_predicted, histograms, places
from docs.paper_runs import excess, pooled, read_run, ten_seeds
from unround.errors import InputError
from unround.expectation import expectation, surprise
from unround.mechanisms import Laplace
from unround.show.words import either

RUNS, KEYED_RUNS = "experiment.json", "experiment-keyed.json"
VERDICTS = {True: "yes", False: "**no**", None: "–"}
WIDTH = 120


def write_docs(folder: Path, *, fresh: bool = False, progress: Callable[[int], None] | None = None) -> list[Path]:
    """Write paper.md and its figures into a folder, and return what was written.

    Parameters
    ----------
    folder : Path
        Usually docs; the figures go into its subfolder figures.
    fresh : bool
        Whether to run the experiment again, ten censuses of 61,029 areas, instead of using the runs kept there.
    progress : callable, optional
        Told how many areas of the census at hand are done, while the experiment runs.
    """
    figures = folder / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    if fresh:
        keep_runs(folder, ten_seeds(rows="all", progress=progress))
        keep_runs(folder, ten_seeds(rows="age", progress=progress, keys=True), KEYED_RUNS)
    runs, keyed = kept_runs(folder), kept_runs(folder, KEYED_RUNS)
    hamlet, town = places()
    charts = {
        "paper-hamlet.svg": histograms(hamlet, "Possible ages in a simulated hamlet"),
        "paper-couples.svg": histograms(town, "Possible numbers of spouses and partners in a simulated town"),
        "paper-distances.svg": distances(),
        "paper-found.svg": found_against_predicted(runs),
    }
    for name, chart in charts.items():
        (figures / name).write_text(svg(chart), encoding="utf-8")
    page = folder / "paper.md"
    page.write_text(text(runs, keyed, hamlet, town), encoding="utf-8")
    return [page, *(figures / name for name in charts)]


def keep_runs(folder: Path, runs: Sequence[Experiment], name: str = RUNS) -> None:
    """Keep runs of the experiment beside the figures, one a line."""
    lines = ",\n".join(json.dumps(run.to_json(), ensure_ascii=False) for run in runs)
    (folder / "figures" / name).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def kept_runs(folder: Path, name: str = RUNS) -> list[Experiment]:
    """Return the runs of the experiment that are kept beside the figures.

    Raises
    ------
    InputError
        If there are none.
    """
    path = folder / "figures" / name
    if not path.is_file():
        raise InputError(f"{path} is not there: run the experiment first (fresh=True).")
    return [read_run(run) for run in json.loads(path.read_text(encoding="utf-8"))]


def text(runs: Sequence[Experiment], keyed: Sequence[Experiment], hamlet: Place, town: Place) -> str:
    """Return the whole page."""
    page = (Path(__file__).parent / "templates" / "paper.md").read_text(encoding="utf-8")
    stated = claims()
    facts = (
        _paper_facts(stated) | _experiment_facts(runs) | _keyed_facts(keyed) | _excess_facts() | _place_facts(hamlet, town)
    )
    filled = page.format_map(facts)
    return "\n\n".join(_wrapped(block) for block in filled.strip().split("\n\n")) + "\n"


def _wrapped(block: str) -> str:
    """Break a paragraph's lines anew; tables, headings and pictures stay as they are."""
    if block.startswith(("|", "#", "!", "<")):
        return block
    return textwrap.fill(" ".join(block.split("\n")), WIDTH, break_long_words=False, break_on_hyphens=False)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    rule = ["--:" if at in right else "---" for at in range(len(head))]
    lines = [head, rule, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# -- the numbers in the text ------------------------------------------------------------------------------------------


def _name(search: Search) -> str:
    return search.key.replace(" exact", "").replace(" ", "_")


def _paper_facts(stated: Sequence[Claim]) -> dict[str, Any]:
    """Return what the paper says and what is wrong with it."""
    noise, rounding = noise_distances(Laplace(LAPLACE)), noise_distances(FIVE)
    by_value = {str(claim.paper): claim.computed for claim in stated}
    base_7, base_10 = (claim.computed for claim in stated if claim.paper == "vanishingly unlikely")
    facts: dict[str, Any] = {
        "summary": summary(stated),
        "strong_one_in": by_value["1308"],
        "exact_values": by_value["624"],
        "noise_solutions": value_text(by_value["intractable"]),
        "base_7": base_7,
        "base_10": base_10,
        "noise_mean": noise.mean(),
        "noise_cut": noise.mean(10),
        "noise_variance": noise.variance(),
        "rounding_mean": rounding.mean(),
        "rounding_variance": rounding.variance(),
        "closer": 100 * (1 - noise.mean() / rounding.mean()),
        "within_4": 100 * noise.within(4),
        "within_10": 100 * noise.within(10),
        "scale": LAPLACE,
        "sex_groups": SEX.groups,
        "sex_residual": SEX.residual,
    }
    for search in SEARCHES:
        mean = predicted(search)
        values = {"found": search.found, "predicted": mean, "ratio": search.found / mean}
        facts |= {f"{_name(search)}_{key}": value for key, value in values.items()}
        facts[f"{_name(search)}_surprise"] = surprise(search.found, mean)
    rows = [
        (one.claim, one.section, value_text(one.paper), value_text(one.computed), VERDICTS[one.agrees], one.note)
        for one in stated
    ]
    facts["claims_table"] = _table(("claim", "section", "paper", "ours", "agrees", "note"), rows, right=(2, 3))
    return facts


def _experiment_facts(runs: Sequence[Experiment]) -> dict[str, Any]:
    """Return what was found on simulated areas."""
    run, many = runs[0], pooled(runs)
    sex, free = many[SEX.key], many[FREE_STRONG.key]
    checks = [outcome.inside for one in runs for outcome in one.outcomes]
    return {
        "areas": run.areas,
        "seed": run.seeds[0],
        "runs": len(runs),
        "inside": sum(checks),
        "checks": len(checks),
        "repeated_areas": run.repeated_areas,
        "repeated": sum(outcome.repeated for outcome in run.outcomes),
        "all_found": sum(outcome.found for outcome in run.outcomes),
        "experiment_table": _experiment_table(run),
        "direction_table": _direction_table(many),
        "pooled_uniform": free.uniform.mean,
        "pooled_sizes": free.sizes.mean,
        "pooled_found": free.found,
        "sex_pooled_found": sex.found,
        "sex_pooled_uniform": sex.uniform.mean,
        "sex_pooled_sizes": sex.sizes.mean,
        "verdict": weighed(many),
    }


def _keyed_facts(runs: Sequence[Experiment]) -> dict[str, Any]:
    """Return what was found on simulated areas that were rounded by keys."""
    many = pooled(runs)
    facts: dict[str, Any] = {"keyed_runs": len(runs)}
    for search in (SEX, AGE, AGE_STRONG, FREE_STRONG):
        one = many[search.key]
        facts |= {f"keyed_{_name(search)}_found": one.found, f"keyed_{_name(search)}_uniform": one.uniform.mean}
    free = [run[FREE_STRONG.key] for run in runs]
    facts["keyed_least"] = min(one.found / one.sizes.mean for one in free)
    facts["keyed_most"] = max(one.found / one.sizes.mean for one in free)
    return facts


def _experiment_table(run: Experiment) -> str:
    head = ("search", "places", "found", "uniform remainders", "simulated sizes", "explained by", "the paper found")
    rows = [
        (
            f"{outcome.search.title}: {condition(outcome.search)}",
            f"{outcome.groups:,}",
            f"{outcome.found:,}",
            prediction_text(outcome.uniform),
            prediction_text(outcome.sizes),
            EXPLAINED[outcome.explained_by],
            f"{outcome.search.found} in {outcome.search.groups:,}",
        )
        for outcome in run.outcomes
    ]
    return _table(head, rows, right=(1, 2, 3, 4))


def _direction_table(run: Experiment) -> str:
    free = run[FREE_STRONG.key]
    directions = (
        ("parts add up to too much", free.above, free.uniform.above, free.sizes.above),
        ("parts add up to too little", free.below, free.uniform.below, free.sizes.below),
    )
    rows = [
        (
            name,
            f"{found:,}",
            f"{uniform:,.0f}",
            f"{sizes:,.0f}",
            f"{surprise(found, uniform):.0e}",
            f"{surprise(found, sizes):.2f}",
        )
        for name, found, uniform, sizes in directions
    ]
    return _table(("", "found", "uniform", "by size", "chance if uniform", "chance by size"), rows, right=range(1, 6))


def _excess_facts() -> dict[str, Any]:
    """Return what adjusted populations would explain."""
    cases = excess()
    head = ("adjusted by up to", "share of areas", "age, exact", "chance", "age, strong", "chance", "wrong", "impossible")
    rows = [
        (
            str(one.reach),
            f"{100 * one.share:.1f}%",
            f"{one.expected[AGE.key]:.1f}",
            f"{one.surprise[AGE.key]:.2f}",
            f"{one.expected[AGE_STRONG.key]:.1f}",
            f"{one.surprise[AGE_STRONG.key]:.2f}",
            f"{100 * one.wrong:.0f}%",
            f"{one.impossible:.0f}",
        )
        for one in cases
    ]
    two, three = (expectation(parts, exact_total=True) for parts in (2, 3))
    return {
        "excess_table": _table(head, rows, right=range(8)),
        "share_5": 100 * cases[-1].share,
        "impossible_1": cases[0].impossible,
        "impossible_5": cases[-1].impossible,
        "wrong_least": 100 * min(one.wrong for one in cases),
        "wrong_most": 100 * max(one.wrong for one in cases),
        "inside_2": float(two.share(SEX.residual - 1) / two.share(SEX.residual)),
        "inside_3": float(three.share(AGE.residual - 1) / three.share(AGE.residual)),
    }


def _place_facts(hamlet: Place, town: Place) -> dict[str, Any]:
    """Return what can be inferred of two simulated places."""
    couples, men, women = (town.solution[name] for name in town.true)

    def held(place: Place) -> int:
        return sum(true in place.solution[name].sure for name, true in place.true.items())

    return {
        "hamlet_people": hamlet.people,
        "hamlet_solutions": hamlet.solution.solutions,
        "hamlet_sure": either(hamlet.solution["0 to 14"].sure),
        "hamlet_true": hamlet.true["0 to 14"],
        "hamlet_held": held(hamlet),
        "town_people": town.people,
        "town_total": couples.published,
        "town_men": men.published,
        "town_women": women.published,
        "town_solutions": town.solution.solutions,
        "town_true_men": town.true["men"],
        "town_true_women": town.true["women"],
        "town_held": held(town),
    }
