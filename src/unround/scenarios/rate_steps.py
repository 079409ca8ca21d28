"""How coarse rates must be to add nothing: printed on one step after the other, and audited each time.

Rates that a release prints, or may print: chosen by name, and worked out of true or of published counts on any step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround._version import __version__
from unround.comparison.rates import EVERY, RateError, proposed_rate, rate_values
from unround.errors import InputError
from unround.figures import Figure, FigureKind, Grid
from unround.job import AuditFolder
from unround.options import VERIFIED, AuditOptions
from unround.output import scratch_folder
from unround.release import ABSENT, FIGURE_ABSENT, Block, FigureValues, Progress, Release
from unround.scenarios.scenario import check_fit, published_by
from unround.scenarios.tables import Numbers, aligned, kept, spooled
from unround.scenarios.trying import EXACT, SIMULATED, Auditing, exposed, score_of
from unround.scenarios.world import Draw
from unround.shown import Shown
from unround.structure import JudgedFigure, PlanFile, PlannedFigure, find_structure
from unround.tables.spool import Stage

STEPS = tuple(Fraction(step) for step in ("0.1", "0.2", "0.5", "1", "2", "5", "10"))
"""Steps to try, from fine to coarse, in points: hundredths of the universe."""


@dataclass(frozen=True, slots=True)
class ChosenRate:
    """A rate, and what the data say of it where it is printed; None where it is only proposed."""

    figure: Figure
    judged: JudgedFigure | None

    @property
    def name(self) -> str:
        """The key of its column, or "numerator of universe"."""
        return self.figure.name


def choose_rates(release: Release, plan_file: PlanFile | None, wanted: Sequence[str]) -> tuple[ChosenRate, ...]:
    """Return the rates that are asked about, each ratio once.

    Raises `InputError` where a rate is not there, or nothing can be inferred from it.
    """
    judged = {one.figure.name: one for one in find_structure(release, rules=plan_file).figures}
    rates = {name: one for name, one in judged.items() if one.figure.kind is FigureKind.RATE}
    found: list[ChosenRate] = []
    for name in wanted:
        if name == EVERY:
            evidence = [one for one in rates.values() if one.is_evidence]
            if not evidence:
                raise InputError(
                    f"no rate of {release.source} is computed from true counts, as far as the data show. Name rates, by the "
                    "keys of their columns, or as “numerator of universe” (unround check lists columns)."
                )
            found += [ChosenRate(one.figure, one) for one in evidence]
        elif name in rates:
            found.append(ChosenRate(_usable(rates[name].figure, release), rates[name]))
        else:
            found.append(ChosenRate(proposed_rate(name, release.index, release.source), None))
    once: dict[tuple[str, str], ChosenRate] = {}
    for one in found:
        once.setdefault((one.figure.numerator, one.figure.universe), one)
    return tuple(once.values())


def _usable(figure: Figure, release: Release) -> Figure:
    if figure.sampled:
        raise InputError(f"the rate {figure.name!r} is of a sample, whose estimates are no whole numbers.")
    if not figure.is_complete:
        raise InputError(f"{release.source} does not have both counts that the rate {figure.name!r} is of.")
    return figure


def printing(release: Release, rates: Sequence[ChosenRate], points: Fraction, true: Numbers | None) -> Release:
    """Return a release that prints these rates, and no other figures, on one step."""
    steps = [points * one.figure.per / 100 for one in rates]

    def read(progress: Progress) -> Iterable[Block]:
        for block in release.blocks(progress):
            yield Block(block.areas, block.counts, _printed(release, rates, steps, block, true))

    figures = tuple(replace(one.figure, grid=Grid.of(step), declared=True) for one, step in zip(rates, steps, strict=True))
    return replace(release, read=read, figures=figures)


def error_of(release: Release, rates: Sequence[ChosenRate], true: Numbers) -> float | None:
    """Return how far the figures of a release, from `printing`, are from the true rates on average, in points."""
    error = RateError()
    for block in release.blocks():
        assert block.figures is not None
        for at, one in enumerate(rates):
            counts = true.of_areas(block.areas, (one.figure.numerator, one.figure.universe))
            error.add(block.figures[:, at], counts[:, 0], counts[:, 1], one.figure.per)
    return error.mean


def _printed(
    release: Release, rates: Sequence[ChosenRate], steps: Sequence[Fraction], block: Block, true: Numbers | None
) -> FigureValues:
    index = release.index
    columns: list[NDArray[np.int64]] = []
    for one, step in zip(rates, steps, strict=True):
        keys = (one.figure.numerator, one.figure.universe)
        published = block.counts[:, [index[key] for key in keys]]
        counts = published if true is None else true.of_areas(block.areas, keys)
        values = rate_values(counts[:, 0], counts[:, 1], one.figure.per, step)
        columns.append(np.where((published > ABSENT).all(axis=1), values, FIGURE_ABSENT))
    return np.stack(columns, axis=1)


def as_printed(release: Release, rates: Sequence[ChosenRate]) -> Release:
    """Return a release with those of its own figures that are asked about, as they are printed, and no others."""
    place = {figure.name: at for at, figure in enumerate(release.figures)}
    own = [one for one in rates if one.judged is not None]
    chosen = [place[one.name] for one in own]

    def read(progress: Progress) -> Iterable[Block]:
        for block in release.blocks(progress):
            assert block.figures is not None
            yield Block(block.areas, block.counts, np.ascontiguousarray(block.figures[:, chosen]))

    return replace(release, read=read, figures=tuple(one.figure for one in own))


def using(plan_file: PlanFile | None, names: Sequence[str]) -> PlanFile:
    """Return a plan that uses these figures whatever the data suggest, and leaves verdicts on others to the data."""
    figures = (PlannedFigure(tuple(names), True, None, 0, certain=True),) if names else ()
    return replace(plan_file or PlanFile(), figures=figures)


TRUE_COUNTS, PUBLISHED_COUNTS = "true", "published"
"""What rates are computed from."""


@dataclass(frozen=True, eq=False)
class RateSteps(Shown):
    """How coarse rates must be to add nothing.

    - `told`: Everything, as plain data; docs/whatif.md tells what each field means.
    """

    told: dict[str, Any] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return self.told


@dataclass(frozen=True, eq=False)
class _Ground:
    """What steps are tried on: a release, the true counts behind it, its audit without rates, and how it stands for all."""

    release: Release
    true: Numbers
    alone: AuditFolder
    method: str
    scale: float = 1.0
    drawn: Draw | None = None


def rate_steps(
    release: Release,
    wanted: Sequence[str],
    options: AuditOptions | None = None,
    *,
    plan_file: PlanFile | None = None,
    truth: Release | None = None,
    seed: int = 0,
    progress: Stage = lambda *_: None,
    command: str = "",
) -> RateSteps:
    """Say how coarse rates must be printed, if they are computed from true counts, to add no claim.

    Arguments are documented with `unround.whatif`; `wanted` with `choose_rates`.
    """
    if seed < 0:
        raise InputError(f"a seed must be a whole number of 0 or more, not {seed}.")
    if not wanted:
        raise InputError("no rate is named: name some, or “all”.")
    # Claims that an audit holds back, because the data look odd, would read as if rates added none.
    options = replace(options or AuditOptions(), doubtful=True, figures=VERIFIED)
    with scratch_folder("whatif") as work:
        # 1. What the release gives away without rates, and with those that it prints.
        progress("Reading", 0, 1)
        rates = choose_rates(release, plan_file, wanted)
        numbers = Numbers.of(release, spooled(release, work / "release.bin"))
        plain = kept(release, numbers)
        known, notes = None, list[str]()
        if truth is not None:
            truth, known = _true(truth, plain, numbers, rates, work)
        progress("Reading", 1, 1)
        auditing = Auditing(work, options, using(plan_file, ()), truth, known, progress, command)
        alone = auditing.audit(plain, work / "alone", "Without rates")
        printed = _as_it_is(auditing, plan_file, release, rates, alone)
        # 2. The true counts that rates are computed from: those given, or plausible ones.
        if truth is not None and known is not None:
            how = published_by(alone)
            notes += check_fit(plain, numbers, lambda at: how.get(plain.columns[at].key), known, truth.source)
            ground = _Ground(plain, known, alone, EXACT)
        else:
            ground = _plausible(plain, numbers, alone, auditing, seed)
        # 3. One step after the other; and the finest, from the published counts.
        rows = []
        for at, step in enumerate(STEPS):
            progress("Steps", at, len(STEPS) + 1)
            rows.append(_tried(auditing, plan_file, ground, rates, step, TRUE_COUNTS))
        progress("Steps", len(STEPS), len(STEPS) + 1)
        rounded = _tried(auditing, plan_file, ground, rates, STEPS[0], PUBLISHED_COUNTS)
        progress("Steps", len(STEPS) + 1, len(STEPS) + 1)
    return RateSteps(
        {
            "unround": __version__,
            "command": command,
            "release": release.source,
            "truth": None if truth is None else truth.source,
            "seed": seed,
            "threshold": options.threshold,
            "areas": numbers.spool.rows,
            "rates": [_rate_told(one) for one in rates],
            "method": ground.method,
            "drawn": None if ground.drawn is None else {"areas": ground.drawn.areas, "times": ground.drawn.times},
            "as_printed": printed,
            "steps": rows,
            "from_published_counts": rounded,
            "adds_nothing_from": adds_nothing_from(rows),
            "notes": notes,
        }
    )


def adds_nothing_from(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the finest step that adds no claim, and after which no coarser one adds any; None where all add some.

    Examples
    --------
    >>> none, some = {"adds_nothing": True}, {"adds_nothing": False}
    >>> adds_nothing_from([{"step": 1, **none}, {"step": 2, **some}, {"step": 5, **none}])
    5
    >>> adds_nothing_from([{"step": 1, **none}, {"step": 2, **some}]) is None
    True
    """
    found = None
    for row in reversed(rows):
        if not row["adds_nothing"]:
            break
        found = row["step"]
    return found


