"""The audit folder: what lies in it, how it is read again, and how areas and counts are found in it.

Its files, and those that a stopped run left for the next, are as they were left, or it is said which are not.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from unround.audits.bounds import FILE as NESTED
from unround.audits.bounds import NestedAreas
from unround.audits.keys import Keys
from unround.audits.model import Conditions, Model, ModelFigure, Twins
from unround.errors import InputError, UnroundError
from unround.job import shapes
from unround.mechanisms import mechanism
from unround.output import HALF, NotWritten, not_stopped, write_json, write_whole
from unround.release import Column, Counts, FigureValues, Release, adjustable
from unround.score.summary import CLAIMS
from unround.small_files import misfit, plain_json, sha256_of
from unround.system import PublishedFigure

if TYPE_CHECKING:
    import polars as pl

    from unround.audits.block import Auditor
    from unround.prior import Prior

SUMMARY = "summary.json"
RUN = "run.json"
"""How long the audit took, when and where: all that differs from one run to the next. It has no hash."""

FILES, SEAL = "files", "seal"
"""In the summary: the hash of every other file, and that of the summary without this line."""

HASHES = "hashes.json"
"""The hashes of the files beside it, in folders that have no summary."""

_WORKING = "."
"""Begins the names of folders that hold work in progress."""


def seal(folder: Path, names: tuple[str, ...]) -> None:
    """Write the hashes of an audit's files into its summary."""
    told = plain_json(folder / SUMMARY)
    told.pop(SEAL, None)
    paths = [path for name in names if name not in (SUMMARY, RUN) for path in _files(folder / name)]
    told[FILES] = {path.relative_to(folder).as_posix(): sha256_of(path) for path in sorted(paths)}
    write_json(folder / SUMMARY, {**told, SEAL: seal_of(told)})


def write_hashes(folder: Path) -> None:
    """Write the hashes of all files of a folder into a file beside them."""
    write_json(folder / HASHES, hashes_of(folder))


