"""The Canadian bulk layout: every packing and variant gives the same counts, and nothing passes unnoticed."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unround import simulate
from unround.errors import InputError
from unround.mechanisms import Exact
from unround.release import (
    ABSENT,
    NOT_APPLICABLE,
    NOT_AVAILABLE,
    SUPPRESSED,
    UNREADABLE,
    UNRELIABLE,
    Counts,
    Release,
)
from unround.tables import bulk, read
from unround.tables.line_scan import NO_ID, SHORT, FieldPlaces, ScanBuffers, scan
from unround.tables.symbols import as_counts

HEADER = [
    "CENSUS_YEAR",
    "DGUID",
    "ALT_GEO_CODE",
    "GEO_LEVEL",
    "GEO_NAME",
    "TNR_SF",
    "TNR_LF",
    "DATA_QUALITY_FLAG",
    "CHARACTERISTIC_ID",
    "CHARACTERISTIC_NAME",
    "CHARACTERISTIC_NOTE",
    "C1_COUNT_TOTAL",
    "SYMBOL",
    "C2_COUNT_MEN+",
    "SYMBOL",
    "C3_COUNT_WOMEN+",
    "SYMBOL",
    "C10_RATE_TOTAL",
    "SYMBOL",
    "C11_RATE_MEN+",
    "SYMBOL",
    "C12_RATE_WOMEN+",
    "SYMBOL",
]
NOT_BY_SEX = ("", "...")


@dataclass(frozen=True)
class Cells:
    """A line of a made-up file: its ID, its indented name, and three cells with their signs."""

    id: int
    name: str
    total: tuple[str, str]
    men: tuple[str, str] = NOT_BY_SEX
    women: tuple[str, str] = NOT_BY_SEX


def profile(people: int = 100) -> list[Cells]:
    half = str(people // 2)
    return [
        Cells(1, "Population, 2021", (str(people), "")),
        Cells(3, "Population percentage change, 2016 to 2021", ("-4.9", "")),
        Cells(5, "Private dwellings occupied by usual residents", ("40", "")),
        Cells(8, "Total - Age groups of the population - 100% data", (str(people), ""), (half, ""), (half, "")),
        Cells(9, "  0 to 14 years", ("20", ""), ("10", ""), ("10", "")),
        Cells(13, "  15 to 64 years", ("80", ""), ("40", ""), ("40", "")),
        Cells(34, "Total - Distribution of the population by broad age groups", ("100", ""), ("100", ""), ("100", "")),
        Cells(35, "  0 to 14 years", ("20.5", ""), ("20.1", ""), ("20.9", "")),
    ]


def area(number: int, lines: Sequence[Cells], name: str = "", dguid: str = "") -> list[list[str]]:
    code = f"3599{number:04}"
    lead = ["2021", dguid or f"2021S0512{code}", code, "Dissemination area", name or code, "3.1", "4.6", "00000"]
    return [[*lead, str(line.id), line.name, "", *line.total, *line.men, *line.women, *["0", ""] * 3] for line in lines]


def written(rows: Sequence[Sequence[str]], delimiter: str = ",", ends: str = "\r\n", header: Sequence[str] = HEADER) -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=ends)
    writer.writerows([header, *rows])
    return text.getvalue()


def put(path: Path, *areas: Sequence[Sequence[str]], encoding: str = "cp1252") -> Path:
    path.write_bytes(written([row for rows in areas for row in rows]).encode(encoding))
    return path


def whole(release: Release) -> tuple[pl.DataFrame, Counts]:
    blocks = list(release.blocks())
    return pl.concat(block.areas for block in blocks), np.concatenate([block.counts for block in blocks])


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("census")
    simulate(folder, areas=60, rows="short", seed=3)
    return folder


def data(folder: Path) -> Path:
    return next(folder.glob("*.csv"))


def against_truth(release: Release, folder: Path) -> tuple[int, int]:
    """Return the largest distance of a published count from the true one, and how many are absent."""
    areas, counts = whole(release)
    places = pl.DataFrame({"key": list(release.index), "column": list(release.index.values())})
    truth = (
        pl.read_parquet(folder / "truth.parquet")
        .with_columns(
            pl.concat_str("characteristic_id", pl.lit("/"), "sex").str.strip_suffix("/total").alias("key"),
        )
        .join(places, on="key", how="left")
        .join(areas.select("region").with_row_index("row"), on="region", how="left")
    )
    assert truth["column"].null_count() == 0
    assert truth["row"].null_count() == 0
    assert len(truth) == counts.size
    shown = counts[truth["row"].to_numpy(), truth["column"].to_numpy()]
    there = shown > ABSENT
    return int(np.abs(shown - truth["true"].to_numpy())[there].max()), int(np.count_nonzero(~there))


def test_a_simulated_census_comes_back_whole(census: Path) -> None:
    release = read(data(census))
    assert release.file_format == "statcan"
    assert release.product == "a census simulated by `unround simulate`"
    assert release.size == data(census).stat().st_size
    farthest, _ = against_truth(release, census)
    assert farthest == 4
    assert {"percentage", "density", "area", "not applicable"} <= set(release.left_out)
    columns, index = release.columns, release.index
    assert columns[index["1"]].mechanism == Exact()
    assert (columns[index["1"]].adjusted, columns[index["4"]].adjusted) == (5, 0)
    assert columns[index["10/men"]].codes == ("10", "men")
    assert columns[index["10/men"]].label == "0 to 4 years"
    assert columns[index["10/men"]].depth == 2
    assert columns[index["10/men"]].block == "Total - Age groups of the population - 100% data"
    assert columns[index["10/men"]].mechanism is None
    sums = {(columns[sum_.total].key, *(columns[part].key for part in sum_.parts)) for sum_ in release.proposals}
    assert ("9/women", "10/women", "11/women", "12/women") in sums
    assert ("10", "10/men", "10/women") in sums
    assert {("1", "8"), ("5", "41"), ("5", "50")} <= sums


def test_areas_are_described(census: Path) -> None:
    areas, counts = whole(release := read(data(census)))
    truth = pl.read_parquet(census / "truth.parquet")
    assert areas["region"].to_list() == truth["region"].unique(maintain_order=True).to_list()
    by_level = {level: rows for (level,), rows in areas.with_row_index().group_by("level")}
    for level, prefix, above in (
        ("Dissemination area", "2021S0512", "2021A0003"),
        ("Census subdivision", "2021A0005", "2021A0003"),
        ("Census division", "2021A0003", "2021A0002"),
        ("Province", "2021A0002", "2021A000011124"),
    ):
        rows = by_level[level]
        assert all(region == prefix + code for region, code in zip(rows["region"], rows["code"], strict=True))
        assert all(parent.startswith(above) for parent in rows["parent"])
    subdivisions = by_level["Census subdivision"]
    people = counts[subdivisions["index"].to_numpy(), release.index["1"]]
    assert subdivisions["adjustable"].to_list() == (people < 5000).tolist()
    assert by_level["Dissemination area"]["adjustable"].all()
    assert not by_level["Census division"]["adjustable"].any()
    assert any(not name.isascii() for name in areas["region_name"])  # accents survive


PACKINGS: dict[str, Callable[[str], bytes]] = {
    "gzip": lambda text: gzip.compress(text.encode("cp1252")),
    "tabs": lambda text: written(list(csv.reader(io.StringIO(text)))[1:], "\t").encode("cp1252"),
    "semicolons": lambda text: written(list(csv.reader(io.StringIO(text)))[1:], ";").encode("cp1252"),
    "UTF-8, marked": lambda text: text.encode("utf-8-sig"),
    "UTF-8, line feeds": lambda text: text.replace("\r\n", "\n").encode(),
    "no line end, blank lines": lambda text: text.replace("\r\n", "\r\n\r\n").rstrip().encode("cp1252"),
    "all quoted": lambda text: "".join(
        ",".join(f'"{field}"' for field in row) + "\n" for row in csv.reader(io.StringIO(text))
    ).encode("cp1252"),
}


@pytest.mark.parametrize("packing", PACKINGS)
def test_every_variant_gives_the_same(census: Path, tmp_path: Path, packing: str) -> None:
    text = data(census).read_bytes().decode("cp1252")
    path = tmp_path / "variant"
    path.write_bytes(PACKINGS[packing](text))
    areas, counts = whole(read(data(census)))
    again, same = whole(read(path))
    assert again.equals(areas)
    assert np.array_equal(same, counts)


def test_a_zip_as_published(tmp_path: Path) -> None:
    (file, *_) = simulate(tmp_path, areas=25, rows="age", seed=5).files
    with zipfile.ZipFile(tmp_path / "98-401-X2021006_eng_CSV.zip", "w") as packed:
        packed.write(file, file.name)
        packed.writestr("98-401-X2021006_Geo_starting_row.CSV", '"Geo Code","Geo Name","Line Number"\r\n')
        packed.writestr("README_meta.txt", "about these files")
    release = read(next(tmp_path.glob("*.zip")))
    assert against_truth(release, tmp_path)[0] == 4
    assert "the table is 98-401-X2021006_English_CSV_data.csv" in release.notes[0]


def test_a_zip_of_several_regions(tmp_path: Path) -> None:
    parts = {name: written(area(number, profile())) for number, name in enumerate(("a_East.csv", "a_West.csv"))}
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for name, text in parts.items():
            packed.writestr(name, text)
    assert whole(read(tmp_path / "a.zip"))[0]["code"].to_list() == ["35990000", "35990001"]


@pytest.mark.parametrize(("chunk", "rows"), [(700, 1), (5_000, 500), (100_003, 3_000), (700, 3_000)])
def test_chunks_and_blocks_cut_no_area_apart(census: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, rows: int) -> None:
    areas, counts = whole(read(data(census)))
    monkeypatch.setattr(bulk, "CHUNK", chunk)
    monkeypatch.setattr(bulk, "CHUNK", 300_000)
    monkeypatch.setattr(bulk, "BLOCK_ROWS", rows)
    release = read(data(census))
    sizes = [len(block.areas) for block in release.blocks()]
    assert sum(sizes) == len(areas)
    assert len(sizes) > 5
    again, same = whole(release)
    assert again.equals(areas)
    assert np.array_equal(same, counts)


def test_progress_goes_up_to_the_size(census: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 100_000)
    release, steps = read(data(census)), list[int]()
    for _ in release.blocks(steps.append):
        pass
    assert steps == sorted(steps)
    assert steps[-1] == release.size
    assert len(steps) > 10


# Cells and kinds


def test_signs_stay_apart(tmp_path: Path) -> None:
    signs = [
        ("", "x"),
        ("", "..."),
        ("", ".."),
        ("", "F"),
        ("15", "E"),
        ("15", "r"),
        ("0", ""),
        ("", ""),
        ("x", ""),
        ("7", "x"),
    ]
    meant = [SUPPRESSED, NOT_APPLICABLE, NOT_AVAILABLE, UNRELIABLE, 15, 15, 0, NOT_AVAILABLE, SUPPRESSED, UNREADABLE]
    areas = [
        area(at, [*profile()[:-3], Cells(13, "  15 to 64 years", sign, ("10", ""), sign), *profile()[-2:]])
        for at, sign in enumerate(signs)
    ]
    _, counts = whole(release := read(put(tmp_path / "a.csv", *areas)))
    for key in ("13", "13/women"):
        assert counts[:, release.index[key]].tolist() == meant
    assert "2 cells hold something other than a count" in release.notes[0]
    assert "the first is 13 of area 2021S051235990009" in release.notes[0]


def test_percentages_named_like_counts_are_told_by_their_decimals(tmp_path: Path) -> None:
    release = read(put(tmp_path / "a.csv", area(1, profile()), area(2, profile())))
    assert release.left_out["numbers with decimals"] == ("0 to 14 years",)
    assert release.left_out["percentage"] == ("Population percentage change, 2016 to 2021",)
    assert "35" not in release.index
    assert "Population, 2021, men" in release.left_out["not applicable"]


def test_odd_numbers_in_later_areas(tmp_path: Path) -> None:
    odd = profile()
    odd[4] = Cells(9, "  0 to 14 years", ("12.5", ""), ("1,235", ""), ("1e+03", ""))
    areas = [area(at, profile()) for at in range(6)]
    _, counts = whole(release := read(put(tmp_path / "a.csv", *areas, area(7, odd))))
    at = release.index
    assert counts[6, [at["9"], at["9/men"], at["9/women"]]].tolist() == [UNREADABLE, 1235, 1000]
    assert "1 cells hold something other than a count" in release.notes[0]
    whole(release)
    assert len(release.notes) == 1  # a second reading says nothing twice


def test_counts_where_the_first_areas_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 2_000)
    late = profile()
    late[0] = Cells(1, "Population, 2021", ("100", ""), ("45", ""), ("55", ""))
    release = read(put(tmp_path / "a.csv", *[area(at, profile()) for at in range(6)], area(7, late)))
    whole(release)
    assert release.notes == [
        "2 counts are given where the first areas have 'not applicable'; the first is 1/men of area 2021S051235990007. "
        "They are not used."
    ]


def test_only_totals(tmp_path: Path) -> None:
    rows = [row[:13] for row in area(1, profile())]
    path = tmp_path / "a.csv"
    path.write_text(written(rows, header=HEADER[:13]), encoding="utf-8")
    release = read(path)
    assert {column.codes[1] for column in release.columns} == {"total"}
    assert whole(release)[1].tolist() == [[100, 40, 100, 20, 80, 100]]


# Areas that differ


@pytest.mark.parametrize("chunk", [3_000, 1 << 22])
def test_areas_may_differ_in_what_they_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(bulk, "CHUNK", chunk)
    lines = profile()
    areas = [area(1, lines), area(2, lines[:4]), area(3, lines[::-1]), area(4, lines[:3] + lines[4:])]
    extra = [*lines, Cells(99, "Total - Something", ("5", ""))]
    _, counts = whole(release := read(put(tmp_path / "a.csv", *areas, area(5, extra))))
    at = release.index
    assert counts[:, at["9"]].tolist() == [20, NOT_AVAILABLE, 20, 20, 20]
    assert counts[:, at["8"]].tolist() == [100, 100, 100, NOT_AVAILABLE, 100]
    assert counts[:, at["99"]].tolist() == [NOT_AVAILABLE] * 4 + [5]
    assert release.notes[-1].startswith("4 areas lack lines that others have; the first is 2021S051235990001.")
    assert "cut short" not in release.notes[-1]


def test_a_last_area_that_is_cut_off_at_a_line_end(tmp_path: Path) -> None:
    release = read(put(tmp_path / "a.csv", area(1, profile()), area(2, profile())[:5]))
    whole(release)
    assert "The last area is one of them: the file may have been cut short." in release.notes[-1]


# Refusals


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        whole(read(path))
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_an_area_in_two_places(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", area(1, profile()), area(2, profile()), area(1, profile()))
    assert "has area 2021S051235990001 in two places" in refusal(path)


def test_a_characteristic_twice(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", area(1, profile()), area(2, [*profile(), profile()[3]]))
    assert "area 2021S051235990002 has characteristic 8 more than once" in refusal(path)


def test_a_characteristic_that_comes_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 2_000)
    late = [*profile(), Cells(2631, "Late", ("5", ""))]
    path = put(tmp_path / "a.csv", *[area(at, profile()) for at in range(6)], area(7, late))
    assert "area 2021S051235990007 has characteristic 2631, which none of the first areas has" in refusal(path)


def test_a_plain_file_cut_short(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", area(1, profile()), area(2, profile()))
    content = path.read_bytes()
    last = content.rindex(b"2021,")
    path.write_bytes(content[: content.index(b",20.1", last)])
    said = refusal(path)
    assert "may have been cut short" in said
    assert "2021,2021S051235990002" in said


def test_lines_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [*area(1, profile()), *area(2, profile())]
    path = tmp_path / "a.csv"
    path.write_text(written(rows) + "Note: see the documentation\n", encoding="utf-8")
    assert "Note: see the documentation" in refusal(path) or "None, not a number" in refusal(path)
    rows[-1][8] = "many"
    path.write_text(written(rows), encoding="utf-8")
    assert "whose CHARACTERISTIC_ID is 'many', not a number" in refusal(path)
    monkeypatch.setattr(bulk, "CHUNK", 1_200)  # so that the first areas do not show it
    assert "without counts or without the number of its characteristic" in refusal(path)
    path.write_text(",".join(HEADER) + "\n", encoding="utf-8")
    assert "has a first line, but no counts below it" in refusal(path)


def test_columns_that_are_missing_or_moved(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lacking = [name if name != "GEO_NAME" else "PLACE" for name in HEADER]
    path.write_text(written(area(1, profile()), header=lacking), encoding="utf-8")
    assert "does not have the column GEO_NAME" in refusal(path)
    order = [*range(1, len(HEADER)), 0]
    order.insert(0, order.pop(order.index(8)))
    path.write_text(
        written([[row[at] for at in order] for row in area(1, profile())], header=[HEADER[at] for at in order]),
        encoding="utf-8",
    )
    assert "has DGUID after CHARACTERISTIC_ID" in refusal(path)


def test_areas_without_a_code(tmp_path: Path) -> None:
    rows = area(2, profile())
    for row in rows:
        row[1] = ""
    assert "lines without a DGUID" in refusal(put(tmp_path / "a.csv", area(1, profile()), rows))


def test_nothing_but_percentages(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of the characteristics in this file is a count"):
        read(put(tmp_path / "a.csv", area(1, [profile()[1]])))


# The scanner, against the csv module


CELL = st.sampled_from(
    ["", "0", "5", "-5", "15", "1234567890", "4.5", "1e+06", "x", " 7", "é", "a,b", 'say "no"', "two\nlines"]
)
SIGN = st.sampled_from(["", "x", "...", "..", "F", "E", ".", "....", "xx", "y"])
LINE = st.tuples(
    st.sampled_from(["A", "AB", "B", "B,B"]), st.integers(0, 12), st.lists(st.tuples(CELL, SIGN), min_size=3, max_size=3)
)


ENDS = ("end", 'an "end"', "over,\nlines" + " and on" * 9, "")
"""What may follow the last field that is read."""


@given(st.lists(LINE, min_size=1, max_size=12), st.sampled_from([",", "\t"]), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_the_scanner_reads_as_the_csv_module_does(
    lines: list[tuple[str, int, list[tuple[str, str]]]], delimiter: str, ends: str, quoted: bool
) -> None:
    rows = [
        ["2021", region, str(number), *(part for pair in cells for part in pair), ENDS[number % len(ENDS)]]
        for region, number, cells in lines
    ]
    text = io.StringIO()
    csv.writer(
        text, delimiter=delimiter, lineterminator=ends, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    ).writerows(rows)
    content = text.getvalue().encode()
    most = content.count(b"\n")
    scan_buffers = ScanBuffers(
        np.empty(most, np.int32), np.zeros((most, 3), np.int32), np.empty(most, np.int64), np.empty(most, np.int64),
        np.empty((3 * most, 6), np.int64), np.empty(0, np.int64), np.empty((0, 3), np.int64),
    )  # fmt: skip
    where = FieldPlaces(ord(delimiter), 1, 2, np.array([3, 5, 7]), np.array([4, 6, 8]), 8)
    counted = np.ones(13, dtype=np.uint8)
    counted[12] = 0
    number, areas, odd, _ = scan(np.frombuffer(content, np.uint8), where, counted, scan_buffers)
    assert number == len(rows)
    assert scan_buffers.ids[:number].tolist() == [line[1] for line in lines]
    begins = [at for at, line in enumerate(lines) if at == 0 or line[0] != lines[at - 1][0]]
    assert scan_buffers.begins[:areas].tolist() == begins
    left = {}
    for line, sex, *ends_ in scan_buffers.odd[:odd].tolist():
        left[line, sex] = (content[ends_[0] : ends_[1]].decode(), content[ends_[2] : ends_[3]].decode())
    for at, (_, characteristic, cells) in enumerate(lines):
        for sex, (cell, sign) in enumerate(cells):
            if (at, sex) in left:
                assert left[at, sex] == (cell.replace('"', '""'), sign)
            else:
                meant = as_counts(pl.Series([cell]), pl.Series([sign]))[0][0] if characteristic != 12 else 0
                assert scan_buffers.counts[at, sex] == meant


@given(st.lists(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["a", "b", '"a,\n"'])), max_size=4), max_size=8))
def test_lines_are_taken_for_those_of_the_area_before_only_where_they_are(areas: list[list[tuple[int, str]]]) -> None:
    """The ID and the label are not read again where both are as in the same line of the area before."""
    lines = [
        (area, *line, 10 * at + area) for area, lines_of_area in enumerate(areas) for at, line in enumerate(lines_of_area)
    ]
    content = "".join(f"1,area{area},{number},{label},{count}\n" for area, number, label, count in lines).encode()
    most = content.count(b"\n")
    scan_buffers = ScanBuffers(
        np.empty(most, np.int32), np.zeros((most, 1), np.int32), np.empty(most, np.int64), np.empty(most, np.int64),
        np.empty((most, 6), np.int64), np.empty(0, np.int64), np.empty((0, 1), np.int64),
    )  # fmt: skip
    where = FieldPlaces(ord(","), 1, 2, np.array([4]), np.array([-1]), 4)
    number, begun, odd, _ = scan(np.frombuffer(content, np.uint8), where, np.ones(4, dtype=np.uint8), scan_buffers)
    assert (number, odd) == (len(lines), 0)
    assert begun == sum(bool(lines_of_area) for lines_of_area in areas)
    assert scan_buffers.ids[:number].tolist() == [line[1] for line in lines]
    assert scan_buffers.counts[:number, 0].tolist() == [line[3] for line in lines]


@pytest.mark.parametrize(
    ("line", "number"), [(b"1,A,x,3\n", NO_ID), (b"1,A\n", SHORT), (b'1,"A,2,3\n', SHORT), (b"1,A,,\n", NO_ID)]
)
def test_lines_that_cannot_be_scanned(line: bytes, number: int) -> None:
    scan_buffers = ScanBuffers(
        np.empty(1, np.int32),
        np.zeros((1, 1), np.int32),
        np.empty(1, np.int64),
        np.empty(1, np.int64),
        np.empty((1, 6), np.int64),
        np.empty(0, np.int64),
        np.empty((0, 1), np.int64),
    )
    where = FieldPlaces(ord(","), 1, 2, np.array([3]), np.array([-1]), 3)
    assert scan(np.frombuffer(line, np.uint8), where, np.ones(1, dtype=np.uint8), scan_buffers)[0] == 1
    assert scan_buffers.ids[0] == number