def _true(
    truth: Release, release: Release, numbers: Numbers, rates: Sequence[ChosenRate], work: Path
) -> tuple[Release, Numbers]:
    """Read true counts under the names of the release; complain where a rate lacks one."""
    first = spooled(truth, work / "truth.bin")
    named = aligned(kept(truth, Numbers.of(truth, first)), first.areas, release, numbers.spool.areas)
    found = Numbers.of(named, spooled(named, work / "truth.aligned"))
    missing = [key for one in rates for key in one.figure.counts if key not in found.columns]
    if missing:
        raise InputError(
            f"the truth in {truth.source} lacks counts that rates are computed from ({', '.join(dict.fromkeys(missing))}): "
            "give the true counts of all columns, under the same names, or leave out --truth."
        )
    return kept(named, found), found


def _plausible(release: Release, numbers: Numbers, alone: AuditFolder, auditing: Auditing, seed: int) -> _Ground:
    """Draw true counts from the estimates of an audit, and publish the release anew from them."""
    try:
        made = Draw.of(alone, release.areas, seed, auditing.work / "world.bin")
    except InputError as problem:
        raise InputError(f"this needs --truth, because plausible true counts cannot be drawn: {problem}") from problem
    keys, how = [column.key for column in release.columns], published_by(alone)
    true = made.under(keys, keys)
    anew = made.published(release, numbers, true, lambda at: how.get(release.columns[at].key), seed + 2)
    before = auditing.audit(anew, auditing.work / "world", "Simulated, without rates", score=False)
    return _Ground(anew, true, before, SIMULATED, made.scale, made)


