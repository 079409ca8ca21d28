"""Files that are there to break a reader: every one is refused with words, or read as it is; in bounded time and memory."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import resource
import shutil
import struct
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import unround
from tests.conftest import Run
from tests.test_read_bulk import HEADER, area, profile, written
from unround.errors import InputError
from unround.release import ABSENT, LARGEST, NOT_AVAILABLE, UNREADABLE, Block, Release
from unround.tables import bulk as bulk_format
from unround.tables import cells, delimited, read, read_frame, source
from unround.tables.frames import from_frame
from unround.tables.spool import Spool
from unround.tables.tidy import tables_of

MEGABYTE = 1 << 20
THOROUGH = "UNROUND_THOROUGH" in os.environ
SECONDS, MEMORY = 120.0, 700 * MEGABYTE
"""What no attack here may take, on a machine that is busy with other tests too. Most take a hundredth of it."""


def peak() -> int:
    """Return the most memory that the process has had since `forget_peak`, in bytes; 0 where nobody tells."""
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
    return 0


def forget_peak() -> int:
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as refs:
        refs.write("5")
    return peak()


@contextlib.contextmanager
def bounded(memory: int = MEMORY) -> Iterator[None]:
    before, start = forget_peak(), time.process_time()  # whatever else the machine does
    yield
    assert time.process_time() - start < SECONDS
    assert peak() - before < memory


def whole(release: Release) -> tuple[pl.DataFrame, np.ndarray]:
    blocks = list(release.blocks())
    return pl.concat(block.areas for block in blocks), np.concatenate([block.counts for block in blocks])


def refused(path: Path, *, layout: str = "auto", **more: Path) -> str:
    """Return the words with which a file is refused; anything but an InputError fails the test."""
    with bounded(), pytest.raises(InputError) as caught:
        whole(read(path, layout, **more))
    assert len(str(caught.value)) < 5_000
    return str(caught.value)


def told(path: Path) -> str:
    """Read a file within limits; return why it is refused, or nothing."""
    with bounded():
        try:
            whole(read(path))
        except InputError as problem:
            return str(problem)
    return ""


def put(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def bulk(*areas: list[list[str]]) -> str:
    return written([row for rows in areas for row in rows])


BULK = bulk(area(1, profile()), area(2, profile(90)))
WIDE = "GeoUID,Type,v_CA21_1: Population,v_CA21_8: 0 to 14 years\n35,PR,100,20\n48,PR,90,30\n"
TIDY = "region,characteristic_id,sex,published\n1,10,total,15\n1,10,men,10\n2,10,total,20\n2,10,men,5\n"
STATSNZ = "code,name,variable,variable_group,count\n1,A,sex,total_curp,10\n2,B,sex,total_curp,7\n"
NAMES = "FIRST_NAME,GENDER_TOTAL_COUNT,MEN+_COUNT,WOMEN+_COUNT\nAda,20,5,15\nBob,30,30,...\n"
INDICATORS = "geo_name,indicator_1,indicator_8,indicator_9\nA1A,100,100,20\nB1B,50,50,10\n"
PAGE = (
    '"Census Profile, 2021 Census of Population"\n,,,"A [Dissemination area]"\n,,,Counts\n'
    "Topic,Characteristic,Note,Total,Total_Flag\n"
    'Population,"Population, 2021",,100,\nPopulation,"  0 to 14 years",,20,\nSymbols:\n'
)
ALL = {
    "statcan": BULK, "censusmapper": WIDE, "tidy": TIDY, "statsnz": STATSNZ, "first-names": NAMES, "indicators": INDICATORS,
    "profile-page": PAGE,
}  # fmt: skip


@pytest.mark.parametrize("layout", ALL)
def test_the_files_that_are_spoilt_below_are_read_when_they_are_whole(tmp_path: Path, layout: str) -> None:
    release = read(put(tmp_path / "a.csv", ALL[layout]))
    assert release.file_format == layout
    assert (whole(release)[1] > ABSENT).any()


# Bombs


def zeros(gigabytes: float, piece: bytes) -> bytes:
    """Deflate one piece again and again, which takes no time: a full flush makes all of them the same bytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packer.compress(piece)
    packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    times = int(gigabytes * 1024 * MEGABYTE / len(piece))
    return again * times + packer.flush(zlib.Z_FINISH)


def gzip_of(head: bytes, body: bytes) -> bytes:
    """Put deflated bytes behind a first member: gzip files may have several."""
    lead = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    return gzip.compress(head) + lead + body + struct.pack("<II", 0, 0)


def zip_of(body: bytes, size: int, name: str = "a.csv") -> bytes:
    """Write a zip by hand, around bytes that are deflated already, with any size declared."""
    called = name.encode()
    extra = struct.pack("<HHQQ", 1, 16, size, len(body))
    local = (
        struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 45, 0, 8, 0, 33, 0, 2**32 - 1, 2**32 - 1, len(called), 20) + called + extra
    )
    central = struct.pack(
        "<4sHHHHHHIIIHHHHHII", b"PK\1\2", 45, 45, 0, 8, 0, 33, 0, 2**32 - 1, 2**32 - 1, len(called), 20, 0, 0, 0, 0, 0
    ) + called + extra  # fmt: skip
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 1, 1, len(central), len(local) + len(body), 0)
    return local + body + central + end


