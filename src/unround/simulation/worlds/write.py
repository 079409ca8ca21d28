"""A world as files: a tidy release, the TOML that describes it, the true counts, and a note that all of it is invented."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import fill

import numpy as np
import polars as pl

from unround._version import __version__
from unround.errors import InputError
from unround.mechanisms import HIDDEN, mechanism
from unround.mechanisms.base import IntArray
from unround.output import output_folder
from unround.simulation import Simulated, older_census
from unround.simulation.companions import NOTE_TITLE, write_note
from unround.simulation.schema import SEXES
from unround.simulation.worlds.world import TOTAL, World
from unround.simulation.write import ABOUT, TABLE, TRUTH
from unround.tables import NOTE


def simulate_world(
    out: Path, world: World, areas: int, seed: int, spec: str = "rounding:5", *, rounded_total: bool = False
) -> Simulated:
    """Write a world as it would be published, with its true counts beside it.

    Raises `InputError` where a choice is unknown or out of range, or the folder cannot be written or holds something
    else.
    """
    if seed < 0:
        raise InputError(f"a seed is a whole number from 0, not {seed}.")
    how = mechanism(spec)
    true = world.counts(areas, seed).astype(np.int64)
    published = how.publish(true, np.random.default_rng(np.random.SeedSequence([seed, 1, *world.name.encode()])))
    if not rounded_total:
        published[:, 0] = true[:, 0]
    with output_folder(out, "simulate", lambda folder: older_census(folder, "tidy")) as output:
        shown = _cells(world, published, "published").with_columns(pl.col("published").replace(HIDDEN, None))
        shown.write_parquet(output.done / TABLE)
        _cells(world, true, "true").write_parquet(output.done / TRUTH)
        (output.done / ABOUT).write_text(_about(world, how.name, rounded_total=rounded_total), encoding="utf-8")
        size = sum(path.stat().st_size for path in output.done.iterdir())
        again = f"--areas {areas} --seed {seed} --mechanism {spec}{' --rounded-total' if rounded_total else ''}"
        write_note(output.done, _note(world, again))
        output.publish((NOTE, TABLE, ABOUT, TRUTH))
    return Simulated((out / TABLE, out / ABOUT), out / TRUTH, out / NOTE, areas, true.size, size)


def _cells(world: World, counts: IntArray, value: str) -> pl.DataFrame:
    """Return counts as a tidy table, one row a cell."""
    areas = len(counts)
    codes = [column.codes if world.by_sex else (*column.codes, SEXES[0]) for column in world.columns]
    return pl.DataFrame(
        {
            "region": np.repeat([f"A{area:05}" for area in range(1, areas + 1)], len(codes)),
            "characteristic_id": np.tile([name for name, _ in codes], areas),
            "sex": np.tile([sex for _, sex in codes], areas),
            value: counts.ravel(),
        }
    )


def _about(world: World, how: str, *, rounded_total: bool) -> str:
    """Describe the release: its file, axes, mechanism and sums."""
    sums = [f"{{ total = {json.dumps(total)}, parts = {json.dumps(parts)} }}" for total, parts in world.tree.items()]
    by_sex = f"{{ total = {json.dumps(SEXES[0])}, parts = {json.dumps(SEXES[1:])} }}"
    exact = ["[[exact]]", f"characteristic = [{json.dumps(TOTAL)}]", f"sex = [{json.dumps(SEXES[0])}]", ""]
    lines = [
        f"# The world {world.name}, written by `unround simulate`. {world.sentence}",
        'format = "tidy"',
        f"data = {json.dumps(TABLE)}",
        'value = "published"',
        'missing = "suppressed"',
        f"default = {json.dumps(how)}",
        "",
        *([] if rounded_total else exact),
        "[axes.region]",
        "",
        "[axes.characteristic]",
        'column = "characteristic_id"',
        "sums = [",
        *(f"    {one}," for one in sums),
        "]",
        "",
        "[axes.sex]",
        *([f"sums = [{by_sex}]"] if world.by_sex else []),
    ]
    return "\n".join(lines) + "\n"


def _note(world: World, again: str) -> str:
    """Say in words for people what lies beside this note, and how to make it again."""
    said = (
        f"Every number in the files listed here was drawn at random by `unround simulate`, version {__version__}. No number "
        f"is about a real place or person, and no statistical agency has anything to do with them. The world "
        f"{world.name}: {world.sentence}"
    )
    return f"""\
{NOTE_TITLE}
{"=" * len(NOTE_TITLE)}

{fill(said, 96)}

    {TABLE}  what an agency would publish
    {ABOUT:{len(TABLE)}}  what its columns and sums mean
    {TRUTH:{len(TABLE)}}  the true counts, as they were drawn

To make the same files again, with the same version of unround:

    unround simulate -o FOLDER --world {world.name} {again}
"""
