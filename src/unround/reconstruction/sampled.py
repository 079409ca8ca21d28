"""What is looked at in a sample of areas: other ways of publishing, tables left out, verified claims, variability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unround.protection import Protection
from unround.reconstruction.bounds import CrossTable, cross_table
from unround.reconstruction.certificates import Columns, certificate, claim_line
from unround.reconstruction.claims import AreaBounds, area_bounds, checked
from unround.reconstruction.guess import random_number
from unround.reconstruction.inquiry import Elsewhere, Inquiry
from unround.reconstruction.score import EVERYONE
from unround.reconstruction.solver import NoWorldFits, Variability, common_cells, variability
from unround.reconstruction.tally import Tally, ratio
from unround.reconstruction.ways import WAY, WITHOUT, way_questions, without_questions

if TYPE_CHECKING:
    from unround.reconstruction.run import Case

Step = Callable[[str, int, int], None]

MOST_CHECKED = 20
"""Claims that are proved again by a linear program."""


def sample_of(case: Case, number: int, seed: int) -> NDArray[np.int64]:
    """Choose areas by their names and the seed alone."""
    chance = np.array([random_number(seed, "sample", name) for name in case.records.areas])
    return np.sort(np.argsort(chance, kind="stable")[:number])


def compared(
    case: Case,
    inquiry: Inquiry,
    sample: NDArray[np.int64],
    ways: Sequence[Protection],
    parts: Path,
    progress: Step,
    elsewhere: Elsewhere | None = None,
) -> dict[str, Any]:
    """Ask what other ways of publishing, and leaving out a table, would change in the sample."""
    others, notes = way_questions(ways, case.published, case.records, inquiry.seed, sample, case.folder)
    less = without_questions(case.published, case.records, sample, case.folder)
    done, whole = 0, (len(others) + len(less)) * len(sample)

    def step(areas: int) -> None:
        nonlocal done
        done += areas
        progress("Comparing", done, whole)

    progress("Comparing", 0, whole)
    found = {question.name: inquiry.ask(question, sample, parts, step, elsewhere=elsewhere) for question in (*others, *less)}
    return {
        "areas": len(sample),
        "ways": [{"name": question.name.removeprefix(f"{WAY} "), **_told(found[question.name])} for question in others],
        "without": [
            {"name": case.published.names[int(question.name.removeprefix(f"{WITHOUT} "))], **_told(found[question.name])}
            for question in less
        ],
        "notes": notes,
    }


def _told(tally: Tally) -> dict[str, Any]:
    told = tally.to_json()
    return {name: told[name] for name in ("agreement", "within_one_year", "one_world", "steps_outside")}


def in_sample(tally: Tally, sample: NDArray[np.int64]) -> dict[str, Any]:
    """Return the agreement of a guess in the sample alone."""
    share, error = ratio(tally.exact[sample][:, :, EVERYONE], tally.people[sample][:, EVERYONE])
    return {"share": share, "standard_error": error}


MOST_CERTIFIED = 200
"""Claims that are written out step by step."""


def claimed(
    case: Case, sample: NDArray[np.int64], variable: int, seconds: float, progress: Step
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Prove what can be proved in the sample, and find how different worlds can be in some of its areas.

    Also returns the certificates of claims, which tell of single areas.
    """
    table = cross_table(case.published.queries, case.records.sizes)
    mechanisms = [case.published.mechanisms[at] for at in table.used]
    columns = Columns.of(
        table,
        [case.published.queries[at] for at in table.used],
        [case.published.names[case.published.tables[at]] for at in table.used],
        mechanisms,
        case.records.values,
    )
    written: list[dict[str, Any]] = []
    told: dict[str, Any] = {"areas": len(sample), "attributes": list(table.names), "at_least": 0, "exactly": 0}
    told |= {"persons": 0, "true": 0, "by_number": {}, "checked": 0, "confirmed": 0, "contradictory": 0}
    told |= {"by_solver": 0, "by_solver_true": 0, "written_out": 0, "certified": 0}
    worlds: list[Variability] = []
    for number, area in enumerate(sample.tolist()):
        progress("Proving", number, len(sample))
        counts = case.published.counts.area(area)[table.used].tolist()
        found = area_bounds(table, counts, mechanisms)
        if not found.fits:
            told["contradictory"] += 1
            continue
        _count(told, case, table, found, area)
        for claim in found.claims()[: MOST_CERTIFIED - told["written_out"]]:
            told["written_out"] += 1
            if (proved := certificate(columns, counts, found, claim)) is not None:
                told["certified"] += 1
                written.append(claim_line(case.records.areas[area], *proved))
        if number < variable:
            people, exact = int(case.people[area]), case.exact_people
            try:
                worlds.append(variability(table, found, people, seconds, exact=exact))
                more = common_cells(table, found, people, seconds, exact=exact) or []
            except NoWorldFits:
                told["contradictory"] += 1
                continue
            told["by_solver"] += len(more)
            told["by_solver_true"] += int((_true_cells(case, table, area)[more] > 0).sum())
    progress("Proving", len(sample), len(sample))
    told["variability"] = _variability(worlds, seconds) if variable else None
    return told, written


def _count(told: dict[str, Any], case: Case, table: CrossTable, found: AreaBounds, area: int) -> None:
    """Count the claims of an area, hold them against the truth, and check a few again."""
    true = _true_cells(case, table, area)
    for cell, least, exactly in found.claims():
        told["exactly" if exactly else "at_least"] += 1
        told["persons"] += least
        told["true"] += int(true[cell] == least if exactly else true[cell] >= least)
        told["by_number"][str(least)] = told["by_number"].get(str(least), 0) + 1
        if told["checked"] < MOST_CHECKED and (sure := checked(table, found, cell, least)) is not None:
            told["checked"] += 1
            told["confirmed"] += int(sure)


def _true_cells(case: Case, table: CrossTable, area: int) -> NDArray[np.int64]:
    """Count the people of an area by cell."""
    return np.bincount(table.cell_of(case.records.codes_of(area, area + 1)), minlength=table.cells)


def _variability(worlds: Sequence[Variability], seconds: float) -> dict[str, Any]:
    return {
        "areas": len(worlds),
        "seconds": seconds,
        "low": float(np.mean([one.low for one in worlds])) if worlds else None,
        "high": float(np.mean([one.high for one in worlds])) if worlds else None,
        "determined": sum(one.determined for one in worlds),
        "solved": sum(one.why == "solved" for one in worlds),
        "out_of_time": sum(one.why == "time" for one in worlds),
        "too_large": sum(one.why == "size" for one in worlds),
    }
