"""The files that a simulated census comes in: some levels or all, together or apart, published once or again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from unround.errors import InputError
from unround.simulation.counts import PLAIN, CountBlock, Rounds, publish
from unround.simulation.geography import LEVELS
from unround.simulation.schema import Schema
from unround.simulation.write import CensusMapper, StatCan, Tidy, Writer, release_names

AREAS = "areas.csv"
MOST_EDITIONS = 99
_CALLED = {"da": "DA", "csd": "CSD", "cd": "CD", "pr": "PR", "province": "PR"}


@dataclass(frozen=True, slots=True)
class Editions:
    """What is written of a census.

    - `levels`: The levels whose areas are written, among `LEVELS`.
    - `nested`: Whether levels were asked for: then the country has many CSDs of few DAs, as real ones have, and a file
      says which area is within which.
    - `apart`: Whether every level has a file of its own.
    - `repeat`: How often everything is published, each time with roundings of its own.
    """

    levels: tuple[str, ...] = LEVELS
    nested: bool = False
    apart: bool = False
    repeat: int = 1

    @classmethod
    def of(cls, levels: str | None, apart: bool, repeat: int) -> Editions:
        """Read what the user wants.

        Examples
        --------
        >>> Editions.of("province, da", apart=True, repeat=1).levels
        ('DA', 'PR')
        """
        if not 1 <= repeat <= MOST_EDITIONS:
            raise InputError(f"a census can be published 1 to {MOST_EDITIONS} times, not {repeat}.")
        if levels is None:
            return cls(apart=apart, repeat=repeat)
        wanted = [name.strip().lower() for name in levels.split(",") if name.strip()]
        strange = next((name for name in wanted if name not in _CALLED), None)
        if strange is not None or not wanted:
            raise InputError(
                f"there is no level {strange or ''!r}: choose from da, csd, cd and province, separated by commas."
            )
        chosen = {_CALLED[name] for name in wanted}
        return cls(tuple(level for level in LEVELS if level in chosen), True, apart, repeat)

    @property
    def files(self) -> list[tuple[str, int, tuple[str, ...]]]:
        """The files: what is added to their names, which edition they are of, and which levels they hold."""
        parts = [(f"_{level}", (level,)) for level in self.levels] if self.apart else [("", self.levels)]
        return [
            (f"{tail}_{edition}" if edition > 1 else tail, edition, levels)
            for edition in range(1, self.repeat + 1)
            for tail, levels in parts
        ]

    def names(self, file_format: str) -> tuple[str, ...]:
        """Return the names of all files of the release."""
        return tuple(name for tail, _, _ in self.files for name in release_names(file_format, tail))

    def options(self) -> str:
        """Return what to type for the same."""
        called = {level: name for name, level in _CALLED.items()}
        levels = f" --levels {','.join(called[level] for level in self.levels)}" if self.nested else ""
        return f"{levels}{' --apart' if self.apart else ''}{f' --repeat {self.repeat}' if self.repeat > 1 else ''}"


class Files:
    """Writes all files of a census at once, as blocks of areas come.

    - `folder`: Where they go.
    - `file_format`: `statcan`, `statcan, zipped`, `censusmapper` or `tidy`.
    - `table`: The rows of the profile.
    - `seed`: Of the census.
    - `editions`: What is wanted.
    - `rounds`: How counts are rounded, in every edition.
    """

    def __init__(
        self,
        folder: Path,
        file_format: str,
        table: Schema,
        seed: int,
        editions: Editions,
        rounds: Rounds = PLAIN,
    ) -> None:
        self._table, self._seed, self._rounds = table, seed, rounds
        self._writers = [
            (_writer(folder, file_format, table, seed, tail, rounds), edition, levels)
            for tail, edition, levels in editions.files
        ]

    def add(self, block: CountBlock) -> None:
        """Write one block into every file that has areas of it."""
        published, edition = block, 1
        level = block.regions["level"].to_numpy()
        for writer, number, levels in self._writers:
            if number != edition:
                anew = publish(block, self._table, self._seed, number, self._rounds)
                published, edition = replace(block, published=anew), number
            keep = np.isin(level, levels)
            if keep.any():
                writer.add(published, None if keep.all() else keep)

    def close(self) -> list[Path]:
        """Finish, and return the files."""
        return [path for writer, _, _ in self._writers for path in writer.close()]

    def drop(self) -> None:
        """Let go of open files, whether finished or not."""
        for writer, _, _ in self._writers:
            writer.drop()


def _writer(folder: Path, file_format: str, table: Schema, seed: int, tail: str, rounds: Rounds) -> Writer:
    if file_format == "censusmapper":
        return CensusMapper(folder, table, seed, tail, rounds)
    if file_format == "tidy":
        return Tidy(folder, table, seed, tail, rounds)
    return StatCan(folder, table, seed, zipped=file_format != "statcan", tail=tail, rounds=rounds)


def write_areas(path: Path, regions: pl.DataFrame, levels: Sequence[str], wide: bool) -> None:
    """Write which area lies in which: for every area that is published, the smallest published one around it."""
    name = dict(zip(regions["region"], regions["code" if wide else "region"], strict=True))
    level = dict(zip(regions["region"], regions["level"], strict=True))
    parent = dict(zip(regions["region"], regions["parent"], strict=True))
    lines = []
    for region, own in level.items():
        above = parent[region]
        while above is not None and level[above] not in levels:
            above = parent[above]
        if own in levels and above is not None:
            lines.append((name[region], name[above]))
    pl.DataFrame(lines, schema={"child": pl.String, "parent": pl.String}, orient="row").write_csv(path)