def hashes_of(folder: Path, leave_out: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the hash of every file of a folder, by name; but of those that begin with certain names."""
    names = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    return {name: sha256_of(path) for name, path in sorted(names.items()) if not name.startswith((HASHES, *leave_out))}


def is_whole(folder: Path) -> bool:
    """Whether a folder holds what `write_hashes` found in it."""
    try:
        told = plain_json(folder / HASHES)
    except (OSError, ValueError):
        return False
    return isinstance(told, dict) and first_damaged(folder, told) is None


def first_damaged(folder: Path, hashes: Mapping[str, str]) -> str | None:
    """Return the first file that is missing or was changed, if any."""
    for name, expected in hashes.items():
        try:
            if sha256_of(folder / name) != expected:
                return name
        except OSError:
            return name
    return None


def seal_of(summary: Mapping[str, Any]) -> str:
    """Return the hash of what a summary says, however it is laid out."""
    said = {key: value for key, value in summary.items() if key != SEAL}
    return hashlib.sha256(json.dumps(said, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def _files(path: Path) -> list[Path]:
    if os.path.isdir(path):
        return [one for one in path.rglob("*") if one.is_file() and not one.name.startswith(_WORKING)]
    return [path] if os.path.isfile(path) else []


FINDINGS = "findings.parquet"
FINDINGS_CSV = "findings.csv"
ZEROS_NOT_LISTED = "zeros_not_listed"
"""In the summary, and for every area beside what was published of it: how many likely zeros are counted, but not listed."""
CONTRADICTIONS = "contradictions.csv"
SUSPECTS = "suspects.csv"
ESTIMATES = "estimates.parquet"
HIDDEN = "hidden.parquet"
"""Counts that are not printed, each with the interval that a reader can work out."""

PROOFS = "proofs.jsonl.gz"
REPORT = "report.html"
PUBLIC_REPORT = "report-public.html"
"""The same for everybody's eyes: without any area, or any value that was inferred."""

REVIEW, REVIEWED = "review.json", "audit"
"""Of a table that was reviewed: the decision, and the folder beside it that holds the audit."""

MODEL = "model"
"""What `explain` needs: the model, the areas, the prior, and what was published."""

PUBLISHED = f"{MODEL}/published.parquet"
_MODEL_FILE, _AREAS_FILE = f"{MODEL}/model.json", f"{MODEL}/areas.parquet"

OURS = (
    RUN,
    FINDINGS,
    FINDINGS_CSV,
    CONTRADICTIONS,
    SUSPECTS,
    HIDDEN,
    ESTIMATES,
    PROOFS,
    REPORT,
    PUBLIC_REPORT,
    MODEL,
    SUMMARY,
)
"""In the order in which they are put in place: where there is a summary, all files belong together."""

VERSION = 6
"""Of the format of `model/`; folders of another version have to be made anew."""

HELD = 10_000_000
"""Counts that are kept in memory by who looks at single areas; of larger releases each area is read when it is asked for."""

ROW_GROUP = 128
"""Areas that are read together when one of them is asked for."""


def _summary(out: Path) -> dict[str, Any] | None:
    try:
        found = plain_json(out / SUMMARY)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return found if isinstance(found, dict) and "unround" in found else None


def save_model(
    folder: Path,
    model: Model,
    prior: Prior,
    areas: pl.DataFrame,
    release: Release,
    alias: Mapping[int, int],
) -> None:
    """Write what `AuditFolder` reads again."""
    folder.mkdir(exist_ok=True)
    columns = [
        {
            "key": column.key,
            "codes": column.codes,
            "label": column.label,
            "block": column.block,
            "depth": column.depth,
            "mechanism": how.name,
            "adjusted": column.adjusted,
            "at_most": column.at_most,
        }
        for column, how in zip(model.columns, model.mechanisms, strict=True)
    ]
    told = {
        "version": VERSION,
        "axes": release.axes,
        "areas": release.areas,
        "alias": {release.columns[c].key: release.columns[first].key for c, first in alias.items()},
        "columns": columns,
        "equations": model.equations,
        "origins": model.origins,
        "doubtful": model.doubtful,
        "fixed": sorted(model.fixed),
        "figures": [_figure_told(one) for one in model.figures],
        "conditions": _conditions_told(model.conditions),
    }
    (folder / "model.json").write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8")
    areas.write_parquet(folder / "areas.parquet")
    prior.save(folder / "prior.npz")


def _conditions_told(conditions: Conditions) -> dict[str, Any]:
    """Return conditions as plain data: each sentence once, and for every cell and sum which it is."""
    texts = list(dict.fromkeys((*conditions.cells, *conditions.sums)))
    place = {text: at for at, text in enumerate(texts)}
    cells, sums = ([place[one] for one in those] for those in (conditions.cells, conditions.sums))
    return {"texts": texts, "cells": cells, "sums": sums, "areas": conditions.areas}


def _conditions_of(told: Mapping[str, Any]) -> Conditions:
    cells, sums = (tuple(told["texts"][at] for at in told[name]) for name in ("cells", "sums"))
    return Conditions(cells, sums, told["areas"])


def _figure_told(one: ModelFigure) -> dict[str, Any]:
    """Return a figure as plain data."""
    by_units = [[units, [[str(start), str(step)] for start, step in steps]] for units, steps in one.figure.grid.by_units]
    told = PublishedFigure(one.figure, Fraction(0)).to_json()
    nested = one.figure.grid.nested
    return told | {"label": one.figure.label, "by_units": by_units, "steps_nested": nested, "place": one.place}


def _figure_of(told: Mapping[str, Any]) -> ModelFigure:
    """Return the figure that `_figure_told` wrote."""
    figure = PublishedFigure.of_json(told).figure
    by_units = tuple(
        (units, tuple((Fraction(start), Fraction(step)) for start, step in steps)) for units, steps in told["by_units"]
    )
    grid = replace(figure.grid, by_units=by_units, nested=told["steps_nested"])
    return ModelFigure(replace(figure, label=told["label"], grid=grid), told["place"])


def model_of(told: Mapping[str, Any], positions: NDArray[np.int64] | None = None, twins: Twins = ()) -> Model:
    """Return the model that `save_model` wrote; `positions` and `twins` tell where its cells are in the release."""
    columns, mechanisms = [], []
    for one in told["columns"]:
        how = mechanism(one["mechanism"])
        codes = tuple(one["codes"])
        more = one["depth"], how, one["adjusted"], one.get("at_most", "")
        columns.append(Column(one["key"], codes, one["label"], one["block"], *more))
        mechanisms.append(how)
    equations = tuple((total, tuple(parts)) for total, parts in told["equations"])
    origins, doubtful = tuple(told["origins"]), tuple(told["doubtful"])
    fixed = np.isin(np.arange(len(columns)), told["fixed"])
    figures = tuple(_figure_of(one) for one in told.get("figures", ()))
    model = Model.build(tuple(columns), tuple(mechanisms), equations, origins, doubtful, fixed, figures)
    places = model.positions if positions is None else positions
    return replace(model, positions=places, twins=twins, conditions=_conditions_of(told["conditions"]))


@dataclass(frozen=True)
class AuditFolder:
    """A finished audit, opened to look into."""

    path: Path
    summary: dict[str, Any] = field(repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs: the rest is read from the folder, where it is needed, and can hold locks."""
        return {"path": self.path, "summary": self.summary}

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open a folder that `audit` wrote.

        Raises
        ------
        InputError
            If it is not one, or was written by a version that lays it out differently.
        """
        path = Path(path)
        if not os.path.isdir(path):
            raise InputError(f"there is no folder {path}. `unround audit FILE -o {path}` would make one.")
        summary = _summary(path)
        if summary is None and (path / SUMMARY).is_file() and (path / MODEL).is_dir():
            raise Damaged(path, SUMMARY, "cannot be read")
        if summary is None:
            raise InputError(f"{path} contains no finished audit. Write one with `unround audit FILE -o {path}`.")
        if summary.get(SEAL) != seal_of(summary):
            raise Damaged(path, SUMMARY, "is not as the audit left it")
        folder = cls(path, summary)
        with folder.undamaged(_MODEL_FILE):
            if plain_json(path / _MODEL_FILE)["version"] != VERSION:
                raise InputError(f"the audit in {path} was written by another version of unround. Run it again.")
        if (fault := misfit(summary, shapes.SUMMARY)) is not None:
            raise Damaged(path, SUMMARY, f"is not a summary of an audit ({fault})")
        # What is small, also what nobody wrote there; the others when they are asked for. Half a file is nobody's.
        there = {f"{MODEL}/{one.name}" for one in (path / MODEL).iterdir() if one.suffix != HALF}
        for name in sorted(there.union(name for name in summary[FILES] if name.startswith(f"{MODEL}/")) - {PUBLISHED}):
            folder.file(name)
        _ = folder.schema
        return folder

    def file(self, name: str) -> Path:
        """Return where one of its files is, once it is certain that it is as the audit left it.

        Raises
        ------
        InputError
            If it is missing, or was changed.
        """
        path = self.path / name
        if name not in self._intact:
            if name not in self.summary[FILES] and path.is_file():
                raise Damaged(self.path, name, "was put there after the audit")
            try:
                intact = sha256_of(path) == self.summary[FILES].get(name)
            except OSError as error:
                missing = isinstance(error, FileNotFoundError)
                raise Damaged(self.path, name, "is missing" if missing else "cannot be read") from None
            if not intact:
                raise Damaged(self.path, name, "is not as the audit left it")
            self._intact.add(name)
        return path

    @cached_property
    def _intact(self) -> set[str]:
        """The files that were looked at."""
        return set()

    @cached_property
    def schema(self) -> dict[str, Any]:
        """What `save_model` wrote."""
        with self.undamaged(_MODEL_FILE):
            told: dict[str, Any] = plain_json(self.file(_MODEL_FILE))
        if (fault := misfit(told, shapes.model(told))) is not None:
            raise Damaged(self.path, _MODEL_FILE, f"is not a model ({fault})")
        return told

    @property
    def area_axes(self) -> list[str]:
        """The axes that say which area it is."""
        return list(self.schema["areas"])

    @property
    def axes(self) -> list[str]:
        """The other axes, which say what is counted."""
        return list(self.schema["axes"])

    @cached_property
    def model(self) -> Model:
        """What all areas share."""
        with self.undamaged(_MODEL_FILE):
            return model_of(self.schema)

    def put(self, files: Mapping[str, str | bytes]) -> None:
        """Write some of its files, or write them again, and take them for those that belong to it."""
        for path in (self.path / name for name in files):
            if path.parent.resolve() != self.path.resolve() / path.parent.relative_to(self.path):
                raise InputError(f"{path.parent} is a link to somewhere else, where nothing may be written: remove it.")
        with not_stopped():
            try:
                for name, content in files.items():
                    write_whole(self.path / name, content)
                self.summary[FILES] |= {name: sha256_of(self.path / name) for name in files}
                self.summary[SEAL] = seal_of(self.summary)
                write_json(self.path / SUMMARY, self.summary)
            except OSError as problem:
                raise NotWritten(f"{self.path} cannot be written to", str(problem.strerror or problem)) from None
        self._intact.difference_update(files)

    @cached_property
    def run(self) -> dict[str, Any]:
        """Its `run.json`: how long everything took, and where."""
        with self.undamaged(RUN):
            told: dict[str, Any] = plain_json(self.path / RUN)
        if (fault := misfit(told, shapes.RUN)) is not None:
            raise Damaged(self.path, RUN, f"says nothing of a run ({fault})")
        return told

    def table(self, name: str) -> pl.LazyFrame:
        """Return one of its tables, once it is certain that it is as the audit left it, and goes with the model."""
        import polars as pl

        with self.undamaged(name):
            file = self.file(name)
            is_text = name.endswith(".csv")
            rows = pl.scan_csv(file, infer_schema=False, glob=False) if is_text else pl.scan_parquet(file, glob=False)
            if name not in self._fitting:
                self._require_fit(name, rows)
                self._fitting.add(name)
            return rows

    def _require_fit(self, name: str, rows: pl.LazyFrame) -> None:
        """Raise ValueError unless a table has the columns that others rely on, and is about areas and cells of the model."""
        import polars as pl

        schema, axes, codes = rows.collect_schema(), self.schema["areas"], self.schema["axes"]
        columns = shapes.columns_of(name, self.schema, schema if name == _AREAS_FILE else self.areas.schema)
        if wrong := [column for column, kind in columns.items() if schema.get(column) != kind]:
            raise ValueError(f"columns are missing or of another kind: {', '.join(wrong)}")
        if name.endswith(".csv"):
            return
        gaps = rows.select(pl.all().null_count()).collect(engine="streaming").row(0, named=True)  # all of it can be read
        if any(gaps[column] for column in columns if column not in shapes.EMPTY):
            raise ValueError("there are gaps in it")
        if name == _AREAS_FILE and rows.select(pl.struct(axes).is_duplicated().any() | (pl.len() == 0)).collect().item():
            raise ValueError("areas are missing, or there twice")
        if name == PUBLISHED and not rows.select(axes).collect().equals(self.areas.select(axes)):
            raise ValueError("it is of other areas")
        if name == FINDINGS:
            cells = pl.LazyFrame([one["codes"] for one in self.schema["columns"]], schema=codes, orient="row")
            kinds, chance = pl.LazyFrame({"kind": CLAIMS}), pl.col("probability_low", "probability", "probability_high")
            if rows.filter(pl.any_horizontal(~chance.is_between(0, 1 + 1e-9))).head(1).collect(engine="streaming").height:
                raise ValueError("a probability is none")
            for known, by in ((self.areas.lazy(), axes), (cells, codes), (kinds, ["kind"])):
                if rows.join(known, on=by, how="anti").head(1).collect(engine="streaming").height:
                    raise ValueError(f"it is of another {' or '.join(by)}")

    @cached_property
    def _fitting(self) -> set[str]:
        """The tables that were found to go with the model."""
        return set()

    @property
    def findings(self) -> pl.DataFrame:
        """Every claim that is listed, as `findings.parquet` holds them."""
        with self.undamaged(FINDINGS):
            return self.table(FINDINGS).collect()

    def first_findings(self, number: int) -> pl.DataFrame:
        """Return the first claims only: a large audit has millions."""
        with self.undamaged(FINDINGS):
            return self.table(FINDINGS).head(number).collect()

    @cached_property
    def areas(self) -> pl.DataFrame:
        """The areas, in the order of the file."""
        with self.undamaged(_AREAS_FILE):
            return self.table(_AREAS_FILE).collect()

    @cached_property
    def adjustable(self) -> NDArray[np.bool_]:
        """In which areas counts that are called exact may have been adjusted."""
        return adjustable(self.areas)

    @cached_property
    def prior(self) -> Prior:
        """The prior that the audit used."""
        from unround.prior import Prior

        columns, name = len(self.schema["columns"]), f"{MODEL}/prior.npz"
        with self.undamaged(name):
            prior = Prior.load(self.file(name))
            if not {*prior.withheld} <= {*range(columns)} or (prior.fitted and prior.fitted.power.size != columns):
                raise ValueError("it is of another model")
            return prior

    @cached_property
    def nested(self) -> NestedAreas | None:
        """Which areas lie within which, where some do."""
        with self.undamaged(f"{MODEL}/{NESTED}"):
            nested = NestedAreas.load(self.path / MODEL)
            if nested is not None:
                nested.check(self.areas.height, len(self.schema["columns"]))
            return nested

    @cached_property
    def keys(self) -> Keys:
        """How random numbers are shared, as the audit had it."""
        return Keys.load(self.path / MODEL)

    @cached_property
    def auditor(self) -> Auditor:
        """What infers single areas again, under the options of the audit."""
        from unround.audits.block import Auditor
        from unround.audits.model import AuditOptions
        from unround.audits.suspects import Holding

        summary = self.summary
        options = AuditOptions(**{name: summary[name] for name in ("threshold", "population", "doubtful")})
        return Auditor(self.model, self.prior, options, self.keys, Holding.from_json(summary["holding"]))

    def counts(self, row: int) -> Counts:
        """Return what was published of one area, a cell each."""
        counts: Counts = self.counts_of(np.array([row]))[0]
        return counts

    def counts_of(self, rows: NDArray[np.int64]) -> Counts:
        """Return what was published of some areas; those of a family lie next to each other."""
        counts: Counts = np.array(self._of_areas(rows)["counts"].to_numpy(), dtype=np.int32)
        return counts

    def figures_of(self, rows: NDArray[np.int64]) -> FigureValues | None:
        """Return the figures of some areas, as published; None where the audit used none."""
        if not self.model.figures:
            return None
        figures: FigureValues = np.array(self._of_areas(rows)["figures"].to_numpy(), dtype=np.int64)
        return figures

    def _of_areas(self, rows: NDArray[np.int64]) -> pl.DataFrame:
        first, last = int(rows.min()), int(rows.max())
        with self.undamaged(PUBLISHED):
            table = self._published if self._held else self.table(PUBLISHED)
            return table.slice(first, last + 1 - first).lazy().collect()[rows - first]

    @cached_property
    def _held(self) -> bool:
        """Whether what was published is small enough to be kept in memory: looking it up costs more than it."""
        return self.areas.height * len(self.schema["columns"]) <= HELD

    @cached_property
    def _published(self) -> pl.DataFrame:
        return self.table(PUBLISHED).collect()

    @contextmanager
    def undamaged(self, name: str) -> Iterator[None]:
        """Say which file is damaged, whatever reading it comes to grief over: there is no end of ways."""
        try:
            yield
        except UnroundError:
            raise
        except BaseException as error:
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # of polars, at broken Parquet
                raise
            raise Damaged(self.path, name, "cannot be read") from error


class Damaged(InputError):  # noqa: N818 - it says what became of the folder
    """A file of an audit is missing, or is not as the audit left it.

    - `path`, `name`, `how`: The audit's folder, the file, and what is wrong with it.
    """

    def __init__(self, path: Path, name: str, how: str) -> None:
        super().__init__(f"the audit in {path} is damaged: {name} {how}. Run it again.")
        self.name, self.how = name, how


MOST_CANDIDATES = 12
"""Areas or characteristics that are listed when a name fits several."""


def find_area(folder: AuditFolder, wanted: str) -> int:
    """Return the row of an area by its code, the end of its code, or its name."""
    import polars as pl

    if not isinstance(wanted, str):
        raise InputError(f"an area is named by text, not by {wanted!r}: its code, or its name.")
    axes = folder.area_axes
    # Rows of several axes go by all of their codes: D00/2001.
    code = pl.concat_str([pl.col(axis).cast(pl.String) for axis in axes], separator="/")
    areas, axis = folder.areas.with_row_index("row").with_columns(code.alias("_code")), "_code"
    code = pl.col("_code")
    ways = [code == wanted, code.str.ends_with(wanted) if wanted else pl.lit(False)]
    if "region_name" in areas.columns:
        name = pl.col("region_name").str.to_lowercase()
        ways += [name == wanted.lower(), name.str.contains(wanted.lower(), literal=True)]
    for way in ways:
        found = areas.filter(way)
        if found.height == 1:
            return int(found["row"][0])
        if found.height > 1:
            listed = [f"{one[axis]} {one.get('region_name') or ''}".strip() for one in found.to_dicts()[:MOST_CANDIDATES]]
            raise InputError(_several(wanted, "areas", found.height, listed))
    raise InputError(f"there is no area {wanted!r} in this audit. Codes look like {areas[axis][0]}.")


def find_cell(folder: AuditFolder, wanted: str, sex: str | None) -> int:
    """Return the cell of a characteristic by its ID, key or name."""
    columns, axes = folder.model.columns, folder.axes
    by_sex = "sex" in axes
    if sex is not None and not by_sex:
        raise InputError(f"this table is not by sex: its axes are {', '.join(axes)}. Leave --sex out.")
    at = axes.index("sex") if by_sex else -1
    key = wanted if sex in (None, "total") else f"{wanted}/{sex}"
    key = folder.schema["alias"].get(key, key)  # a count that is shown twice, number by number, is audited once
    if key in folder.model.index:
        return folder.model.index[key]
    chosen = [i for i, column in enumerate(columns) if not by_sex or column.codes[at] == (sex or "total")]
    if not chosen:
        raise InputError(f"there is no sex {sex!r} in this table: choose one of {', '.join(_sexes(columns, at))}.")
    low, again = wanted.strip().lower(), folder.model.repeated
    ways = (
        [i for i in chosen if columns[i].codes[0].lower() == low or columns[i].key.lower() == low],
        [i for i in chosen if i not in again and columns[i].label.lower() == low],
        [i for i in chosen if i not in again and low and low in columns[i].label.lower()],
    )
    for found in ways:
        if len(found) == 1:
            return found[0]
        if found:
            listed = [_candidate(columns[i], by_sex) for i in found[:MOST_CANDIDATES]]
            raise InputError(_several(wanted, "characteristics", len(found), listed))
    there = sorted({column.codes[0] for column in columns if column.codes[0].lower() == low})
    if there:
        raise InputError(f"characteristic {wanted} has no {sex or 'total'} among the audited counts.")
    raise InputError(
        f"there is no characteristic {wanted!r} among the {len(columns):,} audited counts: give an ID such as "
        f"{columns[0].codes[0]}, or a name such as {columns[0].label!r}. `unround check` shows what is not audited."
    )


def _candidate(column: Column, by_sex: bool) -> str:
    """Name a column so that the first word can be typed."""
    code = column.codes[0] if by_sex and len(column.codes) == 2 else column.key
    more = [text for text in (column.label, f"({column.block})") if text not in (code, "()")]
    return " ".join([code, *more])


def _sexes(columns: Iterable[Any], at: int) -> list[str]:
    return list(dict.fromkeys(column.codes[at] for column in columns))


def _several(wanted: str, what: str, number: int, listed: list[str]) -> str:
    more = f"\n  and {number - len(listed)} more" if number > len(listed) else ""
    shown = "".join(f"\n  {one}" for one in listed)
    return f"{wanted!r} matches {number} {what}; give the code of the one you mean:{shown}{more}"
