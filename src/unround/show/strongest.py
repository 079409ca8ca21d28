"""The strongest findings of an audit, with the arithmetic behind them: a few of many thousands, found without reading all.

Arguments call their cells A, B, C …, because real keys are long, and A is always the count that the finding is about.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from unround.audits.bounds import ASSUMPTION
from unround.audits.certificates import proofs_in, read_proof
from unround.audits.model import short_label
from unround.explanation.cell import explain_at
from unround.figures import FigureKind
from unround.job import AuditFolder
from unround.job.folder import CONTRADICTIONS, FINDINGS, PROOFS, SUSPECTS, Damaged
from unround.proofs import fault_in_proof, figure_value, proof_in_words, renamed_figure
from unround.release import ABSENT
from unround.show import words
from unround.show.parts import Columns, Part, Table, TableCell, rest, tabulated
from unround.show.words import added, arithmetic, growth
from unround.system import PublishedFigure
from unround.tables.grid import letters

if TYPE_CHECKING:
    import polars as pl

MOST = {"proved": 6, "conditional": 2, "likely": 4}
"""Findings of each kind that are shown."""

LOOKED_AT = 50_000
"""Findings, of those that matter most, among which these are: a national census has more than fit into memory."""

MOST_CELLS, MOST_NEIGHBOURS, MOST_STEPS, MOST_SUMS = 24, 12, 14, 4
"""Cells of an argument, and around a likely count, that are listed; steps of a proof, and sums, that are shown."""


@dataclass(frozen=True, slots=True)
class Strong:
    """A finding with its argument.

    - `finding`: Its row of `findings.parquet`.
    - `area`, `code`, `what`, `table`: Its area, by name and code; what is counted; and its table, unless the label says
      it already.
    - `steps`: The argument, sentence by sentence; `more_steps` says how many were left out.
    - `cells`: Of every letter in it what it counts, and what was published; `more_cells` says how many were left out.
    - `sums`: For a proof, the sums that it uses.
    - `growth`: For a likely count, how its probability grows: a step in words, and the probability after it.
    - `distribution`, `others`: For a likely count, its distribution, and the evidence from other areas.
    """

    finding: dict[str, Any]
    area: str
    code: str
    what: str
    table: str
    steps: tuple[str, ...]
    more_steps: int
    cells: tuple[tuple[str, str, str], ...]
    more_cells: int
    sums: tuple[str, ...] = ()
    growth: tuple[tuple[str, float], ...] = ()
    distribution: tuple[tuple[int, float], ...] = ()
    others: tuple[str, ...] = ()


def strongest(folder: AuditFolder, kind: str) -> list[Strong]:
    """Return the findings of a kind that matter most, as `unround.audits.findings` has it.

    Of findings that rest on the same sums of an area one stands for all. Every area has its turn before one comes again, and
    two areas before the same count comes a third time.
    """
    rows = _chosen(folder, kind, MOST[kind])
    if kind == "likely":
        return [_likely(folder, row) for row in rows]
    return [_certain(folder, row, proof) for row, proof in zip(rows, _certificates(folder, rows), strict=True)]


def _chosen(folder: AuditFolder, kind: str, number: int) -> list[dict[str, Any]]:
    import polars as pl

    areas, turn = folder.area_axes, pl.int_range(pl.len())
    findings = (
        folder.table(FINDINGS)  # in the order of how much they matter
        .filter(pl.col("kind") == kind)
        .join(_in_doubt(folder).lazy(), on=areas, how="anti", maintain_order="left")
        .head(LOOKED_AT)
        .unique([*areas, "route"], keep="first", maintain_order=True)
        .with_columns(pl.max_horizontal(turn.over(areas), turn.over(folder.axes) // 2).alias("_turn"))
        .sort("_turn", maintain_order=True)
        .head(number)
        .drop("_turn")
    )
    return findings.collect().to_dicts()


def _in_doubt(folder: AuditFolder) -> pl.DataFrame:
    """Return the areas whose published figures cannot be right, or are suspect: no example is taken from these."""
    import polars as pl

    types = {axis: folder.areas.schema[axis] for axis in folder.area_axes}
    summary, claims = folder.summary, []
    for name, number in ((CONTRADICTIONS, summary["contradictions"]), (SUSPECTS, summary["suspect"]["areas"])):
        if number:
            rows = folder.table(name)
            if name == CONTRADICTIONS:  # that an exact count was adjusted spoils no other
                rows = rows.filter(pl.col("kind") != ASSUMPTION)
            first = rows.collect_schema().names()[: len(types)]  # by place: headers are made safe for spreadsheets
            pairs = zip(first, types.items(), strict=True)
            claims.append(rows.select(pl.col(column).cast(kind).alias(axis) for column, (axis, kind) in pairs))
    return pl.concat(claims).unique().collect() if claims else pl.DataFrame(schema=types)


def _cell(folder: AuditFolder, row: dict[str, Any]) -> int:
    codes = tuple(row[axis] for axis in folder.axes)
    return next(at for at, column in enumerate(folder.model.columns) if column.codes == codes)


def _place(folder: AuditFolder, row: dict[str, Any]) -> tuple[str, str]:
    """Return the name and the code of a finding's area; the name is empty where it has none of its own."""
    code = " · ".join(str(row[axis]) for axis in folder.area_axes)
    name = str(row.get("region_name") or "")
    return ("" if code.endswith(name) else name), code