def _as_it_is(
    auditing: Auditing, plan_file: PlanFile | None, release: Release, rates: Sequence[ChosenRate], alone: AuditFolder
) -> dict[str, Any] | None:
    """Return what the rates add as the release prints them; None where it prints none of them."""
    evidence = [one.name for one in rates if one.judged is not None and one.judged.is_evidence]
    if not any(one.judged is not None for one in rates):
        return None
    audits = replace(auditing, plan_file=using(plan_file, evidence))
    found, summary = audits.compared(alone.path, as_printed(release, rates), "As printed")
    return exposed(found) | ({"truth": score_of(summary)} if "truth" in summary else {})


def _tried(
    auditing: Auditing,
    plan_file: PlanFile | None,
    ground: _Ground,
    rates: Sequence[ChosenRate],
    step: Fraction,
    source: str,
) -> dict[str, Any]:
    """Return what rates add on one step, and how far they are from the true ones."""
    from_true = source == TRUE_COUNTS
    made = printing(ground.release, rates, step, ground.true if from_true else None)
    # Rates from true counts are used whatever the data suggest; of those from published counts, the data must tell it.
    audits = replace(auditing, plan_file=using(plan_file, [one.name for one in rates] if from_true else []))
    name = f"Steps of {float(step):g}" if from_true else "From published counts"
    found, summary = audits.compared(ground.alone.path, made, name, score=ground.method == EXACT)
    row = {
        "computed_from": source,
        "step": float(step),
        # Not by the scaled numbers, of which few become none.
        "adds_nothing": not any(found.newly().values()),
        **exposed(found, ground.scale),
        "figures_used": len(summary["figures_used"]),
        "mean_error": error_of(made, rates, ground.true),
    }
    return row | ({"truth": score_of(summary)} if "truth" in summary else {})


def _rate_told(one: ChosenRate) -> dict[str, Any]:
    judged = one.judged
    return {
        "name": one.name,
        "label": one.figure.label,
        "numerator": one.figure.numerator,
        "universe": one.figure.universe,
        "verdict": None if judged is None else judged.verdict,
        "step": None if judged is None or judged.step is None else float(judged.step * 100 / one.figure.per),
    }
