"""How coarse rates must be to add nothing: printed on one step after the other, and audited each time.

Rates that a release prints, or may print: chosen by name, and worked out of true or of published counts on any step.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround._version import __version__
from unround.differences import Diff, diff
from unround.errors import InputError
from unround.figures import Figure, FigureGrid, FigureKind
from unround.job import AuditFolder, audit
from unround.options import VERIFIED, AuditOptions
from unround.output import scratch_folder
from unround.release import ABSENT, FIGURE_ABSENT, FIGURE_UNIT, Block, Counts, FigureValues, Progress, Release
from unround.reviews.repairs import drawn
from unround.reviews.table import ReviewedTable
from unround.reviews.together import Held, aligned
from unround.reviews.trying import EXACT, check_fit, plausible_worlds
from unround.score.summary import SIZES
from unround.shown import Shown
from unround.structure import JudgedFigure, find_structure
from unround.tables.spool import Stage

EVERY = "all"
OF = " of "
"""All rates; and what stands between numerator and universe of a rate that no column has."""

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


def choose_rates(release: Release, wanted: Sequence[str]) -> tuple[ChosenRate, ...]:
    """Return the rates that are asked about, each ratio once.

    Raises `InputError` where a rate is not there, or nothing can be inferred from it.
    """
    judged = {verdict.figure.name: verdict for verdict in find_structure(release).figures}
    rates = {name: verdict for name, verdict in judged.items() if verdict.figure.kind is FigureKind.RATE}
    chosen: list[ChosenRate] = []
    for name in wanted:
        if name == EVERY:
            evidence = [verdict for verdict in rates.values() if verdict.is_evidence]
            if not evidence:
                raise InputError(
                    f"no rate of {release.source} is computed from true counts, as far as the data show. Name rates, by the "
                    "keys of their columns, or as “numerator of universe” (unround check lists columns)."
                )
            chosen += [ChosenRate(verdict.figure, verdict) for verdict in evidence]
        elif name in rates:
            chosen.append(ChosenRate(_usable(rates[name].figure, release), rates[name]))
        else:
            chosen.append(ChosenRate(_proposed(name, release), None))
    once: dict[tuple[str, str], ChosenRate] = {}
    for verdict in chosen:
        once.setdefault((verdict.figure.numerator, verdict.figure.universe), verdict)
    return tuple(once.values())


def _proposed(name: str, release: Release) -> Figure:
    """Return the rate that is called "numerator of universe"."""
    numerator, of, universe = (part.strip() for part in name.partition(OF))
    if not of:
        raise InputError(
            f"there is no rate {name!r} in {release.source}: name the column of a rate, or one that is not printed yet by "
            "its counts, as “numerator of universe”."
        )
    for key in (numerator, universe):
        if key not in release.index:
            raise InputError(f"there is no count {key!r} in {release.source} (unround check lists columns).")
    if numerator == universe:
        raise InputError(f"the rate {name!r} has the same numerator and universe, so it is always 100%.")
    return Figure(f"{numerator}{OF}{universe}", FigureKind.RATE, universe, numerator)


def _usable(figure: Figure, release: Release) -> Figure:
    if figure.sampled:
        raise InputError(f"the rate {figure.name!r} is of a sample, whose estimates are not whole numbers.")
    if not figure.is_complete:
        raise InputError(f"{release.source} does not have both counts that the rate {figure.name!r} is of.")
    return figure


def printing(release: Release, rates: Sequence[ChosenRate], points: Fraction, true: Held | None) -> Release:
    """Return a release that prints these rates, and no other figures, on one step."""
    steps = [points * rate.figure.per / 100 for rate in rates]

    def read(progress: Progress) -> Iterable[Block]:
        for block in release.blocks(progress):
            yield Block(block.areas, block.counts, _printed(release, rates, steps, block, true))

    figures = tuple(
        replace(rate.figure, grid=FigureGrid.of(step), declared=True) for rate, step in zip(rates, steps, strict=True)
    )
    return replace(release, read=read, figures=figures)


def rate_values(numerator: Counts, universe: Counts, per: Fraction, step: Fraction) -> FigureValues:
    """Return rates, rounded to the nearest step, halves up; at most a whole, absent where a count is, or nobody is meant.

    >>> rate_values(np.array([62], np.int32), np.array([499], np.int32), Fraction(100), Fraction(1, 10)).tolist()
    [124000]
    """
    there = (universe > 0) & (numerator >= 0)
    top = np.where(there, numerator, 0).astype(np.int64)
    whole = np.where(there, universe, 1).astype(np.int64)
    units = int(step / FIGURE_UNIT)
    upper = 2 * np.minimum(top, whole) * per.numerator * FIGURE_UNIT.denominator
    lower = whole * per.denominator * units
    return np.where(there, (upper + lower) // (2 * lower) * units, FIGURE_ABSENT)


def error_of(release: Release, rates: Sequence[ChosenRate], true: Held) -> float | None:
    """Return how far the figures of a release, from `printing`, are from the true rates on average, in points."""
    off = list[NDArray[np.float64]]()
    for block in release.blocks():
        assert block.figures is not None
        for values, rate in zip(block.figures.T, rates, strict=True):
            numerator, universe = true.of_areas(block.areas, (rate.figure.numerator, rate.figure.universe)).T
            known = (values != FIGURE_ABSENT) & (numerator > ABSENT) & (universe > 0)
            shares = np.minimum(100.0 * numerator[known] / universe[known], 100.0)
            off.append(np.abs(values[known] * float(FIGURE_UNIT * 100 / rate.figure.per) - shares))
    errors = np.concatenate(off)
    return float(errors.mean()) if errors.size else None


def _printed(
    release: Release, rates: Sequence[ChosenRate], steps: Sequence[Fraction], block: Block, true: Held | None
) -> FigureValues:
    index = release.index
    columns: list[NDArray[np.int64]] = []
    for rate, step in zip(rates, steps, strict=True):
        keys = (rate.figure.numerator, rate.figure.universe)
        published = block.counts[:, [index[key] for key in keys]]
        counts = published if true is None else true.of_areas(block.areas, keys)
        values = rate_values(counts[:, 0], counts[:, 1], rate.figure.per, step)
        columns.append(np.where((published > ABSENT).all(axis=1), values, FIGURE_ABSENT))
    return np.stack(columns, axis=1)


def as_printed(release: Release, rates: Sequence[ChosenRate]) -> Release:
    """Return a release with those of its own figures that are asked about, as they are printed, and no others."""
    place = {figure.name: at for at, figure in enumerate(release.figures)}
    listed = [rate for rate in rates if rate.judged is not None]
    chosen = [place[rate.name] for rate in listed]

    def read(progress: Progress) -> Iterable[Block]:
        for block in release.blocks(progress):
            assert block.figures is not None
            yield Block(block.areas, block.counts, np.ascontiguousarray(block.figures[:, chosen]))

    return replace(release, read=read, figures=tuple(rate.figure for rate in listed))


TRUE_COUNTS, PUBLISHED_COUNTS = "true", "published"
"""What rates are computed from."""

SIMULATED = "simulated"
"""How steps were tried, where not on the true counts: on counts that were drawn to be plausible."""

MOST_AREAS, ENOUGH_AREAS = 2000, 500
"""Areas for which plausible counts are drawn: some where there are more, each several times where there are fewer."""


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
    true: Held
    alone: AuditFolder
    method: str
    areas: int = 0
    times: int = 1
    scale: float = 1.0


@dataclass(frozen=True)
class _Auditing:
    """Audits of a release with some rates or none, each compared with the audit without."""

    work: Path
    options: AuditOptions
    truth: Held | None
    progress: Stage
    command: str

    def audit(self, release: Release, name: str, figures: Sequence[str] = (), *, score: bool = True) -> AuditFolder:
        """Audit a release; it uses these figures whatever the data suggest, and leaves verdicts on others to the data."""

        def stage(what: str, done: int, total: int) -> None:
            self.progress(f"{name}: {what[:1].lower()}{what[1:]}", done, total)

        decisions = replace(release.decisions, figures={}, certain=frozenset(figures))
        truth = self.truth.under(release) if self.truth is not None and score else None
        folder = self.work / name.replace(" ", "-")
        return audit(
            replace(release, decisions=decisions), folder, self.options, truth=truth, progress=stage, command=self.command
        )

    def compared(
        self, alone: AuditFolder, release: Release, name: str, figures: Sequence[str], *, score: bool = True
    ) -> tuple[Diff, dict[str, Any]]:
        """Audit a release, and compare; return that, and the summary."""
        folder = self.audit(release, name, figures, score=score)
        news = diff(alone.path, folder.path), folder.summary
        shutil.rmtree(folder.path)
        return news


def rate_steps(
    release: Release,
    wanted: Sequence[str],
    options: AuditOptions | None = None,
    *,
    truth: Release | None = None,
    seed: int = 0,
    progress: Stage = lambda *_: None,
    command: str = "",
) -> RateSteps:
    """Say how coarse rates must be printed, if they are computed from true counts, to add no claim.

    Arguments are documented with `unround.rate_steps`; `wanted` with `choose_rates`.
    """
    if seed < 0:
        raise InputError(f"a seed must be a whole number of 0 or more, not {seed}.")
    if not wanted:
        raise InputError("no rate is named: name some, or “all”.")
    # Claims that an audit holds back, because the data look odd, would read as if rates added none.
    options = replace(options or AuditOptions(), doubtful=True, figures=VERIFIED)
    with scratch_folder("rates") as work:
        # 1. What the release gives away without rates, and with those that it prints.
        rates = choose_rates(release, wanted)
        plain = Held.of(release)
        known = None if truth is None else _true(truth, plain, rates)
        auditing = _Auditing(work, options, known, progress, command)
        alone = auditing.audit(plain.release, "Without rates")
        printed = _as_it_is(auditing, release, rates, alone)
        # 2. The true counts that rates are computed from: those given, or plausible ones.
        notes: list[str] = []
        if known is not None:
            table = ReviewedTable.of_audit(alone)
            keys = [column.key for column in table.columns]
            notes += check_fit(table, known.of_areas(table.areas, keys), known.release.source)
            ground = _Ground(plain.release, known, alone, EXACT)
        else:
            ground = _plausible(plain, alone, auditing, seed)
        # 3. One step after the other; and the finest, from the published counts.
        rows = []
        for at, step in enumerate(STEPS):
            progress("Steps", at, len(STEPS) + 1)
            rows.append(_tried(auditing, ground, rates, step, TRUE_COUNTS))
        progress("Steps", len(STEPS), len(STEPS) + 1)
        rounded = _tried(auditing, ground, rates, STEPS[0], PUBLISHED_COUNTS)
        progress("Steps", len(STEPS) + 1, len(STEPS) + 1)
    return RateSteps(
        {
            "unround": __version__,
            "command": command,
            "release": release.source,
            "truth": None if truth is None else truth.source,
            "seed": seed,
            "threshold": options.threshold,
            "areas": plain.areas.height,
            "rates": [_rate_told(rate) for rate in rates],
            "method": ground.method,
            "drawn": None if ground.method == EXACT else {"areas": ground.areas, "times": ground.times},
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
    finest = None
    for row in reversed(rows):
        if not row["adds_nothing"]:
            break
        finest = row["step"]
    return finest


def _true(truth: Release, release: Held, rates: Sequence[ChosenRate]) -> Held:
    """Read true counts under the names of the release; complain where a rate lacks one."""
    held = aligned(truth, release)
    missing = [key for rate in rates for key in rate.figure.counts if key not in held.release.index]
    if missing:
        raise InputError(
            f"the truth in {truth.source} lacks counts that rates are computed from ({', '.join(dict.fromkeys(missing))}): "
            "give the true counts of all columns, under the same names, or leave out --truth."
        )
    return held


def _plausible(release: Held, alone: AuditFolder, auditing: _Auditing, seed: int) -> _Ground:
    """Draw plausible true counts given everything that is published, and publish the release anew from them."""
    import polars as pl

    table, rng = ReviewedTable.of_audit(alone), np.random.default_rng([seed, 7])
    every = len(table.counts)
    rows = np.sort(rng.choice(every, size=min(MOST_AREAS, every), replace=False))
    times = -(-ENOUGH_AREAS // len(rows))
    table = replace(table, nested=None).of_areas(rows)
    try:
        worlds = plausible_worlds(table, alone.prior, alone.keys, times, seed).counts
    except InputError as problem:
        raise InputError(f"this needs --truth, because plausible true counts cannot be drawn: {problem}") from problem
    keys = [column.key for column in release.release.columns]
    place = {column.key: at for at, column in enumerate(table.columns)}
    place |= {copy: place[first] for copy, first in alone.schema["alias"].items() if first in place}
    used = [at for at, key in enumerate(keys) if key in place]
    published, axis = release.of_areas(table.areas, keys), release.release.areas[0]
    areas, counts, true = list[pl.DataFrame](), list[NDArray[np.int32]](), list[NDArray[np.int32]]()
    for time in range(times):
        world = worlds[time % len(worlds)]
        anew = [drawn(how, world[:, c], table.counts[:, c] > ABSENT, rng) for c, how in enumerate(table.mechanisms)]
        shown, behind = published.copy(), published.copy()
        for at in used:
            there = published[:, at] > ABSENT
            shown[:, at] = np.where(there, anew[place[keys[at]]], published[:, at])
            behind[:, at] = world[:, place[keys[at]]]
        # Each time they are areas of their own, which lie inside no other.
        named = table.areas.with_columns((pl.lit(f"{time + 1}~") + pl.col(axis).cast(pl.String)).alias(axis))
        areas.append(named.with_columns(pl.lit(None, pl.String).alias("parent")) if "parent" in named.columns else named)
        counts.append(shown)
        true.append(behind)
    frame = pl.concat(areas)
    made = Held.made(release.release, frame, np.concatenate(counts)).release
    before = auditing.audit(made, "Simulated, without rates", score=False)
    behind_all = Held.made(release.release, frame, np.concatenate(true))
    return _Ground(made, behind_all, before, SIMULATED, len(rows), times, every / (len(rows) * times))


def _as_it_is(
    auditing: _Auditing, release: Release, rates: Sequence[ChosenRate], alone: AuditFolder
) -> dict[str, Any] | None:
    """Return what the rates add as the release prints them; None where it prints none of them."""
    if not any(rate.judged is not None for rate in rates):
        return None
    evidence = [rate.name for rate in rates if rate.judged is not None and rate.judged.is_evidence]
    news, summary = auditing.compared(alone, as_printed(release, rates), "As printed", evidence)
    return _added(news) | _score(summary)


def _tried(auditing: _Auditing, ground: _Ground, rates: Sequence[ChosenRate], step: Fraction, source: str) -> dict[str, Any]:
    """Return what rates add on one step, and how far they are from the true ones."""
    from_true = source == TRUE_COUNTS
    made = printing(ground.release, rates, step, ground.true if from_true else None)
    # Rates from true counts are used whatever the data suggest; of those from published counts, the data must tell it.
    figures = [rate.name for rate in rates] if from_true else []
    name = f"Steps of {float(step):g}" if from_true else "From published counts"
    news, summary = auditing.compared(ground.alone, made, name, figures, score=ground.method == EXACT)
    return {
        "computed_from": source,
        "step": float(step),
        # Not by the scaled numbers: a few would become none.
        "adds_nothing": not any(news.newly().values()),
        **_added(news, ground.scale),
        "figures_used": len(summary["figures_used"]),
        "mean_error": error_of(made, rates, ground.true),
        **_score(summary),
    }


def _added(news: Diff, scale: float = 1.0) -> dict[str, Any]:
    """Return what is newly claimed; of simulated areas, scaled to as many as there are."""
    import polars as pl

    small = pl.col("class") == [name for _, name in SIZES].index("1-2")
    kinds = {"newly": news.newly(), "newly_small": news.newly(small)}
    return {name: {kind: round(scale * number) for kind, number in newly.items()} for name, newly in kinds.items()}


def _score(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return how many claims could be checked against the truth, and how many were wrong; nothing without a truth."""
    return {"truth": {name: summary["truth"][name] for name in ("checked", "wrong")}} if "truth" in summary else {}


def _rate_told(rate: ChosenRate) -> dict[str, Any]:
    judged = rate.judged
    return {
        "name": rate.name,
        "label": rate.figure.label,
        "numerator": rate.figure.numerator,
        "universe": rate.figure.universe,
        "verdict": None if judged is None else judged.verdict,
        "step": None if judged is None or judged.step is None else float(judged.step * 100 / rate.figure.per),
    }