def _what(folder: AuditFolder, cell: int) -> str:
    """Say what a cell counts: its label, and its place on the other axes, as far as the label does not tell."""
    column = folder.model.columns[cell]
    others = [
        code
        for axis, code in zip(folder.axes, column.codes, strict=True)
        if axis != "characteristic_id" and code != "total" and code not in column.label
    ]
    return ", ".join([short_label(column.label), *others])


def _about(folder: AuditFolder, row: dict[str, Any], cell: int) -> tuple[dict[str, Any], str, str, str, str]:
    """Return the first fields of `Strong`."""
    column = folder.model.columns[cell]
    return row, *_place(folder, row), _what(folder, cell), "" if column.block in column.label else column.block


def _published(value: int | None, mechanism: str) -> str:
    return f"{words.number(value)}{' (exact)' if mechanism == 'exact' else ''}"


# -- proved and conditional -------------------------------------------------------------------------------------------


def _certificates(folder: AuditFolder, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Find the certificates of some findings, and check these; of all others, only those of the same counts are parsed."""
    axes, columns = folder.area_axes, folder.model.columns
    keys = [(*(row[axis] for axis in axes), columns[_cell(folder, row)].key) for row in rows]
    wanted = set(keys)
    marks = {f'"key": {json.dumps(key[-1], ensure_ascii=False)}' for key in keys}
    certificates: dict[tuple[Any, ...], dict[str, Any]] = {}
    with folder.undamaged(PROOFS):
        for line in proofs_in(folder.file(PROOFS)):
            if any(mark in line for mark in marks):
                proof = json.loads(line)
                key = (*(proof[axis] for axis in axes), proof["key"])
                if key not in wanted:
                    continue
                if (fault := fault_in_proof(*read_proof(proof))) is not None:
                    raise ValueError(fault)
                certificates[key] = proof
    missing = [key for key in keys if key not in certificates]
    if missing:
        raise Damaged(folder.path, PROOFS, f"has no certificate for {' '.join(map(str, missing[0]))}")
    return [certificates[key] for key in keys]


def _certain(folder: AuditFolder, row: dict[str, Any], proof: dict[str, Any]) -> Strong:
    keys = sorted((cell["name"] for cell in proof["cells"]), key=lambda key: bool(key != proof["cell"]))
    named = {key: letters(at) for at, key in enumerate(keys)}
    system, certificate = read_proof(proof)
    steps = tuple(sentences(proof_in_words(system, certificate, named)))
    shown = steps if len(steps) <= MOST_STEPS else (*steps[: MOST_STEPS - 2], *steps[-2:])
    published = {cell["name"]: cell for cell in proof["cells"]}
    cells = tuple(
        (named[key], _what_of(folder, cell), _published(cell["published"], cell["mechanism"]))
        for key, cell in ((key, published[key]) for key in keys[:MOST_CELLS])
    )
    equations = (_equation([named[name] for name in (known.total, *known.parts)]) for known in system.sums)
    figures = (_figure(renamed_figure(figure, named)) for figure in system.figures)
    about = _about(folder, row, folder.model.index[proof["key"]])
    left_out = len(steps) - len(shown), len(keys) - len(cells)
    return Strong(*about, shown, left_out[0], cells, left_out[1], (*equations, *figures))


def _what_of(folder: AuditFolder, cell: dict[str, Any]) -> str:
    """Say what a cell of a certificate counts, and where, if it is of another area."""
    what = _what(folder, folder.model.index[cell.get("key", cell["name"])])
    return f"{what} (area {cell['area']})" if "area" in cell else what


def _figure(stated: PublishedFigure) -> str:
    figure = stated.figure
    is_rate = figure.kind is FigureKind.RATE
    of = f"{figure.numerator} / {figure.universe}" if is_rate else f"{figure.kind} of {figure.universe}"
    return f"{of} = {figure_value(figure, stated.value)}"


def sentences(text: str) -> Iterator[str]:
    """Take an argument apart into its sentences.

    >>> list(sentences("D = 832 (exact), so B ≤ 832. A ≥ 421 (425 published, base 5). So A = 421."))
    ['D = 832 (exact), so B ≤ 832.', 'A ≥ 421 (425 published, base 5).', 'So A = 421.']
    """
    pieces = text.removesuffix(".").split(". ")
    yield from (f"{piece}." for piece in pieces if piece)


# -- likely -----------------------------------------------------------------------------------------------------------


def _likely(folder: AuditFolder, row: dict[str, Any]) -> Strong:
    import polars as pl

    model, cell = folder.model, _cell(folder, row)
    here = pl.all_horizontal([pl.col(axis) == row[axis] for axis in folder.area_axes])
    at = int(folder.areas.select(pl.arg_where(here)).item())
    explained, counts = explain_at(folder, at, cell), folder.counts(at)
    used = [(e, shown) for e, shown in zip(model.touching[cell], explained.sums, strict=True) if shown.used]
    members = list(dict.fromkeys([cell, *(c for e, _ in used[:MOST_SUMS] for c in model.members(e))]))
    named = {c: letters(at) for at, c in enumerate(members)}
    cells = tuple(
        (named[c], _what(folder, c), _published(int(counts[c]) if counts[c] > ABSENT else None, model.mechanisms[c].name))
        for c in members[:MOST_NEIGHBOURS]
    )
    return Strong(
        *_about(folder, row, cell),
        steps=tuple(f"{_equation([named[c] for c in model.members(e)])}: {arithmetic(s)}." for e, s in used[:MOST_SUMS]),
        more_steps=max(0, len(used) - MOST_SUMS),
        cells=cells,
        more_cells=len(members) - len(cells),
        growth=tuple(growth(explained)),
        distribution=explained.distribution,
        others=explained.others.said if explained.others else (),
    )


def _equation(names: list[str]) -> str:
    total, *parts = names
    return f"{total} = {added(parts)}"


# -- rows of tables ---------------------------------------------------------------------------------------------------


def first_zeros(folder: AuditFolder, number: int) -> list[list[str]]:
    """Return the first likely zeros: area, count, what was published, and how probable 0 is."""
    import polars as pl

    zeros = folder.table(FINDINGS).filter(pl.col("kind") == "likely", pl.col("value") == 0)
    return [
        [area or code, _what(folder, _cell(folder, row)), words.number(row["published"]), words.at_least(row)]
        for row in zeros.head(number).collect().to_dicts()
        for area, code in (_place(folder, row),)
    ]


def _first_rows(folder: AuditFolder, name: str, number: int) -> list[tuple[str, dict[str, str]]]:
    """Return the first rows of a CSV file, as text, each with what its area is called."""
    rows = folder.table(name).head(number).collect().fill_null("").to_dicts()
    axes = len(folder.area_axes)  # by place: headers are made safe for spreadsheets
    names = [[*list(row.values())[:axes], row.get("region_name", "")] for row in rows]
    return [(" ".join(dict.fromkeys(filter(None, parts))), row) for parts, row in zip(names, rows, strict=True)]


def first_contradictions(folder: AuditFolder, number: int) -> list[Part]:
    """Return the first rows of `contradictions.csv`: area, and what is inconsistent there."""
    rows = _first_rows(folder, CONTRADICTIONS, number)
    columns: Columns = [("Area", itemgetter(0)), ("What is inconsistent", lambda row: row[1]["clash"])]
    table = tabulated(rows, columns, "Inconsistencies", left=("What is inconsistent",))
    return [table, rest(folder.summary["contradictions"], len(rows), "`contradictions.csv` has them all")]


def first_suspects(folder: AuditFolder, number: int) -> list[Part]:
    """Return the first rows of `suspects.csv`: area, sum, what was published, what the parts add up to, and the chance."""
    rows = _first_rows(folder, SUSPECTS, number)
    table = suspects_table([{"area": area, **row} for area, row in rows], itemgetter("area"))
    return [table, rest(folder.summary["suspect"]["sums"], len(rows), "`suspects.csv` has them all")]


def suspects_table(rows: Sequence[Mapping[str, str]], area: Callable[[Any], str | TableCell]) -> Table:
    """Return sums of areas whose figures are possible, but absurd; `area` says where each is."""
    columns: Columns = [
        ("Area", area),
        ("Sum", "sum"),
        ("published total", lambda row: f"{int(row['published']):,}"),
        ("parts add up to", lambda row: f"{int(row['parts_add_up_to']):,}"),
        ("chance at most", lambda row: one_in(float(row["chance_at_most"]))),
    ]
    return tabulated(rows, columns, "Suspect data", left=("Sum",))


def one_in(chance: float) -> str:
    """Say how rare something is that has at most this chance.

    >>> one_in(2e-10), one_in(1.3e-13), one_in(0.002)
    ('1 in 5 billion', '1 in 10^12', '1 in 500')
    """
    rarity = 1 / chance
    for power, name in ((9, "billion"), (6, "million")):
        if 10**power <= rarity < 10 ** (power + 3):
            return f"1 in {int(rarity / 10**power + 1e-9):,} {name}"
    return f"1 in {int(rarity + 1e-9):,}" if rarity < 1e6 else f"1 in 10^{int(math.log10(rarity))}"
