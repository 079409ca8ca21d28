"""What a description says of the columns of a release, however it was read: mechanisms, sums, repeats, figures, keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from unround.figures import Figure
from unround.release import Column, Decisions, Entry, Proposal, Release, What
from unround.structure.evidence import INFERRED, LABELS
from unround.tables.description import BY_KEY, CHARACTERISTIC, Description, SumRule, near


def decided(release: Release, description: Description, sums: Sequence[SumRule] | None = None) -> Release:
    """Return a release with what a description says of its columns.

    `sums` are those of the description's axes, which are known where it was read by them.

    Raises `InputError` where the description names columns that are not there.
    """
    listed = description.sums if sums is None else [*sums, *(rule for rule in description.sums if rule.axis == BY_KEY)]
    columns = _Columns(release, description)
    notes: list[str] = []
    proposals = [proposal for rule in listed for proposal in columns.proposals(rule, notes)]
    for repeat in description.repeats:
        first, *others = columns.places(repeat.columns)
        proposals += [Proposal(other, (first,), "file", use=repeat.use, alike=repeat.alike) for other in others]
    ruled = columns.ruled()
    release.notes.extend(notes)
    return replace(
        release,
        columns=ruled,
        proposals=tuple(dict.fromkeys((*proposals, *release.proposals))),
        figures=_figures(release, description) if not description.axes else release.figures,
        account=(*release.account, *left_out(description)) if not description.axes else release.account,
        obstacle="" if proposals or ruled != release.columns else release.obstacle,
        decisions=Decisions(
            figures={name: use for name, (use, _) in description.use_figures.items()},
            keys={**release.decisions.keys, **description.keys},
            matches=release.decisions.matches or description.matches,
            where=description.where,
        ),
        described={**release.described, **_placed(release, description)},
    )


def _placed(release: Release, description: Description) -> dict[str, Any]:
    """Return what was given, with files as they are found from anywhere."""
    given = dict(description.given)
    if "axes" in given:
        files = {axis.name: {"hierarchy": str(axis.hierarchy)} for axis in description.axes if axis.hierarchy is not None}
        axes = given["axes"]
        plain = axes.items() if isinstance(axes, Mapping) else ((name, {}) for name in axes)
        given["axes"] = {
            name: {**({"column": axis} if isinstance(axis, str) else axis), **files.get(name, {})} for name, axis in plain
        }
        given["data"] = release.source
    return given


def left_out(description: Description) -> Iterable[Entry]:
    """Return an entry for everything that the user decided not to use; without a reason it stays open."""
    dropped = {f"sum {rule.shown}": rule.because for rule in _sums(description) if rule.use is False}
    dropped |= {f"figure {name}": because for name, (use, because) in description.use_figures.items() if not use}
    for place, because in dropped.items():
        if because:
            yield Entry(place, What.NOTE, f"left out by {description.where}: {because}", used=False)
        else:
            why = f"left out by {description.where}, which does not say why"
            yield Entry(place, What.UNKNOWN, why, used=False, settle='because = "…" below use = false')


def _sums(description: Description) -> list[SumRule]:
    return [*(rule for axis in description.axes for rule in axis.sums), *description.sums]


class _Columns:
    """The columns of a release, by what a description calls them."""

    def __init__(self, release: Release, description: Description) -> None:
        self.columns, self.description = release.columns, description
        self.index = {column.key: at for at, column in enumerate(release.columns)}
        self.axes = release.axes

    def places(self, keys: Iterable[str]) -> list[int]:
        """Return columns by their keys."""
        for key in keys:
            if key not in self.index:
                raise self.description.error(
                    f"there is no column {key!r} in this release.{near(key, self.index) or ' `unround check` lists them.'}",
                    key,
                )
        return [self.index[key] for key in keys]

    def axis(self, name: str) -> int | None:
        """Return the place of an axis of columns; that of characteristics goes by two names."""
        names = CHARACTERISTIC if name in CHARACTERISTIC else (name,)
        return next((place for place, axis in enumerate(self.axes) if axis in names), None)

    def chosen(self, where: Iterable[tuple[str, Sequence[str]]]) -> list[tuple[int, frozenset[str]]]:
        """Return the axes and codes that a rule is about, as places; every code must be there."""
        found = []
        for name, codes in where:
            place = self.axis(name)
            if place is None:
                raise self.description.error(
                    f"{name!r} is no axis of the columns of this release, which are {', '.join(self.axes)}.", name
                )
            known = dict.fromkeys(column.codes[place] for column in self.columns)
            for code in codes:
                if code not in known:
                    raise self.description.error(f"there is no {name} {code!r} in this release.{near(code, known)}", code)
            found.append((place, frozenset(codes)))
        return found

    def ruled(self) -> tuple[Column, ...]:
        """Return the columns with the mechanisms that the description says they have; the last rule counts."""
        description, columns = self.description, list(self.columns)
        if description.default is not None:
            columns = [replace(column, mechanism=description.default, basis="") for column in columns]
        for rule in description.rules:
            if description.is_of_cells(rule):
                continue
            if BY_KEY in rule.where:
                meant: Iterable[int] = self.places(rule.where[BY_KEY])
            else:
                chosen = self.chosen(rule.where.items())
                meant = [
                    at for at, column in enumerate(columns) if all(column.codes[place] in codes for place, codes in chosen)
                ]
            basis = INFERRED if rule.inferred else ""
            for at in meant:
                columns[at] = replace(columns[at], mechanism=rule.mechanism, documented=(), basis=basis)
        return tuple(columns)

    def proposals(self, rule: SumRule, notes: list[str]) -> Iterable[Proposal]:
        """Spread a sum over all combinations of the other axes' codes at which its total and parts are there."""
        origin = LABELS if self.description.inferred else "file"
        if rule.axis == BY_KEY:
            total, *parts = self.places((rule.total, *rule.parts))
            return [Proposal(total, tuple(parts), origin, use=rule.use)]
        if not self.description.axes:
            self.chosen([(rule.axis, (rule.total, *rule.parts))])
        chosen, along = self.chosen(rule.where), self.axis(rule.axis)
        if along is None:  # an axis of rows
            return []
        groups: dict[tuple[str, ...], dict[str, int]] = {}
        for at, column in enumerate(self.columns):
            if all(column.codes[place] in codes for place, codes in chosen):
                others = column.codes[:along] + column.codes[along + 1 :]
                groups.setdefault(others, {})[column.codes[along]] = at
        found, broken = list[Proposal](), list[str]()
        for others, group in groups.items():
            there = [group[part] for part in rule.parts if part in group]
            if rule.total in group and len(there) == len(rule.parts):
                found.append(Proposal(group[rule.total], tuple(there), origin, use=rule.use))
            elif rule.total in group and there:
                broken.append("/".join(others) or "all")
        if broken:
            notes.append(
                f"The sum {rule.shown} is skipped at {', '.join(broken[:5])}: some of its parts are not in the file."
            )
        elif not found:
            notes.append(f"The sum {rule.shown} is skipped: its codes never occur together.")
        return found


def _figures(release: Release, description: Description) -> tuple[Figure, ...]:
    """Return the figures of a release of a known format, with what the description says they are of."""
    known: Mapping[str, Figure] = {figure.name: figure for figure in release.figures}
    for name in (*description.use_figures, *(figure.name for figure in description.figures)):
        if name not in known:
            raise description.error(f"there is no rate, mean or median {name!r} in the release.", name)
    for figure in description.figures:
        gone = next((key for key in (*figure.counts, figure.numerator) if key and key not in release.index), None)
        if gone is not None:
            raise description.error(f"there is no count {gone!r} in the release.", gone)
    said = {figure.name: replace(figure, label=known[figure.name].label) for figure in description.figures}
    return tuple(said.get(figure.name, figure) for figure in release.figures)
