"""The texts that go with the files: the note that they are simulated, notes inside the zip, and a tidy release's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from textwrap import fill

from unround._version import __version__
from unround.figures import Figure
from unround.simulation.profile import EXACT
from unround.simulation.schema import Schema
from unround.tables import NOTE, fingerprint

NOTE_TITLE = "Simulated: this census is invented"
"""The first line of SIMULATED.txt, by which a folder is known to hold nothing but invented numbers."""

_META = """\
Simulated census profile
========================

These numbers are invented. They were drawn by `unround simulate` in the layout of the bulk files of a
Canadian census profile, for testing. No line describes a real place or person, and no statistical agency
is involved.

Symbols
-------
..\tnot available
...\tnot applicable
x\thidden, because too few people live there

Data quality flag (five digits)
-------------------------------
00000\tnothing hidden
00909\tincome hidden: fewer than 250 people or 40 households
09999\tall counts hidden: fewer than 40 people

Rounding
--------
Population and dwellings (1, 2, 4, 5) are exact. Counts of 100% data are randomly rounded to base 5, {how};
so are {what}, but those under 10 become 0 or 10.

Notes
-----
1\tPopulation, not rounded.
2\tDwellings, not rounded.
3\tOccupied dwellings, not rounded; each holds one household.
"""


def meta(*, keyed: bool = False, weighted: bool = False) -> str:
    """Explain symbols, flags and rounding."""
    return _META.format(
        how="by the sum of their records' keys and a\nconstant of the table" if keyed else "each\nindependently",
        what="weighted estimates from the 25% sample" if weighted else "counts of 25% sample data",
    )


META_NOTE = """\
The file that ends in _meta.txt explains symbols, flags and rounding. The file that ends in
_Geo_starting_row.CSV gives the line of the data file at which each area starts (line 1 is the header).
Areas come children first: the dissemination areas of a census subdivision, then the subdivision, and so on
upwards. All numbers are simulated.
"""


def note(
    file_format: str,
    files: tuple[str, ...],
    truth: str,
    areas: int,
    seed: int,
    rows: str,
    options: str = "",
    within: str = "",
    constants: str = "",
    *,
    weighted: bool = False,
    boundaries: str = "",
) -> str:
    """Say in words for people what lies beside this note, and how to make it again."""
    name, zipped = file_format.split(",")[0], " --zip" if "zip" in file_format else ""
    said = (
        f"Every number in the files listed here was drawn at random by `unround simulate`, version {__version__}. No "
        "number refers to a real place or person, and no statistical agency is involved."
    )
    if name != "tidy":
        real = "File name and layout are those" if name == "statcan" else "The layout is that"
        said += f" {real} of a real product only so that programs can be tried on it."
    if constants:
        said += (
            " Every record has a key; a count is rounded by the sum of its records' keys and a constant of its table. The "
            "truth has the sum of keys of every count."
        )
    if weighted:
        said += " Sample tables show weighted estimates; the truth is the estimate before it was rounded."
    width = max(map(len, (*files, truth, constants, boundaries)))
    listed = []
    for file in files:
        what = "what its columns and sums mean" if file.endswith(".toml") else "what an agency would publish"
        listed.append(f"    {file:{width}}  {what}")
    if within:
        listed.append(f"    {within:{width}}  which area is within which")
    if constants:
        listed.append(f"    {constants:{width}}  the constants of the tables, as they were drawn or given")
    if boundaries:
        listed.append(f"    {boundaries:{width}}  made-up shapes of all areas, for a map")
    return f"""\
{NOTE_TITLE}
{"=" * len(NOTE_TITLE)}

{fill(said, 96)}

{chr(10).join(listed)}
    {truth:{width}}  {"the true counts and estimates" if weighted else "the true counts, as they were drawn"}

    areas   {areas:,}
    seed    {seed}
    rows    {rows}
    format  {file_format}

To make the same files again, with the same version of unround:

    unround simulate -o FOLDER --areas {areas} --seed {seed} --format {name} --rows {rows}{zipped}{options}
"""


def write_note(folder: Path, text: str) -> None:
    """Write the note, with the fingerprints of the tables that are in the folder: no other table is simulated for it."""
    tables = sorted(path for path in folder.iterdir() if path.suffix in (".csv", ".parquet", ".zip"))
    width = max(len(path.name) for path in tables)
    known = "\n".join(f"    {path.name:{width}}  {fingerprint(path)}" for path in tables)
    before, after = text.split("To make the same")
    said = f"Fingerprints, by which unround knows these tables, and no others, as simulated:\n\n{known}\n"
    (folder / NOTE).write_text(f"{before}{said}\nTo make the same{after}", encoding="utf-8")


def _list(values: tuple[int, ...] | list[int]) -> str:
    return "[" + ", ".join(str(value) for value in values) + "]"


def _edge(edge: Fraction | None, name: str) -> str:
    return "" if edge is None else f", {name} = {float(edge):g}"


def _figure_toml(figure: Figure) -> list[str]:
    """Describe a rate, a mean or a median."""
    lines = ["[[figures]]", f"column = {json.dumps(figure.name)}", f'kind = "{figure.kind}"']
    lines += [f"numerator = {json.dumps(figure.numerator)}"] if figure.numerator else []
    lines += [f"universe = {json.dumps(figure.universe)}"] if figure.universe else []
    if figure.groups:
        lines.append("groups = [")
        for group in figure.groups:
            ends = _edge(group.low, "low") + _edge(group.high, "high")
            lines.append(f"    {{ count = {json.dumps(group.count)}{ends} }},")
        lines.append("]")
    return [*lines, *(["sampled = true"] if figure.sampled else []), ""]


def release_toml(table: Schema, data: str = "release.parquet", figures: Sequence[Figure] = ()) -> str:
    """Describe a tidy release: its file, axes, hierarchies, mechanisms, sums and figures."""
    by_mechanism: dict[str, list[int]] = {}
    for row in table.rows:
        if row.is_count:
            by_mechanism.setdefault(row.mechanism, []).append(row.id)
    lines = [
        "# A simulated census release, written by `unround simulate`.",
        'format = "tidy"',
        f"data = {json.dumps(data)}",
        'value = "published"',
        'missing = "suppressed"  # an empty cell was hidden: fewer than 40 people, or 250 for income',
        "",
        "[axes.region]",
        'column = "region"',
        'name = "region_name"',
        'level = "level"',
        'parent = "parent"  # a parent is the sum of its children',
        "",
        "[axes.characteristic]",
        'column = "characteristic_id"',
        'name = "characteristic"',
        "",
        "[axes.sex]",
        'column = "sex"',
        'sums = [{ total = "total", parts = ["men", "women"] }]',
        "",
    ]
    for name, ids in by_mechanism.items():
        told = "  # published unrounded" if name == EXACT else ""
        lines += [
            "[[mechanisms]]",
            f"mechanism = {json.dumps(name)}{told}",
            f"characteristics = {_list(ids)}",
            "",
        ]
    for item in table.sums:
        lines += [
            "[[sums]]",
            f"total = {item.total}",
            f"parts = {_list(item.parts)}",
            f'why = "{item.why}"',
            "",
        ]
    for figure in figures:
        lines += _figure_toml(figure)
    return "\n".join(lines)
