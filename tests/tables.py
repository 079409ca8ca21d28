"""Tables as people make them: small truths drawn and rounded, then written as spreadsheets, CSV, SDMX-CSV or frames."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import polars as pl
from numpy.typing import NDArray

import unround
from unround.release import Release

AGES = ("0-14", "15-64", "65+")
SEXES = ("Men", "Women")
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Drawn:
    """People of some regions by age and sex with all margins, age × sex per region: true, and as published.

    The last of each axis is the total; `published` has every region's total of all unrounded if `exact`.
    """

    regions: tuple[str, ...]
    true: Counts
    published: Counts

    def at(self, region: int, age: int, sex: int) -> int:
        return int(self.published[region, age, sex])


def rounded(true: Counts, base: int, rng: np.random.Generator) -> Counts:
    """Round at random, without bias."""
    down = true // base * base
    return down + base * (rng.random(true.shape) < (true - down) / base)


def draw(regions: int = 40, base: int = 3, seed: int = 1, exact: bool = False, mean: float = 60.0) -> Drawn:
    """Draw a small table, and round every count by itself."""
    rng = np.random.default_rng(seed)
    size = rng.gamma(2.0, mean / 2.0, (regions, 1, 1)) + 4
    share = np.array([0.2, 0.6, 0.2])[None, :, None] * np.array([0.5, 0.5])[None, None, :]
    parts = rng.poisson(size * share * rng.gamma(20.0, 1 / 20.0, (regions, 3, 2)))
    true = np.zeros((regions, 4, 3), dtype=np.int64)
    true[:, :3, :2] = parts
    true[:, 3, :2], true[:, :3, 2] = parts.sum(1), parts.sum(2)
    true[:, 3, 2] = parts.sum((1, 2))
    published = rounded(true, base, rng)
    if exact:
        published[:, 3, 2] = true[:, 3, 2]
    return Drawn(tuple(f"Region {number:02d}" for number in range(1, regions + 1)), true, published)


def cube_places(shape: Sequence[int]) -> list[tuple[str, ...]]:
    """Return the categories of every count of a table with all margins, in order; "0" is the total of an axis."""
    return list(product(*([str(k) for k in range(size + 1)] for size in shape)))


def cube_release(counts: NDArray[np.integer], shape: Sequence[int], base: int) -> Release:
    """Return areas a00, a01 … by axes x, y and z, with all margins, as a release; counts are areas × places."""
    places = cube_places(shape)
    rows = [
        {"area": f"a{a:02d}", **dict(zip("xyz", place, strict=True)), "n": int(n)}
        for a, row in enumerate(counts)
        for place, n in zip(places, row, strict=True)
    ]
    sums = {
        name: {"sums": [{"total": "0", "parts": [str(k) for k in range(1, size + 1)]}]}
        for name, size in zip("xyz", shape, strict=True)
    }
    description = {"value": "n", "default": f"rounding:{base}", "axes": {"area": {}} | sums}
    return unround.read(pl.DataFrame(rows), describe=description)


def write_xlsx(
    path: Path,
    rows: Sequence[Sequence[object]],
    merged: Sequence[tuple[int, int, int, int]] = (),
    **others: Sequence[Sequence[object]],
) -> Path:
    """Write rows into the sheet "Table 1", and others into sheets of their own, which come first."""
    import xlsxwriter

    book = xlsxwriter.Workbook(str(path))
    for name, content in {**others, "Table 1": rows}.items():
        sheet = book.add_worksheet(name)
        for at, row in enumerate(content):
            for column, value in enumerate(row):
                if value is not None:
                    sheet.write(at, column, value)
        if name == "Table 1":
            for top, left, bottom, right in merged:
                sheet.merge_range(top, left, bottom, right, rows[top][left])
    book.close()
    return path


def _typed(value: object) -> str:
    number = isinstance(value, int | float)
    return f'office:value-type="float" office:value="{value}"' if number else 'office:value-type="string"'


def write_ods(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    """Write rows into the only sheet of an ODS."""
    lines = []
    for row in rows:
        cells = [
            "<table:table-cell/>"
            if value is None
            else f"<table:table-cell {_typed(value)}><text:p>{escape(str(value))}</text:p></table:table-cell>"
            for value in row
        ]
        lines.append(f"<table:table-row>{''.join(cells)}</table:table-row>")
    space = "urn:oasis:names:tc:opendocument:xmlns"
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content xmlns:office="{space}:office:1.0" '
        f'xmlns:table="{space}:table:1.0" xmlns:text="{space}:text:1.0"><office:body><office:spreadsheet>'
        f'<table:table table:name="Sheet1">{"".join(lines)}</table:table></office:spreadsheet></office:body>'
        "</office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("mimetype", kind)
        entry = f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        manifest = f'<manifest:manifest xmlns:manifest="{space}:manifest:1.0">{entry}</manifest:manifest>'
        packed.writestr("META-INF/manifest.xml", manifest)
        packed.writestr("content.xml", content)
    return path


def two_header_rows(drawn: Drawn) -> list[list[object]]:
    """Return a sheet as agencies make it: a title, ages spanning sexes in two header rows, one region per row, a source."""
    rows: list[list[object]] = [["Table 1. Population by region, age and sex, 2025"], [], ["Region"], [None]]
    for age in ("Total", *AGES):
        rows[2] += [age, None, None]
        rows[3] += ["Total", *SEXES]
    order = (3, 0, 1, 2)
    for at, region in enumerate(drawn.regions):
        rows.append([region, *(drawn.at(at, age, sex) for age in order for sex in (2, 0, 1))])
    return [*rows, [], ["Source: a register that does not exist."]]


def draft_xlsx(path: Path, drawn: Drawn) -> Path:
    """Write that sheet, with a sheet of notes before it, and the ages merged over their columns."""
    spans = [(2, 0, 3, 0), *((2, left, 2, left + 2) for left in (1, 4, 7, 10))]
    return write_xlsx(path, two_header_rows(drawn), spans, Notes=[["About this table"], ["Counts were rounded."]])


def long_rows(drawn: Drawn, total: str = "Total", sexes: Sequence[str] = SEXES) -> list[tuple[str, str, str, int]]:
    """Return one row per count: region, age, sex, count."""
    ages, both = (*AGES, total), (*sexes, total)
    return [
        (region, age, sex, drawn.at(at, a, s))
        for at, region in enumerate(drawn.regions)
        for a, age in enumerate(ages)
        for s, sex in enumerate(both)
    ]


def wide_csv(path: Path, drawn: Drawn) -> Path:
    """Write one row per region, a single header row, and names that say age and sex at once."""
    order = [(age, sex) for sex in (2, 0, 1) for age in (3, 0, 1, 2)]
    label: Callable[[int, int], str] = lambda age, sex: " ".join(  # noqa: E731
        word for word in ((*SEXES, "Total")[sex], (*AGES, "")[age]) if word
    )
    lines = [",".join(["Code", "Region", *(label(*one) for one in order), "Share of women (%)"])]
    for at, region in enumerate(drawn.regions):
        counts = [str(drawn.at(at, *one)) for one in order]
        lines.append(
            ",".join([f"{at + 1:03d}", region, *counts, f"{100 * drawn.at(at, 3, 1) / max(1, drawn.at(at, 3, 2)):.1f}"])
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def sdmx_csv(path: Path, drawn: Drawn) -> Path:
    """Write SDMX-CSV, with statuses, and three cells of the smallest kind withheld."""
    ages = {"0-14": "Y0T14", "15-64": "Y15T64", "65+": "Y_GE65", "_T": "_T"}
    lines = ["DATAFLOW,REF_AREA,AGE,SEX,TIME_PERIOD,OBS_VALUE,OBS_STATUS,UNIT_MEASURE"]
    for number, (region, age, sex, count) in enumerate(long_rows(drawn, "_T", ("M", "F"))):
        hidden = number in (5, 100, 200)
        place = f"XA{int(region[-2:]):02d}"
        lines.append(f"XX:POP(1.0),{place},{ages[age]},{sex},2025,{'' if hidden else count},{'Q' if hidden else 'A'},PS")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def semicolon_csv(path: Path, drawn: Drawn) -> Path:
    """Write a German table: BOM, semicolons, points between thousands, Insgesamt, a dot for what is secret."""
    lines = ["Gemeinde;Altersgruppe;Insgesamt;männlich;weiblich"]
    names = ("unter 15 Jahre", "15 bis unter 65 Jahre", "65 Jahre und mehr", "Insgesamt")
    for at, region in enumerate(drawn.regions):
        for age, name in enumerate(names):
            shown = [f"{drawn.at(at, age, sex):,}".replace(",", ".") for sex in (2, 0, 1)]
            lines.append(";".join([region.replace("Region", "Ort"), name, *shown]))
    path.write_text("\ufeff" + "\r\n".join(lines) + "\r\n", encoding="utf-8")
    return path