BOMBS = {"nought bytes": b"\0" * MEGABYTE, "one line": b"0" * MEGABYTE, "lines": b"0,0,0,0\n" * (MEGABYTE // 8)}


HEADS = {"": "", "bulk": BULK, "wide": WIDE, "tidy": TIDY}


@pytest.mark.parametrize(
    ("filling", "head"),  # behind a head, only lines differ from what comes without one
    [(filling, head) for filling in BOMBS for head in HEADS if filling == "lines" or not head or THOROUGH],
)
def test_ten_gigabytes_in_ten_megabytes(tmp_path: Path, filling: str, head: str) -> None:
    body = zeros(10, BOMBS[filling])
    assert len(body) < 16 * MEGABYTE
    said = refused(put(tmp_path / "a.csv.gz", gzip_of(HEADS[head].encode(), body)))
    assert str(tmp_path / "a.csv.gz") in said
    if not head:
        for declared in (10 << 30, 7, 2**63 - 1):
            refused(put(tmp_path / "a.zip", zip_of(body, declared)))


def test_a_zip_with_many_parts_counts_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "SUSPICIOUS", 4 * MEGABYTE)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for number in range(40):
            packed.writestr(f"{number}.csv", TIDY + "0,0,0,0\n" * (MEGABYTE // 8))
    assert "unpacks to over" in refused(tmp_path / "a.zip")


def test_zips_in_zips_are_not_opened(tmp_path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.csv", TIDY)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("b.zip", inner.getvalue())
    assert "contains b.zip but no table (.csv or .tab)" in refused(tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("b.csv", inner.getvalue())  # whatever it is called
    assert "is not text" in refused(tmp_path / "a.zip")
    assert "is not text" in refused(put(tmp_path / "a.csv.gz", gzip.compress(gzip.compress(TIDY.encode()))))


def test_entries_that_overlap_are_refused(tmp_path: Path) -> None:
    """Many names for one stretch of the file: the way of the bomb that unpacks to petabytes."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("0.csv", TIDY + "3,3,men,5\n" * 10_000)
    content = (tmp_path / "a.zip").read_bytes()
    at = content.index(b"PK\1\2")
    end = content.index(b"PK\5\6")
    entries = b"".join(content[at:end].replace(b"0.csv", f"{n:05}"[:5].encode(), 1) for n in range(3_000))
    closing = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 3_000, 3_000, len(entries), at, 0)
    said = refused(put(tmp_path / "a.zip", content[:at] + entries + closing))
    assert "damaged" in said or "no table" in said
    # The same with names that are tables, all of them for the same bytes.
    entries = b"".join(content[at:end].replace(b"0.csv", f"{n}.csv".encode(), 1) for n in range(10))
    closing = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 10, 10, len(entries), at, 0)
    assert "damaged" in refused(put(tmp_path / "a.zip", content[:at] + entries + closing))


def test_a_zip_of_thirty_thousand_files(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for number in range(30_000):
            packed.writestr(f"{number}.csv", "a,b\n")
    said = refused(tmp_path / "a.zip")
    assert "30,000 tables" in said


def test_a_parquet_file_that_repeats_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "MANY_ROWS", 1_000_000)
    rows = pl.DataFrame({"region": ["1"], "characteristic_id": ["1"], "sex": ["total"], "true": [1]})
    rows.select(pl.all().sample(2_000_000, with_replacement=True)).write_parquet(tmp_path / "a.parquet")
    assert "2,000,000 rows" in refused(tmp_path / "a.parquet")


def test_a_parquet_file_that_asks_for_more_memory_than_there_is(tmp_path: Path) -> None:
    """Polars ends the process that reads it; the next file is read all the same."""
    content = (Path(__file__).parent / "corpus" / "parquet" / "more-memory-than-there-is").read_bytes()
    assert "runs out of memory" in refused(put(tmp_path / "a.parquet", content))
    rows = pl.DataFrame({"region": ["1", "2"], "characteristic_id": ["1", "1"], "sex": ["total"] * 2, "true": [1, 2]})
    rows.write_parquet(tmp_path / "b.parquet")
    assert sum(len(block.counts) for block in read(tmp_path / "b.parquet").blocks()) == 2


# Fields and lines without end


def test_fields_of_ten_megabytes(tmp_path: Path) -> None:
    long = "x" * (10 * MEGABYTE)
    rows = [*area(1, profile()), *area(2, profile(90))]
    for name in HEADER if THOROUGH else ("GEO_NAME", "CHARACTERISTIC_NAME", "C1_COUNT_TOTAL"):
        spoilt = [list(row) for row in rows]
        spoilt[3][HEADER.index(name)] = long
        assert re.search("download (it|the file) again", refused(put(tmp_path / "a.csv", written(spoilt)))), name


@pytest.mark.parametrize("layout", [layout for layout in ALL if layout != "statcan"])
def test_fields_of_ten_megabytes_in_other_layouts(tmp_path: Path, layout: str) -> None:
    lines, ends = ALL[layout].split("\n"), list[tuple[int, str]]()
    for number, line in enumerate(lines):
        fields = line.split(",")
        for at in range(len(fields)):
            if not THOROUGH and (number, at) not in ((0, 1), (1, 2), (4, 1)):
                continue
            for filling in ("x", " ", "1") if THOROUGH else " ":
                spoilt = [*fields[:at], fields[at] + filling * (10 * MEGABYTE) + "-", *fields[at + 1 :]]
                text = "\n".join([*lines[:number], ",".join(spoilt), *lines[number + 1 :]])
                ends.append((number, told(put(tmp_path / "a.csv", text))))
            if at > 2:
                break
        if number > 5:
            break
    # A header with such a name belongs to no layout; a value or the name of an area may well be read, as what it is.
    assert all(said for number, said in ends if number == 0)
    assert all(len(said) < 5_000 for _, said in ends)
    assert {number for number, _ in ends} >= {0, 1}


@pytest.mark.parametrize("layout", ALL)
def test_headers_and_labels_that_make_patterns_slow(tmp_path: Path, layout: str) -> None:
    for blanks in (
        " " * 30_000,
        "\t" * 30_000,
        " ,-" * 10_000,
        "_" * 30_000,
        "[" * 30_000,
        "." * 30_000,
        "9" * 30_000,
        "_1" * 15_000,
    ):
        for line in range(6 if THOROUGH else 2):
            lines = ALL[layout].split("\n")
            if line < len(lines):
                fields = lines[line].split(",")
                for at in {0, 1, len(fields) // 2, len(fields) - 1}:
                    if at < len(fields):
                        spoilt = [*fields[:at], f'"{fields[at].strip(chr(34))}{blanks}x"', *fields[at + 1 :]]
                        text = "\n".join([*lines[:line], ",".join(spoilt), *lines[line + 1 :]])
                        with bounded(), contextlib.suppress(InputError):
                            whole(read(put(tmp_path / "a.csv", text)))


def test_more_areas_than_memory_holds_are_refused_while_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten million areas pack into 25 MB: an error that says what to do, not minutes and gigabytes."""
    for module in (source, delimited, cells, bulk_format):
        monkeypatch.setattr(module, "MOST_AREAS", 1)
    for text in (WIDE, TIDY, BULK):
        path = put(tmp_path / "a.csv", text)
        with pytest.raises(InputError, match=r"has over 1 (lines|areas).*Split it by region"):
            whole(read(path))
    with pytest.raises(InputError, match="over 1 lines"):
        tables_of(path)
    monkeypatch.undo()
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"area,Total,Men,Women\n" + b"A,15,10,5\n" * 1_600_000))
    with bounded(memory=300 * MEGABYTE), pytest.raises(InputError, match="over 1,500,000 lines"):
        tables_of(tmp_path / "a.csv.gz")


def test_a_million_columns(tmp_path: Path) -> None:
    names = ",".join(f"v_CA21_{n}" for n in range(1_000_000))
    ones = "1" + ",1" * 999_999
    said = refused(put(tmp_path / "a.csv", f"GeoUID,{names}\n35,{ones}\n48,{ones}\n"))
    assert "has 1,000,001 columns" in said
    names = ",".join(f"indicator_{n}" for n in range(1, 1_000_001))
    assert "1,000,001 columns" in refused(put(tmp_path / "a.csv", f"geo_name,{names}\nA,{ones}\n"))
    tidy = TIDY.split("\n")
    text = "\n".join(f"{line}{',x' * 1_000_000}" for line in tidy if line)
    refused(put(tmp_path / "a.csv", text))
    assert "at most 50,000 can be read" in refused(put(tmp_path / "a.csv", text), layout="tidy")
    for layout in ("statcan", "statsnz", "first-names", "profile-page"):
        text = "\n".join(f"{line}{',x' * 200_000}" for line in ALL[layout].splitlines())
        with bounded(), contextlib.suppress(InputError):
            whole(read(put(tmp_path / "a.csv", text)))
    assert "is empty" in refused(put(tmp_path / "a.csv", "\t" * 1_000_000))
    assert "matches none of the formats" in refused(put(tmp_path / "a.csv", "a" + "\t" * 1_000_000))


def test_a_quote_that_never_closes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LONGEST_LINE", 4 * MEGABYTE)
    many = 2_000 if THOROUGH else 200
    areas = [area(number, profile()) for number in range(many)]
    text = bulk(*areas)
    lines = text.splitlines(keepends=True)
    judged = 0
    for at, name in enumerate(HEADER):
        for number in (1, 4 * many, len(lines) - 1):
            fields = lines[number].rstrip("\r\n").split(",")
            # A label with a comma in it is quoted already, and counts as two fields here.
            fields[at] = '"' + fields[at].strip('"')
            spoilt = "".join([*lines[:number], ",".join(fields) + "\r\n", *lines[number + 1 :]])
            with bounded():
                try:
                    release = read(put(tmp_path / "a.csv", spoilt))
                    found, counts = whole(release)
                except InputError:
                    pass
                else:
                    # It was read as it stands, quote and all: no area is lost, and no count changed.
                    assert found.height == many, name
                    expected = whole(read(put(tmp_path / "b.csv", text)))[1]
                    assert np.array_equal(counts, expected) or release.notes, name
                    judged += 1
    assert judged > 0


def test_a_gigabyte_behind_one_quote(tmp_path: Path) -> None:
    for head in (WIDE, TIDY, BULK) if THOROUGH else (WIDE,):
        piece = b"1" * MEGABYTE
        packed = gzip_of(head.encode() + b'"', zeros(1, piece))
        assert "a line of over" in refused(put(tmp_path / "a.csv.gz", packed))
        # The same in lines, with other bytes in each so that it does not pack too well.
        rng = np.random.default_rng(0)
        lines = b"".join(b"%d,%d\n" % (a, b) for a, b in rng.integers(0, 1 << 30, (150_000, 2)))
        packed = gzip.compress(head.encode() + b'"', 1) + gzip.compress(lines, 1) * 10
        with bounded():
            refused(put(tmp_path / "a.csv.gz", packed))


# Numbers that are none, or too large


ODD = {
    "9223372036854775808": UNREADABLE, "-9223372036854775809": UNREADABLE, "1e400": UNREADABLE, "1" * 400: UNREADABLE,
    "-0": 0, "-0.0": 0, "1e-400": UNREADABLE, "0x10": UNREADABLE, "١٢": UNREADABLE, "１２": UNREADABLE, "1_000": UNREADABLE,
    "inf": UNREADABLE, "-inf": UNREADABLE, "Infinity": UNREADABLE, "nan": NOT_AVAILABLE, "1e999999999": UNREADABLE,
    "12.000000000000000000000001": UNREADABLE, "999999999.99999999999": UNREADABLE, "0." + "0" * 400 + "1": UNREADABLE,
    "120000000000000000000e-19": 12, "4.35e2": 435, "1000000000.0": LARGEST, "=1+1": UNREADABLE, "+1-1": UNREADABLE,
    "@SUM(A1)": UNREADABLE, "1\x002": UNREADABLE, "1e": 1, "1,000": 1000, "1,0000": UNREADABLE, "1 000": 1000,
    "1.000,5": UNREADABLE, "½": UNREADABLE, "²": UNREADABLE, "1e+": UNREADABLE, "--5": UNREADABLE, "5-": UNREADABLE,
    "2147483647": UNREADABLE, "-2147483648": UNREADABLE, "-2147483646": UNREADABLE, "1e9": LARGEST, "1000000001": UNREADABLE,
    "0000000000000000000000000000000000000005": 5, "True": UNREADABLE, "5 5": UNREADABLE, "5\n": 5,
}  # fmt: skip


@pytest.mark.parametrize(
    "layout", ["statcan", "censusmapper", "tidy", "statsnz", "first-names", "indicators", "profile-page"]
)
def test_numbers_that_are_no_counts(tmp_path: Path, layout: str) -> None:
    spot = {
        "statcan": ("80,,40", '"{}",,40'), "censusmapper": ("90,30", '90,"{}"'), "tidy": ("men,5", 'men,"{}"'),
        "statsnz": ("curp,7", 'curp,"{}"'), "first-names": ("20,5,15", '20,5,"{}"'), "indicators": ("50,10", '50,"{}"'),
        "profile-page": (",,20,", ',,"{}",'),
    }[layout]  # fmt: skip
    every = 2 if layout == "statcan" and not THOROUGH else 1  # `fuzz` checks this reader's numbers against another reading
    judged = 0
    for cell, count in list(ODD.items())[::every]:
        text = ALL[layout].replace(spot[0], spot[1].format(cell))
        assert text != ALL[layout]
        try:
            release = read(put(tmp_path / "a.csv", text))
            counts = whole(release)[1]
        except InputError:
            continue
        there = set(counts.ravel().tolist())
        if count == UNREADABLE:
            # It is told of, or its column is left out, being no column of counts: never is it a number.
            named = UNREADABLE in there and bool(release.notes)
            assert named or release.left_out, cell
        elif count > ABSENT:
            assert count in there or release.left_out, cell
        judged += 1
    assert judged >= len(ODD) // every - 2  # hardly any makes the whole file unreadable


def test_a_frame_whose_columns_have_line_ends_in_their_names() -> None:
    for name in ("men\rwomen", "men\nwomen", '"'):
        assert read_frame(pl.DataFrame({name: ["a"], "code": ["b"]})) is None


def test_frames_with_numbers_that_are_no_counts() -> None:
    for value in (
        float("inf"),
        float("-inf"),
        float("nan"),
        1e300,
        2**63,
        -(2**63) - 1,
        10**400,
        0.5,
        "x",
        None,
        True,
        "1e400",
    ):
        frame = {"town": ["a", "b"], "n": [value, 5]}
        release = from_frame(Frame(frame), area="town", columns=["n"])
        found = whole(release)[1]
        assert bool(release.left_out) == (value == 0.5)  # decimals: no column of counts
        if not release.left_out:
            assert found[1, 0] == 5
            assert found[0, 0] <= ABSENT or (value is True and found[0, 0] == 1), value


class Frame:
    """Looks like a frame of pandas, as far as anybody asks."""

    def __init__(self, columns: dict[str, list[object]]) -> None:
        self.columns = list(columns)
        self._columns = columns

    def to_dict(self, orient: str) -> dict[str, list[object]]:
        assert orient == "list"
        return self._columns


# Areas and characteristics that come again


def test_areas_and_characteristics_that_come_again(tmp_path: Path) -> None:
    one, two = area(1, profile()), area(2, profile(90))
    assert "in two places" in refused(put(tmp_path / "a.csv", bulk(one, two, one)))
    assert "more than once" in refused(put(tmp_path / "a.csv", bulk(one, one, two)))
    woven = [row for pair in zip(one, two, strict=True) for row in pair]
    assert "in two places" in refused(put(tmp_path / "a.csv", bulk(woven)))
    assert "in two places" in refused(put(tmp_path / "a.csv", bulk(two, one[:4], area(3, profile()), one[4:])))
    assert "more than once" in refused(put(tmp_path / "a.csv", bulk(two, [*one, one[4]])))
    for text in (WIDE, INDICATORS, NAMES, TIDY, STATSNZ):
        lines = text.splitlines()
        said = refused(put(tmp_path / "a.csv", "\n".join([*lines, lines[1]]) + "\n"))
        assert "more than once" in said or "already" in said or "twice" in said


def test_an_area_split_between_blocks_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from unround.tables import bulk as bulk_format

    monkeypatch.setattr(bulk_format, "BLOCK_ROWS", 10)
    monkeypatch.setattr(bulk_format, "CHUNK", 500)
    areas = [area(number, profile()) for number in range(1, 30)]
    assert "in two places" in refused(put(tmp_path / "a.csv", bulk(*areas[:20], areas[3], *areas[20:])))
    assert whole(read(put(tmp_path / "a.csv", bulk(*areas))))[0].height == 29


@pytest.mark.parametrize("layout", [layout for layout in ALL if layout != "profile-page"])
def test_headers_that_are_wrong(tmp_path: Path, layout: str) -> None:
    header, _, body = ALL[layout].partition("\n")
    names = header.strip().split(",")
    refused(put(tmp_path / "a.csv", body))
    for only in (header, header + "\n", header + "\r\n\r\n\r\n", header + "\n" + "," * (len(names) - 1) + "\n"):
        refused(put(tmp_path / "a.csv", only))
    harmless = 0
    for at, name in enumerate(names):
        if name != "SYMBOL":
            again = "\n".join(f"{line.rstrip()},{line.split(',')[at]}" for line in ALL[layout].splitlines())
            if layout == "statcan":  # a second column of a name is not looked at, so it is refused or does no harm
                with contextlib.suppress(InputError):
                    assert np.array_equal(
                        whole(read(put(tmp_path / "a.csv", again)))[1], whole(read(put(tmp_path / "b.csv", BULK)))[1]
                    )
                    harmless += 1
            else:
                refused(put(tmp_path / "a.csv", again))
    assert harmless >= 10 or layout != "statcan"


# What is no file, or no text


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "is a pipe or a device" in refused(tmp_path / "pipe.csv")
    os.mkfifo(tmp_path / "pipe.parquet")
    assert "is a pipe or a device" in refused(tmp_path / "pipe.parquet")
    os.mkfifo(tmp_path / "pipe.toml")
    assert "is a pipe or a device" in refused(tmp_path / "pipe.toml")
    assert "is a pipe or a device" in refused(put(tmp_path / "a.csv", TIDY), layout="tidy", toml=tmp_path / "pipe.toml")
    assert "is a pipe or a device" in refused(Path("/dev/zero"))
    if Path("/proc/kmsg").exists():  # it says that it is an empty file, and is waited for
        (tmp_path / "log.csv").symlink_to("/proc/kmsg")
        assert "is a pipe or a device" in refused(tmp_path / "log.csv")
    assert "is a folder" in refused(tmp_path)
    (tmp_path / "folder.parquet").mkdir()
    assert "is a folder" in refused(tmp_path / "folder.parquet")
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    refused(tmp_path / "loop.csv")
    (tmp_path / "nowhere.csv").symlink_to(tmp_path / "missing.csv")
    assert "no file" in refused(tmp_path / "nowhere.csv")
    refused(tmp_path / ("x" * 2_000))
    refused(put(tmp_path / "b.csv", b""))
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv"))  # no summary or page could say what was read
    assert "its name is not text in UTF-8" in refused(put(odd, TIDY))


def test_a_pipe_beside_a_table_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "SIMULATED.txt")
    os.mkfifo(tmp_path / "release.toml")
    with bounded():
        assert whole(read(put(tmp_path / "a.csv", TIDY)))[0].height == 2


def test_a_symlink_to_a_table_is_one(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(put(tmp_path / "a.csv", TIDY))
    assert whole(read(tmp_path / "link.csv"))[0].height == 2


def test_files_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "a.csv", TIDY)
    toml = put(tmp_path / "b.toml", 'value = "n"')
    if os.geteuid() == 0:  # root may read everything, so that the system is made to say no

        def locked(self: Path, *_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied", str(self))

        monkeypatch.setattr(Path, "open", locked)
        monkeypatch.setattr(os, "open", locked)
    else:
        path.chmod(0)
        toml.chmod(0)
    assert "cannot be read (Permission denied)" in refused(path, layout="statcan")
    assert "cannot be read: Permission denied" in refused(path, layout="tidy", toml=toml)


def test_packed_files_cut_at_every_byte(tmp_path: Path) -> None:
    gz = gzip.compress(TIDY.encode())
    with zipfile.ZipFile(tmp_path / "whole.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.csv", TIDY)
    for content in (gz, (tmp_path / "whole.zip").read_bytes()):
        for cut in range(len(content)):
            with pytest.raises(InputError):
                whole(read(put(tmp_path / "a.csv", content[:cut])))
        assert whole(read(put(tmp_path / "a.csv", content)))[0].height == 2


def test_packed_files_with_every_byte_changed(tmp_path: Path) -> None:
    """Whatever is read of a damaged file is what was in the whole one: checksums see to that."""
    gz = gzip.compress(TIDY.encode(), mtime=0)
    with zipfile.ZipFile(tmp_path / "whole.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.csv", TIDY)
    expected = whole(read(put(tmp_path / "a.csv", TIDY)))[1]
    for content in (gz, (tmp_path / "whole.zip").read_bytes()):
        intact = 0
        for at in range(len(content)):
            for bit in (1, 0x80, 0xFF) if THOROUGH else (0xFF,):
                spoilt = bytearray(content)
                spoilt[at] ^= bit
                with contextlib.suppress(InputError):
                    assert np.array_equal(whole(read(put(tmp_path / "a.csv", bytes(spoilt))))[1], expected)
                    intact += 1
        assert 0 < intact < len(content) / 2 or THOROUGH  # names and dates are not checked, all else is


def test_names_in_a_zip_are_names_only(tmp_path: Path) -> None:
    for name in ("../../etc/passwd.csv", "/etc/a.csv", "..\\..\\a.csv", "C:\\a.csv", "a\x1b[2J.csv", "é/" * 100 + "a.csv"):
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
            packed.writestr(name, TIDY)
            packed.writestr("readme.txt", "notes")
        before = sorted(tmp_path.rglob("*"))
        release = read(tmp_path / "a.zip")
        assert whole(release)[0].height == 2
        assert sorted(tmp_path.rglob("*")) == before
        assert all(note.isprintable() for note in release.notes)


def test_a_zip_with_two_files_of_one_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("a.csv", TIDY)
        with pytest.warns(UserWarning, match="Duplicate name"):
            packed.writestr("a.csv", TIDY.replace("15", "95"))
    assert "two files called a.csv" in refused(tmp_path / "a.zip")


@pytest.mark.parametrize("layout", ALL)
def test_line_ends_of_all_kinds(tmp_path: Path, layout: str) -> None:
    lines = ALL[layout].splitlines()
    expected = whole(read(put(tmp_path / "a.csv", "\n".join(lines) + "\n")))[1]
    mixed = "".join(line + end for line, end in zip(lines, ["\r\n", "\n", "\r"] * len(lines), strict=False))
    for text in (
        "\r\n".join(lines),
        "\r".join(lines) + "\r",
        mixed,
        "\n".join(lines) + "\n\n\r\n\n",
        "\n".join(lines) + "\x1a",
    ):
        assert np.array_equal(whole(read(put(tmp_path / "a.csv", text)))[1], expected)


@pytest.mark.parametrize("layout", ALL)
def test_text_that_is_none(tmp_path: Path, layout: str) -> None:
    text = ALL[layout]
    for encoding in ("utf-16-le", "utf-16-be", "utf-32"):
        assert "not text" in refused(put(tmp_path / "a.csv", text.encode(encoding)))
    assert "damaged" in refused(put(tmp_path / "a.csv", text.encode("utf-16") + b"\n"))
    assert "not text" in refused(put(tmp_path / "a.csv", text.replace("1", "1\0", 1)))
    # Bytes that are no UTF-8 are taken for Windows' own, unless the file says that it is UTF-8.
    lines = text.encode().splitlines(keepends=True)
    for bad in (b"\xff", b"\xc3", b"\xe9", b"\xf0\x9f", b"\x80", b"\xed\xa0\x80"):
        for number in range(1, min(len(lines), 5 if THOROUGH else 2)):
            for spot in (b",", b"\n", b"\r"):
                spoilt = b"".join([*lines[:number], lines[number].replace(spot, bad + spot, 1), *lines[number + 1 :]])
                with contextlib.suppress(InputError):
                    whole(read(put(tmp_path / "a.csv", spoilt)))
                with contextlib.suppress(InputError):
                    whole(read(put(tmp_path / "a.csv", b"\xef\xbb\xbf" + spoilt)))
                with contextlib.suppress(InputError):
                    whole(read(put(tmp_path / "a.csv", spoilt.rstrip(b"\r\n") + bad)))


def test_nul_bytes_beyond_the_head(tmp_path: Path) -> None:
    areas = [area(number, profile()) for number in range(200)]
    lines = bulk(*areas).splitlines(keepends=True)
    assert len("".join(lines[:900])) > source.HEAD
    judged = 0
    for at in range(len(HEADER)):
        fields = lines[1_000].split(",")
        fields[at] += "\0"
        with contextlib.suppress(InputError):
            release = read(put(tmp_path / "a.csv", "".join([*lines[:1_000], ",".join(fields), *lines[1_001:]])))
            found, counts = whole(release)
            assert found.height == 200 or any("lack lines" in note for note in release.notes)
            assert np.count_nonzero(counts <= ABSENT) <= 6 or any("lack lines" in note for note in release.notes)
            judged += 1
    assert judged >= len(HEADER) - 3


# Numbers of characteristics, and tables that would be nearly empty


def test_large_numbers_of_characteristics_take_no_room(tmp_path: Path) -> None:
    text = BULK.replace(",13,", ",999999999,")
    assert "not a number up to 1,000,000" in refused(put(tmp_path / "a.csv", text))
    later = bulk(area(1, profile()), area(2, profile())).replace(",13,", ",999999999,", 2).replace(",999999999,", ",13,", 1)
    refused(put(tmp_path / "a.csv", later))


def test_tables_without_any_column_in_common(tmp_path: Path) -> None:
    lines = "".join(f"{n},{n},total,{n}\n" for n in range(20_000))
    assert "hardly any column in common" in refused(put(tmp_path / "a.csv", TIDY.split("\n")[0] + "\n" + lines))
    lines = "".join(f"{n},A,v{n},total_curp,1\n" for n in range(20_000))
    assert "hardly any column in common" in refused(put(tmp_path / "a.csv", STATSNZ.split("\n")[0] + "\n" + lines))
    toml = "value = 'n'\n" + "".join(f"[axes.a{n}]\n" for n in range(8))
    header = ",".join([*(f"a{n}" for n in range(8)), "n"])
    rows = "".join(",".join([str(n)] * 8) + ",1\n" for n in range(500))
    put(tmp_path / "b.toml", toml)
    assert "too many combinations" in refused(put(tmp_path / "b.csv", header + "\n" + rows))


def test_every_cell_of_a_parquet_file_may_be_anything(tmp_path: Path) -> None:
    odd: list[pl.Series] = [
        pl.Series([[1], [2]]), pl.Series([{"a": 1}, {"a": 2}]), pl.Series([b"1", b"2"]), pl.Series([True, False]),
        pl.Series([None, None]), pl.Series(["1", "2"], dtype=pl.Categorical), pl.Series([1.5, float("nan")]),
        pl.Series(["1", "2"]).str.to_date("%d", strict=False), pl.Series(["1.5", "2.5"]).cast(pl.Decimal(10, 2)),
    ]  # fmt: skip
    good = {"region": ["1", "2"], "characteristic_id": ["1", "1"], "sex": ["total", "total"], "true": [1, 2]}
    for column in good:
        for series in odd:
            pl.DataFrame({**good, column: series}).write_parquet(tmp_path / "a.parquet")
            with contextlib.suppress(InputError):
                whole(read(tmp_path / "a.parquet"))
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    for at in range(0, len(content), 3 if THOROUGH else 20):
        spoilt = content.copy()
        spoilt[at] ^= 0xFF
        with contextlib.suppress(InputError):
            whole(read(put(tmp_path / "a.parquet", bytes(spoilt))))


def test_lists_of_areas_that_are_none(tmp_path: Path) -> None:
    table = put(tmp_path / "a.csv", STATSNZ)
    for text in (
        "",
        "a",
        "a,b\n1\n1,2,3\n",
        "SA2_CODE,SA2_CODE\n1,2\n",
        '"SA2_CODE\n1,2',
        "SA2_CODE\n",
        "SA2_X_CODE,TA_CODE\n9,9\n",
        "\0",
    ):
        refused(table, areas=put(tmp_path / "areas.csv", text))


def test_an_indicator_that_is_no_column(tmp_path: Path) -> None:
    """Its header has another sign between its columns than its first line seems to have."""
    table = tmp_path / "table.csv"
    table.write_bytes(b"ge\x97_or_1,indicator_00,50,cator\xf49\nA1A,1051,00,20\nB1B01,00,2indicator_0,10.5\n")
    assert refused(table, layout="indicators")


SURVEY = str(Path(__file__).parents[1] / "examples" / "survey.toml")


@pytest.mark.parametrize(
    "command",
    [
        ("solve", "{}"),
        ("solve", "10! = 5 + 5", "--prior", "{}"),
        ("solve", "10! = 5 + 5", "--mechanism", "transition:{}"),
        ("audit", SURVEY, "-o", "out", "--describe", "{}"),
        ("audit", SURVEY, "-o", "out", "--nesting", "{}"),
        ("audit", SURVEY, "-o", "out", "--truth", "{}"),
        ("audit", "{}", "-o", "out"),
        ("describe", "{}"),
        ("protect", "{}", "--mechanism", "rounding:5", "-o", "out"),
        ("review", SURVEY, "--more", "{}", "-o", "out"),
    ],
)
def test_special_files_are_refused_wherever_a_file_is_read(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """A pipe that nobody writes to would be waited for, a device read without end."""
    monkeypatch.chdir(tmp_path)
    pipe, huge = tmp_path / "pipe", tmp_path / "huge"
    os.mkfifo(pipe)
    with huge.open("wb") as file:
        file.truncate(1 << 40)  # takes no room
    for special, said in ((pipe, "pipe or a device"), (Path("/dev/zero"), "pipe or a device"), (huge, "")):
        ran = run(*(part.format(special) for part in command))
        assert ran.code == 2, (special, ran)
        assert said in ran.err
        assert "Traceback" not in ran.err
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name", ["summary.json", "model/model.json", "model/prior.npz", "findings.parquet", "proofs.jsonl.gz"]
)
def test_a_pipe_in_an_audit_is_not_waited_for(run: Run, hostile_audit: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(hostile_audit, tmp_path / "audit"))
    (folder / name).unlink()
    os.mkfifo(folder / name)
    ran = run("verify", str(folder))
    assert ran.code in (1, 2)
    assert "Traceback" not in ran.err
    if name == "summary.json":
        assert "no summary.json written by" in run("audit", SURVEY, "-o", str(folder)).err


@pytest.mark.parametrize("name", ["review.json", "decisions.jsonl", "cells.xlsx"])
def test_a_pipe_in_a_review_is_not_waited_for(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / name)
    ran = run("review", SURVEY, "-o", str(tmp_path / "out"))
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_a_plan_is_not_written_over_a_file(run: Run, tmp_path: Path) -> None:
    table = put(tmp_path / "a.csv", TIDY)
    ran = run("check", str(table), "--write", str(table))
    assert ran.code == 2
    assert "exists, and may hold work of yours" in ran.err
    assert table.read_text() == TIDY


def test_a_page_is_written_over_nothing_but_a_page(run: Run, tmp_path: Path) -> None:
    """What is read may be called .html, too; so may a pipe."""
    table = put(tmp_path / "a.html", TIDY)
    system = put(tmp_path / "s.html", "48! = 20 + 20 + 20")
    pipe = tmp_path / "pipe.html"
    os.mkfifo(pipe)
    for command in (
        ("check", table, "--page", table),
        ("solve", system, "--page", system),
        ("solve", system, "--page", pipe),
    ):
        ran = run(*map(str, command))
        assert ran.code == 2
        assert "exists, and is not a page of unround: choose another name" in ran.err
    with pytest.raises(InputError, match="is not a page of unround"):
        unround.solve(str(system)).save(system)
    assert (table.read_text(), system.read_text()) == (TIDY, "48! = 20 + 20 + 20")
    assert pipe.is_fifo()
    for _ in range(2):
        assert run("solve", str(system), "--page", str(tmp_path / "page.html")).code == 0
    assert "no page" not in (tmp_path / "page.html").read_text()


def test_a_system_from_standard_input_has_a_limit(run: Run) -> None:
    ran = run("solve", "-", stdin=b"#" * ((8 << 20) + 1))
    assert ran.code == 2
    assert "more than a system can have" in ran.err


def test_a_disk_that_is_full_is_an_error_at_whatever_byte(tmp_path: Path) -> None:
    """Not fewer counts than there are."""
    block = Block(pl.DataFrame({"region": ["A", "B"]}), np.zeros((2, 640), dtype=np.int32))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        spool = Spool(tmp_path / "counts.bin", 640)
        spool.add(block)
        with pytest.raises(OSError, match="File too large"):
            spool.close(("region",))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
